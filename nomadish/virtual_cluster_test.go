package nomadish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/endpoint/eval"
	"github.com/nomadish/nomadish/nomadish/endpoint/job"
	"github.com/nomadish/nomadish/nomadish/endpoint/namespace"
	"github.com/nomadish/nomadish/nomadish/endpoint/virtualcluster"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// bubble runs a cluster in virtual time; nothing of it is left when that ends.
//
// Time stands still while a goroutine waits for a mutex: nothing here may take time, as a network or a disk does, with one held.
func bubble(t *testing.T, seed uint64, servers int, run func(c *virtualCluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newVirtualCluster(t, seed, servers)
		defer c.end()
		run(c)
	})
}

// virtualCluster is some servers with real Raft, all that a leader runs and the endpoints, in virtual time. It lacks what comes in
// from outside: the listener and its sessions, gossip, workers.
type virtualCluster struct {
	t       *testing.T
	seed    uint64
	dice    *dice
	net     *virtualNet
	checks  *virtualChecks
	servers []*virtualServer
	began   time.Time
	// workers is how many workers each server has, which take evaluations while it leads; nodes need no heartbeats then.
	workers int
	// applied is called, if it is not nil, with what a server has applied and the state that it shows then.
	applied func(server string, logs []*raft.Log, snap *state.Snapshot)
	// machine may put something between Raft and a server's FSM, to break it.
	machine func(i int, m raft.BatchingFSM) raft.BatchingFSM
}

// virtualServer is one server over all its lives.
type virtualServer struct {
	cfg  *Config
	id   string
	addr raft.ServerAddress
	disk *virtualDisk

	mu   sync.Mutex
	life *virtualLife // nil: it is down
}

// virtualLife is one life of a server.
type virtualLife struct {
	*raftnode.Node
	store  *state.Store
	leader *leaderParts
	mux    *wire.Mux
	disk   *mounted
	cancel context.CancelFunc
	parts  sync.WaitGroup
	users  sync.WaitGroup // those that call it
}

// newVirtualCluster bootstraps a cluster and waits for its leader.
func newVirtualCluster(t *testing.T, seed uint64, n int) *virtualCluster {
	t.Helper()
	c := &virtualCluster{t: t, seed: seed, dice: newDice(seed, 1), checks: newVirtualChecks(), began: time.Now()}
	c.net = newVirtualNet(newDice(seed, 2), c.checks)
	dir := t.TempDir()
	for i := range n {
		cfg := virtualConfig(n, fmt.Sprintf("s%d", i), filepath.Join(dir, fmt.Sprint(i)))
		s := &virtualServer{
			cfg: cfg, id: fmt.Sprintf("id-%d", i), addr: raft.ServerAddress(fmt.Sprintf("10.0.0.%d:4647", i+1)),
			disk: &virtualDisk{InmemStore: raft.NewInmemStore(), dice: newDice(seed, uint64(10+i))}, // small
		}
		c.must(os.MkdirAll(filepath.Join(cfg.serverDir(), "raft"), 0o700))
		c.must(os.WriteFile(filepath.Join(cfg.serverDir(), "node-id"), []byte(s.id), 0o600))
		c.servers = append(c.servers, s)
	}
	return c
}

// slow has one server wait longer than the others before it does anything, as one whose machine stands still does: as a leader that
// is cut off it goes on to think that it leads when the others have long elected another. Call it before the start.
func (c *virtualCluster) slow(i int) {
	cfg := c.servers[i].cfg
	cfg.Raft.Heartbeat, cfg.Raft.Election, cfg.Raft.Lease = slowLease, slowLease, slowLease
}

const slowLease = 5 * time.Second

// bootstrap starts all servers, of which the first bootstraps the cluster.
func (c *virtualCluster) bootstrap() {
	c.t.Helper()
	for i := range c.servers {
		c.start(i)
	}
	var voters raft.Configuration
	for _, s := range c.servers {
		voters.Servers = append(voters.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(s.id), Address: s.addr})
	}
	c.must(c.servers[0].life.Bootstrap(voters))
	c.lives(c.all(), "the cluster is bootstrapped")
}

