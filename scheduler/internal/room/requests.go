package room

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/alike"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// Taker is who takes, and from whom.
type Taker struct {
	Job    structs.NamespacedID // its own instances stay
	Below  int                  // bands below this may be taken from
	Config *structs.SchedulerConfiguration
	// Stays reports whether a usage must not be taken from.
	Stays func(*world.Usage) bool
}

// Requests gathers the requests that may be taken from, for the planner.
type Requests struct {
	Taker
	e     *world.Edit
	Rooms *Rooms
	at    map[string]int // rooms by node
	List  []preempt.Allocated
	of    []*world.Owner // by request
	// Requeued is why the instances of a request are requeued that were to be suspended, by request; "": they are not.
	Requeued map[int]string
	gangs    map[world.GangName]int
}

// NewRequests returns a new Requests for rooms on the nodes of an edit.
func NewRequests(e *world.Edit, rooms *Rooms, by Taker) *Requests {
	a := &Requests{Taker: by, e: e, Rooms: rooms, at: map[string]int{}, gangs: map[world.GangName]int{}}
	for i, n := range rooms.Nodes {
		a.at[n.ID] = i
	}
	return a
}

// AnyGang reports whether a gang is among what was gathered.
func (a *Requests) AnyGang() bool { return len(a.gangs) > 0 }

// Gather adds what a node's allocations hold that are of lower bands. A request has its instances
// on one node, a gang all that it has.
func (a *Requests) Gather(n *world.NodeState) {
	at, first := a.at[n.ID], len(a.List)
	for _, u := range n.Usages {
		if u.Owner.Namespace == a.Job.Namespace && u.Owner.Job == a.Job.ID || a.Stays(u) || a.Config.Band(u.Owner.Terms.Priority) >= a.Below {
			continue
		}
		if g, some := u.Owner.Gang(); some {
			a.gang(g)
			continue
		}
		i := first
		for i < len(a.List) && (a.of[i].RequestName != u.Owner.RequestName || len(a.List[i].Min) > 0) {
			i++
		}
		if i == len(a.List) {
			a.append(a.request(u.Owner), u.Owner)
		}
		a.add(i, u, n.Node, at)
	}
	for i := first; i < len(a.List); i++ {
		if len(a.List[i].Min) == 0 {
			a.order(a.List[i].Victims)
		}
	}
}

// order puts instances of a request in the order in which they are taken.
func (a *Requests) order(victims []preempt.Victim) {
	if len(victims) > 1 {
		slices.SortFunc(victims, func(x, y preempt.Victim) int { return alike.TakenFirst(a.Rooms.Usage(x.ID), a.Rooms.Usage(y.ID)) })
	}
}

func (a *Requests) request(h *world.Owner) preempt.Allocated {
	return preempt.Allocated{
		Standing: preempt.Standing{
			Band: a.Config.Band(h.Terms.Priority), Priority: h.Terms.Priority, Submitted: h.Terms.Submitted,
			Name: strings.Join([]string{h.Namespace, h.Job, h.Group}, "\x00"),
		},
		Suspend: h.Terms.Reclaim == structs.ReclaimSuspend,
	}
}

func (a *Requests) append(request preempt.Allocated, of *world.Owner) {
	a.List, a.of = append(a.List, request), append(a.of, of)
}

// requeue has what was to be suspended of a request requeued, and notes why.
func (a *Requests) requeue(request int, why string) {
	if a.List[request].Suspend && why != "" {
		a.List[request].Suspend = false
		world.PutInto(&a.Requeued, request, why)
	}
}

// add adds an instance of a request, on a node. A request is suspended where all of it can be
// suspended: one that cannot would end as failed, and a gang is suspended whole.
func (a *Requests) add(request int, u *world.Usage, n *structs.Node, at int) {
	a.requeue(request, feasible.NotSuspended(n, &u.Owner.Terms, len(u.Devices) > 0))
	a.List[request].Victims = append(a.List[request].Victims, preempt.Victim{ID: a.Rooms.AddVictim(u, at), Room: at})
}

// gang adds all members of a gang, once. A part is a group. Of a gang of which somebody must not be taken from, those alone may
// go without whom it still runs.
func (a *Requests) gang(g world.GangName) {
	if _, known := a.gangs[g]; known {
		return
	}
	a.gangs[g] = len(a.List)
	members := world.GangMembers(a.e, g)
	slices.SortFunc(members, alike.TakenFirst)
	fixed := slices.ContainsFunc(members, a.Stays)
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
	i := len(a.List)
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
		v := a.List[i].Victims
		v[len(v)-1].Part = slices.Index(parts, u.Owner.Group)
	}
}

// dispensable returns the members of a gang that may be taken from and without all of whom as many run on as must, those on the nodes
// in question first.
func (a *Requests) dispensable(members []*world.Usage) (list []*world.Usage) {
	spare := map[string]int{}
	for _, u := range members {
		if _, seen := spare[u.Owner.Group]; !seen {
			spare[u.Owner.Group] = -u.Owner.Terms.GangMin
		}
		spare[u.Owner.Group]++
	}
	for _, near := range []bool{true, false} {
		for _, u := range members {
			if _, in := a.at[u.NodeID]; in == near && spare[u.Owner.Group] > 0 && !a.Stays(u) {
				spare[u.Owner.Group]--
				list = append(list, u)
			}
		}
	}
	return list
}

// PrioritiesBelow returns the priorities by which bands below that of a priority hold something, lowest first.
func PrioritiesBelow(w *world.World, config *structs.SchedulerConfiguration, priority int) []int {
	list := usagePriorities(w)
	for i, p := range list {
		if config.Band(p) >= config.Band(priority) {
			return list[:i]
		}
	}
	return list
}
