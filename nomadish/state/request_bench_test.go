package state

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// What asks cost a plan: of a job that is placed at once, of one that waits, of one that
// gives instances back, beside a queue of so many others.
func BenchmarkPlanWithRequests(b *testing.B) {
	const waiting = 10_000
	store, w := New(Options{})
	index := uint64(0)
	apply := func(entry any) {
		index++
		if err := w.Apply(index, 0, entry); err != nil {
			b.Fatal(err)
		}
	}
	var requests []*structs.RequestUpdate
	for i := range waiting {
		apply(&structs.JobRegisterEntry{Job: job(fmt.Sprint("job-", i)), Time: 1})
		requests = append(requests, &structs.RequestUpdate{Namespace: "default", JobID: fmt.Sprint("job-", i), Group: "web", Missing: 1, EvalID: "b"})
		if len(requests) == 1000 {
			apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: cycle, Requests: requests}}})
			requests = nil
		}
	}
	run := func(name string, plan func(i int) *structs.JudgedPlan) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{plan(i)}})
				i++
			}
		})
	}
	one := func(i, missing int) []*structs.RequestUpdate {
		return []*structs.RequestUpdate{{Namespace: "default", JobID: fmt.Sprint("job-", i%waiting), Group: "web", Missing: missing, EvalID: "b"}}
	}
	run("empty", func(int) *structs.JudgedPlan { return &structs.JudgedPlan{Time: 2 * cycle} })
	run("placed at once", func(int) *structs.JudgedPlan {
		return &structs.JudgedPlan{Time: 2 * cycle, Requests: []*structs.RequestUpdate{{Namespace: "default", JobID: "job-1", Group: "other"}}}
	})
	run("as it was", func(i int) *structs.JudgedPlan { return &structs.JudgedPlan{Time: 2 * cycle, Requests: one(i, 1)} })
	run("another number", func(i int) *structs.JudgedPlan { return &structs.JudgedPlan{Time: 2 * cycle, Requests: one(i, 2+i%7)} })
	run("1000 at once", func(i int) *structs.JudgedPlan {
		var all []*structs.RequestUpdate
		for k := range 1000 {
			all = append(all, one(i*1000+k, 10+i%7)...)
		}
		return &structs.JudgedPlan{Time: 2 * cycle, Requests: all}
	})
	if n := store.LatestIndex(); n != index {
		b.Fatal(n)
	}
}
