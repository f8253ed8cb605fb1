package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// reclaimed is one allocation that a plan takes back.
type reclaimed struct {
	use  *use // what it held
	stop *structs.AllocStop
	run  *groupRun // whose instance it makes room for
	gang bool      // it goes, or shrinks, with others
}

// outcome is what has been planned for some nodes on its way into the scheduler's plan.
type outcome struct {
	r     *reclaimer
	of    *reclaimAsks
	taken []preempt.Taken
	by    []string    // allocations that room is made for, by room
	runs  []*groupRun // and theirs
}

func (o *outcome) use(t *preempt.Taken) *use {
	return o.of.rooms.victims[o.of.list[t.Ask].Victims[t.Victim].ID].use
}

func (o *outcome) gang(t *preempt.Taken) bool { return len(o.of.list[t.Ask].Min) > 0 }

// free lets go what is taken.
func (o *outcome) free() {
	for i := range o.taken {
		u := o.use(&o.taken[i])
		o.r.e.release(u.id)
		if o.taken[i].How == preempt.Suspend {
			o.r.e.take(u.suspended())
		}
	}
}

// place places the newcomers of a node that find room, and gives the others.
func (o *outcome) place(room int, t *touched, fit int) (left []newcomer) {
	s := o.r.s
	for i := range t.come {
		c := &t.come[i]
		s.census.move(c.run.work.group.Name, t.id, -1)
		n, _ := o.r.e.node(t.id)
		g, what := c.run.search.ask.grant(n, s.fits.m, s.rng)
		if i >= fit || what != "" {
			left = append(left, *c)
			continue
		}
		c.run.accept(c.p, found{node: n, grant: g})
		if o.by[room] == "" {
			last := &c.run.batch.Instances[len(c.run.batch.Instances)-1]
			o.by[room], o.runs[room] = structs.DeriveID(c.run.batch.Seed, uint64(last.Ordinal)), c.run
		}
		put(&s.settled, t.id, true)
	}
	return left
}

// spare gives back what has its very place beside the newcomers after all: they have been
// given their ports and devices only now.
func (o *outcome) spare() {
	for i := len(o.taken) - 1; i >= 0; i-- {
		t := &o.taken[i]
		if o.gang(t) {
			continue
		}
		u := o.use(t)
		o.r.e.release(u.id)
		if n, known := o.r.e.node(u.nodeID); known && n.has != nil && n.mayHaveBack(u) {
			o.r.e.take(u)
			o.taken = slices.Delete(o.taken, i, i+1)
			continue
		}
		if t.How == preempt.Suspend {
			o.r.e.take(u.suspended())
		}
	}
}

// mayHaveBack tells whether a use that was there before has its place, and leaves what others
// have reserved of the node for later: newcomers that came beside it were refused that.
func (n *nodeState) mayHaveBack(u *use) bool { return n.lacksUse(u, &taker{}) == "" }

// stop writes into the plan who gives back what he holds, and for whom.
func (o *outcome) stop() {
	if o.inVain() {
		return
	}
	s := o.r.s
	for i := range o.taken {
		t := &o.taken[i]
		room := o.roomOf(t)
		st := &structs.AllocStop{
			AllocID: o.use(t).id, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue,
			PreemptedBy: o.by[room], DesiredDescription: "preempted by allocation " + o.by[room],
		}
		switch {
		case t.How == preempt.Suspend:
			st.DesiredStatus, st.Reclaim = structs.AllocDesiredSuspend, structs.ReclaimSuspend
		case t.NoRoom:
			st.DesiredDescription += "; not suspended, as its memory cannot stay beside it"
		case t.How == preempt.Requeue && o.use(t).of.terms.Reclaim == reclaimSuspend:
			st.DesiredDescription += "; not suspended, as not all of it can be frozen"
		case t.How == preempt.Shrink:
			st.DesiredDescription += "; its gang runs on without it"
		}
		s.plan.Stop = append(s.plan.Stop, st)
		s.reclaimed = append(s.reclaimed, &reclaimed{o.use(t), st, o.runs[room], o.gang(t)})
		o.runs[room].work.counts.Preemptions++
	}
}

// roomOf is the room that an allocation makes room in: its own, or that of another of its
// gang.
func (o *outcome) roomOf(t *preempt.Taken) int {
	if room := o.of.list[t.Ask].Victims[t.Victim].Room; room != preempt.Elsewhere && o.by[room] != "" {
		return room
	}
	for i := range o.taken {
		if other := &o.taken[i]; other.Ask == t.Ask {
			if room := o.of.list[t.Ask].Victims[other.Victim].Room; room != preempt.Elsewhere && o.by[room] != "" {
				return room
			}
		}
	}
	return max(0, slices.IndexFunc(o.runs, func(g *groupRun) bool { return g != nil }))
}

// inVain tells whether nobody came for whom something is taken: then all have it back.
func (o *outcome) inVain() bool {
	if slices.ContainsFunc(o.runs, func(g *groupRun) bool { return g != nil }) {
		return false
	}
	for i := range o.taken {
		u := o.use(&o.taken[i])
		o.r.e.release(u.id)
		o.r.e.take(u)
	}
	return true
}

// preemptions are the evaluations of the jobs that something is taken back from, one each.
func (s *scheduler) preemptions() {
	told := map[structs.NamespacedID]bool{}
	for _, d := range s.reclaimed {
		job := structs.NamespacedID{ID: d.use.of.job, Namespace: d.use.of.namespace}
		if told[job] {
			continue
		}
		told[job] = true
		ev := s.newEval(structs.EvalTriggerPreemption, structs.EvalStatusPending)
		ev.Namespace, ev.JobID, ev.Priority = job.Namespace, job.ID, d.use.of.terms.Priority
		ev.Type, ev.JobModifyIndex = structs.JobTypeService, 0 // the state knows the job, and says
		ev.StatusDescription = "created because instances of the job were taken back"
		s.plan.Evals = append(s.plan.Evals, ev)
	}
}

// preempted lists what is taken back, for `job plan`.
func (s *scheduler) preempted() (list []*structs.AllocListStub) {
	for _, d := range s.reclaimed {
		stub := &structs.AllocListStub{
			ID: d.use.id, Namespace: d.use.of.namespace, JobID: d.use.of.job, TaskGroup: d.use.of.group, NodeID: d.use.nodeID,
			DesiredStatus: d.stop.DesiredStatus, DesiredDescription: d.stop.DesiredDescription, PreemptedByAllocation: d.stop.PreemptedBy,
		}
		if n, known := s.w.Node(d.use.nodeID); known {
			stub.NodeName = n.Name
		}
		list = append(list, stub)
	}
	return list
}

// takeBackReclaims takes every reclaim out of the plan.
func (s *scheduler) takeBackReclaims() {
	gone := map[*structs.AllocStop]bool{}
	for _, d := range s.reclaimed {
		gone[d.stop] = true
		d.run.work.counts.Preemptions--
	}
	s.plan.Stop = slices.DeleteFunc(s.plan.Stop, func(st *structs.AllocStop) bool { return gone[st] })
	s.reclaimed = nil
}
