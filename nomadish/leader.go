package nomadish

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/calendar"
	"github.com/nomadish/nomadish/nomadish/drain"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/nomadish/gc"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/quorum"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/nomadish/workflow"
	"github.com/nomadish/nomadish/structs"
)

// leaderParts are what only a leader runs. They are memory that the state fills, so
// that gaining leadership is starting them and losing it is stopping them.
type leaderParts struct {
	raft           *raftnode.Node
	store          *state.Store
	logger         hclog.Logger
	broker         *queue.Broker
	plans          *plan.Applier
	pass           *worker.Pass
	heartbeats     *heartbeat.Timers
	drainer        *drain.Drainer
	collector      *gc.Collector
	peerReconciler *quorum.PeerReconciler
	// others are the parts that nothing else calls.
	others []func(ctx context.Context)

	// defaults and autopilot are the configurations of a new cluster.
	defaults    structs.SchedulerConfiguration
	autopilot   structs.AutopilotConfiguration
	established atomic.Uint64 // the term in which the parts run; 0: they do not
	// interruptions are what is done while no part runs, in turn.
	interruptions chan interruption
}

// interruption is something done by a leader whose parts do not run meanwhile.
type interruption struct {
	do   func() error
	done chan error
}

// during has a leader's parts stop, does something, and starts them again: from the state
// as it is then. It ends with ctx only while it waits for its turn.
func (l *leaderParts) during(ctx context.Context, do func() error) error {
	i := interruption{do, make(chan error, 1)}
	select {
	case l.interruptions <- i:
		return <-i.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// members are the servers that there are, as gossip knows them.
type members interface {
	quorum.Gossip
	quorum.Leaver
}

func newLeaderParts(cfg *Config, store *state.Store, node *raftnode.Node, pool members, query quorum.Caller, typicals *worker.Typicals, future *forecasts.Service, seen heartbeat.Probers) *leaderParts {
	log := cfg.Logger
	l := &leaderParts{interruptions: make(chan interruption), raft: node, store: store, logger: log.Named("leader"), defaults: cfg.DefaultSchedule, autopilot: cfg.Autopilot}
	ready := cfg.Queue
	ready.NewID, ready.Logger = NewID, log.Named("broker")
	l.broker = queue.New(ready, node, store.LatestIndex)
	l.plans = plan.New(plan.Options{Gate: l.broker, Logger: log.Named("plan")}, store, node, l.broker)
	l.pass = worker.NewPass(worker.PassOptions{NewID: NewID, Typicals: typicals, Logger: log.Named("queue")}, l.broker, l.broker, l.plans, store)
	beats := cfg.Heartbeats
	beats.Probers, beats.NewID, beats.Logger = seen, NewID, log.Named("heartbeat")
	l.heartbeats = heartbeat.New(beats, node)
	l.drainer = drain.New(node, NewID, log.Named("drain"))
	garbage := cfg.GC
	garbage.Logger = log.Named("gc")
	l.collector = gc.New(garbage, store, node)
	weeks := calendar.New(calendar.Options{NewID: NewID, Logger: log.Named("calendar")}, store, node)
	flows := workflow.New(workflow.Options{NewID: NewID, Logger: log.Named("workflow"), Readable: node.Readable}, store, node, l.plans)
	l.others = []func(context.Context){weeks.Run, flows.Run, future.Lead}
	peers := cfg.Peers
	peers.ID, peers.Name, peers.Region, peers.Logger = node.ID(), cfg.Name, cfg.Region, log.Named("servers")
	peers.Cluster = func() string { return store.Snapshot().Cluster().ClusterID }
	peers.Config = func() structs.AutopilotConfiguration { return store.Snapshot().AutopilotConfig(nil) }
	peers.Full = node.Disk().Full
	l.peerReconciler = quorum.NewPeerReconciler(peers, node, pool, pool, query)
	return l
}

// leading reports whether the parts run and all earlier entries are applied. Leadership that was lost and is gained anew counts
// only when they have been started again: of another's term between they know nothing.
func (l *leaderParts) leading() bool {
	term := l.established.Load()
	return term > 0 && l.raft.State() == raft.Leader && l.raft.CurrentTerm() == term
}

// follow starts the parts when leadership is gained and stops them when it is lost,
// until ctx ends.
func (l *leaderParts) follow(ctx context.Context, gained <-chan bool) {
	stop, leading := func() {}, false
	defer func() { stop() }()
	for {
		select {
		case leads := <-gained:
			stop()
			stop, leading = func() {}, leads
			if leads {
				stop = l.lead(ctx)
			}
		case i := <-l.interruptions:
			if !leading {
				i.done <- structs.Errorf(structs.CodeNoLeader, "this server does not lead any more").WithHint("try again")
				continue
			}
			stop()
			err := i.do()
			stop = l.lead(ctx) // leadership that was lost meanwhile is reported in its turn
			i.done <- err
		case <-ctx.Done():
			return
		}
	}
}

// lead establishes leadership in the background; the function that it returns ends it
// and waits for that.
func (l *leaderParts) lead(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		begun := time.Now()
		term := l.raft.CurrentTerm()
		if !l.caughtUp(ctx) {
			return
		}
		isNew := l.bootstrap(ctx)
		wg.Go(func() { l.broker.Run(ctx, l.store) })
		wg.Go(func() { l.plans.Run(ctx) })
		wg.Go(func() { l.pass.Run(ctx) })
		wg.Go(func() { l.heartbeats.Run(ctx, l.store) })
		wg.Go(func() { l.drainer.Run(ctx, l.store) })
		wg.Go(func() { l.collector.Run(ctx) })
		wg.Go(func() { l.peerReconciler.Run(ctx) })
		wg.Go(func() { queueview.Report(ctx, l.store) })
		wg.Go(func() { l.makeSigningKey(ctx, isNew) })
		wg.Go(func() { l.makeNodePools(ctx) })
		for _, run := range l.others {
			wg.Go(func() { run(ctx) })
		}
		if ctx.Err() == nil {
			l.established.Store(term)
			l.raft.Announce()
			establishTime.Since(begun)
			l.logger.Info("leadership established")
		}
	})
	return func() {
		defer revokeTime.Since(time.Now())
		l.established.Store(0)
		cancel()
		wg.Wait()
		l.established.Store(0)
	}
}

