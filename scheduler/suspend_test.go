package scheduler_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// taken suspends allocations as a plan that takes their room would.
func (c *cluster) taken(pick func(*structs.Allocation) bool) int {
	return c.client(pick, func(a *structs.Allocation) {
		a.DesiredStatus, a.ClientStatus = structs.AllocDesiredSuspend, structs.AllocClientSuspended
	})
}

// guest is an allocation of another job, beside c's.
func (c *cluster) guest(id, node string, cpu int64, devices ...string) {
	c.t.Helper()
	r := &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: cpu}}}}
	if len(devices) > 0 {
		r.Tasks["t"].Devices = []*structs.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "A100", DeviceIDs: devices}}
	}
	e := c.w.Edit()
	e.UpsertAlloc(&structs.Allocation{
		ID: id, JobID: "guest", TaskGroup: "g", NodeID: node, AllocatedResources: r,
		DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
	})
	c.w = e.World()
}

func (c *cluster) goes(id string) {
	e := c.w.Edit()
	e.DeleteAlloc(id, "")
	c.w = e.World()
}

// decide is evaluate without the guests' part of the World being rebuilt.
func (c *cluster) decide(ev *structs.Evaluation) *structs.Plan {
	c.t.Helper()
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil {
		c.t.Fatal(err)
	}
	e := c.w.Edit()
	reservations, refused, why := scheduler.Judge(e, plan)
	if len(refused) > 0 {
		c.t.Fatalf("refused: %v, %s", refused, why)
	}
	judged := e.World()
	c.commit(reservations)
	if diff := judged.Diff(c.w); diff != nil {
		c.t.Fatalf("judging and committing differ: %v", diff)
	}
	c.last, c.done = plan, plan.Evals[0]
	return plan
}

func resumed(p *structs.Plan) (ids []string) {
	for _, u := range p.Update {
		if u.Resume {
			ids = append(ids, u.AllocID)
		}
	}
	return ids
}

// wantSuspended checks that n instances wait to be resumed, counted as missing.
func (c *cluster) wantSuspended(n int) {
	c.t.Helper()
	if got := c.done.QueuedAllocations["g"]; got != n {
		c.t.Fatalf("%d are counted as missing, want %d", got, n)
	}
	if blocked := c.done.BlockedEval != "" || c.done.Status == structs.EvalStatusBlocked; blocked != (n > 0) {
		c.t.Fatalf("blocked evaluation: %v, with %d missing", blocked, n)
	}
}

// TestSuspendedIsThereAndWaits: nothing is placed in its stead; it is missing, and
// its evaluation blocked, until there is room for it where it is.
func TestSuspendedIsThereAndWaits(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3000 }))
	c.eval()
	c.client(isLive, healthy)
	victim := c.sorted()[0]
	c.taken(func(a *structs.Allocation) bool { return a.ID == victim.ID })
	if used := c.w.Used(victim.NodeID); used != (scheduler.Vector{MemoryMB: 256, DiskMB: 10}) {
		t.Fatalf("a suspended allocation holds %+v", used)
	}
	c.guest("guest", victim.NodeID, 2000)
	ev := c.newEval()
	ev.TriggeredBy = structs.EvalTriggerPreemption
	c.decide(ev)
	c.wantPlan(0, 0, 0)
	c.wantSuspended(1)
	m := c.done.FailedTGAllocs["g"]
	if m == nil || m.DimensionExhausted["suspended: it goes on when its node has enough cpu free for it"] != 1 {
		t.Fatalf("why it waits: %+v", m)
	}
	blocked := c.last.Evals[slices.IndexFunc(c.last.Evals, func(e *structs.Evaluation) bool { return e.ID == c.done.BlockedEval })]
	if blocked.QueuedAllocations["g"] != 1 || !blocked.ClassEligibility[c.nodes[victim.NodeID].ComputedClass] {
		t.Fatalf("blocked: %+v", blocked)
	}
	c.decide(blocked)
	c.wantSuspended(1)
	c.goes("guest")
	c.decide(blocked)
	if got := resumed(c.last); !slices.Equal(got, []string{victim.ID}) {
		t.Fatalf("resumed %q, want %s", got, victim.ID)
	}
	c.wantSuspended(0)
	c.wantPlan(0, 0, 1)
	if now := c.allocs[victim.ID]; now.DesiredStatus != structs.AllocDesiredRun || now.NodeID != victim.NodeID {
		t.Fatalf("it is %s on %s", now.DesiredStatus, now.NodeID)
	}
	c.checkWorld()
}

