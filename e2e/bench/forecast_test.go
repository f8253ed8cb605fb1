package bench

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkWholeForecast is a server with 1,000 nodes of 8 GPUs and some 10,000 jobs that wait for them: how long the explanation of one that waits takes, and
// what 100 jobs/s take beside the forecasts, which go on meanwhile, and on a server that makes none.
func BenchmarkWholeForecast(b *testing.B) {
	for range b.N {
		without := longQueue(b, "  forecast {\n    enabled = false\n  }")
		alone := steady(b, without, "alone-", 30, 1)
		without.Kill()
		a := longQueue(b)
		explain(b, a)
		beside := steady(b, a, "beside-", 30, 1)
		reportMs(b, beside)
		slices.Sort(alone)
		b.ReportMetric(float64(alone[len(alone)/2].Microseconds())/1000, "ms-p50-without")
		b.ReportMetric(float64(alone[len(alone)*99/100].Microseconds())/1000, "ms-p99-without")
		a.Kill()
	}
}

// longQueue is a server with 1,000 nodes of 8 GPUs and 12,000 jobs of 1 to 8 of them, of which those that have no room wait.
func longQueue(b *testing.B, more ...string) *harness.Agent {
	b.Helper()
	a := benchWorld(b, 1000, gpuNodes, more...)
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for side := range errs {
		wg.Go(func() {
			for i := side; i < 12_000 && errs[side] == nil; i += len(errs) {
				_, errs[side] = a.API.Jobs().Register(b.Context(), &structs.JobRegisterRequest{Job: &structs.Job{
					ID: fmt.Sprintf("gpu-%05d", i), Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{
						Name: "g", Count: 1, MaxRunDuration: time.Duration(2+i%20) * time.Hour, Tasks: []*structs.Task{{
							Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "48h"},
							Resources: &structs.Resources{CPU: 100, MemoryMB: 100, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1 << (i % 4)}}},
						}},
					}},
				}})
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	b.Logf("registered after %v", time.Since(began))
	allDecided(b, a)
	return a
}

// explain has 50 jobs that wait explained, one after the other.
func explain(b *testing.B, a *harness.Agent) {
	b.Helper()
	var took []time.Duration
	for i := range 50 {
		start := time.Now()
		_, _, err := a.API.Jobs().Explain(b.Context(), fmt.Sprintf("gpu-%05d", 11_999-i*37), "", nil)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-explained-p50")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-explained-most")
}
