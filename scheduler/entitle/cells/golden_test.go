package cells

import (
	"errors"
	"fmt"
	"testing"
)

// tree222 is a chain of nodes of 2 sockets × 2 switches × 2 GPUs, with racks.
func tree222(t testing.TB) *Chain {
	t.Helper()
	c, err := NewChain([]Level{{"gpu", 1}, {"pcie", 2}, {"socket", 4}, {"node", 8}}, []string{"rack"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	gpu    = Kind{Level: 0}
	socket = Kind{Level: 2}
	whole  = Kind{Level: 3}
)

func rack(size int) Kind { return Kind{Level: 4, Size: size} }

// left returns what is left of the kinds above pcie, the highest first.
func left(c *Chain) string {
	s := ""
	balances := c.Balances()
	for i := len(balances) - 1; i >= 0 && balances[i].Kind.Level >= socket.Level; i-- {
		s += fmt.Sprintf("%s %d ", c.LevelName(balances[i].Kind), balances[i].Left)
	}
	return s
}

func twoRacks(t testing.TB) *Edit {
	t.Helper()
	e := tree222(t).Edit()
	for r := 1; r <= 2; r++ {
		for n := range 2 {
			e.PutNode(Node{ID: fmt.Sprintf("r%d-n%d", r, n), Sites: []string{fmt.Sprintf("r%d", r)}, Ready: true})
		}
	}
	return e
}

// TestGoldenExample: the golden example of S of semantics part 2, with its numbers.
func TestGoldenExample(t *testing.T) {
	e := twoRacks(t)
	e.Give("A", whole, 2, 0)
	e.Give("B", socket, 2, 0)
	kind, short := e.Chain().Short(Change{rack(2), 1})
	if kind != socket || short != 2 {
		t.Errorf("with 2 nodes and 2 sockets owned, a rack more is short by %d of %v, want 2 sockets", short, kind)
	}
	if err := e.Withdraw("A", whole, 1); err != nil {
		t.Fatal(err)
	}
	if kind, short := e.Chain().Short(Change{rack(2), 1}); short != 0 {
		t.Fatalf("with 1 node owned, a rack is short by %d of %v", short, kind)
	}
	e.Give("C", rack(2), 1, 0)
	if got, want := left(e.Chain()), "rack 1 node 1 socket 0 "; got != want {
		t.Fatalf("left: %s, want %s", got, want)
	}

	first := Cell{Node: "r1-n0", Index: 0}
	bind(t, e, first, socket, "B")
	if got, want := left(e.Chain()), "rack 0 node 0 socket 0 "; got != want {
		t.Fatalf("with a socket bound, left: %s, want %s", got, want)
	}
	for _, id := range []string{"r1-n1", "r2-n0", "r2-n1"} {
		if err := e.Safe(Cell{Node: id}, socket, "B"); !errors.Is(err, ErrUnsafe) {
			t.Errorf("a socket of %s: %v, want %v", id, err, ErrUnsafe)
		}
	}
	var offered []Cell
	for c := range e.Candidates(socket) {
		offered = append(offered, c.Cell)
	}
	if len(offered) != 1 || offered[0] != (Cell{Node: "r1-n0", Index: 1}) {
		t.Errorf("offered for B's second socket: %v, want the other one of r1-n0 alone", offered)
	}

	e.PutNode(Node{ID: "r1-n0", Sites: []string{"r1"}, Ready: true, Bad: 1 << 7})
	for owner, k := range map[string]Kind{"A": whole, "B": socket, "C": rack(2)} {
		if got, want := e.Chain().Account(owner, k).Doomed, map[string]int{"C": 1}[owner]; got != want {
			t.Errorf("with a bad GPU in the other socket, %d cells of %s are doomed, want %d", got, owner, want)
		}
	}
	e.PutNode(Node{ID: "r1-n0", Sites: []string{"r1"}, Ready: true})
	if d := e.Chain().Account("C", rack(2)).Doomed; d != 0 {
		t.Errorf("with the GPU good again, %d cells of C are doomed", d)
	}
	check(t, e)
}

// bind binds a cell that must be safe, and uses it.
func bind(t testing.TB, e *Edit, cell Cell, k Kind, owner string) {
	t.Helper()
	if err := e.Safe(cell, k, owner); err != nil {
		t.Fatalf("bind %v to %s: %v", cell, owner, err)
	}
	if err := e.Bind(cell, k, owner, false); err != nil {
		t.Fatalf("bind %v to %s: %v", cell, owner, err)
	}
	if err := e.Use(cell, k); err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, e *Edit) {
	t.Helper()
	if err := e.Chain().Check(); err != nil {
		t.Error(err)
	}
}

// TestCandidates: cells that nobody uses come before others, small free cells before large ones, then the least important use.
func TestCandidates(t *testing.T) {
	e := tree222(t).Edit()
	for i := range 4 {
		e.PutNode(Node{ID: fmt.Sprintf("n%d", i), Ready: true})
	}
	e.Give("A", whole, 4, 0)
	e.Give("A", socket, 0, 0)
	e.SetUsers("n0", []User{{1, 50}})
	e.SetUsers("n1", []User{{1, 20}, {2, 20}})
	e.SetUsers("n2", []User{{1, 20}})
	var order []string
	for c := range e.Candidates(whole) {
		order = append(order, c.Cell.Node)
	}
	if got, want := fmt.Sprint(order), "[n3 n2 n1 n0]"; got != want {
		t.Errorf("nodes are offered in the order %s, want %s", got, want)
	}
	for c := range e.Candidates(gpu) {
		t.Errorf("%v is offered though A owns all nodes", c)
	}
	if err := e.Withdraw("A", whole, 1); err != nil {
		t.Fatal(err)
	}
	e.Give("B", gpu, 1, 0)
	for c := range e.Candidates(gpu) {
		if c.Cell.Node != "n0" || c.Cell.Index != 1 {
			t.Errorf("offered first: %v, want the GPU beside the one that is used of n0", c)
		}
		break
	}
	check(t, e)
}
