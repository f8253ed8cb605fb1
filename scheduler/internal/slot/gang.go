package slot

import (
	"fmt"
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Gang is the first members of a gang, which use slots of their project together, or none of them does (semantics part 0, rule 5).
type Gang struct {
	finders []*Finder // by group
	of      []*slots.Instance
	first   []int
}

// NewGang returns the first members of a gang as they would use slots on an edit, so many of each of its groups; nil: they use none.
func NewGang(in *search.Input, e *world.Edit, groups []*structs.TaskGroup, first []int) *Gang {
	g := &Gang{}
	for i, group := range groups {
		if first[i] == 0 {
			continue
		}
		f := entitledTo(in, e, group)
		if f == nil {
			return nil
		}
		g.finders, g.of, g.first = append(g.finders, f), append(g.of, f.of), append(g.first, first[i])
	}
	if len(g.finders) == 0 {
		return nil
	}
	return g
}

// any returns one of the finders: a job's instances all use slots of one type and project.
func (g *Gang) any() *Finder { return g.finders[0] }

// members is how many are to be placed at once, and cost what they cost.
func (g *Gang) members() (n, cost int) {
	for i, of := range g.of {
		n, cost = n+g.first[i], cost+g.first[i]*of.Cost
	}
	return n, cost
}

// HasSlots reports whether rows of the project have room for all.
func (g *Gang) HasSlots() bool {
	account := g.any().book().Account(g.any().of.Project)
	return account != nil && account.HoldsAll(g.of, g.first)
}

// UnderAllocated reports whether the project runs so few instances, on slots or not, that with all of them it does not exceed its slots of the type.
func (g *Gang) UnderAllocated() bool {
	f := g.any()
	_, cost := g.members()
	account := f.book().Account(f.of.Project)
	return account != nil && f.book().Running(f.of.Project, f.of.Type)+cost <= account.Given(f.of.Type)
}

// Grace returns how long they wait before they are taken room for.
func (g *Gang) Grace() int64 { return g.any().Grace() }

// NodesLeft returns up to so many nodes that may have slots left for all of them, those with the fewest first.
func (g *Gang) NodesLeft(most int) []string {
	_, least := g.members()
	if slices.ContainsFunc(g.finders, (*Finder).mayBeLight) {
		least = 1
	}
	return g.any().book().FirstLeft(g.any().of.Type, least, most)
}

// NodesOfFailed returns up to so many nodes on which something runs that failed the submission check, in the order of victims.
func NodesOfFailed(w *world.World, in *search.Input, most int) (nodes []string) {
	w.Slots().InOrder(in.Now.UnixNano(), in.Pending, func(failed bool, v *slotbook.Use) bool {
		if failed && !slices.Contains(nodes, v.NodeID) {
			nodes = append(nodes, v.NodeID)
		}
		return failed && len(nodes) < most
	})
	return nodes
}

// Why returns why they use no slots, that have been pending since then, in Unix nanoseconds.
func (g *Gang) Why(now, since int64) string {
	n, _ := g.members()
	f := g.any()
	switch {
	case !g.HasSlots():
		return fmt.Sprintf("slots: project %q has not enough free slots of type %q this week for all %d of a gang that start together", f.of.Project, f.of.Type, n)
	case !g.UnderAllocated():
		return fmt.Sprintf("slots: with all %d of a gang that start together project %q would run more instances than it has slots of type %q", n, f.of.Project, f.of.Type)
	case since+g.Grace() > now:
		return fmt.Sprintf("slots: the free slots of type %q have no room for all of a gang; others leave for it after the grace of %s", f.of.Type, time.Duration(g.Grace()))
	}
	return fmt.Sprintf("slots: the free slots of type %q have no room for all of a gang, and too few may be taken from there", f.of.Type)
}

// WhyNoMoreOf is [WhyNoMore] of the first members of a gang, so many of each of its groups.
func WhyNoMoreOf(w *world.World, job *structs.Job, groups []*structs.TaskGroup, first []int) string {
	n := 0
	for _, more := range first {
		n += more
	}
	for i, group := range groups {
		if first[i] > 0 {
			if why := whyNoMore(w, job, group, n); why != "" {
				return why
			}
		}
	}
	return ""
}
