package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// notTried is why an instance waits that has not been looked at: its position has not come yet.
const notTried = "not tried yet beyond what its namespace, project or workflow has"

// leave has an instance wait for the other position of its request. It reports false if this is that position.
func (g *groupRun) leave() bool {
	if g.s.Input.EntitledOnly {
		entitledPosition{g.s}.wait(g.work, 1, g.reasons...)
	}
	return g.s.Input.EntitledOnly
}

// entitledPosition is an evaluation that is decided at its entitled position.
type entitledPosition struct{ s *Scheduler }

// wait counts instances of a group that are not looked at at this position. reasons are why they use no claim, if that is known.
func (t entitledPosition) wait(work *reconcile.GroupWork, instances int, reasons ...string) {
	name := work.Group.Name
	fit := t.s.Fit(work.Group) // which classes could take it is looked up later, too
	world.PutInto(&t.s.queued, name, t.s.queued[name]+instances)
	m := t.s.failed[name]
	if m == nil {
		if m = t.s.stored(name); m == nil || m.NodesInPool == 0 {
			inPool := func(c feasible.SetFound) bool { return c.Verdict.InPool }
			m = metric.New(t.s.Input.Job).AllocMetric
			if m.QuotaExhausted = reasons; len(reasons) == 0 && slices.ContainsFunc(fit.SetsOf(t.s.Edit, fit.LooksAtMeta()), inPool) {
				m.QuotaExhausted = []string{notTried}
			}
		}
		world.PutInto(&t.s.failed, name, m)
		instances--
	}
	m.CoalescedFailures += instances
}

// leaveGang has a gang wait for the other position of its request, or for what the reasons say.
func (t entitledPosition) leaveGang(gw *reconcile.GangWork, reasons ...string) {
	for _, work := range gw.Works {
		world.PutInto(&t.s.queued, work.Group.Name, 0)
		if n := len(work.Place) + len(work.Update); n > 0 {
			t.wait(work, n, reasons...)
		}
	}
}

// leaveSuspended has suspended instances wait for it.
func (t entitledPosition) leaveSuspended(groups []*reconcile.GroupWork) {
	for _, work := range groups {
		for _, a := range work.Resume {
			t.s.suspended = append(t.s.suspended, suspendedAlloc{work, a, "what its namespace owns is placed first"})
		}
	}
}
