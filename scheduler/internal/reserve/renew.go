package reserve

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// nearTo returns which nodes are under the same cells of all levels above nodes as one that is lost. There gangs of the stages, which are not known here,
// have what they require as before. All are, if it is not known any more.
func (c *chooser) nearTo(id string) func(int) bool {
	lost, known := c.w.Node(id)
	if !known {
		return nil
	}
	return func(i int) bool {
		return !slices.ContainsFunc(c.w.SiteLevels(), func(l structs.TopologyLevel) bool { return lost.Meta[l.Meta] != c.nodes[i].Node.Meta[l.Meta] })
	}
}

// Renew returns the reservation of a workflow with what was lost of it, as nodes are not ready any more, on other nodes, if all of that is free, or is
// where some of the bands leave (part 5, "A lost node's part is reserved anew"); else as it is, with what is missing.
func Renew(w *world.World, c *structs.WorkflowClaim, bands Bands) Choice {
	out := Choice{Posted: true, Parts: c.Parts, Licenses: c.Licenses}
	x := chooser{w: w, e: w.Edit(), key: c.Key(), pool: c.NodePool, bands: bands, taken: map[int]bool{}}
	x.list()
	at := map[string]int{}
	for i, n := range x.nodes {
		at[n.ID] = i
	}
	var kept []structs.WorkflowPart
	var lost, near []workflow.Instance
	var names []string
	for _, p := range c.Parts {
		i, ready := at[p.NodeID]
		if !ready || p.Lost {
			lost = append(lost, workflow.Instance{Needs: workflow.Amounts{
				CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Cores: int64(p.Cores), Devices: int64(p.Devices),
			}})
			near = append(near, workflow.Instance{Needs: lost[len(lost)-1].Needs, MayUse: x.nearTo(p.NodeID)})
			names = append(names, structs.ShortID(p.NodeID))
			continue
		}
		kept = append(kept, p)
		x.free[i], x.taken[i] = workflow.Amounts{}, true // one part of a node is enough
	}
	if len(lost) == 0 {
		return out
	}
	if of, ok := x.packInCells(&request{stages: [][]workflow.Instance{lost}}); ok {
		of.Parts, of.Licenses = slices.Concat(kept, of.Parts), c.Licenses
		return of
	}
	packed, why := workflow.Pack(x.free, [][]workflow.Instance{near}, workflow.Amounts{}), ""
	if !packed.Missing.IsZero() {
		packed = workflow.Pack(x.free, [][]workflow.Instance{lost}, workflow.Amounts{})
	}
	if packed.Missing.IsZero() {
		parts := x.parts(packed.Parts)
		if x.nameParts(packed.Parts, parts) {
			out.Parts = slices.Concat(kept, parts)
			return out
		}
		why = "nowhere are as many GPUs free beside those that are guaranteed to others"
	} else {
		why = "nowhere is so much free: " + text(packed.Missing) + " are missing"
	}
	if of, ok := x.fromBands(&request{stages: [][]workflow.Instance{lost}}); ok {
		of.Parts, of.Licenses = slices.Concat(kept, of.Parts), c.Licenses
		return of
	}
	out.Missing = "the part on node " + strings.Join(names, ", ") + " is lost, and " + why
	return out
}
