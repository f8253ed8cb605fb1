package tracefile

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// mhzPerCore is what a core of lists counts that state cores: thousandths of a core and
// MHz are then the same number.
const mhzPerCore = 1000

var nodeColumns = []column{{"sn", true}, {"cpu_milli", true}, {"memory_mib", true}, {"gpu", true}, {"model", false}}

// OpenNodes reads nodes: shapes as `sim nodes` reads them (a file that ends in .hcl), or
// a node list with the columns of OpenB.
func OpenNodes(path string) ([]*structs.Node, error) {
	if strings.HasSuffix(path, ".hcl") {
		layouts, err := sim.ParseFile(path)
		if err != nil {
			return nil, err
		}
		nodes := sim.Nodes(layouts, sim.Options{
			Seed: "replay", Datacenter: "dc1", Driver: trace.DriverName, SchedulingEligibility: structs.NodeEligible,
		})
		for _, n := range nodes {
			n.NodePool = cmp.Or(n.NodePool, structs.DefaultNodePool) // as a server would state it
		}
		return nodes, nil
	}
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return readNodes(path, f)
}

func readNodes(path string, r io.Reader) ([]*structs.Node, error) {
	t, err := newTable(path, r, nodeColumns)
	if err != nil {
		return nil, fmt.Errorf("%w; or use a file of node shapes whose name ends in .hcl", err)
	}
	var out []*structs.Node
	seen := map[string]int{}
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		name := strings.Clone(t.text("sn"))
		switch line := seen[name]; {
		case name == "":
			t.fail("sn", "sn: a node must have a name")
		case line > 0:
			t.fail("sn", "sn %q: stands in line %d too", clip(name), line)
		case len(out) >= sim.MaxNodes:
			t.fail("sn", "over %d nodes", sim.MaxNodes)
		}
		seen[name] = t.line()
		n := listedNode(t, name)
		if t.err != nil {
			return nil, t.err
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: has no nodes after the names of its columns", path)
	}
	return out, nil
}

// listedNode makes a node of a line. Its GPUs are all alike near to each other.
func listedNode(t *table, name string) *structs.Node {
	milli := t.whole("cpu_milli", 0, 0, 65_535*1000)
	memory := t.whole("memory_mib", 0, 0, 1<<40)
	gpus, model := t.whole("gpu", 0, 0, trace.MaxGPUs), strings.Clone(t.text("model"))
	if gpus > 0 && (model == "" || strings.ContainsAny(model, "|, ")) {
		t.fail("model", "model %q: a node with GPUs has one model, without blanks, commas and bars", clip(model))
	}
	cores := milli / mhzPerCore
	r := &structs.NodeResources{
		Cpu:    structs.NodeCpuResources{CpuShares: int64(milli), TotalCpuCores: uint16(cores)}, // at most 65535
		Memory: structs.NodeMemoryResources{MemoryMB: int64(memory)},
	}
	if gpus > 0 {
		d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: model}
		for i := range gpus {
			d.Instances = append(d.Instances, &structs.NodeDevice{ID: name + "-gpu-" + strconv.Itoa(i), Healthy: true})
		}
		r.Devices = []*structs.NodeDeviceResource{d}
	}
	n := &structs.Node{
		ID: name, Name: name, Datacenter: "dc1", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{}, Meta: map[string]string{}, NodeResources: r,
		Drivers: map[string]*structs.DriverInfo{trace.DriverName: {Detected: true, Healthy: true}},
	}
	n.ComputeClass()
	return n
}

// MostGPUs is the most GPUs that one of the nodes has.
func MostGPUs(nodes []*structs.Node) (most int) {
	for _, n := range nodes {
		sum := 0
		for _, d := range n.NodeResources.Devices {
			if d.Type == "gpu" {
				sum += len(d.Instances)
			}
		}
		most = max(most, sum)
	}
	return most
}

var rankColumns = []column{{"seed", true}, {"node", true}, {"rank", true}}

// OpenRanks reads the order of nodes with equal scores, by seed and node: the published
// experiment's own, to repeat it.
func OpenRanks(path string) (map[uint64]map[string]int, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("node ranks: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	t, err := newTable(path, f, rankColumns)
	if err != nil {
		return nil, err
	}
	out := map[uint64]map[string]int{}
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			return out, nil
		}
		seed, rank := uint64(t.whole("seed", 0, 0, 1<<53)), t.whole("rank", 0, 0, 1<<53) // not negative
		if t.err != nil {
			return nil, t.err
		}
		if out[seed] == nil {
			out[seed] = map[string]int{}
		}
		out[seed][strings.Clone(t.text("node"))] = rank
	}
}
