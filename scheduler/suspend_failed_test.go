package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// never is a reschedule policy without attempts.
func never(j *structs.Job) {
	for _, g := range j.TaskGroups {
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	}
}

// cannotSuspend ends allocations that were to be suspended, as their client does.
func (c *cluster) cannotSuspend(pick func(*structs.Allocation) bool) int {
	return c.client(pick, func(a *structs.Allocation) {
		c.ended(true)(a)
		a.DesiredStatus, a.ClientDescription = structs.AllocDesiredSuspend, "stopped: not all its tasks can be suspended"
	})
}

// TestFailedToSuspendIsMissing: it is placed again at once, and that costs no attempt of
// its reschedule policy.
func TestFailedToSuspendIsMissing(t *testing.T) {
	for _, kind := range []string{structs.JobTypeBatch, structs.JobTypeService, structs.JobTypeSystem, structs.JobTypeSysBatch} {
		c := newCluster(t)
		nodes(c, 1)
		c.register(schedtest.Job(kind, 1, never))
		c.eval()
		c.client(isLive, run)
		before := c.sorted()[0]
		before.RescheduleTracker = &structs.RescheduleTracker{Events: []*structs.RescheduleEvent{{RescheduleTime: 1}}}
		c.cannotSuspend(isLive)
		c.eval()
		if placed(c.last) != 1 || c.live() != 1 || c.done.QueuedAllocations["g"] != 0 {
			t.Fatalf("%s: %d placed, %d live, %v wait", kind, placed(c.last), c.live(), c.done.QueuedAllocations)
		}
		old := c.allocs[before.ID]
		now := c.allocs[old.NextAllocation]
		if now == nil || now.PreviousAllocation != old.ID {
			t.Fatalf("%s: nobody stands for it: %+v", kind, old)
		}
		if got := now.RescheduleTracker; !c.job.PerNode() && (got == nil || len(got.Events) != 1) {
			t.Errorf("%s: its history is %+v, want the one event that it had", kind, got)
		}
		c.client(isLive, run)
		c.eval()
		c.wantPlan(0, 0, 0)
	}
}

// TestFailedToSuspendWaits for room like what was requeued.
func TestFailedToSuspendWaits(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeBatch, 1, never, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3000 }))
	c.eval()
	c.cannotSuspend(isLive)
	c.guest("guest", c.sorted()[0].NodeID, 2000)
	c.decide(c.newEval())
	c.wantPlan(0, 0, 0)
	c.wantSuspended(1)
	c.goes("guest")
	c.decide(c.newEval())
	c.wantPlan(1, 0, 0)
	c.wantSuspended(0)
}

// TestSuspendedThatHadItsTimeIsDone: a time limit that ended it is an end.
func TestSuspendedThatHadItsTimeIsDone(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeBatch, 1, func(j *structs.Job) { schedtest.Group(j).MaxRunDuration = time.Hour }))
	c.eval()
	c.cannotSuspend(isLive)
	c.client(func(*structs.Allocation) bool { return true }, func(a *structs.Allocation) { a.ClientDescription = structs.DescMaxRunDuration })
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantSuspended(0)
}

// TestFailedToSuspendReservationsUpNoUpdate: it says nothing of the newest version, and takes
// none of the update's places.
func TestFailedToSuspendReservationsUpNoUpdate(t *testing.T) {
	c := newCluster(t)
	nodes(c, 3)
	c.register(schedtest.Job(structs.JobTypeService, 2, never, func(j *structs.Job) {
		schedtest.Task(j).Resources.CPU = 3000
		schedtest.Group(j).Update = &structs.UpdateStrategy{MaxParallel: new(1), MinHealthyTime: new(time.Second)}
	}))
	c.eval()
	c.client(isLive, healthy)
	c.update(destructive)
	c.eval()
	c.client(isLive, healthy)
	newest := func(a *structs.Allocation) bool { return isLive(a) && of(1)(a) }
	c.cannotSuspend(newest)
	for id := range c.nodes { // each gets one: the order cannot show
		if c.liveOn()[id] == 0 {
			c.guest("guest-"+id, id, 2000)
		}
	}
	c.decide(c.newEval())
	c.wantPlan(1, 1, 0) // the old one's successor, in its place
	c.wantSuspended(1)
}

// TestGangThatFailedToSuspend: with fewer than must run its others are of no use, and all
// wait to be placed as one; else it alone is placed again. No attempt is charged.
func TestGangThatFailedToSuspend(t *testing.T) {
	f := func(gang structs.Gang, fails, place, stop, resume int) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 3)
		c.register(schedtest.Job(structs.JobTypeBatch, 3, never, func(j *structs.Job) {
			schedtest.Task(j).Resources.CPU = 3000
			schedtest.Group(j).Gang = &gang
		}))
		c.eval()
		c.client(isLive, run)
		c.taken(isLive)
		done := 0
		c.cannotSuspend(func(*structs.Allocation) bool { done++; return done <= fails })
		c.decide(c.newEval())
		c.wantPlan(place, stop, resume)
		c.wantSuspended(0)
		c.wantLive(3)
	}
	f(structs.Gang{}, 1, 3, 3, 0) // the suspended ones, and the mark of what has ended
	f(structs.Gang{}, 3, 3, 3, 0)
	f(structs.Gang{Min: 2}, 1, 1, 0, 2)
	f(structs.Gang{Min: 2}, 2, 3, 3, 0)
	f(structs.Gang{OnLoss: structs.GangOnLossMember}, 1, 3, 3, 0)
	f(structs.Gang{OnLoss: structs.GangOnLossMember, Min: 2}, 1, 1, 0, 2)
}

