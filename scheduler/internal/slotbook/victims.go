package slotbook

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
)

// victimKey orders those that may be taken from as far as time and the number of instances of projects do not matter: first those that failed
// the submission check; then by band, the lowest first; then those that started in the latest cycle; then by their project.
type victimKey struct {
	passed  bool // the submission check, or of no project
	band    int
	cycle   int64
	project string
	mhz     int64
	start   int64
	id      string
}

func compareVictims(a, b victimKey) int {
	if a.passed != b.passed {
		if b.passed {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.band, b.band), cmp.Compare(b.cycle, a.cycle), strings.Compare(a.project, b.project), cmp.Compare(a.mhz, b.mhz),
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

// among returns the victims that a use is one of.
func (b *Book) among(u *Use) *tree.Tree[victimKey, *Use] {
	if u.Suspended {
		return &b.suspended
	}
	return &b.victims
}

// AnySuspended reports whether anybody may be taken from who is suspended.
func (b *Book) AnySuspended() (any bool) {
	b.suspended.All(func(victimKey, *Use) bool {
		any = true
		return false
	})
	return any
}

// SuspendedInOrder is [Book.InOrder] of those that are suspended.
func (b *Book) SuspendedInOrder(now int64, pending func(project string) int, yield func(failed bool, u *Use) bool) {
	b.inOrder(&b.suspended, now, pending, yield)
}

func (b *Book) keyOf(u *Use) victimKey { return keyBy(u, b.Spec(u.Project())) }

// keyBy is keyOf while the use's project is this one.
func keyBy(u *Use, spec *slots.Project) victimKey {
	return victimKey{u.passed(spec), u.Band, u.Cycle, u.Project(), u.MHz, u.Start, u.ID}
}

// member is an allocation of a project, in the order in which those of a project started.
type member struct {
	project string
	start   int64
	id      string
}

func memberOf(u *Use) member { return member{u.Of.Project, u.Start, u.ID} }

// firstOf returns a member before all of a project.
func firstOf(project string) member { return member{project: project, start: math.MinInt64} }

func compareMembers(a, b member) int {
	return cmp.Or(strings.Compare(a.project, b.project), cmp.Compare(a.start, b.start), strings.Compare(a.id, b.id))
}

// recheck moves those of a project to where they belong among the victims by what the project is now. It looks at no others.
func (b *Book) recheck(name string, was, is *slots.Project) {
	var moved []*Use
	b.members.Ascend(firstOf(name), func(m member, u *Use) bool {
		if m.project == name && u.passed(was) != u.passed(is) {
			moved = append(moved, u)
		}
		return m.project == name
	})
	for _, u := range moved {
		tree.Delete(b.owner, b.among(u), keyBy(u, was))
		tree.Put(b.owner, b.among(u), keyBy(u, is), u)
	}
}

// InOrder calls yield for those that may be taken from, the least important first, until it returns false: those that failed the submission check;
// then by band, the lowest first; then those that started in the latest cycle; then those of the project that is furthest over its slots; then those
// of the project with most pending instances; then those that used the least processor × time; then those whose time limit is the longest, or that have
// none; then by ID. failed: it failed the check. pending returns how many instances of a project are pending, "" for those of none; nil: that of all is
// alike.
func (b *Book) InOrder(now int64, pending func(project string) int, yield func(failed bool, u *Use) bool) {
	b.inOrder(&b.victims, now, pending, yield)
}

func (b *Book) inOrder(of *tree.Tree[victimKey, *Use], now int64, pending func(project string) int, yield func(failed bool, u *Use) bool) {
	var alike []rankedUse
	var first victimKey
	flush := func() bool {
		slices.SortFunc(alike, func(a, b rankedUse) int { return compareRanked(a, b, pending) })
		for _, r := range alike {
			if !yield(!first.passed, r.use) {
				return false
			}
		}
		alike = alike[:0]
		return true
	}
	over, last := 0, ""
	for k, u := range of.All {
		if k.passed != first.passed || k.band != first.band || k.cycle != first.cycle {
			if !flush() {
				return
			}
			first, last = k, ""
		}
		if len(alike) == 0 || k.project != last {
			over, last = b.Over(k.project), k.project
		}
		alike = append(alike, rankedUse{u, over, u.MHz * ((now - u.Start) / int64(time.Millisecond))})
	}
	flush()
}

// AnyFailed reports whether anybody may be taken from whose job failed the submission check. b may be nil.
func (b *Book) AnyFailed() (any bool) {
	if b != nil {
		b.victims.All(func(k victimKey, _ *Use) bool {
			any = !k.passed
			return false
		})
	}
	return any
}

// rankedUse is one of those that are alike up to what changes with time and with what else runs.
type rankedUse struct {
	use    *Use
	over   int
	worked int64
}

func compareRanked(a, b rankedUse, pending func(string) int) int {
	if c := cmp.Compare(b.over, a.over); c != 0 {
		return c
	}
	if p, q := a.use.Project(), b.use.Project(); p != q && pending != nil {
		if c := cmp.Compare(pending(q), pending(p)); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(a.worked, b.worked); c != 0 {
		return c
	}
	if x, y := a.use.Ends, b.use.Ends; x != y {
		if x == 0 || y != 0 && x > y {
			return -1
		}
		return 1
	}
	return strings.Compare(a.use.ID, b.use.ID)
}
