// Package together says who leaves together where something is taken from some (docs/design/semantics.md, part 3): a gang runs on without those of its members
// whom it can do without, or all of it leaves. It decides nothing else.
package together

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Unit is those who leave together. If they are a gang, they are all of its members that are there.
type Unit []*world.Usage

// UnitsOf returns who leaves with those who are to leave, by who leaves together, in the order in which they are named.
func UnitsOf(e *world.Edit, leave []*world.Usage) (units []Unit) {
	seen := map[world.GangName]bool{}
	for _, u := range leave {
		g, some := u.Owner.Gang()
		if !some {
			units = append(units, Unit{u})
			continue
		}
		if seen[g] {
			continue
		}
		seen[g] = true
		members := world.GangMembers(e, g)
		those := slices.DeleteFunc(slices.Clone(members), func(m *world.Usage) bool {
			return !slices.ContainsFunc(leave, func(l *world.Usage) bool { return l.ID == m.ID })
		})
		counts, spare := counted(members), Spare(members)
		if slices.ContainsFunc(those, func(m *world.Usage) bool {
			if counts(m) {
				spare[m.Owner.Group]--
			}
			return spare[m.Owner.Group] < 0
		}) {
			units = append(units, members)
			continue
		}
		for _, m := range those {
			units = append(units, Unit{m})
		}
	}
	return units
}

// All returns all members of some units.
func All(units []Unit) (list []*world.Usage) {
	for _, u := range units {
		list = append(list, u...)
	}
	return list
}

// counted reports which members of a gang are of those that it runs with: suspended ones are not, unless all are.
func counted(members []*world.Usage) func(*world.Usage) bool {
	runs := slices.ContainsFunc(members, func(m *world.Usage) bool { return !m.IsSuspended })
	return func(m *world.Usage) bool { return !runs || !m.IsSuspended }
}

// Spare returns without how many members of each group a gang with these members runs on.
func Spare(members []*world.Usage) map[string]int {
	spare, counts := map[string]int{}, counted(members)
	for _, u := range members {
		if _, seen := spare[u.Owner.Group]; !seen {
			spare[u.Owner.Group] = -u.Owner.Terms.GangMin
		}
		if counts(u) {
			spare[u.Owner.Group]++
		}
	}
	return spare
}

// Stop has some leave an edit, as of a time in Unix nanoseconds, and returns how each of them is stopped: suspended if its job states so and it can be,
// of a gang all members or none; else requeued. Why the latter are, the caller adds.
func Stop(e *world.Edit, leave []*world.Usage, now int64) (stops []*structs.AllocStop) {
	suspends := make([]bool, len(leave))
	for i, u := range leave {
		suspends[i] = maySuspend(e, u)
		if g, some := u.Owner.Gang(); some && suspends[i] {
			suspends[i] = !slices.ContainsFunc(world.GangMembers(e, g), func(m *world.Usage) bool {
				return !maySuspend(e, m) || !slices.ContainsFunc(leave, func(l *world.Usage) bool { return l.ID == m.ID })
			})
		}
	}
	for i, u := range leave {
		st := &structs.AllocStop{AllocID: u.ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue}
		world.Release(e, u.ID)
		if suspends[i] {
			st.DesiredStatus, st.Reclaim, st.SuspendedAt = structs.AllocDesiredSuspend, structs.ReclaimSuspend, now
			world.Take(e, u.Suspended())
		}
		stops = append(stops, st)
	}
	return stops
}

// maySuspend reports whether a usage is to be suspended rather than requeued, and can be.
func maySuspend(e *world.Edit, u *world.Usage) bool {
	n, known := world.StateOf(e, u.NodeID)
	return known && !u.IsSuspended && u.Owner.Terms.Reclaim == structs.ReclaimSuspend && feasible.NotSuspended(n.Node, &u.Owner.Terms, len(u.Devices) > 0) == ""
}

// Gone reports whether a usage is of a gang of which nobody runs.
func Gone(e *world.Edit, u *world.Usage) bool {
	g, some := u.Owner.Gang()
	return some && !slices.ContainsFunc(world.GangMembers(e, g), func(m *world.Usage) bool { return !m.IsSuspended })
}

// Stay has those stay on an edit that were to leave it.
func Stay(e *world.Edit, leave []*world.Usage) {
	for _, u := range leave {
		world.Release(e, u.ID)
		world.Take(e, u)
	}
}
