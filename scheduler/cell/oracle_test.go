package cell

import (
	"cmp"
	"slices"
)

// oracle answers as State does, from the words of the specification and nothing
// else: it keeps a list of devices and tries all vertices and all sets of devices.
type oracle struct {
	vs    []place // parents before children
	taken []int
	sick  []bool
	links []Link
}

type place struct {
	level   string
	parent  int // -1: the root
	devices []int
}

func newOracle(root Vertex, links []Link) *oracle {
	o := &oracle{links: links}
	o.add(root, -1)
	return o
}

func (o *oracle) add(v Vertex, parent int) {
	at := len(o.vs)
	o.vs = append(o.vs, place{level: v.Level, parent: parent})
	if len(v.Children) == 0 {
		for p := at; p >= 0; p = o.vs[p].parent {
			o.vs[p].devices = append(o.vs[p].devices, len(o.taken))
		}
		o.taken, o.sick = append(o.taken, 0), append(o.sick, false)
	}
	for _, c := range v.Children {
		o.add(c, at)
	}
}

// free returns which devices are healthy, untouched and allowed.
func (o *oracle) free(allowed func(int) bool) []bool {
	free := make([]bool, len(o.taken))
	for d := range free {
		free[d] = !o.sick[d] && o.taken[d] == 0 && (allowed == nil || allowed(d))
	}
	return free
}

func count(in []bool, devices []int) (n int) {
	for _, d := range devices {
		if in[d] {
			n++
		}
	}
	return n
}

// cells returns the vertices that are wholly free and whose parents are not.
func (o *oracle) cells(free []bool) (cells []int) {
	whole := func(v int) bool { return count(free, o.vs[v].devices) == len(o.vs[v].devices) }
	for v, at := range o.vs {
		if whole(v) && (at.parent < 0 || !whole(at.parent)) {
			cells = append(cells, v)
		}
	}
	return cells
}

func rank(level string) int { return slices.Index(levels, level) }

// under reports whether devices lie under one vertex of a level: of just that one if exact, else of
// that or a lower one.
func (o *oracle) under(devices []int, level string, exact bool) bool {
	return slices.ContainsFunc(o.vs, func(v place) bool {
		return (v.level == level || !exact && rank(v.level) < rank(level)) && containsAll(v.devices, devices)
	})
}

func containsAll(of, devices []int) bool {
	return !slices.ContainsFunc(devices, func(d int) bool { return !slices.Contains(of, d) })
}

func (o *oracle) common(devices []int) string {
	best := o.vs[0]
	for _, v := range o.vs {
		if containsAll(v.devices, devices) && rank(v.level) < rank(best.level) {
			best = v
		}
	}
	return best.level
}

func (o *oracle) lanes(devices []int) (sum int) {
	best := map[[2]int]int{}
	for _, l := range o.links {
		if slices.Contains(devices, l.A) && slices.Contains(devices, l.B) {
			pair := [2]int{min(l.A, l.B), max(l.A, l.B)}
			best[pair] = max(best[pair], l.Lanes)
		}
	}
	for _, lanes := range best {
		sum += lanes
	}
	return sum
}

// parentsUse returns how much is not free in the vertices above, nearest first; one that holds no
// more devices than the one below it is no place of its own.
func (o *oracle) parentsUse(free []bool, v int) (use [][2]int) {
	for size := len(o.vs[v].devices); v >= 0; v = o.vs[v].parent {
		if n := len(o.vs[v].devices); n > size {
			use = append(use, [2]int{v, n - count(free, o.vs[v].devices)})
			size = n
		}
	}
	return use
}

// moreUsed compares two cells: below 0 if a comes first.
func (o *oracle) moreUsed(free []bool, a, b int) int {
	x, y := o.parentsUse(free, a), o.parentsUse(free, b)
	for i := range min(len(x), len(y)) {
		if x[i][0] == y[i][0] {
			return 0
		}
		if d := cmp.Compare(y[i][1], x[i][1]); d != 0 {
			return d
		}
	}
	return 0
}

// sets returns all sets of k of the devices, the lowest numbers first.
func sets(devices []int, k int) (all [][]int) {
	if k == 0 {
		return [][]int{nil}
	}
	for i := 0; i+k <= len(devices); i++ {
		for _, rest := range sets(devices[i+1:], k-1) {
			all = append(all, append([]int{devices[i]}, rest...))
		}
	}
	return all
}

// left returns the sizes of the cells that stay of a free vertex, largest first.
func (o *oracle) left(v int, taken []int) (sizes []int) {
	free := make([]bool, len(o.taken))
	for _, d := range o.vs[v].devices {
		free[d] = !slices.Contains(taken, d)
	}
	for _, c := range o.cells(free) {
		sizes = append(sizes, len(o.vs[c].devices))
	}
	slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
	return sizes
}

// cut returns the best set of k devices of a free cell under a level, nil if there is none.
func (o *oracle) cut(v, k int, level string, exact bool) (best []int) {
	for _, set := range sets(o.vs[v].devices, k) {
		if !o.under(set, level, exact) {
			continue
		}
		if best == nil || cmp.Or(
			slices.Compare(o.left(v, best), o.left(v, set)),
			cmp.Compare(rank(o.common(set)), rank(o.common(best))),
			cmp.Compare(o.lanes(best), o.lanes(set))) < 0 {
			best = set
		}
	}
	return best
}

