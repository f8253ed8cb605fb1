package state

import (
	"testing"

	"github.com/nomadish/nomadish/nomadish/state/internal/claimcheck"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// claiming is an instance that uses a device of node n by a cell of level node.
func claiming(seed, device string) *structs.PlacementBatch {
	b := batch("web", 0, "n", seed, 1)
	b.Instances[0].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{device}}}}
	b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, Claim: structs.ClaimCells, CellLevel: "node"}
	return b
}

// TestClaimsAtCommit: what an edit takes away between a plan's judgement and its commit is stored opportunistic if it takes from nobody;
// else nothing of the plan is done, and its job is evaluated again.
func TestClaimsAtCommit(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
	w.register(job("web"))
	claim := func(seed string) string {
		t.Helper()
		a := w.store.Snapshot().Alloc(nil, structs.DeriveID(seed, 0))
		if a == nil {
			return "none"
		}
		return a.AllocatedResources.Shared.Terms.Claim
	}
	judged := w.index
	w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: judged, Place: []*structs.PlacementBatch{claiming("s1", "n-gpu-0")}})
	if claim("s1") != structs.ClaimCells {
		t.Fatalf("nothing has changed, and the claim is %q", claim("s1"))
	}
	w.must(owns(structs.DefaultNamespace)) // nothing any more
	if claim("s1") != "" {
		t.Errorf("nothing is owned, and the claim is %q", claim("s1"))
	}
	w.plan(&structs.JudgedPlan{EvalID: "e2", JudgedAt: judged, Place: []*structs.PlacementBatch{claiming("s2", "n-gpu-1")}})
	if claim("s2") != "" {
		t.Errorf("it takes from nobody: %q", claim("s2"))
	}
	described := func(seed, want string) {
		t.Helper()
		if got := w.store.Snapshot().Alloc(nil, structs.DeriveID(seed, 0)).DesiredDescription; got != want {
			t.Errorf("%s is described as %q, want %q", seed, got, want)
		}
	}
	described("s1", structs.DescLostClaim)
	described("s2", structs.DescLostClaim)
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
	s1 := w.store.Snapshot().Alloc(nil, structs.DeriveID("s1", 0))
	resources := s1.AllocatedResources.Copy()
	resources.Shared.Terms = claiming("s1", "n-gpu-0").Resources.Shared.Terms
	w.plan(&structs.JudgedPlan{EvalID: "e-raise", JudgedAt: w.index, Update: []*structs.AllocInPlace{{AllocID: s1.ID, EvalID: "e-raise", Resources: resources}}})
	if claim("s1") != structs.ClaimCells {
		t.Errorf("raised, its claim is %q", claim("s1"))
	}
	described("s1", "")
	w.must(owns(structs.DefaultNamespace))
	before := len(w.store.Snapshot().EvalsByJob(nil, structs.DefaultNamespace, "web"))
	victim := structs.DeriveID("s2", 0)
	w.plan(&structs.JudgedPlan{
		EvalID: "e3", JudgedAt: judged, Place: []*structs.PlacementBatch{claiming("s3", "n-gpu-1")},
		Stop: []*structs.AllocStop{{AllocID: victim, PreemptedBy: structs.DeriveID("s3", 0), DesiredStatus: structs.AllocDesiredEvict}},
	})
	if claim("s3") != "none" || w.store.Snapshot().Alloc(nil, victim).DesiredStatus != structs.AllocDesiredRun {
		t.Errorf("it would take from another: placed %q, the victim is to %s", claim("s3"), w.store.Snapshot().Alloc(nil, victim).DesiredStatus)
	}
	if now := len(w.store.Snapshot().EvalsByJob(nil, structs.DefaultNamespace, "web")); now != before+1 {
		t.Errorf("%d evaluations of the job, %d before", now, before)
	}
}

