package rpc

import (
	"context"
	"net"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// ToAgent returns a handler of calls that name a server or a node: its agent answers them, and here if it is this server's.
func (r *Router) ToAgent(here wire.Handler) wire.Handler {
	toNode := r.toClient(r.namedNode)
	return r.Regional(false, func(ctx context.Context, call *wire.Call) error {
		var to struct{ NodeID, ServerID string }
		if err := call.Args(&to); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		}
		switch {
		case to.NodeID != "" && to.ServerID != "":
			return structs.Errorf(structs.CodeBadRequest, "a node and a server are named; name one of them")
		case to.NodeID != "":
			return toNode(ctx, call)
		case to.ServerID == "" || call.Via == wire.ViaConnected:
			return here(ctx, call)
		}
		addr, err := r.serverNamed(to.ServerID)
		if err != nil {
			return err
		}
		if addr == "" {
			return here(ctx, call)
		}
		session, err := r.Pool.Session(ctx, addr)
		if err != nil {
			return structs.Errorf(structs.CodeNoServer, "server %q: %w", to.ServerID, err).WithHint("its agent may be down")
		}
		return call.Relay(ctx, session, wire.ViaConnected, nil)
	})
}

// serverNamed returns the RPC address of a server of this region; it is empty if the server is this one. It returns
// ErrNoServer if there is none of that name.
func (r *Router) serverNamed(name string) (addr string, err error) {
	if name == structs.ServerLeader {
		leader := r.Leadership.Leader()
		switch {
		case leader.Addr == "":
			return "", r.NoLeader()
		case leader.ID == r.ID:
			return "", nil
		}
		return leader.Addr, nil
	}
	if name == r.ID || name == r.Name || name == r.Name+"."+r.Region {
		return "", nil
	}
	for _, m := range r.Gossip.Members() {
		if m.Name == name || m.Name == name+"."+r.Region || m.Tags["id"] == name {
			return net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]), nil
		}
	}
	return "", structs.Errorf(structs.CodeNoServer, "unknown Nomad server %s", name) // Nomad's words, which its clients look for
}
