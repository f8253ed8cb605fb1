package state

import (
	"iter"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/allocwatch"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// AllocRow is an allocation as the feed delivers it: it keeps as many of them as there
// are changes, and most who read it look at little of them.
type AllocRow = alloctable.Row

// ReportForm stands for what a client has reported about an allocation, but for the times.
type ReportForm = alloctable.ReportForm

// attacher makes allocations whole, with their job's version. It remembers the last
// versions, as neighbours share them.
type attacher struct {
	r    reader
	seen map[versionKey]*structs.Job
	last *alloctable.Batch // the last row's
	job  *structs.Job
	// brief: without the events of tasks that have not ended.
	brief bool
}

type versionKey struct {
	job     structs.NamespacedID
	version uint64
}

func (v *view) attacher() *attacher { return &attacher{r: v.txn} }

func (a *attacher) whole(r *alloctable.Row) *structs.Allocation {
	var whole *structs.Allocation
	if a.brief {
		whole = r.Brief()
	} else {
		whole = r.Whole()
	}
	if b := r.Batch(); a.last != b {
		a.last, a.job = b, a.version(r)
	}
	whole.Job = a.job
	return whole
}

func (a *attacher) version(r *alloctable.Row) *structs.Job {
	k := versionKey{r.JobID(), r.JobVersion()}
	job, ok := a.seen[k]
	if !ok {
		job = jobVersion(a.r, k.job.Namespace, k.job.ID, k.version)
		if a.seen == nil || len(a.seen) > 1000 {
			a.seen = map[versionKey]*structs.Job{}
		}
		a.seen[k] = job
	}
	return job
}

// allocsOf returns the allocations of a group that were created at an index or later.
func (v *view) allocsOf(ws *WatchSet, kind alloctable.GroupKind, key indexkey.Hashed, since uint64) []*structs.Allocation {
	ws.addAllocs(v, allocwatch.Kind(kind), key.String())
	return v.attacher().group(v, kind, key, since)
}

func (a *attacher) group(v *view, kind alloctable.GroupKind, key indexkey.Hashed, since uint64) []*structs.Allocation {
	var out []*structs.Allocation
	rows := v.allocs.Sorted(kind, key)
	for i, r := range rows {
		if r.CreateIndex() < since {
			continue
		}
		if out == nil {
			out = make([]*structs.Allocation, 0, len(rows)-i)
		}
		out = append(out, a.whole(r))
	}
	return out
}

// Alloc is an allocation; nil if there is none. Job is nil when its version is not kept any more; this holds for all reads of allocations.
func (s *Snapshot) Alloc(ws *WatchSet, id string) *structs.Allocation {
	ws.addAllocs(s.v, allocwatch.Alloc, id)
	r := s.v.allocs.Get(id)
	if r == nil {
		return nil
	}
	return s.v.attacher().whole(r)
}

// AllocRow is an allocation as the state keeps it; nil if there is none.
func (s *Snapshot) AllocRow(id string) *AllocRow { return s.v.allocs.Get(id) }

// AllocToDecide is an allocation as AllocsToDecide has it; nil if there is none.
func (s *Snapshot) AllocToDecide(id string) *structs.Allocation {
	r := s.v.allocs.Get(id)
	if r == nil {
		return nil
	}
	a := s.v.attacher()
	a.brief = true
	return a.whole(r)
}

// Allocs walks the allocations of a namespace ("*": all) whose ID begins with prefix, by ID, or backwards.
func (s *Snapshot) Allocs(ws *WatchSet, ns, prefix string, reverse bool) iter.Seq[*structs.Allocation] {
	ws.addAllocs(s.v, allocwatch.Prefix, prefix)
	return func(yield func(*structs.Allocation) bool) {
		a := s.v.attacher()
		s.v.allocs.Walk(prefix, reverse, func(r *alloctable.Row) bool {
			if ns != structs.AllNamespaces && r.Namespace() != ns {
				return true
			}
			return yield(a.whole(r))
		})
	}
}

// AllocRows walks the allocations of a namespace ("*": all) as the state keeps them, by ID. It makes none of them whole.
func (s *Snapshot) AllocRows(ws *WatchSet, ns string) iter.Seq[*AllocRow] {
	ws.addAllocs(s.v, allocwatch.Prefix, "")
	return func(yield func(*AllocRow) bool) {
		s.v.allocs.All(func(r *alloctable.Row) bool {
			return ns != structs.AllNamespaces && r.Namespace() != ns || yield(r)
		})
	}
}

// WholeAllocs makes allocations whole, with their jobs.
func (s *Snapshot) WholeAllocs(all iter.Seq[*AllocRow]) iter.Seq[*structs.Allocation] {
	return func(yield func(*structs.Allocation) bool) {
		a := s.v.attacher()
		for r := range all {
			if !yield(a.whole(r)) {
				return
			}
		}
	}
}

// AllocsByJob are a job's allocations, by ID. Unless all is set, those of an earlier job of the same name, purged since, are left out.
func (s *Snapshot) AllocsByJob(ws *WatchSet, ns, id string, all bool) []*structs.Allocation {
	since := uint64(0)
	if job := s.Job(nil, ns, id); job != nil && !all {
		since = job.CreateIndex
	}
	return s.v.allocsOf(ws, alloctable.ByJob, indexkey.HashJob(ns, id), since)
}

// AllocRowsByJob walks the allocations of a job, and of earlier ones of its name, as the state keeps them, in an order that must not show.
func (s *Snapshot) AllocRowsByJob(ws *WatchSet, ns, id string) iter.Seq[*AllocRow] {
	key := indexkey.HashJob(ns, id)
	ws.addAllocs(s.v, allocwatch.Job, key.String())
	return func(yield func(*AllocRow) bool) { s.v.allocs.Each(alloctable.ByJob, key, yield) }
}

// AllocsToDecide are all allocations of a job, and of earlier ones of its name, as the scheduler needs them: without the events of tasks that have not ended.
func (s *Snapshot) AllocsToDecide(ns, id string) []*structs.Allocation {
	a := s.v.attacher()
	a.brief = true
	return a.group(s.v, alloctable.ByJob, indexkey.HashJob(ns, id), 0)
}

// pastFollowUps are those of the allocations' follow-up evaluations that have ended, or are not kept any more; nil if there are none.
func pastFollowUps(allocs []*structs.Allocation, eval func(id string) *structs.Evaluation) (past map[string]bool) {
	for _, a := range allocs {
		id := a.FollowupEvalID
		if id == "" || a.ServerTerminal() || past[id] {
			continue
		}
		if e := eval(id); e == nil || e.Terminal() {
			if past == nil {
				past = map[string]bool{}
			}
			past[id] = true
		}
	}
	return past
}

// olderLook bounds how many of a job's allocations are looked at by OlderWait.
const olderLook = 1000

// OlderWait reports whether some of a job's allocations, that were not stopped, are of an earlier version of it, or of a job of the
// same name that was purged since: such may wait to be replaced, those that failed too. Of more than a thousand it is not looked whether, and taken for so.
func (s *Snapshot) OlderWait(job *structs.Job) (wait bool) {
	looked := 0
	s.v.allocs.Each(alloctable.ByJob, indexkey.HashJob(job.Namespace, job.ID), func(r *alloctable.Row) bool {
		looked++
		wait = looked > olderLook || !r.Stopped() && (r.JobVersion() != job.Version || r.CreateIndex() < job.CreateIndex)
		return !wait
	})
	return wait
}

// AllocsByNode are a node's allocations, by ID.
func (s *Snapshot) AllocsByNode(ws *WatchSet, id string) []*structs.Allocation {
	return s.v.allocsOf(ws, alloctable.ByNode, indexkey.Hash(id), 0)
}

// NodeAllocsIndex is when servers changed an allocation of a node last: the highest AllocModifyIndex; 0 without
// allocations. It makes none of them whole: nodes request it whenever anything of theirs has changed.
func (s *Snapshot) NodeAllocsIndex(ws *WatchSet, id string) (index uint64) {
	ws.addAllocs(s.v, allocwatch.Node, id)
	s.v.allocs.Each(alloctable.ByNode, indexkey.Hash(id), func(r *alloctable.Row) bool {
		index = max(index, r.AllocModifyIndex())
		return true
	})
	return index
}

// NodeAllocsSince are the AllocModifyIndexes of a node's allocations by their IDs, and whole, by ID, those where it is above since.
func (s *Snapshot) NodeAllocsSince(id string, since uint64) (all map[string]uint64, changed []*structs.Allocation) {
	rows := s.v.allocs.Sorted(alloctable.ByNode, indexkey.Hash(id))
	all = make(map[string]uint64, len(rows))
	a := s.v.attacher()
	for _, r := range rows {
		all[r.ID()] = r.AllocModifyIndex()
		if r.AllocModifyIndex() > since {
			changed = append(changed, a.whole(r))
		}
	}
	return all, changed
}

// AllocsByEval are the allocations that an evaluation placed, by ID.
func (s *Snapshot) AllocsByEval(ws *WatchSet, id string) []*structs.Allocation {
	return s.v.allocsOf(ws, alloctable.ByEval, indexkey.Hash(id), 0)
}
