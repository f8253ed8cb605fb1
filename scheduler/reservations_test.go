package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// limited is a job of one task that takes all of a test node's memory, for so long.
func limited(count int, limit time.Duration) *structs.Job {
	return schedtest.Job(structs.JobTypeBatch, count, func(j *structs.Job) {
		schedtest.Task(j).Resources.MemoryMB = 8000
		schedtest.Group(j).MaxRunDuration = limit
	})
}

// starve runs a blocked evaluation of the job that waits since a time.
func (c *cluster) starve(id string, j *structs.Job, since time.Time) *structs.Plan {
	c.t.Helper()
	j.ID = id
	c.job = nil
	c.register(j)
	ev := c.newEval()
	ev.JobID, ev.Namespace, ev.Status, ev.CreateTime = id, j.Namespace, structs.EvalStatusBlocked, since.UnixNano()
	others := c.allocs
	c.allocs = map[string]*structs.Allocation{}
	for k, a := range others {
		if a.JobID == id {
			c.allocs[k] = a
		}
	}
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil {
		c.t.Fatal(err)
	}
	c.allocs = others
	e := c.w.Edit()
	reservations, refused, why := scheduler.Judge(e, plan)
	if len(refused) > 0 {
		c.t.Fatalf("refused: %v %s", refused, why)
	}
	judged := e.World()
	c.commit(reservations)
	if diff := judged.Diff(c.w); diff != nil {
		c.t.Fatalf("judging and committing differ: %v", diff)
	}
	c.last, c.done = plan, plan.Evals[0]
	return plan
}

// A request that has waited longer than reservation_after reserves the nodes where room comes
// soonest; nobody else gets that room but what ends before; the holder does.
func TestReservations(t *testing.T) {
	c := newCluster(t)
	c.config.ReservationAfter, c.config.ReservationTTL = 5*time.Minute, time.Hour
	for _, id := range []string{"a", "b", "c"} {
		c.node(id)
	}
	start := c.now
	c.run("soon", limited(1, time.Hour))
	c.run("later", limited(1, 2*time.Hour))
	c.run("for ever", limited(1, 0))
	soon := c.liveOf("soon")

	big := func() *structs.Job { return limited(1, 0) }
	if p := c.starve("big", big(), start); len(p.Reserve) != 0 || !c.done.WaitUntil.Equal(start.Add(5*time.Minute)) {
		t.Fatalf("it reserves before its time, or is not looked at then: %+v, %v", p.Reserve, c.done.WaitUntil)
	}
	c.now = start.Add(6 * time.Minute)
	p := c.starve("big", big(), start)
	if len(p.Reserve) != 1 || p.Reserve[0].NodeID != soon.NodeID || p.Reserve[0].MemoryMB != 8000 ||
		p.Reserve[0].DueAt != start.Add(time.Hour).UnixNano() || p.Reserve[0].ExpiresAt != c.now.Add(time.Hour).UnixNano() {
		t.Fatalf("reserved: %+v", p.Reserve)
	}
	if c.done.StatusDescription != "waits with room reserved on 1 nodes" {
		t.Errorf("the evaluation says %q", c.done.StatusDescription)
	}
	if !c.done.WaitUntil.Equal(start.Add(time.Hour + decide.ReservedLate)) {
		t.Errorf("it is looked at again at %v, not when its reservation should have served it", c.done.WaitUntil)
	}
	if p := c.starve("big", big(), start); len(p.Reserve) != 0 || len(p.Unreserve) != 0 {
		t.Fatalf("it reserves twice: %+v, %v", p.Reserve, p.Unreserve)
	}

	c.client(func(a *structs.Allocation) bool { return a.ID == soon.ID }, c.ended(false))
	e := c.w.Edit()
	e.UpsertAlloc(c.allocs[soon.ID])
	c.w = e.World()
	c.run("other", limited(1, 0))
	if c.done.QueuedAllocations["g"] != 1 || c.done.FailedTGAllocs["g"].DimensionExhausted["memory"] == 0 {
		t.Errorf("reserved room was given: %+v", c.done.FailedTGAllocs["g"])
	}
	want := "room is reserved on 1 node, which it may use only after those for whom it is: group \"g\" of job \"big\" of namespace \"default\" (due " +
		start.Add(time.Hour).UTC().Format(time.RFC3339) + ")"
	if waits := c.explain().Group("g").Waits; !slices.ContainsFunc(waits, func(w structs.Wait) bool { return w.Text == want }) {
		t.Errorf("%+v; want %q", waits, want)
	}
	c.run("long", limited(1, time.Hour))
	if c.done.QueuedAllocations["g"] != 1 {
		t.Error("reserved room was given beyond the time that it is due")
	}
	c.run("short", limited(1, 10*time.Minute))
	short := c.liveOf("short")
	if short == nil || short.NodeID != soon.NodeID {
		t.Fatal("what ends before the reserved room is due got none of it")
	}
	c.client(func(a *structs.Allocation) bool { return a.ID == short.ID }, c.ended(false))
	e = c.w.Edit()
	e.UpsertAlloc(c.allocs[short.ID])
	c.w = e.World()

	p = c.starve("big", big(), start)
	if placed(p) != 1 || p.Place[0].Nodes[0].ID != soon.NodeID || len(p.Unreserve) != 1 {
		t.Errorf("the holder: %d placed, unreserved %v", placed(p), p.Unreserve)
	}
}

