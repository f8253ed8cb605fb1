package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func (s *sim) startFaults() { s.after(3*time.Second, "fate", -1, s.fate) }

// fate does harm, and has it pass again later.
func (s *sim) fate() {
	if s.quiet() {
		return
	}
	s.after(s.between(50*time.Millisecond, 450*time.Millisecond), "fate", -1, s.fate)
	switch s.IntN(15) {
	case 0:
		if s.leader != nil && s.IntN(4) == 0 && !s.spared() {
			s.fault("the leader is deposed", s.leader.r.id)
			s.leader.lose()
		}
	case 1:
		s.crash(one(s, s.replicas...))
	case 2:
		s.cutOff(one(s, s.replicas...))
	case 3, 4:
		s.setClock()
	case 5:
		s.loseNode(one(s, s.clients...))
	case 6:
		s.cutNode(one(s, s.clients...))
	case 7, 8, 9:
		s.hurtGPU(one(s, s.clients...))
	case 10, 11:
		c := one(s, s.clients...)
		s.fault("a client's clock jumps", c.id)
		c.skew = s.between(-maxSkew, maxSkew)
	case 12:
		s.installSnapshot()
	case 13:
		if c := one(s, s.clients...); s.IntN(6) == 0 && !c.up {
			s.fault("a node is purged", c.id)
			_ = s.call(wire.MethodNodePurge, &structs.NodeRequest{NodeID: c.node.ID}, &structs.NodeUpdateReply{}) // it may not be there
		}
	case 14:
		s.rumour(one(s, s.clients...))
	}
}

// mayLose reports whether a majority is left without one more.
func (s *sim) mayLose() bool {
	lost := 1
	for _, r := range s.replicas {
		if !r.reachable() {
			lost++
		}
	}
	return lost <= (len(s.replicas)-1)/2
}

func (r *replica) leads() bool { return r.leader != nil && r.leader.r == r }

func (s *sim) crash(r *replica) {
	if !r.reachable() || !s.mayLose() || r.leads() && s.spared() {
		return
	}
	s.fault("a replica crashes", r.id)
	if l := s.leader; l != nil && l.r == r {
		l.lose()
		l.stop()
	}
	s.giveBack(r)
	r.crash()
	s.after(s.between(time.Second, 15*time.Second), "a replica starts", r.id, func() {
		if !r.up {
			r.start()
		}
	})
}

// giveBack has the leader see that the connection with a replica ended: it hands out again what that one's workers had leased.
func (s *sim) giveBack(r *replica) {
	l, had := s.leader, r.has
	if l == nil || l.r == r {
		return
	}
	s.after(s.between(0, 100*time.Millisecond), "what a lost replica had", l.r.id, func() {
		for _, id := range slices.Sorted(maps.Keys(had)) {
			if l.leads() {
				_ = l.broker.Nack(id, had[id]) // else it had answered, or its time was over
			}
		}
		l.stir()
	})
}

func (s *sim) cutOff(r *replica) {
	if !r.reachable() || !s.mayLose() || r.leads() && s.spared() {
		return
	}
	s.fault("a replica is cut off", r.id)
	r.cut = true
	if l := s.leader; l != nil && l.r == r {
		l.lose()
	}
	s.after(s.between(time.Second, 20*time.Second), "a replica is back", r.id, func() { s.heal(r) })
}

// heal connects a replica again. One that lacks much gets a snapshot instead, now and then.
func (s *sim) heal(r *replica) {
	if !r.cut {
		return
	}
	r.cut = false
	if l := s.leader; r.up && l != nil && !l.over && l.r != r && s.IntN(5) == 0 {
		r.install(l.r)
	}
	r.replicate()
}

func (s *sim) installSnapshot() {
	r := one(s, s.replicas...)
	if l := s.leader; s.IntN(6) == 0 && r.reachable() && l != nil && !l.over && l.r != r && r.index() < l.r.index() {
		s.fault("a follower is sent a snapshot", r.id)
		r.install(l.r)
	}
}

func (s *sim) setClock() {
	r := one(s, s.replicas...)
	s.fault("a server's clock jumps", r.id)
	r.skew = s.between(-maxSkew, maxSkew)
	if s.tenants != nil && s.IntN(8) > 0 {
		r.skew /= 20 // else what is owned has soon turned to a time that the run does not reach
	}
}

// outage is how long a node is away: mostly not for long enough to be taken for lost. A leader waits for as long as three
// heartbeats before it takes anything for lost, and does not lead for long here.
func (s *sim) outage() time.Duration {
	if s.IntN(3) == 0 {
		return s.between(2*beatEvery, 12*beatEvery)
	}
	return s.between(time.Second, beatEvery)
}

func (s *sim) loseNode(c *client) {
	if !c.up {
		return
	}
	how := s.IntN(4)
	switch how {
	case 0, 1:
		s.fault("a node goes down", c.id)
	case 2:
		s.fault("an agent is killed, and its tasks go on", c.id)
	case 3:
		s.fault("an agent ends in good order, and its tasks go on", c.id)
		c.leave()
	}
	c.end(how < 2)
	s.after(s.outage(), "a node is back", c.id, func() {
		if !c.up {
			c.back()
		}
	})
}

// cutNode cuts a node off, or only one of the ways by which it is heard.
func (s *sim) cutNode(c *client) {
	if c.cut || c.mute {
		return
	}
	switch way := s.IntN(4); {
	case !c.gossips || way == 0:
		s.fault("a node is cut off", c.id)
		c.cutRPC(s.outage())
		c.cutGossip(s.outage())
	case way == 1:
		s.fault("a node's gossip is cut off", c.id)
		c.cutGossip(s.outage())
	default:
		s.fault("a node's RPC is cut off", c.id)
		c.cutRPC(s.outage())
	}
}

func (s *sim) hurtGPU(c *client) {
	if len(c.node.NodeResources.Devices) == 0 {
		return
	}
	id := one(s, c.node.NodeResources.Devices[0].Instances...).ID
	if c.bad[id] {
		delete(c.bad, id)
		s.fault("a GPU is good again", c.id)
	} else {
		c.bad[id] = true
		s.fault("a GPU goes bad", c.id)
	}
	if c.up {
		c.next(0, "register", c.register)
	}
}

// quieten ends all faults: everything is up and can be reached, and all clocks are right.
func (s *sim) quieten() {
	s.quietAt = s.now
	s.note("faults stop", -1)
	for _, r := range s.replicas {
		r.skew = 0
		if !r.up {
			r.start()
		}
		s.heal(r)
	}
	if s.leader != nil {
		s.leader.lose() // what it measures, it measures by a clock that was wrong
	}
	for _, c := range s.clients {
		c.cut, c.mute, c.skew, c.bad = false, false, 0, map[string]bool{}
		c.noticed()
		if !c.up {
			c.back()
		}
		c.next(0, "register", c.register)
	}
	s.workflows.finish()
	s.checks.untilCalm()
}
