package scheduler

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// ProjectUse returns the rows that a project has now, and how many slots of each its instances use; nil if there is no project of the name.
func ProjectUse(w *World, name string) (rows []structs.CalendarRow, used []int) {
	account := w.Slots().Account(name)
	if account == nil {
		return nil, nil
	}
	has, used := account.Rows()
	for _, r := range has {
		rows = append(rows, structs.CalendarRow(r))
	}
	return rows, used
}

// ProjectsBeside returns the projects of which instances run on a node without their slots, in the order in which these are found there.
func ProjectsBeside(w *World, nodeID string) (names []string) {
	n, known := world.NodeStates(w).Get(nodeID)
	if !known {
		return nil
	}
	for _, u := range n.Usages {
		if t := u.Owner.Terms.Slots; t != nil && !u.Guaranteed() && !slices.Contains(names, t.Project) {
			names = append(names, t.Project)
		}
	}
	return names
}

// RowMatcher finds the rows of a project's calendar that its instances and jobs match, whatever room these have.
type RowMatcher struct{ rows *slots.Matcher }

// NewRowMatcher returns a new matcher of rows.
func NewRowMatcher(rows []structs.CalendarRow) RowMatcher {
	list := make([]slots.Row, len(rows))
	for i, r := range rows {
		list[i] = slots.Row(r)
	}
	return RowMatcher{slots.NewMatcher(list)}
}

// OfTerms returns the number of the most specific row that an instance of a job matches; -1: none.
func (m RowMatcher) OfTerms(t *structs.SlotTerms, job string) int {
	return m.rows.Row(&slots.Submission{
		Project: t.Project, Step: t.Step, Type: t.Type, User: t.User, Job: job, Groups: strings.FieldsFunc(t.Groups, func(r rune) bool { return r == ',' }),
	})
}

// OfJob returns the number of the most specific row that a job matches, -1 if none does, and the type of slots that the job's instances use.
func (m RowMatcher) OfJob(job *structs.Job) (row int, slotType string) {
	s := standing.SubmissionOf(job)
	return m.rows.Row(&s), s.Type
}
