package state

import (
	"fmt"
	"reflect"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// batchKey is what allocations of one batch certainly share. A snapshot's stream
// has whole allocations: what they share is found again from them.
type batchKey struct {
	namespace, jobID, group, evalID string
	jobVersion, createIndex         uint64
	createTime                      int64
}

// maxAlike bounds the batches of one key. Allocations that are alike in none of
// them (each has ports of its own, say) have apart what is not.
const maxAlike = 4

// addRow takes a row of a table that memdb does not keep.
func (in *Import) addRow(table string, row any) error {
	switch r := row.(type) {
	case *structs.Allocation:
		if table == TableAllocs {
			in.addAlloc(r)
			return nil
		}
	case *structs.HistoryRecord:
		if table == TableHistory {
			for _, s := range []*string{&r.Namespace, &r.JobID, &r.Type, &r.Group, &r.User, &r.NodeID, &r.NodeName, &r.ClientStatus, &r.Reason} {
				*s = in.allocs.intern(*s)
			}
			in.past.put(r)
			return nil
		}
	}
	return fmt.Errorf("import a row of %s: it is of type %T", table, row)
}

// addAlloc takes an allocation of a snapshot; one of the same ID stands no more.
func (in *Import) addAlloc(a *structs.Allocation) {
	k := batchKey{a.Namespace, a.JobID, a.TaskGroup, a.EvalID, a.JobVersion, a.CreateIndex, a.CreateTime}
	alike := in.batches[k]
	for _, b := range alike {
		if reflect.DeepEqual(a.AllocatedResources, b.resources) && reflect.DeepEqual(a.Metrics, b.metrics) &&
			(a.Gang == nil) == (b.gang == nil) && (a.Gang == nil || sameGang(a.Gang, b.gang)) {
			a.AllocatedResources, a.Metrics = b.resources, b.metrics
			in.allocs.put(in.allocs.pack(a, b, nil, nil))
			return
		}
	}
	if len(alike) == maxAlike {
		in.allocs.put(in.allocs.pack(a, alike[0], nil, nil))
		return
	}
	b := &common{
		namespace: a.Namespace, jobID: a.JobID, job: indexkey.HashJob(a.Namespace, a.JobID), eval: indexkey.Hash(a.EvalID), group: a.TaskGroup, evalID: a.EvalID,
		jobVersion: a.JobVersion, createIndex: a.CreateIndex, createTime: a.CreateTime,
		resources: a.AllocatedResources, metrics: a.Metrics,
	}
	if g := a.Gang; g != nil {
		b.gang = &structs.AllocGang{Size: g.Size, Hosts: g.Hosts, Level: g.Level}
	}
	if in.batches == nil {
		in.batches = map[batchKey][]*common{}
	}
	in.batches[k] = append(alike, b)
	in.allocs.put(in.allocs.pack(a, b, nil, nil))
}
