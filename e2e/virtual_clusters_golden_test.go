package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// The golden examples of docs/design/semantics.md, part 2, on simulated nodes.

// teams creates namespaces.
func (a *agent) teams(names ...string) {
	a.t.Helper()
	for _, name := range names {
		says(a.t, a, 0, "namespace apply "+name, "Successfully applied")
	}
}

// owns applies a virtual cluster of one kind of cells, written as the attributes of their block, and requires what is said.
func (a *agent) owns(code int, name, cells, reported string) {
	a.t.Helper()
	file := a.job("vc-"+name, fmt.Sprintf("virtual_cluster %q {\n  cells {\n%s\n  }\n}\n", name, strings.ReplaceAll(cells, ", ", "\n")))
	says(a.t, a, code, "vc apply "+file, reported)
}

// tenantJob registers a job of one instance in a namespace. more is put into the job.
func (a *agent) tenantJob(namespace, id string, gpus int, more string) {
	a.t.Helper()
	a.submit(id, fmt.Sprintf(`job %q {
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
func (a *agent) runsAs(namespace, id string, guaranteed bool, limit time.Duration) (found *structs.AllocListStub) {
	a.t.Helper()
	within(a.t, limit, "an instance of "+id, func(ctx context.Context) error {
		allocs, _, err := a.api.Jobs().Allocations(ctx, id, true, &api.Query{Namespace: namespace})
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
	if _, err := a.api.Get(a.t.Context(), "/v1/allocation/"+found.ID, &api.Query{Namespace: namespace}, &alloc); err != nil {
		a.t.Fatal(err)
	}
	if c := alloc.Claim; alloc.Class != class || found.Class != class || (c != nil) != guaranteed || guaranteed && (c.Kind != structs.ClaimCells || c.Owner != namespace || c.Cell == "" || c.Level == "") {
		a.t.Errorf("%s is listed as %s, and is %s by %+v; guaranteed: %v", id, found.Class, alloc.Class, c, guaranteed)
	}
	return found
}

func runningOf(allocs []*structs.AllocListStub) []*structs.AllocListStub {
	return slices.DeleteFunc(allocs, func(x *structs.AllocListStub) bool {
		return x.ClientStatus != structs.AllocClientRunning || x.DesiredStatus != structs.AllocDesiredRun
	})
}

// pending requires that a job has no instance that runs, and why.
func (a *agent) pending(namespace, id, why string) {
	a.t.Helper()
	until(a.t, a, "job explain -namespace "+namespace+" "+id, why)
	if allocs, _, err := a.api.Jobs().Allocations(a.t.Context(), id, true, &api.Query{Namespace: namespace}); err != nil || len(runningOf(allocs)) != 0 {
		a.t.Errorf("%s waits, and has %d allocations (%v)", id, len(allocs), err)
	}
}

func (a *agent) ends(namespace, id string) {
	a.t.Helper()
	says(a.t, a, 0, "job stop -detach -namespace "+namespace+" "+id)
}

// TestVirtualClustersGoldenTree: what a request takes of a node's tree, and what comes back; what is guaranteed reclaims what is lent; who
// floods all nodes loses just what the owner's cell held, at once, and has it again afterwards.
func TestVirtualClustersGoldenTree(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, patient, dgx("m", 1, "r1"))
	a.teams("a", "b")
	a.tenantJob("default", "two", 2, "")
	a.runsAs("default", "two", false, 10*time.Second)
	a.freeOnly("1 pcie of 2, 1 socket of 4")
	if two := a.look().of("two"); len(two) != 2 || two[0].id != "m-0-gpu-0" || two[1].id != "m-0-gpu-1" {
		t.Errorf("a request of 2 takes %+v", two)
	}
	a.ends("default", "two")
	a.freeOnly("1 node of 8")

	a.tenantJob("b", "lent", 2, "")
	a.runsAs("b", "lent", false, 10*time.Second)
	a.owns(0, "a", "level = \"node\", count = 1", "Successfully applied")
	a.tenantJob("a", "eight", 8, "")
	a.runsAs("a", "eight", true, 2*time.Second+5*time.Second) // the victim is killed first, within its kill_timeout
	if eight := a.look().of("eight"); len(eight) != 8 {
		t.Errorf("a request of 8 has %+v", eight)
	}
	a.tenantJob("b", "other", 8, "")
	a.pending("b", "other", "8")
	a.ends("b", "other")
	a.ends("b", "lent")
	a.ends("a", "eight")
	a.freeOnly("1 node of 8")

	a.attach(dgx("n", 1, "r1"))
	a.ready(2)
	a.owns(0, "b", "level = \"node\", count = 1", "Successfully applied")
	for i := range 16 {
		a.tenantJob("b", fmt.Sprint("flood-", i), 1, "class = \"opportunistic\"")
	}
	on := map[string]string{}
	for i := range 16 {
		id := fmt.Sprint("flood-", i)
		on[id] = a.runsAs("b", id, false, 10*time.Second).NodeName
	}
	a.tenantJob("a", "mine", 8, "")
	mine := a.runsAs("a", "mine", true, 2*time.Second)
	for id, node := range on { // order does not matter: each by itself
		if node != mine.NodeName {
			a.runsAs("b", id, false, 10*time.Second)
		} else {
			a.pending("b", id, "1")
		}
	}
	a.ends("a", "mine")
	for id := range on { // nor here
		a.runsAs("b", id, false, 10*time.Second)
	}
	a.inOrder()
}

// TestVirtualClustersGoldenSafety: the golden example of S. 2 racks of 2 nodes of 2 × 2 × 2 GPUs.
func TestVirtualClustersGoldenSafety(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 4, patient, dgx("r1-n", 2, "r1"), dgx("r2-n", 2, "r2"))
	a.teams("a", "b", "c")
	a.owns(0, "a", "level = \"node\", count = 2", "Successfully applied")
	a.owns(0, "b", "level = \"socket\", count = 2", "Successfully applied")
	rack := "level = \"rack\", size = 2, count = 1"
	a.owns(1, "c", rack, "level socket: 2 short")
	a.owns(0, "a", "level = \"node\", count = 1", "Successfully applied")
	a.owns(0, "c", rack, "Successfully applied")

	on := func(node string) string {
		return fmt.Sprintf("class = \"guaranteed\"\n  constraint {\n    attribute = \"${node.unique.name}\"\n    value     = %q\n  }", node)
	}
	a.tenantJob("b", "first", 4, on("r1-n-0"))
	if at := a.runsAs("b", "first", true, 10*time.Second); at.NodeName != "r1-n-0" {
		t.Fatalf("the first runs on %s", at.NodeName)
	}
	// Its second socket can only be that node's other one.
	for _, node := range []string{"r1-n-1", "r2-n-0", "r2-n-1"} {
		a.tenantJob("b", "on-"+node, 4, on(node))
		a.pending("b", "on-"+node, "4")
		a.ends("b", "on-"+node)
	}
	doomed := func(b, c int) {
		t.Helper()
		within(t, 10*time.Second, fmt.Sprintf("%d sockets of b and %d racks of c doomed", b, c), func(ctx context.Context) error {
			list, _, err := a.api.VirtualClusters().List(ctx, nil)
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
	if first := a.look().of("first"); slices.ContainsFunc(first, func(g gpu) bool { return g.id == bad }) {
		bad = "r1-n-0-gpu-0"
	}
	says(t, a, 0, "sim health "+bad+" bad")
	doomed(0, 1)
	says(t, a, 0, "sim health "+bad+" good")
	doomed(0, 0)
	a.tenantJob("b", "second", 4, "class = \"guaranteed\"")
	if at := a.runsAs("b", "second", true, 10*time.Second); at.NodeName != "r1-n-0" {
		t.Errorf("the second runs on %s", at.NodeName)
	}
	a.inOrder()
}
