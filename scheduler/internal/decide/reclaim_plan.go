package decide

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/licensetake"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/room"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// reclaimed is one allocation that a plan takes back.
type reclaimed struct {
	use      *world.Usage // what it used
	stop     *structs.AllocStop
	run      *groupRun // whose instance it makes room for
	gang     bool      // it goes, or shrinks, with others
	licenses bool      // it leaves for what it uses of licenses, wherever the instance is placed
}

// outcome is what has been planned for some nodes on its way into the scheduler's plan.
type outcome struct {
	r     *reclaimer
	of    *room.Requests
	taken []preempt.Taken
	by    []string    // allocations that room is made for, by room
	runs  []*groupRun // and theirs
}

func (o *outcome) use(t *preempt.Taken) *world.Usage {
	return o.of.Rooms.Usage(o.of.List[t.Allocated].Victims[t.Victim].ID)
}

func (o *outcome) gang(t *preempt.Taken) bool { return len(o.of.List[t.Allocated].Min) > 0 }

// free lets go what is taken.
func (o *outcome) free() {
	for i := range o.taken {
		u := o.use(&o.taken[i])
		world.Release(o.r.e, u.ID)
		if o.taken[i].How == preempt.Suspend {
			world.Take(o.r.e, u.Suspended())
		}
	}
}

// place places the newcomers of a node that find room, and returns the others.
func (o *outcome) place(room int, t *touched, fit int) (left []newcomer) {
	s := o.r.s
	for i := range t.come {
		c := &t.come[i]
		s.Census.Move(c.run.work.Group.Name, t.id, -1)
		var run *groupRun
		if i < fit {
			run = c.run.placeWhereRoomWasMade(t.id, c.p)
		}
		if run == nil {
			left = append(left, *c)
			continue
		}
		if o.by[room] == "" {
			last := &run.batch.Instances[len(run.batch.Instances)-1]
			o.by[room], o.runs[room] = structs.DeriveID(run.batch.Seed, uint64(last.Ordinal)), run
		}
		world.PutInto(&s.settled, t.id, true)
	}
	return left
}

// spare returns what has its very place beside the newcomers after all: they have been
// given their ports and devices only now.
func (o *outcome) spare() {
	for i := len(o.taken) - 1; i >= 0; i-- {
		t := &o.taken[i]
		if o.gang(t) {
			continue
		}
		u := o.use(t)
		world.Release(o.r.e, u.ID)
		if n, known := world.StateOf(o.r.e, u.NodeID); known && n.Capacity != nil && mayHaveBack(o.r.e, n, u) {
			world.Take(o.r.e, u)
			o.taken = slices.Delete(o.taken, i, i+1)
			continue
		}
		if t.How == preempt.Suspend {
			world.Take(o.r.e, u.Suspended())
		}
	}
}

// mayHaveBack reports whether a usage that was there before has its place, and leaves what others
// have reserved of the node for later: newcomers that came beside it were refused that.
func mayHaveBack(e *world.Edit, n *world.NodeState, u *world.Usage) bool {
	return n.Lacks(u.Amount, &world.Taker{}) == "" && !room.IsTaken(n, u) && n.Spares(u, &world.Taker{}) && !licensetake.Over(e, u)
}

// stop adds the preempted allocations to the plan, with the newcomers that they are stopped for.
func (o *outcome) stop() {
	if o.inVain() {
		return
	}
	s := o.r.s
	for i := range o.taken {
		t := &o.taken[i]
		room := o.roomOf(t)
		st := &structs.AllocStop{
			AllocID: o.use(t).ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue,
			PreemptedBy: o.by[room], DesiredDescription: "preempted by allocation " + o.by[room],
		}
		switch st.RequeueReason = o.reason(o.use(t)); {
		case t.How == preempt.Suspend:
			st.RequeueReason, st.SuspendedAt = "", s.Input.Now.UnixNano()
			st.DesiredStatus, st.Reclaim = structs.AllocDesiredSuspend, structs.ReclaimSuspend
		case st.RequeueReason == reconcile.NeededMemory:
			st.DesiredDescription += "; it was suspended, and " + st.RequeueReason
		case t.NoRoom:
			st.DesiredDescription += "; not suspended, as its memory cannot stay beside it"
		case t.How == preempt.Shrink:
			st.DesiredDescription += "; its gang runs on without it"
		case o.of.Requeued[t.Allocated] != "":
			st.DesiredDescription += "; not suspended, as " + o.of.Requeued[t.Allocated]
		}
		s.plan.Stop = append(s.plan.Stop, st)
		s.reclaimed = append(s.reclaimed, &reclaimed{use: o.use(t), stop: st, run: o.runs[room], gang: o.gang(t)})
		o.runs[room].work.Counts.Preemptions++
	}
}

