package scheduler_test

import (
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// gang makes a job a gang of which so many must start together; 0: all.
func gang(least int) func(*structs.Job) {
	return func(j *structs.Job) {
		schedtest.Group(j).Gang = &structs.Gang{Min: least}
		j.Canonicalize()
	}
}

// gives states what owners own of the chain of nodes of eight GPUs.
func gives(t *testing.T, owner, level string, count int) func(e *scheduler.Edit) {
	chain := chainOf(t)
	return func(e *scheduler.Edit) {
		e.SetQuotas(owner, []world.Quota{{Chain: chain, Level: level, Count: count, Order: uint64(owner[0])}})
	}
}

func (x *tenants) wantClasses(what string, p *structs.Plan, guaranteed, opportunistic int) {
	x.t.Helper()
	if g, o := classes(p); g != guaranteed || o != opportunistic {
		x.t.Errorf("%s: %d guaranteed and %d opportunistic, want %d and %d: %v", what, g, o, guaranteed, opportunistic, p.FailedTGAllocs)
	}
}

// TestGangClaims: the first min of a gang all use cells of their namespace or are all opportunistic, those above it one by one
// (semantics part 0, rule 5). A tenant with 4 GPUs: a gang of 6 runs opportunistically, and a gang of 4 behind it is not blocked.
func TestGangClaims(t *testing.T) {
	x := newTenants(t, gives(t, "a", "socket", 1), eightGPUs("n1"), eightGPUs("n2"))
	x.wantClasses("a gang of 6", x.decide("a", "six", 6, 1, gang(0)), 0, 6)
	x.wantClasses("a gang of 4 behind it", x.decide("a", "four", 4, 1, gang(0)), 4, 0)

	x = newTenants(t, gives(t, "a", "socket", 1), eightGPUs("n1"), eightGPUs("n2"))
	x.wantClasses("a gang of 6, of which 4 must start", x.decide("a", "six", 6, 1, gang(4)), 4, 2)

	// A gang takes what others use opportunistically, whole or not at all.
	x = newTenants(t, gives(t, "a", "node", 2), eightGPUs("n1"), eightGPUs("n2"))
	x.wantClasses("the flood", x.decide("b", "flood", 16, 1), 0, 16)
	x.wantClasses("a gang that waits", x.decide("a", "three", 3, 8, gang(0)), 0, 0)
	plan := x.decide("a", "two", 2, 8, gang(0))
	if x.wantClasses("a gang of two nodes", plan, 2, 0); preemptedBy(plan) != 16 || !plan.AllAtOnce {
		t.Errorf("a gang of two nodes: %d preempted, all at once: %v", preemptedBy(plan), plan.AllAtOnce)
	}

	// class = "guaranteed" waits instead of running opportunistically.
	x = newTenants(t, gives(t, "a", "socket", 1), eightGPUs("n1"), eightGPUs("n2"))
	plan = x.decide("a", "six", 6, 1, gang(0), func(j *structs.Job) { j.Class = structs.ClassGuaranteed })
	if x.wantClasses("a guaranteed gang of 6", plan, 0, 0); plan.FailedTGAllocs["g"] == nil {
		t.Error("a guaranteed gang of 6 is not explained")
	}
}

// TestGangClaimsUnderTopology: a gang that is kept under a cell uses claims only where its namespace's cells lie so.
func TestGangClaimsUnderTopology(t *testing.T) {
	rack := func(r string) func(*structs.Node) { return func(n *structs.Node) { n.Meta["rack"] = r } }
	nodes := []*structs.Node{eightGPUs("n1", rack("r1")), eightGPUs("n2", rack("r1")), eightGPUs("n3", rack("r2")), eightGPUs("n4", rack("r2"))}
	within := func(level string, required bool) func(*structs.Job) {
		return func(j *structs.Job) {
			schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: level, Required: required}
		}
	}
	wantOneRack := func(what string, p *structs.Plan) {
		t.Helper()
		for _, b := range p.Place {
			for _, n := range b.Nodes {
				if first := p.Place[0].Nodes[0].ID; (n.ID < "n3") != (first < "n3") {
					t.Errorf("%s: on %s and %s", what, first, n.ID)
				}
			}
		}
	}
	// Two nodes given singly: in one rack if that is possible.
	x := newTenants(t, gives(t, "a", "node", 2), nodes...)
	x.decide("b", "half", 1, 4) // on a node of one rack: the other rack costs nobody anything
	plan := x.decide("a", "rack", 2, 8, gang(0), within("rack", true))
	x.wantClasses("a rack", plan, 2, 0)
	if wantOneRack("a rack", plan); preemptedBy(plan) != 0 {
		t.Errorf("a rack: %d preempted", preemptedBy(plan))
	}
	// One node of each rack is bound: no rack has two more of its own.
	x = newTenants(t, gives(t, "a", "node", 3), nodes...)
	x.decide("a", "one", 1, 8)
	x.decide("x", "keeps it away", 1, 8)
	x.wantClasses("two more in a rack", x.decide("a", "rack", 2, 8, gang(0), within("rack", true)), 2, 0)
	x = newTenants(t, gives(t, "a", "node", 1), nodes...)
	plan = x.decide("a", "rack", 2, 8, gang(0), within("rack", true))
	if x.wantClasses("a rack of which one node is owned", plan, 0, 2); len(plan.Place) == 1 {
		wantOneRack("a rack of which one node is owned", plan)
	}
	// A socket of one node; and one that is only preferred.
	x = newTenants(t, gives(t, "a", "gpu", 4), nodes...)
	plan = x.decide("a", "socket", 4, 1, gang(0), within("socket", true))
	x.wantClasses("a socket of four GPUs", plan, 4, 0)
	if len(plan.Place) == 0 || len(plan.Place[0].Nodes) != 1 || plan.Place[0].Gang.Level != "socket" {
		t.Errorf("a socket of four GPUs: %+v", plan.Place)
	}
	x = newTenants(t, gives(t, "a", "node", 2), nodes...)
	x.wantClasses("a node is preferred", x.decide("a", "node", 4, 4, gang(0), within("node", false)), 4, 0)
}

