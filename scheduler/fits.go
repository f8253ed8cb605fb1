package scheduler

import (
	"slices"
	"strconv"
)

// The one fit check. The scheduler asks it while it looks for nodes, and the
// plan applier asks it again through Edit.Judge. Each answer is "" if it fits,
// else what is lacking, in the words of AllocMetric.DimensionExhausted.

// What a node can lack.
const (
	lacksCPU      = "cpu"
	lacksMemory   = "memory"
	lacksDisk     = "disk"
	lacksCores    = "cores"
	lacksDevices  = "devices"
	lacksReserved = "reserved for an ask that has waited longer"
	lacksDynamic  = "network: no dynamic port is free"
)

// lacks checks what can be added up. by is nil for what takes room all the same,
// whoever has reserved it.
func (n *nodeState) lacks(ask Vector, by *taker) string {
	free := n.has.amount.minus(n.used)
	if !n.hold.free(by) {
		free = free.minus(n.hold.amount)
	}
	switch {
	case ask.CPU > free.CPU:
		return lacksCPU
	case ask.MemoryMB > free.MemoryMB:
		return lacksMemory
	case ask.DiskMB > free.DiskMB:
		return lacksDisk
	}
	return ""
}

// portTaken tells whether a port of the node is not to be had.
func (n *nodeState) portTaken(p hostPort) bool {
	for _, r := range n.has.noPorts {
		if p.Port >= r[0] && p.Port <= r[1] {
			return true
		}
	}
	at, _ := slices.BinarySearchFunc(n.ports, hostPort{Port: p.Port}, comparePorts)
	for ; at < len(n.ports) && n.ports[at].Port == p.Port; at++ {
		if p.collides(n.ports[at]) {
			return true
		}
	}
	return false
}

func portInUse(port int) string { return "network: port " + strconv.Itoa(port) + " already in use" }

// coreTaken tells whether a core of the node is not to be had.
func (n *nodeState) coreTaken(id uint16) bool {
	_, used := slices.BinarySearch(n.cores, id)
	_, known := slices.BinarySearch(n.has.cores, id)
	return used || !known
}

// lacksDevice tells whether so much of a device of the node is not to be had.
func (n *nodeState) lacksDevice(id string, share int) bool {
	cells, i, known := n.device(id)
	return !known || cells.FreeShare(i) < share
}

// lacksUse checks a whole use with the names that it holds.
func (n *nodeState) lacksUse(u *use, by *taker) string {
	if what := n.lacks(u.amount, by); what != "" {
		return what
	}
	for _, p := range u.ports {
		if n.portTaken(p) {
			return portInUse(p.Port)
		}
	}
	for i, c := range u.cores {
		if n.coreTaken(c) || (i > 0 && u.cores[i-1] == c) {
			return lacksCores
		}
	}
	for i := 0; i < len(u.devices); {
		id, share := u.devices[i].id, 0
		for ; i < len(u.devices) && u.devices[i].id == id; i++ {
			share += int(u.devices[i].share)
		}
		if n.lacksDevice(id, share) {
			return lacksDevices
		}
	}
	if !n.spares(u, by) {
		return lacksReserved
	}
	return ""
}

// spares tells whether what a reservation of another holds of cores and devices is
// left when a use is taken. A part of a device of which others have parts takes none.
func (n *nodeState) spares(u *use, by *taker) bool {
	if n.hold.free(by) {
		return true
	}
	if len(u.cores) > 0 && n.freeCores()-len(u.cores) < n.hold.cores {
		return false
	}
	opened, last := 0, ""
	for _, d := range u.devices {
		if cells, i, known := n.device(d.id); known && d.id != last && cells.FreeShare(i) == wholeDevice {
			opened++
		}
		last = d.id
	}
	return opened == 0 || n.freeDevices()-opened >= n.hold.devices
}

// freeCores counts the cores that tasks may own and nobody does.
func (n *nodeState) freeCores() int {
	free, k := 0, 0
	for _, c := range n.has.cores {
		for k < len(n.cores) && n.cores[k] < c {
			k++
		}
		if k == len(n.cores) || n.cores[k] != c {
			free++
		}
	}
	return free
}

// freeDevices counts the devices that are wholly free.
func (n *nodeState) freeDevices() (sum int) {
	for _, cells := range n.cells {
		sum += cells.Free()
	}
	return sum
}
