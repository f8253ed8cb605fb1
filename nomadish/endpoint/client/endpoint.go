// Package client passes calls on to the clients of nodes and to the agents of servers, and probes clients.
package client

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// Gossip is that of the clients.
type Gossip interface {
	// Probe checks by its ID whether a member is there.
	Probe(id string) error
	// Lost takes note of nodes whose sessions with this server have ended or do not answer.
	Lost(nodeIDs []string)
}

// Heartbeats keeps the nodes' time limits; it answers only on the leader.
type Heartbeats interface {
	// Suspect has nodes looked for whose sessions were lost.
	Suspect(nodeIDs ...string)
}

// Agent answers operators' requests to the agent that this server runs in.
type Agent interface {
	// Monitor sends the agent's log lines as frames until ctx ends.
	Monitor(ctx context.Context, args *structs.AgentMonitorRequest, send func(any) error) error
	Host(ctx context.Context, args *structs.AgentHostRequest) (*structs.AgentHostReply, error)
	Profile(ctx context.Context, args *structs.AgentProfileRequest) (*structs.AgentProfileReply, error)
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router     *rpc.Router
	Heartbeats Heartbeats
	Gossip     Gossip // nil: clients do not gossip
	Agent      Agent  // nil: it is not known, as in tests
}

// Endpoint answers the methods that clients and agents answer in the end.
type Endpoint struct{ Deps }

// New returns a new endpoint.
func New(d Deps) *Endpoint { return &Endpoint{d} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	toAllocs, toNodes := r.ToAllocsClient(), r.ToNodesClient()
	methods := []rpc.Method{
		{Name: wire.MethodHasNode, Handler: rpc.Local(e.hasNode)},
		{Name: wire.MethodNodeSuspect, Handler: r.OwnRegion(rpc.Write(r, e.suspect))},
		{Name: wire.MethodNodeProbe, Handler: rpc.Local(e.probe)},
		{Name: wire.MethodClientAllocStats, Handler: toAllocs},
		{Name: wire.MethodClientAllocRestart, Handler: toAllocs},
		{Name: wire.MethodClientAllocSignal, Handler: toAllocs},
		{Name: wire.MethodClientAllocGC, Handler: toAllocs},
		{Name: wire.MethodClientFSList, Handler: toAllocs},
		{Name: wire.MethodClientFSStat, Handler: toAllocs},
		{Name: wire.MethodClientFSRead, Handler: toAllocs},
		{Name: wire.MethodClientGC, Handler: toNodes},
		{Name: wire.MethodClientHostStats, Handler: toNodes},
		{Name: wire.MethodClientSimHealth, Handler: toNodes},
		{Name: wire.MethodClientMetaRead, Handler: toNodes},
		{Name: wire.MethodClientMetaApply, Handler: toNodes},
	}
	if e.Agent != nil {
		methods = append(methods, []rpc.Method{
			{Name: wire.MethodAgentMonitor, Handler: r.ToAgent(wire.Streaming(e.Agent.Monitor))},
			{Name: wire.MethodAgentHost, Handler: r.ToAgent(wire.Unary(e.Agent.Host))},
			{Name: wire.MethodAgentProfile, Handler: r.ToAgent(wire.Unary(e.Agent.Profile))},
		}...)
	}
	return methods
}

// hasNode reports whether a node is connected to this server.
func (e *Endpoint) hasNode(_ context.Context, args *structs.NodeRequest) (*structs.CountReply, error) {
	reply := &structs.CountReply{}
	if _, ok := e.Router.Sessions.Get(args.NodeID); ok {
		reply.Count = 1
	}
	return reply, nil
}

func (e *Endpoint) suspect(_ context.Context, args *structs.NodeSuspectRequest) (*structs.WriteReply, error) {
	e.Heartbeats.Suspect(args.NodeIDs...)
	return &structs.WriteReply{}, nil
}

func (e *Endpoint) probe(ctx context.Context, args *structs.NodeProbeRequest) (*structs.NodeProbeReply, error) {
	return e.probeHere(ctx, args.NodeID), nil
}

// SessionClosed forgets the nodes that were behind a session. None of its calls is at work any more.
func (e *Endpoint) SessionClosed(s *wire.Session) {
	if ids := e.Router.Sessions.Forget(s); len(ids) > 0 && e.Gossip != nil {
		e.Gossip.Lost(ids)
	}
}
