package reconcile

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why an allocation is stopped, in Nomad's words.
const (
	StopNotNeeded   = "alloc not needed due to job update"
	StopJobStopped  = "alloc not needed because the job is stopped"
	StopUpdating    = "alloc is being updated due to job update"
	StopMigrating   = "alloc is being migrated"
	StopLost        = "alloc is lost since its node is down"
	UnknownAway     = "its node is disconnected"
	stopRescheduled = "alloc was rescheduled because it failed"
	stopNodeUnfit   = "alloc not needed because its node no longer fits the job"
)

// Placement is one instance to be placed.
type Placement struct {
	Index int
	// NodeID is the only node that may be taken (system jobs); "": any.
	NodeID   string
	Previous *structs.Allocation // that it stands for; nil: none
	Tracker  *structs.RescheduleTracker
	// Stop is done only if the placement is: the old instance of an update keeps
	// running until its successor has a place.
	Stop *structs.AllocStop
	// Unwell: it stands for an instance of the newest version that failed or ended,
	// which takes one of the update's places whether a node is found or not.
	Unwell bool
}

// Avoided returns the nodes on which the instance failed before.
func (p *Placement) Avoided() (nodes []string) {
	if p.Tracker == nil {
		return nil
	}
	for _, e := range p.Tracker.Events {
		nodes = append(nodes, e.PrevNodeID)
	}
	return nodes
}

// GroupWork is what is to be done with one group.
type GroupWork struct {
	Group  *structs.TaskGroup
	Place  []Placement
	Update []Placement // by replacement
	// room is how many of the newest version may be not healthy yet, beyond those
	// that are so already; below zero if there are too many.
	room   int
	Counts structs.DesiredUpdates
	// Gang is what the group is part of; nil: of none. Then First of what is to be
	// placed must be placed at once with the gang's others.
	Gang  *GangWork
	First int
	// Done are the members of a gang that have completed and are not run again.
	Done []*structs.Allocation
	// Resume are suspended, and go on when there is room for them.
	Resume []*structs.Allocation
	// Waits: updates are left undone until others of the group are well.
	Waits bool
}

// Later is a failed allocation whose replacement is due at a time.
type Later struct {
	Alloc *structs.Allocation
	At    time.Time
	// Away: its node is disconnected, and it is lost then; with structs.Forever, never.
	Away bool
}

// reconciler compares what is wanted with what there is.
type reconciler struct {
	w    *world.World
	eval *structs.Evaluation
	in   Input
	fits *feasible.Fits
	Result

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
			r.drop(a, StopJobStopped)
		} else if r.in.Job.LookupTaskGroup(a.TaskGroup) == nil {
			r.drop(a, StopNotNeeded)
		}
	}
}

// wanted reconciles the groups of a job that is to run.
func (r *reconciler) wanted(byGroup map[string][]*structs.Allocation) {
	gangs := feasible.GangsOf(r.in.Job)
	works := map[*feasible.Gang]*GangWork{}
	for _, g := range r.in.Job.TaskGroups {
		work := &GroupWork{Group: g}
		r.Groups = append(r.Groups, work)
		if of := gangs[g.Name]; of != nil {
			if works[of] == nil {
				works[of] = &GangWork{Spec: of}
			}
			work.Gang = works[of]
			work.Gang.Works = append(work.Gang.Works, work)
		}
	}
	for _, work := range r.Groups {
		switch {
		case work.Gang != nil && work.Gang.Works[0] == work:
			r.gang(work.Gang, byGroup)
		case work.Gang != nil: // done with its gang's first
		case r.in.Job.PerNode():
			r.perNode(work, byGroup[work.Group.Name])
		default:
			r.counted(work, byGroup[work.Group.Name])
		}
	}
}

// lost reports whether an allocation's node is gone.
func (r *reconciler) lost(a *structs.Allocation) bool {
	n, known := r.w.Node(a.NodeID)
	if !known || n.Terminal() {
		return true
	}
	if n.Status != structs.NodeStatusDisconnected {
		return false
	}
	until := r.awaitedUntil(a, n)
	// The evaluation that was to come then has come, whatever the clock shows here: it may be behind that of the leader.
	due := r.eval.TriggeredBy == structs.EvalTriggerMaxDisconnect && a.FollowupEvalID == r.eval.ID && !until.After(r.eval.WaitUntil)
	return due || !until.After(r.in.Now.Add(feasible.RescheduleSlack))
}

// awaitedUntil is when an allocation counts as lost whose node is disconnected.
func (r *reconciler) awaitedUntil(a *structs.Allocation, n *structs.Node) time.Time {
	return n.AwaitedUntil(a.GroupNow(r.in.Job))
}

// replacedMeanwhile reports whether another is to run while an allocation is waited for: its group
// requires it, or there is one already. What is kept only because its node is still heard by gossip
// runs on, and would run twice.
func (r *reconciler) replacedMeanwhile(a *structs.Allocation) bool {
	return a.NextAllocation != "" || a.GroupNow(r.in.Job).ReplacedMeanwhile()
}

// awaited reports whether an allocation that is not lost is on a node which is disconnected: nobody
// knows what it does.
func (r *reconciler) awaited(a *structs.Allocation) (*structs.Node, bool) {
	n, known := r.w.Node(a.NodeID)
	return n, known && n.Status == structs.NodeStatusDisconnected && !a.ClientTerminal()
}

// await schedules an evaluation of an awaited allocation for when it is to be lost; false: it is not awaited.
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
		r.Later = append(r.Later, Later{Alloc: a, At: at, Away: true})
	}
	return true
}

