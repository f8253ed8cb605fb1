package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
)

// PinFault is a pin that could not be bound.
type PinFault struct {
	Chain ChainKey
	Level string
	Size  int
	Cell  cells.Cell
	Err   error // one of package cells
}

// unpin ends pins that an owner is not to have any more.
func (l ledger) unpin(owner string, was, is []Quota) {
	for _, q := range was {
		ed := ChainEdit(l.e, q.Chain)
		if ed == nil {
			continue
		}
		k, ok := ed.View().KindOf(q.Level, q.Size)
		for _, cell := range q.Pins {
			if !ok || pinned(is, q, cell) {
				continue
			}
			if b, _, bound := ed.View().Binding(cell, k); bound && b.Owner == owner && b.Pinned {
				_ = ed.Unpin(cell, k) // is pinned
				l.markCell(ed.View(), cell)
			}
		}
	}
}

// pinned reports whether a cell is among the pins of quotas of the same chain, level and size as q.
func pinned(list []Quota, q Quota, cell cells.Cell) bool {
	return slices.ContainsFunc(list, func(o Quota) bool {
		return o.Chain == q.Chain && o.Level == q.Level && o.Size == q.Size && slices.Contains(o.Pins, cell)
	})
}

// pin binds the cells that are pinned to an owner, as far as that takes nothing that others own.
func (l ledger) pin(owner string, quotas []Quota) {
	c := l.e.w.claims
	c.loose = slices.DeleteFunc(slices.Clone(c.loose), func(p loosePin) bool { return p.owner == owner })
	l.e.claims.pins = nil
	for _, q := range quotas {
		for _, cell := range q.Pins {
			err := cells.ErrUnknown
			if ed := ChainEdit(l.e, q.Chain); ed != nil {
				if k, ok := ed.View().KindOf(q.Level, q.Size); ok {
					if err = ed.Pin(cell, k, owner); err == nil {
						l.markCell(ed.View(), cell)
						continue
					}
				}
			}
			l.e.claims.pins = append(l.e.claims.pins, PinFault{q.Chain, q.Level, q.Size, cell, err})
			l.loosen(loosePin{owner, q, cell})
		}
	}
}

// loosePin is a pin that is not bound: a part of its cell is bound by somebody else, as a node of the cell was not ready for a time, or
// there is no such cell. It is bound when it can be, see RetryPins.
type loosePin struct {
	owner string
	quota Quota // that it is of
	cell  cells.Cell
}

func (p loosePin) same(o loosePin) bool {
	return p.owner == o.owner && p.cell == o.cell && p.quota.Chain == o.quota.Chain && p.quota.Level == o.quota.Level && p.quota.Size == o.quota.Size
}

// compareLoose orders pins as they are bound: smaller cells are bound while those around them are not.
func compareLoose(a, b loosePin) int {
	return cmp.Or(cmp.Compare(a.quota.Size, b.quota.Size), cmp.Compare(a.quota.Order, b.quota.Order), strings.Compare(a.owner, b.owner),
		strings.Compare(a.cell.Node, b.cell.Node), strings.Compare(a.cell.Site, b.cell.Site), cmp.Compare(a.cell.Index, b.cell.Index))
}

// loosen notes that a pin is not bound.
func (l ledger) loosen(p loosePin) {
	c := l.ownClaims()
	if !slices.ContainsFunc(c.loose, p.same) {
		c.loose = append(slices.Clip(c.loose), p)
	}
}

// loosenLost notes that a binding that is lost was a pin.
func (l ledger) loosenLost(b cells.Binding) {
	quotas, _ := l.e.w.claims.quotas.Get(b.Owner)
	for _, q := range quotas {
		if b.Pinned && slices.Contains(q.Pins, b.Cell) {
			l.loosen(loosePin{b.Owner, q, b.Cell})
		}
	}
}

// RetryPins binds pinned cells that could not be bound, and of which no part is bound by now. Whoever changes what is bound calls it at
// the end, and a World that is made anew comes to the same by it, as what is used is bound first.
func (e *Edit) RetryPins() {
	if e.w.claims == nil || len(e.w.claims.loose) == 0 {
		return
	}
	e.from = nil
	c := ledger{e}.ownClaims()
	loose := slices.Clone(c.loose)
	slices.SortStableFunc(loose, compareLoose)
	c.loose = slices.DeleteFunc(loose, func(p loosePin) bool { return ledger{e}.rebindPin(p) })
}

