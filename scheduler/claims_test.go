package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// tenants is a World in which tenants own cells, with a pass that decides their jobs one after the other.
type tenants struct {
	t    *testing.T
	pass *scheduler.Pass
	ids  int
	jobs map[string]string // the namespace of each, by ID
	// overLimit is what the virtual clusters state; bands: preemption is enabled for batch jobs.
	overLimit string
	bands     bool
}

// newTenants makes a World of nodes of eight GPUs: two sockets of two switches of two GPUs.
func newTenants(t *testing.T, change func(e *scheduler.Edit), nodes ...*structs.Node) *tenants {
	t.Helper()
	e := scheduler.NewWorld().Edit()
	for _, n := range nodes {
		e.UpsertNode(n)
	}
	change(e)
	return &tenants{t: t, pass: scheduler.NewPass(e.World()), jobs: map[string]string{}}
}

func eightGPUs(id string, change ...func(*structs.Node)) *structs.Node {
	return schedtest.Node(id, append([]func(*structs.Node){schedtest.EightGPUs}, change...)...)
}

// chainOf is the chain of a node of eight GPUs.
func chainOf(t *testing.T) world.ChainKey {
	t.Helper()
	e := scheduler.NewWorld().Edit()
	e.UpsertNode(eightGPUs("n"))
	e.SetQuotas("any", []world.Quota{{Level: "node", Count: 1}})
	for key := range e.World().Chains {
		return key
	}
	t.Fatal("the node is in no chain")
	return world.ChainKey{}
}

// decide decides a job of so many instances with so many GPUs each, and returns its plan.
func (x *tenants) decide(namespace, id string, count, gpus int, change ...func(*structs.Job)) *structs.Plan {
	x.t.Helper()
	job := gpuJobOf(namespace, id, count, gpus)
	for _, f := range change {
		f(job)
	}
	in := inputOf(job, &x.ids)
	in.OverLimit = x.overLimit
	in.Config.PreemptionConfig.BatchSchedulerEnabled = x.bands
	plan, err := x.pass.Decide(&structs.Evaluation{ID: "e-" + id, Namespace: namespace, JobID: id, Priority: job.Priority, Type: job.Type}, in)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := x.pass.World().CheckClaims(); err != nil {
		x.t.Fatal(err)
	}
	return plan
}

// gpuJobOf is a job of so many instances with so many GPUs each.
func gpuJobOf(namespace, id string, count, gpus int) *structs.Job {
	job := schedtest.GPUJob(count, structs.RequestedDevice{Name: "nvidia/gpu", Count: gpus})
	job.ID, job.Namespace = id, namespace
	return job
}

// inputOf is what a new job is decided with; ids counts what is minted.
func inputOf(job *structs.Job, ids *int) scheduler.Input {
	return scheduler.Input{
		Job: job, Config: structs.DefaultSchedulerConfiguration(), Now: time.Unix(1_700_000_000, 0), Seed: 7,
		NewID: func() string { *ids++; return fmt.Sprintf("%08d-0000-0000-0000-000000000000", *ids) },
	}
}

// placements describes a plan's placements: the class, the level of the cell if it is guaranteed, and the devices of each.
func placements(p *structs.Plan) (list []string) {
	for _, b := range p.Place {
		terms := b.Resources.Shared.Terms
		class := "opportunistic"
		if terms.Claim != "" {
			class = "guaranteed " + terms.CellLevel
		}
		for i := range b.Instances {
			var ids []string
			for _, of := range b.Instances[i].Devices {
				for _, d := range of {
					ids = append(ids, d.DeviceIDs...)
				}
			}
			list = append(list, class+" "+strings.Join(ids, ","))
		}
	}
	return list
}

func preemptedBy(p *structs.Plan) (n int) {
	for _, s := range p.Stop {
		if s.PreemptedBy != "" {
			n++
		}
	}
	return n
}

func classes(p *structs.Plan) (guaranteed, opportunistic int) {
	for _, one := range placements(p) {
		if strings.HasPrefix(one, "guaranteed") {
			guaranteed++
		} else {
			opportunistic++
		}
	}
	return guaranteed, opportunistic
}

