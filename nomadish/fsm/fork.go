package fsm

import (
	"io"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Fork is a private fork of a state, which entries are applied to that are in no log: for who looks at what would become of it.
type Fork struct {
	Store  *state.Store
	writer *state.Writer
}

// NewFork returns a fork of the state that a store has now; its feed keeps so many changes.
func NewFork(of *state.Store, eventBuffer int) *Fork {
	f := &Fork{}
	f.Store, f.writer = of.Fork(eventBuffer)
	return f
}

// Apply applies an entry to the fork, and returns its index there. The payload may be kept: its maker must not change it. The error is the
// state's, which then is as it was.
func (f *Fork) Apply(t structs.LogType, payload any) (uint64, error) {
	index := f.Store.LatestIndex() + 1
	return index, f.writer.Apply(index, t, payload)
}

// Unread has the fork keep nothing that only its readers want: see [state.Writer.Unread].
func (f *Fork) Unread() { f.writer.Unread() }

// Drop has the changes up to an index kept no longer: all feeds of the fork have read them.
func (f *Fork) Drop(index uint64) { f.writer.Drop(index) }

// Empty returns a state of nothing, which nobody writes to.
func Empty() *state.Store {
	store, _ := state.New(state.Options{EventBuffer: 1})
	return store
}

// Restored returns the state that a snapshot contains, which nobody writes to.
func Restored(from io.Reader) (*state.Store, error) {
	store, writer := state.New(state.Options{EventBuffer: 1})
	if err := restore(from, writer); err != nil {
		return nil, err
	}
	return store, nil
}
