package world

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// What tenants own (semantics part 2) stands in the World as soon as anybody owns something: a chain of cells for each pool and
// kind of devices, in package cells. Which cells are bound follows from the quotas and from what the allocations that
// count say of themselves: there is no second table of it.

// ChainKey names a chain: the nodes of a pool whose devices of one model stand in equal trees.
type ChainKey struct {
	Pool, Vendor, Type, Model string
	Tree                      string // key of the layout
}

// Kind returns the key's kind as files have it, without the tree.
func (k ChainKey) Kind() string { return k.Vendor + "/" + k.Type + "/" + k.Model }

// CompareChains orders chains by pool, vendor, type, model and tree.
func CompareChains(a, b ChainKey) int {
	return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.Type, b.Type),
		strings.Compare(a.Model, b.Model), strings.Compare(a.Tree, b.Tree))
}

// Quota is a number of cells that an owner was given at one time.
type Quota struct {
	Chain ChainKey
	Level string
	Size  int // of cells above nodes: how many nodes they have
	Count int
	Order uint64       // of admission: lowest first
	Pins  []cells.Cell // bound at once, at most Count
}

// equal reports whether two quotas are the same.
func (q Quota) equal(o Quota) bool {
	return q.Chain == o.Chain && q.Level == o.Level && q.Size == o.Size && q.Count == o.Count && q.Order == o.Order && slices.Equal(q.Pins, o.Pins)
}

// Room is a free cell within the cells that an owner has bound.
type Room struct {
	Chain  ChainKey
	Owner  string
	Level  int // index in the chain's levels
	NodeID string
	Index  int
	Bound  cells.Kind // of the bound cell that it lies in
}

func compareRooms(a, b Room) int {
	return cmp.Or(CompareChains(a.Chain, b.Chain), strings.Compare(a.Owner, b.Owner), cmp.Compare(a.Level, b.Level),
		strings.Compare(a.NodeID, b.NodeID), cmp.Compare(a.Index, b.Index), a.Bound.Compare(b.Bound))
}

// chainUse is how many devices of a chain an owner uses by its claims.
type chainUse struct {
	chain   ChainKey
	devices int
}

// claims is what is owned and bound. An Edit changes a copy of its own.
type claims struct {
	owner  *Token
	chains Tree[ChainKey, *cells.Chain]
	quotas Tree[string, []Quota] // by owner, in the order of admission
	rooms  Tree[Room, struct{}]
	on     Tree[string, []Room]     // by node
	used   Tree[string, []chainUse] // by owner, the chains in the order of their keys
	sites  []structs.TopologyLevel
	// raisable is what uses whole devices without a claim.
	raisable Tree[raiseKey, *Usage]
	// loose are the pins that are not bound. Its elements must not be changed: copies share them.
	loose []loosePin
}

func newClaims(sites []structs.TopologyLevel) *claims {
	return &claims{
		chains: newTree[ChainKey, *cells.Chain](CompareChains),
		quotas: newTree[string, []Quota](strings.Compare),
		rooms:  newTree[Room, struct{}](compareRooms),
		on:     newTree[string, []Room](strings.Compare),
		used:   newTree[string, []chainUse](strings.Compare),
		sites:  sites,

		raisable: newTree[raiseKey, *Usage](compareRaiseKeys),
	}
}

// Owns reports whether a tenant owns cells.
func (w *World) Owns(owner string) bool {
	if w.claims == nil {
		return false
	}
	_, some := w.claims.quotas.Get(owner)
	return some
}

// Quotas returns what an owner was given, in the order of admission.
func (w *World) Quotas(owner string) []Quota {
	if w.claims == nil {
		return nil
	}
	list, _ := w.claims.quotas.Get(owner)
	return list
}

// Chain returns a chain; false if nobody owns anything, or there is no such chain.
func (w *World) Chain(key ChainKey) (*cells.Chain, bool) {
	if w.claims == nil {
		return nil, false
	}
	return w.claims.chains.Get(key)
}

// Chains calls yield for every chain in the order of their keys, until it returns false; for none while nobody owns anything.
func (w *World) Chains(yield func(ChainKey, *cells.Chain) bool) {
	if w.claims != nil {
		w.claims.chains.All(yield)
	}
}

// CheckClaims proves that every chain agrees with a sweep over its nodes.
func (w *World) CheckClaims() error {
	for key, c := range w.Chains {
		if err := c.Check(); err != nil {
			return fmt.Errorf("chain %s/%s/%s of pool %s: %w", key.Vendor, key.Type, key.Model, key.Pool, err)
		}
	}
	return nil
}

