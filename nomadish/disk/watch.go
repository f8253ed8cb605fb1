package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/internal/diskroom"
	"github.com/nomadish/nomadish/structs"
)

// Options tune a Watch. Zero values are replaced by the defaults named.
type Options struct {
	Dir      string            // on the disk; it must exist
	Limit    structs.DiskLimit // when it counts as full
	Interval time.Duration     // between two looks (1 s)
	// Measure looks how much room there is (diskroom.Measure), Try whether something can be written (Try). For tests.
	Measure func(dir string) (structs.DiskRoom, error)
	Try     func(dir string) error
	Logger  hclog.Logger
}

// State is what is known of the disk.
type State struct {
	Room structs.DiskRoom // as it was measured last
	// Full is why nothing should be written that can wait; empty: there is room.
	Full string
}

// Watch looks after the room on one disk. Its methods may be called from many goroutines, and on a nil Watch, which is
// one of a disk that is never full.
type Watch struct {
	o       Options
	wake    chan struct{}
	changed chan struct{} // holds one word: Full has changed since it was taken

	mu     sync.Mutex
	state  State
	broken error // what a write failed with, until one succeeds
	blind  bool  // it was logged that the disk cannot be measured
}

// NewWatch makes a watch; it looks at nothing before Run.
func NewWatch(o Options) *Watch {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Measure == nil {
		o.Measure = diskroom.Measure
	}
	if o.Try == nil {
		o.Try = Try
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return &Watch{o: o, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

// tryBytes is how much Try writes: more than one small write of Raft's.
const tryBytes = 256 << 10

// Try writes a little to the disk and takes it away again.
func Try(dir string) error {
	path := filepath.Join(dir, ".room")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // the operator names the directory
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, tryBytes))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(path))
}

// State is what is known of the disk now.
func (w *Watch) State() State {
	if w == nil {
		return State{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Full returns why the disk counts as full; empty: there is room.
func (w *Watch) Full() string { return w.State().Full }

// Changed gets a word when Full has changed since the last word was taken.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Failed reports a failed write to the disk: it counts as full from now on, whatever is measured, until
// something can be written again.
func (w *Watch) Failed(err error) {
	if w == nil || err == nil {
		return
	}
	room := w.State().Room
	if now, unknown := w.o.Measure(w.o.Dir); unknown == nil {
		room = now
	}
	w.mu.Lock()
	w.state.Room, w.broken = room, err
	w.judge()
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run looks again and again until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	t := time.NewTicker(w.o.Interval)
	defer t.Stop()
	for {
		w.Look()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-w.wake:
			// One who fails again and again is not a reason to look more often.
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	}
}

// Look looks once.
func (w *Watch) Look() {
	room, err := w.o.Measure(w.o.Dir)
	w.mu.Lock()
	broken := w.broken
	if err == nil {
		w.state.Room, w.blind = room, false
	} else if !w.blind {
		w.blind = true
		w.o.Logger.Warn("how much room is left on the disk is not known", "error", err)
	}
	enough := !w.o.Limit.Full(w.state.Full != "", w.state.Room)
	w.mu.Unlock()
	if broken != nil && enough {
		broken = w.o.Try(w.o.Dir)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = broken
	w.judge()
}

// judge brings Full up to date; mu is held.
func (w *Watch) judge() {
	was, why := w.state.Full, ""
	short := w.o.Limit.Full(was != "", w.state.Room)
	noRoom := errors.Is(w.broken, unix.ENOSPC) || errors.Is(w.broken, unix.EDQUOT)
	switch {
	case short || noRoom:
		why = fmt.Sprintf("the disk of %s is full (%s)", w.o.Dir, w.state.Room)
	case w.broken != nil:
		why = fmt.Sprintf("the disk of %s cannot be written: %v", w.o.Dir, w.broken)
	}
	w.state.Full = why
	if (was == "") == (why == "") {
		return
	}
	if why != "" {
		w.o.Logger.Error("this server steps down: its disk is full or broken; it returns to service by itself when there is room",
			"dir", w.o.Dir, "left", w.state.Room, "reason", why)
	} else {
		w.o.Logger.Info("there is room on the disk again; this server takes its part", "dir", w.o.Dir, "left", w.state.Room)
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
