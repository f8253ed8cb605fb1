package projecttable

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// upsert makes a project, or replaces it. Its calendar stays, so that it refuses to take a step that the calendar uses.
func (x Edit) upsert(e *structs.ProjectUpsertEntry) error {
	if err := e.Project.Validate(); err != nil {
		return err
	}
	now := e.Project.Copy()
	now.Canonicalize()
	now.CreateIndex, now.ModifyIndex = x.Index, x.Index
	was := memtable.Get[structs.Project](x.Rows, Projects, byID, now.Name)
	have := uint64(0)
	if was != nil {
		have, now.CreateIndex = was.ModifyIndex, was.CreateIndex
	}
	if e.CAS && e.CheckIndex != have {
		return changedMeanwhile("project", now.Name, have, e.CheckIndex)
	}
	if was == nil && memtable.Count(x.Rows, Projects) >= structs.MaxProjects {
		return structs.Errorf(structs.CodeTooLarge, "project %q: there are %d projects, and no more are allowed", now.Name, structs.MaxProjects).
			WithHint("`nomadish project delete` removes unused ones")
	}
	steps, err := x.stepsOf(now)
	if err != nil {
		return err
	}
	if err := x.checkStepsUsed(now.Name, steps); err != nil {
		return err
	}
	x.Put(Projects, now)
	note(x, now.Name, was, now)
	return nil
}

// stepsOf returns the steps of a project. It returns an error of CodeBadRequest if there is no flow that it names.
func (x Edit) stepsOf(p *structs.Project) ([]string, error) {
	if p.Flow == "" {
		return p.Steps, nil
	}
	f := memtable.Get[structs.Flow](x.Rows, Flows, byID, p.Flow)
	if f == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "project %q: flow: there is no flow %q", p.Name, p.Flow).
			WithHint("`nomadish flow list` lists those that there are, and `nomadish flow apply` makes one")
	}
	return f.Steps, nil
}

// delete removes a project, its calendar and the edits of that. Jobs may name a project that does not exist, so that they keep nobody
// from it.
func (x Edit) delete(e *structs.ProjectDeleteEntry) error {
	was := memtable.Get[structs.Project](x.Rows, Projects, byID, e.Name)
	if was == nil {
		return memtable.Missing("project", e.Name)
	}
	for _, week := range slices.Collect(memtable.Rows[structs.ProjectWeek](x.Rows, false, Weeks, byPrefix, e.Name, "")) {
		x.Drop(Weeks, week)
	}
	for _, edit := range slices.Collect(memtable.Rows[structs.CalendarEdit](x.Rows, false, Edits, byPrefix, e.Name, "")) {
		x.Drop(Edits, edit)
	}
	x.Drop(Projects, was)
	note(x, was.Name, was, nil)
	return nil
}

// editCalendar replaces the rows of a week of a project's calendar, and keeps what they were. Rows that change nothing leave the week as
// it is, without an edit.
func (x Edit) editCalendar(e *structs.ProjectCalendarEntry) error {
	if err := e.Week.Validate(); err != nil {
		return err
	}
	now := e.Week.Copy()
	was := memtable.Get[structs.ProjectWeek](x.Rows, Weeks, byID, now.Project, now.Week)
	if err := x.checkWeek(e, was); err != nil {
		return err
	}
	now.CreateIndex, now.ModifyIndex = x.Index, x.Index
	var before []structs.CalendarRow
	if was != nil {
		before, now.CreateIndex = was.Rows, was.CreateIndex
	}
	if slices.Equal(before, now.Rows) {
		return nil
	}
	if err := x.checkSlots(was, now); err != nil {
		return err
	}
	if err := x.giveCells(was, now); err != nil {
		return err
	}
	x.Put(Weeks, now)
	edit := &structs.CalendarEdit{Project: now.Project, Week: now.Week, Index: x.Index, Time: x.Now, By: e.By, Before: before, After: now.Rows}
	x.Put(Edits, edit)
	note(x, now.Project, nil, edit)
	x.forgetCalendar(now.Project)
	return nil
}

// week is a length of time that no week has by much: clocks are set by hours.
const week = int64(7 * 24 * 3600 * 1e9)

// checkWeek returns an error if an edit may not be made at its time, comes too late, or is of a step that the project does not have.
func (x Edit) checkWeek(e *structs.ProjectCalendarEntry, was *structs.ProjectWeek) error {
	w := e.Week
	p := memtable.Get[structs.Project](x.Rows, Projects, byID, w.Project)
	if p == nil {
		return memtable.Missing("project", w.Project)
	}
	if w.To <= x.Now {
		return structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: the week is over since %s", w.Project, w.Week, time.Unix(0, w.To).UTC().Format(time.RFC3339)).
			WithHint("`nomadish project calendar %s` shows the weeks that may be edited", w.Project)
	}
	if w.From-x.Now > (structs.MaxWeeksAhead+1)*week {
		return structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: weeks up to %d ahead may be edited", w.Project, w.Week, structs.MaxWeeksAhead)
	}
	have, rows := uint64(0), []structs.CalendarRow(nil)
	if was != nil {
		have, rows = was.ModifyIndex, was.Rows
	}
	if e.CAS && e.CheckIndex != have {
		return structs.Errorf(structs.CodeConflict, "project %q: calendar %q: it was last edited at index %d%s, not %d, and has %s now", w.Project, w.Week, have,
			x.editorOf(w, have), e.CheckIndex, structs.RowsText(rows)).
			WithHint("`nomadish project edits %s` shows the edits; read the week again, and repeat the change", w.Project)
	}
	steps, err := x.stepsOf(p)
	if err != nil {
		return err
	}
	for i, r := range w.Rows {
		if r.Step != "" && !slices.Contains(steps, r.Step) {
			known := "the project has no steps"
			if len(steps) > 0 {
				known = "its steps are " + strings.Join(steps, ", ")
			}
			return structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: slots %d: step: the project has no step %q", w.Project, w.Week, i+1, r.Step).WithHint("%s", known)
		}
	}
	return nil
}

// editorOf describes who made the edit of a week at an index, if the edit is kept: " by lead".
func (x Edit) editorOf(w *structs.ProjectWeek, index uint64) string {
	edit := memtable.Get[structs.CalendarEdit](x.Rows, Edits, byID, w.Project, index)
	if edit == nil {
		return ""
	}
	return " by " + cmp.Or(edit.By, "operator")
}

// forgetCalendar drops the weeks of a project that have been over for long, and its oldest edits if there are too many.
func (x Edit) forgetCalendar(project string) {
	var old []*structs.ProjectWeek
	for w := range memtable.Rows[structs.ProjectWeek](x.Rows, false, Weeks, byPrefix, project, "") {
		if w.To < x.Now-structs.MaxWeeksKept*week {
			old = append(old, w)
		}
	}
	for _, w := range old {
		x.Drop(Weeks, w)
	}
	edits := slices.Collect(memtable.Rows[structs.CalendarEdit](x.Rows, false, Edits, byPrefix, project, ""))
	for _, e := range edits[:max(0, len(edits)-structs.MaxCalendarEdits)] {
		x.Drop(Edits, e)
	}
}
