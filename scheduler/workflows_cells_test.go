package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// gpuWorkflows is a cluster of nodes of eight GPUs, of which namespaces own cells.
type gpuWorkflows struct {
	*workflows
	chain world.ChainKey
}

func newGPUWorkflows(t tester, chain world.ChainKey, nodes int) *gpuWorkflows {
	x := &gpuWorkflows{&workflows{projects: newProjects(t)}, chain}
	x.workflows.workflows = map[string]*structs.WorkflowClaim{}
	for i := range nodes {
		x.setNode(schedtest.Node(fmt.Sprintf("n%d", i+1), schedtest.EightGPUs))
	}
	return x
}

// owns gives a namespace cells of a level, of cells above nodes those of a size; none: it owns nothing any more.
func (x *gpuWorkflows) owns(namespace, level string, count int, size ...int) {
	x.t.Helper()
	e := x.w.Edit()
	var quotas []world.Quota
	if count > 0 {
		quotas = append(quotas, world.Quota{Chain: x.chain, Level: level, Count: count, Order: uint64(len(namespace))})
		if len(size) > 0 {
			quotas[0].Size = size[0]
		}
	}
	e.SetQuotas(namespace, quotas)
	x.lose(e)
	x.checkWorld()
}

// gpusIn changes a job to one of a namespace whose instances request so many GPUs each.
func gpusIn(namespace string, count int) func(*structs.Job) {
	return func(j *structs.Job) {
		j.Namespace = namespace
		schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: count}}
	}
}

// gpuStage is a stage of jobs of an instance each, of so many GPUs.
func gpuStage(namespace string, sizes ...int) (stage scheduler.WorkflowStage) {
	for i, n := range sizes {
		job := schedtest.Job(structs.JobTypeBatch, 1, requests(50, 1000, 1000), gpusIn(namespace, n), func(j *structs.Job) { j.ID = fmt.Sprintf("wf/1/%d", i) })
		job.Canonicalize()
		stage = append(stage, job)
	}
	return stage
}

// reserve reserves for a workflow of a namespace, and returns what was chosen and why it does not hold.
func (x *gpuWorkflows) reserve(namespace string, lend []*structs.WorkflowLend, stages ...scheduler.WorkflowStage) (scheduler.WorkflowChoice, string) {
	x.t.Helper()
	claim := &structs.WorkflowClaim{Namespace: namespace, ID: "wf", Run: 1, NodePool: "default", Priority: 50, Lend: lend}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, claim)
	x.w = e.World()
	x.workflows.workflows[claim.Key()] = claim
	c := scheduler.ChooseReservation(x.w, claim.Key(), "default", stages, structs.WorkflowReserve{Rule: structs.ReserveMax}, false)
	if !c.Posted {
		return c, c.Missing
	}
	return c, x.post(claim, c)
}

// post has what was chosen judged and committed.
func (x *gpuWorkflows) post(claim *structs.WorkflowClaim, c scheduler.WorkflowChoice) string {
	x.t.Helper()
	e := x.w.Edit()
	judged, _, why := scheduler.Judge(e, &structs.Plan{
		Namespace: claim.Namespace, JobID: claim.ID, Stop: c.Stops, AllAtOnce: len(c.Stops) > 0,
		Workflow: &structs.WorkflowReservation{Namespace: claim.Namespace, ID: claim.ID, Run: 1, Posted: true, Parts: c.Parts, Licenses: c.Licenses},
	})
	if judged.Workflow == nil {
		if len(judged.Stop) > 0 {
			x.t.Fatalf("%d leave for a reservation that does not hold: %s", len(judged.Stop), why)
		}
		if diff := e.World().Diff(x.w); diff != nil {
			x.t.Fatalf("a reservation that does not hold changes something: %v", diff)
		}
		return why
	}
	for _, s := range judged.Stop {
		a := *x.allocs[s.AllocID]
		a.DesiredStatus, a.DesiredDescription, a.SuspendedAt = s.DesiredStatus, s.DesiredDescription, s.SuspendedAt
		x.allocs[a.ID] = &a
	}
	x.workflows.workflows[claim.Key()] = scheduler.WorkflowClaimOf(e, claim.Key())
	x.lose(e)
	x.checkWorld()
	return ""
}

// starts submits a job of the workflow.
func (x *gpuWorkflows) starts(namespace, name string, count, each int) int {
	x.submit("", "wf/1/"+name, count, gpusIn(namespace, each), func(j *structs.Job) {
		j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "s"}
	})
	return x.running("wf/1/" + name)
}

