package client

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/alloc"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/state"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// node is one node that the client stands for: its own, or a simulated one.
type node struct {
	c       *Client
	id      string
	secret  string
	logger  hclog.Logger
	drivers *driver.Registry
	store   *state.Store // nil: nothing is kept; set before the first allocation comes, as dir is
	dir     string       // of the allocations; empty: they have no files
	groups  *alloc.GroupPool
	keep    int // how many allocations are kept at most; 0: no ended one
	starts  chan struct{}
	servers *servers

	registering chan struct{} // held by those that register; nil: it need not wait for others

	current atomic.Pointer[structs.Node] // as it is registered; never changed; set with mu held
	meta    *metadata
	known   chan struct{}             // closed when it was registered the first time
	epoch   atomic.Uint64             // counts registrations
	heard   atomic.Uint64             // the index of the newest answer about allocations
	refresh chan struct{}             // requests another registration
	beaten  atomic.Pointer[heartbeat] // the last one that was answered; nil: none was
	down    atomic.Bool               // a simulated node that plays a lost one
	greeted *wire.Session             // which hello has named the node to; watch's alone
	gossip  *gossiper                 // nil: it does not gossip

	mu      sync.Mutex
	config  *alloc.Config // of all runners; made for the first
	runners map[string]*alloc.Runner
	ending  bool // nothing new is run
	// gone are allocations that ended and were collected here while the servers
	// still list them: they are never started again.
	gone map[string]struct{}
	// forgotten are those that the servers do not know any more and that are ending.
	forgotten map[string]struct{}
	// acked are the ended ones whose end the servers know.
	acked    map[string]struct{}
	restored []*alloc.Runner // not granted before the servers were heard

	reports *reporter
	events  events
	claims  *claims
	rooms   sync.Mutex    // one allocation at a time reserves and releases room
	collect chan struct{} // requests a look at what can be removed
	erase   func(alloc.Dir) error
}

func newNode(c *Client, n *structs.Node, drivers *driver.Registry) *node {
	out := &node{
		c: c, id: n.ID, secret: n.SecretID, drivers: drivers, servers: c.servers,
		logger: c.logger.With("node_id", structs.ShortID(n.ID)),
		known:  make(chan struct{}), refresh: make(chan struct{}, 1), collect: make(chan struct{}, 1),
		runners: map[string]*alloc.Runner{}, gone: map[string]struct{}{}, forgotten: map[string]struct{}{}, acked: map[string]struct{}{},
		meta: newMetadata(n.Meta, nil), reports: newReporter(), erase: alloc.Dir.Remove,
	}
	out.claims = newClaims(func() room { return roomOf(out.Node()) })
	out.current.Store(n)
	return out
}

// Node is the node as it is registered (alloc.Host).
func (n *node) Node() *structs.Node { return n.current.Load() }

// Go runs fn on a goroutine of the client's (alloc.Host).
func (n *node) Go(fn func(ctx context.Context)) { n.c.group.Go(fn) }

