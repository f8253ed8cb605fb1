package structs

import (
	"fmt"
	"strings"
)

// What a node may report about itself at most. No machine has more, and the sums over 100,000 nodes stay far below what an int64 holds.
const (
	MaxNodeCPU      = 1_000_000_000 // MHz
	MaxNodeMemoryMB = 1 << 30       // 1 PiB
	MaxNodeDiskMB   = 1 << 40       // 1 EiB: what a shared file system reports as its own

	MaxNodeName       = 256                // bytes of names: of the node, its datacenter, class, pool, drivers, devices, volumes
	MaxNodePairs      = 1024               // attributes, and as many of meta and of links
	MaxNodeKey        = 256                // bytes
	MaxNodeValue      = 4096               // bytes
	MaxNodeText       = 4096               // bytes of texts for people; more is cut
	maxNodeCores      = 1 << 16            // cores of a node
	maxNodeDrivers    = 256                // drivers of a node
	maxNodeVolumes    = 1024               // host volumes of a node
	maxNodeNetworks   = 1024               // networks of a node
	maxNodeAddresses  = 1024               // addresses of a network
	maxDeviceKinds    = 1024               // kinds of devices of a node
	maxEventDetails   = 32                 // details of an event of a node
	maxNodeEventsSent = 10 * MaxNodeEvents // events of a node in one report
)

// MaxNodePairBytes bounds the names and values of all attributes, meta and links of a node together, those of its drivers and devices
// among them. Servers keep them in memory for as long as they know the node.
const MaxNodePairBytes = 256 << 10

// implausible is the error of what no honest node reports.
func implausible(format string, args ...any) error { return Errorf(CodeBadRequest, format, args...) }

// short is a text that is checked for its length.
type short struct {
	what string
	text string
	most int
}

func checkShort(all ...short) error {
	for _, s := range all {
		if len(s.text) > s.most {
			return implausible("%s %q: %d bytes, at most %d are allowed", s.what, clip(s.text), len(s.text), s.most)
		}
	}
	return nil
}

// checkPairs checks attributes and the like, which have this name in the plural.
func checkPairs(what string, pairs map[string]string, most int) error {
	if len(pairs) > most {
		return implausible("%d %s, at most %d are allowed", len(pairs), what, most)
	}
	for k, v := range pairs { // order does not matter: any that is too long will do
		if len(k) > MaxNodeKey || len(v) > MaxNodeValue {
			return implausible("%s: %q has a name of %d bytes and a value of %d bytes, at most %d and %d are allowed", what, clip(k), len(k), len(v), MaxNodeKey, MaxNodeValue)
		}
	}
	return nil
}

// CheckNodeMeta returns an error if a node may not report this about itself.
func CheckNodeMeta(meta map[string]string) error {
	if err := checkPairs("meta", meta, MaxNodePairs); err != nil {
		return err
	}
	return checkPairBytes("meta", pairBytesOf(meta))
}

// pairBytesOf returns the bytes of names and values.
func pairBytesOf(pairs map[string]string) int {
	n := 0
	for k, v := range pairs { // order does not matter: they are summed
		n += len(k) + len(v)
	}
	return n
}

func checkPairBytes(what string, n int) error {
	if n > MaxNodePairBytes {
		return implausible("%s: the names and values have %d bytes in all, at most %d are allowed", what, n, MaxNodePairBytes)
	}
	return nil
}

// checkAllPairs checks the size of all attributes, meta and links together.
func (n *Node) checkAllPairs() error {
	sum := pairBytesOf(n.Attributes) + pairBytesOf(n.Meta) + pairBytesOf(n.Links)
	for _, d := range n.Drivers { // order does not matter: they are summed
		if d != nil {
			sum += pairBytesOf(d.Attributes)
		}
	}
	if n.NodeResources != nil {
		for _, d := range n.NodeResources.Devices {
			if d == nil {
				continue // ValidateTopology refuses it
			}
			for name, a := range d.Attributes { // order does not matter: they are summed
				sum += len(name)
				if a != nil && a.StringVal != nil {
					sum += len(*a.StringVal)
				}
			}
		}
	}
	return checkPairBytes("attributes, meta and links", sum)
}