// ChainOf returns the chain that a node's tree of devices is of; false if its cells cannot be owned: the devices
// are of several models, or there are too many of them.
func ChainOf(n *structs.Node, t *DeviceTree) (ChainKey, bool) {
	if n == nil || !t.Single || len(t.IDs) > cells.MaxDevices {
		return ChainKey{}, false
	}
	return ChainKey{n.NodePool, t.Vendor, t.Kind, t.Groups[0].Name, t.Layout.Key()}, true
}

// ChainLevels returns the levels of a tree whose cells are alike, the lowest first: those of its devices and of the node always.
// The cells of other levels cannot be owned.
func ChainLevels(t *DeviceTree) []cells.Level {
	all, n := t.Layout.Levels(), t.Layout.Devices()
	levels := []cells.Level{{Name: all[0], Devices: 1}}
	for at, name := range all[1:] {
		size, last := cellsAlike(t, all[:at+2]), levels[len(levels)-1].Devices
		if name != structs.LevelNode && size > 0 && size%last == 0 && len(levels) < cells.MaxNodeLevels-1 {
			levels = append(levels, cells.Level{Name: name, Devices: size})
		}
	}
	if all[0] == structs.LevelNode {
		return []cells.Level{{Name: structs.LevelNode, Devices: n}}
	}
	return append(levels, cells.Level{Name: structs.LevelNode, Devices: n})
}

// cellsAlike returns how many devices each cell of the last of some levels has; 0 if they differ.
func cellsAlike(t *DeviceTree, levels []string) int {
	size, run := 0, 1
	for i := 1; i <= t.Layout.Devices(); i++ {
		if i < t.Layout.Devices() && slices.Contains(levels, t.Layout.Common([]int{i - 1, i})) {
			run++
			continue
		}
		if size > 0 && run != size {
			return 0
		}
		size, run = run, 1
	}
	return size
}

// DeviceMask returns the devices of a tree that a usage has a part of, as bits by their numbers.
func DeviceMask(t *DeviceTree, u *Usage) (mask uint64) {
	for _, d := range u.Devices {
		if i, found := t.Find(d.ID); found && i < cells.MaxDevices {
			mask |= 1 << i
		}
	}
	return mask
}

// Claims reports whether a usage uses a claim on cells.
func (u *Usage) Claims() bool { return u.Owner.Terms.Claim == structs.ClaimCells }

// UsesCells reports whether a usage uses cells that somebody owns: its namespace, or its project, as slots with GPUs.
func (u *Usage) UsesCells() bool {
	t := &u.Owner.Terms
	return t.Claim == structs.ClaimCells || t.Claim == structs.ClaimSlots && t.CellLevel != ""
}

// CellOwner returns who owns the cells that a usage uses, if it does: its namespace, or its project.
func (u *Usage) CellOwner() string {
	if t := &u.Owner.Terms; t.Claim == structs.ClaimSlots && t.Slots != nil {
		return structs.ProjectOwner(t.Slots.Project)
	}
	return u.Owner.Namespace
}

// Guaranteed reports whether a usage uses a claim, so that nobody may reclaim it for another.
func (u *Usage) Guaranteed() bool { return u.Owner.Terms.Claim != "" }

