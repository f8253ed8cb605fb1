package client

import (
	"testing"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/structs"
)

// TestCountersOfTasksOfBefore: the counters of a task are from zero in the life of the agent in which its allocation came, and
// not in a later one.
func TestCountersOfTasksOfBefore(t *testing.T) {
	r := newRig(t)
	r.config.Metrics.Allocations = true
	r.start()
	a := r.s.place(r.c.NodeID(), job("run", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	starts := func() (value float64, fromZero bool) {
		t.Helper()
		b, shown := telemetry.NewBatch(100), 0
		r.c.Metrics(b)
		b.Each(func(f *telemetry.Family, values []telemetry.Value) {
			if f.Name == "client.allocs.running" {
				shown += len(values)
				value, fromZero = values[0].Value, values[0].Labels.IsFromZero()
			}
		})
		if shown != 1 {
			t.Fatalf("%d series", shown)
		}
		return value, fromZero
	}
	if value, fromZero := starts(); value != 1 || !fromZero {
		t.Errorf("a new task was started %v times, from zero: %v", value, fromZero)
	}
	r.stop()
	r.s.change(func() { delete(r.s.sessions, r.c.NodeID()) })
	r.start()
	if value, fromZero := starts(); value != 1 || fromZero {
		t.Errorf("a task of before was started %v times, from zero: %v", value, fromZero)
	}
}
