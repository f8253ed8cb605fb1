package slot

import (
	"iter"

	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Take is a node on which an instance may find room on slots if some leave.
type Take struct {
	Node  string
	Use   Use
	Leave map[string]bool // the IDs of their allocations
}

// Takes returns where one more instance may find room if some leave, in the order of victims: one for one first, then where several must leave
// one node; before all that where the memory alone is lacking that suspended ones keep. Of a gang all leave that may be taken from, as it may not run
// without one. may reports whether a usage may be taken from.
func (f *Finder) Takes(now int64, may func(*world.Usage) bool) iter.Seq[Take] {
	return func(yield func(Take) bool) {
		if f.of != nil && !f.mayBeLight() && !f.book().AnyLeft(f.of.Type, f.of.Cost) {
			return
		}
		if f.book().AnySuspended() && !f.takesOf(f.book().SuspendedInOrder, now, may, yield) {
			return
		}
		f.takesOf(f.book().InOrder, now, may, yield)
	}
}

// order calls yield for those that may be taken from, the least important first.
type order func(now int64, pending func(project string) int, yield func(failed bool, u *slotbook.Use) bool)

// takesOf calls yield for where those of an order leave. It reports whether more are wanted.
func (f *Finder) takesOf(victims order, now int64, may func(*world.Usage) bool, yield func(Take) bool) (more bool) {
	leaving := map[string][]*world.Usage{} // by node
	more = true
	victims(now, f.pending, func(failed bool, v *slotbook.Use) bool {
		if f.failed && !failed {
			return false
		}
		u := f.victim(failed, v, may)
		if u == nil {
			return true
		}
		t, enough := f.take([]*world.Usage{u}, failed)
		if leaving[u.NodeID] = append(leaving[u.NodeID], u); enough {
			more = yield(t)
		}
		return more
	})
	return more && f.takesOfSeveral(victims, leaving, now, may, yield)
}

// takesOfSeveral goes on where no one alone is enough.
func (f *Finder) takesOfSeveral(victims order, of map[string][]*world.Usage, now int64, may func(*world.Usage) bool, yield func(Take) bool) (more bool) {
	seen := map[string]int{}
	more = true
	victims(now, f.pending, func(failed bool, v *slotbook.Use) bool {
		if f.failed && !failed {
			return false
		}
		if len(of[v.NodeID]) < 2 || f.victim(failed, v, may) == nil {
			return true
		}
		if seen[v.NodeID]++; seen[v.NodeID] < 2 {
			return true
		}
		if t, enough := f.take(of[v.NodeID][:seen[v.NodeID]], failed); enough {
			more = yield(t)
		}
		return more
	})
	return more
}

// victim returns the usage of one that may be taken from, if its node has slots left for an instance; nil: it may not, or it would not help.
func (f *Finder) victim(failed bool, v *slotbook.Use, may func(*world.Usage) bool) *world.Usage {
	if v.Immune && !failed {
		return nil
	}
	n, known := world.StateOf(f.e, v.NodeID)
	if !known || n.Node == nil {
		return nil
	}
	if _, ok := f.On(n); !ok {
		return nil
	}
	u, found := world.Usages(world.Base(f.e)).Get(v.ID)
	if !found || !may(u) {
		return nil
	}
	return u
}

// take returns what leaves a node; enough: as far as amounts go, an instance has room then.
func (f *Finder) take(list []*world.Usage, failed bool) (t Take, enough bool) {
	n, _ := world.StateOf(f.e, list[0].NodeID)
	free := n.Free()
	t = Take{Node: n.ID, Leave: map[string]bool{}}
	if f.of != nil {
		t.Use = f.use(n)
	}
	for _, u := range list {
		g, gang := u.Owner.Gang()
		if !gang {
			t.Leave[u.ID], free = true, free.Plus(u.Amount)
			continue
		}
		for _, m := range world.GangMembers(f.e, g) {
			if m.Guaranteed() || m.PerNode() || m.Immune(f.config) && !failed {
				continue
			}
			if m.NodeID == n.ID && !t.Leave[m.ID] {
				free = free.Plus(m.Amount)
			}
			t.Leave[m.ID] = true
		}
	}
	free = free.Minus(f.search.Request.Amount)
	return t, free.CPU >= 0 && free.MemoryMB >= 0 && free.DiskMB >= 0
}