func (x *gpuWorkflows) claims(id string) string {
	n := map[string]int{}
	for _, a := range x.sorted() {
		if a.JobID == id && !a.Terminal() {
			n[a.AllocatedResources.Shared.Terms.Claim]++
		}
	}
	var out []string
	for _, kind := range []string{structs.ClaimCells, structs.ClaimWorkflow, ""} {
		if n[kind] > 0 {
			out = append(out, fmt.Sprintf("%d %s", n[kind], kind))
		}
	}
	return strings.Join(out, ", ")
}

// TestReservationInCells: a workflow's reservation takes the cells of its namespace as an entitled request does: who runs there without a claim leaves. It
// counts as the namespace's use of them; only whom it lends to runs in it; and it is lost with the cells.
func TestReservationInCells(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 2)
	x.owns("default", "node", 1)
	x.owns("a", "node", 1)
	x.submit("", "flood-b", 16, gpusIn("b", 1))
	if n := x.running("flood-b"); n != 16 {
		t.Fatalf("%d run beside all claims, want 16", n)
	}
	c, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:b"}}, gpuStage("default", 8), gpuStage("default", 4, 2))
	if why != "" || len(c.Stops) != 8 || len(c.Parts) != 1 || c.Parts[0].Devices != 8 || c.Parts[0].CellLevel != "node" {
		t.Fatalf("reserved: %s: %+v", why, c)
	}
	if c.Jobs[0].ID != "flood-b" || c.Stops[0].RequeueReason != "reclaimed for the reservation of workflow wf" {
		t.Errorf("who leaves: %+v, %+v", c.Jobs, c.Stops[0])
	}
	// The namespace's cell is in use: an instance of its own has no claim, and the other namespace's cell is bound as before.
	x.submit("", "own", 1, gpusIn("default", 8))
	x.submit("", "a", 1, gpusIn("a", 8))
	if own, a := x.claims("own"), x.claims("a"); own != "" || a != "1 cells" {
		t.Errorf("its namespace's job runs as %q, that of the other namespace as %q", own, a)
	}
	// What idles is lent, and taken back for a stage.
	if x.again("b"); x.running("flood-b") != 8 {
		t.Errorf("%d borrow, want 8: %s", x.running("flood-b"), x.on())
	}
	if n := x.starts("default", "s0", 1, 8); n != 1 || x.claims("wf/1/s0") != "1 workflow" || x.running("flood-b") != 0 {
		t.Fatalf("of the stage %d run as %q, and %d borrow", n, x.claims("wf/1/s0"), x.running("flood-b"))
	}
	// The cells go to somebody else: what runs in them runs on, and whose they are now may take its place.
	x.owns("default", "node", 0)
	if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) != 1 || x.claims("wf/1/s0") != "1 " {
		t.Errorf("without cells %v is lost of the reservation, and its job runs as %q", lost, x.claims("wf/1/s0"))
	}
	if r := x.renewed(gpuStage("default", 8), gpuStage("default", 4, 2)); !strings.Contains(r.Missing, "8 GPUs") {
		t.Errorf("renewed: %+v", r)
	}
	x.owns("a", "node", 2)
	x.submit("", "a2", 1, gpusIn("a", 8))
	if x.claims("a2") != "1 cells" || x.running("wf/1/s0") != 0 {
		t.Errorf("who owns the cells now runs as %q beside %d", x.claims("a2"), x.running("wf/1/s0"))
	}
}

// TestReservationRenewedInCells: a part in cells whose node is lost is reserved anew in others of the namespace, and the licenses stay reserved.
func TestReservationRenewedInCells(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 2)
	x.owns("default", "node", 2)
	if _, why := x.reserve("default", nil, gpuStage("default", 8)); why != "" {
		t.Fatal(why)
	}
	claim := *x.w.Workflow("default/wf")
	claim.Licenses = []structs.RequestedLicense{{Name: "vcs", Count: 1}}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, &claim)
	x.workflows.workflows[claim.Key()] = &claim
	x.lose(e)
	x.changeNode(claim.Parts[0].NodeID, down)
	r := x.renewed(gpuStage("default", 8))
	if r.Missing != "" || len(r.Parts) != 1 || r.Parts[0].NodeID == claim.Parts[0].NodeID || r.Parts[0].CellLevel != "node" || !slices.Equal(r.Licenses, claim.Licenses) {
		t.Errorf("renewed: %+v", r)
	}
}

