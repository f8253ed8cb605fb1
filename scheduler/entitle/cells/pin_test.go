package cells

import (
	"errors"
	"fmt"
	"testing"
)

// TestPinOfASizeThatIsNoMore: a pinned rack keeps its quota cell when no rack has its size any more, also where others' cells are doomed then.
func TestPinOfASizeThatIsNoMore(t *testing.T) {
	e := twoRacks(t)
	e.Give("A", rack(2), 1, 0)
	if err := e.Pin(Cell{Site: `/0:"r1"`}, rack(2), "A"); err != nil {
		t.Fatal(err)
	}
	e.Give("B", whole, 2, 1)
	e.DeleteNode("r1-n0")
	e.DeleteNode("r2-n0")
	e.PutNode(Node{ID: "r2-n1", Sites: []string{"r2"}}) // not ready
	if a, b := e.Chain().Account("A", rack(2)), e.Chain().Account("B", whole); a.Away != 1 || b.Doomed != 1 {
		t.Errorf("the pinned rack is %+v, the nodes are %+v", a, b)
	}
	if err := e.Chain().Check(); err != nil {
		t.Error(err)
	}
}

// TestPinsOfNodesThatAreAway: of a cell that is not ready no part may be pinned that lies in a pinned one, or around it, as both would have to be bound when
// it is. What is used of it by a claim is in no pin's way.
func TestPinsOfNodesThatAreAway(t *testing.T) {
	e := twoRacks(t)
	for _, owner := range []string{"A", "B"} {
		e.Give(owner, gpu, 2, 0)
		e.Give(owner, socket, 2, 0)
		e.Give(owner, rack(2), 1, 0)
	}
	for _, id := range []string{"r1-n0", "r2-n0"} {
		e.PutNode(Node{ID: id, Sites: []string{id[:2]}})
	}
	for _, step := range []struct {
		owner string
		cell  Cell
		kind  Kind
		want  error
	}{
		{"A", Cell{Node: "r1-n0", Index: 1}, socket, nil},
		{"B", Cell{Node: "r1-n0", Index: 5}, gpu, ErrBound}, // in the socket
		{"B", Cell{Node: "r1-n0", Index: 3}, gpu, nil},      // in the other one
		{"B", Cell{Node: "r1-n0", Index: 0}, socket, ErrBound},
		{"B", Cell{Site: `/0:"r1"`}, rack(2), ErrBound}, // a part is pinned, and not ready
		{"A", Cell{Node: "r2-n1", Index: 1}, socket, nil},
		{"B", Cell{Site: `/0:"r2"`}, rack(2), ErrBound}, // a part is pinned
	} {
		if err := e.Pin(step.cell, step.kind, step.owner); !errors.Is(err, step.want) {
			t.Errorf("%s pins %s: %v, want %v", step.owner, e.View().name(step.cell, step.kind), err, step.want)
		}
	}
	e = twoRacks(t)
	e.Give("A", rack(2), 1, 0)
	e.Give("B", gpu, 1, 0)
	bind(t, e, Cell{Node: "r2-n1"}, gpu, "B")
	e.PutNode(Node{ID: "r2-n0", Sites: []string{"r2"}})
	if err := e.Pin(Cell{Site: `/0:"r2"`}, rack(2), "A"); err != nil {
		t.Errorf("a rack of which a part is used: %v", err)
	}
}

// TestRebindInOneOrder: which of the cells of a node are bound again for which there is not room any more when it comes back does not go by the order in which they
// were bound, or ceased to be ready: a state that was restored has lost that, and must do as the others do.
func TestRebindInOneOrder(t *testing.T) {
	all := []Binding{
		{Cell: Cell{Node: "r1-n0", Index: 1}, Kind: socket, Owner: "A", Uses: 1},
		{Cell: Cell{Node: "r1-n0", Index: 0}, Kind: gpu, Owner: "A", Uses: 1},
		{Cell: Cell{Node: "r1-n0", Index: 2}, Kind: gpu, Owner: "A", Uses: 2},
		{Cell: Cell{Node: "r1-n0", Index: 3}, Kind: gpu, Owner: "A", Uses: 1},
	}
	const want = "gpu 0, gpu 3, " // the third GPU is used most
	for _, order := range []string{"0123", "3210", "1302"} {
		for _, away := range []bool{false, true} { // bound, and then not ready; or not ready when they are
			e := twoRacks(t)
			e.Give("A", socket, 1, 0)
			e.Give("A", gpu, 3, 0)
			n := Node{ID: "r1-n0", Sites: []string{"r1"}}
			if away {
				e.PutNode(n)
			}
			for _, i := range order {
				if err := e.Restore(all[i-'0']); err != nil {
					t.Fatal(err)
				}
			}
			e.PutNode(n)
			if err := e.Withdraw("A", gpu, 2); err != nil {
				t.Fatal(err)
			}
			n.Ready = true
			lost := ""
			for _, b := range e.PutNode(n) {
				lost += fmt.Sprintf("%s %d, ", e.View().LevelName(b.Kind), b.Cell.Index)
			}
			if lost != want {
				t.Errorf("in the order %s, away %v: lost %s, not %s", order, away, lost, want)
			}
		}
	}
}
