// Package stagestart decides the start of a workflow's stage as one plan: who leaves the reservation for it, and where each of its instances runs
// then (docs/design/semantics.md, part 5). It decides as reserve and decide do, and nothing by itself.
package stagestart

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/judge"
	"github.com/nomadish/nomadish/scheduler/internal/pass"
	"github.com/nomadish/nomadish/scheduler/internal/reserve"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Start is what a stage starts with.
type Start struct {
	reserve.Start
	// Place are the instances of those jobs of the stage that are placed whole. The others are to be evaluated as jobs are.
	Place []*structs.PlacementBatch
}

// Job is a job of a stage as it is going to be registered.
type Job struct {
	*structs.Job
	// EvalID is the ID of the evaluation by which it is going to be placed.
	EvalID string
}

// Plan returns how the jobs of a stage start in a reservation, as of a time in Unix nanoseconds. input returns what one of them is decided with.
func Plan(w *world.World, c *structs.WorkflowClaim, jobs []Job, now int64, input func(*structs.Job) search.Input) Start {
	stage := make(reserve.Stage, len(jobs))
	for i := range jobs {
		stage[i] = jobs[i].Job
	}
	out := Start{Start: reserve.TakeBack(w, c, stage, now)}
	edit := w.Edit()
	judge.Judge(edit, &structs.Plan{Stop: out.Stops})
	moving, next := pass.New(edit.World()), 0
	for _, j := range jobs {
		n := instances(j.Job)
		out.Place = append(out.Place, j.place(moving, input(j.Job), out.Nodes[next:next+n])...)
		next += n
	}
	return out
}

// instances returns for how many instances of a job a reservation has room.
func instances(j *structs.Job) int {
	if j.PerNode() {
		return 0
	}
	return j.Instances()
}

// place places a job whole in its reservation, on the nodes that its instances are assigned to if it can, and goes on with it as placed; nil: it is not
// to be had whole.
func (j *Job) place(moving *pass.Pass, in search.Input, nodes []string) []*structs.PlacementBatch {
	if len(nodes) == 0 || slices.Contains(nodes, "") {
		return nil
	}
	in.Brief, in.Assigned = true, assigned(j.Job, nodes)
	plan, err := moving.Plan(&structs.Evaluation{
		ID: j.EvalID, Namespace: j.Namespace, JobID: j.ID, Priority: j.Priority, Type: j.Type, TriggeredBy: structs.EvalTriggerJobRegister,
		Status: structs.EvalStatusPending, CreateTime: in.Now.UnixNano(), ModifyTime: in.Now.UnixNano(),
	}, in)
	if err != nil || len(plan.Stop)+len(plan.Update)+len(plan.Reserve)+len(plan.Unreserve) > 0 {
		return nil
	}
	placed := 0
	for _, b := range plan.Place {
		if b.Resources.Shared.Terms == nil || b.Resources.Shared.Terms.Claim != structs.ClaimWorkflow {
			return nil
		}
		placed += len(b.Instances)
	}
	if placed < len(nodes) || moving.Follow(plan) != nil {
		return nil
	}
	return plan.Place
}

// assigned returns the nodes that the instances of a job are assigned to, by their groups.
func assigned(job *structs.Job, nodes []string) map[string][]string {
	byGroup := map[string][]string{}
	for _, g := range job.TaskGroups {
		byGroup[g.Name], nodes = nodes[:g.Count], nodes[g.Count:]
	}
	return byGroup
}
