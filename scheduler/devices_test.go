package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// gpus lists what each live allocation was given, "node: numbers level", sorted.
func (c *cluster) gpus() []string {
	var out []string
	for _, a := range c.sorted() {
		if a.Terminal() {
			continue
		}
		for _, d := range a.AllocatedResources.Tasks["t"].Devices {
			var numbers []string
			for _, id := range d.DeviceIDs {
				numbers = append(numbers, id[strings.LastIndex(id, "-")+1:])
			}
			out = append(out, fmt.Sprintf("%s: %s %s", a.NodeID, strings.Join(numbers, ","), d.Level))
		}
	}
	slices.Sort(out)
	return out
}

func (c *cluster) wantGPUs(want ...string) {
	c.t.Helper()
	if got := c.gpus(); !slices.Equal(got, want) {
		c.t.Fatalf("given:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// run places a job of its own and forgets it, so that the next one is another.
func (c *cluster) run(id string, j *structs.Job) {
	c.t.Helper()
	j.ID = id
	c.job = nil
	c.register(j)
	allocs := c.allocs
	c.allocs = map[string]*structs.Allocation{}
	c.seed++
	ev := c.newEval()
	ev.JobID = id
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil {
		c.t.Fatal(err)
	}
	e := c.w.Edit()
	reservations, refused, why := scheduler.Judge(e, plan)
	if len(refused) > 0 {
		c.t.Fatalf("refused: %v %s", refused, why)
	}
	c.commit(reservations)
	for k, a := range allocs {
		c.allocs[k] = a
	}
	c.last, c.done = plan, plan.Evals[0]
}

// The golden example of semantics part 2: ask 2 takes GPUs {1,2} (counted from 1) and
// leaves free cells {3,4} and {5,6,7,8}; released, it is one free cell of 8 again.
func TestGoldenBuddy(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	c.run("two", schedtest.GPUJob(1, structs.RequestedDevice{Name: "nvidia/gpu", Count: 2}))
	c.wantGPUs("n: 0,1 pcie")
	c.run("four", schedtest.GPUJob(1, structs.RequestedDevice{Name: "nvidia/gpu", Count: 4}))
	c.run("another two", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 2}))
	c.wantGPUs("n: 0,1 pcie", "n: 2,3 pcie", "n: 4,5,6,7 socket")
	c.client(isLive, c.ended(false))
	c.w = c.rebuilt()
	c.run("eight", schedtest.GPUJob(2, structs.RequestedDevice{Name: "nvidia/gpu/H100", Count: 8}))
	c.wantGPUs("n: 0,1,2,3,4,5,6,7 node")
	if m := c.done.FailedTGAllocs["g"]; m == nil || m.DimensionExhausted["devices"] != 1 || c.done.QueuedAllocations["g"] != 1 {
		t.Errorf("the second ask for 8 is explained as %+v", m)
	}
}

// A free cell of the very size is taken wherever it is, before a larger one is cut.
func TestSmallestCellOfAllNodes(t *testing.T) {
	c := newCluster(t)
	for _, id := range []string{"a", "b", "c"} {
		c.node(id, schedtest.EightGPUs)
	}
	c.run("a", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 4}))
	c.run("b", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 8}))
	c.run("c", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1}))
	// a holds 4 and 1; b is full; c is free: cells of 1, 2 and 8.
	c.run("two", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 2}))
	c.wantGPUs("a: 0,1,2,3 socket", "a: 4 gpu", "a: 6,7 pcie", "b: 0,1,2,3,4,5,6,7 node")
	c.run("one", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1}))
	c.run("three", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 3}))
	c.wantGPUs("a: 0,1,2,3 socket", "a: 4 gpu", "a: 5 gpu", "a: 6,7 pcie", "b: 0,1,2,3,4,5,6,7 node", "c: 0,1,2 socket")
	c.run("fours", schedtest.GPUJob(2, structs.RequestedDevice{Name: "gpu", Count: 4}))
	if got := c.gpus(); !slices.Contains(got, "c: 4,5,6,7 socket") || c.done.QueuedAllocations["g"] != 1 {
		t.Errorf("given %v", got)
	}
}

