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
	lacksCPU     = "cpu"
	lacksMemory  = "memory"
	lacksDisk    = "disk"
	lacksCores   = "cores"
	lacksDevices = "devices"
	lacksDynamic = "network: no dynamic port is free"
)

// lacks checks what can be added up.
func (n *nodeState) lacks(ask Vector) string {
	free := n.has.amount.minus(n.used)
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

// deviceTaken tells whether a device of the node is not to be had.
func (n *nodeState) deviceTaken(key string) bool {
	_, used := slices.BinarySearch(n.devices, key)
	return used || !n.has.devices[key]
}

// lacksUse checks a whole use with the names that it holds.
func (n *nodeState) lacksUse(u *use) string {
	if what := n.lacks(u.amount); what != "" {
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
	for i, d := range u.devices {
		if n.deviceTaken(d) || (i > 0 && u.devices[i-1] == d) {
			return lacksDevices
		}
	}
	return ""
}
