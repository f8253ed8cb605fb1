package tenants

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// The golden examples of docs/design/semantics.md, part 2, on simulated nodes.

// teams creates namespaces.
func teams(a *harness.Agent, names ...string) {
	a.T.Helper()
	for _, name := range names {
		harness.CheckOutput(a.T, a, 0, "namespace apply "+name, "Successfully applied")
	}
}

// owns applies a virtual cluster of one kind of cells, written as the attributes of their block, and requires what is said.
func owns(a *harness.Agent, code int, name, cells, reported string) {
	a.T.Helper()
	file := a.JobFile("vc-"+name, fmt.Sprintf("virtual_cluster %q {\n  cells {\n%s\n  }\n}\n", name, strings.ReplaceAll(cells, ", ", "\n")))
	harness.CheckOutput(a.T, a, code, "vc apply "+file, reported)
}

// tenantJob registers a job of one instance in a namespace. more is put into the job.
func tenantJob(a *harness.Agent, namespace, id string, gpus int, more string) {
	a.T.Helper()
	a.Submit(id, fmt.Sprintf(`job %q {
  namespace = %q
  %s
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "24h" }
      resources {
        cpu    = 100
        memory = 64
        device "nvidia/gpu" { count = %d }
      }
    }
  }
}`, id, namespace, more, gpus))
}

// runsAs waits until a job's instance runs, and requires whether it is guaranteed. It returns the allocation.
func runsAs(a *harness.Agent, namespace, id string, guaranteed bool, limit time.Duration) (found *structs.AllocListStub) {
	a.T.Helper()
	harness.Within(a.T, limit, "an instance of "+id, func(ctx context.Context) error {
		allocs, _, err := a.API.Jobs().Allocations(ctx, id, true, &api.Query{Namespace: namespace})
		if err != nil {
			return err
		}
		if allocs = runningOf(allocs); len(allocs) != 1 {
			return fmt.Errorf("%d run", len(allocs))
		}
		found = allocs[0]
		return nil
	})
	class := structs.ClassOpportunistic
	if guaranteed {
		class = structs.ClassGuaranteed
	}
	var alloc struct {
		Class string
		Claim *structs.AllocClaim
	}
	if _, err := a.API.Get(a.T.Context(), "/v1/allocation/"+found.ID, &api.Query{Namespace: namespace}, &alloc); err != nil {
		a.T.Fatal(err)
	}
	if c := alloc.Claim; alloc.Class != class || found.Class != class || (c != nil) != guaranteed || guaranteed && (c.Kind != structs.ClaimCells || c.Owner != namespace || c.Cell == "" || c.Level == "") {
		a.T.Errorf("%s is listed as %s, and is %s by %+v; guaranteed: %v", id, found.Class, alloc.Class, c, guaranteed)
	}
	return found
}

func runningOf(allocs []*structs.AllocListStub) []*structs.AllocListStub {
	return slices.DeleteFunc(allocs, func(x *structs.AllocListStub) bool {
		return x.ClientStatus != structs.AllocClientRunning || x.DesiredStatus != structs.AllocDesiredRun
	})
}

// pending requires that a job has no instance that runs, and why.
func pending(a *harness.Agent, namespace, id, why string) {
	a.T.Helper()
	harness.WaitOutput(a.T, a, "job explain -namespace "+namespace+" "+id, why)
	if allocs, _, err := a.API.Jobs().Allocations(a.T.Context(), id, true, &api.Query{Namespace: namespace}); err != nil || len(runningOf(allocs)) != 0 {
		a.T.Errorf("%s waits, and has %d allocations (%v)", id, len(allocs), err)
	}
}

func ends(a *harness.Agent, namespace, id string) {
	a.T.Helper()
	harness.CheckOutput(a.T, a, 0, "job stop -detach -namespace "+namespace+" "+id)
}

