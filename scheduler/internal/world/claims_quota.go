package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// SetQuotas states all that an owner owns, in the order of admission; nothing: it owns nothing any more. Whether there is enough
// is for [cells.Chain.Short] to say. What is bound beyond it is unbound, the cells of fewest uses first: see LostClaims.
func (e *Edit) SetQuotas(owner string, quotas []Quota) {
	e.from = nil
	var was []Quota
	if e.w.claims == nil {
		if len(quotas) == 0 {
			return
		}
		ledger{e}.buildClaims(nil)
	} else {
		was, _ = e.w.claims.quotas.Get(owner)
	}
	c := ledger{e}.ownClaims()
	ledger{e}.unpin(owner, was, quotas)
	for _, d := range QuotaChanges(was, quotas) {
		ledger{e}.changeQuota(owner, d)
	}
	ledger{e}.admitted(owner, quotas)
	ledger{e}.pin(owner, quotas)
	if len(e.claims.pins) > 0 {
		ledger{e}.pinAgain(pinsOf(owner, quotas, "")) // no edit is admitted with such a pin, but time goes on: as when its node returns
	}
	if len(quotas) > 0 {
		tree.Put(e.tok, &c.quotas, owner, slices.Clone(quotas))
		return
	}
	tree.Delete(e.tok, &c.quotas, owner)
	if c.quotas.Len() == 0 {
		for _, u := range e.w.allocs.All {
			if u.UsesCells() {
				ledger{e}.loseClaim(u)
			}
		}
		for _, id := range e.nodeIDs() {
			n, _ := StateOf(e, id)
			for _, u := range n.reservedClaims() {
				WorkflowEdit{e}.losePart(id, u)
			}
		}
		e.w.claims, e.claims.open, e.claims.dirty, e.claims.uses, e.claims.freed = nil, nil, nil, nil, nil
	}
}

// RestoreQuotas states what everybody owns, by owner, of a World of which no quotas are known yet. RetryPins is to come when all
// is known that is used.
func (e *Edit) RestoreQuotas(all map[string][]Quota) {
	if len(all) == 0 {
		return
	}
	e.from = nil
	quotas := newTree[string, []Quota](strings.Compare)
	for owner, list := range all { // each has its own place: the order cannot show
		tree.Put(e.tok, &quotas, owner, slices.Clone(list))
	}
	ledger{e}.buildClaims(&quotas)
}

// QuotaSums returns what quotas have of each kind together.
func QuotaSums(quotas []Quota) []Quota { return QuotaChanges(nil, quotas) }

// QuotaChanges returns by how much each kind's total changes, in the order of the new list, then of the old one. Each has the order of
// admission of the last of its kind in the new list: of what is new, if there is more.
func QuotaChanges(was, is []Quota) (list []Quota) {
	add := func(q Quota, n int) {
		for i := range list {
			if o := &list[i]; o.Chain == q.Chain && o.Level == q.Level && o.Size == q.Size {
				o.Count += n
				if n > 0 {
					o.Order = max(o.Order, q.Order)
				}
				return
			}
		}
		q.Count = n
		list = append(list, q)
	}
	for _, q := range is {
		add(q, q.Count)
	}
	for _, q := range was {
		add(q, -q.Count)
	}
	return list
}

func (l ledger) changeQuota(owner string, d Quota) {
	ed := ChainEdit(l.e, d.Chain)
	if ed == nil {
		return // no node of the chain is known: what is owned of it is doomed
	}
	k, ok := ed.View().KindOf(d.Level, d.Size)
	if !ok {
		return
	}
	if d.Count > 0 {
		ed.Give(owner, k, d.Count, d.Order)
	}
	if d.Count < 0 {
		l.unbindFor(ed, owner, k, -d.Count)
		_ = ed.Withdraw(owner, k, -d.Count) // there are as many now
	}
}

