package search

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/structs"
)

// Prepared remembers what does not change from one evaluation to the next: what groups request
// for and which nodes they may use at all. A job that waits is decided again and again, and
// the rows of a trace share their groups. It makes deciding faster and changes no answer.
// It is for one goroutine at a time; jobs and groups that it has seen must not be changed.
type Prepared struct {
	fits     feasible.FitMemory
	requests map[*structs.TaskGroup]*preparedRequest
	// searches and cursors are memory for those of one evaluation after the other.
	searches spare[Search]
	cursors  spare[phaseCursor]
	memory   any // of evaluations; nil: there is none, or it is in use
}

// spare is memory that is used again.
type spare[T any] struct {
	list []*T
	used int
}

// next returns an empty one, which is in use until used is less again; of nil, one that is used once.
func (s *spare[T]) next() *T {
	if s == nil {
		return new(T)
	}
	if s.used == len(s.list) {
		s.list = append(s.list, new(T))
	} else {
		var none T
		*s.list[s.used] = none
	}
	s.used++
	return s.list[s.used-1]
}

// maxSpare is how many are kept for others.
const maxSpare = 64

func (s *spare[T]) free(used int) {
	s.used = used
	s.list = s.list[:min(len(s.list), max(used, maxSpare))]
}

// Lend lets searches, and an evaluation with empty memory of a type, use memory of earlier ones until end is called, after which none of it may be used.
func Lend[T any](p *Prepared) (memory *T, end func()) {
	if p == nil {
		return new(T), func() {}
	}
	memory, some := p.memory.(*T)
	if !some {
		memory = new(T)
	}
	p.memory = nil
	searches, cursors := p.searches.used, p.cursors.used
	return memory, func() {
		p.searches.free(searches)
		p.cursors.free(cursors)
		var none T
		*memory = none
		p.memory = memory
	}
}

// NewPrepared makes one that remembers nothing.
func NewPrepared() *Prepared {
	return &Prepared{fits: feasible.NewFitMemory(), requests: map[*structs.TaskGroup]*preparedRequest{}}
}

// preparedRequest is the remembered request of one group.
type preparedRequest struct {
	of      *feasible.RememberedFit // while the group is remembered as this, the request is its
	request *Request
	// What of the configuration the request depends on.
	oversubscribed bool
	preferred      []int
}

// MemoryOf is what is remembered of the nodes that groups may use; nil: nothing is.
func MemoryOf(p *Prepared) *feasible.FitMemory {
	if p == nil {
		return nil
	}
	return &p.fits
}

// requestOf returns what one instance of a group takes.
func (in *Input) requestOf(group *structs.TaskGroup) *Request {
	p, c := in.Prepared, &in.Config
	of := MemoryOf(p).Of(in.Job, group, in.Alike)
	if of == nil {
		return NewRequest(in, group)
	}
	known := of.Group()
	g := p.requests[known]
	if g == nil || g.of != of || g.oversubscribed != c.MemoryOversubscriptionEnabled || !slices.Equal(g.preferred, c.PreferredCells) {
		if len(p.requests) >= feasible.MaxRemembered {
			clear(p.requests)
		}
		g = &preparedRequest{of, newNodeSetKey(c, group), c.MemoryOversubscriptionEnabled, slices.Clone(c.PreferredCells)}
		p.requests[known] = g
	}
	a := g.request.copy()
	a.Group = group
	a.requestedBy(in)
	return a
}