// TestVirtualClustersGoldenTree: what a request takes of a node's tree, and what comes back; what is guaranteed reclaims what is lent; who
// floods all nodes loses just what the owner's cell held, at once, and has it again afterwards.
func TestVirtualClustersGoldenTree(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, harness.PatientServer, harness.DGXNodes("m", 1, "r1"))
	teams(a, "a", "b")
	tenantJob(a, "default", "two", 2, "")
	runsAs(a, "default", "two", false, 10*time.Second)
	a.WaitFree("1 pcie of 2, 1 socket of 4")
	if two := a.GPUs().OfJob("two"); len(two) != 2 || two[0].ID != "m-0-gpu-0" || two[1].ID != "m-0-gpu-1" {
		t.Errorf("a request of 2 takes %+v", two)
	}
	ends(a, "default", "two")
	a.WaitFree("1 node of 8")

	tenantJob(a, "b", "lent", 2, "")
	runsAs(a, "b", "lent", false, 10*time.Second)
	owns(a, 0, "a", "level = \"node\", count = 1", "Successfully applied")
	tenantJob(a, "a", "eight", 8, "")
	runsAs(a, "a", "eight", true, 2*time.Second+5*time.Second) // the victim is killed first, within its kill_timeout
	if eight := a.GPUs().OfJob("eight"); len(eight) != 8 {
		t.Errorf("a request of 8 has %+v", eight)
	}
	tenantJob(a, "b", "other", 8, "")
	pending(a, "b", "other", "8")
	ends(a, "b", "other")
	ends(a, "b", "lent")
	ends(a, "a", "eight")
	a.WaitFree("1 node of 8")

	a.AttachNodes(harness.DGXNodes("n", 1, "r1"))
	a.WaitReady(2)
	owns(a, 0, "b", "level = \"node\", count = 1", "Successfully applied")
	for i := range 16 {
		tenantJob(a, "b", fmt.Sprint("flood-", i), 1, "class = \"opportunistic\"")
	}
	on := map[string]string{}
	for i := range 16 {
		id := fmt.Sprint("flood-", i)
		on[id] = runsAs(a, "b", id, false, 10*time.Second).NodeName
	}
	tenantJob(a, "a", "mine", 8, "")
	mine := runsAs(a, "a", "mine", true, 2*time.Second)
	for id, node := range on { // order does not matter: each by itself
		if node != mine.NodeName {
			runsAs(a, "b", id, false, 10*time.Second)
		} else {
			pending(a, "b", id, "1")
		}
	}
	ends(a, "a", "mine")
	for id := range on { // nor here
		runsAs(a, "b", id, false, 10*time.Second)
	}
	a.CheckState()
}

// TestVirtualClustersGoldenSafety: the golden example of S. 2 racks of 2 nodes of 2 × 2 × 2 GPUs.
func TestVirtualClustersGoldenSafety(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 4, harness.PatientServer, harness.DGXNodes("r1-n", 2, "r1"), harness.DGXNodes("r2-n", 2, "r2"))
	teams(a, "a", "b", "c")
	owns(a, 0, "a", "level = \"node\", count = 2", "Successfully applied")
	owns(a, 0, "b", "level = \"socket\", count = 2", "Successfully applied")
	rack := "level = \"rack\", size = 2, count = 1"
	owns(a, 1, "c", rack, "level socket: 2 short")
	owns(a, 0, "a", "level = \"node\", count = 1", "Successfully applied")
	owns(a, 0, "c", rack, "Successfully applied")

	on := func(node string) string {
		return fmt.Sprintf("class = \"guaranteed\"\n  constraint {\n    attribute = \"${node.unique.name}\"\n    value     = %q\n  }", node)
	}
	tenantJob(a, "b", "first", 4, on("r1-n-0"))
	if at := runsAs(a, "b", "first", true, 10*time.Second); at.NodeName != "r1-n-0" {
		t.Fatalf("the first runs on %s", at.NodeName)
	}
	// Its second socket can only be that node's other one.
	for _, node := range []string{"r1-n-1", "r2-n-0", "r2-n-1"} {
		tenantJob(a, "b", "on-"+node, 4, on(node))
		pending(a, "b", "on-"+node, "4")
		ends(a, "b", "on-"+node)
	}
	doomed := func(b, c int) {
		t.Helper()
		harness.Within(t, 10*time.Second, fmt.Sprintf("%d sockets of b and %d racks of c doomed", b, c), func(ctx context.Context) error {
			list, _, err := a.API.VirtualClusters().List(ctx, nil)
			if err != nil {
				return err
			}
			if x, y, z := list[0].Cells[0].Doomed, list[1].Cells[0].Doomed, list[2].Cells[0].Doomed; x != 0 || y != b || z != c {
				return fmt.Errorf("%d of a, %d of b, %d of c are", x, y, z)
			}
			return nil
		})
	}
	doomed(0, 0)
	bad := "r1-n-0-gpu-7"
	if first := a.GPUs().OfJob("first"); slices.ContainsFunc(first, func(g harness.GPU) bool { return g.ID == bad }) {
		bad = "r1-n-0-gpu-0"
	}
	harness.CheckOutput(t, a, 0, "sim health "+bad+" bad")
	doomed(0, 1)
	harness.CheckOutput(t, a, 0, "sim health "+bad+" good")
	doomed(0, 0)
	tenantJob(a, "b", "second", 4, "class = \"guaranteed\"")
	if at := runsAs(a, "b", "second", true, 10*time.Second); at.NodeName != "r1-n-0" {
		t.Errorf("the second runs on %s", at.NodeName)
	}
	a.CheckState()
}
