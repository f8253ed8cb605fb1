package heartbeat

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/structs"
)

var gossipLostCount = telemetry.NewCount("nomad.heartbeat.gossip_lost")

// Probers are the ways beside heartbeats by which nodes are heard: their RPC sessions, and the gossip of the clients.
type Probers interface {
	// Gossips reports whether a node takes part in the gossip, be it failed now, and whether it is taken for failed. One that
	// never did, or left in good order, does not.
	Gossips(nodeID string) (member, failed bool)
	// Reach probes a node by both ways, again and again until each has answered or ctx ends.
	Reach(ctx context.Context, nodeID string) (session, gossip bool)
	// Agreed reports whether all servers are of a version that knows Node.KeptUntil.
	Agreed() bool
}

// Liveness configures how the probers are believed. Zero values are replaced by the defaults named.
type Liveness struct {
	Check   time.Duration // how long a node that one prober has lost may take to answer (2 s)
	Silence time.Duration // how long the session may be lost, with gossip alive, before the node is disconnected (5 s)
	// Keep is how long the work of such a node is kept whose group does not state it (5 min).
	Keep time.Duration
	// More than MassFailureShare (0.2) of the nodes that gossip, and at least MassFailureMin (5), suspect at once are a mass failure: the fault is
	// rather of the network, or of the servers. Then nobody is declared lost, for MassFailureLimit (5 min) at most. What was declared
	// within MassFailureWindow (10 s) counts too.
	MassFailureShare  float64
	MassFailureMin    int
	MassFailureWindow time.Duration
	MassFailureLimit  time.Duration
}

// WithDefaults returns the configuration with the defaults in the place of zero values.
func (l Liveness) WithDefaults() Liveness {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&l.Check, 2*time.Second)
	set(&l.Silence, 5*time.Second)
	set(&l.Keep, 5*time.Minute)
	set(&l.MassFailureWindow, 10*time.Second)
	set(&l.MassFailureLimit, 5*time.Minute)
	if l.MassFailureShare <= 0 {
		l.MassFailureShare = 0.2
	}
	if l.MassFailureMin <= 0 {
		l.MassFailureMin = 5
	}
	return l
}

const (
	checksAtOnce = 64
	// fresh is how old a suspicion is before it counts for a mass failure: most are over before.
	fresh = time.Second
	// late is how much longer than it should a node is silent before it counts for a mass failure.
	late = 500 * time.Millisecond
	// checkAgain is the time between two checks of a node that is still suspect.
	checkAgain = 500 * time.Millisecond
	// eventsOf bounds the nodes of one entry of events.
	eventsOf = 512
)

// suspect is a node that a prober has lost.
type suspect struct {
	since    time.Time
	due      time.Time // when it is to be checked
	checking bool
	again    bool // something was lost while it was being checked
}

// suspectSet are the suspects, and what has become of some. Guarded by Timers.mu.
type suspectSet struct {
	suspects map[string]*suspect
	heard    map[string]time.Time // when a node's RPC was last heard; of nodes that are waited for
	answers  map[string]time.Time // since when a node answers that sends no heartbeats
	unwell   map[string]bool      // has done so for too long: it is judged by its heartbeats alone
	quiet    map[string]bool      // answers by RPC, and is not heard by gossip
	declared map[string]time.Time // lost lately: when that was reported first
	news     chan struct{}        // has something when there are suspects to be looked at

	massFailure time.Time // since when nobody is declared lost; zero: there is none
	calm        time.Time // when the last one ended: checks begun before mean nothing
	spent       bool      // it has lasted too long: they are declared nevertheless
	warned      map[string]bool
	events      map[string][]*structs.NodeEvent // to be committed
}

func newSuspectSet() suspectSet {
	return suspectSet{
		suspects: map[string]*suspect{}, heard: map[string]time.Time{}, answers: map[string]time.Time{}, unwell: map[string]bool{}, quiet: map[string]bool{},
		declared: map[string]time.Time{}, news: make(chan struct{}, 1), warned: map[string]bool{}, events: map[string][]*structs.NodeEvent{},
	}
}

func (d *suspectSet) reset() {
	clear(d.suspects)
	clear(d.heard)
	clear(d.answers)
	clear(d.unwell)
	clear(d.quiet)
	clear(d.declared)
	clear(d.warned)
	clear(d.events)
	d.massFailure, d.calm, d.spent = time.Time{}, time.Time{}, false
}

