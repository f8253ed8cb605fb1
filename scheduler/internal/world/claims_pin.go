package world

import (
	"slices"

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

// pinAgain binds pinned cells of which a node has become part, or of all nodes ("").
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
			if ed.Restore(cells.Binding{Cell: cell, Kind: k, Owner: owner, Pinned: true}) == nil {
				l.markCell(ed.View(), cell)
			}
		}
	}
}
