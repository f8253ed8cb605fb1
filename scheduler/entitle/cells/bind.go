package cells

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reasons for which a cell is not bound.
var (
	ErrUnknown = errors.New("there is no such cell")
	ErrBound   = errors.New("the cell is bound, or lies in a bound one, or one in it is bound")
	ErrQuota   = errors.New("the owner has no unbound cell of that kind")
	ErrUnsafe  = errors.New("binding it would take what others own")
)

// Cell names a cell: one within a node by its node and its index among those of its level there, a site cell by its key.
type Cell struct {
	Node  string
	Index int
	Site  string
}

// Binding is a cell that its owner uses, or that is pinned to it.
type Binding struct {
	Cell   Cell
	Kind   Kind
	Owner  string
	Pinned bool
	Uses   int // by how many it is used: the last that ends unbinds it, unless it is pinned
}

// Account is what an owner has of one kind.
type Account struct {
	Kind   Kind
	Given  int // quota cells
	Bound  int // of those: bound to cells
	Away   int // pinned to cells whose nodes are not ready
	Doomed int // not bound, and beyond what the hardware can hold
}

// Unbound returns how many cells an owner may still bind.
func (a *Account) Unbound() int { return a.Given - a.Bound - a.Away - a.Doomed }

type owner struct {
	token    *Token
	accounts []Account // in the order of their kinds
}

// account returns an owner's account of a kind, made if need be.
func (e *Edit) account(name string, k Kind) *Account {
	o, ok := e.c.owners.get(name)
	if !ok || o.token != e.tok {
		own := &owner{token: e.tok}
		if ok {
			own.accounts = slices.Clone(o.accounts)
		}
		o = own
		e.c.owners.put(e.tok, name, o)
	}
	at, found := slices.BinarySearchFunc(o.accounts, k, func(a Account, k Kind) int { return a.Kind.Compare(k) })
	if !found {
		o.accounts = slices.Insert(o.accounts, at, Account{Kind: k})
	}
	return &o.accounts[at]
}

// Accounts returns what an owner has, by kind.
func (c *Chain) Accounts(name string) []Account {
	o, ok := c.owners.get(name)
	if !ok {
		return nil
	}
	return slices.Clone(o.accounts)
}

// Account returns what an owner has of one kind.
func (c *Chain) Account(name string, k Kind) Account {
	if o, ok := c.owners.get(name); ok {
		if at, found := slices.BinarySearchFunc(o.accounts, k, func(a Account, k Kind) int { return a.Kind.Compare(k) }); found {
			return o.accounts[at]
		}
	}
	return Account{Kind: k}
}

// Bind binds a cell to an owner without a use, or pins it. It keeps the books only: whether the binding is safe is for [Edit.Safe]
// to say. It returns ErrUnknown, ErrBound or ErrQuota if it cannot be; a doomed quota cell counts as one that can be bound, so
// that bindings can be restored in any order.
func (e *Edit) Bind(cell Cell, k Kind, name string, pinned bool) error {
	if a := e.c.Account(name, k); a.Given-a.Bound-a.Away < 1 {
		return fmt.Errorf("%s: %w", name, ErrQuota)
	}
	b := Binding{Cell: cell, Kind: k, Owner: name, Pinned: pinned}
	if err := e.bind(b); err != nil {
		return err
	}
	e.finish()
	return nil
}

// Restore binds a cell with the uses that it had, as [Chain.Bindings] returned it. It keeps the books only, as Bind does. A pinned site cell
// that has not its nodes at present is restored, too, and so is one that is not ready, whatever is bound of it meanwhile.
func (e *Edit) Restore(b Binding) error {
	if s := e.ownSite(b.Cell.Site); s != nil && s.kind != b.Kind {
		e.setAway(b)
	} else if err := e.bind(b); err != nil {
		return err
	}
	e.finish()
	return nil
}

// bind binds a cell and moves the accounts on.
func (e *Edit) bind(b Binding) error {
	ready, err := e.c.ready(b.Cell), e.c.bindable(b.Cell, b.Kind)
	switch {
	case errors.Is(err, ErrBound) && !ready: // it is not bound until it is ready
		e.setAway(b)
	case err != nil:
		return err
	case ready:
		e.occupy(b)
		e.account(b.Owner, b.Kind).Bound++
		e.line(b.Kind).quota--
	default:
		e.setAway(b)
	}
	return nil
}

// setAway notes a binding of a cell that is not ready.
func (e *Edit) setAway(b Binding) {
	if b.Pinned {
		e.account(b.Owner, b.Kind).Away++
		e.line(b.Kind).quota--
	}
	if b.Cell.Site != "" {
		s := e.ownSite(b.Cell.Site)
		s.away = append(slices.Clone(s.away), b)
		return
	}
	n := e.ownNode(b.Cell.Node)
	n.away = append(slices.Clone(n.away), b)
}

