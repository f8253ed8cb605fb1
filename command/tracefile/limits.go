package tracefile

import (
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// roundLimits are time limits as people state them.
var roundLimits = []time.Duration{
	5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 3 * 24 * time.Hour, 4 * 24 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// RoundLimit returns the least round time limit that is not less than what is needed: 5, 15 or 30 minutes, 1, 2, 4, 8 or 12 hours, 1, 2, 3, 4, 7, 14 or 30
// days, or a multiple of 30 days.
func RoundLimit(need time.Duration) time.Duration {
	for _, l := range roundLimits {
		if need <= l {
			return l
		}
	}
	last := roundLimits[len(roundLimits)-1]
	return min(trace.MaxTime, (need + last - 1).Truncate(last))
}
