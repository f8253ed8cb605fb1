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
	tree   string // as kinds have it: "2x2x2"
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

// names returns the levels' names, to be read.
func (c *chain) names() string {
	names := make([]string, len(c.levels))
	for i := range c.levels {
		names[i] = c.levels[i].name
	}
	return strings.Join(names, ", ")
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
	var parts []string
	for i, l := range world.ChainLevels(t) {
		c.levels = append(c.levels, level{l.Name, l.Devices})
		if i > 0 {
			parts = append(parts, fmt.Sprint(l.Devices/c.levels[i-1].devices))
		}
	}
	slices.Reverse(parts)
	c.tree = strings.Join(parts, "x")
	return c
}

// ownedCells is what one block of cells gives its owner.
type ownedCells struct {
	chain, devices int // of each node's part of a cell
	quota          world.Quota
}

// ownedBy returns what a virtual cluster gives, of chains that are there.
func ownedBy(v *structs.VirtualCluster, chains []*chain, order uint64) (list []ownedCells, err error) {
	if err := v.Validate(); err != nil {
		return nil, err
	}
	if len(v.Windows) > 0 {
		return nil, fmt.Errorf("virtual cluster %q: windows are not replayed: state what it owns all the time", v.Name)
	}
	for i, c := range v.Cells {
		if len(c.Pin) > 0 {
			return nil, fmt.Errorf("virtual cluster %q: cells %d: pins are not replayed: leave pin out", v.Name, i+1)
		}
		if c.Count == 0 {
			continue
		}
		at, err := chainNamed(c, chains)
		if err != nil {
			return nil, fmt.Errorf("virtual cluster %q: cells %d: %w", v.Name, i+1, err)
		}
		of := chains[at]
		has := ownedCells{at, of.levels[len(of.levels)-1].devices, world.Quota{Chain: of.key, Level: c.Level, Size: c.Size, Count: c.Count, Order: order}}
		if within := slices.IndexFunc(of.levels, func(l level) bool { return l.name == c.Level }); within >= 0 {
			if has.devices = of.levels[within].devices; c.Size != 0 {
				return nil, fmt.Errorf("virtual cluster %q: cells %d: size: only cells above nodes have one", v.Name, i+1)
			}
		} else if c.Size == 0 {
			return nil, fmt.Errorf("virtual cluster %q: cells %d: no level %q within nodes of %s; there are %s, and those above nodes need a size",
				v.Name, i+1, c.Level, of.kind(), of.names())
		}
		list = append(list, has)
	}
	return list, nil
}

// chainNamed finds the chain that a block of cells names.
func chainNamed(c *structs.CellQuota, chains []*chain) (at int, err error) {
	at = -1
	var has []string
	for i, of := range chains {
		if cmp.Or(c.NodePool, structs.DefaultNodePool) != of.key.Pool {
			continue
		}
		has = append(has, of.kind()+"/"+of.tree)
		if c.Kind != "" && c.Kind != of.kind() && c.Kind != of.kind()+"/"+of.tree {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("kind %q: may be several kinds of cells: name one of %s", c.Kind, strings.Join(has, ", "))
		}
		at = i
	}
	if at < 0 {
		return -1, fmt.Errorf("kind %q: no node of pool %s has such GPUs; there are %s", c.Kind, cmp.Or(c.NodePool, structs.DefaultNodePool),
			cmp.Or(strings.Join(has, ", "), "none"))
	}
	return at, nil
}

// admit gives all their cells on an edit, in the order of the list, and refuses what is more than there is.
func admit(e *scheduler.Edit, chains []*chain, list []*tenant) error {
	for _, t := range list {
		quotas := make([]world.Quota, len(t.owns))
		for i := range t.owns {
			quotas[i] = t.owns[i].quota
		}
		e.SetQuotas(t.name, quotas)
		for _, q := range quotas {
			c, found := e.World().Chain(q.Chain)
			if !found {
				return fmt.Errorf("virtual cluster %q: no node has cells of level %q", t.name, q.Level)
			}
			k, known := c.KindOf(q.Level, q.Size)
			if !known {
				return fmt.Errorf("virtual cluster %q: no level %q with a size of %d", t.name, q.Level, q.Size)
			}
			if err := c.Ownable(k); err != nil {
				return fmt.Errorf("virtual cluster %q: %w", t.name, err)
			}
			if a := c.Account(t.name, k); a.Doomed > 0 {
				return fmt.Errorf("virtual cluster %q: level %s: %d short of %d: the nodes have no more beside what the virtual clusters above it own",
					t.name, q.Level, a.Doomed, q.Count)
			}
		}
	}
	return nil
}
