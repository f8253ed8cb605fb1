package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// maxKindsNamed bounds the kinds of device that a warning names.
const maxKindsNamed = 5

// unknownDevices warns of requests for devices that no node has by that name: such a job
// may wait for machines to come, or its name is misspelt. Without any node there is
// nothing to compare with, and no warning.
func (e *Endpoint) unknownDevices(job *structs.Job) []string {
	requests := map[string][]string{} // device name → where it is requested; of those that are not known
	eachDevice(job, func(_ *structs.TaskGroup, _ *structs.Task, name string) { requests[name] = nil })
	if len(requests) == 0 {
		return nil
	}
	kinds, nodes := e.deviceKinds(requests)
	if len(requests) == 0 || nodes == 0 {
		return nil
	}
	eachDevice(job, func(g *structs.TaskGroup, t *structs.Task, name string) {
		if _, unknown := requests[name]; unknown {
			path := structs.ChildPath(structs.ChildPath(structs.ChildPath("", "job", job.ID, -1), "group", g.Name, -1), "task", t.Name, -1)
			requests[name] = append(requests[name], structs.ChildPath(structs.ChildPath(path, "resources", "", -1), "device", name, -1))
		}
	})
	var out []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		for _, path := range requests[name] {
			out = append(out, path+": no node has it; "+kindsText(kinds))
		}
	}
	return out
}

func eachDevice(job *structs.Job, f func(g *structs.TaskGroup, t *structs.Task, name string)) {
	for _, g := range job.TaskGroups {
		for _, t := range g.Tasks {
			if t.Resources == nil {
				continue
			}
			for _, d := range t.Resources.Devices {
				f(g, t, d.Name)
			}
		}
	}
}

// deviceKind is a kind of device and how many there are of it.
type deviceKind struct {
	vendor, typ, model string
	devices, nodes     int
	node               string // one that has it
}

// named reports whether a request's name means this kind: "type", "vendor/type" or
// "vendor/type/model".
func (k *deviceKind) named(name string) bool {
	switch parts := strings.Split(name, "/"); len(parts) {
	case 1:
		return k.typ == parts[0]
	case 2:
		return k.vendor == parts[0] && k.typ == parts[1]
	case 3:
		return k.vendor == parts[0] && k.typ == parts[1] && k.model == parts[2]
	}
	return false
}

// deviceKinds walks the nodes until one is found for each request, and takes from requests
// those that have one. If some are left it has the kinds of all nodes, those with the
// most devices first. nodes is how many were looked at.
func (e *Endpoint) deviceKinds(requests map[string][]string) (kinds []deviceKind, nodes int) {
	at := map[[3]string]int{}
	for n := range e.Router.Snapshot().Nodes(nil, "", false) {
		nodes++
		if n.NodeResources == nil {
			continue
		}
		for _, d := range n.NodeResources.Devices {
			if d == nil {
				continue
			}
			key := [3]string{d.Vendor, d.Type, d.Name}
			i, known := at[key]
			if !known {
				i, at[key] = len(kinds), len(kinds)
				kind := deviceKind{vendor: d.Vendor, typ: d.Type, model: d.Name, node: n.Name}
				kinds = append(kinds, kind)
				maps.DeleteFunc(requests, func(name string, _ []string) bool { return kind.named(name) })
			}
			kinds[i].devices += len(d.Instances)
			kinds[i].nodes++
		}
		if len(requests) == 0 {
			break // as a rule at once, also in a large cluster
		}
	}
	slices.SortStableFunc(kinds, func(a, b deviceKind) int { return cmp.Compare(b.devices, a.devices) })
	return kinds, nodes
}

func kindsText(kinds []deviceKind) string {
	if len(kinds) == 0 {
		return "no node of the cluster has devices"
	}
	var parts []string
	for _, k := range kinds[:min(len(kinds), maxKindsNamed)] {
		where := k.node
		if k.nodes > 1 {
			where += fmt.Sprintf(" and %d more", k.nodes-1)
		}
		parts = append(parts, fmt.Sprintf("%s/%s/%s (%d on %s)", k.vendor, k.typ, k.model, k.devices, where))
	}
	text := "the cluster has " + strings.Join(parts, ", ")
	if more := len(kinds) - maxKindsNamed; more > 0 {
		text += fmt.Sprintf(" and %d more kinds", more)
	}
	return text
}
