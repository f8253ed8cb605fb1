package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// followUpWindow: delayed replacements due within it share one evaluation.
const followUpWindow = time.Second

// Schedule decides one evaluation. The World stays as it is; the answer is the
// same whenever World, evaluation and Input are. The plan's Evals are the
// evaluation itself, complete (or blocked again, if it was), the blocked
// evaluation that it leaves when something found no room, and the delayed ones
// for failed allocations that are replaced later.
func Schedule(w *World, eval *structs.Evaluation, in Input) (*structs.Plan, error) {
	if eval == nil || in.NewID == nil {
		return nil, fmt.Errorf("schedule: the evaluation or NewID is missing")
	}
	s := newScheduler(w, eval, &in)

	// 1. Compare what the job wants with what there is: what to stop, what to keep,
	// what to update in place, what to place, and what to look at again later.
	r := s.reconcile()

	// 2. What is stopped is free for what is placed.
	s.stop(r.stops)
	s.plan.Update = r.inPlace
	s.lapse(r.groups)

	// What was suspended goes on where it is, if there is room for it again.
	s.resume(r.groups)

	// 3. Place group by group: first what nobody holds, then successors of what is
	// updated by replacement. Whatever finds no node is explained and counted. A gang
	// is placed where its first group stands.
	for _, work := range r.groups {
		switch {
		case work.gang == nil:
			s.placeGroup(work)
		case work.gang.works[0] == work:
			r.later = append(r.later, s.placeGang(work.gang)...)
		}
	}

	// 4. A job that wants all at once gets nothing if it does not get all.
	if allOrNone(in.Job) && len(s.failed)+len(s.asleep) > 0 {
		s.takeBack(r.groups)
		s.suspendAgain(r.groups)
	}

	// 5. Delayed replacements wait in evaluations of their own.
	s.followUp(r.later)
	s.rollOn(r.groups)

	// 6. What has waited too long reserves room; reservations that are not wanted end.
	s.reserve()

	s.countAsleep()

	// 7. The evaluation is done; what found no room waits in a blocked one.
	s.finish()
	if in.Annotate {
		s.annotate(r)
	}
	return s.plan, nil
}

// scheduler is one evaluation on its way through Schedule.
type scheduler struct {
	w    *World
	eval *structs.Evaluation
	in   *Input
	plan *structs.Plan

	edit   *Edit
	fits   fits
	rng    *random
	live   []*structs.Allocation // those that stay, for the census
	census *census
	failed map[string]*structs.AllocMetric // by group
	queued map[string]int                  // by group
	// lacking are the nodes on which an instance was wanted and found no room, by group.
	lacking map[string][]string
	// asleep are the suspended ones for which there is no room yet.
	asleep []sleeper
	// groups are what is known of the job's groups so far, one of them mostly.
	groups []groupFound
	first  [1]groupFound
	// reclaimed is what others give back; settled are the nodes that it was freed on.
	reclaimed []*reclaimed
	settled   map[string]bool
}

// groupFound is what is known of a group.
type groupFound struct {
	name   string
	search *search // the last one, if it was placed
}

func newScheduler(w *World, eval *structs.Evaluation, in *Input) *scheduler {
	all := &struct { // one piece of memory for what every evaluation has
		scheduler scheduler
		edit      Edit
		token     token
		rng       random
		census    census
	}{rng: random{in.Seed}, census: census{w: w}}
	all.edit.begin(w, &all.token)
	s := &all.scheduler
	*s = scheduler{
		w: w, eval: eval, in: in, edit: &all.edit, rng: &all.rng, census: &all.census,
		plan: &structs.Plan{
			EvalID: eval.ID, Namespace: eval.Namespace, JobID: eval.JobID, Priority: eval.Priority,
			SnapshotIndex: in.SnapshotIndex,
		},
	}
	if in.Job != nil {
		s.plan.JobVersion, s.plan.AllAtOnce = in.Job.Version, allOrNone(in.Job)
	}
	s.groups = s.first[:0]
	s.fits.begin(in.Job, in.Prepared.memory())
	return s
}

// allOrNone tells whether a job takes nothing unless it gets all that it misses: so say
// all_at_once, and partial = "none" of what is no gang (a gang does so anyway, for as many
// as must run together).
func allOrNone(job *structs.Job) bool {
	if job == nil || job.AllAtOnce {
		return job != nil
	}
	return job.Partial == structs.PartialNone && !job.PerNode() &&
		!slices.ContainsFunc(job.TaskGroups, func(g *structs.TaskGroup) bool { return g.Gang != nil })
}

// reconcile compares what the job wants with what there is.
func (s *scheduler) reconcile() *result {
	in := reconcileInput{Job: s.in.Job, Allocs: s.in.Allocs, Now: s.in.Now, Past: s.in.Past}
	return reconcileJob(s.w, s.eval, in, &s.fits)
}

