package persist

const (
	vectorBits = 5
	vectorFan  = 1 << vectorBits
)

// Vector is a persistent vector of pointers: a radix tree whose pages are copied on
// the first change by each token. A copy of the struct is a snapshot; the zero value
// is empty. Pages without an element are not kept.
type Vector[T any] struct {
	root  *vectorPage[T]
	depth int // levels above the leaves
}

// vectorPage is a leaf (elems) or an inner page (kids).
type vectorPage[T any] struct {
	owner *Token
	used  int // entries that are not nil
	elems *[vectorFan]*T
	kids  *[vectorFan]*vectorPage[T]
}

// reach returns how many indexes there is room for.
func (v *Vector[T]) reach() uint64 { return 1 << (vectorBits * (v.depth + 1)) }

// Get returns the element at an index; nil if there is none.
func (v *Vector[T]) Get(n uint32) *T {
	p := v.root
	if uint64(n) >= v.reach() {
		return nil
	}
	for d := v.depth; d > 0 && p != nil; d-- {
		p = p.kids[n>>(d*vectorBits)%vectorFan]
	}
	if p == nil {
		return nil
	}
	return p.elems[n%vectorFan]
}

// Set sets the element at an index, in pages that tok owns; nil removes it.
func (v *Vector[T]) Set(tok *Token, n uint32, e *T) {
	for uint64(n) >= v.reach() {
		if v.root != nil {
			v.root = &vectorPage[T]{owner: tok, used: 1, kids: &[vectorFan]*vectorPage[T]{v.root}}
		}
		v.depth++
	}
	v.root = v.root.set(tok, n, e, v.depth)
}

// set returns the page that replaces p; each may be nil.
func (p *vectorPage[T]) set(tok *Token, n uint32, e *T, depth int) *vectorPage[T] {
	if p == nil && e == nil {
		return nil
	}
	p = p.writable(tok, depth)
	if depth == 0 {
		p.count(p.elems[n%vectorFan] != nil, e != nil)
		p.elems[n%vectorFan] = e
	} else {
		kid := &p.kids[n>>(depth*vectorBits)%vectorFan]
		had := *kid != nil
		*kid = (*kid).set(tok, n, e, depth-1)
		p.count(had, *kid != nil)
	}
	if p.used == 0 {
		return nil
	}
	return p
}

// count moves the number of entries: was and is report whether one is there before and
// after.
func (p *vectorPage[T]) count(was, is bool) {
	switch {
	case is && !was:
		p.used++
	case was && !is:
		p.used--
	}
}

// writable returns the page itself if tok owns it, or a copy, or a new page, that tok
// owns.
func (p *vectorPage[T]) writable(tok *Token, depth int) *vectorPage[T] {
	switch {
	case p == nil && depth == 0:
		return &vectorPage[T]{owner: tok, elems: &[vectorFan]*T{}}
	case p == nil:
		return &vectorPage[T]{owner: tok, kids: &[vectorFan]*vectorPage[T]{}}
	case p.owner == tok:
		return p
	}
	c := &vectorPage[T]{owner: tok, used: p.used}
	if depth == 0 {
		elems := *p.elems
		c.elems = &elems
	} else {
		kids := *p.kids
		c.kids = &kids
	}
	return c
}
