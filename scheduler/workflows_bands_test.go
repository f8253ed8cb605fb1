package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// newBandWorkflows is a cluster of nodes of so many cores where batch jobs preempt lower bands, without workflows.
func newBandWorkflows(t tester, cores ...int) *gpuWorkflows {
	x := newGPUWorkflows(t, world.ChainKey{}, 0)
	x.config.PreemptionConfig.BatchSchedulerEnabled = true
	x.configure()
	for i, n := range cores {
		x.slotNode(fmt.Sprintf("n%d", i+1), n)
	}
	return x
}

// preempts reserves for a workflow of priority 60 as far as lower bands leave, and returns what was chosen and why it does not hold.
func (x *gpuWorkflows) preempts(stages ...scheduler.WorkflowStage) (scheduler.WorkflowChoice, string) {
	x.t.Helper()
	claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 60}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, claim)
	x.w = e.World()
	x.workflows.workflows[claim.Key()] = claim
	c := scheduler.ReserveOrPreempt(x.w, claim.Key(), "default", stages, structs.WorkflowReserve{Rule: structs.ReserveMax}, false,
		x.bands())
	if !c.Posted {
		if len(c.Stops) > 0 {
			x.t.Fatalf("%d leave for a reservation that waits", len(c.Stops))
		}
		return c, c.Missing
	}
	return c, x.post(claim, c)
}

// bands are from whom a workflow of priority 60 takes; jobs whose names begin with "system" are system jobs, of which what is placed does not say so.
func (x *gpuWorkflows) bands() scheduler.WorkflowBands {
	return scheduler.WorkflowBands{Config: &x.config, Priority: 60, Now: x.now.UnixNano(), PerNode: func(job structs.NamespacedID) bool {
		return strings.HasPrefix(job.ID, "system")
	}}
}

// left counts who leaves for a choice, by job.
func (x *gpuWorkflows) left(c scheduler.WorkflowChoice) map[string]int {
	out := map[string]int{}
	for _, s := range c.Stops {
		out[x.allocs[s.AllocID].JobID]++
	}
	return out
}

// filled puts instances of a job of a priority on a node, each of so many cores.
func (x *gpuWorkflows) filled(node, job string, priority, count, cores int, change ...func(*other)) (ids []string) {
	o := other{job: job, priority: priority, cpu: int64(1000 * cores), mem: int64(1000 * cores)}
	for _, f := range change {
		f(&o)
	}
	return x.runs(o, count, node)
}

func members(least int) func(*other) {
	return func(o *other) { o.terms.Gang, o.terms.GangMin = "g", least }
}

