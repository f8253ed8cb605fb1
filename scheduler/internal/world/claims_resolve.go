package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// quotaOf returns a claim as a World has it.
func quotaOf(c *structs.CellClaim) Quota {
	q := Quota{
		Chain: ChainKey{c.NodePool, c.Vendor, c.Type, c.Model, c.Chain}, Level: c.Level, Size: c.Size, Count: c.Count, Order: c.Order,
	}
	for _, p := range c.Pins {
		q.Pins = append(q.Pins, cells.Cell{Node: p.NodeID, Index: p.Index, Site: p.Site})
	}
	return q
}

// QuotasOf returns claims as a World has them.
func QuotasOf(claims []structs.CellClaim) []Quota {
	list := make([]Quota, len(claims))
	for i := range claims {
		list[i] = quotaOf(&claims[i])
	}
	return list
}

// SetClaims states all that an owner owns, as SetQuotas does.
func SetClaims(e *Edit, owner string, claims []structs.CellClaim) { e.SetQuotas(owner, QuotasOf(claims)) }

// RestoreClaims states what everybody owns, as RestoreQuotas does.
func RestoreClaims(e *Edit, all map[string][]structs.CellClaim) {
	quotas := make(map[string][]Quota, len(all))
	for owner, claims := range all { // each has its own place: the order cannot show
		quotas[owner] = QuotasOf(claims)
	}
	e.RestoreQuotas(quotas)
}

// ClaimsOf returns the claims that quotas stand for: their chains and pins are found, and what was claimed before (was) keeps its
// place in the order of admission; what is new comes at an index of the log, after all others. sites are the levels above nodes. It
// returns an error of CodeBadRequest if a kind, a level, a size or a pin names nothing.
func ClaimsOf(w *World, list []*structs.CellQuota, was []structs.CellClaim, index uint64, sites []structs.TopologyLevel) ([]structs.CellClaim, error) {
	if len(list) == 0 {
		return nil, nil
	}
	chains := w.OwnableChains()
	var claims []structs.CellClaim
	for i, q := range list {
		c, err := resolve(w, chains, q, sites)
		if err != nil {
			return nil, structs.Errorf(structs.CodeBadRequest, "cells %d: %w", i+1, err)
		}
		if slices.ContainsFunc(claims, func(o structs.CellClaim) bool { return o.SameCells(c) }) {
			return nil, structs.Errorf(structs.CodeBadRequest, "cells %d: the same kind, level and size are stated twice", i+1)
		}
		claims = append(claims, inOrderOfAdmission(c, was, index<<16|uint64(i))...) //nolint:gosec // at most MaxCellQuotas
	}
	slices.SortStableFunc(claims, func(a, b structs.CellClaim) int { return cmp.Compare(a.Order, b.Order) })
	return claims, nil
}

// resolve returns the claim on all cells of a quota, without its order.
func resolve(w *World, chains []OwnableChain, q *structs.CellQuota, sites []structs.TopologyLevel) (*structs.CellClaim, error) {
	chain, err := FindChain(chains, cmp.Or(q.NodePool, structs.DefaultNodePool), q.Kind)
	if err != nil {
		return nil, err
	}
	if err := chain.CheckLevel(q.Level, q.Size, sites); err != nil {
		return nil, err
	}
	key := chain.Key
	c := &structs.CellClaim{
		NodePool: key.Pool, Vendor: key.Vendor, Type: key.Type, Model: key.Model, Chain: key.Tree, Tree: chain.Tree, Level: q.Level, Size: q.Size, Count: q.Count,
	}
	for _, pin := range q.Pin {
		cell, err := w.FindPin(chain, q.Level, q.Size, pin, sites)
		if err != nil {
			return nil, err
		}
		is := structs.CellPin{Name: pin, NodeID: cell.Node, Index: cell.Index, Site: cell.Site}
		for _, o := range c.Pins {
			if o.NodeID == is.NodeID && o.Index == is.Index && o.Site == is.Site {
				return nil, fmt.Errorf("pin %q: it is the same cell as %q", pin, o.Name)
			}
		}
		c.Pins = append(c.Pins, is)
	}
	return c, nil
}

// inOrderOfAdmission divides a claim into what was admitted before, in its order, and what is new.
func inOrderOfAdmission(c *structs.CellClaim, was []structs.CellClaim, order uint64) (list []structs.CellClaim) {
	left := c.Count
	add := func(n int, order uint64) {
		part := *c
		part.Count, part.Order, part.Pins = n, order, nil
		list = append(list, part)
		left -= n
	}
	for i := range was {
		if n := min(left, was[i].Count); n > 0 && was[i].SameCells(c) {
			add(n, was[i].Order)
		}
	}
	if left > 0 {
		add(left, order)
	}
	if len(list) > 0 {
		list[0].Pins = c.Pins
	}
	return list
}

// AdmitClaims tries what an owner shall own on a copy of a World. It returns an error of CodeConflict that names the highest level
// of which cells are short, and how many; of CodeBadRequest for kinds that cannot be owned and pins that somebody else has.
func AdmitClaims(w *World, owner string, claims []structs.CellClaim) error {
	s := w.Edit().Shortage(owner, QuotasOf(claims))
	if s == nil {
		return nil
	}
	if s.Pin != nil {
		name := pinName(claims, s.Pin)
		switch {
		case s.IsTaken():
			return structs.Errorf(structs.CodeConflict, "pin %q: the cell, or a part of it, is bound already", name).
				WithHint("`nomadish topology` shows by whom; another cell may be pinned, or none")
		case errors.Is(s.Err, cells.ErrUnsafe):
			return structs.Errorf(structs.CodeConflict, "pin %q: it would take cells that others own", name).WithHint("pin a cell of a node that is used already, or none")
		}
		return structs.Errorf(structs.CodeBadRequest, "pin %q: %w", name, s.Err)
	}
	if s.Err != nil {
		if s.Quota.Size > 0 && errors.Is(s.Err, cells.ErrUnknown) {
			return structs.Errorf(structs.CodeBadRequest, "level %s: there is no cell with %d nodes", s.Quota.Level, s.Quota.Size)
		}
		return structs.Errorf(structs.CodeBadRequest, "level %s: %w", s.Quota.Level, s.Err)
	}
	size := ""
	if s.Size > 0 {
		size = fmt.Sprintf(" of %d nodes", s.Size)
	}
	return structs.Errorf(structs.CodeConflict, "level %s%s: %d short", s.Level, size, s.Short).
		WithHint("`nomadish topology` and `nomadish vc list` show what there is and who owns it; -when-free lets the edit wait until it can be admitted")
}

func pinName(claims []structs.CellClaim, cell *cells.Cell) string {
	for i := range claims {
		for _, p := range claims[i].Pins {
			if p.NodeID == cell.Node && p.Index == cell.Index && p.Site == cell.Site {
				return p.Name
			}
		}
	}
	return cell.Node + cell.Site
}
