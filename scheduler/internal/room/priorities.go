package room

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// usagePriorities are those that use something on ready nodes, lowest first.
func usagePriorities(w *world.World) (list []int) {
	if world.KeepsUsage(w) {
		for key := range world.UsageSets(w).All {
			if len(list) == 0 || list[len(list)-1] != key.Priority {
				list = append(list, key.Priority)
			}
		}
		return list
	}
	seen := map[int]bool{}
	for _, n := range world.NodeStates(w).All {
		last := -1
		for _, u := range n.Usages {
			if p := u.ReclaimPriority(); n.Indexed.Family != "" && p != last {
				seen[p], last = true, p
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
