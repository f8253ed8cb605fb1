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

// dgx is a shape of simulated nodes in a rack, each with 8 GPUs under 4 switches of 2 sockets.
func dgx(name string, count int, rack string) string {
	return fmt.Sprintf(`shape %q {
  count  = %d
  cores  = 128
  mhz    = 2000
  memory = 1048576
  disk   = 2000000
  meta   = { rack = %q }
  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
    memory              = 81920
  }
}
`, name, count, rack)
}

// patient is the server block of agents whose simulated nodes must not look lost where the machine is slow.
const patient = "server {\n  enabled = true\n  heartbeat_grace = \"1m\"\n}\n"

// startLayouts starts a development agent with simulated nodes only, and waits for n of them.
func startLayouts(t *testing.T, n int, config string, layouts ...string) *agent {
	t.Helper()
	a := newAgent(t, true, simulate(t, strings.Join(layouts, ""))+config)
	a.start()
	a.ready(n)
	return a
}

// attach starts a process with more simulated nodes. It is no agent: only start, kill and its log are of use.
func (a *agent) attach(layouts string) *agent {
	a.t.Helper()
	p := newAgent(a.t, false, "")
	p.args = []string{"sim", "nodes", "-shape", p.job("shapes", layouts), "-server", a.rpc}
	p.start()
	return p
}

// gpu is a GPU with its place in the cluster.
type gpu struct {
	rack, node, cell, id string
	healthy              bool
	owners               []*structs.DeviceUsage
}

// gpuView is one look at all nodes and GPUs.
type gpuView struct {
	nodes []*structs.TopologyNode
	gpus  []gpu // in the order of nodes and trees
	free  string
}

// gpus reads the topology, all pages of it.
func (a *agent) gpus(ctx context.Context) (*gpuView, error) {
	v := &gpuView{}
	var free []structs.FreeCells
	q := &api.Query{}
	for {
		top, meta, err := a.api.Topology(ctx, true, q)
		if err != nil {
			return nil, err
		}
		v.nodes = append(v.nodes, top.Nodes...)
		for _, f := range top.FreeCells {
			free = structs.MergeFree(free, f)
		}
		if q.NextToken = meta.NextToken; q.NextToken == "" {
			break
		}
	}
	for _, n := range v.nodes {
		v.walk(n, n.Cells)
	}
	var words []string
	for _, f := range free {
		words = append(words, fmt.Sprintf("%d %s of %d", f.Count, f.Level, f.Size))
	}
	slices.Sort(words)
	v.free = strings.Join(words, ", ")
	return v, nil
}

func (v *gpuView) walk(n *structs.TopologyNode, c *structs.CellView) {
	for _, kid := range c.Cells {
		v.walk(n, kid)
	}
	for _, d := range c.Members {
		v.gpus = append(v.gpus, gpu{n.Site, n.Name, c.ID, d.ID, d.Healthy, d.Usages})
	}
}

// of returns the GPUs that a job's allocations hold.
func (v *gpuView) of(job string) (out []gpu) {
	for _, g := range v.gpus {
		if slices.ContainsFunc(g.owners, func(h *structs.DeviceUsage) bool { return h.JobID == job }) {
			out = append(out, g)
		}
	}
	return out
}

// look is gpus for tests that cannot go on without it.
func (a *agent) look() *gpuView {
	a.t.Helper()
	v, err := a.gpus(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return v
}

// distinct counts the different words that of gives.
func distinct(list []gpu, of func(gpu) string) int {
	words := map[string]bool{}
	for _, g := range list {
		words[of(g)] = true
	}
	return len(words)
}

// freeOnly waits until the free cells of the cluster are these.
func (a *agent) freeOnly(want string) {
	a.t.Helper()
	within(a.t, 20*time.Second, "free cells "+want, func(ctx context.Context) error {
		v, err := a.gpus(ctx)
		if err == nil && v.free != want {
			err = fmt.Errorf("they are %s", v.free)
		}
		return err
	})
}

// gangJob is a service of one group of count pretended instances, that are a gang. more is put into the group, device into
// the device block; without gpus there is none.
func gangJob(id string, count, gpus int, gang, more, device string) string {
	request := ""
	if gpus > 0 {
		request = fmt.Sprintf("device \"nvidia/gpu\" {\n          count = %d\n          %s\n        }", gpus, device)
	}
	return fmt.Sprintf(`job %q {
  group "g" {
    count = %d
    gang {
      %s
    }
    %s
    network {
      port "p" {}
    }
    task "t" {
      driver = "mock_driver"
      config { run_for = "24h" }
      resources {
        cpu    = 100
        memory = 64
        %s
      }
    }
  }
}`, id, count, gang, more, request)
}

const oneRack = "topology {\n      level    = \"rack\"\n      required = true\n    }"

// submit registers a job file and does not wait for what becomes of it.
func (a *agent) submit(id, text string) {
	a.t.Helper()
	if out, code := a.cli("job", "run", "-detach", a.job(id, text)); code != 0 {
		a.t.Fatalf("job run %s: exit %d\n%s", id, code, out)
	}
}

// stop stops a job.
func (a *agent) stop(id string) {
	a.t.Helper()
	if out, code := a.cli("job", "stop", "-detach", id); code != 0 {
		a.t.Fatalf("job stop %s: exit %d\n%s", id, code, out)
	}
}

// waits waits until a job has an evaluation that waits for room, whose reasons say each of want.
func (a *agent) waits(job string, want ...string) {
	a.t.Helper()
	within(a.t, 20*time.Second, "job "+job+" waiting: "+strings.Join(want, ", "), func(ctx context.Context) error {
		evals, _, err := a.api.Jobs().Evaluations(ctx, job, nil)
		if err != nil {
			return err
		}
		reported := "no evaluation waits"
		for _, e := range evals {
			if e.Status != structs.EvalStatusBlocked {
				continue
			}
			reported = ""
			for group, m := range e.FailedTGAllocs {
				reported += fmt.Sprintf("%s: filtered %v, exhausted %v; ", group, m.ConstraintFiltered, m.DimensionExhausted)
			}
			if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(reported, w) }) {
				return nil
			}
		}
		return fmt.Errorf("%s", reported)
	})
}

// live returns the allocations of a job that are to run.
func (a *agent) live(ctx context.Context, job string) (out []*structs.AllocListStub, err error) {
	all, _, err := a.api.Jobs().Allocations(ctx, job, true, nil)
	for _, alloc := range all {
		if alloc.DesiredStatus == structs.AllocDesiredRun && alloc.ClientStatus != structs.AllocClientLost &&
			alloc.ClientStatus != structs.AllocClientFailed && alloc.ClientStatus != structs.AllocClientComplete {
			out = append(out, alloc)
		}
	}
	return out, err
}

// whole reads allocations in full.
func (a *agent) whole(stubs []*structs.AllocListStub) (out []*structs.Allocation) {
	a.t.Helper()
	for _, stub := range stubs {
		alloc, _, err := a.api.Allocations().Info(a.t.Context(), stub.ID, nil)
		if err != nil {
			a.t.Fatal(err)
		}
		out = append(out, alloc)
	}
	return out
}
