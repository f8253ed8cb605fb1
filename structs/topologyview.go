package structs

import (
	"slices"
	"strings"
)

// Requests and answers about the topology: who holds which device, and what is free.
type (
	// TopologyRequest requests the cells of nodes. A page has at most 1,000 nodes, or
	// 128 with details, however many are requested: QueryMeta.NextToken is the next.
	TopologyRequest struct {
		// NodeID requests one node, with details; empty: the nodes that QueryOptions select.
		NodeID string
		// Details requests every cell and device, not only their numbers.
		Details bool
		QueryOptions
	}
	// TopologyReply answers it; Topology is nil when there is no such node.
	TopologyReply struct {
		Topology *Topology
		QueryMeta
	}
)

// Topology is nodes with their cells, and the cells above them. All numbers are those
// of the nodes in it: who reads several pages adds them up.
type Topology struct {
	// Levels are those that occur, and those of the site, lowest first.
	Levels []string
	// Sites are the cells above nodes, each after the one around it.
	Sites []*TopologySite
	// Nodes are ordered by ID, those without devices too.
	Nodes []*TopologyNode
	DeviceCounts
	FreeCells []FreeCells
	// Owners are the namespaces that own devices, by name: all of the region, or of one node those that have some there.
	Owners []OwnerCounts `json:",omitempty"`
}

// AddOwner adds the numbers of an owner, of other nodes. Owned is that of the region, and is not added.
func (t *Topology) AddOwner(more OwnerCounts) { t.Owners = MergeOwner(t.Owners, more) }

// MergeOwner adds the numbers of an owner to a list in the order of their names.
func MergeOwner(list []OwnerCounts, more OwnerCounts) []OwnerCounts {
	at, found := slices.BinarySearchFunc(list, more.Owner, func(c OwnerCounts, name string) int { return strings.Compare(c.Owner, name) })
	if !found {
		return slices.Insert(list, at, more)
	}
	list[at].Owned = max(list[at].Owned, more.Owned)
	list[at].Bound += more.Bound
	list[at].Guaranteed += more.Guaranteed
	list[at].Lent += more.Lent
	return list
}

// AddFree adds free cells to those of the same kind, level and size.
func (t *Topology) AddFree(more FreeCells) { t.FreeCells = MergeFree(t.FreeCells, more) }

// MergeFree adds free cells to those of a list that are of the same kind, level and size.
func MergeFree(list []FreeCells, more FreeCells) []FreeCells {
	for i := range list {
		if list[i].Device == more.Device && list[i].Level == more.Level && list[i].Size == more.Size {
			list[i].Count += more.Count
			return list
		}
	}
	return append(list, more)
}

// DeviceCounts counts devices. One can be unhealthy and used; else each counts once
// beside Devices.
type DeviceCounts struct {
	Devices   int // all
	Used      int // held, whole or in part
	Free      int // whole, healthy, and on a node that takes work
	Unhealthy int
	Withheld  int // whole and healthy, but on a node that takes no work
}

// Add adds other's numbers.
func (c *DeviceCounts) Add(other DeviceCounts) {
	c.Devices += other.Devices
	c.Used += other.Used
	c.Free += other.Free
	c.Unhealthy += other.Unhealthy
	c.Withheld += other.Withheld
}

// OwnerCounts counts the devices of a namespace that owns some (semantics part 2, "Virtual clusters"). All but Owned are those of
// the nodes in the answer.
type OwnerCounts struct {
	Owner      string // the namespace
	Owned      int    `json:",omitempty"` // all that it owns; not stated with single nodes
	Bound      int    // in cells that are bound for it
	Guaranteed int    // that it uses by what it owns
	Lent       int    // in cells that are bound for it, and used by other namespaces
}

// CellOwner is for whom a cell is bound.
type CellOwner struct {
	Owner  string `json:",omitempty"` // the namespace; empty: nobody
	Pinned bool   `json:",omitempty"` // whether it uses the cell or not
	// Away: the node, or one of them, takes no work, and the cell is not bound until it does.
	Away bool `json:",omitempty"`
}

// FreeCells counts the free cells of a kind of device, level and size. A free cell has
// only devices that are healthy and that nobody holds, and none around it within its
// node is free too, so that no device counts twice.
type FreeCells struct {
	Device string // vendor/type/name
	Level  string
	Size   int // devices in each
	Count  int
}

