package view

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// nodeView makes what the topology shows of one node: its tree, who uses what by the
// given allocations, and which cells are free.
type nodeView struct {
	node    *structs.Node
	takes   bool                               // the node takes work: what nobody holds is free
	usages  map[string][]*structs.DeviceUsage  // by device
	kids    map[string][]*structs.TopologyCell // by parent
	devices map[string]*structs.DeviceView     // those without a place yet
	kinds   []string                           // vendor/type/name, as the node reports them
	out     *structs.TopologyNode
}

func viewNode(n *structs.Node, allocs []*structs.Allocation) *structs.TopologyNode {
	v := &nodeView{
		node: n, takes: n.Ready(), usages: usagesOf(allocs), kids: map[string][]*structs.TopologyCell{},
		devices: map[string]*structs.DeviceView{},
		out: &structs.TopologyNode{
			ID: n.ID, Name: n.Name, Datacenter: n.Datacenter, NodePool: n.NodePool, NodeClass: n.NodeClass, Status: n.Status,
			SchedulingEligibility: n.SchedulingEligibility, Drain: n.DrainStrategy != nil,
		},
	}
	root := &structs.CellView{ID: n.ID, Level: structs.LevelNode}
	v.out.Cells = root
	v.readDevices()
	for _, c := range v.cells() {
		v.kids[c.Parent] = append(v.kids[c.Parent], c)
	}
	for _, c := range v.kids[""] {
		v.grow(root, c)
	}
	v.rest(root)
	v.count(root)
	v.out.Devices, v.out.Used, v.out.Free, v.out.Unhealthy, v.out.Withheld = root.Devices, root.Used, root.Free, root.Unhealthy, root.Withheld
	for _, kind := range v.kinds {
		v.freeCells(root, kind)
	}
	sortFree(v.out.FreeCells, v.levels())
	return v.out
}

// usagesOf returns, by device, which allocations use it. An allocation that has ended, or that the
// servers have requested to end, holds nothing, as in the scheduler. One that is suspended keeps its devices, and is
// listed after those that run.
func usagesOf(allocs []*structs.Allocation) map[string][]*structs.DeviceUsage {
	out := map[string][]*structs.DeviceUsage{}
	for _, a := range allocs {
		if a.Terminal() || a.AllocatedResources == nil {
			continue
		}
		for task, r := range a.AllocatedResources.Tasks { // order does not matter: sorted below
			for _, d := range r.Devices {
				h := &structs.DeviceUsage{
					AllocID: a.ID, Namespace: a.Namespace, Name: a.Name, JobID: a.JobID, Group: a.TaskGroup, Task: task,
					Share: cmp.Or(d.Share, structs.DeviceShareWhole), Level: d.Level,
					Suspended: a.Suspended(),
				}
				if terms := a.AllocatedResources.Shared.Terms; terms != nil && terms.Claim != "" {
					h.Class = structs.ClassGuaranteed
				}
				if a.Gang != nil {
					h.GangRank, h.GangSize = a.Gang.Rank, a.Gang.Size
				}
				for _, id := range d.DeviceIDs {
					out[id] = append(out[id], h)
				}
			}
		}
	}
	for _, list := range out { // order does not matter: each is sorted by itself
		slices.SortFunc(list, func(a, b *structs.DeviceUsage) int {
			return cmp.Or(boolOrder(a.Suspended, b.Suspended), cmp.Compare(a.AllocID, b.AllocID), cmp.Compare(a.Task, b.Task))
		})
	}
	return out
}

// boolOrder puts false before true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (v *nodeView) readDevices() {
	r := v.node.NodeResources
	if r == nil {
		return
	}
	for _, group := range r.Devices {
		kind := group.Vendor + "/" + group.Type + "/" + group.Name
		if !slices.Contains(v.kinds, kind) {
			v.kinds = append(v.kinds, kind)
		}
		for _, d := range group.Instances {
			if d == nil || v.devices[d.ID] != nil {
				continue
			}
			view := &structs.DeviceView{
				ID: d.ID, Device: kind, Healthy: d.Healthy, HealthDescription: d.HealthDescription,
				FreeShare: structs.DeviceShareWhole, Usages: []*structs.DeviceUsage{},
			}
			if d.Locality != nil {
				view.PciBusID = d.Locality.PciBusID
			}
			v.usage(view)
			v.devices[d.ID] = view
		}
	}
}

func (v *nodeView) usage(d *structs.DeviceView) {
	d.Usages = append(d.Usages, v.usages[d.ID]...)
	for _, h := range d.Usages {
		d.FreeShare = max(0, d.FreeShare-h.Share)
	}
	delete(v.usages, d.ID)
}

// cells are those that the node reports, or that follow from where its devices sit.
func (v *nodeView) cells() []*structs.TopologyCell {
	r := v.node.NodeResources
	if r == nil {
		return nil
	}
	if r.Topology != nil && r.ValidateTopology() == nil {
		v.out.Links = r.Topology.Links
		return r.Topology.Cells
	}
	var all []*structs.TopologyCell
	byID := map[string]*structs.TopologyCell{}
	find := func(level string, number int, parent string) *structs.TopologyCell {
		id := level + "-" + strconv.Itoa(number)
		if byID[id] == nil {
			byID[id] = &structs.TopologyCell{ID: id, Level: level, Parent: parent}
			all = append(all, byID[id])
		}
		return byID[id]
	}
	for _, group := range r.Devices {
		for _, d := range group.Instances {
			if d == nil || d.Locality == nil {
				continue
			}
			socket := find(structs.LevelSocket, d.Locality.Socket, "")
			pcie := find(structs.LevelPCIe, d.Locality.Switch, socket.ID)
			pcie.Devices = append(pcie.Devices, d.ID)
		}
	}
	return all
}

