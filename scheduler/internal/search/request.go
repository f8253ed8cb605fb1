package search

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Request is what one instance of a group takes.
type Request struct {
	Group    *structs.TaskGroup
	Amount   world.Vector // without the MHz of whole cores, which differ by node
	Cores    []CoreRequest
	Devices  []feasible.DeviceRequest
	Networks []*structs.NetworkResource
	// Plain: nothing of it has a name, so that all instances take the same.
	Plain bool
	// Need bounds from below what the indexes must show of a node.
	Need     bucket.Vector
	By       world.Taker
	Reserved int // devices, whole ones and shares
	// phases are the searches that find the smallest cell for the devices; see phases.go.
	phases []phase
	// common is what plain instances take; shared by all of them.
	common world.Usage
	tasks  map[string]*structs.AllocatedTaskResources
	// beside: of a system or sysbatch job, while somebody owns cells: it takes only devices of this edit's nodes that nobody owns.
	beside *world.Edit
	// together: the devices are chosen as those of one request, which the parts then share. Of several that use a claim.
	together *feasible.DeviceRequest
	// Volume is what an instance requests as slots count it. Of a request of a project.
	Volume slots.Volume
	frag   *leastFrag // chooses the device that a share goes to; nil: the fullest
	// Resources is the batch's part: what every instance takes.
	Resources *structs.AllocatedResources
}

// CoreRequest is a task's request for whole cores.
type CoreRequest struct {
	task string
	n    int
}

// NewRequest returns a new Request of one instance of a group, for an evaluation.
func NewRequest(in *Input, group *structs.TaskGroup) *Request {
	a := newNodeSetKey(&in.Config, group)
	a.requestedBy(in)
	return a
}

// newNodeSetKey returns what instances of a group need, whichever evaluation places them.
func newNodeSetKey(c *structs.SchedulerConfiguration, group *structs.TaskGroup) *Request {
	a := &Request{Group: group, tasks: make(map[string]*structs.AllocatedTaskResources, len(group.Tasks))}
	for _, t := range group.Tasks {
		got := &structs.AllocatedTaskResources{}
		a.tasks[t.Name] = got
		r := t.Resources
		if r == nil {
			continue
		}
		if r.Cores > 0 {
			a.Cores = append(a.Cores, CoreRequest{t.Name, r.Cores})
		} else {
			got.Cpu.CpuShares = int64(r.CPU)
		}
		got.Memory.MemoryMB = int64(r.MemoryMB)
		if c.MemoryOversubscriptionEnabled && (r.MemoryMaxMB > r.MemoryMB || r.MemoryMaxMB < 0) { // below 0: no limit
			got.Memory.MemoryMaxMB = int64(r.MemoryMaxMB)
		}
		a.Amount = a.Amount.Plus(world.Vector{CPU: got.Cpu.CpuShares, MemoryMB: got.Memory.MemoryMB, DiskMB: 0})
		if requests := feasible.DeviceRequests(t); a.Devices == nil {
			a.Devices = requests
		} else {
			a.Devices = append(a.Devices, requests...)
		}
		a.Networks = append(a.Networks, r.Networks...)
	}
	if group.EphemeralDisk != nil {
		a.Amount.DiskMB = int64(group.EphemeralDisk.SizeMB)
	}
	if len(group.Networks) > 0 {
		a.Networks = slices.Concat(group.Networks, a.Networks)
	}
	a.Plain = len(a.Cores) == 0 && len(a.Devices) == 0 && len(a.Networks) == 0
	a.bound(c.PreferredCells)
	return a
}

// requestedBy sets which job requests, and until when.
func (a *Request) requestedBy(in *Input) {
	shared := structs.AllocatedSharedResources{DiskMB: a.Amount.DiskMB, Terms: feasible.Terms(in.Job, a.Group)}
	a.By = world.Taker{RequestName: world.RequestName{Namespace: in.Job.Namespace, Job: in.Job.ID, Group: a.Group.Name}}
	if limit := a.Group.MaxRunDuration; limit > 0 {
		shared.TimeLimit = limit
		a.By.Ends = in.Now.Add(limit).UnixNano()
	}
	a.Resources = &structs.AllocatedResources{Tasks: a.tasks, Shared: shared}
	a.common = world.Usage{Owner: world.NewOwner(a.By.RequestName, a.Resources), Amount: a.Amount, Ends: a.By.Ends}
}

// Claiming returns the request as one that uses cells of its namespace: those of a level and, above nodes, of a size.
func (a *Request) Claiming(level string, size int) *Request {
	c := a.copy()
	terms := *a.Resources.Shared.Terms
	terms.Claim, terms.CellLevel, terms.CellSize = structs.ClaimCells, level, size
	resources := *a.Resources
	resources.Shared.Terms = &terms
	c.Resources, c.By.Entitled = &resources, true
	c.common.Owner = world.NewOwner(a.By.RequestName, &resources)
	if len(c.Devices) > 1 {
		c.together = feasible.Together(c.Devices)
	}
	return c
}

// Together returns the devices of a request that uses a claim, as they are taken from cells; they may be narrowed down.
func (a *Request) Together() *feasible.DeviceRequest {
	if a.together != nil {
		return a.together
	}
	return &a.Devices[0]
}

// LeaveOwned makes a request of a system or sysbatch job one that no claim takes from, and that leaves what is owned, if anything is.
func (a *Request) LeaveOwned(job *structs.Job, e *world.Edit) {
	if !job.PerNode() || !world.Base(e).AnyClaims() {
		return
	}
	a.Resources.Shared.Terms.PerNode = true // they are this request's own
	a.common.Owner = world.NewOwner(a.By.RequestName, a.Resources)
	if len(a.Devices) > 0 && world.Base(e).AnyOwner() {
		a.beside = e
	}
}

// LeavesOwned reports whether the request takes only devices that nobody owns.
func (a *Request) LeavesOwned() bool { return a.beside != nil }

// copy returns a copy for another evaluation, which may narrow down its devices.
func (a *Request) copy() *Request {
	c := *a
	c.Devices = slices.Clone(a.Devices)
	return &c
}

// bound returns what the indexes must show.
func (a *Request) bound(preferred []int) {
	a.Need[world.DimCPU], a.Need[world.DimMemory], a.Need[world.DimDisk] = a.Amount.CPU, a.Amount.MemoryMB, a.Amount.DiskMB
	for _, c := range a.Cores {
		a.Need[world.DimCores] += int64(c.n)
	}
	for i := range a.Devices {
		a.Need[world.DimGPUs] += int64(a.Devices[i].Whole())
		a.Reserved += a.Devices[i].Count
		a.Devices[i].Find.Preferred = preferred
	}
	a.phases = newPhases(a)
}
