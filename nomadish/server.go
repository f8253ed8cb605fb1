package nomadish

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/jobseries"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/nomadish/ownerseries"
	"github.com/nomadish/nomadish/nomadish/portmux"
	"github.com/nomadish/nomadish/nomadish/quorum"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// Server is one server of a cluster.
type Server struct {
	cfg       *Config
	logger    hclog.Logger
	store     *state.Store
	port      *portmux.Listener
	raft      *raftnode.Node
	pool      *wire.Pool
	far       *wire.Pool // to servers of other regions
	mux       *wire.Mux
	endpoints *endpoints
	leader    *leaderParts
	typicals  *worker.Typicals
	workers   *workers
	forecasts *forecasts.Service
	spool     *snapshot.Spool
	series    jobseries.Series
	owners    ownerseries.Series
	gossip    *gossip.Pool
	wan       *gossip.Pool // of all regions; nil: switched off
	regions   *membership.Regions
	clients   *clientgossip.Pool // nil: this server does not gossip with clients
	// clientKeys changes the keys of that gossip; nil: as above.
	clientKeys   *clientgossip.Keys
	bootstrapper *quorum.Bootstrapper
	failed       chan error
	halt         chan struct{} // closed when the log is of a newer version
	halting      sync.Once
	// takesRaft reports whether this server may take part in Raft; set before the port is served. See membership.RaftGate.
	takesRaft func() bool

	cancel  context.CancelFunc
	wg      sync.WaitGroup
	stopped sync.Once
}

// farKeepAlive is how often a server of another region that calls are passed on to must show that it is
// there: when its region is lost, a request for it does not wait for long.
const farKeepAlive = 4 * time.Second

// NewServer starts a server: it listens, opens its log, replays it, finds the other
// servers and takes part in the cluster. Shutdown ends it.
func NewServer(cfg *Config) (*Server, error) {
	s := &Server{cfg: cfg, logger: cfg.Logger.Named("server"), typicals: worker.NewTypicals(), failed: make(chan error, 1), halt: make(chan struct{})}
	s.workers = newWorkers(s)
	s.mux = wire.NewMux(s.logger.Named("rpc"), 0)
	s.mux.Observe(observeCall)
	s.pool = wire.NewPool(wire.Config{Logger: s.logger.Named("wire"), TLS: cfg.Port.TLS}, nil)
	s.far = wire.NewPool(wire.Config{Logger: s.logger.Named("wire"), TLS: cfg.Port.TLS, KeepAlive: farKeepAlive}, nil)
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.port.Run()
	s.wg.Go(func() { s.leaveRaftOnHalt(ctx, s.halt) })
	s.wg.Go(func() { s.leader.follow(ctx, s.raft.Gained()) })
	if s.raft.Disk() != nil {
		s.wg.Go(func() { s.raft.Disk().Run(ctx) })
		s.wg.Go(func() { s.stepDownWhileFull(ctx) })
	}
	s.wg.Go(func() { s.bootstrapper.Run(ctx) })
	s.wg.Go(func() { s.endpoints.evals.PingWorkers(ctx) })
	s.wg.Go(func() { s.endpoints.router.WatchLeader(ctx) })
	s.runClients(ctx)
	s.wg.Go(func() { s.workers.run(ctx) })
	s.wg.Go(func() { s.forecasts.Run(ctx) })
	if err := s.findOthers(ctx); err != nil {
		return nil, errors.Join(err, s.Shutdown())
	}
	return s, nil
}

// leaveRaftOnHalt takes this server out of the cluster when its state cannot move any more: a
// newer server wrote what it does not know. It must not lead, and its answers would be old.
func (s *Server) leaveRaftOnHalt(ctx context.Context, halt <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-halt:
		s.logger.Error("this server steps down: its version is too old for the log; upgrade and start it again")
		if err := s.raft.Halt(); err != nil {
			s.logger.Error("step down", "error", err)
		}
	}
}

// halted takes note that the log is of a newer version. It may be called again: a state that is restored may be followed by
// such an entry in its turn.
func (s *Server) halted(error) { s.halting.Do(func() { close(s.halt) }) }

