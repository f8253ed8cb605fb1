package nomadish

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/quorum"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// openGossip joins the server into the pool of its region, alone as yet.
func openGossip(cfg *Config, keys *keyring.Ring, id, rpcAddr, wanAddr, clientsAddr string, clients *clientgossip.Keys) (*gossip.Pool, error) {
	c := gossip.Config{
		Kind: gossip.KindLAN, Name: cfg.Name, Region: cfg.Region, Datacenter: cfg.Datacenter, ID: id, Version: cfg.Version,
		Clients: clientsAddr, RPCAddr: rpcAddr, WANAddr: wanAddr, Expect: cfg.BootstrapExpect, BindAddr: cfg.SerfAddr, Advertise: cfg.SerfAdvertise, Keyring: keys, RefuseKey: clients.Refuse, OnQuery: clients.Answer, Entries: cfg.entries,
		RejoinAfterLeave: cfg.RejoinAfterLeave, ProbeInterval: cfg.GossipProbe, Logger: cfg.Logger.Named("gossip"),
	}
	if dir := cfg.serverDir(); dir != "" {
		c.SnapshotPath = filepath.Join(dir, "serf", "snapshot")
	}
	return gossip.New(c)
}

// findOthers joins those that must be reached now, and goes on looking for the others.
func (s *Server) findOthers(ctx context.Context) error {
	if start := s.cfg.StartJoin; len(start) > 0 {
		if n, err := s.gossip.Join(start); n == 0 {
			return fmt.Errorf("start_join: no server was reached: %w (retry_join goes on trying)", err)
		}
	}
	if retry := s.cfg.RetryJoin; len(retry) > 0 {
		s.wg.Go(func() {
			err := s.gossip.KeepJoining(ctx, gossip.JoinConfig{Addrs: retry, Max: s.cfg.RetryMax, Interval: s.cfg.RetryInterval})
			if err != nil {
				s.failed <- err
			}
		})
	}
	return s.findRegions(ctx)
}

// raftGate tells whether a server may take part in Raft: when it belongs to a cluster, or has
// promised itself to one. Raft calls addresses, not IDs, and a server without a configuration
// votes for anybody: one that lost its disk would vote as the one that it was, against what that
// one had acknowledged.
func raftGate(r *raftnode.Node, p quorum.Promise) func() bool {
	var open atomic.Bool // it does not close any more
	return func() bool {
		if open.Load() {
			return true
		}
		founded, err := r.Founded()
		if err == nil && founded {
			open.Store(true)
			return true
		}
		to, err := p.Load()
		return err == nil && to.ID != ""
	}
}

// promiseOf is where the server keeps to whom it has promised itself.
func promiseOf(cfg *Config) quorum.Promise {
	if dir := cfg.serverDir(); dir != "" {
		return quorum.FilePromise(filepath.Join(dir, "founder"))
	}
	return &quorum.MemoryPromise{}
}

// asker asks other servers by RPC.
type asker struct{ pool *wire.Pool }

// Found implements quorum.Asker.
func (a asker) Found(ctx context.Context, addr string, args *structs.FoundRequest) (*structs.FoundReply, error) {
	reply := &structs.FoundReply{}
	return reply, a.pool.Call(ctx, addr, wire.MethodFound, args, reply)
}

// RaftState implements quorum.Asker.
func (a asker) RaftState(ctx context.Context, addr string, args *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	reply := &structs.RaftStateReply{}
	return reply, a.pool.Call(ctx, addr, wire.MethodRaftState, args, reply)
}

// leadership shows who leads to the endpoints.
type leadership struct {
	*raftnode.Node
	leading func() bool
}

// Reign implements rpc.Leadership.
func (l *leadership) Reign() rpc.Reign { return rpc.Reign(l.LeaderInfo()) }

// IsLeader implements rpc.Leadership.
func (l *leadership) IsLeader() bool { return l.leading() }

// LastContact implements rpc.Leadership.
func (l *leadership) LastContact() time.Duration { return l.LeaderContact() }

// cluster shows the set of Raft servers to the endpoints.
type cluster struct {
	*raftnode.Node
	pool *gossip.Pool
}

// Configuration lists the servers.
func (c *cluster) Configuration() (*structs.RaftConfigurationReply, error) {
	f := c.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, raftnode.WrapError(err)
	}
	_, leader := c.LeaderWithID()
	names := map[string]string{}
	for _, s := range c.pool.Servers() {
		names[s.ID] = s.Member
	}
	reply := &structs.RaftConfigurationReply{Index: f.Index()}
	for _, s := range f.Configuration().Servers {
		name := names[string(s.ID)]
		if name == "" {
			name = "(unknown)" // as Nomad shows it
		}
		reply.Servers = append(reply.Servers, &structs.RaftServer{
			ID: string(s.ID), Node: name, Address: string(s.Address), Leader: s.ID == leader,
			Voter: s.Suffrage == raft.Voter, RaftProtocol: "3",
		})
	}
	return reply, nil
}