// TestSuspendedIsCountedOnce: a node counts once where an instance is suspended and another finds no room. A brief decision says of why an evaluation
// waits what that says already, and leaves that as it is: it is the state's, on one server of several.
func TestSuspendedIsCountedOnce(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 3, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3000 }))
	c.eval()
	c.client(isLive, healthy)
	victim := c.sorted()[0]
	c.taken(func(a *structs.Allocation) bool { return a.ID == victim.ID })
	c.guest("guest", victim.NodeID, 2000)
	c.decide(c.newEval())
	blocked := c.last.Evals[slices.IndexFunc(c.last.Evals, func(e *structs.Evaluation) bool { return e.ID == c.done.BlockedEval })]
	if m := c.done.FailedTGAllocs["g"]; m.NodesExhausted != 2 || m.NodesEvaluated != 2 || len(m.DimensionExhausted) != 2 {
		t.Errorf("of two nodes %d are evaluated, %d exhausted: %v", m.NodesEvaluated, m.NodesExhausted, m.DimensionExhausted)
	}
	was := asJSON(t, blocked)
	in := c.input()
	in.Brief = true
	again, err := scheduler.Schedule(c.w, blocked, in)
	if err != nil {
		t.Fatal(err)
	}
	if now := asJSON(t, blocked); !bytes.Equal(was, now) {
		t.Fatalf("the evaluation was changed:\n%s\n%s", was, now)
	}
	want, got := blocked.FailedTGAllocs["g"], again.Evals[0].FailedTGAllocs["g"]
	if got == nil || got.NodesEvaluated != want.NodesEvaluated || got.NodesExhausted != want.NodesExhausted ||
		!maps.Equal(got.DimensionExhausted, want.DimensionExhausted) || got.CoalescedFailures != want.CoalescedFailures {
		t.Fatalf("it waits because of %s, before of %s", asJSON(t, got), asJSON(t, want))
	}
}

// TestSuspendedGetsTheSameNamesBack: devices, cores and ports are those that it had;
// others like them do not do.
func TestSuspendedGetsTheSameNamesBack(t *testing.T) {
	c := newCluster(t)
	c.node("n", func(n *structs.Node) {
		n.NodeResources.Devices = []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "A100", Instances: []*structs.NodeDevice{
			{ID: "gpu-0", Healthy: true}, {ID: "gpu-1", Healthy: true},
		}}}
	})
	c.register(schedtest.Job(structs.JobTypeBatch, 1, func(j *structs.Job) {
		schedtest.Task(j).Resources = &structs.Resources{Cores: 2, MemoryMB: 100, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}}
		schedtest.Group(j).Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "web", Value: 80}}}}
	}))
	c.eval()
	c.client(isLive, run)
	a := c.sorted()[0]
	had := a.AllocatedResources.Tasks["t"].Devices[0].DeviceIDs[0]
	c.taken(isLive)
	c.guest("guest", "n", 100, had)
	c.decide(c.newEval())
	c.wantSuspended(1)
	if c.done.FailedTGAllocs["g"].DimensionExhausted["suspended: it goes on when its node has enough devices free for it"] != 1 {
		t.Fatalf("why: %+v", c.done.FailedTGAllocs["g"])
	}
	c.goes("guest")
	c.decide(c.newEval())
	c.wantSuspended(0)
	now := c.allocs[a.ID].AllocatedResources
	if got := now.Tasks["t"].Devices[0].DeviceIDs[0]; got != had {
		t.Errorf("it got %s back, had %s", got, had)
	}
	if !slices.Equal(now.Tasks["t"].Cpu.ReservedCores, a.AllocatedResources.Tasks["t"].Cpu.ReservedCores) || now.Shared.Ports[0].Value != 80 {
		t.Errorf("it got %+v back", now)
	}
	c.checkWorld()
}

// TestResumedEndsByItsLimit: its time limit is known again, and begins anew at the latest:
// what waits for its end is told when that is.
func TestResumedEndsByItsLimit(t *testing.T) {
	f := func(limit, suspended, want time.Duration) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 1)
		c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) { schedtest.Group(j).MaxRunDuration = limit }))
		c.eval()
		c.client(isLive, run)
		c.taken(isLive)
		c.now = c.now.Add(suspended)
		c.decide(c.newEval())
		c.wantSuspended(0)
		if got := c.sorted()[0].AllocatedResources.Shared.TimeLimit; got != want {
			t.Errorf("limit %v, frozen for %v: ends after %v, want %v", limit, suspended, got, want)
		}
		c.checkWorld()
	}
	f(time.Hour, 3*time.Hour, 4*time.Hour)
	f(time.Hour, -time.Minute, time.Hour) // a clock that was set back
	f(0, time.Hour, 0)
}

