package projecttable

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// upsertFlow makes a flow, or replaces it. It refuses to take a step that a calendar uses.
func (x Edit) upsertFlow(e *structs.FlowUpsertEntry) error {
	if err := e.Flow.Validate(); err != nil {
		return err
	}
	now := e.Flow.Copy()
	now.CreateIndex, now.ModifyIndex = x.Index, x.Index
	was := memtable.Get[structs.Flow](x.Rows, Flows, byID, now.Name)
	have := uint64(0)
	if was != nil {
		have, now.CreateIndex = was.ModifyIndex, was.CreateIndex
	}
	if e.CAS && e.CheckIndex != have {
		return changedMeanwhile("flow", now.Name, have, e.CheckIndex)
	}
	if was == nil && memtable.Count(x.Rows, Flows) >= structs.MaxFlows {
		return structs.Errorf(structs.CodeTooLarge, "flow %q: there are %d flows, and no more are allowed", now.Name, structs.MaxFlows).
			WithHint("`nomadish flow delete` removes unused ones")
	}
	for p := range memtable.Rows[structs.Project](x.Rows, false, Projects, byFlow, now.Name) {
		if err := x.checkStepsUsed(p.Name, now.Steps); err != nil {
			return structs.Errorf(structs.CodeOf(err), "flow %q: %w", now.Name, err)
		}
	}
	x.Put(Flows, now)
	note(x, now.Name, was, now)
	return nil
}

// deleteFlow removes a flow that no project follows.
func (x Edit) deleteFlow(e *structs.FlowDeleteEntry) error {
	was := memtable.Get[structs.Flow](x.Rows, Flows, byID, e.Name)
	if was == nil {
		return memtable.Missing("flow", e.Name)
	}
	for p := range memtable.Rows[structs.Project](x.Rows, false, Projects, byFlow, e.Name) {
		return structs.Errorf(structs.CodeConflict, "flow %q: project %q follows it", e.Name, p.Name).
			WithHint("apply the project with another flow or with its own steps first")
	}
	x.Drop(Flows, was)
	note(x, was.Name, was, nil)
	return nil
}

// changedMeanwhile is the error of a check-and-set that comes too late.
func changedMeanwhile(what, name string, have, want uint64) error {
	if have == 0 {
		return structs.Errorf(structs.CodeConflict, "%s %q: there is none, so it was not last changed at index %d", what, name, want)
	}
	return structs.Errorf(structs.CodeConflict, "%s %q: it was last changed at index %d, not %d", what, name, have, want).
		WithHint("read it again, and repeat the change")
}

// checkStepsUsed returns an error if a calendar has slots, in this week or a later one, for a step that its project is not to have any more.
func (x Edit) checkStepsUsed(project string, steps []string) error {
	for w := range memtable.Rows[structs.ProjectWeek](x.Rows, false, Weeks, byPrefix, project, "") {
		if w.To <= x.Now {
			continue
		}
		for _, r := range w.Rows {
			if r.Step != "" && !slices.Contains(steps, r.Step) {
				return structs.Errorf(structs.CodeConflict, "project %q: steps: the calendar of %s has %s, and the step %q would be gone", project, w.Week, r, r.Step).
					WithHint("`nomadish project calendar` shows the weeks; remove the slots of the step from them first")
			}
		}
	}
	return nil
}
