// Package heartbeat determines which nodes are alive: each reports so again within the time
// that it was granted, or is marked down and its work runs elsewhere.
//
// It runs on the leader and is memory only. A new leader grants every node that is
// not down the failover time: it cannot know when they were last heard of. A leader
// that itself stood still (it was suspended, or starved) cannot know either: then the
// nodes that seem to be late get their time anew.
//
// A node with work that is to outlive a lost connection (disconnect.lost_after of its group) is
// marked disconnected instead, and down when nothing of it is waited for any longer.
//
// # Two probers
//
// A client that takes part in the clients' gossip has two probers: its RPC (session and heartbeats), and the gossip. Whichever
// loses it, both probe it for a short time. Neither hears it: it is down at once. Gossip alone has lost it: it is warned of, and
// nothing else. RPC alone has: it is disconnected after a while, and its work kept, as it still runs. When many are suspect at
// once, nobody is declared lost for a while: see Liveness.
//
// It must never mark a node anything else: that it is back, the node reports itself.
package heartbeat

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/nomadish/clock"
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
// send MaxPerSecond: 10,000 nodes at 250 a second have 80 s, of which they use half on
// average. Those that gossip are missed within seconds all the same.
//
// These are shorter than Nomad's (10 s and 10 s): a heartbeat costs no log entry, so
// that there is no reason to wait so long, and a pause of a client that is shorter
// than Grace is not taken for its loss.
type Options struct {
	MinTTL       time.Duration // between heartbeats (3 s)
	Grace        time.Duration // after the TTL before a node is down (3 s)
	Failover     time.Duration // for all nodes when a leader starts (30 s; if the TTL is longer, that)
	MaxPerSecond float64       // heartbeats of all nodes together (250)
	NewID        func() string // mints seeds of evaluations; needed
	Clock        clock.Clock   // (the machine's)
	// Probers are other ways by which nodes are heard; nil: there are none. Liveness states how they are believed.
	Probers  Probers
	Liveness Liveness
	// Jitter returns a number from 0 to below n, at random.
	Jitter func(n int64) int64
	Logger hclog.Logger
}

const (
	// downLimit bounds the nodes of one log entry.
	downLimit = 512
	// retry is waited after a commit that failed.
	retry = time.Second
	// pulse is how often this process makes sure that it runs itself; when it was late
	// by more than stall, nodes that are late are not to blame.
	pulse = 250 * time.Millisecond
	stall = time.Second
)

// Timers keeps the nodes' times. It is safe for use by many goroutines.
type Timers struct {
	opts  Options
	apply Applier

	mu      sync.Mutex
	running bool
	timers  map[string]clock.Timer
	granted map[string]time.Duration // within which a node is to send its next heartbeat, as this leader last granted it
	expired map[string]bool
	alive   time.Time // when this process was last seen running
	// failover is what a node has for its first heartbeat to this leader.
	failover time.Duration
	store    *state.Store
	more     chan struct{}
	suspectSet
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
		opts.MaxPerSecond = 250
	}
	opts.Clock = clock.Or(opts.Clock)
	if opts.Jitter == nil {
		opts.Jitter = rand.Int64N
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	opts.Liveness = opts.Liveness.WithDefaults()
	return &Timers{
		opts: opts, apply: apply, timers: map[string]clock.Timer{}, granted: map[string]time.Duration{}, expired: map[string]bool{},
		more: make(chan struct{}, 1), suspectSet: newSuspectSet(),
	}
}

// Beat records a heartbeat of a node; the next one is due within the returned time.
func (t *Timers) Beat(nodeID string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	ttl := t.ttl()
	delete(t.expired, nodeID)
	if t.running {
		t.granted[nodeID] = ttl
	}
	if t.running && t.opts.Probers != nil {
		t.heard[nodeID] = t.opts.Clock.Now()
		delete(t.answers, nodeID)
		delete(t.unwell, nodeID)
	}
	t.set(nodeID, ttl+t.opts.Grace)
	// Spread over the last third, so that nodes that came together part.
	return ttl - time.Duration(t.opts.Jitter(int64(ttl)/3+1))
}

