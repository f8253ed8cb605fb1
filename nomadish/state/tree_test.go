package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// valid checks a tree's shape: keys in order, each page within its bounds, all leaves
// at one depth.
func valid[K comparer[K], V any](t *rapid.T, tr *tree[K, V]) {
	var walk func(p *page[K, V], depth int, low, high *K) int
	walk = func(p *page[K, V], depth int, low, high *K) int {
		if len(p.keys) == 0 || len(p.keys) > treePage || cap(p.keys) > 2*treePage {
			t.Fatalf("a page of %d keys, room for %d", len(p.keys), cap(p.keys))
		}
		for i := range p.keys {
			if p.kids != nil && i == 0 {
				continue // not looked at
			}
			k := p.keys[i]
			if i > 0 && (p.kids == nil || i > 1) && p.keys[i-1].compare(k) >= 0 || low != nil && k.compare(*low) < 0 || high != nil && k.compare(*high) >= 0 {
				t.Fatalf("key %v is out of order", k)
			}
		}
		if p.kids == nil {
			return 1
		}
		deep := 0
		for i, kid := range p.kids {
			l, h := low, high
			if i > 0 {
				l = &p.keys[i]
			}
			if i+1 < len(p.keys) {
				h = &p.keys[i+1]
			}
			d := walk(kid, depth+1, l, h)
			if i > 0 && d != deep {
				t.Fatalf("leaves at different depths")
			}
			deep = d
		}
		return deep + 1
	}
	if tr.root != nil {
		walk(tr.root, 0, nil, nil)
	}
}

type keptTree struct {
	tree tree[ordinal, int]
	want map[ordinal]int
}

func (k *keptTree) agree(t *rapid.T) {
	valid(t, &k.tree)
	if k.tree.size != len(k.want) {
		t.Fatalf("size %d, not %d", k.tree.size, len(k.want))
	}
	keys := slices.Sorted(maps.Keys(k.want))
	for _, from := range []*ordinal{nil, ptr(rapid.Custom(func(t *rapid.T) ordinal { return ordinal(rapid.IntRange(0, 6000).Draw(t, "from")) }).Draw(t, "from"))} { //nolint:gosec // small
		var up, down []ordinal
		k.tree.ascend(from, func(o ordinal, v int) bool {
			if v != k.want[o] {
				t.Fatalf("%d has %d, not %d", o, v, k.want[o])
			}
			up = append(up, o)
			return true
		})
		k.tree.descend(from, func(o ordinal, _ int) bool {
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

func ptr[T any](v T) *T { return &v }

// A tree says what a map says, in order, and what was taken of it stays as it was.
func TestTreeAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := keptTree{want: map[ordinal]int{}}
		var past []keptTree
		for step := range rapid.IntRange(1, 8).Draw(t, "edits") {
			tok := &token{}
			n := rapid.IntRange(1, 700).Draw(t, "keys")
			at, stride := rapid.IntRange(0, 4000).Draw(t, "at"), draw(t, "stride", 1, 1, 7, 2003)
			kind := draw(t, "kind", "put", "put", "delete")
			for i := range n {
				k := ordinal((at + i*stride) % 5003) //nolint:gosec // small
				if kind == "put" {
					now.tree.put(tok, k, step)
					now.want[k] = step
				} else {
					now.tree.delete(tok, k)
					delete(now.want, k)
				}
				if v, found := now.tree.get(k); found != (kind == "put") || found && v != step {
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
	var tr tree[ordinal, struct{}]
	for i := range ordinal(32 * 32 * 32) {
		tr.put(&token{}, i, struct{}{}) // each its own commit
	}
	pages := 0
	var count func(p *page[ordinal, struct{}])
	count = func(p *page[ordinal, struct{}]) {
		pages++
		for _, kid := range p.kids {
			count(kid)
		}
	}
	count(tr.root)
	check(t, "pages", pages, 32*32+32+1)
}

// A vector says what a map says, and what was taken of it stays as it was.
func TestVectorAgainstAMap(t *testing.T) {
	rows := make([]*row, 10)
	for i := range rows {
		rows[i] = &row{index: int32(i)} //nolint:gosec // small
	}
	type kept struct {
		vector vector[row]
		want   map[uint32]*row
	}
	rapid.Check(t, func(t *rapid.T) {
		now := kept{want: map[uint32]*row{}}
		var past []kept
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			tok := &token{}
			for range rapid.IntRange(1, 60).Draw(t, "sets") {
				n := uint32(rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 1<<32-1)).Draw(t, "ordinal")) //nolint:gosec // within
				if rapid.Bool().Draw(t, "forget") {
					now.vector.set(tok, n, nil)
					delete(now.want, n)
				} else {
					now.want[n] = rapid.SampledFrom(rows).Draw(t, "row")
					now.vector.set(tok, n, now.want[n])
				}
			}
			past = append(past, kept{now.vector, maps.Clone(now.want)})
		}
		for _, p := range past {
			for n := range now.want { // order does not matter: each by itself
				if p.vector.get(n) != p.want[n] {
					t.Fatalf("ordinal %d: %v, not %v", n, p.vector.get(n), p.want[n])
				}
			}
		}
		for n := range now.want { // order does not matter: each by itself
			now.vector.set(&token{}, n, nil)
		}
		if now.vector.root != nil {
			t.Fatal("pages are left without a row")
		}
	})
}

// The history's table says what a sorted list says.
func TestHistoryAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table historyTable
		have := map[string]*structs.HistoryRecord{}
		for range rapid.IntRange(1, 10).Draw(t, "edits") {
			before, were := table, len(have)
			e := table.edit()
			for range rapid.IntRange(1, 40).Draw(t, "changes") {
				id := draw(t, "form", structs.DeriveID("s", uint64(rapid.IntRange(0, 50).Draw(t, "id"))), fmt.Sprint("odd", rapid.IntRange(0, 5).Draw(t, "odd"))) //nolint:gosec // small
				if h := e.get(id); h != have[id] {
					t.Fatalf("%s: %v, not %v", id, h, have[id])
				}
				if rapid.Bool().Draw(t, "remove") {
					if have[id] != nil {
						e.remove(have[id])
						delete(have, id)
					}
					continue
				}
				have[id] = &structs.HistoryRecord{AllocID: id, Ended: rapid.Int64Range(-2, 9).Draw(t, "ended")}
				e.put(have[id])
			}
			if before.len() != were {
				t.Fatal("what was taken has changed")
			}
			table = *e.table()
		}
		byID := slices.SortedFunc(maps.Values(have), func(a, b *structs.HistoryRecord) int { return cmp.Compare(a.AllocID, b.AllocID) })
		byEnd := slices.SortedStableFunc(slices.Values(byID), func(a, b *structs.HistoryRecord) int { return cmp.Compare(max(0, a.Ended), max(0, b.Ended)) })
		if got := slices.Collect(table.all); !slices.Equal(got, byID) {
			t.Fatalf("by ID: %v, not %v", got, byID)
		}
		if len(byEnd) > 0 && table.oldest() != byEnd[0] || table.len() != len(byEnd) {
			t.Fatalf("oldest of %d: %v, not %v", table.len(), table.oldest(), byEnd)
		}
		slices.Reverse(byEnd)
		if got := slices.Collect(table.latestFirst); !slices.Equal(got, byEnd) {
			t.Fatalf("by end: %v, not %v", got, byEnd)
		}
	})
}

