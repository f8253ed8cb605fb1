package reserve

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Renew returns the reservation of a workflow with what was lost of it, as nodes are not ready any more, on other nodes, if all of that is free (part
// 5, "A lost node's part is reserved anew"); else as it is, with what is missing.
func Renew(w *world.World, c *structs.WorkflowClaim) *structs.WorkflowReservation {
	out := &structs.WorkflowReservation{Namespace: c.Namespace, ID: c.ID, Run: c.Run, Posted: true, Parts: c.Parts, Licenses: c.Licenses, Closed: c.Closed}
	x := chooser{w: w, e: w.Edit(), key: c.Key(), pool: c.NodePool}
	x.list()
	at := map[string]int{}
	for i, n := range x.nodes {
		at[n.ID] = i
	}
	var kept []structs.WorkflowPart
	var lost []workflow.Instance
	var names []string
	for _, p := range c.Parts {
		i, ready := at[p.NodeID]
		if !ready {
			lost = append(lost, workflow.Instance{Needs: workflow.Amounts{
				CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Cores: int64(p.Cores), Devices: int64(p.Devices),
			}})
			names = append(names, structs.ShortID(p.NodeID))
			continue
		}
		kept = append(kept, p)
		x.free[i] = workflow.Amounts{} // one part of a node is enough
	}
	if len(lost) == 0 {
		return out
	}
	packed := workflow.Pack(x.free, [][]workflow.Instance{lost}, workflow.Amounts{})
	if !packed.Missing.IsZero() {
		out.Missing = "node " + strings.Join(names, ", ") + " is lost, and nowhere is so much free: " + text(packed.Missing) + " are missing"
		return out
	}
	out.Parts = slices.Concat(kept, x.parts(packed.Parts))
	return out
}