// TestGangReclaimedForClaims: of a gang whose first instances are guaranteed, those above its min alone are reclaimed; one that is
// opportunistic goes whole, as it would not run with less.
func TestGangReclaimedForClaims(t *testing.T) {
	two := func(e *scheduler.Edit) {
		gives(t, "a", "node", 1)(e)
		gives(t, "b", "node", 1)(e)
	}
	x := newTenants(t, two, eightGPUs("n1"), eightGPUs("n2"))
	x.wantClasses("a gang with more", x.decide("a", "gang", 16, 1, gang(8)), 8, 8)
	plan := x.decide("b", "owner", 1, 8)
	if x.wantClasses("the owner", plan, 1, 0); preemptedBy(plan) != 8 {
		t.Errorf("the owner: %d preempted", preemptedBy(plan))
	}
	members := 0
	for _, u := range world.Usages(x.pass.World()).All {
		if u.Owner.Job == "gang" && u.Guaranteed() {
			members++
		}
	}
	if members != 8 {
		t.Errorf("%d guaranteed members run on", members)
	}
	x = newTenants(t, two, eightGPUs("n1"), eightGPUs("n2"))
	x.wantClasses("a gang that is too large", x.decide("a", "gang", 10, 1, gang(0)), 0, 10)
	plan = x.decide("b", "owner", 1, 8)
	if x.wantClasses("the owner", plan, 1, 0); preemptedBy(plan) != 10 {
		t.Errorf("the owner: %d of a gang of 10 preempted", preemptedBy(plan))
	}
}

// TestGangOfNodeNotReadyKeepsItsCells: a member on a node that is not ready counts as guaranteed use (semantics part 2), and has nothing there that another could use: nobody
// takes the bound cells of the others, not even where the gang is walked first.
func TestGangOfNodeNotReadyKeepsItsCells(t *testing.T) {
	x := newTenants(t, gives(t, "a", "pcie", 3), eightGPUs("n1"), eightGPUs("n2"), eightGPUs("n3"))
	x.wantClasses("the gang", x.decide("a", "gang", 3, 2, gang(0), func(j *structs.Job) {
		j.Constraints = append(j.Constraints, &structs.Constraint{Operand: structs.ConstraintDistinctHosts})
	}), 3, 0)
	x.decide("b", "flood", 18, 1)
	members := func() (list []*world.Usage) {
		for _, u := range world.Usages(x.pass.World()).All {
			if u.Owner.Job == "gang" {
				list = append(list, u)
			}
		}
		return list
	}
	for _, id := range []string{"n2", "n3", "n1"} {
		e := x.pass.World().Edit()
		e.UpsertNode(eightGPUs(id, func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible }))
		away := map[string]bool{id: true}
		for _, u := range members() {
			if got := world.Protected(e, u); got == away[u.NodeID] {
				t.Errorf("while %s is not ready, the member on %s is protected: %v", id, u.NodeID, got)
			}
		}
	}
}

// TestGangOfVacatedRackGoesWhole: the rack of two members is not whole while one of its nodes is not ready. Another namespace claims the node that is left of it: the member
// there goes, and with it all of its gang, also the one whose cell is bound.
func TestGangOfVacatedRackGoesWhole(t *testing.T) {
	node := func(id, rack string, change ...func(*structs.Node)) *structs.Node {
		return eightGPUs(id, append(change, func(n *structs.Node) { n.Meta["rack"] = rack })...)
	}
	chain := chainOf(t)
	x := newTenants(t, func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chain, Level: "rack", Size: 2, Count: 1, Order: 1}, {Chain: chain, Level: "node", Count: 1, Order: 1}})
		e.SetQuotas("b", []world.Quota{{Chain: chain, Level: "node", Count: 1, Order: 2}})
	}, node("n1", "r1"), node("n2", "r1"), node("n3", "r2"), node("n4", "r2"))
	x.wantClasses("the gang", x.decide("a", "gang", 3, 8, gang(0)), 3, 0)
	var on []string
	for _, u := range world.Usages(x.pass.World()).All {
		on = append(on, u.NodeID)
	}
	if slices.Sort(on); !slices.Equal(on, []string{"n1", "n3", "n4"}) {
		t.Fatalf("the gang is on %v", on)
	}
	e := x.pass.World().Edit()
	ineligible := func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible }
	e.UpsertNode(node("n2", "r1", ineligible))
	e.UpsertNode(node("n3", "r2", ineligible))
	x.pass = scheduler.NewPass(e.World())
	plan := x.decide("b", "owner", 1, 8)
	if x.wantClasses("the owner", plan, 1, 0); preemptedBy(plan) != 3 {
		t.Errorf("%d of the gang of 3 are preempted", preemptedBy(plan))
	}
}

