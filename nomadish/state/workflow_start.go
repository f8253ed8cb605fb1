package state

import (
	"cmp"

	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/structs"
)

// A plan may move a run of a workflow on, and place the jobs that this registers: a stage starts as one entry, with what is taken back for it.

// checkStart returns an error, before anything is changed, if a plan moves a run on that has changed since it was decided.
func (w workflows) checkStart(p *structs.JudgedPlan) error {
	e := p.Advance
	if e == nil {
		return nil
	}
	jobs, err := w.edit().Advances(e)
	for _, job := range jobs {
		err = cmp.Or(err, rowcheck.Job(job))
	}
	if err != nil {
		return structs.Errorf(structs.CodeBadRequest, "plan that moves a workflow on: %w", err).WithHint("decide it again on a newer state")
	}
	return nil
}

// start moves the run on that a plan moves on. It returns the plan with what is known of its jobs only now, and the jobs that are registered, in their
// order.
func (w workflows) start(p *structs.JudgedPlan) (now *structs.JudgedPlan, registered []*structs.Job) {
	e, x := p.Advance, w.x
	if e == nil {
		return p, nil
	}
	event := x.event
	x.now, x.event = e.Time, structs.EventWorkflowAdvanced
	edit, byID := w.edit(), map[structs.NamespacedID]*structs.Job{}
	edit.Register = func(job *structs.Job) error {
		job, err := w.store(job)
		if err == nil {
			registered = append(registered, job)
			byID[job.NamespacedID()] = job
		}
		return err
	}
	err := edit.Apply(e) // checkStart has seen that it can be
	if x.event = event; err != nil {
		return &structs.JudgedPlan{Advance: e, Time: p.Time, JudgedAt: p.JudgedAt}, registered
	}
	out := *p
	out.Place = nil
	for _, b := range p.Place {
		job := byID[structs.NamespacedID{Namespace: b.Namespace, ID: b.JobID}]
		switch {
		case job != nil && job.Version != b.JobVersion:
			continue // it is evaluated as jobs are
		case job != nil && b.Resources != nil && b.Resources.Shared.Terms != nil && b.Resources.Shared.Terms.Submitted != job.CreateIndex:
			own, terms := *b, *b.Resources.Shared.Terms
			terms.Submitted = job.CreateIndex
			own.Resources = b.Resources.Copy()
			own.Resources.Shared.Terms = &terms
			b = &own
		}
		out.Place = append(out.Place, b)
	}
	return &out, registered
}

// evaluateStart makes the evaluations of the jobs that a plan has registered. Those of jobs that it has placed whole are complete.
func (w workflows) evaluateStart(p *structs.JudgedPlan, registered []*structs.Job, seed string) {
	placed, x := map[structs.NamespacedID]int{}, w.x // looked up only
	for _, b := range p.Place {
		placed[structs.NamespacedID{Namespace: b.Namespace, ID: b.JobID}] += len(b.Instances)
	}
	x.seed, x.minted = seed, 0
	for _, job := range registered {
		ev := w.evaluation(job, structs.EvalTriggerJobRegister)
		if n := placed[job.NamespacedID()]; n > 0 && n == job.Instances() {
			ev.Status, ev.StatusDescription = structs.EvalStatusComplete, "placed with its stage"
			ev.QueuedAllocations = map[string]int{}
			for _, g := range job.TaskGroups {
				ev.QueuedAllocations[g.Name] = 0
			}
		}
		x.mint(ev)
	}
	x.seed = ""
}
