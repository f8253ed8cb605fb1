package projecttable

import (
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// Now returns a project as it counts at a time, in Unix nanoseconds; nil if there is none of the name.
func (r Reads) Now(name string, at int64) *structs.ProjectNow {
	p := r.Get(name)
	if p == nil {
		return nil
	}
	now := &structs.ProjectNow{Name: p.Name, Users: p.Users, Groups: p.Groups, Steps: r.Steps(p)}
	if p.Objective == structs.ObjectiveThroughput {
		now.Throughput = p.Throughput
	}
	for w := range r.Weeks(name) {
		if w.From <= at && at < w.To {
			now.Rows, now.Cells = w.Rows, structs.SlotClaims(w.Cells)
			break
		}
	}
	return now
}

// Edge returns the first time after passed at which a week of somebody's calendar begins or ends, in Unix nanoseconds; 0 if there is none. A
// week without slots has none.
func (r Reads) Edge(passed int64) (next int64) {
	for w := range memtable.Many[structs.ProjectWeek](r.Watched, false, Weeks, byWeek) {
		if len(w.Rows) == 0 {
			continue
		}
		for _, t := range [...]int64{w.From, w.To} {
			if t > passed && (next == 0 || t < next) {
				next = t
			}
		}
		if next > 0 && w.From > next {
			break // weeks come in their order
		}
	}
	return next
}

// Changed returns the names of the projects that the rows of a change concern; all: it may be any.
func Changed(was, now any) (names []string, all bool) {
	for _, row := range [...]any{was, now} {
		switch r := row.(type) {
		case *structs.Project:
			names = append(names, r.Name)
		case *structs.CalendarEdit:
			names = append(names, r.Project)
		case *structs.Flow:
			all = true
		}
	}
	return names, all
}