const (
	barrierWait  = time.Second // for Raft to take a barrier in
	barrierRetry = 100 * time.Millisecond
)

// caughtUp waits until what the last leader committed is applied, before which nothing may be decided. It gives up when ctx
// or Raft ends.
func (l *leaderParts) caughtUp(ctx context.Context) bool {
	for {
		begun := time.Now()
		err := l.raft.Await(ctx, l.raft.Barrier(barrierWait))
		barrierTime.Since(begun)
		if err == nil {
			return ctx.Err() == nil
		}
		if ctx.Err() != nil || errors.Is(err, raft.ErrRaftShutdown) {
			return false
		}
		l.logger.Warn("wait for earlier entries to be applied", "error", err)
		select {
		case <-time.After(barrierRetry):
		case <-ctx.Done():
			return false
		}
	}
}

// bootstrap sets a new cluster's identity and its configurations; what is set already is
// never touched. It returns whether the cluster had no identity.
func (l *leaderParts) bootstrap(ctx context.Context) (isNew bool) {
	snap, now := l.store.Snapshot(), time.Now().UnixNano()
	set := func(done bool, t structs.LogType, entry any) {
		if done {
			return
		}
		if _, err := l.raft.Apply(ctx, t, entry); err != nil && ctx.Err() == nil {
			l.logger.Warn("set up the new cluster", "entry", t, "error", err)
		}
	}
	set(snap.Cluster().ClusterID != "", structs.LogClusterMeta, &structs.ClusterMetaEntry{ClusterID: NewID(), Time: now})
	set(snap.AutopilotConfig(nil).ModifyIndex > 0, structs.LogAutopilotConfig,
		&structs.AutopilotConfigEntry{Config: l.autopilot, CAS: true, Time: now})
	set(snap.SchedulerConfig(nil).ModifyIndex > 0, structs.LogSchedulerConfig,
		&structs.SchedulerConfigEntry{Config: l.defaults, CAS: true, Time: now})
	return snap.Cluster().ClusterID == ""
}
