package project

import (
	"context"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// pending is the requests of jobs of a project that wait.
type pending struct {
	job     *structs.Job
	request *structs.PendingRequest
}

// pendingOf returns what waits of projects, by project; of one alone if it is named.
func pendingOf(ws *state.WatchSet, snap *state.Snapshot, project string) map[string][]pending {
	out := map[string][]pending{}
	for r := range snap.Requests().Waiting(ws, structs.AllNamespaces) {
		job := snap.Job(nil, r.Namespace, r.JobID)
		if job != nil && job.Project != "" && (project == "" || job.Project == project) {
			out[job.Project] = append(out[job.Project], pending{job, r})
		}
	}
	return out
}

// usage is the lines of a project's slots while they are filled in.
type usage struct {
	status *structs.ProjectStatus
	rows   []structs.CalendarRow
	match  scheduler.RowMatcher
}

// setUsage states what instances of a project use of its rows, and which wait.
func (e *Endpoint) setUsage(ws *state.WatchSet, snap *state.Snapshot, s *structs.ProjectStatus, rows []structs.CalendarRow, waiting []pending) {
	u := usage{s, rows, scheduler.NewRowMatcher(rows)}
	has, used := scheduler.ProjectUse(snap.World(), s.Name)
	for i := range rows {
		if slices.Equal(rows, has) { // they differ for a moment when a week begins
			s.Slots[i].Used = used[i]
		}
		s.Slots[i].Lent = max(0, s.Slots[i].Given-s.Slots[i].Used)
	}
	snap.ProjectUsage(ws).Now(s.Name, func(c state.ProjectClass, l structs.SlotLevels) {
		if l.Borrowed == 0 && l.Beside == 0 && l.Guards == 0 {
			return
		}
		line := u.line(u.match.OfTerms(&structs.SlotTerms{Project: c.Project, Step: c.Step, Type: c.Type, User: c.User, Groups: c.Groups}, c.Job), c.Type)
		line.Borrowed += int(l.Borrowed)
		line.Beside += int(l.Beside)
		line.Guards += int(l.Guards)
	})
	now := e.Now().UnixNano()
	for _, p := range waiting {
		line := u.line(u.match.OfJob(p.job))
		line.Pending += p.request.Missing
		line.OldestPendingSeconds = max(line.OldestPendingSeconds, float64(now-p.request.Since)/1e9)
	}
}

// line returns the line of a row or, if there is no row for it, the line of a type without slots.
func (u usage) line(row int, slotType string) *structs.ProjectSlots {
	if row >= 0 {
		return u.status.Slots[row]
	}
	for _, s := range u.status.Slots[len(u.rows):] {
		if s.Type == slotType {
			return s
		}
	}
	line := &structs.ProjectSlots{Type: slotType}
	u.status.Slots = append(u.status.Slots, line)
	return line
}

// usageIndex returns the index that last changed what is shown of the use of slots.
func usageIndex(snap *state.Snapshot) uint64 {
	return max(projectsIndex(snap), snap.ProjectUsage(nil).NowIndex(), snap.ProjectUsage(nil).Index(), snap.TableIndex(state.TableRequests))
}

// report answers what a project had and used.
func (e *Endpoint) report(ctx context.Context, args *structs.ProjectReportQuery) (*structs.ProjectReportReply, error) {
	reply := &structs.ProjectReportReply{}
	if args.Week != "" {
		if _, err := parseWeek(args.Project, args.Week); err != nil {
			return nil, err
		}
	}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Report = nil
		weeks, err := calendarOf(ws, snap)
		if err != nil {
			return 0, err
		}
		if snap.Projects(ws).Get(args.Project) == nil {
			return projectsIndex(snap), nil
		}
		reply.Report = &structs.ProjectReport{
			Project: args.Project, TimeZone: weeks.Zone().String(), Weeks: []*structs.ReportWeek{},
			MeanRunSeconds: snap.ProjectUsage(ws).History(args.Project).MeanRun().Seconds(),
		}
		for u := range snap.ProjectUsage(ws).Weeks(args.Project) {
			if args.Week == "" || args.Week == u.Week {
				reply.Report.Weeks = append(reply.Report.Weeks, u.Report(e.Now().UnixNano()))
			}
		}
		return max(projectsIndex(snap), snap.ProjectUsage(nil).Index()), nil
	})
}
