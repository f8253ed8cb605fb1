package judge

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reserveWorkflow changes what a workflow has reserved if that holds: its run is still the same, and, if it is posted, all of it is free. Who leaves for
// it stays if it does not hold.
func (j *judgement) reserveWorkflow() {
	r := j.plan.Workflow
	if r == nil {
		return
	}
	if j.plan.AllAtOnce && len(j.refusedNodes) > 0 {
		return // nothing holds
	}
	was := world.WorkflowEdit{E: j.e}.Claim(r.Key())
	now, lack := reservable.As(j.e, r, len(j.updates) > 0)
	for _, s := range j.plan.Stop {
		if u := j.freed[s.AllocID]; u != nil && u.Guaranteed() && lack == "" {
			lack = "allocation " + structs.ShortID(s.AllocID) + " is guaranteed"
		}
	}
	if lack == "" && r.Posted && (!was.Posted || !structs.PartsEqual(was.Parts, r.Parts)) { // else who borrows of it leaves
		lack = j.mayNotLeave(was, r)
	}
	if lack == "" {
		lack = j.beyondParts(now)
	}
	if lack != "" {
		if j.plan.AllAtOnce { // nobody leaves for nothing
			at := "" // it may have licenses alone
			if len(r.Parts) > 0 {
				at = r.Parts[0].NodeID
			}
			j.refusedNodes = append(j.refusedNodes, at)
			j.refuseAll()
		}
		if j.reason == "" {
			j.reason = "workflow " + r.ID + ": " + lack
		}
		return
	}
	world.WorkflowEdit{E: j.e}.Set(now)
	j.workflow = r
}

// beyondParts returns why an allocation that the plan has use the reservation from now on, in place, may not; "": all may.
func (j *judgement) beyondParts(c *structs.WorkflowClaim) string {
	for _, old := range j.updated {
		u, there := world.Usages(world.Base(j.e)).Get(old.ID)
		if !there || u.Owner.Terms.Claim != structs.ClaimWorkflow || old.Owner.Terms.Claim == structs.ClaimWorkflow {
			continue
		}
		if u.Owner.Terms.WorkflowKey() != c.Key() {
			return "allocation " + structs.ShortID(u.ID) + " would use the reservation of another"
		}
		if lack := reservable.BeyondPart(j.e, c, u); lack != "" {
			return lack
		}
	}
	return ""
}

// mayNotLeave returns why somebody whom the plan stops must not leave for a reservation that is made; "": all may.
func (j *judgement) mayNotLeave(c *structs.WorkflowClaim, r *structs.WorkflowReservation) string {
	rules := world.Rules(world.Base(j.e))
	for _, s := range j.plan.Stop {
		u := j.freed[s.AllocID]
		if u == nil || j.leavesCells(u, r) || standing.HasFailed(world.Base(j.e), u) {
			continue
		}
		allocation := "allocation " + structs.ShortID(s.AllocID)
		switch {
		case u.PerNode():
			return allocation + " is of a system or sysbatch job: no claim takes from it"
		case rules.Band(u.Owner.Terms.Priority) >= rules.Band(c.Priority):
			return allocation + " is of no lower band"
		case u.Immune(rules):
			return allocation + " was requeued too often to be preempted by bands"
		}
		if g, some := u.Owner.Gang(); some && !j.wholeOrGone(&takenGang{name: g, victims: j.ofGang(g)}) {
			return "the gang of " + allocation + " would be left in part"
		}
	}
	return ""
}

// leavesCells reports whether a usage, or another of its gang, leaves a node of which a reservation is in cells: whoever has no claim leaves these.
func (j *judgement) leavesCells(u *world.Usage, r *structs.WorkflowReservation) bool {
	inCells := func(u *world.Usage) bool {
		return u != nil && slices.ContainsFunc(r.Parts, func(p structs.WorkflowPart) bool { return p.NodeID == u.NodeID && p.CellLevel != "" })
	}
	g, some := u.Owner.Gang()
	return inCells(u) || some && slices.ContainsFunc(j.ofGang(g), func(s *structs.AllocStop) bool { return inCells(j.freed[s.AllocID]) })
}

// ofGang returns those of a gang whom the plan stops.
func (j *judgement) ofGang(g world.GangName) (list []*structs.AllocStop) {
	for _, s := range j.plan.Stop {
		if u := j.freed[s.AllocID]; u != nil {
			if of, some := u.Owner.Gang(); some && of == g {
				list = append(list, s)
			}
		}
	}
	return list
}

// lacks returns what a node has too little of for a usage; "": of nothing. One of a workflow's run without a claim that has no room beside the reservation of
// its run takes what idles of that.
func (j *judgement) lacks(n *world.NodeState, u *world.Usage, by *world.Taker) string {
	lack := n.LacksUse(u, by)
	key := u.Owner.OfRun()
	if lack == "" || key == "" || !j.spares(key, u) {
		return lack
	}
	own := *by
	own.Borrows = key
	return n.LacksUse(u, &own)
}

// spares reports whether a usage leaves of the reservation of its run what other jobs of the stage have still to take. Those that the plan places were decided on
// beside it, as was all of a plan that holds whole or not at all: judged in another order it might be refused each time that it is decided on.
func (j *judgement) spares(workflow string, u *world.Usage) bool {
	c := world.WorkflowEdit{E: j.e}.Claim(workflow)
	if c == nil || j.plan.AllAtOnce {
		return true
	}
	need := world.ResourcesOf(u)
	for _, d := range u.Devices {
		if d.Share < world.WholeDevice { // of devices whole ones are awaited
			need.Devices--
		}
	}
	places := func(job string) bool {
		return slices.ContainsFunc(j.plan.Place, func(b *structs.PlacementBatch) bool { return b.JobID == job })
	}
	return reservable.Spares(j.e, c, places, func(*world.NodeState) world.Resources { return need })
}