// early is how many heartbeats a node sends in the time that it has for one, on average: Beat takes a sixth of that time off,
// and nodes send theirs after half of the rest, or a little more, so that one that is lost can be sent again.
const early = 2

// latest is after how many tenths of the time that it has a node sends a heartbeat (client/heartbeat.go).
const latest = 7

// ttl is the time between a node's heartbeats: the more nodes, the longer.
func (t *Timers) ttl() time.Duration { return t.ttlOf(len(t.timers)) }

func (t *Timers) ttlOf(nodes int) time.Duration {
	return max(t.opts.MinTTL, time.Duration(early*float64(nodes)/t.opts.MaxPerSecond*float64(time.Second)))
}

// set has a node expire later; it may do nothing when the timers do not run.
func (t *Timers) set(nodeID string, in time.Duration) {
	if !t.running {
		return
	}
	if timer, ok := t.timers[nodeID]; ok {
		timer.Stop()
	}
	var timer clock.Timer
	timer = t.opts.Clock.AfterFunc(in, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timers[nodeID] != timer { // it was heard of, or forgotten, meanwhile
			return
		}
		delete(t.timers, nodeID)
		t.expire(nodeID)
	})
	t.timers[nodeID] = timer
}

// expire records that a node's heartbeat is overdue.
func (t *Timers) expire(nodeID string) {
	t.expired[nodeID] = true
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// forget drops a node that is down or gone.
func (t *Timers) forget(nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer, ok := t.timers[nodeID]; ok {
		timer.Stop()
		delete(t.timers, nodeID)
	}
	delete(t.granted, nodeID)
	delete(t.expired, nodeID)
	delete(t.suspects, nodeID)
	delete(t.heard, nodeID)
	delete(t.answers, nodeID)
	delete(t.unwell, nodeID)
	delete(t.quiet, nodeID)
}

// Active counts the nodes that are waited for.
func (t *Timers) Active() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.timers)
}

// Run keeps the timers until ctx ends. It is called once at a time.
func (t *Timers) Run(ctx context.Context, store *state.Store) {
	var wg sync.WaitGroup
	defer wg.Wait()
	t.start(store)
	defer t.stop()
	wg.Go(func() { t.down(ctx) })
	if t.opts.Probers != nil {
		wg.Go(func() { t.watch(ctx) })
	}
	for ctx.Err() == nil {
		snap := store.Snapshot()
		t.resync(snap)
		t.follow(ctx, store.Feed(snap.Index()))
	}
}

// follow keeps the timers by the feed, until that has moved on without them or ctx ends.
func (t *Timers) follow(ctx context.Context, feed *state.Feed) {
	for {
		changes, err := feed.Next(ctx)
		if err != nil {
			return
		}
		t.committed(&changes)
	}
}

// committed takes note of what one commit contains about nodes.
func (t *Timers) committed(changes *state.Changes) {
	for _, c := range changes.Items {
		if c.Kind == state.KindNode {
			node, _ := c.New.(*structs.Node)
			t.seen(c.Key, node)
		}
	}
}

func (t *Timers) start(store *state.Store) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.alive, t.store = true, t.opts.Clock.Now(), store
}

func (t *Timers) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	for id, timer := range t.timers { // order does not matter: all are stopped
		timer.Stop()
		delete(t.timers, id)
	}
	clear(t.granted)
	clear(t.expired)
	t.reset()
}

// resync brings the timers in line with a snapshot.
func (t *Timers) resync(snap *state.Snapshot) {
	t.mu.Lock()
	known := slices.Collect(maps.Keys(t.timers)) // order does not matter: each is looked up
	t.mu.Unlock()
	up := 0
	for n := range snap.Nodes(nil, "", false) {
		if n.Status != structs.NodeStatusDown {
			up++
		}
	}
	t.mu.Lock()
	t.failover = max(t.opts.Failover, t.ttlOf(up)+t.opts.Grace) // what the last leader granted a node still counts
	t.mu.Unlock()
	for _, id := range known {
		if snap.Node(nil, id) == nil {
			t.forget(id)
		}
	}
	for n := range snap.Nodes(nil, "", false) {
		t.seen(n.ID, n)
	}
}

