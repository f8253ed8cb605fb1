package workflow

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestTimeRuleHeedsSysbatch: a sysbatch job of the running stage, for which nothing is reserved, counts in what is left of the stage from when it started,
// as the others do, and not from now on for ever.
func TestTimeRuleHeedsSysbatch(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000}, []int{8000})
	w.Lend[0].LendLonger = false
	w.Stages[0].Jobs[0].Job.TaskGroups[0].MaxRunDuration = time.Hour
	sys := cores(1, 100)
	sys.Type, sys.TaskGroups[0].MaxRunDuration = structs.JobTypeSysBatch, time.Hour
	w.Stages[0].Jobs = append(w.Stages[0].Jobs, &structs.WorkflowJob{Name: "sys", Job: sys})
	s := startedWith(t, []int64{8100}, w)
	s.clock.now = time.Unix(0, 1000)
	s.step()
	if n := s.decide("chip/1/sys"); n != 1 {
		t.Fatalf("%d instances of the sysbatch job run", n)
	}
	e := &structs.AllocClientEntry{Time: int64(s.Index())}
	for a := range s.Store.Snapshot().Allocs(nil, "default", "", false) {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: a.ID, ClientStatus: structs.AllocClientRunning})
	}
	s.Put(t, e)
	s.step()
	s.clock.now = s.clock.now.Add(59 * time.Minute)
	for id, limit := range map[string]time.Duration{"long": 30*time.Minute + time.Second, "short": time.Second} {
		job := cores(4, 1000)
		job.ID, job.TaskGroups[0].MaxRunDuration = id, limit
		job.Canonicalize()
		s.Put(t, &structs.JobRegisterEntry{Job: job, Time: int64(s.Index())})
		if n := s.decide(id); (n > 0) != (id == "short") {
			t.Errorf("a minute before the stage's limit, %d instances borrow that run for up to %s", n, job.TaskGroups[0].MaxRunDuration)
		}
	}
}
