package nomadish

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/structs"
)

// openGossips joins the server into its pools, alone as yet.
func (s *Server) openGossips() error {
	cfg := s.cfg
	lan, wan, err := openServerKeyrings(cfg)
	if err != nil {
		return err
	}
	if s.clients, err = clientgossip.Open(s.clientOptions()); err != nil {
		return err
	}
	s.clientKeys = clientgossip.OpenKeys(s.clients, s.store, lan, wan)
	wanAddr := ""
	if s.wan, err = openWAN(cfg, wan, s.clientKeys.Refuse, s.raft.ID(), s.RPCAddr()); err != nil {
		return err
	}
	if s.wan != nil {
		wanAddr = s.wan.Addr()
	}
	s.regions = &regions{own: cfg.Region, wan: s.wan}
	if s.gossip, err = openGossip(cfg, lan, s.raft.ID(), s.RPCAddr(), wanAddr, s.clients.Addr(), s.clientKeys); err != nil {
		return err
	}
	s.clientKeys.Connect(s.gossip)
	return nil
}

// clientOptions are how the server gossips with clients.
func (s *Server) clientOptions() clientgossip.Options {
	o := s.cfg.ClientGossip
	o.ID, o.Region, o.RPCAddr, o.Dir, o.Logger = s.raft.ID(), s.cfg.Region, s.RPCAddr(), s.cfg.serverDir(), s.cfg.Logger
	return o
}

// seeClients makes what the leader's heartbeats know of clients beside themselves; nil: nothing.
func (s *Server) seeClients() heartbeat.Witnesses {
	if s.clients == nil {
		return nil
	}
	s.clients.Connect(s.gossip, func(ctx context.Context, nodeIDs []string) error {
		return s.Call(ctx, wire.MethodNodeSuspect, &structs.NodeSuspectRequest{NodeIDs: nodeIDs}, &structs.WriteReply{})
	})
	return s.clients.Witnesses(func(ctx context.Context, nodeID string) (session, gossip bool) {
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
