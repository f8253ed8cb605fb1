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

func (b *Book) keyOf(u *Use) victimKey {
	return victimKey{u.passed(b.Spec(u.Project())), u.Band, u.Cycle, u.Project(), u.MilliCores, u.Start, u.ID}
}

// recheck moves those of a project to where they belong among the victims by what the project is now.
func (b *Book) recheck(is *slots.Project, name string) {
	type moved struct {
		from victimKey
		use  *Use
	}
	var list []moved
	for k, u := range b.victims.All {
		if k.project == name && k.passed != u.passed(is) {
			list = append(list, moved{k, u})
		}
	}
	for _, m := range list {
		b.victims.Delete(b.owner, m.from)
		b.victims.Put(b.owner, b.keyOf(m.use), m.use)
	}
}