// TestReservationByBands: where bands are on, a workflow of priority 60 takes what it reserves from lower bands, as few as do, the lowest first, gangs
// whole or down to their min; never from its own band, nor from who was requeued too often. Who fails the submission check leaves whatever its band is.
func TestReservationByBands(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(x *gpuWorkflows)
		need []int // cores of the stage's jobs
		want map[string]int
	}{
		"just enough":         {func(x *gpuWorkflows) { x.filled("n1", "low", 10, 8, 1) }, []int{3}, map[string]int{"low": 3}},
		"beside what is free": {func(x *gpuWorkflows) { x.filled("n1", "low", 10, 6, 1) }, []int{3, 1}, map[string]int{"low": 2}},
		"the lowest first": {func(x *gpuWorkflows) {
			x.filled("n1", "lower", 5, 4, 1)
			x.filled("n1", "low", 10, 4, 1)
		}, []int{6}, map[string]int{"lower": 4, "low": 2}},
		"not needlessly": {func(x *gpuWorkflows) {
			x.filled("n1", "lower", 5, 2, 1)
			x.filled("n1", "low", 10, 1, 6)
		}, []int{6}, map[string]int{"low": 1}},
		"off": {func(x *gpuWorkflows) {
			x.filled("n1", "low", 10, 8, 1)
			x.config.PreemptionConfig.BatchSchedulerEnabled = false
			x.configure()
		}, []int{1}, nil},
		"its own band":         {func(x *gpuWorkflows) { x.filled("n1", "own", 41, 8, 1) }, []int{1}, nil},
		"not enough":           {func(x *gpuWorkflows) { x.filled("n1", "low", 10, 4, 1); x.filled("n1", "own", 41, 4, 1) }, []int{5}, nil},
		"not from system jobs": {func(x *gpuWorkflows) { x.filled("n1", "system", 5, 4, 1); x.filled("n1", "low", 10, 4, 1) }, []int{4}, map[string]int{"low": 4}},
		"not though they hold the rest": {func(x *gpuWorkflows) {
			x.filled("n1", "system", 5, 1, 1)
			x.filled("n1", "low", 10, 7, 1)
		}, []int{8}, nil},
		"requeued too often": {func(x *gpuWorkflows) {
			ids := x.filled("n1", "low", 10, 8, 1)
			x.client(func(a *structs.Allocation) bool { return a.ID != ids[0] }, func(a *structs.Allocation) { a.Requeues = structs.DefaultMaxRequeues })
		}, []int{2}, nil},
		"a gang whole": {func(x *gpuWorkflows) {
			x.filled("n1", "gang", 5, 4, 1, members(4))
			x.filled("n1", "low", 10, 4, 1)
		}, []int{2}, map[string]int{"gang": 4}},
		"a gang down to its min": {func(x *gpuWorkflows) {
			x.filled("n1", "gang", 5, 4, 1, members(2))
			x.filled("n1", "low", 10, 4, 1)
		}, []int{2}, map[string]int{"gang": 2}},
		"of a gang that is immune in part": {func(x *gpuWorkflows) {
			ids := x.filled("n1", "gang", 5, 8, 1, members(5))
			x.client(func(a *structs.Allocation) bool { return a.ID == ids[0] }, func(a *structs.Allocation) { a.Requeues = structs.DefaultMaxRequeues })
		}, []int{3}, map[string]int{"gang": 3}},
		"no more of it": {func(x *gpuWorkflows) {
			ids := x.filled("n1", "gang", 5, 8, 1, members(5))
			x.client(func(a *structs.Allocation) bool { return a.ID == ids[0] }, func(a *structs.Allocation) { a.Requeues = structs.DefaultMaxRequeues })
		}, []int{4}, nil},
		"who fails the check first, bands off": {func(x *gpuWorkflows) {
			x.gives("chip", 0)
			x.config.PreemptionConfig.BatchSchedulerEnabled = false
			x.configure()
			x.filled("n1", "failed", 90, 4, 1, func(o *other) {
				o.terms.Slots = &structs.SlotTerms{Project: "chip", User: "unknown", Type: structs.SlotBatch, Cost: 1}
			})
			x.filled("n1", "low", 5, 4, 1)
		}, []int{3}, map[string]int{"failed": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newBandWorkflows(t, 8)
			c.fill(x)
			choice, why := x.preempts(stagesOf(c.need)...)
			if choice.Posted != (c.want != nil) || choice.Posted && (why != "" || !choice.Preempts) {
				t.Fatalf("posted %v: %s: %+v", choice.Posted, why, choice)
			}
			if got := x.left(choice); !maps.Equal(got, c.want) {
				t.Errorf("who leaves: %v, want %v", got, c.want)
			}
			for _, s := range choice.Stops {
				if s.Reclaim != structs.ReclaimRequeue || !strings.Contains(s.RequeueReason, "preempted for the reservation of workflow wf") || len(choice.Jobs) != len(c.want) {
					t.Errorf("%+v of %v", s, choice.Jobs)
				}
			}
		})
	}
}

