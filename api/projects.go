package api

import (
	"context"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// Check is what the servers check before a change. The zero value: not who changed it last, but whether they know the users and groups.
type Check struct {
	// CAS refuses the change unless what is changed was last changed at Index; 0: unless there is none yet.
	CAS   bool
	Index uint64
	// Force accepts users and groups that the servers' user database does not have. It is for projects and their weeks.
	Force bool
}

func (c Check) query() *Query {
	q := &Query{}
	if c.CAS {
		q = q.with("cas", strconv.FormatUint(c.Index, 10))
	}
	if c.Force {
		q = q.with("force", "true")
	}
	return q
}

// List lists the projects by name, with their slots of this week.
func (p Projects) List(ctx context.Context, q *Query) (projects []*structs.ProjectStatus, meta Meta, err error) {
	meta, err = p.client.Get(ctx, "/v1/projects", q, &projects)
	return projects, meta, err
}

// Info reads a project, with its slots of this week.
func (p Projects) Info(ctx context.Context, name string, q *Query) (project *structs.ProjectStatus, meta Meta, err error) {
	meta, err = p.client.Get(ctx, "/v1/project/"+seg(name), q, &project)
	return project, meta, err
}

// Register makes a project, or replaces the one of its name. Its calendar stays. It returns the index of the change.
func (p Projects) Register(ctx context.Context, project *structs.Project, check Check) (index uint64, err error) {
	meta, err := p.client.Put(ctx, "/v1/project/"+seg(project.Name), check.query(), project, nil)
	return meta.Index, err
}

// Delete deletes a project, its calendar and the edits of that.
func (p Projects) Delete(ctx context.Context, name string) error {
	_, err := p.client.Delete(ctx, "/v1/project/"+seg(name), nil, nil)
	return err
}

// Calendar reads the calendar of a project: one week, such as 2026-W48, or if week is empty this one, the next twelve and later ones with
// slots.
func (p Projects) Calendar(ctx context.Context, name, week string, q *Query) (calendar *structs.ProjectCalendar, meta Meta, err error) {
	if week != "" {
		q = q.with("week", week)
	}
	meta, err = p.client.Get(ctx, "/v1/project/"+seg(name)+"/calendar", q, &calendar)
	return calendar, meta, err
}

// EditWeek gives a week these rows in place of all that it has. It returns the index of the edit.
func (p Projects) EditWeek(ctx context.Context, name, week string, rows []structs.CalendarRow, check Check) (index uint64, err error) {
	body := struct{ Rows []structs.CalendarRow }{append([]structs.CalendarRow{}, rows...)} // [] and not null: the servers refuse a body without rows
	meta, err := p.client.Put(ctx, "/v1/project/"+seg(name)+"/calendar", check.query().with("week", week), body, nil)
	return meta.Index, err
}

// Edits lists the last edits of a project's calendar, the last one first.
func (p Projects) Edits(ctx context.Context, name string, q *Query) (edits []*structs.CalendarEdit, meta Meta, err error) {
	meta, err = p.client.Get(ctx, "/v1/project/"+seg(name)+"/edits", q, &edits)
	return edits, meta, err
}

// Report reads what a project had and used of its slots: in one week, such as 2026-W48, or if week is empty in all that are kept, the last one first.
func (p Projects) Report(ctx context.Context, name, week string, q *Query) (report *structs.ProjectReport, meta Meta, err error) {
	if week != "" {
		q = q.with("week", week)
	}
	meta, err = p.client.Get(ctx, "/v1/project/"+seg(name)+"/report", q, &report)
	return report, meta, err
}
