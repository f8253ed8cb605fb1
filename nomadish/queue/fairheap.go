package queue

// fairHeap is a heap of elements whose order depends on the shares of their namespaces, which change: a heap for each namespace, within
// which shares make no difference, and a heap of these heaps.
type fairHeap[T any] struct {
	before     func(a, b T) bool
	index      func(T) *int // as of heap
	namespace  func(T) string
	namespaces map[string]*namespaceHeap[T]
	order      *heap[*namespaceHeap[T]]
	size       int
}

// namespaceHeap is what a fairHeap has of a namespace. It is never empty.
type namespaceHeap[T any] struct {
	heap[T]
	inOrder int
}

func newFairHeap[T any](before func(a, b T) bool, index func(T) *int, namespace func(T) string) *fairHeap[T] {
	return &fairHeap[T]{
		before: before, index: index, namespace: namespace, namespaces: map[string]*namespaceHeap[T]{},
		order: &heap[*namespaceHeap[T]]{
			before: func(a, b *namespaceHeap[T]) bool { return before(a.list[0], b.list[0]) },
			index:  func(n *namespaceHeap[T]) *int { return &n.inOrder },
		},
	}
}

func (h *fairHeap[T]) len() int { return h.size }

// first returns the first; false: the heap is empty.
func (h *fairHeap[T]) first() (x T, ok bool) {
	if n, some := h.order.first(); some {
		return n.first()
	}
	return x, false
}

// put takes an element in, or moves it to where it belongs now.
func (h *fairHeap[T]) put(x T) {
	name := h.namespace(x)
	n := h.namespaces[name]
	if n == nil {
		n = &namespaceHeap[T]{heap: heap[T]{before: h.before, index: h.index}}
		h.namespaces[name] = n
	}
	h.size -= n.len()
	n.put(x)
	h.size += n.len()
	h.order.put(n)
}

// remove takes an element out, if it is in.
func (h *fairHeap[T]) remove(x T) {
	if *h.index(x) == 0 {
		return
	}
	name := h.namespace(x)
	n := h.namespaces[name]
	if n.len() == 1 { // before it is empty, as the order looks at its first
		h.order.remove(n)
		delete(h.namespaces, name)
	}
	n.remove(x)
	h.size--
	if n.len() > 0 {
		h.order.put(n)
	}
}

// shared moves a namespace to where its share puts it now.
func (h *fairHeap[T]) shared(namespace string) {
	if n := h.namespaces[namespace]; n != nil {
		h.order.put(n)
	}
}
