package raise

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Use returns a usage as it is raised to the smallest of its owner's cells that hold its devices; nil: there are none.
func Use(e *world.Edit, u *world.Usage) *world.Usage {
	n, known := world.StateOf(e, u.NodeID)
	if len(u.Devices) == 0 || !known || n.Node == nil || !besideReservations(e, n, u) || claim.BeyondShare(e, n, u.Amount, len(u.Devices)) {
		return nil
	}
	for _, t := range n.Capacity.Trees {
		key, ok := world.ChainOf(n.Node, t)
		if !ok || world.Count(world.DeviceMask(t, u)) != len(u.Devices) {
			continue
		}
		ed := world.ChainEdit(e, key)
		if ed == nil {
			continue
		}
		for _, k := range kindsFor(ed.View(), u.Owner.Namespace, len(u.Devices)) {
			raised, owner := *u, *u.Owner
			raised.Owner = &owner
			owner.Terms.Claim, owner.Terms.CellLevel, owner.Terms.CellSize = structs.ClaimCells, ed.View().LevelName(k), k.Size
			owner.Terms.Workflow = owner.Terms.Workflow.WithoutLoan()
			if world.ClaimLacks(e, &raised) == "" {
				return &raised
			}
		}
	}
	return nil
}

// besideReservations reports whether a usage of a node, if it borrows from a workflow or is of the run of one, has room and licenses beside all that is reserved for
// workflows, so that it may stay where it is by a claim of its own.
func besideReservations(e *world.Edit, n *world.NodeState, u *world.Usage) bool {
	if !usesReservation(u) {
		return true
	}
	without := world.TrialOf(n)
	without.Give(u)
	if without.LacksUse(u, &world.Taker{RequestName: u.Owner.RequestName, Entitled: true, Recognised: true}) != "" {
		return false
	}
	if u.Owner.Terms.Licenses == nil {
		return true
	}
	of, terms := world.LicenseEdit{E: e}, u.Owner.Terms
	terms.Workflow = nil
	of.Reserve("", u.Owner.Job, &u.Owner.Terms, -1)
	defer of.Reserve("", u.Owner.Job, &u.Owner.Terms, 1)
	return of.LacksFor(&terms, 1, true) == ""
}

// usesReservation reports whether a usage borrows from a workflow, or is of the run of one without a claim: the room that it has may be reserved.
func usesReservation(u *world.Usage) bool {
	return u.Owner.Terms.BorrowsFrom() != "" || u.Owner.OfRun() != ""
}

// BorrowersBeside returns the owners, namespaces and projects by OfProject, of usages of a node that can be raised only beside what is reserved for workflows.
func BorrowersBeside(w *world.World, nodeID string) (owners []string) {
	n, known := world.NodeStates(w).Get(nodeID)
	if !known {
		return nil
	}
	add := func(owner string) {
		if !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	for _, u := range n.Usages {
		if u.Guaranteed() || u.PerNode() || !usesReservation(u) {
			continue
		}
		add(u.Owner.Namespace)
		if t := u.Owner.Terms.Slots; t != nil {
			add(OfProject(t.Project))
		}
	}
	return owners
}