// TestMemberThatUserCouldNotSuspend: the others run, so it is a member like any that is lost.
func TestMemberThatUserCouldNotSuspend(t *testing.T) {
	f := func(loss string, place, stop int) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 3)
		c.register(schedtest.Job(structs.JobTypeService, 3, never, func(j *structs.Job) { schedtest.Group(j).Gang = &structs.Gang{OnLoss: loss} }))
		c.eval()
		c.client(isLive, run)
		first := c.sorted()[0].ID
		c.cannotSuspend(func(a *structs.Allocation) bool { return a.ID == first })
		c.eval()
		c.wantPlan(place, stop, 0)
		c.wantLive(3)
	}
	f(structs.GangOnLossMember, 1, 0)
	f(structs.GangOnLossGang, 3, 3)
}

// TestGangThatFailedToSuspendLetsGo: while there is no room for all of it nobody of it
// reservations any.
func TestGangThatFailedToSuspendLetsGo(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeBatch, 2, never, func(j *structs.Job) {
		schedtest.Task(j).Resources.CPU = 3000
		schedtest.Group(j).Gang = &structs.Gang{}
	}))
	c.eval()
	c.client(isLive, run)
	first := c.sorted()[0]
	c.taken(isLive)
	c.guest("guest", first.NodeID, 2000)
	c.cannotSuspend(func(a *structs.Allocation) bool { return a.ID == first.ID })
	c.decide(c.newEval())
	c.wantPlan(0, 1, 0)
	c.wantSuspended(2)
	c.wantLive(0)
	c.goes("guest")
	c.decide(c.newEval())
	c.wantPlan(2, 1, 0) // the mark of what has ended
	c.wantSuspended(0)
}

// TestExplainFailedToSuspend: it is missing, not given up, and its explanation says what
// became of it.
func TestExplainFailedToSuspend(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeBatch, 1, never, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3000 }))
	c.eval()
	c.cannotSuspend(isLive)
	c.guest("guest", c.sorted()[0].NodeID, 2000)
	g := c.explain().Group("g")
	if g.Failed != 0 || g.Suspended != 0 || g.Missing != 1 {
		t.Errorf("%d failed, %d suspended, %d missing; want 0, 0, 1", g.Failed, g.Suspended, g.Missing)
	}
	for _, w := range g.Waits {
		if w.Kind == structs.ReasonGaveUp || w.Kind == structs.ReasonReschedule {
			t.Errorf("waits: %+v", w)
		}
	}
	f := func(by string, change func(*structs.Allocation), how, says string) {
		t.Helper()
		a := c.own()[0].Copy()
		a.PreemptedByAllocation = by
		change(a)
		x := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: c.config, Node: c.nodes[a.NodeID]})
		if got := strings.Join(x.Text, "\n"); x.Lost == nil || x.Lost.How != how || !strings.Contains(got, says) {
			t.Errorf("lost: %+v\n%s\nwant %s, %q", x.Lost, got, how, says)
		}
	}
	suspended := func(a *structs.Allocation) { a.ClientStatus = structs.AllocClientSuspended }
	none := func(*structs.Allocation) {}
	f("other", suspended, structs.ReclaimSuspend, "it is suspended, and goes on in place")
	f("other", none, structs.ReclaimRequeue, "it was to be suspended and could not be, so its request went back to the queue")
	f("", suspended, structs.ReclaimSuspend, "it is suspended, and goes on in place")
	f("", none, structs.ReclaimRequeue, "it was to be suspended and could not be, so its request went back to the queue")
}

// TestExplainHowItGivesWay: what its node cannot suspend is requeued.
func TestExplainHowItGivesWay(t *testing.T) {
	f := func(says map[string]string, how string) {
		t.Helper()
		c := preempting(t)
		c.node("n", suspending(says))
		c.runs(other{job: "low", priority: 1, cpu: 1, mem: 1, terms: structs.AllocTerms{Reclaim: structs.ReclaimSuspend, Drivers: "x"}}, 1, "n")
		x := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: c.sorted()[0], Config: c.config, Node: c.nodes["n"]})
		if len(x.MayLoseTo) != 1 || x.MayLoseTo[0].How != how {
			t.Errorf("%v: %+v, want %s", says, x.MayLoseTo, how)
		}
	}
	f(map[string]string{"x": "0"}, structs.ReclaimRequeue)
	f(map[string]string{"x": "1"}, structs.ReclaimSuspend)
	f(nil, structs.ReclaimSuspend)
}
