package structs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Node statuses, as Nomad names them.
const (
	NodeStatusInit         = "initializing"
	NodeStatusReady        = "ready"
	NodeStatusDown         = "down"
	NodeStatusDisconnected = "disconnected"
)

// Scheduling eligibility of a node.
const (
	NodeEligible   = "eligible"
	NodeIneligible = "ineligible"
)

// NodePoolDefault and NodePoolAll are the two pools that always exist: every node
// without a stated pool is in the first, and every node is in the second.
const (
	NodePoolDefault = "default"
	NodePoolAll     = "all"
)

// Node is a machine as its client reports it. JSON names are Nomad's.
type Node struct {
	ID         string // UUID, minted by the client once
	SecretID   string // proves that a call comes from this node; never in a listing or an answer
	Name       string
	Datacenter string
	NodeClass  string
	NodePool   string
	HTTPAddr   string
	TLSEnabled bool

	Attributes map[string]string
	Meta       map[string]string
	Links      map[string]string
	// ComputedClass groups nodes that no constraint can distinguish but by a
	// unique.* attribute; derived from the other fields by ComputeClass.
	ComputedClass string

	NodeResources     *NodeResources
	ReservedResources *NodeReservedResources
	Drivers           map[string]*DriverInfo
	HostVolumes       map[string]*HostVolumeInfo

	Status            string
	StatusDescription string
	// DiskFull is why the node's disk counts as full, as its client has found: it takes no new work, and what
	// runs goes on. Empty: there is room.
	DiskFull        string `json:",omitempty"`
	StatusUpdatedAt int64  // Unix seconds
	// KeptUntil (Unix seconds) is until when the work of a disconnected node is kept whose groups do not state how
	// long: it is still heard by gossip. 0: such work is lost.
	KeptUntil             int64 `json:",omitempty"`
	SchedulingEligibility string
	// DrainStrategy is set while the node is being drained.
	DrainStrategy *DrainStrategy
	LastDrain     *DrainMetadata
	Events        []*NodeEvent // the latest MaxNodeEvents, oldest first

	CreateIndex uint64
	ModifyIndex uint64
}

// MaxNodeEvents bounds a node's list of events.
const MaxNodeEvents = 10

// NodeResources is what a node has.
type NodeResources struct {
	Cpu      NodeCpuResources
	Memory   NodeMemoryResources
	Disk     NodeDiskResources
	Networks []*NetworkResource
	// NodeNetworks names the host networks and their addresses.
	NodeNetworks []*NodeNetworkResource
	Devices      []*NodeDeviceResource
	// Topology is the tree above the devices; nil: it follows from their Locality.
	Topology       *NodeTopology `json:",omitempty"`
	MinDynamicPort int
	MaxDynamicPort int
	// Slots are how many slots of each type the node offers to calendars; nil: see Node.AddSlots.
	Slots map[string]int `json:",omitempty" codec:",omitempty"`
}

// NodeCpuResources is a node's processors.
type NodeCpuResources struct {
	CpuShares          int64    // MHz over all cores
	TotalCpuCores      uint16   // how many cores
	ReservableCpuCores []uint16 // ids of cores that tasks may own through `cores`
}

// MHzPerCore is what one core counts when a task requests whole cores.
func (c NodeCpuResources) MHzPerCore() int64 {
	if c.TotalCpuCores == 0 {
		return 0
	}
	return c.CpuShares / int64(c.TotalCpuCores)
}

// NodeMemoryResources is a node's memory in MiB.
type NodeMemoryResources struct{ MemoryMB int64 }

// NodeDiskResources is a node's disk for allocations in MiB.
type NodeDiskResources struct{ DiskMB int64 }

// NodeNetworkResource is a network interface of a node.
type NodeNetworkResource struct {
	_struct sparse `entry:",omitempty"`

	Mode       string
	Device     string
	MacAddress string
	Speed      int
	Addresses  []NodeNetworkAddress
}

// NodeNetworkAddress is one address of an interface; Alias names its host network.
type NodeNetworkAddress struct {
	Family  string
	Alias   string
	Address string
	Gateway string
}

// NodeDeviceResource is a group of like devices of a node (vendor/type/name).
type NodeDeviceResource struct {
	Vendor     string
	Type       string
	Name       string
	Instances  []*NodeDevice
	Attributes map[string]*Attribute
}

// NodeDevice is one device, for example a GPU.
type NodeDevice struct {
	_struct sparse `entry:",omitempty"`

	ID                string
	Healthy           bool
	HealthDescription string
	Locality          *NodeDeviceLocality
}

// NodeDeviceLocality is where a device sits on its node.
type NodeDeviceLocality struct {
	PciBusID string
	NUMANode int `json:",omitempty"` // -1: unknown
	Socket   int `json:",omitempty"`
	Switch   int `json:",omitempty"` // PCIe switch, numbered within the node
}

// Attribute is a typed attribute with a unit; exactly one value is set.
type Attribute struct {
	FloatVal  *float64 `json:"Float,omitempty"`
	IntVal    *int64   `json:"Int,omitempty"`
	StringVal *string  `json:"String,omitempty"`
	BoolVal   *bool    `json:"Bool,omitempty"`
	Unit      string   `json:",omitempty"`
}

