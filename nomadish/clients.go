package nomadish

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/structs"
)

// ClientGossipConfig says whether and how a server gossips with the clients.
type ClientGossipConfig struct {
	On        bool
	Addr      string // host:port to gossip on; port 0: any free one
	Advertise string // host:port that others are told; empty: as bound
	// MayMiss lets the server do without when another agent has the port.
	MayMiss bool
	Key     []byte        // 16, 24 or 32 bytes; empty: it goes in the clear
	Probe   time.Duration // how often members are probed; 0: 1 s
}

const (
	// clientsLook is how often the servers are made sure of to be in one pool.
	clientsLook = 5 * time.Second
	// joinEach is the time that the pool has for each client that joins, when all come together; joinMost for all.
	joinEach  = 10 * time.Millisecond
	joinMost  = 30 * time.Second
	contacts  = 5 // servers that clients are told of
	lostLimit = 1 << 16
	lostLimbo = 5 * time.Second // for the leader to be told of lost sessions
)

// clients is this server's part in the clients' gossip.
type clients struct {
	pool   *clientpool.Pool
	ring   *keyring.Ring // nil: the gossip goes in the clear
	id     string
	logger hclog.Logger
	told   wire.Once
	// servers are those of the servers' own pool, the only ones that count.
	servers func() []gossip.Server
	// suspect tells the leader, whoever it is.
	suspect func(ctx context.Context, nodeIDs []string) error

	mu     sync.Mutex
	beats  *heartbeat.Timers             // set before anybody is heard of
	lost   map[string]bool               // nodes that the leader is to be told of
	keys   map[string]structs.GossipKeys // that nodes have, as they told this server while it led
	losses chan struct{}
}

