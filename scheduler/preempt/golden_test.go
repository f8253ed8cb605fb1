package preempt

import (
	"slices"
	"testing"
)

// golden is the node of semantics part 3, with what runs on it: A, B and C.
func golden(newcomers int) (*shelf, []Allocated) {
	s := &shelf{places: []place{{free: vec{100, 100}, each: vec{1, 1}, wanted: newcomers}}}
	var requests []Allocated
	requests = s.run(requests, Allocated{Standing: Standing{Band: 3, Priority: 3}}, 20, vec{1, 1}, 0)
	requests = s.run(requests, Allocated{Standing: Standing{Band: 2, Priority: 2}}, 20, vec{3, 2}, 0)
	requests = s.run(requests, Allocated{Standing: Standing{Band: 1, Priority: 1}}, 10, vec{2, 1}, 0)
	return s, requests
}

func TestGolden(t *testing.T) {
	s, requests := golden(30)
	if s.places[0].free != (vec{0, 30}) {
		t.Fatalf("free %v at the start", s.places[0].free)
	}
	r := Plan(s, requests, Request{Want: s.wants(), Below: 4})
	if !slices.Equal(r.Placed, []int{30}) {
		t.Fatalf("placed %v, want 30", r.Placed)
	}
	wantTaken(t, r, requests, 0, 4, 9)
	if left := s.places[0].free.minus(vec{30, 30}); left != (vec{0, 17}) {
		t.Fatalf("%v stays free, want (0,17)", left)
	}
	if got := r.Loss(requests); got != (Loss{Band: 2, Priority: 2, Instances: 13}) {
		t.Fatalf("loss %+v", got)
	}
}

func TestGoldenKeepWhole(t *testing.T) {
	s, requests := golden(30)
	r := Plan(s, requests, Request{Want: s.wants(), Below: 4, KeepWhole: true})
	wantTaken(t, r, requests, 0, 10, 0)
	if left := s.places[0].free.minus(vec{30, 30}); left != (vec{0, 20}) {
		t.Fatalf("%v stays free, want (0,20)", left)
	}
}

// TestGoldenBands: bands {1-4},{5-7},{8-10}; a 9 may take from a 7 and a 4, never from an 8.
func TestGoldenBands(t *testing.T) {
	s := &shelf{places: []place{{free: vec{3, 3}, each: vec{1, 1}, wanted: 3}}}
	var requests []Allocated
	for i, priority := range []int{8, 7, 4} {
		requests = s.run(requests, Allocated{Standing: Standing{Band: 2 - i, Priority: priority}}, 1, vec{1, 1}, 0)
	}
	r := Plan(s, requests, Request{Want: s.wants(), Below: 2})
	if !slices.Equal(r.Placed, []int{2}) {
		t.Fatalf("placed %v, want 2", r.Placed)
	}
	wantTaken(t, r, requests, 0, 1, 1)
}

// TestPartial: 100 of E do not fit, whatever is taken from B and C.
func TestPartial(t *testing.T) {
	f := func(partial Partial, free vec, placed int, want ...int) {
		t.Helper()
		s, requests := golden(100)
		s.places[0].free = s.places[0].free.plus(free)
		r := Plan(s, requests, Request{Want: s.wants(), Below: 3, Partial: partial})
		if !slices.Equal(r.Placed, []int{placed}) {
			t.Fatalf("%s: placed %v, want %d", partial, r.Placed, placed)
		}
		wantTaken(t, r, requests, want...)
		if placed == 0 && s.places[0].free != (vec{0, 30}).plus(free) {
			t.Fatalf("%s: %v is free, and nothing was taken", partial, s.places[0].free)
		}
	}
	f("", vec{}, 80, 0, 20, 10)
	f(PartialPreempt, vec{}, 80, 0, 20, 10)
	f(PartialPreempt, vec{19, 0}, 80, 0, 20, 10) // what is left over has no memory
	f(PartialFree, vec{5, 0}, 5, 0, 0, 0)
	f(PartialFree, vec{}, 0, 0, 0, 0)
	f(PartialNone, vec{5, 0}, 0, 0, 0, 0)
}

