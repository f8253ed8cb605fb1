package executor

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Whoever sees that a task has ended can have the executor shut down: it does not count as running then.
func TestEndedTaskDoesNotRun(t *testing.T) {
	s, err := newServer(t.TempDir(), time.Hour, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		ended := &task{id: "a", done: make(chan struct{}), rec: record{ID: "a", State: StateRunning}}
		if err := s.store.create(ended.id); err != nil {
			t.Fatal(err)
		}
		s.count(1, 0)
		go s.finish(ended, &Exit{})
		for over := false; !over; {
			select {
			case <-ended.done:
				over = true
			default: // looked at again and again, as it is about the instant after
			}
		}
		if err := s.shutdown(); err != nil {
			t.Fatal(err)
		}
		if err := s.store.remove(ended.id); err != nil {
			t.Fatal(err)
		}
	}
}
