package alloc

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/task"
	"github.com/nomadish/nomadish/internal/codec"
)

// The state on disk keeps the names of its fields: an agent reads what an earlier version has written, and the other way round.
func TestStateKeepsItsNames(t *testing.T) {
	type oldTask struct {
		Suspended bool `codec:"Frozen"`
	}
	type old struct {
		Tasks     map[string]oldTask
		Suspended time.Duration `codec:"Frozen"`
	}
	raw, err := codec.Encode(&old{Tasks: map[string]oldTask{"main": {Suspended: true}}, Suspended: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var s State
	if err := codec.Decode(raw, &s); err != nil || s.SuspendedFor != time.Minute || !s.Tasks["main"].Suspended {
		t.Fatalf("%+v, %v", s, err)
	}
	if raw, err = codec.Encode(&State{Tasks: map[string]*task.State{"main": {Suspended: true}}, SuspendedFor: time.Minute}); err != nil {
		t.Fatal(err)
	}
	var o old
	if err := codec.Decode(raw, &o); err != nil || o.Suspended != time.Minute || !o.Tasks["main"].Suspended {
		t.Errorf("%+v, %v", o, err)
	}
}
