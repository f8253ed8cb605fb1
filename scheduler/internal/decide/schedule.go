package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/raise"
	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/slot"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// followUpWindow: delayed replacements due within it share one evaluation.
const followUpWindow = time.Second

// Schedule decides one evaluation. The World stays as it is; the answer is the
// same whenever World, evaluation and Input are. The plan's Evals are the
// evaluation itself, complete (or blocked again, if it was), the blocked
// evaluation that it leaves when something found no room, and the delayed ones
// for failed allocations that are replaced later.
func Schedule(w *world.World, eval *structs.Evaluation, in search.Input) (*structs.Plan, error) {
	if eval == nil || in.NewID == nil {
		return nil, fmt.Errorf("schedule: the evaluation or NewID is missing")
	}
	in.Brief = in.Brief || in.EntitledOnly
	all, end := search.Lend[memory](in.Prepared)
	defer end()
	s := all.begin(w, eval, &in)

	// 1. Compare what the job wants with what there is: what to stop, what to keep,
	// what to update in place, what to place, and what to evaluate again later.
	r := s.Reconcile()

	// 2. What is stopped is free for what is placed.
	s.Stop(r.Stops)
	s.plan.Update = r.InPlace
	s.lapse(r.Groups)

	// 3. What was suspended goes on where it is, if there is room for it again.
	if in.EntitledOnly {
		entitledPosition{s}.leaveSuspended(r.Groups)
	} else {
		s.resume(r.Groups)
	}

	// 4. Place group by group: first what nobody holds, then successors of what is
	// updated by replacement. Whatever finds no node is explained and counted. A gang
	// is placed where its first group stands.
	goes := suspends{s}.gangsPastLimit()
	for _, work := range r.Groups {
		switch {
		case work.Gang == nil:
			s.placeGroup(work)
		case work.Gang.Works[0] == work && goes[work.Group.Name] == nil:
			r.Later = append(r.Later, s.placeGang(work.Gang)...)
		}
	}

	// 5. A job that wants all at once gets nothing if it does not get all.
	if feasible.AllOrNone(in.Job) && len(s.failed)+len(s.suspended) > 0 {
		s.takeBack(r.Groups)
		s.suspendAgain(r.Groups)
	}
	suspends{s}.requeue()

	// 6. Lower bands of the namespace give up their class.
	s.lowerClasses()

	// 7. Running allocations use what their namespace owns and nobody waits for.
	if !in.EntitledOnly {
		raise.Raise(s.Edit, in.Job, s.Live, s.plan)
	}

	// 8. Delayed replacements wait in evaluations of their own.
	s.followUp(r.Later)
	s.rollOn(r.Groups)

	// 9. What has waited too long reserves room; reservations that are not wanted end.
	s.reserve()

	// 10. The evaluation is done; what found no room waits in a blocked one.
	suspends{s}.count()
	s.finish()
	if in.Annotate {
		s.annotate(r)
	}
	return s.plan, nil
}

// Scheduler is one evaluation on its way through Schedule.
type Scheduler struct {
	World *world.World
	eval  *structs.Evaluation
	Input *search.Input
	plan  *structs.Plan

	Edit   *world.Edit
	fits   feasible.Fits
	Random random.Numbers
	Live   []*structs.Allocation // those that stay, for the census
	Census feasible.Census
	failed map[string]*structs.AllocMetric // by group
	queued map[string]int                  // by group
	// lacking are the nodes on which an instance was wanted and found no room, by group.
	lacking map[string][]string
	// suspended are the suspended ones for which there is no room yet.
	suspended []suspendedAlloc
	// groups are what is known of the job's groups so far, one of them mostly.
	groups []groupFound
	first  [1]groupFound
	// reclaimed is what others release; settled are the nodes that it was freed on.
	reclaimed []*reclaimed
	settled   map[string]bool
	requeues  reconcile.Requeues
	newest    *groupRun // placed the last instance
	// lowered are allocations of the namespace that give up their class.
	lowered []loweredUse
	// graceEnds is when the first request has been pending for long enough that others leave for it; zero: none waits for that.
	graceEnds time.Time
}

// groupFound is what is known of a group.
type groupFound struct {
	name   string
	search *search.Search // the last one, if it was placed
}

// NewScheduler begins an evaluation on an edit of its own; the World stays as it is.
func NewScheduler(w *world.World, eval *structs.Evaluation, in *search.Input) *Scheduler {
	return new(memory).begin(w, eval, in)
}

type memory struct { // one piece of it for what every evaluation has
	scheduler Scheduler
	edit      world.Edit
}

