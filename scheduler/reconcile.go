package scheduler

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Why an allocation is stopped, in Nomad's words.
const (
	stopNotNeeded   = "alloc not needed due to job update"
	stopJobStopped  = "alloc not needed because the job is stopped"
	stopUpdating    = "alloc is being updated due to job update"
	stopMigrating   = "alloc is being migrated"
	stopLost        = "alloc is lost since its node is down"
	unknownAway     = "its node is disconnected"
	stopRescheduled = "alloc was rescheduled because it failed"
	stopNodeUnfit   = "alloc not needed because its node no longer fits the job"
)

// placement is one instance to be placed.
type placement struct {
	index int
	// nodeID is the only node that may be taken (system jobs); "": any.
	nodeID   string
	previous *structs.Allocation // that it stands for; nil: none
	tracker  *structs.RescheduleTracker
	// stop is done only if the placement is: the old instance of an update keeps
	// running until its successor has a place.
	stop *structs.AllocStop
	// unwell: it stands for an instance of the newest version that failed or ended,
	// which takes one of the update's places whether a node is found or not.
	unwell bool
}

// groupWork is what is to be done with one group.
type groupWork struct {
	group  *structs.TaskGroup
	place  []placement
	update []placement // by replacement
	// room is how many of the newest version may be not healthy yet, beyond those
	// that are so already; below zero if there are too many.
	room   int
	counts structs.DesiredUpdates
	// gang is what the group is part of; nil: of none. Then first of what is to be
	// placed must be placed at once with the gang's others.
	gang  *gangWork
	first int
	// done are the members of a gang that have completed and are not run again.
	done []*structs.Allocation
	// resume are suspended, and go on when there is room for them.
	resume []*structs.Allocation
	// waits: updates are left undone until others of the group are well.
	waits bool
}

// later is a failed allocation whose replacement is due at a time.
type later struct {
	alloc *structs.Allocation
	at    time.Time
	// away: its node is disconnected, and it is lost then; with structs.Forever, never.
	away bool
}

// reconciler compares what is wanted with what there is.
type reconciler struct {
	w    *World
	eval *structs.Evaluation
	in   reconcileInput
	fits *fits
	result

	changes map[versionGroup]structs.Change
}

// versionGroup names a group of a version of the job.
type versionGroup struct {
	version uint64
	group   string
}

// reconcile fills the result.
func (r *reconciler) reconcile() {
	byGroup := map[string][]*structs.Allocation{}
	allocs := slices.Clone(r.in.Allocs)
	slices.SortFunc(allocs, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), strings.Compare(a.ID, b.ID))
	})
	for _, a := range allocs {
		byGroup[a.TaskGroup] = append(byGroup[a.TaskGroup], a)
	}
	stopped := r.in.Job.Stopped()
	if !stopped {
		r.wanted(byGroup)
	}
	for _, a := range allocs {
		if stopped {
			r.drop(a, stopJobStopped)
		} else if r.in.Job.LookupTaskGroup(a.TaskGroup) == nil {
			r.drop(a, stopNotNeeded)
		}
	}
}

// wanted reconciles the groups of a job that is to run.
func (r *reconciler) wanted(byGroup map[string][]*structs.Allocation) {
	gangs := gangsOf(r.in.Job)
	works := map[*gang]*gangWork{}
	for _, g := range r.in.Job.TaskGroups {
		work := &groupWork{group: g}
		r.groups = append(r.groups, work)
		if of := gangs[g.Name]; of != nil {
			if works[of] == nil {
				works[of] = &gangWork{spec: of}
			}
			work.gang = works[of]
			work.gang.works = append(work.gang.works, work)
		}
	}
	for _, work := range r.groups {
		switch {
		case work.gang != nil && work.gang.works[0] == work:
			r.gang(work.gang, byGroup)
		case work.gang != nil: // done with its gang's first
		case r.in.Job.PerNode():
			r.perNode(work, byGroup[work.group.Name])
		default:
			r.counted(work, byGroup[work.group.Name])
		}
	}
}