// grow adds a reported cell, with all below it, to the view of the one above it.
func (v *nodeView) grow(above *structs.CellView, c *structs.TopologyCell) {
	view := &structs.CellView{ID: c.ID, Level: c.Level}
	above.Cells = append(above.Cells, view)
	for _, kid := range v.kids[c.ID] {
		v.grow(view, kid)
	}
	for _, id := range c.Devices {
		if d := v.devices[id]; d != nil {
			d.Level = structs.LevelGPU
			if c.Level == structs.LevelGPU {
				d.Level = structs.LevelMIG
			}
			view.Members = append(view.Members, d)
			delete(v.devices, id)
		}
	}
}

// rest puts the devices without a place right below the node, in their order, and
// after them those that somebody uses but the node reports no more.
func (v *nodeView) rest(root *structs.CellView) {
	if r := v.node.NodeResources; r != nil {
		for _, group := range r.Devices {
			for _, one := range group.Instances {
				if one == nil || v.devices[one.ID] == nil {
					continue
				}
				d := v.devices[one.ID]
				d.Level = structs.LevelGPU
				root.Members = append(root.Members, d)
				delete(v.devices, one.ID)
			}
		}
	}
	gone := make([]string, 0, len(v.usages))
	for id := range v.usages { // order does not matter: sorted below
		gone = append(gone, id)
	}
	slices.Sort(gone)
	for _, id := range gone {
		d := &structs.DeviceView{
			ID: id, Level: structs.LevelGPU, FreeShare: structs.DeviceShareWhole,
			HealthDescription: "the node does not report it any more", Usages: []*structs.DeviceUsage{},
		}
		v.usage(d)
		root.Members = append(root.Members, d)
	}
}

// count sums a cell and all below it.
func (v *nodeView) count(c *structs.CellView) {
	for _, kid := range c.Cells {
		v.count(kid)
		c.Add(kid.DeviceCounts)
	}
	for _, d := range c.Members {
		one := structs.DeviceCounts{Devices: 1}
		if d.InUse() {
			one.Used = 1
		}
		if !d.Healthy {
			one.Unhealthy = 1
		}
		switch {
		case v.free(d):
			one.Free = 1
		case d.Healthy && !d.InUse():
			one.Withheld = 1
		}
		c.Add(one)
	}
	c.FreeCell = c.Devices > 0 && c.Free == c.Devices
}

func (v *nodeView) free(d *structs.DeviceView) bool {
	return v.takes && d.Healthy && !d.InUse()
}

// freeCells adds the free cells of one kind of device in a cell: the cell itself, if
// all of the kind in it is free, else those in its parts. Devices of other kinds are
// looked through: cells of different kinds are never interchangeable.
func (v *nodeView) freeCells(c *structs.CellView, kind string) {
	if all, free := v.ofKind(c, kind); all == free {
		v.addFree(kind, c.Level, all)
		return
	}
	for _, kid := range c.Cells {
		v.freeCells(kid, kind)
	}
	for _, d := range c.Members {
		if d.Device == kind && v.free(d) {
			v.addFree(kind, d.Level, 1)
		}
	}
}

func (v *nodeView) ofKind(c *structs.CellView, kind string) (all, free int) {
	for _, kid := range c.Cells {
		a, f := v.ofKind(kid, kind)
		all, free = all+a, free+f
	}
	for _, d := range c.Members {
		if d.Device == kind {
			all++
			if v.free(d) {
				free++
			}
		}
	}
	return all, free
}

func (v *nodeView) addFree(kind, level string, size int) {
	if size > 0 {
		v.out.FreeCells = structs.MergeFree(v.out.FreeCells, structs.FreeCells{Device: kind, Level: level, Size: size, Count: 1})
	}
}

// levels of the node's tree, lowest first.
func (v *nodeView) levels() []string {
	heights := map[string]int{}
	heightsOf(v.out.Cells, heights)
	return byHeight(heights)
}

// heightsOf notes how high above the devices each level stands.
func heightsOf(c *structs.CellView, heights map[string]int) int {
	h := 0
	for _, kid := range c.Cells {
		h = max(h, heightsOf(kid, heights)+1)
	}
	for _, d := range c.Members {
		below := 0
		if d.Level != structs.LevelMIG {
			below = 1 // so that slices are lowest, wherever there are some
		}
		heights[d.Level] = max(heights[d.Level], below)
		h = max(h, below+1)
	}
	heights[c.Level] = max(heights[c.Level], h)
	return h
}

func byHeight(heights map[string]int) []string {
	levels := make([]string, 0, len(heights))
	for level := range heights { // order does not matter: sorted below
		levels = append(levels, level)
	}
	rank := func(l string) int { return slices.Index(structs.NodeLevels(), l) }
	slices.SortFunc(levels, func(a, b string) int {
		return cmp.Or(cmp.Compare(heights[a], heights[b]), cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return levels
}

// sortFree orders free cells by kind, then from the largest to the smallest.
func sortFree(cells []structs.FreeCells, levels []string) {
	slices.SortFunc(cells, func(a, b structs.FreeCells) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(b.Size, a.Size),
			cmp.Compare(slices.Index(levels, b.Level), slices.Index(levels, a.Level)), cmp.Compare(a.Level, b.Level))
	})
}
