// Package cluster answers the RPC methods of the servers themselves: who leads, who they are, and how a cluster comes to be.
package cluster

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// Gossip is who this server knows by gossip.
type Gossip interface {
	Members() []structs.ServerMember
	Join(addrs []string) (reached int, err error)
	ForceLeave(name string, prune bool) error
}

// Regions is who serves other regions, as this server knows by gossip.
type Regions interface {
	// Known are the regions of which a server was seen, the own one among them, in order.
	Known() []string
	// Members are the servers of other regions, failed ones too.
	Members() []structs.ServerMember
	Join(addrs []string) (reached int, err error)
	ForceLeave(name string, prune bool) error
}

// Bootstrap answers servers that would bootstrap the cluster.
type Bootstrap interface {
	Consider(args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error)
	// Claim answers the leader of a cluster that would add this server: the cluster that it
	// belongs to then, or the name of the server that has its vote.
	Claim(args *structs.RaftStateRequest) (cluster, voted string, err error)
}

// Raft is this server among the Raft servers.
type Raft interface {
	// State is this server's own view.
	State() (*structs.RaftStateReply, error)
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router     *rpc.Router
	Gossip     Gossip
	Regions    Regions // nil: there is this one only
	Keyrings   Keyrings
	Bootstrap  Bootstrap
	Raft       Raft
	Datacenter string // of this server
}

// Endpoint answers the methods of servers.
type Endpoint struct{ Deps }

// New returns a new endpoint.
func New(d Deps) *Endpoint { return &Endpoint{d} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodPing, Handler: rpc.InRegion(r, e.ping)},
		{Name: wire.MethodLeader, Handler: rpc.InRegion(r, e.leader)},
		{Name: wire.MethodPeers, Handler: rpc.InRegion(r, e.peers)},
		{Name: wire.MethodRegions, Handler: rpc.Local(e.regions)},
		{Name: wire.MethodMembers, Handler: rpc.Local(e.members)},
		{Name: wire.MethodJoin, Handler: rpc.Local(e.join)},
		{Name: wire.MethodForceLeave, Handler: rpc.Local(e.forceLeave)},
		{Name: wire.MethodKeyring, Handler: rpc.Local(e.keyring)},
		{Name: wire.MethodBootstrapVote, Handler: rpc.Local(e.bootstrapVote)},
		{Name: wire.MethodRaftState, Handler: rpc.Local(e.raftState)},
	}
}

func (e *Endpoint) ping(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
	return &structs.WriteReply{}, nil
}

func (e *Endpoint) regions(context.Context, *structs.EmptyRequest) (*structs.StringsReply, error) {
	reply := &structs.StringsReply{Values: []string{e.Router.Region}, QueryMeta: e.Router.Contact(1)}
	if e.Regions != nil {
		reply.Values = e.Regions.Known()
	}
	return reply, nil
}