// StartSlot waits for leave to start a task (alloc.Host).
func (n *node) StartSlot(ctx context.Context) (func(), error) {
	select {
	case n.starts <- struct{}{}:
		return func() { <-n.starts }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ended clears up after an allocation that has ended: what the servers have forgotten is
// of no use any more.
func (n *node) ended(id string) {
	n.mu.Lock()
	_, forgotten := n.forgotten[id]
	n.mu.Unlock()
	if forgotten {
		n.remove(id)
	}
	n.kickCollect()
}

// registered notes that the servers have (again) taken the node in: what they know
// of it may be older than what is known here.
func (n *node) registered() {
	n.epoch.Add(1)
	select {
	case <-n.known:
	default:
		close(n.known)
	}
}

// reregister has the node registered again, because it has changed.
func (n *node) reregister() {
	select {
	case n.refresh <- struct{}{}:
	default:
	}
}

func (n *node) runner(id string) *alloc.Runner {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runners[id]
}

// all lists the runners in the order of their IDs.
func (n *node) all() []*alloc.Runner {
	out := n.anyOrder()
	slices.SortFunc(out, func(a, b *alloc.Runner) int { return strings.Compare(a.ID(), b.ID()) })
	return out
}

// anyOrder lists the runners in any order.
func (n *node) anyOrder() []*alloc.Runner {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.AppendSeq(make([]*alloc.Runner, 0, len(n.runners)), maps.Values(n.runners))
}

// allocConfig is what its allocations have in common.
func (n *node) allocConfig() *alloc.Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.config == nil {
		n.config = &alloc.Config{
			Region: n.c.config.Region, Drivers: n.drivers, Host: n, BaseEnv: n.c.baseEnv,
			MaxKillTimeout: n.c.config.MaxKillTimeout, Users: n.c.config.Users, Groups: n.groups, Logger: n.logger,
		}
		if n.store != nil {
			n.config.Store = n.store
		}
	}
	return n.config
}

// allocDir is an allocation's directory; the zero Dir on a node without files.
func (n *node) allocDir(id string) (alloc.Dir, error) {
	if n.dir == "" {
		return alloc.Dir{}, nil
	}
	return alloc.NewDir(n.dir, id)
}

// apply takes an answer of the servers. full: it lists everything.
func (n *node) apply(reply *structs.ClientAllocsReply, full bool) {
	node := n.Node()
	for _, a := range reply.Changed {
		if a.NodeID == n.id && a.NodeName == node.Name {
			a.NodeID, a.NodeName = n.id, node.Name
		}
		n.c.jobs.adopt(a, reply.Jobs)
	}
	n.forget(reply.Allocs)
	// What leaves comes first: it frees what others wait for.
	leaves := func(a *structs.Allocation) bool { return a.Terminal() || a.Suspended() }
	stays := false
	for _, a := range reply.Changed {
		stays = n.claims.leave(a.ID, a.Terminal(), a.Suspended()) || stays
	}
	if stays {
		n.claims.grantWaiting()
	}
	for _, first := range []bool{true, false} {
		for _, a := range reply.Changed {
			if leaves(a) == first {
				n.take(a, full)
			}
		}
	}
	n.grantRestored(reply.Allocs)
}

// take takes one allocation that the servers have changed.
func (n *node) take(a *structs.Allocation, full bool) {
	n.mu.Lock()
	r := n.runners[a.ID]
	_, gone := n.gone[a.ID]
	n.mu.Unlock()
	switch {
	case gone:
	case r != nil:
		r.Update(a)
		u := r.Snapshot()
		if !full && a.ClientStatus == u.ClientStatus {
			return
		}
		if differs(a, u) {
			n.Report(a.ID, true)
		} else if structs.TerminalClientStatus(u.ClientStatus) {
			n.reported(a.ID)
		}
	case a.ClientTerminal():
	case a.ServerTerminal():
		// It never ran here, or an earlier life lost its state: nothing to stop.
		n.reportAs(&structs.AllocClientUpdate{
			ID: a.ID, NodeID: n.id, ClientStatus: structs.AllocClientComplete,
			ClientDescription: "stopped before it was started here", TaskStates: a.TaskStates,
		})
	case a.Job == nil:
		n.logger.Error("an allocation came without its job; it is left alone", "alloc_id", a.ID, "job_id", a.JobID, "version", a.JobVersion)
	default:
		n.run(a)
	}
}

// differs reports whether the servers' state of an allocation is not the latest.
func differs(a *structs.Allocation, u *structs.AllocClientUpdate) bool {
	if a.ClientStatus != u.ClientStatus || len(a.TaskStates) != len(u.TaskStates) {
		return true
	}
	for name, s := range u.TaskStates {
		t := a.TaskStates[name]
		if t == nil || t.State != s.State || t.Restarts != s.Restarts || len(t.Events) != len(s.Events) {
			return true
		}
	}
	return a.DeploymentStatus.IsHealthy() != u.DeploymentStatus.IsHealthy()
}

// admit takes a new allocation among those that run here; false: nothing new is run any more.
func (n *node) admit(r *alloc.Runner) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ending {
		n.runners[r.ID()] = r
	}
	return !n.ending
}

// run begins a new allocation.
func (n *node) run(a *structs.Allocation) {
	dir, err := n.allocDir(a.ID)
	if err == nil {
		var r *alloc.Runner
		if r, err = alloc.New(n.allocConfig(), dir, a); err == nil {
			if !n.admit(r) {
				return
			}
			r.Keep(nil)
			n.grant(r)
			n.kickCollect()
			return
		}
	}
	n.logger.Error("an allocation cannot be run", "alloc_id", a.ID, "error", err)
	n.reportAs(&structs.AllocClientUpdate{
		ID: a.ID, NodeID: n.id, ClientStatus: structs.AllocClientFailed, ClientDescription: structs.CutText(err.Error(), structs.MaxTaskText),
	})
}