func (d *suspectSet) wake() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// Suspect has nodes checked that one of the probers has lost. Those that do not gossip are judged by heartbeats alone, and of those
// that are known to be lost there is nothing to report.
func (t *Timers) Suspect(nodeIDs ...string) {
	if t.opts.Probers == nil {
		return
	}
	t.mu.Lock()
	running, store := t.running, t.store
	t.mu.Unlock()
	if !running {
		return
	}
	snap := store.Snapshot()
	for _, id := range nodeIDs {
		if member, _ := t.opts.Probers.Gossips(id); !member || lost(snap.Node(nil, id)) {
			continue
		}
		t.mu.Lock()
		t.suspect(id)
		t.mu.Unlock()
	}
}

// lost reports whether a node cannot be declared more lost than it is.
func lost(n *structs.Node) bool {
	return n == nil || n.Status == structs.NodeStatusDown || n.Status == structs.NodeStatusDisconnected && n.KeptUntil == 0
}

// suspect is Suspect of one that gossips.
func (t *Timers) suspect(id string) {
	if !t.running {
		return
	}
	now := t.opts.Clock.Now()
	if s := t.suspects[id]; s != nil {
		s.again = s.again || s.checking
		return
	}
	t.suspects[id] = &suspect{since: now, due: now}
	t.wake()
}

// Returned takes note that a node is heard by gossip (again).
func (t *Timers) Returned(nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet[nodeID] {
		delete(t.quiet, nodeID)
		t.addEvent(nodeID, "Gossip of the node is heard again")
	}
}

// addEvent adds an event to a node's.
func (t *Timers) addEvent(id, message string) {
	t.events[id] = append(t.events[id], &structs.NodeEvent{Subsystem: "Cluster", Message: message, Timestamp: t.opts.Clock.Now()})
	t.wake()
}

// MassFailure returns since when nobody is declared lost, as too many are suspect at once; zero: there is no mass failure.
func (t *Timers) MassFailure() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spent {
		return time.Time{}
	}
	return t.massFailure
}

// suspected counts the nodes that may be lost, of how many that gossip. A node that has been silent for longer than it
// was granted counts before anybody has missed it: those that are lost together are noticed one after the other.
func (t *Timers) suspected(now time.Time) (doubtful, all int) {
	for id, heard := range t.heard { // order does not matter: they are counted
		member, _ := t.opts.Probers.Gossips(id)
		s := t.suspects[id]
		if member || s != nil {
			all++
		}
		silence := max(t.opts.MinTTL, t.granted[id]*latest/10) + late
		if (member && now.Sub(heard) > silence) || (s != nil && now.Sub(s.since) >= fresh) {
			doubtful++
		}
	}
	for id, s := range t.suspects { // order does not matter: they are counted
		if _, waited := t.heard[id]; waited {
			continue
		}
		all++
		if now.Sub(s.since) >= fresh {
			doubtful++
		}
	}
	for id, at := range t.declared { // order does not matter: they are counted
		if _, waited := t.heard[id]; now.Sub(at) > t.opts.Liveness.MassFailureWindow {
			delete(t.declared, id)
		} else if !waited && t.suspects[id] == nil { // else it is counted
			doubtful++
			all++
		}
	}
	return doubtful, all
}

// mass reports whether nodes may be declared lost now.
func (t *Timers) mayDeclareLost(now time.Time) bool {
	l := t.opts.Liveness
	doubtful, all := t.suspected(now)
	stormy := doubtful >= l.MassFailureMin && float64(doubtful) > l.MassFailureShare*float64(all)
	switch {
	case !stormy:
		if !t.massFailure.IsZero() {
			t.opts.Logger.Warn("few enough clients are suspect again: lost clients are declared lost again", "suspects", doubtful, "clients", all)
			t.calm = now // the others may be about to come back: they are probed once more
		}
		t.massFailure, t.spent = time.Time{}, false
		clear(t.warned)
	case t.massFailure.IsZero():
		t.massFailure = now
		t.opts.Logger.Error("mass failure: too many clients are suspect at once; none is declared lost for now; check the network and the servers",
			"suspects", doubtful, "clients", all, "for_at_most", l.MassFailureLimit)
	case !t.spent && now.Sub(t.massFailure) >= l.MassFailureLimit:
		t.spent = true
		t.opts.Logger.Error("clients have been suspect for too long: they are declared lost in spite of the mass failure", "suspects", doubtful, "clients", all)
	}
	calm := t.massFailure.IsZero() || t.spent
	gauge := float32(1)
	if calm {
		gauge = 0
	}
	metrics.SetGauge([]string{"nomad", "heartbeat", "mass_failure"}, gauge)
	return calm
}

