// Package tree is the ordered map of which Worlds share what they have in common. It knows nothing of what it keeps, and must never
// change a page that another token owns.
package tree

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// Token marks who may change a page in place: the Edit that made it. Pages of
// another token are copied first, so every World made before stays as it is.
type Token = bucket.Token

// pageMax is how many entries a page holds at most. Pages of 32 keep both a
// copy (one page a level) and a search (five comparisons a page) small.
const pageMax = 32

// spare is how many entries a copied page can take before it must grow: a small tree costs little to copy.
const spare = 4

// Tree is a persistent ordered map: a B+-tree whose pages are copied on the
// first change by each token. The zero value is not usable: see New.
// Get and Put cost O(log n); All, Ascend and Descend are in key order.
//
// What changes and compares trees are functions, not methods: the compiler makes all methods of all trees in every package that
// knows of a World, and functions only where they are called.
type Tree[K, V any] struct {
	compare func(a, b K) int
	root    *page[K, V]
	size    int
}

// page is a leaf (vals) or an inner page (kids). keys[i] of an inner page is a
// lower bound of all keys in kids[i]; the first one is not looked at.
type page[K, V any] struct {
	owner *Token
	keys  []K
	vals  []V
	kids  []*page[K, V]
}

// New returns an empty tree in the order of compare.
func New[K, V any](compare func(a, b K) int) Tree[K, V] {
	return Tree[K, V]{compare: compare}
}

// Len is how many entries there are.
func (t *Tree[K, V]) Len() int { return t.size }

// find returns the place of k in a leaf, and whether it is there.
func (t *Tree[K, V]) find(p *page[K, V], k K) (int, bool) {
	return slices.BinarySearchFunc(p.keys, k, t.compare)
}

// child returns which child of an inner page may hold k.
func (t *Tree[K, V]) child(p *page[K, V], k K) int {
	at, found := slices.BinarySearchFunc(p.keys[1:], k, t.compare)
	if found {
		return at + 1
	}
	return at
}

// Get returns the value of a key.
func (t *Tree[K, V]) Get(k K) (v V, found bool) {
	p := t.root
	if p == nil {
		return v, false
	}
	for p.kids != nil {
		p = p.kids[t.child(p, k)]
	}
	if at, ok := t.find(p, k); ok {
		return p.vals[at], true
	}
	return v, false
}

// own returns a page that the token may change.
func own[K, V any](tok *Token, p *page[K, V]) *page[K, V] {
	if p.owner == tok {
		return p
	}
	room := min(len(p.keys)+min(len(p.keys), spare), pageMax+1)
	c := &page[K, V]{owner: tok, keys: make([]K, len(p.keys), room)}
	copy(c.keys, p.keys)
	if p.kids != nil {
		c.kids = make([]*page[K, V], len(p.kids), room)
		copy(c.kids, p.kids)
		return c
	}
	c.vals = make([]V, len(p.vals), room)
	copy(c.vals, p.vals)
	return c
}

// Put sets the value of a key.
func Put[K, V any](tok *Token, t *Tree[K, V], k K, v V) {
	if t.root == nil {
		t.root = &page[K, V]{owner: tok}
	}
	t.root = own(tok, t.root)
	if right := put(tok, t, t.root, k, v); right != nil {
		left := t.root
		t.root = &page[K, V]{
			owner: tok, keys: []K{left.keys[0], right.keys[0]}, kids: []*page[K, V]{left, right},
		}
	}
}

// put sets k below an owned page; a page that came to be over-full is split, and
// its right half returned.
func put[K, V any](tok *Token, t *Tree[K, V], p *page[K, V], k K, v V) *page[K, V] {
	if p.kids == nil {
		at, found := t.find(p, k)
		if found {
			p.vals[at] = v
			return nil
		}
		p.keys = slices.Insert(p.keys, at, k)
		p.vals = slices.Insert(p.vals, at, v)
		t.size++
		return split(tok, p)
	}
	at := t.child(p, k)
	kid := own(tok, p.kids[at])
	p.kids[at] = kid
	right := put(tok, t, kid, k, v)
	if t.compare(k, p.keys[at]) < 0 {
		p.keys[at] = k
	}
	if right == nil {
		return nil
	}
	p.keys = slices.Insert(p.keys, at+1, right.keys[0])
	p.kids = slices.Insert(p.kids, at+1, right)
	return split(tok, p)
}

