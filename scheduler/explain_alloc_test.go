package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// An allocation that others gave way to is not said to have found room.
func TestWhyHereOfATaker(t *testing.T) {
	f := func(preempted []string, want string) {
		t.Helper()
		a := &structs.Allocation{ID: "a", NodeID: "n", PreemptedAllocations: preempted, DesiredStatus: structs.AllocDesiredRun}
		x := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: structs.DefaultSchedulerConfiguration()})
		if text := strings.Join(x.Text, "\n"); !strings.Contains(text, want) {
			t.Errorf("it says %q, not %q", text, want)
		}
	}
	f(nil, "of those with room the policy least-fragmentation takes: the one whose free devices are fragmented least")
	f([]string{"b", "c"}, "none had room for it, so it took the node where preemption cost least: 2 allocations had to stop or be suspended")
}
