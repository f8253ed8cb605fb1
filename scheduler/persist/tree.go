package persist

// Token marks who may change a page in place: the edit that made it. Pages of
// another token are copied first, so what was published stays as it is.
type Token struct{ _ byte } // not empty: two empty structs may share an address

// NewToken returns a token that owns no page yet.
func NewToken() *Token { return &Token{} }

// Key is a key that knows its order: Compare returns a negative number, zero or a
// positive number if it is less than, equal to or greater than the other.
type Key[K any] interface{ Compare(K) int }

// treePage is how many entries a page holds at most: small enough that a copy on
// the first change costs little, large enough that four levels hold a million keys.
const treePage = 32

// Tree is a persistent ordered map: a B+-tree whose pages are copied on the first
// change by each token. A copy of the struct is a snapshot; the zero value is empty.
// Keys that only grow fill their pages; random ones fill two thirds of them.
type Tree[K Key[K], V any] struct {
	root *page[K, V]
	size int
}

// page is a leaf (vals) or an inner page (kids). keys[i] of an inner page is a
// lower bound of all keys in kids[i]; the first one is not looked at.
type page[K Key[K], V any] struct {
	owner *Token
	keys  []K
	vals  []V
	kids  []*page[K, V]
}

// search returns the index of k, or where it would be, and whether it is there.
func search[K Key[K]](keys []K, k K) (int, bool) {
	lo, hi := 0, len(keys)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1) // not negative
		switch c := keys[mid].Compare(k); {
		case c < 0:
			lo = mid + 1
		case c == 0:
			return mid, true
		default:
			hi = mid
		}
	}
	return lo, false
}

// child returns which kid of an inner page may hold k.
func (p *page[K, V]) child(k K) int {
	at, found := search(p.keys[1:], k)
	if found {
		return at + 1
	}
	return at
}

// Get returns the value of a key, and whether the key is there.
func (t *Tree[K, V]) Get(k K) (v V, found bool) {
	p := t.root
	if p == nil {
		return v, false
	}
	for p.kids != nil {
		p = p.kids[p.child(k)]
	}
	at, found := search(p.keys, k)
	if found {
		v = p.vals[at]
	}
	return v, found
}

// Len returns how many keys there are.
func (t *Tree[K, V]) Len() int { return t.size }

// Put sets the value of a key, in pages that tok owns.
func Put[K Key[K], V any](tok *Token, t *Tree[K, V], k K, v V) {
	if t.root == nil {
		t.root = &page[K, V]{owner: tok, keys: []K{k}, vals: []V{v}}
		t.size = 1
		return
	}
	t.root = writable(tok, t.root)
	right, added := put(tok, t.root, k, v, true)
	if right != nil {
		left := t.root
		t.root = &page[K, V]{owner: tok, keys: []K{left.keys[0], right.keys[0]}, kids: []*page[K, V]{left, right}}
	}
	if added {
		t.size++
	}
}

// writable returns the page itself if tok owns it, or a copy that tok owns.
func writable[K Key[K], V any](tok *Token, p *page[K, V]) *page[K, V] {
	if p.owner == tok {
		return p
	}
	c := &page[K, V]{owner: tok, keys: cloneWithRoom(p.keys)}
	if p.kids != nil {
		c.kids = cloneWithRoom(p.kids)
	} else {
		c.vals = cloneWithRoom(p.vals)
	}
	return c
}

// cloneWithRoom copies a page's list with room for one more entry.
func cloneWithRoom[T any](s []T) []T {
	return append(make([]T, 0, min(treePage, len(s)+1)), s...)
}

// put sets a key in a page that tok owns; last states that nothing is to the right of
// the page. It returns a new right neighbour if the page was full, and whether the key
// was added.
func put[K Key[K], V any](tok *Token, p *page[K, V], k K, v V, last bool) (right *page[K, V], added bool) {
	if p.kids == nil {
		at, found := search(p.keys, k)
		if found {
			p.vals[at] = v
			return nil, false
		}
		right, into, at := split(tok, p, at, last)
		into.keys, into.vals = insert(into.keys, at, k), insert(into.vals, at, v)
		return right, true
	}
	at := p.child(k)
	kid := writable(tok, p.kids[at])
	p.kids[at] = kid
	next, added := put(tok, kid, k, v, last && at == len(p.kids)-1)
	if next == nil {
		return nil, added
	}
	right, into, at := split(tok, p, at+1, last)
	into.keys, into.kids = insert(into.keys, at, next.keys[0]), insert(into.kids, at, next)
	return right, added
}

