package reserve

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// distinct adds the instances of a job that have to be on distinct hosts, or to have distinct properties, as they are placed later. first is the place of the
// job's first instance in its stage.
func (c *chooser) distinct(stage, first int, job *structs.Job, levels map[string]int, of *workflow.Gangs) {
	at := map[feasible.Distinct]int{} // looked up only
	for _, g := range job.TaskGroups {
		f := feasible.NewFeasibility(job, g, feasible.NewMatcher())
		for _, d := range f.Distinct() {
			i, known := at[d]
			if !known {
				i = len(of.Distinct)
				at[d] = i
				of.Distinct = append(of.Distinct, workflow.Distinct{Stage: stage, Level: c.property(d.Target, levels, of), Most: d.Most, Name: distinctName(job, &d)})
				if d.Reason != structs.ConstraintDistinctHosts {
					of.Distinct[i].Property = d.Target
				}
			}
			is := &of.Distinct[i]
			if n := len(is.Members); n > 0 && is.Members[n-1] >= first {
				continue // it is stated twice
			}
			for m := first; m < first+g.Count; m++ {
				is.Members = append(is.Members, m)
			}
		}
		first += g.Count
	}
}

// distinctName says whose instances have to be distinct.
func distinctName(job *structs.Job, d *feasible.Distinct) string {
	if d.Scope == "" {
		return fmt.Sprintf("job %q", job.ID)
	}
	return fmt.Sprintf("group %q of job %q", d.Scope, job.ID)
}

// property returns the index of a level whose domains are the values of a target, to which it is added if need be.
func (c *chooser) property(target string, known map[string]int, of *workflow.Gangs) int {
	name := "property " + target // no level has such a name
	return domains(c.nodes, name, known, of, func(n *world.NodeState) (string, bool) { return feasible.NodeResolver(n.Node)(target) })
}

// crowdedText says why instances that have to be distinct never have room.
func crowdedText(c *workflow.Crowded) string {
	of := fmt.Sprintf("%d instances of %s", len(c.Members), c.Name)
	if len(c.Members) == 1 {
		of = "1 instance of " + c.Name
	}
	if c.Property != "" {
		return fmt.Sprintf("%s, at most %d for each value of %s; the nodes that may run it have room for %d", of, c.Most, c.Property, c.Room)
	}
	only := fmt.Sprintf("only %d nodes", c.Room)
	switch c.Room {
	case 0:
		only = "no node"
	case 1:
		only = "only 1 node"
	}
	return fmt.Sprintf("%s on distinct hosts; %s may run it", of, only)
}
