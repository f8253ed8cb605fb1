package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// How much is read to name the users of cells. Each is a request.
const (
	maxNamedAllocs = 1000
	readersAtOnce  = 8
)

// vcReader reads virtual clusters, and who uses them.
type vcReader struct{ e *env }

// named reads the virtual cluster that is named, or the only one whose name begins so.
func (r *vcReader) named(ctx context.Context, args []string) (*structs.VirtualClusterStatus, error) {
	if len(args) != 1 || args[0] == "" {
		return nil, fmt.Errorf("one virtual cluster is needed, %d given", len(args))
	}
	vc, _, err := r.e.client.VirtualClusters().Info(ctx, args[0], nil)
	if err == nil || !api.IsNotFound(err) {
		return vc, err
	}
	found, err := one(ctx, r.e, byName("virtual cluster", func(vc *structs.VirtualClusterStatus) string { return vc.Name }, r.e.client.VirtualClusters().List,
		func(list []*structs.VirtualClusterStatus) [][]string { return vcRows(list, r.e.now()) }), args[0])
	if err != nil {
		return nil, err
	}
	vc, _, err = r.e.client.VirtualClusters().Info(ctx, found.Name, nil)
	return vc, err
}

// open reads the offers and bids of a virtual cluster that are not settled yet.
func (r *vcReader) open(ctx context.Context, owner string) ([]*structs.Exchange, error) {
	list, _, err := r.e.client.Exchanges().List(ctx, nil)
	return slices.DeleteFunc(list, func(x *structs.Exchange) bool { return x.Owner != owner }), err
}

// vcUsage is who uses the cells of a virtual cluster, and what it uses of those of others.
type vcUsage struct {
	allocs   map[string]*structs.AllocListStub // by ID
	borrowed []borrowedCell
}

// borrowedCell is a bound cell of another owner with allocations of the virtual cluster's namespace in it.
type borrowedCell struct {
	owner, cell string
	allocs      []string
}

// usage reads the names of the allocations in the bound cells of a virtual cluster, and of its own in those of others.
func (r *vcReader) usage(ctx context.Context, vc *structs.VirtualClusterStatus) (*vcUsage, error) {
	u := &vcUsage{allocs: map[string]*structs.AllocListStub{}}
	lenders, err := r.lenders(ctx, vc)
	if err != nil {
		return nil, err
	}
	var own, foreign []string
	for _, b := range vc.Bound {
		own = append(append(own, b.Allocs...), b.Borrowers...)
	}
	for _, other := range lenders {
		for _, b := range other.Bound {
			foreign = append(foreign, b.Borrowers...)
		}
	}
	all := slices.Concat(own, foreign)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxNamedAllocs {
		all = all[:maxNamedAllocs]
	}
	if err := r.stubs(ctx, all, u.allocs); err != nil {
		return nil, err
	}
	for _, other := range lenders {
		for _, b := range other.Bound {
			in := borrowedCell{owner: other.Name, cell: b.Cell}
			for _, id := range b.Borrowers {
				if a := u.allocs[id]; a != nil && a.Namespace == vc.Name {
					in.allocs = append(in.allocs, id)
				}
			}
			if len(in.allocs) > 0 {
				u.borrowed = append(u.borrowed, in)
			}
		}
	}
	return u, nil
}

// lenders reads those virtual clusters that lend anything, if this one borrows.
func (r *vcReader) lenders(ctx context.Context, vc *structs.VirtualClusterStatus) ([]*structs.VirtualClusterStatus, error) {
	if vc.OpportunisticGPUs == 0 {
		return nil, nil
	}
	list, _, err := r.e.client.VirtualClusters().List(ctx, nil)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(other *structs.VirtualClusterStatus) bool {
		return other.Name == vc.Name || !slices.ContainsFunc(other.Cells, func(c *structs.CellStatus) bool { return c.Lent > 0 })
	})
	out := make([]*structs.VirtualClusterStatus, len(list))
	err = together(len(list), func(i int) error {
		other, _, err := r.e.client.VirtualClusters().Info(ctx, list[i].Name, nil)
		if api.IsNotFound(err) { // deleted since
			other, err = list[i], nil
		}
		out[i] = other
		return err
	})
	return out, err
}

