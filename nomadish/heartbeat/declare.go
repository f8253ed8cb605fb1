package heartbeat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var invalidateCount = telemetry.NewCount("nomad.heartbeat.invalidate")

// The texts of nodes' events.
const (
	// Missed is the event of nodes that are judged by heartbeats alone, BothLost of those that neither prober hears, BothAwaited of such that
	// something of is waited for.
	Missed           = "Node heartbeat missed"
	BothLost         = "Node is lost: neither its RPC session nor gossip hears it"
	BothAwaited      = "Node is not heard: neither its RPC session nor gossip hears it, its work is waited for"
	rpcLost          = "Node cannot be reached by RPC, gossip hears it: its work is kept"
	massFailureLasts = "Node is not heard, and not declared lost: too many are not heard at once"
)

// declare commits what the checks have found, unless there is a mass failure.
func (w *watcher) declare(ctx context.Context) {
	if len(w.dead)+len(w.away) == 0 {
		w.t.clearing()
		return
	}
	dead, away := w.dead, w.away
	w.dead, w.away = nil, nil
	t := w.t
	t.mu.Lock()
	now := t.opts.Clock.Now()
	t.excuse()
	calm := t.mayDeclareLost(now)
	still := func(ids []string) []string { // what was heard, or forgotten, since it was checked
		return slices.DeleteFunc(ids, func(id string) bool { return t.suspects[id] == nil || t.calm.Equal(now) })
	}
	dead, away = still(dead), still(away)
	if !calm {
		for _, id := range slices.Concat(dead, away) {
			if !t.warned[id] {
				t.warned[id] = true
				t.addEvent(id, massFailureLasts)
			}
		}
		t.mu.Unlock()
		return
	}
	for _, id := range slices.Concat(dead, away) {
		if _, known := t.declared[id]; !known {
			t.declared[id] = now
		}
	}
	t.mu.Unlock()
	if err := errors.Join(t.markDead(ctx, dead), t.markAway(ctx, away)); err != nil && ctx.Err() == nil {
		t.opts.Logger.Error("declare nodes lost; trying again", "nodes", len(dead)+len(away), "error", err)
		return // they are suspects still
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range dead {
		delete(t.suspects, id)
		delete(t.heard, id) // it is not suspect any more, however long its group waits for it
	}
	for _, id := range away {
		if _, failed := t.opts.Probers.Gossips(id); failed && t.suspects[id] != nil { // lost there too since it answered
			t.suspects[id] = &suspect{since: now, due: now}
		} else {
			delete(t.suspects, id)
		}
	}
	for _, id := range away { // it is watched until its work is not kept any longer
		delete(t.heard, id)
		delete(t.expired, id)
		t.set(id, t.opts.Liveness.Keep)
	}
}

// clearing ends a mass failure that is over.
func (t *Timers) clearing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.massFailure.IsZero() {
		t.mayDeclareLost(t.opts.Clock.Now())
	}
}

// markDead commits that nobody hears nodes: they are down, or disconnected if something of them is to be waited for by its
// group's own word.
func (t *Timers) markDead(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	invalidateCount.Add(len(ids))
	var down, away []string
	snap := t.snapshot()
	for _, id := range ids {
		node := snap.Node(nil, id)
		if node == nil || node.Status == structs.NodeStatusDown {
			continue
		}
		alone := *node
		alone.KeptUntil = 0
		switch {
		case !t.awaits(snap, &alone):
			down = append(down, id)
		case node.Status != structs.NodeStatusDisconnected || node.KeptUntil != 0:
			away = append(away, id)
		}
	}
	return errors.Join(
		t.commit(ctx, change{status: structs.NodeStatusDown, ids: down, why: BothLost}),
		t.commit(ctx, change{status: structs.NodeStatusDisconnected, ids: away, why: BothAwaited}))
}