// bindable returns why a cell cannot be bound at all.
func (c *Chain) bindable(cell Cell, k Kind) error {
	if cell.Site != "" {
		s, ok := c.groups.get(cell.Site)
		if !ok || s.kind != k {
			return ErrUnknown
		}
		clear := s.bound == nil && c.nodesIn(s, func(id string) bool {
			n, _ := c.nodes.get(id)
			return !n.under && len(n.bound) == 0
		})
		if !clear {
			return ErrBound
		}
		return nil
	}
	n, ok := c.nodes.get(cell.Node)
	if !ok || !c.within(k) || k.Size != 0 || k.Level < 0 || cell.Index < 0 || cell.Index >= c.cellsOf(k.Level) {
		return ErrUnknown
	}
	if n.under {
		return ErrBound
	}
	for i := range n.bound {
		if c.mask(n.bound[i].Kind.Level, n.bound[i].Cell.Index)&c.mask(k.Level, cell.Index) != 0 {
			return ErrBound
		}
	}
	return nil
}

// ready reports whether all nodes of a cell are ready.
func (c *Chain) ready(cell Cell) bool {
	if cell.Site == "" {
		n, ok := c.nodes.get(cell.Node)
		return ok && n.Ready
	}
	s, ok := c.groups.get(cell.Site)
	return ok && c.nodesIn(s, func(id string) bool {
		n, _ := c.nodes.get(id)
		return n.Ready
	})
}

// occupy takes a cell out of what is free.
func (e *Edit) occupy(b Binding) {
	if b.Cell.Site == "" {
		n := e.ownNode(b.Cell.Node)
		e.uncount(n)
		n.bound = append(slices.Clone(n.bound), b)
		e.count(n)
		return
	}
	s := e.ownSite(b.Cell.Site)
	s.bound = &b
	e.setUnder(s, true)
}

func (e *Edit) setUnder(s *site, under bool) {
	e.c.nodesIn(s, func(id string) bool {
		n := e.ownNode(id)
		e.uncount(n)
		n.under = under
		e.count(n)
		return true
	})
}

// leave returns a cell to what is free.
func (e *Edit) leave(b *Binding) {
	if b.Cell.Site != "" {
		s := e.ownSite(b.Cell.Site)
		s.bound = nil
		e.setUnder(s, false)
		return
	}
	n := e.ownNode(b.Cell.Node)
	e.uncount(n)
	n.bound = slices.DeleteFunc(slices.Clone(n.bound), func(o Binding) bool { return o.Cell == b.Cell && o.Kind == b.Kind })
	e.count(n)
}

// vacate unbinds what is bound of a node, and the site cell around it: it is bound again when they are ready.
func (e *Edit) vacate(n *node) {
	for _, b := range n.bound {
		e.depart(b)
	}
	for _, key := range e.c.keysOf(n.Sites) {
		e.vacateSite(e.ownSite(key.key))
	}
}

func (e *Edit) vacateSite(s *site) {
	if s != nil && s.bound != nil {
		e.depart(*s.bound)
	}
}

func (e *Edit) depart(b Binding) {
	e.leave(&b)
	e.account(b.Owner, b.Kind).Bound--
	e.line(b.Kind).quota++
	e.setAway(b)
}

// rebind binds again what was bound of a node and of the site cells around it before it ceased to be ready.
func (e *Edit) rebind(n *node) (lost []Binding) {
	away := n.away
	n.away = nil
	return append(e.rebindAll(away), e.rebindSites(n.Sites)...)
}

// rebindSites binds again what was bound of site cells before they ceased to be ready, or to have their nodes.
func (e *Edit) rebindSites(names []string) (lost []Binding) {
	var away []Binding
	for _, key := range e.c.keysOf(names) {
		s := e.ownSite(key.key)
		if s == nil || len(s.away) == 0 || !e.c.ready(Cell{Site: s.key}) {
			continue
		}
		away, s.away = s.away, nil
		for _, b := range away {
			if b.Kind != s.kind {
				s.away = append(s.away, b) // it has not its nodes back yet
			}
		}
		away = slices.DeleteFunc(slices.Clone(away), func(b Binding) bool { return b.Kind != s.kind })
		lost = append(lost, e.rebindAll(away)...)
	}
	return lost
}

