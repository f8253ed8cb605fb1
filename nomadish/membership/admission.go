package membership

import (
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/quorum"
	"github.com/nomadish/nomadish/structs"
)

// RaftGate returns what reports whether a server may take part in Raft: when it belongs to a cluster, or has
// voted for one. Raft calls addresses, not IDs, and a server without a configuration
// votes for anybody: one that lost its disk would vote as the one that it was, against what that
// one had acknowledged.
func RaftGate(r quorum.Bootstrap, p quorum.VoteStore) func() bool {
	var open atomic.Bool // it does not close any more
	return func() bool {
		if open.Load() {
			return true
		}
		bootstrapped, err := r.Bootstrapped()
		if err == nil && bootstrapped {
			open.Store(true)
			return true
		}
		to, err := p.Load()
		return err == nil && to.ID != ""
	}
}

// VoteOf returns the store of the server's vote for a bootstrapper.
func VoteOf(o *Options) quorum.VoteStore {
	if o.Dir != "" {
		return quorum.FileVote(filepath.Join(o.Dir, "founder"))
	}
	return &quorum.MemoryVote{}
}

// Caller calls other servers by RPC. It implements quorum.Caller.
type Caller struct{ pool *wire.Pool }

// NewCaller returns one that calls through a pool.
func NewCaller(pool *wire.Pool) Caller { return Caller{pool} }

// BootstrapVote implements quorum.Caller.
func (a Caller) BootstrapVote(ctx context.Context, addr string, args *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	reply := &structs.BootstrapVoteReply{}
	return reply, a.pool.Call(ctx, addr, wire.MethodBootstrapVote, args, reply)
}

// RaftState implements quorum.Caller.
func (a Caller) RaftState(ctx context.Context, addr string, args *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	reply := &structs.RaftStateReply{}
	return reply, a.pool.Call(ctx, addr, wire.MethodRaftState, args, reply)
}

// Includes reports whether a server is of the cluster: whom Raft's configuration names, or gossip knows in this region, as a
// configuration may be older than the servers that lead by now. Who belongs to no cluster yet is spoken to by those
// that it voted for, which admits reports: see RaftGate.
func (c *RaftServers) Includes(id, region string, admits func(id string) bool) bool {
	f := c.GetConfiguration()
	if f.Error() != nil {
		return false
	}
	servers := f.Configuration().Servers
	if len(servers) == 0 {
		return admits(id)
	}
	for _, one := range servers {
		if string(one.ID) == id {
			return true
		}
	}
	for _, one := range c.pool.Servers() {
		if one.ID == id && one.Region == region {
			return true
		}
	}
	return false
}
