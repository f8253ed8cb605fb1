package decide

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/room"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// reclaimRequests gathers the requests that may be taken from, for the planner.
type reclaimRequests struct {
	s     *Scheduler
	e     *world.Edit
	below int             // bands
	only  map[string]bool // see reclaimer
	rooms *room.Rooms
	at    map[string]int // rooms by node
	list  []preempt.Allocated
	of    []*world.Owner // by request
	// requeued is why the instances of a request are requeued that were to be suspended, by request; "": they are not.
	requeued map[int]string
	gangs    map[world.GangName]int
}

// gather adds what a node's allocations hold that are of lower bands. A request has its instances
// on one node, a gang all that it has.
func (a *reclaimRequests) gather(n *world.NodeState) {
	room, first := a.at[n.ID], len(a.list)
	for _, u := range n.Usages {
		if u.Owner.Namespace == a.s.eval.Namespace && u.Owner.Job == a.s.eval.JobID || a.stays(u) || a.s.band(u) >= a.below {
			continue
		}
		if g, some := u.Owner.Gang(); some {
			a.gang(g)
			continue
		}
		i := first
		for i < len(a.list) && (a.of[i].RequestName != u.Owner.RequestName || len(a.list[i].Min) > 0) {
			i++
		}
		if i == len(a.list) {
			a.append(a.request(u.Owner), u.Owner)
		}
		a.add(i, u, n.Node, room)
	}
}

// stays reports whether a usage must not be taken from.
func (a *reclaimRequests) stays(u *world.Usage) bool {
	if a.only != nil {
		return !a.only[u.ID]
	}
	return a.s.protected(a.e, u, a.below)
}

// protected reports whether a usage must not be taken from by whoever may take from bands below: for a claim, what uses bound cells, and
// system and sysbatch instances; else whatever is guaranteed, was requeued too often, or has given up its class in this plan, as it was notified that it keeps its room.
func (s *Scheduler) protected(e *world.Edit, u *world.Usage, below int) bool {
	if below < preempt.EveryBand {
		return u.Guaranteed() || u.Immune(&s.Input.Config) || slices.ContainsFunc(s.lowered, func(l loweredUse) bool { return l.use.ID == u.ID })
	}
	return u.PerNode() || u.Guaranteed() && world.Protected(e, u)
}

// band is that of what somebody holds.
func (s *Scheduler) band(u *world.Usage) int { return s.Input.Config.Band(u.Owner.Terms.Priority) }

func (a *reclaimRequests) request(h *world.Owner) preempt.Allocated {
	return preempt.Allocated{
		Standing: preempt.Standing{
			Band: a.s.Input.Config.Band(h.Terms.Priority), Priority: h.Terms.Priority, Submitted: h.Terms.Submitted,
			Name: strings.Join([]string{h.Namespace, h.Job, h.Group}, "\x00"),
		},
		Suspend: h.Terms.Reclaim == reclaimSuspend,
	}
}

func (a *reclaimRequests) append(request preempt.Allocated, of *world.Owner) {
	a.list, a.of = append(a.list, request), append(a.of, of)
}

// requeue has what was to be suspended of a request requeued, and notes why.
func (a *reclaimRequests) requeue(request int, why string) {
	if a.list[request].Suspend && why != "" {
		a.list[request].Suspend = false
		world.PutInto(&a.requeued, request, why)
	}
}

// add adds an instance of a request, on a node. A request is suspended where all of it can be
// suspended: one that cannot would end as failed, and a gang is suspended whole.
func (a *reclaimRequests) add(request int, u *world.Usage, n *structs.Node, at int) {
	a.requeue(request, feasible.NotSuspended(n, &u.Owner.Terms, len(u.Devices) > 0))
	a.list[request].Victims = append(a.list[request].Victims, preempt.Victim{ID: a.rooms.AddVictim(u, at), Room: at})
}

// gang adds all members of a gang, once. A part is a group. Of a gang of which somebody must not be taken from, those alone may
// go without whom it still runs.
func (a *reclaimRequests) gang(g world.GangName) {
	if _, known := a.gangs[g]; known {
		return
	}
	a.gangs[g] = len(a.list)
	members := world.GangMembers(a.e, g)
	fixed := slices.ContainsFunc(members, func(u *world.Usage) bool { return a.stays(u) })
	if fixed {
		members = a.dispensable(members)
	}
	if len(members) == 0 {
		return
	}
	h := members[0].Owner
	request := a.request(h)
	var parts []string
	for _, u := range members {
		if !slices.Contains(parts, u.Owner.Group) {
			parts = append(parts, u.Owner.Group)
			least := u.Owner.Terms.GangMin
			if fixed {
				least = 0
			}
			request.Min = append(request.Min, least)
		}
	}
	i := len(a.list)
	a.append(request, h)
	if fixed {
		a.requeue(i, "its gang is suspended whole or not at all")
	}
	for _, u := range members {
		room, in := a.at[u.NodeID]
		if !in {
			room = preempt.Elsewhere
		}
		var at *structs.Node
		if n, known := world.StateOf(a.e, u.NodeID); known {
			at = n.Node
		}
		a.add(i, u, at, room)
		v := a.list[i].Victims
		v[len(v)-1].Part = slices.Index(parts, u.Owner.Group)
	}
}

// dispensable returns the members of a gang that may be taken from and without all of whom as many run on as must, those on the nodes
// in question first.
func (a *reclaimRequests) dispensable(members []*world.Usage) (list []*world.Usage) {
	spare := map[string]int{}
	for _, u := range members {
		if _, seen := spare[u.Owner.Group]; !seen {
			spare[u.Owner.Group] = -u.Owner.Terms.GangMin
		}
		spare[u.Owner.Group]++
	}
	for _, near := range []bool{true, false} {
		for _, u := range members {
			if _, in := a.at[u.NodeID]; in == near && spare[u.Owner.Group] > 0 && !a.stays(u) {
				spare[u.Owner.Group]--
				list = append(list, u)
			}
		}
	}
	return list
}
