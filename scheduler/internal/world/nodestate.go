package world

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/devicetree"
	"github.com/nomadish/nomadish/scheduler/internal/ports"
	"github.com/nomadish/nomadish/structs"
)

// Default range of dynamic ports, as Nomad's clients have it.
const (
	minDynamicPort = 20000
	maxDynamicPort = 32000
)

// NodeState is a node, what it has for allocations, and what they use of it. It
// also stands for a node that is not known (any more) while allocations are.
// Only the Edit whose token owns it may change it.
type NodeState struct {
	owner    *Token
	ID       string
	Hash     uint64        // of ID
	Node     *structs.Node // nil: not known
	Capacity *Capacity     // nil: not known; shared and never changed

	Usages      []*Usage // of the allocations on it, by allocation ID
	Used        Vector
	Reservation *Reservation // what is reserved of it; nil: nothing
	parts       []Part       // what workflows have reserved of it; see workflow.go
	// What has names, sorted. A name may stand twice: the World records what is, not what ought to be.
	ports   []HostPort
	cores   []uint16
	Devices []DeviceUsage
	// Cells are the node's devices in their places with what is taken of them, by Capacity.Trees. They follow from Devices.
	Cells []*cell.State

	Indexed IndexKey // the key that the indexes have it under
	Dirty   bool     // the indexes have to be moved on; see Flush
	Pool    OnePool  // as of Indexed
	// supplied is what it has as the supply of its family counts it; nil: it does not count.
	supplied *Capacity
}

// Capacity is what a node has for allocations. Never changed once made.
type Capacity struct {
	Amount     Vector
	MHzPerCore int64
	Cores      []uint16 // those that tasks may own, sorted
	noPorts    [][2]int // ranges, inclusive, that tasks never get
	MinDynamic int
	MaxDynamic int
	Trees      []*DeviceTree
	well       int64   // devices that are
	supply     []int64 // the same by the groups of the node's devices
	Family     string  // see [family.Of]
}

// WellDevices counts the devices that are well.
func (c *Capacity) WellDevices() int64 { return c.well }

// NewCapacity reads what a node has; like is one of a node that is probably alike, or nil.
func NewCapacity(n *structs.Node, family string, like *Capacity) *Capacity {
	c := &Capacity{MinDynamic: minDynamicPort, MaxDynamic: maxDynamicPort, Family: family}
	r := n.NodeResources
	if r == nil {
		return c
	}
	c.Amount = Vector{CPU: r.Cpu.CpuShares, MemoryMB: r.Memory.MemoryMB, DiskMB: r.Disk.DiskMB}
	c.MHzPerCore = r.Cpu.MHzPerCore()
	c.Cores = slices.Clone(r.Cpu.ReservableCpuCores)
	if r.MinDynamicPort > 0 {
		c.MinDynamic = r.MinDynamicPort
	}
	if r.MaxDynamicPort > 0 {
		c.MaxDynamic = r.MaxDynamicPort
	}
	if len(r.Devices) > 0 {
		var known []*DeviceTree
		if like != nil {
			known = like.Trees
		}
		c.Trees = devicetree.Of(r, known)
		for _, t := range c.Trees {
			c.well += int64(len(t.IDs) - len(t.Sick))
		}
		c.supply = supplyOf(r, c.Trees)
	}
	c.subtract(n.ReservedResources)
	slices.Sort(c.Cores)
	return c
}

// subtract takes out what the node keeps for itself.
func (c *Capacity) subtract(r *structs.NodeReservedResources) {
	if r == nil {
		return
	}
	mhz := int64(min(r.Cpu.CpuShares, 1<<62)) // bounded
	if mhz == 0 {
		mhz = int64(len(r.Cpu.ReservedCpuCores)) * c.MHzPerCore
	}
	c.Amount = c.Amount.Minus(Vector{CPU: mhz, MemoryMB: r.Memory.MemoryMB, DiskMB: r.Disk.DiskMB})
	c.Cores = slices.DeleteFunc(c.Cores, func(id uint16) bool { return slices.Contains(r.Cpu.ReservedCpuCores, id) })
	c.noPorts = ports.Parse(r.Networks.ReservedHostPorts)
}

