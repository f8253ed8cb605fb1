package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func allocList(r *request) (any, error) {
	fields, err := r.fields(map[string]bool{"resources": false, "task_states": true})
	if err != nil {
		return nil, err
	}
	args := structs.ListRequest{QueryOptions: r.opts, Fields: fields}
	return readList(r, wire.MethodAllocList, &args, func(a *structs.AllocListReply) []*structs.AllocListStub { return a.Allocations })
}

func allocGet(r *request) (any, error) {
	var reply structs.AllocReply
	args := structs.IDRequest{ID: r.id(), QueryOptions: r.opts}
	if err := r.read(wire.MethodAllocGet, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Alloc == nil {
		return nil, notFound("alloc")
	}
	return &allocView{reply.Alloc, reply.Class, reply.Claim}, nil
}

// allocView is an allocation as it is answered: with what is not stored of it.
type allocView struct {
	*structs.Allocation
	Class string              `json:",omitempty"`
	Claim *structs.AllocClaim `json:",omitempty"`
}

func allocStop(r *request) (any, error) {
	args := structs.AllocStopRequest{AllocID: r.id(), WriteRequest: r.write()}
	var err error
	if args.NoShutdownDelay, err = r.bool("no_shutdown_delay", false); err != nil {
		return nil, err
	}
	if args.Reschedule, err = r.bool("reschedule", false); err != nil {
		return nil, err
	}
	return changed[structs.AllocStopReply](r, wire.MethodAllocStop, &args)
}

// What follows is answered by the client that holds the allocation.

func allocStats(r *request) (any, error) {
	var reply structs.ClientStatsReply
	args := structs.ClientAllocRequest{AllocID: r.id(), Task: r.query.Get("task"), QueryOptions: r.opts}
	if err := r.queryClient(wire.MethodClientAllocStats, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Stats == nil {
		return nil, notFound("alloc")
	}
	return reply.Stats, nil
}

func allocRestart(r *request) (any, error) {
	var body struct {
		TaskName string
		AllTasks bool
	}
	if err := r.decodeOptional(&body); err != nil {
		return nil, err
	}
	if body.AllTasks && body.TaskName != "" {
		return nil, badRequest("TaskName and AllTasks cannot both be stated")
	}
	args := structs.ClientAllocRequest{AllocID: r.id(), Task: body.TaskName, AllTasks: body.AllTasks, QueryOptions: r.opts}
	return r.callClient(wire.MethodClientAllocRestart, &args)
}

func allocSignal(r *request) (any, error) {
	var body struct{ Task, Signal string }
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if body.Signal == "" {
		return nil, badRequest("Signal: missing; name one, such as SIGHUP")
	}
	args := structs.ClientAllocRequest{AllocID: r.id(), Task: body.Task, Signal: body.Signal, QueryOptions: r.opts}
	return r.callClient(wire.MethodClientAllocSignal, &args)
}

func allocGC(r *request) (any, error) {
	return r.callClient(wire.MethodClientAllocGC, &structs.ClientAllocRequest{AllocID: r.id(), QueryOptions: r.opts})
}

// callClient makes a call that returns nothing but that it was done.
func (r *request) callClient(method string, args any) (any, error) {
	return changed[structs.WriteReply](r, method, args)
}

func clientStats(r *request) (any, error) {
	node, err := r.node()
	if err != nil {
		return nil, err
	}
	var reply structs.ClientHostStatsReply
	args := structs.ClientHostStatsRequest{NodeID: node, QueryOptions: r.opts}
	if err := r.queryClient(wire.MethodClientHostStats, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Stats == nil {
		return nil, notFound("node")
	}
	return reply.Stats, nil
}

func clientGC(r *request) (any, error) {
	node, err := r.node()
	if err != nil {
		return nil, err
	}
	_, err = r.callClient(wire.MethodClientGC, &structs.ClientHostStatsRequest{NodeID: node, QueryOptions: r.opts})
	return nil, err // Nomad's Go client fails on a body
}

// node is the node that a request means: the one named, or the agent's own.
func (r *request) node() (string, error) {
	node := first(r.query.Get("node_id"), r.s.cfg.Agent.Self().NodeID)
	if node == "" {
		return "", badRequest("node_id: missing; this agent runs no client, so name a node")
	}
	return node, nil
}
