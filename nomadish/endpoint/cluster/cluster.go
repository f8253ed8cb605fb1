package cluster

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoint) members(context.Context, *structs.EmptyRequest) (*structs.MembersReply, error) {
	return &structs.MembersReply{ServerName: e.Router.Name, ServerRegion: e.Router.Region, ServerDC: e.Datacenter, Members: e.allMembers()}, nil
}

// allMembers are the servers of this region, then those of others, each by name.
func (e *Endpoint) allMembers() []structs.ServerMember {
	members := e.Gossip.Members()
	if e.Regions != nil {
		members = append(members, e.Regions.Members()...)
	}
	return members
}

// forceLeave looks for the member in the pool of this region, and in that of all regions.
func (e *Endpoint) forceLeave(_ context.Context, args *structs.ForceLeaveRequest) (*structs.WriteReply, error) {
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
func (e *Endpoint) stillAlive(name string) error {
	for _, m := range e.allMembers() {
		if m.Name != name && m.Name != name+"."+e.Router.Region {
			continue
		}
		if m.Status == structs.MemberAlive && m.Tags["id"] != e.Router.ID {
			return structs.Errorf(structs.CodeConflict, "server %s is alive: it would come back by itself at once", m.Name).
				WithHint("end its agent first; that it has ended is seen within seconds")
		}
		return nil
	}
	return nil
}

func (e *Endpoint) join(_ context.Context, args *structs.JoinRequest) (*structs.CountReply, error) {
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

func (e *Endpoint) bootstrapVote(_ context.Context, args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	if args.Region != e.Router.Region {
		return nil, structs.Errorf(structs.CodeBadRequest, "region %q: this server is of %q", args.Region, e.Router.Region)
	}
	return e.Bootstrap.Consider(args)
}

func (e *Endpoint) raftState(_ context.Context, args *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	reply, err := e.Raft.State()
	if err == nil {
		reply.Cluster, reply.VotedFor, err = e.Bootstrap.Claim(args)
	}
	return reply, err
}

func (e *Endpoint) leader(context.Context, *structs.EmptyRequest) (*structs.StringReply, error) {
	addr := e.Router.Leadership.Leader().Addr
	if addr == "" {
		return nil, e.Router.NoLeader()
	}
	return &structs.StringReply{Value: addr, QueryMeta: structs.QueryMeta{KnownLeader: true}}, nil
}

func (e *Endpoint) peers(context.Context, *structs.EmptyRequest) (*structs.StringsReply, error) {
	conf, err := e.Router.Cluster.Configuration()
	if err != nil {
		return nil, err
	}
	reply := &structs.StringsReply{Values: []string{}, QueryMeta: e.Router.Contact(0)}
	for _, s := range conf.Servers {
		reply.Values = append(reply.Values, s.Address)
	}
	return reply, nil
}
