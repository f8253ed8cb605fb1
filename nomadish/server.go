package nomadish

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// Server is one server of a cluster.
type Server struct {
	cfg       *Config
	logger    hclog.Logger
	store     *state.Store
	listener  *listener
	raft      *raftNode
	pool      *wire.Pool
	mux       *wire.Mux
	endpoints *rpc.Endpoints
	leader    *leaderParts
	typicals  *worker.Typicals
	spool     *snapshot.Spool

	cancel  context.CancelFunc
	wg      sync.WaitGroup
	stopped sync.Once
}

// NewServer starts a server: it listens, opens its log, replays it and takes part
// in the cluster. Shutdown ends it.
func NewServer(cfg *Config) (*Server, error) {
	s := &Server{cfg: cfg, logger: cfg.Logger.Named("server"), typicals: worker.NewTypicals()}
	store, writer := state.New(state.Options{
		EventBuffer: cfg.EventBuffer, HistoryMax: cfg.HistoryMax, JobVersions: cfg.JobTrackedMax,
	})
	s.store = store
	s.mux = wire.NewMux(s.logger.Named("rpc"), 0)
	var err error
	if s.spool, err = newSpool(cfg); err != nil {
		return nil, err
	}
	if s.listener, err = listen(cfg, s.serveRPC); err != nil {
		return nil, err
	}
	machine, halt := fsm.New(writer, store, cfg.Logger.Named("fsm")), make(chan struct{})
	machine.OnHalt(func(error) { close(halt) })
	s.raft, err = openRaft(cfg, machine, s.listener)
	if err != nil {
		s.listener.close()
		return nil, err
	}
	s.pool = wire.NewPool(wire.Config{Logger: s.logger.Named("wire"), TLS: cfg.TLS}, nil)
	s.leader = newLeaderParts(cfg, store, s.raft, s.typicals)
	s.endpoints = rpc.New(rpc.Config{
		Name: cfg.Name, Region: cfg.Region, Datacenter: cfg.Datacenter, Version: cfg.Version, JobMaxCount: cfg.JobMaxCount,
		JobMaxPriority: cfg.JobMaxPriority, JobMaxSource: cfg.JobMaxSource,
	}, rpc.Deps{
		Store: store, Applier: s.raft, Broker: s.leader.broker, Plans: s.leader.plans, Heartbeats: s.leader.heartbeats,
		Collector: s.leader.collector, Cluster: &cluster{raftNode: s.raft, leading: s.leader.leading}, Pool: s.pool,
		Snapshots: &snapshots{s.raft, s.leader}, Spool: s.spool,
		Typical: s.typicals.For, Logger: s.logger, NewID: NewID, Now: time.Now,
	})
	s.endpoints.Register(s.mux)

	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.listener.run()
	s.wg.Go(func() { s.stepAside(ctx, halt) })
	s.wg.Go(func() { s.leader.follow(ctx, s.raft.notify) })
	for _, w := range newWorkers(cfg, s) {
		s.wg.Go(func() { w.Run(ctx) })
	}
	return s, nil
}

// stepAside takes this server out of the cluster when its state cannot move any more: a
// newer server wrote what it does not know. It must not lead, and its answers would be old.
func (s *Server) stepAside(ctx context.Context, halt <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-halt:
		s.logger.Error("this server steps aside: its version is too old for the log; upgrade and start it again")
		if err := s.raft.Raft.Shutdown().Error(); err != nil {
			s.logger.Error("step aside", "error", err)
		}
	}
}

// NewID mints a time-ordered UUID.
func NewID() string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	return structs.TimeOrderedID(time.Now().UnixMilli(), random)
}