// find is Find for whole devices.
func (o *oracle) find(a Request) (Choice, bool) {
	free := o.free(a.Allowed)
	occurs := func(level string) bool {
		return slices.ContainsFunc(o.vs, func(v place) bool { return v.level == level })
	}
	first := 0
	if occurs(a.Level) {
		first = rank(a.Level)
	} else if a.Required && a.Level != "" {
		return Choice{}, false
	}
	exact := a.Required && a.Level != ""
	for _, level := range levels[first:] {
		if !occurs(level) {
			continue
		}
		if c, found := o.findUnder(a, free, level, exact); found || exact {
			return c, found
		}
	}
	return Choice{}, false
}

func (o *oracle) findUnder(a Request, free []bool, level string, exact bool) (Choice, bool) {
	need := len(o.taken)
	for _, v := range o.vs {
		if n := len(v.devices); n >= a.Count {
			need = min(need, n)
		}
	}
	type candidate struct {
		cell, turn int
		devices    []int
	}
	var all []candidate
	for _, v := range o.cells(free) {
		size := len(o.vs[v].devices)
		turn := 1000 + size
		if i := slices.Index(a.Preferred, size); i >= 0 {
			turn = 100 + i
		}
		if size == need {
			turn = 0
		}
		if size < a.Count {
			continue
		}
		if devices := o.cut(v, a.Count, level, exact); devices != nil {
			all = append(all, candidate{v, turn, devices})
		}
	}
	if a.Gather && need > a.Count {
		if c, found := o.pieces(a, free, level, exact, true); found {
			return c, true
		}
	}
	if len(all) > 0 {
		best := slices.MinFunc(all, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(x.turn, y.turn), o.moreUsed(free, x.cell, y.cell),
				cmp.Compare(o.lanes(y.devices), o.lanes(x.devices)), cmp.Compare(x.cell, y.cell))
		})
		return Choice{best.devices, o.common(best.devices), len(o.vs[best.cell].devices)}, true
	}
	return o.pieces(a, free, level, exact, false)
}

// pieces returns what is taken when no cell holds the count. Of linked devices it says only the
// sizes of the cells right: see checkChoice.
func (o *oracle) pieces(a Request, free []bool, level string, exact, small bool) (Choice, bool) {
	var from []int
	for v, at := range o.vs {
		if small && slices.ContainsFunc(o.vs, func(c place) bool { // a free cell under v, or v under one, that holds all
			return count(free, c.devices) == len(c.devices) && len(c.devices) >= a.Count && (containsAll(at.devices, c.devices) || containsAll(c.devices, at.devices))
		}) {
			continue
		}
		if count(free, at.devices) >= a.Count && o.under(at.devices, level, exact) {
			from = append(from, v)
		}
	}
	if len(from) == 0 {
		return Choice{}, false
	}
	v := slices.MinFunc(from, func(x, y int) int {
		fx, fy := count(free, o.vs[x].devices), count(free, o.vs[y].devices)
		return cmp.Or(cmp.Compare(rank(o.vs[x].level), rank(o.vs[y].level)), cmp.Compare(fx, fy),
			cmp.Compare(len(o.vs[y].devices)-fy, len(o.vs[x].devices)-fx), cmp.Compare(x, y))
	})
	cells := o.cells(free)
	cells = slices.DeleteFunc(cells, func(c int) bool { return !containsAll(o.vs[v].devices, o.vs[c].devices) })
	var devices []int
	for lack := a.Count; lack > 0; lack = a.Count - len(devices) {
		best := slices.MinFunc(cells, func(x, y int) int {
			sx, sy := len(o.vs[x].devices), len(o.vs[y].devices)
			if fits := sx <= lack; fits != (sy <= lack) {
				return map[bool]int{true: -1, false: 1}[fits]
			} else if fits {
				sx, sy = sy, sx // the largest that fits, else the smallest
			}
			return cmp.Or(cmp.Compare(sx, sy), o.moreUsed(free, x, y), cmp.Compare(x, y))
		})
		if len(o.vs[best].devices) <= lack {
			devices = append(devices, o.vs[best].devices...)
		} else {
			devices = append(devices, o.cut(best, lack, o.vs[0].level, false)...)
		}
		cells = slices.DeleteFunc(cells, func(c int) bool { return c == best })
	}
	slices.Sort(devices)
	return Choice{devices, o.common(devices), 0}, true
}

// share returns which device gets a share, -1 if none that is in part taken can.
func (o *oracle) share(a Request) int {
	free := o.free(a.Allowed)
	leaf := func(d int) int {
		return slices.IndexFunc(o.vs, func(v place) bool { return slices.Equal(v.devices, []int{d}) })
	}
	best := -1
	for d, taken := range o.taken {
		if taken == 0 || o.sick[d] || taken+a.Share > Whole || a.Allowed != nil && !a.Allowed(d) ||
			a.Required && a.Level != "" && !o.under([]int{d}, a.Level, true) {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(o.taken[best], taken), o.moreUsed(free, leaf(d), leaf(best))) < 0 {
			best = d
		}
	}
	return best
}