// split makes room for one more entry at an index. It returns the page that the entry
// belongs into and its index there, and the right page if the page was split. A tree
// that grows at its end is split there, so that its pages are full.
func split[K Key[K], V any](tok *Token, p *page[K, V], at int, last bool) (right, into *page[K, V], _ int) {
	if len(p.keys) < treePage {
		return nil, p, at
	}
	cut := treePage / 2
	if last && at == treePage {
		cut = treePage
	}
	right = &page[K, V]{owner: tok, keys: cloneWithRoom(p.keys[cut:])}
	p.keys = p.keys[:cut]
	if p.kids != nil {
		right.kids = cloneWithRoom(p.kids[cut:])
		clear(p.kids[cut:])
		p.kids = p.kids[:cut]
	} else {
		right.vals = cloneWithRoom(p.vals[cut:])
		clear(p.vals[cut:])
		p.vals = p.vals[:cut]
	}
	if at > cut || cut == treePage {
		return right, right, at - cut
	}
	return right, p, at
}

// insert puts v at an index; the list grows to a page's size at most.
func insert[T any](s []T, at int, v T) []T {
	if len(s) == cap(s) {
		s = append(make([]T, 0, min(treePage, len(s)+len(s)/2+2)), s...)
	}
	s = s[:len(s)+1]
	copy(s[at+1:], s[at:])
	s[at] = v
	return s
}

// drop drops the entry at an index.
func drop[T any](s []T, at int) []T {
	copy(s[at:], s[at+1:])
	clear(s[len(s)-1:])
	return s[:len(s)-1]
}

// Delete removes a key, which need not be there.
func Delete[K Key[K], V any](tok *Token, t *Tree[K, V], k K) {
	if _, found := t.Get(k); !found {
		return
	}
	t.root = writable(tok, t.root)
	remove(tok, t.root, k)
	for len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
	if len(t.root.keys) == 0 {
		t.root = nil
	}
	t.size--
}

// remove removes a key that is there, in a page that tok owns.
func remove[K Key[K], V any](tok *Token, p *page[K, V], k K) {
	if p.kids == nil {
		at, _ := search(p.keys, k)
		p.keys, p.vals = drop(p.keys, at), drop(p.vals, at)
		return
	}
	at := p.child(k)
	kid := writable(tok, p.kids[at])
	p.kids[at] = kid
	remove(tok, kid, k)
	switch {
	case len(kid.keys) == 0:
		p.keys, p.kids = drop(p.keys, at), drop(p.kids, at)
	case len(kid.keys) < treePage/4:
		merge(tok, p, max(0, at-1))
	}
}

// merge makes one page of kid i and the next, if they leave room in it.
func merge[K Key[K], V any](tok *Token, p *page[K, V], i int) {
	if i+1 >= len(p.kids) || len(p.kids[i].keys)+len(p.kids[i+1].keys) > treePage*3/4 {
		return
	}
	left, right := writable(tok, p.kids[i]), p.kids[i+1]
	from := len(left.keys)
	left.keys = append(left.keys, right.keys...)
	left.keys[from] = p.keys[i+1] // an inner page's first key may be out of date
	if right.kids == nil {
		left.keys[from] = right.keys[0]
	}
	left.vals, left.kids = append(left.vals, right.vals...), append(left.kids, right.kids...)
	p.kids[i] = left
	p.keys, p.kids = drop(p.keys, i+1), drop(p.kids, i+1)
}

// Ascend walks the entries in order, from a key on (nil: all), until yield returns
// false. The tree must not change meanwhile.
func (t *Tree[K, V]) Ascend(from *K, yield func(K, V) bool) {
	if t.root != nil {
		t.root.ascend(from, yield)
	}
}

func (p *page[K, V]) ascend(from *K, yield func(K, V) bool) bool {
	at := 0
	if p.kids != nil {
		if from != nil {
			at = p.child(*from)
		}
		for i, kid := range p.kids[at:] {
			if i > 0 {
				from = nil
			}
			if !kid.ascend(from, yield) {
				return false
			}
		}
		return true
	}
	if from != nil {
		at, _ = search(p.keys, *from)
	}
	for i := at; i < len(p.keys); i++ {
		if !yield(p.keys[i], p.vals[i]) {
			return false
		}
	}
	return true
}

// Descend walks the entries backwards, from a key (nil: the last), until yield
// returns false. The tree must not change meanwhile.
func (t *Tree[K, V]) Descend(from *K, yield func(K, V) bool) {
	if t.root != nil {
		t.root.descend(from, yield)
	}
}

func (p *page[K, V]) descend(from *K, yield func(K, V) bool) bool {
	at := len(p.keys) - 1
	if p.kids != nil {
		if from != nil {
			at = p.child(*from)
		}
		for ; at >= 0; at-- {
			if !p.kids[at].descend(from, yield) {
				return false
			}
			from = nil
		}
		return true
	}
	if from != nil {
		i, found := search(p.keys, *from)
		at = i
		if !found {
			at--
		}
	}
	for ; at >= 0; at-- {
		if !yield(p.keys[at], p.vals[at]) {
			return false
		}
	}
	return true
}
