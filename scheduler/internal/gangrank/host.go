package gangrank

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// HostOf returns where a running member is reached.
func HostOf(w *world.World, a *structs.Allocation) string {
	if g := a.Gang; g.Rank < len(g.Hosts) && g.Hosts[g.Rank] != "" {
		return g.Hosts[g.Rank]
	}
	var ports []structs.PortMapping
	if a.AllocatedResources != nil {
		ports = a.AllocatedResources.Shared.Ports
	}
	return HostPortOf(w, a.NodeID, ports)
}

// HostPortOf returns where a member on a node is reached: the node's address, with the member's first port if it has any.
func HostPortOf(w *world.World, nodeID string, ports []structs.PortMapping) string {
	n, known := w.Node(nodeID)
	if !known {
		return nodeID
	}
	return n.HostPort(ports)
}
