package raftnode

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
	"github.com/nomadish/nomadish/structs"
)

var (
	applyTime    = telemetry.NewTimer("nomad.raft.apply")
	appliedIndex = telemetry.Named("raft.appliedIndex")
	lastIndex    = telemetry.Named("raft.lastIndex")
)

// Node is this server's Raft with what it stores in.
type Node struct {
	*raft.Raft
	o         Options
	id        string
	transport *memberTransport
	gained    <-chan bool // leadership gained and lost, in order
	stores    *Stores
	inFlight  atomic.Int64 // entries that Raft has not answered yet
	leaders   *leaderTracker
	ended     chan struct{} // closed when Raft has been shut down
	ending    sync.Once
	transfers transfers
	logger    hclog.Logger
}

// Stores are where Raft keeps its log, votes and snapshots, on disk or in memory.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	disk      io.Closer   // nil in memory
	room      *disk.Watch // of the disk; nil in memory
}

// openStores opens the log in o.Dir, or in memory.
func openStores(o *Options, logger hclog.Logger) (*Stores, error) {
	if o.Dir == "" {
		mem := raft.NewInmemStore()
		return &Stores{Log: mem, Stable: mem, Snapshots: raft.NewInmemSnapshotStore()}, nil
	}
	dir := o.raftDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir %s: %w", filepath.Dir(o.Dir), err)
	}
	bolt, err := openLog(filepath.Join(dir, "raft.db"), o.LogReserve)
	if err != nil {
		return nil, fmt.Errorf("open Raft's log in %s: %w (is another agent using this data_dir? is there room on its disk?)", dir, err)
	}
	room := disk.NewWatch(disk.Options{Dir: dir, Limit: o.Disk, Measure: o.MeasureDisk, Logger: o.Logger.Named("disk")})
	guarded := disk.NewStores(bolt, bolt, room)
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("raft snapshots in %s: %w", dir, err), bolt.Close())
	}
	return &Stores{Log: CacheLog(guarded), Stable: guarded, Snapshots: files, disk: bolt, room: room}, nil
}

func (s *Stores) close() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.Close()
}

// Open opens Raft over a network. It bootstraps the cluster at once if this is its first start and it is to be alone. scratch
// returns a new FSM that nobody reads, to recover a cluster with.
func Open(o Options, machine raft.FSM, scratch func() raft.FSM, network raft.StreamLayer) (*Node, error) {
	logger := newRaftLog(o.Logger.Named("raft"))
	s, err := openStores(&o, logger)
	if err != nil {
		return nil, err
	}
	t := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: network, MaxPool: 3, Timeout: 10 * time.Second, Logger: logger,
	})
	return OpenOn(o, s, Transport{t, t, t}, machine, scratch)
}

// OpenOn opens Raft on stores and a transport, which it closes when it fails.
func OpenOn(o Options, s *Stores, t Transport, machine raft.FSM, scratch func() raft.FSM) (*Node, error) {
	n := &Node{o: o, stores: s, leaders: newLeaderTracker(), ended: make(chan struct{}), logger: newRaftLog(o.Logger.Named("raft"))}
	n.transport = newMemberTransport(t, o.Member, o.Logger.Named("raft"))
	if err := n.open(machine, scratch); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) open(machine raft.FSM, scratch func() raft.FSM) error {
	s := n.stores
	known, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return fmt.Errorf("read Raft's state: %w", err)
	}
	if n.id, err = serverID(&n.o, known); err != nil {
		return err
	}
	notify := make(chan bool, 16)
	n.gained = notify
	conf := raftConfig(&n.o, n.id, notify, n.logger)
	if n.o.Dir != "" {
		if err := recoverPeers(n.o.raftDir(), s, conf, scratch(), n.transport); err != nil {
			return err
		}
	}
	if n.o.Alone && !known {
		alone := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: conf.LocalID, Address: n.transport.LocalAddr()}}}
		if err := raft.BootstrapCluster(conf, s.Log, s.Stable, s.Snapshots, n.transport, alone); err != nil {
			return fmt.Errorf("found the cluster: %w", err)
		}
	}
	r, err := raft.NewRaft(conf, machine, s.Log, s.Stable, s.Snapshots, n.transport)
	if err != nil {
		return fmt.Errorf("start Raft: %w", err)
	}
	n.Raft = r
	n.leaders.watch(r)
	return nil
}

func raftConfig(o *Options, id string, notify chan<- bool, logger hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(id)
	conf.Logger = logger
	conf.HeartbeatTimeout, conf.ElectionTimeout = o.Heartbeat, o.Election
	conf.LeaderLeaseTimeout, conf.CommitTimeout = o.Lease, o.Commit
	conf.SnapshotInterval, conf.SnapshotThreshold, conf.TrailingLogs = o.SnapshotInterval, o.SnapshotThreshold, o.TrailingLogs
	conf.BatchApplyCh = true // group commit: one fsync for all entries that wait
	conf.NotifyCh = notify
	conf.NoLegacyTelemetry = true
	conf.PreVoteDisabled = false  // a server that was cut off does not unseat the leader when it is back
	conf.ShutdownOnRemove = false // a server that was removed may be added again
	return conf
}

// ID returns the server's ID.
func (n *Node) ID() string { return n.id }

