package state

import (
	"fmt"
	"iter"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecthistory"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecttable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// ProjectClass is what the rows of a calendar look at of an instance.
type ProjectClass = projecthistory.Class

// ProjectUsage reads what the projects of a snapshot had and used, and what they use now.
type ProjectUsage struct {
	v  *view
	ws *WatchSet
}

// ProjectUsage returns the reads of what projects had and used, watched by ws.
func (s *Snapshot) ProjectUsage(ws *WatchSet) ProjectUsage { return ProjectUsage{s.v, ws} }

// Weeks walks what a project had and used, the last week first. The row of the week that it is states what it has and uses now.
func (u ProjectUsage) Weeks(project string) iter.Seq[*structs.ProjectUsage] {
	return many[structs.ProjectUsage](u.v, u.ws, true, TableProjectUsage, byPrefix, project, "")
}

// History returns the last runs of a project; nil if there are none.
func (u ProjectUsage) History(project string) *structs.ProjectHistory {
	return one[structs.ProjectHistory](u.v, u.ws, TableProjectHistory, byID, project)
}

// Now calls yield for what instances of a project use now, by what rows of a calendar look at.
func (u ProjectUsage) Now(project string, yield func(ProjectClass, structs.SlotLevels)) {
	u.ws.add(u.v, TableProjectUsage, memtable.Open(u.v.txn, false, TableProjectUsage, byPrefix, project, "").WatchCh())
	u.v.live.ClassesOf(project, yield)
}

// Index is the index that last changed anything of it.
func (u ProjectUsage) Index() uint64 {
	s := &Snapshot{u.v}
	return max(s.TableIndex(TableProjectUsage), s.TableIndex(TableProjectHistory))
}

// NowIndex is the index that last changed what projects are at present: their rows, calendars and flows, and which week it is.
func (u ProjectUsage) NowIndex() uint64 {
	s := &Snapshot{u.v}
	return max(s.TableIndex(projecttable.Projects), s.TableIndex(projecttable.Weeks), s.TableIndex(projecttable.Flows), s.TableIndex(TableClaimsTime))
}

// Week returns the week whose use by projects is counted, nil if none was stated, and the time up to which what is owned has been moved on, in
// Unix nanoseconds: a week that is stated has to come later.
func (u ProjectUsage) Week() (week *structs.WeekSpan, after int64) {
	if row := get[structs.ClaimsTime](u.v.txn, TableClaimsTime, byID); row != nil {
		return row.Week, row.Now
	}
	return nil, 0
}

// countSlots counts an allocation that has changed for its project, if it is of one; was or now may be nil.
func (p projects) countSlots(was, now *structs.Allocation) {
	if projecthistory.TermsOf(was) == nil && projecthistory.TermsOf(now) == nil {
		return
	}
	var waited time.Duration
	var run *structs.ProjectRun
	switch {
	case now == nil:
	case was == nil:
		waited = p.waited(now)
	case now.ClientTerminal() && !was.ClientTerminal():
		run = p.runOf(now)
	}
	p.x.moves.Alloc(was, now, waited, run)
}

// waited returns how long an allocation that has just been placed waited: since its request entered the queue, or if that never waited, since
// the evaluation that placed it was made.
func (p projects) waited(a *structs.Allocation) time.Duration {
	x := p.x
	var since int64
	if r := (requestRows{x}).request(a.Namespace, a.JobID, a.TaskGroup); r != nil && r.Since > 0 {
		since = r.Since
	} else if e := named[structs.Evaluation](x.rows, TableEvals, a.EvalID); e != nil {
		since = e.CreateTime
		if !e.WaitUntil.IsZero() {
			since = max(since, e.WaitUntil.UnixNano())
		}
	}
	if since <= 0 {
		return 0
	}
	return time.Duration(max(0, a.CreateTime-since))
}

// runOf returns the record of an allocation that has just ended, and of which the history has its own.
func (p projects) runOf(a *structs.Allocation) *structs.ProjectRun {
	x := p.x
	run := &structs.ProjectRun{AllocID: a.ID, Placed: a.CreateTime, Ended: x.now}
	if h := x.past.Get(a.ID); h != nil {
		run.Started, run.Ended = h.Started, h.Ended
	}
	switch {
	case a.ServerTerminal() && p.requeuedHere(a):
		run.End = structs.RunRequeued
	case a.ClientStatus == structs.AllocClientLost:
		run.End = structs.RunLost
	case a.ServerTerminal():
		run.End = structs.RunStopped
	case a.ClientStatus == structs.AllocClientFailed:
		run.End = structs.RunFailed
	default:
		run.End = structs.RunCompleted
	}
	return run
}

// requeuedHere reports whether an allocation was requeued itself, and not only an earlier one of its instance.
func (p projects) requeuedHere(a *structs.Allocation) bool {
	before := 0
	if a.PreviousAllocation != "" {
		if r := p.x.allocs.Get(a.PreviousAllocation); r != nil {
			before = r.Brief().Requeues
		}
	}
	return a.Requeues > before
}

// settleHistory ends an entry: what projects had and used is moved on to it. The World has projects anew whose objective depends on their mean run
// time, if that has changed.
func (p projects) settleHistory() {
	x := p.x
	turned := x.tables.has(TableClaimsTime)
	if x.moves.Empty() && !turned {
		return
	}
	time := get[structs.ClaimsTime](x.rows, TableClaimsTime, byID)
	edit := projecthistory.Edit{
		Entry: tableEdit{x}.entry(), Turned: turned,
		Known:   func(name string) bool { return p.reads().Get(name) != nil },
		SlotsOf: func(name string) map[string]int { return structs.RowsTotal(p.now(name, claimsTime(x.rows)).Rows) },
	}
	if time != nil {
		edit.Now, edit.Week = max(edit.Now, time.Now), time.Week
	}
	if turned {
		for row := range rows[structs.Project](x.rows, false, projecttable.Projects, byID) {
			edit.Projects = append(edit.Projects, row.Name)
		}
	}
	for _, name := range edit.Settle(&x.live, x.tok, &x.moves) {
		if now := p.now(name, claimsTime(x.rows)); now.Throughput != nil {
			scheduler.SetProject(x.edit, name, now)
		}
	}
}

// now returns a project as it counts at a time, see projectNow.
func (p projects) now(name string, at int64) *structs.ProjectNow {
	return projectNow(p.x.rows, p.reads(), name, at)
}

// projectNow returns a project as it counts at a time, with the mean run time if its objective depends on that; nil if there is none of the name.
func projectNow(r reader, reads Projects, name string, at int64) *structs.ProjectNow {
	now := reads.Now(name, at)
	if now != nil && now.Throughput != nil {
		now.MeanRun = get[structs.ProjectHistory](r, TableProjectHistory, byID, name).MeanRun()
	}
	return now
}

// liveOf counts what allocations amount to for their projects.
func liveOf(allocs *alloctable.Table) (live projecthistory.Live) {
	tok := persist.NewToken()
	for r := range allocs.All {
		if res := r.Resources(); res != nil && res.Shared.Terms != nil && res.Shared.Terms.Slots != nil {
			live.Add(tok, r.Brief())
		}
	}
	return live
}

// faults returns what is wrong of what projects use now: it follows from the allocations, and the rows of the week state it.
func (u ProjectUsage) faults() (out []string) {
	if want := liveOf(u.v.allocs); !want.Equal(&u.v.live) {
		out = append(out, "what instances of projects use: differs from their allocations")
	}
	is, _ := u.Week()
	for h := range rows[structs.ProjectHistory](u.v.txn, false, TableProjectHistory, byID) {
		row := get[structs.ProjectUsage](u.v.txn, TableProjectUsage, byID, h.Project, h.Week)
		if row == nil || is == nil || is.Week != h.Week {
			continue
		}
		for _, t := range row.Types {
			want := u.v.live.Levels(h.Project, t.Type)
			want.Given = t.Now.Given
			if t.Now != want {
				out = append(out, fmt.Sprintf("usage of project %s, type %s: have %+v, want %+v", h.Project, t.Type, t.Now, want))
			}
		}
	}
	return out
}
