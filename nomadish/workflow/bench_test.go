package workflow

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
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

// BenchmarkStopping is a look for what a run waits for that was started again at once after it was cancelled, among 200,000 allocations of others: the driver
// looks at each change of the workflow meanwhile, and every server for each who follows its status.
func BenchmarkStopping(b *testing.B) {
	s := newStarted(b, []int64{64_000, 64_000}, slices.Repeat([]int{1000}, 100))
	s.step()
	e := &structs.AllocClientEntry{Time: 2}
	for a := range s.Store.Snapshot().Allocs(nil, "default", "", false) {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: a.ID, ClientStatus: structs.AllocClientRunning})
	}
	s.Put(b, e)
	s.Put(b, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, EvalSeed: "cancel", Time: 5})
	s.Put(b, &structs.WorkflowRunEntry{Namespace: "default", ID: "chip", From: "s0", Time: 7})
	for i := range 200 {
		job := testcluster.Job(fmt.Sprintf("other-%d", i), structs.JobTypeBatch, 1000)
		s.Put(b, &structs.JobRegisterEntry{Job: job, Time: 1})
		s.Put(b, testcluster.Place("", 1, testcluster.Batch(job.ID, "node-000", job.ID, 1000)))
	}
	s.step()
	snap, run := s.Store.Snapshot(), s.run()
	for b.Loop() {
		if waits, _ := Stopping(snap, nil, run); len(waits) != 100 {
			b.Fatalf("it waits for %d instances", len(waits))
		}
	}
}