// lost tells whether an allocation's node is gone.
func (r *reconciler) lost(a *structs.Allocation) bool {
	n, known := r.w.Node(a.NodeID)
	if !known || n.Terminal() {
		return true
	}
	if n.Status != structs.NodeStatusDisconnected {
		return false
	}
	until := r.awaitedUntil(a, n)
	// The evaluation that was to come then has come, whatever the clock says here: it may be behind that of the leader.
	due := r.eval.TriggeredBy == structs.EvalTriggerMaxDisconnect && a.FollowupEvalID == r.eval.ID && !until.After(r.eval.WaitUntil)
	return due || !until.After(r.in.Now.Add(rescheduleSlack))
}

// awaitedUntil is when an allocation counts as lost whose node is disconnected.
func (r *reconciler) awaitedUntil(a *structs.Allocation, n *structs.Node) time.Time {
	return n.AwaitedUntil(a.GroupNow(r.in.Job))
}

// replacedMeanwhile tells whether another is to run while an allocation is waited for: its group says so, or there is one
// already. What is kept only because its node is still heard by gossip runs on, and would run twice.
func (r *reconciler) replacedMeanwhile(a *structs.Allocation) bool {
	return a.NextAllocation != "" || a.GroupNow(r.in.Job).ReplacedMeanwhile()
}

// awaited tells whether an allocation that is not lost is on a node which is disconnected: nobody knows what it does.
func (r *reconciler) awaited(a *structs.Allocation) (*structs.Node, bool) {
	n, known := r.w.Node(a.NodeID)
	return n, known && n.Status == structs.NodeStatusDisconnected && !a.ClientTerminal()
}

// await has an allocation that is awaited looked at again when it is to be lost; false: it is not awaited.
func (r *reconciler) await(a *structs.Allocation) bool {
	n, is := r.awaited(a)
	if !is {
		return false
	}
	at := r.awaitedUntil(a, n)
	none := a.FollowupEvalID == "" || a.FollowupEvalID == r.eval.ID || r.in.Past[a.FollowupEvalID]
	// The time of its follow-up may have been that of another version.
	switch r.change(a) {
	case structs.ChangeNone:
	case structs.ChangeInPlace:
		none = none || !r.replacedMeanwhile(a) || r.eval.TriggeredBy == structs.EvalTriggerJobRegister
	default:
		none = none || r.eval.TriggeredBy == structs.EvalTriggerJobRegister
	}
	if a.ClientStatus != structs.AllocClientUnknown || (none && at.Before(structs.Forever)) {
		r.later = append(r.later, later{alloc: a, at: at, away: true})
	}
	return true
}

func groupOf(a *structs.Allocation) *structs.TaskGroup {
	if a.Job == nil {
		return nil
	}
	return a.Job.LookupTaskGroup(a.TaskGroup)
}

// stop stops an allocation; with its node gone, it is lost.
func (r *reconciler) stop(a *structs.Allocation, why, clientStatus string) {
	r.stops = append(r.stops, &structs.AllocStop{
		AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop, DesiredDescription: why, ClientStatus: clientStatus,
	})
}

// drop stops an allocation that is not wanted any more. It tells whether there
// was anything to stop.
func (r *reconciler) drop(a *structs.Allocation, why string) bool {
	switch {
	case a.ClientTerminal():
		return false
	case r.lost(a):
		r.stop(a, stopLost, structs.AllocClientLost)
		return true
	case a.ServerTerminal():
		return false
	}
	r.stop(a, why, "")
	return true
}

// change says what the job's newest version does to a running allocation. What
// would stay is replaced all the same if its node does not fit any more.
func (r *reconciler) change(a *structs.Allocation) structs.Change {
	if a.JobVersion == r.in.Job.Version && (a.Job == nil || a.Job.CreateIndex == r.in.Job.CreateIndex) {
		return structs.ChangeNone
	}
	key := versionGroup{a.JobVersion, a.TaskGroup}
	change, known := r.changes[key]
	if !known {
		// A version that is gone cannot be compared: it counts as destructive.
		change = max(structs.ChangeInPlace, structs.JobGroupChange(a.Job, r.in.Job, a.TaskGroup))
		put(&r.changes, key, change)
	}
	if change == structs.ChangeInPlace && !r.nodeFits(a) {
		return structs.ChangeDestructive
	}
	return change
}

func (r *reconciler) nodeFits(a *structs.Allocation) bool {
	n, known := r.w.Node(a.NodeID)
	g := r.in.Job.LookupTaskGroup(a.TaskGroup)
	return known && g != nil && r.fits.of(g).verdict(n).ok()
}

