package world

import (
	"cmp"
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/ports"
	"github.com/nomadish/nomadish/scheduler/internal/resources"
	"github.com/nomadish/nomadish/structs"
)

// Vector is what can be added up of what a node has.
type Vector = resources.Vector

// HostPort is a port of one of a node's addresses.
type HostPort = ports.HostPort

// Owner is whose usage it is, and by what right it is held. It is shared by those that were placed
// together, and never changed.
type Owner struct {
	RequestName
	Terms structs.AllocTerms
}

// equal reports whether two owners are the same.
func (h *Owner) equal(o *Owner) bool {
	return h == o || h.RequestName == o.RequestName && h.Terms.Equal(&o.Terms)
}

// Usage is what one allocation holds on its node. It is never changed.
type Usage struct {
	ID      string
	NodeID  string
	Owner   *Owner
	Amount  Vector
	Ports   []HostPort    // sorted
	Cores   []uint16      // sorted
	Devices []DeviceUsage // sorted
	Ends    int64         // Unix nanoseconds, by its time limit; 0: it has none
	Created int64         // Unix nanoseconds; 0 of what an evaluation places
	// Requeues is how often the instance was requeued.
	Requeues int32
	// IsSuspended: it is what a suspended allocation keeps; ByHand: as a user suspended it.
	IsSuspended bool
	ByHand      bool
}

// Equal reports whether two usages hold the same for the same allocation, by the same right.
func (u *Usage) Equal(o *Usage) bool {
	return u.ID == o.ID && u.NodeID == o.NodeID && u.Amount == o.Amount && u.Ends == o.Ends && u.Created == o.Created &&
		u.Requeues == o.Requeues && u.IsSuspended == o.IsSuspended && u.ByHand == o.ByHand && u.Owner.equal(o.Owner) && slices.Equal(u.Ports, o.Ports) &&
		slices.Equal(u.Cores, o.Cores) && slices.Equal(u.Devices, o.Devices)
}

// NewOwner returns a new Owner with an allocation's terms; without terms, with the least.
func NewOwner(name RequestName, r *structs.AllocatedResources) *Owner {
	h := &Owner{RequestName: name}
	if r != nil && r.Shared.Terms != nil {
		h.Terms = *r.Shared.Terms
	}
	return h
}

// Suspended is what is left of a usage while it is suspended: memory, disk and devices, whose memory a suspended process keeps.
func (u *Usage) Suspended() *Usage {
	return &Usage{
		ID: u.ID, NodeID: u.NodeID, Owner: u.Owner, Amount: Vector{MemoryMB: u.Amount.MemoryMB, DiskMB: u.Amount.DiskMB}, Devices: u.Devices,
		Created: u.Created, Requeues: u.Requeues, IsSuspended: true, ByHand: u.ByHand,
	}
}

// Immune reports whether the instance was requeued so often that bands do not take it any more (semantics part 4).
func (u *Usage) Immune(c *structs.SchedulerConfiguration) bool {
	return int(u.Requeues) >= c.RequeuesAllowed()
}

// Beyond returns the usage without the parts of devices that the same allocation has by another: they are its own, healthy or not.
func (u *Usage) Beyond(was *Usage) *Usage {
	more := *u
	more.Devices = slices.DeleteFunc(slices.Clone(u.Devices), func(d DeviceUsage) bool { return slices.Contains(was.Devices, d) })
	return &more
}

// NewUse reads what an allocation holds.
func NewUse(id, nodeID string, of *Owner, r *structs.AllocatedResources, created int64) *Usage {
	u := &Usage{ID: id, NodeID: nodeID, Owner: of, Created: created}
	if r == nil {
		return u
	}
	if r.Shared.TimeLimit > 0 && created > 0 {
		u.Ends = created + int64(r.Shared.TimeLimit)
	}
	u.Amount.DiskMB = r.Shared.DiskMB
	u.addPorts(r.Shared.Ports, r.Shared.Networks)
	if len(r.Shared.Ports) == 0 {
		u.addNetworks(r.Shared.Networks)
	}
	for _, t := range r.Tasks { // sums and sorted lists: the order cannot show
		u.Amount.CPU += t.Cpu.CpuShares
		u.Amount.MemoryMB += t.Memory.MemoryMB
		u.Cores = append(u.Cores, t.Cpu.ReservedCores...)
		u.addDevices(t.Devices)
		u.addNetworks(t.Networks)
	}
	u.Sort()
	return u
}

// boundedCount is a count as usages have it.
func boundedCount(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) } // bounded

// Sort puts ports, cores and devices in order, as they are compared.
func (u *Usage) Sort() {
	slices.SortFunc(u.Ports, ports.Compare)
	slices.Sort(u.Cores)
	slices.SortFunc(u.Devices, compareUsage)
}

// addPorts counts ports, but not those that their network requested with
// ignore_collision: these neither refuse anybody nor are refused.
func (u *Usage) addPorts(ports []structs.PortMapping, networks []*structs.NetworkResource) {
	for _, p := range ports {
		if p.Value > 0 && !ignoresCollision(networks, p.Label) {
			u.Ports = append(u.Ports, HostPort{Port: p.Value, IP: p.HostIP})
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

func (u *Usage) addNetworks(networks []*structs.NetworkResource) {
	for _, n := range networks {
		for _, list := range [][]structs.Port{n.ReservedPorts, n.DynamicPorts} {
			for _, p := range list {
				if p.Value > 0 && !p.IgnoreCollision {
					u.Ports = append(u.Ports, HostPort{Port: p.Value, IP: n.IP})
				}
			}
		}
	}
}

func (u *Usage) addDevices(devices []*structs.AllocatedDeviceResource) {
	for _, d := range devices {
		for _, id := range d.DeviceIDs {
			u.Devices = append(u.Devices, DeviceUsage{id, int32(cmp.Or(min(max(0, d.Share), WholeDevice), WholeDevice))}) // bounded
		}
	}
}

// InstanceUse reads what instance i of a batch holds; common is the use of the
// batch's own Resources, which is the same for all.
func InstanceUse(b *structs.PlacementBatch, i int, id string, common *Usage) *Usage {
	in := &b.Instances[i]
	u := &Usage{ID: id, NodeID: b.Nodes[in.Node].ID, Owner: common.Owner, Amount: common.Amount, Ends: common.Ends, Created: common.Created}
	u.Requeues = max(0, in.Requeues)
	if in.Ports == nil && in.Networks == nil && in.Cores == nil && in.Devices == nil {
		u.Ports, u.Cores, u.Devices = common.Ports, common.Cores, common.Devices
		return u
	}
	u.Ports = slices.Clone(common.Ports)
	u.Cores = slices.Clone(common.Cores)
	u.Devices = slices.Clone(common.Devices)
	u.addPorts(in.Ports, in.Networks)
	if len(in.Ports) == 0 {
		u.addNetworks(in.Networks)
	}
	for task, cores := range in.Cores { // sums and sorted lists: the order cannot show
		u.Cores = append(u.Cores, cores...)
		u.Amount.CPU += in.CoreMHz[task]
		if t := b.Resources.Tasks[task]; t != nil {
			u.Amount.CPU -= t.Cpu.CpuShares // the cores' MHz stand instead
		}
	}
	for _, devices := range in.Devices {
		u.addDevices(devices)
	}
	u.Sort()
	return u
}
