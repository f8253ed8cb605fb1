package cell

import (
	"cmp"
	"slices"
)

// topFor gives the vertex of a level (see within) below v from which k devices are
// best taken, -1 if none holds them. Going down it enters the smallest child that
// will do, since that leaves the larger ones whole; among equal ones the first.
func (s *Shape) topFor(v int32, k int, w within) int32 {
	if int(s.vs[v].level) <= w.level {
		if s.vs[v].size() < k || w.exact && int(s.vs[v].level) != w.level {
			return -1
		}
		return v
	}
	var kids []int32
	for c := v + 1; c < s.vs[v].end; c = s.vs[c].end {
		if s.vs[c].size() >= k {
			kids = append(kids, c)
		}
	}
	slices.SortStableFunc(kids, func(a, b int32) int {
		return cmp.Compare(s.vs[a].size(), s.vs[b].size())
	})
	for _, c := range kids {
		if top := s.topFor(c, k, w); top >= 0 {
			return top
		}
	}
	return -1
}

// carve appends k devices of a wholly free v, in order, so that large cells are
// left: children stay whole, the largest first, as long as the others hold k. Of
// the others all are taken, but for what is left over (less than any of them),
// which stays in one. For even trees nothing leaves more.
func (s *Shape) carve(v int32, k int, devices []int) []int {
	at := &s.vs[v]
	if k == at.size() {
		for d := at.lo; d < at.hi; d++ {
			devices = append(devices, int(d))
		}
		return devices
	}
	if s.inWord() && at.size() <= tryAll {
		return s.take(v, k, within{level: int(at.level)}, devices)
	}
	var kids []int32
	flat := true
	for c := v + 1; c < at.end; c = s.vs[c].end {
		kids = append(kids, c)
		flat = flat && s.vs[c].size() == 1
	}
	from := len(devices)
	if flat {
		for _, c := range s.pickLinked(kids, k, nil) {
			devices = append(devices, int(s.vs[c].lo))
		}
		slices.Sort(devices[from:])
		return devices
	}
	slices.SortStableFunc(kids, func(a, b int32) int { // the later of equal ones stays whole
		return cmp.Or(cmp.Compare(s.vs[b].size(), s.vs[a].size()), cmp.Compare(b, a))
	})
	spare := at.size() - k
	opened := kids[:0]
	for _, c := range kids {
		if s.vs[c].size() <= spare {
			spare -= s.vs[c].size()
		} else {
			opened = append(opened, c)
		}
	}
	keeper := s.keeper(opened, spare)
	for _, c := range opened {
		if c == keeper {
			devices = s.carve(c, s.vs[c].size()-spare, devices)
		} else {
			devices = s.carve(c, s.vs[c].size(), devices)
		}
	}
	slices.Sort(devices[from:])
	return devices
}

// keeper gives in which of these cells what is left over stays, so that it is in
// the largest cells; among equal ones the first given. It is -1 if nothing is left.
func (s *Shape) keeper(cells []int32, spare int) int32 {
	if spare == 0 {
		return -1
	}
	best := cells[0]
	var most []int
	for _, c := range cells[1:] {
		if s.vs[c].class == s.vs[best].class {
			continue
		}
		if most == nil {
			most = s.left(best, spare)
		}
		if left := s.left(c, spare); slices.Compare(left, most) > 0 {
			best, most = c, left
		}
	}
	return best
}

// left gives the sizes of the cells, largest first, in which spare devices stay
// when the others are carved from v.
func (s *Shape) left(v int32, spare int) []int {
	taken := s.carve(v, s.vs[v].size()-spare, nil)
	var sizes []int
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