// TestSuspendedByUserStays: it is there, waits for nobody but its user, and goes on
// when the user lets it.
func TestSuspendedByUserStays(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.client(isLive, run)
	c.taken(isLive)
	c.client(isLive, func(a *structs.Allocation) { a.DesiredTransition.Suspend = new(true) })
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantSuspended(0)
	c.client(isLive, func(a *structs.Allocation) { a.DesiredTransition.Suspend = new(false) })
	c.eval()
	c.wantPlan(0, 0, 1)
	if len(resumed(c.last)) != 1 {
		t.Fatal("it does not go on")
	}
}

// TestSuspendedThatLeaves: what happens to any allocation happens to a suspended one.
func TestSuspendedThatLeaves(t *testing.T) {
	f := func(name string, change func(c *cluster, a *structs.Allocation), place, stop int, why string) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 2)
		c.register(schedtest.Job(structs.JobTypeService, 1))
		c.eval()
		c.client(isLive, healthy)
		a := c.sorted()[0]
		c.taken(isLive)
		change(c, a)
		c.eval()
		if got := resumed(c.last); len(got) > 0 {
			t.Fatalf("%s: resumed", name)
		}
		c.wantPlan(place, stop, 0)
		if stop > 0 && c.last.Stop[0].DesiredDescription != why {
			t.Errorf("%s: stopped because %q", name, c.last.Stop[0].DesiredDescription)
		}
		c.wantSuspended(0)
	}
	f("node lost", func(c *cluster, a *structs.Allocation) { c.changeNode(a.NodeID, down) }, 1, 1, reconcile.StopLost)
	f("drained", func(c *cluster, _ *structs.Allocation) {
		c.client(isLive, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
	}, 1, 1, reconcile.StopMigrating)
	f("job stopped", func(c *cluster, _ *structs.Allocation) { c.update(func(j *structs.Job) { j.Stop = true }) }, 0, 1, reconcile.StopJobStopped)
	f("updated", func(c *cluster, _ *structs.Allocation) { c.update(destructive) }, 1, 1, reconcile.StopUpdating)
	f("scaled down", func(c *cluster, _ *structs.Allocation) {
		c.update(func(j *structs.Job) { schedtest.Group(j).Count = 0 })
	}, 0, 1, reconcile.StopNotNeeded)
}

// TestSuspendedOnAnUnfitNodeWaits: a node that drains, or is not heard of, resumes nothing.
func TestSuspendedOnAnUnfitNodeWaits(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.taken(isLive)
	id := c.sorted()[0].NodeID
	c.changeNode(id, func(n *structs.Node) {
		n.DrainStrategy = &structs.DrainStrategy{}
		n.SchedulingEligibility = structs.NodeIneligible
	})
	c.eval()
	c.wantSuspended(1)
	c.changeNode(id, func(n *structs.Node) { n.DrainStrategy = nil })
	c.eval() // ineligible is for newcomers
	c.wantSuspended(0)
	c.wantPlan(0, 0, 1)
}

// TestSuspendedTakesUpdateInPlace: it gets the newest version, suspended or not.
func TestSuspendedTakesUpdateInPlace(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.client(isLive, run)
	c.taken(isLive)
	c.guest("guest", c.sorted()[0].NodeID, 3800)
	c.update(func(j *structs.Job) { j.Priority = 60 })
	c.decide(c.newEval())
	c.wantPlan(0, 0, 1)
	c.wantSuspended(1)
	if a := c.sorted()[0]; a.JobVersion != c.job.Version || !a.Suspended() {
		t.Fatalf("version %d, %s", a.JobVersion, a.DesiredStatus)
	}
	c.goes("guest")
	c.decide(c.newEval())
	if terms := c.sorted()[0].AllocatedResources.Shared.Terms; len(resumed(c.last)) != 1 || terms == nil || terms.Priority != 60 {
		t.Fatalf("resumed %q with terms %+v", resumed(c.last), terms)
	}
}