// IDs keep their order and form as keys, and only whole canonical UUIDs are such keys.
func TestUUIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := structs.DeriveID(rapid.String().Draw(t, "a"), 0)
		b := structs.DeriveID(rapid.String().Draw(t, "b"), 0)
		x, ok := parseUUID(a)
		y, _ := parseUUID(b)
		if !ok || x.String() != a || x.compare(y) != cmp.Compare(a, b) {
			t.Fatalf("%s is %s, %v", a, x, ok)
		}
		n := rapid.IntRange(0, uuidLen).Draw(t, "length")
		low, _ := fillUUID(a[:n], '0')
		high, _ := fillUUID(a[:n], 'f')
		if low.compare(x) > 0 || high.compare(x) < 0 || (y.compare(low) >= 0 && y.compare(high) <= 0) != (b[:n] == a[:n]) {
			t.Fatalf("%s: from %s to %s", a[:n], low, high)
		}
	})
	f := func(id string) {
		t.Helper()
		if u, ok := parseUUID(id); ok {
			t.Errorf("%q is taken for %s", id, u)
		}
	}
	id := structs.DeriveID("s", 0)
	f("")
	f(id[:35])
	f(id + "0")
	f("ABCDEF" + id[6:])
	f(id[:8] + "0" + id[9:])
	f("-" + id[1:])
	f(id[:35] + "g")
	f("é" + id[2:])
}

// An inner page whose first kid went, and which got a key before all that it has,
// is found through when it is joined with its neighbour.
func TestTreeJoinsInnerPages(t *testing.T) {
	const leaf, inner = treePage, treePage * treePage
	var tr tree[ordinal, int]
	tok := &token{}
	for i := range ordinal(3 * inner) {
		tr.put(tok, 2*i, int(i))
	}
	drop := func(from, to int) {
		for i := from; i < to; i++ {
			tr.delete(tok, ordinal(2*i)) //nolint:gosec // small
		}
	}
	drop(inner, inner+leaf)
	tr.put(tok, 2*inner+1, -1)
	drop(5*leaf, inner)
	drop(inner+7*leaf, 2*inner)
	if v, found := tr.get(2*inner + 1); !found || v != -1 {
		t.Errorf("the key in the gap: %d, %v", v, found)
	}
	for i := range ordinal(3 * inner) {
		gone := i >= 5*leaf && i < inner+leaf || i >= inner+7*leaf && i < 2*inner
		if v, found := tr.get(2 * i); found == gone || found && v != int(i) {
			t.Fatalf("key %d: %d, %v", 2*i, v, found)
		}
	}
	check(t, "size", tr.size, 3*inner-(inner-5*leaf)-(inner-6*leaf)+1)
}
