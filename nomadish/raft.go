package nomadish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/disk"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

var applyTime = telemetry.NewTimer("nomad.raft.apply")

// raftNode is this server's Raft with what it stores in.
type raftNode struct {
	*raft.Raft
	id        string
	transport *memberTransport
	notify    <-chan bool // leadership gained and lost, in order
	stores    *stores
	applyWait time.Duration
	inFlight  atomic.Int64 // entries that Raft has not answered yet
	leaders   *leaderTracker
	room      *disk.Watch   // of the disk that it stores on; nil: in memory
	ended     chan struct{} // closed when Raft has been shut down
	ending    sync.Once
	transfers transfers
	// readable tells why an entry of a type may not be written: a server would not know it. nil: the server is not
	// among others yet, and any may.
	readable func(t structs.LogType) error
}

// stores are where Raft keeps things, on disk or in memory.
type stores struct {
	logs      raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	disk      io.Closer // nil in memory
	room      *disk.Watch
}

// openStores opens the log in cfg.DataDir, or in memory.
func openStores(cfg *Config, logger hclog.Logger) (*stores, error) {
	if cfg.DataDir == "" {
		mem := raft.NewInmemStore()
		return &stores{logs: mem, stable: mem, snapshots: raft.NewInmemSnapshotStore()}, nil
	}
	dir := raftDir(cfg)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir %s: %w", cfg.DataDir, err)
	}
	bolt, err := openLog(filepath.Join(dir, "raft.db"), cfg.LogReserve)
	if err != nil {
		return nil, fmt.Errorf("open Raft's log in %s: %w (is another agent using this data_dir? is there room on its disk?)", dir, err)
	}
	room := disk.NewWatch(disk.Options{Dir: dir, Limit: cfg.Disk, Measure: cfg.DiskRoom, Logger: cfg.Logger.Named("disk")})
	guarded := disk.NewStores(bolt, bolt, room)
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("raft snapshots in %s: %w", dir, err), bolt.Close())
	}
	return &stores{logs: &logCache{LogStore: guarded}, stable: guarded, snapshots: files, disk: bolt, room: room}, nil
}

func raftDir(cfg *Config) string { return filepath.Join(cfg.serverDir(), "raft") }

func (s *stores) close() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.Close()
}

// openRaft opens Raft. It founds the cluster at once if this is its first start and it is
// to be alone. scratch makes an FSM that nobody reads, to recover a cluster with.
func openRaft(cfg *Config, machine raft.FSM, scratch func() raft.FSM, l *listener) (*raftNode, error) {
	logger := newRaftLog(cfg.Logger.Named("raft"))
	s, err := openStores(cfg, logger)
	if err != nil {
		return nil, err
	}
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: raftLayer{l}, MaxPool: 3, Timeout: 10 * time.Second, Logger: logger,
	})
	n := newRaftNode(cfg, s, transport{network, network, network})
	if err := n.open(cfg, machine, scratch, logger); err != nil {
		return nil, errors.Join(err, n.closeStores())
	}
	return n, nil
}

// newRaftNode makes what goes around Raft; open starts Raft itself.
func newRaftNode(cfg *Config, s *stores, t transport) *raftNode {
	return &raftNode{
		stores: s, room: s.room, applyWait: cfg.ApplyTimeout, leaders: newLeaderTracker(), ended: make(chan struct{}),
		transport: newMemberTransport(t, cfg.Logger.Named("raft")),
	}
}

func (n *raftNode) open(cfg *Config, machine raft.FSM, scratch func() raft.FSM, logger hclog.Logger) error {
	s := n.stores
	known, err := raft.HasExistingState(s.logs, s.stable, s.snapshots)
	if err != nil {
		return fmt.Errorf("read Raft's state: %w", err)
	}
	if n.id, err = serverID(cfg, known); err != nil {
		return err
	}
	notify := make(chan bool, 16)
	n.notify = notify
	conf := raftConfig(cfg, n.id, notify, logger)
	if cfg.DataDir != "" {
		if err := recoverPeers(raftDir(cfg), s, conf, scratch(), n.transport); err != nil {
			return err
		}
	}
	if cfg.BootstrapExpect == 1 && !known {
		alone := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: conf.LocalID, Address: n.transport.LocalAddr()}}}
		if err := raft.BootstrapCluster(conf, s.logs, s.stable, s.snapshots, n.transport, alone); err != nil {
			return fmt.Errorf("found the cluster: %w", err)
		}
	}
	r, err := raft.NewRaft(conf, machine, s.logs, s.stable, s.snapshots, n.transport)
	if err != nil {
		return fmt.Errorf("start Raft: %w", err)
	}
	n.Raft = r
	n.leaders.watch(r)
	return nil
}