// Own returns a state that the token may change.
func (n *NodeState) Own(tok *Token) *NodeState {
	if n.owner == tok {
		return n
	}
	c := *n
	c.owner = tok
	c.Dirty = false
	c.Usages = cloneForMore(n.Usages)
	c.parts = slices.Clone(n.parts)
	c.ports = slices.Clone(n.ports)
	c.cores = slices.Clone(n.cores)
	c.Devices = cloneForMore(n.Devices)
	c.Cells = slices.Clone(n.Cells)
	for i, cells := range c.Cells {
		c.Cells[i] = cells.Clone()
	}
	return &c
}

// cloneForMore copies a list that mostly gets a few more entries at once.
func cloneForMore[T any](list []T) []T {
	const more = 4
	return append(make([]T, 0, len(list)+more), list...)
}

// Free is what is left of what can be added up; negative where a node is over-committed.
func (n *NodeState) Free() Vector {
	if n.Capacity == nil {
		return Vector{}
	}
	return n.Capacity.Amount.Minus(n.Used)
}

// Device finds a device of the node: its tree and its number there.
func (n *NodeState) Device(id string) (*cell.State, int, bool) {
	if n.Capacity == nil {
		return nil, 0, false
	}
	for i, t := range n.Capacity.Trees {
		if at, found := t.Find(id); found {
			return n.Cells[i], at, true
		}
	}
	return nil, 0, false
}

// setCapacity sets the node's resources; nil: the node is no longer known.
func (n *NodeState) setCapacity(c *Capacity) {
	n.Capacity, n.Cells = c, nil
	if c == nil {
		n.recount()
		return
	}
	for _, t := range c.Trees {
		n.Cells = append(n.Cells, t.State())
	}
	for _, d := range n.Devices {
		if cells, i, known := n.Device(d.ID); known {
			cells.Take(i, int(d.Share))
		}
	}
	n.recount()
}

func compareUse(u *Usage, id string) int { return strings.Compare(u.ID, id) }

// Take adds a usage.
func (n *NodeState) Take(u *Usage) {
	at, _ := slices.BinarySearchFunc(n.Usages, u.ID, compareUse)
	n.Usages = slices.Insert(n.Usages, at, u)
	n.Used = n.Used.Plus(u.Amount)
	for _, p := range u.Ports {
		at, _ := slices.BinarySearchFunc(n.ports, p, ports.Compare)
		n.ports = slices.Insert(n.ports, at, p)
	}
	for _, c := range u.Cores {
		at, _ := slices.BinarySearch(n.cores, c)
		n.cores = slices.Insert(n.cores, at, c)
	}
	n.Devices = slices.Grow(n.Devices, len(u.Devices))
	for _, d := range u.Devices {
		at, _ := slices.BinarySearchFunc(n.Devices, d, compareUsage)
		n.Devices = slices.Insert(n.Devices, at, d)
		if cells, i, known := n.Device(d.ID); known {
			cells.Take(i, int(d.Share))
		}
	}
	n.recount()
}

// Give removes a usage that was added before.
func (n *NodeState) Give(u *Usage) {
	if at, found := slices.BinarySearchFunc(n.Usages, u.ID, compareUse); found {
		n.Usages = slices.Delete(n.Usages, at, at+1)
	}
	n.Used = n.Used.Minus(u.Amount)
	for _, p := range u.Ports {
		if at, found := slices.BinarySearchFunc(n.ports, p, ports.Compare); found {
			n.ports = slices.Delete(n.ports, at, at+1)
		}
	}
	for _, c := range u.Cores {
		if at, found := slices.BinarySearch(n.cores, c); found {
			n.cores = slices.Delete(n.cores, at, at+1)
		}
	}
	for _, d := range u.Devices {
		at, found := slices.BinarySearchFunc(n.Devices, d, compareUsage)
		if !found {
			continue
		}
		n.Devices = slices.Delete(n.Devices, at, at+1)
		if cells, i, known := n.Device(d.ID); known {
			cells.Give(i, int(d.Share))
		}
	}
	n.recount()
}
