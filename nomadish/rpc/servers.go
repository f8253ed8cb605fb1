package rpc

import (
	"context"
	"errors"
	"net"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// registerServers are the methods about the servers themselves.
func (e *Endpoints) registerServers(mux *wire.Mux) {
	mux.Handle(wire.MethodMembers, local(e.members))
	mux.Handle(wire.MethodJoin, local(e.join))
	mux.Handle(wire.MethodForceLeave, local(e.forceLeave))
	mux.Handle(wire.MethodKeyring, local(e.keyring))
	mux.Handle(wire.MethodFound, local(e.found))
	mux.Handle(wire.MethodRaftState, local(e.raftState))
	mux.Handle(wire.MethodAutopilotGet, read(e, e.autopilotGet))
	mux.Handle(wire.MethodAutopilotSet, write(e, e.autopilotSet))
	mux.Handle(wire.MethodAutopilotHealth, write(e, e.autopilotHealth))
}

func (e *Endpoints) members(context.Context, *structs.EmptyRequest) (*structs.MembersReply, error) {
	return &structs.MembersReply{ServerName: e.Name, ServerRegion: e.Region, ServerDC: e.Datacenter, Members: e.allMembers()}, nil
}

// allMembers are the servers of this region, then those of others, each by name.
func (e *Endpoints) allMembers() []structs.ServerMember {
	members := e.Gossip.Members()
	if e.Regions != nil {
		members = append(members, e.Regions.Members()...)
	}
	return members
}

// forceLeave looks for the member in the pool of this region, and in that of all regions.
func (e *Endpoints) forceLeave(_ context.Context, args *structs.ForceLeaveRequest) (*structs.WriteReply, error) {
	if err := e.stillAlive(args.Name); err != nil {
		return nil, err
	}
	err := e.Gossip.ForceLeave(args.Name, args.Prune)
	if e.Regions == nil {
		return &structs.WriteReply{}, err
	}
	switch far := e.Regions.ForceLeave(args.Name, args.Prune); {
	case structs.CodeOf(err) == structs.CodeNotFound && structs.CodeOf(far) != structs.CodeNotFound:
		return &structs.WriteReply{}, far
	case err == nil && structs.CodeOf(far) != structs.CodeNotFound:
		err = far
	}
	return &structs.WriteReply{}, err
}

// stillAlive refuses to force a server to leave that would come back by itself at once. The pool of the own region is the
// first to know.
func (e *Endpoints) stillAlive(name string) error {
	for _, m := range e.allMembers() {
		if m.Name != name && m.Name != name+"."+e.Region {
			continue
		}
		if m.Status == structs.MemberAlive && m.Tags["id"] != e.ID {
			return structs.Errorf(structs.CodeConflict, "server %s is alive: it would come back by itself at once", m.Name).
				WithHint("end its agent first; that it has ended is seen within seconds")
		}
		return nil
	}
	return nil
}

func (e *Endpoints) join(_ context.Context, args *structs.JoinRequest) (*structs.CountReply, error) {
	if len(args.Addresses) == 0 {
		return nil, structs.Errorf(structs.CodeBadRequest, "no address to join is named")
	}
	if args.WAN && e.Regions != nil {
		n, err := e.Regions.Join(args.Addresses)
		if n == 0 && err != nil {
			return nil, structs.Errorf(structs.CodeBadRequest, "%w", err).WithHint("an address is one of the gossip of a server of another region, port 4649 (ports.serf_wan) by default")
		}
		return &structs.CountReply{Count: n}, nil
	}
	n, err := e.Gossip.Join(args.Addresses)
	if n == 0 && err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "%w", err).WithHint("an address is one of the gossip of a server of this region, port 4648 by default")
	}
	return &structs.CountReply{Count: n}, nil
}

func (e *Endpoints) found(_ context.Context, args *structs.FoundRequest) (*structs.FoundReply, error) {
	if args.Region != e.Region {
		return nil, structs.Errorf(structs.CodeBadRequest, "region %q: this server is of %q", args.Region, e.Region)
	}
	return e.Founding.Consider(args)
}

func (e *Endpoints) raftState(_ context.Context, args *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	reply, err := e.Cluster.State()
	if err == nil {
		reply.Cluster, reply.Promised, err = e.Founding.Claim(args)
	}
	return reply, err
}

// reachable are the RPC addresses of the servers, without those that gossip takes for
// gone.
func (e *Endpoints) reachable() []string {
	conf, err := e.Cluster.Configuration()
	if err != nil {
		return nil
	}
	gone := map[string]bool{}
	members := e.Gossip.Members()
	for _, m := range members {
		if m.Status == structs.MemberFailed || m.Status == structs.MemberLeft {
			gone[net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"])] = true
		}
	}
	for _, m := range members { // one of another name may have been there before
		if m.Status == structs.MemberAlive {
			delete(gone, net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]))
		}
	}
	var out []string
	for _, s := range conf.Servers {
		if !gone[s.Address] || s.Leader {
			out = append(out, s.Address)
		}
	}
	return out
}

func (e *Endpoints) autopilotGet(ctx context.Context, args *structs.EmptyRequest) (*structs.AutopilotConfigReply, error) {
	reply := &structs.AutopilotConfigReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Config = snap.AutopilotConfig(ws)
		return reply.Config.ModifyIndex, nil
	})
}

func (e *Endpoints) autopilotSet(ctx context.Context, args *structs.AutopilotConfigRequest) (*structs.AutopilotSetReply, error) {
	if err := args.Config.Validate(); err != nil {
		return nil, err
	}
	index, err := e.Applier.Apply(ctx, structs.LogAutopilotConfig, &structs.AutopilotConfigEntry{
		Config: args.Config, CAS: args.CAS, CheckIndex: args.Config.ModifyIndex, Time: e.Now().UnixNano(),
	})
	lost := args.CAS && errors.Is(err, structs.ErrConflict) // somebody was quicker: an answer, not an error
	if err != nil && !lost {
		return nil, err
	}
	return &structs.AutopilotSetReply{Updated: !lost, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoints) autopilotHealth(context.Context, *structs.EmptyRequest) (*structs.AutopilotHealthReply, error) {
	return &structs.AutopilotHealthReply{Health: e.Keeper.Health(), QueryMeta: structs.QueryMeta{Index: 1, KnownLeader: true}}, nil
}
