package gpu

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// TestTopologyIsATree: whatever sysfs and NVML say, the server takes the tree, every
// device is in it once, and all of a cell's GPUs do share what it stands for.
func TestTopologyIsATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cards, res := anyCards(t)
		top := topology(cards)
		res.Topology = top
		if err := res.ValidateTopology(); err != nil {
			t.Fatal(err)
		}
		levels := map[string]*structs.TopologyCell{}
		seen := map[string]int{}
		for _, c := range top.Cells {
			levels[c.ID] = c
			for _, id := range c.Devices {
				seen[id]++
			}
		}
		where := map[string]pciPath{}
		for _, c := range cards {
			for _, id := range c.devices {
				where[id] = c.pciPath
				if seen[id] != 1 {
					t.Fatalf("device %s is %d times in the tree", id, seen[id])
				}
			}
		}
		joined := map[[2]string]bool{}
		for _, l := range top.Links {
			joined[[2]string{l.A, l.B}], joined[[2]string{l.B, l.A}] = true, true
		}
		for id, devices := range under(top) {
			for a := range devices {
				for b := range devices {
					if c := levels[id]; c != nil && a != b {
						share(t, c, a, b, where, joined)
					}
				}
			}
		}
	})
}

// share fails if two devices do not share what a cell of them stands for.
func share(t *rapid.T, c *structs.TopologyCell, a, b string, where map[string]pciPath, joined map[[2]string]bool) {
	switch c.Level {
	case structs.LevelNVLink:
		if !joined[[2]string{a, b}] {
			t.Fatalf("%s holds %s and %s, which are not linked", c.ID, a, b)
		}
	case structs.LevelPCIe:
		common := false
		for _, x := range where[a].bridges {
			for _, y := range where[b].bridges {
				common = common || x == y
			}
		}
		if !common && fmt.Sprint(where[a]) != fmt.Sprint(where[b]) {
			t.Fatalf("%s holds %s and %s, which share no bridge", c.ID, a, b)
		}
	}
}

func anyCards(t *rapid.T) ([]card, *structs.NodeResources) {
	n := rapid.IntRange(1, 9).Draw(t, "GPUs")
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "m"}
	var cards []card
	fabric := rapid.Bool().Draw(t, "switched")
	for i := range n {
		c := card{id: fmt.Sprintf("g%d", i), busID: fmt.Sprintf("0000:%02x:00.0", i), pciPath: unknownPath}
		c.devices = []string{c.id}
		if rapid.IntRange(0, 5).Draw(t, "MIG") == 0 {
			c.mig, c.devices = true, []string{c.id + "-0", c.id + "-1"}
		}
		if c.pciPath.socket = rapid.IntRange(-1, 1).Draw(t, "socket"); c.pciPath.socket >= 0 {
			// A bridge belongs to one socket, and so does all that is above it.
			path := fmt.Sprint(c.pciPath.socket)
			for range rapid.IntRange(0, 3).Draw(t, "depth") {
				path += fmt.Sprintf("/%d", rapid.IntRange(0, 1).Draw(t, "bridge"))
				c.pciPath.bridges = append(c.pciPath.bridges, path)
			}
		}
		if fabric && rapid.Bool().Draw(t, "on the fabric") {
			c.links = append(c.links, link{fabric: true})
		}
		for k := range n {
			if k != i && rapid.IntRange(0, 3).Draw(t, "linked") == 0 {
				c.links = append(c.links, link{peer: fmt.Sprintf("0000:%02x:00.0", k)})
			}
		}
		for _, id := range c.devices {
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: id})
		}
		cards = append(cards, c)
	}
	return cards, &structs.NodeResources{Devices: []*structs.NodeDeviceResource{group}}
}

// TestNVLinkLevel: only sets that stand between two other cells are a level.
func TestNVLinkLevel(t *testing.T) {
	// cards under one switch each unless on the same, linked as told.
	f := func(what string, switchOf []string, pairs [][2]int, want map[string]int) {
		t.Helper()
		var cards []card
		for i, sw := range switchOf {
			cards = append(cards, card{id: fmt.Sprint(i), busID: fmt.Sprint(i), devices: []string{fmt.Sprint(i)}, pciPath: pciPath{bridges: []string{sw}}})
		}
		for _, p := range pairs {
			cards[p[0]].links = append(cards[p[0]].links, link{peer: fmt.Sprint(p[1])})
		}
		top := topology(cards)
		got := map[string]int{}
		for _, c := range top.Cells {
			if c.Level == structs.LevelNVLink {
				got[c.ID+" under "+c.Parent] = len(under(top)[c.ID])
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f("no links", []string{"a", "b", "c", "d"}, nil, nil)
	f("pairs across switches", []string{"a", "b", "c", "d"}, [][2]int{{0, 1}, {2, 3}}, map[string]int{"nvlink-0 under socket-0": 2, "nvlink-1 under socket-0": 2})
	f("pairs within a switch", []string{"a", "a", "a", "a"}, [][2]int{{0, 1}, {2, 3}}, map[string]int{"nvlink-0 under pcie-0": 2, "nvlink-1 under pcie-0": 2})
	f("a pair that is a switch", []string{"a", "a", "c", "d"}, [][2]int{{0, 1}}, nil)
	f("all of the socket", []string{"a", "b"}, [][2]int{{0, 1}}, nil)
	f("half of each switch", []string{"a", "a", "b", "b"}, [][2]int{{0, 2}, {1, 3}}, nil)
	f("a chain, not all with all", []string{"a", "b", "c", "d"}, [][2]int{{0, 1}, {1, 2}}, nil)
	f("whole switches", []string{"a", "a", "b", "b", "c"}, [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, map[string]int{"nvlink-0 under socket-0": 4})
}

// TestLinks: how many NVLinks join two GPUs, directly or through switches.
func TestLinks(t *testing.T) {
	on := func(n int) (out []link) {
		for range n {
			out = append(out, link{fabric: true})
		}
		return out
	}
	to := func(peers ...string) (out []link) {
		for _, p := range peers {
			out = append(out, link{peer: p})
		}
		return out
	}
	f := func(what string, a, b []link, mig bool, want int) {
		t.Helper()
		got := 0
		for _, l := range links([]card{{id: "A", busID: "a", links: a}, {id: "B", busID: "b", links: b, mig: mig}}) {
			if l.A != "A" || l.B != "B" || got > 0 {
				t.Errorf("%s: %+v", what, l)
			}
			got = l.Lanes
		}
		if got != want {
			t.Errorf("%s: %d links, want %d", what, got, want)
		}
	}
	f("none", nil, nil, false, 0)
	f("direct", to("b", "b", "c"), to("a", "a"), false, 2)
	f("to others", to("c"), to("d"), false, 0)
	f("on switches", on(18), on(18), false, 18)
	f("on switches, one with links down", on(18), on(16), false, 16)
	f("one off the switches", on(18), nil, false, 0)
	f("both ways", append(on(2), to("b", "b", "b")...), on(2), false, 3)
	f("one is cut into slices", on(18), on(18), true, 0)
}
