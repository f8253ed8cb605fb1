package scheduler

import (
	"slices"
	"strconv"
	"strings"

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
	node  *structs.Node // nil: not known
	has   *capacity     // nil: not known; shared and never changed

	allocs int // how many allocations use it
	used   Vector
	// What has names, sorted. A name may stand twice: the World tells what is,
	// not what ought to be.
	ports   []hostPort
	cores   []uint16
	devices []string

	at    place // where the index has it
	dirty bool  // the index has to be moved on; see Edit.flush
}

// capacity is what a node has for allocations. Never changed once made.
type capacity struct {
	amount     Vector
	mhzPerCore int64
	cores      []uint16 // those that tasks may own, sorted
	noPorts    [][2]int // ranges, inclusive, that tasks never get
	minDynamic int
	maxDynamic int
	devices    map[string]bool // healthy ones, by deviceKey; looked up only
}

// place is where the index has a node: its class and its key there.
type place struct {
	class string // "": nowhere
	key   indexKey
}

func newCapacity(n *structs.Node) *capacity {
	c := &capacity{minDynamic: minDynamicPort, maxDynamic: maxDynamicPort}
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
	for _, d := range r.Devices {
		for _, one := range d.Instances {
			if one.Healthy {
				if c.devices == nil {
					c.devices = map[string]bool{}
				}
				c.devices[deviceKey(d.Vendor, d.Type, d.Name, one.ID)] = true
			}
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
	c.ports = slices.Clone(n.ports)
	c.cores = slices.Clone(n.cores)
	c.devices = slices.Clone(n.devices)
	return &c
}

// free is what is left of what can be added up; negative where a node is
// over-committed.
func (n *nodeState) free() Vector {
	if n.has == nil {
		return Vector{}
	}
	return n.has.amount.minus(n.used)
}

// take adds a use.
func (n *nodeState) take(u *use) {
	n.allocs++
	n.used = n.used.plus(u.amount)
	for _, p := range u.ports {
		at, _ := slices.BinarySearchFunc(n.ports, p, comparePorts)
		n.ports = slices.Insert(n.ports, at, p)
	}
	for _, c := range u.cores {
		at, _ := slices.BinarySearch(n.cores, c)
		n.cores = slices.Insert(n.cores, at, c)
	}
	for _, d := range u.devices {
		at, _ := slices.BinarySearch(n.devices, d)
		n.devices = slices.Insert(n.devices, at, d)
	}
}

// give takes a use away that was taken before.
func (n *nodeState) give(u *use) {
	n.allocs--
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
		if at, found := slices.BinarySearch(n.devices, d); found {
			n.devices = slices.Delete(n.devices, at, at+1)
		}
	}
}