func (all *memory) begin(w *world.World, eval *structs.Evaluation, in *search.Input) *Scheduler { // all: empty
	world.Begin(&all.edit, w, new(world.Token))
	s := &all.scheduler
	*s = Scheduler{
		World: w, eval: eval, Input: in, Edit: &all.edit, Random: random.Numbers{State: in.Seed}, Census: feasible.Census{World: w},
		plan: &structs.Plan{
			EvalID: eval.ID, Namespace: eval.Namespace, JobID: eval.JobID, Priority: eval.Priority,
			SnapshotIndex: in.SnapshotIndex,
		},
	}
	if in.Job != nil {
		s.plan.JobVersion, s.plan.AllAtOnce = in.Job.Version, feasible.AllOrNone(in.Job)
	}
	s.groups = s.first[:0]
	s.fits.Begin(in.Job, search.MemoryOf(in.Prepared), in.Alike)
	return s
}

// Reconcile compares what the job wants with what there is.
func (s *Scheduler) Reconcile() *reconcile.Result {
	in := reconcile.Input{Job: s.Input.Job, Allocs: s.Input.Allocs, Now: s.Input.Now, Past: s.Input.Past}
	r := reconcile.Run(s.World, s.eval, in, &s.fits)
	s.requeues = r.Requeues
	return r
}

// Fit returns what nodes a group may use, decided so far.
func (s *Scheduler) Fit(g *structs.TaskGroup) *feasible.Feasibility { return s.fits.Of(g) }

// found returns what is known of a group, to be added to at once.
func (s *Scheduler) found(group string) *groupFound {
	for i := range s.groups {
		if s.groups[i].name == group {
			return &s.groups[i]
		}
	}
	s.groups = append(s.groups, groupFound{name: group})
	return &s.groups[len(s.groups)-1]
}

// Stop notes what is stopped: its room is free from now on, and what else is not terminal lives.
func (s *Scheduler) Stop(stops []*structs.AllocStop) {
	s.plan.Stop = stops
	stopped := make(map[string]bool, len(stops))
	for _, st := range stops {
		stopped[st.AllocID] = true
		world.Release(s.Edit, st.AllocID)
	}
	for _, a := range s.Input.Allocs {
		if !a.Terminal() && !stopped[a.ID] {
			s.Live = append(s.Live, a)
		}
	}
}

// groupRun is the placing of one group.
type groupRun struct {
	s       *Scheduler
	work    *reconcile.GroupWork
	search  *search.Search
	only    string // the node that all must be on; "": any
	batch   *structs.PlacementBatch
	nodes   map[string]int // into batch.Nodes, beyond the first few
	metrics metric.Explanation
	short   []reconcile.Placement // found no free room; others may have to make some
	alone   bool                  // nobody is left who failed the submission check and might make room
	reasons []string              // why its instances use no claim, for those that find no room
	noSlot  []string              // why they use no slot of their project
	onSlots *slotRun              // places those that do; nil: they use none
	// beside reports whether a node has room beside its overflow slots, while any node may have; nil: these are used, too.
	beside     func(*world.NodeState) bool
	lent       *loan // what idles of workflows' reservations; nil: nothing is lent to the group, or it is not known yet (see borrow)
	loaned     bool  // whether lent is known
	relicensed int   // counts the instances for which others have returned licenses
}

func (s *Scheduler) placeGroup(work *reconcile.GroupWork) {
	world.PutInto(&s.queued, work.Group.Name, 0)
	perNode := s.Input.Job.PerNode()
	if len(work.Place) == 0 && len(work.Update) == 0 && !perNode {
		return
	}
	run := s.newRun(work, s.Edit, s.Fit(work.Group))
	run.metrics.Classes(run.search, nil)
	taken := 0
	claims := run.claims()
	slots := run.slots()
	own := run.workflow()
	for _, p := range work.Place {
		if run.enough(p) {
			if p.Unwell {
				taken++
			}
			continue
		}
		if run.lacksLicense() != "" {
			if run.placeUnlicensed(p, own, claims, slots) || p.Unwell {
				taken++
			}
			continue
		}
		if own.place(p) || claims.placeOrLower(p) || slots.placeOrTake(p) || !run.leave() && claims.mayDoWithout(p) && run.placeBeside(p, slots) || p.Unwell {
			taken++
		}
	}
	if len(work.Update)+len(run.short) > 0 {
		claims.rewind()
		slots.rewind()
	}
	taken += run.reclaim()
	work.Withheld(taken)
	for _, p := range work.Update {
		run.replace(p, claims, slots)
	}
	if len(work.Update) > 0 {
		run.putBackAll()
	}
	own.batches()
	claims.batches()
	slots.batches()
	run.addBatch()
	for _, lent := range run.lent.begun() {
		lent.addBatch()
	}
	c := work.Counts
	if perNode && work.Group.Count > 0 && c.Place+c.Ignore+c.InPlaceUpdate+c.DestructiveUpdate == 0 {
		world.PutInto(&s.failed, work.Group.Name, s.why(false, run.search)) // no node fits it at all
	}
}

