package cell

import "slices"

// Request is what one instance wants of one tree.
type Request struct {
	// Count is how many devices, at least 1.
	Count int
	// Share is what it wants of a device, in thousandths. 0 and 1000 are whole
	// devices; less goes only with a Count of 1.
	Share int
	// Level is the level under one vertex of which the devices shall lie. "", and a
	// level that the tree lacks, is the lowest one that holds Count.
	Level string
	// Required refuses whatever does not lie under one vertex of Level. If the tree
	// lacks that level, nothing is found.
	Required bool
	// Preferred are sizes of free cells, in devices, that are cut before all others that are larger
	// than the request needs, in this order.
	Preferred []int
	// Gather is for counts that no vertex of the tree has (2 GPUs where switches have
	// 4): devices left over under one vertex of the level are taken together before
	// another free cell is cut.
	Gather bool
	// Allowed is the set of devices that match; nil is all. The others count as not free.
	Allowed func(device int) bool
}

// Choice is what was found for a Request.
type Choice struct {
	Devices []int  // in order
	Level   string // of the lowest vertex that holds them all
	Cell    int    // devices in the maximal free cell they were cut from; 0: not from one such cell
}

// Find returns the devices that a request gets, and false if there are none for it. It takes
// nothing. The same State and Request always return the same Choice.
//
// Devices under one vertex of the level are tried first, then of the next higher one
// and so on, unless the level is required. At each level: a free cell of the smallest
// size that holds the count; else one of a preferred size; else the smallest larger
// one. Among equal cells the one whose parent (then whose grandparent, and so on) is
// most used, then the one that provides more linked devices, then the first. What is not
// taken of the cell stays as the largest possible cells. If no free cell holds the
// count, the lowest vertex with enough free devices provides several cells.
//
// A share goes to the most used device that still fits, else to a free device found
// as for a count of 1.
//
// Source: semantics part 2, "Buddy allocation", "topology", "Shares".
func (st *State) Find(a Request) (Choice, bool) {
	s := st.layout
	if a.Count < 1 || a.Count > s.Devices() || a.Share < 0 || a.Share > Whole {
		return Choice{}, false
	}
	w := within{level: slices.Index(s.levels, a.Level), exact: a.Required && a.Level != ""}
	if w.exact && w.level < 0 {
		return Choice{}, false
	}
	n := st.view(a.Allowed)
	if a.Share != 0 && a.Share != Whole {
		if a.Count != 1 {
			return Choice{}, false
		}
		if d := st.partly(&n, &a, w); d >= 0 {
			return Choice{Devices: []int{d}, Level: s.levels[s.vs[s.leaf[d]].level]}, true
		}
	}
	if n.freeIn(0) < a.Count {
		return Choice{}, false
	}
	var room [wordDevices]int32
	f := finder{view: n, count: a.Count, preferred: a.Preferred}
	f.gather = a.Gather && int(s.need[a.Count]) > a.Count
	cells := n.cells(room[:0])
	for w.level = max(w.level, 0); w.level < len(s.levels); w.level++ {
		if c, found := f.at(w, cells); found || w.exact {
			return c, found
		}
	}
	return Choice{}, false
}

// partly returns the most used device, in part taken, that still has room for a share, and -1 if
// there is none. Among equal ones: whose parent is most used, then the first.
func (st *State) partly(n *view, a *Request, w within) int {
	if st.partial == 0 {
		return -1
	}
	s, taken, best := st.layout, st.taken(), -1
	for d, reserved := range taken {
		if reserved <= 0 || Whole-int(reserved) < a.Share || best >= 0 && reserved < taken[best] {
			continue
		}
		if st.isSick(d) || w.exact && s.vs[s.leaf[d]].above>>uint(w.level)&1 == 0 {
			continue
		}
		if a.Allowed != nil && !a.Allowed(d) {
			continue
		}
		if best < 0 || reserved > taken[best] || n.compareUse(s.leaf[d], s.leaf[best]) < 0 {
			best = d
		}
	}
	return best
}

// compareUse is below 0 if the vertices above a are more used than those above b,
// the nearest first.
func (n *view) compareUse(a, b int32) int {
	vs := n.layout.vs
	for x, y := vs[a].up, vs[b].up; x != y && x >= 0 && y >= 0; x, y = vs[x].up, vs[y].up {
		if d := n.used(y) - n.used(x); d != 0 {
			return d
		}
	}
	return 0
}

// finder looks for whole devices.
type finder struct {
	view
	count     int
	preferred []int
	gather    bool
}

// at looks under the vertices of one level. Cells are the maximal free ones, in order;
// they are handed down, not kept, so that they need no allocation.
func (f *finder) at(w within, cells []int32) (Choice, bool) {
	s := f.layout
	kind := 0
	if w.exact {
		kind = 1
	}
	if s.tops[w.level].widest[kind] < f.count {
		return Choice{}, false
	}
	if f.gather {
		if v := f.lowest(w, cells); v >= 0 {
			return f.gathered(v, cells), true
		}
	}
	if c := f.cell(w, cells); c >= 0 {
		devices := s.take(c, f.count, w, make([]int, 0, f.count))
		return Choice{Devices: devices, Level: s.Common(devices), Cell: s.vs[c].size()}, true
	}
	if v := f.lowest(w, nil); v >= 0 {
		return f.gathered(v, cells), true
	}
	return Choice{}, false
}

func (f *finder) gathered(v int32, cells []int32) Choice {
	devices := f.pieces(v, cells)
	return Choice{Devices: devices, Level: f.layout.Common(devices)}
}

// cell returns the free cell that is best cut, -1 if none holds the count.
func (f *finder) cell(w within, cells []int32) int32 {
	best, bestTurn := int32(-1), 0
	for _, c := range cells {
		if !f.layout.contains(c, f.count, w) {
			continue
		}
		turn := f.turn(f.layout.vs[c].size())
		if best < 0 || turn < bestTurn || turn == bestTurn && f.before(c, best, w) {
			best, bestTurn = c, turn
		}
	}
	return best
}

// turn orders sizes of cells: the smallest that holds the count, then the preferred
// ones, then by size.
func (f *finder) turn(size int) int {
	if size == int(f.layout.need[f.count]) {
		return 0
	}
	if i := slices.Index(f.preferred, size); i >= 0 {
		return 1 + i
	}
	return 1 + len(f.preferred) + size
}

// before ranks a cell against an earlier one of the same size.
func (f *finder) before(c, earlier int32, w within) bool {
	if d := f.compareUse(c, earlier); d != 0 {
		return d < 0
	}
	s := f.layout
	if s.edges == nil {
		return false
	}
	if s.inWord() {
		return s.maskLanes(s.row(c, w)[f.count-1]) > s.maskLanes(s.row(earlier, w)[f.count-1])
	}
	return s.lanesAmong(s.take(c, f.count, w, nil)) > s.lanesAmong(s.take(earlier, f.count, w, nil))
}
