package world

import (
	"cmp"
	"errors"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
)

// Shortage is why quotas cannot be admitted.
type Shortage struct {
	Quota Quota
	// Level and Size name the highest kind of which cells are short, Short is how many are.
	Level string
	Size  int
	Short int
	// Err is why, if it is not for the number: the kind cannot be owned, or a pin cannot be bound.
	Err error
	Pin *cells.Cell
}

// Shortage sets an owner's quotas as SetQuotas does and returns what forbids it; nil: nothing does. The edit is as after
// SetQuotas in either case, so that whoever only wants to know gives one that is then abandoned.
func (e *Edit) Shortage(owner string, quotas []Quota) *Shortage {
	e.from = nil
	if e.w.claims == nil && len(quotas) > 0 {
		ledger{e}.buildClaims(nil)
	}
	var short *Shortage
	was := e.w.Quotas(owner)
	changes := QuotaChanges(was, quotas)
	slices.SortStableFunc(changes, func(a, b Quota) int { return CompareChains(a.Chain, b.Chain) })
	for i := 0; i < len(changes) && short == nil; {
		n := i
		for n < len(changes) && changes[n].Chain == changes[i].Chain {
			n++
		}
		short = ledger{e}.shortage(changes[i:n])
		i = n
	}
	e.SetQuotas(owner, quotas)
	for _, f := range e.claims.pins {
		if short != nil || slices.ContainsFunc(was, func(q Quota) bool {
			return q.Chain == f.Chain && q.Level == f.Level && q.Size == f.Size && slices.Contains(q.Pins, f.Cell)
		}) {
			continue // a pin that its owner has, and that is not bound at present, forbids nothing
		}
		short = &Shortage{Err: f.Err, Pin: &f.Cell, Quota: Quota{Chain: f.Chain, Level: f.Level, Size: f.Size}}
	}
	return short
}

// shortage returns what changes of one chain lack.
func (l ledger) shortage(changes []Quota) *Shortage {
	ed := ChainEdit(l.e, changes[0].Chain)
	var list []cells.Change
	for _, d := range changes {
		if ed == nil {
			if d.Count > 0 {
				return &Shortage{Quota: d, Level: d.Level, Size: d.Size, Short: d.Count}
			}
			continue
		}
		k, ok := ed.View().KindOf(d.Level, d.Size)
		if !ok {
			if d.Count > 0 {
				return &Shortage{Quota: d, Err: cells.ErrUnknown}
			}
			continue
		}
		if d.Count > 0 {
			if err := ed.View().Ownable(k); err != nil {
				return &Shortage{Quota: d, Err: err}
			}
		}
		if d.Count != 0 {
			list = append(list, cells.Change{Kind: k, Count: d.Count})
		}
	}
	grows := slices.ContainsFunc(list, func(c cells.Change) bool { return c.Count > 0 })
	if !grows {
		return nil
	}
	slices.SortFunc(list, func(a, b cells.Change) int { return cmp.Or(a.Kind.Compare(b.Kind), cmp.Compare(a.Count, b.Count)) })
	if k, short := ed.View().Short(list...); short > 0 {
		return &Shortage{Quota: changes[0], Level: ed.View().LevelName(k), Size: k.Size, Short: short}
	}
	return nil
}

// IsTaken reports whether a pin failed because somebody else has bound the cell, or a part of it.
func (s *Shortage) IsTaken() bool { return errors.Is(s.Err, cells.ErrBound) }
