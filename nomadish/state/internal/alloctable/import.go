package alloctable

import (
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
// them (each has ports of its own, for example) have apart what is not.
const maxAlike = 4

// Import gathers allocations as a snapshot's stream has them.
type Import struct {
	*Edit
	batches map[batchKey][]*Batch
}

// NewImport returns an import that has gathered nothing.
func NewImport() *Import { return &Import{Edit: new(Table).Edit()} }

// AddWhole takes an allocation of a snapshot; one of the same ID stands no more.
func (in *Import) AddWhole(a *structs.Allocation) {
	k := batchKey{a.Namespace, a.JobID, a.TaskGroup, a.EvalID, a.JobVersion, a.CreateIndex, a.CreateTime}
	alike := in.batches[k]
	for _, b := range alike {
		if reflect.DeepEqual(a.AllocatedResources, b.resources) && reflect.DeepEqual(a.Metrics, b.metrics) &&
			(a.Gang == nil) == (b.gang == nil) && (a.Gang == nil || sameGang(a.Gang, b.gang)) {
			a.AllocatedResources, a.Metrics = b.resources, b.metrics
			in.Put(in.Pack(a, b, nil, nil))
			return
		}
	}
	if len(alike) == maxAlike {
		in.Put(in.Pack(a, alike[0], nil, nil))
		return
	}
	b := &Batch{
		namespace: a.Namespace, jobID: a.JobID, job: indexkey.HashJob(a.Namespace, a.JobID), eval: indexkey.Hash(a.EvalID), group: a.TaskGroup, evalID: a.EvalID,
		jobVersion: a.JobVersion, createIndex: a.CreateIndex, createTime: a.CreateTime,
		resources: a.AllocatedResources, metrics: a.Metrics,
	}
	if g := a.Gang; g != nil {
		b.gang = &structs.AllocGang{Size: g.Size, Hosts: g.Hosts, Level: g.Level}
	}
	if in.batches == nil {
		in.batches = map[batchKey][]*Batch{}
	}
	in.batches[k] = append(alike, b)
	in.Put(in.Pack(a, b, nil, nil))
}
