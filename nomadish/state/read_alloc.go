package state

import (
	"iter"

	"github.com/nomadish/nomadish/structs"
)

// attacher gives allocations as whole values: copies of their rows with their job's
// version attached. It remembers the last versions, as neighbours share them.
type attacher struct {
	r    reader
	seen map[versionKey]*structs.Job
}

type versionKey struct {
	job     structs.NamespacedID
	version uint64
}

func (s *Snapshot) attacher() *attacher { return &attacher{r: s.v.txn} }

func (a *attacher) whole(row *structs.Allocation) *structs.Allocation {
	k := versionKey{structs.NamespacedID{ID: row.JobID, Namespace: row.Namespace}, row.JobVersion}
	job, ok := a.seen[k]
	if !ok {
		job = jobVersion(a.r, row.Namespace, row.JobID, row.JobVersion)
		if a.seen == nil || len(a.seen) > 1000 {
			a.seen = map[versionKey]*structs.Job{}
		}
		a.seen[k] = job
	}
	whole := *row
	whole.Job = job
	return &whole
}

func (a *attacher) all(items iter.Seq[*structs.Allocation]) []*structs.Allocation {
	var out []*structs.Allocation
	for row := range items {
		out = append(out, a.whole(row))
	}
	return out
}

// Alloc is an allocation; nil if there is none. Job is nil when its version is not
// kept any more; this holds for all reads of allocations.
func (s *Snapshot) Alloc(ws *WatchSet, id string) *structs.Allocation {
	row := one[structs.Allocation](s.v, ws, TableAllocs, byID, id)
	if row == nil {
		return nil
	}
	return s.attacher().whole(row)
}

// Allocs walks the allocations of a namespace ("*": all) whose ID begins with
// prefix, by ID, or backwards.
func (s *Snapshot) Allocs(ws *WatchSet, ns, prefix string, reverse bool) iter.Seq[*structs.Allocation] {
	all := many[structs.Allocation](s.v, ws, reverse, TableAllocs, byPrefix, prefix)
	all = inNamespace(all, ns, func(a *structs.Allocation) string { return a.Namespace })
	return func(yield func(*structs.Allocation) bool) {
		a := s.attacher()
		for row := range all {
			if !yield(a.whole(row)) {
				return
			}
		}
	}
}

// AllocsByJob are a job's allocations, by ID. Unless all is set, those of an earlier
// job of the same name, purged since, are left out.
func (s *Snapshot) AllocsByJob(ws *WatchSet, ns, id string, all bool) []*structs.Allocation {
	items := many[structs.Allocation](s.v, ws, false, TableAllocs, byJob, ns, id)
	if job := s.Job(nil, ns, id); job != nil && !all {
		items = where(items, func(a *structs.Allocation) bool { return a.CreateIndex >= job.CreateIndex })
	}
	return s.attacher().all(items)
}

// AllocsByNode are a node's allocations, by ID.
func (s *Snapshot) AllocsByNode(ws *WatchSet, id string) []*structs.Allocation {
	return s.attacher().all(many[structs.Allocation](s.v, ws, false, TableAllocs, byNode, id))
}

// AllocsByEval are the allocations that an evaluation placed, by ID.
func (s *Snapshot) AllocsByEval(ws *WatchSet, id string) []*structs.Allocation {
	return s.attacher().all(many[structs.Allocation](s.v, ws, false, TableAllocs, byEval, id))
}
