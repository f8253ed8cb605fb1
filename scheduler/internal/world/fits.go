package world

import (
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/internal/ports"
	"github.com/nomadish/nomadish/scheduler/internal/resources"
)

// The one fit check. The scheduler uses it while it searches nodes, and the
// plan applier uses it again through package judge. Each result is "" if it fits,
// else what is lacking, in the words of AllocMetric.DimensionExhausted.

// What a node can lack.
const (
	LacksCPU      = resources.LacksCPU
	LacksMemory   = resources.LacksMemory
	LacksDisk     = resources.LacksDisk
	LacksCores    = resources.LacksCores
	LacksDevices  = resources.LacksDevices
	LacksReserved = "reserved for a request that has waited longer"
	// LacksUnowned is what a system or sysbatch instance lacks.
	LacksUnowned = "devices: those that are free are guaranteed to namespaces"
	LacksDynamic = "network: no dynamic port is free"
	// LacksPart is what an instance of a workflow lacks on a node of which its reservation holds nothing.
	LacksPart = "the reservation of its workflow"
)

// Lacks checks what can be added up. by is nil for what takes room all the same,
// whoever has reserved it.
func (n *NodeState) Lacks(request Vector, by *Taker) string {
	free := n.Capacity.Amount.Minus(n.Used)
	if n.Reservation != nil || n.parts != nil {
		free = free.Minus(n.Withheld(by).Amount)
		if what := n.beyondPart(Resources{Amount: request}, by); what != "" {
			return what
		}
	}
	switch {
	case request.CPU > free.CPU:
		return LacksCPU
	case request.MemoryMB > free.MemoryMB:
		return LacksMemory
	case request.DiskMB > free.DiskMB:
		return LacksDisk
	}
	return ""
}

// PortTaken reports whether a port of the node is not to be had.
func (n *NodeState) PortTaken(p HostPort) bool {
	for _, r := range n.Capacity.noPorts {
		if p.Port >= r[0] && p.Port <= r[1] {
			return true
		}
	}
	at, _ := slices.BinarySearchFunc(n.ports, HostPort{Port: p.Port}, ports.Compare)
	for ; at < len(n.ports) && n.ports[at].Port == p.Port; at++ {
		if p.Collides(n.ports[at]) {
			return true
		}
	}
	return false
}

// PortInUse returns the reason for a port that is in use.
func PortInUse(port int) string { return "network: port " + strconv.Itoa(port) + " already in use" }

// CoreTaken reports whether a core of the node is not to be had.
func (n *NodeState) CoreTaken(id uint16) bool {
	_, used := slices.BinarySearch(n.cores, id)
	_, known := slices.BinarySearch(n.Capacity.Cores, id)
	return used || !known
}

// LacksDevice reports whether so much of a device of the node is not to be had.
func (n *NodeState) LacksDevice(id string, share int) bool {
	cells, i, known := n.Device(id)
	return !known || cells.FreeShare(i) < share
}

// LacksUse checks a whole use with the names that it holds.
func (n *NodeState) LacksUse(u *Usage, by *Taker) string {
	if what := n.Lacks(u.Amount, by); what != "" {
		return what
	}
	for _, p := range u.Ports {
		if n.PortTaken(p) {
			return PortInUse(p.Port)
		}
	}
	for i, c := range u.Cores {
		if n.CoreTaken(c) || (i > 0 && u.Cores[i-1] == c) {
			return LacksCores
		}
	}
	for i := 0; i < len(u.Devices); {
		id, share := u.Devices[i].ID, 0
		for ; i < len(u.Devices) && u.Devices[i].ID == id; i++ {
			share += int(u.Devices[i].Share)
		}
		if n.LacksDevice(id, share) {
			return LacksDevices
		}
	}
	if !n.Spares(u, by) {
		return LacksReserved
	}
	return ""
}

// Spares reports whether what a reservation of another holds of cores and devices is left when a
// usage is taken. A part of a device of which others have parts takes none.
func (n *NodeState) Spares(u *Usage, by *Taker) bool {
	if n.Reservation == nil && n.parts == nil || by == nil {
		return true
	}
	withheld := n.Withheld(by)
	if len(u.Cores) > 0 && n.FreeCores()-len(u.Cores) < withheld.Cores || n.beyondPart(ResourcesOf(u), by) != "" {
		return false
	}
	opened, last := 0, ""
	for _, d := range u.Devices {
		switch cells, i, known := n.Device(d.ID); {
		case n.Bars(d.ID, by):
			return false
		case !known || d.ID == last:
		case cells.FreeShare(i) == WholeDevice:
			opened++
		case n.ofReservation(d.ID, by):
			return false
		}
		last = d.ID
	}
	return opened == 0 || n.FreeDevices()-opened >= withheld.Devices
}

// FreeCores counts the cores that tasks may own and nobody does.
func (n *NodeState) FreeCores() int {
	free, k := 0, 0
	for _, c := range n.Capacity.Cores {
		for k < len(n.cores) && n.cores[k] < c {
			k++
		}
		if k == len(n.cores) || n.cores[k] != c {
			free++
		}
	}
	return free
}

// ofReservation reports whether instances in a workflow's reservation have parts of a device that a taker may not use: nobody else may keep it then.
func (n *NodeState) ofReservation(device string, by *Taker) bool {
	return slices.ContainsFunc(n.parts, func(p Part) bool {
		return !p.Pending && !by.mayUse(&p) && slices.ContainsFunc(n.Usages, func(u *Usage) bool {
			return u.Owner.Terms.WorkflowKey() == p.Workflow && slices.ContainsFunc(u.Devices, func(d DeviceUsage) bool { return d.ID == device })
		})
	})
}

// FreeDevices counts the devices that are wholly free.
func (n *NodeState) FreeDevices() (sum int) {
	for _, cells := range n.Cells {
		sum += cells.Free()
	}
	return sum
}
