package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// maxLinked is how many GPUs of a block may all be linked with each other.
const maxLinked = 64

// packing is one PCIe switch of a block and how many GPUs it has.
type packing struct{ socket, gpus int }

// packings lists a block's switches in tree order.
func (g GPUs) packings() []packing {
	var out []packing
	if len(g.Switches) > 0 {
		for _, n := range g.Switches {
			out = append(out, packing{0, n})
		}
		return out
	}
	each := g.Count / (g.Sockets * g.SwitchesPerSocket)
	for i := range g.Sockets * g.SwitchesPerSocket {
		out = append(out, packing{i / g.SwitchesPerSocket, each})
	}
	return out
}

// tree is a node's GPUs and the tree above them, being made block by block.
type tree struct {
	node     string
	devices  []*structs.NodeDeviceResource
	topology *structs.NodeTopology
	gpus     int          // so far
	switches int          // so far
	sockets  map[int]bool // that have a cell
}

// gpuTree makes the GPUs of a node with their places: cells socket-i and pcie-j, j
// counted within the node in tree order, as are the GPUs. Blocks share the sockets,
// not the switches.
func (s Layout) gpuTree(node string) ([]*structs.NodeDeviceResource, *structs.NodeTopology) {
	if len(s.GPUs) == 0 {
		return nil, nil
	}
	t := &tree{node: node, topology: &structs.NodeTopology{}, sockets: map[int]bool{}}
	for _, g := range s.GPUs {
		t.add(g)
	}
	return t.devices, t.topology
}

func (t *tree) add(g GPUs) {
	group := g.group()
	var ids []string
	for _, p := range g.packings() {
		parent := t.socket(p.socket)
		sw := t.switches
		t.switches++
		at := &structs.TopologyCell{ID: "pcie-" + strconv.Itoa(sw), Level: structs.LevelPCIe, Parent: parent}
		t.topology.Cells = append(t.topology.Cells, at)
		for range p.gpus {
			k := t.gpus
			t.gpus++
			id := fmt.Sprintf("%s-gpu-%d", t.node, k)
			where := structs.NodeDeviceLocality{
				PciBusID: fmt.Sprintf("0000:%02x:%02x.0", sw&0xff, k&0xff), Socket: p.socket, NUMANode: p.socket, Switch: sw,
			}
			if g.MIG == 0 {
				ids = append(ids, id)
				at.Devices = append(at.Devices, id)
				group.Instances = append(group.Instances, &structs.NodeDevice{ID: id, Healthy: true, Locality: &where})
				continue
			}
			cut := &structs.TopologyCell{ID: id, Level: structs.LevelGPU, Parent: at.ID}
			t.topology.Cells = append(t.topology.Cells, cut)
			for i := range g.MIG {
				slice, place := fmt.Sprintf("%s-mig-%d", id, i), where
				cut.Devices = append(cut.Devices, slice)
				group.Instances = append(group.Instances, &structs.NodeDevice{ID: slice, Healthy: true, Locality: &place})
			}
		}
	}
	t.devices = append(t.devices, group)
	for i := range ids {
		for k := i + 1; g.NVLink && k < len(ids); k++ {
			t.topology.Links = append(t.topology.Links, &structs.DeviceLink{A: ids[i], B: ids[k], Kind: "nvlink", Lanes: 18})
		}
	}
}

// socket returns the cell of a socket.
func (t *tree) socket(n int) string {
	id := "socket-" + strconv.Itoa(n)
	if !t.sockets[n] {
		t.sockets[n] = true
		t.topology.Cells = append(t.topology.Cells, &structs.TopologyCell{ID: id, Level: structs.LevelSocket})
	}
	return id
}

// group makes the block's group of devices: the GPUs, or their slices, which are of a
// type of their own as on real nodes.
func (g GPUs) group() *structs.NodeDeviceResource {
	parts := strings.SplitN(g.kind(), "/", 3)
	d := &structs.NodeDeviceResource{Vendor: parts[0], Type: parts[1], Name: parts[2], Attributes: map[string]*structs.Attribute{}}
	memory := g.Memory
	if g.MIG > 0 {
		model := g.Name[strings.LastIndexByte(g.Name, '/')+1:]
		d.Attributes["model"] = &structs.Attribute{StringVal: &model}
		memory /= int64(g.MIG)
	}
	if memory > 0 {
		d.Attributes["memory"] = &structs.Attribute{IntVal: &memory, Unit: "MiB"}
	}
	return d
}

// validate returns why this cannot be a block of GPUs.
func (g GPUs) validate(bad func(format string, args ...any)) {
	within := func(name string, v, low, high int) {
		if v < low || v > high {
			bad("gpus %s = %d: must be %d to %d", name, v, low, high)
		}
	}
	if parts := strings.Split(g.Name, "/"); len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		bad("gpus %q: write vendor/type/model, such as nvidia/gpu/H100", g.Name)
	}
	within("count", g.Count, 1, maxGPUsPerNode)
	within("sockets", g.Sockets, 1, 64)
	within("switches_per_socket", g.SwitchesPerSocket, 1, 64)
	if g.Memory < 0 || g.Memory > 1<<40 {
		bad("gpus memory = %d: must be 0 to %d", g.Memory, int64(1)<<40)
	}
	sum := 0
	for _, n := range g.Switches {
		within("switches", n, 1, maxGPUsPerNode)
		sum += max(0, min(n, maxGPUsPerNode+1))
	}
	switch leaves := g.Sockets * g.SwitchesPerSocket; {
	case len(g.Switches) > maxGPUsPerNode:
		bad("gpus %q: %d switches; a node has at most %d", g.Name, len(g.Switches), maxGPUsPerNode)
	case len(g.Switches) > 0 && leaves != 1:
		bad("gpus %q: switches says where each GPU is; leave out sockets and switches_per_socket", g.Name)
	case len(g.Switches) > 0 && sum != g.Count:
		bad("gpus %q: switches has %d GPUs in all, count is %d", g.Name, sum, g.Count)
	case len(g.Switches) == 0 && leaves > 0 && g.Count%leaves != 0:
		bad("gpus %q: %d do not divide evenly among %d sockets of %d switches", g.Name, g.Count, g.Sockets, g.SwitchesPerSocket)
	}
	within("mig", g.MIG, 0, 16)
	if g.MIG > 0 && (g.MIGProfile == "" || strings.Contains(g.MIGProfile, "/")) {
		bad("gpus mig_profile %q: write a profile's name, such as 1g.10gb", g.MIGProfile)
	}
	if g.NVLink && g.MIG > 0 {
		bad("gpus %q: what is cut into MIG slices has no NVLink", g.Name)
	}
	if g.NVLink && g.Count > maxLinked {
		bad("gpus %q: nvlink joins at most %d GPUs, not %d", g.Name, maxLinked, g.Count)
	}
}

// kind names the group of devices that the block is.
func (g GPUs) kind() string {
	if g.MIG == 0 {
		return g.Name
	}
	vendor, _, _ := strings.Cut(g.Name, "/")
	return vendor + "/" + structs.LevelMIG + "/" + g.MIGProfile
}

// devices is how many devices the block is to its node.
func (g GPUs) devices() int { return g.Count * max(1, g.MIG) }
