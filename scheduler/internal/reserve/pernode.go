package reserve

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// TooSmall states of which system and sysbatch jobs of the stages instances wait for ever on ready nodes of a pool that may run them, as these could not hold them
// if they were empty: of a job for which there is no larger node in never, else in some. Nothing is reserved for these jobs, but their stage ends with them.
func TooSmall(w *world.World, pool string, stages []Stage) (never string, some []string) {
	for _, stage := range stages {
		for _, job := range stage {
			if !job.PerNode() {
				continue
			}
			for _, g := range job.TaskGroups {
				f, need := feasible.NewFeasibility(job, g, feasible.NewMatcher()), feasible.NeedsOf(g)
				may, small := 0, 0
				for _, n := range world.NodeStates(w).All { // order does not matter: they are counted
					if n.Node == nil || n.Capacity == nil || !n.Node.Ready() || !n.Node.InPool(pool) || !f.Verdict(n.Node).OK() {
						continue
					}
					if may++; whole(n).Lacks(need) != "" {
						small++
					}
				}
				where := fmt.Sprintf("%d of the %d nodes that may run it", small, may)
				if small == may {
					where = "every node that may run it"
				}
				text := fmt.Sprintf("job %q, of type %s, would wait on %s, as there is no room for an instance even on empty ones, and its stage would not end", job.ID, job.Type, where)
				switch {
				case small == 0:
				case small == may && never == "":
					never = text
				default:
					some = append(some, text)
				}
			}
		}
	}
	return never, some
}

// whole returns what a node has.
func whole(n *world.NodeState) world.Resources {
	return world.Resources{Amount: n.Capacity.Amount, Cores: len(n.Capacity.Cores), Devices: int(n.Capacity.WellDevices())}
}
