package scheduler_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// rolling is a job of three healthy instances that is updated one by one, and
// fails for good or is tried again after a delay.
func rolling(t *testing.T, again bool) *cluster {
	t.Helper()
	c := newCluster(t)
	nodes(c, 4)
	c.register(schedtest.Job(structs.JobTypeService, 3, func(j *structs.Job) {
		j.Update = &structs.UpdateStrategy{MaxParallel: new(1)}
		j.Reschedule = &structs.ReschedulePolicy{
			Attempts: new(0), Interval: new(time.Hour), Delay: new(10 * time.Second),
			DelayFunction: new(structs.DelayFunctionConstant), Unlimited: &again,
		}
	}))
	c.eval()
	c.client(isLive, healthy)
	c.update(destructive)
	c.eval()
	c.wantPlan(1, 1, 0)
	return c
}

// of picks the instances of a version that are not to be stopped.
func of(version uint64) func(*structs.Allocation) bool {
	return func(a *structs.Allocation) bool { return !a.ServerTerminal() && a.JobVersion == version }
}

func (c *cluster) wantRunning(version uint64, want int) {
	c.t.Helper()
	pick := of(version)
	n := c.client(func(a *structs.Allocation) bool { return isLive(a) && pick(a) }, func(*structs.Allocation) {})
	if n != want {
		c.t.Fatalf("%d of version %d run, want %d", n, version, want)
	}
}

func unhealthy(a *structs.Allocation) {
	run(a)
	a.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: new(false)}
}

// TestUpdateStopsAtWhatIsNotHealthy: whatever is wrong with the first instance of
// a new version, those of the old one keep running, until it is well.
func TestUpdateStopsAtWhatIsNotHealthy(t *testing.T) {
	for name, wrong := range map[string]func(*cluster) func(*structs.Allocation){
		"failed": func(c *cluster) func(*structs.Allocation) { return c.ended(true) },
		"failed after it was healthy": func(c *cluster) func(*structs.Allocation) {
			return func(a *structs.Allocation) { healthy(a); c.ended(true)(a) }
		},
		"unhealthy":       func(*cluster) func(*structs.Allocation) { return unhealthy },
		"not yet healthy": func(*cluster) func(*structs.Allocation) { return run },
	} {
		t.Run(name, func(t *testing.T) {
			c := rolling(t, false)
			c.client(of(1), wrong(c))
			for range 4 {
				c.eval()
				c.wantPlan(0, 0, 0)
				c.now = c.now.Add(time.Hour)
			}
			c.wantRunning(0, 2)
			c.client(of(1), healthy)
			c.eval()
			c.wantPlan(1, 1, 0)
			c.wantRunning(0, 1)
		})
	}
}

// TestUpdateWaitsForWhatIsTriedAgain: a failed instance takes its place while it
// waits for its delay, and while its successor is not healthy.
func TestUpdateWaitsForWhatIsTriedAgain(t *testing.T) {
	c := rolling(t, true)
	for range 3 {
		c.client(of(1), c.ended(true))
		c.eval()
		c.wantPlan(0, 0, 0)
		follow := c.last.Evals[1]
		c.eval()
		c.wantPlan(0, 0, 0)
		c.now = follow.WaitUntil
		c.evaluate(follow)
		c.wantPlan(1, 1, 0)
		c.wantRunning(0, 2)
	}
	c.client(of(1), healthy)
	c.eval()
	c.wantPlan(1, 1, 0)
	c.wantRunning(0, 1)
}

// TestUpdateWaitsForWhatHasNoRoomToBeTriedAgain: what cannot be tried again is as
// broken as before.
func TestUpdateWaitsForWhatHasNoRoomToBeTriedAgain(t *testing.T) {
	c := rolling(t, true)
	c.client(of(1), c.ended(true))
	for id := range c.nodes {
		c.changeNode(id, func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	}
	c.now = c.now.Add(time.Minute)
	c.eval()
	c.wantPlan(0, 0, 0)
	c.node("small", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 600 })
	c.eval() // the one place is for the failed one
	c.wantPlan(1, 1, 0)
	c.wantRunning(0, 2)
}

// TestUpdateWaitsForWhatEnds: a new version whose tasks end at once is replaced
// again and again, but is not well.
func TestUpdateWaitsForWhatEnds(t *testing.T) {
	c := rolling(t, false)
	for range 3 {
		c.client(of(1), c.ended(false))
		c.eval()
		c.wantPlan(1, 0, 0)
		c.wantRunning(0, 2)
	}
}

// TestNewerVersionMendsAnUpdate: it replaces what failed at once, and the rest
// once that is healthy. A version that changes in place only mends nothing.
func TestNewerVersionMendsAnUpdate(t *testing.T) {
	c := rolling(t, false)
	c.client(of(1), c.ended(true))
	c.eval()
	c.update(func(j *structs.Job) { j.Meta = nil; schedtest.Group(j).Services = nil; j.Priority++ })
	c.eval()
	c.wantRunning(0, 2)
	c.update(func(j *structs.Job) { schedtest.Task(j).Env = map[string]string{"V": "mended"} })
	newest := c.job.Version
	c.eval()
	c.wantPlan(1, 1, 0)
	c.wantRunning(0, 2)
	c.eval()
	c.wantPlan(0, 0, 0)
	for range 3 {
		c.client(of(newest), healthy)
		c.eval()
	}
	c.wantRunning(newest, 3)
}

