package workflows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestWorkflowTakesLowerBand: where batch jobs preempt, a workflow of a higher band takes what it reserves from a lower one, just enough. Who leaves is
// requeued, and runs again when the workflow has ended.
func TestWorkflowTakesLowerBand(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "client {\n  cpu_total_compute = 8000\n  memory_total_mb = 8000\n}\n")
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -preempt-batch-scheduler=true")
	low := strings.Replace(borrower("low", "default", 8, "requeue"), "reclaim ", "priority  = 10\n  reclaim ", 1)
	harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile("low", low))
	a.WaitRunning("low", 8, 20*time.Second)
	log, ends := filepath.Join(a.Dir, "log"), filepath.Join(a.Dir, "ends")
	file := a.JobFile("high", coresWorkflow("high", 90, log, ends, 3))
	harness.CheckOutput(t, a, 0, "workflow plan "+file, "3 instances of lower bands")
	harness.CheckOutput(t, a, 0, "workflow run -detach "+file)
	a.WaitRunning("high/1/j0", 1, 20*time.Second)
	harness.CheckOutput(t, a, 0, "workflow status high", "reserved 3000 MHz")
	a.WaitRunning("low", 5, 20*time.Second)
	requeued := 0
	allocs, _, err := a.API.Jobs().Allocations(t.Context(), "low", true, nil)
	for _, alloc := range allocs {
		if alloc.DesiredDescription == "preempted for the reservation of workflow high" {
			requeued++
		}
	}
	if err != nil || requeued != 3 {
		t.Errorf("%d are preempted for it, want 3: %v", requeued, err)
	}
	harness.CheckOutput(t, a, 0, "queue", "low")
	if err := os.WriteFile(ends, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	harness.WaitOutput(t, a, "workflow status high", "high run 1  complete")
	a.WaitRunning("low", 8, 20*time.Second)
}
