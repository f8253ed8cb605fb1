package schedtest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// DrawAnyNode draws a node of any state, pool and class.
func DrawAnyNode(t *rapid.T, id string) *structs.Node {
	n := DrawNode(t, id)
	n.NodePool = rapid.SampledFrom([]string{"default", "default", "default", "other"}).Draw(t, "pool")
	n.NodeClass = rapid.SampledFrom([]string{"", "fast"}).Draw(t, "class")
	switch rapid.IntRange(0, 9).Draw(t, "state") {
	case 0:
		n.Status = structs.NodeStatusDown
	case 1:
		n.SchedulingEligibility = structs.NodeIneligible
	case 2:
		n.SchedulingEligibility, n.DrainStrategy = structs.NodeIneligible, &structs.DrainStrategy{}
	case 3:
		n.Drivers = map[string]*structs.DriverInfo{}
	}
	n.ComputeClass()
	return n
}

// DrawRequestingJob draws a job of one group that requests things which can be counted by hand.
func DrawRequestingJob(t *rapid.T) *structs.Job {
	kind := rapid.SampledFrom([]string{structs.JobTypeService, structs.JobTypeBatch}).Draw(t, "type")
	return Job(kind, rapid.IntRange(1, 9).Draw(t, "count"), func(j *structs.Job) {
		g, tk := Group(j), Task(j)
		yes := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
		tk.Resources = &structs.Resources{CPU: rapid.IntRange(1, 3000).Draw(t, "cpu"), MemoryMB: rapid.IntRange(10, 6000).Draw(t, "memory")}
		if yes("gpu") {
			d := &structs.RequestedDevice{Name: rapid.SampledFrom([]string{"gpu", "v/gpu", "v/gpu/m"}).Draw(t, "kind"), Count: rapid.IntRange(1, 4).Draw(t, "gpus")}
			if d.Count == 1 {
				d.Share = rapid.SampledFrom([]int{300, 500, 1000}).Draw(t, "share")
			}
			tk.Resources.Devices = []*structs.RequestedDevice{d}
		}
		if yes("port") {
			g.Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "s", Value: rapid.IntRange(79, 81).Draw(t, "port")}}}}
		}
		if yes("distinct") {
			g.Constraints = append(g.Constraints, &structs.Constraint{Operand: structs.ConstraintDistinctHosts})
		}
		if yes("rack") {
			j.Constraints = append(j.Constraints, &structs.Constraint{LTarget: "${meta.rack}", Operand: "=", RTarget: "r1"})
		}
		if yes("host") {
			g.Constraints = append(g.Constraints, &structs.Constraint{LTarget: "${attr.unique.hostname}", Operand: "!=", RTarget: "host-n1"})
		}
		if yes("datacenters") {
			j.Datacenters = []string{"dc0", "dc1"}
		}
		if yes("candidates") {
			g.Candidates = []string{"n0", "name-n2"}
		}
	})
}

// DrawJob draws a job of one or two groups with all that a placement looks at.
func DrawJob(t *rapid.T) *structs.Job {
	kind := rapid.SampledFrom([]string{
		structs.JobTypeService, structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch,
	}).Draw(t, "type")
	j := Job(kind, rapid.IntRange(0, 12).Draw(t, "count"))
	DrawSpec(t, j)
	return j
}

