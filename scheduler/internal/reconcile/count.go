package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// slots sorts the allocations of a counted group (service, batch) by what is to
// become of them.
type slots struct {
	// owners have their instance's place: they run, wait, or have ended for good.
	owners []*structs.Allocation
	// leaving by instance: what a new one there stands for.
	leaving map[int]Placement
	stays   map[int]bool // instances that are left empty on purpose
}

// counted reconciles a group of a service or batch job: instances 0 to count-1
// have one holder each, and what has none is placed.
func (r *reconciler) counted(work *GroupWork, allocs []*structs.Allocation) {
	count := work.Group.Count
	if r.in.Job.IsPeriodic() || r.in.Job.IsParameterized() {
		count = 0
	}
	s := &slots{}
	for _, a := range allocs {
		r.sort(work, s, a)
	}
	reserved := r.settleSlots(work, s, count)
	var old, current []*structs.Allocation
	for _, a := range reserved {
		if a.ClientTerminal() {
			work.Counts.Ignore++
			if a.ClientStatus == structs.AllocClientFailed {
				current = append(current, a) // it waits to be tried again, or is given up
			}
			continue
		}
		switch r.change(a) {
		case structs.ChangeDestructive:
			if _, is := r.awaited(a); is && work.Gang == nil { // it may run, and cannot be stopped: two would
				work.Counts.Ignore++
				current = append(current, a)
				continue
			}
			old = append(old, a)
			continue
		case structs.ChangeInPlace:
			r.updateInPlace(a)
			work.Counts.InPlaceUpdate++
		case structs.ChangeNone:
			work.Counts.Ignore++
		}
		work.suspended(a)
		current = append(current, a)
	}
	r.roll(work, old, current, func(a *structs.Allocation) Placement { return r.replaceLater(a, a.Index()) })
	r.fillSlots(work, s, reserved, count)
}

// sort decides on one allocation.
func (r *reconciler) sort(work *GroupWork, s *slots, a *structs.Allocation) {
	batch := r.in.Job.Type == structs.JobTypeBatch
	switch {
	case work.Gang != nil && r.finished(a):
		s.owners = append(s.owners, a)
	case a.ClientTerminal() && batch && r.outdated(a):
		return // a new version is run anew, as in Nomad
	case work.Gang == nil && a.ClientStatus == structs.AllocClientComplete && batch && (!a.ServerTerminal() || endedWell(a)):
		s.owners = append(s.owners, a)
	case a.ServerTerminal():
		r.drop(a, StopNotNeeded) // marks it lost when its node is gone
		if owes(a) {
			r.owed(s, a)
		}
	case (a.ClientStatus == structs.AllocClientFailed || feasible.ReachedTimeLimit(a)) && !FailedToSuspend(a):
		r.failed(work, s, a)
	case a.ClientTerminal():
		r.owed(s, a) // a service that completed, or was lost, or what could not be suspended: its place is empty
	case r.lost(a):
		r.stop(a, StopLost, structs.AllocClientLost)
		work.Counts.Stop++
		s.leave(succeed(a, a.Index()))
	case a.DesiredTransition.ShouldMigrate(): // also one that is awaited: somebody wants it elsewhere
		r.stop(a, StopMigrating, "")
		if feasible.Value(a.DesiredTransition.MigrateDisablePlacement) {
			work.Counts.Stop++
			world.PutInto(&s.stays, a.Index(), true)
			return
		}
		work.Counts.Migrate++
		s.leave(succeed(a, a.Index()))
	case r.await(a):
		if !r.replacedMeanwhile(a) || a.Index() >= work.Group.Count || work.Gang != nil { // a gang waits for its members
			s.owners = append(s.owners, a)
			return
		}
		s.leave(succeed(a, a.Index())) // another runs meanwhile
	default:
		s.owners = append(s.owners, a)
	}
}

// owes reports whether an allocation that the servers have stopped had to leave, so that another is
// to stand for it.
func owes(a *structs.Allocation) bool {
	return a.DesiredTransition.ShouldMigrate() || a.ClientStatus == structs.AllocClientLost || dissolved(a)
}

// endedWell reports whether every task that ran ended without failing, and by itself: what was
// killed because the servers stopped it has not done its work.
func endedWell(a *structs.Allocation) bool { return structs.EndedByThemselves(a.TaskStates) }

// outdated reports whether an allocation is of another version, or of a job of the same name that
// was purged before.
func (r *reconciler) outdated(a *structs.Allocation) bool {
	return a.JobVersion != r.in.Job.Version || (a.Job != nil && a.Job.CreateIndex != r.in.Job.CreateIndex)
}

// leave notes which allocation the next one of an instance replaces: the newest.
func (s *slots) leave(p Placement) {
	if before, known := s.leaving[p.Index]; known && before.Previous.CreateIndex > p.Previous.CreateIndex {
		return
	}
	world.PutInto(&s.leaving, p.Index, p)
}

// owed notes an ended allocation that nobody stands for yet: there was no room
// when it left.
func (r *reconciler) owed(s *slots, a *structs.Allocation) {
	if a.NextAllocation == "" {
		p := succeed(a, a.Index())
		p.Unwell = r.unwell(a)
		s.leave(p)
	}
}

