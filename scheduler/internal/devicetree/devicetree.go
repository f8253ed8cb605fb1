// Package devicetree reads the devices of a node in their places: a tree for each vendor and type, as the node reports it, or as follows from where
// its devices sit. It knows nothing of what is used of them.
package devicetree

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/idle"
	"github.com/nomadish/nomadish/structs"
)

// Tree is the devices of one vendor and type of a node, in their places.
// Devices are numbered in the order of the tree. Never changed once made.
type Tree struct {
	Vendor, Kind string
	Layout       *cell.Layout
	IDs          []string                      // by number
	Groups       []*structs.NodeDeviceResource // by number: the group that it is of
	Single       bool                          // all are of one group
	Sick         []int                         // numbers
	KindKey      uint64                        // of the first group
}

// Find returns a device's number.
func (t *Tree) Find(id string) (int, bool) {
	for i, have := range t.IDs {
		if have == id {
			return i, true
		}
	}
	return 0, false
}

// IsWell reports whether one of some trees has a device, and it is not bad.
func IsWell(trees []*Tree, id string) bool {
	return slices.ContainsFunc(trees, func(t *Tree) bool {
		at, found := t.Find(id)
		return found && !slices.Contains(t.Sick, at)
	})
}

// State returns the tree with nothing taken.
func (t *Tree) State() *cell.State {
	st := cell.NewState(t.Layout)
	for _, i := range t.Sick {
		st.SetHealthy(i, false)
	}
	return st
}

// Of reads the trees of a node's devices, in order of vendor and type. What is no tree
// (the server refuses such nodes) counts as devices without places. known are trees of a node that
// is probably alike: equal layouts are shared.
func Of(r *structs.NodeResources, known []*Tree) []*Tree {
	var out []*Tree
	b := NewBuilder(r)
	for _, d := range r.Devices {
		if slices.ContainsFunc(out, func(t *Tree) bool { return t.Vendor == d.Vendor && t.Kind == d.Type }) {
			continue
		}
		if t := b.build(d.Vendor, d.Type); t != nil {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Tree) int {
		return cmp.Or(strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.Kind, b.Kind))
	})
	for i, t := range out {
		if i < len(known) && known[i].Layout.Key() == t.Layout.Key() {
			t.Layout = known[i].Layout
		}
	}
	return out
}

// Builder makes device trees of one node.
type Builder struct {
	r     *structs.NodeResources
	Cells []*structs.TopologyCell
	links []*structs.DeviceLink
	Kids  map[string][]*structs.TopologyCell // by parent
}

// NewBuilder reads a node's cells: those that it reports, or what follows from where its devices sit.
func NewBuilder(r *structs.NodeResources) *Builder {
	b := &Builder{r: r, Kids: map[string][]*structs.TopologyCell{}}
	if r.Topology != nil && r.ValidateTopology() == nil {
		b.Cells, b.links = r.Topology.Cells, r.Topology.Links
	} else {
		b.Cells = cellsOfLocality(r)
	}
	for _, c := range b.Cells {
		b.Kids[c.Parent] = append(b.Kids[c.Parent], c)
	}
	return b
}

// cellsOfLocality makes the cells of a node that reports only where its devices sit.
func cellsOfLocality(r *structs.NodeResources) []*structs.TopologyCell {
	var cells []*structs.TopologyCell
	find := func(level string, number int, parent string) *structs.TopologyCell {
		id := level + "-" + strconv.Itoa(number)
		for _, c := range cells {
			if c.ID == id {
				return c
			}
		}
		c := &structs.TopologyCell{ID: id, Level: level, Parent: parent}
		cells = append(cells, c)
		return c
	}
	for _, d := range r.Devices {
		for _, one := range d.Instances {
			if one.Locality == nil {
				continue
			}
			socket := find(structs.LevelSocket, one.Locality.Socket, "")
			sw := find(structs.LevelPCIe, one.Locality.Switch, socket.ID)
			sw.Devices = append(sw.Devices, one.ID)
		}
	}
	return cells
}

