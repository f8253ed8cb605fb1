package worker

import (
	"sync"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Foresight knows what the plans that a server's workers have submitted will place.
// It is safe for use by many goroutines.
type Foresight struct {
	mu     sync.Mutex
	flying map[*structs.Plan][]*structs.Allocation
}

// NewForesight makes a foresight without plans.
func NewForesight() *Foresight {
	return &Foresight{flying: map[*structs.Plan][]*structs.Allocation{}}
}

// launch notes that a plan was submitted, until land is called.
func (f *Foresight) launch(p *structs.Plan) (land func()) {
	var allocs []*structs.Allocation
	for _, b := range p.Place {
		for i := range b.Instances {
			allocs = append(allocs, b.Allocation(i))
		}
	}
	if len(allocs) == 0 {
		return func() {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying[p] = allocs
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.flying, p)
	}
}

// world is a snapshot's World with what the submitted plans place; foreseen tells
// whether that is any more than the snapshot holds. What they stop is not free yet.
func (f *Foresight) world(snap *state.Snapshot) (w *scheduler.World, foreseen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.flying) == 0 {
		return snap.World(), false
	}
	edit := snap.World().Edit()
	for _, allocs := range f.flying { // order does not matter: a sum
		for _, a := range allocs {
			edit.UpsertAlloc(a) // once, if the plan has been applied already
		}
	}
	return edit.World(), true
}
