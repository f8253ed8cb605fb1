package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

const (
	rawExec = "raw_exec"
	// maxUnlimitedNamed bounds the groups that are looked at for nodes without limits: each costs a look at every node.
	maxUnlimitedNamed = 5
	// maxReason bounds what is repeated of a node's reason, in bytes.
	maxReason = 300
)

// limitNames are what a node may limit, as its attribute and as a warning name it.
func limitNames() [][2]string {
	return [][2]string{{"memory", "memory"}, {"pids", "the number of processes"}, {"cpu", "CPU shares"}}
}

// unlimitedNodes warns of groups with tasks of raw_exec that could be placed on nodes which do not limit them.
func unlimitedNodes(w *scheduler.World, job *structs.Job) []string {
	var groups []*structs.TaskGroup
	for _, g := range job.TaskGroups {
		if slices.ContainsFunc(g.Tasks, func(t *structs.Task) bool { return t.Driver == rawExec }) {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 || !anyUnlimited(w) {
		return nil
	}
	var out []string
	for _, g := range groups[:min(len(groups), maxUnlimitedNamed)] {
		if text := unlimitedFor(w, job, g); text != "" {
			out = append(out, structs.ChildPath(structs.ChildPath("", "job", job.ID, -1), "group", g.Name, -1)+": "+text)
		}
	}
	if more := len(groups) - maxUnlimitedNamed; more > 0 && len(out) > 0 {
		out = append(out, fmt.Sprintf("%d more groups with raw_exec tasks were not checked for nodes that do not limit them", more))
	}
	return out
}

// anyUnlimited reports whether some node would run tasks of raw_exec without all limits, as a rule none does.
func anyUnlimited(w *scheduler.World) bool {
	for n := range w.Nodes() {
		if d := n.Drivers[rawExec]; d != nil && d.Detected && len(notLimited(n)) > 0 {
			return true
		}
	}
	return false
}

// notLimited lists what a node does not limit, as a warning names it.
func notLimited(n *structs.Node) []string {
	has := strings.Split(n.Attributes[structs.AttrRawExecLimits], ",")
	var out []string
	for _, name := range limitNames() {
		if !slices.Contains(has, name[0]) {
			out = append(out, name[1])
		}
	}
	return out
}

func unlimitedFor(w *scheduler.World, job *structs.Job, g *structs.TaskGroup) string {
	usable, without := 0, 0
	missing := map[string]bool{}
	var first *structs.Node
	for n := range scheduler.UsableNodes(w, job, g) {
		usable++
		list := notLimited(n)
		if len(list) == 0 {
			continue
		}
		without++
		if first == nil {
			first = n
		}
		for _, name := range list {
			missing[name] = true
		}
	}
	if without == 0 {
		return ""
	}
	var names []string
	for _, name := range limitNames() {
		if missing[name[1]] {
			names = append(names, name[1])
		}
	}
	reason := first.Attributes[structs.AttrRawExecLimitsReason]
	switch {
	case reason == "" && first.Attributes[structs.AttrRawExecLimits] == "":
		reason = "its agent is of a version without limits"
	case reason == "":
		reason = "it does not say why"
	case len(reason) > maxReason:
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return fmt.Sprintf("%d of %d nodes that could run it do not limit what its raw_exec tasks use (%s); node %q: %s",
		without, usable, strings.Join(names, ", "), first.Name, reason)
}