// TestClaimsGolden holds the golden examples of semantics part 2.
func TestClaimsGolden(t *testing.T) {
	chain := chainOf(t)
	one := func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chain, Level: "node", Count: 1, Order: 1}})
	}
	x := newTenants(t, one, eightGPUs("n1"))
	if got := placements(x.decide("b", "two", 1, 2)); !slices.Equal(got, []string{"opportunistic n1-gpu-0,n1-gpu-1"}) {
		t.Errorf("2 GPUs: %v", got)
	}
	// A guaranteed request for 8 reclaims what holds {1,2} and takes all 8; a second opportunistic one for 8 waits.
	plan := x.decide("a", "eight", 1, 8)
	if got := placements(plan); len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed node n1-gpu-0,") || preemptedBy(plan) != 1 {
		t.Errorf("8 owned GPUs: %v, %d stopped", got, preemptedBy(plan))
	}
	if plan := x.decide("b", "waits", 1, 8); len(plan.Place)+preemptedBy(plan) != 0 {
		t.Errorf("8 more GPUs: %v", placements(plan))
	}

	// Two tenants with a node's cell each: B fills both nodes; A's request for 8 GPUs in one cell is placed at once.
	x = newTenants(t, func(e *scheduler.Edit) {
		one(e)
		e.SetQuotas("b", []world.Quota{{Chain: chain, Level: "node", Count: 1, Order: 2}})
	}, eightGPUs("n1"), eightGPUs("n2"))
	plan = x.decide("b", "flood", 16, 1)
	if g, o := classes(plan); g != 8 || o != 8 {
		t.Errorf("the flood: %v", placements(plan))
	}
	plan = x.decide("a", "eight", 1, 8)
	if got := placements(plan); len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed node") || preemptedBy(plan) != 8 {
		t.Errorf("8 owned GPUs: %v, %d stopped", got, preemptedBy(plan))
	}
	for _, s := range plan.Stop {
		if u, some := world.Usages(x.pass.World()).Get(s.AllocID); some {
			t.Errorf("%+v is stopped and still counts", u)
		}
	}
}

// TestClaimsOfSafety holds the golden example of Invariant S, as placements.
func TestClaimsOfSafety(t *testing.T) {
	chain := chainOf(t)
	rack := func(r string) func(*structs.Node) { return func(n *structs.Node) { n.Meta["rack"] = r } }
	x := newTenants(t, func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chain, Level: "node", Count: 1, Order: 1}})
		e.SetQuotas("b", []world.Quota{{Chain: chain, Level: "socket", Count: 2, Order: 2}})
		e.SetQuotas("c", []world.Quota{{Chain: chain, Level: "rack", Size: 2, Count: 1, Order: 3}})
	}, eightGPUs("r1-n0", rack("r1")), eightGPUs("r1-n1", rack("r1")), eightGPUs("r2-n0", rack("r2")), eightGPUs("r2-n1", rack("r2")))
	first := placements(x.decide("b", "first", 1, 4))
	// The other socket of the node is used by somebody else, and all other nodes are idle.
	if got := placements(x.decide("x", "borrows", 1, 4)); !slices.Equal(got, []string{"opportunistic r1-n0-gpu-4,r1-n0-gpu-5,r1-n0-gpu-6,r1-n0-gpu-7"}) {
		t.Errorf("the borrower: %v", got)
	}
	plan := x.decide("b", "second", 1, 4)
	second := placements(plan)
	if preemptedBy(plan) != 1 {
		t.Errorf("B's second socket reclaims %d allocations", preemptedBy(plan))
	}
	if !slices.Equal(first, []string{"guaranteed socket r1-n0-gpu-0,r1-n0-gpu-1,r1-n0-gpu-2,r1-n0-gpu-3"}) ||
		!slices.Equal(second, []string{"guaranteed socket r1-n0-gpu-4,r1-n0-gpu-5,r1-n0-gpu-6,r1-n0-gpu-7"}) {
		t.Errorf("B's sockets: %v, %v: the second is not the other one of the node", first, second)
	}
	if got := placements(x.decide("a", "node", 1, 8)); len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed node r1-n1-gpu-0,") {
		t.Errorf("A's node: %v", got)
	}
	if g, o := classes(x.decide("c", "rack", 2, 8)); g != 2 || o != 0 {
		t.Errorf("C's rack: %d guaranteed, %d not", g, o)
	}
}

