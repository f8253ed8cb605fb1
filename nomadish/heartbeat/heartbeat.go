// Package heartbeat tells which nodes are alive: each says so again within the time
// that it was given, or is marked down and its work runs elsewhere.
//
// It runs on the leader and is memory only. A new leader gives every node that is
// not down the failover time: it cannot know when they were last heard of.
package heartbeat

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options sets the times. Zero values are replaced by the defaults named.
//
// With few nodes a lost one is found after MinTTL + Grace = 6 s at the latest, and
// its work runs elsewhere within 10 s. With many, the TTL grows so that all together
// send MaxPerSecond at most: 50,000 nodes at 500 a second have 100 s.
type Options struct {
	MinTTL       time.Duration // between heartbeats (3 s)
	Grace        time.Duration // after the TTL before a node is down (3 s)
	Failover     time.Duration // for all nodes when a leader starts (30 s)
	MaxPerSecond float64       // heartbeats of all nodes together (500)
	NewID        func() string
	Logger       hclog.Logger
}

// Timers keeps the nodes' times. It is safe for use by many goroutines.
type Timers struct {
	opts  Options
	apply Applier

	mu      sync.Mutex
	running bool
	timers  map[string]*time.Timer
	expired map[string]bool
	more    chan struct{}
}

// New makes timers; none runs until Run.
func New(opts Options, apply Applier) *Timers {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&opts.MinTTL, 3*time.Second)
	set(&opts.Grace, 3*time.Second)
	set(&opts.Failover, 30*time.Second)
	if opts.MaxPerSecond <= 0 {
		opts.MaxPerSecond = 500
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Timers{opts: opts, apply: apply, timers: map[string]*time.Timer{}, expired: map[string]bool{}, more: make(chan struct{}, 1)}
}

// Beat says that a node lives; it must say so again within the time given.
func (t *Timers) Beat(nodeID string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	ttl := max(t.opts.MinTTL, time.Duration(float64(len(t.timers))/t.opts.MaxPerSecond*float64(time.Second)))
	delete(t.expired, nodeID)
	t.set(nodeID, ttl+t.opts.Grace)
	// Spread over the last third, so that nodes that came together part.
	return ttl - time.Duration(rand.Int64N(int64(ttl)/3+1)) //nolint:gosec // not a secret
}

func (t *Timers) set(nodeID string, in time.Duration) {
	if !t.running {
		return
	}
	if timer, ok := t.timers[nodeID]; ok {
		timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(in, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timers[nodeID] != timer { // it was heard of, or forgotten, meanwhile
			return
		}
		delete(t.timers, nodeID)
		t.expired[nodeID] = true
		select {
		case t.more <- struct{}{}:
		default:
		}
	})
	t.timers[nodeID] = timer
}

// forget drops a node that is down or gone.
func (t *Timers) forget(nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer, ok := t.timers[nodeID]; ok {
		timer.Stop()
		delete(t.timers, nodeID)
	}
	delete(t.expired, nodeID)
}

// Active counts the nodes that are waited for.
func (t *Timers) Active() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.timers)
}

// Run keeps the timers until ctx ends.
func (t *Timers) Run(ctx context.Context, store *state.Store) {
	var wg sync.WaitGroup
	defer wg.Wait()
	t.mu.Lock()
	t.running = true
	t.mu.Unlock()
	defer t.stop()
	wg.Go(func() { t.down(ctx) })
	for ctx.Err() == nil {
		snap := store.Snapshot()
		t.resync(snap)
		feed := store.Feed(snap.Index())
		for {
			changes, err := feed.Next(ctx)
			if err != nil {
				break // ctx ended, or we fell behind: start again from the state
			}
			for _, c := range changes.Items {
				if c.Kind == state.KindNode {
					t.nodeChanged(c)
				}
			}
		}
	}
}

func (t *Timers) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	for id, timer := range t.timers { // order does not matter: all are stopped
		timer.Stop()
		delete(t.timers, id)
	}
	clear(t.expired)
}

// resync gives every node that should be heard of, and is not waited for, the
// failover time.
func (t *Timers) resync(snap *state.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range snap.Nodes(nil, "", false) {
		if _, ok := t.timers[n.ID]; !ok && n.Status != structs.NodeStatusDown {
			t.set(n.ID, t.opts.Failover)
		}
	}
}

func (t *Timers) nodeChanged(c state.Change) {
	node, _ := c.New.(*structs.Node)
	if node == nil || node.Status == structs.NodeStatusDown {
		t.forget(c.Key)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.timers[node.ID]; !ok && !t.expired[node.ID] {
		t.set(node.ID, t.opts.Failover)
	}
}

// down marks the nodes down that were not heard of, as many at once as have expired.
func (t *Timers) down(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-t.more:
		case <-tick.C:
			metrics.SetGauge([]string{"nomad", "heartbeat", "active"}, float32(t.Active()))
			continue
		case <-ctx.Done():
			return
		}
		ids := t.take()
		if len(ids) == 0 {
			continue
		}
		now := time.Now()
		metrics.IncrCounter([]string{"nomad", "heartbeat", "invalidate"}, float32(len(ids)))
		t.opts.Logger.Warn("nodes were not heard of in time; they are down", "nodes", len(ids), "first", ids[0])
		_, err := t.apply.Apply(ctx, structs.LogNodeStatus, &structs.NodeStatusEntry{
			NodeIDs: ids, Status: structs.NodeStatusDown, Time: now.UnixNano(), EvalSeed: t.opts.NewID(),
			Event: &structs.NodeEvent{Subsystem: "Cluster", Message: "Node heartbeat missed", Timestamp: now},
		})
		if err != nil && ctx.Err() == nil {
			t.opts.Logger.Error("mark nodes down; trying again", "error", err)
			t.again(ids)
		}
	}
}

func (t *Timers) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]string, 0, len(t.expired))
	for id := range t.expired { // order does not matter: they go down together
		ids = append(ids, id)
	}
	clear(t.expired)
	return ids
}

func (t *Timers) again(ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if _, heard := t.timers[id]; !heard {
			t.set(id, time.Second)
		}
	}
}