func TestTopologyOfAnInstance(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	c.run("ones", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1}))
	c.run("three", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 3, Topology: &structs.TopologyConstraint{Level: "socket", Required: true}}))
	c.wantGPUs("n: 0 gpu", "n: 4,5,6 socket")
	// Free are 1, 2 and 3, and 7: no switch has two but the second.
	c.run("pair", schedtest.GPUJob(2, structs.RequestedDevice{Name: "gpu", Count: 2, Topology: &structs.TopologyConstraint{Level: "pcie", Required: true}}))
	c.wantGPUs("n: 0 gpu", "n: 2,3 pcie", "n: 4,5,6 socket")
	if m := c.done.FailedTGAllocs["g"]; m == nil || m.DimensionExhausted["devices: no free cell of level pcie for 2"] != 1 {
		t.Errorf("explained as %+v", m)
	}
	c.run("preferred", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 2, Topology: &structs.TopologyConstraint{Level: "pcie"}}))
	c.wantGPUs("n: 0 gpu", "n: 1,7 node", "n: 2,3 pcie", "n: 4,5,6 socket")
	c.run("unknown", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1, Topology: &structs.TopologyConstraint{Level: "nvlink", Required: true}}))
	if c.done.QueuedAllocations["g"] != 1 {
		t.Error("a level that no node has was given")
	}
}

func TestShares(t *testing.T) {
	c := newCluster(t)
	c.node("a", schedtest.EightGPUs)
	c.node("b", schedtest.EightGPUs)
	share := func(n int) *structs.Job {
		return schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1, Share: n})
	}
	c.run("half", share(500))
	c.run("third", share(300))
	c.run("whole", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1}))
	c.run("much", share(600))
	c.run("last", share(200))
	c.wantGPUs("a: 0 gpu", "a: 0 gpu", "a: 0 gpu", "a: 1 gpu", "a: 2 gpu")
	var shares []int
	for _, a := range c.sorted() {
		shares = append(shares, a.AllocatedResources.Tasks["t"].Devices[0].Share)
	}
	slices.Sort(shares)
	if !slices.Equal(shares, []int{0, 200, 300, 500, 600}) {
		t.Errorf("shares %v", shares)
	}
	c.client(isLive, c.ended(false))
	c.w = c.rebuilt()
	c.run("eights", schedtest.GPUJob(2, structs.RequestedDevice{Name: "gpu", Count: 8}))
	c.wantGPUs("a: 0,1,2,3,4,5,6,7 node", "b: 0,1,2,3,4,5,6,7 node")
}

// Several requests of several tasks each get devices of their own.
func TestSeveralDeviceRequests(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs, func(n *structs.Node) {
		n.NodeResources.Devices = append(n.NodeResources.Devices, &structs.NodeDeviceResource{
			Vendor: "xilinx", Type: "fpga", Name: "u250", Instances: []*structs.NodeDevice{{ID: "fpga-0", Healthy: true}, {ID: "fpga-1"}},
		})
	})
	c.run("j", schedtest.Job(structs.JobTypeBatch, 2, func(j *structs.Job) {
		other := *schedtest.Task(j)
		other.Name = "u"
		r := *other.Resources
		r.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 4}}
		other.Resources = &r
		schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 2}, {Name: "fpga", Count: 1}}
		schedtest.Group(j).Tasks = append(schedtest.Group(j).Tasks, &other)
	}))
	c.wantGPUs("n: 0 gpu", "n: 0,1 pcie")
	for _, a := range c.allocs {
		if d := a.AllocatedResources.Tasks["u"].Devices; len(d) != 1 || d[0].Level != "socket" || d[0].DeviceIDs[0] != "n-gpu-4" {
			t.Errorf("the other task was given %+v", d)
		}
	}
	if c.done.QueuedAllocations["g"] != 1 || c.done.FailedTGAllocs["g"].DimensionExhausted["devices"] != 1 {
		t.Errorf("the second instance: %+v", c.done.FailedTGAllocs["g"])
	}
}