// fit gives what nodes a group may use, decided so far.
func (s *scheduler) fit(g *structs.TaskGroup) *feasibility { return s.fits.of(g) }

// found gives what is known of a group, to be added to at once.
func (s *scheduler) found(group string) *groupFound {
	for i := range s.groups {
		if s.groups[i].name == group {
			return &s.groups[i]
		}
	}
	s.groups = append(s.groups, groupFound{name: group})
	return &s.groups[len(s.groups)-1]
}

func (s *scheduler) stop(stops []*structs.AllocStop) {
	s.plan.Stop = stops
	stopped := make(map[string]bool, len(stops))
	for _, st := range stops {
		stopped[st.AllocID] = true
		s.edit.release(st.AllocID)
	}
	for _, a := range s.in.Allocs {
		if !a.Terminal() && !stopped[a.ID] {
			s.live = append(s.live, a)
		}
	}
}

// groupRun is the placing of one group.
type groupRun struct {
	s       *scheduler
	work    *groupWork
	search  *search
	only    string // the node that all must be on; "": any
	batch   *structs.PlacementBatch
	nodes   map[string]int // into batch.Nodes, beyond the first few
	metrics explanation
	short   []placement // found no free room; others may have to make some
}

func (s *scheduler) placeGroup(work *groupWork) {
	put(&s.queued, work.group.Name, 0)
	perNode := s.in.Job.PerNode()
	if len(work.place) == 0 && len(work.update) == 0 && !perNode {
		return
	}
	run := s.newRun(work, s.edit, s.fit(work.group))
	run.metrics.classes(run.search, nil)
	taken := 0
	for _, p := range work.place {
		if run.place(p) || p.unwell {
			taken++
		}
	}
	taken += run.reclaim()
	work.holdBack(taken)
	for _, p := range work.update {
		run.replace(p)
	}
	if len(work.update) > 0 {
		run.putBackAll()
	}
	if run.batch != nil {
		run.batch.Metrics = run.metrics.AllocMetric
		s.plan.Place = append(s.plan.Place, run.batch)
	}
	c := work.counts
	if perNode && work.group.Count > 0 && c.Place+c.Ignore+c.InPlaceUpdate+c.DestructiveUpdate == 0 {
		put(&s.failed, work.group.Name, s.why(run.search)) // no node fits it at all
	}
}

// newRun begins the placing of a group on an edit, on the nodes that f allows.
func (s *scheduler) newRun(work *groupWork, e *Edit, f *feasibility) *groupRun {
	return &groupRun{
		s: s, work: work, metrics: newExplanation(s.in.Job), search: s.newSearch(work.group, e, f),
	}
}

func (s *scheduler) newSearch(group *structs.TaskGroup, e *Edit, f *feasibility) *search {
	found := newSearchFor(s.in, group, e, f, s.rng, s.census, s.live)
	s.found(group.Name).search = found
	return found
}

// place places one instance, or counts that it was not. It tells which.
func (g *groupRun) place(p placement) bool {
	if p.nodeID == "" && (g.s.failed[g.work.group.Name] != nil || len(g.short) > 0) {
		g.lack(p) // nothing was freed since another of the group found no room
		return false
	}
	f, ok := g.seek(p)
	if !ok {
		g.lack(p)
		return false
	}
	g.accept(p, f)
	return true
}

// lack notes an instance that found no free room. If the job may take from others that
// is tried when all free room has been given.
func (g *groupRun) lack(p placement) {
	if g.s.mayReclaim() {
		g.short = append(g.short, p)
		return
	}
	g.fail(p)
}

// seek finds a node for one instance.
func (g *groupRun) seek(p placement) (f found, ok bool) {
	switch {
	case p.nodeID != "":
		return g.search.on(p.nodeID)
	case g.only != "":
		return g.search.on(g.only)
	case g.sticky(p):
		f, ok = g.search.on(p.previous.NodeID)
	}
	if !ok {
		f, ok = g.search.next(avoided(p))
	}
	return f, ok
}

// sticky tells whether the instance would rather go where its data is.
func (g *groupRun) sticky(p placement) bool {
	d := g.work.group.EphemeralDisk
	return d != nil && d.Sticky && p.previous != nil && p.previous.ClientStatus != structs.AllocClientFailed
}

// avoided are the nodes on which the instance failed before.
func avoided(p placement) []string {
	if p.tracker == nil {
		return nil
	}
	var nodes []string
	for _, e := range p.tracker.Events {
		nodes = append(nodes, e.PrevNodeID)
	}
	return nodes
}

