package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

func inLevel(level string, required bool) func(*structs.Job) {
	return func(j *structs.Job) {
		schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: level, Required: required}
	}
}

// TestGangUnderOneCell: all devices of a gang are under one cell of the level that it
// requires, however many a node has. Nodes have 2 sockets of 2 switches of 2 GPUs.
func TestGangUnderOneCell(t *testing.T) {
	f := func(level string, required bool, count, gpus int, reached string, want ...string) {
		t.Helper()
		c := newCluster(t)
		c.node("n", schedtest.EightGPUs)
		c.node("flat", dgxIn("r1")) // its GPUs have no places
		c.node("o", schedtest.EightGPUs)
		c.register(gangJob(structs.JobTypeService, count, gpus, inLevel(level, required)))
		c.eval()
		if reached == "" {
			c.wantPlan(0, 0, 0)
			c.wantQueued(count)
			c.wantReason("g", want[0])
			return
		}
		c.wantGang(count, reached)
		c.wantGPUs(want...)
	}
	f("socket", true, 2, 2, "socket", "n: 0,1 pcie", "n: 2,3 pcie")
	f("socket", true, 3, 1, "socket", "n: 0 gpu", "n: 1 gpu", "n: 2 gpu")
	f("socket", true, 1, 4, "socket", "n: 0,1,2,3 socket")
	f("pcie", true, 2, 1, "pcie", "n: 0 gpu", "n: 1 gpu")
	f("gpu", true, 1, 1, "gpu", "flat: 0 gpu")
	f("node", true, 4, 2, "node", "n: 0,1 pcie", "n: 2,3 pcie", "n: 4,5 pcie", "n: 6,7 pcie")
	f("socket", true, 3, 2, "", "no socket fits 3 instances of 2 GPUs: socket-0 of name-n has room for 2, socket-1 of name-n for 2, "+
		"socket-0 of name-o for 2, 1 other has room for no more")
	f("pcie", true, 2, 2, "", "no pcie fits 2 instances of 2 GPUs: pcie-0 of name-n has room for 1, pcie-1 of name-n for 1, "+
		"pcie-2 of name-n for 1, 5 others have room for no more")
	f("gpu", true, 2, 1, "", "no gpu fits 2 instances with 1 GPU")
	// Preferred: the lowest level that works, from the one that is stated.
	f("pcie", false, 2, 1, "pcie", "n: 0 gpu", "n: 1 gpu")
	f("pcie", false, 2, 2, "socket", "n: 0,1 pcie", "n: 2,3 pcie")
	f("gpu", false, 2, 1, "pcie", "n: 0 gpu", "n: 1 gpu")
	f("socket", false, 3, 2, "node", "n: 0,1 pcie", "n: 2,3 pcie", "n: 4,5 pcie")
}

// devicesGiven lists what devices an allocation holds.
func devicesGiven(a *structs.Allocation) (ids []string) {
	for _, t := range a.AllocatedResources.Tasks { // looked for by ID: the order cannot show
		for _, d := range t.Devices {
			ids = append(ids, d.DeviceIDs...)
		}
	}
	return ids
}

// TestGangFindsTheCellWithRoom: the cell that holds it is found among those that do not,
// on whatever node, and what members ask for themselves holds as well.
func TestGangFindsTheCellWithRoom(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	c.node("o", schedtest.EightGPUs)
	one := structs.RequestedDevice{Name: "gpu", Count: 1}
	for i := range 6 {
		c.run(fmt.Sprint("one ", i), schedtest.GPUJob(1, one)) // 0 to 5 of n
	}
	c.run("pair of o", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 4})) // 0 to 3 of o
	c.client(func(a *structs.Allocation) bool {
		return slices.Contains(devicesGiven(a), "n-gpu-0") || slices.Contains(devicesGiven(a), "n-gpu-2")
	},
		c.ended(false))
	c.w = c.rebuilt()
	// Free: 0, 2, 6 and 7 of n; 4 to 7 of o.
	c.run("scattered", gangJob(structs.JobTypeService, 1, 2, inLevel("socket", true), func(j *structs.Job) {
		schedtest.Task(j).Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: "pcie", Required: true}
	}))
	if got := c.gpus(); !slices.Contains(got, "n: 6,7 pcie") {
		t.Fatalf("given %v", got)
	}
	c.run("three", gangJob(structs.JobTypeService, 3, 1, inLevel("socket", true)))
	if got := strings.Join(c.gpus(), " "); !strings.Contains(got, "o: 4 gpu o: 5 gpu o: 6 gpu") {
		t.Fatalf("given %v", got)
	}
	c.run("two", gangJob(structs.JobTypeService, 2, 1, inLevel("socket", true)))
	if got := strings.Join(c.gpus(), " "); !strings.Contains(got, "n: 0 gpu") || !strings.Contains(got, "n: 2 gpu") {
		t.Fatalf("given %v", got)
	}
}

