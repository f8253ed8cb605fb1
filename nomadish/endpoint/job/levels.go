package job

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// checkLevels refuses a job that requests a level of the topology that nothing here
// has: levels are those within nodes, those that nodes report besides, and those that
// the site configures.
func (e *Endpoint) checkLevels(job *structs.Job) error {
	snap := e.Router.Snapshot()
	config := snap.SchedulerConfig(nil)
	known := structs.NodeLevels()
	for _, l := range config.SiteLevels() {
		known = append(known, l.Name)
	}
	looked := false
	var problems structs.Problems
	check := func(path string, request *structs.TopologyConstraint) {
		if request == nil || slices.Contains(known, request.Level) {
			return
		}
		if !looked { // all nodes: only for a level that is none of the usual ones
			looked, known = true, reportedLevels(snap, known)
		}
		if slices.Contains(known, request.Level) {
			return
		}
		text := "unknown level \"" + request.Level + "\": this cluster has " + strings.Join(known, ", ")
		if near := structs.Nearest(request.Level, known); near != "" {
			text += "; did you mean \"" + near + "\"?"
		}
		problems = append(problems, structs.Problem{Path: path + " > topology", Field: "level", Text: text})
	}
	for _, g := range job.TaskGroups {
		group := structs.ChildPath(structs.ChildPath("", "job", job.ID, -1), "group", g.Name, -1)
		check(group, g.Topology)
		for _, t := range g.Tasks {
			if t.Resources == nil {
				continue
			}
			resources := structs.ChildPath(structs.ChildPath(group, "task", t.Name, -1), "resources", "", -1)
			for _, d := range t.Resources.Devices {
				check(structs.ChildPath(resources, "device", d.Name, -1), d.Topology)
			}
		}
	}
	return problems.Err()
}

// reportedLevels adds the levels that nodes report to those known.
func reportedLevels(snap *state.Snapshot, known []string) []string {
	for n := range snap.Nodes(nil, "", false) {
		if n.NodeResources == nil || n.NodeResources.Topology == nil {
			continue
		}
		for _, c := range n.NodeResources.Topology.Cells {
			if !slices.Contains(known, c.Level) {
				known = append(known, c.Level)
			}
		}
	}
	return known
}

// checkLicenses refuses a job that requests a license that there is not: it would wait for ever.
func (e *Endpoint) checkLicenses(job *structs.Job) error {
	if !slices.ContainsFunc(job.TaskGroups, func(g *structs.TaskGroup) bool { return g.Licenses() != nil }) {
		return nil
	}
	return job.UnknownLicenses(e.Router.Snapshot().Licenses().Names())
}

// checkNodePool refuses a job whose node pool does not exist: it would wait for ever.
func (e *Endpoint) checkNodePool(job *structs.Job) error {
	if e.Router.Snapshot().NodePools().Has(job.NodePool) {
		return nil
	}
	return structs.Errorf(structs.CodeBadRequest, "job %q: node_pool: node pool %q does not exist", job.ID, job.NodePool).
		WithHint("`nomadish node pool list` shows those that do; `nomadish node pool apply` makes one, and so does a node that names it")
}
