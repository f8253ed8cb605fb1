package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// shiftOf is a shift of nodes from one hour to another.
func shiftOf(name string, count, from, to int) *structs.VirtualClusterShiftEntry {
	return &structs.VirtualClusterShiftEntry{Name: name, Shift: structs.CellShift{
		Cells: *cellsOf("node", 0, count), From: later(from), Until: later(from + 1), To: later(to), UntilTo: later(to + 1),
	}}
}

func windowOf(from, to int, cells ...*structs.CellQuota) *structs.CellWindow {
	return &structs.CellWindow{From: later(from), To: later(to), Cells: cells}
}

// TestPinsAreKept: no window, shift, offer or edit leaves fewer cells than are pinned at any time.
func TestPinsAreKept(t *testing.T) {
	w := tenantWorld(t)
	e := owns("a", cellsOf("node", 0, 1, "r1-n0"))
	e.VirtualCluster.Windows = []*structs.CellWindow{windowOf(1, 2, cellsOf("node", 0, 0))}
	w.refusesWith(e, structs.CodeBadRequest, "window at 1970-01-12T14:46:40Z: it has 0 cells of level node, but 1 is pinned: r1-n0")
	w.must(owns("a", cellsOf("node", 0, 1, "r1-n0")))
	w.refusesWith(shiftOf("a", 1, 1, 3), structs.CodeConflict, "it owns 0 cells of level node that are neither pinned nor offered")
	w.refusesWith(exchange("x", "a", 1, 0, later(1), later(2)), structs.CodeConflict, "owns 0 such cells neither pinned nor offered")
	w.must(owns("a", cellsOf("node", 0, 2, "r1-n0")))
	w.must(shiftOf("a", 1, 1, 3))
	w.refusesWith(owns("a", cellsOf("node", 0, 2, "r1-n0", "r1-n1")), structs.CodeConflict,
		"it is to have 2 cells of level node at 1970-01-12T14:46:40Z, but 1 is shifted to another time until 1970-01-12T15:46:40Z, and 2 are pinned: r1-n0, r1-n1")
	w.must(owns("b", cellsOf("node", 0, 1)))
	w.must(exchange("y", "b", 1, 0, later(1), later(2)))
	buyer := owns("c")
	buyer.VirtualCluster.Points = 9
	w.must(buyer)
	w.must(exchange("z", "c", 1, 2, later(1), later(2)))
	w.must(owns("b", cellsOf("node", 0, 1, "r2-n0"))) // after it was offered
	w.advance(later(1))
	if w.given("b", "node") != 1 || w.given("c", "node") != 0 {
		t.Errorf("a pinned cell was sold: b owns %d, c %d", w.given("b", "node"), w.given("c", "node"))
	}
}

// TestStoredWindowBelowPins: of a row that was stored before such windows were refused, the pin stays through its window.
func TestStoredWindowBelowPins(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 1, "r1-n0")))
	w.must(owns("b", cellsOf("node", 0, 3)))
	w.index++
	err := w.w.commit(w.index, w.now(), "VirtualClusterUpserted", "", func(x *txn) error {
		row := get[structs.VirtualCluster](x.rows, TableVirtualClusters, byID, "a").Copy()
		none := *row.Cells[0]
		none.Count, none.Pin, none.Pinned = 0, nil, nil
		row.Windows = []*structs.CellWindow{windowOf(1, 2, &none)}
		x.put(TableVirtualClusters, row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for hour := 1; hour < 3; hour++ {
		w.advance(later(hour))
		if line := scheduler.ClaimViews(w.store.Snapshot().World(), "a", true)["a"].Cells[0]; line.Given != 1 || line.Bound != 1 {
			t.Errorf("hour %d: %+v", hour, line)
		}
	}
}

// TestWhatWasMovedIsKept: an edit cannot take away what was shifted or sold.
func TestWhatWasMovedIsKept(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 1)))
	w.must(shiftOf("a", 1, 1, 2))
	w.refusesWith(owns("a"), structs.CodeConflict,
		"it is to have 0 cells of level node at 1970-01-12T14:46:40Z, but 1 is shifted to another time until 1970-01-12T15:46:40Z")
	waits := owns("a")
	waits.WhenFree = true
	w.must(waits)
	for _, at := range []struct{ hour, cells int }{{0, 1}, {1, 0}, {2, 1}, {3, 0}} {
		w.advance(later(at.hour))
		if w.given("a", "node") != at.cells {
			t.Errorf("hour %d: it owns %d cells, want %d", at.hour, w.given("a", "node"), at.cells)
		}
	}
	if p := w.store.Snapshot().VirtualClusters(nil).Get("a").Pending; p != nil {
		t.Errorf("nothing is shifted any more, and the edit waits: %+v", p)
	}

	w = tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 1)))
	buyer := owns("b")
	buyer.VirtualCluster.Points = 9
	w.must(buyer)
	w.must(exchange("x", "a", 1, 0, later(1), later(3)))
	w.must(exchange("y", "b", 1, 2, later(1), later(3)))
	w.advance(later(1).Add(time.Second))
	w.refusesWith(owns("a"), structs.CodeConflict, "but 1 is sold until 1970-01-12T16:46:40Z")
}

