package cell

import (
	"slices"
	"testing"
)

var levels = []string{"mig", "gpu", "nvlink", "pcie", "socket", "node"}

// even makes a tree in which all vertices of a level have as many children: counts are
// of the root, of its children, and so on; names are their levels, the root first.
func even(counts []int, names ...string) Vertex {
	v := Vertex{Level: names[0]}
	if len(counts) == 0 {
		return v
	}
	for range counts[0] {
		v.Children = append(v.Children, even(counts[1:], names[1:]...))
	}
	return v
}

// eight is the node of the golden examples.
func eight() Vertex { return even([]int{2, 2, 2}, "node", "socket", "pcie", "gpu") }

func of(level string, children ...Vertex) Vertex {
	return Vertex{Level: level, Children: children}
}

func many(n int, v Vertex) []Vertex { return slices.Repeat([]Vertex{v}, n) }

func layout(t testing.TB, root Vertex, links ...Link) *Layout {
	t.Helper()
	s, err := NewLayout(levels, root, links)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func state(t testing.TB, root Vertex, links ...Link) *State {
	t.Helper()
	return NewState(layout(t, root, links...))
}

// freeCells returns the maximal free cells as lists of devices.
func freeCells(st *State) (cells [][]int) {
	n := st.view(nil)
	for _, c := range n.cells(nil) {
		var devices []int
		for d := st.layout.vs[c].lo; d < st.layout.vs[c].hi; d++ {
			devices = append(devices, int(d))
		}
		cells = append(cells, devices)
	}
	return cells
}

func takeAll(st *State, devices ...int) {
	for _, d := range devices {
		st.Take(d, Whole)
	}
}

func giveAll(st *State, devices ...int) {
	for _, d := range devices {
		st.Give(d, Whole)
	}
}

// mustFind asks, checks that the answer is usable, and takes nothing.
func mustFind(t testing.TB, st *State, a Request) Choice {
	t.Helper()
	c, found := st.Find(a)
	if !found {
		t.Fatalf("nothing found for %+v", a)
	}
	return c
}
