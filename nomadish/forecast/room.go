package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// freeAt returns when those have left that an instance, placed now, must wait for on its node: those that it made leave, and, if there is no room for it
// beside them, those that leave first until there is.
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
	return c.roomAt(snap, in, row, free)
}

// roomAt returns when, not before a time, enough of those that leave an instance's node have left for all that it has there.
func (c *clients) roomAt(snap *state.Snapshot, in *instance, row *state.AllocRow, free time.Time) time.Time {
	node := snap.Node(nil, in.node)
	if node == nil || node.NodeResources == nil {
		return free
	}
	left := leftOf(node, usesOf(row.Resources()).parts)
	for _, a := range snap.AllocsByNode(nil, in.node) {
		o := c.instances[a.ID]
		if a.ClientTerminal() || o == nil || o.phase == leaving && !o.gone.After(free) {
			continue
		}
		u := usesOf(a.AllocatedResources)
		if o.phase == suspended {
			u = u.whileSuspended()
		}
		left.add(u, -1)
	}
	leavers := slices.Clone(c.leavers[in.node])
	slices.SortStableFunc(leavers, func(a, b *instance) int { return a.gone.Compare(b.gone) })
	for _, o := range leavers {
		if !left.lacks() {
			break
		}
		if !o.gone.After(free) {
			continue
		}
		free = o.gone
		if was := snap.AllocRow(o.id); was != nil {
			left.add(usesOf(was.Resources()), 1)
		}
	}
	return free
}

// wholeDevice is all of a device, in the thousandths of shares.
const wholeDevice = 1000

// uses is what an allocation uses of its node, or what is left of that.
type uses struct {
	cpu, memory, disk int64
	parts             map[string]int // cores and ports, 1 of each, and thousandths of devices
}

// leftOf returns what a node has for allocations, of parts those alone of which somebody uses something: as much as each has.
func leftOf(n *structs.Node, parts map[string]int) uses {
	has := n.NodeResources
	u := uses{has.Cpu.CpuShares, has.Memory.MemoryMB, has.Disk.DiskMB, map[string]int{}}
	if kept := n.ReservedResources; kept != nil {
		mhz := int64(min(kept.Cpu.CpuShares, 1<<62)) // bounded
		if mhz == 0 {
			mhz = int64(len(kept.Cpu.ReservedCpuCores)) * has.Cpu.MHzPerCore()
		}
		u.cpu, u.memory, u.disk = u.cpu-mhz, u.memory-kept.Memory.MemoryMB, u.disk-kept.Disk.DiskMB
	}
	for part := range parts { // order does not matter: each is by itself
		u.parts[part] = 1
		if strings.HasPrefix(part, devicePart) {
			u.parts[part] = wholeDevice
		}
	}
	return u
}

// add adds what another one uses, so many times; of parts, those alone that are in u.
func (u *uses) add(o uses, times int) {
	u.cpu, u.memory, u.disk = u.cpu+int64(times)*o.cpu, u.memory+int64(times)*o.memory, u.disk+int64(times)*o.disk
	for part, n := range o.parts { // order does not matter: each is by itself
		if _, is := u.parts[part]; is {
			u.parts[part] += times * n
		}
	}
}

// lacks reports whether more is used than there is.
func (u *uses) lacks() bool {
	for _, n := range u.parts { // order does not matter: any will do
		if n < 0 {
			return true
		}
	}
	return u.cpu < 0 || u.memory < 0 || u.disk < 0
}

// whileSuspended is what is left of it while an allocation is suspended.
func (u uses) whileSuspended() uses { return uses{memory: u.memory, disk: u.disk} }

// devicePart is what the names of parts begin with that are devices.
const devicePart = "device/"

// usesOf reads what an allocation uses, as its client does.
func usesOf(res *structs.AllocatedResources) uses {
	u := uses{parts: map[string]int{}}
	if res == nil {
		return u
	}
	u.cpu, u.memory, u.disk, _ = res.Total()
	shared := map[string]bool{} // labels of ports that several may use
	for _, net := range res.Shared.Networks {
		for _, p := range net.ReservedPorts {
			shared[p.Label] = p.IgnoreCollision
		}
	}
	port := func(label, ip string, p int) {
		if p > 0 && !shared[label] {
			u.parts[fmt.Sprintf("port/%s/%d", ip, p)] = 1
		}
	}
	networks := func(list []*structs.NetworkResource) {
		for _, net := range list {
			for _, p := range slices.Concat(net.ReservedPorts, net.DynamicPorts) {
				port(p.Label, net.IP, p.Value)
			}
		}
	}
	for _, p := range res.Shared.Ports {
		port(p.Label, p.HostIP, p.Value)
	}
	networks(res.Shared.Networks)
	for _, t := range res.Tasks { // sets and sums: the order cannot show
		networks(t.Networks)
		for _, core := range t.Cpu.ReservedCores {
			u.parts[fmt.Sprintf("core/%d", core)] = 1
		}
		for _, d := range t.Devices {
			share := cmp.Or(max(d.Share, 0), wholeDevice)
			for _, id := range d.DeviceIDs {
				u.parts[devicePart+id] = min(wholeDevice, u.parts[devicePart+id]+share)
			}
		}
	}
	return u
}
