package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// evalWatch reads the event stream and keeps when each job's first evaluation was seen to be complete: all that it placed was
// committed before.
type evalWatch struct {
	mu     sync.Mutex
	done   map[string]time.Time
	failed error
	more   chan struct{} // holds one: something has come since it was read last
}

func watchEvals(b *testing.B, a *harness.Agent) *evalWatch {
	b.Helper()
	w := &evalWatch{done: map[string]time.Time{}, more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(b.Context())
	body, err := a.API.Raw(ctx, "/v1/event/stream?topic=Evaluation", nil)
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer body.Close() //nolint:errcheck // read only
		err := w.read(body)
		w.mu.Lock()
		w.failed = errors.Join(errors.New("the event stream ended"), err)
		w.mu.Unlock()
		w.wake()
	}()
	b.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *evalWatch) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// read reads the stream to its end: of each event only what is asked for here.
func (w *evalWatch) read(body io.Reader) error {
	dec := json.NewDecoder(body)
	for {
		var line struct {
			Events []struct {
				Payload struct {
					Evaluation struct{ JobID, Status string }
				}
			}
		}
		if err := dec.Decode(&line); err != nil {
			return err
		}
		now := time.Now()
		w.mu.Lock()
		for _, e := range line.Events {
			eval := e.Payload.Evaluation
			if _, before := w.done[eval.JobID]; !before && eval.Status == structs.EvalStatusComplete {
				w.done[eval.JobID] = now // later ones are of what became of it
			}
		}
		w.mu.Unlock()
		w.wake()
	}
}

// all waits until n jobs have been decided.
func (w *evalWatch) all(b *testing.B, n int) map[string]time.Time {
	b.Helper()
	limit := time.After(5 * time.Minute)
	for {
		w.mu.Lock()
		seen, err := len(w.done), w.failed
		w.mu.Unlock()
		if seen >= n {
			return w.done
		}
		if err != nil {
			b.Fatal(err)
		}
		select {
		case <-w.more:
		case <-limit:
			b.Fatalf("%d of %d jobs are decided after 5 minutes", seen, n)
		}
	}
}
