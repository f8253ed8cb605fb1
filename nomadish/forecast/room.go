package forecast

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// freeAt returns when those have left that an instance, placed now, must wait for on its node: those that it made leave, those that have its devices
// or cores, and, if there is no room for it beside them, those that leave first until there is.
func (c *clients) freeAt(snap *state.Snapshot, in *instance, row *state.AllocRow) time.Time {
	leavers, free := c.leavers[in.node], c.l.now
	if len(leavers) == 0 {
		return free
	}
	for _, id := range row.Whole().PreemptedAllocations {
		if o := c.instances[id]; o != nil && o.phase == leaving && o.gone.After(free) {
			free = o.gone
		}
	}
	mine := usesOf(row.Resources())
	for _, o := range leavers {
		if was := snap.AllocRow(o.id); was != nil && o.gone.After(free) && mine.shares(usesOf(was.Resources())) {
			free = o.gone
		}
	}
	return c.roomAt(snap, in, free)
}

// roomAt returns when, not before a time, enough of those that leave an instance's node have left for what can be added up.
func (c *clients) roomAt(snap *state.Snapshot, in *instance, free time.Time) time.Time {
	node := snap.Node(nil, in.node)
	if node == nil || node.NodeResources == nil {
		return free
	}
	cpu, memory := node.NodeResources.Cpu.CpuShares, node.NodeResources.Memory.MemoryMB
	if r := node.ReservedResources; r != nil {
		cpu, memory = cpu-int64(r.Cpu.CpuShares), memory-r.Memory.MemoryMB
	}
	for _, a := range snap.AllocsByNode(nil, in.node) {
		o := c.instances[a.ID]
		if a.ClientTerminal() || o == nil || o.phase == leaving && !o.gone.After(free) {
			continue
		}
		u := usesOf(a.AllocatedResources)
		cpu, memory = cpu-u.cpu, memory-u.memory
	}
	leavers := slices.Clone(c.leavers[in.node])
	slices.SortStableFunc(leavers, func(a, b *instance) int { return a.gone.Compare(b.gone) })
	for _, o := range leavers {
		if cpu >= 0 && memory >= 0 {
			break
		}
		if !o.gone.After(free) {
			continue
		}
		free = o.gone
		if row := snap.AllocRow(o.id); row != nil {
			u := usesOf(row.Resources())
			cpu, memory = cpu+u.cpu, memory+u.memory
		}
	}
	return free
}

// uses is what an allocation uses of its node.
type uses struct {
	cpu, memory int64
	cores       []uint16
	devices     []string
}

func usesOf(res *structs.AllocatedResources) (u uses) {
	if res == nil {
		return u
	}
	for _, t := range res.Tasks { // sums and sets: the order cannot show
		if t == nil {
			continue
		}
		u.cpu, u.memory = u.cpu+t.Cpu.CpuShares, u.memory+t.Memory.MemoryMB
		u.cores = append(u.cores, t.Cpu.ReservedCores...)
		for _, d := range t.Devices {
			u.devices = append(u.devices, d.DeviceIDs...)
		}
	}
	return u
}

// shares reports whether two use a core or a device that is the same.
func (u uses) shares(o uses) bool {
	return slices.ContainsFunc(u.cores, func(c uint16) bool { return slices.Contains(o.cores, c) }) ||
		slices.ContainsFunc(u.devices, func(d string) bool { return slices.Contains(o.devices, d) })
}
