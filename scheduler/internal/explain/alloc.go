package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// AllocInput is what an allocation is explained with.
type AllocInput struct {
	// Alloc is explained, with its Job where that version is kept.
	Alloc  *structs.Allocation
	Config structs.SchedulerConfiguration
	// By is the allocation that took its place; nil: none did, or it is gone.
	By *structs.Allocation
	// Leaving are the allocations on its node that are to stop and have not ended.
	Leaving []*structs.Allocation
	Node    *structs.Node // nil: it is gone
	// World is of the same state; nil: what needs it is left out.
	World *world.World
}

// Alloc returns why an allocation is on its node, by what right, and what it may lose its place to,
// or has lost it to.
func Alloc(in AllocInput) *structs.AllocExplanation {
	a := in.Alloc
	x := &structs.AllocExplanation{
		AllocID: a.ID, NodeID: a.NodeID, NodeName: a.NodeName, Class: structs.ClassOpportunistic, Policy: policyOf(a.Job, &in.Config),
	}
	addText := func(format string, args ...any) { x.Text = append(x.Text, fmt.Sprintf(format, args...)) }
	whyHere(x, a, addText)
	devicesReserved(x, a, addText)
	t := termsOf(a)
	x.Band = in.Config.Band(t.Priority)
	bands := in.Config.PriorityBands()
	if class, claim := a.ClassAndClaim(); claim != nil {
		x.Class = class
		addText("%s", claimText(claim, t))
	}
	if key := t.BorrowsFrom(); key != "" {
		addText("it borrows from the reservation of workflow %s, which lends to %s, and leaves when a stage needs that", key, t.LentTo())
	}
	addText("it is %s: it has priority %d, of band %d to %d", x.Class, t.Priority, bands[x.Band].Low, bands[x.Band].High)
	if in.World != nil && !a.Terminal() {
		if text := withoutSlot(in.World.Edit(), a.Job, a.ID); text != "" {
			addText("it uses no slot of its project: %s", text)
		}
	}
	lostTo(x, &in, addText)
	if !a.Terminal() {
		threats(x, &in, t, addText)
		waitsFor(x, &in, addText)
	}
	return x
}

// claimText returns by what right an allocation is where it is.
func claimText(claim *structs.AllocClaim, t structs.AllocTerms) string {
	switch claim.Kind {
	case structs.ClaimWorkflow:
		return fmt.Sprintf("it uses the reservation of workflow %s", claim.Owner)
	case structs.ClaimCells:
		return fmt.Sprintf("it uses a cell of level %s that namespace %q owns", claim.Level, claim.Owner)
	}
	text := "it uses a slot"
	if t.Slots.Cost != 1 {
		text = fmt.Sprintf("it uses %d slots", t.Slots.Cost)
	}
	text += fmt.Sprintf(" of type %s of project %q", claim.Type, claim.Owner)
	if t.Slots.Guards > 0 {
		text += fmt.Sprintf(", and keeps %d more on its node free of others, as guards", t.Slots.Guards)
	}
	if claim.Level != "" {
		text += ", with cells of level " + claim.Level
	}
	return text
}

// policyOf is the order in which nodes are tried for a job.
func policyOf(job *structs.Job, config *structs.SchedulerConfiguration) string {
	if job != nil && job.Policy != "" {
		return job.Policy
	}
	return config.NodeOrder()
}

// policyTexts describes for each policy which of the fitting nodes it chooses.
var policyTexts = map[string]string{
	search.PolicyBinpack: "the one with least room, and of devices the smallest free cell", search.PolicySpread: "the one with most room",
	search.PolicyFirstFit: "the first by ID", search.PolicyNextFit: "the next by ID after the last one chosen", search.PolicyRandom: "any, each as likely",
	search.PolicyLeastFrag: "the one whose free devices are fragmented least by it; without devices, the one with least room",
}

