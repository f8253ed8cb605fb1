package state

import (
	"testing"

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