// TestGangUnderTheNextCellOfANode: where the first cell does not do for what the members
// ask for themselves, another cell of the node may.
func TestGangUnderTheNextCellOfANode(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs, func(n *structs.Node) {
		for _, i := range []int{0, 4} {
			n.NodeResources.Devices[0].Instances[i].Healthy = false
		}
		n.NodeResources.Topology.Cells[1].Devices, n.NodeResources.Topology.Cells[2].Devices =
			[]string{"n-gpu-0", "n-gpu-1", "n-gpu-2"}, []string{"n-gpu-3"} // no two pairs
		n.NodeResources.Devices[0].Instances[4].Healthy = true
	})
	c.register(gangJob(structs.JobTypeService, 1, 2, inLevel("socket", true), withPeer(1), func(j *structs.Job) {
		pcie := &structs.TopologyConstraint{Level: "pcie", Required: true}
		schedtest.Task(j).Resources.Devices[0].Topology = pcie
		j.TaskGroups[1].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1, Topology: pcie}}
		schedtest.Group(j).Count = 1
	}))
	c.eval()
	c.wantGang(2, "socket")
	c.runAll()
	c.update(func(j *structs.Job) {
		schedtest.Group(j).Count = 1
		j.TaskGroups[1].Tasks[0].Resources.Devices[0].Count = 2
	})
	c.eval()
	c.wantGang(2, "socket")
	c.wantGPUs("n: 4,5 pcie", "n: 6,7 pcie")
}

// TestGangStaysUnderItsCell: members above min, and those that stand for others, come
// under the cell of those that run.
func TestGangStaysUnderItsCell(t *testing.T) {
	c := newCluster(t)
	c.node("n", schedtest.EightGPUs)
	c.register(gangJob(structs.JobTypeService, 5, 1, minimum(2), inLevel("socket", true), byMember))
	c.eval()
	c.wantGang(4, "socket")
	c.wantQueued(1)
	c.wantGPUs("n: 0 gpu", "n: 1 gpu", "n: 2 gpu", "n: 3 gpu")
	if m := c.done.FailedTGAllocs["g"]; m.DimensionExhausted["devices: no room for 1 under socket-0 of name-n"] != 1 {
		t.Errorf("the fifth lacks %v", m.DimensionExhausted)
	}
	c.runAll()
	leaves := c.members()["j.g[1]"]
	id := devicesGiven(leaves)[0]
	c.changeNode("n", func(n *structs.Node) {
		for _, d := range n.NodeResources.Devices[0].Instances {
			d.Healthy = d.ID != id
		}
	})
	c.client(func(a *structs.Allocation) bool { return a.ID == leaves.ID }, c.ended(true))
	c.now = c.now.Add(time.Minute)
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantQueued(2)
	c.changeNode("n", func(n *structs.Node) { n.NodeResources.Devices[0].Instances[1].Healthy = true })
	c.wake(c.blocked())
	c.wantPlan(1, 1, 0)
	c.wantGPUs("n: 0 gpu", "n: 1 gpu", "n: 2 gpu", "n: 3 gpu")
}

// TestGangOfTwoKindsUnderOneCell: devices of other kinds are under the same cell, and
// members without devices on its node.
func TestGangOfTwoKindsUnderOneCell(t *testing.T) {
	cards := func(switches ...int) func(*structs.Node) {
		return func(n *structs.Node) {
			schedtest.EightGPUs(n)
			nic := &structs.NodeDeviceResource{Vendor: "mellanox", Type: "nic", Name: "cx7"}
			for _, w := range switches {
				id := fmt.Sprint("nic-", w)
				nic.Instances = append(nic.Instances, &structs.NodeDevice{ID: id, Healthy: true})
				for _, cell := range n.NodeResources.Topology.Cells {
					if cell.ID == fmt.Sprint("pcie-", w) {
						cell.Devices = append(cell.Devices, id)
					}
				}
			}
			n.NodeResources.Devices = append(n.NodeResources.Devices, nic)
		}
	}
	job := func(nics int) *structs.Job {
		return gangJob(structs.JobTypeService, 2, 2, inLevel("socket", true), withPeer(1), func(j *structs.Job) {
			schedtest.Task(j).Resources.Devices = append(schedtest.Task(j).Resources.Devices, &structs.RequestedDevice{Name: "nic", Count: nics})
		})
	}
	c := newCluster(t)
	c.node("n", cards(0, 2, 3))
	c.register(job(1))
	c.eval()
	c.wantGang(3, "node") // the third has no device
	c.wantGPUs("n: 2 gpu", "n: 3 gpu", "n: 4,5 pcie", "n: 6,7 pcie")
	c = newCluster(t)
	c.node("n", cards(0, 2))
	c.register(job(1))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantReason("g", "no socket fits 2 instances")
}
