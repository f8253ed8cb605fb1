package domain

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Gather requests all whole devices of one description at once, under one cell of a level, in place
// of one request for each member: so that the search of a node finds one for them all. Shares and
// other descriptions stay as they are, each under such a cell.
func Gather(tasks []*structs.Task, level string) {
	var all []*structs.RequestedDevice
	for _, t := range tasks {
		if t.Resources == nil || len(t.Resources.Devices) == 0 {
			continue
		}
		r := *t.Resources
		r.Devices = nil
		for _, d := range t.Resources.Devices {
			one := *d
			one.Count = max(1, d.Count)
			one.Topology = &structs.TopologyConstraint{Level: level, Required: true}
			whole := one.Count > 1 || one.Share <= 0 || one.Share >= world.WholeDevice
			at := slices.IndexFunc(all, func(o *structs.RequestedDevice) bool { return sameDevice(o, d) })
			if whole && at >= 0 {
				all[at].Count += one.Count
				continue
			}
			r.Devices = append(r.Devices, &one)
			if whole {
				one.Share = 0
				all = append(all, &one)
			}
		}
		t.Resources = &r
	}
}

// sameDevice reports whether two requests describe the devices alike.
func sameDevice(a, b *structs.RequestedDevice) bool {
	return a.Name == b.Name &&
		slices.EqualFunc(a.Constraints, b.Constraints, func(x, y *structs.Constraint) bool { return *x == *y }) &&
		slices.EqualFunc(a.Affinities, b.Affinities, func(x, y *structs.Affinity) bool { return *x == *y })
}
