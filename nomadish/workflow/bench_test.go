package workflow

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkRound is a round of the driver over 16 workflows that wait for room, each of five stages of 200 jobs, on 1,000 nodes that are full, after an instance
// of others has ended and another one has taken its room.
func BenchmarkRound(b *testing.B) {
	s := startedWith(b, slices.Repeat([]int64{16_000}, 1000), lendingWorkflow("chip", 50, []int{1000}))
	s.step()
	s.borrow(17_000, 1000)
	for i := range maxReserving {
		s.runs(lendingWorkflow(fmt.Sprintf("big%02d", i), 40, slices.Repeat([]int{4000}, 200), slices.Repeat([]int{3000}, 200), slices.Repeat([]int{2000}, 200),
			slices.Repeat([]int{4000}, 200), slices.Repeat([]int{4000}, 200)))
	}
	s.step()
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		s.ends(s.live("flood-1000")[0])
		s.decide("flood-1000")
		s.clock.now = s.clock.now.Add(time.Second * 10)
		b.StartTimer()
		s.steps.Step(context.Background())
	}
}