// addBatch adds what was placed to the plan.
func (g *groupRun) addBatch() {
	if g.batch != nil {
		g.batch.Metrics = g.metrics.AllocMetric
		g.s.plan.Place = append(g.s.plan.Place, g.batch)
	}
}

// newRun begins the placing of a group on an edit, on the nodes that f allows.
func (s *Scheduler) newRun(work *reconcile.GroupWork, e *world.Edit, f *feasible.Feasibility) *groupRun {
	found := s.newSearch(work.Group, e, f)
	return &groupRun{s: s, work: work, metrics: metric.New(s.Input.Job), search: found, beside: slot.BesideOverflow(e, found.Request.Amount)}
}

func (s *Scheduler) newSearch(group *structs.TaskGroup, e *world.Edit, f *feasible.Feasibility) *search.Search {
	found := search.ForGroup(s.Input, group, e, f, &s.Random, &s.Census, s.Live)
	s.found(group.Name).search = found
	return found
}

// place places one instance, or counts it as not placed. It reports whether it was placed.
func (g *groupRun) place(p reconcile.Placement) bool {
	if p.NodeID != "" || g.s.failed[g.work.Group.Name] == nil && len(g.short) == 0 { // else nothing was freed since another of the group found no room
		if f := g.seek(p); f != nil {
			g.accept(p, f)
			return true
		}
	}
	if g.borrow(p) || g.takeFailed(p) {
		return true
	}
	g.lack(p)
	return false
}

// lack notes an instance that found no free room. If the job may take from others that
// is tried when all free room has been given.
func (g *groupRun) lack(p reconcile.Placement) {
	if g.s.mayReclaim() && (g.lent == nil || !lend.Later(g.lent.lenders)) {
		g.short = append(g.short, p)
		return
	}
	g.fail(p)
}

// seek finds a node for one instance.
func (g *groupRun) seek(p reconcile.Placement) *search.Found {
	switch {
	case p.NodeID != "":
		return g.search.On(p.NodeID)
	case g.only != "":
		return g.search.On(g.only)
	case g.sticky(p):
		if f := g.search.On(p.Previous.NodeID); f != nil {
			return f
		}
	}
	return g.next(p)
}

// sticky reports whether the instance would rather go where its data is.
func (g *groupRun) sticky(p reconcile.Placement) bool {
	d := g.work.Group.EphemeralDisk
	return d != nil && d.Sticky && p.Previous != nil && p.Previous.ClientStatus != structs.AllocClientFailed
}

// replace places the successor of a running instance, on the same node if that
// fits. If there is no room others may have to make some; else the old one keeps running.
func (g *groupRun) replace(p reconcile.Placement, claims *claimRun, slots *slotRun) {
	old := p.Previous
	use := world.Release(g.s.Edit, old.ID)
	g.s.Census.Move(old.TaskGroup, old.NodeID, -1)
	lacks := g.lacksLicense()
	if lacks == "" && (claims.placeAgain(p) || slots.placeAgain(p)) {
		return
	}
	left := lacks == "" && g.leave()
	without := left || lacks == "" && claims.mayDoWithout(p) // one that may not is explained
	if lacks == "" && !left && without {
		slots.rewind()
		f := g.search.On(old.NodeID)
		if f == nil && p.NodeID == "" {
			g.search.Rewind() // the old one's room is free
			f = g.search.Next(nil)
		}
		if f != nil {
			g.accept(p, f)
			return
		}
		if g.s.mayReclaim() && g.s.failed[g.work.Group.Name] == nil && g.reclaimOne(p) {
			return
		}
	}
	if use != nil {
		world.Take(g.s.Edit, use)
	}
	g.s.Census.Move(old.TaskGroup, old.NodeID, 1)
	switch {
	case lacks != "":
		g.failFor(p, lacks)
	case !left && without:
		g.fail(p)
	}
}