// build makes the tree of one vendor and type; nil if there is no such device.
func (b *Builder) build(vendor, kind string) *Tree {
	t := &Tree{Vendor: vendor, Kind: kind, Single: true}
	healthy := map[string]bool{}
	group := map[string]*structs.NodeDeviceResource{}
	for _, d := range b.r.Devices {
		if d.Vendor != vendor || d.Type != kind {
			continue
		}
		for _, one := range d.Instances {
			if one != nil && group[one.ID] == nil {
				healthy[one.ID], group[one.ID] = one.Healthy, d
			}
		}
	}
	add := func(id string) bool {
		if group[id] == nil || slices.Contains(t.IDs, id) {
			return false
		}
		if !healthy[id] {
			t.Sick = append(t.Sick, len(t.IDs))
		}
		t.IDs, t.Groups = append(t.IDs, id), append(t.Groups, group[id])
		t.Single = t.Single && t.Groups[0] == group[id]
		return true
	}
	leaf := cell.Vertex{Level: cmp.Or(leafLevels[kind], structs.LevelGPU)}
	root := cell.Vertex{Level: structs.LevelNode}
	for _, c := range b.Kids[""] {
		if v, some := b.vertex(c, leaf, add); some {
			root.Children = append(root.Children, v)
		}
	}
	for _, d := range b.r.Devices { // those without a place, in their order
		for _, one := range d.Instances {
			if one != nil && add(one.ID) {
				root.Children = append(root.Children, leaf)
			}
		}
	}
	if len(t.IDs) == 0 {
		return nil
	}
	t.Layout = b.layout(root, t)
	t.KindKey = idle.KindKey(vendor, kind, t.Groups[0].Name)
	return t
}

// leafLevels are the levels of devices that are not of level "gpu".
var leafLevels = map[string]string{"mig": structs.LevelMIG}

// vertex makes the subtree of a cell; false: it holds no device of the kind.
func (b *Builder) vertex(c *structs.TopologyCell, leaf cell.Vertex, add func(string) bool) (cell.Vertex, bool) {
	v := cell.Vertex{Level: c.Level}
	for _, kid := range b.Kids[c.ID] {
		if k, some := b.vertex(kid, leaf, add); some {
			v.Children = append(v.Children, k)
		}
	}
	for _, id := range c.Devices {
		if add(id) {
			v.Children = append(v.Children, leaf)
		}
	}
	return v, len(v.Children) > 0
}

// layout makes the tree's layout; devices of levels in an order that contradicts itself are left
// without places.
func (b *Builder) layout(root cell.Vertex, t *Tree) *cell.Layout {
	var links []cell.Link
	for _, l := range b.links {
		x, okX := t.Find(l.A)
		y, okY := t.Find(l.B)
		if okX && okY && x != y {
			links = append(links, cell.Link{A: x, B: y, Lanes: max(1, l.Lanes)})
		}
	}
	if s, err := cell.NewLayout(levelOrder(root), root, links); err == nil {
		return s
	}
	flat := cell.Vertex{Level: structs.LevelNode}
	for range t.IDs {
		flat.Children = append(flat.Children, cell.Vertex{Level: structs.LevelGPU})
	}
	s, _ := cell.NewLayout([]string{structs.LevelGPU, structs.LevelNode}, flat, nil) // two levels are in order
	return s
}

// levelOrder lists the levels of a tree, lowest first: a level stands above all that
// occur below it.
func levelOrder(root cell.Vertex) []string {
	height := map[string]int{}
	var walk func(v cell.Vertex) int
	walk = func(v cell.Vertex) int {
		h := 0
		for _, kid := range v.Children {
			h = max(h, walk(kid)+1)
		}
		height[v.Level] = max(height[v.Level], h)
		return height[v.Level]
	}
	for range len(height) + 2 { // twice: what was found late moves what was found before
		walk(root)
	}
	levels := make([]string, 0, len(height))
	for l := range height { // sorted below
		levels = append(levels, l)
	}
	slices.SortFunc(levels, func(a, b string) int { return cmp.Or(cmp.Compare(height[a], height[b]), strings.Compare(a, b)) })
	return levels
}
