package gpu

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// fakeSource answers what it is told to.
type fakeSource struct {
	mu     sync.Mutex
	answer nvml.Snapshot
	err    error
	looks  int
	closed bool
}

func (f *fakeSource) Look(context.Context) (*nvml.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if f.err != nil {
		return nil, f.err
	}
	s := f.answer
	f.answer.Events = nil // each is told once
	return &s, nil
}

func (f *fakeSource) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func (f *fakeSource) set(s nvml.Snapshot, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.err = s, err
}

func (f *fakeSource) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

func TestWatcherNotifiesOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		well := nvml.Snapshot{GPUs: (&patient{}).gpus()}
		sick := nvml.Snapshot{GPUs: (&patient{}).gpus()}
		sick.GPUs[1].Uncorrected = 2
		f := &fakeSource{answer: well}
		w := New(Options{Source: f, Root: t.TempDir()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		<-w.First()
		changed := func() bool {
			synctest.Wait()
			select {
			case <-w.Changed():
				return true
			default:
				return false
			}
		}
		if !changed() || len(w.Report().Devices) != 1 {
			t.Fatal("the first look was not told")
		}
		for range 20 {
			time.Sleep(DefaultInterval)
			if changed() {
				t.Fatal("told though nothing has changed")
			}
		}
		for _, c := range []struct {
			answer nvml.Snapshot
			bad    bool
		}{{sick, true}, {well, false}, {sick, true}} {
			f.set(c.answer, nil)
			begun := time.Now()
			<-w.Changed()
			if took := time.Since(begun); took > DefaultInterval || (bad(w.Report()) != "") != c.bad {
				t.Errorf("after %v: %q", took, bad(w.Report()))
			}
		}
		f.set(well, errors.New("crashed"))
		begun := time.Now()
		<-w.Changed()
		if took := time.Since(begun); took > DefaultInterval+retryInterval || bad(w.Report()) == "" {
			t.Errorf("two crashes, after %v: %q", took, bad(w.Report()))
		}
		cancel()
		<-done
		if !f.closed {
			t.Error("the source was not closed")
		}
	})
}

// TestWatcherWithoutGPUs: a machine without any costs next to nothing.
func TestWatcherWithoutGPUs(t *testing.T) {
	f := func(what string, answer nvml.Snapshot, err error) {
		synctest.Test(t, func(t *testing.T) {
			source := &fakeSource{answer: answer, err: err}
			w := New(Options{Source: source, Root: t.TempDir()})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); w.Run(ctx) }()
			<-w.First()
			time.Sleep(time.Hour)
			if n := source.count(); n > 62 {
				t.Errorf("%s: looked %d times in an hour", what, n)
			}
			select {
			case <-w.Changed():
				t.Errorf("%s: told of a change", what)
			default:
			}
			cancel()
			<-done
		})
	}
	f("no library", nvml.Snapshot{Absent: true, Error: "no library"}, nil)
	f("no GPU", nvml.Snapshot{Absent: true}, nil)
	f("no probe", nvml.Snapshot{}, ErrNoProbe)
}
