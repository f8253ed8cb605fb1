package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// gpuNode is a node of 2 sockets × 2 PCIe switches × 2 GPUs, in a rack.
func gpuNode(id, rack string) *structs.Node {
	n := node(id)
	n.Meta = map[string]string{"rack": rack}
	n.NodeResources.Topology = &structs.NodeTopology{}
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	for s := range 2 {
		socket := fmt.Sprintf("socket-%d", s)
		n.NodeResources.Topology.Cells = append(n.NodeResources.Topology.Cells, &structs.TopologyCell{ID: socket, Level: structs.LevelSocket})
		for p := range 2 {
			at := &structs.TopologyCell{ID: fmt.Sprintf("pcie-%d", 2*s+p), Level: structs.LevelPCIe, Parent: socket}
			for g := range 2 {
				d := fmt.Sprintf("%s-gpu-%d", id, 4*s+2*p+g)
				at.Devices = append(at.Devices, d)
				group.Instances = append(group.Instances, &structs.NodeDevice{ID: d, Healthy: true})
			}
			n.NodeResources.Topology.Cells = append(n.NodeResources.Topology.Cells, at)
		}
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
	return n
}

// tenantWorld is a store with two racks of two nodes, and namespaces.
func tenantWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, id := range []string{"r1-n0", "r1-n1", "r2-n0", "r2-n1"} {
		w.must(&structs.NodeRegisterEntry{Node: gpuNode(id, id[:2]), Time: w.now()})
	}
	for _, name := range []string{"a", "b", "c"} {
		w.must(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	}
	return w
}

func owns(name string, cells ...*structs.CellQuota) *structs.VirtualClusterUpsertEntry {
	return &structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: name, Cells: cells}, EvalSeed: "seed-" + name}
}

func cellsOf(level string, size, count int, pins ...string) *structs.CellQuota {
	return &structs.CellQuota{Level: level, Size: size, Count: count, Pin: pins}
}

// refusesWith requires that an entry is refused with a code and a message that has a text.
func (w *world) refusesWith(payload any, code structs.Code, text string) {
	w.t.Helper()
	err := w.apply(payload)
	if err == nil || structs.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		w.t.Fatalf("entry %d (%T): error %v, want one of code %s with %q", w.index, payload, err, code, text)
	}
}

// balances returns what the one chain has left, by kind, from the largest.
func (w *world) balances() (left []int) {
	for _, c := range w.store.Snapshot().World().Chains {
		for _, b := range c.Balances() {
			if b.Kind.Level >= 2 {
				left = append([]int{b.Left}, left...)
			}
		}
	}
	return left
}

// TestAdmissionGolden holds the golden example of Invariant S (semantics part 2) as edits of virtual clusters.
func TestAdmissionGolden(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 2)))
	w.must(owns("b", cellsOf("socket", 0, 2)))
	w.refusesWith(owns("c", cellsOf("rack", 2, 1)), structs.CodeConflict, "level socket: 2 short")
	if s := w.store.Snapshot(); s.VirtualClusters(nil).Get("c") != nil {
		t.Error("what was refused is stored")
	}
	w.must(owns("a", cellsOf("node", 0, 1)))
	w.must(owns("c", cellsOf("rack", 2, 1)))
	if got := w.balances(); fmt.Sprint(got) != "[1 1 0]" {
		t.Errorf("left %v, want rack 1, node 1, socket 0", got)
	}
	bad := gpuNode("r1-n0", "r1")
	bad.NodeResources.Devices[0].Instances[4].Healthy = false
	w.must(&structs.NodeRegisterEntry{Node: bad, Time: w.now()})
	doomed := func(name string) (n int) {
		for _, line := range scheduler.ClaimViews(w.store.Snapshot().World(), name, false)[name].Cells {
			n += line.Doomed
		}
		return n
	}
	if doomed("a") != 0 || doomed("b") != 0 || doomed("c") != 1 {
		t.Errorf("with a bad GPU: doomed %d, %d, %d: want the rack, which was admitted last", doomed("a"), doomed("b"), doomed("c"))
	}
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("r1-n0", "r1"), Time: w.now()})
	if doomed("c") != 0 {
		t.Error("all is well again, and the rack is doomed")
	}
}

