package queue

import "slices"

// tenant is whose an element of a fairHeap is: the shares that its order depends on are those of a namespace and of a user.
type tenant struct{ namespace, user string }

// fairHeap is a heap of elements whose order depends on the shares of their namespaces and users, which change: a heap for each user of a
// namespace, within which shares make no difference; for each namespace a heap of these, within which the namespace's share makes none; and a
// heap of those.
type fairHeap[T comparable] struct {
	before     func(a, b T) bool
	within     func(a, b T) bool // before of two of the same user and namespace
	index      func(T) *int      // as of heap
	of         func(T) tenant
	namespaces map[string]*namespaceHeap[T]
	order      *heap[*namespaceHeap[T]]
	users      heap[*userHeap[T]] // an empty one, of which that of a namespace is made
	size       int
	spare      *namespaceHeap[T] // an empty one
	// home, not nil, is where an element keeps in which of the heaps it is, if it is in any.
	home func(T) **userHeap[T]
	// ok, not nil, reports which elements firstOf looks for. changed must be called whenever it reports something else of an element.
	ok func(T) bool
	found[T]
}

// found is what firstOf has found, until something changes: best, if some, unless it is not known.
type found[T comparable] struct {
	known, some bool
	best        T
}

// namespaceHeap is what a fairHeap has of a namespace. It is never empty, unless it is a spare one.
type namespaceHeap[T comparable] struct {
	users   map[string]*userHeap[T]
	order   heap[*userHeap[T]]
	inOrder int
	spare   *userHeap[T] // an empty one
}

// userHeap is what a fairHeap has of a user of a namespace. It is never empty, unless it is a spare one.
type userHeap[T comparable] struct {
	heap[T]
	inOrder int
	found[T]
}

func newFairHeap[T comparable](before, within func(a, b T) bool, index func(T) *int, of func(T) tenant) *fairHeap[T] {
	return &fairHeap[T]{
		before: before, within: within, index: index, of: of, namespaces: map[string]*namespaceHeap[T]{},
		order: &heap[*namespaceHeap[T]]{
			before: func(a, b *namespaceHeap[T]) bool { return before(a.first(), b.first()) },
			index:  func(n *namespaceHeap[T]) *int { return &n.inOrder },
		},
		users: heap[*userHeap[T]]{
			before: func(a, b *userHeap[T]) bool { return before(a.list[0], b.list[0]) },
			index:  func(u *userHeap[T]) *int { return &u.inOrder },
		},
	}
}

func (n *namespaceHeap[T]) first() T { return n.order.list[0].list[0] }

func (h *fairHeap[T]) len() int { return h.size }

// first returns the first; false: the heap is empty.
func (h *fairHeap[T]) first() (x T, ok bool) {
	if n, some := h.order.first(); some {
		return n.first(), true
	}
	return x, false
}

// firstOf returns the first of those that ok reports; false: there is none.
func (h *fairHeap[T]) firstOf() (best T, found bool) {
	f := &h.found
	if !f.known {
		best, found = h.findFirst(h.ok)
		f.known, f.some, f.best = true, found, best
	}
	return f.best, f.some
}

func (h *fairHeap[T]) findFirst(ok func(T) bool) (best T, found bool) {
	h.order.visit(func(n *namespaceHeap[T]) bool {
		if found && !h.before(n.first(), best) {
			return false
		}
		n.order.visit(func(u *userHeap[T]) bool {
			if found && !h.before(u.list[0], best) {
				return false
			}
			if x, some := u.firstOf(ok); some && (!found || h.before(x, best)) {
				best, found = x, true
			}
			return true
		})
		return true
	})
	return best, found
}

func (u *userHeap[T]) firstOf(ok func(T) bool) (best T, found bool) {
	if !u.known {
		u.visit(func(x T) bool {
			switch {
			case found && !u.before(x, best):
				return false
			case ok(x):
				best, found = x, true
				return false
			}
			return true
		})
		u.known, u.some, u.best = true, found, best
	}
	return u.best, u.some
}