// TestReservationOverLimit: what a namespace reserves beside its cells is more than it owns. It is in guaranteed use all the same, unless over_limit withholds what is
// beyond the limit: then the workflow waits for the cells, keeps nothing beside them, and nothing that is lost is reserved anew there.
func TestReservationOverLimit(t *testing.T) {
	for _, policy := range []string{structs.OverLimitOpportunistic, structs.OverLimitWait, structs.OverLimitConfirm} {
		x := newGPUWorkflows(t, chainOf(t), 3)
		x.owns("default", "node", 1)
		claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
		e := x.w.Edit()
		scheduler.SetWorkflow(e, claim)
		x.w, x.workflows.workflows[claim.Key()] = e.World(), claim
		withheld := policy != structs.OverLimitOpportunistic
		bands := scheduler.WorkflowBands{OverLimit: func(namespace string) string { return map[string]string{"default": policy}[namespace] }}
		f := func(never bool, want string, sizes ...int) scheduler.WorkflowChoice {
			t.Helper()
			stages, rule := []scheduler.WorkflowStage{gpuStage("default", sizes...)}, structs.WorkflowReserve{Rule: structs.ReserveMax}
			c := scheduler.ReserveOrPreempt(x.w, claim.Key(), "default", stages, rule, false, bands)
			if want += fmt.Sprintf(", and nothing is reserved beside them: over_limit = %q", policy); !withheld {
				never, want = false, ""
			}
			if c.Posted == withheld || c.Never != never || c.Missing != want || withheld && len(c.Parts) > 0 {
				t.Errorf("%v by %s: posted %v on %+v, never %v: %q, want %q", sizes, policy, c.Posted, c.Parts, c.Never, c.Missing, want)
			}
			return c
		}
		f(true, `the cells of namespace "default" (8 GPUs, 0 in guaranteed use) cannot hold 12 GPUs`, 8, 4)
		x.submit("", "own", 1, gpusIn("default", 1))
		beside := f(false, `the cells of namespace "default" (8 GPUs, 1 in guaranteed use) do not hold 8 GPUs`, 8)
		if withheld {
			continue
		}
		if why := x.post(claim, beside); why != "" || beside.Parts[0].CellLevel != "" {
			t.Fatalf("%s: %+v", why, beside.Parts)
		}
		if v := scheduler.ClaimViews(x.w, "default", false)["default"]; v.GuaranteedGPUs != 9 {
			t.Errorf("%d GPUs are in guaranteed use, want 1 in cells and 8 beside them", v.GuaranteedGPUs)
		}
		x.changeNode(beside.Parts[0].NodeID, down)
		policy = structs.OverLimitWait // it is another one by now
		r, _ := scheduler.RenewReservation(x.w, claim.Key(), []scheduler.WorkflowStage{gpuStage("default", 8)}, structs.WorkflowReserve{Rule: structs.ReserveMax},
			scheduler.WorkflowRenewal{}, bands)
		if want := "do not hold 8 GPUs, and nothing is reserved beside them"; !strings.Contains(r.Missing, want) || len(r.Keeps) > 0 {
			t.Errorf("renewed: %q, keeps %+v", r.Missing, r.Keeps)
		}
	}
}

// TestReservationInRack: a workflow reserves the nodes of a rack that its namespace owns.
func TestReservationInRack(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 3)
	x.levels() // of nodes without racks
	x.configure()
	for id, rack := range map[string]string{"n1": "r1", "n2": "r1", "n3": "r2"} {
		x.changeNode(id, func(n *structs.Node) { n.Meta["rack"] = rack })
	}
	x.owns("default", "rack", 1, 2)
	x.submit("", "flood-b", 24, gpusIn("b", 1))
	c, why := x.reserve("default", nil, gpuStage("default", 8, 4))
	if why != "" || len(c.Stops) != 12 || len(c.Parts) != 2 || c.Parts[0].CellLevel != "rack" || c.Parts[0].CellSize != 2 {
		t.Fatalf("%s: %+v", why, c)
	}
	x.changeNode(c.Parts[1].NodeID, down)
	if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) != 1 || !slices.Contains(lost, c.Parts[1].NodeID) {
		t.Errorf("lost with a node: %v", lost)
	}
	x.changeNode(c.Parts[1].NodeID, up)
	x.checkWorld()
	if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) > 0 {
		t.Errorf("lost, with the node back: %v", lost)
	}
}

