package domain

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/structs"
)

// Joint is a group that requests on one node all that the gang's first members request,
// so that one search finds the node for them, and a cell of a level below nodes.
func Joint(gw *reconcile.GangWork, level string) *structs.TaskGroup {
	all := &structs.TaskGroup{Name: gw.Works[0].Group.Name, EphemeralDisk: &structs.EphemeralDisk{}, Volumes: map[string]*structs.VolumeRequest{}}
	for _, work := range gw.Works {
		g := work.Group
		if work.First == 0 {
			continue
		}
		all.Constraints = append(all.Constraints, g.Constraints...)
		if len(all.Candidates) == 0 { // where groups name others, those are tried that the first names
			all.Candidates = g.Candidates
		}
		for name, v := range g.Volumes { // into a map: the order cannot show
			all.Volumes[g.Name+"/"+name] = v
		}
		for i := range work.First {
			all.Networks = append(all.Networks, g.Networks...)
			if g.EphemeralDisk != nil {
				all.EphemeralDisk.SizeMB += g.EphemeralDisk.SizeMB
			}
			for _, t := range g.Tasks {
				one := *t
				one.Name = fmt.Sprintf("%s/%d/%s", g.Name, i, t.Name)
				all.Tasks = append(all.Tasks, &one)
			}
		}
	}
	if KeptInCells(gw, level) {
		Gather(all.Tasks, level)
	}
	return all
}