// fail explains the first instance that finds no node and counts the others.
func (g *groupRun) fail(p reconcile.Placement) {
	name := g.work.Group.Name
	world.PutInto(&g.s.queued, name, g.s.queued[name]+1)
	m := g.s.failed[name]
	if p.NodeID != "" {
		world.PutInto(&g.s.lacking, name, append(g.s.lacking[name], p.NodeID))
		if m == nil {
			m = metric.New(g.s.Input.Job).AllocMetric
			x := metric.Explanation{AllocMetric: m}
			x.Classes(g.search, nil)
			world.PutInto(&g.s.failed, name, m)
		} else {
			m.CoalescedFailures++
		}
		if n, known := world.StateOf(g.s.Edit, p.NodeID); known && n.Node != nil {
			metric.Explanation{AllocMetric: m}.Node(g.search, n)
		}
		return
	}
	if m == nil {
		world.PutInto(&g.s.failed, name, g.s.why(g.batch != nil, g.search, g.reasons...))
		return
	}
	m.CoalescedFailures++
}

// accept takes a node for an instance and writes it into the batch.
func (g *groupRun) accept(p reconcile.Placement, f *search.Found) {
	s := g.s
	s.newest = g
	g.metrics.Chosen(g.search, f)
	if h := f.Node.Reservation; h != nil && h.RequestName == g.search.Request.By.RequestName {
		g.search.Edit.Unreserve(f.Node.ID)
	}
	g.search.Take(f)
	world.Claim(g.search.Edit, f.Grant.Usage)
	world.SlotEdit{E: g.search.Edit}.Place(f.Node.ID, f.Grant.Usage)
	world.LicenseEdit{E: g.search.Edit}.Place(f.Grant.Usage)
	s.Census.Move(g.work.Group.Name, f.Node.ID, 1)
	if g.batch == nil {
		g.batch = &structs.PlacementBatch{
			Namespace: s.Input.Job.Namespace, JobID: s.Input.Job.ID, JobVersion: s.Input.Job.Version, Group: g.work.Group.Name,
			EvalID: s.eval.ID, Seed: s.Input.NewID(), CreateTime: s.Input.Now.UnixNano(), Resources: g.search.Request.Resources,
			Instances: make([]structs.Instance, 0, len(g.work.Place)+len(g.work.Update)),
		}
	}
	in := structs.Instance{
		Ordinal: uint32(len(g.batch.Instances)), Index: p.Index, Node: g.placedOn(f.Node), // far below 2^32
		Ports: f.Grant.Ports, Networks: f.Grant.Networks, Cores: f.Grant.Cores, CoreMHz: f.Grant.CoreMHz,
		Devices: f.Grant.Devices, RescheduleTracker: p.Tracker,
	}
	in.Requeues, in.RequeueReason = s.requeues.Of(g.work.Group.Name, p.Index, f.Node.ID)
	if p.Previous != nil {
		in.PreviousAllocation = p.Previous.ID
	}
	if p.Stop != nil {
		s.plan.Stop = append(s.plan.Stop, p.Stop)
	}
	g.batch.Instances = append(g.batch.Instances, in)
}

// placedOn returns the place of a node in the batch's list, where it is put if need be.
func (g *groupRun) placedOn(n *world.NodeState) int {
	const few = 8 // are compared faster than looked up
	list := g.batch.Nodes
	for i := range min(len(list), few) {
		if list[i].ID == n.ID {
			return i
		}
	}
	if at, known := g.nodes[n.ID]; known {
		return at
	}
	if len(list) >= few {
		world.PutInto(&g.nodes, n.ID, len(list))
	}
	g.batch.Nodes = append(list, structs.PlacedNode{ID: n.ID, Name: n.Node.Name})
	return len(list)
}

// takeBack takes every placement out of the plan, and the stops that were to go
// with them.
func (s *Scheduler) takeBack(groups []*reconcile.GroupWork) {
	s.plan.Place = nil
	s.takeBackReclaims()
	waits := map[*structs.AllocStop]bool{}
	for _, work := range groups {
		for _, p := range slices.Concat(work.Place, work.Update) {
			waits[p.Stop] = true
		}
		if work.Gang != nil {
			for _, st := range work.Gang.Stops {
				waits[st] = true
			}
		}
		world.PutInto(&s.queued, work.Group.Name, len(work.Place)+len(work.Update))
		if m := s.failed[work.Group.Name]; m != nil { // the others of the group have no place either
			m.CoalescedFailures = max(m.CoalescedFailures, s.queued[work.Group.Name]-1)
		}
	}
	s.plan.Stop = slices.DeleteFunc(s.plan.Stop, func(st *structs.AllocStop) bool { return waits[st] })
}

