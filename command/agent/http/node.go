package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// nodeFields are the extra columns of a list of nodes.
var nodeFields = map[string]bool{"resources": false, "os": false}

func nodeList(r *request) (any, error) {
	fields, err := r.fields(nodeFields)
	if err != nil {
		return nil, err
	}
	args := structs.ListRequest{QueryOptions: r.opts, Fields: fields}
	return readList(r, wire.MethodNodeList, &args, func(a *structs.NodeListReply) []*structs.NodeListStub { return a.Nodes })
}

// shownNode is a node as Nomad's API shows it: with the old Drain flag, and
// without the secret, whatever the reply held.
type shownNode struct {
	*structs.Node
	SecretID string // always empty, as with Nomad: hides the node's
	Drain    bool
}

func nodeGet(r *request) (any, error) {
	var reply structs.NodeReply
	args := structs.IDRequest{ID: r.id(), QueryOptions: r.opts}
	if err := r.read(wire.MethodNodeGet, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Node == nil {
		return nil, notFound("node")
	}
	return shownNode{Node: reply.Node, Drain: reply.Node.DrainStrategy != nil}, nil
}

func nodeAllocs(r *request) (any, error) {
	return readList(r, wire.MethodNodeAllocs, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, func(a *structs.AllocsReply) []*structs.Allocation { return a.Allocs })
}

// nodeChanged answers a change of a node.
type nodeChanged struct {
	NodeModifyIndex uint64
	EvalIDs         []string
	EvalCreateIndex uint64
	Index           uint64
}

func (r *request) changeNode(method string, args any) (any, error) {
	var reply structs.NodeUpdateReply
	if err := r.change(method, args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	return nodeChanged{reply.NodeModifyIndex, list(reply.EvalIDs), reply.EvalCreateIndex, reply.Index}, nil
}

func nodeDrain(r *request) (any, error) {
	var body struct {
		NodeID       string
		DrainSpec    *structs.DrainSpec
		MarkEligible bool
		Meta         map[string]string
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if err := r.same("NodeID", body.NodeID); err != nil {
		return nil, err
	}
	return r.changeNode(wire.MethodNodeDrain, &structs.NodeDrainRequest{
		NodeID: r.id(), DrainSpec: body.DrainSpec, MarkEligible: body.MarkEligible, Meta: body.Meta, WriteRequest: r.write(),
	})
}

func nodeEligibility(r *request) (any, error) {
	var body struct{ NodeID, Eligibility string }
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if err := r.same("NodeID", body.NodeID); err != nil {
		return nil, err
	}
	if body.Eligibility != structs.NodeEligible && body.Eligibility != structs.NodeIneligible {
		return nil, badRequest("Eligibility %q: must be %q or %q", body.Eligibility, structs.NodeEligible, structs.NodeIneligible)
	}
	return r.changeNode(wire.MethodNodeEligibility, &structs.NodeEligibilityRequest{
		NodeID: r.id(), Eligibility: body.Eligibility, WriteRequest: r.write(),
	})
}

func nodeMetaRead(r *request) (any, error) {
	node, err := r.node()
	if err != nil {
		return nil, err
	}
	return r.nodeMeta(wire.MethodClientMetaRead, structs.NodeMetaRequest{NodeID: node})
}

// nodeMetaApply changes what is set of a node's metadata while it runs. The node may be named in the body.
func nodeMetaApply(r *request) (any, error) {
	var body struct {
		NodeID string
		Meta   map[string]*string
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if requested := r.query.Get("node_id"); requested != "" && body.NodeID != "" && requested != body.NodeID {
		return nil, badRequest("NodeID %q: does not match node_id %q", body.NodeID, requested)
	}
	node := body.NodeID
	if node == "" {
		var err error
		if node, err = r.node(); err != nil {
			return nil, err
		}
	}
	if err := structs.CheckNodeMetaChange(body.Meta); err != nil {
		return nil, err
	}
	return r.nodeMeta(wire.MethodClientMetaApply, structs.NodeMetaRequest{NodeID: node, Meta: body.Meta})
}

func (r *request) nodeMeta(method string, args structs.NodeMetaRequest) (any, error) {
	args.QueryOptions = r.opts
	var reply structs.NodeMetaReply
	if err := r.queryClient(method, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Node == nil {
		return nil, notFound("node")
	}
	return reply.Node, nil
}

// nodeSimHealth makes a simulated node, or a device of it, bad or good.
func nodeSimHealth(r *request) (any, error) {
	var body struct {
		NodeID, Device string
		Healthy        *bool
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if err := r.same("NodeID", body.NodeID); err != nil {
		return nil, err
	}
	if body.Healthy == nil {
		return nil, badRequest("Healthy: missing; true makes it good, false bad")
	}
	return r.callClient(wire.MethodClientSimHealth, &structs.SimHealthRequest{
		NodeID: r.id(), Device: body.Device, Bad: !*body.Healthy, QueryOptions: r.opts,
	})
}

func nodePurge(r *request) (any, error) {
	return r.changeNode(wire.MethodNodePurge, &structs.NodeRequest{NodeID: r.id(), WriteRequest: r.write()})
}

func nodeEvaluate(r *request) (any, error) {
	return r.changeNode(wire.MethodNodeEvaluate, &structs.NodeRequest{NodeID: r.id(), WriteRequest: r.write()})
}