// openClients joins the server into the pool of the clients, alone as yet; nil: it does not gossip with them.
func openClients(cfg *Config, id, rpcAddr string) (*clients, error) {
	c := cfg.ClientGossip
	if !c.On {
		return nil, nil
	}
	s := &clients{id: id, logger: cfg.Logger.Named("clients"), lost: map[string]bool{}, keys: map[string]structs.GossipKeys{}, losses: make(chan struct{}, 1)}
	var err error
	if s.ring, err = openKeyring(cfg, ringClients, "client_gossip_encrypt", c.Key); err != nil {
		return nil, err
	}
	s.pool, err = clientpool.New(clientpool.Config{
		ID: id, Role: clientpool.RoleServer, Region: cfg.Region, RPCAddr: rpcAddr, BindAddr: c.Addr, Advertise: c.Advertise, Keyring: s.ring,
		ProbeInterval: c.Probe, OnChange: s.changed, First: s.told.FirstOf, Logger: s.logger.Named("gossip"),
	})
	if errors.Is(err, clientpool.ErrInUse) && c.MayMiss {
		s.logger.Warn("this server does not gossip with clients: their loss is seen by their heartbeats alone; set ports { client_gossip = … }, or server { client_gossip = false }", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// seeClients makes what the leader's heartbeats know of clients beside themselves; nil: nothing.
func (s *Server) seeClients() heartbeat.Witnesses {
	if s.clients == nil {
		return nil
	}
	s.clients.servers = s.gossip.Servers
	s.clients.suspect = func(ctx context.Context, nodeIDs []string) error {
		return s.Call(ctx, wire.MethodNodeSuspect, &structs.NodeSuspectRequest{NodeIDs: nodeIDs}, &structs.WriteReply{})
	}
	return &witnesses{s.clients, func(ctx context.Context, nodeID string) (session, gossip bool) {
		return s.endpoints.clients.Reach(ctx, nodeID)
	}}
}

// runClients has the server take its part in the clients' gossip until ctx ends.
func (s *Server) runClients(ctx context.Context) {
	if s.clients == nil {
		return
	}
	changed, cancel := s.gossip.Subscribe()
	s.wg.Go(func() {
		defer cancel()
		s.clients.run(ctx, changed)
	})
	s.wg.Go(func() { s.endpoints.clients.PingSilent(ctx) })
	again, stop := s.gossip.Subscribe()
	s.wg.Go(func() {
		defer stop()
		s.clientKeys.keepSame(ctx, again)
	})
}

// ClientGossipAddr is where clients reach this server's part of their gossip; empty: it has none.
func (s *Server) ClientGossipAddr() string { return s.clients.addr() }

// since is a time for people.
func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// listen has a leader's heartbeats told of clients.
func (s *clients) listen(beats *heartbeat.Timers) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats = beats
}

// addr is where others reach the pool; empty: this server is not in it.
func (s *clients) addr() string {
	if s == nil {
		return ""
	}
	return s.pool.Addr()
}

// changed passes on what the gossip tells of clients.
func (s *clients) changed(m clientpool.Member) {
	s.mu.Lock()
	beats := s.beats
	s.mu.Unlock()
	if beats == nil || m.Role != clientpool.RoleClient {
		return
	}
	switch m.Status {
	case structs.MemberFailed:
		beats.Suspect(m.ID)
	case structs.MemberAlive:
		beats.Returned(m.ID)
	}
}

// run keeps the servers in one pool, looks for those that only say that they are one, and tells the leader of lost
// sessions, until ctx ends.
func (s *clients) run(ctx context.Context, changed <-chan struct{}) {
	tick := time.NewTicker(clientsLook)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.tellLosses(ctx) })
	for {
		s.meet()
		select {
		case <-tick.C:
			s.unmask()
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// meet joins servers that the servers' own gossip knows, and the clients' does not.
func (s *clients) meet() {
	for _, one := range s.servers() {
		if !one.Alive() || one.ID == s.id || one.Clients == "" {
			continue
		}
		if m, ok := s.pool.Member(one.ID); ok && m.Alive() {
			continue
		}
		if err := s.pool.Join(one.Clients); err != nil && s.told.FirstOf("join", one.ID, time.Now()) {
			s.logger.Warn("another server is not reached by the clients' gossip; trying again", "server", one.Name, "error", err)
		}
	}
}

// unmask tells of members that call themselves servers and are none.
func (s *clients) unmask() {
	known := map[string]bool{}
	for _, one := range s.servers() {
		known[one.ID] = true
	}
	for _, m := range s.pool.Servers() {
		if !known[m.ID] && s.told.FirstOf("unmask", m.Addr, time.Now()) {
			s.logger.Warn("a member of the clients' gossip calls itself a server, and the servers' own gossip knows of none such: it has no effect here",
				"id", m.ID, "addr", m.Addr, "rpc", m.RPCAddr)
		}
	}
}

// Lost implements client.Gossip.
func (s *clients) Lost(nodeIDs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range nodeIDs {
		if len(s.lost) < lostLimit { // heartbeats tell of the others
			s.lost[id] = true
		}
	}
	select {
	case s.losses <- struct{}{}:
	default:
	}
}

func (s *clients) tellLosses(ctx context.Context) {
	for {
		select {
		case <-s.losses:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		ids := make([]string, 0, len(s.lost))
		for id := range s.lost { // order does not matter: each is looked for by itself
			if _, gossips := s.pool.Member(id); gossips {
				ids = append(ids, id)
			}
		}
		clear(s.lost)
		s.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, lostLimbo)
		if err := s.suspect(limited, ids); err != nil && ctx.Err() == nil {
			s.logger.Debug("the leader cannot be told of lost sessions; heartbeats will tell", "nodes", len(ids), "error", err)
		}
		cancel()
	}
}

// Contacts implements client.Gossip.
func (s *clients) Contacts(nodeID string, has *structs.GossipKeys) *structs.ClientGossip {
	out := &structs.ClientGossip{Addrs: []string{s.pool.Addr()}, Spread: min(joinMost, time.Duration(s.crowd())*joinEach)}
	for _, one := range s.servers() {
		if one.Alive() && one.ID != s.id && one.Clients != "" && len(out.Addrs) < contacts {
			out.Addrs = append(out.Addrs, one.Clients)
		}
	}
	s.tellKeys(nodeID, has, out)
	return out
}

// crowd is how many may join at once: those that are in the pool, or, when all have just been started and none is, those that
// are heard otherwise.
func (s *clients) crowd() int {
	s.mu.Lock()
	beats := s.beats
	s.mu.Unlock()
	if beats == nil {
		return s.pool.Clients()
	}
	return max(s.pool.Clients(), beats.Active())
}

// Probe implements client.Gossip.
func (s *clients) Probe(id string) error { return s.pool.Probe(id) }

func (s *clients) close() error {
	if s == nil {
		return nil
	}
	return s.pool.Shutdown()
}

// witnesses are how the leader's heartbeats hear nodes otherwise.
type witnesses struct {
	*clients
	reach func(ctx context.Context, nodeID string) (session, gossip bool)
}

// Gossips implements heartbeat.Witnesses.
func (w *witnesses) Gossips(nodeID string) (member, failed bool) {
	m, ok := w.pool.Member(nodeID)
	if !ok || m.Role != clientpool.RoleClient {
		return false, false
	}
	switch m.Status {
	case structs.MemberAlive:
		return true, false
	case structs.MemberFailed:
		return true, true
	}
	return false, false
}

// Reach implements heartbeat.Witnesses.
func (w *witnesses) Reach(ctx context.Context, nodeID string) (session, gossip bool) {
	return w.reach(ctx, nodeID)
}

// Agreed implements heartbeat.Witnesses: a server that has a part in the clients' gossip knows it, and so does one that knows
// the log entries of that time. Whether it takes part does not matter: what others hear counts.
func (w *witnesses) Agreed() bool {
	for _, one := range w.servers() {
		if one.Clients == "" && one.Entries < structs.LogJobStability && one.Status != structs.MemberLeft {
			return false
		}
	}
	return true
}