// TestClassByCount: of a job of count n, as many instances are guaranteed as its owner's cells hold (semantics part 0, rule 6), and
// what is guaranteed is taken by nobody, whatever its priority.
func TestClassByCount(t *testing.T) {
	chain := chainOf(t)
	x := newTenants(t, func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chain, Level: "node", Count: 1, Order: 1}})
	}, eightGPUs("n1"), eightGPUs("n2"))
	if g, o := classes(x.decide("a", "sweep", 16, 1)); g != 8 || o != 8 {
		t.Fatalf("%d guaranteed, %d opportunistic", g, o)
	}
	preempts := func(j *structs.Job) { j.Priority = 100 }
	if plan := x.decide("b", "important", 16, 1, preempts); len(plan.Place) != 0 || preemptedBy(plan) != 0 {
		t.Errorf("without preemption: %v, %d stopped", placements(plan), preemptedBy(plan))
	}
	// Its owner's next job has the room of none: all 8 cells are in use.
	if plan := x.decide("a", "more", 1, 1, preempts); len(plan.Place) != 0 || preemptedBy(plan) != 0 {
		t.Errorf("beyond the cells: %v, %d stopped", placements(plan), preemptedBy(plan))
	}
}

// TestRaise: when an owner gets more cells, its running opportunistic allocations become guaranteed where they are, and none is
// stopped (semantics part 2, "Raise").
func TestRaise(t *testing.T) {
	c := newCluster(t)
	chain := chainOf(t)
	for _, id := range []string{"n1", "n2"} {
		c.node(id, schedtest.EightGPUs)
	}
	own := func(nodes int) {
		e := c.w.Edit()
		e.SetQuotas("default", []world.Quota{{Chain: chain, Level: "node", Count: nodes, Order: 1}})
		c.w = e.World()
	}
	class := func() (guaranteed int) {
		for _, u := range world.Usages(c.w).All {
			if u.Guaranteed() {
				guaranteed++
			}
		}
		return guaranteed
	}
	own(1)
	c.register(gpuJobOf("default", "j", 16, 1))
	c.eval()
	if class() != 8 || len(c.allocs) != 16 {
		t.Fatalf("%d of %d are guaranteed", class(), len(c.allocs))
	}
	c.runAll()
	own(2)
	c.eval()
	if class() != 16 || len(c.allocs) != 16 || len(c.last.Update) != 8 || len(c.last.Stop)+len(c.last.Place) != 0 {
		t.Errorf("%d of %d are guaranteed, %d raised, %d stopped, %d placed", class(), len(c.allocs), len(c.last.Update), len(c.last.Stop), len(c.last.Place))
	}
	if c.eval(); len(c.last.Update) != 0 {
		t.Errorf("%d are raised again", len(c.last.Update))
	}
}

// TestUpdatesKeepTheirClass: the successor of a guaranteed instance is guaranteed, one that is raised while its job is updated in place
// goes to the job's newest version, and a suspended one is not raised.
func TestUpdatesKeepTheirClass(t *testing.T) {
	c := newCluster(t)
	chain := chainOf(t)
	c.node("n1", schedtest.EightGPUs)
	own := func(gpus int) {
		e := c.w.Edit()
		e.SetQuotas("default", []world.Quota{{Chain: chain, Level: "gpu", Count: gpus, Order: 1}})
		c.w = e.World()
	}
	guaranteed := func() (n int) {
		for _, u := range world.Usages(c.w).All {
			if u.Guaranteed() {
				n++
			}
		}
		return n
	}
	own(2)
	c.register(gpuJobOf("default", "j", 2, 1))
	c.eval()
	c.runAll()
	c.update(func(j *structs.Job) { schedtest.Task(j).Config = map[string]any{"run_for": "2s"} })
	if plan := c.eval(); guaranteed() != 2 || len(plan.Stop) != 2 || len(plan.Place) != 1 {
		t.Errorf("replaced: %d are guaranteed, %d stopped, placed %v", guaranteed(), len(plan.Stop), placements(plan))
	}
	c.runAll()
	own(1)
	for _, a := range c.allocs { // the state writes back what has lost its claim
		if u, counts := world.Usages(c.w).Get(a.ID); counts && !u.Guaranteed() {
			terms := u.Owner.Terms
			a.AllocatedResources = a.AllocatedResources.Copy()
			a.AllocatedResources.Shared.Terms = &terms
		}
	}
	c.checkWorld()
	if guaranteed() != 1 {
		t.Fatalf("with one cell less %d are guaranteed", guaranteed())
	}
	own(2)
	c.update(func(j *structs.Job) { j.Meta = map[string]string{}; j.Priority = 51 })
	plan := c.eval()
	if guaranteed() != 2 || len(plan.Place)+len(plan.Stop) != 0 {
		t.Errorf("raised while updated in place: %d are guaranteed, placed %v", guaranteed(), placements(plan))
	}
	for _, up := range plan.Update {
		if up.JobVersion != c.job.Version {
			t.Errorf("%+v: not of version %d", up, c.job.Version)
		}
	}
	own(1)
	e := c.w.Edit()
	for _, a := range c.allocs {
		if u, counts := world.Usages(c.w).Get(a.ID); counts && !u.Guaranteed() {
			terms := u.Owner.Terms
			a.AllocatedResources = a.AllocatedResources.Copy()
			a.AllocatedResources.Shared.Terms, a.DesiredStatus = &terms, structs.AllocDesiredSuspend
			a.DesiredTransition.Suspend = new(true)
			e.UpsertAlloc(a)
		}
	}
	c.w = e.World()
	own(2)
	if plan := c.eval(); guaranteed() != 1 || len(plan.Update) != 0 {
		t.Errorf("a suspended one is raised: %d are guaranteed, %d updates", guaranteed(), len(plan.Update))
	}
}