// stubs reads allocations, which may have gone.
func (r *vcReader) stubs(ctx context.Context, ids []string, into map[string]*structs.AllocListStub) error {
	var mu sync.Mutex
	return together(len(ids), func(i int) error {
		found, _, err := r.e.client.Allocations().List(ctx, &api.Query{
			Namespace: structs.AllNamespaces, Prefix: ids[i], Params: map[string]string{"resources": "true", "task_states": "false"},
		})
		mu.Lock()
		defer mu.Unlock()
		for _, a := range found {
			into[a.ID] = a
		}
		return err
	})
}

// together runs n pieces of work, a few at a time, and returns an error of one of them.
func together(n int, work func(i int) error) error {
	next, errs := make(chan int), make([]error, n)
	var all sync.WaitGroup
	for range min(n, readersAtOnce) {
		all.Go(func() {
			for i := range next {
				errs[i] = work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// instances are allocations of one group of a job.
type instances struct {
	namespace string
	name      string // job.group
	indexes   []int
	devices   []string // the devices that they use, each once
}

// groups puts allocations together by their groups. unread is how many of them are not known.
func (u *vcUsage) groups(ids []string) (out []*instances, unread int) {
	byName := map[[2]string]*instances{}
	for _, id := range ids {
		a := u.allocs[id]
		if a == nil {
			unread++
			continue
		}
		name, index := groupAndIndex(a.Name)
		key := [2]string{a.Namespace, name}
		g := byName[key]
		if g == nil {
			g = &instances{namespace: a.Namespace, name: name}
			byName[key] = g
		}
		g.indexes = append(g.indexes, index)
		g.devices = append(g.devices, devicesOf(a)...)
	}
	out = slices.SortedFunc(maps.Values(byName), func(a, b *instances) int {
		return cmp.Or(natural(a.namespace, b.namespace), natural(a.name, b.name))
	})
	for _, g := range out {
		slices.Sort(g.indexes)
		slices.Sort(g.devices)
		g.indexes, g.devices = slices.Compact(g.indexes), slices.Compact(g.devices)
	}
	return out, unread
}

// devicesOf names the devices that an allocation uses; those of two nodes may have the same IDs.
func devicesOf(a *structs.AllocListStub) []string {
	if a.AllocatedResources == nil {
		return nil
	}
	var out []string
	for _, task := range a.AllocatedResources.Tasks { // order does not matter: sorted by groups
		for _, d := range task.Devices {
			for _, id := range d.DeviceIDs {
				out = append(out, a.NodeID+"/"+id)
			}
		}
	}
	return out
}

// groupAndIndex splits the name of an allocation, "job.group[3]".
func groupAndIndex(name string) (group string, index int) {
	at := strings.LastIndexByte(name, '[')
	if at < 0 || !strings.HasSuffix(name, "]") {
		return name, -1
	}
	index, err := strconv.Atoi(name[at+1 : len(name)-1])
	if err != nil {
		return name, -1
	}
	return name[:at], index
}

// indexText writes sorted indexes as ranges: "[0-1,5]".
func indexText(indexes []int) string {
	var parts []string
	for i := 0; i < len(indexes); i++ {
		if indexes[i] < 0 {
			continue
		}
		last := i
		for last+1 < len(indexes) && indexes[last+1] == indexes[last]+1 {
			last++
		}
		text := strconv.Itoa(indexes[i])
		if last > i {
			text += "-" + strconv.Itoa(indexes[last])
		}
		parts = append(parts, text)
		i = last
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, ",") + "]"
}