// TestOrderWithinPriority: of two requests of one priority the later one is taken from.
func TestOrderWithinPriority(t *testing.T) {
	s := &shelf{places: []place{{free: vec{2, 2}, each: vec{1, 1}, wanted: 1}}}
	var requests []Allocated
	requests = s.run(requests, Allocated{Standing: Standing{Submitted: 7}}, 1, vec{1, 1}, 0)
	requests = s.run(requests, Allocated{Standing: Standing{Submitted: 9}}, 1, vec{1, 1}, 0)
	wantTaken(t, Plan(s, requests, Request{Want: s.wants(), Below: 1}), requests, 0, 1)
}

// TestSuspend: what is suspended keeps its memory, if that can stay.
func TestSuspend(t *testing.T) {
	f := func(free, each vec, how Action, noRoom bool) {
		t.Helper()
		s := &shelf{places: []place{{free: vec{2, 2}.plus(free), each: each, wanted: 1}}}
		requests := s.run(nil, Allocated{Suspend: true}, 1, vec{2, 2}, 0)
		r := Plan(s, requests, Request{Want: s.wants(), Below: 1})
		if len(r.Taken) != 1 || r.Taken[0].How != how || r.Taken[0].NoRoom != noRoom {
			t.Fatalf("%+v, want %s, no room %v", r.Taken, how, noRoom)
		}
	}
	f(vec{0, 1}, vec{1, 1}, Suspend, false)
	f(vec{0, 0}, vec{1, 1}, Requeue, true)
	f(vec{0, 0}, vec{1, 0}, Suspend, false)
}

// TestGang: members above Min go one by one; where that is not enough all go, wherever
// they are.
func TestGang(t *testing.T) {
	f := func(newcomers, least int, how Action, want ...int) {
		t.Helper()
		s := &shelf{places: []place{{free: vec{3, 3}, each: vec{1, 1}, wanted: newcomers}}}
		requests := s.run(nil, Allocated{Min: []int{least}}, 2, vec{1, 1}, 0)
		requests[0].Victims = append(requests[0].Victims, Victim{Room: Elsewhere}, Victim{Room: Elsewhere})
		requests = s.run(requests, Allocated{Standing: Standing{Priority: 1}}, 1, vec{1, 1}, 0)
		r := Plan(s, requests, Request{Want: s.wants(), Below: 1})
		wantTaken(t, r, requests, want...)
		if r.Taken[0].How != how {
			t.Fatalf("%s, want %s", r.Taken[0].How, how)
		}
	}
	f(1, 3, Shrink, 1, 0)
	f(2, 2, Shrink, 2, 0)
	f(2, 3, Requeue, 4, 0)
	f(1, 4, Requeue, 4, 0)
	f(3, 3, Requeue, 4, 1)
}

// TestGangLeftOver: a gang of which fewer are left than must run, as others have completed,
// is not stopped in vain: it gets back all that it has, or nothing.
func TestGangLeftOver(t *testing.T) {
	f := func(newcomer vec, want ...int) {
		t.Helper()
		s := &shelf{places: []place{{free: vec{5, 5}, each: newcomer, wanted: 1}}}
		requests := s.run(nil, Allocated{Min: []int{3}}, 2, vec{1, 1}, 0)
		requests = s.run(requests, Allocated{Standing: Standing{Priority: 1}}, 1, vec{3, 3}, 0)
		wantTaken(t, Plan(s, requests, Request{Want: s.wants(), Below: 1}), requests, want...)
	}
	f(vec{1, 1}, 2, 0)
	f(vec{3, 3}, 0, 1)
	f(vec{4, 4}, 2, 1)
}

// TestGangAcrossRooms: a gang that is gone from one room has left the others too, and
// what newcomers there do not need then is given back.
func TestGangAcrossRooms(t *testing.T) {
	s := &shelf{places: []place{{free: vec{1, 1}, each: vec{1, 1}, wanted: 1}, {free: vec{2, 2}, each: vec{1, 1}, wanted: 1}}}
	var requests []Allocated
	requests = s.run(requests, Allocated{Standing: Standing{Priority: 1}}, 1, vec{1, 1}, 1)
	requests = s.run(requests, Allocated{Standing: Standing{Priority: 2}, Min: []int{2}}, 1, vec{1, 1}, 0)
	requests[1].Victims = append(requests[1].Victims, Victim{ID: len(s.all), Room: 1})
	s.all = append(s.all, usage{room: 1, whole: vec{1, 1}})
	s.places[1].free = s.places[1].free.minus(vec{1, 1})
	r := Plan(s, requests, Request{Want: s.wants(), Below: 1})
	wantTaken(t, r, requests, 0, 2)
}