// admitted states in which order an owner's cells were admitted: another week of a calendar may give as many that were admitted at other times.
func (l ledger) admitted(owner string, quotas []Quota) {
	for i := range quotas {
		q := &quotas[i]
		ed := ChainEdit(l.e, q.Chain)
		if ed == nil {
			continue
		}
		k, ok := ed.View().KindOf(q.Level, q.Size)
		if !ok {
			continue
		}
		var lots []cells.Lot
		for _, o := range quotas {
			if o.Chain == q.Chain && o.Level == q.Level && o.Size == q.Size {
				lots = append(lots, cells.Lot{Count: o.Count, Order: o.Order})
			}
		}
		ed.Admitted(owner, k, lots)
	}
}

// unbindFor unbinds cells of an owner until so many quota cells are unbound, those of fewest uses first.
func (l ledger) unbindFor(ed *cells.Edit, owner string, k cells.Kind, count int) {
	a := ed.View().Account(owner, k)
	excess := count - (a.Given - a.Bound - a.Away)
	if excess <= 0 {
		return
	}
	var list []cells.Binding
	ed.View().Bindings(func(b cells.Binding, away bool) bool {
		if b.Owner == owner && b.Kind == k && !b.Pinned && !away { // what is away needs a quota cell only when it comes back
			list = append(list, b)
		}
		return true
	})
	slices.SortStableFunc(list, func(a, b cells.Binding) int {
		return cmp.Or(cmp.Compare(a.Uses, b.Uses), strings.Compare(a.Cell.Node, b.Cell.Node), strings.Compare(a.Cell.Site, b.Cell.Site), cmp.Compare(a.Cell.Index, b.Cell.Index))
	})
	for _, b := range list[:min(excess, len(list))] {
		for _, u := range l.usagesOf(ed, b) {
			Unclaim(l.e, u)
			l.lose(u)
		}
	}
}

// buildClaims makes the chains from the nodes, what is owned of them, and what the usages claim.
func (l ledger) buildClaims(quotas *Tree[string, []Quota]) {
	sites := l.e.w.sites
	c := newClaims(sites)
	if quotas != nil {
		c.quotas = *quotas
	}
	c.owner = l.e.tok
	l.e.w.claims, l.e.claims.open, l.e.claims.dirty, l.e.claims.uses = c, nil, nil, nil
	l.e.claims.freed = nil
	ids := l.e.nodeIDs()
	for _, id := range ids {
		s, _ := StateOf(l.e, id)
		keys, trees := NodeChains(s.Node, s.Capacity)
		for i, key := range keys {
			if ed := l.changeChain(key, trees[i]); ed != nil {
				ed.PutNode(ChainNode(s, trees[i], sites))
			}
		}
		l.markClaims(id)
	}
	l.pinAway()
	for _, id := range ids {
		if s, found := StateOf(l.e, id); found {
			l.claimAnew(s, false)
		}
	}
	c = l.ownClaims()
	for _, u := range l.e.w.allocs.All {
		if u.raisable() {
			tree.Put(l.e.tok, &c.raisable, raiseKeyOf(u), u)
		}
	}
}

// owned is a quota with its owner.
type owned struct {
	owner string
	Quota
}

// inOrder returns all quotas in the order of their admission.
func inOrder(quotas *Tree[string, []Quota]) (list []owned) {
	for owner, of := range quotas.All {
		for _, q := range of {
			list = append(list, owned{owner, q})
		}
	}
	slices.SortStableFunc(list, func(a, b owned) int { return cmp.Compare(a.Order, b.Order) })
	return list
}

// setSites states which levels there are above nodes. Chains are built anew if that changes.
func (l ledger) setSites(levels []structs.TopologyLevel) {
	if slices.Equal(l.e.w.sites, levels) {
		return
	}
	l.e.w.sites = slices.Clone(levels)
	if l.e.w.claims != nil {
		quotas := l.e.w.claims.quotas
		l.buildClaims(&quotas)
		l.e.RetryPins()
	}
}
