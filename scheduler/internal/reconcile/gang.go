package reconcile

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/structs"
)

// GangWork is what is to be done with one gang.
type GangWork struct {
	Spec  *feasible.Gang
	Works []*GroupWork // of its groups, in the job's order
	// Whole: nothing of it stays. The first of each group are placed at once, or none
	// of them is, and then stops are done and their room is free. Else members come
	// as they find room.
	Whole bool
	Stops []*structs.AllocStop
	Old   []*structs.Allocation // live ones that stops are of
	// Force is when members that keep running until there is room must go without.
	Force *Later
}

// First returns how many instances must be placed at once.
func (gw *GangWork) First() (n int) {
	for _, work := range gw.Works {
		n += work.First
	}
	return n
}

// Wanted returns how many instances are to be placed, those above min as well.
func (gw *GangWork) Wanted() (n int) {
	for _, work := range gw.Works {
		n += len(work.Place)
	}
	return n
}

// gangState is how a gang stands.
type gangState int

const (
	// gangUp: enough of it is there; members come and go by the rules of any group.
	gangUp gangState = iota
	// gangDown: nobody of it runs, and somebody should.
	gangDown
	// gangMoves: all of it is replaced as soon as there is room for all; until then
	// it runs on.
	gangMoves
	// gangBroken: a member was lost. The others are stopped, whether there is room
	// for all again or not.
	gangBroken
)

// roster is how the members of one group of a gang are.
type roster struct {
	work *GroupWork
	spec *feasible.GangGroup
	all  []*structs.Allocation
	// occupied are the allocations of instances, one each: they run, or have completed.
	occupied []*structs.Allocation
	surplus  []*structs.Allocation // run, and are not wanted
	gone     []*structs.Allocation // are lost, and not wanted
	lost     []*structs.Allocation // with their nodes
	failed   []*structs.Allocation // nobody stands for them yet
	spent    []*structs.Allocation // ended otherwise; nobody stands for them yet
	missed   []*structs.Allocation // ended; a loss to the gang if it was its own
	thawed   []*structs.Allocation // could not be suspended; a loss if there are too few without them
	owed     map[int]*structs.Allocation
}

// gang reconciles the groups of a gang.
func (r *reconciler) gang(gw *GangWork, byGroup map[string][]*structs.Allocation) {
	var rosters []*roster
	for i, work := range gw.Works {
		rosters = append(rosters, r.muster(work, &gw.Spec.Groups[i], byGroup[work.Group.Name]))
	}
	state := r.gangState(gw, rosters)
	for _, m := range rosters {
		for _, a := range m.occupied {
			if a.Terminal() {
				m.work.Done = append(m.work.Done, a)
			}
		}
	}
	if state != gangUp {
		r.renew(gw, state, rosters)
		return
	}
	for _, m := range rosters {
		r.counted(m.work, m.all)
	}
}

// muster sorts a group's allocations. Nothing is decided yet.
func (r *reconciler) muster(work *GroupWork, spec *feasible.GangGroup, allocs []*structs.Allocation) *roster {
	m := &roster{work: work, spec: spec, all: allocs, owed: map[int]*structs.Allocation{}}
	for _, a := range allocs {
		r.enlist(m, a)
	}
	slices.SortStableFunc(m.occupied, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), r.better(a, b))
	})
	all := m.occupied
	m.occupied = nil
	for _, a := range all {
		switch last := len(m.occupied) - 1; {
		case last < 0 || m.occupied[last].Index() != a.Index():
			m.occupied = append(m.occupied, a)
		case !a.Terminal():
			m.surplus = append(m.surplus, a)
		}
	}
	return m
}

