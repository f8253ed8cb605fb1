// Package room is the nodes on which others make room for newcomers, as the planner of preemption sees them: what fits there, exactly,
// with victims that keep all of their own, what they keep while they are suspended, or nothing (semantics part 3).
//
// The package must never decide who is preempted: [preempt.Plan] does.
package room

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
)

// node is one node that newcomers are to have room on, for the planner.
type node struct {
	node     *world.NodeState  // as it is
	requests []*search.Request // one for each newcomer
	// plain: nothing that the newcomers request has a name, so that sums show all.
	plain bool
	free  world.Vector     // if plain
	trial *world.NodeState // else: a copy that the planner changes
	m     *feasible.Matcher
	rng   *random.Numbers
	part  func(trial *world.NodeState) bool // in place of requests: see AddPart
}

// victim is one allocation that may be taken from.
type victim struct {
	use *world.Usage
	now *world.Usage // what it holds of use; nil: nothing
	at  int          // its room
}

// Rooms implements preempt.Rooms: each room is a node.
type Rooms struct {
	// M and Random are what newcomers are granted devices and ports by.
	M       *feasible.Matcher
	Random  *random.Numbers
	list    []*node
	victims []victim
}

// Nodes walks the nodes as they are, by the numbers of their rooms.
func (r *Rooms) Nodes(yield func(room int, n *world.NodeState) bool) {
	for i, n := range r.list {
		if !yield(i, n.node) {
			return
		}
	}
}

// Add adds a node with the newcomers that it is to have room for. fixed: others of the
// job were put there before, with ports and devices of their own.
func (r *Rooms) Add(n *world.NodeState, requests []*search.Request, fixed bool) {
	room := &node{node: n, requests: requests, m: r.M, rng: r.Random}
	room.plain = !fixed && !slices.ContainsFunc(requests, func(a *search.Request) bool { return !a.Plain })
	if room.plain {
		room.free = n.Free()
	} else {
		room.trial = n.Own(&world.Token{})
	}
	r.list = append(r.list, room)
}

// AddPart adds a node that is to have room for a part of a reservation, which is its one newcomer. fits reports whether there is room on the node as it
// would be.
func (r *Rooms) AddPart(n *world.NodeState, fits func(*world.NodeState) bool) {
	r.list = append(r.list, &node{node: n, trial: world.TrialOf(n), part: fits})
}

// AddVictim adds an allocation that may be taken from, with its room (below zero: none), and returns its number for the planner.
func (r *Rooms) AddVictim(u *world.Usage, room int) int {
	r.victims = append(r.victims, victim{u, u, max(0, room)})
	return len(r.victims) - 1
}

// Usage returns what a victim uses if nothing is taken from it.
func (r *Rooms) Usage(victim int) *world.Usage { return r.victims[victim].use }

// Put makes a victim hold all of its own, what it keeps while suspended, or nothing.
func (r *Rooms) Put(victim int, h preempt.Holding) bool {
	v := &r.victims[victim]
	var is *world.Usage
	switch h {
	case preempt.Whole:
		is = v.use
	case preempt.Suspended:
		is = v.use.Suspended()
	case preempt.Nothing:
	}
	if !r.list[v.at].exchange(v.now, is) {
		return false
	}
	v.now = is
	return true
}

// exchange puts one use in place of another; either may be nil.
func (r *node) exchange(was, is *world.Usage) bool {
	if r.plain {
		if was != nil {
			r.free = r.free.Plus(was.Amount)
		}
		if is != nil {
			r.free = r.free.Minus(is.Amount)
		}
		return true
	}
	if was != nil {
		r.trial.Give(was)
	}
	if is != nil {
		if IsTaken(r.trial, is) {
			if was != nil {
				r.trial.Take(was)
			}
			return false
		}
		r.trial.Take(is)
	}
	return true
}

// IsTaken reports whether another holds a port, a core or a device that a usage gets back. What can be
// added up is not looked at. A device that has turned bad is its own still: it goes on using it.
func IsTaken(n *world.NodeState, u *world.Usage) bool {
	return slices.ContainsFunc(u.Ports, n.PortTaken) || slices.ContainsFunc(u.Cores, n.CoreTaken) ||
		slices.ContainsFunc(u.Devices, func(d world.DeviceUsage) bool {
			share := 0
			for _, o := range u.Devices {
				if o.ID == d.ID {
					share += int(o.Share)
				}
			}
			cells, at, known := n.Device(d.ID)
			return !known || cells.Untaken(at) < share
		})
}

// Fits counts the newcomers of a room that fit.
func (r *Rooms) Fits(room int) int { return r.list[room].fits() }

func (r *node) fits() int {
	switch {
	case r.part != nil && r.part(r.trial):
		return 1
	case r.part != nil:
		return 0
	case r.plain:
		return r.sums()
	}
	var grants []*world.Usage
	for _, a := range r.requests {
		if int64(r.trial.FreeDevices()) < a.Need[world.DimGPUs] {
			break // which a grant finds out at more cost
		}
		g, what := a.Grant(r.trial, r.m, r.rng)
		if what != "" {
			break
		}
		r.trial.Take(g.Usage)
		grants = append(grants, g.Usage)
	}
	for _, u := range slices.Backward(grants) {
		r.trial.Give(u)
	}
	return len(grants)
}

func (r *node) sums() (n int) {
	free := r.free
	for _, a := range r.requests {
		has := free.Minus(r.node.Withheld(&a.By).Amount)
		if a.Amount.CPU > has.CPU || a.Amount.MemoryMB > has.MemoryMB || a.Amount.DiskMB > has.DiskMB {
			break
		}
		free = free.Minus(a.Amount)
		n++
	}
	return n
}
