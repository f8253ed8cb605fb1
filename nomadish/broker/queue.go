package broker

import "container/heap"

// queue is a heap of evaluations: higher priority first, then first come.
type queue struct{ items []*item }

func (i *item) before(o *item) bool {
	if i.eval.Priority != o.eval.Priority {
		return i.eval.Priority > o.eval.Priority
	}
	if i.seq != o.seq {
		return i.seq < o.seq
	}
	return i.eval.ID < o.eval.ID
}

func (q *queue) push(it *item) { heap.Push((*items)(&q.items), it) }
func (q *queue) first() *item  { return q.items[0] }
func (q *queue) len() int      { return len(q.items) }

// remove takes it out, if it is in.
func (q *queue) remove(it *item) {
	if it.index < len(q.items) && q.items[it.index] == it {
		heap.Remove((*items)(&q.items), it.index)
	}
}

// items implements heap.Interface.
type items []*item

func (h *items) Len() int           { return len(*h) }
func (h *items) Less(i, j int) bool { return (*h)[i].before((*h)[j]) }
func (h *items) Swap(i, j int) {
	(*h)[i], (*h)[j] = (*h)[j], (*h)[i]
	(*h)[i].index, (*h)[j].index = i, j
}
func (h *items) Push(x any) {
	it := x.(*item)
	it.index = len(*h)
	*h = append(*h, it)
}
func (h *items) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