// seen takes note of a node as the state has it. One that should be heard of, and is
// not waited for yet, gets the failover time; one that is down or gone (nil) is waited
// for no longer.
func (t *Timers) seen(id string, node *structs.Node) {
	if node == nil || node.Status == structs.NodeStatusDown {
		t.forget(id)
		return
	}
	gone := false
	if t.opts.Probers != nil && !lost(node) {
		_, gone = t.opts.Probers.Gossips(id) // for example, before this server led
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.timers[id]; !ok && !t.expired[id] {
		t.set(id, max(t.failover, t.opts.Failover))
		if gone {
			t.suspect(id)
		}
	}
}

// down marks the nodes down that were not heard of, as many at once as have expired.
func (t *Timers) down(ctx context.Context) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		select {
		case <-t.more:
		case <-tick.C:
			t.pulse()
			metrics.SetGauge([]string{"nomad", "heartbeat", "active"}, float32(t.Active()))
			continue
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil && t.markSome(ctx) {
		}
	}
}

// markSome marks nodes down that have expired, as many as one entry takes; false: none has.
func (t *Timers) markSome(ctx context.Context) bool {
	ids := t.take()
	if len(ids) == 0 {
		return false
	}
	if ids = t.sort(t.snapshot(), ids); len(ids) == 0 {
		return true
	}
	if err := t.mark(ctx, ids); err != nil && ctx.Err() == nil {
		t.opts.Logger.Error("mark nodes down; trying again", "nodes", len(ids), "error", err)
		t.again(ids, retry)
	}
	return true
}

// mark commits that nodes are down, or disconnected.
func (t *Timers) mark(ctx context.Context, ids []string) error {
	invalidateCount.Add(len(ids))
	var down, away []string
	snap := t.snapshot()
	for _, id := range ids {
		switch node := snap.Node(nil, id); {
		case node == nil:
		case !t.awaits(snap, node):
			down = append(down, id)
		case node.Status == structs.NodeStatusDisconnected:
			t.again([]string{id}, t.opts.Failover) // it is waited for still
		default:
			away = append(away, id)
		}
	}
	return errors.Join(
		t.commit(ctx, change{status: structs.NodeStatusDown, ids: down, why: Missed}),
		t.commit(ctx, change{status: structs.NodeStatusDisconnected, ids: away, why: Missed}))
}

func (t *Timers) snapshot() *state.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.store.Snapshot()
}

// pulse records that this process runs, and grants late nodes their time anew if it did not.
func (t *Timers) pulse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.excuse()
	t.alive = t.opts.Clock.Now()
}

// excuse forgives those that expired while this process stood still. Each has the time that it was granted, which is longer than it
// would be now if there were more nodes then.
func (t *Timers) excuse() {
	stood := t.opts.Clock.Now().Sub(t.alive)
	if stood <= pulse+stall {
		return
	}
	t.opts.Logger.Warn("this server stood still; nodes get their time anew", "for", stood)
	t.alive = t.opts.Clock.Now()
	again := func(id string) {
		if ttl, ok := t.granted[id]; ok {
			t.set(id, ttl+t.opts.Grace)
		} else { // the last leader may have granted it anything
			t.set(id, max(t.failover, t.opts.Failover))
		}
	}
	for id := range t.suspects { // order does not matter: the time of some is over, and nothing else waits for them
		t.expired[id] = true
	}
	clear(t.suspects)
	for id := range t.heard { // order does not matter: all are
		t.heard[id] = t.alive
	}
	for _, id := range slices.Sorted(maps.Keys(t.expired)) {
		delete(t.expired, id)
		again(id)
	}
	for _, id := range slices.Sorted(maps.Keys(t.timers)) {
		again(id)
	}
}

// take returns the nodes that have expired, in the order of their IDs.
func (t *Timers) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.expired) == 0 {
		return nil
	}
	t.excuse()
	ids := slices.Sorted(maps.Keys(t.expired))
	ids = ids[:min(len(ids), downLimit)]
	for _, id := range ids {
		delete(t.expired, id)
	}
	return ids
}

// again expires nodes once more, unless they have been heard of.
func (t *Timers) again(ids []string, in time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if _, heard := t.timers[id]; !heard {
			t.set(id, in)
		}
	}
}
