package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// shownProject makes empty lists of those that a project lacks.
func shownProject(p *structs.ProjectStatus) *structs.ProjectStatus {
	p.Users, p.Groups, p.Managers, p.Steps, p.Slots = list(p.Users), list(p.Groups), list(p.Managers), list(p.Steps), list(p.Slots)
	return p
}

func projectList(r *request) (any, error) {
	var reply structs.ProjectListReply
	if err := r.read(wire.MethodProjectList, &structs.ListRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	for _, p := range reply.Projects {
		shownProject(p)
	}
	return list(reply.Projects), nil
}

func projectGet(r *request) (any, error) {
	var reply structs.ProjectReply
	if err := r.read(wire.MethodProjectGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	if reply.Project == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "project %q not found", structs.Clip(r.id(), structs.MaxMemberName))
	}
	return shownProject(reply.Project), nil
}

// projectUpsert makes or replaces the project of the path. Its calendar stays.
func projectUpsert(r *request) (any, error) {
	args := structs.ProjectUpsertRequest{Project: &structs.Project{}, WriteRequest: r.write()}
	if err := r.decodeKnown(args.Project, structs.ProjectStatus{}); err != nil {
		return nil, err
	}
	err := r.setName(&args.Project.Name)
	if err != nil {
		return nil, err
	}
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	if args.Force, err = r.bool("force", false); err != nil {
		return nil, err
	}
	return written(r, wire.MethodProjectUpsert, &args)
}

func projectDelete(r *request) (any, error) {
	return written(r, wire.MethodProjectDelete, &structs.ProjectDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}

// projectCalendar shows the weeks of a project, or the one that the parameter week names.
func projectCalendar(r *request) (any, error) {
	var reply structs.ProjectCalendarReply
	args := structs.ProjectCalendarQuery{Project: r.id(), Week: r.query.Get("week"), QueryOptions: r.opts}
	if err := r.read(wire.MethodProjectCalendar, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Calendar == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "project %q not found", structs.Clip(r.id(), structs.MaxMemberName))
	}
	for _, w := range reply.Calendar.Weeks {
		w.Rows = list(w.Rows)
	}
	return reply.Calendar, nil
}

// projectCalendarEdit gives the week of the parameter the rows of the body, in place of all that it has.
func projectCalendarEdit(r *request) (any, error) {
	args := structs.ProjectCalendarRequest{Project: r.id(), Week: r.query.Get("week"), WriteRequest: r.write()}
	if args.Week == "" {
		return nil, badRequest("week is missing: name the week whose slots the body states, as in ?week=2026-W48")
	}
	var body struct{ Rows *[]structs.CalendarRow }
	if err := r.decodeKnown(&body, structs.CalendarWeek{}); err != nil {
		return nil, err
	}
	if body.Rows == nil {
		return nil, badRequest("Rows: missing: state all rows of the week, or [] to remove them")
	}
	args.Rows = *body.Rows
	var err error
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	if args.Force, err = r.bool("force", false); err != nil {
		return nil, err
	}
	return written(r, wire.MethodProjectCalendarEdit, &args)
}

func projectEdits(r *request) (any, error) {
	var reply structs.ProjectEditsReply
	if err := r.read(wire.MethodProjectEdits, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	if reply.Edits == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "project %q not found", structs.Clip(r.id(), structs.MaxMemberName))
	}
	for _, e := range reply.Edits {
		e.Before, e.After = list(e.Before), list(e.After)
	}
	return reply.Edits, nil
}

// projectReport shows what a project had and used, in all weeks that are kept or in that of the parameter week.
func projectReport(r *request) (any, error) {
	var reply structs.ProjectReportReply
	args := structs.ProjectReportQuery{Project: r.id(), Week: r.query.Get("week"), QueryOptions: r.opts}
	if err := r.read(wire.MethodProjectReport, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Report == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "project %q not found", structs.Clip(r.id(), structs.MaxMemberName))
	}
	reply.Report.Weeks = list(reply.Report.Weeks)
	for _, w := range reply.Report.Weeks {
		w.Types = list(w.Types)
	}
	return reply.Report, nil
}