// TestSystemAtCommit: a system instance whose GPU somebody owns by the time that its plan is committed is not stored, and its job is
// evaluated again; and when cells are owned for the first time, the system jobs of which something runs are evaluated.
func TestSystemAtCommit(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
	system := job("exporter")
	system.Type = structs.JobTypeSystem
	w.register(system)
	w.register(job("web"))
	place := func(job, seed string, perNode bool) *structs.PlacementBatch {
		b := batch(job, 0, "n", seed, 1)
		b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, PerNode: perNode}
		if perNode {
			b.Instances[0].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{"n-gpu-0"}}}}
		}
		return b
	}
	evals := func(id string) int { return len(w.store.Snapshot().EvalsByJob(nil, structs.DefaultNamespace, id)) }
	w.plan(&structs.JudgedPlan{EvalID: "e0", JudgedAt: w.index, Place: []*structs.PlacementBatch{place("exporter", "s0", false), place("web", "s1", false)}})
	before := evals("exporter")
	w.must(owns(structs.DefaultNamespace, cellsOf("gpu", 0, 1)))
	if now := evals("exporter"); now != before+1 {
		t.Errorf("when the first cells are owned: %d evaluations of the system job, %d before", now, before)
	}
	w.must(owns(structs.DefaultNamespace, cellsOf("gpu", 0, 2)))
	if now := evals("exporter"); now != before+1 {
		t.Errorf("when more are: %d evaluations of the system job, %d before", now, before)
	}
	judged := w.index
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
	before = evals("exporter")
	w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: judged, Place: []*structs.PlacementBatch{place("exporter", "s2", true)}})
	if a := w.store.Snapshot().Alloc(nil, structs.DeriveID("s2", 0)); a != nil || evals("exporter") != before+1 {
		t.Errorf("stored: %v, %d evaluations, %d before", a, evals("exporter"), before)
	}
	w.must(owns(structs.DefaultNamespace, cellsOf("gpu", 0, 1)))
	w.plan(&structs.JudgedPlan{EvalID: "e2", JudgedAt: judged, Place: []*structs.PlacementBatch{place("exporter", "s2", true)}})
	if a := w.store.Snapshot().Alloc(nil, structs.DeriveID("s2", 0)); a == nil {
		t.Error("it is not stored though nobody owns its GPU")
	}
}

// TestWaitingEditIsAdmitted: where an instance that ends lets an edit in that waited, the owner's jobs are evaluated, and the system jobs, as nobody
// owned any cells before. The entry by which it ends makes no evaluations of its own.
func TestWaitingEditIsAdmitted(t *testing.T) {
	for what, end := range map[string]func(w *world, id string){
		"a report": func(w *world, id string) { w.report(structs.AllocClientComplete, id) },
		"a plan": func(w *world, id string) {
			w.plan(&structs.JudgedPlan{EvalID: "e2", JudgedAt: w.index, Stop: []*structs.AllocStop{{
				AllocID: id, DesiredStatus: structs.AllocDesiredStop, ClientStatus: structs.AllocClientComplete,
			}}})
		},
	} {
		w := newWorld(t)
		w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
		var first []*structs.PlacementBatch
		for _, id := range []string{"agent", "exporter", "web"} {
			j, b := job(id), batch(id, 0, "n", id, 1)
			b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7}
			if id != "web" {
				j.Type = structs.JobTypeSystem
			}
			w.register(j)
			first = append(first, b)
		}
		gpu := claimBatch("agent", "n", "agent", "n-gpu-0", "node")
		gpu.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, PerNode: true} // since somebody owned cells before
		first[0] = gpu
		w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: w.index, Place: first})
		edit := owns(structs.DefaultNamespace, cellsOf("node", 0, 1))
		edit.WhenFree = true
		if w.must(edit).VirtualClusters(nil).Get(structs.DefaultNamespace).Pending == nil {
			t.Fatal("a system instance has a GPU of the one node, and the edit does not wait")
		}
		end(w, structs.DeriveID("agent", 0))
		if given := w.given(structs.DefaultNamespace, "node"); given != 1 {
			t.Fatalf("%s: %d nodes are owned", what, given)
		}
		for _, id := range []string{"exporter", "web"} {
			list := w.store.Snapshot().EvalsByJob(nil, structs.DefaultNamespace, id)
			if len(list) != 1 || list[0].TriggeredBy != structs.EvalTriggerVirtualCluster || list[0].Status != structs.EvalStatusPending {
				t.Errorf("%s: evaluations of %s: %d, want one of what the namespace owns", what, id, len(list))
			}
		}
	}
}

// TestSystemWhileDecided: when cells are owned for the first time, a system job is evaluated of which nothing runs yet but an evaluation is open: what is
// decided meanwhile does not state that it runs on every node.
func TestSystemWhileDecided(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
	system := job("exporter")
	system.Type = structs.JobTypeSystem
	w.must(&structs.JobRegisterEntry{Job: system, Time: w.now(), Eval: &structs.Evaluation{
		ID: "deciding", Namespace: structs.DefaultNamespace, JobID: "exporter", Type: structs.JobTypeSystem, Status: structs.EvalStatusPending,
	}})
	w.must(owns(structs.DefaultNamespace, cellsOf("gpu", 0, 1)))
	list := w.store.Snapshot().EvalsByJob(nil, structs.DefaultNamespace, "exporter")
	if len(list) != 2 {
		t.Errorf("%d evaluations of the system job, want the one that is being decided and another", len(list))
	}
}