func (r *reconciler) enlist(m *roster, a *structs.Allocation) {
	inside := a.Index() >= 0 && a.Index() < m.work.Group.Count
	rerun := r.in.Job.Type == structs.JobTypeBatch && r.outdated(a) // by a new version, as in Nomad
	changed := r.outdated(a) && r.change(a) == structs.ChangeDestructive
	switch {
	case !inside:
		if !a.Terminal() {
			m.surplus = append(m.surplus, a)
		}
		done := a.ClientStatus == structs.AllocClientComplete && r.in.Job.Type == structs.JobTypeBatch
		if !a.ServerTerminal() && !done && (a.ClientTerminal() || r.lost(a)) {
			m.gone = append(m.gone, a)
		}
	case r.finished(a):
		m.occupied = append(m.occupied, a)
	case a.ClientTerminal() && rerun:
		if !a.ServerTerminal() && a.NextAllocation == "" {
			m.missed = append(m.missed, a)
		}
		if !changed && a.NextAllocation == "" && a.ServerTerminal() && owes(a) {
			m.owe(a)
		}
	case a.ServerTerminal():
		if a.NextAllocation == "" && owes(a) {
			m.owe(a)
		}
	case a.ClientTerminal() && a.NextAllocation != "": // somebody stands for it
	case FailedToSuspend(a) && !changed:
		m.spent = append(m.spent, a)
		m.thawed = append(m.thawed, a)
		m.owe(a)
	case (a.ClientStatus == structs.AllocClientFailed || feasible.ReachedTimeLimit(a)) && !changed:
		m.failed = append(m.failed, a)
		m.owe(a)
	case a.ClientTerminal():
		m.spent = append(m.spent, a)
		m.missed = append(m.missed, a)
		m.owe(a)
	case r.lost(a):
		m.lost = append(m.lost, a)
		m.owe(a)
	default:
		m.occupied = append(m.occupied, a)
	}
}

// owe notes which allocation the next one of an instance replaces: the newest.
func (m *roster) owe(a *structs.Allocation) {
	if before := m.owed[a.Index()]; before == nil || before.CreateIndex <= a.CreateIndex {
		m.owed[a.Index()] = a
	}
}

// finished reports whether a member of a batch job's gang has completed, so that it counts as there
// and is not run again. One that was stopped with its gang was not done, however it ended.
func (r *reconciler) finished(a *structs.Allocation) bool {
	return r.in.Job.Type == structs.JobTypeBatch && a.ClientStatus == structs.AllocClientComplete &&
		a.NextAllocation == "" && (!a.ServerTerminal() || (endedWell(a) && !dissolved(a))) &&
		r.change(a) != structs.ChangeDestructive
}

// dissolved reports whether an allocation was stopped because of its gang's others.
func dissolved(a *structs.Allocation) bool {
	switch a.DesiredDescription {
	case feasible.StopGangRestart, feasible.StopGangFailed, feasible.StopGangWaits:
		return a.ServerTerminal()
	}
	return false
}

// gangState returns how the gang stands. When nobody runs, or waits to run again, what completed
// under another version is no holder any more: a new version is run anew, as in Nomad.
func (r *reconciler) gangState(gw *GangWork, rosters []*roster) gangState {
	lives, stays, lacks, awake := false, false, false, false
	for _, m := range rosters {
		for _, a := range m.occupied {
			lives = lives || !a.Terminal()
			stays = stays || (!a.Terminal() && !a.DesiredTransition.ShouldMigrate())
			awake = awake || (!a.Terminal() && !a.Suspended())
		}
	}
	state, since := gangUp, firstIndex(rosters)
	if lives && !stays {
		state = gangMoves // whoever leaves, if all do, they come back together
	}
	again := !lives && !slices.ContainsFunc(rosters, r.unfinished)
	for _, m := range rosters {
		if !lives {
			if again {
				m.rerun(r)
			}
			lacks = lacks || len(m.occupied) < m.work.Group.Count
			continue
		}
		if len(m.occupied) < m.spec.Min && anySince(m.thawed, since) && (!gw.Spec.ByMember || !awake) {
			state = gangBroken // it is suspended whole or not at all
		}
		if !gw.Spec.ByMember && (anySince(m.missed, since) || len(m.lost)+len(m.failed) > 0) {
			state = gangBroken
		}
		state = max(state, r.moves(gw, m))
	}
	switch {
	case !lives && lacks:
		return gangDown
	case state == gangMoves && !gw.Spec.ByMember && slices.ContainsFunc(rosters, func(m *roster) bool { return anySince(m.gone, since) }):
		return gangBroken // those that run are not whole without it, and run on only if they are
	}
	return state
}

// firstIndex is when those that run were placed, the first of them.
func firstIndex(rosters []*roster) uint64 {
	since := uint64(math.MaxUint64)
	for _, m := range rosters {
		for _, a := range m.occupied {
			if !a.Terminal() {
				since = min(since, a.CreateIndex)
			}
		}
	}
	return since
}

// anySince reports whether one was placed with those that run, or later: what is older was a loss
// to a gang that is no more.
func anySince(list []*structs.Allocation, since uint64) bool {
	return slices.ContainsFunc(list, func(a *structs.Allocation) bool { return a.CreateIndex >= since })
}