// State is this server's own view.
func (c *cluster) State() (*structs.RaftStateReply, error) {
	conf, err := c.Configuration()
	if err != nil {
		return nil, err
	}
	contact := c.LeaderContact()
	term, err := strconv.ParseUint(c.Stats()["last_log_term"], 10, 64)
	return &structs.RaftStateReply{
		ID: c.ID(), Servers: conf.Servers, LastContact: contact, LastTerm: term, LastIndex: c.LastIndex(),
		DiskFull: c.Disk().Full(),
	}, err
}

// Change removes a server, or hands leadership to it.
func (c *cluster) Change(ctx context.Context, remove bool, id, address string) error {
	if !remove && id == "" && address == "" {
		return raftnode.WrapCallError(c.Transfer(ctx, "", ""))
	}
	conf, err := c.Configuration()
	if err != nil {
		return err
	}
	var known []string
	for _, s := range conf.Servers {
		switch {
		case (id == "" || s.ID != id) && (address == "" || s.Address != address):
			known = append(known, fmt.Sprintf("%s (%s at %s)", s.Node, s.ID, s.Address))
		case remove:
			return c.remove(ctx, s, len(conf.Servers) == 1)
		default:
			return c.transferTo(ctx, s)
		}
	}
	what := "id"
	if id == "" {
		what = "address"
	}
	return structs.Errorf(structs.CodeNotFound, "%s %q was not found in the Raft configuration; there are %s", what, cmp.Or(id, address), strings.Join(known, ", "))
}

// remove takes a server off the list. One that lives would be put on it again at once.
func (c *cluster) remove(ctx context.Context, s *structs.RaftServer, only bool) error {
	if only {
		return structs.Errorf(structs.CodeBadRequest, "server %s is the only one: removing it would end the cluster", s.ID)
	}
	if c.status(s.ID) == structs.MemberAlive {
		return structs.Errorf(structs.CodeConflict, "server %s (%s) is alive: the leader would add it again at once", s.Node, s.ID).
			WithHint("end its agent first; that it has ended is seen within seconds")
	}
	return raftnode.WrapCallError(c.Await(ctx, c.RemoveServer(raft.ServerID(s.ID), 0, 0)))
}

// transferTo transfers leadership to a server.
func (c *cluster) transferTo(ctx context.Context, s *structs.RaftServer) error {
	status := c.status(s.ID)
	switch {
	case s.Leader:
		return structs.Errorf(structs.CodeBadRequest, "server %s leads already", s.ID)
	case !s.Voter:
		return structs.Errorf(structs.CodeBadRequest, "server %s is no voter yet, and cannot lead", s.ID)
	case status == structs.MemberFailed || status == structs.MemberLeft:
		return structs.Errorf(structs.CodeConflict, "server %s (%s) does not answer (gossip: %s); this one, %s, still leads", s.Node, s.ID, status, c.ID())
	}
	why := c.Transfer(ctx, raft.ServerID(s.ID), raft.ServerAddress(s.Address))
	err := raftnode.WrapCallError(why)
	if err != nil && structs.CodeOf(err) == structs.CodeInternal && c.Raft.State() == raft.Leader { // Raft has no error of its own for that
		return structs.Errorf(structs.CodeConflict, "server %s (%s) does not answer, or does not take over in time: %w; this one, %s, still leads", s.Node, s.ID, why, c.ID())
	}
	return err
}

// status is a server's as gossip has it; empty: it does not know it. One may have been there under another name.
func (c *cluster) status(id string) string {
	status := ""
	for _, s := range c.pool.Servers() {
		if s.ID == id && status != structs.MemberAlive {
			status = s.Status
		}
	}
	return status
}

// membership tells who is of the cluster: whom Raft's configuration names, or gossip knows in this region, as a
// configuration may be older than the servers that lead by now. Who belongs to no cluster yet is spoken to by those
// that it promised itself to: see raftGate.
func (s *Server) membership(id string) bool {
	f := s.raft.GetConfiguration()
	if f.Error() != nil {
		return false
	}
	servers := f.Configuration().Servers
	if len(servers) == 0 {
		return s.founder.Admits(id)
	}
	for _, one := range servers {
		if string(one.ID) == id {
			return true
		}
	}
	for _, one := range s.gossip.Servers() {
		if one.ID == id && one.Region == s.cfg.Region {
			return true
		}
	}
	return false
}
