package cells

import (
	"fmt"
	"math/bits"
	"slices"
)

const (
	// MaxDevices is how many devices a node of a chain may have.
	MaxDevices = 64
	// MaxNodeLevels is how many levels there may be within a node.
	MaxNodeLevels = 8
	// MaxSiteLevels is how many levels there may be above nodes.
	MaxSiteLevels = 16
)

// Level is a level within nodes.
type Level struct {
	Name    string
	Devices int // in a cell of it
}

// Chain is the nodes whose trees of devices are equal, their site cells, what is owned of them and what is bound. It is
// immutable: [Chain.Edit] makes another one of it.
type Chain struct {
	levels  []Level  // within nodes, the lowest first; the last is the node
	sites   []string // names of the levels above, the lowest first
	devices int
	lines   lines
	nodes   tree[*node]
	groups  tree[*site] // site cells, by key
	owners  tree[*owner]
	lots    []lot // in the order of admission
	index   tree[tree[entry]]
}

// NewChain returns a chain without nodes. The levels within its nodes are stated from the lowest to the node, each with the
// devices of one cell, which must divide those of the next; sites are the names of the levels above nodes, the lowest
// first. It returns an error if a level has no name or one that another has, or its devices do not divide.
func NewChain(levels []Level, sites []string) (*Chain, error) {
	if len(levels) == 0 || len(levels) > MaxNodeLevels || len(sites) > MaxSiteLevels {
		return nil, fmt.Errorf("a chain has 1 to %d levels within nodes and at most %d above, not %d and %d", MaxNodeLevels, MaxSiteLevels, len(levels), len(sites))
	}
	c := &Chain{levels: slices.Clone(levels), sites: slices.Clone(sites)}
	names := map[string]bool{}
	for i, l := range levels {
		if l.Name == "" || names[l.Name] {
			return nil, fmt.Errorf("level %d: the name %q is empty or used twice", i, l.Name)
		}
		names[l.Name] = true
		if l.Devices < 1 || l.Devices > MaxDevices || i > 0 && l.Devices%levels[i-1].Devices != 0 {
			return nil, fmt.Errorf("level %q: %d devices: a cell has 1 to %d, a multiple of those of the level below", l.Name, l.Devices, MaxDevices)
		}
		row := line{kind: Kind{Level: i}}
		if i > 0 {
			row.parts = []part{{Kind{Level: i - 1}, l.Devices / levels[i-1].Devices}}
		}
		c.lines = append(c.lines, row)
	}
	for i, name := range sites {
		if name == "" || names[name] {
			return nil, fmt.Errorf("level %d above nodes: the name %q is empty or used twice", i, name)
		}
		names[name] = true
	}
	c.devices = levels[len(levels)-1].Devices
	return c, nil
}

// nodeKind is the kind of whole nodes.
func (c *Chain) nodeKind() Kind { return Kind{Level: len(c.levels) - 1} }

// within reports whether cells of a kind lie within nodes; whole nodes do.
func (c *Chain) within(k Kind) bool { return k.Level < len(c.levels) }

// LevelName returns the name of a kind's level.
func (c *Chain) LevelName(k Kind) string {
	switch {
	case k.Level < 0:
	case k.Level < len(c.levels):
		return c.levels[k.Level].Name
	case k.Level-len(c.levels) < len(c.sites):
		return c.sites[k.Level-len(c.levels)]
	}
	return ""
}

// Devices returns how many devices a cell of a kind has.
func (c *Chain) Devices(k Kind) int {
	switch {
	case k.Level < 0:
		return 0
	case c.within(k):
		return c.levels[k.Level].Devices
	}
	return k.Size * c.devices
}

// Balance is the account of one kind: a row of Invariant S.
type Balance struct {
	Kind   Kind
	Free   int // F: maximal free cells
	Quota  int // quota cells that are not bound, but for doomed ones: N
	Doomed int // quota cells that are not bound and that the hardware cannot hold
	Left   int // what is left when everything that is owned has been embedded
}

// Balances returns the account of every kind, the lowest first. A kind of site cells of which there is nothing, and no quota, has none: whether
// there was something of it before makes no difference.
func (c *Chain) Balances() []Balance {
	left := c.lines.left(counted)
	all := make([]Balance, 0, len(c.lines))
	for i := range c.lines {
		l := &c.lines[i]
		if c.within(l.kind) || l.cells+l.quota+l.free > 0 {
			all = append(all, Balance{l.kind, l.free, counted(l), l.doomed, left[i]})
		}
	}
	return all
}

// mask returns the devices of a cell within a node.
func (c *Chain) mask(level, index int) uint64 {
	n := c.levels[level].Devices
	return (^uint64(0) >> (64 - n)) << (index * n)
}

// cellsOf returns how many cells of a level a node has.
func (c *Chain) cellsOf(level int) int { return c.devices / c.levels[level].Devices }

// maximal calls yield for every maximal cell within a node of which all devices are available, the largest first.
func (c *Chain) maximal(avail uint64, yield func(level, index int)) {
	for level := len(c.levels) - 1; level >= 0 && avail != 0; level-- {
		if bits.OnesCount64(avail) < c.levels[level].Devices {
			continue
		}
		for i := range c.cellsOf(level) {
			if m := c.mask(level, i); avail&m == m {
				yield(level, i)
				avail &^= m
			}
		}
	}
}