// TestReservationByBandsLosesLeast: of nodes those are taken from where the fewest leave, of the lowest priority that will do; nobody leaves while free
// nodes do.
func TestReservationByBandsLosesLeast(t *testing.T) {
	for _, c := range []struct {
		need []int
		want map[string]int
	}{
		{[]int{8}, map[string]int{"two": 2}}, {[]int{8, 8}, map[string]int{"two": 2, "eight": 8}}, {[]int{8, 8, 8}, map[string]int{"two": 2, "eight": 8, "one": 1}},
		{[]int{2}, map[string]int{}}, {[]int{3}, map[string]int{"two": 1}}, {[]int{8, 8, 8, 8}, nil},
	} {
		x := newBandWorkflows(t, 8, 8, 8, 8)
		x.filled("n1", "own", 50, 8, 1)
		x.filled("n2", "one", 20, 1, 8)
		x.filled("n3", "eight", 10, 8, 1)
		x.filled("n4", "two", 10, 2, 3)
		choice, why := x.preempts(stagesOf(c.need)...)
		if choice.Posted != (c.want != nil) || choice.Posted && why != "" {
			t.Fatalf("%v: posted %v: %s", c.need, choice.Posted, why)
		}
		if got := x.left(choice); !maps.Equal(got, c.want) {
			t.Errorf("for %v leave %v, want %v", c.need, got, c.want)
		}
	}
}

// TestReservationByBandsTakesTheLowest: where some jobs of a workflow can only be had of a priority, the others are taken from lower ones, though fewer would leave of
// that one, or though the packing would have a node that it empties of both.
func TestReservationByBandsTakesTheLowest(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(x *gpuWorkflows)
		need []int
		want map[string]int
	}{
		"fewer of the higher": {func(x *gpuWorkflows) {
			x.filled("n1", "a20", 20, 8, 1)
			x.filled("n2", "b20", 20, 8, 1)
			x.filled("n3", "c30", 30, 1, 8)
			x.filled("n4", "d30", 30, 2, 4)
		}, []int{8, 8, 8}, map[string]int{"a20": 8, "b20": 8, "c30": 1}},
		"both on one node": {func(x *gpuWorkflows) {
			x.filled("n1", "a20", 20, 4, 1)
			x.filled("n1", "b30", 30, 4, 1)
			x.filled("n2", "c30", 30, 1, 8)
			x.filled("n3", "own", 50, 1, 8)
			x.filled("n4", "own", 50, 1, 8)
		}, []int{8, 4}, map[string]int{"a20": 4, "c30": 1}},
		"three of them": {func(x *gpuWorkflows) {
			x.filled("n1", "a10", 10, 2, 4)
			x.filled("n2", "b10", 10, 4, 2)
			x.filled("n3", "c20", 20, 1, 8)
			x.filled("n4", "d30", 30, 1, 8)
			x.slotNode("n5", 16)
			x.filled("n5", "e30", 30, 4, 4)
		}, []int{16, 8, 4}, map[string]int{"a10": 2, "b10": 2, "e30": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newBandWorkflows(t, 8, 8, 8, 8)
			c.fill(x)
			choice, why := x.preempts(stagesOf(c.need)...)
			if got := x.left(choice); why != "" || !maps.Equal(got, c.want) {
				t.Errorf("%q: %v leave, want %v", why, got, c.want)
			}
		})
	}
}

// TestReservationRenewedByBands: the part that was lost with a node is taken from lower bands too, of nodes that have no part; nobody else leaves, and
// nobody but of lower bands.
func TestReservationRenewedByBands(t *testing.T) {
	for _, c := range []struct {
		priority int // of who runs on the third node
		want     map[string]int
	}{{10, map[string]int{"third": 4}}, {50, nil}} {
		x := newBandWorkflows(t, 8, 8, 8)
		x.filled("n3", "third", c.priority, 8, 1)
		if choice, why := x.preempts(stagesOf([]int{6, 4})...); why != "" || len(choice.Parts) != 2 || len(choice.Stops) > 0 {
			t.Fatalf("%s: %+v", why, choice)
		}
		claim := x.w.Workflow("default/wf")
		lost := claim.Parts[slices.IndexFunc(claim.Parts, func(p structs.WorkflowPart) bool { return p.CPU == 4000 })].NodeID
		kept := map[string]string{"n1": "n2", "n2": "n1"}[lost]
		x.filled(kept, "beside", 5, 2, 1)
		x.changeNode(lost, down)
		r, _ := scheduler.RenewReservation(x.w, claim.Key(), stagesOf([]int{6, 4}), structs.WorkflowReserve{Rule: structs.ReserveMax}, scheduler.WorkflowRenewal{Kept: true}, x.bands())
		if got := x.left(r); !maps.Equal(got, c.want) || (r.Missing == "") != (c.want != nil) {
			t.Fatalf("of priority %d: %v leave, want %v: %+v", c.priority, got, c.want, r)
		}
		if c.want == nil {
			continue
		}
		bands := x.config.Bands
		for _, one := range []bool{true, false} { // there is one band by the time it is committed
			if x.config.Bands = bands; one {
				x.config.Bands = []structs.PriorityBand{{Low: 1, High: 100}}
			}
			x.configure()
			if why := x.post(claim, r); (why != "") != one || coresOf(r.Parts)[kept] != 6 || coresOf(r.Parts)["n3"] != 4 {
				t.Errorf("one band: %v: %q: %+v", one, why, r.Parts)
			}
		}
	}
}

