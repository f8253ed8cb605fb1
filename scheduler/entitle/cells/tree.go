package cells

// Token marks who may change something in place: the edit that made it. What another token owns is copied first, so
// that what was handed out stays as it is.
type Token struct{ _ byte } // not empty: two empty structs may share an address

// tree is a persistent ordered map: a treap whose shape follows from its keys alone, so that a tree that was built step by
// step equals one that was built at once. A copy of the struct is a snapshot.
type tree[V any] struct {
	root *twig[V]
	size int
}

// twig is a vertex of a tree.
type twig[V any] struct {
	owner       *Token
	key         string
	rank        uint64 // of a parent it is larger: a hash of the key
	left, right *twig[V]
	val         V
}

// summed is a value that keeps a sum over the subtree below it.
type summed[V any] interface{ sum(left, right *V) }

func rankOf(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

func (t *tree[V]) get(key string) (v V, found bool) {
	for at := t.root; at != nil; {
		switch {
		case key < at.key:
			at = at.left
		case key > at.key:
			at = at.right
		default:
			return at.val, true
		}
	}
	return v, false
}

func (t *tree[V]) put(tok *Token, key string, val V) {
	t.root = t.insert(tok, t.root, key, rankOf(key), val)
}

func (t *tree[V]) insert(tok *Token, at *twig[V], key string, rank uint64, val V) *twig[V] {
	if at == nil {
		t.size++
		at = &twig[V]{owner: tok, key: key, rank: rank, val: val}
		at.fix()
		return at
	}
	at = at.own(tok)
	switch {
	case key < at.key:
		at.left = t.insert(tok, at.left, key, rank, val)
		if at.left.above(at) {
			top := at.left
			at.left, top.right = top.right, at
			at.fix()
			at = top
		}
	case key > at.key:
		at.right = t.insert(tok, at.right, key, rank, val)
		if at.right.above(at) {
			top := at.right
			at.right, top.left = top.left, at
			at.fix()
			at = top
		}
	default:
		at.val = val
	}
	at.fix()
	return at
}

func (t *tree[V]) remove(tok *Token, key string) {
	if _, found := t.get(key); !found {
		return
	}
	t.size--
	t.root = cut(tok, t.root, key)
}

func cut[V any](tok *Token, at *twig[V], key string) *twig[V] {
	if key == at.key {
		return join(tok, at.left, at.right)
	}
	at = at.own(tok)
	if key < at.key {
		at.left = cut(tok, at.left, key)
	} else {
		at.right = cut(tok, at.right, key)
	}
	at.fix()
	return at
}

// join makes one tree of two, all keys of the first being smaller.
func join[V any](tok *Token, a, b *twig[V]) *twig[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.above(b):
		a = a.own(tok)
		a.right = join(tok, a.right, b)
		a.fix()
		return a
	default:
		b = b.own(tok)
		b.left = join(tok, a, b.left)
		b.fix()
		return b
	}
}

func (at *twig[V]) above(o *twig[V]) bool {
	return at.rank > o.rank || at.rank == o.rank && at.key < o.key
}

func (at *twig[V]) own(tok *Token) *twig[V] {
	if at.owner == tok {
		return at
	}
	own := *at
	own.owner = tok
	return &own
}

func (at *twig[V]) fix() {
	s, ok := any(&at.val).(summed[V])
	if !ok {
		return
	}
	var left, right *V
	if at.left != nil {
		left = &at.left.val
	}
	if at.right != nil {
		right = &at.right.val
	}
	s.sum(left, right)
}

// all walks the entries in the order of their keys until yield returns false.
func (t *tree[V]) all(yield func(string, V) bool) { walk(t.root, yield) }

func walk[V any](at *twig[V], yield func(string, V) bool) bool {
	return at == nil || walk(at.left, yield) && yield(at.key, at.val) && walk(at.right, yield)
}