// reason returns why an instance is requeued, for its successor.
func (o *outcome) reason(u *world.Usage) string {
	job, config := o.r.s.Input.Job, &o.r.s.Input.Config
	if u.IsSuspended && len(u.Devices) == 0 {
		return reconcile.NeededMemory
	}
	switch {
	case o.r.only != nil:
		return o.r.why
	case o.r.below == preempt.EveryBand:
		return fmt.Sprintf("reclaimed for what namespace %s owns", job.Namespace)
	}
	of := ""
	if job.Namespace != u.Owner.Namespace {
		of = " in namespace " + job.Namespace
	}
	band := config.PriorityBands()[config.Band(job.Priority)]
	return fmt.Sprintf("preempted by job %s%s of band %d-%d", job.ID, of, band.Low, band.High)
}

// roomOf is the room that an allocation makes room in: its own, or that of another of its
// gang.
func (o *outcome) roomOf(t *preempt.Taken) int {
	if room := o.of.List[t.Allocated].Victims[t.Victim].Room; room != preempt.Elsewhere && o.by[room] != "" {
		return room
	}
	for i := range o.taken {
		if other := &o.taken[i]; other.Allocated == t.Allocated {
			if room := o.of.List[t.Allocated].Victims[other.Victim].Room; room != preempt.Elsewhere && o.by[room] != "" {
				return room
			}
		}
	}
	return max(0, slices.IndexFunc(o.runs, func(g *groupRun) bool { return g != nil }))
}

// inVain reports whether nobody came for whom something is taken: then all have it back.
func (o *outcome) inVain() bool {
	if slices.ContainsFunc(o.runs, func(g *groupRun) bool { return g != nil }) {
		return false
	}
	for i := range o.taken {
		u := o.use(&o.taken[i])
		world.Release(o.r.e, u.ID)
		world.Take(o.r.e, u)
	}
	return true
}

// preemptions are the evaluations of the jobs that something is taken back from, one each.
func (s *Scheduler) preemptions() {
	listed := map[structs.NamespacedID]bool{}
	for _, d := range s.reclaimed {
		job := structs.NamespacedID{ID: d.use.Owner.Job, Namespace: d.use.Owner.Namespace}
		if listed[job] {
			continue
		}
		listed[job] = true
		ev := s.newEval(structs.EvalTriggerPreemption, structs.EvalStatusPending)
		ev.Namespace, ev.JobID, ev.Priority = job.Namespace, job.ID, d.use.Owner.Terms.Priority
		ev.Type, ev.JobModifyIndex = structs.JobTypeService, 0 // the FSM fills these in from the job
		ev.StatusDescription = "created because instances of the job were preempted"
		s.plan.Evals = append(s.plan.Evals, ev)
	}
}

// preempted lists what is taken back, for `job plan`.
func (s *Scheduler) preempted() (list []*structs.AllocListStub) {
	for _, d := range s.reclaimed {
		stub := &structs.AllocListStub{
			ID: d.use.ID, Namespace: d.use.Owner.Namespace, JobID: d.use.Owner.Job, TaskGroup: d.use.Owner.Group, NodeID: d.use.NodeID,
			DesiredStatus: d.stop.DesiredStatus, DesiredDescription: d.stop.DesiredDescription, PreemptedByAllocation: d.stop.PreemptedBy,
		}
		if n, known := s.World.Node(d.use.NodeID); known {
			stub.NodeName = n.Name
		}
		list = append(list, stub)
	}
	return list
}

// takeBackReclaims takes every reclaim out of the plan.
func (s *Scheduler) takeBackReclaims() {
	gone := map[*structs.AllocStop]bool{}
	for _, d := range s.reclaimed {
		gone[d.stop] = true
		d.run.work.Counts.Preemptions--
	}
	s.plan.Stop = slices.DeleteFunc(s.plan.Stop, func(st *structs.AllocStop) bool { return gone[st] })
	s.reclaimed, s.lowered = nil, nil
}