// DrawSpec draws what a job requests, and its policy, and leaves its type and name.
func DrawSpec(t *rapid.T, j *structs.Job) {
	g, tk := Group(j), Task(j)
	yes := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	tk.Resources = &structs.Resources{
		CPU: rapid.IntRange(1, 2000).Draw(t, "cpu"), MemoryMB: rapid.IntRange(10, 4000).Draw(t, "memory"),
	}
	if yes("cores") {
		tk.Resources.CPU, tk.Resources.Cores = 0, rapid.IntRange(1, 3).Draw(t, "n")
	}
	if yes("gpu") {
		d := &structs.RequestedDevice{Name: rapid.SampledFrom([]string{"gpu", "v/gpu", "v/gpu/m"}).Draw(t, "kind"), Count: rapid.IntRange(1, 4).Draw(t, "gpus")}
		if d.Count == 1 {
			d.Share = rapid.SampledFrom([]int{1, 300, 500, 1000}).Draw(t, "share")
		}
		if yes("topology") {
			level := rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "nvlink"}).Draw(t, "level")
			d.Topology = &structs.TopologyConstraint{Level: level, Required: rapid.Bool().Draw(t, "required")}
		}
		tk.Resources.Devices = []*structs.RequestedDevice{d}
		if yes("another device") {
			tk.Resources.Devices = append(tk.Resources.Devices, &structs.RequestedDevice{Name: "v/gpu/m", Count: 1})
		}
	}
	g.Networks, g.Constraints, g.Affinities, g.Spreads = nil, nil, nil, nil
	if yes("network") {
		g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "a"}, {Label: "b"}}}}
		if yes("static") {
			g.Networks[0].ReservedPorts = []structs.Port{{Label: "s", Value: rapid.IntRange(79, 81).Draw(t, "port")}}
		}
	}
	if yes("distinct") {
		g.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	}
	if yes("affinity") {
		g.Affinities = []*structs.Affinity{{LTarget: "${node.datacenter}", RTarget: "dc0", Operand: "=", Weight: 30}}
	}
	if yes("spread") {
		target := rapid.SampledFrom([]string{"${node.datacenter}", "${node.unique.id}"}).Draw(t, "target")
		g.Spreads = []*structs.Spread{{Attribute: target, Weight: 50}}
	}
	j.TaskGroups = j.TaskGroups[:1]
	if yes("second group") {
		h := g.Copy()
		h.Name, h.Count = "h", rapid.IntRange(0, 4).Draw(t, "its count")
		j.TaskGroups = append(j.TaskGroups, h)
	}
	j.Policy = rapid.SampledFrom([]string{"", "spread", "first-fit", "next-fit", "random"}).Draw(t, "policy")
	g.Count = rapid.IntRange(0, 12).Draw(t, "count again")
	j.Canonicalize()
}

// DrawNode draws a ready node in one of three datacenters.
func DrawNode(t *rapid.T, id string) *structs.Node {
	return Node(id, func(n *structs.Node) {
		n.Datacenter = fmt.Sprint("dc", rapid.IntRange(0, 2).Draw(t, "dc"))
		n.NodeResources.Cpu.CpuShares = 1000 * int64(rapid.IntRange(1, 5).Draw(t, "GHz"))
		n.NodeResources.Memory.MemoryMB = int64(rapid.IntRange(100, 9000).Draw(t, "node memory"))
		n.NodeResources.MinDynamicPort, n.NodeResources.MaxDynamicPort = 20000, 20000+rapid.IntRange(0, 12).Draw(t, "ports")
		DrawDevices(t, n.NodeResources)
		if rapid.Bool().Draw(t, "in a rack") {
			n.Meta["rack"] = rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")
		}
	})
}

// DrawDevices adds to a node up to seven GPUs of one or two models, in an uneven tree,
// by their places or without any.
func DrawDevices(t *rapid.T, r *structs.NodeResources) {
	count := rapid.SampledFrom([]int{0, 0, 1, 3, 4, 7}).Draw(t, "GPUs")
	if count == 0 {
		return
	}
	groups := []*structs.NodeDeviceResource{{Vendor: "v", Type: "gpu", Name: "m"}, {Vendor: "v", Type: "gpu", Name: "other"}}
	topology := &structs.NodeTopology{Cells: []*structs.TopologyCell{{ID: "socket-0", Level: "socket"}, {ID: "socket-1", Level: "socket"}}}
	placed := rapid.Bool().Draw(t, "places")
	for i := range count {
		id := fmt.Sprint("gpu-", i)
		g := groups[0]
		if rapid.IntRange(0, 4).Draw(t, "model") == 0 {
			g = groups[1]
		}
		g.Instances = append(g.Instances, &structs.NodeDevice{ID: id, Healthy: rapid.IntRange(0, 5).Draw(t, "well") > 0})
		if i == 0 || rapid.Bool().Draw(t, "its own switch") {
			sw := &structs.TopologyCell{ID: fmt.Sprint("pcie-", i), Level: "pcie", Parent: fmt.Sprint("socket-", rapid.IntRange(0, 1).Draw(t, "socket"))}
			topology.Cells = append(topology.Cells, sw)
		}
		sw := topology.Cells[len(topology.Cells)-1]
		sw.Devices = append(sw.Devices, id)
	}
	for _, g := range groups {
		if len(g.Instances) > 0 {
			r.Devices = append(r.Devices, g)
		}
	}
	if placed {
		r.Topology = topology
	}
}
