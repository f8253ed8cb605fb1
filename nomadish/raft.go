package nomadish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-metrics"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// raftNode is this server's Raft with what it stores in.
type raftNode struct {
	*raft.Raft
	transport *raft.NetworkTransport
	notify    <-chan bool // leadership gained and lost, in order
	logs      io.Closer   // the log store; nil in memory
	applyWait time.Duration
	inFlight  atomic.Int64 // entries that Raft has not answered yet
}

// openRaft opens Raft over the log in cfg.DataDir, or in memory, and founds the
// cluster if this is its first start and it is to be alone.
func openRaft(cfg *Config, machine raft.FSM, l *listener) (*raftNode, error) {
	logger := cfg.Logger.Named("raft")
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: raftLayer{l}, MaxPool: 3, Timeout: 10 * time.Second, Logger: logger,
	})
	n := &raftNode{transport: transport, applyWait: cfg.ApplyTimeout}

	var logs raft.LogStore
	var stable raft.StableStore
	var snapshots raft.SnapshotStore
	if cfg.DataDir == "" {
		mem := raft.NewInmemStore()
		logs, stable, snapshots = mem, mem, raft.NewInmemSnapshotStore()
	} else {
		dir := filepath.Join(cfg.DataDir, "server", "raft")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("data_dir %s: %w", cfg.DataDir, err)
		}
		bolt, err := raftboltdb.New(raftboltdb.Options{
			Path: filepath.Join(dir, "raft.db"), MsgpackUseNewTimeFormat: true,
			BoltOptions: boltOptions(),
		})
		if err != nil {
			return nil, fmt.Errorf("open Raft's log in %s: %w (is another agent using this data_dir?)", dir, err)
		}
		n.logs = bolt
		cached, err := raft.NewLogCache(512, bolt)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("raft log cache: %w", err), bolt.Close())
		}
		files, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, logger)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("raft snapshots in %s: %w", dir, err), bolt.Close())
		}
		logs, stable, snapshots = cached, bolt, files
	}

	notify := make(chan bool, 16)
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(cfg.Name)
	conf.Logger = logger
	conf.HeartbeatTimeout, conf.ElectionTimeout = cfg.RaftHeartbeat, cfg.RaftElection
	conf.LeaderLeaseTimeout, conf.CommitTimeout = cfg.RaftLease, cfg.RaftCommit
	conf.SnapshotInterval, conf.SnapshotThreshold, conf.TrailingLogs = cfg.SnapshotInterval, cfg.SnapshotThreshold, cfg.TrailingLogs
	conf.BatchApplyCh = true // group commit: one fsync for all entries that wait
	conf.NotifyCh = notify
	conf.NoLegacyTelemetry = true
	n.notify = notify

	if err := n.bootstrap(cfg, conf, logs, stable, snapshots); err != nil {
		return nil, errors.Join(err, n.closeStores())
	}
	r, err := raft.NewRaft(conf, machine, logs, stable, snapshots, transport)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Raft: %w", err), n.closeStores())
	}
	n.Raft = r
	return n, nil
}

func (n *raftNode) bootstrap(cfg *Config, conf *raft.Config, logs raft.LogStore, stable raft.StableStore, snaps raft.SnapshotStore) error {
	known, err := raft.HasExistingState(logs, stable, snaps)
	if err != nil {
		return fmt.Errorf("read Raft's state: %w", err)
	}
	if cfg.BootstrapExpect != 1 {
		return nil
	}
	self := raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: conf.LocalID, Address: n.transport.LocalAddr(),
	}}}
	if !known {
		if err := raft.BootstrapCluster(conf, logs, stable, snaps, n.transport, self); err != nil {
			return fmt.Errorf("found the cluster: %w", err)
		}
	}
	return nil
}

func (n *raftNode) closeStores() error {
	err := n.transport.Close()
	if n.logs != nil {
		err = errors.Join(err, n.logs.Close())
	}
	return err
}

// Apply commits one log entry and gives its index and what the FSM answered. It
// implements the Applier of every part. When ctx ends first, the entry may still be
// committed.
func (n *raftNode) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	entry, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	defer metrics.MeasureSince([]string{"nomad", "raft", "apply"}, time.Now())
	f := n.Raft.Apply(entry, n.applyWait)
	done := make(chan error, 1)
	n.inFlight.Add(1)
	go func() { // ends with the future; see settle
		defer n.inFlight.Add(-1)
		done <- f.Error()
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, raftError(err)
	}
	if refused, ok := f.Response().(error); ok && refused != nil {
		return f.Index(), refused
	}
	return f.Index(), nil
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
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) || errors.Is(err, raft.ErrRaftShutdown) ||
		errors.Is(err, raft.ErrLeadershipTransferInProgress) || errors.Is(err, raft.ErrAbortedByRestore) {
		return structs.Errorf(structs.CodeNoLeader, "%w", err).WithHint("try again")
	}
	if errors.Is(err, raft.ErrEnqueueTimeout) {
		return structs.Errorf(structs.CodeLimited, "%w", err).WithHint("the servers are overloaded; try again")
	}
	return structs.Errorf(structs.CodeInternal, "commit through Raft: %w", err)
}
