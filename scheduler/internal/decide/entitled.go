package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// notTried is why an instance waits that has not been looked at: its position has not come yet.
const notTried = "not tried yet beyond what its namespace owns"

// leave has an instance wait for the other position of its request. It reports false if this is that position.
func (g *groupRun) leave() bool {
	if g.s.Input.EntitledOnly {
		entitledTurn{g.s}.wait(g.work, 1)
	}
	return g.s.Input.EntitledOnly
}

// entitledTurn is an evaluation that is decided at its entitled position.
type entitledTurn struct{ *Scheduler }

// wait counts instances of a group that are not looked at in this turn.
func (s entitledTurn) wait(work *reconcile.GroupWork, instances int) {
	name := work.Group.Name
	s.Fit(work.Group) // which classes could take it is asked later
	world.PutInto(&s.queued, name, s.queued[name]+instances)
	m := s.failed[name]
	if m == nil {
		if was := s.eval.FailedTGAllocs[name]; was != nil && s.eval.Status == structs.EvalStatusBlocked {
			c := *was
			c.CoalescedFailures = 0
			m = &c
		} else {
			m = newExplanation(s.Input.Job).AllocMetric
			m.QuotaExhausted = []string{notTried}
		}
		world.PutInto(&s.failed, name, m)
		instances--
	}
	m.CoalescedFailures += instances
}

// leaveGang has a gang wait for the other position of its request.
func (s entitledTurn) leaveGang(gw *reconcile.GangWork) {
	for _, work := range gw.Works {
		world.PutInto(&s.queued, work.Group.Name, 0)
		if n := len(work.Place) + len(work.Update); n > 0 {
			s.wait(work, n)
		}
	}
}

// leaveSuspended has suspended instances wait for it.
func (s entitledTurn) leaveSuspended(groups []*reconcile.GroupWork) {
	for _, work := range groups {
		for _, a := range work.Resume {
			s.suspended = append(s.suspended, suspendedAlloc{work, a, "what its namespace owns is placed first"})
		}
	}
}
