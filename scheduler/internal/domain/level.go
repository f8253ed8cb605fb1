package domain

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// SiteLevel returns a level above nodes by its name, and where it stands among them.
func SiteLevel(c *structs.SchedulerConfiguration, name string) (structs.TopologyLevel, int, bool) {
	levels := c.SiteLevels()
	at := slices.IndexFunc(levels, func(l structs.TopologyLevel) bool { return l.Name == name })
	if at < 0 {
		return structs.TopologyLevel{}, 0, false
	}
	return levels[at], at, true
}

// NodeLevel reports whether a level is one within nodes: a usual one, or one that a node reports.
func NodeLevel(w *world.World, name string) bool {
	if slices.Contains(structs.NodeLevels(), name) {
		return true
	}
	seen := map[*cell.Layout]bool{} // nodes of one family may have their devices in other places
	for _, c := range world.Families(w).All {
		for n := range c.All {
			for _, t := range n.Capacity.Trees {
				if seen[t.Layout] {
					continue
				}
				seen[t.Layout] = true
				if slices.Contains(t.Layout.Levels(), name) {
					return true
				}
			}
		}
	}
	return false
}

// Reached returns the lowest level under one cell of which all the nodes are; "" if that is above all levels.
func Reached(w *world.World, c *structs.SchedulerConfiguration, nodeIDs []string) string {
	if len(nodeIDs) == 0 {
		return ""
	}
	if !slices.ContainsFunc(nodeIDs, func(id string) bool { return id != nodeIDs[0] }) {
		return structs.LevelNode
	}
	first, _ := w.Node(nodeIDs[0])
	for _, level := range c.SiteLevels() {
		together := func(id string) bool {
			n, known := w.Node(id)
			return known && first != nil && first.Meta[level.Meta] != "" && n.Meta[level.Meta] == first.Meta[level.Meta]
		}
		if !slices.ContainsFunc(nodeIDs, func(id string) bool { return !together(id) }) {
			return level.Name
		}
	}
	return ""
}

// OfGang returns those of the nodes with room in the future, which come in the order of their time, on which a group of a job's gang, of which n are
// missing, is kept room: those under the cell that it requires where it can start first. None, if there will not be room for as many as start
// together: then they would only keep others out. planned are reservations that are made for the gang already, and not in the edit.
func OfGang(
	e *world.Edit, in *search.Input, g *feasible.Gang, group *structs.TaskGroup, instances []search.Future, n int, planned []*structs.Reservation,
) []search.Future {
	need := int64(n)
	for i := range g.Groups {
		if g.Groups[i].Group == group {
			need = min(need, int64(g.Groups[i].Min))
		}
	}
	under := underOf(&in.Config, g)
	only, bound := "", false // where other groups of it, or others of this one, have reserved room
	mine := func(nodeID string) {
		if node, known := world.StateOf(e, nodeID); known && node.Node != nil && !bound {
			only, bound = under(node.Node), true
		}
	}
	for id, h := range world.Reservations(world.Base(e)).All {
		if h.Namespace == in.Job.Namespace && h.Job == in.Job.ID {
			need--
			mine(id)
		}
	}
	for _, r := range planned {
		mine(r.NodeID)
	}
	room, of := map[string]int64{}, map[string][]search.Future{}
	for _, instance := range instances {
		cell := under(instance.Node.Node)
		if bound && cell != only {
			continue
		}
		room[cell] += instance.Fits
		of[cell] = append(of[cell], instance)
		if room[cell] >= need { // the first that holds all of it
			return of[cell]
		}
	}
	return nil
}

// underOf returns under which cell of the level that a gang requires a node is; all are under one if it requires none.
func underOf(c *structs.SchedulerConfiguration, g *feasible.Gang) func(*structs.Node) string {
	if g.Topology == nil || !g.Topology.Required {
		return func(*structs.Node) string { return "" }
	}
	if level, _, site := SiteLevel(c, g.Topology.Level); site {
		return func(n *structs.Node) string { return n.Meta[level.Meta] }
	}
	return func(n *structs.Node) string { return n.ID }
}