// virtualConfig is a server's as operators get it, except that snapshots come often enough for followers to need them.
func virtualConfig(servers int, name, dir string) *Config {
	cfg := testConfig()
	cfg.Name, cfg.DataDir, cfg.Membership.Expect = name, dir, servers
	cfg.Raft.SnapshotInterval, cfg.Raft.SnapshotThreshold, cfg.Raft.TrailingLogs = 5*time.Second, 64, 16
	if os.Getenv("NOMADISH_TEST_LOG") != "" {
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Name: name, TimeFn: time.Now})
	}
	return cfg
}

func (c *virtualCluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("seed %d: %v", c.seed, err)
	}
}

// all are the indexes of all servers.
func (c *virtualCluster) all() (out []int) {
	for i := range c.servers {
		out = append(out, i)
	}
	return out
}

// start begins a server's next life, wired as Server does it.
func (c *virtualCluster) start(i int) {
	c.t.Helper()
	s := c.servers[i]
	fresh := func() (*state.Store, *fsm.FSM) {
		store, writer := state.New(state.Options{EventBuffer: s.cfg.State.EventBuffer, HistoryMax: s.cfg.State.HistoryMax, JobVersions: s.cfg.State.JobVersions})
		return store, fsm.New(writer, store, s.cfg.Logger.Named("fsm"))
	}
	store, plain := fresh()
	var machine raft.BatchingFSM = &prober{FSM: plain, c: c, store: store, server: s.cfg.Name}
	if c.machine != nil {
		machine = c.machine(i, machine)
	}
	disk := &mounted{virtualDisk: s.disk}
	end := c.net.link(s.addr)
	c.net.plug(end)
	o := s.cfg.raftOptions()
	o.Member = c.member
	n, err := raftnode.OpenOn(o, &raftnode.Stores{Log: raftnode.CacheLog(disk), Stable: s.disk, Snapshots: &s.disk.snapshots},
		raftnode.Transport{Transport: end, WithPreVote: end, WithClose: end}, machine, func() raft.FSM { _, m := fresh(); return m })
	c.must(err)
	l := &virtualLife{Node: n, store: store, disk: disk}
	l.leader = newLeaderParts(s.cfg, store, n, &virtualMembers{c}, &virtualCaller{c, s}, worker.NewTypicals(), forecasts.New(forecasts.Options{}, store), nil)
	l.mux = s.endpoints(l)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.parts.Go(func() { l.leader.follow(ctx, n.Gained()) })
	assumed := worker.NewAssumed()
	for range c.workers {
		one := worker.New(worker.Options{Schedulers: s.cfg.EnabledSchedulers, NewID: NewID, Assumed: assumed, Logger: s.cfg.Logger}, ownLeader{l}, store)
		l.parts.Go(func() { one.RunUntil(ctx, ctx) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = l
}

// endpoints answers reads, and nobody's but this server's own: there are no sessions to pass calls on over.
func (s *virtualServer) endpoints(l *virtualLife) *wire.Mux {
	mux, others := wire.NewMux(s.cfg.Logger, 0), wire.NewPool(wire.Config{}, nil)
	others.Close()
	router := rpc.New(rpc.Config{ID: s.id, Name: s.cfg.Name, Region: s.cfg.Region, Hold: readLimit}, rpc.Deps{
		Store: l.store, Leadership: &leadership{Node: l.Node, leading: l.leader.leading}, Pool: others, Logger: s.cfg.Logger,
		Cluster: oneVersion{},
	})
	parts := rpc.Parts{Router: router, Applier: l.Node, NewID: NewID, Now: time.Now}
	rpc.Register(mux,
		job.New(job.Config{}, job.Deps{Parts: parts}),
		eval.New(eval.Deps{Router: router, Applier: l.Node, Broker: l.leader.broker, Plans: l.leader.plans, Now: time.Now, Logger: s.cfg.Logger}),
		namespace.New(parts),
		virtualcluster.New(parts),
	)
	return mux
}

func (c *virtualCluster) member(id string) bool {
	for _, s := range c.servers {
		if s.id == id {
			return true
		}
	}
	return false
}

// enter returns a server's present life, which does not end before leave; nil: it is down.
func (s *virtualServer) enter() *virtualLife {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil {
		s.life.users.Add(1)
	}
	return s.life
}

func (l *virtualLife) leave() { l.users.Done() }

// use does something with a server that is up, and reports whether it is.
func (s *virtualServer) use(do func(l *virtualLife)) bool {
	l := s.enter()
	if l == nil {
		return false
	}
	defer l.leave()
	do(l)
	return true
}

// stop ends a server's life, if it lives, in the order of Server.close. With sudden, nothing that it does after this moment
// reaches its disk or anybody.
func (c *virtualCluster) stop(i int, sudden bool) {
	c.t.Helper()
	s := c.servers[i]
	s.mu.Lock()
	l := s.life
	s.life = nil
	s.mu.Unlock()
	if l == nil {
		return
	}
	if sudden {
		l.disk.off.Store(true)
	}
	c.net.unplug(s.addr)
	l.cancel()
	l.parts.Wait()
	l.users.Wait()
	unanswered, err := l.Stop(time.Minute)
	if unanswered > 0 {
		c.t.Errorf("seed %d: Raft of %s leaves %d entries unanswered", c.seed, s.cfg.Name, unanswered)
	}
	c.must(err)
	c.must(l.Close())
}

// end ends everything.
func (c *virtualCluster) end() {
	c.net.heal()
	var wg sync.WaitGroup
	for i := range c.servers {
		wg.Go(func() { c.stop(i, false) })
	}
	wg.Wait()
	c.net.late.Wait()
}

// prober is a server's FSM that tells what it is to apply.
type prober struct {
	*fsm.FSM
	c      *virtualCluster
	store  *state.Store
	server string
}

// Apply implements raft.FSM.
func (w *prober) Apply(l *raft.Log) any {
	return w.ApplyBatch([]*raft.Log{l})[0]
}

// ApplyBatch implements raft.BatchingFSM.
func (w *prober) ApplyBatch(logs []*raft.Log) []any {
	for _, l := range logs {
		w.c.checks.applied(w.server, l)
	}
	answers := w.FSM.ApplyBatch(logs)
	if w.c.applied != nil {
		w.c.applied(w.server, logs, w.store.Snapshot())
	}
	return answers
}

// virtualMembers is gossip to which all servers are always there: whether one is to be given up is not what this ring is about.
type virtualMembers struct{ c *virtualCluster }

// Servers implements quorum.Gossip.
func (m *virtualMembers) Servers() (out []gossip.Server) {
	for _, s := range m.c.servers {
		out = append(out, gossip.Server{
			Member: s.cfg.Name + "." + s.cfg.Region, Name: s.cfg.Name, ID: s.id, Region: s.cfg.Region, Datacenter: s.cfg.Datacenter,
			RPCAddr: string(s.addr), Expect: len(m.c.servers), Status: structs.MemberAlive,
		})
	}
	return out
}

// Subscribe implements quorum.Gossip.
func (*virtualMembers) Subscribe() (<-chan struct{}, func()) { return make(chan struct{}), func() {} }

// ForceLeave implements quorum.Leaver.
func (*virtualMembers) ForceLeave(string, bool) error { return errors.New("nobody leaves") }

// virtualCaller asks other servers past Raft, on the same network.
type virtualCaller struct {
	c    *virtualCluster
	from *virtualServer
}

// BootstrapVote implements quorum.Caller.
func (*virtualCaller) BootstrapVote(context.Context, string, *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	return nil, errors.New("the cluster is bootstrapped")
}

// RaftState implements quorum.Caller.
func (a *virtualCaller) RaftState(_ context.Context, addr string, _ *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	to := raft.ServerAddress(addr)
	if err := a.c.net.travel(a.from.addr, to); err != nil {
		return nil, err
	}
	reply := &structs.RaftStateReply{}
	for _, s := range a.c.servers {
		if s.addr != to {
			continue
		}
		if !s.use(func(l *virtualLife) {
			reply.ID, reply.Cluster = s.id, l.store.Snapshot().Cluster().ClusterID
			reply.LastIndex = l.LastIndex()
			reply.LastContact = l.LeaderContact()
		}) {
			return nil, errOff
		}
	}
	return reply, a.c.net.travel(to, a.from.addr)
}
