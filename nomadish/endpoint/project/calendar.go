package project

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/week"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// weeksShown is how many weeks after this one a calendar shows, whether or not they have slots.
const weeksShown = 12

func (e *Endpoint) calendar(ctx context.Context, args *structs.ProjectCalendarQuery) (*structs.ProjectCalendarReply, error) {
	reply := &structs.ProjectCalendarReply{}
	only, err := week.ID{}, error(nil)
	if args.Week != "" {
		if only, err = parseWeek(args.Project, args.Week); err != nil {
			return nil, err
		}
	}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Calendar = nil
		weeks, err := calendarOf(ws, snap)
		if err != nil {
			return 0, err
		}
		if snap.Projects(ws).Get(args.Project) != nil {
			reply.Calendar = e.weeks(ws, snap, weeks, args.Project, only)
		}
		return projectsIndex(snap), nil
	})
}

// weeks returns one week of a project or, if it is the zero ID, this week, those that are shown after it and later ones with slots.
func (e *Endpoint) weeks(ws *state.WatchSet, snap *state.Snapshot, weeks week.Calendar, project string, only week.ID) *structs.ProjectCalendar {
	stored := map[string]*structs.ProjectWeek{}
	var last week.ID
	for w := range snap.Projects(ws).Weeks(project) {
		stored[w.Week] = w
		if id, err := week.Parse(w.Week); err == nil && len(w.Rows) > 0 && id.Compare(last) > 0 {
			last = id
		}
	}
	first := weeks.At(e.Now())
	if shown := first.Add(weeksShown); shown.Compare(last) > 0 {
		last = shown
	}
	if only != (week.ID{}) {
		first, last = only, only
	}
	out := &structs.ProjectCalendar{Project: project, TimeZone: weeks.Zone().String()}
	for id := first; id.Compare(last) <= 0; id = id.Add(1) {
		w := &structs.CalendarWeek{Week: id.String(), From: weeks.Begin(id).UTC(), To: weeks.End(id).UTC(), Rows: []structs.CalendarRow{}}
		if has := stored[w.Week]; has != nil {
			w.Index, w.Rows = has.ModifyIndex, append(w.Rows, has.Rows...)
			w.From, w.To = time.Unix(0, has.From).UTC(), time.Unix(0, has.To).UTC()
		}
		out.Weeks = append(out.Weeks, w)
	}
	return out
}

// weeksApart is by how many weeks the one that it is may differ, at most, from the one that it would be if weeks began at another time in another zone.
const weeksApart = 2

// currentWeek returns the week of a project's calendar that counts at a time, as the state has it: a week that was edited keeps the times that it got
// then, whatever the calendar's time zone is now. One without rows that was never edited is of the times of now.
func currentWeek(ws *state.WatchSet, snap *state.Snapshot, weeks week.Calendar, project string, now time.Time) *structs.ProjectWeek {
	this, reads := weeks.At(now), snap.Projects(ws)
	for id := this.Add(-weeksApart); id.Compare(this.Add(weeksApart)) <= 0; id = id.Add(1) {
		if w := reads.Week(project, id.String()); w != nil && w.From <= now.UnixNano() && now.UnixNano() < w.To {
			return w
		}
	}
	return &structs.ProjectWeek{Project: project, Week: this.String(), From: weeks.Begin(this).UnixNano(), To: weeks.End(this).UnixNano()}
}

func parseWeek(project, text string) (week.ID, error) {
	id, err := week.Parse(text)
	if err != nil {
		return id, structs.Errorf(structs.CodeBadRequest, "project %q: calendar: %w", project, err)
	}
	return id, nil
}

func (e *Endpoint) calendarEdit(ctx context.Context, args *structs.ProjectCalendarRequest) (*structs.WriteReply, error) {
	id, err := parseWeek(args.Project, args.Week)
	if err != nil {
		return nil, err
	}
	snap := e.Router.Snapshot()
	weeks, err := calendarOf(nil, snap)
	if err != nil {
		return nil, err
	}
	now := e.Now()
	switch this := weeks.At(now); {
	case id.Compare(this) < 0:
		return nil, structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: the week is over, and cannot be edited; this is week %s", args.Project, id, this)
	case id.Compare(this.Add(structs.MaxWeeksAhead)) > 0:
		return nil, structs.Errorf(structs.CodeBadRequest, "project %q: calendar %q: weeks up to %d ahead may be edited, the last one is %s; this is week %s", args.Project, id,
			structs.MaxWeeksAhead, this.Add(structs.MaxWeeksAhead), this)
	}
	row := &structs.ProjectWeek{Project: args.Project, Week: id.String(), Rows: args.Rows, From: weeks.Begin(id).UnixNano(), To: weeks.End(id).UnixNano()}
	if err := row.Validate(); err != nil {
		return nil, err
	}
	if err := e.mayEdit(snap, args.Project, args.User); err != nil {
		return nil, err
	}
	if !args.Force {
		if err := e.checkRows(ctx, snap, row); err != nil {
			return nil, err
		}
	}
	return rpc.Applied(ctx, e.Applier, structs.LogProjectCalendar, &structs.ProjectCalendarEntry{
		Week: row, CAS: args.CAS, CheckIndex: args.CheckIndex, By: args.User, Time: now.UnixNano(), EvalSeed: e.NewID(),
	})
}

func (e *Endpoint) edits(ctx context.Context, args *structs.IDRequest) (*structs.ProjectEditsReply, error) {
	reply := &structs.ProjectEditsReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Edits = nil
		if snap.Projects(ws).Get(args.ID) != nil {
			reply.Edits = []*structs.CalendarEdit{}
			for edit := range snap.Projects(ws).Edits(args.ID) {
				reply.Edits = append(reply.Edits, edit)
			}
		}
		return max(snap.TableIndex(state.TableProjects), snap.TableIndex(state.TableProjectEdits)), nil
	})
}
