package reservable

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Unclaimed returns what a workflow's running stage runs without a claim on nodes of which it has a part: as it was when the part came, or the claim of its gang
// was lost.
func Unclaimed(e *world.Edit, c *structs.WorkflowClaim) (list []*world.Usage) {
	for i := range c.Jobs {
		for _, u := range world.OfJob(e, c.Namespace, c.Jobs[i].JobID) {
			n, _ := world.StateOf(e, u.NodeID)
			if p, has := n.Part(c.Key()); has && !p.Pending && u.Owner.Terms.Claim == "" && u.Owner.Terms.WorkflowKey() == "" {
				list = append(list, u)
			}
		}
	}
	return list
}
