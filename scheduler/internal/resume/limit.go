package resume

import (
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/structs"
)

// LimitOf returns when a suspended allocation is to be requeued; zero: never.
func LimitOf(a *structs.Allocation, c *structs.SchedulerConfiguration) time.Time {
	if a.SuspendedAt <= 0 {
		return time.Time{}
	}
	return time.Unix(0, a.SuspendedAt).Add(c.SuspendedFor()).UTC()
}

// PastLimit reports whether a suspended allocation is to be requeued now.
func PastLimit(now time.Time, c *structs.SchedulerConfiguration, a *structs.Allocation) bool {
	at := LimitOf(a, c)
	return !at.IsZero() && !at.After(now.Add(feasible.RescheduleSlack))
}