// CheckLimits returns an error if the node describes itself as no machine is, or more than there is room for.
func (n *Node) CheckLimits() error {
	if err := checkShort(
		short{"the name", n.Name, MaxNodeName}, short{"the secret", n.SecretID, MaxNodeName}, short{"the datacenter", n.Datacenter, MaxNodeName},
		short{"the class", n.NodeClass, MaxNodeName}, short{"the pool", n.NodePool, MaxNodeName}, short{"the HTTP address", n.HTTPAddr, 2 * MaxNodeName},
		short{"the status", n.Status, MaxNodeName},
	); err != nil {
		return err
	}
	if n.SchedulingEligibility != "" && n.SchedulingEligibility != NodeEligible && n.SchedulingEligibility != NodeIneligible {
		return implausible("eligibility %q: allowed are %q and %q", clip(n.SchedulingEligibility), NodeEligible, NodeIneligible)
	}
	if len(n.Events) > maxNodeEventsSent {
		return implausible("%d events, at most %d are allowed", len(n.Events), maxNodeEventsSent)
	}
	for _, check := range []func() error{
		func() error { return checkPairs("attributes", n.Attributes, MaxNodePairs) },
		func() error { return CheckNodeMeta(n.Meta) },
		func() error { return checkPairs("links", n.Links, MaxNodePairs) },
		n.checkDrivers, n.checkVolumes, n.NodeResources.checkLimits, n.ReservedResources.checkLimits, n.checkAllPairs,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) checkDrivers() error {
	if len(n.Drivers) > maxNodeDrivers {
		return implausible("%d drivers, at most %d are allowed", len(n.Drivers), maxNodeDrivers)
	}
	for name, d := range n.Drivers { // order does not matter: any that is too large will do
		if err := checkShort(short{"driver", name, MaxNodeName}); err != nil {
			return err
		}
		if d == nil {
			continue
		}
		if err := checkPairs("attributes of a driver", d.Attributes, MaxNodePairs); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) checkVolumes() error {
	if len(n.HostVolumes) > maxNodeVolumes {
		return implausible("%d host volumes, at most %d are allowed", len(n.HostVolumes), maxNodeVolumes)
	}
	for name, v := range n.HostVolumes { // order does not matter: any that is too large will do
		if err := checkShort(short{"host volume", name, MaxNodeName}); err != nil {
			return err
		}
		if v == nil {
			continue
		}
		if err := checkShort(short{"host volume", v.Name, MaxNodeName}, short{"host volume", v.ID, MaxNodeName}, short{"path of a host volume", v.Path, MaxNodeValue}); err != nil {
			return err
		}
	}
	return nil
}

// checkAmount checks a quantity.
func checkAmount(what string, n, most int64, unit string) error {
	if n < 0 || n > most {
		return implausible("%s: %d %s, from 0 to %d are allowed", what, n, unit, most)
	}
	return nil
}

func (r *NodeResources) checkLimits() error {
	if r == nil {
		return nil
	}
	if n := len(r.Cpu.ReservableCpuCores); n > maxNodeCores {
		return implausible("%d cores to reserve, at most %d are allowed", n, maxNodeCores)
	}
	for _, a := range []struct {
		what string
		n    int64
		most int64
		unit string
	}{
		{"CPU", r.Cpu.CpuShares, MaxNodeCPU, "MHz"},
		{"memory", r.Memory.MemoryMB, MaxNodeMemoryMB, "MB"},
		{"disk", r.Disk.DiskMB, MaxNodeDiskMB, "MB"},
		{"lowest dynamic port", int64(r.MinDynamicPort), 1<<16 - 1, ""},
		{"highest dynamic port", int64(r.MaxDynamicPort), 1<<16 - 1, ""},
	} {
		if err := checkAmount(a.what, a.n, a.most, a.unit); err != nil {
			return err
		}
	}
	if err := r.checkNetworks(); err != nil {
		return err
	}
	if err := r.checkSlots(); err != nil {
		return err
	}
	return r.checkDevices()
}

func (r *NodeResources) checkNetworks() error {
	if n := len(r.Networks) + len(r.NodeNetworks); n > maxNodeNetworks {
		return implausible("%d networks, at most %d are allowed", n, maxNodeNetworks)
	}
	for _, n := range r.Networks {
		if n == nil {
			continue
		}
		if err := checkShort(
			short{"mode of a network", n.Mode, MaxNodeName}, short{"interface", n.Device, MaxNodeName}, short{"CIDR", n.CIDR, MaxNodeName},
			short{"address", n.IP, MaxNodeName}, short{"host name", n.Hostname, MaxNodeName},
		); err != nil {
			return err
		}
	}
	for _, n := range r.NodeNetworks {
		if n == nil {
			continue
		}
		if err := checkShort(short{"mode of a network", n.Mode, MaxNodeName}, short{"interface", n.Device, MaxNodeName}, short{"MAC address", n.MacAddress, MaxNodeName}); err != nil {
			return err
		}
		if len(n.Addresses) > maxNodeAddresses {
			return implausible("%d addresses of one of the networks, at most %d are allowed", len(n.Addresses), maxNodeAddresses)
		}
		for i := range n.Addresses {
			a := &n.Addresses[i]
			if err := checkShort(
				short{"family of an address", a.Family, MaxNodeName}, short{"host network", a.Alias, MaxNodeName}, short{"address", a.Address, MaxNodeName},
				short{"gateway", a.Gateway, MaxNodeName},
			); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *NodeResources) checkDevices() error {
	if len(r.Devices) > maxDeviceKinds {
		return implausible("%d kinds of devices, at most %d are allowed", len(r.Devices), maxDeviceKinds)
	}
	devices := 0
	for _, d := range r.Devices {
		if d == nil {
			continue // ValidateTopology refuses it
		}
		if devices += len(d.Instances); devices > MaxNodeDevices {
			return implausible("%d devices, at most %d are allowed", devices, MaxNodeDevices)
		}
		if err := d.checkLimits(); err != nil {
			return err
		}
	}
	return r.Topology.checkLimits()
}

func (d *NodeDeviceResource) checkLimits() error {
	if err := checkShort(short{"vendor of a device", d.Vendor, MaxNodeName}, short{"type of a device", d.Type, MaxNodeName}, short{"name of a device", d.Name, MaxNodeName}); err != nil {
		return err
	}
	if len(d.Attributes) > MaxNodePairs {
		return implausible("%d attributes of a device, at most %d are allowed", len(d.Attributes), MaxNodePairs)
	}
	for name, a := range d.Attributes { // order does not matter: any that is too long will do
		if err := checkShort(short{"attribute of a device", name, MaxNodeKey}); err != nil {
			return err
		}
		if a == nil {
			continue
		}
		if err := checkShort(short{"unit of a device's attribute", a.Unit, MaxNodeName}); err != nil {
			return err
		}
		if a.StringVal != nil && len(*a.StringVal) > MaxNodeValue {
			return implausible("attribute %q of a device: %d bytes, at most %d are allowed", name, len(*a.StringVal), MaxNodeValue)
		}
	}
	for _, one := range d.Instances {
		if one == nil {
			continue
		}
		if err := checkShort(short{"ID of a device", one.ID, MaxNodeName}); err != nil {
			return err
		}
		if one.Locality != nil {
			if err := checkShort(short{"PCI address of a device", one.Locality.PciBusID, MaxNodeName}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *NodeTopology) checkLimits() error {
	if t == nil {
		return nil
	}
	if len(t.Cells) > MaxTopologyCell {
		return implausible("%d cells of the devices' topology, at most %d are allowed", len(t.Cells), MaxTopologyCell)
	}
	for _, c := range t.Cells {
		if c == nil {
			continue
		}
		if err := checkShort(short{"ID of a cell", c.ID, MaxNodeName}, short{"level of a cell", c.Level, MaxNodeName}, short{"parent of a cell", c.Parent, MaxNodeName}); err != nil {
			return err
		}
	}
	for _, l := range t.Links {
		if l == nil {
			continue
		}
		if err := checkShort(short{"link of a device", l.A, MaxNodeName}, short{"link of a device", l.B, MaxNodeName}, short{"kind of a link", l.Kind, MaxNodeName}); err != nil {
			return err
		}
	}
	return nil
}

func (r *NodeReservedResources) checkLimits() error {
	if r == nil {
		return nil
	}
	if r.Cpu.CpuShares > MaxNodeCPU {
		return implausible("reserved CPU: %d MHz, from 0 to %d are allowed", r.Cpu.CpuShares, MaxNodeCPU)
	}
	if n := len(r.Cpu.ReservedCpuCores); n > maxNodeCores {
		return implausible("%d reserved cores, at most %d are allowed", n, maxNodeCores)
	}
	if err := checkAmount("reserved memory", r.Memory.MemoryMB, MaxNodeMemoryMB, "MB"); err != nil {
		return err
	}
	if err := checkAmount("reserved disk", r.Disk.DiskMB, MaxNodeDiskMB, "MB"); err != nil {
		return err
	}
	return checkShort(short{"reserved ports", r.Networks.ReservedHostPorts, MaxNodeValue})
}

// CutTexts cuts the node's texts for people to what there is room for. It changes the node.
func (n *Node) CutTexts() {
	n.StatusDescription, n.DiskFull = CutText(n.StatusDescription, MaxNodeText), CutText(n.DiskFull, MaxNodeText)
	for _, d := range n.Drivers { // order does not matter: all are cut
		if d != nil {
			d.HealthDescription = CutText(d.HealthDescription, MaxNodeText)
		}
	}
	if n.NodeResources == nil {
		return
	}
	for _, d := range n.NodeResources.Devices {
		if d == nil {
			continue
		}
		for _, one := range d.Instances {
			if one != nil {
				one.HealthDescription = CutText(one.HealthDescription, MaxNodeText)
			}
		}
	}
}

// CheckNodeEvents returns an error if events are such as no honest node sends.
func CheckNodeEvents(events []*NodeEvent) error {
	if len(events) > maxNodeEventsSent {
		return implausible("%d events, at most %d are allowed", len(events), maxNodeEventsSent)
	}
	for _, e := range events {
		if e == nil {
			return implausible("an event is empty")
		}
		if err := checkShort(short{"subsystem of an event", e.Subsystem, 2 * MaxNodeName}); err != nil {
			return err
		}
		if len(e.Details) > maxEventDetails {
			return implausible("an event with %d details, at most %d are allowed", len(e.Details), maxEventDetails)
		}
		for k := range e.Details { // order does not matter: any that is too long will do
			if len(k) > MaxNodeKey {
				return implausible("detail %q of an event: a name of %d bytes, at most %d are allowed", clip(k), len(k), MaxNodeKey)
			}
		}
	}
	return nil
}

// CutNodeEvents returns the latest MaxNodeEvents events with their texts cut to what there is room for. It changes the events.
func CutNodeEvents(events []*NodeEvent) []*NodeEvent {
	if over := len(events) - MaxNodeEvents; over > 0 {
		events = events[over:]
	}
	for _, e := range events {
		e.Message = CutText(e.Message, MaxNodeText)
		for k, v := range e.Details { // order does not matter: all are cut
			if len(v) > MaxNodeText {
				e.Details[k] = CutText(v, MaxNodeText)
			}
		}
	}
	return events
}

// CheckLimits returns an error if there are more keys than a ring has.
func (k *GossipKeys) CheckLimits() error {
	if k == nil {
		return nil
	}
	if len(k.Prints) > maxGossipKeys {
		return implausible("%d keys of the gossip, at most %d are allowed", len(k.Prints), maxGossipKeys)
	}
	for _, p := range k.Prints {
		if len(p) > MaxNodeName {
			return implausible("a key's fingerprint of %d bytes, at most %d are allowed", len(p), MaxNodeName)
		}
	}
	return nil
}

// maxGossipKeys bounds the keys that a client claims to have.
const maxGossipKeys = 256

// CutText returns a text of at most so many bytes. Of a longer one it keeps the beginning and the end, because an error has its cause at
// its end, and states between them how long it was.
func CutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	mark := fmt.Sprintf(" … (cut from %d bytes) … ", len(text))
	room := most - len(mark)
	if room <= 0 {
		return strings.ToValidUTF8(text[:most], "")
	}
	tail := room / 4
	return strings.ToValidUTF8(text[:room-tail], "") + mark + strings.ToValidUTF8(text[len(text)-tail:], "")
}
