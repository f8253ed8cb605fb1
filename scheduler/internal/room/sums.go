package room

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// MayHold reports whether a node might hold requests together if nobody else were there.
func MayHold(n *world.NodeState, requests []*search.Request) bool {
	left, devices := n.Capacity.Amount, n.Capacity.WellDevices()
	for _, a := range requests {
		left, devices = left.Minus(a.Amount), devices-a.Need[world.DimGPUs]
	}
	return left.CPU >= 0 && left.MemoryMB >= 0 && left.DiskMB >= 0 && devices >= 0
}

// FitsBySums reports whether requests find room beside usages that stay, where sums show it: which
// of the node's devices they get does not matter then.
func FitsBySums(n *world.NodeState, requests []*search.Request, stay []*world.Usage) (fits, known bool) {
	left, devices, want := n.Capacity.Amount, n.Capacity.WellDevices(), int64(0)
	for _, a := range requests {
		switch {
		case len(a.Cores)+len(a.Networks) > 0 || len(a.Devices) > 1:
			return false, false
		case len(a.Devices) == 1 && !devicesAlike(n, &a.Devices[0]):
			return false, false
		}
		left, want = left.Minus(a.Amount), want+a.Need[world.DimGPUs]
	}
	var few [16]string
	reserved := few[:0]
	for _, u := range stay {
		left = left.Minus(u.Amount)
		for _, d := range u.Devices {
			if _, _, there := n.Device(d.ID); there && !slices.Contains(reserved, d.ID) {
				reserved = append(reserved, d.ID)
			}
		}
	}
	enough := want == 0 || want <= devices-int64(len(reserved))
	return left.CPU >= 0 && left.MemoryMB >= 0 && left.DiskMB >= 0 && enough, true
}

// devicesAlike reports whether any devices of a node are as good for a request as any others.
func devicesAlike(n *world.NodeState, d *feasible.DeviceRequest) bool {
	if len(n.Capacity.Trees) != 1 || !n.Capacity.Trees[0].Single || len(n.Capacity.Trees[0].Sick) > 0 || d.Whole() == 0 || d.Within != nil ||
		d.Request.Topology != nil || len(d.Request.Constraints) > 0 {
		return false
	}
	group := n.Capacity.Trees[0].Groups[0]
	return d.Kind == group.Type && (d.Vendor == "" || d.Vendor == group.Vendor) && (d.Name == "" || d.Name == group.Name)
}
