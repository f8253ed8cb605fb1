package world

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// NodeChains returns the chains of a node, with their trees.
func NodeChains(n *structs.Node, has *Capacity) (keys []ChainKey, trees []*DeviceTree) {
	if n == nil || has == nil {
		return nil, nil
	}
	for _, t := range has.Trees {
		if key, ok := ChainOf(n, t); ok {
			keys, trees = append(keys, key), append(trees, t)
		}
	}
	return keys, trees
}

// nodeMove is a change of a node: the chains that it was in, and whether it goes to others, or to other cells of its site, so that
// what its usages claim is bound anew.
type nodeMove struct {
	was   []ChainKey
	moved bool
}

// beginMove comes before a node becomes another.
func (l ledger) beginMove(s *NodeState, n *structs.Node, has *Capacity) (m nodeMove) {
	if l.e.w.claims == nil {
		return m
	}
	m.was, _ = NodeChains(s.Node, s.Capacity)
	is, _ := NodeChains(n, has)
	m.moved = !slices.Equal(m.was, is)
	if s.Node != nil && n != nil {
		for _, level := range l.e.w.claims.sites {
			m.moved = m.moved || s.Node.Meta[level.Meta] != n.Meta[level.Meta]
		}
	}
	l.markSites(s)
	if m.moved {
		for _, u := range slices.Concat(s.Usages, s.reservedClaims()) {
			Unclaim(l.e, u)
		}
	}
	return m
}

// endMove comes when the node is what it is to be.
func (l ledger) endMove(s *NodeState, m nodeMove) {
	if l.e.w.claims == nil {
		return
	}
	l.ownClaims()
	keys, trees := NodeChains(s.Node, s.Capacity)
	for _, key := range m.was {
		if ed := ChainEdit(l.e, key); ed != nil && !slices.Contains(keys, key) {
			for _, b := range ed.DeleteNode(s.ID) {
				l.loseBinding(ed, b)
			}
			if ed.View().Nodes() == 0 {
				l.dropChain(key)
			}
		}
	}
	put := func(ready bool) {
		for i, key := range keys {
			if ed := l.changeChain(key, trees[i]); ed != nil {
				n := ChainNode(s, trees[i], l.e.w.claims.sites)
				n.Ready = n.Ready && ready
				for _, b := range ed.PutNode(n) {
					l.loseBinding(ed, b)
				}
			}
		}
	}
	if m.moved {
		put(false) // so that a rack around it is not bound before what is pinned of the node itself
		var pins []loosePin
		for owner, of := range l.e.w.claims.quotas.All {
			pins = append(pins, pinsOf(owner, of, s.ID)...)
		}
		l.pinAgain(pins)
	}
	put(true)
	if m.moved {
		l.claimAnew(s, true)
	}
	l.markSites(s)
	l.markClaims(s.ID)
}

// claimAnew binds what the usages of a node claim, those alone of which that is safe if that is in question.
func (l ledger) claimAnew(s *NodeState, check bool) {
	if s.Node == nil {
		return
	}
	for _, u := range slices.Clone(s.Usages) {
		if u.UsesCells() && (check && l.claimUnsafe(u) || !Claim(l.e, u)) {
			l.loseClaim(u)
		}
	}
	for _, u := range s.reservedClaims() {
		if check && l.claimUnsafe(u) || !Claim(l.e, u) {
			WorkflowEdit{l.e}.losePart(s.ID, u)
		}
	}
}

// claimUnsafe reports whether a usage claims a ready cell that is not bound, and must not be.
func (l ledger) claimUnsafe(u *Usage) bool {
	ed, k, list := l.cellsOf(u)
	for _, cell := range list {
		if !ed.View().Ready(cell, k) {
			return false // it is bound when it is
		}
	}
	return l.cellsLack(u) != ""
}

// loseBinding lets all usages of a cell that is not bound any more go on without their claim.
func (l ledger) loseBinding(ed *cells.Edit, b cells.Binding) {
	l.loosenLost(b)
	for _, u := range l.usagesOf(ed, b) {
		Unclaim(l.e, u) // its other cells
		l.lose(u)
	}
}

// usagesOf returns the usages that claim a cell.
func (l ledger) usagesOf(ed *cells.Edit, b cells.Binding) (list []*Usage) {
	level := ed.View().LevelName(b.Kind)
	ed.View().NodesOf(b.Cell, func(id string) bool {
		n, known := StateOf(l.e, id)
		if !known {
			return true
		}
		for _, u := range slices.Concat(n.Usages, n.reservedClaims()) {
			t := &u.Owner.Terms
			if !u.UsesCells() || u.CellOwner() != b.Owner || t.CellLevel != level || t.CellSize != b.Kind.Size {
				continue
			}
			if _, k, in := l.cellsOf(u); k == b.Kind && slices.Contains(in, b.Cell) {
				list = append(list, u)
			}
		}
		return true
	})
	return list
}
