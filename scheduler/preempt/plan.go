package preempt

import "slices"

// Plan returns which instances must release what they use so that newcomers fit (semantics part 3).
// Requests may come in any order; they are walked in the order of their standings. Rooms must be in
// their current state, with Nothing put for instances that have ended already. Afterwards they are
// as the Result states.
func Plan(rooms Rooms, requests []Allocated, want Request) Result {
	p := &planner{rooms: rooms, allocated: requests, want: want}
	p.begin()

	// 1. Free resources are used first: no instance is preempted if they suffice.
	// 2. Walk request by request, the lowest first, until the newcomers of every room fit.
	p.walk()

	// 3. If that was not enough, decide what is preempted all the same.
	if !p.settle() {
		return Result{Placed: p.goal}
	}

	// 4. Return what is left over, to the highest first, as long as that changes anything.
	p.giveBack()

	// 5. Decide how the others release what they use.
	return p.result()
}

// planner is one plan on its way.
type planner struct {
	rooms     Rooms
	allocated []Allocated
	want      Request
	order     []int       // of the requests that may be preempted, lowest first
	holdings  [][]Holding // by request and victim
	walked    []int       // requests that were walked, in that order
	free      []int       // newcomers that fit what is free, by room
	goal      []int       // newcomers that must fit, by room
}

func (p *planner) begin() {
	for i := range p.allocated {
		if p.allocated[i].Band < p.want.Below {
			p.order = append(p.order, i)
		}
	}
	slices.SortFunc(p.order, func(a, b int) int { return p.allocated[a].Compare(&p.allocated[b].Standing) })
	p.holdings = make([][]Holding, len(p.allocated))
	p.free = make([]int, len(p.want.Want))
	for r := range p.free {
		p.free[r] = p.rooms.Fits(r)
	}
	p.goal = slices.Clone(p.free)
}

// short reports whether newcomers of a room do not fit yet.
func (p *planner) short(room int) bool {
	return room != Elsewhere && p.goal[room] < p.want.Want[room]
}

// anyShort reports whether newcomers of any room do not fit yet.
func (p *planner) anyShort() bool {
	for r := range p.goal {
		if p.short(r) {
			return true
		}
	}
	return false
}

// put moves one instance. Taking away always succeeds.
func (p *planner) put(request, victim int, h Holding) bool {
	v := &p.allocated[request].Victims[victim]
	if v.Room != Elsewhere && !p.rooms.Put(v.ID, h) {
		return false
	}
	p.holdings[request][victim] = h
	return true
}

// walk takes request by request until the newcomers of each room fit. goal is how many do.
func (p *planner) walk() {
	for _, i := range p.order {
		if !p.anyShort() {
			return
		}
		a := &p.allocated[i]
		p.holdings[i] = make([]Holding, len(a.Victims))
		touched := false
		for v := range a.Victims {
			if p.short(a.Victims[v].Room) {
				touched = p.put(i, v, Nothing) || touched
			}
		}
		if !touched {
			continue
		}
		p.walked = append(p.walked, i)
		p.dissolve(i)
		for r := range p.goal {
			if p.short(r) {
				p.goal[r] = p.rooms.Fits(r)
			}
		}
	}
}

// dissolve takes all of a gang of which too few would run.
func (p *planner) dissolve(request int) {
	if p.enough(request) {
		return
	}
	for v, h := range p.holdings[request] {
		if h != Nothing {
			p.put(request, v, Nothing)
		}
	}
}

// enough reports whether as many of a request hold all of their own as must if any do.
func (p *planner) enough(request int) bool {
	a := &p.allocated[request]
	for part, least := range a.Min {
		for v, h := range p.holdings[request] {
			if h == Whole && a.Victims[v].Part == part {
				least--
			}
		}
		if least > 0 {
			return false
		}
	}
	return true
}