// A reservation ends when its time is over, or its job is stopped.
func TestReservationEnds(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	start := c.now
	c.run("soon", limited(1, 10*time.Hour))
	c.now = start.Add(6 * time.Minute)
	if p := c.starve("big", limited(1, 0), start); len(p.Reserve) != 1 {
		t.Fatalf("reserved: %+v", p.Reserve)
	}
	c.now = c.now.Add(2 * time.Hour)
	if p := c.starve("big", limited(1, 0), start); len(p.Unreserve) != 1 || len(p.Reserve) != 1 {
		t.Fatalf("when its time is over: unreserved %v, reserved %+v", p.Unreserve, p.Reserve)
	}
	stopped := limited(1, 0)
	stopped.Stop = true
	if p := c.starve("big", stopped, start); len(p.Unreserve) != 1 || len(p.Reserve) != 0 {
		t.Fatalf("when its job is stopped: unreserved %v, reserved %+v", p.Unreserve, p.Reserve)
	}
	if n, known := world.NodeStates(c.w).Get("a"); !known || n.Reservation != nil {
		t.Error("the reservation is still there")
	}
}

// liveOf is the live allocation of a job, nil if there is none.
func (c *cluster) liveOf(job string) *structs.Allocation {
	for _, a := range c.sorted() {
		if a.JobID == job && !a.Terminal() {
			return a
		}
	}
	return nil
}

// The holder of a reservation gets its room, whatever else its group prefers.
func TestReservedRoomOfAGroupWithPreferences(t *testing.T) {
	for name, prefer := range map[string]func(*structs.Job){
		"affinity": func(j *structs.Job) {
			schedtest.Group(j).Affinities = []*structs.Affinity{{LTarget: "${node.datacenter}", RTarget: "dc9", Operand: "=", Weight: 50}}
		},
		"spread": func(j *structs.Job) {
			schedtest.Group(j).Spreads = []*structs.Spread{{Attribute: "${node.unique.id}", Weight: 50}}
		},
		"first-fit": func(j *structs.Job) { j.Policy = "first-fit" },
		"random":    func(j *structs.Job) { j.Policy = "random" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.node("a")
			c.node("b")
			e := c.w.Edit()
			e.Reserve(&structs.Reservation{NodeID: "b", Namespace: "default", JobID: "big", Group: "g", CPU: 500, MemoryMB: 8000, DiskMB: 10})
			c.w = e.World()
			c.run("other", limited(2, 0))
			if c.liveOn()["b"] != 0 || c.live() != 1 {
				t.Fatalf("others run on %v", c.liveOn())
			}
			big := limited(1, 0)
			prefer(big)
			c.run("big", big)
			if c.liveOn()["b"] != 1 || len(c.last.Unreserve) != 1 {
				t.Errorf("the holder: %v, unreserved %v", c.liveOn(), c.last.Unreserve)
			}
		})
	}
}

// A job that wants one instance on each node reserves the nodes that lack it, and no
// others; a job of distinct hosts none that it is on.
func TestReservationsAreWhereTheyHelp(t *testing.T) {
	c := newCluster(t)
	c.config.ReservationAfter = time.Minute
	start := c.now
	c.node("full")
	c.run("filler", limited(1, 2*time.Hour))
	for _, id := range []string{"a", "b"} {
		c.node(id)
	}
	short := limited(2, time.Hour) // ends sooner, but leaves room for what is wanted
	schedtest.Task(short).Resources.MemoryMB = 100
	schedtest.Group(short).Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	c.run("short", short)
	c.now = start.Add(2 * time.Minute)
	for name, j := range map[string]*structs.Job{
		"everywhere": schedtest.Job(structs.JobTypeSystem, 1),
		"distinct": schedtest.Job(structs.JobTypeService, 3, func(j *structs.Job) {
			schedtest.Group(j).Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
		}),
	} {
		before := c.w
		p := c.starve(name, j, start)
		if placed(p) != 2 || len(p.Reserve) != 1 || p.Reserve[0].NodeID != "full" {
			t.Errorf("%s: %d placed, reserved %+v", name, placed(p), p.Reserve)
		}
		c.w = before
	}
}