// TestReservationByBandsSuspends: who states so is suspended for a reservation if its memory can stay beside it, else requeued, and notified why.
func TestReservationByBandsSuspends(t *testing.T) {
	for memory, want := range map[int64]string{100: structs.ReclaimSuspend, 1000: structs.ReclaimRequeue} {
		x := newBandWorkflows(t, 8)
		x.filled("n1", "low", 10, 8, 1, func(o *other) { o.mem, o.terms.Reclaim = memory, structs.ReclaimSuspend })
		c, why := x.preempts(stagesOf([]int{4})...)
		if why != "" || len(c.Stops) != 4 {
			t.Fatalf("%s: %+v", why, c)
		}
		for _, s := range c.Stops {
			suspended := want == structs.ReclaimSuspend
			if s.Reclaim != want || (s.SuspendedAt > 0) != suspended || strings.Contains(s.DesiredDescription, "its memory cannot stay") == suspended {
				t.Errorf("of %d MiB: %+v", memory, s)
			}
		}
	}
}

// TestReservationByBandsOfGPUs: certain GPUs are reserved, free ones if there are enough on a node; who uses them leaves, and nobody who uses others.
func TestReservationByBandsOfGPUs(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 2)
	x.config.PreemptionConfig.BatchSchedulerEnabled = true
	x.configure()
	x.owns("a", "socket", 1)
	gpus := func(node string, from, count int) (list [][]string) {
		for i := range count {
			list = append(list, []string{fmt.Sprintf("%s-gpu-%d", node, from+i)})
		}
		return list
	}
	x.filled("n1", "own", 50, 4, 1, func(o *other) { o.cpu, o.mem, o.devices = 10, 10, gpus("n1", 0, 4) })
	x.filled("n1", "low", 10, 4, 1, func(o *other) { o.cpu, o.mem, o.devices = 10, 10, gpus("n1", 4, 4) })
	x.filled("n2", "low", 10, 6, 1, func(o *other) { o.cpu, o.mem, o.devices = 10, 10, gpus("n2", 0, 6) })
	c, why := x.preempts(gpuStage("default", 4))
	if why != "" || len(c.Parts) != 1 || len(c.Parts[0].DeviceIDs) != 4 {
		t.Fatalf("%s: %+v", why, c)
	}
	used := 0
	for _, s := range c.Stops {
		a := x.allocs[s.AllocID]
		if ids := a.AllocatedResources.Tasks["t"].Devices[0].DeviceIDs; a.JobID != "low" || !slices.Contains(c.Parts[0].DeviceIDs, ids[0]) {
			t.Errorf("%s of %s leaves for %v", ids, a.JobID, c.Parts[0].DeviceIDs)
		}
	}
	for _, a := range x.sorted() {
		if !a.Terminal() && slices.Contains(c.Parts[0].DeviceIDs, a.AllocatedResources.Tasks["t"].Devices[0].DeviceIDs[0]) {
			used++
		}
	}
	if used > 0 {
		t.Errorf("%d use what is reserved", used)
	}
	x.checkWorld()
}

