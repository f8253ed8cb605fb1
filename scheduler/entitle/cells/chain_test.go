package cells

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestCheckFindsFaults: an account that says more than there is, a binding beside the accounts and a forgotten end of a use are
// found by Check.
func TestCheckFindsFaults(t *testing.T) {
	faults := map[string]struct {
		plant func(e *Edit)
		want  string
	}{
		"a split that takes what others own": {func(e *Edit) {
			b := Binding{Cell: Cell{Node: "r2-n0"}, Kind: socket, Owner: "B", Uses: 1}
			if err := e.bind(b); err != nil {
				t.Fatal(err)
			}
		}, "invariant S: level rack"},
		"a binding beside the accounts": {func(e *Edit) {
			n := e.ownNode("r1-n1")
			n.bound = append(n.bound, Binding{Cell: Cell{Node: "r1-n1"}, Kind: whole, Owner: "A", Uses: 1})
		}, "but 1 cells are bound"},
		"a forgotten unbinding": {func(e *Edit) {
			b, _ := e.binding(Cell{Node: "r1-n0"}, socket)
			b.Uses = 0
		}, "is bound to B, which does not use it"},
		"a count of free cells that is wrong": {func(e *Edit) { e.line(whole).free++ }, "are counted as free"},
		"a node that the index forgot": {func(e *Edit) {
			n := e.ownNode("r1-n1")
			e.unindex(n.entries[0].way, "r1-n1")
		}, "index"},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			e := twoRacks(t)
			e.Give("A", whole, 1, 0)
			e.Give("B", socket, 2, 0)
			e.Give("C", rack(2), 1, 0)
			bind(t, e, Cell{Node: "r1-n0", Index: 0}, socket, "B")
			check(t, e)
			f.plant(e)
			if err := e.Chain().Check(); err == nil || !strings.Contains(err.Error(), f.want) {
				t.Errorf("Check: %v, want an error with %q", err, f.want)
			}
		})
	}
}

// TestSnapshotsStay: what was handed out does not change, whatever is edited afterwards, and equals a chain made anew of what
// was stated.
func TestSnapshotsStay(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		x := newTrial(r.IntN, t.Fatalf)
		type moment struct {
			c    *Chain
			text string
		}
		var moments []moment
		for range 30 {
			x.step()
			c := x.e.Chain()
			moments = append(moments, moment{c, describe(c)})
			if anew := rebuilt(t, c); describe(anew) != describe(c) {
				t.Fatalf("seed %d: made anew it is\n%s\nnot\n%s", seed, describe(anew), describe(c))
			}
		}
		for i, m := range moments {
			if got := describe(m.c); got != m.text {
				t.Fatalf("seed %d: snapshot %d has changed from\n%s\nto\n%s", seed, i, m.text, got)
			}
		}
	}
}

// describe writes down everything that follows from what was stated.
func describe(c *Chain) string {
	s := fmt.Sprint(c.Balances(), "\n")
	for b, away := range c.Bindings {
		s += fmt.Sprint(b, away, "\n")
	}
	for name := range c.owners.all {
		for _, a := range c.Accounts(name) {
			if a != (Account{Kind: a.Kind}) {
				s += fmt.Sprint(name, a, "\n")
			}
		}
	}
	for way, in := range c.index.all {
		for id, x := range in.all {
			s += fmt.Sprint(kindsOf(way), id, x.own, "\n")
		}
	}
	return s
}

// rebuilt makes a chain anew of the nodes, quotas and bindings of another.
func rebuilt(t *testing.T, c *Chain) *Chain {
	t.Helper()
	empty, err := NewChain(c.levels, c.sites)
	if err != nil {
		t.Fatal(err)
	}
	e := empty.Edit()
	for id, n := range c.nodes.all {
		e.PutNode(n.Node)
		e.SetUsers(id, n.users)
	}
	for _, l := range c.lots {
		e.Give(l.owner, l.kind, l.count, l.order)
	}
	for b := range c.Bindings {
		if err := e.Restore(b); err != nil {
			t.Fatalf("restore %+v: %v", b, err)
		}
	}
	return e.Chain()
}

// TestTreeDependsOnKeysAlone: a tree has the same shape in whatever order its keys came.
func TestTreeDependsOnKeysAlone(t *testing.T) {
	tok := &Token{}
	var up, down tree[int]
	for i := range 200 {
		up.put(tok, fmt.Sprint(i), i)
		down.put(tok, fmt.Sprint(199-i), 199-i)
	}
	for i := range 50 {
		up.remove(tok, fmt.Sprint(i*3))
		down.remove(tok, fmt.Sprint((49-i)*3))
	}
	if !reflect.DeepEqual(up, down) || up.size != 150 {
		t.Error("two trees of the same keys differ")
	}
}

// TestNewChainRefuses: levels without a name, named twice, or that do not divide.
func TestNewChainRefuses(t *testing.T) {
	for _, levels := range [][]Level{
		nil, {{"", 1}}, {{"gpu", 0}}, {{"gpu", 1}, {"gpu", 2}}, {{"gpu", 2}, {"node", 3}}, {{"gpu", 1}, {"node", 65}},
	} {
		if _, err := NewChain(levels, nil); err == nil {
			t.Errorf("levels %v: not refused", levels)
		}
	}
	if _, err := NewChain([]Level{{"gpu", 1}}, []string{"rack", "rack"}); err == nil {
		t.Error("two levels of one name above nodes: not refused")
	}
}

// TestPinOfVacatedCell: a cell that another had bound when its node went away is not pinned to anybody else meanwhile.
func TestPinOfVacatedCell(t *testing.T) {
	c, err := NewChain([]Level{{"gpu", 1}, {"node", 2}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, node := c.Edit(), Kind{Level: 1}
	e.PutNode(Node{ID: "n1", Ready: true})
	e.PutNode(Node{ID: "n2", Ready: true})
	e.Give("a", node, 1, 0)
	e.Give("b", node, 1, 0)
	cell := Cell{Node: "n1"}
	if err := errors.Join(e.Bind(cell, node, "a", false), e.Use(cell, node)); err != nil {
		t.Fatal(err)
	}
	e.PutNode(Node{ID: "n1"})
	if err := e.Pin(cell, node, "b"); !errors.Is(err, ErrBound) {
		t.Errorf("pinned: %v", err)
	}
	if err := errors.Join(e.Release(cell, node), e.Pin(cell, node, "b"), e.Chain().Check()); err != nil {
		t.Errorf("once its owner has left it: %v", err)
	}
}