// TestEditsBesideLosses: where the hardware cannot hold what is owned at some time to come, edits are refused only for what they have
// more then and there.
func TestEditsBesideLosses(t *testing.T) {
	w := tenantWorld(t)
	e := owns("b", cellsOf("node", 0, 4))
	e.VirtualCluster.Windows = []*structs.CellWindow{windowOf(1, 2, cellsOf("socket", 0, 0))} // an edge to come
	w.must(e)
	bad := gpuNode("r1-n0", "r1")
	bad.NodeResources.Devices[0].Instances[0].Healthy = false
	w.must(&structs.NodeRegisterEntry{Node: bad, Time: w.now()})
	w.must(owns("c"))
	less := owns("b", cellsOf("node", 0, 4))
	less.VirtualCluster.Windows, less.VirtualCluster.OverLimit = e.VirtualCluster.Windows, structs.OverLimitWait
	w.must(less)
	w.refusesWith(owns("a", cellsOf("node", 0, 1)), structs.CodeConflict, "level node: 1 short")
	w.must(owns("a", cellsOf("socket", 0, 1))) // of what the bad GPU leaves of its node
	later := owns("c")
	later.VirtualCluster.Windows = []*structs.CellWindow{windowOf(1, 2, cellsOf("node", 0, 1))}
	w.refusesWith(later, structs.CodeConflict, "level node: 1 short from 1970-01-12T14:46:40Z")
}

// TestPinOfARack: while a node of a pinned rack is not ready, others may bind the other node; the pin is bound again when they leave it, and
// a World that is made anew is the same at every step (w.must compares them).
func TestPinOfARack(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("rack", 2, 1, "rack:r1")))
	w.must(owns("b", cellsOf("node", 0, 1)))
	j := job("web")
	j.Namespace = "b"
	w.register(j)
	status := func(id, is string) {
		w.must(&structs.NodeStatusEntry{NodeIDs: []string{id}, Status: is, Time: w.now()})
	}
	bound := func(when string, want int) {
		t.Helper()
		if line := scheduler.ClaimViews(w.store.Snapshot().World(), "a", true)["a"].Cells[0]; line.Bound != want {
			t.Errorf("%s: %+v", when, line)
		}
	}
	status("r1-n1", structs.NodeStatusDown)
	status("r2-n0", structs.NodeStatusDown)
	status("r2-n1", structs.NodeStatusDown)
	p := claimBatch("web", "r1-n0", "s1", "r1-n0-gpu-0", "node")
	p.Namespace = "b"
	w.plan(&structs.JudgedPlan{EvalID: "e1", JudgedAt: w.index, Place: []*structs.PlacementBatch{p}})
	bound("a part is bound by another", 0)
	status("r1-n1", structs.NodeStatusReady)
	bound("all nodes are there", 0)
	w.must(owns("a", cellsOf("rack", 2, 1, "rack:r1"), cellsOf("socket", 0, 0))) // its pin, which is not bound, forbids no edit
	status("r1-n1", structs.NodeStatusDown)
	status("r1-n1", structs.NodeStatusReady)
	w.plan(&structs.JudgedPlan{EvalID: "e2", JudgedAt: w.index, Stop: []*structs.AllocStop{{
		AllocID: structs.DeriveID("s1", 0), DesiredStatus: structs.AllocDesiredStop, ClientStatus: structs.AllocClientComplete,
	}}})
	bound("the other has left", 1)
}

