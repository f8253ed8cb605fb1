package claim

import (
	"cmp"
	"iter"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// NewSlotFinder returns a finder for the instances that a search is for, which use slots of a project, of so many devices each; nil: their devices are not
// such that can be owned, or of a cell that is pinned to their namespace.
func NewSlotFinder(job *structs.Job, project string, devices int, s *search.Search) *Finder {
	want := Devices(job, s.Request)
	if want == nil || want.Pin() != "" {
		return nil
	}
	return &Finder{
		Want: want, owner: structs.ProjectOwner(project), pool: cmp.Or(job.NodePool, structs.DefaultNodePool), find: s, within: s.Fit.Within, slot: devices,
	}
}

// Cells returns the cells that may hold an instance, of all chains, or on one node if it is named: free ones in what is bound, then those that may be
// bound, then several of one node. The edit may change before the next is taken only if no other is.
func (f *Finder) Cells(e *world.Edit, node string) iter.Seq[Cell] {
	if node != "" && f.within != nil && !f.under(node) {
		return func(func(Cell) bool) {}
	}
	return func(yield func(Cell) bool) {
		if node != "" { // the finder itself is narrowed, not a copy: what is done with a cell that it yields needs its chain
			within, nodes := f.within, f.nodes
			defer func() { f.within, f.nodes = within, nodes }()
			f.within, f.nodes = &feasible.Domain{NodeID: node}, nil
			if within != nil {
				f.within.Devices = within.Devices
			}
		}
		world.FlushClaims(e)
		for key := range world.Base(e).Chains {
			if !f.Matches(key) || !f.Begin(e, key) {
				continue
			}
			for _, at := range f.Bound(e) {
				if !yield(at) {
					return
				}
			}
			for at := range f.Unbound() {
				if !yield(at) {
					return
				}
			}
			for _, at := range f.Several(e) {
				if !yield(at) {
					return
				}
			}
		}
	}
}