// unfinished reports whether a group has members that are to run again, or some that have run under
// the newest version.
func (r *reconciler) unfinished(m *roster) bool {
	return len(m.owed) > 0 || slices.ContainsFunc(m.occupied, func(a *structs.Allocation) bool { return !r.outdated(a) })
}

// rerun counts those that completed under another version as holders no more.
func (m *roster) rerun(r *reconciler) {
	m.occupied = slices.DeleteFunc(m.occupied, func(a *structs.Allocation) bool {
		if r.outdated(a) {
			m.owe(a)
		}
		return r.outdated(a)
	})
}

// moves reports whether a group's members are a reason to replace the gang.
func (r *reconciler) moves(gw *GangWork, m *roster) gangState {
	state := gangUp
	if !gw.Spec.ByMember && len(m.occupied) < m.spec.Min {
		state = gangMoves // for example, it has grown a group
	}
	for _, a := range m.occupied {
		if a.Terminal() {
			continue
		}
		if r.change(a) == structs.ChangeDestructive || (!gw.Spec.ByMember && m.recounted(a)) {
			state = max(state, gangMoves)
		}
		if !gw.Spec.ByMember && a.DesiredTransition.ShouldMigrate() {
			state = max(state, gangMoves)
			at, forced := r.forcedAt(a)
			switch {
			case forced, feasible.Value(a.DesiredTransition.MigrateDisablePlacement):
				state = gangBroken
			case !at.IsZero() && a.FollowupEvalID == "" && (gw.Force == nil || at.Before(gw.Force.At)):
				gw.Force = &Later{Alloc: a, At: at}
			}
		}
	}
	return state
}

// recounted reports whether a member runs in a gang of another size than is wanted now.
func (m *roster) recounted(a *structs.Allocation) bool {
	g := GroupOf(a)
	return m.spec.Rigid && g != nil && g.Count != m.work.Group.Count
}

// forcedAt is when a draining node's members must leave, room or not (zero: never),
// and whether that is now.
func (r *reconciler) forcedAt(a *structs.Allocation) (time.Time, bool) {
	n, known := r.w.Node(a.NodeID)
	if !known || n.DrainStrategy == nil {
		return time.Time{}, false
	}
	at := n.DrainStrategy.ForceDeadline
	return at, n.DrainStrategy.Deadline < 0 || (!at.IsZero() && !at.After(r.in.Now.Add(feasible.RescheduleSlack)))
}

// renew places a gang as a whole. What runs of it is stopped: at once if the gang is
// broken, else with its placement.
func (r *reconciler) renew(gw *GangWork, state gangState, rosters []*roster) {
	gw.Whole = true
	n := &renewal{r: r, gw: gw, state: state, why: feasible.StopGangRestart, place: !r.stays(state, rosters)}
	n.decide(rosters)
	for _, m := range rosters {
		n.group(m)
	}
	if n.place && gw.First() == 0 { // what had to be there has completed: any other may come
		for _, work := range gw.Works {
			work.First = min(1, len(work.Place))
		}
	}
	if state != gangMoves || !n.place {
		gw.Force = nil
	}
}

// stays reports whether a broken gang is left unplaced on purpose, as those who stopped a member
// want it: until the next evaluation.
func (r *reconciler) stays(state gangState, rosters []*roster) bool {
	for _, m := range rosters {
		for _, a := range m.occupied {
			if state == gangBroken && !a.Terminal() && feasible.Value(a.DesiredTransition.MigrateDisablePlacement) {
				return true
			}
		}
	}
	return false
}

// renewal is a gang's way from what it was to what is placed anew.
type renewal struct {
	r     *reconciler
	gw    *GangWork
	state gangState
	place bool
	why   string // those that are well are stopped
	// tracker is the reschedule history of all new members: they fail as one.
	tracker *structs.RescheduleTracker
}