// open makes the parts; none of them runs yet but Raft and the gossip, which answer.
func (s *Server) open() error {
	cfg := s.cfg
	fresh := func() (*state.Store, *state.Writer) {
		return state.New(cfg.State)
	}
	store, writer := fresh()
	s.store = store
	var err error
	if s.spool, err = newSpool(cfg); err != nil {
		return err
	}
	port := cfg.Port
	port.OnRPC, port.TakesRaft, port.Logger = s.serveRPC, func() bool { return s.takesRaft() }, cfg.Logger
	if s.port, err = portmux.Listen(port); err != nil {
		return err
	}
	scratch := func() raft.FSM {
		store, writer := fresh()
		return fsm.New(writer, store, cfg.Logger.Named("fsm"))
	}
	machine := fsm.New(writer, store, cfg.Logger.Named("fsm"))
	machine.OnHalt(s.halted)
	machine.Measure(observeState)
	o := cfg.raftOptions()
	o.Member = s.isMember
	o.Readable = func(t structs.LogType) error { return s.raftServers().Readable(t) }
	if s.raft, err = raftnode.Open(o, machine, scratch, s.port.Raft()); err != nil {
		return err
	}
	if err = s.openGossips(); err != nil {
		return err
	}
	query, vote := membership.NewCaller(s.pool), membership.VoteOf(s.membershipOptions())
	s.takesRaft = membership.RaftGate(s.raft, vote)
	s.bootstrapper = quorum.NewBootstrapper(quorum.BootstrapOptions{
		ID: s.raft.ID(), Name: cfg.Name, Region: cfg.Region, Expect: cfg.Membership.Expect, Logger: cfg.Logger.Named("bootstrap"),
		Cluster: func() string { return store.Snapshot().Cluster().ClusterID }, Namesakes: s.gossip.Namesakes,
	}, s.raft, s.gossip, query, vote)
	future := cfg.Forecasts
	future.Queue, future.Logger = cfg.Queue, cfg.Logger.Named("forecast")
	s.forecasts = forecasts.New(future, store)
	seen := s.seeClients()
	s.leader = newLeaderParts(cfg, store, s.raft, s.gossip, query, s.typicals, s.forecasts, seen)
	s.clientKeys.Lead(s.leader.leading)
	s.openEndpoints(s.raftServers())
	s.clients.Notify(s.leader.heartbeats)
	return nil
}

// Encrypted reports whether the gossip among servers is.
func (s *Server) Encrypted() bool { return s.gossip.Encrypted() }

// NewID mints a UUID that is random but for its last group, which is the time.
func NewID() string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	return structs.MintedID(time.Now().UnixMilli(), random)
}

// serveRPC answers the calls of one connection until it closes.
func (s *Server) serveRPC(ctx context.Context, conn net.Conn) {
	session, err := wire.Server(conn, wire.Config{Logger: s.logger.Named("wire")})
	if err != nil {
		s.logger.Warn("accept an RPC session", "error", err)
		return
	}
	s.mux.Serve(ctx, session)
	s.endpoints.sessionClosed(session)
}

// Call calls an RPC method as if over the network: it is answered here or passed
// on to the leader, or to the client that holds the allocation.
func (s *Server) Call(ctx context.Context, method string, args, reply any) error {
	return s.mux.Local(ctx, method, args, reply)
}

// Stream opens a streaming call; see Call.
func (s *Server) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	return s.mux.LocalStream(ctx, method, args)
}

// RPCAddr is the address that the server can be reached at.
func (s *Server) RPCAddr() string { return s.port.Addr().String() }

// SerfAddr is the address that the server's gossip can be reached at.
func (s *Server) SerfAddr() string { return s.gossip.Addr() }

// WANAddr is the address that the gossip of all regions can be reached at; empty: it is off.
func (s *Server) WANAddr() string {
	if s.wan == nil {
		return ""
	}
	return s.wan.Addr()
}

// IsLeader reports whether this server leads and its leader's parts run.
func (s *Server) IsLeader() bool { return s.leader.leading() }