// Devices of two models in one tree are never mixed in one request; what is liked better wins.
func TestModels(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs, func(n *structs.Node) {
		all := n.NodeResources.Devices[0]
		n.NodeResources.Devices = []*structs.NodeDeviceResource{
			{Vendor: "nvidia", Type: "gpu", Name: "A100", Instances: all.Instances[:3]},
			{Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: all.Instances[3:]},
		}
	})
	c.run("five", schedtest.GPUJob(1, structs.RequestedDevice{Name: "nvidia/gpu", Count: 5}))
	c.wantGPUs("n: 3,4,5,6,7 node")
	c.client(isLive, c.ended(false))
	c.w = c.rebuilt()
	c.run("liked", schedtest.GPUJob(2, structs.RequestedDevice{Name: "gpu", Count: 2, Affinities: []*structs.Affinity{
		{LTarget: "${device.model}", Operand: "=", RTarget: "A100", Weight: 50},
	}}))
	c.wantGPUs("n: 0,1 pcie", "n: 4,5 pcie")
	c.run("more", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 4}))
	if c.done.QueuedAllocations["g"] != 1 {
		t.Error("four of two models were given")
	}
}

// A device that is not well is not given, and leaves its cells at once.
func TestSickDevice(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	c.changeNode("n", func(n *structs.Node) {
		d := *n.NodeResources.Devices[0]
		d.Instances = slices.Clone(d.Instances)
		d.Instances[0] = &structs.NodeDevice{ID: "n-gpu-0", HealthDescription: "ECC"}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{&d}
	})
	c.run("one", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1}))
	c.run("pair", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 2}))
	c.run("eight", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 8}))
	c.wantGPUs("n: 1 gpu", "n: 2,3 pcie")
	c.changeNode("n", schedtest.EightGPUs)
	c.run("again", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1}))
	c.wantGPUs("n: 0 gpu", "n: 1 gpu", "n: 2,3 pcie")
}

// Cores that a node does not offer any more take none of those that it offers now.
func TestCoresOfANodeThatHasOthersNow(t *testing.T) {
	c := newCluster(t)
	cores := func(n int) *structs.Job {
		return schedtest.Job(structs.JobTypeBatch, 1, func(j *structs.Job) { schedtest.Task(j).Resources = &structs.Resources{Cores: n, MemoryMB: 100} })
	}
	more := func(n *structs.Node) { n.NodeResources.Cpu.CpuShares, n.NodeResources.Cpu.TotalCpuCores = 10_000, 10 }
	c.node("n", more)
	c.run("two", cores(2))
	c.changeNode("n", func(n *structs.Node) { n.NodeResources.Cpu.ReservableCpuCores = []uint16{4, 5, 6, 7} })
	c.run("four", cores(4))
	if c.liveOf("four") == nil {
		t.Errorf("four free cores are not given: %+v", c.done.FailedTGAllocs["g"])
	}
}

// What is liked of devices decides between nodes too.
func TestDeviceAffinity(t *testing.T) {
	c := newCluster(t)
	for i, model := range []string{"A100", "H100", "L4"} {
		c.node(string(rune('a'+i)), schedtest.EightGPUs, func(n *structs.Node) { n.NodeResources.Devices[0].Name = model })
	}
	likes := func(model string, count int) *structs.Job {
		return schedtest.GPUJob(count, structs.RequestedDevice{Name: "nvidia/gpu", Count: 4, Affinities: []*structs.Affinity{
			{LTarget: "${device.model}", Operand: "=", RTarget: model, Weight: 100},
		}})
	}
	c.run("h", likes("H100", 1))
	c.wantGPUs("b: 0,1,2,3 socket")
	c.run("l", likes("L4", 3))
	c.wantGPUs("b: 0,1,2,3 socket", "b: 4,5,6,7 socket", "c: 0,1,2,3 socket", "c: 4,5,6,7 socket")
}
