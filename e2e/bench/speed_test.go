package bench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestDevAgentLeadsSoon: a dev agent answers who leads within a second of its start.
func TestDevAgentLeadsSoon(t *testing.T) {
	harness.Alone(t)
	var took []time.Duration
	for range 5 {
		a := harness.NewAgent(t, true, "")
		start := time.Now()
		a.Start()
		harness.Within(t, 10*time.Second, "a leader", func(context.Context) error {
			resp, err := http.Get(a.HTTP + "/v1/status/leader")
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("code %d", resp.StatusCode)
			}
			return nil
		})
		took = append(took, time.Since(start))
	}
	underMedian(t, "started → leader", took, time.Second)
}

// TestBatchFinishesSoon: a small batch job is finished within 500 ms of its registration.
func TestBatchFinishesSoon(t *testing.T) {
	harness.Alone(t)
	a := harness.StartDev(t, "")
	var took []time.Duration
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		job := harness.OfficialJob(id, "echo done")
		job.Type = harness.Ptr("batch")
		start := time.Now()
		if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
			t.Fatal(err)
		}
		a.WaitInStatus(id, structs.AllocClientComplete, 1, 10*time.Second)
		took = append(took, time.Since(start))
	}
	underMedian(t, "registered → finished", took, 500*time.Millisecond)
}

func underMedian(t *testing.T, what string, took []time.Duration, limit time.Duration) {
	t.Helper()
	slices.Sort(took)
	t.Logf("FIGURE %s: %v", what, took)
	if m := took[len(took)/2]; m > harness.Scaled(limit) {
		t.Errorf("%s: median %v of %v, far more than %v", what, m, took, limit)
	}
}