// silent returns how long a node's RPC has not been heard of.
func (t *Timers) silent(id string, s *suspect, now time.Time) time.Duration {
	since := s.since
	if heard := t.heard[id]; !heard.IsZero() && heard.Before(since) {
		since = heard
	}
	return now.Sub(since)
}

// watch has suspects checked and declares what came of that, until ctx ends.
func (t *Timers) watch(ctx context.Context) {
	w := &watcher{t: t, results: make(chan result, checksAtOnce)}
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	defer w.end()
	for {
		select {
		case <-t.news:
		case <-tick.C:
		case r := <-w.results:
			w.take(r)
		case <-ctx.Done():
			return
		}
		w.begin(ctx)
		w.declare(ctx)
		w.report(ctx)
	}
}

// watcher is what the watch remembers.
type watcher struct {
	t       *Timers
	running int
	results chan result
	dead    []string // neither prober hears them
	away    []string // gossip alone does, for long enough
}

// result is what came of a check.
type result struct {
	id              string
	began           time.Time
	session, gossip bool
}

func (w *watcher) end() {
	for ; w.running > 0; w.running-- {
		<-w.results
	}
}

// begin starts the checks that are due.
func (w *watcher) begin(ctx context.Context) {
	for _, r := range w.due() {
		go func() { // ends with its time; end waits for it
			limited, cancel := context.WithTimeout(ctx, w.t.opts.Liveness.Check)
			defer cancel()
			r.session, r.gossip = w.t.opts.Probers.Reach(limited, r.id)
			w.results <- r
		}()
	}
}

// due returns the checks that begin now, of which nothing has come yet, as many as may run.
func (w *watcher) due() (checks []result) {
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opts.Clock.Now()
	for _, id := range slices.Sorted(maps.Keys(t.suspects)) {
		s := t.suspects[id]
		if w.running >= checksAtOnce {
			break
		}
		if s.checking || now.Before(s.due) {
			continue
		}
		s.checking, s.again = true, false
		w.running++
		checks = append(checks, result{id: id, began: now})
	}
	return checks
}

// take judges one check.
func (w *watcher) take(r result) {
	w.running--
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.suspects[r.id]
	if s == nil { // forgotten meanwhile
		return
	}
	now := t.opts.Clock.Now()
	s.checking, s.due = false, now.Add(checkAgain)
	if t.heard[r.id].After(r.began) {
		r.session = true
	}
	member, _ := t.opts.Probers.Gossips(r.id)
	switch {
	case !member: // it left meanwhile; its heartbeats decide
		delete(t.suspects, r.id)
		if _, waiting := t.timers[r.id]; !waiting { // they have decided already
			t.expire(r.id)
		}
	case r.session:
		w.heard(r, s)
	case r.began.Before(t.calm):
	case r.gossip && t.silent(r.id, s, now) >= t.opts.Liveness.Silence:
		w.away = append(w.away, r.id)
	case r.gossip:
	default:
		w.dead = append(w.dead, r.id)
	}
}

// heard takes note that a suspect's RPC answers.
func (w *watcher) heard(r result, s *suspect) {
	t := w.t
	t.waitOn(r.id)
	switch {
	case r.gossip && t.quiet[r.id]:
		delete(t.quiet, r.id)
		t.addEvent(r.id, "Gossip of the node is heard again")
	case !r.gossip && !t.quiet[r.id]:
		t.quiet[r.id] = true
		gossipLostCount.Add(1)
		t.opts.Logger.Warn("a node answers by RPC, but is not heard by gossip: is its port for the clients' gossip cut off (UDP and TCP)?", "node_id", r.id)
		t.addEvent(r.id, "Gossip of the node is not heard any more, RPC is: is its gossip port cut off (UDP and TCP)?")
	}
	if s.again {
		s.since, s.due, s.again = t.opts.Clock.Now(), t.opts.Clock.Now(), false
		return
	}
	delete(t.suspects, r.id)
}

// waitOn grants a node that answers, and whose heartbeat is overdue, its time once more; but not for ever: one that answers and
// sends no heartbeats is not well.
func (t *Timers) waitOn(id string) {
	if _, waiting := t.timers[id]; waiting {
		return
	}
	now := t.opts.Clock.Now()
	if _, ok := t.answers[id]; !ok {
		t.answers[id] = now
	}
	if now.Sub(t.answers[id]) < t.opts.Failover {
		delete(t.expired, id)
		t.set(id, t.ttl()+t.opts.Grace)
		return
	}
	delete(t.answers, id)
	delete(t.heard, id) // it is no suspect
	t.unwell[id] = true
	t.expire(id)
}
