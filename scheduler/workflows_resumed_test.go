package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestJudgeKeepsReservedFromResumed: what was to go on beside a workflow's reservation stays suspended if others have got that room since: it takes nothing of what is
// reserved. Nor of what is reserved for a request.
func TestJudgeKeepsReservedFromResumed(t *testing.T) {
	for _, x := range []struct {
		name    string
		reserve func(w *workflows)
	}{
		{"for a workflow", func(*workflows) {}},
		{"for a request", func(w *workflows) {
			w.claim.Parts = nil
			w.set()
			e := w.w.Edit()
			e.Reserve(&structs.Reservation{NodeID: "n1", JobID: "waits", Group: "g", CPU: 3000, MadeAt: 1, ExpiresAt: 1 << 60})
			w.w = e.World()
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorkflows(t, 4, 1)
			w.submit("", "a", 1, requests(50, 1000, 100))
			w.suspended("a", true)
			w.suspended("a", false)
			x.reserve(w)
			plans := map[string]*structs.Plan{}
			w.jobs["b"] = w.jobs["a"].Copy()
			w.jobs["b"].ID = "b"
			for _, id := range []string{"a", "b"} {
				w.job = w.jobs[id]
				ev := w.newEval()
				ev.JobID, ev.Type = id, structs.JobTypeBatch
				p, err := scheduler.Schedule(w.w, ev, w.input())
				if err != nil {
					t.Fatal(err)
				}
				plans[id] = p
			}
			if len(resumed(plans["a"])) != 1 {
				t.Fatalf("it does not go on: %+v", plans["a"])
			}
			e := w.w.Edit()
			if valid, _, why := scheduler.Judge(e, plans["b"]); len(valid.Place) != 1 {
				t.Fatalf("there is no room beside: %s", why)
			}
			if valid, refused, why := scheduler.Judge(e, plans["a"]); len(valid.Update) != 0 || len(refused) != 1 || !strings.HasSuffix(why, ": cpu") {
				t.Errorf("%d go on, refused %v: %q", len(valid.Update), refused, why)
			}
		})
	}
}