func raftConfig(cfg *Config, id string, notify chan<- bool, logger hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(id)
	conf.Logger = logger
	conf.HeartbeatTimeout, conf.ElectionTimeout = cfg.RaftHeartbeat, cfg.RaftElection
	conf.LeaderLeaseTimeout, conf.CommitTimeout = cfg.RaftLease, cfg.RaftCommit
	conf.SnapshotInterval, conf.SnapshotThreshold, conf.TrailingLogs = cfg.SnapshotInterval, cfg.SnapshotThreshold, cfg.TrailingLogs
	conf.BatchApplyCh = true // group commit: one fsync for all entries that wait
	conf.NotifyCh = notify
	conf.NoLegacyTelemetry = true
	conf.PreVoteDisabled = false  // a server that was cut off does not unseat the leader when it is back
	conf.ShutdownOnRemove = false // a server that was removed may be added again
	return conf
}

// Founded tells whether this server belongs to a cluster.
func (n *raftNode) Founded() (bool, error) {
	f := n.GetConfiguration()
	if err := f.Error(); err != nil {
		return false, err
	}
	return len(f.Configuration().Servers) > 0, nil
}

// Found founds the cluster of these voters.
func (n *raftNode) Found(voters raft.Configuration) error {
	if err := n.BootstrapCluster(voters).Error(); err != nil {
		return fmt.Errorf("found the cluster: %w", err)
	}
	return nil
}

func (n *raftNode) closeStores() error {
	n.transport.close()
	return errors.Join(n.transport.Close(), n.stores.close())
}

// Apply commits one log entry and gives its index and what the FSM answered. It
// implements the Applier of every part. When ctx ends first, the entry may still be
// committed.
func (n *raftNode) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	if n.readable != nil && t > structs.LogTypeFirst {
		if err := n.readable(t); err != nil {
			return 0, err
		}
	}
	entry, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	if err := n.hasRoom(); err != nil {
		return 0, err
	}
	defer applyTime.Since(time.Now())
	var f raft.ApplyFuture
	err = n.wait(ctx, func() error { // Raft may be slow to take it in
		if ctx.Err() != nil { // who called is told so already, and relies on it
			return ctx.Err()
		}
		f = n.Raft.Apply(entry, n.applyWait)
		return f.Error()
	})
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return 0, err
		}
		return 0, raftError(err)
	}
	if refused, ok := f.Response().(error); ok && refused != nil {
		return f.Index(), refused
	}
	return f.Index(), nil
}

// await waits for Raft's answer until ctx ends.
func (n *raftNode) await(ctx context.Context, f raft.Future) error { return n.wait(ctx, f.Error) }

// wait waits for what Raft answers, until ctx ends. What Raft has in its hands when it is shut down it never answers: that
// has failed then, as far as anybody knows.
func (n *raftNode) wait(ctx context.Context, answer func() error) error {
	done := make(chan error, 1)
	n.inFlight.Add(1)
	go func() { // ends with the answer; see settle
		defer n.inFlight.Add(-1)
		done <- answer()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ended:
		select {
		case err := <-done:
			return err
		default:
			return raft.ErrRaftShutdown
		}
	}
}

// shutdown ends Raft, and the waits for it.
func (n *raftNode) shutdown() error {
	err := n.Raft.Shutdown().Error()
	n.ending.Do(func() { close(n.ended) })
	return err
}

// settle waits until Raft has answered every entry: one that it is shut down with in
// its hands it never answers. Nobody proposes any more by then.
func (n *raftNode) settle(limit time.Duration) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); n.inFlight.Load() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

func raftError(err error) error {
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		return structs.Errorf(structs.CodeNoLeader, "%w: %w", rpc.ErrNothingDone, err).WithHint("try again")
	}
	if errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrRaftShutdown) || errors.Is(err, raft.ErrAbortedByRestore) {
		return structs.Errorf(structs.CodeNoLeader, "%w", err).WithHint("try again")
	}
	if errors.Is(err, raft.ErrEnqueueTimeout) {
		return structs.Errorf(structs.CodeLimited, "%w", err).WithHint("the servers are overloaded; try again")
	}
	return structs.Errorf(structs.CodeInternal, "commit through Raft: %w", err)
}
