package feasible

import (
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// cellName is a cell in words: most are called by their levels.
func (d *Domain) cellName() string {
	if strings.HasPrefix(d.Name, d.Level+"-") {
		return d.Name
	}
	return d.Level + " " + d.Name
}

// Domain is a cell that a topology keeps a gang under: nodes, or devices of one node.
type Domain struct {
	Level string
	// Key and value are of the nodes' meta; NodeID is set instead at level node and below.
	Key, Value string
	NodeID     string
	// Devices are those under a cell within the node; nil: all. Above is the node then.
	Devices map[string]bool
	Above   *Domain
	Name    string // for people
	outside string // why other nodes are filtered
}

// NewDomain makes a domain, with what is recorded of the nodes outside of it.
func NewDomain(d Domain) *Domain {
	d.outside = "outside of " + d.String()
	return &d
}

func (d *Domain) String() string {
	if d.Devices != nil {
		return d.cellName()
	}
	return d.Level + " " + d.Name
}

// contains reports whether a node may be under the cell, by what all nodes of its class have in
// common.
func (d *Domain) contains(n *structs.Node) bool {
	return d.NodeID != "" || (d.Value != "" && n.Meta[d.Key] == d.Value)
}
