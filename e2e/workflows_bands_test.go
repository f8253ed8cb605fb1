package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWorkflowTakesLowerBand: where batch jobs preempt, a workflow of a higher band takes what it reserves from a lower one, just enough. Who leaves is
// requeued, and runs again when the workflow has ended.
func TestWorkflowTakesLowerBand(t *testing.T) {
	t.Parallel()
	a := startDev(t, "client {\n  cpu_total_compute = 8000\n  memory_total_mb = 8000\n}\n")
	says(t, a, 0, "operator scheduler set-config -preempt-batch-scheduler=true")
	low := strings.Replace(borrower("low", "default", 8, "requeue"), "reclaim ", "priority  = 10\n  reclaim ", 1)
	says(t, a, 0, "job run -detach "+a.job("low", low))
	a.running("low", 8, 20*time.Second)
	log, ends := filepath.Join(a.dir, "log"), filepath.Join(a.dir, "ends")
	file := a.job("high", coresWorkflow("high", 90, log, ends, 3))
	says(t, a, 0, "workflow plan "+file, "3 instances of lower bands")
	says(t, a, 0, "workflow run -detach "+file)
	a.running("high/1/j0", 1, 20*time.Second)
	says(t, a, 0, "workflow status high", "reserved 3000 MHz")
	a.running("low", 5, 20*time.Second)
	requeued := 0
	allocs, _, err := a.api.Jobs().Allocations(t.Context(), "low", true, nil)
	for _, alloc := range allocs {
		if alloc.DesiredDescription == "preempted for the reservation of workflow high" {
			requeued++
		}
	}
	if err != nil || requeued != 3 {
		t.Errorf("%d are preempted for it, want 3: %v", requeued, err)
	}
	says(t, a, 0, "queue", "low")
	if err := os.WriteFile(ends, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, a, "workflow status high", "high run 1  complete")
	a.running("low", 8, 20*time.Second)
}