// TestCellHandedOn: an allocation that takes a bound cell from another of its namespace uses it though a device there has turned bad since
// it was bound, and it could not be bound anew. It does so where nothing changed since the plan was judged, and where something did.
func TestCellHandedOn(t *testing.T) {
	for _, changed := range []bool{false, true} {
		w := newWorld(t)
		w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
		w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
		w.register(job("web"))
		w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: w.index, Place: []*structs.PlacementBatch{claiming("s1", "n-gpu-0")}})
		bad := gpuNode("n", "r1")
		bad.NodeResources.Devices[0].Instances[7].Healthy = false
		w.must(&structs.NodeRegisterEntry{Node: bad, Time: w.now()})
		judged := w.index
		if changed {
			w.must(&structs.NodeRegisterEntry{Node: gpuNode("other", "r1"), Time: w.now()})
		}
		victim, heir := structs.DeriveID("s1", 0), structs.DeriveID("s2", 0)
		w.plan(&structs.JudgedPlan{
			EvalID: "e2", JudgedAt: judged, Place: []*structs.PlacementBatch{claiming("s2", "n-gpu-0")},
			Stop: []*structs.AllocStop{{AllocID: victim, PreemptedBy: heir, DesiredStatus: structs.AllocDesiredEvict}},
		})
		a := w.store.Snapshot().Alloc(nil, heir)
		if a == nil || a.AllocatedResources.Shared.Terms.Claim != structs.ClaimCells {
			t.Fatalf("changed %v: the cell is not handed on: %+v", changed, a)
		}
		world := w.store.Snapshot().World()
		if err := world.CheckClaims(); err != nil || world.Diff(Rebuild(w.store.Snapshot())) != nil {
			t.Errorf("changed %v: %v %v", changed, err, world.Diff(Rebuild(w.store.Snapshot())))
		}
	}
}

// TestRaiseAtCommit: a running allocation that was to be raised runs on opportunistically if by the commit its cell is somebody else's.
func TestRaiseAtCommit(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("socket", 0, 2)))
	web := job("web")
	web.Namespace = "a"
	w.register(web)
	on := func(node, seed, claim string) *structs.PlacementBatch {
		b := batch("web", 0, node, seed, 1)
		b.Namespace = "a"
		b.Instances[0].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{node + "-gpu-0"}}}}
		b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, Claim: claim}
		if claim != "" {
			b.Resources.Shared.Terms.CellLevel = "socket"
		}
		return b
	}
	w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: w.index, Place: []*structs.PlacementBatch{on("r1-n0", "s1", structs.ClaimCells), on("r1-n1", "s2", "")}})
	raised := structs.DeriveID("s2", 0)
	raise := &structs.JudgedPlan{EvalID: "e2", JudgedAt: w.index, Update: []*structs.AllocInPlace{{AllocID: raised, EvalID: "e2", JobVersion: 3, Resources: on("r1-n1", "s2", structs.ClaimCells).Resources}}}
	raise.Update[0].Resources.Tasks = w.store.Snapshot().Alloc(nil, raised).AllocatedResources.Tasks
	doomed := func() int { return scheduler.ClaimViews(w.store.Snapshot().World(), "b", false)["b"].Cells[0].Doomed }
	w.must(owns("b", cellsOf("node", 0, 3))) // safe, as a's second socket can be on r1-n0
	w.plan(raise)
	a := w.store.Snapshot().Alloc(nil, raised)
	if doomed() != 0 || claimcheck.HasClaim(a.AllocatedResources) || a.JobVersion != 3 {
		t.Errorf("with b's nodes beside it: b has %d cells doomed, %+v of version %d", doomed(), a.AllocatedResources.Shared.Terms, a.JobVersion)
	}
	w.must(owns("b", cellsOf("node", 0, 2)))
	again := *raise
	again.JudgedAt = raise.JudgedAt // an edit was between again
	w.plan(&again)
	if a := w.store.Snapshot().Alloc(nil, raised); doomed() != 0 || !claimcheck.HasClaim(a.AllocatedResources) || a.DesiredDescription != "" {
		t.Errorf("with room beside b's nodes: b has %d cells doomed, %+v", doomed(), a.AllocatedResources.Shared.Terms)
	}
}

