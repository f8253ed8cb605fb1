package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// topologyGet returns the cells of all nodes, a page of them: with ?details=true every
// device with who holds it, else the numbers only. It belongs to no namespace.
func topologyGet(r *request) (any, error) {
	details, err := r.bool("details", false)
	if err != nil {
		return nil, err
	}
	reply, err := r.topology(&structs.TopologyRequest{Details: details})
	if err != nil {
		return nil, err
	}
	if reply.Topology == nil {
		return &structs.Topology{}, nil
	}
	return reply.Topology, nil
}

func topologyNode(r *request) (any, error) {
	reply, err := r.topology(&structs.TopologyRequest{NodeID: r.id()})
	if err != nil {
		return nil, err
	}
	if reply.Topology == nil {
		return nil, notFound("node")
	}
	return reply.Topology, nil
}

func (r *request) topology(args *structs.TopologyRequest) (*structs.TopologyReply, error) {
	args.QueryOptions = r.opts
	var reply structs.TopologyReply
	if err := r.read(wire.MethodTopology, args, &reply); err != nil {
		return nil, err
	}
	if t := reply.Topology; t != nil {
		t.Levels, t.Sites, t.Nodes, t.FreeCells = list(t.Levels), list(t.Sites), list(t.Nodes), list(t.FreeCells)
		for _, n := range t.Nodes {
			n.FreeCells = list(n.FreeCells)
		}
	}
	return &reply, nil
}
