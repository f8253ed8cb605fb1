package scheduler

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/structs"
)

// ask is what one instance of a group takes.
type ask struct {
	group    *structs.TaskGroup
	amount   Vector // without the MHz of whole cores, which differ by node
	cores    []coreAsk
	devices  []deviceAsk
	networks []*structs.NetworkResource
	// plain: nothing of it has a name, so that all instances take the same.
	plain bool
	// need bounds from below what the indexes must show of a node.
	need bucket.Vector
	by   taker
	held int // devices, whole ones and shares
	// phases are the searches that find the smallest cell for the devices; see phases.go.
	phases []phase
	// common is what plain instances take; shared by all of them.
	common use
	tasks  map[string]*structs.AllocatedTaskResources
	frag   *leastFrag // says which device a share goes to; nil: the fullest
	// resources is the batch's part: what every instance takes.
	resources *structs.AllocatedResources
}

// coreAsk is the whole cores that a task asks for.
type coreAsk struct {
	task string
	n    int
}

// deviceAsk is the devices that a task asks for.
type deviceAsk struct {
	task               string
	req                *structs.RequestedDevice
	vendor, kind, name string // "": any
	count              int
	share              int // thousandths of each
	find               cell.Ask
	within             *domain // the cell of a node whose devices alone may be taken; nil: any
}

// whole is how many whole devices are asked for.
func (a *deviceAsk) whole() int {
	if a.share < wholeDevice {
		return 0
	}
	return a.count
}

func newAsk(in *Input, group *structs.TaskGroup) *ask {
	a := newAskShape(&in.Config, group)
	a.askedBy(in)
	return a
}

// newAskShape is what instances of a group take, whoever asks.
func newAskShape(c *structs.SchedulerConfiguration, group *structs.TaskGroup) *ask {
	a := &ask{group: group, tasks: make(map[string]*structs.AllocatedTaskResources, len(group.Tasks))}
	for _, t := range group.Tasks {
		got := &structs.AllocatedTaskResources{}
		a.tasks[t.Name] = got
		r := t.Resources
		if r == nil {
			continue
		}
		if r.Cores > 0 {
			a.cores = append(a.cores, coreAsk{t.Name, r.Cores})
		} else {
			got.Cpu.CpuShares = int64(r.CPU)
		}
		got.Memory.MemoryMB = int64(r.MemoryMB)
		if c.MemoryOversubscriptionEnabled && (r.MemoryMaxMB > r.MemoryMB || r.MemoryMaxMB < 0) { // below 0: no limit
			got.Memory.MemoryMaxMB = int64(r.MemoryMaxMB)
		}
		a.amount = a.amount.plus(Vector{got.Cpu.CpuShares, got.Memory.MemoryMB, 0})
		if asks := deviceAsks(t); a.devices == nil {
			a.devices = asks
		} else {
			a.devices = append(a.devices, asks...)
		}
		a.networks = append(a.networks, r.Networks...)
	}
	if group.EphemeralDisk != nil {
		a.amount.DiskMB = int64(group.EphemeralDisk.SizeMB)
	}
	if len(group.Networks) > 0 {
		a.networks = slices.Concat(group.Networks, a.networks)
	}
	a.plain = len(a.cores) == 0 && len(a.devices) == 0 && len(a.networks) == 0
	a.bound(c.PreferredCells)
	return a
}

// askedBy says who asks, and until when.
func (a *ask) askedBy(in *Input) {
	shared := structs.AllocatedSharedResources{DiskMB: a.amount.DiskMB, Terms: terms(in.Job, a.group)}
	a.by = taker{askName: askName{in.Job.Namespace, in.Job.ID, a.group.Name}}
	if limit := a.group.MaxRunDuration; limit > 0 {
		shared.TimeLimit = limit
		a.by.ends = in.Now.Add(limit).UnixNano()
	}
	a.resources = &structs.AllocatedResources{Tasks: a.tasks, Shared: shared}
	a.common = use{of: newHolder(a.by.askName, a.resources), amount: a.amount, ends: a.by.ends}
}

// copy gives the ask to another evaluation, which may narrow down its devices.
func (a *ask) copy() *ask {
	c := *a
	c.devices = slices.Clone(a.devices)
	return &c
}

// bound says what the indexes must show.
func (a *ask) bound(preferred []int) {
	a.need[dimCPU], a.need[dimMemory], a.need[dimDisk] = a.amount.CPU, a.amount.MemoryMB, a.amount.DiskMB
	for _, c := range a.cores {
		a.need[dimCores] += int64(c.n)
	}
	for i := range a.devices {
		a.need[dimGPUs] += int64(a.devices[i].whole())
		a.held += a.devices[i].count
		a.devices[i].find.Preferred = preferred
	}
	a.phases = newPhases(a)
}

func deviceAsks(t *structs.Task) []deviceAsk {
	if t.Resources == nil {
		return nil
	}
	if len(t.Resources.Devices) == 0 {
		return nil
	}
	out := make([]deviceAsk, 0, len(t.Resources.Devices))
	for _, req := range t.Resources.Devices {
		d := deviceAsk{task: t.Name, req: req, count: max(1, req.Count), share: wholeDevice}
		if req.Share > 0 && req.Share < wholeDevice && d.count == 1 {
			d.share = req.Share
		}
		d.find = cell.Ask{Count: d.count, Share: d.share}
		if req.Topology != nil {
			d.find.Level, d.find.Required = req.Topology.Level, req.Topology.Required
		}
		first, rest, some := strings.Cut(req.Name, "/")
		if !some {
			d.kind = first
		} else {
			d.vendor = first
			d.kind, d.name, _ = strings.Cut(rest, "/")
		}
		out = append(out, d)
	}
	return out
}

// matches tells whether a group of devices is of the kind that is asked for.
func (a *deviceAsk) matches(m *matcher, d *structs.NodeDeviceResource) bool {
	if (a.vendor != "" && a.vendor != d.Vendor) || a.kind != d.Type || (a.name != "" && a.name != d.Name) {
		return false
	}
	resolve := deviceResolver(d)
	for _, c := range a.req.Constraints {
		if !m.match(resolve, c.LTarget, c.Operand, c.RTarget) {
			return false
		}
	}
	return true
}

// allowed says which devices of a tree's group may be taken; nil: all of the tree.
func (a *deviceAsk) allowed(t *deviceTree, group *structs.NodeDeviceResource) func(device int) bool {
	if t.single && a.within == nil {
		return nil
	}
	return func(device int) bool {
		return t.groups[device] == group && (a.within == nil || a.within.devices[t.ids[device]])
	}
}

// liking sums the weights of the affinities that a group of devices meets.
func (a *deviceAsk) liking(m *matcher, d *structs.NodeDeviceResource) (sum int) {
	resolve := deviceResolver(d)
	for _, f := range a.req.Affinities {
		if m.match(resolve, f.LTarget, f.Operand, f.RTarget) {
			sum += f.Weight
		}
	}
	return sum
}
