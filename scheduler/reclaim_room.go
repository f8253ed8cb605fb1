package scheduler

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// reclaimRoom is one node that newcomers are to have room on, for the planner.
type reclaimRoom struct {
	node *nodeState // as it is
	asks []*ask     // one for each newcomer
	// plain: nothing that the newcomers ask for has a name, so that sums say all.
	plain bool
	free  Vector     // if plain
	trial *nodeState // else: a copy that the planner changes
	m     *matcher
	rng   *random
}

// reclaimVictim is one allocation that may be taken from.
type reclaimVictim struct {
	use *use
	now *use // what it holds of use; nil: nothing
	at  int  // its room
}

// reclaimRooms is what the planner asks (preempt.Rooms).
type reclaimRooms struct {
	list    []*reclaimRoom
	victims []reclaimVictim
}

// add adds a node with the newcomers that it is to have room for. fixed: others of the
// job were put there before, with ports and devices of their own.
func (r *reclaimRooms) add(s *scheduler, n *nodeState, asks []*ask, fixed bool) {
	room := &reclaimRoom{node: n, asks: asks, m: s.fits.m, rng: s.rng}
	room.plain = !fixed && !slices.ContainsFunc(asks, func(a *ask) bool { return !a.plain })
	if room.plain {
		room.free = n.free()
	} else {
		room.trial = n.own(&token{})
	}
	r.list = append(r.list, room)
}

// Put makes a victim hold all of its own, what it keeps while suspended, or nothing.
func (r *reclaimRooms) Put(victim int, h preempt.Holding) bool {
	v := &r.victims[victim]
	var is *use
	switch h {
	case preempt.Whole:
		is = v.use
	case preempt.Suspended:
		is = v.use.suspended()
	case preempt.Nothing:
	}
	if !r.list[v.at].exchange(v.now, is) {
		return false
	}
	v.now = is
	return true
}

// exchange puts one use in place of another; either may be nil.
func (r *reclaimRoom) exchange(was, is *use) bool {
	if r.plain {
		if was != nil {
			r.free = r.free.plus(was.amount)
		}
		if is != nil {
			r.free = r.free.minus(is.amount)
		}
		return true
	}
	if was != nil {
		r.trial.give(was)
	}
	if is != nil {
		if r.trial.taken(is) {
			if was != nil {
				r.trial.take(was)
			}
			return false
		}
		r.trial.take(is)
	}
	return true
}

// taken tells whether another holds a port, a core or a device that a use needs. What can
// be added up is not looked at.
func (n *nodeState) taken(u *use) bool {
	return slices.ContainsFunc(u.ports, n.portTaken) || slices.ContainsFunc(u.cores, n.coreTaken) ||
		slices.ContainsFunc(u.devices, func(d heldDevice) bool { return n.lacksDevice(d.id, int(d.share)) })
}

// Fits counts the newcomers of a room that fit.
func (r *reclaimRooms) Fits(room int) int { return r.list[room].fits() }

func (r *reclaimRoom) fits() int {
	if r.plain {
		return r.sums()
	}
	var grants []*use
	for _, a := range r.asks {
		if int64(r.trial.freeDevices()) < a.need[dimGPUs] {
			break // which a grant finds out at more cost
		}
		g, what := a.grant(r.trial, r.m, r.rng)
		if what != "" {
			break
		}
		r.trial.take(g.use)
		grants = append(grants, g.use)
	}
	for _, u := range slices.Backward(grants) {
		r.trial.give(u)
	}
	return len(grants)
}

func (r *reclaimRoom) sums() (n int) {
	free := r.free
	for _, a := range r.asks {
		has := free
		if !r.node.hold.free(&a.by) {
			has = has.minus(r.node.hold.amount)
		}
		if a.amount.CPU > has.CPU || a.amount.MemoryMB > has.MemoryMB || a.amount.DiskMB > has.DiskMB {
			break
		}
		free = free.minus(a.amount)
		n++
	}
	return n
}

// reclaimAsks gathers the asks that may be taken from, for the planner.
type reclaimAsks struct {
	s     *scheduler
	e     *Edit
	below int // bands
	rooms *reclaimRooms
	at    map[string]int // rooms by node
	list  []preempt.Ask
	of    []*holder // by ask
	gangs map[gangName]int
}

// gather adds what a node's allocations hold that are of lower bands. An ask has its
// instances on one node, a gang all that it has.
func (a *reclaimAsks) gather(n *nodeState) {
	room, first := a.at[n.id], len(a.list)
	for _, u := range n.uses {
		if u.of.namespace == a.s.eval.Namespace && u.of.job == a.s.eval.JobID || a.s.band(u) >= a.below {
			continue
		}
		if g, some := u.of.gang(); some {
			a.gang(g)
			continue
		}
		i := first
		for i < len(a.list) && (a.of[i].askName != u.of.askName || len(a.list[i].Min) > 0) {
			i++
		}
		if i == len(a.list) {
			a.list = append(a.list, a.ask(u.of))
			a.of = append(a.of, u.of)
		}
		a.add(i, u, n.node, room)
	}
}

// band is that of what somebody holds.
func (s *scheduler) band(u *use) int { return s.in.Config.Band(u.of.terms.Priority) }

func (a *reclaimAsks) ask(h *holder) preempt.Ask {
	return preempt.Ask{
		Standing: preempt.Standing{
			Band: a.s.in.Config.Band(h.terms.Priority), Priority: h.terms.Priority, Submitted: h.terms.Submitted,
			Name: strings.Join([]string{h.namespace, h.job, h.group}, "\x00"),
		},
		Suspend: h.terms.Reclaim == reclaimSuspend,
	}
}

// add adds an instance of an ask, on a node. An ask is suspended where all of it can be
// frozen: one that cannot would end as failed, and a gang is suspended whole.
func (a *reclaimAsks) add(ask int, u *use, n *structs.Node, room int) {
	if to := &a.list[ask]; to.Suspend && !freezes(n, &u.of.terms) {
		to.Suspend = false
	}
	id := len(a.rooms.victims)
	a.rooms.victims = append(a.rooms.victims, reclaimVictim{u, u, max(0, room)})
	a.list[ask].Victims = append(a.list[ask].Victims, preempt.Victim{ID: id, Room: room})
}

// gang adds all members of a gang, once. A part is a group.
func (a *reclaimAsks) gang(g gangName) {
	if _, known := a.gangs[g]; known {
		return
	}
	a.gangs[g] = len(a.list)
	members := a.e.members(g)
	h := members[0].of
	ask := a.ask(h)
	var parts []string
	for _, u := range members {
		if !slices.Contains(parts, u.of.group) {
			parts = append(parts, u.of.group)
			ask.Min = append(ask.Min, u.of.terms.GangMin)
		}
	}
	i := len(a.list)
	a.list, a.of = append(a.list, ask), append(a.of, h)
	for _, u := range members {
		room, in := a.at[u.nodeID]
		if !in {
			room = preempt.Elsewhere
		}
		var at *structs.Node
		if n, known := a.e.node(u.nodeID); known {
			at = n.node
		}
		a.add(i, u, at, room)
		v := a.list[i].Victims
		v[len(v)-1].Part = slices.Index(parts, u.of.group)
	}
}