// Stats describes the server for `agent-info`.
func (s *Server) Stats() map[string]map[string]string {
	addr, id := s.raft.LeaderWithID()
	nomad := map[string]string{
		"server": "true", "leader": fmt.Sprint(s.IsLeader()), "leader_addr": string(addr), "leader_id": string(id),
		"bootstrap": fmt.Sprint(s.cfg.Membership.Expect == 1), "region": s.cfg.Region,
		"known_regions": fmt.Sprint(len(s.regions.Known())),
	}
	if disk := s.raft.Disk().State(); disk.Room.Total > 0 {
		nomad["disk"] = disk.Room.String()
		if disk.Full != "" {
			nomad["disk_full"] = disk.Full
		}
	}
	out := map[string]map[string]string{"nomad": nomad, "raft": s.raft.Stats(), "serf": s.gossip.Stats(), "serf_wan": s.regions.Stats()}
	if s.IsLeader() {
		nomad["servers_whose_workers_wait"] = fmt.Sprint(s.endpoints.evals.WorkersWait())
	}
	if s.clients != nil {
		out["serf_clients"] = s.clients.Stats()
		nomad["clients_in_doubt_since"] = since(s.leader.heartbeats.MassFailure())
	}
	return out
}

// Failed delivers an error when the server cannot go on as configured: no server was
// found to join. It should be ended then.
func (s *Server) Failed() <-chan error { return s.failed }

// transferWait bounds the wait for another server to lead. Raft itself takes no longer than an election for it.
const transferWait = 10 * time.Second

// transferAway transfers leadership to another server, if this one leads and there is another.
func (s *Server) transferAway() {
	f := s.raft.GetConfiguration()
	if s.raft.State() != raft.Leader || f.Error() != nil {
		return
	}
	voters := 0
	for _, one := range f.Configuration().Servers {
		if one.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), transferWait)
	defer cancel()
	if err := s.raft.Transfer(ctx, "", ""); err != nil {
		s.logger.Warn("transfer leadership before leaving; the other servers will elect a leader", "error", err)
	}
}

// leaveWait bounds the wait for the leader to take a server that leaves off the list.
const leaveWait = 5 * time.Second

// Leave takes the server out of the cluster and shuts it down. The others do not wait
// for it to come back; a majority of fewer servers decides from then on.
func (s *Server) Leave() error {
	s.transferAway()
	err := s.gossip.Leave()
	if s.wan != nil {
		err = errors.Join(err, s.wan.Leave())
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for listed := true; listed; {
		if f := s.raft.GetConfiguration(); f.Error() == nil {
			servers := f.Configuration().Servers
			listed = len(servers) > 1 && slices.ContainsFunc(servers, func(o raft.Server) bool { return string(o.ID) == s.raft.ID() })
		}
		if listed && ctx.Err() != nil {
			s.logger.Warn("the leader has not removed this server from the Raft peers in time; use `operator raft remove-peer`")
			break
		}
		<-tick.C
	}
	return errors.Join(err, s.Shutdown())
}

// Shutdown stops everything and waits for it. What was acknowledged is on disk. A leader
// transfers leadership first. The server stays a member, and may come back.
func (s *Server) Shutdown() error {
	var err error
	s.stopped.Do(func() {
		s.transferAway()
		s.cancel()
		s.pool.Close()
		s.far.Close()
		err = s.close()
	})
	return err
}

// close ends what there is, in the order in which one needs the other.
func (s *Server) close() error {
	var errs []error
	if s.gossip != nil {
		errs = append(errs, s.gossip.Shutdown())
	}
	if s.wan != nil {
		errs = append(errs, s.wan.Shutdown())
	}
	errs = append(errs, s.clients.Shutdown())
	s.pool.Close()
	s.far.Close()
	if s.spool != nil {
		s.spool.Close()
	}
	s.wg.Wait()
	if s.raft != nil {
		if _, err := s.raft.Stop(2 * time.Second); err != nil {
			errs = append(errs, fmt.Errorf("stop Raft: %w", err))
		}
	}
	if s.port != nil {
		s.port.Close()
	}
	if s.raft != nil {
		if err := s.raft.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
