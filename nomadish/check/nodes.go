package check

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// node is what allocations use of one node.
type node struct {
	id   string
	spec *structs.Node // nil: not known

	cpu, memory, disk int64 // MHz, MiB, MiB
	cores             []reservedCore
	ports             []reservedPort
	devices           []reservedDevice
	claimed           []claimedUse
	// instances are what per-node jobs run here, to be found twice.
	instances map[string]string
	// newest is the last index at which the servers assigned or changed one of them.
	newest uint64
}

type (
	reservedCore struct {
		id uint16
		by string // the allocation
	}
	reservedPort struct {
		port int
		ip   string // "": all addresses
		by   string
	}
	reservedDevice struct {
		id    string
		share int // thousandths
		by    string
	}
)

// take adds the usage of an allocation. One that is suspended keeps memory and disk.
func (n *node) take(a *structs.Allocation) {
	n.newest = max(n.newest, a.CreateIndex, a.AllocModifyIndex)
	r := a.AllocatedResources
	if r == nil {
		return
	}
	n.disk += r.Shared.DiskMB
	for _, t := range r.Tasks { // order does not matter: sums
		n.memory += t.Memory.MemoryMB
	}
	if a.Suspended() {
		return
	}
	networks := r.Shared.Networks
	for _, p := range r.Shared.Ports {
		if p.Value > 0 && !shares(r.Shared.Networks, p.Label) {
			n.ports = append(n.ports, reservedPort{p.Value, anywhere(p.HostIP), a.ID})
		}
	}
	if len(r.Shared.Ports) == 0 {
		n.takeNetworks(a.ID, networks)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Tasks)) {
		t := r.Tasks[name]
		n.cpu += t.Cpu.CpuShares
		for _, id := range t.Cpu.ReservedCores {
			n.cores = append(n.cores, reservedCore{id, a.ID})
		}
		for _, d := range t.Devices {
			share := d.Share
			if share <= 0 || share > structs.DeviceShareWhole {
				share = structs.DeviceShareWhole
			}
			for _, id := range d.DeviceIDs {
				n.devices = append(n.devices, reservedDevice{id, share, a.ID})
			}
		}
		n.takeNetworks(a.ID, t.Networks)
	}
}

func (n *node) takeNetworks(by string, networks []*structs.NetworkResource) {
	for _, net := range networks {
		for _, p := range slices.Concat(net.ReservedPorts, net.DynamicPorts) {
			if p.Value > 0 && !p.IgnoreCollision {
				n.ports = append(n.ports, reservedPort{p.Value, anywhere(net.IP), by})
			}
		}
	}
}

// shares reports whether a port was requested with ignore_collision.
func shares(networks []*structs.NetworkResource, label string) bool {
	return slices.ContainsFunc(networks, func(net *structs.NetworkResource) bool {
		return slices.ContainsFunc(net.ReservedPorts, func(p structs.Port) bool { return p.Label == label && p.IgnoreCollision })
	})
}

func anywhere(ip string) string {
	if ip == "0.0.0.0" || ip == "::" {
		return ""
	}
	return ip
}

// exceeds reports that allocations use what their node does not have. A node that has
// changed since it got them may have had it: that is for somebody to look at.
func (c *checker) exceeds(n *node, rule, format string, args ...any) {
	if n.spec.ModifyIndex > n.newest && !c.opts.FixedNodes {
		c.note(rule, "node", n.id, format+"; the node has changed since it was placed", args...)
		return
	}
	c.fault(rule, "node", n.id, format, args...)
}

func (c *checker) checkNode(n *node) {
	c.checkTwice(n)
	used := c.snap.World().Used(n.id)
	if used.CPU != n.cpu || used.MemoryMB != n.memory || used.DiskMB != n.disk {
		c.fault(structs.CheckWorld, "node", n.id, "the scheduler sees %d MHz, %d MiB of memory and %d MiB of disk in use; the allocations use %d, %d, %d",
			used.CPU, used.MemoryMB, used.DiskMB, n.cpu, n.memory, n.disk)
	}
	if n.spec == nil || n.spec.NodeResources == nil {
		return // what is on a node that is not known is checked by the job
	}
	c.checkRoom(n)
	c.checkHas(n)
}

