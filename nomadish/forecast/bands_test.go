package forecast

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestReservedInOrderOfBands: a job has the room of one that ended reserved before a job of a higher band comes, and keeps it. The next reservation is that of
// the higher band, which has waited long enough for one, and not that of another one of the lower band that has waited longer.
func TestReservedInOrderOfBands(t *testing.T) {
	r := newReality(t)
	config := structs.DefaultSchedulerConfiguration()
	config.ReservationAfter = 5 * time.Second
	r.put(&structs.SchedulerConfigEntry{Config: config})
	r.nodes(1)
	for i, id := range []string{"first", "low-1", "low-2", "low-3"} {
		r.comes(cpuJob(id, 20, 90_000, time.Duration(120+i)*time.Second))
	}
	r.until(r.now.Add(20 * time.Second))
	r.comes(cpuJob("high", 80, 90_000, 2*time.Minute))
	r.until(r.now.Add(11 * time.Minute))
	for i, id := range []string{"first", "low-1", "high", "low-2", "low-3"} {
		starts := r.starts[groupKey{structs.NamespacedID{Namespace: structs.DefaultNamespace, ID: id}, "g"}]
		if len(starts) != 1 || starts[0].Sub(epoch).Round(time.Minute) != time.Duration(2*i)*time.Minute {
			t.Errorf("%s started at %v, not as number %d", id, starts, i+1)
		}
	}
}
