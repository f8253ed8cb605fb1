package preempt

import (
	"slices"
	"testing"
)

// vec is (cpu, memory).
type vec [2]int

func (v vec) plus(o vec) vec  { return vec{v[0] + o[0], v[1] + o[1]} }
func (v vec) minus(o vec) vec { return vec{v[0] - o[0], v[1] - o[1]} }
func (v vec) fits(in vec) bool {
	return v[0] <= in[0] && v[1] <= in[1]
}

// usage is what one instance holds.
type usage struct {
	room  int
	whole vec
	now   Holding
}

func (h *usage) is() vec {
	switch h.now {
	case Whole:
		return h.whole
	case Suspended:
		return vec{0, h.whole[1]}
	}
	return vec{}
}

// place is one room of a test.
type place struct {
	free   vec
	each   vec // what a newcomer asks
	wanted int
}

// shelf is rooms of plain amounts.
type shelf struct {
	places    []place
	all       []usage // by Victim.ID
	requested int
}

func (s *shelf) Put(victim int, h Holding) bool {
	v := &s.all[victim]
	p := &s.places[v.room]
	p.free = p.free.plus(v.is())
	v.now = h
	p.free = p.free.minus(v.is())
	return true
}

func (s *shelf) Fits(room int) int {
	s.requested++
	p, n := &s.places[room], 0
	for free := p.free; n < p.wanted && p.each.fits(free); n++ {
		free = free.minus(p.each)
	}
	return n
}

// run adds a request of n instances that run in a room.
func (s *shelf) run(requests []Allocated, of Allocated, n int, each vec, room int) []Allocated {
	for range n {
		of.Victims = append(of.Victims, Victim{ID: len(s.all), Room: room})
		s.all = append(s.all, usage{room: room, whole: each})
		s.places[room].free = s.places[room].free.minus(each)
	}
	return append(requests, of)
}

func (s *shelf) wants() (want []int) {
	for _, p := range s.places {
		want = append(want, p.wanted)
	}
	return want
}

// taken counts what each request gives back.
func taken(r Result, requests []Allocated) []int {
	n := make([]int, len(requests))
	for _, t := range r.Taken {
		n[t.Allocated]++
	}
	return n
}

func wantTaken(t *testing.T, r Result, requests []Allocated, want ...int) {
	t.Helper()
	if got := taken(r, requests); !slices.Equal(got, want) {
		t.Fatalf("%v give back, want %v", got, want)
	}
}