// Gained returns a channel that receives true when leadership is gained and false when it is lost, in order. One reads it.
func (n *Node) Gained() <-chan bool { return n.gained }

// Entry reads an entry of the log. It returns raft.ErrLogNotFound if the log has it not, or not any more.
func (n *Node) Entry(index uint64, to *raft.Log) error { return n.stores.Log.GetLog(index, to) }

// Disk returns the watch of the disk that Raft stores on; nil: in memory, and nil is never full.
func (n *Node) Disk() *disk.Watch { return n.stores.room }

// Bootstrapped reports whether this server belongs to a cluster.
func (n *Node) Bootstrapped() (bool, error) {
	f := n.GetConfiguration()
	if err := f.Error(); err != nil {
		return false, err
	}
	return len(f.Configuration().Servers) > 0, nil
}

// Bootstrap bootstraps the cluster of these voters.
func (n *Node) Bootstrap(voters raft.Configuration) error {
	if err := n.BootstrapCluster(voters).Error(); err != nil {
		return fmt.Errorf("found the cluster: %w", err)
	}
	return nil
}

// Close closes the transport and the stores, after Stop.
func (n *Node) Close() error {
	n.transport.close()
	return errors.Join(n.transport.Close(), n.stores.close())
}

// Apply commits one log entry and returns its index and what the FSM answered. It
// implements the Applier of every part. When ctx ends first, the entry may still be
// committed.
func (n *Node) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	if t > structs.LogTypeFirst {
		if err := n.Readable(t); err != nil {
			return 0, err
		}
	}
	if plans, ok := payload.(*structs.PlanCommit); ok {
		if older, since := plans.Older(); older != nil && n.Readable(since) != nil {
			payload = older // until all servers know the rest
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
		if ctx.Err() != nil { // the caller has that error already, and relies on it
			return ctx.Err()
		}
		f = n.Raft.Apply(entry, n.o.ApplyTimeout)
		return f.Error()
	})
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return 0, err
		}
		return 0, WrapError(err)
	}
	if refused, ok := f.Response().(error); ok && refused != nil {
		return f.Index(), refused
	}
	return f.Index(), nil
}

// Readable returns an error if an entry of a type may not be written, as a server would not know it.
func (n *Node) Readable(t structs.LogType) error {
	if n.o.Readable == nil {
		return nil
	}
	return n.o.Readable(t)
}

// hasRoom refuses entries while the disk is full and this server leads: better none than one that is half
// written. What Raft notes for itself has the room that is left.
func (n *Node) hasRoom() error {
	why := n.stores.room.Full()
	if why == "" || n.State() != raft.Leader {
		return nil
	}
	return structs.Errorf(structs.CodeNoLeader, "%w: %s", structs.ErrNothingDone, why).
		WithHint("free some room there; it goes on by itself")
}

// Await waits for Raft's answer until ctx or Raft ends.
func (n *Node) Await(ctx context.Context, f raft.Future) error { return n.wait(ctx, f.Error) }

// wait waits for what Raft answers, until ctx ends. What Raft has in its hands when it is shut down it never answers: that
// has failed then, as far as anybody knows.
func (n *Node) wait(ctx context.Context, answer func() error) error {
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

// Halt ends Raft, and the waits for it. Its stores stay open.
func (n *Node) Halt() error {
	err := n.Raft.Shutdown().Error()
	n.ending.Do(func() { close(n.ended) })
	return err
}

// Stop ends Raft and what follows it, when nobody proposes any more. It waits until Raft has answered every entry, up to limit:
// what Raft is shut down with in its hands it never answers. It returns how many entries those are.
func (n *Node) Stop(limit time.Duration) (unanswered int64, err error) {
	unanswered = n.await(limit)
	err = n.Halt()
	n.leaders.close()
	return unanswered, err
}

// await waits until Raft has answered every entry, and returns how many it has not.
func (n *Node) await(limit time.Duration) int64 {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); n.inFlight.Load() > 0 && time.Now().Before(end); {
		<-tick.C
	}
	return n.inFlight.Load()
}

// Metrics adds the series of the log to a batch.
func (n *Node) Metrics(b *telemetry.Batch) {
	b.Add(appliedIndex, float64(n.AppliedIndex()), nil)
	b.Add(lastIndex, float64(n.LastIndex()), nil)
}

// WrapError returns an error of Raft as one of ours, which states what to do next.
func WrapError(err error) error {
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		return structs.Errorf(structs.CodeNoLeader, "%w: %w", structs.ErrNothingDone, err).WithHint("try again")
	}
	if errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrRaftShutdown) || errors.Is(err, raft.ErrAbortedByRestore) {
		return structs.Errorf(structs.CodeNoLeader, "%w", err).WithHint("try again")
	}
	if errors.Is(err, raft.ErrEnqueueTimeout) {
		return structs.Errorf(structs.CodeLimited, "%w", err).WithHint("the servers are overloaded; try again")
	}
	return structs.Errorf(structs.CodeInternal, "commit through Raft: %w", err)
}

// WrapCallError returns an error of something that was waited for: nil, the end of the wait and an error of ours as they are,
// another as WrapError does.
func WrapCallError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) { // nobody waits for it any more
		return err
	}
	var answer *structs.Error
	if errors.As(err, &answer) {
		return err
	}
	return WrapError(err)
}
