package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const (
	checkFor  = 2 * time.Second // as in earnest
	callAgain = 200 * time.Millisecond
	// pingsMissed is how often the leader gets a report of a session that is silent before that is closed.
	pingsMissed = 3
	// keepLong is longer than clocks can be wrong, so that a node is surely kept for a while, and ends before calm must have come.
	keepLong = maxSkew + 3*time.Minute
)

// prober is what is heard of clients beside their heartbeats: their sessions, and their gossip as all servers see it. That one notices
// late who is gone or back, and now and then wrongly.
type prober struct {
	*sim
	liveness heartbeat.Liveness
}

// newProber draws how a cluster believes its probers; nil: its clients do not gossip.
func newProber(s *sim) *prober {
	if s.IntN(5) == 0 {
		return nil
	}
	return &prober{s, heartbeat.Liveness{
		Check: checkFor, Silence: one(s, 2*time.Second, 5*time.Second), Keep: one(s, 15*time.Second, 5*time.Minute, keepLong),
		MassFailureMin: one(s, 5, 5, 100), MassFailureLimit: one(s, 20*time.Second, 5*time.Minute),
	}}
}

// client is the client of a node; nil: there is none such.
func (s *sim) client(nodeID string) *client {
	if i := slices.IndexFunc(s.clients, func(c *client) bool { return c.node.ID == nodeID }); i >= 0 {
		return s.clients[i]
	}
	return nil
}

// Gossips implements heartbeat.Probers.
func (w *prober) Gossips(nodeID string) (member, failed bool) {
	c := w.client(nodeID)
	return c != nil && c.member, c != nil && c.failed
}

// Agreed implements heartbeat.Probers: all run the same build.
func (w *prober) Agreed() bool { return true }

// Reach implements heartbeat.Probers. Nobody waits here: see leader.check.
func (w *prober) Reach(_ context.Context, nodeID string) (session, gossip bool) {
	c := w.client(nodeID)
	return c.answers(), c.heard()
}

// watch has checks made that are due, and what those have found declared.
func (l *leader) watch() {
	for _, c := range l.beats.Watch(forever) {
		l.check(c)
	}
}

// check probes a node by both ways, again and again until each has answered or its time is over.
func (l *leader) check(of heartbeat.Check) {
	end := l.now + checkFor
	session, gossip := false, false
	var call func()
	call = func() {
		if !l.leads() {
			return
		}
		answers, heard := l.prober.Reach(forever, of.NodeID)
		session, gossip = session || answers, gossip || heard
		if l.now < end && (!session || !gossip) {
			l.after(min(callAgain, end-l.now), "ask a node again", l.r.id, call)
			return
		}
		if l.checked != nil {
			session, gossip = l.checked(session, gossip)
		}
		l.beats.Checked(of, session, gossip)
		l.watch()
	}
	l.after(l.between(time.Millisecond, 50*time.Millisecond), "ask a node", l.r.id, call)
}

// answers reports whether a client can be reached by RPC.
func (c *client) answers() bool { return c.up && !c.cut }

// heard reports whether a client's gossip can be heard.
func (c *client) heard() bool { return c.gossips && c.up && !c.mute }

// join has a client that has been started take part in the gossip.
func (c *client) join() {
	if !c.gossips {
		return
	}
	c.later(c.between(10*time.Millisecond, time.Second), "join", func() {
		if c.mute {
			c.join()
			return
		}
		c.member = true
		c.overhear()
	})
}

// leave takes a client that ends in good order out of the gossip.
func (c *client) leave() { c.member, c.failed = false, false }

// noticed has the gossip find out, late, that a client is there or is not.
func (c *client) noticed() {
	if c.gossips {
		c.after(c.between(500*time.Millisecond, 4*time.Second), "gossip", c.id, c.overhear)
	}
}

func (c *client) overhear() {
	if !c.member || c.failed == !c.heard() {
		return
	}
	c.failed = !c.failed
	if c.failed {
		c.suspect()
	} else if l := c.leader; l != nil && l.leads() {
		l.timers.Returned(c.node.ID)
		l.stir()
	}
}

// missed reports to the leader, so many times, a client whose session has ended or is silent.
func (c *client) missed(times int) {
	if !c.gossips || times == 0 {
		return
	}
	c.after(c.between(100*time.Millisecond, 3*time.Second), "session", c.id, func() {
		if !c.answers() {
			c.suspect()
			c.missed(times - 1)
		}
	})
}

func (c *client) suspect() {
	if l := c.leader; l != nil && l.leads() {
		l.timers.Suspect(c.node.ID)
		l.stir()
	}
}

// lost notes since when a client is not heard, of which one way or both are about to be lost.
func (c *client) lost(rpc, gossip bool) {
	if rpc && c.answers() {
		c.deaf = c.now
	}
	if gossip && c.heard() {
		c.silent = c.now
	}
}

