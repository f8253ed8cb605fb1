package clientgossip

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// Options are whether and how a server gossips with the clients.
type Options struct {
	On        bool
	Addr      string // host:port to gossip on; port 0: any free one
	Advertise string // host:port that is advertised; empty: as bound
	// MayMiss lets the server do without when another agent has the port.
	MayMiss bool
	Key     []byte        // 16, 24 or 32 bytes; empty: it goes in the clear
	Probe   time.Duration // how often members are probed; 0: 1 s

	// What follows is of the server, not of its configuration.

	ID      string // of the server, which Raft knows it by
	Region  string
	RPCAddr string // host:port that clients reach it at
	Dir     string // where the keys are kept; empty: nowhere
	Logger  hclog.Logger
}

// KeyringFile is the name of the file that keeps the keys, in Options.Dir.
const KeyringFile = "clients.keyring"

// Servers are the members of the servers' own gossip, the only ones that count as servers.
type Servers interface {
	Servers() []gossip.Server
	// Subscribe returns a channel that has a notice whenever they have changed, and a function that ends that.
	Subscribe() (changed <-chan struct{}, cancel func())
}

// Heartbeats are those of the nodes, as the leader keeps them.
type Heartbeats interface {
	// Suspect has nodes looked for that gossip has lost.
	Suspect(nodeIDs ...string)
	// Returned takes note that gossip hears a node again.
	Returned(nodeID string)
	// Active returns how many nodes are heard.
	Active() int
}

const (
	// clientsLook is how often the servers are made sure of to be in one pool.
	clientsLook = 5 * time.Second
	// joinEach is the time that the pool has for each client that joins, when all come together; joinMost for all.
	joinEach  = 10 * time.Millisecond
	joinMost  = 30 * time.Second
	contacts  = 5 // servers that clients are sent
	lostLimit = 1 << 16
	lostLimbo = 5 * time.Second // to notify the leader of lost sessions
)

// Pool is a server's part in the clients' gossip. A nil Pool is that of a server which takes none.
type Pool struct {
	*clientpool.Pool
	ring     *keyring.Ring // nil: the gossip goes in the clear
	id       string
	logger   hclog.Logger
	logLimit wire.LogLimiter
	// servers are those of the servers' own pool.
	servers Servers
	// suspect reports suspects to the leader.
	suspect func(ctx context.Context, nodeIDs []string) error

	mu     sync.Mutex
	beats  Heartbeats                    // set before anybody is heard of
	lost   map[string]bool               // nodes that the leader is to be notified of
	keys   map[string]structs.GossipKeys // that nodes have, as they reported to this server while it led
	losses chan struct{}
}