// diffClaims names what differs between what is owned and bound in two Worlds.
func diffClaims(out *[]string, a, b *claims) {
	if a == nil || b == nil {
		if a != b {
			*out = append(*out, "cells are owned in one only")
		}
		return
	}
	diffTrees(out, "quotas", &a.quotas, &b.quotas, func(a, b []Quota) string {
		if slices.EqualFunc(a, b, Quota.equal) {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", a, b)
	})
	diffTrees(out, "chain", &a.chains, &b.chains, func(x, y *cells.Chain) string { return diffChain(x, y, &a.quotas) })
	diffTrees(out, "devices in guaranteed use", &a.used, &b.used, func(a, b []chainUse) string {
		if slices.Equal(a, b) {
			return ""
		}
		return fmt.Sprintf("%v, not %v", a, b)
	})
	diffTrees(out, "room", &a.rooms, &b.rooms, func(struct{}, struct{}) string { return "" })
	diffTrees(out, "what may be raised", &a.raisable, &b.raisable, func(a, b *Usage) string {
		if a.Equal(b) {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", *a, *b)
	})
}

func diffChain(a, b *cells.Chain, quotas *Tree[string, []Quota]) string {
	state := func(c *cells.Chain) string {
		var bound []string
		c.Bindings(func(b cells.Binding, away bool) bool {
			bound = append(bound, fmt.Sprintf("%+v away %v", b, away))
			return true
		})
		slices.Sort(bound)
		for owner := range quotas.All {
			has := slices.DeleteFunc(c.Accounts(owner), func(a cells.Account) bool { return a == cells.Account{Kind: a.Kind} })
			bound = append(bound, fmt.Sprintf("%s has %+v", owner, has))
		}
		return fmt.Sprintf("balances %+v, bound %v", c.Balances(), bound)
	}
	if x, y := state(a), state(b); x != y {
		return x + ", not " + y
	}
	return ""
}

// ChainNode returns what a chain must know of a node, of one of its trees.
func ChainNode(n *NodeState, t *DeviceTree, sites []structs.TopologyLevel) cells.Node {
	of := cells.Node{ID: n.ID, Ready: n.Node.Ready(), Bad: notOwnable(n, t)}
	for _, l := range sites {
		of.Sites = append(of.Sites, n.Node.Meta[l.Meta])
	}
	return of
}

// users returns what uses devices of a tree and may be reclaimed for a claim.
func (n *NodeState) users(e *Edit, t *DeviceTree) (list []cells.User) {
	for _, u := range n.Usages {
		if u.PerNode() || usesBound(e, u) {
			continue
		}
		if mask := DeviceMask(t, u); mask != 0 {
			list = append(list, cells.User{Devices: mask, Priority: u.Owner.Terms.Priority})
		}
	}
	return list
}

// roomsOn returns the free cells of a node within the cells that their owners have bound. What an owner uses there by another cell, that
// is unbound for now, does not count.
func (n *NodeState) roomsOn(e *Edit, key ChainKey, c *cells.Chain, t *DeviceTree) (list []Room) {
	c.BoundOn(n.ID, func(b cells.Binding, devices uint64) {
		free := devices & c.Healthy(n.ID)
		for _, u := range n.Usages {
			if u.UsesCells() && u.CellOwner() == b.Owner && usesBound(e, u) {
				free &^= DeviceMask(t, u)
			}
		}
		for _, u := range n.reservedClaims() {
			if u.CellOwner() == b.Owner && usesBound(e, u) {
				free &^= DeviceMask(t, u)
			}
		}
		c.Maximal(free, func(level, index int) {
			list = append(list, Room{Chain: key, Owner: b.Owner, Level: level, NodeID: n.ID, Index: index, Bound: b.Kind})
		})
	})
	return list
}

// Count returns how many devices a mask has.
func Count(mask uint64) int { return bits.OnesCount64(mask) }

// AllocLacksClaim returns why an allocation cannot use the claim that it names; "" if it can, or names none.
func (e *Edit) AllocLacksClaim(a *structs.Allocation) string {
	of := NewOwner(RequestName{a.Namespace, a.JobID, a.TaskGroup}, a.AllocatedResources)
	return ClaimLacks(e, NewUse(a.ID, a.NodeID, of, a.AllocatedResources, a.CreateTime))
}

// Owners returns who owns cells, in the order of their names.
func (w *World) Owners() (names []string) {
	if w.claims != nil {
		for name := range w.claims.quotas.All {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// States calls yield for what is known of each node, in the order of their IDs, until it returns false.
func (w *World) States(yield func(id string, n *NodeState) bool) { w.nodes.All(yield) }

// SiteLevels returns the levels of cells above nodes.
func (w *World) SiteLevels() []structs.TopologyLevel { return w.sites }

// raiseKey orders what may be raised: by its namespace, the oldest first.
type raiseKey struct {
	namespace string
	created   int64
	id        string
}

func compareRaiseKeys(a, b raiseKey) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), cmp.Compare(a.created, b.created), strings.Compare(a.id, b.id))
}

func raiseKeyOf(u *Usage) raiseKey { return raiseKey{u.Owner.Namespace, u.Created, u.ID} }

// raisable reports whether a usage could use a claim on cells and does not: its devices are whole ones.
func (u *Usage) raisable() bool {
	return len(u.Devices) > 0 && !u.Guaranteed() && !u.PerNode() && !slices.ContainsFunc(u.Devices, func(d DeviceUsage) bool { return d.Share < WholeDevice })
}

// Raisable calls yield for the usages of a namespace that could use a claim on cells and do not, the oldest first, until it returns
// false; for none while nobody owns anything.
func Raisable(w *World, namespace string, yield func(*Usage) bool) {
	if w.claims == nil {
		return
	}
	w.claims.raisable.Ascend(raiseKey{namespace: namespace}, func(k raiseKey, u *Usage) bool {
		return k.namespace == namespace && yield(u)
	})
}

// MayRaise reports whether an owner has cells free, and anything that might use them as it runs.
func (w *World) MayRaise(owner string) (may bool) {
	Raisable(w, owner, func(*Usage) bool {
		may = slices.ContainsFunc(w.LargestFree(owner), func(level int) bool { return level > 0 })
		return false
	})
	return may
}
