package command

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// ownedBy has an owner's cell, with all that is in it.
func ownedBy(c *structs.CellView, o structs.CellOwner) {
	c.CellOwner = o
	var walk func(c *structs.CellView)
	walk = func(c *structs.CellView) {
		for _, kid := range c.Cells {
			walk(kid)
		}
		for _, d := range c.Members {
			d.CellOwner = o
		}
	}
	walk(c)
}

// ownedSite is a rack that is owned as a whole, and four nodes that have cells that are owned.
func ownedSite() *structs.Topology {
	use := func(d *structs.DeviceView, alloc, ns, name, class string) {
		u := inUse(d, alloc, name, 1000)
		u.Namespace, u.Class = ns, class
		d.Lent = d.Owner != "" && d.Owner != ns
	}
	whole := treeNode("dgx-0", "", 2, 2, 2, nil)
	ownedBy(whole.Cells, structs.CellOwner{Owner: "vision"})
	gpus := whole.Cells.Cells[0].Cells[0].Members
	use(gpus[0], allocA, "vision", "train.w[0]", structs.ClassGuaranteed)
	use(gpus[1], allocB, "students", "sweep.run[8]", structs.ClassOpportunistic)
	use(whole.Cells.Cells[0].Cells[1].Members[0], allocB, "vision", "night.w[0]", structs.ClassOpportunistic)
	whole.Owners = []structs.OwnerCounts{{Owner: "vision", Bound: 8, Guaranteed: 1, Lent: 1}}
	parts := treeNode("dgx-1", "", 2, 2, 2, nil)
	ownedBy(parts.Cells.Cells[1], structs.CellOwner{Owner: "students", Pinned: true})
	one := parts.Cells.Cells[0].Cells[0].Members[1]
	one.Owner = "speech"
	use(one, allocA, "speech", "decode.d[0]", structs.ClassGuaranteed)
	parts.Owners = []structs.OwnerCounts{{Owner: "speech", Bound: 1, Guaranteed: 1}, {Owner: "students", Bound: 4}}
	pinned := treeNode("dgx-2", "", 2, 2, 2, nil)
	ownedBy(pinned.Cells.Cells[0], structs.CellOwner{Owner: "students", Pinned: true, Away: true})
	pinned.Drain = true
	idle := treeNode("dgx-4", "", 2, 2, 2, nil)
	ownedBy(idle.Cells.Cells[0], structs.CellOwner{Owner: "students", Pinned: true})
	ownedBy(idle.Cells.Cells[1].Cells[1], structs.CellOwner{Owner: "speech"})
	idle.Owners = []structs.OwnerCounts{{Owner: "speech", Bound: 2}, {Owner: "students", Bound: 4}}
	in := treeNode("dgx-3", "r1", 2, 2, 2, nil)
	ownedBy(in.Cells, structs.CellOwner{Owner: "speech"})
	in.Owners = []structs.OwnerCounts{{Owner: "speech", Bound: 8}}
	for _, n := range []*structs.TopologyNode{whole, parts, pinned, idle, in} {
		recount(n)
	}
	withhold(pinned)
	top := siteOf(whole, parts, pinned, idle, in)
	top.Sites[0].CellOwner = structs.CellOwner{Owner: "speech"}
	for owner, n := range map[string]int{"speech": 11, "students": 12, "vision": 16} {
		top.AddOwner(structs.OwnerCounts{Owner: owner, Owned: n})
	}
	return top
}

// recount counts the devices of a node anew.
func recount(n *structs.TopologyNode) {
	var clean func(c *structs.CellView)
	clean = func(c *structs.CellView) {
		c.DeviceCounts = structs.DeviceCounts{}
		for _, kid := range c.Cells {
			clean(kid)
		}
	}
	clean(n.Cells)
	c := countCells(n.Cells)
	n.Devices, n.Used, n.Free, n.Unhealthy = c.Devices, c.Used, c.Free, c.Unhealthy
}

// Cells are drawn with their owners where these are others than those of what is around them, devices with who may keep them, and
// owners with their numbers.
func TestOwnersAreDrawn(t *testing.T) {
	f := newFake(t).on("GET /v1/topology", ownedSite())
	golden(t, "topology_owners.want", f.run(t, "topology").out)
	wants(t, f.run(t, "topology", "-verbose").out, "dgx-3-gpu-7  0000:07:00.0\n", "dgx-0-gpu-1  0000:01:00.0  "+allocB+" students/sweep.run[8] task t (lent)\n")
	wants(t, f.run(t, "topology", "-json").out, `"Owner": "students",`, `"Pinned": true,`, `"Away": true`, `"Lent": true,`, `"Class": "guaranteed"`, `"Owned": 16,`)
}

// Where nodes are drawn without their trees, and racks without their nodes, they have numbers of what is bound.
func TestOwnersOfManyNodes(t *testing.T) {
	f := func(count int, want ...string) {
		t.Helper()
		var nodes []*structs.TopologyNode
		for i := range count {
			n := treeNode(fmt.Sprintf("n-%d", i), fmt.Sprintf("r%d", i%2), 1, 1, 2, nil)
			owner := fmt.Sprintf("team-%d", i%12)
			n.Owners = []structs.OwnerCounts{{Owner: owner, Bound: 2, Guaranteed: 1, Lent: i / 12 % 2}}
			nodes = append(nodes, n)
		}
		top := siteOf(nodes...)
		for i := range 40 {
			top.AddOwner(structs.OwnerCounts{Owner: fmt.Sprintf("team-%d", i), Owned: 500})
		}
		for _, s := range top.Sites {
			s.CellOwner = structs.CellOwner{Owner: "team-0"}
		}
		fk := newFake(t).on("GET /v1/topology", top)
		fk.pages = map[string]int{"/v1/topology": 100}
		wants(t, fk.run(t, "topology").out, want...)
	}
	f(200, "node n-0  2 devices: 0 used, 2 free  bound: team-0 2\n", "node n-12  2 devices: 0 used, 2 free  bound: team-0 2 (1 lent)\n")
	f(1200, "rack r0  owner team-0  600 nodes, 1200 devices: 0 used, 1200 free  bound: team-0 200 (50 lent), team-10 200 (50 lent), team-2 200 (50 lent), "+
		"team-4 200 (50 lent), 2 other owners\n", "└─ 600 nodes with devices\n", "team-0   500    200    100         50\n", "8 other owners: nomadish vc list\n")
}

// A rack that several pages have is owned if all of its devices are.
func TestOwnerOfRackOnSeveralPages(t *testing.T) {
	rack := func(devices int, owner string) *structs.TopologySite {
		return &structs.TopologySite{Nodes: 1, DeviceCounts: structs.DeviceCounts{Devices: devices}, CellOwner: structs.CellOwner{Owner: owner}}
	}
	f := func(want string, pages ...*structs.TopologySite) {
		t.Helper()
		sum := rack(0, "")
		for _, page := range pages {
			addSite(sum, page)
		}
		if sum.Owner != want || sum.Nodes != len(pages)+1 {
			t.Errorf("owner %q of %d nodes, want %q of %d", sum.Owner, sum.Nodes, want, len(pages)+1)
		}
	}
	f("a", rack(8, "a"), rack(8, "a"))
	f("a", rack(0, ""), rack(8, "a"), rack(0, ""))
	f("", rack(8, "a"), rack(8, ""))
	f("", rack(8, ""), rack(8, "a"))
	f("", rack(8, "a"), rack(8, "b"))
}
