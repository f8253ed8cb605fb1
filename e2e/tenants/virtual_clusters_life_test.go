package tenants

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// classes returns, by allocation, whether each of a job's running instances is guaranteed, once there are n.
func classes(a *harness.Agent, namespace, id string, n int, limit time.Duration) map[string]bool {
	a.T.Helper()
	out := map[string]bool{}
	harness.Within(a.T, limit, fmt.Sprintf("%d instances of %s", n, id), func(ctx context.Context) error {
		clear(out)
		allocs, _, err := a.API.Jobs().Allocations(ctx, id, true, &api.Query{Namespace: namespace})
		if err != nil {
			return err
		}
		for _, stub := range runningOf(allocs) {
			alloc, _, err := a.API.Allocations().Info(ctx, stub.ID, &api.Query{Namespace: namespace})
			if err != nil {
				return err
			}
			out[alloc.ID] = alloc.AllocatedResources.Shared.Terms.Claim != ""
		}
		if len(out) != n {
			return fmt.Errorf("%d run", len(out))
		}
		return nil
	})
	return out
}

func guaranteed(classes map[string]bool) (n int) {
	for _, is := range classes { // order does not matter: a count
		if is {
			n++
		}
	}
	return n
}

// manyJob registers a job of many instances of one GPU each in a namespace. more is put into its group.
func manyJob(a *harness.Agent, namespace, id string, count int, more string) {
	a.T.Helper()
	a.Submit(id, fmt.Sprintf(`job %q {
  namespace = %q
  group "g" {
    count = %d
    %s
    task "t" {
      driver = "mock_driver"
      config { run_for = "24h" }
      resources {
        cpu    = 100
        memory = 64
        device "nvidia/gpu" {}
      }
    }
  }
}`, id, namespace, count, more))
}

// TestVirtualClustersGangs: of a namespace that owns 4 GPUs a gang of 6 waits or runs opportunistically, by its setting, and blocks no gang of 4.
func TestVirtualClustersGangs(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 2, harness.PatientServer, harness.DGXNodes("m", 2, "r1"))
	teams(a, "a")
	limit := func(to string) {
		t.Helper()
		file := a.JobFile("vc-a", fmt.Sprintf("virtual_cluster \"a\" {\n  over_limit = %q\n  cells {\n    level = \"socket\"\n    count = 1\n  }\n}\n", to))
		harness.CheckOutput(t, a, 0, "vc apply "+file, "Successfully applied")
	}
	limit("wait")
	manyJob(a, "a", "six", 6, "gang {}")
	pending(a, "a", "six", "owns 4 GPUs")
	manyJob(a, "a", "four", 4, "gang {}")
	if four := classes(a, "a", "four", 4, 10*time.Second); guaranteed(four) != 4 {
		t.Errorf("of the gang of 4 are guaranteed: %v", four)
	}
	pending(a, "a", "six", "owns 4 GPUs")
	limit("opportunistic")
	if six := classes(a, "a", "six", 6, 10*time.Second); guaranteed(six) != 0 {
		t.Errorf("of the gang of 6 are guaranteed: %v", six)
	}
	a.CheckState()
}

// TestVirtualClustersRaise: of 16 instances with one GPU each 8 are what the namespace owns; once it owns 8 more all are, the same
// allocations, never restarted.
func TestVirtualClustersRaise(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 2, harness.PatientServer, harness.DGXNodes("m", 2, "r1"))
	teams(a, "a")
	owns(a, 0, "a", "level = \"node\", count = 1", "Successfully applied")
	manyJob(a, "a", "many", 16, "")
	before := classes(a, "a", "many", 16, 10*time.Second)
	if n := guaranteed(before); n != 8 {
		t.Errorf("%d of 16 are guaranteed, want 8", n)
	}
	owns(a, 0, "a", "level = \"node\", count = 2", "Successfully applied")
	harness.Within(t, 10*time.Second, "all of them raised", func(ctx context.Context) error {
		status, _, err := a.API.VirtualClusters().Info(ctx, "a", nil)
		if err == nil && status.GuaranteedGPUs != 16 {
			err = fmt.Errorf("%d GPUs are in guaranteed use", status.GuaranteedGPUs)
		}
		return err
	})
	after := classes(a, "a", "many", 16, 10*time.Second)
	if guaranteed(after) != 16 || !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))) {
		t.Errorf("after the edit they are\n%v\nbefore it\n%v", after, before)
	}
	for id := range after { // order does not matter: each by itself
		alloc, _, err := a.API.Allocations().Info(t.Context(), id, &api.Query{Namespace: "a"})
		if err != nil || alloc.TaskStates["t"].Restarts != 0 {
			t.Errorf("allocation %s was restarted: %+v, %v", id, alloc, err)
		}
	}
	a.CheckState()
}

// TestVirtualClustersHardware: what is bound on a node that is drained, or lost, is bound anew where its allocation moves; a GPU that turns bad
// leaves its cell bound, and shown as bad until it is good again.
func TestVirtualClustersHardware(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 2, "server {\n  enabled = true\n  heartbeat_grace = \"1s\"\n}\n", harness.DGXNodes("m", 2, "r1"))
	teams(a, "a")
	owns(a, 0, "a", "level = \"node\", count = 1", "Successfully applied")
	tenantJob(a, "a", "eight", 8, "")
	at := runsAs(a, "a", "eight", true, 10*time.Second).NodeName
	other := map[string]string{"m-0": "m-1", "m-1": "m-0"}
	bound := func(what, node string, bad bool) {
		t.Helper()
		harness.Within(t, 20*time.Second, what, func(ctx context.Context) error {
			status, _, err := a.API.VirtualClusters().Info(ctx, "a", nil)
			switch {
			case err != nil:
				return err
			case len(status.Bound) != 1 || status.Bound[0].Cell != node || status.Bound[0].Bad != bad || status.Bound[0].Used != 8 || status.Cells[0].Doomed != 0:
				return fmt.Errorf("%+v of %+v", asText(status.Bound), asText(status.Cells))
			}
			return nil
		})
	}
	bound("at first", at, false)
	id := nodeID(a, at)
	harness.CheckOutput(t, a, 0, "node drain -enable -yes -detach "+id)
	bound("its node is drained", other[at], false)
	harness.CheckOutput(t, a, 0, "node drain -disable -yes "+id)

	harness.CheckOutput(t, a, 0, "sim health "+other[at]+" bad")
	bound("its node is lost", at, false)
	harness.CheckOutput(t, a, 0, "sim health "+other[at]+" good")
	a.WaitReady(2)
	bound("the node is back", at, false)

	harness.CheckOutput(t, a, 0, "sim health "+at+"-gpu-3 bad")
	bound("a GPU is bad", at, true)
	harness.CheckOutput(t, a, 0, "vc status a", at)
	harness.CheckOutput(t, a, 0, "sim health "+at+"-gpu-3 good")
	bound("it is good again", at, false)
	a.CheckState()
}

// nodeID returns the ID of a node by its name.
func nodeID(a *harness.Agent, name string) string {
	a.T.Helper()
	nodes, _, err := a.API.Nodes().List(a.T.Context(), nil)
	if err != nil {
		a.T.Fatal(err)
	}
	i := slices.IndexFunc(nodes, func(n *structs.NodeListStub) bool { return n.Name == name })
	return nodes[max(0, i)].ID
}

func asText[T any](list []*T) (out []string) {
	for _, x := range list {
		out = append(out, fmt.Sprintf("%+v", *x))
	}
	return out
}