// TestWrongVirtualClusters lists what is refused, and how.
func TestWrongVirtualClusters(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("b", cellsOf("socket", 0, 1, "r1-n0/socket-0")))
	before := w.store.Snapshot().Hash()
	kind := func(k string, c *structs.CellQuota) *structs.CellQuota { c.Kind = k; return c }
	windows := func(e *structs.VirtualClusterUpsertEntry, list ...*structs.CellQuota) *structs.VirtualClusterUpsertEntry {
		for i, c := range list {
			e.VirtualCluster.Windows = append(e.VirtualCluster.Windows, &structs.CellWindow{From: later(1 + i), To: later(4 + i), Cells: []*structs.CellQuota{c}})
		}
		return e
	}
	pool := func(p string, c *structs.CellQuota) *structs.CellQuota { c.NodePool = p; return c }
	for _, row := range []struct {
		entry *structs.VirtualClusterUpsertEntry
		code  structs.Code
		text  string
	}{
		{owns("x", cellsOf("node", 0, 1)), structs.CodeBadRequest, `namespace "x" does not exist`},
		{owns("a", cellsOf("drawer", 0, 1)), structs.CodeBadRequest, "can be owned at the levels gpu, pcie, socket, node, rack (size 2)"},
		{owns("a", cellsOf("rak", 0, 1)), structs.CodeBadRequest, `did you mean "rack"?`},
		{owns("a", kind("nvidia/gpu/B200", cellsOf("node", 0, 1))), structs.CodeBadRequest, `node pool "default" has nvidia/gpu/H100/2x2x2`},
		{owns("a", kind("H100", cellsOf("node", 0, 1))), structs.CodeBadRequest, "must be vendor/type/model"},
		{owns("a", pool("far", cellsOf("node", 0, 1))), structs.CodeBadRequest, `node pool "far" has no devices`},
		{owns("a", cellsOf("rack", 3, 1)), structs.CodeBadRequest, "those with 2 nodes can be owned"},
		{owns("a", cellsOf("rack", 0, 1)), structs.CodeBadRequest, "size is missing: how many nodes such a cell has (there are cells with 2 nodes)"},
		{owns("a", cellsOf("node", 2, 1)), structs.CodeBadRequest, "only cells above nodes have one"},
		{owns("a", cellsOf("node", 0, 5)), structs.CodeConflict, "level node: 2 short"},
		{owns("a", cellsOf("node", 0, 1, "r9-n9")), structs.CodeBadRequest, `there is no node "r9-n9"`},
		{owns("a", cellsOf("socket", 0, 1, "r1-n0/socket-2")), structs.CodeBadRequest, "NODE/socket-0"},
		{owns("a", cellsOf("socket", 0, 1, "r1-n0/socket-0")), structs.CodeConflict, `virtual cluster "b" has the cell r1-n0/socket-0 of level socket pinned (pin another cell, or none`},
		{owns("a", cellsOf("node", 0, 1, "r1-n0")), structs.CodeConflict, `virtual cluster "b" has the cell r1-n0/socket-0 of level socket pinned (`},
		{owns("a", cellsOf("rack", 2, 1, "rack:r3")), structs.CodeBadRequest, "no such cell"},
		{owns("a", cellsOf("node", 0, 1, "r1-n1", "r2-n0")), structs.CodeBadRequest, "2 pins"},
		{owns("a", cellsOf("node", 0, 1), cellsOf("node", 0, 2)), structs.CodeBadRequest, "stated twice"},
		{owns("a", cellsOf("node", 0, 1), kind("nvidia/gpu/H100", cellsOf("node", 0, 2))), structs.CodeBadRequest, "stated twice"},
		{windows(owns("a"), cellsOf("socket", 0, 1), kind("nvidia/gpu/H100", cellsOf("socket", 0, 2))), structs.CodeBadRequest, "window 2: it overlaps window 1"},
		{owns("a", cellsOf("", 0, 1)), structs.CodeBadRequest, "level is missing"},
		{owns("a", cellsOf("node", 0, -1)), structs.CodeBadRequest, "not -1"},
		{&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "a"}, CAS: true, CheckIndex: 7}, structs.CodeConflict, "there is none"},
		{&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "b"}, CAS: true, CheckIndex: 7}, structs.CodeConflict, "1 of level socket"},
		{&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "a", OverLimit: "never"}}, structs.CodeBadRequest, `not "never"`},
		{&structs.VirtualClusterUpsertEntry{}, structs.CodeBadRequest, "missing name"},
	} {
		w.refusesWith(row.entry, row.code, row.text)
	}
	w.refusesWith(&structs.VirtualClusterDeleteEntry{Name: "a"}, structs.CodeNotFound, "not found")
	w.refusesWith(&structs.NamespaceDeleteEntry{Name: "b"}, structs.CodeConflict, "has a virtual cluster")
	if w.store.Snapshot().Hash() != before {
		t.Error("something that was refused changed the state")
	}
	w.must(&structs.VirtualClusterDeleteEntry{Name: "b"})
	w.must(&structs.NamespaceDeleteEntry{Name: "b"})
	if got := w.balances(); len(got) != 0 {
		t.Errorf("nobody owns anything, and there are accounts: %v", got)
	}
}

// TestPinsOfAwayNodes: a pinned cell is doomed while its node is away, bound nowhere else, and bound again when it returns.
func TestPinsOfAwayNodes(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("b", cellsOf("node", 0, 2, "r1-n0")))
	line := func() *structs.CellStatus {
		return scheduler.ClaimViews(w.store.Snapshot().World(), "b", true)["b"].Cells[0]
	}
	if l := line(); l.Bound != 1 || l.Doomed != 0 {
		t.Errorf("%+v", l)
	}
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r1-n0"}, Status: structs.NodeStatusDown, Time: w.now()})
	if l := line(); l.Bound != 0 || l.Doomed != 1 || l.Free() != 1 {
		t.Errorf("away: %+v", l)
	}
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r1-n0"}, Status: structs.NodeStatusReady, Time: w.now()})
	if l := line(); l.Bound != 1 || l.Doomed != 0 {
		t.Errorf("back: %+v", l)
	}
	bound := scheduler.ClaimViews(w.store.Snapshot().World(), "b", true)["b"].Bound
	if len(bound) != 1 || bound[0].Cell != "r1-n0" || !bound[0].Pinned {
		t.Errorf("%+v", bound)
	}
	w.must(owns("b", cellsOf("node", 0, 2)))
	if l := line(); l.Bound != 0 || l.Given != 2 {
		t.Errorf("no longer pinned: %+v", l)
	}
}