// TestSuspendedDoesNotReservationUpOthers: what is missing beside it is placed, and it is
// counted beside what is not.
func TestSuspendedDoesNotReservationUpOthers(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3000 }))
	c.eval()
	c.client(isLive, run)
	c.taken(isLive)
	c.guest("guest", c.sorted()[0].NodeID, 2000)
	c.update(func(j *structs.Job) { schedtest.Group(j).Count = 3 })
	c.decide(c.newEval())
	if placed(c.last) != 1 {
		t.Fatalf("%d placed, want 1 on the other node", placed(c.last))
	}
	c.wantSuspended(2) // itself, and the third
}

// TestAllAtOnceResumesAllOrNone.
func TestAllAtOnceResumesAllOrNone(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeBatch, 2, func(j *structs.Job) { j.AllAtOnce = true; schedtest.Task(j).Resources.CPU = 3000 }))
	c.eval()
	c.client(isLive, run)
	c.taken(isLive)
	c.guest("guest", c.sorted()[0].NodeID, 2000)
	c.decide(c.newEval())
	c.wantPlan(0, 0, 0)
	c.wantSuspended(2)
	c.goes("guest")
	c.decide(c.newEval())
	c.wantPlan(0, 0, 2)
}

// TestSuspendedGangResumesWhole: all that must run go on together; those above min
// one by one.
func TestSuspendedGangResumesWhole(t *testing.T) {
	c := newCluster(t)
	nodes(c, 3)
	c.register(schedtest.Job(structs.JobTypeBatch, 3, func(j *structs.Job) {
		schedtest.Task(j).Resources.CPU = 3000
		schedtest.Group(j).Gang = &structs.Gang{Min: 2}
	}))
	c.eval()
	c.client(isLive, run)
	if len(c.liveOn()) != 3 {
		t.Fatal("not one on each node")
	}
	at := func(i int) string { return c.sorted()[i].NodeID }
	c.taken(isLive)
	c.guest("a", at(0), 2000)
	c.guest("b", at(1), 2000)
	c.decide(c.newEval())
	c.wantPlan(0, 0, 0)
	c.wantSuspended(3)
	c.goes("a")
	c.decide(c.newEval())
	c.wantPlan(0, 0, 2) // min
	c.wantSuspended(1)
	c.goes("b")
	c.decide(c.newEval())
	c.wantPlan(0, 0, 1)
	c.wantSuspended(0)
	c.checkWorld()
}

// TestSystemJobsAreResumed on their nodes.
func TestSystemJobsAreResumed(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeSystem, 1))
	c.eval()
	c.client(isLive, run)
	c.taken(isLive)
	c.guest("guest", c.sorted()[0].NodeID, 3800)
	c.decide(c.newEval())
	c.wantPlan(0, 0, 1)
	c.wantSuspended(1)
}

// TestSuspendedCountsAsUnwellInUpdates: a suspended instance of the new version takes one of the
// update's places, and an old one is the first to be replaced.
func TestSuspendedCountsAsUnwellInUpdates(t *testing.T) {
	c := newCluster(t)
	nodes(c, 3)
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) {
		schedtest.Group(j).Update = &structs.UpdateStrategy{MaxParallel: new(1), MinHealthyTime: new(time.Second)}
	}))
	c.eval()
	c.client(isLive, healthy)
	suspended := c.sorted()[1].ID
	c.taken(func(a *structs.Allocation) bool { return a.ID == suspended })
	c.client(func(a *structs.Allocation) bool { return a.ID == suspended }, func(a *structs.Allocation) { a.DesiredTransition.Suspend = new(true) })
	c.update(destructive)
	c.eval()
	c.wantPlan(1, 1, 0)
	if c.last.Stop[0].AllocID != suspended {
		t.Error("the one that runs is replaced first")
	}
	c.client(of(1), healthy)
	c.taken(of(1))
	c.client(of(1), func(a *structs.Allocation) { a.DesiredTransition.Suspend = new(true) })
	c.eval()
	c.wantPlan(0, 0, 0)
}