// cutRPC cuts a client's RPC for a while.
func (c *client) cutRPC(away time.Duration) {
	c.lost(true, false)
	c.cut = true
	c.missed(pingsMissed)
	c.after(away, "a node's RPC is back", c.id, func() { c.cut = false })
}

// cutGossip cuts its gossip.
func (c *client) cutGossip(away time.Duration) {
	c.lost(false, true)
	c.mute = true
	c.noticed()
	c.after(away, "a node's gossip is back", c.id, func() {
		c.mute = false
		c.noticed()
	})
}

// rumour has the gossip take a client for failed that is well, for a moment.
func (s *sim) rumour(c *client) {
	if c.member && !c.failed && c.heard() {
		s.fault("the gossip is wrong about a node", c.id)
		c.failed = true
		c.suspect()
		c.noticed()
	}
}

// verdict looks whether a leader that is about to declare nodes lost may say of them what it does.
func (c *checks) verdict(payload any) {
	e, ok := payload.(*structs.NodeStatusEntry)
	if !ok || e.Event == nil {
		return
	}
	for _, id := range e.NodeIDs {
		n := c.client(id)
		if n == nil {
			continue
		}
		heard := n.heard() || n.gossips && c.now-n.silent <= checkFor
		switch {
		case e.KeptUntil > 0 && n.answers():
			c.fail("node %s is to be disconnected, and answers by RPC", n.node.Name)
		case e.KeptUntil > 0 && !heard:
			c.fail("node %s is to be kept, and its gossip is silent for %s", n.node.Name, c.now-n.silent)
		case (e.Event.Message == heartbeat.BothLost || e.Event.Message == heartbeat.BothAwaited) && (n.answers() || n.heard()):
			c.fail("node %s is to be %s as if nobody heard it: it answers by RPC: %t, it is heard by gossip: %t", n.node.Name, e.Status, n.answers(), n.heard())
		case e.Event.Message == heartbeat.Missed && n.member && n.heard() && !n.answers() && c.ready(id):
			c.fail("node %s is to be %s by its heartbeats, and the gossip, which hears it, was not asked", n.node.Name, e.Status)
		}
	}
}

const (
	// goneBy is by when a leader has found out that a node which gossips is heard by nobody, and missedBy that one does not answer by RPC:
	// if it leads for so long, and there is no mass failure.
	goneBy   = 20 * time.Second
	missedBy = 40 * time.Second
)

// overdue looks whether a leader has found out in time who is lost.
func (c *checks) overdue(l *leader) {
	if !l.timers.MassFailure().IsZero() {
		l.calmSince = c.now
	}
	snap := l.r.store.Snapshot()
	for _, n := range c.clients {
		node := snap.Node(nil, n.node.ID)
		if node == nil || n.answers() {
			continue
		}
		unheard := c.now - max(n.deaf, n.silent, l.calmSince)
		switch missed := c.now - max(n.deaf, l.calmSince); {
		case n.member && !n.heard() && unheard > goneBy && (node.Status == structs.NodeStatusReady || node.KeptUntil > 0):
			c.fail("node %s is heard by nobody for %s, and is %s, kept until %d", n.node.Name, unheard, node.Status, node.KeptUntil)
		case missed > missedBy && node.Status == structs.NodeStatusReady:
			c.fail("node %s does not answer by RPC for %s, and is %s", n.node.Name, missed, node.Status)
		}
	}
}

// ready reports whether a node is, as the leader has it.
func (c *checks) ready(nodeID string) bool {
	n := c.leader.r.store.Snapshot().Node(nil, nodeID)
	return n != nil && n.Status == structs.NodeStatusReady
}

// stays reports whether an allocation that nobody can reach is surely waited for, however wrong the clocks are, and nothing may stand
// for it meanwhile: by what its own version says, and by the job's as it is now.
func (c *checks) stays(snap *state.Snapshot, a *structs.Allocation) bool {
	node := snap.Node(nil, a.NodeID)
	if a.Job == nil || a.NextAllocation != "" || node == nil || node.Status != structs.NodeStatusDisconnected {
		return false
	}
	due := epoch.Add(c.now + maxSkew + time.Second) // what is due within a second is due, for the scheduler
	for _, g := range []*structs.TaskGroup{a.GroupNow(nil), a.GroupNow(snap.Job(nil, a.Namespace, a.JobID))} {
		if g == nil || g.Disconnect != nil && g.Disconnect.Replace || !node.AwaitedUntil(g).After(due) {
			return false
		}
	}
	return true
}

// knew reports whether who made a plan saw an allocation's job and node as they are now: what it decided of them stands, though they may
// have changed before it was committed.
func knew(p *structs.JudgedPlan, snap *state.Snapshot, a *structs.Allocation) bool {
	job, node := snap.Job(nil, a.Namespace, a.JobID), snap.Node(nil, a.NodeID)
	if len(p.Evals) == 0 || job == nil || node == nil {
		return false
	}
	made := p.Evals[0].SnapshotIndex
	return job.JobModifyIndex <= made && node.ModifyIndex <= made
}
