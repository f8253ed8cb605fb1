package preempt

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// maxVictims bounds the instances of a drawn world: the oracle tries every subset.
const maxVictims = 12

// world is a drawn problem.
type world struct {
	shelf    *shelf
	requests []Allocated
	want     Request
}

func draw(t *rapid.T) world {
	num := func(low, high int, what string) int { return rapid.IntRange(low, high).Draw(t, what) }
	s := &shelf{}
	for range num(1, 3, "rooms") {
		s.places = append(s.places, place{free: vec{num(0, 3, "cpu"), num(0, 3, "memory")}, each: vec{num(0, 3, "ask"), num(0, 3, "ask")}, wanted: num(0, 4, "newcomers")})
	}
	gangs := len(s.places) == 1 && rapid.Bool().Draw(t, "gangs")
	w := world{shelf: s, want: Request{
		Below: num(1, 3, "below"), KeepWhole: rapid.Bool().Draw(t, "keep whole"),
		Partial: rapid.SampledFrom([]Partial{"", PartialPreempt, PartialFree, PartialNone}).Draw(t, "partial"),
	}}
	for left := maxVictims; left > 0; {
		n := num(0, min(left, 5), "instances")
		if n == 0 {
			break
		}
		left -= n
		priority := num(1, 6, "priority")
		of := Allocated{Standing: Standing{Band: priority / 2, Priority: priority, Submitted: uint64(num(1, 3, "submitted")), Name: fmt.Sprint(left)}} // small
		of.Suspend = rapid.Bool().Draw(t, "suspend")
		each := vec{num(0, 3, "of each"), num(0, 3, "of each")}
		room := num(0, len(s.places)-1, "room")
		if gangs && rapid.Bool().Draw(t, "gang") {
			elsewhere := num(0, n, "elsewhere")
			w.requests = s.run(w.requests, of, n-elsewhere, each, room)
			a := &w.requests[len(w.requests)-1]
			a.Min = []int{num(1, n, "min")}
			for range elsewhere {
				a.Victims = append(a.Victims, Victim{ID: len(s.all), Room: Elsewhere})
				s.all = append(s.all, usage{room: Elsewhere})
			}
			continue
		}
		w.requests = s.run(w.requests, of, n, each, room)
	}
	for _, h := range s.all { // what runs has its room beside what is free
		if h.room != Elsewhere {
			s.places[h.room].free = s.places[h.room].free.plus(h.whole)
		}
	}
	w.want.Want = s.wants()
	return w
}

func (s *shelf) copy() *shelf {
	return &shelf{places: slices.Clone(s.places), all: slices.Clone(s.all)}
}

// without puts nothing for the victims of a set of IDs.
func (s *shelf) without(gone func(id int) bool) *shelf {
	c := s.copy()
	for id, h := range c.all {
		if h.room != Elsewhere && gone(id) {
			c.Put(id, Nothing)
		}
	}
	return c
}

// order returns the requests that may be taken from, lowest first.
func (w *world) order() (list []int) {
	for i := range w.requests {
		if w.requests[i].Band < w.want.Below {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(i, j int) int { // in words of its own, not the planner's
		a, b := &w.requests[i], &w.requests[j]
		switch {
		case a.Priority != b.Priority: // a higher band has higher ones
			return a.Priority - b.Priority
		case a.Submitted > b.Submitted || a.Submitted == b.Submitted && a.Name < b.Name:
			return -1
		}
		return 1
	})
	return list
}

// walked finds by trying who must be looked at: in each room the fewest requests, the lowest first,
// without which the newcomers fit. It returns how many fit then.
func (w *world) walked() (ids map[int]bool, fit []int) {
	ids = map[int]bool{}
	for room := range w.shelf.places {
		in := map[int]bool{}
		some := w.shelf.Fits(room)
		for _, i := range w.order() {
			if some >= w.want.Want[room] {
				break
			}
			for _, v := range w.requests[i].Victims {
				if v.Room == room {
					in[v.ID] = true
				}
			}
			some = w.shelf.without(func(id int) bool { return in[id] }).Fits(room)
		}
		for id := range in {
			ids[id] = true
		}
		fit = append(fit, some)
	}
	return ids, fit
}

// score is what is better the higher: for each request from the highest whether all of it stays, if
// that is wanted, then how many stay.
func (w *world) score(stays func(id int) bool) (score []int) {
	var whole, count []int
	for _, i := range slices.Backward(w.order()) {
		n, gang := 0, w.requests[i].Min
		for _, v := range w.requests[i].Victims {
			if v.Room == Elsewhere || stays(v.ID) {
				n++
			}
		}
		if len(gang) > 0 && n < gang[0] {
			n = 0
		}
		count = append(count, n)
		if n == len(w.requests[i].Victims) {
			whole = append(whole, 1)
		} else {
			whole = append(whole, 0)
		}
	}
	if w.want.KeepWhole {
		return append(whole, count...)
	}
	return count
}

// allowed reports whether no gang is left with less than its min: whoever of it stays then goes
// too.
func (w *world) allowed(stays func(id int) bool) bool {
	for i := range w.requests {
		if len(w.requests[i].Min) == 0 {
			continue
		}
		n, inRoom := 0, 0
		for _, v := range w.requests[i].Victims {
			if v.Room == Elsewhere || stays(v.ID) {
				n++
			}
			if v.Room != Elsewhere && stays(v.ID) {
				inRoom++
			}
		}
		if n < w.requests[i].Min[0] && inRoom > 0 {
			return false
		}
	}
	return true
}

// best tries every subset of the walked, and returns the highest score of those that may stay
// beside so many newcomers.
func (w *world) best(walked map[int]bool, goal []int) (best []int) {
	var ids []int
	for id := range w.shelf.all {
		if walked[id] {
			ids = append(ids, id)
		}
	}
	for set := range 1 << len(ids) {
		gone := map[int]bool{}
		for i, id := range ids {
			if set>>i&1 == 0 {
				gone[id] = true
			}
		}
		stays := func(id int) bool { return !gone[id] }
		if !w.allowed(stays) || !w.shelf.without(func(id int) bool { return gone[id] }).fitsAll(goal) {
			continue
		}
		if score := w.score(stays); best == nil || slices.Compare(score, best) > 0 {
			best = score
		}
	}
	return best
}

func (s *shelf) fitsAll(goal []int) bool {
	for room := range s.places {
		if s.Fits(room) < goal[room] {
			return false
		}
	}
	return true
}

// TestAgainstEverySubset compares plans with what trying all subsets gives.
func TestAgainstEverySubset(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := draw(rt)
		walked, fit := w.walked()
		before := w.shelf.copy()
		after := w.shelf.copy()
		r := Plan(after, w.requests, w.want)
		gone := map[int]bool{}
		for _, x := range r.Taken {
			if w.requests[x.Allocated].Band >= w.want.Below {
				rt.Fatalf("band %d is taken from for one of %d", w.requests[x.Allocated].Band, w.want.Below)
			}
			gone[w.requests[x.Allocated].Victims[x.Victim].ID] = true
		}
		all := slices.Equal(fit, w.want.Want)
		switch {
		case all, w.want.Partial == "", w.want.Partial == PartialPreempt:
			if !slices.Equal(r.Placed, fit) {
				rt.Fatalf("placed %v, want %v", r.Placed, fit)
			}
		default:
			checkUntouched(rt, w, before, after, r)
			return
		}
		if !after.fitsAll(r.Placed) {
			rt.Fatalf("the newcomers do not fit")
		}
		stays := func(id int) bool { return !gone[id] }
		if got, want := w.score(stays), w.best(walked, r.Placed); !slices.Equal(got, want) {
			rt.Fatalf("what stays is worth %v, best is %v", got, want)
		}
		checkStillFits(rt, w, before, after, r, gone)
		checkOrder(rt, w, before, gone)
	})
}

