package cell

import (
	"cmp"
	"fmt"
	"slices"
)

func (s *Layout) link(links []Link) error {
	if len(links) > MaxLinks {
		return fmt.Errorf("%d links: state at most %d", len(links), MaxLinks)
	}
	if len(links) == 0 {
		return nil
	}
	n := s.Devices()
	s.edges = make([][]edge, n)
	for _, l := range links {
		switch {
		case l.A < 0 || l.B < 0 || l.A >= n || l.B >= n:
			return fmt.Errorf("link %d-%d: devices are 0 to %d", l.A, l.B, n-1)
		case l.A == l.B:
			return fmt.Errorf("link %d-%d: it must join two devices", l.A, l.B)
		case l.Lanes < 1 || l.Lanes > MaxLanes:
			return fmt.Errorf("link %d-%d: %d lanes: state 1 to %d", l.A, l.B, l.Lanes, MaxLanes)
		}
		s.edges[l.A] = append(s.edges[l.A], edge{int32(l.B), int32(l.Lanes)})
		s.edges[l.B] = append(s.edges[l.B], edge{int32(l.A), int32(l.Lanes)})
		s.lanes = max(s.lanes, int32(l.Lanes))
	}
	for d := range s.edges { // once each, with the most lanes
		slices.SortFunc(s.edges[d], func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(b.lanes, a.lanes))
		})
		s.edges[d] = slices.CompactFunc(s.edges[d], func(a, b edge) bool { return a.to == b.to })
	}
	return nil
}

// lanesAmong returns the lanes between these devices. They are in order.
func (s *Layout) lanesAmong(devices []int) int {
	sum := 0
	if s.edges == nil {
		return sum
	}
	for i, d := range devices {
		rest := devices[i+1:]
		for _, e := range s.edges[d] {
			if int(e.to) < d {
				continue
			}
			if _, both := slices.BinarySearch(rest, int(e.to)); both {
				sum += int(e.lanes)
			}
		}
	}
	return sum
}

// maskLanes is lanesAmong for a word of devices.
func (s *Layout) maskLanes(devices uint64) int {
	sum := 0
	if s.edges == nil {
		return sum
	}
	for d := range members(devices) {
		for _, e := range s.edges[d] {
			if int(e.to) > d && devices>>uint(e.to)&1 == 1 {
				sum += int(e.lanes)
			}
		}
	}
	return sum
}

// pickSteps bounds how many gains pickLinked looks at (about a millisecond), and so
// from how many cells it begins: from all where 64 devices or fewer are to choose
// from, from one where thousands are.
const pickSteps = 1 << 19

// pickLinked takes want of the cells (disjoint, of one size, best first) so that
// many lanes join them with each other and with what was taken before. From each
// cell in turn it grows a set by the cell with most lanes to it, and keeps the best
// set. That is not always the best there is, but it is for rings, meshes and pairs.
func (s *Layout) pickLinked(cells []int32, want int, before []int) []int32 {
	if s.edges == nil || want == 0 || want >= len(cells) {
		return cells[:min(want, len(cells))]
	}
	g := newGrower(s, cells, before)
	// No set of single devices has more than this.
	bound := want * (want - 1) / 2 * int(s.lanes)
	single := s.vs[cells[0]].size() == 1 && len(before) == 0
	var best []int32
	most := -1
	starts := max(1, pickSteps/(want*len(cells)))
	for start := range min(len(cells), starts) {
		if lanes := g.grow(start, want); lanes > most {
			most = lanes
			best = append(best[:0], g.picked...)
		}
		if single && most == bound {
			break
		}
	}
	for i, c := range best {
		best[i] = cells[c]
	}
	return best
}

// grower grows sets of cells along links.
type grower struct {
	s      *Layout
	cells  []int32
	of     []int32 // device to cell, -1: none of ours
	base   []int   // lanes of each cell in itself and to what was taken before
	gain   []int   // base, and lanes to what is picked
	in     []bool
	picked []int32 // places in cells
}

func newGrower(s *Layout, cells []int32, before []int) *grower {
	g := &grower{
		s: s, cells: cells, of: make([]int32, s.Devices()), base: make([]int, len(cells)),
		gain: make([]int, len(cells)), in: make([]bool, len(cells)),
	}
	for d := range g.of {
		g.of[d] = -1
	}
	for i, c := range cells {
		for d := s.vs[c].lo; d < s.vs[c].hi; d++ {
			g.of[d] = int32(i)
		}
	}
	for i, c := range cells {
		for d := s.vs[c].lo; d < s.vs[c].hi; d++ {
			for _, e := range s.edges[d] {
				if e.to > d && g.of[e.to] == int32(i) {
					g.base[i] += int(e.lanes)
				}
			}
		}
	}
	for _, d := range before {
		for _, e := range s.edges[d] {
			if i := g.of[e.to]; i >= 0 {
				g.base[i] += int(e.lanes)
			}
		}
	}
	return g
}

// grow picks want cells, the one at start first, and returns their lanes.
func (g *grower) grow(start, want int) int {
	copy(g.gain, g.base)
	clear(g.in)
	g.picked = g.picked[:0]
	sum := 0
	for next := start; ; {
		sum += g.gain[next]
		g.in[next] = true
		g.picked = append(g.picked, int32(next))
		if len(g.picked) == want {
			return sum
		}
		v := &g.s.vs[g.cells[next]]
		for d := v.lo; d < v.hi; d++ {
			for _, e := range g.s.edges[d] {
				if i := g.of[e.to]; i >= 0 {
					g.gain[i] += int(e.lanes)
				}
			}
		}
		next = -1
		for i := range g.cells {
			if !g.in[i] && (next < 0 || g.gain[i] > g.gain[next]) {
				next = i
			}
		}
	}
}