// replace places the successor of a running instance, on the same node if that
// fits. If there is no room others may have to make some; else the old one keeps running.
func (g *groupRun) replace(p placement) {
	old := p.previous
	use := g.s.edit.release(old.ID)
	g.s.census.move(old.TaskGroup, old.NodeID, -1)
	f, ok := g.search.on(old.NodeID)
	if !ok && p.nodeID == "" {
		g.search.rewind() // the old one's room is free
		f, ok = g.search.next(nil)
	}
	if ok {
		g.accept(p, f)
		return
	}
	if g.s.mayReclaim() && g.s.failed[g.work.group.Name] == nil && g.reclaimOne(p) {
		return
	}
	if use != nil {
		g.s.edit.take(use)
	}
	g.s.census.move(old.TaskGroup, old.NodeID, 1)
	g.fail(p)
}

// fail explains the first instance that finds no node and counts the others.
func (g *groupRun) fail(p placement) {
	name := g.work.group.Name
	put(&g.s.queued, name, g.s.queued[name]+1)
	m := g.s.failed[name]
	if p.nodeID != "" {
		put(&g.s.lacking, name, append(g.s.lacking[name], p.nodeID))
		if m == nil {
			m = newExplanation(g.s.in.Job).AllocMetric
			x := explanation{m}
			x.classes(g.search, nil)
			put(&g.s.failed, name, m)
		} else {
			m.CoalescedFailures++
		}
		if n, known := g.s.edit.node(p.nodeID); known && n.node != nil {
			explanation{m}.node(g.search, n)
		}
		return
	}
	if m == nil {
		put(&g.s.failed, name, g.s.why(g.search))
		return
	}
	m.CoalescedFailures++
}

// accept takes a node for an instance and writes it into the batch.
func (g *groupRun) accept(p placement, f found) {
	s := g.s
	g.metrics.chosen(g.search, f)
	if h := f.node.hold; h != nil && h.askName == g.search.ask.by.askName {
		g.search.e.Unreserve(f.node.id)
	}
	g.search.take(f)
	s.census.move(g.work.group.Name, f.node.id, 1)
	if g.batch == nil {
		g.batch = &structs.PlacementBatch{
			Namespace: s.in.Job.Namespace, JobID: s.in.Job.ID, JobVersion: s.in.Job.Version, Group: g.work.group.Name,
			EvalID: s.eval.ID, Seed: s.in.NewID(), CreateTime: s.in.Now.UnixNano(), Resources: g.search.ask.resources,
			Instances: make([]structs.Instance, 0, len(g.work.place)+len(g.work.update)),
		}
	}
	in := structs.Instance{
		Ordinal: uint32(len(g.batch.Instances)), Index: p.index, Node: g.placedOn(f.node), //nolint:gosec // far below 2^32
		Ports: f.grant.ports, Networks: f.grant.networks, Cores: f.grant.cores, CoreMHz: f.grant.coreMHz,
		Devices: f.grant.devices, RescheduleTracker: p.tracker,
	}
	if p.previous != nil {
		in.PreviousAllocation = p.previous.ID
	}
	if p.stop != nil {
		s.plan.Stop = append(s.plan.Stop, p.stop)
	}
	g.batch.Instances = append(g.batch.Instances, in)
}

// placedOn gives the place of a node in the batch's list, where it is put if need be.
func (g *groupRun) placedOn(n *nodeState) int {
	const few = 8 // are compared faster than looked up
	list := g.batch.Nodes
	for i := range min(len(list), few) {
		if list[i].ID == n.id {
			return i
		}
	}
	if at, known := g.nodes[n.id]; known {
		return at
	}
	if len(list) >= few {
		put(&g.nodes, n.id, len(list))
	}
	g.batch.Nodes = append(list, structs.PlacedNode{ID: n.id, Name: n.node.Name})
	return len(list)
}

// takeBack takes every placement out of the plan, and the stops that were to go
// with them.
func (s *scheduler) takeBack(groups []*groupWork) {
	s.plan.Place = nil
	s.takeBackReclaims()
	waits := map[*structs.AllocStop]bool{}
	for _, work := range groups {
		for _, p := range slices.Concat(work.place, work.update) {
			waits[p.stop] = true
		}
		if work.gang != nil {
			for _, st := range work.gang.stops {
				waits[st] = true
			}
		}
		put(&s.queued, work.group.Name, len(work.place)+len(work.update))
		if m := s.failed[work.group.Name]; m != nil { // the others of the group have no place either
			m.CoalescedFailures = max(m.CoalescedFailures, s.queued[work.group.Name]-1)
		}
	}
	s.plan.Stop = slices.DeleteFunc(s.plan.Stop, func(st *structs.AllocStop) bool { return waits[st] })
}

