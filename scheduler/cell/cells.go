package cell

import "math/bits"

// view is what is free, for one question. A free cell is a vertex whose devices are
// all free; a maximal one lies in no other. They are not stored: which cells merge
// when devices are released follows from which devices are free.
type view struct {
	layout *Layout
	free   uint64  // with at most wordDevices
	under  []int32 // free devices under each vertex, with more
}

// view returns what is free. Devices that are not allowed count as not free.
func (st *State) view(allowed func(device int) bool) view {
	n := view{layout: st.layout, free: st.free}
	if st.wide == nil {
		if allowed != nil {
			for set := st.free; set != 0; set &= set - 1 {
				if d := bits.TrailingZeros64(set); !allowed(d) {
					n.free &^= 1 << uint(d)
				}
			}
		}
		return n
	}
	n.under = st.wide.free
	if allowed == nil {
		return n
	}
	n.under = make([]int32, len(st.wide.free))
	for d, leaf := range st.layout.leaf {
		if st.wide.free[leaf] == 1 && allowed(d) {
			for v := leaf; v >= 0; v = st.layout.vs[v].parent {
				n.under[v]++
			}
		}
	}
	return n
}

func (n *view) freeIn(v int32) int {
	if n.under != nil {
		return int(n.under[v])
	}
	return bits.OnesCount64(n.free & n.layout.mask[v])
}

// used is how many devices of a vertex are not free.
func (n *view) used(v int32) int { return n.layout.vs[v].size() - n.freeIn(v) }

// cells appends the maximal free cells, in order.
func (n *view) cells(into []int32) []int32 {
	vs := n.layout.vs
	for v := int32(0); v < int32(len(vs)); {
		switch n.freeIn(v) {
		case vs[v].size():
			into = append(into, v)
			v = vs[v].end
		case 0:
			v = vs[v].end
		default:
			v++
		}
	}
	return into
}

// CellsBySize is how many maximal free cells hold 1, 2-3, 4-7, 8-15, and 16 or more
// devices. All devices of a free cell are healthy and wholly free, and a maximal one
// lies in no other.
func (st *State) CellsBySize() (sizes [5]int) {
	n := st.view(nil)
	var room [wordDevices]int32
	for _, c := range n.cells(room[:0]) {
		sizes[min(bits.Len(uint(st.layout.vs[c].size())), len(sizes))-1]++
	}
	return sizes
}

// LevelCells is how many maximal free cells there are of one level.
type LevelCells struct {
	Level string
	Cells int
}

// CellsByLevel returns the maximal free cells by level, lowest level first. Every level that occurs
// has its line.
func (st *State) CellsByLevel() []LevelCells {
	s := st.layout
	lines := make([]LevelCells, len(s.levels))
	for i, name := range s.levels {
		lines[i].Level = name
	}
	n := st.view(nil)
	for _, c := range n.cells(nil) {
		lines[s.vs[c].level].Cells++
	}
	return lines
}
