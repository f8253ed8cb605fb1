package world

import "github.com/nomadish/nomadish/scheduler/entitle/cells"

// FreeFor returns how many instances an owner's free cells of a chain hold, each in a cell of a level within nodes: those that it
// may bind, and the free rooms in those that it has bound. It counts to most at most. What it counts need not all be placeable:
// constraints, or what else the nodes lack, may forbid it.
func (w *World) FreeFor(key ChainKey, owner string, level, most int) (n int) {
	chain, found := w.Chain(key)
	if !found || level >= len(chain.Levels()) {
		return 0
	}
	devices := chain.Levels()[level].Devices
	for _, a := range chain.Accounts(owner) {
		if a.Kind.Level >= level {
			n += max(0, a.Unbound()) * chain.Devices(a.Kind) / devices
		}
	}
	w.claims.rooms.Ascend(Room{Chain: key, Owner: owner, Level: level}, func(r Room, _ struct{}) bool {
		if r.Chain != key || r.Owner != owner || n >= most {
			return false
		}
		n += chain.Devices(cells.Kind{Level: r.Level}) / devices
		return true
	})
	return min(n, most)
}

// LargestFree returns, of each chain in the order of their keys, the number of the highest level within nodes of which an owner
// has a free cell, beginning with 1; 0: it has none.
func (w *World) LargestFree(owner string) (list []int) {
	for key, chain := range w.Chains {
		level := len(chain.Levels())
		for level > 0 && w.FreeFor(key, owner, level-1, 1) == 0 {
			level--
		}
		list = append(list, level)
	}
	return list
}

// AnyOwner reports whether anybody owns cells.
func (w *World) AnyOwner() bool { return w.claims != nil }

// AnyClaims reports whether anybody owns cells or is given slots, so that what has no claim may have to leave.
func (w *World) AnyClaims() bool { return w.claims != nil || w.slots != nil }