// decide applies the reschedule policy to the gang as one: that of the member which
// failed first, for the others may have failed because of it.
func (n *renewal) decide(rosters []*roster) {
	r := n.r
	var first *structs.Allocation
	var work *GroupWork
	for _, m := range rosters {
		for _, a := range m.failed {
			forced := a.DesiredTransition.ShouldForceReschedule()
			if first == nil || forced || (!first.DesiredTransition.ShouldForceReschedule() && feasible.FailedAt(a).Before(feasible.FailedAt(first))) {
				first, work = a, m.work
			}
		}
	}
	if first == nil || n.state == gangMoves {
		n.tracker = n.lastTracker(rosters)
		return
	}
	policy := work.Group.ReschedulePolicy
	delay, may := feasible.MayReschedule(first, policy)
	at := feasible.FailedAt(first).Add(delay)
	switch {
	case !may:
		n.place, n.why = false, feasible.StopGangFailed
	case !r.due(first, at):
		n.place, n.why = false, feasible.StopGangWaits
		if first.FollowupEvalID == "" {
			r.Later = append(r.Later, Later{Alloc: first, At: at})
			work.Counts.RescheduleLater++
		}
	default:
		n.tracker = feasible.Rescheduled(first, policy, delay, r.in.Now)
		work.Counts.RescheduleNow++
	}
}

// lastTracker is the newest history that there is. A new version starts without.
func (n *renewal) lastTracker(rosters []*roster) (last *structs.RescheduleTracker) {
	newest := func(t *structs.RescheduleTracker) (at int64) {
		if t != nil && len(t.Events) > 0 {
			at = t.Events[len(t.Events)-1].RescheduleTime
		}
		return at
	}
	consider := func(a *structs.Allocation) {
		if n.r.change(a) != structs.ChangeDestructive && newest(a.RescheduleTracker) > newest(last) {
			last = a.RescheduleTracker
		}
	}
	for _, m := range rosters {
		for _, a := range m.occupied {
			consider(a)
		}
		for i := range m.work.Group.Count {
			if a := m.owed[i]; a != nil {
				consider(a)
			}
		}
	}
	return last
}

// group renews one group.
func (n *renewal) group(m *roster) {
	r, counts := n.r, &m.work.Counts
	for _, a := range m.all {
		if a.ServerTerminal() {
			r.drop(a, StopNotNeeded) // marks it lost when its node is gone
		}
	}
	for _, a := range m.lost {
		r.stop(a, StopLost, structs.AllocClientLost)
		counts.Stop++
	}
	done := map[int]bool{}
	for _, a := range m.occupied {
		if a.Terminal() {
			done[a.Index()] = true
			counts.Ignore++
			continue
		}
		n.leave(m, a, n.why)
	}
	for _, a := range m.surplus {
		if r.lost(a) || n.state != gangMoves {
			r.drop(a, StopNotNeeded)
			counts.Stop++
			continue
		}
		n.leave(m, a, StopNotNeeded)
	}
	if !n.place {
		counts.Ignore += uint64(len(m.failed))
		return
	}
	for _, a := range m.failed {
		n.gw.Stops = append(n.gw.Stops, r.rescheduledStop(a))
	}
	for _, a := range m.spent {
		n.gw.Stops = append(n.gw.Stops, stopOf(a, n.why))
	}
	n.fill(m, done)
}

func stopOf(a *structs.Allocation, why string) *structs.AllocStop {
	return &structs.AllocStop{AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop, DesiredDescription: why}
}

// leave stops a member that runs: now, or when its gang has been placed anew.
func (n *renewal) leave(m *roster, a *structs.Allocation, why string) {
	counts := &m.work.Counts
	migrates := n.state == gangMoves && a.DesiredTransition.ShouldMigrate()
	if migrates {
		why = StopMigrating
	}
	wanted := why != StopNotNeeded
	if wanted {
		m.owe(a)
	}
	if n.state != gangMoves {
		n.r.stop(a, why, "")
		counts.Stop++
		return
	}
	if why == feasible.StopGangRestart {
		why = StopUpdating
	}
	n.gw.Stops = append(n.gw.Stops, stopOf(a, why))
	n.gw.Old = append(n.gw.Old, a)
	switch {
	case migrates:
		counts.Migrate++
	case wanted:
		counts.DestructiveUpdate++
	default:
		counts.Stop++
	}
}

// fill places every instance that has no allocation; those that make up min first.
func (n *renewal) fill(m *roster, done map[int]bool) {
	work := m.work
	for i := range work.Group.Count {
		if done[i] {
			continue
		}
		p := Placement{Index: i, Previous: m.owed[i], Tracker: n.tracker}
		work.Place = append(work.Place, p)
		if n.state != gangMoves || p.Previous == nil || p.Previous.Terminal() || p.Previous.DesiredTransition.ShouldMigrate() {
			work.Counts.Place++
		}
	}
	work.First = min(len(work.Place), max(0, m.spec.Min-len(done)))
}