// markAway commits that gossip alone hears nodes.
func (t *Timers) markAway(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if !t.opts.Probers.Agreed() {
		return t.mark(ctx, ids)
	}
	snap := t.snapshot()
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		node := snap.Node(nil, id)
		return node == nil || node.Status == structs.NodeStatusDown || node.Status == structs.NodeStatusDisconnected
	})
	until := t.opts.Clock.Now().Add(t.opts.Liveness.Keep)
	return t.commit(ctx, change{status: structs.NodeStatusDisconnected, ids: ids, why: rpcLost, kept: until.Unix()})
}

// report commits the events that are to be recorded of nodes.
func (w *watcher) report(ctx context.Context) {
	t := w.t
	t.mu.Lock()
	if len(t.events) == 0 {
		t.mu.Unlock()
		return
	}
	some := map[string][]*structs.NodeEvent{}
	for _, id := range slices.Sorted(maps.Keys(t.events))[:min(len(t.events), eventsOf)] {
		some[id] = t.events[id]
		delete(t.events, id)
	}
	t.mu.Unlock()
	if _, err := t.apply.Apply(ctx, structs.LogNodeEvents, &structs.NodeEventsEntry{Events: some}); err != nil && ctx.Err() == nil {
		t.opts.Logger.Error("add events to nodes", "nodes", len(some), "error", err) // they are in the log
	}
}

// sort parts nodes that were not heard of in time: those that gossip are checked first, also by a leader that has never heard them:
// its predecessor's loss may have taken their session. So are those that are kept as gossip hears them, and which it has lost. The
// others are released.
func (t *Timers) sort(snap *state.Snapshot, ids []string) []string {
	if t.opts.Probers == nil {
		return ids
	}
	var rest []string
	for _, id := range ids {
		member, failed := t.opts.Probers.Gossips(id)
		node := snap.Node(nil, id)
		kept := node != nil && node.Status == structs.NodeStatusDisconnected
		t.mu.Lock()
		if member && !t.unwell[id] && !lost(node) && (!kept || failed && t.awaits(snap, node)) {
			t.suspect(id)
		} else {
			rest = append(rest, id)
		}
		t.mu.Unlock()
	}
	return rest
}

// change is what is committed of nodes.
type change struct {
	status string
	ids    []string
	why    string
	kept   int64
}

func (t *Timers) commit(ctx context.Context, c change) error {
	for len(c.ids) > 0 {
		some := c.ids[:min(len(c.ids), downLimit)]
		c.ids = c.ids[len(some):]
		now := t.opts.Clock.Now()
		t.opts.Logger.Warn("nodes were not heard of in time", "status", c.status, "nodes", len(some), "first", some[0], "why", c.why)
		_, err := t.apply.Apply(ctx, structs.LogNodeStatus, &structs.NodeStatusEntry{
			NodeIDs: some, Status: c.status, Time: now.UnixNano(), EvalSeed: t.opts.NewID(), KeptUntil: c.kept,
			Event: &structs.NodeEvent{Subsystem: "Cluster", Message: c.why, Timestamp: now},
		})
		if err != nil && !errors.Is(err, structs.ErrNotFound) { // all of them were purged meanwhile
			return err
		}
	}
	return nil
}

// awaits reports whether a node is kept, or has an allocation that is to be there when it comes back.
func (t *Timers) awaits(snap *state.Snapshot, node *structs.Node) bool {
	now := t.opts.Clock.Now()
	as := *node
	if node.Status != structs.NodeStatusDisconnected {
		as.StatusUpdatedAt, as.KeptUntil = now.Unix(), 0
	}
	if time.Unix(as.KeptUntil, 0).After(now) {
		return true
	}
	for _, a := range snap.AllocsByNode(nil, node.ID) {
		if a.Terminal() || a.Job == nil {
			continue
		}
		if as.AwaitedUntil(a.GroupNow(snap.Job(nil, a.Namespace, a.JobID))).After(now) {
			return true
		}
	}
	return false
}