// grant lets an allocation start, or go on, once what it needs is free.
func (n *node) grant(r *alloc.Runner) {
	if r.Alloc().Suspended() {
		r.StaySuspended()
		return
	}
	ok, waitsFor := n.claims.claim(r.ID(), needOf(r.Alloc()), false, r.Grant)
	switch {
	case ok:
		r.Grant()
		return
	case waitsFor != nil:
		text := waitText(waitsFor)
		n.logger.Info("an allocation waits for room", "alloc_id", r.ID(), "reason", text)
		r.Wait(text)
	}
	if _, ended := r.EndedAt(); ended { // meanwhile
		n.claims.release(r.ID())
	}
}

// Room releases and reserves what an allocation needs as it is suspended, resumed and ends
// (alloc.Host). What it reports is looked at one after the other, so that what was reported
// last counts.
func (n *node) Room(id string) {
	n.Go(func(context.Context) {
		if n.move(id) == alloc.PhaseEnded {
			n.ended(id) // which takes as long as its files are many: nobody waits for that
		}
	})
}

// move releases or reserves what follows from an allocation's phase, which it returns.
func (n *node) move(id string) alloc.Phase {
	n.rooms.Lock()
	defer n.rooms.Unlock()
	r := n.runner(id)
	phase := alloc.PhaseEnded
	if r != nil { // else it is removed already
		phase = r.Phase()
	}
	switch phase {
	case alloc.PhaseEnded:
		n.claims.release(id)
	case alloc.PhaseSuspended:
		n.claims.suspend(id)
	case alloc.PhaseResuming:
		n.grant(r)
	case alloc.PhaseActive:
	}
	return phase
}

// grantRestored lets the allocations of an earlier life go on, of which the
// servers have now confirmed that they want them.
func (n *node) grantRestored(wanted map[string]uint64) {
	n.mu.Lock()
	restored := n.restored
	n.restored = nil
	n.mu.Unlock()
	for _, r := range restored {
		if _, ok := wanted[r.ID()]; ok {
			n.grant(r)
		}
	}
}

// forget ends and removes the allocations that the servers do not list.
func (n *node) forget(listed map[string]uint64) {
	var lost []*alloc.Runner
	n.mu.Lock()
	for id, r := range n.runners {
		if _, ok := listed[id]; !ok {
			n.forgotten[id] = struct{}{}
			lost = append(lost, r)
		}
	}
	for id := range n.gone {
		if _, ok := listed[id]; !ok {
			delete(n.gone, id)
		}
	}
	n.mu.Unlock()
	for _, r := range lost {
		n.claims.leave(r.ID(), true, false)
		select {
		case <-r.Ended():
			id := r.ID()
			n.Go(func(context.Context) { n.remove(id) })
		default:
			r.Stop()
		}
	}
}

// reported notes that the servers know of an allocation's end.
func (n *node) reported(id string) {
	n.mu.Lock()
	if _, ok := n.runners[id]; ok {
		n.acked[id] = struct{}{}
	}
	n.mu.Unlock()
	if n.keep == 0 {
		n.removeKnown(id)
		return
	}
	n.kickCollect()
}

func (n *node) isAcked(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.acked[id]
	return ok
}

// removeKnown removes an ended allocation that the servers still list.
func (n *node) removeKnown(id string) {
	n.mu.Lock()
	n.gone[id] = struct{}{}
	n.mu.Unlock()
	n.remove(id)
}

// remove removes an ended allocation's files and state.
func (n *node) remove(id string) {
	r := n.runner(id)
	if r == nil {
		return
	}
	r.Close()
	if err := n.erase(r.Dir()); err != nil {
		n.logger.Warn("an allocation's files cannot all be removed", "alloc_id", id, "error", err)
	}
	if n.store != nil {
		n.store.Delete(id, nil)
	}
	n.mu.Lock()
	delete(n.runners, id)
	delete(n.forgotten, id)
	delete(n.acked, id)
	n.mu.Unlock()
}

func (n *node) kickCollect() {
	select {
	case n.collect <- struct{}{}:
	default:
	}
}

// close leaves the tasks alone from now on.
func (n *node) close() {
	for _, r := range n.all() {
		r.Close()
	}
}
