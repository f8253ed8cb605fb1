package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/room"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// Preemption of lower bands (semantics part 3): instances that found no free room are assigned
// nodes one by one, each time the node with the least loss, which is used while it has room. When
// all have a node, each of these nodes is planned anew for all newcomers there, so that what is
// left over in the end is returned. Only then does the plan change.

// mayReclaim reports whether the job may preempt lower bands.
func (s *Scheduler) mayReclaim() bool {
	return s.Input.Job != nil && s.Input.Config.Preempts(s.Input.Job.Type) && s.Input.Job.Partial != string(preempt.PartialFree) &&
		s.Input.Config.Band(s.Input.Job.Priority) > 0
}

// newcomer is an instance that has been assigned a node and needs room there.
type newcomer struct {
	run *groupRun
	p   reconcile.Placement
}

// reclaimer assigns nodes to newcomers, then makes room there.
type reclaimer struct {
	s     *Scheduler
	e     *world.Edit
	below int // bands below this may be preempted
	most  int // the highest priority that may be
	on    map[string]*touched
	order []*touched // in which nodes were first assigned
	usage world.UsageSums
	// only are those that may be taken from, by the IDs of their allocations, and why; nil: whoever is of a lower band.
	only map[string]bool
	why  string
}

// touched is a node that newcomers were assigned.
type touched struct {
	id    string
	come  []newcomer
	loss  preempt.Loss // with those that were assigned to it so far
	gangs bool         // some of what may be preempted there is of a gang
}

// reclaimer returns a new reclaimer for an edit.
func (s *Scheduler) reclaimer(e *world.Edit) *reclaimer {
	r := &reclaimer{s: s, e: e, below: s.Input.Config.Band(s.Input.Job.Priority), most: structs.JobMaxPriority, on: map[string]*touched{}}
	world.Flush(e)
	return r
}

// reclaim makes room for the instances of a group that found none free, and returns how many
// of them count as placed. Those that find none even so are explained.
func (g *groupRun) reclaim() (taken int) {
	if g.keepLicensed(); len(g.short) == 0 {
		return 0
	}
	r := g.s.reclaimer(g.search.Edit)
	find := r.finder(g)
	type which struct {
		index  int
		nodeID string
	}
	left := map[which]int{} // looked up only
	for _, p := range g.short {
		if !r.assign(find, p) {
			left[which{p.Index, p.NodeID}]++
		}
	}
	if !g.s.countsOnly() || len(g.work.Update) > 0 || slices.ContainsFunc(r.order, func(t *touched) bool { return t.gangs }) {
		for _, n := range r.settle() {
			left[which{n.p.Index, n.p.NodeID}]++
		}
	}
	for _, p := range g.short {
		if at := (which{p.Index, p.NodeID}); left[at] > 0 {
			left[at]--
			g.fail(p)
		} else if !p.Unwell {
			taken++
		}
	}
	return taken
}

// reclaimOne makes room for one instance that found none free. It reports whether it did.
func (g *groupRun) reclaimOne(p reconcile.Placement) bool {
	r := g.s.reclaimer(g.search.Edit)
	return r.assign(r.finder(g), p) && len(r.settle()) == 0
}

// countsOnly reports whether only the number of placed instances matters, and no later decision
// depends on what is preempted. It is known that the assigned nodes have room; which devices are nobody's depends on all that are taken.
func (s *Scheduler) countsOnly() bool {
	return s.Input.CountOnly && len(s.Input.Job.TaskGroups) == 1 && (!s.Input.Job.PerNode() || !s.World.AnyOwner())
}

// assign assigns an instance a node that can be freed, if there is one.
func (r *reclaimer) assign(find *reclaimSearch, p reconcile.Placement) bool {
	g := find.run
	var instance *reclaimInstance
	switch {
	case p.NodeID != "":
		instance = find.on(p.NodeID)
	case g.only != "":
		instance = find.on(g.only)
	default:
		instance = find.next(p.Avoided())
	}
	if instance == nil {
		return false
	}
	t := r.on[instance.id]
	if t == nil {
		t = &touched{id: instance.id}
		r.on[instance.id], r.order = t, append(r.order, t)
	}
	t.come = append(t.come, newcomer{g, p})
	t.loss, t.gangs = instance.total, instance.gangs
	r.s.Census.Move(g.work.Group.Name, instance.id, 1)
	find.again(instance)
	return true
}

// loss plans one node with one more newcomer, and returns the total loss there;
// false: it finds no room.
func (r *reclaimer) loss(n *world.NodeState, a *search.Request) (total preempt.Loss, gangs, ok bool) {
	requests := []*search.Request{}
	if t := r.on[n.ID]; t != nil {
		for i := range t.come {
			requests = append(requests, t.come[i].run.search.Request)
		}
	}
	requests = append(requests, a)
	if !room.MayHold(n, requests) {
		return total, false, false
	}
	if fits, known := r.fitsEmptied(n, requests); known {
		return total, false, fits
	}
	rooms := r.rooms()
	rooms.Add(n, requests, r.s.settled[n.ID])
	of := r.requests(rooms)
	of.Gather(n)
	result := preempt.Plan(rooms, of.List, preempt.Request{
		Want: []int{len(requests)}, Below: r.below, KeepWhole: r.s.Input.Config.KeepWhole, Partial: preempt.PartialNone,
	})
	return result.Loss(of.List), of.AnyGang(), result.Placed[0] == len(requests)
}

