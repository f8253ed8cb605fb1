package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/judge"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Input is what a job is explained with, beside the World.
type Input struct {
	search.Input
	// Queue is the job's place in the queue; nil: it is not in it.
	Queue *structs.QueuePosition
	// Evals are the job's evaluations that are still open.
	Evals []*structs.Evaluation
	// Leaving are allocations of anybody that are to stop and have not ended, on
	// nodes where the job has allocations that have not started.
	Leaving []*structs.Allocation
	// Group: only this one; "": all.
	Group string
	// NoRemedies leaves out the search for the smallest change.
	NoRemedies bool
}

// nodesNamed bounds the nodes that an explanation lists for a group, allocsNamed the
// allocations that it names in one place.
const (
	nodesNamed  = 100
	allocsNamed = 20
)

// Job returns why a job is placed as it is and why the rest waits: it has the real scheduler
// decide, checks every node for what it could not place, and has it decide again on altered worlds. It
// is a function as Schedule is, and as little changes its World.
func Job(w *world.World, in Input) (*structs.JobExplanation, error) {
	if in.Job == nil || in.NewID == nil {
		return nil, fmt.Errorf("explain: the job or NewID is missing")
	}
	job := in.Job
	out := &structs.JobExplanation{
		Namespace: job.Namespace, JobID: job.ID, Version: job.Version, Type: job.Type, Status: job.Status,
		NodePool: cmp.Or(job.NodePool, structs.DefaultNodePool), Priority: job.Priority, At: in.Now.UnixNano(),
		Index: in.SnapshotIndex, Queue: in.Queue,
	}
	submission(w, job, out)
	x := &explainer{w: w, in: &in}
	if err := x.decide(); err != nil {
		return nil, err
	}
	for _, g := range job.TaskGroups {
		if in.Group == "" || in.Group == g.Name {
			out.Groups = append(out.Groups, x.group(g))
		}
	}
	return out, nil
}

// explainer explains one job.
type explainer struct {
	w  *world.World
	in *Input
	// missing counts, by group, the instances without a place; left those of them that
	// the scheduler would not place now.
	missing, left map[string]int
	plan          *structs.Plan
	// after is how all would stand once the scheduler had decided, with allocs then.
	after  *world.World
	allocs []*structs.Allocation
	s      *decide.Scheduler // on after
	works  map[string]*reconcile.GroupWork
}

// evaluation returns the evaluation with which a job is decided, to see what would happen.
func evaluation(job *structs.Job, in *search.Input) *structs.Evaluation {
	return &structs.Evaluation{
		ID: in.NewID(), Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type,
		TriggeredBy: structs.EvalTriggerForce, Status: structs.EvalStatusPending, JobModifyIndex: job.JobModifyIndex,
		CreateTime: in.Now.UnixNano(), ModifyTime: in.Now.UnixNano(),
	}
}

// decide has the scheduler decide, and compares before and after.
func (x *explainer) decide() error {
	in := x.in.Input
	in.Annotate = true
	eval := evaluation(in.Job, &in)
	x.missing = missingOf(x.w, eval, &in)
	plan, err := decide.Schedule(x.w, eval, in)
	if err != nil {
		return err
	}
	x.plan = plan
	edit := x.w.Edit()
	if _, refused, why := judge.Judge(edit, plan); len(refused) > 0 {
		return fmt.Errorf("explain job %q: its plan is invalid on the world that it was made for: %s", in.Job.ID, why)
	}
	x.after, x.allocs = edit.World(), decided(in.Allocs, plan, in.Job)
	in.Allocs = x.allocs
	x.s = decide.NewScheduler(x.after, eval, &in)
	r := x.s.Reconcile()
	x.s.Stop(r.Stops)
	x.works, x.left = map[string]*reconcile.GroupWork{}, map[string]int{}
	for _, work := range r.Groups {
		x.works[work.Group.Name], x.left[work.Group.Name] = work, len(work.Place)
	}
	return nil
}

// missingOf counts, by group, the instances that are to be placed and have no place.
func missingOf(w *world.World, eval *structs.Evaluation, in *search.Input) map[string]int {
	s := decide.NewScheduler(w, eval, in)
	r := s.Reconcile()
	out := map[string]int{}
	for _, work := range r.Groups {
		out[work.Group.Name] = len(work.Place)
	}
	return out
}

