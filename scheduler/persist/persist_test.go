package persist

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// number is a key of the tests.
type number uint32

func (n number) Compare(other number) int { return cmp.Compare(n, other) }

type keptTree struct {
	tree Tree[number, int]
	want map[number]int
}

func (k *keptTree) agree(t *rapid.T) {
	if err := Check(&k.tree); err != nil {
		t.Fatal(err)
	}
	if k.tree.Len() != len(k.want) {
		t.Fatalf("size %d, not %d", k.tree.Len(), len(k.want))
	}
	keys := slices.Sorted(maps.Keys(k.want))
	for _, from := range []*number{nil, ptr(rapid.Custom(func(t *rapid.T) number { return number(rapid.IntRange(0, 6000).Draw(t, "from")) }).Draw(t, "from"))} { // small
		var up, down []number
		k.tree.Ascend(from, func(o number, v int) bool {
			if v != k.want[o] {
				t.Fatalf("%d has %d, not %d", o, v, k.want[o])
			}
			up = append(up, o)
			return true
		})
		k.tree.Descend(from, func(o number, _ int) bool {
			down = append(down, o)
			return true
		})
		wantUp, wantDown := keys, slices.Clone(keys)
		if from != nil {
			at, found := slices.BinarySearch(keys, *from)
			wantUp, wantDown = keys[at:], slices.Clone(keys[:at])
			if found {
				wantDown = append(wantDown, *from)
			}
		}
		slices.Reverse(wantDown)
		if !slices.Equal(up, wantUp) || !slices.Equal(down, wantDown) {
			t.Fatalf("from %v: up %v, down %v; not %v, %v", from, up, down, wantUp, wantDown)
		}
	}
}

func draw[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

func ptr[T any](v T) *T { return &v }

// A tree says what a map says, in order, and what was taken of it stays as it was.
func TestTreeAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := keptTree{want: map[number]int{}}
		var past []keptTree
		for step := range rapid.IntRange(1, 8).Draw(t, "edits") {
			tok := NewToken()
			n := rapid.IntRange(1, 700).Draw(t, "keys")
			at, stride := rapid.IntRange(0, 4000).Draw(t, "at"), draw(t, "stride", 1, 1, 7, 2003)
			kind := draw(t, "kind", "put", "put", "delete")
			for i := range n {
				k := number((at + i*stride) % 5003) // small
				if kind == "put" {
					Put(tok, &now.tree, k, step)
					now.want[k] = step
				} else {
					Delete(tok, &now.tree, k)
					delete(now.want, k)
				}
				if v, found := now.tree.Get(k); found != (kind == "put") || found && v != step {
					t.Fatalf("after %s of %d: %d, %v", kind, k, v, found)
				}
			}
			now.agree(t)
			past = append(past, keptTree{now.tree, maps.Clone(now.want)})
		}
		for i := range past {
			past[i].agree(t)
		}
	})
}

// Keys that grow fill their pages.
func TestTreeOfGrowingKeys(t *testing.T) {
	var tr Tree[number, struct{}]
	for i := range number(32 * 32 * 32) {
		Put(NewToken(), &tr, i, struct{}{}) // each its own commit
	}
	pages := 0
	var count func(p *page[number, struct{}])
	count = func(p *page[number, struct{}]) {
		pages++
		for _, kid := range p.kids {
			count(kid)
		}
	}
	count(tr.root)
	if pages != 32*32+32+1 {
		t.Errorf("%d pages, want %d", pages, 32*32+32+1)
	}
}

// A vector says what a map says, and what was taken of it stays as it was.
func TestVectorAgainstAMap(t *testing.T) {
	type row struct{ index int }
	rows := make([]*row, 10)
	for i := range rows {
		rows[i] = &row{index: i}
	}
	type kept struct {
		vector Vector[row]
		want   map[uint32]*row
	}
	rapid.Check(t, func(t *rapid.T) {
		now := kept{want: map[uint32]*row{}}
		var past []kept
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			tok := NewToken()
			for range rapid.IntRange(1, 60).Draw(t, "sets") {
				n := uint32(rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 1<<32-1)).Draw(t, "ordinal")) // within
				if rapid.Bool().Draw(t, "forget") {
					now.vector.Set(tok, n, nil)
					delete(now.want, n)
				} else {
					now.want[n] = rapid.SampledFrom(rows).Draw(t, "row")
					now.vector.Set(tok, n, now.want[n])
				}
			}
			past = append(past, kept{now.vector, maps.Clone(now.want)})
		}
		for _, p := range past {
			if err := p.vector.Check(); err != nil {
				t.Fatal(err)
			}
			for n := range now.want { // order does not matter: each by itself
				if p.vector.Get(n) != p.want[n] {
					t.Fatalf("number %d: %v, not %v", n, p.vector.Get(n), p.want[n])
				}
			}
		}
		for n := range now.want { // order does not matter: each by itself
			now.vector.Set(NewToken(), n, nil)
		}
		if now.vector.root != nil {
			t.Fatal("pages are left without a row")
		}
	})
}

// An inner page whose first kid went, and which got a key before all that it has,
// is found through when it is joined with its neighbour.
func TestTreeJoinsInnerPages(t *testing.T) {
	const leaf, inner = treePage, treePage * treePage
	var tr Tree[number, int]
	tok := NewToken()
	for i := range number(3 * inner) {
		Put(tok, &tr, 2*i, int(i))
	}
	drop := func(from, to int) {
		for i := from; i < to; i++ {
			Delete(tok, &tr, number(2*i)) // small
		}
	}
	drop(inner, inner+leaf)
	Put(tok, &tr, 2*inner+1, -1)
	drop(5*leaf, inner)
	drop(inner+7*leaf, 2*inner)
	if v, found := tr.Get(2*inner + 1); !found || v != -1 {
		t.Errorf("the key in the gap: %d, %v", v, found)
	}
	for i := range number(3 * inner) {
		gone := i >= 5*leaf && i < inner+leaf || i >= inner+7*leaf && i < 2*inner
		if v, found := tr.Get(2 * i); found == gone || found && v != int(i) {
			t.Fatalf("key %d: %d, %v", 2*i, v, found)
		}
	}
	if want := 3*inner - (inner - 5*leaf) - (inner - 6*leaf) + 1; tr.Len() != want {
		t.Errorf("size %d, want %d", tr.Len(), want)
	}
}
