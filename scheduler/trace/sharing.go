package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Ways in which tenants share the nodes, to be compared. In each of them it is counted which jobs waited although what their
// tenant owns would have sufficed.
const (
	// SharingCells: tenants own cells (semantics part 2). What fits them goes first, and reclaims what runs there.
	SharingCells = "cells"
	// SharingQueue: nobody owns anything; all jobs stand in one queue.
	SharingQueue = "queue"
	// SharingCounts: tenants own as many GPUs as their cells have, whichever those are. What fits the number goes first, and
	// reclaims what runs beyond the numbers of others.
	SharingCounts = "counts"
)

// Sharings returns all ways of sharing.
func Sharings() []string { return []string{SharingCells, SharingQueue, SharingCounts} }

// chain is nodes whose devices stand in equal trees.
type chain struct {
	key    world.ChainKey
	levels []level
	nodes  int
	// cpu and memory are what a device's share of a node is at least.
	cpu, memory int64
}

// level is a level within the nodes of a chain.
type level struct {
	name    string
	devices int
}

func (c *chain) levelFor(devices int) int {
	return slices.IndexFunc(c.levels, func(l level) bool { return l.devices >= devices })
}

func (c *chain) kind() string {
	return c.key.Vendor + "/" + c.key.Type + "/" + c.key.Model
}

// deviceAt is the place of a device: its chain, and its number on its node.
type deviceAt struct{ chain, number int }

// chainsOf returns the chains of the nodes in the order of their keys, and where each device is, by node and ID.
func chainsOf(e *scheduler.Edit, nodes []*structs.Node) ([]*chain, map[string]map[string]deviceAt) {
	var list []*chain
	type found struct {
		node  string
		tree  *world.DeviceTree
		chain *chain
	}
	var trees []found
	for _, n := range nodes {
		s, known := world.StateOf(e, n.ID)
		if !known {
			continue
		}
		total := int64(0)
		for _, t := range s.Capacity.Trees {
			total += int64(len(t.IDs))
		}
		for _, t := range s.Capacity.Trees {
			key, ok := world.ChainOf(n, t)
			if !ok {
				continue
			}
			at := slices.IndexFunc(list, func(c *chain) bool { return c.key == key })
			if at < 0 {
				at, list = len(list), append(list, newChain(key, t))
			}
			c := list[at]
			if cpu, memory := s.Capacity.Amount.CPU/total, s.Capacity.Amount.MemoryMB/total; c.nodes == 0 {
				c.cpu, c.memory = cpu, memory
			} else {
				c.cpu, c.memory = min(c.cpu, cpu), min(c.memory, memory)
			}
			c.nodes++
			trees = append(trees, found{n.ID, t, c})
		}
	}
	slices.SortFunc(list, func(a, b *chain) int {
		return cmp.Or(strings.Compare(a.key.Pool, b.key.Pool), strings.Compare(a.kind(), b.kind()), strings.Compare(a.key.Tree, b.key.Tree))
	})
	devices := map[string]map[string]deviceAt{}
	for _, f := range trees {
		if devices[f.node] == nil {
			devices[f.node] = map[string]deviceAt{}
		}
		for number, id := range f.tree.IDs {
			devices[f.node][id] = deviceAt{slices.Index(list, f.chain), number}
		}
	}
	return list, devices
}

func newChain(key world.ChainKey, t *world.DeviceTree) *chain {
	c := &chain{key: key}
	for _, l := range world.ChainLevels(t) {
		c.levels = append(c.levels, level{l.Name, l.Devices})
	}
	return c
}

// ownedCells is what one block of cells gives its owner.
type ownedCells struct {
	chain, devices int // of each node's part of a cell
	claim          structs.CellClaim
}

// admit gives a tenant on an edit what a virtual cluster states, admitted after all that was given before, and returns what that is.
func admit(e *scheduler.Edit, v *structs.VirtualCluster, chains []*chain, order uint64, sites []structs.TopologyLevel) ([]ownedCells, error) {
	v = v.Copy()
	v.Canonicalize()
	if err := v.Validate(); err != nil {
		return nil, err
	}
	if len(v.Windows) > 0 {
		return nil, fmt.Errorf("virtual cluster %q: windows are not replayed: state what it owns all the time", v.Name)
	}
	w := e.World()
	err := scheduler.ResolveCells(w, v.Cells, sites)
	claims := v.ClaimsAt(0, order)
	if err == nil {
		err = scheduler.AdmitClaims(w, v.Name, claims)
	}
	if err != nil {
		return nil, fmt.Errorf("virtual cluster %q: %w", v.Name, err)
	}
	scheduler.SetClaims(e, v.Name, claims)
	owns := make([]ownedCells, len(claims))
	for i, c := range claims {
		at := slices.IndexFunc(chains, func(of *chain) bool {
			return of.key == world.ChainKey{Pool: c.NodePool, Vendor: c.Vendor, Type: c.Type, Model: c.Model, Tree: c.Chain}
		})
		owns[i] = ownedCells{at, chains[at].levels[len(chains[at].levels)-1].devices, c}
		if within := slices.IndexFunc(chains[at].levels, func(l level) bool { return l.name == c.Level }); within >= 0 {
			owns[i].devices = chains[at].levels[within].devices
		}
	}
	return owns, nil
}
