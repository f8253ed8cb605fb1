package cell

import (
	"cmp"
	"slices"
)

// When no free cell holds the count, several are taken.

// lowest returns the vertex of the lowest level that has enough free devices, -1 if none has; of
// those without a free cell that holds the count, if cells are given. Among them: the one with
// fewest left over, then the most used, then the first.
func (f *finder) lowest(w within, cells []int32) int32 {
	s, best, bestFree := f.layout, int32(-1), 0
	for v := int32(0); v < int32(len(s.vs)); v++ {
		at := &s.vs[v]
		free := f.freeIn(v)
		if free < f.count {
			v = at.end - 1 // nor has any below it
			continue
		}
		if int(at.level) > w.level || w.exact && at.above>>uint(w.level)&1 == 0 {
			continue
		}
		if best >= 0 && cmp.Or(
			cmp.Compare(at.level, s.vs[best].level),
			cmp.Compare(free, bestFree),
			cmp.Compare(s.vs[best].size(), at.size()),
		) >= 0 {
			continue
		}
		if f.containsOne(v, cells) {
			continue
		}
		best, bestFree = v, free
	}
	return best
}

// containsOne reports whether v lies in one of the cells, or one that holds the count in v.
func (f *finder) containsOne(v int32, cells []int32) bool {
	at := &f.layout.vs[v]
	return slices.ContainsFunc(cells, func(c int32) bool {
		cell := &f.layout.vs[c]
		return cell.lo < at.hi && at.lo < cell.hi && cell.size() >= f.count
	})
}

// pieces takes the count from the free cells below v, none of which holds it: whole
// ones, the largest that fit first, and at the end a part of the smallest one left if
// that must be. Among equal cells: linked ones, then as in before.
func (f *finder) pieces(v int32, free []int32) []int {
	s := f.layout
	from, _ := slices.BinarySearch(free, v)
	to, _ := slices.BinarySearch(free, s.vs[v].end)
	cells := slices.Clone(free[from:to])
	slices.SortStableFunc(cells, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.vs[b].size(), s.vs[a].size()), f.compareUse(a, b))
	})
	devices := make([]int, 0, f.count)
	split := int32(-1)
	for len(cells) > 0 {
		size, same := s.vs[cells[0]].size(), 1
		for same < len(cells) && s.vs[cells[same]].size() == size {
			same++
		}
		want := min((f.count-len(devices))/size, same)
		picked := s.pickLinked(cells[:same], want, devices)
		for _, c := range picked {
			for d := s.vs[c].lo; d < s.vs[c].hi; d++ {
				devices = append(devices, int(d))
			}
		}
		if want < same {
			split = spared(cells[:same], picked)
		}
		cells = cells[same:]
	}
	if lack := f.count - len(devices); lack > 0 && split >= 0 {
		devices = s.take(split, lack, within{level: int(s.vs[split].level)}, devices)
	}
	slices.Sort(devices)
	return devices
}

// spared returns the first of the cells that was not picked. One was not.
func spared(cells, picked []int32) int32 {
	for i, c := range cells {
		if i == len(picked) || c != picked[i] && !slices.Contains(picked, c) {
			return c
		}
	}
	return -1
}