// rebindPin binds a pinned cell if no part of it is bound, and reports whether it is bound now. While it was not, its owner may have bound
// others in place of it: of these, those of fewest uses are unbound.
func (l ledger) rebindPin(p loosePin) bool {
	ed := ChainEdit(l.e, p.quota.Chain)
	if ed == nil {
		return false
	}
	k, ok := ed.View().KindOf(p.quota.Level, p.quota.Size)
	if !ok {
		return false
	}
	is, _, bound := ed.View().Binding(p.cell, k)
	if bound && is.Pinned && is.Owner == p.owner {
		return true
	}
	b := cells.Binding{Cell: p.cell, Kind: k, Owner: p.owner, Pinned: true}
	if bound && is.Owner != p.owner || !bound && ed.View().Edit().Restore(b) != nil {
		return false
	}
	if bound { // it has a quota cell, unless it is away
		if ed.Pin(p.cell, k, p.owner) != nil {
			return false
		}
	} else {
		l.unbindFor(ed, p.owner, k, 1)
		if ed.Restore(b) != nil {
			return false
		}
	}
	l.markCell(ed.View(), p.cell)
	return true
}

// pinsOf returns an owner's pins of cells above nodes, and of a node.
func pinsOf(owner string, quotas []Quota, nodeID string) (list []loosePin) {
	for _, q := range quotas {
		for _, cell := range q.Pins {
			if cell.Site != "" || cell.Node == nodeID {
				list = append(list, loosePin{owner, q, cell})
			}
		}
	}
	return list
}

// pinAgain binds pinned cells anew, in the order of RetryPins.
func (l ledger) pinAgain(list []loosePin) {
	slices.SortStableFunc(list, compareLoose)
	for _, p := range list {
		if !l.rebindPin(p) {
			l.loosen(p)
		}
	}
}

// pinAway pins the cells that are not ready, whatever others have bound of them meanwhile, and notes that all other pins are not bound
// yet: RetryPins binds them, when all is bound that is used.
func (l ledger) pinAway() {
	c := l.ownClaims()
	c.loose = nil
	for _, q := range inOrder(&c.quotas) {
		for _, cell := range q.Pins {
			p := loosePin{q.owner, q.Quota, cell}
			ed := ChainEdit(l.e, q.Chain)
			if ed != nil {
				if k, ok := ed.View().KindOf(q.Level, q.Size); ok && !ed.View().Ready(cell, k) && l.rebindPin(p) {
					continue
				}
			}
			c.loose = append(c.loose, p)
		}
	}
}

// Pin is a cell that is pinned to an owner, as a job names it.
type Pin struct {
	Chain ChainKey
	Cell  cells.Cell
	Kind  cells.Kind
}

// OwnPin returns the cell that is pinned to an owner and has a name, as FindPin reads it; false if there is none, or its node is not
// known any more.
func (w *World) OwnPin(owner, name string) (p Pin, ok bool) {
	for _, q := range w.Quotas(owner) {
		chain, known := w.Chain(q.Chain)
		if !known {
			continue
		}
		k, _ := chain.KindOf(q.Level, q.Size)
		for _, cell := range q.Pins {
			if w.isCalled(chain, cell, k, name) {
				return Pin{q.Chain, cell, k}, true
			}
		}
	}
	return p, false
}

// isCalled reports whether a cell has a name: its node's name or ID, and its level and number there.
func (w *World) isCalled(chain *cells.Chain, cell cells.Cell, k cells.Kind, name string) bool {
	if cell.Site != "" {
		return chain.CellName(cell, k, "") == name
	}
	n, known := w.nodes.Get(cell.Node)
	if !known || n.Node == nil {
		return false
	}
	node, path, _ := strings.Cut(name, "/")
	_, is, _ := strings.Cut(chain.CellName(cell, k, "node"), "/")
	return (node == n.Node.Name || node == n.ID) && lastOf(path) == lastOf(is)
}

func lastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Has reports whether a free cell of the pin's chain lies in the pinned one.
func (p *Pin) Has(c *cells.Chain, r *Room) bool {
	return r.Bound == p.Kind && slices.Contains(c.CellsOf(r.NodeID, r.Bound, c.Mask(r.Level, r.Index)), p.Cell)
}

// Away reports whether the nodes of a pinned cell are not ready.
func (w *World) Away(p *Pin) bool {
	chain, known := w.Chain(p.Chain)
	if !known {
		return true
	}
	_, away, bound := chain.Binding(p.Cell, p.Kind)
	return away || !bound
}

// FreeInPin returns how many instances the free cells within a pinned one hold, each in a cell of a level within nodes. It counts to most.
func (w *World) FreeInPin(p *Pin, owner string, level, most int) (n int) {
	chain, known := w.Chain(p.Chain)
	if !known || level >= len(chain.Levels()) {
		return 0
	}
	w.claims.rooms.Ascend(Room{Chain: p.Chain, Owner: owner, Level: level}, func(r Room, _ struct{}) bool {
		if r.Chain != p.Chain || r.Owner != owner || n >= most {
			return false
		}
		if p.Has(chain, &r) {
			n += chain.Levels()[r.Level].Devices / chain.Levels()[level].Devices
		}
		return true
	})
	return min(n, most)
}
