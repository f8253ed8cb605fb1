package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/raise"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/resume"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A suspended allocation stays on its node, with its memory and disk; all else that it used is
// others' (semantics parts 0 and 4). It has its instance's place, so nothing is placed in its
// stead. Each evaluation of its job lets it go on in place if there is room for what it used, under
// the same names: it cannot move, and a process that was given a device cannot be given another.
// What finds no room is missing, and waits in a blocked evaluation as what is not placed does. What
// a user suspended is left alone until a user resumes it.

// suspendedAlloc is a suspended allocation that found no room to go on, and why.
type suspendedAlloc struct {
	work  *reconcile.GroupWork
	alloc *structs.Allocation
	what  string
}

// resume lets suspended allocations go on. They come before what is to be placed: they
// were placed before.
func (s *Scheduler) resume(groups []*reconcile.GroupWork) {
	for _, work := range groups {
		switch {
		case work.Gang == nil:
			for _, a := range work.Resume {
				s.wake(work, a)
			}
		case work.Gang.Works[0] == work:
			s.wakeGang(work.Gang)
		}
	}
}

// wake lets one allocation go on if there is room. It reports whether it does.
func (s *Scheduler) wake(work *reconcile.GroupWork, a *structs.Allocation) bool {
	reserved := resume.Resources(s.Input.Job, work.Group, a, s.Input.Now)
	what := resume.Take(s.Edit, a, reserved)
	if what != "" {
		s.suspended = append(s.suspended, suspendedAlloc{work, a, what})
		return false
	}
	s.plan.Update = append(s.plan.Update, &structs.AllocInPlace{
		AllocID: a.ID, JobVersion: s.Input.Job.Version, EvalID: s.eval.ID, Resources: reserved, Resume: true, Created: a.CreateTime,
	})
	return true
}

// wakeGang lets the members of a gang go on one by one while enough of each of its
// groups run, else all together: a gang goes on whole or not at all.
func (s *Scheduler) wakeGang(gw *reconcile.GangWork) {
	begun := len(s.plan.Update)
	for _, work := range gw.Works {
		for _, a := range work.Resume {
			s.wake(work, a)
		}
	}
	whole := !gw.Suspended(s.Live, s.plan.Update)
	if !whole {
		s.pause(begun, gw.Works, resume.LacksGang)
	}
	for _, a := range s.Live {
		if u, counts := world.Usages(world.Base(s.Edit)).Get(a.ID); whole && counts && u.Owner.Terms.Gang == gw.Spec.Groups[0].Group.Name {
			g, _ := u.Owner.Gang()
			raise.Lower(s.Edit, g, s.Live, s.plan)
			break
		}
	}
}

// pause takes back the resumings among the plan's updates from one on.
func (s *Scheduler) pause(from int, works []*reconcile.GroupWork, why string) {
	resumed := map[string]bool{}
	kept := s.plan.Update[:from]
	for _, up := range s.plan.Update[from:] {
		if up.Resume {
			resumed[up.AllocID] = true
		} else {
			kept = append(kept, up)
		}
	}
	s.plan.Update = kept
	for _, work := range works {
		for _, a := range work.Resume {
			if !resumed[a.ID] {
				continue
			}
			if u := world.Release(s.Edit, a.ID); u != nil {
				world.Take(s.Edit, u.Suspended())
			}
			s.suspended = append(s.suspended, suspendedAlloc{work, a, why})
		}
	}
}

// rollOn has the job looked at again when something goes on for which an update waits, and which
// its node has not suspended yet: nobody will report that it runs again. What is suspended reports it.
func (s *Scheduler) rollOn(groups []*reconcile.GroupWork) {
	goesOn := map[string]bool{}
	for _, up := range s.plan.Update {
		goesOn[up.AllocID] = up.Resume
	}
	for _, work := range groups {
		for _, a := range work.Resume {
			if work.Waits && goesOn[a.ID] && a.ClientStatus == structs.AllocClientRunning {
				s.plan.Evals = append(s.plan.Evals, s.newEval(structs.EvalTriggerRollingUpdate, structs.EvalStatusPending))
				return
			}
		}
	}
}

// suspendAgain takes every resuming out of the plan of a job that wants all at once.
func (s *Scheduler) suspendAgain(groups []*reconcile.GroupWork) {
	s.pause(0, groups, resume.LacksJob)
}

// suspends is an evaluation as what resumes what was suspended.
type suspends struct{ s *Scheduler }

// count counts what could not go on as missing, with the reasons: a node counts once for each, and once in all.
func (x suspends) count() {
	s := x.s
	if len(s.suspended) == 0 {
		return
	}
	seen := map[[3]string]bool{}
	recorded, counted := map[string]bool{}, map[string]bool{} // groups of which it is recorded already: those maps are the state's; groups whose nodes are counted
	for _, sl := range s.suspended {
		name := sl.work.Group.Name
		counted[name] = s.failed[name] != nil
		recorded[name] = counted[name] && s.stored(name) != nil
	}
	for _, sl := range s.suspended {
		name := sl.work.Group.Name
		s.Fit(sl.work.Group) // which classes could take it is looked up later
		world.PutInto(&s.queued, name, s.queued[name]+1)
		m := s.failed[name]
		if m == nil {
			m = metric.New(s.Input.Job).AllocMetric
			world.PutInto(&s.failed, name, m)
		} else {
			m.CoalescedFailures++
		}
		at, on := [3]string{name, sl.alloc.NodeID, sl.what}, [3]string{name, sl.alloc.NodeID}
		if seen[at] || recorded[name] {
			continue
		}
		n, _ := s.World.Node(sl.alloc.NodeID)
		metric.Explanation{AllocMetric: m}.Lacks(n, resume.Text(sl.what), counted[name] || seen[on])
		seen[at], seen[on] = true, true
	}
}
