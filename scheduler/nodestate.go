package scheduler

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/structs"
)

// Default range of dynamic ports, as Nomad's clients have it.
const (
	minDynamicPort = 20000
	maxDynamicPort = 32000
)

// nodeState is a node, what it has for allocations, and what they use of it. It
// also stands for a node that is not known (any more) while allocations are.
// Only the Edit whose token owns it may change it.
type nodeState struct {
	owner *token
	id    string
	hash  uint64        // of id
	node  *structs.Node // nil: not known
	has   *capacity     // nil: not known; shared and never changed

	uses []*use // of the allocations on it, by allocation ID
	used Vector
	hold *hold // what is reserved of it; nil: nothing
	// What has names, sorted. A name may stand twice: the World tells what is,
	// not what ought to be.
	ports   []hostPort
	cores   []uint16
	devices []heldDevice
	// cells are the node's devices in their places with what is taken of them, by
	// capacity.trees. They follow from devices.
	cells []*cell.State

	at    place   // where the indexes have it
	dirty bool    // the indexes have to be moved on; see Edit.flush
	pool  onePool // as of at
}

// capacity is what a node has for allocations. Never changed once made.
type capacity struct {
	amount     Vector
	mhzPerCore int64
	cores      []uint16 // those that tasks may own, sorted
	noPorts    [][2]int // ranges, inclusive, that tasks never get
	minDynamic int
	maxDynamic int
	trees      []*deviceTree
	well       int64  // devices that are
	family     string // see familyOf
}

// wellDevices counts the devices that are well.
func (c *capacity) wellDevices() int64 { return c.well }

// newCapacity reads what a node has; like is one of a node that is probably alike, or nil.
func newCapacity(n *structs.Node, family string, like *capacity) *capacity {
	c := &capacity{minDynamic: minDynamicPort, maxDynamic: maxDynamicPort, family: family}
	r := n.NodeResources
	if r == nil {
		return c
	}
	c.amount = Vector{r.Cpu.CpuShares, r.Memory.MemoryMB, r.Disk.DiskMB}
	c.mhzPerCore = r.Cpu.MHzPerCore()
	c.cores = slices.Clone(r.Cpu.ReservableCpuCores)
	if r.MinDynamicPort > 0 {
		c.minDynamic = r.MinDynamicPort
	}
	if r.MaxDynamicPort > 0 {
		c.maxDynamic = r.MaxDynamicPort
	}
	if len(r.Devices) > 0 {
		var known []*deviceTree
		if like != nil {
			known = like.trees
		}
		c.trees = newDeviceTrees(r, known)
		for _, t := range c.trees {
			c.well += int64(len(t.ids) - len(t.sick))
		}
	}
	c.subtract(n.ReservedResources)
	slices.Sort(c.cores)
	return c
}

// subtract takes out what the node keeps for itself.
func (c *capacity) subtract(r *structs.NodeReservedResources) {
	if r == nil {
		return
	}
	mhz := int64(min(r.Cpu.CpuShares, 1<<62)) //nolint:gosec // bounded
	if mhz == 0 {
		mhz = int64(len(r.Cpu.ReservedCpuCores)) * c.mhzPerCore
	}
	c.amount = c.amount.minus(Vector{mhz, r.Memory.MemoryMB, r.Disk.DiskMB})
	c.cores = slices.DeleteFunc(c.cores, func(id uint16) bool { return slices.Contains(r.Cpu.ReservedCpuCores, id) })
	c.noPorts = parsePorts(r.Networks.ReservedHostPorts)
}

// parsePorts reads "22,80,8500-8600". What it cannot read reserves nothing: the
// client has checked it.
func parsePorts(s string) [][2]int {
	var out [][2]int
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(strings.TrimSpace(low))
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(strings.TrimSpace(high)); err != nil {
				continue
			}
		}
		out = append(out, [2]int{from, to})
	}
	return out
}

// own gives a state that the token may change.
func (n *nodeState) own(tok *token) *nodeState {
	if n.owner == tok {
		return n
	}
	c := *n
	c.owner = tok
	c.dirty = false
	c.uses = cloneForMore(n.uses)
	c.ports = slices.Clone(n.ports)
	c.cores = slices.Clone(n.cores)
	c.devices = cloneForMore(n.devices)
	c.cells = slices.Clone(n.cells)
	for i, cells := range c.cells {
		c.cells[i] = cells.Clone()
	}
	return &c
}

// cloneForMore copies a list that mostly gets a few more entries at once.
func cloneForMore[T any](list []T) []T {
	const more = 4
	return append(make([]T, 0, len(list)+more), list...)
}

// free is what is left of what can be added up; negative where a node is
// over-committed.
func (n *nodeState) free() Vector {
	if n.has == nil {
		return Vector{}
	}
	return n.has.amount.minus(n.used)
}

// device finds a device of the node: its tree and its number there.
func (n *nodeState) device(id string) (*cell.State, int, bool) {
	if n.has == nil {
		return nil, 0, false
	}
	for i, t := range n.has.trees {
		if at, found := t.find(id); found {
			return n.cells[i], at, true
		}
	}
	return nil, 0, false
}

// setCapacity says what the node has from now on; nil: it is not known any more.
func (n *nodeState) setCapacity(c *capacity) {
	n.has, n.cells = c, nil
	if c == nil {
		return
	}
	for _, t := range c.trees {
		n.cells = append(n.cells, t.newState())
	}
	for _, d := range n.devices {
		if cells, i, known := n.device(d.id); known {
			cells.Take(i, int(d.share))
		}
	}
}

func compareUse(u *use, id string) int { return strings.Compare(u.id, id) }

// take adds a use.
func (n *nodeState) take(u *use) {
	at, _ := slices.BinarySearchFunc(n.uses, u.id, compareUse)
	n.uses = slices.Insert(n.uses, at, u)
	n.used = n.used.plus(u.amount)
	for _, p := range u.ports {
		at, _ := slices.BinarySearchFunc(n.ports, p, comparePorts)
		n.ports = slices.Insert(n.ports, at, p)
	}
	for _, c := range u.cores {
		at, _ := slices.BinarySearch(n.cores, c)
		n.cores = slices.Insert(n.cores, at, c)
	}
	n.devices = slices.Grow(n.devices, len(u.devices))
	for _, d := range u.devices {
		at, _ := slices.BinarySearchFunc(n.devices, d, compareHeld)
		n.devices = slices.Insert(n.devices, at, d)
		if cells, i, known := n.device(d.id); known {
			cells.Take(i, int(d.share))
		}
	}
}

// give takes a use away that was taken before.
func (n *nodeState) give(u *use) {
	if at, found := slices.BinarySearchFunc(n.uses, u.id, compareUse); found {
		n.uses = slices.Delete(n.uses, at, at+1)
	}
	n.used = n.used.minus(u.amount)
	for _, p := range u.ports {
		if at, found := slices.BinarySearchFunc(n.ports, p, comparePorts); found {
			n.ports = slices.Delete(n.ports, at, at+1)
		}
	}
	for _, c := range u.cores {
		if at, found := slices.BinarySearch(n.cores, c); found {
			n.cores = slices.Delete(n.cores, at, at+1)
		}
	}
	for _, d := range u.devices {
		at, found := slices.BinarySearchFunc(n.devices, d, compareHeld)
		if !found {
			continue
		}
		n.devices = slices.Delete(n.devices, at, at+1)
		if cells, i, known := n.device(d.id); known {
			cells.Give(i, int(d.share))
		}
	}
}
