package domain

import (
	"cmp"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Common returns the lowest level within a node that holds all these devices. Of several trees only the node holds them.
func Common(n *world.NodeState, ids []string) string {
	for _, t := range n.Capacity.Trees {
		var numbers []int
		for _, id := range ids {
			if i, found := t.Find(id); found {
				numbers = append(numbers, i)
			}
		}
		if len(numbers) == len(ids) {
			return cmp.Or(t.Layout.Common(numbers), structs.LevelNode)
		}
	}
	return structs.LevelNode
}