// decided returns a job's allocations as they are once a plan has been committed.
func decided(allocs []*structs.Allocation, plan *structs.Plan, job *structs.Job) []*structs.Allocation {
	out := slices.Clone(allocs)
	at := make(map[string]int, len(out))
	for i, a := range out {
		at[a.ID] = i
	}
	change := func(id string, f func(*structs.Allocation)) {
		if i, known := at[id]; known {
			a := *out[i]
			f(&a)
			out[i] = &a
		}
	}
	for _, st := range plan.Stop {
		change(st.AllocID, func(a *structs.Allocation) {
			if !st.KeepRunning {
				a.DesiredStatus, a.DesiredDescription = st.DesiredStatus, st.DesiredDescription
			}
			a.ClientStatus = cmp.Or(st.ClientStatus, a.ClientStatus)
			a.FollowupEvalID = cmp.Or(st.FollowupEvalID, a.FollowupEvalID)
		})
	}
	for _, up := range plan.Update {
		change(up.AllocID, func(a *structs.Allocation) {
			a.JobVersion, a.Job = up.JobVersion, job
			if up.Resume {
				a.DesiredStatus = structs.AllocDesiredRun
			}
		})
	}
	for _, b := range plan.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			a.Job = job
			change(a.PreviousAllocation, func(old *structs.Allocation) { old.NextAllocation = a.ID })
			out = append(out, a)
		}
	}
	return out
}

// group explains one group.
func (x *explainer) group(g *structs.TaskGroup) *structs.GroupExplanation {
	out := &structs.GroupExplanation{Group: g.Name, Wanted: g.Count, Missing: x.missing[g.Name]}
	left := min(out.Missing, x.left[g.Name])
	out.PlacedNow = out.Missing - left
	x.count(out)
	if x.idle(out) {
		return out
	}
	x.wait(out)
	x.unusable(out)
	x.beside(out)
	if x.in.Config.PauseEvalBroker && out.PlacedNow > 0 {
		out.Smallest = []structs.Remedy{unpause(out.PlacedNow)}
	}
	if left == 0 && len(x.works[g.Name].Update) == 0 {
		return out
	}
	sv := x.survey(g)
	out.Nodes, out.Reasons = sv.counts, sv.reasons()
	x.gang(out, sv)
	x.claims(out, left)
	graceEnds := x.slots(out, left)
	x.reserved(out, sv, left)
	x.licenses(out, left)
	x.lenders(out, left)
	x.preemption(out, sv)
	if out.Expected = x.expected(out, sv, left); graceEnds > 0 && (out.Expected.First == 0 || graceEnds < out.Expected.First) {
		out.Expected = &structs.Expected{First: graceEnds, Because: "others leave for free slots of its project then; when all have room is not known"}
	}
	if !x.in.NoRemedies {
		p := newRemedySearch(x, g, left)
		out.Smallest = append(out.Smallest, p.remedies(sv)...)
		out.Tries = p.tries
	}
	return out
}

// survey checks all nodes for one more instance of a group.
func (x *explainer) survey(g *structs.TaskGroup) *survey {
	find := search.New(x.s.Edit, search.NewRequest(x.s.Input, g), x.s.Fit(g), &x.s.Random, x.s.Input.Policy())
	find.Request.LeaveOwned(x.in.Job, x.s.Edit)
	find.Refusals = x.s.Fit(g).Refusals(&x.s.Census, x.s.Live)
	var holding map[string]bool
	if x.in.Job.PerNode() {
		holding = map[string]bool{}
		for _, a := range x.s.Live {
			if a.TaskGroup == g.Name {
				holding[a.NodeID] = true
			}
		}
	}
	return newSurvey(find, holding, func(key string) string { return lend.Refusal(&x.in.Input, x.after, g, key) })
}

// count counts a group's allocations by state.
func (x *explainer) count(out *structs.GroupExplanation) {
	on := map[string]*structs.PlacedOn{}
	var list []*structs.PlacedOn
	for _, a := range x.in.Allocs {
		if a.TaskGroup != out.Group {
			continue
		}
		switch {
		case a.ClientStatus == structs.AllocClientComplete && !a.ServerTerminal():
			out.Completed++
			continue
		case a.ClientStatus == structs.AllocClientFailed && !a.ServerTerminal() && a.NextAllocation == "" && !reconcile.FailedToSuspend(a):
			out.Failed++
			continue
		case a.Terminal(), a.ClientStatus == structs.AllocClientUnknown && (a.NextAllocation != "" || a.GroupNow(x.in.Job).ReplacedMeanwhile()): // another stands for it, or is to
			continue
		}
		out.Placed++
		if a.ClientStatus == structs.AllocClientRunning {
			out.Running++
		}
		if a.DesiredStatus == structs.AllocDesiredSuspend {
			out.Suspended++
		}
		if on[a.NodeID] == nil {
			on[a.NodeID] = &structs.PlacedOn{NodeID: a.NodeID, NodeName: a.NodeName}
			list = append(list, on[a.NodeID])
		}
		on[a.NodeID].Instances++
	}
	if x.in.Job.PerNode() {
		out.Wanted = out.Placed + out.Missing
	}
	slices.SortFunc(list, func(a, b *structs.PlacedOn) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), strings.Compare(a.NodeName, b.NodeName), strings.Compare(a.NodeID, b.NodeID))
	})
	out.OnNodes = len(list)
	for _, p := range list[:min(len(list), nodesNamed)] {
		out.On = append(out.On, *p)
	}
}
