package state

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state/internal/projecttable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Projects reads the projects of a snapshot, their calendars and the flows.
type Projects = projecttable.Reads

// Projects returns the reads of projects, watched by ws.
func (s *Snapshot) Projects(ws *WatchSet) Projects {
	return Projects{Watched: s.v.watched(ws)}
}

// applyProjects moves the state on by one entry about projects.
func (w *Writer) applyProjects(index uint64, t structs.LogType, payload any) error {
	at, event, seed := projecttable.Event(payload)
	if event == "" {
		return w.applyWorkflows(index, t, payload)
	}
	return w.commit(index, at, event, seed, func(x *txn) error {
		return projecttable.Edit{
			Entry: tableEdit{x}.entry(), Nodes: rows[structs.Node](x.rows, false, TableNodes, byID), Slots: configOf(x.rows).Slots,
			Reserved:   projects{x}.reserved,
			CellOfSlot: func(t structs.SlotType) (*structs.CellClaim, error) { return scheduler.CellOfSlot(x.edit.World(), t) },
			Admit:      func(was, now *structs.ProjectWeek) error { return claims{x}.edit().AdmitWeek(was, now) },
			Note:       tableEdit{x}.notes(KindProject),
		}.Apply(payload)
	})
}

// ChangedProjects returns the names of the projects that a change of KindProject concerns; all: it may be any.
func ChangedProjects(c *Change) (names []string, all bool) { return projecttable.Changed(c.Old, c.New) }

// projects is a txn as what projects have in the World sees it.
type projects struct{ x *txn }

// reads are those of the rows as they are.
func (p projects) reads() Projects { return Projects{Watched: unwatched(p.x.rows)} }

// reserved sums up what workflows have reserved of nodes, by the IDs of these.
func (p projects) reserved() map[string]structs.WorkflowPart {
	sums := map[string]structs.WorkflowPart{}
	for run := range (Workflows{Watched: unwatched(p.x.rows)}).Alive() {
		if !run.Posted {
			continue
		}
		for _, part := range run.Parts {
			if sum := sums[part.NodeID]; !part.Lost {
				sum.CPU, sum.MemoryMB = sum.CPU+part.CPU, sum.MemoryMB+part.MemoryMB
				sums[part.NodeID] = sum
			}
		}
	}
	return sums
}

// claimsTime returns the time up to which what is owned has been moved on, in Unix nanoseconds. Which week it is follows from that, so that
// replicas agree.
func claimsTime(r reader) int64 {
	if row := get[structs.ClaimsTime](r, TableClaimsTime, byID); row != nil {
		return row.Now
	}
	return 0
}

// settle ends an entry: the World has the projects as they are now. Those of which only the week is another one are reported as changed, too.
func (p projects) settle() {
	x := p.x
	if !x.tables.has(projecttable.Projects) && !x.tables.has(projecttable.Weeks) && !x.tables.has(projecttable.Flows) && !x.tables.has(TableClaimsTime) {
		return
	}
	named, all := map[string]bool{}, x.tables.has(TableClaimsTime)
	for _, c := range x.changes {
		if c.Kind == KindProject {
			names, any := ChangedProjects(&c)
			for _, name := range names {
				named[name] = true
			}
			all = all || any
		}
	}
	if all {
		for row := range rows[structs.Project](x.rows, false, projecttable.Projects, byID) {
			if _, listed := named[row.Name]; !listed {
				named[row.Name] = false
			}
		}
	}
	at, first := claimsTime(x.rows), !x.edit.World().AnyOwner()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		x.moves.Given(name)
		now := p.now(name, at)
		if scheduler.SetProject(x.edit, name, now) && !named[name] {
			row := p.reads().Get(name)
			x.changes = append(x.changes, Change{Kind: KindProject, Key: name, Old: row, New: row, Type: structs.EventProjectWeekTurned})
		}
	}
	if first && x.edit.World().AnyOwner() {
		claims{x}.evaluatePerNode()
	}
}

// restoreProjects states what all projects are of an edit that knows none yet, and has all nodes and allocations.
func restoreProjects(r reader, edit *scheduler.Edit) {
	at, reads := claimsTime(r), Projects{Watched: unwatched(r)}
	var list []*structs.ProjectNow
	for row := range rows[structs.Project](r, false, projecttable.Projects, byID) {
		list = append(list, projectNow(r, reads, row.Name, at))
	}
	scheduler.RestoreProjects(edit, list)
}

// slotClaims adds the cells that projects own now, as slots with GPUs, to what all own.
func slotClaims(r reader, owned map[string][]structs.CellClaim) {
	at := claimsTime(r)
	for w := range rows[structs.ProjectWeek](r, false, projecttable.Weeks, byID) {
		if len(w.Cells) > 0 && w.From <= at && at < w.To {
			owned[structs.ProjectOwner(w.Project)] = structs.SlotClaims(w.Cells)
		}
	}
}

// ClaimsEdge returns the next time at which what anybody owns changes, in Unix nanoseconds: windows, shifts, exchanges and weeks of calendars.
// It is 0 if there is none.
func (s *Snapshot) ClaimsEdge(ws *WatchSet) int64 {
	edge, week := s.VirtualClusters(ws).ClaimsEdge(), s.Projects(ws).Edge(claimsTime(s.v.txn))
	if edge == 0 || week > 0 && week < edge {
		return week
	}
	return edge
}
