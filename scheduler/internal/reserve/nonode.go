package reserve

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/explain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/structs"
)

// noNode states which of the jobs no ready node may run, and why; "": there is none, or no node is ready. More room would not help: what it needs is not
// what is missing.
func noNode(c *chooser, r *request) string {
	var ready []*structs.Node
	for _, n := range c.nodes {
		if n.Node.Ready() {
			ready = append(ready, n.Node)
		}
	}
	for _, stage := range r.jobs {
		for _, job := range stage {
			if job.PerNode() { // nothing is reserved for it
				continue
			}
			for _, g := range job.TaskGroups {
				why := ""
				if g.Count > 0 {
					why = explain.NoNode(c.e, feasible.NewFeasibility(job, g, feasible.NewMatcher()), ready)
				}
				if why == "" {
					continue
				}
				what := fmt.Sprintf("job %q", job.ID)
				if len(job.TaskGroups) > 1 {
					what = fmt.Sprintf("group %q of job %q", g.Name, job.ID)
				}
				return fmt.Sprintf("no ready node may run %s: %s", what, why)
			}
		}
	}
	return ""
}