// gangClusterOf is a cluster of two nodes with a gang of so many one-GPU members, and what its namespace owns.
func gangClusterOf(t *testing.T, count int, change ...func(*structs.Job)) (c *cluster, own func(level string, cells int), guaranteed func() int) {
	t.Helper()
	c, chain := newCluster(t), chainOf(t)
	for _, id := range []string{"n1", "n2"} {
		c.node(id, schedtest.EightGPUs)
	}
	own = func(level string, cells int) {
		e := c.w.Edit()
		e.SetQuotas("default", []world.Quota{{Chain: chain, Level: level, Count: cells, Order: 1}})
		c.w = e.World()
		for _, a := range c.allocs { // the state writes back what has lost its claim
			if u, counts := world.Usages(c.w).Get(a.ID); counts {
				terms := u.Owner.Terms
				a.AllocatedResources = a.AllocatedResources.Copy()
				a.AllocatedResources.Shared.Terms = &terms
			}
		}
	}
	guaranteed = func() (n int) {
		for _, u := range world.Usages(c.w).All {
			if u.Guaranteed() {
				n++
			}
		}
		return n
	}
	job := gpuJobOf("default", "j", count, 1)
	for _, f := range change {
		f(job)
	}
	c.register(job)
	return c, own, guaranteed
}

// TestRaiseGang: a gang is raised as a whole, and its members above min one by one; one of which too few use cells gives up the others.
func TestRaiseGang(t *testing.T) {
	c, own, guaranteed := gangClusterOf(t, 6, gang(4))
	own("gpu", 3)
	c.eval()
	c.runAll()
	if guaranteed() != 0 || len(c.allocs) != 6 {
		t.Fatalf("with 3 cells %d of %d are guaranteed", guaranteed(), len(c.allocs))
	}
	for _, row := range []struct{ cells, want int }{{4, 4}, {5, 5}, {8, 6}, {4, 4}, {3, 0}, {2, 0}, {6, 6}} {
		own("gpu", row.cells)
		if plan := c.eval(); guaranteed() != row.want || len(plan.Stop)+len(plan.Place) != 0 {
			t.Errorf("with %d cells %d are guaranteed, want %d; %d stopped, %d placed", row.cells, guaranteed(), row.want, len(plan.Stop), len(plan.Place))
		}
		c.checkWorld()
	}
}

// TestGangGrowsByClaims: a member that is replaced alone is of the class of the others while it must be there, and keeps its rank.
func TestGangGrowsByClaims(t *testing.T) {
	c, own, guaranteed := gangClusterOf(t, 4, gang(3), func(j *structs.Job) { schedtest.Group(j).Gang.OnLoss = structs.GangOnLossMember })
	own("gpu", 3)
	c.eval()
	c.runAll()
	if guaranteed() != 3 || len(c.allocs) != 4 {
		t.Fatalf("%d of %d are guaranteed", guaranteed(), len(c.allocs))
	}
	var gone *structs.Allocation
	for _, a := range c.sorted() {
		if a.AllocatedResources.Shared.Terms.Claim != "" {
			gone = a
		}
	}
	rank := gone.Gang.Rank
	own("gpu", 3)
	c.client(func(a *structs.Allocation) bool { return a.ID == gone.ID }, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
	plan := c.eval()
	if g, o := classes(plan); g != 1 || o != 0 {
		t.Fatalf("the successor: %v", placements(plan))
	}
	if got := plan.Place[0].Instances[0].Rank; got != rank {
		t.Errorf("the successor has rank %d, not %d", got, rank)
	}
	if guaranteed() != 3 {
		t.Errorf("%d are guaranteed", guaranteed())
	}
}

// TestGangNeedsDevicesToClaim: a gang with members without devices uses no claim: they have none, and it is guaranteed whole or not at all.
func TestGangNeedsDevicesToClaim(t *testing.T) {
	x := newTenants(t, gives(t, "a", "node", 1), eightGPUs("n1"))
	plan := x.decide("a", "mixed", 4, 1, gang(0), func(j *structs.Job) {
		head := schedtest.Group(j).Copy()
		head.Name, head.Count, head.Gang, head.Tasks[0].Resources.Devices = "head", 1, nil, nil
		schedtest.Group(j).Gang.Groups = []string{"head"}
		j.TaskGroups = append(j.TaskGroups, head)
	})
	x.wantClasses("a gang with a head", plan, 0, 5)
}
