package client

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// wholeDevice is all of a device, in the thousandths of shares.
const wholeDevice = 1000

// room is what of a node can be added up: MHz, and MiB of memory and disk.
type room struct{ cpu, memory, disk int64 }

func (r room) plus(o room) room { return room{r.cpu + o.cpu, r.memory + o.memory, r.disk + o.disk} }

func (r room) minus(o room) room { return room{r.cpu - o.cpu, r.memory - o.memory, r.disk - o.disk} }

func (r room) within(o room) bool { return r.cpu <= o.cpu && r.memory <= o.memory && r.disk <= o.disk }

// need is what an allocation needs of its node while it runs.
type need struct {
	names   []string       // ports and cores, which only one allocation can use
	devices map[string]int // thousandths of each
	room    room
	// after are allocations that were taken back for it: it starts when those of them
	// that are on this node have let go.
	after []string
}

// whileSuspended returns what is left of a need while the allocation is suspended.
func (n *need) whileSuspended() *need {
	return &need{room: room{memory: n.room.memory, disk: n.room.disk}}
}

// needOf reads what an allocation needs. A port that ignores collisions is shared on
// purpose (SO_REUSEPORT) and is not reserved.
func needOf(a *structs.Allocation) *need {
	n := &need{after: a.PreemptedAllocations}
	r := a.AllocatedResources
	if r == nil {
		return n
	}
	var shares map[string]bool // labels of ports that ignore collisions
	port := func(label, ip string, p int) {
		if p > 0 && !shares[label] {
			n.names = append(n.names, fmt.Sprintf("port/%s/%d", ip, p))
		}
	}
	networks := func(list []*structs.NetworkResource) {
		for _, net := range list {
			for _, p := range slices.Concat(net.ReservedPorts, net.DynamicPorts) {
				port(p.Label, net.IP, p.Value)
			}
		}
	}
	for _, net := range r.Shared.Networks {
		for _, p := range net.ReservedPorts {
			if shares == nil {
				shares = map[string]bool{}
			}
			shares[p.Label] = p.IgnoreCollision
		}
	}
	for _, p := range r.Shared.Ports {
		port(p.Label, p.HostIP, p.Value)
	}
	networks(r.Shared.Networks)
	for _, t := range r.Tasks {
		networks(t.Networks)
		for _, c := range t.Cpu.ReservedCores {
			n.names = append(n.names, fmt.Sprintf("core/%d", c))
		}
		for _, d := range t.Devices {
			share := d.Share
			if share <= 0 {
				share = wholeDevice
			}
			if n.devices == nil {
				n.devices = map[string]int{}
			}
			for _, id := range d.DeviceIDs {
				n.devices[id] = min(wholeDevice, n.devices[id]+share)
			}
		}
	}
	slices.Sort(n.names)
	n.names = slices.Compact(n.names)
	n.room.cpu, n.room.memory, n.room.disk, _ = r.Total()
	return n
}

// roomOf is what a node has for allocations, as the servers reckon it.
func roomOf(n *structs.Node) room {
	has := n.NodeResources
	if has == nil {
		return room{}
	}
	out := room{has.Cpu.CpuShares, has.Memory.MemoryMB, has.Disk.DiskMB}
	kept := n.ReservedResources
	if kept == nil {
		return out
	}
	mhz := int64(min(kept.Cpu.CpuShares, 1<<62)) // bounded
	if mhz == 0 {
		mhz = int64(len(kept.Cpu.ReservedCpuCores)) * has.Cpu.MHzPerCore()
	}
	return out.minus(room{mhz, kept.Memory.MemoryMB, kept.Disk.DiskMB})
}
