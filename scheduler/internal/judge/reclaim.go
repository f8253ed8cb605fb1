package judge

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A placement and what is preempted for it hold together or not at all, whatever nodes
// they are on (semantics part 3); and preemption is checked against the latest state.

// takenOnce is a plan whose stops name each allocation once that it takes back. One that is suspended for a newcomer may have
// to go for the next, and is named for both: what was decided last holds for it.
func takenOnce(plan *structs.Plan) *structs.Plan {
	if len(plan.Stop) < 2 {
		return plan
	}
	last := make(map[string]*structs.AllocStop, len(plan.Stop))
	taken := 0
	for _, s := range plan.Stop {
		if s.PreemptedBy != "" {
			taken++
			last[s.AllocID] = s
		}
	}
	if len(last) == taken {
		return plan
	}
	once := *plan
	once.Stop = slices.DeleteFunc(slices.Clone(plan.Stop), func(s *structs.AllocStop) bool {
		return s.PreemptedBy != "" && last[s.AllocID] != s
	})
	return &once
}

// protect notes which of the allocations that are to be taken back use bound cells.
func (j *judgement) protect() {
	for _, s := range j.plan.Stop {
		if s.PreemptedBy == "" || s.KeepRunning {
			continue
		}
		if u, counts := world.Usages(world.Base(j.e)).Get(s.AllocID); counts && world.Protected(j.e, u) {
			world.PutInto(&j.protected, s.AllocID, true)
		}
	}
}

// reclaim takes back what a plan takes from others. What has ended meanwhile gives its
// room without that.
func (j *judgement) reclaim(s *structs.AllocStop) {
	u := world.Release(j.e, s.AllocID)
	if u == nil {
		j.ended[s.AllocID] = true
		return
	}
	j.freed[s.AllocID] = u
	if s.DesiredStatus == structs.AllocDesiredSuspend {
		world.Take(j.e, u.Suspended())
	}
	j.reclaims[s.PreemptedBy] = append(j.reclaims[s.PreemptedBy], s.AllocID)
	j.victims = append(j.victims, s)
	g, some := u.Owner.Gang()
	if !some {
		return
	}
	if j.gangs[g] == nil {
		j.gangs[g] = &takenGang{name: g, moved: true}
		j.gangList = append(j.gangList, j.gangs[g])
	}
	j.gangs[g].victims = append(j.gangs[g].victims, s)
}

// takenGang is a gang that something is taken back from.
type takenGang struct {
	name    world.GangName
	victims []*structs.AllocStop
	moved   bool // more or fewer of it run on than when it was last checked
}

// mayReclaim refuses the nodes of newcomers for which the plan takes from a band that is
// not below theirs any more, or leaves a gang with less than it must have.
func (j *judgement) mayReclaim() {
	if len(j.victims) == 0 {
		return
	}
	rules := world.Rules(world.Base(j.e))
	band := rules.Band(j.priority())
	entitled, own := j.entitled()
	for _, s := range j.victims {
		u := j.freed[s.AllocID]
		if entitled[s.PreemptedBy] != "" && u.PerNode() {
			j.refuseFor(s.PreemptedBy, "allocation "+structs.ShortID(s.AllocID)+" is of a system or sysbatch job: no claim takes from it")
			continue
		}
		if j.takesBack(own[s.PreemptedBy], u) {
			continue
		}
		if (j.protected[s.AllocID] || u.Guaranteed() && entitled[s.PreemptedBy] != structs.ClaimCells) && !j.mayTakeOwn(u, s.PreemptedBy) {
			j.refuseFor(s.PreemptedBy, "allocation "+structs.ShortID(s.AllocID)+" is guaranteed")
			continue
		}
		if standing.HasFailed(world.Base(j.e), u) {
			continue // anybody of higher standing may take it
		}
		if entitled[s.PreemptedBy] != structs.ClaimCells && u.Immune(rules) {
			j.refuseFor(s.PreemptedBy, "allocation "+structs.ShortID(s.AllocID)+" was requeued too often to be preempted by bands or slots")
			continue
		}
		if entitled[s.PreemptedBy] == "" && rules.Band(j.freed[s.AllocID].Owner.Terms.Priority) >= band {
			j.refuseFor(s.PreemptedBy, "allocation "+structs.ShortID(s.AllocID)+" is of no lower band")
		}
	}
	j.refuseParted()
	for by := range j.reclaims { // each is checked alone: the order does not matter
		if _, placed := j.homes()[by]; !placed {
			j.stray = true
		}
	}
}

