package reserve

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// cellsOf is the work of finding the cells within nodes that a packing requires.
type cellsOf struct {
	*chooser
	as    nodesAs
	parts []workflow.Part
	used  map[int]map[string]bool // the devices under the cells of each node, of all stages
}

// skips reports whether a node is taken to have the cells, as it has a part of what is left, or instances that are packed where they run.
func (x *cellsOf) skips(i int) bool { return x.taken[i] || len(x.usedOn(i)) > 0 }

// place finds the cells of each stage, one stage after the other. It returns the nodes where there are not enough, with how many devices the stage that does
// not find its cells has there.
func (x *cellsOf) place(r *request) (short map[int]int) {
	short = map[int]int{}
	for s := range r.within {
		on, ok := workflow.Assign(x.parts, r.stages, s, r.gangs)
		if len(r.within[s]) == 0 || !ok {
			continue
		}
		free := map[int][]*cell.State{}
		for k := range r.within[s] {
			w := &r.within[s][k]
			i := on[w.members[0]]
			if x.skips(i) || short[i] > 0 {
				continue
			}
			if free[i] == nil {
				free[i] = x.free(i)
			}
			ids := x.find(i, w, free[i], x.used[i])
			if ids == nil {
				for m, node := range on {
					if node == i {
						short[i] += int(r.stages[s][m].Needs.Devices)
					}
				}
				continue
			}
			if x.used[i] == nil {
				x.used[i] = map[string]bool{}
			}
			for _, id := range ids {
				x.used[i][id] = true
			}
		}
	}
	return short
}

// free returns what is free of the devices of a node, to be changed.
func (x *cellsOf) free(i int) (list []*cell.State) {
	for _, s := range x.as.state(i).Cells {
		list = append(list, s.Clone())
	}
	return list
}

// find takes a cell for what is required within a node out of what is free: if it can be among devices that the reservation has there for other stages, else
// among those that are free now. nil: there is none.
func (x *cellsOf) find(i int, w *within, free []*cell.State, used map[string]bool) (ids []string) {
	n, now := x.as.state(i), x.nodes[i]
	spare := x.as.allowed(i)
	barred := func(id string) bool { return !x.as.alone && n.Bars(id, &world.Taker{Borrows: x.key}) }
	of := []func(at, device int) bool{
		func(at, device int) bool { return used[n.Capacity.Trees[at].IDs[device]] },
		func(at, device int) bool { return now.Cells[at].FreeShare(device) == world.WholeDevice },
		func(int, int) bool { return true },
	}
	for _, among := range of {
		for at, t := range n.Capacity.Trees {
			for _, group := range n.Node.NodeResources.Devices {
				if !w.matches(group) {
					continue
				}
				allowed := func(d int) bool {
					return t.Groups[d] == group && (spare == nil || spare(t, d)) && !barred(t.IDs[d]) && among(at, d)
				}
				found, ok := free[at].Find(cell.Request{Count: w.count, Share: world.WholeDevice, Level: w.level, Required: true, Allowed: allowed})
				if !ok {
					continue
				}
				for _, d := range found.Devices {
					free[at].Take(d, world.WholeDevice)
					ids = append(ids, t.IDs[d])
				}
				return ids
			}
		}
	}
	return nil
}

// names returns the devices of the parts of the nodes that have such cells: those under the cells, and as many more as the part has. It returns the nodes of
// which the part has fewer, with how many it has.
func (x *cellsOf) names() (named map[int][]string, short map[int]int) {
	named, short = map[int][]string{}, map[int]int{}
	for _, p := range x.parts {
		used, devices := x.used[p.Node], int(p.Amounts.Devices)
		if len(used) == 0 {
			continue
		}
		ids := slices.Sorted(maps.Keys(used))
		if more := devices - len(ids); more > 0 {
			spare := x.as.allowed(p.Node)
			rest := nameOf(x.as.state(p.Node), x.key, more, func(t *world.DeviceTree, d int) bool { return !used[t.IDs[d]] && (spare == nil || spare(t, d)) })
			ids = append(ids, rest...)
			slices.Sort(ids)
		}
		if len(ids) != devices {
			short[p.Node] = devices
		}
		named[p.Node] = ids
	}
	return named, short
}
