package forecast

import (
	"math"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// eventBuffer is how many changes a fork keeps: all, until its leader drops them. However many come at one time, as of a job of thousands of instances, none is
// lost to who follows them.
const eventBuffer = math.MaxInt

// fork is a private fork of a state that applies so many entries at most.
type fork struct {
	*fsm.Fork
	entries int // that may still be applied
}

func newFork(base *state.Store, entries int) *fork {
	return &fork{fsm.NewFork(base, eventBuffer), entries}
}

// apply applies an entry to the fork. It returns an error if as many have been applied as may be.
func (f *fork) apply(t structs.LogType, payload any) (uint64, error) {
	if f.entries--; f.entries < 0 {
		return 0, structs.Errorf(structs.CodeLimited, "the forecast has applied as many entries as it may")
	}
	return f.Apply(t, payload)
}

// spent reports whether an entry was refused as there were too many.
func (f *fork) spent() bool { return f.entries < 0 }

// ids returns a function that mints IDs from a text: always the same ones.
func ids(text string) func() string {
	n := 0
	return func() string {
		n++
		return structs.DeriveID(text, uint64(n)) // not negative
	}
}
