package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check proves the invariants of a tree: keys in order, lower bounds true, no
// page empty or over-full, all leaves at one depth, the size right.
func (t *Tree[K, V]) check() error {
	if t.root == nil {
		if t.size != 0 {
			return fmt.Errorf("no root, size %d", t.size)
		}
		return nil
	}
	n, depth := 0, -1
	var last *K
	var walk func(p *page[K, V], level int) error
	walk = func(p *page[K, V], level int) error {
		if len(p.keys) == 0 || len(p.keys) > pageMax {
			return fmt.Errorf("a page of %d", len(p.keys))
		}
		if p.kids == nil {
			if depth >= 0 && depth != level {
				return fmt.Errorf("leaves at %d and %d", depth, level)
			}
			depth = level
			for i := range p.keys {
				if last != nil && t.compare(*last, p.keys[i]) >= 0 {
					return fmt.Errorf("%v is not before %v", *last, p.keys[i])
				}
				last = &p.keys[i]
				n++
			}
			return nil
		}
		for i, kid := range p.kids {
			if i > 0 && last != nil && t.compare(*last, p.keys[i]) >= 0 {
				return fmt.Errorf("bound %v is not after %v", p.keys[i], *last)
			}
			if err := walk(kid, level+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(t.root, 0); err != nil {
		return err
	}
	if n != t.size {
		return fmt.Errorf("%d entries, size %d", n, t.size)
	}
	return nil
}

func TestTreeIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := New[int, int](cmp.Compare[int])
		model := map[int]int{}
		tok := &Token{}
		type kept struct {
			tr    Tree[int, int]
			model map[int]int
		}
		var old []kept
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			k := rapid.IntRange(0, 400).Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0, 1, 2, 3, 4, 5:
				v := rapid.Int().Draw(t, "value")
				Put(tok, &tr, k, v)
				model[k] = v
			case 6, 7, 8:
				_, was := model[k]
				if Delete(tok, &tr, k) != was {
					t.Fatalf("delete of %d does not say %v", k, was)
				}
				delete(model, k)
			default:
				old = append(old, kept{tr, maps.Clone(model)})
				tok = &Token{}
			}
		}
		old = append(old, kept{tr, model})
		for _, o := range old {
			if err := o.tr.check(); err != nil {
				t.Fatal(err)
			}
			sameAsModel(t, &o.tr, o.model)
		}
	})
}

func sameAsModel(t *rapid.T, tr *Tree[int, int], model map[int]int) {
	keys := slices.Sorted(maps.Keys(model))
	var all, up, down []int
	for k, v := range tr.All {
		if model[k] != v {
			t.Fatalf("%d is %d, want %d", k, v, model[k])
		}
		all = append(all, k)
	}
	from := rapid.IntRange(-1, 401).Draw(t, "from")
	tr.Ascend(from, func(k, _ int) bool { up = append(up, k); return true })
	tr.Descend(from, func(k, _ int) bool { down = append(down, k); return true })
	slices.Reverse(down)
	at, found := slices.BinarySearch(keys, from)
	upTo := at
	if found {
		upTo++
	}
	if !slices.Equal(all, keys) || !slices.Equal(up, keys[at:]) || !slices.Equal(down, keys[:upTo]) {
		t.Fatalf("keys %v; up from %d: %v, down: %v; want %v", all, from, up, down, keys)
	}
}