// serveRPC answers the calls of one connection until it closes.
func (s *Server) serveRPC(ctx context.Context, conn net.Conn) {
	session, err := wire.Server(conn, wire.Config{Logger: s.logger.Named("wire")})
	if err != nil {
		s.logger.Warn("accept an RPC session", "error", err)
		return
	}
	s.mux.Serve(ctx, session)
	s.endpoints.SessionClosed(session)
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
func (s *Server) RPCAddr() string { return s.listener.advertise.String() }

// IsLeader tells whether this server leads and its leader's parts run.
func (s *Server) IsLeader() bool { return s.leader.leading() }

// Stats describes the server for `agent-info`.
func (s *Server) Stats() map[string]map[string]string {
	addr, id := s.raft.LeaderWithID()
	return map[string]map[string]string{
		"nomad": {
			"server": "true", "leader": fmt.Sprint(s.IsLeader()), "leader_addr": string(addr), "leader_id": string(id),
			"bootstrap": fmt.Sprint(s.cfg.BootstrapExpect == 1), "region": s.cfg.Region,
		},
		"raft": s.raft.Stats(),
	}
}

// Leave hands leadership over, if there is somebody to take it, and shuts down.
func (s *Server) Leave() error {
	if conf := s.raft.GetConfiguration(); conf.Error() == nil && len(conf.Configuration().Servers) > 1 && s.IsLeader() {
		if err := s.raft.LeadershipTransfer().Error(); err != nil {
			s.logger.Warn("hand over leadership before leaving", "error", err)
		}
	}
	return s.Shutdown()
}

// Shutdown stops everything and waits for it. What was acknowledged is on disk.
func (s *Server) Shutdown() error {
	var err error
	s.stopped.Do(func() {
		s.cancel()
		s.pool.Close()
		s.spool.Close()
		s.wg.Wait()
		s.raft.settle(2 * time.Second)
		if e := s.raft.Shutdown().Error(); e != nil {
			err = fmt.Errorf("stop Raft: %w", e)
		}
		s.listener.close()
		if e := s.raft.closeStores(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	})
	return err
}

// cluster shows Raft to the endpoints.
type cluster struct {
	*raftNode
	leading func() bool
}

// Leader is the leader's address and ID.
func (c *cluster) Leader() (addr, id string) {
	a, i := c.LeaderWithID()
	return string(a), string(i)
}

// IsLeader tells whether the leader's parts run here.
func (c *cluster) IsLeader() bool { return c.leading() }

// Verify asks a majority whether this server still leads.
func (c *cluster) Verify() error { return c.VerifyLeader().Error() }

// Configuration lists the servers.
func (c *cluster) Configuration() (*structs.RaftConfigurationReply, error) {
	f := c.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, raftError(err)
	}
	_, leader := c.Leader()
	reply := &structs.RaftConfigurationReply{Index: f.Index()}
	for _, s := range f.Configuration().Servers {
		reply.Servers = append(reply.Servers, &structs.RaftServer{
			ID: string(s.ID), Node: string(s.ID), Address: string(s.Address), Leader: string(s.ID) == leader,
			Voter: s.Suffrage == raft.Voter, RaftProtocol: "3",
		})
	}
	return reply, nil
}

// Change removes a server, or hands leadership to it.
func (c *cluster) Change(remove bool, id, address string) error {
	conf, err := c.Configuration()
	if err != nil {
		return err
	}
	for _, s := range conf.Servers {
		if (id == "" || s.ID != id) && (address == "" || s.Address != address) {
			continue
		}
		if remove {
			if len(conf.Servers) == 1 {
				return structs.Errorf(structs.CodeBadRequest, "server %s is the only one: removing it would end the cluster", s.ID)
			}
			return raftOrNil(c.RemoveServer(raft.ServerID(s.ID), 0, 0).Error())
		}
		if s.Leader {
			return structs.Errorf(structs.CodeBadRequest, "server %s leads already", s.ID)
		}
		return raftOrNil(c.LeadershipTransferToServer(raft.ServerID(s.ID), raft.ServerAddress(s.Address)).Error())
	}
	if !remove && id == "" && address == "" {
		return raftOrNil(c.LeadershipTransfer().Error())
	}
	return structs.Errorf(structs.CodeNotFound, "no server with ID %q or address %q in the Raft configuration", id, address).
		WithHint("`operator raft list-peers` lists them")
}

func raftOrNil(err error) error {
	if err == nil {
		return nil
	}
	return raftError(err)
}