func wereText(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func whyHere(x *structs.AllocExplanation, a *structs.Allocation, addText func(string, ...any)) {
	text := ""
	if t := policyTexts[x.Policy]; t != "" {
		text = ": " + t
	}
	if m := a.Metrics; m != nil {
		x.Looked, x.Candidates = m.NodesEvaluated, m.NodesEvaluated-m.NodesFiltered
		for _, s := range m.ScoreMetaData {
			if s.NodeID == a.NodeID {
				x.Score = s
			}
		}
		addText("when it was placed, %s %s in its datacenters and could take work, and its constraints allowed %d of them",
			nodesText(x.Looked), wereText(x.Looked), x.Candidates)
	}
	if n := len(a.PreemptedAllocations); n > 0 {
		addText("none had room for it, so it took the node where preemption cost least: %s had to stop or be suspended", allocations(n))
	} else {
		addText("of those with room the policy %s takes%s", x.Policy, cmp.Or(text, " one"))
	}
	if x.Score != nil && len(x.Score.Scores) > 1 {
		addText("with its affinities and spreads the node scored %.3g", x.Score.NormScore)
	}
}

func devicesReserved(x *structs.AllocExplanation, a *structs.Allocation, addText func(string, ...any)) {
	if a.AllocatedResources == nil {
		return
	}
	var tasks []string
	for name := range a.AllocatedResources.Tasks { // sorted below
		tasks = append(tasks, name)
	}
	slices.Sort(tasks)
	for _, task := range tasks {
		for i, d := range a.AllocatedResources.Tasks[task].Devices {
			e := structs.ExplainedDevice{
				Task: task, Device: d.Vendor + "/" + d.Type + "/" + d.Name, IDs: d.DeviceIDs, Share: d.Share, Level: d.Level,
			}
			if t := topologyRequested(a, task, i); t != nil {
				e.Preferred, e.Required = t.Level, t.Required
			}
			x.Devices = append(x.Devices, e)
			what := fmt.Sprintf("%d of %s", len(d.DeviceIDs), e.Device)
			if d.Share > 0 {
				what = fmt.Sprintf("%d thousandths of one %s", d.Share, e.Device)
			}
			switch {
			case e.Preferred == "":
				addText("task %q has %s under one cell of level %s", task, what, cmp.Or(d.Level, structs.LevelNode))
			case e.Required:
				addText("task %q has %s under one cell of level %s; level %s is required", task, what, d.Level, e.Preferred)
			default:
				addText("task %q has %s under one cell of level %s; level %s was preferred", task, what, d.Level, e.Preferred)
			}
		}
	}
}

// topologyRequested returns the topology constraint of a task's i-th device request, or nil.
func topologyRequested(a *structs.Allocation, task string, i int) *structs.TopologyConstraint {
	g := reconcile.GroupOf(a)
	if g == nil {
		return nil
	}
	for _, t := range g.Tasks {
		if t.Name == task && t.Resources != nil && i < len(t.Resources.Devices) {
			return t.Resources.Devices[i].Topology
		}
	}
	return nil
}

// termsOf returns the terms of an allocation, or its job's terms if it has none.
func termsOf(a *structs.Allocation) structs.AllocTerms {
	if r := a.AllocatedResources; r != nil && r.Shared.Terms != nil {
		return *r.Shared.Terms
	}
	if a.Job != nil {
		return structs.AllocTerms{Priority: a.Job.Priority, Submitted: a.Job.CreateIndex}
	}
	return structs.AllocTerms{}
}

// lostTo explains which allocation preempted this one.
func lostTo(x *structs.AllocExplanation, in *AllocInput, addText func(string, ...any)) {
	a := in.Alloc
	suspended := a.DesiredStatus == structs.AllocDesiredSuspend
	if !suspended && a.DesiredStatus != structs.AllocDesiredEvict && a.PreemptedByAllocation == "" {
		return
	}
	x.Lost = &structs.LostTo{How: structs.ReclaimRequeue, AllocID: a.PreemptedByAllocation}
	did := "was stopped, and its request went back to the queue"
	switch {
	case reconcile.FailedToSuspend(a):
		did = "was to be suspended and could not be, so its request went back to the queue"
	case suspended:
		x.Lost.How, did = structs.ReclaimSuspend, "is suspended, and goes on in place when there is room again"
	}
	switch by := in.By; {
	case by != nil:
		x.Lost.Namespace, x.Lost.JobID, x.Lost.Priority = by.Namespace, by.JobID, termsOf(by).Priority
		addText("it %s: allocation %s of %s (priority %d) took its place", did, structs.ShortID(by.ID), structs.NamespacedID{ID: by.JobID, Namespace: by.Namespace}.JobText(a.Namespace), x.Lost.Priority)
	case a.PreemptedByAllocation != "":
		addText("it %s: allocation %s took its place, which is not known any more", did, structs.ShortID(a.PreemptedByAllocation))
	case !suspended && a.RequeueReason != "":
		addText("it %s: %s", did, a.RequeueReason)
	default:
		addText("it %s: %s", did, cmp.Or(a.DesiredDescription, "by request"))
	}
}

// hasDevices reports whether a task of an allocation was given devices.
func hasDevices(a *structs.Allocation) bool {
	if a.AllocatedResources == nil {
		return false
	}
	for _, t := range a.AllocatedResources.Tasks { // any: the order cannot show
		if len(t.Devices) > 0 {
			return true
		}
	}
	return false
}

// threats explains what may preempt the allocation.
func threats(x *structs.AllocExplanation, in *AllocInput, t structs.AllocTerms, addText func(string, ...any)) {
	how := cmp.Or(t.Reclaim, structs.ReclaimRequeue)
	if feasible.NotSuspended(in.Node, &t, hasDevices(in.Alloc)) != "" {
		how = structs.ReclaimRequeue
	}
	bands := in.Config.PriorityBands()
	var types []string
	all := []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}
	if t.Claim != "" {
		all = all[:2] // the others use no claim
	}
	for _, kind := range all {
		if in.Config.Preempts(kind) {
			types = append(types, kind)
		}
	}
	add := func(th structs.Threat) {
		x.MayLoseTo = append(x.MayLoseTo, th)
		addText("%s", th.Text)
	}
	switch {
	case t.Claim == structs.ClaimSlots:
		addText("it cannot be preempted: it uses what its project was given")
	case t.Claim == structs.ClaimWorkflow:
		addText("it cannot be preempted: it uses what its workflow has reserved")
	case t.Claim != "" && (len(types) == 0 || x.Band == len(bands)-1):
		addText("it cannot be preempted: it is guaranteed")
	case t.Claim != "":
		low := bands[x.Band+1].Low
		add(structs.Threat{
			Kind: "preemption", Types: types, LowestPriority: low, How: how,
			Text: fmt.Sprintf("it is guaranteed: only jobs of its namespace, of type %s with a priority of %d or more, may take its class or preempt it (%s)",
				strings.Join(types, ", "), low, how),
		})
	case len(types) == 0:
		addText("it cannot be preempted: preemption is off")
	case in.Alloc.Requeues >= in.Config.RequeuesAllowed():
		addText("it is not preempted any more: its instance was requeued %s, and max_requeues is %d", times(in.Alloc.Requeues), in.Config.RequeuesAllowed())
	case x.Band == len(bands)-1:
		addText("it cannot be preempted: no band is above its own")
	default:
		low := bands[x.Band+1].Low
		add(structs.Threat{
			Kind: "preemption", Types: types, LowestPriority: low, How: how,
			Text: fmt.Sprintf("jobs of type %s with a priority of %d or more may preempt it (%s)", strings.Join(types, ", "), low, how),
		})
	}
	if in.World != nil {
		for _, th := range claimThreats(in, how) {
			add(th)
		}
	}
	if r := in.Alloc.AllocatedResources; r != nil && r.Shared.TimeLimit > 0 && !in.Alloc.Suspended() { // then it stands still
		at := in.Alloc.CreateTime + int64(r.Shared.TimeLimit)
		add(structs.Threat{Kind: "time-limit", At: at, Text: "it is ended by its max_run_duration at " + clockTime(at) + " at the latest"})
	}
	if n := in.Node; n != nil && n.DrainStrategy != nil {
		add(structs.Threat{Kind: "drain", Text: "its node is being drained: it moves, or ends with the drain"})
	}
}

// waitsFor names the allocations that must end before this one can start.
func waitsFor(x *structs.AllocExplanation, in *AllocInput, addText func(string, ...any)) {
	if in.Alloc.ClientStatus != structs.AllocClientPending {
		return
	}
	for _, a := range in.Leaving {
		if a.PreemptedByAllocation == in.Alloc.ID && !a.ClientTerminal() {
			x.WaitsFor = append(x.WaitsFor, a.ID)
		}
	}
	if len(x.WaitsFor) > 0 {
		slices.Sort(x.WaitsFor)
		addText("it starts once %s", letGo(len(x.WaitsFor)))
	}
}
