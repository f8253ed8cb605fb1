package persist

import "testing"

// TestCheck breaks every invariant and sees Check find it.
func TestCheck(t *testing.T) {
	tree := func(breaks func(*Tree[number, int])) func() error {
		return func() error {
			var tr Tree[number, int]
			tok := NewToken()
			for i := range number(2 * treePage * treePage) {
				Put(tok, &tr, i, int(i))
			}
			if err := Check(&tr); err != nil {
				t.Errorf("a sound tree: %v", err)
			}
			breaks(&tr)
			return Check(&tr)
		}
	}
	vector := func(breaks func(*Vector[int])) func() error {
		return func() error {
			var v Vector[int]
			tok := NewToken()
			for i := range uint32(2 * vectorFan) {
				v.Set(tok, i, new(int))
			}
			if err := v.Check(); err != nil {
				t.Errorf("a sound vector: %v", err)
			}
			breaks(&v)
			return v.Check()
		}
	}
	leaf := func(tr *Tree[number, int]) *page[number, int] { return tr.root.kids[1].kids[1] }
	for name, broken := range map[string]func() error{
		"size":               tree(func(tr *Tree[number, int]) { tr.size++ }),
		"size without pages": tree(func(tr *Tree[number, int]) { tr.root = nil }),
		"order":              tree(func(tr *Tree[number, int]) { k := leaf(tr).keys; k[0], k[1] = k[1], k[0] }),
		"a key twice":        tree(func(tr *Tree[number, int]) { k := leaf(tr).keys; k[1] = k[0] }),
		"below its page":     tree(func(tr *Tree[number, int]) { leaf(tr).keys[0] -= 2 }),
		"above its page":     tree(func(tr *Tree[number, int]) { leaf(tr).keys[treePage-1]++ }),
		"separators": tree(func(tr *Tree[number, int]) {
			k := tr.root.kids[1].keys
			k[1], k[2] = k[2], k[1]
		}),
		"an empty page": tree(func(tr *Tree[number, int]) { p := leaf(tr); p.keys, p.vals = nil, nil }),
		"a page over-full": tree(func(tr *Tree[number, int]) {
			p := leaf(tr)
			p.keys, p.vals = append(p.keys, p.keys[31]+1), append(p.vals, 0)
		}),
		"values":   tree(func(tr *Tree[number, int]) { p := leaf(tr); p.vals = p.vals[1:] }),
		"children": tree(func(tr *Tree[number, int]) { p := tr.root; p.kids = p.kids[:1] }),
		"a root too many": tree(func(tr *Tree[number, int]) {
			tr.root = &page[number, int]{keys: tr.root.keys[:1], kids: []*page[number, int]{tr.root}}
		}),
		"depths":          tree(func(tr *Tree[number, int]) { p := tr.root.kids[1]; tr.root.kids[1] = p.kids[0] }),
		"count of a leaf": vector(func(v *Vector[int]) { v.root.kids[0].used-- }),
		"count":           vector(func(v *Vector[int]) { v.root.used++ }),
		"a page of none":  vector(func(v *Vector[int]) { v.root.kids[0] = &vectorPage[int]{elems: &[vectorFan]*int{}} }),
		"depth":           vector(func(v *Vector[int]) { v.depth++ }),
	} {
		if err := broken(); err == nil {
			t.Errorf("%s: Check finds nothing", name)
		}
	}
}
