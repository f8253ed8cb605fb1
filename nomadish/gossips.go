package nomadish

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/structs"
)

// openGossips joins the server into its pools, alone as yet.
func (s *Server) openGossips() error {
	o := s.membershipOptions()
	lan, wan, err := membership.OpenKeyrings(o)
	if err != nil {
		return err
	}
	if s.clients, err = clientgossip.Open(s.clientOptions()); err != nil {
		return err
	}
	s.clientKeys = clientgossip.OpenKeys(s.clients, s.store, lan, wan)
	if s.wan, err = membership.OpenWAN(o, wan, s.clientKeys.Refuse); err != nil {
		return err
	}
	s.regions = membership.NewRegions(s.cfg.Region, s.wan)
	if s.gossip, err = membership.OpenLAN(o, lan, membership.Hooks{
		WANAddr: s.WANAddr(), ClientsAddr: s.clients.Addr(), RefuseKey: s.clientKeys.Refuse, OnQuery: s.clientKeys.Answer,
	}); err != nil {
		return err
	}
	s.clientKeys.Connect(s.gossip)
	return nil
}

// findOthers joins those that must be reached now, and goes on looking for the others.
func (s *Server) findOthers(ctx context.Context) error {
	o := s.membershipOptions()
	keep := func(join func(context.Context, *gossip.Pool) error, pool *gossip.Pool) {
		s.wg.Go(func() {
			if err := join(ctx, pool); err != nil {
				s.failed <- err
			}
		})
	}
	if err := o.LAN.Join(s.gossip, "start_join", "retry_join"); err != nil {
		return err
	}
	keep(o.KeepJoining, s.gossip)
	if s.wan == nil {
		return nil
	}
	if err := o.WAN.Join(s.wan, "start_join_wan", "retry_join_wan"); err != nil {
		return err
	}
	s.wg.Go(func() { membership.BringAlong(ctx, s.gossip, s.wan, s.logger) })
	keep(o.KeepMeeting, s.wan)
	return nil
}

// raftServers are the servers of Raft, once that and the gossip are open.
func (s *Server) raftServers() *membership.RaftServers {
	return membership.NewRaftServers(s.raft, s.gossip)
}

// isMember reports whether a server may speak to this one by Raft.
func (s *Server) isMember(id string) bool {
	return s.raftServers().Includes(id, s.cfg.Region, s.bootstrapper.Admits)
}

// keyrings changes the keys of all these gossips: a row each.
func (s *Server) keyrings() *membership.Keyrings {
	pools := membership.KeyPools{{Name: "serf", Pool: s.gossip.Keys()}}
	if s.wan != nil {
		pools = append(pools, membership.KeyPool{Name: "wan", Pool: s.wan.Keys()})
	}
	if s.clientKeys == nil {
		return membership.NewKeyrings(pools, nil)
	}
	return membership.NewKeyrings(pools, s.clientKeys)
}

// clientOptions are how the server gossips with clients.
func (s *Server) clientOptions() clientgossip.Options {
	o := s.cfg.ClientGossip
	o.ID, o.Region, o.RPCAddr, o.Dir, o.Logger = s.raft.ID(), s.cfg.Region, s.RPCAddr(), s.cfg.serverDir(), s.cfg.Logger
	return o
}

// seeClients makes what the leader's heartbeats know of clients beside themselves; nil: nothing.
func (s *Server) seeClients() heartbeat.Probers {
	if s.clients == nil {
		return nil
	}
	s.clients.Connect(s.gossip, func(ctx context.Context, nodeIDs []string) error {
		return s.Call(ctx, wire.MethodNodeSuspect, &structs.NodeSuspectRequest{NodeIDs: nodeIDs}, &structs.WriteReply{})
	})
	return s.clients.Probers(func(ctx context.Context, nodeID string) (session, gossip bool) {
		return s.endpoints.clients.Reach(ctx, nodeID)
	})
}

// runClients has the server take its part in the clients' gossip until ctx ends.
func (s *Server) runClients(ctx context.Context) {
	if s.clients == nil {
		return
	}
	s.wg.Go(func() { s.clients.Run(ctx) })
	s.wg.Go(func() { s.endpoints.clients.PingSilent(ctx) })
	s.wg.Go(func() { s.clientKeys.KeepSame(ctx) })
}

// ClientGossipAddr is where clients reach this server's part of their gossip; empty: it has none.
func (s *Server) ClientGossipAddr() string { return s.clients.Addr() }

// since is a time for people.
func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