func checkUntouched(t *rapid.T, w world, before, after *shelf, r Result) {
	if len(r.Taken) > 0 || !slices.Equal(before.places, after.places) || !slices.Equal(before.all, after.all) {
		t.Fatalf("%+v are taken from, and nothing was to be", r.Taken)
	}
	for room, n := range r.Placed {
		if want := before.Fits(room); w.want.Partial == PartialFree && n != want || w.want.Partial == PartialNone && n != 0 {
			t.Fatalf("%s: %d of room %d are placed, %d fit what is free", w.want.Partial, n, room, want)
		}
	}
}

// checkStillFits proves that the rooms are as the result says, that no more of a gang is left
// than nothing or its min, and that none could be put back or suspended.
func checkStillFits(t *rapid.T, w world, before, after *shelf, r Result, gone map[int]bool) {
	says := map[int]Holding{}
	for _, x := range r.Taken {
		a := &w.requests[x.Allocated]
		id := a.Victims[x.Victim].ID
		says[id] = Nothing
		if x.How == Suspend {
			says[id] = Suspended
		}
		if len(a.Min) > 0 || a.Victims[x.Victim].Room == Elsewhere {
			continue
		}
		c := after.copy()
		if c.Put(id, Whole); c.fitsAll(r.Placed) {
			t.Fatalf("instance %d could be put back", id)
		}
		if x.NoRoom != (a.Suspend && x.How == Requeue) {
			t.Fatalf("%+v of an ask that suspends: %v", x, a.Suspend)
		}
		if c.Put(id, Suspended); x.NoRoom && c.fitsAll(r.Placed) {
			t.Fatalf("instance %d could be suspended", id)
		}
	}
	want := before.copy()
	for id, h := range want.all {
		if h.room != Elsewhere {
			want.Put(id, says[id])
		}
	}
	if !slices.Equal(want.places, after.places) {
		t.Fatalf("rooms are %v, want %v", after.places, want.places)
	}
	if !w.allowed(func(id int) bool { return !gone[id] }) {
		t.Fatalf("a gang is left in part")
	}
	for i := range w.requests { // who is elsewhere goes with its gang, and only then
		a, n := &w.requests[i], 0
		for _, v := range a.Victims {
			if !gone[v.ID] {
				n++
			}
		}
		if len(a.Min) > 0 && n > 0 && n < a.Min[0] {
			t.Fatalf("%d of a gang of at least %d run on", n, a.Min[0])
		}
	}
}

// checkOrder plans the same with the requests in another order.
func checkOrder(t *rapid.T, w world, before *shelf, gone map[int]bool) {
	turned := slices.Clone(w.requests)
	slices.Reverse(turned)
	r := Plan(before.copy(), turned, w.want)
	var got, want []int
	for _, x := range r.Taken {
		got = append(got, turned[x.Allocated].Victims[x.Victim].ID)
	}
	for id := range gone {
		want = append(want, id)
	}
	slices.SortFunc(got, cmp.Compare[int])
	slices.SortFunc(want, cmp.Compare[int])
	if !slices.Equal(got, want) {
		t.Fatalf("%v are taken with the asks in another order, before it was %v", got, want)
	}
}
