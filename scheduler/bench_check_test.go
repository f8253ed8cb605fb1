package scheduler_test

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// checkPlan is a second opinion on what a plan of a job with one group and one device request
// gives: as many healthy GPUs as asked, none twice, under one cell of the level that is required,
// and a gang's under one of its level. A fast answer that is wrong is worth nothing.
func checkPlan(w *scheduler.World, job *structs.Job, levels []structs.TopologyLevel, p *structs.Plan) error {
	g := job.TaskGroups[0]
	requested := g.Tasks[0].Resources.Devices
	if len(requested) == 0 {
		return nil
	}
	taken := map[string]bool{}
	racks := map[string]bool{}
	for _, b := range p.Place {
		for _, in := range b.Instances {
			n, known := w.Node(b.Nodes[in.Node].ID)
			if !known {
				return fmt.Errorf("node %s is not in the World", b.Nodes[in.Node].ID)
			}
			var ids []string
			for _, d := range in.Devices[g.Tasks[0].Name] {
				ids = append(ids, d.DeviceIDs...)
			}
			if len(ids) != requested[0].Count {
				return fmt.Errorf("an instance got %d GPUs, want %d", len(ids), requested[0].Count)
			}
			for _, id := range ids {
				if taken[id] {
					return fmt.Errorf("%s is given twice", id)
				}
				taken[id] = true
			}
			if t := requested[0].Topology; t != nil && t.Required && !underOne(n, t.Level, ids) {
				return fmt.Errorf("%v are not under one cell of level %q", ids, t.Level)
			}
			if g.Topology != nil && len(levels) > 0 {
				racks[n.Meta[levels[0].Meta]] = true
			}
		}
	}
	if len(racks) > 1 {
		return fmt.Errorf("the gang is placed in %d racks, want one", len(racks))
	}
	return nil
}

// underOne reports whether all devices are below one cell of the level.
func underOne(n *structs.Node, level string, ids []string) bool {
	parent := map[string]*structs.TopologyCell{}
	for _, c := range n.NodeResources.Topology.Cells {
		parent[c.ID] = c
	}
	var above []string
	for _, c := range n.NodeResources.Topology.Cells {
		for _, id := range c.Devices {
			if !slices.Contains(ids, id) {
				continue
			}
			at := c
			for at != nil && at.Level != level {
				at = parent[at.Parent]
			}
			if at == nil {
				return false
			}
			above = append(above, at.ID)
		}
	}
	return len(above) == len(ids) && len(slices.Compact(above)) == 1
}