// followUp makes the evaluations that replace failed allocations when their delays have passed.
func (s *Scheduler) followUp(list []reconcile.Later) {
	away := func(l reconcile.Later) int {
		if l.Away {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b reconcile.Later) int {
		return cmp.Or(cmp.Compare(away(a), away(b)), a.At.Compare(b.At), strings.Compare(a.Alloc.ID, b.Alloc.ID))
	})
	var ev *structs.Evaluation
	var first reconcile.Later
	for _, l := range list {
		st := &structs.AllocStop{AllocID: l.Alloc.ID, KeepRunning: true}
		if l.Away {
			st.ClientStatus, st.DesiredDescription = structs.AllocClientUnknown, reconcile.UnknownAway
		}
		s.plan.Stop = append(s.plan.Stop, st)
		if l.At.Equal(structs.Forever) {
			continue // no time is known at which to evaluate it again
		}
		if ev == nil || l.Away != first.Away || l.At.Sub(first.At) > followUpWindow {
			ev = s.newEval(structs.EvalTriggerRetryFailed, structs.EvalStatusPending)
			ev.StatusDescription = "created for delayed rescheduling"
			if l.Away {
				ev.TriggeredBy, ev.StatusDescription = structs.EvalTriggerMaxDisconnect, "created for when a disconnected node is not waited for any longer"
			}
			first = l
			s.plan.Evals = append(s.plan.Evals, ev)
		}
		ev.WaitUntil, st.FollowupEvalID = l.At, ev.ID
	}
}

func (s *Scheduler) newEval(trigger, status string) *structs.Evaluation {
	now := s.Input.Now.UnixNano()
	return &structs.Evaluation{
		ID: s.Input.NewID(), Namespace: s.eval.Namespace, Priority: s.eval.Priority, Type: s.eval.Type, JobID: s.eval.JobID,
		JobModifyIndex: s.eval.JobModifyIndex, TriggeredBy: trigger, Status: status, PreviousEval: s.eval.ID,
		CreateTime: now, ModifyTime: now,
	}
}

// finish stores the evaluation's end, before all others, and what is left of it.
func (s *Scheduler) finish() {
	done := new(*s.eval) // with maps of its own, below
	done.Status, done.StatusDescription = structs.EvalStatusComplete, ""
	done.ModifyTime = s.Input.Now.UnixNano()
	done.QueuedAllocations = s.queued
	done.FailedTGAllocs, done.ClassEligibility, done.EscapedComputedClass = nil, nil, false
	done.BlockedEval, done.SnapshotIndex = "", s.Input.SnapshotIndex
	s.plan.Evals = slices.Insert(s.plan.Evals, 0, done)
	s.preemptions()
	if len(s.failed) == 0 {
		s.requests("")
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
	blocked.SnapshotIndex = s.Input.SnapshotIndex
	if s.Input.EntitledOnly {
		blocked.SnapshotIndex = 0 // what waits for its other position was tried on no state
	}
	blocked.FailedTGAllocs = s.failed
	blocked.WaitUntil = earlier(earlier(s.lookAgain(blocked), suspends{s}.until()), s.graceEnds)
	s.eligibility(blocked)
	s.requests(blocked.ID)
}

// eligibility records which classes could run what a blocked evaluation waits for.
// A class that is not named has no ready node now.
func (s *Scheduler) eligibility(blocked *structs.Evaluation) {
	blocked.ClassEligibility = map[string]bool{}
	for name, c := range world.Classes(s.World).All {
		n, can := c.Any(), false
		for group := range s.failed { // any: the order cannot show
			can = can || s.fits.Named(group).Class(n.Node).OK()
		}
		blocked.ClassEligibility[name] = can
	}
	for group := range s.failed {
		blocked.EscapedComputedClass = blocked.EscapedComputedClass || s.fits.Named(group).Escaped()
	}
}

func (s *Scheduler) annotate(r *reconcile.Result) {
	updates := map[string]*structs.DesiredUpdates{}
	for _, work := range r.Groups {
		updates[work.Group.Name] = &work.Counts
	}
	stops := map[string]bool{}
	for _, st := range r.Stops {
		stops[st.AllocID] = true
	}
	for _, a := range s.Input.Allocs {
		if !stops[a.ID] {
			continue
		}
		if u := updates[a.TaskGroup]; u == nil {
			updates[a.TaskGroup] = &structs.DesiredUpdates{Stop: 1}
		} else if s.Input.Job.Stopped() || s.Input.Job.LookupTaskGroup(a.TaskGroup) == nil {
			u.Stop++
		}
	}
	s.plan.Annotations = &structs.PlanAnnotations{DesiredTGUpdates: updates, PreemptedAllocs: s.preempted()}
}