// updateInPlace moves a running allocation to the newest version.
func (r *reconciler) updateInPlace(a *structs.Allocation) {
	r.inPlace = append(r.inPlace, &structs.AllocInPlace{
		AllocID: a.ID, JobVersion: r.in.Job.Version, EvalID: r.eval.ID,
	})
}

// succeed says that a placement stands for an allocation of before.
func succeed(a *structs.Allocation, index int) placement {
	return placement{index: index, previous: a, tracker: a.RescheduleTracker}
}

// replaceLater is the stop of an old instance, done with its successor's placement.
func (r *reconciler) replaceLater(a *structs.Allocation, index int) placement {
	p := succeed(a, index)
	p.tracker = nil // a new version starts with a new history
	p.stop = &structs.AllocStop{
		AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop, DesiredDescription: stopUpdating,
	}
	return p
}

// settled tells whether an instance of the newest version is well, so that the
// next may be replaced.
func (r *reconciler) settled(a *structs.Allocation, u *structs.UpdateStrategy) bool {
	if a.ClientTerminal() { // first: what has been healthy may fail after all
		return a.ClientStatus == structs.AllocClientComplete
	}
	if a.Suspended() || a.ClientStatus == structs.AllocClientSuspended {
		return false // it serves nobody, or not yet again
	}
	if a.DeploymentStatus.IsHealthy() {
		return true
	}
	if a.DeploymentStatus.IsUnhealthy() || a.ClientStatus != structs.AllocClientRunning {
		return false
	}
	if value(u.HealthCheck) != structs.HealthCheckTaskStates {
		return false
	}
	for _, s := range a.TaskStates { // all must hold: the order cannot show
		young := s.State == structs.TaskStateRunning && r.in.Now.Sub(s.StartedAt) < value(u.MinHealthyTime)
		again := s.State == structs.TaskStatePending && s.Restarts > 0 // it waits to be restarted
		if young || again || (s.State == structs.TaskStateDead && s.Failed) {
			return false
		}
	}
	return true
}

// unwell tells whether an allocation that has ended is of the newest version, or
// of one that the newest does not change: trying it again proves nothing.
func (r *reconciler) unwell(a *structs.Allocation) bool {
	ended := a.ClientStatus == structs.AllocClientFailed && !failedToSuspend(a) || a.ClientStatus == structs.AllocClientComplete
	return ended && !a.ServerTerminal() && r.change(a) != structs.ChangeDestructive
}

// roll takes of the instances that are to be replaced as many as may be at once:
// max_parallel less those of the newest version that are not well. An update to
// a broken version so stops at max_parallel, with the other old ones running.
// Old ones that are not well go first, for nothing is lost with them.
func (r *reconciler) roll(work *groupWork, old, current []*structs.Allocation, index func(*structs.Allocation) placement) {
	u := work.group.Update
	work.room = math.MaxInt
	if u != nil && value(u.MaxParallel) > 0 {
		unsettled := 0
		for _, a := range current {
			if !r.settled(a, u) {
				unsettled++
			}
		}
		work.room = value(u.MaxParallel) - unsettled
	}
	allowed := min(len(old), max(0, work.room))
	slices.SortStableFunc(old, func(a, b *structs.Allocation) int { return cmp.Compare(wellness(a), wellness(b)) })
	for _, a := range old[:allowed] {
		work.update = append(work.update, index(a))
	}
	work.counts.DestructiveUpdate += uint64(allowed)
	work.counts.Ignore += uint64(len(old) - allowed)
	work.waits = len(old) > allowed
}

// holdBack leaves as many updates undone as others of the group have taken the
// places of.
func (work *groupWork) holdBack(taken int) {
	allowed := min(len(work.update), max(0, work.room-taken))
	held := uint64(len(work.update) - allowed) //nolint:gosec // not below zero
	work.update = work.update[:allowed]
	work.counts.DestructiveUpdate -= held
	work.counts.Ignore += held
	work.waits = work.waits || held > 0
}

func wellness(a *structs.Allocation) int {
	if a.ClientStatus != structs.AllocClientRunning || a.DeploymentStatus.IsUnhealthy() {
		return 0
	}
	return 1
}
