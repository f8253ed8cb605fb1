package scheduler

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Vector is an amount of what can be added up: processor in MHz, memory and disk
// in MiB. What has names (ports, cores, devices) is apart.
type Vector struct {
	CPU      int64
	MemoryMB int64
	DiskMB   int64
}

func (v Vector) plus(o Vector) Vector {
	return Vector{v.CPU + o.CPU, v.MemoryMB + o.MemoryMB, v.DiskMB + o.DiskMB}
}

func (v Vector) minus(o Vector) Vector {
	return Vector{v.CPU - o.CPU, v.MemoryMB - o.MemoryMB, v.DiskMB - o.DiskMB}
}

// hostPort is a port of one of a node's addresses; an empty or unspecified
// address means all of them.
type hostPort struct {
	Port int
	IP   string
}

func comparePorts(a, b hostPort) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.IP, b.IP))
}

func (p hostPort) everywhere() bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }

func (p hostPort) collides(o hostPort) bool {
	return p.Port == o.Port && (p.IP == o.IP || p.everywhere() || o.everywhere())
}

// holder is whose a use is, and by what right it is held. It is shared by those that
// were placed together, and never changed.
type holder struct {
	askName
	terms structs.AllocTerms
}

// use is what one allocation holds on its node. It is never changed.
type use struct {
	id      string
	nodeID  string
	of      *holder
	amount  Vector
	ports   []hostPort   // sorted
	cores   []uint16     // sorted
	devices []heldDevice // sorted
	ends    int64        // Unix nanoseconds, by its time limit; 0: it has none
}

func (u *use) equal(o *use) bool {
	return u.id == o.id && u.nodeID == o.nodeID && u.amount == o.amount && u.ends == o.ends && *u.of == *o.of && slices.Equal(u.ports, o.ports) &&
		slices.Equal(u.cores, o.cores) && slices.Equal(u.devices, o.devices)
}

// newHolder says by what right resources are held; without terms, by the least.
func newHolder(name askName, r *structs.AllocatedResources) *holder {
	h := &holder{askName: name}
	if r != nil && r.Shared.Terms != nil {
		h.terms = *r.Shared.Terms
	}
	return h
}

// suspended is what is left of a use while it is suspended: memory and disk.
func (u *use) suspended() *use {
	return &use{id: u.id, nodeID: u.nodeID, of: u.of, amount: Vector{MemoryMB: u.amount.MemoryMB, DiskMB: u.amount.DiskMB}}
}

// newUse reads what an allocation holds.
func newUse(id, nodeID string, of *holder, r *structs.AllocatedResources, created int64) *use {
	u := &use{id: id, nodeID: nodeID, of: of}
	if r == nil {
		return u
	}
	if r.Shared.TimeLimit > 0 && created > 0 {
		u.ends = created + int64(r.Shared.TimeLimit)
	}
	u.amount.DiskMB = r.Shared.DiskMB
	u.addPorts(r.Shared.Ports, r.Shared.Networks)
	if len(r.Shared.Ports) == 0 {
		u.addNetworks(r.Shared.Networks)
	}
	for _, t := range r.Tasks { // sums and sorted lists: the order cannot show
		u.amount.CPU += t.Cpu.CpuShares
		u.amount.MemoryMB += t.Memory.MemoryMB
		u.cores = append(u.cores, t.Cpu.ReservedCores...)
		u.addDevices(t.Devices)
		u.addNetworks(t.Networks)
	}
	u.sort()
	return u
}

func (u *use) sort() {
	slices.SortFunc(u.ports, comparePorts)
	slices.Sort(u.cores)
	slices.SortFunc(u.devices, compareHeld)
}

// addPorts counts ports, but not those that their network asked with
// ignore_collision: these neither refuse anybody nor are refused.
func (u *use) addPorts(ports []structs.PortMapping, networks []*structs.NetworkResource) {
	for _, p := range ports {
		if p.Value > 0 && !ignoresCollision(networks, p.Label) {
			u.ports = append(u.ports, hostPort{p.Value, p.HostIP})
		}
	}
}

func ignoresCollision(networks []*structs.NetworkResource, label string) bool {
	for _, n := range networks {
		for i := range n.ReservedPorts {
			if p := &n.ReservedPorts[i]; p.Label == label && p.IgnoreCollision {
				return true
			}
		}
	}
	return false
}

func (u *use) addNetworks(networks []*structs.NetworkResource) {
	for _, n := range networks {
		for _, list := range [][]structs.Port{n.ReservedPorts, n.DynamicPorts} {
			for _, p := range list {
				if p.Value > 0 && !p.IgnoreCollision {
					u.ports = append(u.ports, hostPort{p.Value, n.IP})
				}
			}
		}
	}
}

func (u *use) addDevices(devices []*structs.AllocatedDeviceResource) {
	for _, d := range devices {
		for _, id := range d.DeviceIDs {
			u.devices = append(u.devices, heldDevice{id, int32(cmp.Or(min(max(0, d.Share), wholeDevice), wholeDevice))}) //nolint:gosec // bounded
		}
	}
}

// instanceUse reads what instance i of a batch holds; common is the use of the
// batch's own Resources, which is the same for all.
func instanceUse(b *structs.PlacementBatch, i int, id string, common *use) *use {
	in := &b.Instances[i]
	u := &use{id: id, nodeID: b.Nodes[in.Node].ID, of: common.of, amount: common.amount, ends: common.ends}
	if in.Ports == nil && in.Networks == nil && in.Cores == nil && in.Devices == nil {
		u.ports, u.cores, u.devices = common.ports, common.cores, common.devices
		return u
	}
	u.ports = slices.Clone(common.ports)
	u.cores = slices.Clone(common.cores)
	u.devices = slices.Clone(common.devices)
	u.addPorts(in.Ports, in.Networks)
	if len(in.Ports) == 0 {
		u.addNetworks(in.Networks)
	}
	for task, cores := range in.Cores { // sums and sorted lists: the order cannot show
		u.cores = append(u.cores, cores...)
		u.amount.CPU += in.CoreMHz[task]
		if t := b.Resources.Tasks[task]; t != nil {
			u.amount.CPU -= t.Cpu.CpuShares // the cores' MHz stand instead
		}
	}
	for _, devices := range in.Devices {
		u.addDevices(devices)
	}
	u.sort()
	return u
}
