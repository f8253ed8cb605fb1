package rpc

import (
	"context"
	"net"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Agent answers what operators ask of the agent that this server runs in.
type Agent interface {
	// Monitor sends the agent's log lines as frames until ctx ends.
	Monitor(ctx context.Context, args *structs.AgentMonitorRequest, send func(any) error) error
	Host(ctx context.Context, args *structs.AgentHostRequest) (*structs.AgentHostReply, error)
	Profile(ctx context.Context, args *structs.AgentProfileRequest) (*structs.AgentProfileReply, error)
}

func (e *Endpoints) registerAgent(mux *wire.Mux) {
	if e.Agent == nil {
		return
	}
	mux.Handle(wire.MethodAgentMonitor, e.ofAgent(wire.Streaming(e.Agent.Monitor)))
	mux.Handle(wire.MethodAgentHost, e.ofAgent(wire.Unary(e.Agent.Host)))
	mux.Handle(wire.MethodAgentProfile, e.ofAgent(wire.Unary(e.Agent.Profile)))
}

// ofAgent returns a handler of calls that name a server or a node: its agent answers them, and here if it is this server's.
func (e *Endpoints) ofAgent(here wire.Handler) wire.Handler {
	toNode := e.toClient(e.namedNode)
	return e.regional(false, func(ctx context.Context, call *wire.Call) error {
		var to struct{ NodeID, ServerID string }
		if err := call.Args(&to); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		}
		switch {
		case to.NodeID != "" && to.ServerID != "":
			return structs.Errorf(structs.CodeBadRequest, "a node and a server are named; name one of them")
		case to.NodeID != "":
			return toNode(ctx, call)
		case to.ServerID == "" || call.Via == wire.ViaHolder:
			return here(ctx, call)
		}
		addr, err := e.serverNamed(to.ServerID)
		if err != nil {
			return err
		}
		if addr == "" {
			return here(ctx, call)
		}
		session, err := e.Pool.Session(ctx, addr)
		if err != nil {
			return structs.Errorf(structs.CodeNoServer, "server %q: %w", to.ServerID, err).WithHint("its agent may be down")
		}
		return call.Relay(ctx, session, wire.ViaHolder, nil)
	})
}

// serverNamed returns the RPC address of a server of this region; it is empty if the server is this one. It returns
// ErrNoServer if there is none of that name.
func (e *Endpoints) serverNamed(name string) (addr string, err error) {
	if name == structs.ServerLeader {
		leader := e.Leadership.Reign()
		switch {
		case leader.Addr == "":
			return "", e.noLeader()
		case leader.ID == e.ID:
			return "", nil
		}
		return leader.Addr, nil
	}
	if name == e.ID || name == e.Name || name == e.Name+"."+e.Region {
		return "", nil
	}
	for _, m := range e.Gossip.Members() {
		if m.Name == name || m.Name == name+"."+e.Region || m.Tags["id"] == name {
			return net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]), nil
		}
	}
	return "", structs.Errorf(structs.CodeNoServer, "unknown Nomad server %s", name) // Nomad's words, which its clients look for
}
