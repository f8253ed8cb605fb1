package e2e

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/structs"
)

// TestDevAgentLeadsSoon: a dev agent answers who leads within a second of its start.
func TestDevAgentLeadsSoon(t *testing.T) {
	var took []time.Duration
	for range 5 {
		a := newAgent(t, true, "")
		start := time.Now()
		a.start()
		within(t, 10*time.Second, "a leader", func(context.Context) error {
			resp, err := http.Get(a.http + "/v1/status/leader")
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return errorf("code %d", resp.StatusCode)
			}
			return nil
		})
		took = append(took, time.Since(start))
	}
	underMedian(t, "started → leader", took, time.Second)
}

// TestBatchFinishesSoon: a small batch job is finished within 500 ms of its registration.
func TestBatchFinishesSoon(t *testing.T) {
	a := startDev(t, "")
	var took []time.Duration
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		job := officialJob(id, "echo done")
		job.Type = ptr("batch")
		start := time.Now()
		if _, _, err := a.nomad.Jobs().Register(job, nil); err != nil {
			t.Fatal(err)
		}
		a.inStatus(id, structs.AllocClientComplete, 1, 10*time.Second)
		took = append(took, time.Since(start))
	}
	underMedian(t, "registered → finished", took, 500*time.Millisecond)
}

func underMedian(t *testing.T, what string, took []time.Duration, limit time.Duration) {
	t.Helper()
	slices.Sort(took)
	t.Logf("FIGURE %s: %v", what, took)
	if m := took[len(took)/2]; m > 5*patience(limit) { // the machine may be busy with other things
		t.Errorf("%s: median %v of %v, far more than %v", what, m, took, limit)
	}
}

// BenchmarkRegistered measures one job of many pretended instances on simulated nodes, from its registration until all
// are committed, and until all run.
func BenchmarkRegistered(b *testing.B) {
	for _, size := range []struct {
		name             string
		nodes, instances int
	}{{"1k-nodes/10k-instances", 1000, 10_000}, {"100-nodes/1k-instances", 100, 1000}} {
		b.Run(size.name, func(b *testing.B) { benchRegistered(b, size.nodes, size.instances) })
	}
}

func benchRegistered(b *testing.B, nodes, instances int) {
	a := newAgent(b, true, simulate(b, shapesOf(nodes)))
	a.start()
	a.ready(nodes)
	// The summary is asked, not the list of 10,000 allocations: reading that would be most of what is measured.
	await := func(job string, count func(nomad.TaskGroupSummary) int) {
		for {
			sum, _, err := a.nomad.Jobs().Summary(job, nil)
			if err != nil {
				b.Fatal(err)
			}
			if count(sum.Summary["g"]) == instances {
				return
			}
		}
	}
	for i := range b.N {
		job := officialJob("bench"+itoa(i), "")
		job.TaskGroups[0].Count = ptr(instances)
		job.TaskGroups[0].Tasks[0].Driver = "mock_driver"
		job.TaskGroups[0].Tasks[0].Config = map[string]any{"run_for": "1h"}
		start := time.Now()
		if _, _, err := a.nomad.Jobs().Register(job, nil); err != nil {
			b.Fatal(err)
		}
		await(*job.ID, func(g nomad.TaskGroupSummary) int { return g.Starting + g.Running })
		b.ReportMetric(time.Since(start).Seconds(), "s-to-committed")
		await(*job.ID, func(g nomad.TaskGroupSummary) int { return g.Running })
		b.ReportMetric(time.Since(start).Seconds(), "s-to-running")
		if _, _, err := a.nomad.Jobs().Deregister(*job.ID, true, nil); err != nil {
			b.Fatal(err)
		}
	}
}