// changed takes in that firstOf's ok reports an element now, or does so no more.
func (h *fairHeap[T]) changed(x T, ok bool) {
	if *h.index(x) == 0 {
		return
	}
	u, of := h.userOf(x), &h.found
	switch {
	case !u.known:
		of.known = false
		return
	case ok && (!u.some || h.within(x, u.best)):
		u.some, u.best = true, x
	case !ok && u.some && u.best == x:
		u.known = false
	}
	if of.known = of.known && (ok || !of.some || of.best != x); of.known && ok && (!of.some || h.before(x, of.best)) {
		of.some, of.best = true, x
	}
}

// userOf is the heap that an element is in.
func (h *fairHeap[T]) userOf(x T) *userHeap[T] {
	if h.home != nil {
		return *h.home(x)
	}
	of := h.of(x)
	return h.namespaces[of.namespace].users[of.user]
}

// put takes an element in, or moves it to where it belongs now.
func (h *fairHeap[T]) put(x T) {
	of := h.of(x)
	n := h.namespaces[of.namespace]
	if n == nil {
		if n, h.spare = h.spare, nil; n == nil {
			n = &namespaceHeap[T]{users: map[string]*userHeap[T]{}, order: h.users}
		}
		h.namespaces[of.namespace] = n
	}
	u := n.users[of.user]
	if u == nil {
		if u, n.spare = n.spare, nil; u == nil {
			u = &userHeap[T]{heap: heap[T]{before: h.within, index: h.index}}
		}
		n.users[of.user] = u
	}
	if h.home != nil {
		*h.home(x) = u
	}
	h.size -= u.len()
	u.put(x)
	h.size += u.len()
	n.order.put(u)
	h.order.put(n)
	h.moved(u, x)
}

// moved takes in that an element is new in a heap, or elsewhere in it.
func (h *fairHeap[T]) moved(u *userHeap[T], x T) {
	u.left(x)
	h.left(x)
	switch {
	case !u.known:
		h.known = false
	case h.ok(x):
		h.came(x, h.before)
		u.came(x, h.within)
	}
}

// left takes in that an element is gone, or elsewhere.
func (f *found[T]) left(x T) { f.known = f.known && (!f.some || f.best != x) }

// came takes in that an element is one of those that are looked for.
func (f *found[T]) came(x T, before func(a, b T) bool) {
	if f.known && (!f.some || before(x, f.best)) {
		f.some, f.best = true, x
	}
}

// remove takes an element out, if it is in.
func (h *fairHeap[T]) remove(x T) {
	if *h.index(x) == 0 {
		return
	}
	of := h.of(x)
	n := h.namespaces[of.namespace]
	u := n.users[of.user]
	u.left(x)
	h.left(x)
	if u.len() == 1 { // before they are empty, as the orders look at their firsts
		if n.order.len() == 1 {
			h.order.remove(n)
			delete(h.namespaces, of.namespace)
			h.spare = n
		}
		n.order.remove(u)
		delete(n.users, of.user)
		n.spare, u.known = u, false
	}
	u.remove(x)
	h.size--
	if u.len() > 0 {
		n.order.put(u)
	}
	if n.order.len() > 0 {
		h.order.put(n)
	}
}

// shared moves a namespace to where its share puts it now.
func (h *fairHeap[T]) shared(namespace string) {
	h.known = false
	if n := h.namespaces[namespace]; n != nil {
		h.order.put(n)
	}
}

// userShared moves a user to where the user's share puts it now, in all namespaces.
func (h *fairHeap[T]) userShared(user string) {
	h.known = false
	var last *namespaceHeap[T]
	moved := 0
	for _, n := range h.namespaces { // order does not matter: each has a heap of its own
		if u := n.users[user]; u != nil {
			n.order.put(u)
			last = n
			moved++
		}
	}
	switch moved {
	case 0:
	case 1:
		h.order.put(last)
	default:
		h.order.mend()
	}
}

// some reports whether an element is as f states.
func (h *fairHeap[T]) some(f func(T) bool) bool {
	for _, n := range h.namespaces { // order does not matter
		for _, u := range n.users { // nor here
			if slices.ContainsFunc(u.list, f) {
				return true
			}
		}
	}
	return false
}
