package search

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// pickPorts takes the static ports that are requested, and dynamic ones from the
// node's range, from a place that rng draws on.
func (g *Grant) pickPorts(a *Request, n *world.NodeState, rng *random.Numbers) string {
	for _, want := range a.Networks {
		device, ip := DefaultAddress(n.Node)
		got := *want
		got.Device, got.IP = device, ip
		got.ReservedPorts = slices.Clone(want.ReservedPorts)
		got.DynamicPorts = slices.Clone(want.DynamicPorts)
		if want.Mode != structs.NetworkModeNone {
			for i := range got.ReservedPorts {
				if what := g.PickStatic(&got.ReservedPorts[i], n, ip); what != "" {
					return what
				}
			}
			for i := range got.DynamicPorts {
				if what := g.PickDynamic(&got.DynamicPorts[i], n, ip, rng); what != "" {
					return what
				}
			}
		}
		g.Networks = append(g.Networks, &got)
	}
	return ""
}

// DefaultAddress is the interface and address of a node that a port is of when
// it names no host network.
func DefaultAddress(n *structs.Node) (device, ip string) {
	if n.NodeResources == nil {
		return "", ""
	}
	for _, net := range n.NodeResources.Networks {
		if net.IP != "" {
			return net.Device, net.IP
		}
	}
	for _, net := range n.NodeResources.NodeNetworks {
		for _, addr := range net.Addresses {
			if addr.Alias == "default" {
				return net.Device, addr.Address
			}
		}
	}
	return "", ""
}

// PortAddress is the address that a port is of; false: the node has no such
// host network.
func PortAddress(n *structs.Node, hostNetwork, fallback string) (string, bool) {
	if hostNetwork == "" || hostNetwork == "default" {
		return fallback, true
	}
	if n.NodeResources == nil {
		return "", false
	}
	for _, net := range n.NodeResources.NodeNetworks {
		for _, addr := range net.Addresses {
			if addr.Alias == hostNetwork {
				return addr.Address, true
			}
		}
	}
	return "", false
}

func lacksHostNetwork(name string) string { return "network: no host network " + name }

// PickStatic takes a port that the request names. It returns what is lacking, "" if nothing is.
func (g *Grant) PickStatic(p *structs.Port, n *world.NodeState, fallback string) string {
	ip, ok := PortAddress(n.Node, p.HostNetwork, fallback)
	if !ok {
		return lacksHostNetwork(p.HostNetwork)
	}
	at := world.HostPort{Port: p.Value, IP: ip}
	if !p.IgnoreCollision && (n.PortTaken(at) || g.has(at)) {
		return world.PortInUse(p.Value)
	}
	g.givePort(p, at)
	return ""
}

// PickDynamic takes any free dynamic port. It returns what is lacking, "" if nothing is.
func (g *Grant) PickDynamic(p *structs.Port, n *world.NodeState, fallback string, rng *random.Numbers) string {
	ip, ok := PortAddress(n.Node, p.HostNetwork, fallback)
	if !ok {
		return lacksHostNetwork(p.HostNetwork)
	}
	low, size := n.Capacity.MinDynamic, n.Capacity.MaxDynamic-n.Capacity.MinDynamic+1
	if size <= 0 {
		return world.LacksDynamic
	}
	start := rng.Below(size)
	for i := range size {
		at := world.HostPort{Port: low + (start+i)%size, IP: ip}
		if !n.PortTaken(at) && !g.has(at) {
			g.givePort(p, at)
			return ""
		}
	}
	return world.LacksDynamic
}

// has reports whether the same instance already got a port.
func (g *Grant) has(at world.HostPort) bool { return slices.ContainsFunc(g.Usage.Ports, at.Collides) }

func (g *Grant) givePort(p *structs.Port, at world.HostPort) {
	p.Value = at.Port
	to := p.To
	if to == -1 {
		to = at.Port
	}
	if !p.IgnoreCollision {
		g.Usage.Ports = append(g.Usage.Ports, at)
	}
	g.Ports = append(g.Ports, structs.PortMapping{Label: p.Label, Value: at.Port, To: to, HostIP: at.IP})
}