// TestReservationBindsOnce: of a reservation in two cells of which only one is the namespace's nothing holds, and nobody leaves; nor does one that would take
// from what is guaranteed. What is reserved is no room for others of the namespace, and stays bound when the levels of cells change.
func TestReservationBindsOnce(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 3)
	x.owns("default", "node", 2)
	x.submit("", "own", 1, gpusIn("default", 8))
	x.submit("", "flood-b", 16, gpusIn("b", 1))
	c, why := x.reserve("default", nil, gpuStage("default", 8))
	if why != "" || len(c.Stops) != 8 {
		t.Fatalf("%s: %+v", why, c)
	}
	if n := x.w.FreeFor(x.chain, "default", 0, 16); n != 0 {
		t.Errorf("the namespace has room for %d more", n)
	}
	x.levels()
	x.configure()
	x.checkWorld()
	if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
	x.drops("default")
	claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, claim)
	x.w = e.World()
	x.workflows.workflows[claim.Key()] = claim
	var others, own []*structs.AllocStop
	for _, a := range x.sorted() {
		st := &structs.AllocStop{AllocID: a.ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue}
		if a.Terminal() {
			continue
		}
		if a.JobID == "own" {
			own = append(own, st)
		} else {
			others = append(others, st)
		}
	}
	var twice []structs.WorkflowPart
	for _, n := range x.sortedNodes() {
		if n.ID == x.liveOf("own").NodeID {
			continue
		}
		part := c.Parts[0]
		part.NodeID, part.DeviceIDs = n.ID, nil
		for i := range 8 {
			part.DeviceIDs = append(part.DeviceIDs, fmt.Sprintf("%s-gpu-%d", n.ID, i))
		}
		twice = append(twice, part)
	}
	before := x.on()
	for want, c := range map[string]scheduler.WorkflowChoice{
		"no unbound cell": {Parts: twice, Stops: others}, "guaranteed": {Parts: twice[:1], Stops: slices.Concat(others, own)},
	} {
		if why := x.post(claim, c); !strings.Contains(why, want) || x.on() != before {
			t.Errorf("%q, want %q; they run %s, want %s", why, want, x.on(), before)
		}
	}
	x.checkWorld()
}

// TestReservationBesideCells: a workflow whose namespace owns nothing reserves no GPU that somebody owns, used or not.
func TestReservationBesideCells(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 2)
	x.owns("a", "socket", 3)
	if _, why := x.reserve("default", nil, gpuStage("default", 4, 1)); !strings.Contains(why, "if they were empty") {
		t.Errorf("five GPUs beside three sockets of four: %q", why)
	}
	if c, why := x.reserve("default", nil, gpuStage("default", 2, 2)); why != "" || c.Parts[0].CellLevel != "" || len(c.Parts[0].DeviceIDs) != 4 {
		t.Fatalf("four GPUs: %s: %+v", why, c)
	}
	x.submit("", "a", 3, gpusIn("a", 4))
	if x.claims("a") != "3 cells" {
		t.Errorf("who owns the sockets runs as %q", x.claims("a"))
	}
	if n := x.starts("default", "s0", 2, 2); n != 2 {
		t.Errorf("of the stage %d run", n)
	}
	e := x.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	delete(x.workflows.workflows, "default/wf")
	x.lose(e)
	x.checkWorld()
}