// TestReservationByBandsOfLicenses: licenses are taken from lower bands as rooms are, wherever they are used; who leaves for either is not taken from for the
// other.
func TestReservationByBandsOfLicenses(t *testing.T) {
	for _, c := range []struct {
		cores, licenses int
		want            map[string]int
	}{
		{1, 2, map[string]int{}}, {1, 5, map[string]int{"elsewhere": 2, "here": 1}}, {5, 2, map[string]int{"here": 3}}, {5, 5, map[string]int{"here": 3}},
		{3, 7, map[string]int{"here": 3, "elsewhere": 2}}, {1, 10, map[string]int{"here": 6, "elsewhere": 2}}, {1, 11, nil},
	} {
		x := newBandWorkflows(t, 8, 8)
		l := &licenses{x.projects}
		l.set("vcs", 10)
		uses := func(n int64) func(*other) {
			return func(o *other) {
				o.terms.Licenses = &structs.LicenseTerms{Requests: []structs.RequestedLicense{{Name: "vcs", Count: n}}}
			}
		}
		x.filled("n1", "here", 10, 6, 1, uses(1))
		x.filled("n2", "elsewhere", 5, 2, 1, uses(1))
		x.filled("n2", "own", 50, 6, 1)
		job := stagesOf([]int{c.cores})
		job[0][0].TaskGroups[0].Tasks[0].Resources.Licenses = vcs(c.licenses)
		choice, why := x.preempts(job...)
		if choice.Posted != (c.want != nil) || choice.Posted && why != "" {
			t.Fatalf("%+v: posted %v: %s", c, choice.Posted, why)
		}
		if got := x.left(choice); !maps.Equal(got, c.want) {
			t.Errorf("%d cores, %d licenses: %v leave, want %v", c.cores, c.licenses, got, c.want)
		}
	}
}

// TestJudgeChecksReservationByBands: nobody leaves for a reservation by bands who must not any more when it is committed.
func TestJudgeChecksReservationByBands(t *testing.T) {
	for want, change := range map[string]func(x *gpuWorkflows, c *scheduler.WorkflowChoice){
		"is of no lower band": func(x *gpuWorkflows, _ *scheduler.WorkflowChoice) {
			x.config.Bands = []structs.PriorityBand{{Low: 1, High: 100}}
			x.configure()
		},
		"was requeued too often": func(x *gpuWorkflows, _ *scheduler.WorkflowChoice) {
			x.config.Slots = &structs.SlotSettings{MaxRequeues: new(int)}
			x.configure()
		},
		"would be left in part": func(x *gpuWorkflows, c *scheduler.WorkflowChoice) { c.Stops = c.Stops[:3] },
	} {
		x := newBandWorkflows(t, 8)
		x.filled("n1", "gang", 10, 8, 1, members(6))
		claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 60}
		e := x.w.Edit()
		scheduler.SetWorkflow(e, claim)
		x.w = e.World()
		x.workflows.workflows[claim.Key()] = claim
		c := scheduler.ReserveOrPreempt(x.w, claim.Key(), "default", stagesOf([]int{3}), structs.WorkflowReserve{Rule: structs.ReserveMax}, false,
			scheduler.WorkflowBands{Config: &x.config, Priority: claim.Priority})
		if len(c.Stops) != 8 {
			t.Fatalf("%d leave of a gang that 2 can leave, for 3 cores", len(c.Stops))
		}
		change(x, &c)
		if why := x.post(claim, c); !strings.Contains(why, want) || x.running("gang") != 8 {
			t.Errorf("%q, want %q; %d run on", why, want, x.running("gang"))
		}
	}
}