// takesBack reports whether a workflow takes back what it has lent to a usage, or to another member of its gang, with which it leaves.
func (j *judgement) takesBack(workflow string, u *world.Usage) bool {
	borrows := func(u *world.Usage) bool { return workflow != "" && u.Owner.Terms.BorrowsFrom() == workflow }
	g, some := u.Owner.Gang()
	return borrows(u) || some && !u.Guaranteed() && slices.ContainsFunc(j.gangs[g].victims, func(s *structs.AllocStop) bool { return borrows(j.freed[s.AllocID]) })
}

// entitled returns the claims of the newcomers that use any: bands do not restrict what these take. own are the workflows of those that use the
// reservation of theirs, by its claim or without one.
func (j *judgement) entitled() (claims, own map[string]string) {
	claims, own = map[string]string{}, map[string]string{}
	for _, b := range j.plan.Place {
		if b.Resources == nil || b.Resources.Shared.Terms == nil {
			continue
		}
		owner := world.NewOwner(world.RequestName{Namespace: b.Namespace, Job: b.JobID, Group: b.Group}, b.Resources)
		workflow := cmp.Or(owner.Terms.LicensesOf(), owner.OfRun())
		if owner.Terms.Claim == "" && workflow == "" {
			continue
		}
		for i := range b.Instances {
			id := structs.DeriveID(b.Seed, uint64(b.Instances[i].Ordinal))
			claims[id], own[id] = owner.Terms.Claim, workflow
		}
	}
	return claims, own
}

// refuseParted refuses the nodes of all newcomers for which the plan takes from a gang of
// which too few would run on. Restoring the victims of a node that has refused may split
// a gang, so this runs again after it. It terminates: restoring victims never splits a
// gang of which enough members run on, and a split gang is restored whole.
func (j *judgement) refuseParted() {
	for _, g := range j.gangList {
		if !g.moved {
			continue
		}
		g.moved = false
		if j.wholeOrGone(g) {
			continue
		}
		for _, s := range g.victims {
			j.refuseFor(s.PreemptedBy, "the gang of allocation "+structs.ShortID(s.AllocID)+" would be left in part")
		}
	}
}

// priority is that of the plan's job.
func (j *judgement) priority() int {
	for _, b := range j.plan.Place {
		if b.Resources != nil && b.Resources.Shared.Terms != nil {
			return b.Resources.Shared.Terms.Priority
		}
	}
	return j.plan.Priority
}

// wholeOrGone reports whether as many of a gang run on as must, or nobody.
func (j *judgement) wholeOrGone(g *takenGang) bool {
	runs, least := map[string]int{}, map[string]int{}
	for _, u := range world.GangMembers(j.e, g.name) {
		if j.freed[u.ID] == nil || j.back[u.ID] {
			runs[u.Owner.Group]++
			least[u.Owner.Group] = u.Owner.Terms.GangMin
		}
	}
	if len(runs) == 0 {
		return true
	}
	for _, s := range g.victims {
		if u := j.freed[s.AllocID]; runs[u.Owner.Group] < u.Owner.Terms.GangMin {
			return false
		}
	}
	for group, n := range runs { // all must hold: the order cannot show
		if n < least[group] {
			return false
		}
	}
	return true
}

// homes returns the nodes of the newcomers that something is taken back for.
func (j *judgement) homes() map[string]string {
	if j.home != nil {
		return j.home
	}
	j.home = map[string]string{}
	for _, batch := range j.plan.Place {
		for i := range batch.Instances {
			id := structs.DeriveID(batch.Seed, uint64(batch.Instances[i].Ordinal))
			if j.reclaims[id] != nil {
				j.home[id] = batch.Nodes[batch.Instances[i].Node].ID
			}
		}
	}
	return j.home
}

func (j *judgement) refuseFor(newcomer, why string) {
	if node, placed := j.homes()[newcomer]; placed {
		j.refuse(node, why)
	}
}

// keepReclaimed undoes preemptions for newcomers on a node that has refused.
func (j *judgement) keepReclaimed(node string) {
	for _, s := range j.victims {
		if home, placed := j.homes()[s.PreemptedBy]; !placed || home == node {
			j.keepBack(s.AllocID)
		}
	}
}

// reportsReclaim reports whether an evaluation is one of a job that something is taken back from,
// and whether that holds.
func (j *judgement) reportsReclaim(ev *structs.Evaluation) (is, valid bool) {
	if ev.TriggeredBy != structs.EvalTriggerPreemption || ev.Status != structs.EvalStatusPending {
		return false, false
	}
	for _, s := range j.victims {
		if of := j.freed[s.AllocID].Owner; !j.back[s.AllocID] && of.Namespace == ev.Namespace && of.Job == ev.JobID {
			return true, true
		}
	}
	return true, slices.ContainsFunc(j.takenBack, func(of *world.Owner) bool { return of.Namespace == ev.Namespace && of.Job == ev.JobID })
}