// failed decides on a failed allocation by the reschedule policy: replaced now,
// later (it holds its place until then), or never (it keeps it).
func (r *reconciler) failed(work *GroupWork, s *slots, a *structs.Allocation) {
	if a.NextAllocation != "" {
		return // it has been replaced
	}
	if r.outdated(a) && r.change(a) == structs.ChangeDestructive {
		p := succeed(a, a.Index()) // another version may do better: at once, and from the start
		p.Tracker = nil
		p.Stop = r.rescheduledStop(a)
		s.leave(p)
		return
	}
	policy := work.Group.ReschedulePolicy
	delay, may := feasible.MayReschedule(a, policy)
	if !may {
		s.owners = append(s.owners, a)
		return
	}
	at := feasible.FailedAt(a).Add(delay)
	if !r.due(a, at) {
		s.owners = append(s.owners, a)
		if a.FollowupEvalID == "" && a.Index() < work.Group.Count {
			r.Later = append(r.Later, Later{Alloc: a, At: at})
			work.Counts.RescheduleLater++
		}
		return
	}
	p := succeed(a, a.Index())
	p.Unwell = r.unwell(a)
	p.Tracker = feasible.Rescheduled(a, policy, delay, r.in.Now)
	p.Stop = r.rescheduledStop(a)
	work.Counts.RescheduleNow++
	s.leave(p)
}

// due reports whether a failed allocation is to be replaced now, that was to be at a time.
func (r *reconciler) due(a *structs.Allocation, at time.Time) bool {
	return !at.After(r.in.Now.Add(feasible.RescheduleSlack)) || (a.FollowupEvalID != "" && (a.FollowupEvalID == r.eval.ID || r.in.Past[a.FollowupEvalID])) ||
		a.DesiredTransition.ShouldForceReschedule()
}

func (r *reconciler) rescheduledStop(a *structs.Allocation) *structs.AllocStop {
	return &structs.AllocStop{
		AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop, DesiredDescription: stopRescheduled,
	}
}

// settleSlots keeps the best allocation of each instance and stops the others, and
// those above count.
func (r *reconciler) settleSlots(work *GroupWork, s *slots, count int) []*structs.Allocation {
	slices.SortStableFunc(s.owners, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), r.better(a, b))
	})
	var reserved []*structs.Allocation
	for _, a := range s.owners {
		i := a.Index()
		if i < 0 || i >= count || (len(reserved) > 0 && reserved[len(reserved)-1].Index() == i) {
			if r.drop(a, StopNotNeeded) {
				work.Counts.Stop++
			}
			continue
		}
		reserved = append(reserved, a)
	}
	return reserved
}

// better orders two allocations of one instance, the one to keep first: what has
// ended well, then the newest version, what runs, what came last; where an instance was
// replaced while its node was disconnected, its group may want it otherwise.
func (r *reconciler) better(a, b *structs.Allocation) int {
	rank := func(a *structs.Allocation) int {
		switch a.ClientStatus {
		case structs.AllocClientComplete:
			return 0
		case structs.AllocClientRunning:
			return 1
		case structs.AllocClientFailed:
			return 3
		}
		return 2
	}
	whichever, among := r.reconciled(a, b)
	return cmp.Or(
		cmp.Compare(min(1, rank(a)), min(1, rank(b))), cmp.Compare(b.JobVersion, a.JobVersion), whichever,
		cmp.Compare(rank(a), rank(b)), among, cmp.Compare(b.CreateIndex, a.CreateIndex))
}

// reconciled orders them as disconnect.reconcile states: whichever runs, and among those
// that do.
func (r *reconciler) reconciled(a, b *structs.Allocation) (whichever, among int) {
	g := r.in.Job.LookupTaskGroup(a.TaskGroup)
	if g == nil || g.Disconnect == nil || g.Disconnect.LostAfter == 0 {
		return 0, 0
	}
	switch g.Disconnect.Reconcile {
	case structs.ReconcileKeepOriginal:
		return cmp.Compare(a.CreateIndex, b.CreateIndex), 0
	case structs.ReconcileKeepReplacement:
		return cmp.Compare(b.CreateIndex, a.CreateIndex), 0
	case structs.ReconcileLongestRunning:
		return 0, runsSince(a).Compare(runsSince(b))
	default: // best_score
		return 0, cmp.Or(cmp.Compare(scoreOf(b), scoreOf(a)), cmp.Compare(a.CreateIndex, b.CreateIndex))
	}
}

// runsSince is when the first task of those that run has started; of what does not run,
// after everything.
func runsSince(a *structs.Allocation) time.Time {
	first := time.Unix(1<<40, 0)
	for _, s := range a.TaskStates { // the earliest: the order cannot show
		if s.State == structs.TaskStateRunning && s.StartedAt.Before(first) {
			first = s.StartedAt
		}
	}
	return first
}

// scoreOf is how well an allocation's node was liked when it was placed.
func scoreOf(a *structs.Allocation) float64 {
	if a.Metrics != nil {
		for _, m := range a.Metrics.ScoreMetaData {
			if m.NodeID == a.NodeID {
				return m.NormScore
			}
		}
	}
	return 0
}

// fillSlots places the instances that have no allocation.
func (r *reconciler) fillSlots(work *GroupWork, s *slots, reserved []*structs.Allocation, count int) {
	next := 0
	for i := range count {
		if next < len(reserved) && reserved[next].Index() == i {
			next++
			continue
		}
		if s.stays[i] {
			continue
		}
		p, stands := s.leaving[i]
		if !stands {
			p = Placement{Index: i}
		}
		work.Place = append(work.Place, p)
		work.Counts.Place++
	}
}
