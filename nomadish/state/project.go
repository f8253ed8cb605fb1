package state

import (
	"github.com/nomadish/nomadish/nomadish/state/internal/projecttable"
	"github.com/nomadish/nomadish/structs"
)

// Projects reads the projects of a snapshot, their calendars and the flows.
type Projects = projecttable.Reads

// Projects returns the reads of projects, watched by ws.
func (s *Snapshot) Projects(ws *WatchSet) Projects {
	return Projects{Rows: s.v.txn, Watch: func(table string, changed <-chan struct{}) { ws.add(s.v, table, changed) }}
}

// applyProjects moves the state on by one entry about projects.
func (w *Writer) applyProjects(index uint64, t structs.LogType, payload any) error {
	at, event := projecttable.Event(payload)
	return w.commit(index, at, event, "", func(x *txn) error {
		if event == "" {
			return structs.Errorf(structs.CodeInternal, "log entry type %d with a payload of type %T: unknown", t, payload)
		}
		return projecttable.Edit{
			Rows: x, Index: x.index, Now: x.now, Nodes: rows[structs.Node](x, false, TableNodes, byID), Slots: configOf(x).Slots,
			Put: x.put, Drop: x.drop,
			Note: func(key string, was, now any) {
				x.changes = append(x.changes, Change{Kind: KindProject, Key: key, Old: was, New: now, Type: x.event})
			},
		}.Apply(payload)
	})
}