// Open joins the server into the pool of the clients, alone as yet. It returns nil if the server does not gossip with them.
func Open(o Options) (*Pool, error) {
	if !o.On {
		return nil, nil // there is none, as the configuration states
	}
	s := &Pool{id: o.ID, logger: o.Logger.Named("clients"), lost: map[string]bool{}, keys: map[string]structs.GossipKeys{}, losses: make(chan struct{}, 1)}
	path := ""
	if o.Dir != "" {
		path = filepath.Join(o.Dir, KeyringFile)
	}
	var err error
	if s.ring, err = keyring.Open(path, "client_gossip_encrypt", o.Key, o.Logger.Named("gossip")); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.Pool, err = clientpool.New(clientpool.Config{
		ID: o.ID, Role: clientpool.RoleServer, Region: o.Region, RPCAddr: o.RPCAddr, BindAddr: o.Addr, Advertise: o.Advertise, Keyring: s.ring,
		ProbeInterval: o.Probe, OnChange: s.changed, AllowLog: s.logLimit.AllowOf, Logger: s.logger.Named("gossip"),
	})
	if errors.Is(err, clientpool.ErrInUse) && o.MayMiss {
		s.logger.Warn("this server does not gossip with clients: their loss is seen by their heartbeats alone; set ports { client_gossip = … }, or server { client_gossip = false }", "error", err)
		return nil, nil // as above
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Connect sets how the pool lists the servers, and how it reports suspects to the leader. It is called before Run and
// before Probers' result is used.
func (s *Pool) Connect(servers Servers, suspect func(ctx context.Context, nodeIDs []string) error) {
	if s != nil {
		s.servers, s.suspect = servers, suspect
	}
}

// Ring returns the keys of the gossip; nil: it goes in the clear.
func (s *Pool) Ring() *keyring.Ring { return s.ring }

// Notify has a leader's heartbeats notified about clients.
func (s *Pool) Notify(beats Heartbeats) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats = beats
}

// Addr returns where others reach the pool; empty: this server is not in it.
func (s *Pool) Addr() string {
	if s == nil {
		return ""
	}
	return s.Pool.Addr()
}

// changed passes on what the gossip reports of clients.
func (s *Pool) changed(m clientpool.Member) {
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

// Run keeps the servers in one pool, looks for those that only claim to be one, and notifies the leader of lost
// sessions, until ctx ends.
func (s *Pool) Run(ctx context.Context) {
	changed, cancel := s.servers.Subscribe()
	defer cancel()
	tick := time.NewTicker(clientsLook)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.reportLosses(ctx) })
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
func (s *Pool) meet() {
	for _, one := range s.servers.Servers() {
		if !one.Alive() || one.ID == s.id || one.Clients == "" {
			continue
		}
		if m, ok := s.Member(one.ID); ok && m.Alive() {
			continue
		}
		if err := s.Join(one.Clients); err != nil && s.logLimit.AllowOf("join", one.ID, time.Now()) {
			s.logger.Warn("another server is not reached by the clients' gossip; trying again", "server", one.Name, "error", err)
		}
	}
}

// unmask logs members that claim to be servers and are not.
func (s *Pool) unmask() {
	known := map[string]bool{}
	for _, one := range s.servers.Servers() {
		known[one.ID] = true
	}
	for _, m := range s.Servers() {
		if !known[m.ID] && s.logLimit.AllowOf("unmask", m.Addr, time.Now()) {
			s.logger.Warn("a member of the clients' gossip calls itself a server, and the servers' own gossip knows of none such: it has no effect here",
				"id", m.ID, "addr", m.Addr, "rpc", m.RPCAddr)
		}
	}
}

// Lost implements client.Gossip.
func (s *Pool) Lost(nodeIDs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range nodeIDs {
		if len(s.lost) < lostLimit { // missed heartbeats show the others
			s.lost[id] = true
		}
	}
	select {
	case s.losses <- struct{}{}:
	default:
	}
}

func (s *Pool) reportLosses(ctx context.Context) {
	for {
		select {
		case <-s.losses:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		ids := make([]string, 0, len(s.lost))
		for id := range s.lost { // order does not matter: each is looked for by itself
			if _, gossips := s.Member(id); gossips {
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
			s.logger.Debug("report lost sessions to the leader; missed heartbeats will show them instead", "nodes", len(ids), "error", err)
		}
		cancel()
	}
}

// Contacts implements client.Gossip.
func (s *Pool) Contacts(nodeID string, has *structs.GossipKeys) *structs.ClientGossip {
	out := &structs.ClientGossip{Addrs: []string{s.Addr()}, Spread: min(joinMost, time.Duration(s.crowd())*joinEach)}
	for _, one := range s.servers.Servers() {
		if one.Alive() && one.ID != s.id && one.Clients != "" && len(out.Addrs) < contacts {
			out.Addrs = append(out.Addrs, one.Clients)
		}
	}
	s.answerKeys(nodeID, has, out)
	return out
}

// crowd is how many may join at once: those that are in the pool, or, when all have just been started and none is, those that
// are heard otherwise.
func (s *Pool) crowd() int {
	s.mu.Lock()
	beats := s.beats
	s.mu.Unlock()
	if beats == nil {
		return s.Clients()
	}
	return max(s.Clients(), beats.Active())
}

// Shutdown leaves the pool without a word and closes its port.
func (s *Pool) Shutdown() error {
	if s == nil {
		return nil
	}
	return s.Pool.Shutdown()
}

// Probers are how the leader's heartbeats hear nodes otherwise.
type Probers struct {
	*Pool
	reach func(ctx context.Context, nodeID string) (session, gossip bool)
}

// Probers returns what the gossip knows of nodes, with reach to probe one of them by both ways.
func (s *Pool) Probers(reach func(ctx context.Context, nodeID string) (session, gossip bool)) *Probers {
	return &Probers{s, reach}
}

// Gossips implements heartbeat.Probers.
func (w *Probers) Gossips(nodeID string) (member, failed bool) {
	m, ok := w.Member(nodeID)
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

// Reach implements heartbeat.Probers.
func (w *Probers) Reach(ctx context.Context, nodeID string) (session, gossip bool) {
	return w.reach(ctx, nodeID)
}

// Agreed implements heartbeat.Probers: a server that has a part in the clients' gossip knows it, and so does one that knows
// the log entries of that time. Whether it takes part does not matter: what others hear counts.
func (w *Probers) Agreed() bool {
	for _, one := range w.servers.Servers() {
		if one.Clients == "" && one.Entries < structs.LogJobStability && one.Status != structs.MemberLeft {
			return false
		}
	}
	return true
}
