package client

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/gpu"
	"github.com/nomadish/nomadish/client/gpu/nvml"
	"github.com/nomadish/nomadish/structs"
)

// fakeGPUs is a driver that tells what it is told to.
type fakeGPUs struct {
	mu sync.Mutex
	s  nvml.Snapshot
}

func (f *fakeGPUs) Look(context.Context) (*nvml.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.s
	return &s, nil
}

func (f *fakeGPUs) Close() {}

func (f *fakeGPUs) set(gpus ...nvml.GPU) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s = nvml.Snapshot{Protocol: nvml.Protocol, Driver: "550", GPUs: gpus}
}

func gpuRig(t *testing.T) (*rig, *fakeGPUs) {
	t.Helper()
	f := &fakeGPUs{}
	f.set(nvml.GPU{UUID: "GPU-0", Name: "H100", BusID: "0000:01:00.0"}, nvml.GPU{UUID: "GPU-1", Name: "H100", BusID: "0000:02:00.0"})
	r := newRig(t)
	r.config.NoGPUs = false
	r.config.GPUs = gpu.Options{Source: f, Interval: 5 * time.Millisecond, Root: t.TempDir()}
	return r, f
}

// TestGPUHealthReachesTheServers, and back again.
func TestGPUHealthReachesTheServers(t *testing.T) {
	r, f := gpuRig(t)
	r.start()
	state := func(want string) {
		t.Helper()
		r.s.until("the servers know that "+want, func() bool {
			n := r.s.nodes[r.c.NodeID()]
			var got []string
			for _, d := range n.NodeResources.Devices {
				for _, one := range d.Instances {
					word := one.ID + " is well"
					if !one.Healthy {
						word = one.ID + " is bad"
					}
					got = append(got, word)
				}
			}
			return strings.Join(got, ", ") == want && n.NodeResources.ValidateTopology() == nil && n.NodeResources.Topology != nil
		})
	}
	state("GPU-0 is well, GPU-1 is well")
	f.set(nvml.GPU{UUID: "GPU-0", Name: "H100", BusID: "0000:01:00.0"}, nvml.GPU{UUID: "GPU-1", Name: "H100", BusID: "0000:02:00.0", Uncorrected: 1})
	state("GPU-0 is well, GPU-1 is bad")
	f.set(nvml.GPU{UUID: "GPU-0", Name: "H100", BusID: "0000:01:00.0"})
	state("GPU-0 is well, GPU-1 is bad")
	f.set(nvml.GPU{UUID: "GPU-0", Name: "H100", BusID: "0000:01:00.0"}, nvml.GPU{UUID: "GPU-1", Name: "H100", BusID: "0000:02:00.0"})
	state("GPU-0 is well, GPU-1 is well")
}

func TestNoGPUsAreLookedFor(t *testing.T) {
	r, _ := gpuRig(t)
	r.config.NoGPUs = true
	r.start()
	r.s.until("the node is there", func() bool { return r.s.nodes[r.c.NodeID()] != nil })
	if d := r.c.nodes[0].Node().NodeResources.Devices; d != nil {
		t.Errorf("devices %+v", d)
	}
}

// syncBuffer is a log.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), text)
}

// TestRefusedNodeSaysSoAndTriesOn: the reason is logged plainly, once, and the node is
// there when the servers take it.
func TestRefusedNodeSaysSoAndTriesOn(t *testing.T) {
	r, _ := gpuRig(t)
	log := &syncBuffer{}
	r.config.Logger = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Info})
	r.s.unfit = func(*structs.Node) error {
		return structs.Errorf(structs.CodeBadRequest, "node n1 reports devices that no machine can have: topology: cell \"a\" is above itself")
	}
	c, err := New(r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	t.Cleanup(r.stop)
	r.s.until("the node was refused some times", func() bool { return r.s.refusals >= 4 })
	if n := log.count("is above itself"); n != 1 || log.count("refuse this node") != 1 {
		t.Errorf("the reason stands %d times in the log", n)
	}
	r.s.change(func() { r.s.unfit = nil })
	r.s.until("the node registers", func() bool { return r.s.nodes[c.NodeID()] != nil })
}
