package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// GPU is a GPU with its place in the cluster.
type GPU struct {
	Rack, Node, Cell, ID string
	Healthy              bool
	Owners               []*structs.DeviceUsage
}

// GPUView is one look at all nodes and GPUs.
type GPUView struct {
	nodes []*structs.TopologyNode
	GPUs  []GPU // in the order of nodes and trees
	Free  string
}

// ReadGPUs reads the topology, all pages of it.
func (a *Agent) ReadGPUs(ctx context.Context) (*GPUView, error) {
	v := &GPUView{}
	var free []structs.FreeCells
	q := &api.Query{}
	for {
		top, meta, err := a.API.Topology(ctx, true, q)
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
	v.Free = strings.Join(words, ", ")
	return v, nil
}

func (v *GPUView) walk(n *structs.TopologyNode, c *structs.CellView) {
	for _, kid := range c.Cells {
		v.walk(n, kid)
	}
	for _, d := range c.Members {
		v.GPUs = append(v.GPUs, GPU{n.Site, n.Name, c.ID, d.ID, d.Healthy, d.Usages})
	}
}

// OfJob returns the GPUs that a job's allocations use.
func (v *GPUView) OfJob(job string) (out []GPU) {
	for _, g := range v.GPUs {
		if slices.ContainsFunc(g.Owners, func(h *structs.DeviceUsage) bool { return h.JobID == job }) {
			out = append(out, g)
		}
	}
	return out
}

// GPUs reads the topology, and ends the test if it cannot.
func (a *Agent) GPUs() *GPUView {
	a.T.Helper()
	v, err := a.ReadGPUs(a.T.Context())
	if err != nil {
		a.T.Fatal(err)
	}
	return v
}

// WaitFree waits until the free cells of the cluster are these.
func (a *Agent) WaitFree(want string) {
	a.T.Helper()
	Within(a.T, 20*time.Second, "free cells "+want, func(ctx context.Context) error {
		v, err := a.ReadGPUs(ctx)
		if err == nil && v.Free != want {
			err = fmt.Errorf("they are %s", v.Free)
		}
		return err
	})
}

// Owners returns who uses each GPU, and how much of it.
func (v *GPUView) Owners() map[string]string {
	out := map[string]string{}
	for _, g := range v.GPUs {
		for _, h := range g.Owners {
			out[g.ID] += fmt.Sprintf("%s %s %d %s %d/%d; ", h.AllocID, h.Name, h.Share, h.Level, h.GangRank, h.GangSize)
		}
	}
	return out
}