// TestReservationNamesDevices: what a workflow has reserved of GPUs lies under one cell, and others leave these, not any as many, free.
func TestReservationNamesDevices(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 1)
	x.submit("", "before", 1, gpusIn("b", 1))
	c, why := x.reserve("default", nil, gpuStage("default", 4))
	if why != "" {
		t.Fatal(why)
	}
	x.submit("", "flood-b", 8, gpusIn("b", 1))
	if n := x.running("flood-b"); n != 3 {
		t.Errorf("%d run beside, want 3", n)
	}
	x.submit("", "wf/1/s0", 1, gpusIn("default", 4), func(j *structs.Job) {
		j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "s"}
		d := schedtest.Task(j).Resources.Devices[0]
		d.Topology = &structs.TopologyConstraint{Level: "socket", Required: true}
	})
	var got []string
	for _, a := range x.sorted() {
		if a.JobID == "wf/1/s0" {
			for _, task := range a.AllocatedResources.Tasks {
				for _, d := range task.Devices {
					got = append(got, d.DeviceIDs...)
				}
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, c.Parts[0].DeviceIDs) {
		t.Errorf("the stage uses %v, reserved were %v", got, c.Parts[0].DeviceIDs)
	}
}

// TestReservationsKeepCells: whatever is owned, reserved, runs and comes and goes, all that is owned can be had (Invariant S), what idles of a reservation
// is free, and a namespace's instances get all that its cells have beside its workflow.
func TestReservationsKeepCells(t *testing.T) {
	chain := chainOf(t)
	rapid.Check(t, func(t *rapid.T) {
		x := newGPUWorkflows(t, chain, 3)
		x.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
		x.configure()
		for id, rack := range map[string]string{"n1": "r1", "n2": "r1", "n3": "r2"} {
			x.changeNode(id, func(n *structs.Node) {
				n.Meta["rack"] = rack
				n.ComputeClass()
			})
		}
		spaces := []string{"default", "a", "bb"}
		jobs, stages := 0, map[string]scheduler.WorkflowStage{} // of each namespace's workflow, the last that was to be reserved for
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			ns := rapid.SampledFrom(spaces).Draw(t, "namespace")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				level := rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "rack"}).Draw(t, "level")
				count := rapid.IntRange(0, 3).Draw(t, "count")
				size := 0
				if level == "rack" {
					size, count = rapid.IntRange(1, 2).Draw(t, "nodes"), min(count, 1)
				}
				if x.admits(ns, level, size, count) {
					x.owns(ns, level, count, size)
				}
			case 1, 2:
				jobs++
				x.submit("", fmt.Sprintf("job-%d", jobs), rapid.IntRange(1, 6).Draw(t, "instances"), gpusIn(ns, rapid.SampledFrom([]int{1, 1, 2, 4, 8}).Draw(t, "gpus")))
			case 3:
				if w := x.w.Workflow(structs.WorkflowKey(ns, "wf")); w == nil {
					stages[ns] = gpuStage(ns, rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 4, 8}), 1, 3).Draw(t, "stage")...)
					c, why := x.reserve(ns, []*structs.WorkflowLend{{To: "namespace:bb"}}, stages[ns])
					if c.Posted && why != "" {
						t.Fatalf("what was chosen does not hold: %s", why)
					}
				}
			case 4:
				x.drops(ns)
			case 5:
				if jobs > 0 {
					x.ends(fmt.Sprintf("job-%d", rapid.IntRange(1, jobs).Draw(t, "job")), rapid.IntRange(1, 3).Draw(t, "end"))
				}
			case 6:
				key := structs.WorkflowKey(ns, "wf")
				rule := structs.WorkflowReserve{Rule: structs.ReserveMax}
				if c, has := scheduler.RenewReservation(x.w, key, []scheduler.WorkflowStage{stages[ns]}, rule, scheduler.WorkflowRenewal{Kept: true}, scheduler.WorkflowBands{}); has && c.Missing == "" {
					by := x.usesOf(key)
					if why := x.post(x.w.Workflow(key), c); why != "" {
						t.Fatalf("what was chosen to renew does not hold: %s", why)
					}
					if now := x.usesOf(key); now != by {
						t.Fatalf("%d instances used the reservation, and %d do once it is renewed", by, now)
					}
				}
			case 7:
				id := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
				x.changeNode(id, rapid.SampledFrom([]func(*structs.Node){down, up}).Draw(t, "state"))
			case 8:
				id := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
				x.changeNode(id, setHealth(rapid.IntRange(0, 7).Draw(t, "gpu"), rapid.Bool().Draw(t, "well")))
			case 9:
				if c := x.w.Workflow(structs.WorkflowKey(ns, "wf")); c != nil && c.Posted && len(stages[ns]) > 0 {
					job := rapid.SampledFrom(stages[ns]).Draw(t, "of the stage")
					x.starts(ns, ns+strings.TrimPrefix(job.ID, "wf/1/"), 1, schedtest.Task(job).Resources.Devices[0].Count)
				}
			}
			x.checkWorld()
			x.conserved()
			x.keptFree()
			if err := x.w.CheckClaims(); err != nil {
				t.Fatal(err)
			}
		}
		for _, ns := range spaces {
			x.drops(ns)
		}
		x.conserved()
		x.checkWorld()
	})
}

// usesOf counts the instances of a workflow that use its reservation.
func (x *gpuWorkflows) usesOf(key string) (n int) {
	for _, s := range world.NodeStates(x.w).All {
		for _, u := range s.Usages {
			if t := &u.Owner.Terms; t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == key {
				n++
			}
		}
	}
	return n
}

