package scheduler_test

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

func TestReschedule(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) {
		j.Reschedule = &structs.ReschedulePolicy{
			Delay: new(10 * time.Second), DelayFunction: new(structs.DelayFunctionExponential),
			MaxDelay: new(time.Minute), Unlimited: new(true),
		}
	}))
	c.eval()
	before := ""
	for _, seconds := range []int{10, 20, 40, 60, 60, 60, 60} {
		delay := time.Duration(seconds) * time.Second
		c.client(isLive, c.ended(true))
		c.eval()
		c.wantPlan(0, 0, 0)
		follow := c.last.Evals[1]
		if want := c.now.Add(delay); !follow.WaitUntil.Equal(want) || follow.TriggeredBy != structs.EvalTriggerRetryFailed {
			t.Fatalf("waits until %s, want %s", follow.WaitUntil, want)
		}
		c.eval() // for another reason: it waits already
		if len(c.last.Evals) != 1 || placed(c.last) != 0 {
			t.Fatalf("it did not go on waiting")
		}
		c.now = follow.WaitUntil
		c.evaluate(follow)
		c.wantPlan(1, 1, 0)
		in := c.last.Place[0].Instances[0]
		if in.PreviousAllocation == "" || len(in.RescheduleTracker.Events) == 0 {
			t.Fatalf("placed as %+v", in)
		}
		node := c.last.Place[0].Nodes[0].ID
		if len(in.RescheduleTracker.Events) == 1 && node == in.RescheduleTracker.Events[0].PrevNodeID {
			t.Errorf("it went back to %s", node)
		}
		if len(in.RescheduleTracker.Events) > feasible.KeptRescheduleEvents {
			t.Errorf("%d events are kept", len(in.RescheduleTracker.Events))
		}
		before = node
	}
	_ = before
}

func TestRescheduleAttempts(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeBatch, 1, func(j *structs.Job) {
		j.Reschedule = &structs.ReschedulePolicy{
			Attempts: new(2), Interval: new(time.Hour), Delay: new(time.Duration(0)),
			DelayFunction: new(structs.DelayFunctionConstant), Unlimited: new(false),
		}
	}))
	c.eval()
	for range 2 {
		c.client(isLive, c.ended(true))
		c.eval()
		c.wantPlan(1, 1, 0)
		c.now = c.now.Add(time.Minute)
	}
	c.client(isLive, c.ended(true))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.client(func(a *structs.Allocation) bool { return !a.ServerTerminal() },
		func(a *structs.Allocation) { a.DesiredTransition.ForceReschedule = new(true) })
	c.eval()
	c.wantPlan(1, 1, 0)
}

// TestTimeIsUp: an allocation that was ended by its max_run_duration is not replaced, whether its client reports it as
// complete or, as earlier versions did, as failed.
func TestTimeIsUp(t *testing.T) {
	for _, kind := range []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch} {
		timeIsUp(t, kind, true)
		timeIsUp(t, kind, false)
	}
}

func timeIsUp(t *testing.T, kind string, failed bool) {
	t.Helper()
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(kind, 1, func(j *structs.Job) {
		if j.Type == structs.JobTypeSystem || j.Type == structs.JobTypeSysBatch {
			return
		}
		j.Reschedule = &structs.ReschedulePolicy{
			Delay: new(time.Duration(0)), DelayFunction: new(structs.DelayFunctionConstant), Unlimited: new(true),
		}
	}))
	c.eval()
	c.client(isLive, c.ended(failed))
	c.client(func(*structs.Allocation) bool { return true }, func(a *structs.Allocation) {
		a.ClientDescription = structs.DescMaxRunDuration
	})
	c.eval()
	c.wantPlan(0, 0, 0)
	if len(c.last.Evals) != 1 {
		t.Errorf("%s, failed %v: it waits to be tried again", kind, failed)
	}
}

// A batch allocation that was drained when there was no room for its successor has not
// done its work: it runs again as soon as there is. One that ended by itself before it
// was killed has.
func TestDrainedBatchRunsAgain(t *testing.T) {
	f := func(killed bool, want int) {
		t.Helper()
		c := newCluster(t)
		c.node("a")
		c.register(schedtest.Job(structs.JobTypeBatch, 1))
		c.eval()
		c.client(isLive, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
		c.changeNode("a", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
		c.eval()
		c.wantPlan(0, 1, 0)
		c.client(func(*structs.Allocation) bool { return true }, func(a *structs.Allocation) {
			c.ended(false)(a)
			if killed {
				a.TaskStates["t"].Events = []*structs.TaskEvent{{Type: structs.TaskKilling}, {Type: structs.TaskTerminated}, {Type: structs.TaskKilled}}
			}
		})
		c.eval()
		c.changeNode("a", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeEligible })
		c.eval()
		c.wantLive(want)
	}
	f(true, 1)
	f(false, 0)
}

// TestFailedIsDueWhenItsFollowUpIsPast: what waits for a follow-up evaluation that has had its turn waits no longer, whatever this
// server's clock says. Otherwise nobody would look at it again.
func TestFailedIsDueWhenItsFollowUpIsPast(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) {
		j.Reschedule = &structs.ReschedulePolicy{Delay: new(time.Minute), DelayFunction: new(structs.DelayFunctionConstant), Unlimited: new(true)}
	}))
	c.eval()
	c.client(isLive, c.ended(true))
	c.eval()
	follow := c.last.Evals[1]
	for _, past := range []bool{false, true} {
		in := c.input()
		in.Past = map[string]bool{follow.ID: past, "another": true}
		plan, err := scheduler.Schedule(c.w, c.newEval(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := placed(plan) == 1; got != past {
			t.Errorf("past %t: %d placed", past, placed(plan))
		}
	}
}
