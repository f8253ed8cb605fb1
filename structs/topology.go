package structs

import (
	"errors"
	"fmt"
	"slices"
)

// Levels of a node's device tree, as fingerprints name them, lowest first. A level
// that a machine lacks is left out; others may stand between them.
const (
	LevelMIG    = "mig"    // a slice of a GPU
	LevelGPU    = "gpu"    // one device
	LevelNVLink = "nvlink" // devices that are all linked directly
	LevelPCIe   = "pcie"   // devices under one PCIe switch
	LevelSocket = "socket" // devices of one NUMA node
	LevelNode   = "node"   // all of a node's devices
)

// Limits of a reported topology: what is larger is no machine, but an error.
const (
	MaxNodeDevices  = 4096 // devices of a node
	MaxTopologyCell = 8192 // cells of a node
)

// NodeTopology is the tree between a node and its devices, as its client reports it.
// Each device is under exactly one cell, or under the node itself.
type NodeTopology struct {
	Cells []*TopologyCell
	Links []*DeviceLink `json:",omitempty"`
}

// TopologyCell is an inner vertex of the tree: a socket, a PCIe switch, a GPU that is
// cut into MIG slices.
type TopologyCell struct {
	ID      string   // unique on the node, such as "socket-0", "pcie-3", or a GPU's UUID
	Level   string   // one of the Level constants, or the site's own word
	Parent  string   // ID of the cell above; empty: the node
	Devices []string // IDs of the devices directly below
}

// DeviceLink is a direct connection of two devices, which a transfer between them
// needs no switch or memory for.
type DeviceLink struct {
	A, B  string // device IDs
	Kind  string // "nvlink"
	Lanes int    // how many links
}

// ValidateTopology refuses a topology that is no tree over the node's devices: a cell that is
// its own ancestor, a device under two parents, an unknown parent or device. The error
// lists everything wrong.
func (r *NodeResources) ValidateTopology() error {
	if r == nil {
		return nil
	}
	known, err := r.deviceIDs()
	if err != nil || r.Topology == nil {
		return err
	}
	return errors.Join(r.Topology.checkCells(known), r.Topology.checkLinks(known))
}

// deviceIDs returns all devices that have a place in the tree.
func (r *NodeResources) deviceIDs() (map[string]bool, error) {
	known := map[string]bool{}
	var errs []error
	for _, d := range r.Devices {
		if d == nil {
			errs = append(errs, errors.New("topology: a group of devices is empty"))
			continue
		}
		for _, one := range d.Instances {
			switch {
			case one == nil || one.ID == "":
				errs = append(errs, fmt.Errorf("topology: a device of %s/%s/%s has no ID", d.Vendor, d.Type, d.Name))
			case known[one.ID]:
				errs = append(errs, fmt.Errorf("topology: device %q is reported twice; each needs an ID of its own", clip(one.ID)))
			default:
				known[one.ID] = true
			}
		}
	}
	if len(known) > MaxNodeDevices {
		errs = append(errs, fmt.Errorf("topology: %d devices; a node has at most %d", len(known), MaxNodeDevices))
	}
	return known, errors.Join(errs...)
}

func (t *NodeTopology) checkCells(known map[string]bool) error {
	if len(t.Cells) > MaxTopologyCell {
		return fmt.Errorf("topology: %d cells; a node has at most %d", len(t.Cells), MaxTopologyCell)
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("topology: "+format, args...)) }
	cells := map[string]*TopologyCell{}
	for _, c := range t.Cells {
		switch {
		case c == nil || c.ID == "" || !isWord(c.Level, true):
			bad("a cell needs an ID and a level such as %q", LevelPCIe)
		case cells[c.ID] != nil:
			bad("cell %q is reported twice", clip(c.ID))
		default:
			cells[c.ID] = c
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	under := map[string]string{}
	for _, c := range t.Cells {
		if c.Parent != "" && cells[c.Parent] == nil {
			bad("the parent of cell %q, %q, is not reported", clip(c.ID), clip(c.Parent))
		}
		for _, id := range c.Devices {
			switch other, taken := under[id]; {
			case !known[id]:
				bad("cell %q holds device %q, which the node does not have", clip(c.ID), clip(id))
			case taken:
				bad("device %q is under two parents, %q and %q", clip(id), clip(other), clip(c.ID))
			}
			under[id] = c.ID
		}
	}
	errs = append(errs, cycles(t.Cells, cells)...)
	return errors.Join(errs...)
}

// cycles names a cell of each cycle.
func cycles(list []*TopologyCell, cells map[string]*TopologyCell) (errs []error) {
	const walking, done = 1, 2
	seen := map[string]int{}
	for _, c := range list {
		var path []string
		at := c
		for at != nil && seen[at.ID] == 0 {
			seen[at.ID] = walking
			path = append(path, at.ID)
			at = cells[at.Parent]
		}
		if at != nil && seen[at.ID] == walking && slices.Contains(path, at.ID) {
			errs = append(errs, fmt.Errorf("topology: cell %q is above itself; the cells must form a tree", clip(at.ID)))
		}
		for _, id := range path {
			seen[id] = done
		}
	}
	return errs
}

func (t *NodeTopology) checkLinks(known map[string]bool) error {
	for _, l := range t.Links {
		if l == nil || !known[l.A] || !known[l.B] || l.A == l.B {
			return errors.New("topology: a link must join two devices of the node")
		}
	}
	return nil
}

// AllocGang is what a member of a gang knows of its peers. They are those that were
// placed together with it, and those that ran already.
type AllocGang struct {
	Rank  int      // its own number, from 0
	Size  int      // how many there are
	Hosts []string // by rank: "address:port", or "address" of a group without ports
	// Level is the lowest level of the topology under which all of them are; empty
	// if that is above all levels.
	Level string `json:",omitempty"`
}

// TopologyLevel is a level above nodes, as the site configures it.
type TopologyLevel struct {
	Name string // such as "rack"
	Meta string // nodes with equal values of this key of their meta share a cell
}
