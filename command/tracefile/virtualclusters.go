package tracefile

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// Peak is the most GPUs that a tenant's jobs would use at a time if each began when it arrived.
type Peak struct {
	Tenant string
	GPUs   int64
}

// Peaks returns the peaks of all tenants whose jobs request whole GPUs, the largest first.
func Peaks(rows iter.Seq2[*trace.Row, error]) ([]Peak, error) {
	type use struct {
		now, most int64
	}
	uses := map[string]*use{}
	var ends endHeap
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		for len(ends) > 0 && ends[0].at <= row.Arrival {
			e := heap.Pop(&ends).(end)
			uses[e.tenant].now -= e.gpus
		}
		gpus := int64(row.Count) * int64(row.GPUs)
		if gpus == 0 || row.Share > 0 && row.Share < structs.DeviceShareWhole {
			continue
		}
		name := cmp.Or(row.Tenant, structs.DefaultNamespace)
		u := uses[name]
		if u == nil {
			u = &use{}
			uses[name] = u
		}
		u.now += gpus
		u.most = max(u.most, u.now)
		if row.Duration < trace.Forever-row.Arrival {
			heap.Push(&ends, end{row.Arrival + row.Duration, name, gpus})
		}
	}
	list := make([]Peak, 0, len(uses))
	for name, u := range uses { // sorted below
		list = append(list, Peak{name, u.most})
	}
	slices.SortFunc(list, func(a, b Peak) int { return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), strings.Compare(a.Tenant, b.Tenant)) })
	return list, nil
}

// end is when a job would end.
type end struct {
	at     time.Duration
	tenant string
	gpus   int64
}

type endHeap []end

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(end)) }
func (h *endHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// InProportion returns virtual clusters that together own all nodes of one kind, whole ones, in proportion to the peaks: by the
// largest remainders, those whose part is less than half a node without any.
func InProportion(peaks []Peak, nodes int) ([]*structs.VirtualCluster, error) {
	sum := int64(0)
	for _, p := range peaks {
		sum += p.GPUs
	}
	if sum == 0 {
		return nil, fmt.Errorf("no tenant of the trace requests GPUs: state who owns what in a file")
	}
	counts, left := make([]int, len(peaks)), nodes
	order := make([]int, len(peaks))
	for i, p := range peaks {
		counts[i] = int(p.GPUs * int64(nodes) / sum)
		left -= counts[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(peaks[b].GPUs*int64(nodes)%sum, peaks[a].GPUs*int64(nodes)%sum)
	})
	for _, i := range order[:left] {
		counts[i]++
	}
	var list []*structs.VirtualCluster
	for i, p := range peaks {
		if counts[i] == 0 {
			continue
		}
		list = append(list, &structs.VirtualCluster{Name: p.Tenant, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: counts[i]}}})
	}
	return list, nil
}
