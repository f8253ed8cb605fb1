package reserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// gangs returns the gangs of the stages' jobs that require a level of topology: all members of each are reserved under one cell of a level above nodes,
// or on one node; and the instances that have to be on distinct hosts, or to have distinct properties. Their members are by places in what instances returns.
// Levels within nodes count as the node: see [within].
func (c *chooser) gangs(stages []Stage) (out workflow.Gangs) {
	levels := map[string]int{} // looked up only
	for s, stage := range stages {
		next := 0
		for _, job := range stage {
			if job.PerNode() {
				continue
			}
			c.distinct(s, next, job, levels, &out)
			gangs := feasible.GangsOf(job)
			at := map[*feasible.Gang]int{} // looked up only
			for _, g := range job.TaskGroups {
				first := next
				next += g.Count
				gang := gangs[g.Name]
				if gang == nil || gang.Topology == nil || !gang.Topology.Required || g.Count == 0 {
					continue
				}
				i, known := at[gang]
				if !known {
					i = len(out.List)
					at[gang] = i
					out.List = append(out.List, workflow.Gang{
						Stage: s, Level: c.level(gang.Topology.Level, levels, &out), Name: fmt.Sprintf("a gang of job %q in one cell of level %q", job.ID, gang.Topology.Level),
					})
				}
				for m := first; m < next; m++ {
					out.List[i].Members = append(out.List[i].Members, m)
				}
			}
		}
	}
	out.Distinct = slices.DeleteFunc(out.Distinct, func(d workflow.Distinct) bool { return d.Property == "" && len(d.Members) <= d.Most })
	if node, some := levels[structs.LevelNode]; some { // one instance is on one node anyway
		out.List = slices.DeleteFunc(out.List, func(g workflow.Gang) bool { return g.Level == node && len(g.Members) == 1 })
	}
	return out
}

// level returns the index of a level among those of gangs, to which it is added if need be.
func (c *chooser) level(name string, known map[string]int, of *workflow.Gangs) int {
	at := slices.IndexFunc(c.w.SiteLevels(), func(l structs.TopologyLevel) bool { return l.Name == name })
	if at < 0 {
		name = structs.LevelNode
	}
	return domains(c.nodes, name, known, of, func(n *world.NodeState) (string, bool) {
		value := n.ID
		if at >= 0 {
			value = n.Node.Meta[c.w.SiteLevels()[at].Meta]
		}
		return value, value != ""
	})
}

// domains returns the index of a level by its name, to which it is added if need be: nodes with one value are one domain of it, and those without are in none.
func domains(nodes []*world.NodeState, name string, known map[string]int, of *workflow.Gangs, value func(*world.NodeState) (string, bool)) int {
	if i, is := known[name]; is {
		return i
	}
	known[name] = len(of.Levels)
	level, numbers := make([]int, len(nodes)), map[string]int{}
	for i, n := range nodes {
		v, found := value(n)
		if level[i] = -1; !found {
			continue
		}
		number, is := numbers[v]
		if !is {
			number = len(numbers)
			numbers[v] = number
		}
		level[i] = number
	}
	of.Levels = append(of.Levels, level)
	return known[name]
}

// where says where something is missing, if there is room for it, but not where it is needed.
func where(of workflow.Packing, r *request) string {
	if !of.Apart {
		return ""
	}
	by := r.gangs
	var what []string
	if len(by.List) > 0 || slices.ContainsFunc(r.within, func(list []within) bool { return len(list) > 0 }) {
		what = append(what, "their required levels of topology")
	}
	if slices.ContainsFunc(by.Distinct, func(d workflow.Distinct) bool { return d.Property == "" }) {
		what = append(what, "distinct hosts")
	}
	if slices.ContainsFunc(by.Distinct, func(d workflow.Distinct) bool { return d.Property != "" }) {
		what = append(what, "distinct properties")
	}
	return " where the stages' jobs have " + strings.Join(what, " and ")
}