// A part of a GPU of which others have parts may be taken beside a reservation of
// whole ones.
func TestSharesBesideReservedDevices(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	c.run("half", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1, Share: 500}))
	e := c.w.Edit()
	e.Reserve(&structs.Reservation{NodeID: "n", Namespace: "default", JobID: "big", Group: "g", Devices: 7})
	c.w = e.World()
	c.run("another half", schedtest.GPUJob(2, structs.RequestedDevice{Name: "gpu", Count: 1, Share: 500}))
	if got := c.done.QueuedAllocations["g"]; got != 1 {
		t.Errorf("%d wait, want only the one that would open a reserved GPU", got)
	}
}

// A gang that must be under one rack is kept room under one rack: all that it needs, what
// is free already among it, or nothing.
func TestReservationsOfAGang(t *testing.T) {
	c := newCluster(t)
	rack := func(name string) func(*structs.Node) { return func(n *structs.Node) { n.Meta["rack"] = name } }
	for id, r := range map[string]string{"a0": "r1", "a1": "r1", "b0": "r2", "b1": "r2"} {
		c.node(id, rack(r))
	}
	start := c.now
	on := func(id string, limit time.Duration) {
		j := limited(1, limit)
		schedtest.Group(j).Candidates = []string{id}
		c.run("on "+id, j)
	}
	gang := func() *structs.Job {
		j := limited(2, 0)
		schedtest.Group(j).Gang, schedtest.Group(j).Topology = &structs.Gang{}, &structs.TopologyConstraint{Level: "rack", Required: true}
		j.Canonicalize()
		return j
	}
	reserved := func(want ...string) *structs.Plan {
		t.Helper()
		c.now = start.Add(6 * time.Minute)
		p := c.starve("gang", gang(), start)
		var got []string
		for _, r := range p.Reserve {
			got = append(got, r.NodeID)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("reserved %v, want %v", got, want)
		}
		return p
	}
	on("a0", time.Hour)
	on("b0", 2*time.Hour)
	on("a1", 0)
	on("b1", 0)
	reserved() // in each rack there is something without a limit

	c.client(func(a *structs.Allocation) bool { return a.JobID == "on b1" }, c.ended(false))
	e := c.w.Edit()
	e.UpsertAlloc(c.liveOrEnded("on b1"))
	c.w = e.World()
	p := reserved("b0", "b1")
	for _, r := range p.Reserve {
		if r.DueAt != start.Add(2*time.Hour).UnixNano() {
			t.Errorf("%s is due at %v, not when all of it can start", r.NodeID, time.Unix(0, r.DueAt))
		}
	}
	c.run("no limit", limited(1, 0))
	if c.done.QueuedAllocations["g"] != 1 {
		t.Error("what is kept for the gang was given to what does not end before")
	}
	c.run("short", limited(1, time.Hour))
	if a := c.liveOf("short"); a == nil || a.NodeID != "b1" {
		t.Error("what ends before the gang can start was not let in")
	}

	// What was due, and has not served it for a while, is given back.
	c.now = start.Add(2*time.Hour + 2*decide.ReservedLate)
	if p := c.starve("gang", gang(), start); len(p.Unreserve) != 2 {
		t.Errorf("unreserved %v, want both", p.Unreserve)
	}
	// So are all when nobody may reserve any more.
	c.config.ReservationAfter = -1
	if p := c.starve("gang", gang(), start); len(p.Reserve) != 0 || world.Reservations(c.w).Len() != 0 {
		t.Errorf("reserved %v, and %d are there", p.Reserve, world.Reservations(c.w).Len())
	}
}

// A gang reserves nothing where the devices would not do, though all that is there together
// would be enough.
func TestReservationsOfAGangOfShares(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	inTheWay := schedtest.GPUJob(8, structs.RequestedDevice{Name: "gpu", Count: 1})
	schedtest.Group(inTheWay).MaxRunDuration = time.Hour
	c.run("in the way", inTheWay)
	start := c.now
	c.now = start.Add(6 * time.Minute)
	for count, want := range map[int]int{8: 1, 9: 0} {
		before := c.w
		j := schedtest.GPUJob(count, structs.RequestedDevice{Name: "gpu", Count: 1, Share: 600})
		schedtest.Group(j).Gang = &structs.Gang{}
		j.Canonicalize()
		if p := c.starve("gang", j, start); len(p.Reserve) != want {
			t.Errorf("a gang of %d: reserved %+v, want %d nodes", count, p.Reserve, want)
		}
		c.w = before
	}
}

// liveOrEnded is an allocation of a job.
func (c *cluster) liveOrEnded(job string) *structs.Allocation {
	for _, a := range c.sorted() {
		if a.JobID == job {
			return a
		}
	}
	return nil
}