// claimBatch is an instance that uses a claim on a cell of a level.
func claimBatch(job, node, seed, device, level string) *structs.PlacementBatch {
	b := batch(job, 0, node, seed, 1)
	b.Instances[0].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{device}}}}
	b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, Claim: structs.ClaimCells, CellLevel: level}
	return b
}

// TestEditsWaitInOrder: an edit that grows a level does not overtake a pending one of another virtual cluster that needs the level.
func TestEditsWaitInOrder(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 2)))
	edit := func(name string, cells ...*structs.CellQuota) *structs.VirtualClusterUpsertEntry {
		e := owns(name, cells...)
		e.WhenFree = true
		return e
	}
	w.must(edit("b", cellsOf("node", 0, 3)))
	w.refusesWith(owns("c", cellsOf("node", 0, 1)), structs.CodeConflict, "it waits behind the pending edit of b, which needs cells of level node, too")
	w.must(owns("c", cellsOf("socket", 0, 2)))
	w.must(edit("c", cellsOf("socket", 0, 2), cellsOf("node", 0, 1)))
	if p := w.store.Snapshot().VirtualClusters(nil).Get("c").Pending; p == nil || p.Reason != "it waits behind the pending edit of b, which needs cells of level node, too" {
		t.Errorf("pending %+v", p)
	}
	w.must(owns("c")) // shrinks, and takes its pending edit back
	w.must(edit("c", cellsOf("node", 0, 1)))
	w.must(owns("a", cellsOf("node", 0, 1)))
	if w.given("b", "node") != 3 || w.given("c", "node") != 0 {
		t.Errorf("b owns %d, c %d", w.given("b", "node"), w.given("c", "node"))
	}
	w.must(owns("a"))
	if w.given("c", "node") != 1 {
		t.Errorf("c owns %d", w.given("c", "node"))
	}
}

// TestGrowthThatWaits: where bindings forbid what grows at an edge, it waits: it is given as far as it fits, before what comes later, and
// shown with its reason.
func TestGrowthThatWaits(t *testing.T) {
	w := tenantWorld(t)
	a := owns("a", cellsOf("node", 0, 0))
	a.VirtualCluster.Windows = []*structs.CellWindow{windowOf(1, 9, cellsOf("node", 0, 3))}
	w.must(a)
	w.must(owns("b", cellsOf("socket", 0, 2)))
	j := job("web")
	j.Namespace = "b"
	w.register(j)
	for i, node := range []string{"r1-n0", "r1-n1"} { // safe now
		p := claimBatch("web", node, fmt.Sprint("s", i), node+"-gpu-0", "socket")
		p.Namespace = "b"
		w.plan(&structs.JudgedPlan{EvalID: fmt.Sprint("e", i), JudgedAt: w.index, Place: []*structs.PlacementBatch{p}})
	}
	w.advance(later(1))
	status := func() *structs.VirtualClusterStatus {
		snap := w.store.Snapshot()
		return snap.VirtualClusters(nil).Status(snap.VirtualClusters(nil).Get("a"), scheduler.ClaimViews(snap.World(), "a", true))
	}
	if s := status(); s.Cells[0].Given != 2 || s.Cells[0].Waiting != 1 || s.Cells[0].Doomed != 0 || s.Waits != "level node: 1 short" {
		t.Errorf("%q: %+v", s.Waits, s.Cells[0])
	}
	w.refusesWith(owns("c", cellsOf("node", 0, 1)), structs.CodeConflict, "level node: 1 short")
	w.must(owns("c", cellsOf("socket", 0, 1)))
	w.must(owns("c"))
	pending := owns("c", cellsOf("node", 0, 1))
	pending.WhenFree = true
	w.must(pending)
	more := owns("a", cellsOf("node", 0, 0))
	more.VirtualCluster.Windows = a.VirtualCluster.Windows
	more.VirtualCluster.OverLimit = structs.OverLimitWait
	w.must(more) // grows nothing
	w.plan(&structs.JudgedPlan{EvalID: "e9", JudgedAt: w.index, Stop: []*structs.AllocStop{{
		AllocID: structs.DeriveID("s1", 0), DesiredStatus: structs.AllocDesiredStop, ClientStatus: structs.AllocClientComplete,
	}}})
	if s := status(); s.Cells[0].Given != 3 || s.Cells[0].Waiting != 0 || s.Waits != "" {
		t.Errorf("a node is free: %q: %+v", s.Waits, s.Cells[0])
	}
}