// followUp makes the evaluations that replace failed allocations when their
// delays have passed.
func (s *scheduler) followUp(list []later) {
	away := func(l later) int {
		if l.away {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b later) int {
		return cmp.Or(cmp.Compare(away(a), away(b)), a.at.Compare(b.at), strings.Compare(a.alloc.ID, b.alloc.ID))
	})
	var ev *structs.Evaluation
	var first later
	for _, l := range list {
		st := &structs.AllocStop{AllocID: l.alloc.ID, KeepRunning: true}
		if l.away {
			st.ClientStatus, st.DesiredDescription = structs.AllocClientUnknown, unknownAway
		}
		s.plan.Stop = append(s.plan.Stop, st)
		if l.at.Equal(structs.Forever) {
			continue // there is no time to look at it again
		}
		if ev == nil || l.away != first.away || l.at.Sub(first.at) > followUpWindow {
			ev = s.newEval(structs.EvalTriggerRetryFailed, structs.EvalStatusPending)
			ev.StatusDescription = "created for delayed rescheduling"
			if l.away {
				ev.TriggeredBy, ev.StatusDescription = structs.EvalTriggerMaxDisconnect, "created for when a disconnected node is not waited for any longer"
			}
			first = l
			s.plan.Evals = append(s.plan.Evals, ev)
		}
		ev.WaitUntil, st.FollowupEvalID = l.at, ev.ID
	}
}

func (s *scheduler) newEval(trigger, status string) *structs.Evaluation {
	now := s.in.Now.UnixNano()
	return &structs.Evaluation{
		ID: s.in.NewID(), Namespace: s.eval.Namespace, Priority: s.eval.Priority, Type: s.eval.Type, JobID: s.eval.JobID,
		JobModifyIndex: s.eval.JobModifyIndex, TriggeredBy: trigger, Status: status, PreviousEval: s.eval.ID,
		CreateTime: now, ModifyTime: now,
	}
}

// finish stores the evaluation's end, before all others, and what is left of it.
func (s *scheduler) finish() {
	done := s.eval.Copy()
	done.Status, done.StatusDescription = structs.EvalStatusComplete, ""
	done.ModifyTime = s.in.Now.UnixNano()
	done.QueuedAllocations = s.queued
	done.FailedTGAllocs, done.ClassEligibility, done.EscapedComputedClass = nil, nil, false
	done.BlockedEval, done.SnapshotIndex = "", s.in.SnapshotIndex
	s.plan.Evals = slices.Insert(s.plan.Evals, 0, done)
	s.preemptions()
	if len(s.failed) == 0 {
		s.asks("")
		return
	}
	s.plan.FailedTGAllocs, done.FailedTGAllocs = s.failed, s.failed
	blocked := done
	if s.eval.Status != structs.EvalStatusBlocked && s.eval.TriggeredBy != structs.EvalTriggerQueuedAllocs {
		blocked = s.newEval(structs.EvalTriggerQueuedAllocs, structs.EvalStatusBlocked)
		blocked.QueuedAllocations = s.queued
		done.BlockedEval = blocked.ID
		s.plan.Evals = append(s.plan.Evals, blocked)
	}
	blocked.Status = structs.EvalStatusBlocked
	blocked.StatusDescription = "created to place remaining allocations"
	blocked.SnapshotIndex = s.in.SnapshotIndex
	blocked.FailedTGAllocs = s.failed
	blocked.WaitUntil = s.lookAgain(blocked)
	s.eligibility(blocked)
	s.asks(blocked.ID)
}

// eligibility says which classes could take what a blocked evaluation waits for.
// A class that is not named has no ready node now.
func (s *scheduler) eligibility(blocked *structs.Evaluation) {
	blocked.ClassEligibility = map[string]bool{}
	for name, c := range s.w.classesTree().All {
		n, can := c.any(), false
		for group := range s.failed { // any: the order cannot show
			can = can || s.fits.named(group).class(n.node).ok()
		}
		blocked.ClassEligibility[name] = can
	}
	for group := range s.failed {
		blocked.EscapedComputedClass = blocked.EscapedComputedClass || s.fits.named(group).escaped()
	}
}

func (s *scheduler) annotate(r *result) {
	updates := map[string]*structs.DesiredUpdates{}
	for _, work := range r.groups {
		updates[work.group.Name] = &work.counts
	}
	stops := map[string]bool{}
	for _, st := range r.stops {
		stops[st.AllocID] = true
	}
	for _, a := range s.in.Allocs {
		if !stops[a.ID] {
			continue
		}
		if u := updates[a.TaskGroup]; u == nil {
			updates[a.TaskGroup] = &structs.DesiredUpdates{Stop: 1}
		} else if s.in.Job.Stopped() || s.in.Job.LookupTaskGroup(a.TaskGroup) == nil {
			u.Stop++
		}
	}
	s.plan.Annotations = &structs.PlanAnnotations{DesiredTGUpdates: updates, PreemptedAllocs: s.preempted()}
}