// TopologySite is a cell above nodes.
type TopologySite struct {
	ID     string // unique in the answer
	Level  string
	Name   string // the value in the nodes' meta
	Parent string // ID of the cell around it; empty: none
	Nodes  int    // nodes in it, in the answer
	DeviceCounts
	CellOwner // if this very cell is bound
}

// TopologyNode is a node with what is free and in use on it. Its numbers are those of
// DeviceCounts, in fields of its own so that filters can name them.
type TopologyNode struct {
	ID                    string
	Name                  string
	Datacenter            string
	NodePool              string
	NodeClass             string
	Status                string
	SchedulingEligibility string
	Drain                 bool
	Site                  string // ID of the cell right above it; empty: none
	Devices               int
	Used                  int
	Free                  int
	Unhealthy             int
	Withheld              int
	FreeCells             []FreeCells
	// Owners are the namespaces that own cells with devices here, or use some here by what they own, by name.
	Owners []OwnerCounts `json:",omitempty"`
	// Reservation is room that the node keeps for a request that waits.
	Reservation *Reservation `json:",omitempty"`
	// Workflows are the reservations of workflows that hold room on the node.
	Workflows []*ReservedPart `json:",omitempty"`
	// Cells is the tree, its root of level "node"; with details only.
	Cells *CellView     `json:",omitempty"`
	Links []*DeviceLink `json:",omitempty"`
}

// ReservedPart is what a workflow has reserved of a node. Used, Lent, Idle and Lost add up to Reserved, of the processor in MHz, those of whole cores included.
type ReservedPart struct {
	Namespace string
	Workflow  string // its name
	// Pending: not all of what the workflow reserves is free, and what comes free on the node stays free.
	Pending  bool `json:",omitempty"`
	Reserved WorkflowResources
	Used     WorkflowResources
	Lent     WorkflowResources
	Idle     WorkflowResources
	// Lost is what is not used and lost, as the node is not ready any more or not of the workflow's node pool, and GPUs that are bad.
	Lost WorkflowResources
	// DeviceIDs are the devices that are reserved; none: no certain ones.
	DeviceIDs []string `json:",omitempty"`
}

// Counts are the node's numbers.
func (n *TopologyNode) Counts() DeviceCounts {
	return DeviceCounts{Devices: n.Devices, Used: n.Used, Free: n.Free, Unhealthy: n.Unhealthy, Withheld: n.Withheld}
}

// CellView is a cell with all that is in it.
type CellView struct {
	ID    string // as the node names it; the root's is the node's
	Level string
	// FreeCell: all that is in it is healthy and nobody's, and the node takes work.
	FreeCell bool
	DeviceCounts
	CellOwner               // if this very cell is bound, or, of a node, one above it
	Cells     []*CellView   `json:",omitempty"`
	Members   []*DeviceView `json:",omitempty"` // the devices directly below
}

// DeviceView is a device, who owns it, and who holds it.
type DeviceView struct {
	ID                string
	Device            string // vendor/type/name
	Level             string // "gpu", or "mig" for a slice of one
	Healthy           bool
	HealthDescription string         `json:",omitempty"`
	PciBusID          string         `json:",omitempty"`
	FreeShare         int            // thousandths that nobody holds
	CellOwner                        // of the bound cell that it is in: itself, or one around it
	Lent              bool           `json:",omitempty"` // used by other namespaces than the owner
	Usages            []*DeviceUsage `json:"Holders"`
}

// InUse reports whether somebody holds the device, in whole or in part. What is suspended does, too: its processes keep memory there.
func (d *DeviceView) InUse() bool { return len(d.Usages) > 0 }

// DeviceUsage is a task that holds a device.
type DeviceUsage struct {
	AllocID   string
	Namespace string
	Name      string // of the allocation: job.group[index]
	JobID     string
	Group     string
	Task      string
	Share     int // thousandths; 1000 is all of it
	// Class is by what right it is held, one of the Class constants; empty while nobody owns anything.
	Class string `json:",omitempty"`
	// Suspended: the allocation is suspended, and keeps the device, on which it goes on.
	Suspended bool `json:",omitempty"`
	// Level is the lowest level under which all devices of this request are.
	Level string `json:",omitempty"`
	// GangRank and GangSize are set on a member of a gang.
	GangRank int `json:",omitempty"`
	GangSize int `json:",omitempty"`
}
