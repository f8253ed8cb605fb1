package cell

import (
	"fmt"
	"slices"
)

const (
	// MaxDevices is how many devices one Layout may have.
	MaxDevices = 4096
	// MaxLevels is how many levels may be named. A site has about ten.
	MaxLevels = 32
	// MaxLinks is how many links one Layout may have: a full mesh of 1,448 devices.
	MaxLinks = 1 << 20
	// MaxLanes is how many lanes one link may have. It keeps sums far from overflow.
	MaxLanes = 1 << 16

	wordDevices = 64 // up to here one machine word shows which devices are free
)

// Vertex is one place in a tree of devices. Without children it is a device.
type Vertex struct {
	Level    string   // one of the levels passed to [NewLayout]
	Children []Vertex // each of a strictly lower level
}

// Link is a direct link of two devices (NVLink).
type Link struct {
	A, B  int // devices
	Lanes int // how many lanes: 1 to MaxLanes
}

// Layout is a tree of devices: its levels, who hangs under whom, and direct links.
// It never changes, and any number of nodes and goroutines share one. Its devices
// are numbered from 0 in the order in which a walk, parents before children, meets
// them. It knows no names: the caller keeps those.
type Layout struct {
	levels []string
	vs     []vertex // parents before children, children in order
	leaf   []int32  // the vertex of each device
	need   []int32  // need[k]: size of the smallest vertex that holds k devices
	tops   []topSet // by level
	order  []int32  // see sortVertices
	edges  [][]edge // by device, in order of the other end; nil without links
	lanes  int32    // most lanes of one link
	key    string

	mask []uint64 // the devices of each vertex; only with at most wordDevices
	plan []uint64 // see plan.go; only with at most wordDevices
}

// vertex is a place in the tree. Its devices are lo..hi-1, and the vertices below
// it follow it, up to (not with) end.
type vertex struct {
	lo, hi int32
	end    int32
	parent int32  // -1: the root
	up     int32  // the lowest vertex above that holds more devices; -1: none
	class  int32  // equal for subtrees of equal structure
	plan   int32  // where its rows in Layout.plan begin
	above  uint32 // bit l: this vertex or one above it is of level l
	level  uint8  // in Layout.levels
}

func (v *vertex) size() int { return int(v.hi - v.lo) }

// topSet is where one level cuts the tree: the highest vertices that are of that
// level or a lower one, in order.
type topSet struct {
	vs     []int32
	widest [2]int // most devices of one of them; [1]: of one that is of the level itself
}

type edge struct{ to, lanes int32 }

// NewLayout makes a Layout. Levels are all levels that may occur, lowest first. It refuses a level
// that is not among them or not below its parent's, a level named twice, more than [MaxDevices],
// [MaxLevels] or [MaxLinks], and a link whose ends are not two devices of the tree. A link stated
// twice counts once, with its most lanes.
func NewLayout(levels []string, root Vertex, links []Link) (*Layout, error) {
	if len(levels) > MaxLevels {
		return nil, fmt.Errorf("device tree: %d levels: name at most %d", len(levels), MaxLevels)
	}
	b := builder{order: make(map[string]int, len(levels)), layout: &Layout{}, classes: map[string]int32{}}
	for i, name := range levels {
		if _, twice := b.order[name]; twice || name == "" {
			return nil, fmt.Errorf("device tree: level %q: name each level once, and not \"\"", name)
		}
		b.order[name] = i
	}
	if err := b.grow(&root, -1, len(levels)); err != nil {
		return nil, fmt.Errorf("device tree: %w", err)
	}
	b.nameLevels(levels)
	s := b.layout
	if err := s.link(links); err != nil {
		return nil, fmt.Errorf("device tree: %w", err)
	}
	b.classify()
	s.cutByLevel()
	s.needs()
	s.sortVertices()
	s.key = s.makeKey()
	if s.Devices() <= wordDevices {
		s.makePlan()
	}
	return s, nil
}

// builder holds what is needed only while a Layout is made.
type builder struct {
	layout  *Layout
	order   map[string]int // of all level names
	classes map[string]int32
}