// TestPinOfGoneNode: a cell that its owner has bound while the node of its pinned one was not registered is unbound when that returns.
func TestPinOfGoneNode(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("m", "r1"), Time: w.now()})
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1, "m")))
	w.register(job("web"))
	w.must(&structs.NodeDeregisterEntry{NodeIDs: []string{"m"}, Time: w.now()})
	w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: w.index, Place: []*structs.PlacementBatch{claiming("s1", "n-gpu-0")}})
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("m", "r1"), Time: w.now()})
	snap := w.store.Snapshot()
	if err := snap.World().CheckClaims(); err != nil {
		t.Error(err)
	}
	if a := snap.Alloc(nil, structs.DeriveID("s1", 0)); a.AllocatedResources.Shared.Terms.Claim != "" {
		t.Errorf("it uses %+v, and its owner has that one cell which is pinned", a.AllocatedResources.Shared.Terms)
	}
}

// TestGangLosesItsClaims: those of a gang that must run together are all guaranteed or none is, also when an edit leaves cells for some.
func TestGangLosesItsClaims(t *testing.T) {
	for least, want := range map[int]int{2: 0, 1: 1} { // with one that must run, the other is decided by itself
		w := tenantWorld(t)
		w.must(owns("a", cellsOf("node", 0, 2)))
		web := job("web")
		web.Namespace = "a"
		w.register(web)
		plan := &structs.JudgedPlan{EvalID: "e1", JudgedAt: w.index}
		for _, node := range []string{"r1-n0", "r1-n1"} {
			b := batch("web", 0, node, "seed-"+node, 1)
			b.Namespace = "a"
			b.Instances[0].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{node + "-gpu-0"}}}}
			b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, Claim: structs.ClaimCells, CellLevel: "node", Gang: "g", GangMin: least}
			plan.Place = append(plan.Place, b)
		}
		w.plan(plan)
		guaranteed := func() (n int) {
			for _, a := range w.store.Snapshot().AllocsByJob(nil, "a", "web", true) {
				if claimcheck.HasClaim(a.AllocatedResources) {
					n++
				}
			}
			return n
		}
		if guaranteed() != 2 {
			t.Fatalf("%d are guaranteed", guaranteed())
		}
		w.must(owns("a", cellsOf("node", 0, 1)))
		snap := w.store.Snapshot()
		if err := snap.World().CheckClaims(); guaranteed() != want || err != nil || snap.World().Diff(Rebuild(snap)) != nil {
			t.Errorf("of 2 of which %d must run, %d are guaranteed, want %d; %v %v", least, guaranteed(), want, err, snap.World().Diff(Rebuild(snap)))
		}
	}
}

// TestReservationAtCommit: a workflow's reservation in cells that are its namespace's no more when the plan is committed is not made, and nobody leaves for it;
// one that was made is lost with them.
func TestReservationAtCommit(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
	w.register(job("web"))
	w.plan(&structs.JudgedPlan{EvalID: "e0", JudgedAt: w.index, Place: []*structs.PlacementBatch{batch("web", 0, "n", "s0", 1)}})
	batchJob := job("j")
	batchJob.Type = structs.JobTypeBatch
	wf := &structs.Workflow{ID: "wf", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "j", Job: batchJob}}}}}
	wf.Canonicalize()
	w.must(&structs.WorkflowRunEntry{Workflow: wf, Time: w.now()})
	victim := structs.DeriveID("s0", 0)
	plan := func(judged uint64) *structs.JudgedPlan {
		part := structs.WorkflowPart{NodeID: "n", Devices: 1, DeviceIDs: []string{"n-gpu-0"}, CellLevel: "node"}
		return &structs.JudgedPlan{
			JudgedAt: judged, Stop: []*structs.AllocStop{{AllocID: victim, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue}},
			Workflow: &structs.WorkflowReservation{Namespace: structs.DefaultNamespace, ID: "wf", Run: 1, Posted: true, Parts: []structs.WorkflowPart{part}},
		}
	}
	judged := w.index
	w.must(owns(structs.DefaultNamespace))
	w.plan(plan(judged))
	run := func() *structs.WorkflowRun {
		return w.store.Snapshot().Workflows(nil).Get(structs.DefaultNamespace, "wf")
	}
	if a := w.store.Snapshot().Alloc(nil, victim); run().Posted || a.DesiredStatus != structs.AllocDesiredRun {
		t.Errorf("without cells it is posted: %v, and who was to leave is to %s", run().Posted, a.DesiredStatus)
	}
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
	w.plan(plan(w.index))
	if a := w.store.Snapshot().Alloc(nil, victim); !run().Posted || run().Parts[0].Lost || a.DesiredStatus != structs.AllocDesiredEvict {
		t.Fatalf("with cells: %+v, and who was to leave is to %s", run(), a.DesiredStatus)
	}
	w.must(owns(structs.DefaultNamespace))
	if !run().Posted || !run().Parts[0].Lost {
		t.Errorf("the cells are gone: %+v", run().Parts)
	}
}