func (c *checker) checkRoom(n *node) {
	r := n.spec.NodeResources
	cpu, memory, disk := r.Cpu.CpuShares, r.Memory.MemoryMB, r.Disk.DiskMB
	if own := n.spec.ReservedResources; own != nil {
		keeps := int64(min(own.Cpu.CpuShares, 1<<62)) // bounded
		if keeps == 0 {
			keeps = int64(len(own.Cpu.ReservedCpuCores)) * r.Cpu.MHzPerCore()
		}
		cpu, memory, disk = cpu-keeps, memory-own.Memory.MemoryMB, disk-own.Disk.DiskMB
	}
	for _, x := range []struct {
		what, unit string
		has, gave  int64
	}{{"processor", "MHz", cpu, n.cpu}, {"memory", "MiB", memory, n.memory}, {"disk", "MiB", disk, n.disk}} {
		if x.gave > max(0, x.has) {
			c.exceeds(n, structs.CheckRoom, "allocations use %d %s of %s, but the node has %d for them", x.gave, x.unit, x.what, x.has)
		}
	}
}

// checkTwice finds what is given to two. No change of the node is a reason for that.
func (c *checker) checkTwice(n *node) {
	slices.SortFunc(n.cores, func(a, b reservedCore) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.by, b.by)) })
	for i := 1; i < len(n.cores); i++ {
		if a, b := n.cores[i-1], n.cores[i]; a.id == b.id {
			c.fault(structs.CheckCores, "node", n.id, "core %d is owned by allocation %s and by %s", a.id, a.by, b.by)
		}
	}
	slices.SortFunc(n.ports, func(a, b reservedPort) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.ip, b.ip), cmp.Compare(a.by, b.by))
	})
	for i, b := range n.ports {
		// Those of all addresses are the first of their port.
		for k := i - 1; k >= 0 && n.ports[k].port == b.port; k-- {
			if a := n.ports[k]; a.ip == b.ip || a.ip == "" {
				c.fault(structs.CheckPorts, "node", n.id, "port %d is assigned to allocation %s and to %s", b.port, a.by, b.by)
				break
			}
		}
	}
	slices.SortFunc(n.devices, func(a, b reservedDevice) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.by, b.by)) })
	for i := 0; i < len(n.devices); {
		id, sum, by := n.devices[i].id, 0, []string(nil)
		for ; i < len(n.devices) && n.devices[i].id == id; i++ {
			sum += n.devices[i].share
			by = append(by, n.devices[i].by)
		}
		if sum > structs.DeviceShareWhole {
			c.fault(structs.CheckDevices, "node", n.id, "device %s is used to %d thousandths, by allocations %s", id, sum, strings.Join(by, ", "))
		}
	}
}

// checkHas finds what is given and not had.
func (c *checker) checkHas(n *node) {
	r, own := n.spec.NodeResources, n.spec.ReservedResources
	for _, reserved := range n.cores {
		if !slices.Contains(r.Cpu.ReservableCpuCores, reserved.id) || own != nil && slices.Contains(own.Cpu.ReservedCpuCores, reserved.id) {
			c.exceeds(n, structs.CheckCores, "allocation %s owns core %d, which is not for tasks", reserved.by, reserved.id)
		}
	}
	if own != nil && own.Networks.ReservedHostPorts != "" {
		for _, reserved := range n.ports {
			if within(own.Networks.ReservedHostPorts, reserved.port) {
				c.exceeds(n, structs.CheckPorts, "allocation %s has port %d, which the node keeps", reserved.by, reserved.port)
			}
		}
	}
	if len(n.devices) == 0 {
		return
	}
	known := map[string]bool{}
	for _, d := range r.Devices {
		for _, one := range d.Instances {
			known[one.ID] = true
		}
	}
	for _, reserved := range n.devices {
		if !known[reserved.id] {
			c.exceeds(n, structs.CheckDevices, "allocation %s has device %s, which the node does not have", reserved.by, reserved.id)
		}
	}
}

// within reports whether a port is in a list as "22,80,8500-8600". What cannot be read
// keeps nothing, as for the scheduler.
func within(list string, port int) bool {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		low, err := strconv.Atoi(strings.TrimSpace(from))
		high := low
		if isRange && err == nil {
			high, err = strconv.Atoi(strings.TrimSpace(to))
		}
		if err == nil && low <= port && port <= high {
			return true
		}
	}
	return false
}
