package queue

// heap is a binary heap whose elements know their index in it, so that any of them can
// be taken out or moved.
type heap[T any] struct {
	list   []T
	before func(a, b T) bool
	index  func(T) *int // where T keeps its index in the list, counted from 1; 0: it is not in
}

func (h *heap[T]) len() int { return len(h.list) }

// first returns the first; false: the heap is empty.
func (h *heap[T]) first() (x T, ok bool) {
	if len(h.list) == 0 {
		return x, false
	}
	return h.list[0], true
}

// put takes an element in, or moves it to where it belongs now.
func (h *heap[T]) put(x T) {
	at := h.index(x)
	if *at == 0 {
		h.list = append(h.list, x)
		*at = len(h.list)
	}
	h.down(h.up(*at - 1))
}

// remove takes an element out, if it is in.
func (h *heap[T]) remove(x T) {
	at := h.index(x)
	if *at == 0 {
		return
	}
	i, last := *at-1, len(h.list)-1
	h.swap(i, last)
	var none T
	h.list[last] = none
	h.list = h.list[:last]
	*at = 0
	if i < last {
		h.down(h.up(i))
	}
}

// mend puts all in order again, after several of them have moved.
func (h *heap[T]) mend() {
	for i := len(h.list)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// visit calls f with elements, each before those that may follow it in the order at once, which are left out where f returns false.
func (h *heap[T]) visit(f func(T) bool) { h.visitFrom(0, f) }

func (h *heap[T]) visitFrom(i int, f func(T) bool) {
	if i < len(h.list) && f(h.list[i]) {
		h.visitFrom(2*i+1, f)
		h.visitFrom(2*i+2, f)
	}
}

func (h *heap[T]) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.index(h.list[i]), *h.index(h.list[j]) = i+1, j+1
}

func (h *heap[T]) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.list[i], h.list[parent]) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h *heap[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.list); child++ {
			if h.before(h.list[child], h.list[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
