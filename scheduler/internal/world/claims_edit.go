package world

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// claimsEdit is what an Edit changes of what is owned and bound.
type claimsEdit struct {
	open  map[ChainKey]*cells.Edit
	dirty map[string]bool // nodes whose rooms and users have to be moved on
	lost  []string        // allocations whose claim did not hold
	// lostParts are the workflows, by their keys, of whose reservations a part did not hold
	lostParts []string
	pins      []PinFault      // of the last SetQuotas
	freed     map[string]bool // nodes of which system or sysbatch instances have left devices
	uses      []ownerUse      // changes of what is in guaranteed use, to be added up: most evaluations are thrown away
}

// ownerUse is a change of what an owner uses by its claims.
type ownerUse struct {
	owner string
	chainUse
}

// ledger is an Edit as what changes what is owned and bound of it.
type ledger struct{ e *Edit }

// LostClaims returns the allocations, by ID, that have lost their claim since the last call: they run on, opportunistic, and the World counts them so.
func (e *Edit) LostClaims() (ids []string) {
	e.loseGangs()
	ids, e.claims.lost = e.claims.lost, nil
	slices.Sort(ids) // they were noted in the order of maps, and every server is to change their rows in one order
	return ids
}

// ownClaims returns the claims to change; nil while nobody owns anything.
func (l ledger) ownClaims() *claims {
	c := l.e.w.claims
	if c == nil {
		return nil
	}
	if c.owner != l.e.tok {
		own := *c
		own.owner = l.e.tok
		c, l.e.w.claims = &own, &own
	}
	return c
}

// ChainEdit returns an edit of a chain as it is now; nil if there is none. Only what Take, Release and Claim change is kept in
// the World: others must not change it.
func ChainEdit(e *Edit, key ChainKey) *cells.Edit {
	if open := e.claims.open[key]; open != nil {
		return open
	}
	if e.w.claims == nil {
		return nil
	}
	c, found := e.w.claims.chains.Get(key)
	if !found {
		return nil
	}
	PutInto(&e.claims.open, key, c.Edit())
	return e.claims.open[key]
}

// changeChain returns an edit of a chain, made for a tree if need be.
func (l ledger) changeChain(key ChainKey, t *DeviceTree) *cells.Edit {
	if open := ChainEdit(l.e, key); open != nil || t == nil {
		return open
	}
	c := l.ownClaims()
	names := make([]string, len(c.sites))
	for i, l := range c.sites {
		names[i] = l.Name
	}
	chain, err := cells.NewChain(ChainLevels(t), names)
	if err != nil {
		return nil // a site level is named as one within nodes: nothing of it can be owned
	}
	tree.Put(l.e.tok, &c.chains, key, chain)
	ed := ChainEdit(l.e, key)
	for _, q := range inOrder(&c.quotas) {
		if k, ok := chain.KindOf(q.Level, q.Size); ok && q.Chain == key {
			ed.Give(q.owner, k, q.Count, q.Order)
		}
	}
	return ed
}

// dropChain forgets a chain that has no node any more.
func (l ledger) dropChain(key ChainKey) {
	delete(l.e.claims.open, key)
	tree.Delete(l.e.tok, &l.ownClaims().chains, key)
}

// markClaims notes that what is used of a node has changed.
func (l ledger) markClaims(nodeID string) {
	if l.e.w.claims != nil {
		PutInto(&l.e.claims.dirty, nodeID, true)
	}
}

// markUsage notes that a usage came or went.
func (l ledger) markUsage(u *Usage) {
	if len(u.Devices) > 0 {
		l.subtract(u)
		l.markClaims(u.NodeID)
	}
}

// markCell notes that a cell was bound or unbound.
func (l ledger) markCell(c *cells.Chain, cell cells.Cell) {
	c.NodesOf(cell, func(id string) bool {
		l.markClaims(id)
		return true
	})
}

// markSites notes that the site cells of a node may have been bound or unbound.
func (l ledger) markSites(s *NodeState) {
	keys, _ := NodeChains(s.Node, s.Capacity)
	for _, key := range keys {
		ed := ChainEdit(l.e, key)
		if ed == nil {
			continue
		}
		for _, level := range l.e.w.claims.sites {
			if k, ok := ed.View().KindOf(level.Name, 1); ok {
				for _, cell := range ed.View().CellsOf(s.ID, k, 1) {
					l.markCell(ed.View(), cell)
				}
			}
		}
	}
}