// TestCellResumed: what was suspended by hand while it used a cell, and lost that with its node, does not go on while another of its namespace uses it,
// though the devices are free.
func TestCellResumed(t *testing.T) {
	chain := chainOf(t)
	x := newTenants(t, func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chain, Level: "pcie", Count: 1, Order: 1}})
	}, eightGPUs("n1"), eightGPUs("n2"))
	first := x.decide("a", "first", 1, 2)
	if got := placements(first); len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed pcie") {
		t.Fatalf("the first: %v", got)
	}
	a := first.Place[0].Allocation(0)
	a.DesiredStatus, a.ClientStatus, a.DesiredTransition.Suspend = structs.AllocDesiredSuspend, structs.AllocClientSuspended, new(true)
	suspended := func() {
		e := x.pass.World().Edit()
		e.UpsertAlloc(a)
		x.pass = scheduler.NewPass(e.World())
	}
	suspended()
	isReady := func(ready bool) {
		e := x.pass.World().Edit()
		e.UpsertNode(eightGPUs(a.NodeID, func(n *structs.Node) {
			if !ready {
				n.Status = structs.NodeStatusDisconnected
			}
		}))
		x.pass = scheduler.NewPass(e.World())
	}
	isReady(false)
	second := x.decide("a", "second", 1, 2)
	if g, _ := classes(second); g != 1 {
		t.Fatalf("the second, while the first is suspended: %v", placements(second))
	}
	isReady(true)
	a.DesiredTransition.Suspend = new(false)
	suspended()
	a.Job = gpuJobOf("a", "first", 1, 2)
	goOn := func() *structs.Plan {
		in := inputOf(a.Job, &x.ids)
		in.Allocs = []*structs.Allocation{a}
		plan, err := x.pass.Decide(&structs.Evaluation{ID: "e-again", Namespace: "a", JobID: "first", Priority: 50, Type: a.Job.Type}, in)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if plan := goOn(); len(plan.Update) != 0 {
		t.Error("the first goes on while the second uses its cell")
	}
	e := x.pass.World().Edit()
	e.DeleteAlloc(second.Place[0].Allocation(0).ID, "n1")
	x.pass = scheduler.NewPass(e.World())
	if plan := goOn(); len(plan.Update) != 1 {
		t.Error("the first does not go on when its cell is free")
	}
}

// TestClaimsOfOneVendor: a request that names no vendor gets devices of the chain whose cells its namespace owns, on a node of several.
func TestClaimsOfOneVendor(t *testing.T) {
	mixed := func(n *structs.Node) {
		schedtest.EightGPUs(n)
		other := &structs.NodeDeviceResource{Vendor: "amd", Type: "gpu", Name: "MI300"}
		for i := range 8 {
			other.Instances = append(other.Instances, &structs.NodeDevice{ID: fmt.Sprint("amd-", i), Healthy: true})
		}
		n.NodeResources.Devices = append(n.NodeResources.Devices, other)
	}
	node := schedtest.Node("n1", mixed)
	x := newTenants(t, func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chainOf(t), Level: "node", Count: 1, Order: 1}})
	}, node)
	plan := x.decide("a", "any", 1, 8, func(j *structs.Job) { schedtest.Task(j).Resources.Devices[0].Name = "gpu" })
	if got := placements(plan); len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed node n1-gpu-0,") {
		t.Errorf("%v", got)
	}
}
