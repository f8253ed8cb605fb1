package feasible

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// An instance uses a claim as a whole (semantics part 2, "Choice"): the devices that its tasks and their device blocks request are then one
// request, for as many as all of them together. They must be whole devices of one kind, as the cells of a namespace are of one.

// Together returns the requests of an instance as one; nil: there is none, or no cell can hold all of them, as they are for shares of
// devices, or for devices of several kinds. A single request is returned as it is.
func Together(requests []DeviceRequest) *DeviceRequest {
	if len(requests) == 0 || slices.ContainsFunc(requests, func(a DeviceRequest) bool { return a.Whole() == 0 }) {
		return nil
	}
	if len(requests) == 1 {
		return &requests[0]
	}
	all := &DeviceRequest{Kind: requests[0].Kind, Share: world.WholeDevice, Request: &structs.RequestedDevice{}, Parts: requests}
	for i := range requests {
		if !all.join(&requests[i]) {
			return nil
		}
	}
	all.Find = cell.Request{Count: all.Count, Share: all.Share, Preferred: requests[0].Find.Preferred}
	return all
}

// Why the requests of an instance can use no claim, whatever is owned.
const (
	NotWhole     = "it requests no whole GPUs: only whole GPUs are owned"
	SeveralKinds = "it requests devices of several kinds: only devices of one kind are owned together"
	partOfGang   = "it requests no whole GPUs, and its gang uses a claim as a whole"
	isPerNode    = "instances of system and sysbatch jobs use none"
)

// NotTogether returns why an instance that requests devices can have no cells for them; "": it can.
func NotTogether(requests []DeviceRequest) string {
	switch {
	case slices.ContainsFunc(requests, func(a DeviceRequest) bool { return a.Whole() == 0 }):
		return NotWhole
	case len(requests) > 0 && Together(requests) == nil:
		return SeveralKinds
	}
	return ""
}

// MayClaim reports whether an instance of a group requests devices that can be owned: whole ones, of one kind.
func MayClaim(g *structs.TaskGroup) bool { return Together(groupRequests(g)) != nil }

// WithoutClaim returns a group of a job that can use no claim on cells, as it requests devices that cannot be owned, or belongs to a gang that
// uses claims and requests none; and why. A group without devices beside others claims nothing, and need not.
func WithoutClaim(job *structs.Job) (group, why string) {
	some, gangs := false, GangsOf(job)
	for _, g := range job.TaskGroups {
		requests := groupRequests(g)
		if why = NotTogether(requests); why != "" {
			return g.Name, why
		}
		if some = some || len(requests) > 0; job.PerNode() {
			return g.Name, isPerNode
		}
		if gang := gangs[g.Name]; len(requests) == 0 && gang != nil && !gang.claims() && gang.wantsDevices() {
			return g.Name, partOfGang
		}
	}
	if some || len(job.TaskGroups) == 0 {
		return "", ""
	}
	return job.TaskGroups[0].Name, NotWhole
}

// wantsDevices reports whether a member of a gang requests devices.
func (g *Gang) wantsDevices() bool {
	return slices.ContainsFunc(g.Groups, func(of GangGroup) bool { return len(groupRequests(of.Group)) > 0 })
}

// groupRequests returns the device requests of an instance of a group.
func groupRequests(g *structs.TaskGroup) (requests []DeviceRequest) {
	for _, t := range g.Tasks {
		requests = append(requests, DeviceRequests(t)...)
	}
	return requests
}

// join adds a request to those that are one. It reports false if they are of several kinds: no device is what both name, or they name
// different pinned cells.
func (a *DeviceRequest) join(one *DeviceRequest) bool {
	agree := func(x, y string) bool { return x == "" || y == "" || x == y }
	if a.Kind != one.Kind || !agree(a.Vendor, one.Vendor) || !agree(a.Name, one.Name) || !agree(a.Pin(), one.Pin()) {
		return false
	}
	a.Vendor, a.Name, a.Count = cmp.Or(a.Vendor, one.Vendor), cmp.Or(a.Name, one.Name), a.Count+one.Count
	a.Request.Constraints = append(a.Request.Constraints, one.Request.Constraints...)
	if pin := one.Pin(); pin != "" {
		required := a.PinRequired() || one.PinRequired()
		a.Request.Topology = &structs.TopologyConstraint{Pin: pin, Required: required}
	}
	return true
}

// PinRequired reports whether the devices must not be of another cell than the pinned one that is named.
func (a *DeviceRequest) PinRequired() bool { return a.Pin() != "" && a.Request.Topology.Required }

// LevelIn returns the lowest level of a chain whose cells hold the devices; false if none within a node does, or if the levels that are
// required are below what they need.
func (a *DeviceRequest) LevelIn(chain *cells.Chain) (level int, fits bool) {
	if level, fits = chain.LevelFor(a.Count); !fits {
		return level, false
	}
	parts := a.Parts
	if parts == nil {
		return level, !a.Find.Required || requiredHolds(chain, a)
	}
	for i := range parts {
		if parts[i].Find.Required && !requiredHolds(chain, &parts[i]) {
			return level, false
		}
	}
	return level, true
}

// requiredHolds reports whether cells of the level that a request requires hold its devices.
func requiredHolds(chain *cells.Chain, a *DeviceRequest) bool {
	level, fits := chain.LevelFor(a.Count)
	k, known := chain.KindOf(a.Find.Level, 0)
	return fits && known && level <= k.Level
}

// Among returns the parts of a request for what was chosen for all of them together: those that require a level first, the larger ones
// first, so that none takes what another needs. at is which of the parts each is.
func (a *DeviceRequest) Among(chosen *Domain) (parts []DeviceRequest, at []int) {
	for i := range a.Parts {
		at = append(at, i)
	}
	slices.SortStableFunc(at, func(i, j int) int {
		x, y := &a.Parts[i], &a.Parts[j]
		if x.Find.Required != y.Find.Required {
			if x.Find.Required {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.Count, x.Count)
	})
	for _, i := range at {
		part := a.Parts[i]
		part.Within = chosen
		parts = append(parts, part)
	}
	return parts, at
}