// TestReservationsByBandsHold: whatever runs, what is chosen by bands holds when it is judged, takes from lower bands alone, leaves no gang in part, and
// none of those who leave could have stayed; where it waits, it would wait without all of the lower bands too.
func TestReservationsByBandsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newBandWorkflows(t, rapid.SliceOfN(rapid.IntRange(2, 8), 1, 3).Draw(t, "nodes")...)
		x.config.KeepWhole = rapid.Bool().Draw(t, "keep whole")
		x.configure()
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			job, priority, least := fmt.Sprintf("j%d", i), rapid.SampledFrom([]int{5, 10, 30, 50, 80}).Draw(t, "priority"), 0
			if rapid.Bool().Draw(t, "gang") {
				least = rapid.IntRange(1, 2).Draw(t, "least")
			}
			requeues := rapid.SampledFrom([]int{0, 0, 0, 3}).Draw(t, "requeues")
			for _, n := range x.sortedNodes() {
				x.fillsUp(n.ID, job, priority, rapid.IntRange(0, 2).Draw(t, "count"), rapid.IntRange(1, 3).Draw(t, "cores"), least, requeues)
			}
		}
		stage := rapid.SliceOfN(rapid.IntRange(1, 8), 1, 3).Draw(t, "stage")
		before := x.w
		c, why := x.preempts(stagesOf(stage)...)
		if !c.Posted {
			x.w = before
			x.waitsToo(stage)
			return
		}
		if why != "" {
			t.Fatalf("what was chosen does not hold: %s", why)
		}
		for _, s := range c.Stops {
			if a := x.allocs[s.AllocID]; a.AllocatedResources.Shared.Terms.Priority > 40 || a.Requeues >= structs.DefaultMaxRequeues {
				t.Fatalf("%s of priority %d leaves, requeued %d times", a.ID, a.AllocatedResources.Shared.Terms.Priority, a.Requeues)
			}
		}
		x.wholeGangs()
		for i, s := range c.Stops {
			if x.allocs[s.AllocID].AllocatedResources.Shared.Terms.Gang == "" && x.holdsWithout(before, c, i) {
				t.Fatalf("%s could have stayed", s.AllocID)
			}
		}
	})
}

// fillsUp puts instances on a node as far as they have room.
func (x *gpuWorkflows) fillsUp(node, job string, priority, count, cores, least, requeues int) {
	for range count {
		n, _ := x.w.State(node)
		if n.Free().CPU < int64(1000*cores) {
			return
		}
		ids := x.filled(node, job, priority, 1, cores, func(o *other) {
			if least > 0 {
				members(least)(o)
			}
		})
		x.client(func(a *structs.Allocation) bool { return a.ID == ids[0] }, func(a *structs.Allocation) { a.Requeues = requeues })
	}
}

// waitsToo checks that a stage would wait too if all of lower bands that may leave did, gangs as a whole.
func (x *gpuWorkflows) waitsToo(stage []int) {
	x.t.Helper()
	stays := map[string]bool{}
	mustStay := func(a *structs.Allocation) bool {
		return a.AllocatedResources.Shared.Terms.Priority > 40 || a.Requeues >= structs.DefaultMaxRequeues
	}
	for _, a := range x.sorted() {
		if mustStay(a) && a.AllocatedResources.Shared.Terms.Gang != "" {
			stays[a.JobID] = true
		}
	}
	x.client(func(a *structs.Allocation) bool { return !mustStay(a) && !stays[a.JobID] }, x.ended(false))
	if c := scheduler.ChooseReservation(x.w, "default/wf", "default", stagesOf(stage), structs.WorkflowReserve{Rule: structs.ReserveMax}, false); c.Posted {
		x.t.Fatalf("%v waits, and would not if all of lower bands left: %+v", stage, c.Parts)
	}
}

// wholeGangs checks that of each gang as many run as must, or none.
func (x *gpuWorkflows) wholeGangs() {
	x.t.Helper()
	run, all, least := map[string]int{}, map[string]int{}, map[string]int{}
	for _, a := range x.sorted() {
		if terms := a.AllocatedResources.Shared.Terms; terms.Gang != "" {
			all[a.JobID]++
			least[a.JobID] = terms.GangMin
			if !a.Terminal() {
				run[a.JobID]++
			}
		}
	}
	for job, n := range run { // all must hold: the order cannot show
		if n < least[job] && n < all[job] {
			x.t.Fatalf("of the gang of %s %d run of %d, at least %d must", job, n, all[job], least[job])
		}
	}
}

// holdsWithout reports whether a reservation would have held if one of those who leave for it had stayed.
func (x *gpuWorkflows) holdsWithout(before *scheduler.World, c scheduler.WorkflowChoice, stays int) bool {
	e := before.Edit()
	scheduler.SetWorkflow(e, &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 60})
	judged, _, _ := scheduler.Judge(e, &structs.Plan{
		Namespace: "default", JobID: "wf", Stop: slices.Delete(slices.Clone(c.Stops), stays, stays+1), AllAtOnce: true,
		Workflow: &structs.WorkflowReservation{Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: c.Parts},
	})
	return judged.Workflow != nil
}