// rebindAll binds what was bound, as far as there is room for it. Which of them that is goes by what they are, and not by the order in which they came to be away:
// a state that was made anew knows only that they are.
func (e *Edit) rebindAll(away []Binding) (lost []Binding) {
	for _, b := range slices.SortedFunc(slices.Values(away), compareAway) {
		if e.stale {
			e.recount()
		}
		if b.Pinned {
			e.account(b.Owner, b.Kind).Away--
			e.line(b.Kind).quota++
		} else if e.doom(); e.Safe(b.Cell, b.Kind, b.Owner) != nil {
			lost = append(lost, b)
			continue
		}
		if err := e.bind(b); err != nil {
			lost = append(lost, b)
		}
	}
	return lost
}

// compareAway orders what is to be bound again: what is pinned, then the largest, then what is used most.
func compareAway(a, b Binding) int {
	pinned := 0
	switch {
	case a.Pinned && !b.Pinned:
		pinned = -1
	case b.Pinned && !a.Pinned:
		pinned = 1
	}
	return cmp.Or(pinned, b.Kind.Compare(a.Kind), cmp.Compare(b.Uses, a.Uses), strings.Compare(a.Cell.Site, b.Cell.Site), strings.Compare(a.Cell.Node, b.Cell.Node),
		cmp.Compare(a.Cell.Index, b.Cell.Index), strings.Compare(a.Owner, b.Owner))
}

// Use counts one more use of a bound cell. It returns ErrUnknown if the cell is not bound.
func (e *Edit) Use(cell Cell, k Kind) error { return e.use(cell, k, 1) }

// Release counts one use less. The last one unbinds the cell, unless it is pinned. It returns ErrUnknown if the cell is
// not bound.
func (e *Edit) Release(cell Cell, k Kind) error { return e.use(cell, k, -1) }

func (e *Edit) use(cell Cell, k Kind, by int) error {
	b, away := e.binding(cell, k)
	if b == nil || b.Uses+by < 0 {
		return fmt.Errorf("%s: %w", e.c.LevelName(k), ErrUnknown)
	}
	b.Uses += by
	if b.Uses > 0 || b.Pinned {
		return nil
	}
	if away {
		e.dropAway(cell, k)
		return nil
	}
	gone := *b
	e.leave(&gone)
	e.account(gone.Owner, gone.Kind).Bound--
	e.line(gone.Kind).quota++
	e.finish()
	return nil
}

// Unpin ends a pin. The cell stays bound while it is used.
func (e *Edit) Unpin(cell Cell, k Kind) error {
	b, away := e.binding(cell, k)
	if b == nil || !b.Pinned {
		return fmt.Errorf("%s: %w", e.c.LevelName(k), ErrUnknown)
	}
	b.Pinned = false
	if away {
		e.account(b.Owner, k).Away--
		e.line(k).quota++
	}
	b.Uses++
	if err := e.use(cell, k, -1); err != nil {
		return err
	}
	e.finish()
	return nil
}

// binding returns a binding to change, and whether its cell is not ready.
func (e *Edit) binding(cell Cell, k Kind) (b *Binding, away bool) {
	same := func(b Binding) bool { return b.Cell == cell && b.Kind == k }
	if cell.Site != "" {
		s := e.ownSite(cell.Site)
		if s == nil {
			return nil, false
		}
		if s.bound != nil && same(*s.bound) {
			own := *s.bound
			s.bound = &own
			return s.bound, false
		}
		s.away = slices.Clone(s.away)
		if at := slices.IndexFunc(s.away, same); at >= 0 {
			return &s.away[at], true
		}
		return nil, false
	}
	n := e.ownNode(cell.Node)
	if n == nil {
		return nil, false
	}
	n.bound = slices.Clone(n.bound)
	if at := slices.IndexFunc(n.bound, same); at >= 0 {
		return &n.bound[at], false
	}
	n.away = slices.Clone(n.away)
	if at := slices.IndexFunc(n.away, same); at >= 0 {
		return &n.away[at], true
	}
	return nil, false
}

func (e *Edit) dropAway(cell Cell, k Kind) {
	same := func(b Binding) bool { return b.Cell == cell && b.Kind == k }
	if cell.Site != "" {
		s := e.ownSite(cell.Site)
		s.away = slices.DeleteFunc(s.away, same)
		return
	}
	n := e.ownNode(cell.Node)
	n.away = slices.DeleteFunc(n.away, same)
}

// Bindings calls yield for every bound cell in the order of their names, those of nodes that are not ready last of each
// node, until it returns false; away reports that the cell is not ready.
func (c *Chain) Bindings(yield func(b Binding, away bool) bool) {
	each := func(list []Binding, away bool) bool {
		for _, b := range list {
			if !yield(b, away) {
				return false
			}
		}
		return true
	}
	for _, s := range c.groups.all {
		if s.bound != nil && !yield(*s.bound, false) || !each(s.away, true) {
			return
		}
	}
	for _, n := range c.nodes.all {
		if !each(n.bound, false) || !each(n.away, true) {
			return
		}
	}
}
