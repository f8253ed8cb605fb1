package projecthistory

import (
	"cmp"
	"strings"

	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// Class is what the rows of a calendar look at of an instance: those of one class match the same rows.
type Class struct {
	Project string
	Type    string // of slots
	Step    string
	User    string
	Groups  string // with commas between the names
	Job     string
}

// Compare orders classes by project, then by type.
func (c Class) Compare(o Class) int {
	return cmp.Or(strings.Compare(c.Project, o.Project), strings.Compare(c.Type, o.Type), strings.Compare(c.Step, o.Step),
		strings.Compare(c.User, o.User), strings.Compare(c.Groups, o.Groups), strings.Compare(c.Job, o.Job))
}

// total returns the class that stands for all of a project's instances that use a type.
func (c Class) total() Class { return Class{Project: c.Project, Type: c.Type} }

// TermsOf returns what an allocation has to do with slots; nil: it is of no project.
func TermsOf(a *structs.Allocation) *structs.SlotTerms {
	if a == nil || a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil {
		return nil
	}
	return a.AllocatedResources.Shared.Terms.Slots
}

// classOf returns the class of an allocation with terms.
func classOf(a *structs.Allocation, t *structs.SlotTerms) Class {
	return Class{Project: t.Project, Type: t.Type, Step: t.Step, User: t.User, Groups: t.Groups, Job: a.JobID}
}

// LevelsOf returns what an allocation with terms amounts to now: nothing if it has ended, is to end or is suspended, as in the World.
func LevelsOf(a *structs.Allocation, t *structs.SlotTerms) (l structs.SlotLevels) {
	if a.Terminal() || a.Suspended() {
		return l
	}
	cost := int64(max(1, t.Cost))
	switch a.AllocatedResources.Shared.Terms.Claim {
	case structs.ClaimSlots:
		l.Used = cost
		if !t.Light {
			l.Guards = int64(t.Guards)
		}
	case "":
		l.Borrowed = cost
	default:
		l.Beside = cost
	}
	return l
}

// Live is what instances of projects amount to at present, by class. It follows from the allocations, so that no snapshot holds it. The zero
// value has nothing; a copy is a snapshot.
type Live struct {
	classes persist.Tree[Class, structs.SlotLevels]
	totals  persist.Tree[Class, structs.SlotLevels]
}

// Add counts an allocation.
func (l *Live) Add(tok *persist.Token, a *structs.Allocation) {
	if t := TermsOf(a); t != nil {
		l.move(tok, classOf(a, t), LevelsOf(a, t))
	}
}

// move adds to the levels of a class.
func (l *Live) move(tok *persist.Token, c Class, by structs.SlotLevels) {
	addTo(&l.classes, tok, c, by)
	addTo(&l.totals, tok, c.total(), by)
}

func addTo(t *persist.Tree[Class, structs.SlotLevels], tok *persist.Token, c Class, by structs.SlotLevels) {
	if by == (structs.SlotLevels{}) {
		return
	}
	was, _ := t.Get(c)
	if now := was.Add(by); now == (structs.SlotLevels{}) {
		persist.Delete(tok, t, c)
	} else {
		persist.Put(tok, t, c, now)
	}
}

// ClassesOf calls yield for the classes of a project of which instances run, in their order.
func (l *Live) ClassesOf(project string, yield func(Class, structs.SlotLevels)) {
	ascend(&l.classes, project, yield)
}

func ascend(t *persist.Tree[Class, structs.SlotLevels], project string, yield func(Class, structs.SlotLevels)) {
	from := Class{Project: project}
	t.Ascend(&from, func(c Class, levels structs.SlotLevels) bool {
		if c.Project == project {
			yield(c, levels)
		}
		return c.Project == project
	})
}

// Levels returns what instances of a project amount to that use a type of slots.
func (l *Live) Levels(project, slotType string) structs.SlotLevels {
	levels, _ := l.totals.Get(Class{Project: project, Type: slotType})
	return levels
}

// Equal reports whether two are the same.
func (l *Live) Equal(o *Live) bool {
	all := func(of *Live) (list []any) {
		of.classes.Ascend(nil, func(c Class, levels structs.SlotLevels) bool {
			list = append(list, c, levels)
			return true
		})
		return list
	}
	a, b := all(l), all(o)
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}
