package trace

import (
	"container/heap"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// requestKey is the jobs that the scheduler cannot distinguish but by rank.
type requestKey struct {
	key      classKey
	row      Row // one of them
	jobs     int // that have not ended
	requests requestHeap
	tried    uint64 // the release since which the first of requests has been tried without success
	at       int    // in queue.waiting; -1: nobody waits
	due      int64  // when it is to be tried next though nothing came free; 0: never
	entitled uint64 // as tried, of what its tenant owns; see replay.releases
	fails    *failed
	// groups are shared by the jobs of one count.
	groups map[int][]*structs.TaskGroup
}

// failed is when the first of those request keys failed that differ in their tenant only: beyond what these own, they fail alike.
type failed struct{ release uint64 }

// requestHeap is jobs that wait, the best rank first.
type requestHeap []*job

func (h requestHeap) Len() int           { return len(h) }
func (h requestHeap) Less(i, j int) bool { return h[i].rank.Compare(&h[j].rank) < 0 }
func (h requestHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}
func (h *requestHeap) Push(x any) {
	j := x.(*job)
	j.heapIndex = len(*h)
	*h = append(*h, j)
}
func (h *requestHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	j.heapIndex = -1
	return j
}

// queue is all that waits, by request key.
type queue struct {
	requestKeys map[classKey]*requestKey
	fails       map[classKey]*failed
	waiting     []*requestKey // those of which jobs wait, in no order that shows
	jobs        int           // that wait
	// milli is what they wait for, in thousandths of GPUs.
	milli int64
	// release counts the times that resources came free.
	release uint64
	// open are request keys that were not tried since the last release, if allOpen is not set.
	open    []*requestKey
	allOpen bool
	// apart: those that differ in their tenant do not fail alike, as workflows lend to some of them.
	apart bool
}

func newQueue() queue {
	return queue{requestKeys: map[classKey]*requestKey{}, fails: map[classKey]*failed{}, release: 1}
}

// requestKeyOf finds the request key of a row.
func (q *queue) requestKeyOf(row *Row, key classKey) *requestKey {
	s := q.requestKeys[key]
	if s == nil {
		s = &requestKey{key: key, row: *row, at: -1, groups: map[int][]*structs.TaskGroup{}, fails: &failed{}}
		if key.tenant != "" && key.owner == 0 && !q.apart {
			key.tenant = ""
			if q.fails[key] == nil {
				q.fails[key] = s.fails
			}
			s.fails = q.fails[key]
		}
		q.requestKeys[s.key] = s
	}
	return s
}

// forget drops a request key of which nothing is left.
func (q *queue) forget(s *requestKey) {
	if s.jobs == 0 {
		delete(q.requestKeys, s.key)
	}
}

// join lets a job wait.
func (q *queue) join(j *job) {
	s := j.requestKey
	heap.Push(&s.requests, j)
	if s.at < 0 {
		s.at = len(q.waiting)
		q.waiting = append(q.waiting, s)
	}
	q.jobs++
	q.milli += j.missingMilli()
	if j.tenant != nil {
		j.tenant.changed = true
	}
	if s.tried != q.release {
		q.open = append(q.open, s)
	}
}

// leave takes a job out of the queue.
func (q *queue) leave(j *job) {
	s := j.requestKey
	heap.Remove(&s.requests, j.heapIndex)
	q.jobs--
	q.milli -= j.missingMilli()
	if j.tenant != nil {
		j.tenant.changed = true
	}
	if len(s.requests) > 0 {
		return
	}
	last := q.waiting[len(q.waiting)-1]
	q.waiting[s.at], last.at = last, s.at
	q.waiting = q.waiting[:len(q.waiting)-1]
	s.at = -1
}

// released records that resources came free: all that waits may be tried again.
func (q *queue) released() {
	q.release++
	q.allOpen = true
}

// retry lets a request key be tried though nothing came free.
func (q *queue) retry(s *requestKey) {
	s.tried, s.entitled = 0, 0
	q.open = append(q.open, s)
}

// untried returns the request keys that are to be tried, each once, as a heap by the rank of their
// first requests.
func (q *queue) untried(shares *shares) *requestKeyHeap {
	list := q.open
	if q.allOpen {
		list = q.waiting
	}
	out := &requestKeyHeap{shares: shares}
	for _, s := range list {
		if len(s.requests) > 0 && s.tried != q.release {
			s.tried = q.release // no second time in this list; see pass
			out.list = append(out.list, s)
		}
	}
	clear(q.open)
	q.open, q.allOpen = q.open[:0], false
	heap.Init(out)
	return out
}

// requestKeyHeap is request keys by the ranks of the first that wait in each.
type requestKeyHeap struct {
	list   []*requestKey
	shares *shares
}

func (h *requestKeyHeap) Len() int { return len(h.list) }
func (h *requestKeyHeap) Less(i, j int) bool {
	a, b := h.list[i].requests[0], h.list[j].requests[0]
	if a.spec.Namespace == b.spec.Namespace {
		return a.rank.Compare(&b.rank) < 0
	}
	x, y := a.rank.Shared(h.shares.of(a.spec.Namespace), 0), b.rank.Shared(h.shares.of(b.spec.Namespace), 0) // no job states a user
	return x.Compare(&y) < 0
}
func (h *requestKeyHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *requestKeyHeap) Push(x any)    { h.list = append(h.list, x.(*requestKey)) }
func (h *requestKeyHeap) Pop() any {
	last := len(h.list) - 1
	s := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	return s
}

// placed moves what waits of a namespace of which something was placed.
func (h *requestKeyHeap) placed(namespace string) {
	if h.shares.placed(namespace) {
		heap.Init(h)
	}
}

// shares are the dominant shares of namespaces in a pass, in percent: looked up when it begins and after each placement
// (semantics part 7).
type shares struct {
	pass  *scheduler.Pass // nil: shares make no difference
	known map[string]int
}

func (s *shares) of(namespace string) int {
	percent, known := s.known[namespace]
	if !known && s.pass != nil {
		percent = s.pass.World().Share(structs.NodePoolDefault, namespace)
		s.known[namespace] = percent
	}
	return percent
}

// placed looks a share up again, and reports whether it is another one than before.
func (s *shares) placed(namespace string) bool {
	was, known := s.known[namespace]
	delete(s.known, namespace)
	return known && s.of(namespace) != was
}
