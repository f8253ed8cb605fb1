package world

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
)

// PinFault is a pin that could not be bound.
type PinFault struct {
	Chain ChainKey
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
	l.e.claims.pins = nil
	for _, q := range quotas {
		for _, cell := range q.Pins {
			ed := ChainEdit(l.e, q.Chain)
			if ed == nil {
				l.e.claims.pins = append(l.e.claims.pins, PinFault{q.Chain, cell, cells.ErrUnknown})
				continue
			}
			k, ok := ed.View().KindOf(q.Level, q.Size)
			err := cells.ErrUnknown
			if ok {
				err = ed.Pin(cell, k, owner)
			}
			if err != nil {
				l.e.claims.pins = append(l.e.claims.pins, PinFault{q.Chain, cell, err})
				continue
			}
			l.markCell(ed.View(), cell)
		}
	}
}

// pinAgain binds pinned cells of which a node has become part, or of all nodes (""). While their node was not registered their owner may have
// bound others in place of them: of these, those of fewest uses are unbound.
func (l ledger) pinAgain(owner string, quotas []Quota, nodeID string) {
	for _, q := range quotas {
		for _, cell := range q.Pins {
			if nodeID != "" && cell.Site == "" && cell.Node != nodeID {
				continue
			}
			ed := ChainEdit(l.e, q.Chain)
			if ed == nil {
				continue
			}
			k, ok := ed.View().KindOf(q.Level, q.Size)
			if !ok {
				continue
			}
			if _, _, bound := ed.View().Binding(cell, k); bound {
				continue
			}
			b := cells.Binding{Cell: cell, Kind: k, Owner: owner, Pinned: true}
			if ed.View().Edit().Restore(b) != nil {
				continue
			}
			l.unbindFor(ed, owner, k, 1)
			if ed.Restore(b) == nil {
				l.markCell(ed.View(), cell)
			}
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
