package tenants

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// gpuSlots is a configuration of two nodes of eight GPUs, each with as many slots of one GPU.
func gpuSlots(t *testing.T) string {
	nodes := strings.Replace(harness.DGXNodes("m", 2, "r1"), "  gpus", "  slots {\n    gpu = 8\n  }\n  gpus", 1)
	return harness.Simulate(t, nodes) + "server {\n  scheduling {\n    slot \"gpu\" {\n      gpus = 1\n    }\n  }\n}\n"
}

// requeuesOf waits until so many instances of a job run in the namespace b, and returns how many of them were requeued how often.
func requeuesOf(a *harness.Agent, id string, count int) map[int]int {
	a.T.Helper()
	found := map[int]int{}
	harness.Within(a.T, 20*time.Second, fmt.Sprintf("%d instances of %s", count, id), func(ctx context.Context) error {
		allocs, _, err := a.API.Jobs().Allocations(ctx, id, true, &api.Query{Namespace: "b"})
		if err != nil {
			return err
		}
		clear(found)
		if allocs = runningOf(allocs); len(allocs) != count {
			return fmt.Errorf("%d run", len(allocs))
		}
		for _, x := range allocs {
			found[x.Requeues]++
		}
		return nil
	})
	return found
}

// wantRequeues requires how many instances of the job "low" run, and how many of them were requeued how often: "8:0 8:1" are eight never, eight once.
func wantRequeues(a *harness.Agent, what string, want map[int]int) {
	a.T.Helper()
	count := 0
	for _, n := range want { // a sum
		count += n
	}
	if got := requeuesOf(a, "low", count); fmt.Sprint(got) != fmt.Sprint(want) {
		a.T.Errorf("%s: of the instances that run as many were requeued so often: %v, want %v", what, got, want)
	}
}

// TestCellsTakeImmune: instances that were requeued max_requeues times leave for no slot any more, and for cells of a virtual cluster as before; slots with
// GPUs are admitted against virtual clusters, and neither takes from the other.
func TestCellsTakeImmune(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, gpuSlots(t))
	a.Start()
	a.WaitReady(2)
	teams(a, "a", "b")
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -grace 1s -max-requeues 1")
	harness.CheckOutput(t, a, 0, "project apply "+a.JobFile("projects", "project \"chip\" {\n  users = [\"root\"]\n}\n"))
	owns(a, 0, "a", `level = "node", count = 1`, "Successfully applied")
	harness.CheckOutput(t, a, 1, "project calendar -type gpu -slots 9 chip", "the GPUs of its slots: level gpu: 1 short")
	harness.CheckOutput(t, a, 0, "project calendar -type gpu -slots 8 chip")
	owns(a, 1, "a", `level = "node", count = 2`, "level gpu: 8 short")

	low := strings.Replace(lowJob, "group \"g\" {", "group \"g\" {\n    count = 16", 1)
	a.Submit("low", low)
	wantRequeues(a, "all run", map[int]int{0: 16})
	tenantJob(a, "a", "first", 8, "")
	runsAs(a, "a", "first", true, 20*time.Second)
	wantRequeues(a, "a node was taken", map[int]int{0: 8})
	ends(a, "a", "first")
	wantRequeues(a, "half was requeued", map[int]int{0: 8, 1: 8})

	own := strings.NewReplacer(`job "low"`, `job "own"`, `namespace = "b"`, "namespace = \"default\"\n  project = \"chip\"\n  slot = \"gpu\"\n  class = \"guaranteed\"",
		`group "g" {`, "group \"g\" {\n    count = 8").Replace(lowJob)
	harness.CheckOutput(t, a, 0, "job run -detach -user root "+a.JobFile("own", own), "Recognised")
	for _, x := range a.ReadAllocs(a.WaitRunning("own", 8, 20*time.Second)) {
		if terms := x.AllocatedResources.Shared.Terms; terms.Claim != structs.ClaimSlots || terms.CellLevel != structs.LevelGPU {
			t.Errorf("its terms are %+v", terms)
		}
	}
	wantRequeues(a, "those left that were never requeued", map[int]int{1: 8})

	tenantJob(a, "a", "second", 8, "")
	runsAs(a, "a", "second", true, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job status own", "running")
	a.WaitRunning("own", 8, 20*time.Second)
	pending(a, "b", "low", "16")
	harness.CheckOutput(t, a, 0, "project status chip", "nvidia/gpu/H100     default    gpu    8      8      0       0")
	harness.CheckOutput(t, a, 0, "topology", "project:chip")

	// A node is lost: virtual clusters are served before slots, and what is short is named.
	ends(a, "default", "own")
	ends(a, "a", "second")
	harness.CheckOutput(t, a, 0, "node eligibility -disable m-1")
	harness.WaitOutput(t, a, "project status chip", "nvidia/gpu/H100     default    gpu    8      0      8       0")
	harness.CheckOutput(t, a, 0, "vc status a", "node   1      0")
	harness.CheckOutput(t, a, 0, "job run -detach -user root "+a.JobFile("own", own), "Recognised")
	harness.WaitOutput(t, a, "job explain own", `cells doomed: 8 GPUs of the slots of project "chip" cannot be had at present`)
	ends(a, "b", "low")
	harness.CheckOutput(t, a, 0, "node eligibility -enable m-1")
	a.WaitRunning("own", 8, 20*time.Second)
}

// lowJob has instances of one GPU in the namespace b.
const lowJob = `job "low" {
  type      = "batch"
  namespace = "b"
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "24h" }
      resources {
        cpu    = 100
        memory = 64
        device "nvidia/gpu" { count = 1 }
      }
    }
  }
}`