// GroupOf is the group that an allocation was placed for, as its own version of the job has it; nil: that is not known.
func GroupOf(a *structs.Allocation) *structs.TaskGroup {
	if a.Job == nil {
		return nil
	}
	return a.Job.LookupTaskGroup(a.TaskGroup)
}

// stop stops an allocation; with its node gone, it is lost.
func (r *reconciler) stop(a *structs.Allocation, why, clientStatus string) {
	r.Stops = append(r.Stops, &structs.AllocStop{
		AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop, DesiredDescription: why, ClientStatus: clientStatus,
	})
}

// drop stops an allocation that is not wanted any more. It reports whether there was anything to
// stop.
func (r *reconciler) drop(a *structs.Allocation, why string) bool {
	switch {
	case a.ClientTerminal():
		return false
	case r.lost(a):
		r.stop(a, StopLost, structs.AllocClientLost)
		return true
	case a.ServerTerminal():
		return false
	}
	r.stop(a, why, "")
	return true
}

// change returns what the job's newest version does to a running allocation. What would stay is
// replaced all the same if its node does not fit any more.
func (r *reconciler) change(a *structs.Allocation) structs.Change {
	if a.JobVersion == r.in.Job.Version && (a.Job == nil || a.Job.CreateIndex == r.in.Job.CreateIndex) {
		return structs.ChangeNone
	}
	key := versionGroup{a.JobVersion, a.TaskGroup}
	change, known := r.changes[key]
	if !known {
		// A version that is gone cannot be compared: it counts as destructive.
		change = max(structs.ChangeInPlace, structs.JobGroupChange(a.Job, r.in.Job, a.TaskGroup))
		world.PutInto(&r.changes, key, change)
	}
	if change == structs.ChangeInPlace && !r.nodeFits(a) {
		return structs.ChangeDestructive
	}
	return change
}

func (r *reconciler) nodeFits(a *structs.Allocation) bool {
	n, known := r.w.Node(a.NodeID)
	g := r.in.Job.LookupTaskGroup(a.TaskGroup)
	return known && g != nil && r.fits.Of(g).Verdict(n).OK()
}

// updateInPlace moves a running allocation to the newest version.
func (r *reconciler) updateInPlace(a *structs.Allocation) {
	r.InPlace = append(r.InPlace, &structs.AllocInPlace{
		AllocID: a.ID, JobVersion: r.in.Job.Version, EvalID: r.eval.ID,
	})
}

// succeed records that a placement replaces an earlier allocation.
func succeed(a *structs.Allocation, index int) Placement {
	return Placement{Index: index, Previous: a, Tracker: a.RescheduleTracker}
}

// replaceLater is the stop of an old instance, done with its successor's placement.
func (r *reconciler) replaceLater(a *structs.Allocation, index int) Placement {
	p := succeed(a, index)
	p.Tracker = nil // a new version starts with a new history
	p.Stop = &structs.AllocStop{
		AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop, DesiredDescription: StopUpdating,
	}
	return p
}

// settled reports whether an instance of the newest version is well, so that the next may be
// replaced.
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
	if feasible.Value(u.HealthCheck) != structs.HealthCheckTaskStates {
		return false
	}
	for _, s := range a.TaskStates { // all must hold: the order cannot show
		young := s.State == structs.TaskStateRunning && r.in.Now.Sub(s.StartedAt) < feasible.Value(u.MinHealthyTime)
		again := s.State == structs.TaskStatePending && s.Restarts > 0 // it waits to be restarted
		if young || again || (s.State == structs.TaskStateDead && s.Failed) {
			return false
		}
	}
	return true
}

// unwell reports whether an allocation that has ended is of the newest version, or of one that the
// newest does not change: trying it again proves nothing.
func (r *reconciler) unwell(a *structs.Allocation) bool {
	ended := a.ClientStatus == structs.AllocClientFailed && !FailedToSuspend(a) || a.ClientStatus == structs.AllocClientComplete
	return ended && !a.ServerTerminal() && r.change(a) != structs.ChangeDestructive
}

// roll takes of the instances that are to be replaced as many as may be at once:
// max_parallel less those of the newest version that are not well. An update to
// a broken version so stops at max_parallel, with the other old ones running.
// Old ones that are not well go first, for nothing is lost with them.
func (r *reconciler) roll(work *GroupWork, old, current []*structs.Allocation, index func(*structs.Allocation) Placement) {
	u := work.Group.Update
	work.room = math.MaxInt
	if u != nil && feasible.Value(u.MaxParallel) > 0 {
		unsettled := 0
		for _, a := range current {
			if !r.settled(a, u) {
				unsettled++
			}
		}
		work.room = feasible.Value(u.MaxParallel) - unsettled
	}
	allowed := min(len(old), max(0, work.room))
	slices.SortStableFunc(old, func(a, b *structs.Allocation) int { return cmp.Compare(wellness(a), wellness(b)) })
	for _, a := range old[:allowed] {
		work.Update = append(work.Update, index(a))
	}
	work.Counts.DestructiveUpdate += uint64(allowed)
	work.Counts.Ignore += uint64(len(old) - allowed)
	work.Waits = len(old) > allowed
}

// Withheld leaves as many updates undone as others of the group have taken the
// places of.
func (work *GroupWork) Withheld(taken int) {
	allowed := min(len(work.Update), max(0, work.room-taken))
	reserved := uint64(len(work.Update) - allowed) // not below zero
	work.Update = work.Update[:allowed]
	work.Counts.DestructiveUpdate -= reserved
	work.Counts.Ignore += reserved
	work.Waits = work.Waits || reserved > 0
}

func wellness(a *structs.Allocation) int {
	if a.ClientStatus != structs.AllocClientRunning || a.DeploymentStatus.IsUnhealthy() {
		return 0
	}
	return 1
}
