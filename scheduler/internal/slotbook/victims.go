package slotbook

import (
	"cmp"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
)

// victimKey orders those that may be taken from as far as time and the number of instances of projects do not matter: first those that failed
// the submission check; then by band, the lowest first; then those that started in the latest cycle; then by their project.
type victimKey struct {
	passed     bool // the submission check, or of no project
	band       int
	cycle      int64
	project    string
	milliCores int64
	start      int64
	id         string
}

func compareVictims(a, b victimKey) int {
	if a.passed != b.passed {
		if b.passed {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.band, b.band), cmp.Compare(b.cycle, a.cycle), strings.Compare(a.project, b.project), cmp.Compare(a.milliCores, b.milliCores),
		cmp.Compare(b.start, a.start), strings.Compare(a.id, b.id),
	)
}

func compareStarts(a, b *Use) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.ID, b.ID))
}

// Project returns the project that a use is of; "" if it is of none.
func (u *Use) Project() string {
	if u.Of == nil {
		return ""
	}
	return u.Of.Project
}

// passed reports whether a use is of no project, or of one whose submission check its job passes.
func (u *Use) passed(spec *slots.Project) bool {
	return u.Project() == "" || spec.Check(&u.Of.Submission) == slots.Recognised
}

func (b *Book) keyOf(u *Use) victimKey { return keyBy(u, b.Spec(u.Project())) }

// keyBy is keyOf while the use's project is this one.
func keyBy(u *Use, spec *slots.Project) victimKey {
	return victimKey{u.passed(spec), u.Band, u.Cycle, u.Project(), u.MilliCores, u.Start, u.ID}
}

// member is an allocation of a project.
type member struct{ project, id string }

func compareMembers(a, b member) int {
	return cmp.Or(strings.Compare(a.project, b.project), strings.Compare(a.id, b.id))
}

// recheck moves those of a project to where they belong among the victims by what the project is now. It looks at no others.
func (b *Book) recheck(name string, was, is *slots.Project) {
	var moved []*Use
	b.members.Ascend(member{project: name}, func(m member, u *Use) bool {
		if m.project == name && u.passed(was) != u.passed(is) {
			moved = append(moved, u)
		}
		return m.project == name
	})
	for _, u := range moved {
		b.victims.Delete(b.owner, keyBy(u, was))
		b.victims.Put(b.owner, keyBy(u, is), u)
	}
}
