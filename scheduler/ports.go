package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// pickPorts takes the static ports that are asked for, and dynamic ones from the
// node's range, from a place that rng gives on.
func (g *grant) pickPorts(a *ask, n *nodeState, rng *random) string {
	for _, want := range a.networks {
		device, ip := defaultAddress(n.node)
		got := *want
		got.Device, got.IP = device, ip
		got.ReservedPorts = slices.Clone(want.ReservedPorts)
		got.DynamicPorts = slices.Clone(want.DynamicPorts)
		if want.Mode != structs.NetworkModeNone {
			for i := range got.ReservedPorts {
				if what := g.pickStatic(&got.ReservedPorts[i], n, ip); what != "" {
					return what
				}
			}
			for i := range got.DynamicPorts {
				if what := g.pickDynamic(&got.DynamicPorts[i], n, ip, rng); what != "" {
					return what
				}
			}
		}
		g.networks = append(g.networks, &got)
	}
	return ""
}

// defaultAddress is the interface and address of a node that a port is of when
// it names no host network.
func defaultAddress(n *structs.Node) (device, ip string) {
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

// portAddress is the address that a port is of; false: the node has no such
// host network.
func portAddress(n *structs.Node, hostNetwork, fallback string) (string, bool) {
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

func (g *grant) pickStatic(p *structs.Port, n *nodeState, fallback string) string {
	ip, ok := portAddress(n.node, p.HostNetwork, fallback)
	if !ok {
		return lacksHostNetwork(p.HostNetwork)
	}
	at := hostPort{p.Value, ip}
	if !p.IgnoreCollision && (n.portTaken(at) || g.has(at)) {
		return portInUse(p.Value)
	}
	g.givePort(p, at)
	return ""
}

func (g *grant) pickDynamic(p *structs.Port, n *nodeState, fallback string, rng *random) string {
	ip, ok := portAddress(n.node, p.HostNetwork, fallback)
	if !ok {
		return lacksHostNetwork(p.HostNetwork)
	}
	low, size := n.has.minDynamic, n.has.maxDynamic-n.has.minDynamic+1
	if size <= 0 {
		return lacksDynamic
	}
	start := rng.below(size)
	for i := range size {
		at := hostPort{low + (start+i)%size, ip}
		if !n.portTaken(at) && !g.has(at) {
			g.givePort(p, at)
			return ""
		}
	}
	return lacksDynamic
}

// has tells whether the same instance already got a port.
func (g *grant) has(at hostPort) bool { return slices.ContainsFunc(g.use.ports, at.collides) }

func (g *grant) givePort(p *structs.Port, at hostPort) {
	p.Value = at.Port
	to := p.To
	if to == -1 {
		to = at.Port
	}
	if !p.IgnoreCollision {
		g.use.ports = append(g.use.ports, at)
	}
	g.ports = append(g.ports, structs.PortMapping{Label: p.Label, Value: at.Port, To: to, HostIP: at.IP})
}
