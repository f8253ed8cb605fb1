package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Raise (semantics part 2): where an owner has free room, its opportunistic allocations become guaranteed in place, the oldest
// first, if the cells over the devices that they use are its own or may be bound. They keep their IDs and run on.

// raise lets running allocations of the job use what its namespace owns.
func (s *Scheduler) raise() {
	job := s.Input.Job
	if job == nil || job.Class == structs.ClassOpportunistic || job.PerNode() || job.Stopped() || !s.World.Owns(job.Namespace) {
		return
	}
	live := slices.Clone(s.Live)
	slices.SortStableFunc(live, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.CreateTime, b.CreateTime), strings.Compare(a.ID, b.ID))
	})
	for _, a := range live {
		u, counts := world.Usages(world.Base(s.Edit)).Get(a.ID)
		if !counts || u.Guaranteed() || len(u.Devices) == 0 || a.AllocatedResources == nil || a.DesiredStatus == structs.AllocDesiredSuspend {
			continue
		}
		if _, gang := u.Owner.Gang(); !gang {
			s.raiseOne(a, u)
		}
	}
}

// raiseOne lets one allocation use the smallest of its namespace's cells that hold its devices.
func (s *Scheduler) raiseOne(a *structs.Allocation, u *world.Usage) {
	n, known := world.StateOf(s.Edit, u.NodeID)
	if !known || n.Node == nil || beyondShare(n, u.Amount, len(u.Devices)) {
		return
	}
	for _, d := range u.Devices {
		if d.Share < world.WholeDevice {
			return
		}
	}
	for _, t := range n.Capacity.Trees {
		key, ok := world.ChainOf(n.Node, t)
		if !ok || world.Count(world.DeviceMask(t, u)) != len(u.Devices) {
			continue
		}
		ed := world.ChainEdit(s.Edit, key)
		if ed == nil {
			continue
		}
		for _, k := range kindsFor(ed.View(), u.Owner.Namespace, len(u.Devices)) {
			resources := a.AllocatedResources.Copy()
			terms := u.Owner.Terms
			terms.Claim, terms.CellLevel, terms.CellSize = structs.ClaimCells, ed.View().LevelName(k), k.Size
			resources.Shared.Terms = &terms
			raised := world.NewUse(a.ID, u.NodeID, world.NewOwner(u.Owner.RequestName, resources), resources, a.CreateTime)
			raised.Ends = u.Ends
			if world.ClaimLacks(s.Edit, raised) != "" {
				continue
			}
			world.Take(s.Edit, raised)
			s.updateResources(a, resources)
			return
		}
	}
}

// updateResources changes what an allocation has, together with its update to the job's newest version if there is one.
func (s *Scheduler) updateResources(a *structs.Allocation, resources *structs.AllocatedResources) {
	for _, up := range s.plan.Update {
		if up.AllocID == a.ID {
			up.Resources, up.Created = resources, a.CreateTime
			return
		}
	}
	s.plan.Update = append(s.plan.Update, &structs.AllocInPlace{
		AllocID: a.ID, JobVersion: a.JobVersion, EvalID: s.eval.ID, Resources: resources, Created: a.CreateTime,
	})
}

// kindsFor returns the kinds of which an owner has cells, those first whose cells hold so many devices, the smallest first; then
// those of which several are needed, the largest first.
func kindsFor(chain *cells.Chain, owner string, devices int) (kinds []cells.Kind) {
	for _, a := range chain.Accounts(owner) {
		if a.Given > 0 {
			kinds = append(kinds, a.Kind)
		}
	}
	several := func(k cells.Kind) bool { return chain.Devices(k) < devices }
	slices.SortStableFunc(kinds, func(a, b cells.Kind) int {
		switch {
		case several(a) != several(b):
			if several(a) {
				return 1
			}
			return -1
		case several(a):
			return b.Compare(a)
		}
		return a.Compare(b)
	})
	return kinds
}
