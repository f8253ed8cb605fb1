package worker

import (
	"slices"
	"sync"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Assumed knows what the plans that a server's workers have submitted will place.
// It is safe for use by many goroutines.
type Assumed struct {
	mu sync.Mutex
	// inFlight is in the order of submission: of those that claim what only some of them can get, the first have it, as when they are judged.
	inFlight []*assumedPlan

	// What was assumed last is carried on, until the state has another World, or does not get what a plan was to place: as
	// many plans are in flight as there are decisions between two commits.
	base *scheduler.World // what edit began with; nil: edit is of no use
	edit *scheduler.Edit
	more [][]*structs.Allocation // of plans added since edit's World was taken
}

// assumedPlan is what a plan that was submitted will place.
type assumedPlan struct{ allocs []*structs.Allocation }

// NewAssumed returns a new Assumed without plans.
func NewAssumed() *Assumed { return &Assumed{} }

// add notes that a plan was submitted, until committed is called, with whether the state contains all of it now.
func (f *Assumed) add(p *structs.Plan) (committed func(whole bool)) {
	var allocs []*structs.Allocation
	for _, b := range p.Place {
		for i := range b.Instances {
			allocs = append(allocs, b.Allocation(i))
		}
	}
	if len(allocs) == 0 {
		return func(bool) {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := &assumedPlan{allocs}
	f.inFlight = append(f.inFlight, one)
	if f.base != nil {
		f.more = append(f.more, allocs)
	}
	return func(whole bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inFlight = slices.DeleteFunc(f.inFlight, func(other *assumedPlan) bool { return other == one })
		if !whole { // what has been placed counts on, until there is a World with it
			f.base, f.edit, f.more = nil, nil, nil
		}
	}
}

// world returns a snapshot's World with what the submitted plans place; assumed reports
// whether that is any more than the snapshot contains. What they stop is not free yet.
func (f *Assumed) world(snap *state.Snapshot) (w *scheduler.World, assumed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.inFlight) == 0 {
		f.base, f.edit, f.more = nil, nil, nil // an old World is not kept for long
		return snap.World(), false
	}
	if f.base != snap.World() {
		f.base, f.edit, f.more = snap.World(), snap.World().Edit(), nil
		for _, one := range f.inFlight {
			f.more = append(f.more, one.allocs)
		}
	}
	for _, allocs := range f.more {
		for _, a := range allocs {
			f.edit.UpsertAlloc(a) // once, if the plan has been applied already
		}
	}
	f.more = nil
	return f.edit.World(), true
}
