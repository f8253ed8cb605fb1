package gpu

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// startRacks starts an agent with the two racks of the examples.
func startRacks(t *testing.T) *harness.Agent {
	t.Helper()
	path, err := filepath.Abs("../../examples/racks.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewAgent(t, true, fmt.Sprintf("client {\n  enabled = true\n  simulate = %q\n}\n", path))
	a.Start()
	a.WaitReady(4)
	return a
}

// ownersOf gives, by allocation name, where its GPUs are: rack, node, cell, device.
func ownersOf(t *testing.T, a *harness.Agent) map[string][]string {
	t.Helper()
	top, _, err := a.API.Topology(t.Context(), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, n := range top.Nodes {
		var walk func(c *structs.CellView)
		walk = func(c *structs.CellView) {
			for _, kid := range c.Cells {
				walk(kid)
			}
			for _, d := range c.Members {
				for _, h := range d.Usages {
					out[h.Name] = append(out[h.Name], n.Site+" "+n.Name+" "+c.ID+" "+d.ID)
				}
			}
		}
		walk(n.Cells)
	}
	return out
}

func freeText(t *structs.Topology) string {
	var out []string
	for _, f := range t.FreeCells {
		out = append(out, fmt.Sprintf("%d×%s/%d", f.Count, f.Level, f.Size))
	}
	return strings.Join(out, " ")
}

// TestExamplesOnTwoRacks is the walk of the README: a pair of GPUs under one switch, a
// gang in one rack, one that no rack can hold, and what the topology says of it all.
func TestExamplesOnTwoRacks(t *testing.T) {
	t.Parallel()
	a := startRacks(t)
	top, meta, err := a.API.Topology(t.Context(), false, nil)
	if err != nil || freeText(top) != "4×node/8" || top.Devices != 32 || len(top.Sites) != 2 || meta.Index == 0 {
		t.Fatalf("at the start: %+v %v", top, err)
	}
	woken := make(chan error, 1)
	go func() { // a blocking query sees the pair come
		got, _, err := a.API.Topology(t.Context(), false, &api.Query{Index: meta.Index, Wait: time.Minute})
		if err == nil && got.Used != 2 {
			err = fmt.Errorf("%d GPUs used", got.Used)
		}
		woken <- err
	}()
	if out, code := a.CLI("job", "run", "-detach", "../../examples/gpu.nomad.hcl"); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	a.WaitRunning("pair", 1, 30*time.Second)
	if err := <-woken; err != nil {
		t.Errorf("the blocking query: %v", err)
	}
	pair := ownersOf(t, a)["pair.train[0]"]
	if len(pair) != 2 || pair[0][:strings.LastIndex(pair[0], " ")] != pair[1][:strings.LastIndex(pair[1], " ")] {
		t.Errorf("the pair is not under one switch: %q", pair)
	}
	if top, _, err = a.API.Topology(t.Context(), false, nil); err != nil || freeText(top) != "3×node/8 1×socket/4 1×pcie/2" {
		t.Errorf("beside the pair: %s %v", freeText(top), err)
	}
	out, code := a.CLI("topology")
	for _, want := range []string{"32 devices on 4 nodes: 2 used, 30 free", "rack r1", "rack r2", "pair.train[0]", "free cell of 4", "Free Cells"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("topology: exit %d, %q is missing in\n%s", code, want, out)
		}
	}

	if out, code := a.CLI("job", "run", "-var", "members=4", "../../examples/gang.nomad.hcl"); code != 2 || !strings.Contains(out, "rack") {
		t.Errorf("four members: exit %d\n%s", code, out)
	}
	if n := len(ownersOf(t, a)["gang.workers[0]"]); n != 0 {
		t.Errorf("part of a gang that no rack can hold has %d GPUs", n)
	}
	if out, code := a.CLI("job", "run", "-detach", "../../examples/gang.nomad.hcl"); code != 0 {
		t.Fatalf("two members: exit %d\n%s", code, out)
	}
	a.WaitRunning("gang", 2, 30*time.Second)
	racks := map[string]int{}
	for name, places := range ownersOf(t, a) {
		if strings.HasPrefix(name, "gang.") {
			for _, place := range places {
				racks[strings.Fields(place)[0]]++
			}
		}
	}
	if len(racks) != 1 || slices.Max([]int{racks["rack=r1"], racks["rack=r2"]}) != 16 {
		t.Errorf("the gang's GPUs by rack: %v", racks)
	}
	alloc := a.WaitRunning("gang", 2, 10*time.Second)[0]
	if out, code := a.CLI("alloc", "status", alloc.ID); code != 0 || !strings.Contains(out, "of 2, all under one rack") || !strings.Contains(out, "Task Devices:") {
		t.Errorf("alloc status: exit %d\n%s", code, out)
	}

	for _, job := range []string{"pair", "gang"} {
		if out, code := a.CLI("job", "stop", "-detach", job); code != 0 {
			t.Errorf("job stop: exit %d\n%s", code, out)
		}
	}
	harness.Within(t, 30*time.Second, "one free cell a node", func(ctx context.Context) error {
		top, _, err := a.API.Topology(ctx, false, nil)
		if err == nil && freeText(top) != "4×node/8" {
			err = fmt.Errorf("free: %s", freeText(top))
		}
		return err
	})
}

// TestUnknownLevel: a level that nothing has is refused with those that there are.
func TestUnknownLevel(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	path := a.JobFile("odd", `job "odd" {
  group "g" {
    topology {
      level = "rak"
    }
    task "t" {
      driver = "mock_driver"
    }
  }
}`)
	out, code := a.CLI("job", "run", path)
	if code != 1 || !strings.Contains(out, `unknown level "rak"`) || !strings.Contains(out, `did you mean "rack"?`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	top, _, err := a.API.Topology(t.Context(), true, nil)
	if err != nil || len(top.Nodes) != 1 {
		t.Errorf("%+v %v", top, err)
	}
	if _, _, err := a.API.Nodes().Topology(t.Context(), "nobody", nil); !api.IsNotFound(err) {
		t.Errorf("a node from nowhere: %v", err)
	}
}

// TestSchedulerSettings: what files state seeds the cluster; the official client, which
// knows nothing of our fields, leaves them as they are.
func TestSchedulerSettings(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, `server {
  topology {
    levels = ["gpu", "node", "rack", "pod"]
    level "rack" {
      meta = "r"
    }
  }
  scheduling {
    policy          = "next-fit"
    preferred_cells = [8, 2]
  }
}`)
	check := func(when, policy string, levels int) {
		t.Helper()
		c, err := a.API.Operator().SchedulerConfig(t.Context())
		if err != nil || c.NodeOrder() != policy || len(c.Levels) != levels || !slices.Equal(c.PreferredCells, []int{8, 2}) {
			t.Errorf("%s: %+v %v", when, c, err)
		}
	}
	harness.Within(t, 10*time.Second, "the seed", func(ctx context.Context) error {
		c, err := a.API.Operator().SchedulerConfig(ctx)
		if err == nil && c.ModifyIndex == 0 {
			err = fmt.Errorf("the configuration is not stored yet")
		}
		return err
	})
	check("at first", "next-fit", 2)
	conf, _, err := a.Nomad.Operator().SchedulerGetConfiguration(nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.SchedulerConfig.MemoryOversubscriptionEnabled = true
	if _, _, err = a.Nomad.Operator().SchedulerSetConfiguration(conf.SchedulerConfig, nil); err != nil {
		t.Fatal(err)
	}
	check("after the official client", "next-fit", 2)
	conf.SchedulerConfig.SchedulerAlgorithm = nomad.SchedulerAlgorithmSpread
	if _, _, err = a.Nomad.Operator().SchedulerSetConfiguration(conf.SchedulerConfig, nil); err != nil {
		t.Fatal(err)
	}
	check("another algorithm", "spread", 2)
	if out, code := a.CLI("operator", "scheduler", "set-config", "-levels", "none", "-policy", "random"); code != 0 {
		t.Errorf("exit %d\n%s", code, out)
	}
	check("after set-config", "random", 0)
	if out, code := a.CLI("operator", "scheduler", "set-config", "-levels", "gpu"); code != 1 || !strings.Contains(out, "a level within nodes") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