func (r *reclaimer) rooms() *room.Rooms { return &room.Rooms{M: r.s.fits.Matcher, Random: &r.s.Random} }

func (r *reclaimer) requests(rooms *room.Rooms) *room.Requests {
	return room.NewRequests(r.e, rooms, room.Taker{
		Job: structs.NamespacedID{Namespace: r.s.eval.Namespace, ID: r.s.eval.JobID}, Below: r.below, Config: &r.s.Input.Config, Stays: r.stays,
	})
}

// stays reports whether a usage must not be taken from.
func (r *reclaimer) stays(u *world.Usage) bool {
	if r.only != nil {
		return !r.only[u.ID]
	}
	return r.s.protected(r.e, u, r.below)
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

// settle plans all nodes that newcomers were assigned, frees what the plan preempts, and places the
// newcomers. It returns those that found no room after all. Nodes on which a gang may be preempted
// are planned together, as the gang may be on more than one of them.
func (r *reclaimer) settle() (left []newcomer) {
	var together []*touched
	for _, t := range r.order {
		if t.gangs {
			together = append(together, t)
			continue
		}
		left = append(left, r.settleOn([]*touched{t})...)
	}
	if len(together) > 0 {
		left = append(left, r.settleOn(together)...)
	}
	r.on, r.order = map[string]*touched{}, nil
	return left
}

func (r *reclaimer) settleOn(nodes []*touched) (left []newcomer) {
	rooms := r.rooms()
	want := preempt.Request{Below: r.below, KeepWhole: r.s.Input.Config.KeepWhole, Partial: preempt.PartialPreempt}
	var before []string // nodes that something was taken on before
	for _, t := range nodes {
		if r.s.settled[t.id] {
			before = append(before, t.id)
		}
		r.putBack(t.id)
		n, _ := world.StateOf(r.e, t.id)
		var requests []*search.Request
		for i := range t.come {
			requests = append(requests, t.come[i].run.search.Request)
		}
		rooms.Add(n, requests, r.s.settled[t.id])
		want.Want = append(want.Want, len(requests))
	}
	of := r.requests(rooms)
	for _, n := range rooms.Nodes {
		of.Gather(n)
	}
	result := preempt.Plan(rooms, of.List, want)
	o := &outcome{r: r, of: of, taken: result.Taken, by: make([]string, len(nodes)), runs: make([]*groupRun, len(nodes))}
	o.free()
	for i, t := range nodes {
		left = append(left, o.place(i, t, result.Placed[i])...)
	}
	o.spare()
	o.stop()
	for _, id := range before { // what is left over now may be enough for those who lost it before
		r.putBack(id)
	}
	return left
}

// putBack returns what was preempted on a node for newcomers of an earlier group, as far as it
// still fits in place: preemption is planned anew for all newcomers together.
func (r *reclaimer) putBack(node string) {
	if !r.s.settled[node] {
		return
	}
	for _, d := range slices.Backward(r.s.reclaimed) {
		if d.use.NodeID == node && !d.gang {
			r.back(d)
		}
	}
}

// back returns what was preempted to one that still fits in place. A member of a gang that has left whole since stays gone.
func (r *reclaimer) back(d *reclaimed) {
	if together.Gone(r.e, d.use) {
		return
	}
	world.Release(r.e, d.use.ID)
	if n, _ := world.StateOf(r.e, d.use.NodeID); mayHaveBack(r.e, n, d.use) {
		world.Take(r.e, d.use)
		r.s.forget(d)
	} else if d.stop.DesiredStatus == structs.AllocDesiredSuspend {
		world.Take(r.e, d.use.Suspended())
	}
}

// putBackAll returns what was preempted where replaced allocations have left room since.
func (g *groupRun) putBackAll() {
	if len(g.s.reclaimed) == 0 {
		return
	}
	var nodes []string
	for _, d := range g.s.reclaimed {
		if !slices.Contains(nodes, d.use.NodeID) {
			nodes = append(nodes, d.use.NodeID)
		}
	}
	r := g.s.reclaimer(g.search.Edit)
	for _, id := range nodes {
		r.putBack(id)
	}
}

// forget takes a reclaim out of the plan.
func (s *Scheduler) forget(d *reclaimed) {
	s.reclaimed = slices.DeleteFunc(slices.Clone(s.reclaimed), func(o *reclaimed) bool { return o == d })
	s.plan.Stop = slices.DeleteFunc(slices.Clone(s.plan.Stop), func(st *structs.AllocStop) bool { return st == d.stop })
	d.run.work.Counts.Preemptions--
}
