// Package projecttable is what the state keeps of projects: their rows, the weeks of their calendars, the last edits of those, and the
// flows that they share (docs/design/semantics.md, part 4). It knows no other table but the nodes, of which it counts the slots.
package projecttable

import (
	"iter"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// The tables.
const (
	Projects = "projects"
	Weeks    = "project_weeks"
	Edits    = "project_edits"
	Flows    = "flows"
)

// Indexes of the tables.
const (
	byID     = memtable.ByID
	byPrefix = memtable.ByPrefix
	byWeek   = "week" // weeks of all projects, by week
	byFlow   = "flow" // projects, by the flow that they follow
)

// Indexes returns the tables with their indexes.
func Indexes() map[string][]*memtable.Index {
	return map[string][]*memtable.Index{
		Projects: {
			memtable.UniqueBy(func(p *structs.Project) []byte { return memtable.Key(p.Name) }),
			memtable.Also(byFlow, func(p *structs.Project) []byte {
				if p.Flow == "" {
					return nil
				}
				return memtable.Key(p.Flow)
			}),
		},
		Weeks: {
			memtable.UniqueBy(func(w *structs.ProjectWeek) []byte { return memtable.Key(w.Project, w.Week) }),
			memtable.Also(byWeek, func(w *structs.ProjectWeek) []byte { return memtable.Key(w.Week) }),
		},
		Edits: {memtable.UniqueBy(func(e *structs.CalendarEdit) []byte { return memtable.KeyNumber(e.Index, e.Project) })},
		Flows: {memtable.UniqueBy(func(f *structs.Flow) []byte { return memtable.Key(f.Name) })},
	}
}

// Reads reads the projects of a snapshot, their calendars and the flows.
type Reads struct {
	memtable.Watched
}

// Get returns a project; nil if there is none of the name.
func (r Reads) Get(name string) *structs.Project {
	return memtable.One[structs.Project](r.Watched, Projects, byID, name)
}

// List walks the projects whose name begins with prefix, by name, or backwards.
func (r Reads) List(prefix string, reverse bool) iter.Seq[*structs.Project] {
	return memtable.Many[structs.Project](r.Watched, reverse, Projects, byPrefix, prefix)
}

// Week returns a week of a project; nil if it was never edited.
func (r Reads) Week(project, week string) *structs.ProjectWeek {
	return memtable.One[structs.ProjectWeek](r.Watched, Weeks, byID, project, week)
}

// Weeks walks the weeks of a project that were edited, from the first.
func (r Reads) Weeks(project string) iter.Seq[*structs.ProjectWeek] {
	return memtable.Many[structs.ProjectWeek](r.Watched, false, Weeks, byPrefix, project, "")
}

// Edits walks the last edits of a project's calendar, the last one first.
func (r Reads) Edits(project string) iter.Seq[*structs.CalendarEdit] {
	return memtable.Many[structs.CalendarEdit](r.Watched, true, Edits, byPrefix, project, "")
}

// Steps returns the steps of a project, its flow's if it follows one.
func (r Reads) Steps(of *structs.Project) []string {
	if of.Flow == "" {
		return of.Steps
	}
	if f := r.Flow(of.Flow); f != nil {
		return f.Steps
	}
	return nil
}

// Flow returns a flow; nil if there is none of the name.
func (r Reads) Flow(name string) *structs.Flow {
	return memtable.One[structs.Flow](r.Watched, Flows, byID, name)
}

// Flows walks the flows whose name begins with prefix, by name, or backwards.
func (r Reads) Flows(prefix string, reverse bool) iter.Seq[*structs.Flow] {
	return memtable.Many[structs.Flow](r.Watched, reverse, Flows, byPrefix, prefix)
}

// Edit is a log entry about projects that is being applied.
type Edit struct {
	memtable.Entry
	// Nodes are all that are registered.
	Nodes iter.Seq[*structs.Node]
	// Slots is what the scheduler's configuration states about slots; nil: nothing.
	Slots *structs.SlotSettings
	// Reserved returns what workflows that have their reservations have reserved of nodes, summed up, by the IDs of the nodes.
	Reserved func() map[string]structs.WorkflowPart
	// CellOfSlot returns the quota cell that a slot of a type with GPUs is, without a count; nil: no node states such slots.
	CellOfSlot func(t structs.SlotType) (*structs.CellClaim, error)
	// Admit returns an error if a week gives out cells that others own. was is the week as it is stored; nil: it is not.
	Admit func(was, now *structs.ProjectWeek) error
	// Note reports what was changed; nil: there was nothing, or is nothing any more.
	Note func(key string, was, now any)
}

// Event returns the time of an entry, the type of its event, and the seed of the evaluations that it makes; the type is "" if the entry is not about
// projects.
func Event(payload any) (at int64, event, seed string) {
	switch e := payload.(type) {
	case *structs.ProjectUpsertEntry:
		return e.Time, structs.EventProjectUpserted, ""
	case *structs.ProjectDeleteEntry:
		return e.Time, structs.EventProjectDeleted, ""
	case *structs.ProjectCalendarEntry:
		return e.Time, structs.EventProjectCalendarEdited, e.EvalSeed
	case *structs.FlowUpsertEntry:
		return e.Time, structs.EventFlowUpserted, ""
	case *structs.FlowDeleteEntry:
		return e.Time, structs.EventFlowDeleted, ""
	}
	return 0, "", ""
}

// Apply applies an entry that [Event] knows: as a whole, or not at all if it returns an error.
func (x Edit) Apply(payload any) error {
	switch e := payload.(type) {
	case *structs.ProjectUpsertEntry:
		return x.upsert(e)
	case *structs.ProjectDeleteEntry:
		return x.delete(e)
	case *structs.ProjectCalendarEntry:
		return x.editCalendar(e)
	case *structs.FlowUpsertEntry:
		return x.upsertFlow(e)
	case *structs.FlowDeleteEntry:
		return x.deleteFlow(e)
	}
	return structs.Errorf(structs.CodeInternal, "log entry with a payload of type %T: it is not about projects", payload)
}

// note reports a change. A nil pointer becomes a nil interface.
func note[T any](x Edit, key string, was, now *T) {
	x.Note(key, memtable.OrNil(was), memtable.OrNil(now))
}