// FlushClaims moves on what follows from the usages: the free rooms in bound cells, and who uses devices without a claim.
func FlushClaims(e *Edit) {
	ReturnDevices(e)
	if len(e.claims.dirty) == 0 || e.w.claims == nil {
		return
	}
	e.settle()
	ids := make([]string, 0, len(e.claims.dirty))
	for id := range e.claims.dirty { // sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	clear(e.claims.dirty)
	c := ledger{e}.ownClaims()
	for _, id := range ids {
		var rooms []Room
		if n, known := StateOf(e, id); known && n.Node != nil {
			for _, t := range n.Capacity.Trees {
				if key, ok := ChainOf(n.Node, t); ok {
					if ed := ChainEdit(e, key); ed != nil {
						ed.SetUsers(id, n.users(e, t))
						rooms = append(rooms, n.roomsOn(e, key, ed.View(), t)...)
					}
				}
			}
		}
		was, _ := c.on.Get(id)
		if slices.Equal(was, rooms) {
			continue
		}
		for _, r := range was {
			tree.Delete(e.tok, &c.rooms, r)
		}
		for _, r := range rooms {
			tree.Put(e.tok, &c.rooms, r, struct{}{})
		}
		if len(rooms) == 0 {
			tree.Delete(e.tok, &c.on, id)
		} else {
			tree.Put(e.tok, &c.on, id, rooms)
		}
	}
}

// closeChains ends the edits of chains.
func (l ledger) closeChains() {
	FlushClaims(l.e)
	if len(l.e.claims.uses) > 0 && l.e.w.claims != nil {
		l.addUses()
	}
	if len(l.e.claims.open) > 0 && l.e.w.claims != nil {
		c := l.ownClaims()
		for key, open := range l.e.claims.open { // each has its own place: the order cannot show
			tree.Put(l.e.tok, &c.chains, key, open.Chain())
		}
	}
	l.e.claims.open = nil
}

// Rooms calls yield for the free cells of at least a level within what an owner has bound of a chain, the smallest first,
// until it returns false. FlushClaims comes before it, and the edit must not change meanwhile.
func Rooms(e *Edit, key ChainKey, owner string, level int, yield func(Room) bool) {
	if e.w.claims == nil {
		return
	}
	e.w.claims.rooms.Ascend(Room{Chain: key, Owner: owner, Level: level}, func(r Room, _ struct{}) bool {
		return r.Chain == key && r.Owner == owner && yield(r)
	})
}

// treeOf returns the tree and the chain of the devices of a usage; false if its node is not known, or they are of none.
func (l ledger) treeOf(u *Usage) (*DeviceTree, ChainKey, bool) {
	n, known := StateOf(l.e, u.NodeID)
	if !known || n.Node == nil {
		return nil, ChainKey{}, false
	}
	for _, t := range n.Capacity.Trees {
		if DeviceMask(t, u) != 0 {
			key, ok := ChainOf(n.Node, t)
			return t, key, ok
		}
	}
	return nil, ChainKey{}, false
}

// cellsOf returns the chain and the cells of a usage's claim.
func (l ledger) cellsOf(u *Usage) (ed *cells.Edit, k cells.Kind, list []cells.Cell) {
	t, key, ok := l.treeOf(u)
	if !ok {
		return nil, k, nil
	}
	if ed = ChainEdit(l.e, key); ed == nil {
		return nil, k, nil
	}
	if k, ok = ed.View().KindOf(u.Owner.Terms.CellLevel, u.Owner.Terms.CellSize); !ok {
		return nil, k, nil
	}
	return ed, k, ed.View().CellsOf(u.NodeID, k, DeviceMask(t, u))
}

// known reports whether a usage's node is known. What is claimed of another is bound when it is registered again.
func (l ledger) known(nodeID string) bool {
	n, found := StateOf(l.e, nodeID)
	return found && n.Node != nil
}

// ClaimLacks returns why a usage cannot use its claim now; "" if it can, or if it makes no claim. The owner's cell must be bound,
// or binding it must leave what all others own. The devices of a system or sysbatch instance must be what nobody owns.
func ClaimLacks(e *Edit, u *Usage) string {
	if u.PerNode() {
		return ledger{e}.perNodeLacks(u)
	}
	if lack := (WorkflowEdit{e}).BorrowLacks(u.NodeID, u); lack != "" {
		return "workflow: no more of its reservation may be lent: " + lack
	}
	if u.Owner.Terms.Claim == structs.ClaimSlots {
		if lack := (SlotEdit{e}).Lack(u); lack != "" {
			return lack
		}
	}
	return ledger{e}.cellsLack(u)
}

// cellsLack returns why a usage cannot use the cells of its claim now; "" if it can, or if it uses none.
func (l ledger) cellsLack(u *Usage) string {
	if !u.UsesCells() {
		return ""
	}
	ed, k, list := l.cellsOf(u)
	if len(list) == 0 {
		return "claim: no cell of level " + u.Owner.Terms.CellLevel + " is owned there"
	}
	if len(list) > 1 { // they are bound one after the other, on a copy
		ed = ed.View().Edit()
	}
	for _, cell := range list {
		if b, _, bound := ed.View().Binding(cell, k); bound {
			if b.Owner != u.CellOwner() {
				return fmt.Sprintf("claim: the cell of level %s is bound by %s", u.Owner.Terms.CellLevel, b.Owner)
			}
			continue
		}
		if err := ed.Safe(cell, k, u.CellOwner()); err != nil {
			return "claim: cell of level " + u.Owner.Terms.CellLevel + ": " + err.Error()
		}
		if len(list) > 1 {
			if err := ed.Bind(cell, k, u.CellOwner(), false); err != nil {
				return "claim: cell of level " + u.Owner.Terms.CellLevel + ": " + err.Error()
			}
		}
	}
	return ""
}

// Protected reports whether a usage uses cells that are bound, so that nothing may take from it. One whose cells are unbound for now, as
// a node of its rack is not ready, is like an opportunistic one to those who claim the cells that are left; and so is a member of a
// gang of which too few use cells: it goes when they go, as a gang is there whole or not at all. Members on nodes that are not ready
// themselves count: nobody claims anything there, so that they do not go.
func Protected(e *Edit, u *Usage) bool {
	if !usesBound(e, u) {
		return false
	}
	g, some := u.Owner.Gang()
	return !some || GangCovered(GangMembers(e, g), func(m *Usage) bool {
		n, _ := StateOf(e, m.NodeID)
		return usesBound(e, m) || m.Guaranteed() && (n.Node == nil || !n.Node.Ready())
	})
}

// GangCovered reports whether, of each group of a gang, as many members as must run together are of those that a claim covers.
func GangCovered(members []*Usage, covers func(*Usage) bool) bool {
	type part struct{ all, covered, least int }
	parts := map[string]part{}
	for _, u := range members {
		p := parts[u.Owner.Group]
		p.all, p.least = p.all+1, u.Owner.Terms.GangMin
		if covers(u) {
			p.covered++
		}
		parts[u.Owner.Group] = p
	}
	for _, p := range parts { // all must be: the order does not matter
		if p.covered < min(p.all, p.least) {
			return false
		}
	}
	return len(parts) > 0
}

// GangClaim returns the kind of claim that as many members of a gang use as must run together; "": no kind, so that none of them may use any (semantics
// part 0, rule 5).
func GangClaim(members []*Usage) string {
	for _, kind := range []string{structs.ClaimCells, structs.ClaimSlots, structs.ClaimWorkflow} {
		if GangCovered(members, func(u *Usage) bool { return u.Owner.Terms.Claim == kind }) {
			return kind
		}
	}
	return ""
}

// usesBound reports whether a usage uses cells that are bound.
func usesBound(e *Edit, u *Usage) bool {
	if !u.UsesCells() {
		return u.Guaranteed()
	}
	ed, k, list := ledger{e}.cellsOf(u)
	for _, cell := range list {
		if _, away, bound := ed.View().Binding(cell, k); !bound || away {
			return false
		}
	}
	return len(list) > 0
}

// Claim binds the cells of a usage's claim, or counts one more use of them. It reports whether it did: false leaves them as
// they were. Whether that is safe is for ClaimLacks to say.
func Claim(e *Edit, u *Usage) bool {
	if u.PerNode() {
		ledger{e}.subtract(u)
	}
	if !u.UsesCells() {
		return true
	}
	ledger{e}.ownClaims()
	ed, k, list := ledger{e}.cellsOf(u)
	for i, cell := range list {
		b, _, bound := ed.View().Binding(cell, k)
		ok := bound && b.Owner == u.CellOwner()
		if !bound {
			ok = bind(ed, cell, k, u.CellOwner()) == nil
		}
		if !ok {
			for _, back := range list[:i] {
				_ = ed.Release(back, k) // was counted just now
			}
			return false
		}
		_ = ed.Use(cell, k) // is bound
		ledger{e}.markCell(ed.View(), cell)
	}
	if len(list) > 0 {
		ledger{e}.countUse(u, 1)
	}
	return len(list) > 0
}

// KeepBound counts one more use of the cells that a usage would claim if all of them are bound for its owner, so that they stay so until
// Unclaim. It reports whether it did.
func KeepBound(e *Edit, u *Usage) bool {
	if !u.UsesCells() || e.w.claims == nil {
		return false
	}
	ed, k, list := ledger{e}.cellsOf(u)
	for _, cell := range list {
		if b, _, bound := ed.View().Binding(cell, k); !bound || b.Owner != u.CellOwner() {
			return false
		}
	}
	return len(list) > 0 && Claim(e, u)
}

// countUse counts the devices of a usage as in guaranteed use, or as in it no more.
func (l ledger) countUse(u *Usage, by int) {
	t, key, ok := l.treeOf(u)
	if !ok {
		return
	}
	l.e.claims.uses = append(l.e.claims.uses, ownerUse{u.CellOwner(), chainUse{key, by * Count(DeviceMask(t, u))}})
}

// addUses adds up what is in guaranteed use.
func (l ledger) addUses() {
	c := l.ownClaims()
	for i := range l.e.claims.uses {
		u := &l.e.claims.uses[i]
		was, _ := c.used.Get(u.owner)
		list := slices.Clone(was)
		at, found := slices.BinarySearchFunc(list, u.chain, func(x chainUse, key ChainKey) int { return CompareChains(x.chain, key) })
		if !found {
			list = slices.Insert(list, at, chainUse{chain: u.chain})
		}
		if list[at].devices += u.devices; list[at].devices == 0 {
			list = slices.Delete(list, at, at+1)
		}
		if len(list) == 0 {
			tree.Delete(l.e.tok, &c.used, u.owner)
		} else {
			tree.Put(l.e.tok, &c.used, u.owner, list)
		}
	}
	l.e.claims.uses = nil
}

// Used returns how many devices of a chain an owner uses by its claims, those on nodes that are not ready among them.
func Used(e *Edit, owner string, key ChainKey) int {
	if e.w.claims == nil {
		return 0
	}
	ledger{e}.addUses()
	list, _ := e.w.claims.used.Get(owner)
	if at := slices.IndexFunc(list, func(x chainUse) bool { return x.chain == key }); at >= 0 {
		return list[at].devices
	}
	return 0
}

// bind binds a cell without a use. One that is not ready needs no quota cell until it is.
func bind(ed *cells.Edit, cell cells.Cell, k cells.Kind, owner string) error {
	if ed.View().Ready(cell, k) {
		return ed.Bind(cell, k, owner, false)
	}
	return ed.Restore(cells.Binding{Cell: cell, Kind: k, Owner: owner})
}

// Unclaim counts one use less of the cells of a usage's claim.
func Unclaim(e *Edit, u *Usage) {
	if !u.UsesCells() || e.w.claims == nil {
		return
	}
	ledger{e}.ownClaims()
	ed, k, list := ledger{e}.cellsOf(u)
	for _, cell := range list {
		_ = ed.Release(cell, k) // one that is not bound any more has been lost
		ledger{e}.markCell(ed.View(), cell)
	}
	if len(list) > 0 {
		ledger{e}.countUse(u, -1)
	}
}

// claimFor binds what a usage claims, and returns the usage as it counts: without its claim if that does not hold. What
// is claimed of a node that is not known is bound when it is registered.
func (l ledger) claimFor(u *Usage) *Usage {
	if !u.UsesCells() || l.e.w.claims != nil && (!l.known(u.NodeID) || Claim(l.e, u)) {
		return u
	}
	l.e.claims.lost = append(l.e.claims.lost, u.ID)
	return u.Opportunistic()
}

// Opportunistic returns the usage without its claim.
func (u *Usage) Opportunistic() *Usage {
	o := *u
	o.Owner = &Owner{RequestName: u.Owner.RequestName, Terms: u.Owner.Terms.Opportunistic()}
	return &o
}

// loseGangs lets whole gangs lose their claims of which too few members have one left: those that must run together are all guaranteed, or none is
// (semantics part 0, rule 5).
func (e *Edit) loseGangs() {
	for i := 0; i < len(e.claims.lost); i++ { // it grows
		u, found := e.w.allocs.Get(e.claims.lost[i])
		if !found {
			continue
		}
		g, some := u.Owner.Gang()
		if !some {
			continue
		}
		members := GangMembers(e, g)
		if GangClaim(members) != "" {
			continue
		}
		for _, m := range members {
			if m.Claims() {
				Unclaim(e, m)
			}
			if m.Guaranteed() {
				ledger{e}.loseClaim(m)
			}
		}
	}
}

// lose lets a usage, or a part of a reservation, go on without its claim.
func (l ledger) lose(u *Usage) {
	if u.ID == "" {
		WorkflowEdit{l.e}.losePart(u.NodeID, u)
		return
	}
	l.loseClaim(u)
}

// loseClaim lets a usage that counts go on without its claim. Its cells are unbound already.
func (l ledger) loseClaim(u *Usage) {
	o := u.Opportunistic()
	n := StateToChange(l.e, u.NodeID)
	n.Give(u)
	l.e.dismiss(u)
	n.Take(o)
	shareSums(l).use(n.Node, o, 1)
	tree.Put(l.e.pages, &l.e.w.allocs, o.ID, o)
	l.e.enlist(o)
	l.e.claims.lost = append(l.e.claims.lost, u.ID)
	l.markClaims(u.NodeID)
}
