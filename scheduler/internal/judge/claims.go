package judge

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// What uses a claim gives up its class, or its room, for a higher band of its own namespace alone (semantics part 0, rule 1).

// loweredUse is an update by which an allocation gives up its class, with what it used before.
type loweredUse struct {
	up  *structs.AllocInPlace
	old *world.Usage
}

// keepCells keeps the cells bound that the plan's newcomers are to use while others of their namespace leave them, until what it returns
// is called.
func (j *judgement) keepCells() (end func()) {
	own := func(id string) bool {
		u, counts := world.Usages(world.Base(j.e)).Get(id)
		return counts && u.Guaranteed() && u.Owner.Namespace == j.plan.Namespace
	}
	if !slices.ContainsFunc(j.plan.Stop, func(s *structs.AllocStop) bool { return s.PreemptedBy != "" && own(s.AllocID) }) &&
		!slices.ContainsFunc(j.plan.Update, func(up *structs.AllocInPlace) bool { return up.ClassTo != "" && own(up.AllocID) }) {
		return func() {}
	}
	return KeepCells(j.e, j.plan.Place)
}

// mayTakeOwn reports whether a newcomer may take what its namespace's allocation is guaranteed.
func (j *judgement) mayTakeOwn(u *world.Usage, newcomer string) bool {
	rules := world.Rules(world.Base(j.e))
	entitled, _ := j.entitled()
	return u.Owner.Namespace == j.plan.Namespace && rules.Band(u.Owner.Terms.Priority) < rules.Band(j.priority()) && entitled[newcomer] == structs.ClaimCells
}

// refuseMixed refuses new members of gangs of which some use a claim then and too few of those that must run together do (semantics part 0, rule 5): the
// others may have lost theirs, or come to use one, meanwhile.
func (j *judgement) refuseMixed() {
	for _, b := range j.plan.Place {
		if b.Resources == nil || b.Resources.Shared.Terms == nil || b.Resources.Shared.Terms.Gang == "" {
			continue
		}
		g, _ := world.NewOwner(world.RequestName{Namespace: b.Namespace, Job: b.JobID, Group: b.Group}, b.Resources).Gang()
		members := world.GangMembers(j.e, g)
		if !slices.ContainsFunc(members, (*world.Usage).Guaranteed) || world.GangClaim(members) != "" {
			continue
		}
		for i := range b.Instances {
			j.refuse(b.Nodes[b.Instances[i].Node].ID, "too few of its gang use a claim, and others do")
		}
	}
}

// lower lets an allocation go on without its claim, for a newcomer that uses one.
func (j *judgement) lower(up *structs.AllocInPlace, old *world.Usage) {
	home, placed := j.homeOf(up.ClassTo)
	switch {
	case !placed:
		return
	case !old.Guaranteed(): // it has lost its claim meanwhile
	case !j.mayTakeOwn(old, up.ClassTo):
		j.refuse(home, "allocation "+structs.ShortID(up.AllocID)+" is guaranteed")
		return
	}
	world.Take(j.e, old.Opportunistic())
	j.lowered, j.updates = append(j.lowered, loweredUse{up, old}), append(j.updates, up)
}

// homeOf returns the node of an allocation that the plan places.
func (j *judgement) homeOf(id string) (node string, placed bool) {
	for _, b := range j.plan.Place {
		for i := range b.Instances {
			if structs.DeriveID(b.Seed, uint64(b.Instances[i].Ordinal)) == id {
				return b.Nodes[b.Instances[i].Node].ID, true
			}
		}
	}
	return "", false
}
