package reservable

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Bad returns the devices of a workflow's part of a ready node that it has lost, as they are bad or not there any more, and nothing of its run uses them: what runs
// on a bad device keeps it until it ends.
func Bad(n *world.NodeState, key string) (ids []string) {
	p, has := n.Part(key)
	if !has || p.Pending || n.Capacity == nil || n.Node == nil || !n.Node.Ready() {
		return nil
	}
	return n.BadOf(&p, func(u *world.Usage) bool { return ofRun(u, key) })
}

// Runs reports whether something of a workflow's run is on a node, by its reservation or without a claim.
func Runs(n *world.NodeState, key string) bool {
	return slices.ContainsFunc(n.Usages, func(u *world.Usage) bool { return ofRun(u, key) })
}

// ofRun reports whether a usage is of a workflow's run, by its reservation or without a claim.
func ofRun(u *world.Usage, key string) bool {
	t := &u.Owner.Terms
	return t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == key || u.Owner.OfRun() == key
}

// Without returns a part of a reservation without some of its devices; without any of them it is lost.
func Without(p structs.WorkflowPart, gone func(id string) bool) structs.WorkflowPart {
	p.DeviceIDs = slices.DeleteFunc(slices.Clone(p.DeviceIDs), gone)
	p.Devices = len(p.DeviceIDs)
	p.Lost = p.Devices == 0
	return p
}

// withoutBad returns an edit on which those parts of a posted reservation that change, and have bad devices, are what stays of them: what they give up is for the parts
// that come instead.
func withoutBad(e *world.Edit, was, c *structs.WorkflowClaim) *world.Edit {
	stay := *was
	stay.Parts = slices.Clone(was.Parts)
	changes := false
	for i, p := range was.Parts {
		n, known := world.StateOf(e, p.NodeID)
		if p.Lost || !known || containsPart(c.Parts, &p) || len(Bad(n, c.Key())) == 0 {
			continue
		}
		changes = true
		stay.Parts[i] = Without(p, func(id string) bool {
			return !slices.ContainsFunc(c.Parts, func(now structs.WorkflowPart) bool {
				return now.NodeID == p.NodeID && !now.Lost && slices.Contains(now.DeviceIDs, id)
			})
		})
	}
	if !changes || !was.Posted {
		return e
	}
	trial := e.World().Edit()
	world.WorkflowEdit{E: trial}.Set(&stay)
	return trial
}
