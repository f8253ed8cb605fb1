package feasible

import (
	"strings"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// DeviceRequest is one request of a task for devices.
type DeviceRequest struct {
	Task               string
	Request            *structs.RequestedDevice
	Vendor, Kind, Name string // "": any
	Count              int
	Share              int // thousandths of each
	Find               cell.Request
	Within             *Domain // the cell of a node whose devices alone may be taken; nil: any
	// Parts are the requests that this one is for together; nil: it is one of them.
	Parts []DeviceRequest
}

// Pin returns the name of the pinned cell of its namespace that the devices shall be of; "": any.
func (a *DeviceRequest) Pin() string {
	if a.Request.Topology == nil {
		return ""
	}
	return a.Request.Topology.Pin
}

// Whole returns how many whole devices are requested.
func (a *DeviceRequest) Whole() int {
	if a.Share < world.WholeDevice {
		return 0
	}
	return a.Count
}

// DeviceRequests returns the device requests of a task, in the order of its job file.
func DeviceRequests(t *structs.Task) []DeviceRequest {
	if t.Resources == nil {
		return nil
	}
	if len(t.Resources.Devices) == 0 {
		return nil
	}
	out := make([]DeviceRequest, 0, len(t.Resources.Devices))
	for _, req := range t.Resources.Devices {
		d := DeviceRequest{Task: t.Name, Request: req, Count: max(1, req.Count), Share: world.WholeDevice}
		if req.Share > 0 && req.Share < world.WholeDevice && d.Count == 1 {
			d.Share = req.Share
		}
		d.Find = cell.Request{Count: d.Count, Share: d.Share}
		if req.Topology != nil {
			d.Find.Level, d.Find.Required = req.Topology.Level, req.Topology.Required
		}
		first, rest, some := strings.Cut(req.Name, "/")
		if !some {
			d.Kind = first
		} else {
			d.Vendor = first
			d.Kind, d.Name, _ = strings.Cut(rest, "/")
		}
		out = append(out, d)
	}
	return out
}

// Matches reports whether a group of devices is of the requested kind.
func (a *DeviceRequest) Matches(m *Matcher, d *structs.NodeDeviceResource) bool {
	if (a.Vendor != "" && a.Vendor != d.Vendor) || a.Kind != d.Type || (a.Name != "" && a.Name != d.Name) {
		return false
	}
	resolve := DeviceResolver(d)
	for _, c := range a.Request.Constraints {
		if !m.Match(resolve, c.LTarget, c.Operand, c.RTarget) {
			return false
		}
	}
	return true
}

// Allowed returns which devices of a tree's group may be taken; nil: all of the tree.
func (a *DeviceRequest) Allowed(t *world.DeviceTree, group *structs.NodeDeviceResource) func(device int) bool {
	if t.Single && a.Within == nil {
		return nil
	}
	return func(device int) bool {
		return t.Groups[device] == group && (a.Within == nil || a.Within.Devices[t.IDs[device]])
	}
}

// Liking sums the weights of the affinities that a group of devices meets.
func (a *DeviceRequest) Liking(m *Matcher, d *structs.NodeDeviceResource) (sum int) {
	resolve := DeviceResolver(d)
	for _, f := range a.Request.Affinities {
		if m.Match(resolve, f.LTarget, f.Operand, f.RTarget) {
			sum += f.Weight
		}
	}
	return sum
}
