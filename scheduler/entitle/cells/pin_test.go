package cells

import "testing"

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