// NodeReservedResources is what a node keeps for itself.
type NodeReservedResources struct {
	Cpu      NodeReservedCpuResources
	Memory   NodeMemoryResources
	Disk     NodeDiskResources
	Networks NodeReservedNetworkResources
}

// NodeReservedCpuResources is the processor share that a node keeps for itself.
type NodeReservedCpuResources struct {
	CpuShares        uint64
	ReservedCpuCores []uint16
}

// NodeReservedNetworkResources lists the ports that tasks never get ("22,80,8500-8600").
type NodeReservedNetworkResources struct{ ReservedHostPorts string }

// DriverInfo is what a node's driver reports about itself.
type DriverInfo struct {
	Attributes        map[string]string
	Detected          bool
	Healthy           bool
	HealthDescription string
	UpdateTime        time.Time
}

// HostVolumeInfo is a directory that a node offers as a volume.
type HostVolumeInfo struct {
	Name     string
	Path     string
	ReadOnly bool
	ID       string
}

// NodeEvent is one line of a node's history.
type NodeEvent struct {
	Message     string
	Subsystem   string
	Details     map[string]string
	Timestamp   time.Time
	CreateIndex uint64
}

// DrainSpec is what an operator requests of a drain.
type DrainSpec struct {
	// Deadline after which what still runs is stopped: 0 none, negative at once.
	Deadline         time.Duration
	IgnoreSystemJobs bool
}

// DrainStrategy is a drain that is going on.
type DrainStrategy struct {
	DrainSpec
	ForceDeadline time.Time // zero: none
	StartedAt     time.Time
}

// DrainMetadata is a record of a node's last drain.
type DrainMetadata struct {
	StartedAt  time.Time
	UpdatedAt  time.Time
	Status     string // draining, complete, canceled
	AccessorID string
	Meta       map[string]string
}

// Ready reports whether new work may be placed on the node.
func (n *Node) Ready() bool {
	return n.Status == NodeStatusReady && n.SchedulingEligibility != NodeIneligible && n.DrainStrategy == nil && n.DiskFull == ""
}

// Terminal reports whether the node's allocations are lost.
func (n *Node) Terminal() bool { return n.Status == NodeStatusDown }

// InPool reports whether the node belongs to a pool.
func (n *Node) InPool(pool string) bool {
	return pool == NodePoolAll || pool == n.NodePool || (n.NodePool == "" && pool == NodePoolDefault)
}

// Copy is deep in everything that a caller may change.
func (n *Node) Copy() *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Attributes = maps.Clone(n.Attributes)
	c.Meta = maps.Clone(n.Meta)
	c.Links = maps.Clone(n.Links)
	c.Drivers = maps.Clone(n.Drivers)
	c.HostVolumes = maps.Clone(n.HostVolumes)
	c.Events = slices.Clone(n.Events)
	if n.NodeResources != nil {
		r := *n.NodeResources
		c.NodeResources = &r
	}
	if n.ReservedResources != nil {
		r := *n.ReservedResources
		c.ReservedResources = &r
	}
	if n.DrainStrategy != nil {
		d := *n.DrainStrategy
		c.DrainStrategy = &d
	}
	return &c
}

// Variable is what ${name} stands for in jobs: attr.…, meta.… and node.…; false: the node has no such value.
func (n *Node) Variable(name string) (value string, ok bool) {
	if key, is := strings.CutPrefix(name, "attr."); is {
		value, ok = n.Attributes[key]
		return value, ok
	}
	if key, is := strings.CutPrefix(name, "meta."); is {
		value, ok = n.Meta[key]
		return value, ok
	}
	switch name {
	case "node.unique.id":
		return n.ID, true
	case "node.unique.name":
		return n.Name, true
	case "node.datacenter":
		return n.Datacenter, true
	case "node.class":
		return n.NodeClass, true
	case "node.pool":
		return cmp.Or(n.NodePool, NodePoolDefault), true
	}
	return "", false
}

// Sanitize returns a copy without the secret.
func (n *Node) Sanitize() *Node {
	c := *n
	c.SecretID = ""
	return &c
}

// Forever is until when an allocation is awaited that nothing may ever stand for: until its node is heard of again, somebody stops
// it, or the node is purged.
var Forever = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// AwaitedUntil is until when an allocation of a group counts as there while its node is disconnected; zero: not at all, [Forever]:
// without end. A nil group states nothing.
func (n *Node) AwaitedUntil(g *TaskGroup) time.Time {
	since := time.Unix(n.StatusUpdatedAt, 0)
	if g != nil && g.Disconnect != nil {
		switch {
		case g.Disconnect.LostAfter > 0:
			return since.Add(g.Disconnect.LostAfter)
		case !g.Disconnect.Replace && g.Disconnect.StopOnClientAfter > 0: // its client has ended it then
			return since.Add(g.Disconnect.StopOnClientAfter)
		case !g.Disconnect.Replace:
			return Forever
		}
	}
	if n.KeptUntil == 0 {
		return time.Time{}
	}
	until := time.Unix(n.KeptUntil, 0)
	if g != nil && g.Disconnect != nil && g.Disconnect.StopOnClientAfter > 0 { // its client ends it then
		if stopped := since.Add(g.Disconnect.StopOnClientAfter); stopped.Before(until) {
			return stopped
		}
	}
	return until
}
