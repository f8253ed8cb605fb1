package tree

// Change is a key whose value differs between two trees. Had and Has report in which of them the key
// is: the older one, the newer one.
type Change[K, V any] struct {
	Key      K
	Was, Is  V
	Had, Has bool
}

// Same reports whether two trees are certainly equal, as nothing was changed of one that the other was not
// copied from. It may return false where they are.
func Same[K, V any](t, o *Tree[K, V]) bool { return t.root == o.root && t.size == o.size }

// Changes yields the keys at which tree t differs from an older one, in order; values are compared by
// same. Pages that the two share are passed over, so that it costs as much as was changed, not as much as
// there is.
func Changes[K, V any](t, old *Tree[K, V], same func(a, b V) bool, yield func(Change[K, V])) {
	was, is := walkOf(old), walkOf(t)
	for {
		x, y := was.top(), is.top()
		switch {
		case x == nil && y == nil:
			return
		case x != nil && y != nil && x.at < 0 && y.at < 0:
			if x.page == y.page {
				was.pop()
				is.pop()
				continue
			}
			level := max(x.height, y.height) // the taller one first: below it may be the other
			was.open(level)
			is.open(level)
		case x != nil && x.at < 0:
			if y != nil && t.compare(y.key(), x.page.keys[0]) < 0 {
				yield(Change[K, V]{Key: y.key(), Is: y.val(), Has: true})
				is.next()
				continue
			}
			was.open(x.height)
		case y != nil && y.at < 0:
			if x != nil && t.compare(x.key(), y.page.keys[0]) < 0 {
				yield(Change[K, V]{Key: x.key(), Was: x.val(), Had: true})
				was.next()
				continue
			}
			is.open(y.height)
		case y == nil || x != nil && t.compare(x.key(), y.key()) < 0:
			yield(Change[K, V]{Key: x.key(), Was: x.val(), Had: true})
			was.next()
		case x == nil || t.compare(y.key(), x.key()) < 0:
			yield(Change[K, V]{Key: y.key(), Is: y.val(), Has: true})
			is.next()
		default:
			if !same(x.val(), y.val()) {
				yield(Change[K, V]{x.key(), x.val(), y.val(), true, true})
			}
			was.next()
			is.next()
		}
	}
}

// treeWalk is what is left of a tree on a walk over it, the next at the end.
type treeWalk[K, V any] struct{ left []treeStep[K, V] }

// treeStep is a page that was not opened yet (at is -1), or an entry of a leaf and those after it.
type treeStep[K, V any] struct {
	page   *page[K, V]
	height int // of a leaf: 0
	at     int
}

func (s *treeStep[K, V]) key() K { return s.page.keys[s.at] }
func (s *treeStep[K, V]) val() V { return s.page.vals[s.at] }

func walkOf[K, V any](t *Tree[K, V]) (w treeWalk[K, V]) {
	if t.root == nil {
		return w
	}
	height := 0
	for p := t.root; p.kids != nil; p = p.kids[0] {
		height++
	}
	w.left = append(w.left, treeStep[K, V]{t.root, height, -1})
	return w
}

// top returns the next step; nil: there is none.
func (w *treeWalk[K, V]) top() *treeStep[K, V] {
	if len(w.left) == 0 {
		return nil
	}
	return &w.left[len(w.left)-1]
}

func (w *treeWalk[K, V]) pop() { w.left = w.left[:len(w.left)-1] }

// next goes past an entry.
func (w *treeWalk[K, V]) next() {
	s := w.top()
	if s.at++; s.at == len(s.page.keys) {
		w.pop()
	}
}

// open opens the next page if it is of a height.
func (w *treeWalk[K, V]) open(height int) {
	s := *w.top()
	switch {
	case s.height != height:
	case s.page.kids == nil:
		w.top().at = 0
	default:
		w.pop()
		for i := len(s.page.kids) - 1; i >= 0; i-- {
			w.left = append(w.left, treeStep[K, V]{s.page.kids[i], s.height - 1, -1})
		}
	}
}
