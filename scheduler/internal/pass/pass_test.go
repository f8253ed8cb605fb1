package pass

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// TestInPlace: a pass whose World changes in place decides as one that leaves each World as it was, also after a plan that did not hold, and leaves the
// World alone that it began with.
func TestInPlace(t *testing.T) {
	cluster := func() *world.World {
		e := world.New().Edit()
		for i := range 40 {
			e.UpsertNode(schedtest.Node(fmt.Sprintf("n%02d", i), schedtest.EightGPUs))
		}
		return e.World()
	}
	w := cluster()
	kept, moved := New(w), InPlace(w)
	decide := func(p *Pass, i int) *structs.Plan {
		job := schedtest.GPUJob(1+i%3, structs.RequestedDevice{Name: "nvidia/gpu", Count: 1 << (i % 4)})
		job.ID = fmt.Sprint("job-", i)
		n := 0
		in := search.Input{Job: job, Now: time.Unix(1, 0), NewID: func() string { n++; return structs.DeriveID(job.ID, uint64(n)) }} // not negative
		plan, err := p.Decide(structs.NewEval("eval-"+job.ID, job, structs.EvalTriggerJobRegister, 1), in)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	placed, refused := 0, false
	for i := range 60 {
		a, b := decide(kept, i), decide(moved, i)
		if len(a.Place) != len(b.Place) {
			t.Fatalf("job %d: %d batches, not %d", i, len(b.Place), len(a.Place))
		}
		placed += len(a.Place)
		for n := 0; i%20 == 7 && len(b.Place) > 0 && n < 100; n++ { // again and again, until the node has no room
			batch := *b.Place[0]
			batch.Seed = fmt.Sprint("more-", i, n)
			more := &structs.Plan{EvalID: "more", Namespace: b.Namespace, JobID: b.JobID, Place: []*structs.PlacementBatch{&batch}}
			one, other := kept.Follow(more), moved.Follow(more)
			if (one == nil) != (other == nil) {
				t.Fatalf("one refuses a plan that the other follows: %v, %v", one, other)
			}
			refused = refused || one != nil
			if one != nil {
				break
			}
		}
		if diff := kept.World().Diff(moved.World()); diff != nil {
			t.Fatalf("job %d: %v", i, diff)
		}
	}
	if diff := w.Diff(cluster()); diff != nil || placed == 0 || !refused {
		t.Fatalf("%d placed, some refused: %t; the World that they began with: %v", placed, refused, diff)
	}
}
