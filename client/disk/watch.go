package disk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/diskroom"
	"github.com/nomadish/nomadish/structs"
)

// Options tune a Watch. Zero values are replaced by the defaults named.
type Options struct {
	Dirs     []string          // on the disks; they must exist
	Limit    structs.DiskLimit // when a disk counts as full
	Interval time.Duration     // between two looks (1 s)
	// Measure looks how much room there is (diskroom.Measure). For tests.
	Measure func(dir string) (structs.DiskRoom, error)
	Logger  hclog.Logger
}

// Watch looks after the room on some disks.
type Watch struct {
	o       Options
	changed chan struct{} // has one entry after a change

	mu    sync.Mutex
	full  string
	bad   map[string]bool // directories on full disks
	blind map[string]bool // those of which it was logged that they cannot be measured
}

// NewWatch makes a watch; it looks at nothing before Look or Run.
func NewWatch(o Options) *Watch {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Measure == nil {
		o.Measure = diskroom.Measure
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return &Watch{o: o, changed: make(chan struct{}, 1), bad: map[string]bool{}, blind: map[string]bool{}}
}

// Full returns why a disk counts as full, in words that stay the same while it does; empty: there is room.
func (w *Watch) Full() string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full
}

// Changed gets a word when Full has changed since the last word was taken; never on a nil Watch.
func (w *Watch) Changed() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.changed
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
		}
	}
}

// Look looks once. It is called by one goroutine at a time.
func (w *Watch) Look() {
	w.mu.Lock()
	was := w.full
	w.mu.Unlock()
	now := ""
	for _, dir := range w.o.Dirs {
		room, err := w.o.Measure(dir)
		if err != nil {
			if !w.blind[dir] {
				w.o.Logger.Warn("how much room is left on a disk is not known", "error", err)
			}
			w.blind[dir] = true
			continue
		}
		w.blind[dir] = false
		w.bad[dir] = w.o.Limit.Full(w.bad[dir], room)
		if w.bad[dir] && now == "" {
			now = fmt.Sprintf("the disk of %s is full (%s)", dir, room)
		}
	}
	if now != "" && was != "" {
		return // as it was reported
	}
	if was == now {
		return
	}
	if now != "" {
		w.o.Logger.Error("this node takes no new work: its disk is full; what runs goes on, and it comes back by itself when there is room", "reason", now)
	} else {
		w.o.Logger.Info("there is room on the disk again; this node takes new work")
	}
	w.mu.Lock()
	w.full = now
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
