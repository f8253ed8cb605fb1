package cell

import (
	"cmp"
	"slices"
)

// topFor returns the vertex of a level (see within) below v from which k devices are best taken, -1
// if none holds them. Going down it enters the smallest child that will do, since that leaves the
// larger ones whole; among equal ones that in which larger cells are left, then the first.
func (s *Layout) topFor(v int32, k int, w within) int32 {
	at := &s.vs[v]
	if int(at.level) <= w.level {
		if at.size() < k || w.exact && int(at.level) != w.level {
			return -1
		}
		return v
	}
	best, top := int32(-1), int32(-1)
	var most []int // what best leaves; made on first use
	for c := v + 1; c < at.end; c = s.vs[c].end {
		kid := &s.vs[c]
		if kid.size() < k || best >= 0 && (kid.size() > s.vs[best].size() || kid.class == s.vs[best].class) {
			continue
		}
		found := s.topFor(c, k, w)
		if found < 0 {
			continue
		}
		if best >= 0 && kid.size() == s.vs[best].size() {
			if most == nil {
				most = s.left(best, s.carve(top, k, nil))
			}
			left := s.left(c, s.carve(found, k, nil))
			if slices.Compare(left, most) <= 0 {
				continue
			}
			best, top, most = c, found, left
			continue
		}
		best, top, most = c, found, nil
	}
	return top
}

// left returns the sizes of the cells, largest first, that are left of a wholly free v.
func (s *Layout) left(v int32, taken []int) (sizes []int) {
	for x := v; x < s.vs[v].end; {
		at := &s.vs[x]
		i, _ := slices.BinarySearch(taken, int(at.lo))
		if i < len(taken) && taken[i] < int(at.hi) {
			x++
			continue
		}
		sizes = append(sizes, at.size())
		x = at.end
	}
	slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
	return sizes
}

// carve appends k devices of a wholly free v, in order, so that large cells are
// left: of all vertices below v the largest one that is not more than what stays is
// kept, then the largest that can be kept beside it, and so on.
func (s *Layout) carve(v int32, k int, devices []int) []int {
	at := &s.vs[v]
	switch {
	case k == at.size():
		for d := at.lo; d < at.hi; d++ {
			devices = append(devices, int(d))
		}
		return devices
	case s.inWord() && at.size() <= tryAll:
		return s.take(v, k, within{level: int(at.level)}, devices)
	}
	kids, flat := s.children(v)
	from := len(devices)
	if s.edges != nil && flat {
		for _, c := range s.pickLinked(kids, k, nil) {
			devices = append(devices, int(s.vs[c].lo))
		}
		slices.Sort(devices[from:])
		return devices
	}
	kept := s.keep(v, at.size()-k)
	if s.edges == nil {
		for d, keep := range kept {
			if !keep {
				devices = append(devices, int(at.lo)+d)
			}
		}
		return devices
	}
	for _, c := range kids { // as many of each child, but linked ones
		take := 0
		for _, keep := range kept[s.vs[c].lo-at.lo : s.vs[c].hi-at.lo] {
			if !keep {
				take++
			}
		}
		if take > 0 {
			devices = s.carve(c, take, devices)
		}
	}
	return devices
}

// children returns the children of a vertex, and whether they are all devices.
func (s *Layout) children(v int32) (kids []int32, flat bool) {
	flat = true
	for c := v + 1; c < s.vs[v].end; c = s.vs[c].end {
		kids = append(kids, c)
		flat = flat && s.vs[c].size() == 1
	}
	return kids, flat
}

// keep returns which devices of v stay when so many do.
func (s *Layout) keep(v int32, stay int) []bool {
	root := &s.vs[v]
	kept := make([]bool, root.size())
	for _, c := range s.order {
		if stay == 0 {
			break
		}
		at := &s.vs[c]
		if c < v || c >= root.end || at.size() > stay {
			continue
		}
		cell := kept[at.lo-root.lo : at.hi-root.lo]
		if cell[0] { // a larger cell around it is kept
			continue
		}
		for i := range cell {
			cell[i] = true
		}
		stay -= at.size()
	}
	return kept
}

// sortVertices makes the order in which vertices are kept: the larger first. Of
// equal ones that which has the smaller cells in it, since what is kept whole cannot
// be kept in parts; then the last, so that the first devices are taken.
func (s *Layout) sortVertices() {
	within := map[int32][]int{} // by class: sizes of the cells below, largest first
	for i := range s.vs {
		v := &s.vs[i]
		if _, known := within[v.class]; known {
			continue
		}
		var sizes []int
		for c := int32(i) + 1; c < v.end; c++ {
			if s.vs[c].size() < s.vs[s.vs[c].parent].size() {
				sizes = append(sizes, s.vs[c].size())
			}
		}
		slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
		within[v.class] = sizes
	}
	s.order = make([]int32, len(s.vs))
	for i := range s.order {
		s.order[i] = int32(i)
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		x, y := &s.vs[a], &s.vs[b]
		if d := cmp.Compare(y.size(), x.size()); d != 0 {
			return d
		}
		if x.class != y.class {
			if d := slices.Compare(within[x.class], within[y.class]); d != 0 {
				return d
			}
		}
		return cmp.Compare(b, a)
	})
}