// settle decides which newcomers are placed if the walk was not enough: goal. It reports whether
// anything is preempted; if not, the state is as before.
func (p *planner) settle() bool {
	if !p.anyShort() || p.want.Partial == PartialPreempt || p.want.Partial == "" {
		return len(p.walked) > 0
	}
	for i := len(p.walked) - 1; i >= 0; i-- {
		request := p.walked[i]
		for v := range slices.Backward(p.holdings[request]) {
			if p.holdings[request][v] != Whole {
				p.put(request, v, Whole)
			}
		}
	}
	p.goal = p.free
	if p.want.Partial == PartialNone {
		p.goal = make([]int, len(p.free))
	}
	return false
}

// stillFits reports whether the newcomers of a room that must fit still do.
func (p *planner) stillFits(room int) bool {
	return room == Elsewhere || p.rooms.Fits(room) >= p.goal[room]
}

// giveBack returns to the walked requests what is left over, to the highest first. A pass is enough
// where less room never fits more newcomers; further ones make sure of it.
func (p *planner) giveBack() {
	if p.want.KeepWhole {
		for _, request := range slices.Backward(p.walked) {
			p.whole(request)
		}
	}
	for again := true; again; {
		again = false
		for _, request := range slices.Backward(p.walked) {
			again = p.back(request) || again
		}
	}
}

// whole leaves a request untouched if all of it fits.
func (p *planner) whole(request int) {
	was := slices.Clone(p.holdings[request])
	for v := range slices.Backward(was) {
		if was[v] == Nothing && !p.try(request, v, Whole) {
			p.undo(request, was)
			return
		}
	}
}

// undo preempts again what was returned since holdings had the given state.
func (p *planner) undo(request int, was []Holding) {
	for v := range was {
		if p.holdings[request][v] != was[v] {
			p.put(request, v, was[v])
		}
	}
}

// back returns to a request as many instances as fit, and reports whether any did. A gang of which
// too few would run gets none.
func (p *planner) back(request int) bool {
	was := slices.Clone(p.holdings[request])
	some := false
	for v := range slices.Backward(was) {
		if was[v] == Nothing && p.try(request, v, Whole) {
			some = true
		}
	}
	if some && !p.enough(request) && !p.untouched(request) {
		p.undo(request, was)
		return false
	}
	return some
}

// untouched reports whether a request has all back. It may be of a gang that has fewer left than
// its Min, as others have completed.
func (p *planner) untouched(request int) bool {
	return !slices.ContainsFunc(p.holdings[request], func(h Holding) bool { return h != Whole })
}

// try lets one instance have what it keeps then, if the newcomers still fit.
func (p *planner) try(request, victim int, keeps Holding) bool {
	if !p.put(request, victim, keeps) {
		return false
	}
	if p.stillFits(p.allocated[request].Victims[victim].Room) {
		return true
	}
	p.put(request, victim, Nothing)
	return false
}

// result returns which instances are preempted and how. What may be suspended is, the highest first, if its memory
// can stay.
func (p *planner) result() Result {
	r := Result{Placed: p.goal}
	how := make([][]Action, len(p.allocated))
	for _, request := range slices.Backward(p.walked) {
		how[request] = p.actions(request)
	}
	for _, request := range p.walked {
		for v, h := range p.holdings[request] {
			if h != Whole {
				t := Taken{Allocated: request, Victim: v, How: how[request][v]}
				t.NoRoom = p.allocated[request].Suspend && t.How == Requeue
				r.Taken = append(r.Taken, t)
			}
		}
	}
	return r
}

// actions decides how the instances of one request are preempted. A gang is suspended whole or not at
// all.
func (p *planner) actions(request int) []Action {
	a := &p.allocated[request]
	out := make([]Action, len(a.Victims))
	gang := len(a.Min) > 0
	shrinks := gang && slices.Contains(p.holdings[request], Whole)
	was := slices.Clone(p.holdings[request])
	for v := range slices.Backward(was) {
		if was[v] == Whole {
			continue
		}
		switch {
		case shrinks:
			out[v] = Shrink
		case a.Suspend && p.try(request, v, Suspended):
			out[v] = Suspend
		default:
			out[v] = Requeue
		}
	}
	if gang && a.Suspend && slices.Contains(out, Requeue) && slices.Contains(out, Suspend) {
		p.undo(request, was)
		for v := range out {
			out[v] = Requeue
		}
	}
	return out
}