// TestGrowthIsNotOvertaken: an edit of the level does not get what is to come to those who wait since an edge.
func TestGrowthIsNotOvertaken(t *testing.T) {
	w := tenantWorld(t)
	a := owns("a", cellsOf("rack", 2, 0))
	a.VirtualCluster.Windows = []*structs.CellWindow{windowOf(1, 9, cellsOf("rack", 2, 2))}
	w.must(a)
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r1-n0"}, Status: structs.NodeStatusDown, Time: w.now()})
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r2-n0"}, Status: structs.NodeStatusDown, Time: w.now()})
	w.advance(later(1))
	w.must(owns("c", cellsOf("node", 0, 0)))
	w.refusesWith(owns("c", cellsOf("rack", 2, 1)), structs.CodeConflict, "level rack of 2 nodes: 1 short")
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r1-n0"}, Status: structs.NodeStatusReady, Time: w.now()})
	if scheduler.ClaimViews(w.store.Snapshot().World(), "a", false)["a"].Cells[0].Given != 1 {
		t.Error("one rack is complete, and not given")
	}
}

// TestPendingWindowPasses: an edit that waits for what its window needs is admitted when that is over.
func TestPendingWindowPasses(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 3)))
	b := owns("b", cellsOf("node", 0, 1))
	b.VirtualCluster.Windows = []*structs.CellWindow{windowOf(1, 2, cellsOf("node", 0, 2))}
	b.WhenFree = true
	w.must(b)
	pending := func() bool { return w.store.Snapshot().VirtualClusters(nil).Get("b").Pending != nil }
	edge := w.store.Snapshot().VirtualClusters(nil).ClaimsEdge()
	if !pending() || edge != later(1).UnixNano() {
		t.Fatalf("pending %v, the next edge is %v", pending(), time.Unix(0, edge).UTC())
	}
	w.advance(later(1))
	if edge = w.store.Snapshot().VirtualClusters(nil).ClaimsEdge(); !pending() || edge != later(2).UnixNano() {
		t.Fatalf("within the window: pending %v, the next edge is %v", pending(), time.Unix(0, edge).UTC())
	}
	w.advance(later(2))
	if pending() || w.given("b", "node") != 1 {
		t.Errorf("after the window: pending %v, %d given", pending(), w.given("b", "node"))
	}
}

// TestPinWithinOwnPin: a pin of a cell of which a part is pinned already, at another level, is refused, to the same owner too.
func TestPinWithinOwnPin(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("gpu", 0, 1, "r1-n0/gpu-0")))
	w.refusesWith(owns("a", cellsOf("gpu", 0, 1, "r1-n0/gpu-0"), cellsOf("node", 0, 1, "r1-n0")), structs.CodeConflict, `pin "r1-n0": its virtual cluster has the cell`)
}
