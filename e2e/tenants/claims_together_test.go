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

// gpuStages is a workflow of the namespace "a" of two stages of one job, the first of two GPUs, the second of eight. What idles is lent to the namespace "b".
func gpuStages() string {
	var b strings.Builder
	b.WriteString("workflow \"train\" {\n  namespace = \"a\"\n  lend {\n    to = \"namespace:b\"\n  }\n")
	for i, gpus := range []int{2, 8} {
		fmt.Fprintf(&b, `  stage "s%d" {
    job "j%d" {
      group "g" {
        task "t" {
          driver = "mock_driver"
          config { run_for = "%ds" }
          resources {
            cpu    = 100
            memory = 64
            device "nvidia/gpu" { count = %d }
          }
        }
      }
    }
  }
`, i, i, []int{15, 3600}[i], gpus)
	}
	return b.String() + "}\n"
}

// allExplained waits until as many instances of a job as are wanted run, and what the status of one of them says.
func allExplained(a *harness.Agent, namespace, id string, count int, says string) {
	a.T.Helper()
	harness.Within(a.T, 30*time.Second, fmt.Sprintf("%d instances of %s of which is said %q", count, id, says), func(ctx context.Context) error {
		allocs, _, err := a.API.Jobs().Allocations(ctx, id, true, &api.Query{Namespace: namespace})
		if err != nil {
			return err
		}
		if allocs = runningOf(allocs); len(allocs) != count {
			return fmt.Errorf("%d run", len(allocs))
		}
		return harness.TryOutput(a, 0, "alloc status -namespace "+namespace+" "+allocs[0].ID, says)
	})
}

// TestClaimsTogether: a workflow inside the cells of its namespace, instances on slots of a project, and work without a claim on one cluster. Each has the
// claim that it is due, and its explanation says which (docs/design/semantics.md, part 0, rule 5).
func TestClaimsTogether(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, gpuSlots(t))
	a.Start()
	a.WaitReady(2)
	teams(a, "a", "b")
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -grace 1s")
	harness.CheckOutput(t, a, 0, "project apply "+a.JobFile("projects", "project \"chip\" {\n  users = [\"root\"]\n}\n"))
	owns(a, 0, "a", `level = "node", count = 1`, "Successfully applied")
	harness.CheckOutput(t, a, 0, "project calendar -type gpu -slots 8 chip")
	a.Submit("low", strings.Replace(lowJob, "group \"g\" {", "group \"g\" {\n    count = 16", 1))
	allExplained(a, "b", "low", 16, "it is opportunistic")

	file := a.JobFile("train", gpuStages())
	harness.CheckOutput(t, a, 0, "workflow plan "+file, "8, in cells of level node", "8 instances without a claim in the cells of its namespace would leave")
	harness.CheckOutput(t, a, 0, "workflow run -detach "+file)
	allExplained(a, "a", "train/1/j0", 1, "it uses the reservation of workflow a/train")
	requeuesOf(a, "low", 14)
	harness.CheckOutput(t, a, 0, "vc status a", "node   1      0    1      0", "workflow train", "8 of 8")
	harness.CheckOutput(t, a, 0, "topology", "reserved by workflow a/train")

	own := strings.NewReplacer(`job "low"`, `job "own"`, `namespace = "b"`, "namespace = \"default\"\n  project = \"chip\"\n  slot = \"gpu\"\n  class = \"guaranteed\"",
		`group "g" {`, "group \"g\" {\n    count = 8").Replace(lowJob)
	harness.CheckOutput(t, a, 0, "job run -detach -user root "+a.JobFile("own", own), "Recognised")
	allExplained(a, "default", "own", 8, `of type gpu of project "chip"`)

	// The second stage takes back what was lent. An instance of the namespace has no claim beside the workflow, and nothing is free without one.
	allExplained(a, "a", "train/1/j1", 1, "it uses the reservation of workflow a/train")
	tenantJob(a, "a", "beside", 1, "")
	pending(a, "a", "beside", `over the limit: namespace "a" owns 8 GPUs, 8 in guaranteed use`)
	requeuesOf(a, "low", 0)
	allExplained(a, "default", "own", 8, `of type gpu of project "chip"`)

	// With the end of the workflow its namespace has its cell again, and what it does not use is anybody's.
	harness.CheckOutput(t, a, 0, "workflow cancel -namespace a train")
	allExplained(a, "a", "beside", 1, "that namespace \"a\" owns")
	requeuesOf(a, "low", 7)
	for _, x := range a.ReadAllocs(a.WaitRunning("own", 8, 20*time.Second)) {
		if x.AllocatedResources.Shared.Terms.Claim != structs.ClaimSlots {
			t.Errorf("its terms are %+v", x.AllocatedResources.Shared.Terms)
		}
	}
}
