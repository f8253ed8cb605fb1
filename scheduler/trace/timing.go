package trace

import (
	"math/bits"
	"time"
)

// Timing is how fast it was: of the machine, not of the trace.
type Timing struct {
	Decisions int64
	// Deciding is the time in the scheduler; Following is what bringing the World up to
	// date with its plans took, and Releasing that for what ended.
	Deciding  time.Duration
	Following time.Duration
	Releasing time.Duration
	// Slowest is the longest decision.
	Slowest time.Duration

	took [64 * tookSteps]int64 // decisions by how long they took
}

// tookSteps is how many steps there are from a duration to its double: what Quantile
// returns is at most a sixteenth too long.
const tookSteps = 16

// decided counts one decision.
func (t *Timing) decided(took time.Duration) {
	t.Deciding += took
	t.Slowest = max(t.Slowest, took)
	t.took[tookStep(took)]++
}

// tookStep is the step that a duration falls into.
func tookStep(took time.Duration) int {
	n := uint64(max(took, tookSteps)) // not negative
	octave := bits.Len64(n) - 1
	return octave*tookSteps + int(n>>(octave-4))&(tookSteps-1) // below 32
}

// Quantile is how long the fastest part of the decisions took at most: half of them
// for 0.5. It is 0 if they were not measured.
func (t *Timing) Quantile(part float64) time.Duration {
	all := int64(0)
	for _, n := range t.took {
		all += n
	}
	left := int64(part * float64(all))
	for step, n := range t.took {
		if left -= n; left < 0 || left == 0 && part == 1 && n > 0 {
			octave := step / tookSteps
			return time.Duration((tookSteps + step%tookSteps + 1) << max(0, octave-4))
		}
	}
	return 0
}

// PerDecision is the mean of a decision.
func (t *Timing) PerDecision() time.Duration {
	if t.Decisions == 0 {
		return 0
	}
	return t.Deciding / time.Duration(t.Decisions)
}
