package cells

import (
	"cmp"
	"slices"
)

// Kind names cells that are interchangeable within a chain.
type Kind struct {
	Level int // index in the chain's levels, the lowest first
	Size  int // of site cells: how many nodes they have; 0 within nodes
}

// Compare orders kinds: what a cell dissolves into comes before it.
func (k Kind) Compare(o Kind) int {
	return cmp.Or(cmp.Compare(k.Level, o.Level), cmp.Compare(k.Size, o.Size))
}

// part is how many cells of a kind another cell dissolves into.
type part struct {
	kind  Kind
	count int
}

// addPart adds a number of cells of a kind to a list in the order of kinds.
func addPart(parts []part, kind Kind, count int) []part {
	at, found := slices.BinarySearchFunc(parts, kind, func(p part, k Kind) int { return p.kind.Compare(k) })
	if found {
		parts[at].count += count
		return parts
	}
	return slices.Insert(parts, at, part{kind, count})
}

// line is the account of one kind: a row of Invariant S.
type line struct {
	kind   Kind
	parts  []part // what one cell of it dissolves into; shared, never changed
	mixed  bool   // its cells differ in their parts: each counts as those
	cells  int    // how many are registered; counted of site cells only
	free   int    // F: maximal free ones
	quota  int    // quota cells that are not bound, doomed ones included
	doomed int    // of those, the ones that the hardware cannot hold
}

// lines are in the order of their kinds.
type lines []line

func (ls lines) search(k Kind) (int, bool) {
	return slices.BinarySearchFunc(ls, k, func(l line, k Kind) int { return l.kind.Compare(k) })
}

// left returns what every kind has left when quotas are taken from what is free, in the order of the lines.
// quota returns how many quota cells of a line count.
func (ls lines) left(quota func(l *line) int) []int {
	left := make([]int, len(ls))
	for i := len(ls) - 1; i >= 0; i-- {
		l := &ls[i]
		left[i] += l.free - quota(l)
		if l.mixed {
			continue // nothing is free of it, as each counts as its parts
		}
		for _, p := range l.parts {
			if at, ok := ls.search(p.kind); ok {
				left[at] += p.count * left[i]
			}
		}
	}
	return left
}

// counted returns the number of quota cells that Invariant S counts: N.
func counted(l *line) int { return l.quota - l.doomed }

// lacking returns the highest kind of which less than nothing is left, and how many cells are short.
func (ls lines) lacking(left []int) (kind Kind, short int) {
	for i := len(ls) - 1; i >= 0; i-- {
		if left[i] < 0 {
			return ls[i].kind, -left[i]
		}
	}
	return Kind{}, 0
}

// room returns how many more quota cells of the kind at an index can be taken of what is left.
func (ls lines) room(left []int, at int) int {
	room := left[at]
	per := make([]int, len(ls)) // how many cells of each line one cell of the kind dissolves into
	per[at] = 1
	for i := at; i >= 0; i-- {
		if per[i] == 0 {
			continue
		}
		room = min(room, left[i]/per[i])
		if ls[i].mixed {
			continue
		}
		for _, p := range ls[i].parts {
			if to, ok := ls.search(p.kind); ok {
				per[to] += p.count * per[i]
			}
		}
	}
	return max(room, 0)
}

// take counts n quota cells of the kind at an index as taken of what is left.
func (ls lines) take(left []int, at, n int) {
	per := make([]int, len(ls))
	per[at] = n
	for i := at; i >= 0; i-- {
		if per[i] == 0 {
			continue
		}
		left[i] -= per[i]
		if ls[i].mixed {
			continue
		}
		for _, p := range ls[i].parts {
			if to, ok := ls.search(p.kind); ok {
				per[to] += p.count * per[i]
			}
		}
	}
}
