package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// card is a GPU with its PCI path and the devices that it is to the node: itself, or its
// MIG slices.
type card struct {
	id      string
	busID   string
	mig     bool
	devices []string
	links   []link
	pciPath pciPath
}

// link is an NVLink to a peer's bus id, or to a switch.
type link struct {
	peer   string
	fabric bool // an NVSwitch
}

// topology makes the tree above the devices: sockets, PCIe switches, and GPUs that
// are cut into slices; with NVLink as a level of its own where it is one.
func topology(cards []card) *structs.NodeTopology {
	if len(cards) == 0 {
		return nil
	}
	cards = slices.Clone(cards)
	slices.SortFunc(cards, func(a, b card) int {
		return cmp.Or(cmp.Compare(uint(a.pciPath.socket), uint(b.pciPath.socket)), // -1, not known, comes last
			strings.Compare(a.busID, b.busID), strings.Compare(a.id, b.id))
	})
	t := &structs.NodeTopology{}
	sockets := map[int]bool{}
	for k, group := range switches(cards) {
		parent := ""
		if s := group[0].pciPath.socket; s >= 0 {
			parent = "socket-" + strconv.Itoa(s)
			if !sockets[s] {
				sockets[s] = true
				t.Cells = append(t.Cells, &structs.TopologyCell{ID: parent, Level: structs.LevelSocket})
			}
		}
		at := &structs.TopologyCell{ID: "pcie-" + strconv.Itoa(k), Level: structs.LevelPCIe, Parent: parent}
		t.Cells = append(t.Cells, at)
		for _, c := range group {
			if !c.mig {
				at.Devices = append(at.Devices, c.devices...)
			} else if len(c.devices) > 0 {
				t.Cells = append(t.Cells, &structs.TopologyCell{ID: c.id, Level: structs.LevelGPU, Parent: at.ID, Devices: c.devices})
			}
		}
	}
	t.Links = links(cards)
	nestLinks(t)
	return t
}

// switches groups cards by the lowest PCIe bridge that each shares with another. A
// card that shares none, or whose sharers share a lower one among themselves, is a
// group of one. What only the host bridge joins shares no switch.
func switches(cards []card) [][]card {
	below := map[string]int{}
	for _, c := range cards {
		for _, b := range c.pciPath.bridges {
			below[b]++
		}
	}
	var out [][]card
	at := map[string]int{}
	for _, c := range cards {
		shared := ""
		for _, b := range c.pciPath.bridges {
			if below[b] > 1 {
				shared = b
			}
		}
		if i, ok := at[shared]; ok && shared != "" {
			out[i] = append(out[i], c)
			continue
		}
		at[shared] = len(out)
		out = append(out, []card{c})
	}
	return out
}

// links finds the pairs of GPUs that are linked directly, or through NVSwitches, which
// join all that are on them. A GPU in MIG mode has none.
func links(cards []card) []*structs.DeviceLink {
	var out []*structs.DeviceLink
	lanes := func(c card, peer string) (direct, fabric int) {
		for _, l := range c.links {
			switch {
			case l.fabric:
				fabric++
			case l.peer == peer:
				direct++
			}
		}
		return direct, fabric
	}
	for i, a := range cards {
		for _, b := range cards[i+1:] {
			if a.mig || b.mig {
				continue
			}
			direct, fabricA := lanes(a, b.busID)
			_, fabricB := lanes(b, a.busID)
			if n := max(direct, min(fabricA, fabricB)); n > 0 {
				out = append(out, &structs.DeviceLink{A: a.id, B: b.id, Kind: "nvlink", Lanes: n})
			}
		}
	}
	return out
}

// nestLinks makes cells of level nvlink of the GPUs that are all linked with each
// other, where that is a level between those that there are: not the same GPUs as
// another cell, and no part of a cell without the rest of it.
func nestLinks(t *structs.NodeTopology) {
	for _, set := range linked(t.Links) {
		under := under(t)
		all := under[""]
		parent, smallest := "", len(all)
		fits := len(set) < len(all)
		for _, c := range t.Cells {
			have := under[c.ID]
			common := 0
			for id := range have {
				if set[id] {
					common++
				}
			}
			switch {
			case common == 0: // apart
			case common == len(set) && len(have) > common: // above
				if len(have) <= smallest {
					parent, smallest = c.ID, len(have)
				}
			case common < len(have) || common == len(set): // cut in two, or the same
				fits = false
			}
		}
		if fits {
			insert(t, parent, set, under)
		}
	}
}

// under returns the devices below each cell; those of "" are all.
func under(t *structs.NodeTopology) map[string]map[string]bool {
	parents := map[string]string{}
	for _, c := range t.Cells {
		parents[c.ID] = c.Parent
	}
	out := map[string]map[string]bool{"": {}}
	for _, c := range t.Cells {
		for _, id := range c.Devices {
			for at := c.ID; ; at = parents[at] {
				if out[at] == nil {
					out[at] = map[string]bool{}
				}
				out[at][id] = true
				if at == "" {
					break
				}
			}
		}
	}
	return out
}

// insert puts a cell of some of a parent's devices between them and it.
func insert(t *structs.NodeTopology, parent string, set map[string]bool, under map[string]map[string]bool) {
	n := 0
	for _, c := range t.Cells {
		if c.Level == structs.LevelNVLink {
			n++
		}
	}
	cell := &structs.TopologyCell{ID: fmt.Sprintf("nvlink-%d", n), Level: structs.LevelNVLink, Parent: parent}
	after, at := 0, len(t.Cells)
	for i, c := range t.Cells {
		if c.ID == parent {
			after = i + 1
			c.Devices = slices.DeleteFunc(c.Devices, func(id string) bool {
				if set[id] {
					cell.Devices = append(cell.Devices, id)
				}
				return set[id]
			})
		}
	}
	for i, c := range t.Cells {
		if c.Parent != parent {
			continue
		}
		for id := range under[c.ID] { // all of them are in the set, or none
			if set[id] {
				c.Parent = cell.ID
				at = min(at, i)
			}
			break
		}
	}
	if len(cell.Devices) > 0 {
		at = after
	}
	t.Cells = slices.Insert(t.Cells, at, cell)
}

// linked returns the sets of at least two GPUs in which each is linked with each and
// with none outside, by their first device.
func linked(links []*structs.DeviceLink) []map[string]bool {
	peers := map[string]map[string]bool{}
	var order []string
	join := func(a, b string) {
		if peers[a] == nil {
			peers[a] = map[string]bool{a: true}
			order = append(order, a)
		}
		peers[a][b] = true
	}
	for _, l := range links {
		join(l.A, l.B)
		join(l.B, l.A)
	}
	var out []map[string]bool
	done := map[string]bool{}
	for _, id := range order {
		whole := !done[id]
		for p := range peers[id] {
			whole = whole && len(peers[p]) == len(peers[id])
			for q := range peers[id] {
				whole = whole && peers[p][q]
			}
			done[p] = done[p] || whole
		}
		if whole {
			for p := range peers[id] {
				done[p] = true
			}
			out = append(out, peers[id])
		}
	}
	return out
}
