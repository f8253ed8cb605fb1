// Package projecthistory keeps what projects had and used (docs/design/semantics.md, part 4): by week and type of slots, with the last runs of each
// project. It outlives jobs and allocations.
//
// What a project has and uses changes only when an entry is applied, so that between two entries it is a level that lasts: a row of the table
// Usage holds the levels since a time, and their sums up to then. Where the week changes the levels are carried over at the turn. Which week it
// is the log states; the package never reads a clock or a time zone. It decides nothing about what runs.
package projecthistory

import (
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// The tables.
const (
	Usage = "project_usage"   // *structs.ProjectUsage
	Runs  = "project_history" // *structs.ProjectHistory
)

const (
	byID     = memtable.ByID
	byPrefix = memtable.ByPrefix
)

// Indexes returns the tables with their indexes.
func Indexes() map[string][]*memtable.Index {
	return map[string][]*memtable.Index{
		Usage: {memtable.UniqueBy(func(u *structs.ProjectUsage) []byte { return memtable.Key(u.Project, u.Week) })},
		Runs:  {memtable.UniqueBy(func(h *structs.ProjectHistory) []byte { return memtable.Key(h.Project) })},
	}
}

// Moves is what one entry changes, gathered while it is applied: an entry of 10,000 placements writes one row. The zero value is nothing.
type Moves struct {
	levels map[Class]structs.SlotLevels
	counts map[Class]*structs.SlotCounts // by total
	runs   map[string][]*structs.ProjectRun
	given  map[string]bool
}

// Empty reports whether there is nothing to take in.
func (m *Moves) Empty() bool { return len(m.levels) == 0 && len(m.given) == 0 }

// Given notes that what a project is given may have changed, or the project itself.
func (m *Moves) Given(project string) {
	if m.given == nil {
		m.given = map[string]bool{}
	}
	m.given[project] = true
}

// Alloc notes that an allocation has changed; was or now may be nil. waited is how long it waited for its placement, if was is nil; run is its
// record, without what its terms state, if it has ended just now.
func (m *Moves) Alloc(was, now *structs.Allocation, waited time.Duration, run *structs.ProjectRun) {
	if m.levels == nil {
		m.levels, m.counts, m.runs = map[Class]structs.SlotLevels{}, map[Class]*structs.SlotCounts{}, map[string][]*structs.ProjectRun{}
	}
	if t := TermsOf(was); t != nil {
		c := classOf(was, t)
		m.levels[c] = m.levels[c].Add(LevelsOf(was, t).Times(-1))
	}
	t := TermsOf(now)
	if t == nil {
		return
	}
	c := classOf(now, t)
	m.levels[c] = m.levels[c].Add(LevelsOf(now, t))
	counts := m.counts[c.total()]
	if counts == nil {
		counts = &structs.SlotCounts{}
		m.counts[c.total()] = counts
	}
	if was == nil {
		counts.Placed++
		counts.Waits.Observe(waited)
	} else {
		counts.Requeued += max(0, now.Requeues-was.Requeues)
		if now.Suspended() && !was.Suspended() {
			counts.Suspended++
		}
	}
	if run != nil {
		run.Step, run.User, run.Type, run.Cost = t.Step, t.User, t.Type, max(1, t.Cost)
		run.OnSlots = now.AllocatedResources.Shared.Terms.Claim == structs.ClaimSlots
		if run.End == structs.RunCompleted {
			counts.Completed++
		}
		m.runs[t.Project] = append(m.runs[t.Project], run)
	}
}

// Edit is a log entry that ends.
type Edit struct {
	memtable.Entry                   // its Now never goes back
	Week           *structs.WeekSpan // nil: it is not known yet
	// Turned: which week it is may have changed.
	Turned bool
	// Projects are all that there are, if Turned; Known reports whether there is one of a name.
	Projects []string
	Known    func(name string) bool
	// SlotsOf returns the slots that a project is given now, by type.
	SlotsOf func(name string) map[string]int
}

// Settle takes in what an entry has changed. It returns the names of the projects whose mean run time is another one now, sorted.
func (x Edit) Settle(live *Live, tok *persist.Token, m *Moves) (means []string) {
	touched := map[string]bool{}
	for c, by := range m.levels { // order does not matter: sums
		live.move(tok, c, by)
		touched[c.Project] = true
	}
	for name := range m.given { // order does not matter: a set
		touched[name] = true
	}
	if x.Turned {
		for _, name := range x.Projects {
			touched[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		switch {
		case !x.Known(name):
			x.forget(name)
		case x.update(live, m, name):
			means = append(means, name)
		}
	}
	return means
}

// forget drops all of a project.
func (x Edit) forget(name string) {
	for _, u := range slices.Collect(memtable.Rows[structs.ProjectUsage](x.Rows, false, Usage, byPrefix, name, "")) {
		x.Drop(Usage, u)
	}
	if h := memtable.Get[structs.ProjectHistory](x.Rows, Runs, byID, name); h != nil {
		x.Drop(Runs, h)
	}
}

// update takes in what has changed of a project. It reports whether its mean run time is another one now.
func (x Edit) update(live *Live, m *Moves, name string) (mean bool) {
	h := structs.ProjectHistory{Project: name}
	was := memtable.Get[structs.ProjectHistory](x.Rows, Runs, byID, name)
	if was != nil {
		h = *was
	}
	if x.Week != nil {
		x.count(live, m, &h)
	}
	for _, run := range m.runs[name] {
		to := &h.Others
		if run.End == structs.RunCompleted {
			to = &h.Completed
		}
		list := append(slices.Clip(*to), run) // what is stored is shared
		*to = list[max(0, len(list)-structs.MaxProjectRuns):]
	}
	if was == nil && h.Week == "" && len(m.runs[name]) == 0 || was != nil && was.Week == h.Week && len(m.runs[name]) == 0 {
		return false
	}
	h.ModifyIndex = x.Index
	x.Put(Runs, &h)
	return h.MeanRun() != was.MeanRun()
}

// count moves the usage of a project's week on to now.
func (x Edit) count(live *Live, m *Moves, h *structs.ProjectHistory) {
	u, since, known := x.open(h)
	levels, have := map[string]structs.SlotLevels{}, map[string]bool{}
	ascend(&live.totals, h.Project, func(c Class, l structs.SlotLevels) { levels[c.Type], have[c.Type] = l, true })
	given := map[string]int{}
	if !known || m.given[h.Project] || x.Turned {
		given = x.SlotsOf(h.Project)
	} else {
		for _, t := range u.Types {
			given[t.Type] = int(t.Now.Given)
		}
	}
	for c := range m.counts { // order does not matter: a set
		if c.Project == h.Project {
			have[c.Type] = true
		}
	}
	for name := range given { // order does not matter: a set
		have[name] = have[name] || given[name] > 0
	}
	for _, t := range u.Types {
		have[t.Type] = true
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if u.Type(name) == nil && have[name] && len(u.Types) < structs.MaxUsageTypes {
			u.Types = append(u.Types, &structs.SlotUsage{Type: name, At: since})
		}
	}
	if len(u.Types) == 0 {
		if h.Week != "" {
			h.Week = u.Week // nothing lasted over the turn: what comes later counts from then on
		}
		return
	}
	slices.SortFunc(u.Types, func(a, b *structs.SlotUsage) int { return Class{Type: a.Type}.Compare(Class{Type: b.Type}) })
	for _, t := range u.Types {
		t.Now = levels[t.Type]
		t.Now.Given = int64(given[t.Type])
		if counts := m.counts[(Class{Project: h.Project, Type: t.Type})]; counts != nil {
			t.Counts.Add(counts)
		}
	}
	u.ModifyIndex, h.Week = x.Index, u.Week
	x.Put(Usage, u)
}

// open returns the usage of the week that it is, a copy that has been moved on to now, and ends that of the week before. since is the time from
// which types count that it does not have yet, in Unix milliseconds. known reports whether it had the levels of a moment ago.
func (x Edit) open(h *structs.ProjectHistory) (u *structs.ProjectUsage, since int64, known bool) {
	w := x.Week
	from := min(max(w.From, x.Now), w.To)
	last := memtable.Get[structs.ProjectUsage](x.Rows, Usage, byID, h.Project, h.Week)
	if last != nil && last.Week == w.Week {
		row := *last
		row.From, row.To = w.From, w.To // by another calendar, perhaps
		return row.Advanced(x.Now), from / int64(time.Millisecond), true
	}
	if last != nil {
		ended := last.Advanced(x.Now)
		for _, t := range ended.Types {
			t.Now = structs.SlotLevels{}
		}
		ended.ModifyIndex = x.Index
		x.Put(Usage, ended)
		from = max(w.From, min(x.Now, last.To)) // what lasted over the turn counts from the turn on
		x.drop(h.Project)
	}
	u = &structs.ProjectUsage{Project: h.Project, Week: w.Week, From: w.From, To: w.To}
	if again := memtable.Get[structs.ProjectUsage](x.Rows, Usage, byID, h.Project, w.Week); again != nil {
		u = again.Advanced(again.From) // a copy
		u.From, u.To = w.From, w.To
		for _, t := range u.Types {
			t.At = from / int64(time.Millisecond)
		}
	}
	return u, from / int64(time.Millisecond), false
}

// week is a length of time that no week has by much: clocks are set by hours.
const week = int64(7 * 24 * time.Hour)

// drop forgets the weeks of a project that have been over for long.
func (x Edit) drop(project string) {
	var old []*structs.ProjectUsage
	for u := range memtable.Rows[structs.ProjectUsage](x.Rows, false, Usage, byPrefix, project, "") {
		if u.To < x.Week.From-structs.MaxWeeksKept*week {
			old = append(old, u)
		}
	}
	for _, u := range old {
		x.Drop(Usage, u)
	}
}