// grow adds a vertex and all below it. Levels fall at every step, so it goes no
// deeper than there are levels.
func (b *builder) grow(in *Vertex, parent int32, below int) error {
	level, known := b.order[in.Level]
	switch {
	case !known:
		return fmt.Errorf("level %q: it is not among the levels named", in.Level)
	case level >= below:
		return fmt.Errorf("level %q: it must lie below its parent's level", in.Level)
	}
	s := b.layout
	at := int32(len(s.vs))
	s.vs = append(s.vs, vertex{lo: int32(len(s.leaf)), parent: parent, level: uint8(level)})
	if len(in.Children) == 0 {
		if len(s.leaf) == MaxDevices {
			return fmt.Errorf("more than %d devices: split the tree", MaxDevices)
		}
		s.leaf = append(s.leaf, at)
	}
	for i := range in.Children {
		if err := b.grow(&in.Children[i], at, level); err != nil {
			return err
		}
	}
	s.vs[at].hi, s.vs[at].end = int32(len(s.leaf)), int32(len(s.vs))
	return nil
}

// nameLevels keeps the levels that occur and numbers them anew; it also finds what
// each vertex has above it.
func (b *builder) nameLevels(levels []string) {
	s := b.layout
	occurs := make([]bool, len(levels))
	for i := range s.vs {
		occurs[s.vs[i].level] = true
	}
	number := make([]uint8, len(levels))
	for i, name := range levels {
		if occurs[i] {
			number[i] = uint8(len(s.levels))
			s.levels = append(s.levels, name)
		}
	}
	for i := range s.vs {
		v := &s.vs[i]
		v.level = number[v.level]
		v.above, v.up = 1<<v.level, v.parent
		if v.parent < 0 {
			continue
		}
		above := &s.vs[v.parent]
		v.above |= above.above
		if above.size() == v.size() {
			v.up = above.up
		}
	}
}

// classify assigns subtrees of equal structure the same class. Children come before
// their parents here.
func (b *builder) classify() {
	s := b.layout
	var id []byte
	for i := len(s.vs) - 1; i >= 0; i-- {
		v := &s.vs[i]
		id = append(id[:0], v.level)
		for c := int32(i) + 1; c < v.end; c = s.vs[c].end {
			n := s.vs[c].class
			id = append(id, byte(n), byte(n>>8), byte(n>>16))
		}
		class, seen := b.classes[string(id)]
		if !seen {
			class = int32(len(b.classes))
			b.classes[string(id)] = class
		}
		v.class = class
	}
}

func (s *Layout) cutByLevel() {
	s.tops = make([]topSet, len(s.levels))
	for i := range s.vs {
		v := &s.vs[i]
		over := len(s.levels) // the parent's level, or above all
		if v.parent >= 0 {
			over = int(s.vs[v.parent].level)
		}
		for l := int(v.level); l < over; l++ {
			t := &s.tops[l]
			t.vs = append(t.vs, int32(i))
			t.widest[0] = max(t.widest[0], v.size())
		}
		own := &s.tops[v.level]
		own.widest[1] = max(own.widest[1], v.size())
	}
}

func (s *Layout) needs() {
	s.need = make([]int32, s.Devices()+1)
	for i := range s.vs {
		size := s.vs[i].hi - s.vs[i].lo
		s.need[size] = size
	}
	for k := len(s.need) - 2; k > 0; k-- {
		if s.need[k] == 0 {
			s.need[k] = s.need[k+1]
		}
	}
}

// inWord reports whether States of this Layout are words, and its cuts are planned.
func (s *Layout) inWord() bool { return s.mask != nil }

// Devices is how many devices there are.
func (s *Layout) Devices() int { return len(s.leaf) }

// Levels returns the levels that occur, lowest first.
func (s *Layout) Levels() []string { return slices.Clone(s.levels) }

// Key is equal for Layouts of equal structure (levels that occur, who hangs under whom, links) and,
// but for chance in 2^128, for no others. It is short.
func (s *Layout) Key() string { return s.key }

// Common returns the level of the lowest vertex that holds all these devices; of one device, its
// own level. It is "" for none, and for a device that is not there.
func (s *Layout) Common(devices []int) string {
	if len(devices) == 0 {
		return ""
	}
	least, most := slices.Min(devices), slices.Max(devices)
	if least < 0 || most >= len(s.leaf) {
		return ""
	}
	v := s.leaf[least]
	for int(s.vs[v].hi) <= most {
		v = s.vs[v].parent
	}
	return s.levels[s.vs[v].level]
}