// keptFree checks that of the devices that reservations name those are free that nobody uses by the reservation, and that no reservation beside cells is why
// something that is owned cannot be had once all nodes are ready, all devices are well and what was bound meanwhile has ended.
func (x *gpuWorkflows) keptFree() {
	x.t.Helper()
	for _, n := range world.NodeStates(x.w).All {
		for _, p := range n.Parts() {
			for _, id := range p.Devices {
				users := 0
				for _, u := range n.Usages {
					if slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool { return d.ID == id }) {
						if users++; u.Owner.Terms.WorkflowKey() != p.Workflow && u.Owner.OfRun() != p.Workflow {
							x.t.Fatalf("node %s: %s uses %s, which workflow %s has reserved", n.ID, u.ID, id, p.Workflow)
						}
					}
				}
				if bad := slices.ContainsFunc(n.Capacity.Trees[0].Sick, func(d int) bool { return n.Capacity.Trees[0].IDs[d] == id }); n.LacksDevice(id, world.WholeDevice) != (users > 0 || bad) {
					x.t.Fatalf("node %s: %d use %s", n.ID, users, id)
				}
			}
		}
	}
	if n := x.doomedAtLast(x.w.Edit()); n > 0 {
		x.t.Fatalf("%d cells would be doomed with all hardware back and nothing in use but what is reserved", n)
	}
}

// doomedAtLast counts the cells that are doomed once all nodes are ready, all devices are well, and nothing is in use but what is reserved beside cells.
func (x *gpuWorkflows) doomedAtLast(e *scheduler.Edit) (doomed int) {
	for _, n := range x.nodes { // in any order: nothing is bound at last
		n = n.Copy()
		n.Status = structs.NodeStatusReady
		for gpu := range n.NodeResources.Devices[0].Instances {
			setHealth(gpu, true)(n)
		}
		e.UpsertNode(n)
	}
	for id := range x.allocs {
		world.Release(e, id)
	}
	for key, c := range x.workflows.workflows {
		if slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.CellLevel != "" }) {
			scheduler.DropWorkflow(e, key)
		}
	}
	for _, chain := range e.World().Chains {
		for _, b := range chain.Balances() {
			doomed += b.Doomed
		}
	}
	return doomed
}

// admits reports whether a namespace may be given cells beside what all others own and have reserved.
func (x *gpuWorkflows) admits(namespace, level string, size, count int) bool {
	e := x.w.Edit()
	if len(x.w.Owners()) == 0 {
		e.SetQuotas("nobody", []world.Quota{{Chain: x.chain, Level: "gpu"}}) // so that there are chains
	}
	chain, known := e.World().Chain(x.chain)
	if !known {
		return false
	}
	if k, known := chain.KindOf(level, size); !known || chain.Ownable(k) != nil {
		return false
	}
	e = e.World().Edit()
	short := e.Shortage(namespace, []world.Quota{{Chain: x.chain, Level: level, Size: size, Count: count}})
	return short == nil && x.doomedAtLast(e) == 0 // what is doomed for now is in nobody's way, and may be given away
}

// drops ends the reservation of the workflow of a namespace.
func (x *gpuWorkflows) drops(namespace string) {
	key := structs.WorkflowKey(namespace, "wf")
	e := x.w.Edit()
	scheduler.DropWorkflow(e, key)
	delete(x.workflows.workflows, key)
	x.lose(e)
}

// TestReservedGPUsAreNamed: a job that finds none of the GPUs that a workflow has reserved is explained by these, with their name, and by the workflow.
func TestReservedGPUsAreNamed(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 1)
	if _, why := x.reserve("default", nil, gpuStage("default", 8)); why != "" {
		t.Fatal(why)
	}
	x.submit("", "late", 1, gpusIn("b", 1), func(j *structs.Job) { j.Canonicalize() })
	if why, _ := x.last.FailedTGAllocs["g"].MainReason(); why != "devices: reserved by workflow default/wf" {
		t.Errorf("the queue states %q", why)
	}
	e, err := scheduler.Explain(x.w, scheduler.ExplainInput{Input: x.input()})
	if err != nil {
		t.Fatal(err)
	}
	if want := "nvidia/gpu: what is free is reserved by workflow default/wf, which lends to nobody"; !slices.ContainsFunc(e.Group("g").Reasons, func(r structs.NodeReason) bool { return r.Text == want }) {
		t.Errorf("%+v", e.Group("g").Reasons)
	}
}
