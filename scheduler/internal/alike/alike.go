// Package alike orders usages that are alike in all that a decision goes by: of one job, mostly.
//
// The IDs of their allocations settle it last. Nobody who foresees a decision (a forecast, a what-if) knows those that are still to be minted, so that
// what goes by them is foreseen wrongly: which node loses an instance is then another one.
package alike

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// TakenFirst is below zero if a is taken from before b: what began last is, as it loses least; of what began at once, by its place.
func TakenFirst(a, b *world.Usage) int {
	return cmp.Or(cmp.Compare(b.Created, a.Created), strings.Compare(a.NodeID, b.NodeID), slices.CompareFunc(a.Devices, b.Devices, func(x, y world.DeviceUsage) int {
		return cmp.Or(strings.Compare(x.ID, y.ID), cmp.Compare(x.Share, y.Share))
	}), slices.Compare(a.Cores, b.Cores), strings.Compare(a.ID, b.ID))
}