func split[K, V any](tok *Token, p *page[K, V]) *page[K, V] {
	if len(p.keys) <= pageMax {
		return nil
	}
	half := len(p.keys) / 2
	r := &page[K, V]{owner: tok, keys: append(make([]K, 0, pageMax+1), p.keys[half:]...)}
	clear(p.keys[half:])
	p.keys = p.keys[:half]
	if p.kids != nil {
		r.kids = append(make([]*page[K, V], 0, pageMax+1), p.kids[half:]...)
		clear(p.kids[half:])
		p.kids = p.kids[:half]
		return r
	}
	r.vals = append(make([]V, 0, pageMax+1), p.vals[half:]...)
	clear(p.vals[half:])
	p.vals = p.vals[:half]
	return r
}

// Delete forgets a key and reports whether it was there.
func Delete[K, V any](tok *Token, t *Tree[K, V], k K) bool {
	if _, found := t.Get(k); !found {
		return false
	}
	t.root = own(tok, t.root)
	remove(tok, t, t.root, k)
	t.size--
	for len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
	if t.size == 0 {
		t.root = nil
	}
	return true
}

// remove forgets k, which is there, below an owned page. A page that came to be
// empty goes; one that came to be small is merged with a neighbour that has room.
func remove[K, V any](tok *Token, t *Tree[K, V], p *page[K, V], k K) {
	if p.kids == nil {
		at, _ := t.find(p, k)
		p.keys = slices.Delete(p.keys, at, at+1)
		p.vals = slices.Delete(p.vals, at, at+1)
		return
	}
	at := t.child(p, k)
	kid := own(tok, p.kids[at])
	p.kids[at] = kid
	remove(tok, t, kid, k)
	if len(kid.keys) == 0 {
		drop(p, at)
		return
	}
	if len(kid.keys) > pageMax/4 || len(p.kids) == 1 {
		return
	}
	left := max(0, at-1)
	a, b := p.kids[left], p.kids[left+1]
	if len(a.keys)+len(b.keys) > pageMax/2 {
		return
	}
	a = own(tok, a)
	p.kids[left] = a
	a.keys = append(a.keys, b.keys...)
	a.vals = append(a.vals, b.vals...)
	if a.kids != nil {
		// The first key of an inner page is only a lower bound: the parent's is as good.
		a.keys[len(a.kids)] = p.keys[left+1]
		a.kids = append(a.kids, b.kids...)
	}
	drop(p, left+1)
}

func drop[K, V any](p *page[K, V], at int) {
	p.keys = slices.Delete(p.keys, at, at+1)
	p.kids = slices.Delete(p.kids, at, at+1)
}

// All returns every entry in key order.
func (t *Tree[K, V]) All(yield func(K, V) bool) {
	if t.root != nil {
		t.root.all(yield)
	}
}

func (p *page[K, V]) all(yield func(K, V) bool) bool {
	for _, kid := range p.kids {
		if !kid.all(yield) {
			return false
		}
	}
	for i, v := range p.vals {
		if !yield(p.keys[i], v) {
			return false
		}
	}
	return true
}

// Ascend returns the entries with keys of at least from, in order.
func (t *Tree[K, V]) Ascend(from K, yield func(K, V) bool) {
	if t.root != nil {
		t.ascend(t.root, from, yield)
	}
}

func (t *Tree[K, V]) ascend(p *page[K, V], from K, yield func(K, V) bool) bool {
	if p.kids != nil {
		at := t.child(p, from)
		if !t.ascend(p.kids[at], from, yield) {
			return false
		}
		for _, kid := range p.kids[at+1:] {
			if !kid.all(yield) {
				return false
			}
		}
		return true
	}
	at, _ := t.find(p, from)
	for ; at < len(p.keys); at++ {
		if !yield(p.keys[at], p.vals[at]) {
			return false
		}
	}
	return true
}

// Descend returns the entries with keys of at most from, the largest first.
func (t *Tree[K, V]) Descend(from K, yield func(K, V) bool) {
	if t.root != nil {
		t.descend(t.root, from, yield)
	}
}

func (t *Tree[K, V]) descend(p *page[K, V], from K, yield func(K, V) bool) bool {
	if p.kids != nil {
		for at := t.child(p, from); at >= 0; at-- {
			if !t.descend(p.kids[at], from, yield) {
				return false
			}
		}
		return true
	}
	at, found := t.find(p, from)
	if !found {
		at--
	}
	for ; at >= 0; at-- {
		if !yield(p.keys[at], p.vals[at]) {
			return false
		}
	}
	return true
}