// TestUpdateCountsWhatIsPlacedBesideIt: new instances take their places too, but
// those that find no room do not: the update may make it.
func TestUpdateCountsWhatIsPlacedBesideIt(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 2500 }))
	c.eval()
	c.client(isLive, healthy)
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 1000; schedtest.Group(j).Count = 3 })
	c.eval()
	c.wantPlan(1, 0, 0)
	c.wantRunning(0, 2)
	c.client(of(1), healthy)
	c.eval()
	c.wantPlan(1, 1, 0)
	c = newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3500 }))
	c.eval()
	c.client(isLive, healthy)
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 1000; schedtest.Group(j).Count = 2 })
	c.eval()
	c.wantPlan(1, 1, 0)
	c.wantRunning(0, 0)
}

// TestSystemUpdateStopsAtWhatFailed: a node whose instance of the new version fails gets no
// other one until something changes, and the other nodes keep theirs.
func TestSystemUpdateStopsAtWhatFailed(t *testing.T) {
	c := newCluster(t)
	nodes(c, 3)
	c.register(schedtest.Job(structs.JobTypeSystem, 1))
	c.eval()
	c.client(isLive, healthy)
	c.update(destructive)
	c.eval()
	for range 3 {
		failed := c.sorted()[slices.IndexFunc(c.sorted(), of(1))].NodeID
		c.client(of(1), c.ended(true))
		c.eval()
		c.wantPlan(0, 0, 0)
		c.wantRunning(0, 2)
		c.changeNode(failed, func(*structs.Node) {})
		c.eval()
		c.wantPlan(1, 0, 0)
		c.wantRunning(0, 2)
	}
}

// TestUpdateByTaskStates: without a word on its health, an instance is well once
// its tasks have run for min_healthy_time; not while one is to be restarted.
func TestUpdateByTaskStates(t *testing.T) {
	for name, f := range map[string]struct {
		state structs.TaskState
		well  bool
	}{
		"young":     {structs.TaskState{State: structs.TaskStateRunning}, false},
		"old":       {structs.TaskState{State: structs.TaskStateRunning, StartedAt: time.Unix(1, 0)}, true},
		"restarted": {structs.TaskState{State: structs.TaskStatePending, Restarts: 1}, false},
		"failed":    {structs.TaskState{State: structs.TaskStateDead, Failed: true}, false},
		"poststop":  {structs.TaskState{State: structs.TaskStatePending}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := rolling(t, false)
			schedtest.Group(c.job).Update.HealthCheck = new(structs.HealthCheckTaskStates)
			if f.state.State == structs.TaskStateRunning && f.state.StartedAt.IsZero() {
				f.state.StartedAt = c.now
			}
			c.client(of(1), func(a *structs.Allocation) {
				run(a)
				a.TaskStates = map[string]*structs.TaskState{"t": &f.state}
			})
			c.eval()
			if want := map[bool]int{true: 1}[f.well]; placed(c.last) != want {
				t.Errorf("%d are placed, want %d", placed(c.last), want)
			}
		})
	}
}

func TestRollingUpdate(t *testing.T) {
	c := newCluster(t)
	nodes(c, 4)
	c.register(schedtest.Job(structs.JobTypeService, 6, func(j *structs.Job) {
		j.Update = &structs.UpdateStrategy{MaxParallel: new(2)}
	}))
	c.eval()
	c.client(isLive, healthy)
	c.update(destructive)
	c.eval()
	c.wantPlan(2, 2, 0)
	c.wantLive(6)
	c.eval() // nothing was reported yet
	c.wantPlan(0, 0, 0)
	fresh := func(a *structs.Allocation) bool { return isLive(a) && a.JobVersion == c.job.Version }
	once := false
	c.client(func(a *structs.Allocation) bool {
		take := fresh(a) && !once
		once = once || take
		return take
	}, healthy)
	c.eval()
	c.wantPlan(1, 1, 0)
	for range 5 {
		c.client(fresh, healthy)
		c.eval()
	}
	if n := c.client(fresh, healthy); n != 6 {
		t.Errorf("%d of the new version, want 6", n)
	}
	c.update(func(j *structs.Job) {
		schedtest.Group(j).Update.MaxParallel = new(0)
		destructive(j)
		schedtest.Task(j).Env["V"] = "x"
	})
	c.eval()
	c.wantPlan(6, 6, 0)
}

func TestUpdateKeepsTheOldWithoutRoom(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 2000 }))
	c.eval()
	c.client(isLive, healthy)
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 2500 })
	c.eval()
	// max_parallel is 1: one is tried, 2500 do not fit beside 2000.
	c.wantPlan(0, 0, 0)
	c.wantLive(2)
	if m := c.done.FailedTGAllocs["g"]; m == nil || m.DimensionExhausted["cpu"] != 1 || c.done.QueuedAllocations["g"] != 1 {
		t.Errorf("the failure is explained as %+v", m)
	}
}

func TestRoomThatAnUpdateFreesIsSeen(t *testing.T) {
	c := newCluster(t)
	c.node("x")
	c.node("y")
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) {
		schedtest.Task(j).Resources.CPU = 4000
		j.Update = &structs.UpdateStrategy{MaxParallel: new(0)}
	}))
	c.eval()
	c.runAll()
	c.node("w", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 3500 })
	c.changeNode("y", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 1000; schedtest.Group(j).Count = 5 })
	c.eval()
	c.wantPlan(5, 2, 0)
	if got := c.liveOn(); !maps.Equal(got, map[string]int{"w": 3, "x": 2}) {
		t.Errorf("%v", got)
	}
}

func TestRoomOfAnOldOneThatStaysIsNotGivenAway(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) {
		schedtest.Task(j).Resources.CPU = 3000
		second := j.TaskGroups[0].Copy()
		second.Name, second.Count = "h", 0
		j.TaskGroups = append(j.TaskGroups, second)
	}))
	c.eval()
	c.runAll()
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 5000; j.TaskGroups[1].Count = 1 })
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantLive(1)
}
