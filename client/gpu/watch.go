package gpu

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// How often a machine is looked at: with GPUs, and for GPUs where there is none.
const (
	DefaultInterval = 5 * time.Second
	absentInterval  = time.Minute
	retryInterval   = time.Second // after a failure that patience covers
)

// Source returns snapshots. Look may block until its driver answers; Close ends what
// it runs. Both are called by one goroutine.
type Source interface {
	Look(ctx context.Context) (*nvml.Snapshot, error)
	Close()
}

// Options configure what a Watcher watches.
type Options struct {
	// Source is read; nil: the embedded probe, on machines that have a driver.
	Source Source
	// Interval is the time between two looks at GPUs. 0: DefaultInterval.
	Interval time.Duration
	// Root is where /proc, /sys and /dev are; empty: "/".
	Root string
	// Ignored are UUIDs of GPUs and MIG slices that are not reported.
	Ignored []string
	// Logger logs changes; silent if nil.
	Logger hclog.Logger
}

// Watcher keeps a machine's Report up to date while Run runs.
type Watcher struct {
	o          Options
	tracker    DeviceTracker
	report     atomic.Pointer[Report]
	changed    chan struct{} // has one entry if the report has changed
	first      chan struct{} // closed after the first look
	lastLogged string        // the last trouble that was logged
}

// New makes a watcher; it looks at nothing before Run.
func New(o Options) *Watcher {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	o.Interval = or(o.Interval, DefaultInterval)
	w := &Watcher{
		o: o, tracker: DeviceTracker{Root: o.Root, Ignored: o.Ignored},
		changed: make(chan struct{}, 1), first: make(chan struct{}),
	}
	w.report.Store(&Report{})
	return w
}

// Report is the newest report; empty before the first look.
func (w *Watcher) Report() *Report { return w.report.Load() }

// Changed gets a word when the report has changed since the last word was taken.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// First is closed when the machine was looked at for the first time.
func (w *Watcher) First() <-chan struct{} { return w.first }

// Run looks again and again until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	source, given := w.o.Source, w.o.Source != nil
	if !given {
		source = &Probe{}
	}
	defer source.Close()
	looked := false
	for {
		wait := absentInterval
		// Once GPUs were seen the source is read even if all signs of them are gone.
		if given || len(w.tracker.gpus) > 0 || Present(w.o.Root) {
			wait = w.look(ctx, source)
		}
		if !looked {
			looked = true
			close(w.first)
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// look looks once and returns the time until the next look.
func (w *Watcher) look(ctx context.Context, source Source) time.Duration {
	s, err := source.Look(ctx)
	if ctx.Err() != nil {
		return w.o.Interval
	}
	now := w.tracker.Update(s, err, time.Now())
	if !reflect.DeepEqual(now, w.report.Load()) {
		w.report.Store(now)
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	wait := w.o.Interval
	switch {
	case err != nil && w.tracker.failures < failureLimit:
		wait = min(wait, retryInterval)
	case err != nil && len(w.tracker.gpus) == 0: // nobody waits for them
		wait = absentInterval
	case err == nil && s.Absent && len(w.tracker.gpus) == 0:
		wait = absentInterval
	}
	w.logTrouble(s, err)
	return wait
}

// logTrouble logs trouble when it begins, changes and ends.
func (w *Watcher) logTrouble(s *nvml.Snapshot, err error) {
	text := ""
	switch {
	case err != nil:
		text = err.Error()
	case s.Error != "" && !s.Absent:
		text = s.Error
	}
	if err == nil {
		for _, e := range s.Events {
			w.o.Logger.Info("the driver reported an error of a GPU", "gpu", e.UUID, "xid", e.Xid)
		}
	}
	if text == w.lastLogged {
		return
	}
	w.lastLogged = text
	if text == "" {
		w.o.Logger.Info("the GPUs can be read again")
		return
	}
	w.o.Logger.Warn("the GPUs cannot be read", "error", text)
}