// Whatever is suspended, or fails to be, and whoever comes and goes: nothing is lost or given
// twice, nothing is placed in a suspended one's stead, and what could go on does.
func TestResumingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			c.node(string(rune('a' + i)))
		}
		count := rapid.IntRange(1, 6).Draw(t, "count")
		gang := rapid.Bool().Draw(t, "gang")
		c.register(schedtest.Job(structs.JobTypeBatch, count, never, func(j *structs.Job) {
			schedtest.Task(j).Resources.CPU = rapid.IntRange(500, 2000).Draw(t, "cpu")
			if gang {
				schedtest.Group(j).Gang = &structs.Gang{
					Min:    rapid.IntRange(1, count).Draw(t, "min"),
					OnLoss: rapid.SampledFrom([]string{structs.GangOnLossGang, structs.GangOnLossMember}).Draw(t, "on loss"),
				}
			}
		}))
		c.eval()
		c.client(isLive, run)
		guests := map[string]string{}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			failed := 0
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				c.taken(func(a *structs.Allocation) bool { return isLive(a) && rapid.Bool().Draw(t, "taken") })
			case 1:
				id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")
				name := "guest-" + string(rune('a'+step))
				if n, known := world.NodeStates(c.w).Get(id); known && n.Free().CPU >= 1000 {
					c.guest(name, id, 1000)
					guests[name] = id
				}
			case 2:
				for _, name := range sortedKeys(guests) {
					if rapid.Bool().Draw(t, "goes") {
						c.goes(name)
						delete(guests, name)
					}
				}
			case 3:
				failed = c.cannotSuspend(func(a *structs.Allocation) bool { return isLive(a) && rapid.Bool().Draw(t, "failed") })
			}
			before := c.live()
			c.decide(c.newEval())
			if stops := gang && failed > 0; (c.live() < before && !stops) || c.live() > count {
				t.Fatalf("%d live of %d, %d before", c.live(), count, before)
			}
			for _, s := range world.NodeStates(c.w).All {
				if f := s.Free(); f.CPU < 0 || f.MemoryMB < 0 {
					t.Fatalf("node %s is over-committed: %+v", s.ID, f)
				}
			}
			suspended := 0
			for _, a := range c.sorted() {
				if !isLive(a) || !a.Suspended() {
					continue
				}
				suspended++
				n, _ := world.NodeStates(c.w).Get(a.NodeID)
				if !gang && n.Lacks(scheduler.Vector{CPU: a.AllocatedResources.Tasks["t"].Cpu.CpuShares}, nil) == "" {
					t.Fatalf("%s could go on", a.ID)
				}
			}
			if got := c.done.QueuedAllocations["g"]; got != suspended+count-c.live() {
				t.Fatalf("%d missing, %d asleep and %d not placed", got, suspended, count-c.live())
			}
		}
	})
}

func sortedKeys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestUpdateGoesOnAfterSuspension: an update that waits for an instance which was suspended goes on
// when that runs again, whether its node had suspended it already or not.
func TestUpdateGoesOnAfterSuspension(t *testing.T) {
	f := func(suspended bool) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 1)
		c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) { j.Update = &structs.UpdateStrategy{MaxParallel: new(1)} }))
		c.eval()
		c.client(isLive, healthy)
		c.update(destructive)
		c.eval()
		c.wantPlan(1, 1, 0)
		fresh := func(a *structs.Allocation) bool { return isLive(a) && a.JobVersion == c.job.Version }
		c.client(fresh, healthy)
		c.taken(fresh)
		if !suspended {
			c.client(fresh, run)
		}
		c.eval()
		c.wantPlan(0, 0, 1)
		follow := slices.IndexFunc(c.last.Evals, func(ev *structs.Evaluation) bool {
			return ev.TriggeredBy == structs.EvalTriggerRollingUpdate && ev.Status == structs.EvalStatusPending && ev.WaitUntil.IsZero()
		})
		if told := follow >= 0; told == suspended {
			t.Errorf("frozen %v: followed by an evaluation: %v", suspended, told)
		}
		if suspended {
			c.eval()
			c.wantPlan(0, 0, 0) // its node has not said yet that it runs
			c.client(fresh, run)
		}
		c.eval()
		c.wantPlan(1, 1, 0)
	}
	f(true)
	f(false)
}

// TestNothingIsFollowedWithoutAnUpdate: what goes on and holds nothing up needs no other look.
func TestNothingIsFollowedWithoutAnUpdate(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) { j.Update = &structs.UpdateStrategy{MaxParallel: new(1)} }))
	c.eval()
	c.taken(isLive)
	c.client(isLive, healthy)
	c.eval()
	c.wantPlan(0, 0, 2)
	if len(c.last.Evals) != 1 {
		t.Errorf("%d evaluations", len(c.last.Evals))
	}
}
