package trace

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// virtualTree is what a tenant owns, and what its own work leaves of it: an account apart from the scheduler's, to find an error of either.
type virtualTree struct {
	chains []*chain
	cells  []quotaCell
	known  *freeCells // what is free; nil: it has changed
}

// quotaCell is one cell of a quota.
type quotaCell struct {
	chain   int
	level   string
	size    int
	devices int // of each part
	parts   []cellPart
	bound   string // the name of the cell that it is bound to; "": none
	pinned  bool
	uses    int
}

// cellPart is what a cell has on one node.
type cellPart struct {
	node string // of a cell above nodes; "": not known yet
	used uint64 // devices that the tenant uses by right, from the part's first one on
}

// cellUse is what one instance uses of one part.
type cellUse struct {
	cell, part int
	devices    uint64
}

func newVirtualTree(chains []*chain, owns []ownedCells) *virtualTree {
	t := &virtualTree{chains: chains}
	for _, o := range owns {
		for i := range o.claim.Count {
			c := quotaCell{
				chain: o.chain, level: o.claim.Level, size: o.claim.Size, devices: o.devices, parts: make([]cellPart, max(1, o.claim.Size)),
			}
			if i < len(o.claim.Pins) {
				pin := &o.claim.Pins[i]
				c.bound, c.pinned = cellName(pin.NodeID, pin.Site, c.level, pin.Index), true
			}
			t.cells = append(t.cells, c)
		}
	}
	return t
}

// cellName names a cell: one above nodes by its site.
func cellName(node, site, level string, index int) string {
	if site != "" {
		return site
	}
	return fmt.Sprintf("%s/%s-%d", node, level, index)
}

// gpus returns how many devices there are.
func (t *virtualTree) gpus() (n int) {
	for i := range t.cells {
		n += t.cells[i].devices * len(t.cells[i].parts)
	}
	return n
}

func firstDevices(n int) uint64 { return ^uint64(0) >> (64 - n) }

// use takes devices of a cell, given by its name and the number of its first device on the node. A cell that is not bound yet is
// bound.
func (t *virtualTree) use(chain int, level string, size int, name, node string, first int, devices uint64) (cellUse, error) {
	at := -1
	for i := range t.cells {
		c := &t.cells[i]
		if c.chain != chain || c.level != level || c.size != size {
			continue
		}
		if c.bound == name {
			at = i
			break
		}
		if c.bound == "" && at < 0 {
			at = i
		}
	}
	if at < 0 {
		return cellUse{}, fmt.Errorf("a cell of level %s more is bound than there are", level)
	}
	c := &t.cells[at]
	part := 0
	if c.size > 0 {
		for part < len(c.parts) && c.parts[part].node != node && c.parts[part].node != "" {
			part++
		}
		if part == len(c.parts) {
			return cellUse{}, fmt.Errorf("%s has more than %d nodes", name, c.size)
		}
	}
	u := cellUse{at, part, (devices >> first) & firstDevices(c.devices)}
	if p := &c.parts[part]; p.used&u.devices != 0 {
		return cellUse{}, fmt.Errorf("devices of %s are used twice", name)
	}
	c.bound = name
	c.parts[part].node = node
	t.take(u)
	return u, nil
}

func (t *virtualTree) take(u cellUse) {
	t.known = nil
	c := &t.cells[u.cell]
	c.parts[u.part].used |= u.devices
	c.uses++
}

// release returns what an instance used. The last one unbinds the cell.
func (t *virtualTree) release(u cellUse) {
	t.known = nil
	c := &t.cells[u.cell]
	c.parts[u.part].used &^= u.devices
	if c.uses--; c.uses == 0 && !c.pinned {
		c.bound = ""
		for i := range c.parts {
			c.parts[i].node = ""
		}
	}
}

// maximal calls yield for the maximal cells of which no device is used, with their level and first device.
func (c *chain) maximal(devices int, used uint64, yield func(level, first int)) {
	free := firstDevices(devices) &^ used
	for l := len(c.levels) - 1; l >= 0 && free != 0; l-- {
		n := c.levels[l].devices
		if bits.OnesCount64(free) < n {
			continue
		}
		for first := 0; first+n <= devices; first += n {
			if m := firstDevices(n) << first; free&m == m {
				yield(l, first)
				free &^= m
			}
		}
	}
}

// place takes devices wherever they leave the largest cells: what a cluster of the tenant's own could do. It reports whether it found
// such, by a row of which each instance takes so many.
func (t *virtualTree) place(row *Row) (cellUse, bool) {
	best, found := cellUse{}, false
	bestLevel := 0
	for i := range t.cells {
		c := &t.cells[i]
		of := t.chains[c.chain]
		least := of.levelFor(row.GPUs)
		if !of.may(row) || least < 0 || c.devices < of.levels[least].devices {
			continue
		}
		for part := range c.parts {
			of.maximal(c.devices, c.parts[part].used, func(level, first int) {
				if level >= least && (!found || level < bestLevel) {
					best, bestLevel, found = cellUse{i, part, firstDevices(row.GPUs) << first}, level, true
				}
			})
		}
	}
	if found {
		t.take(best)
	}
	return best, found
}

// may reports whether instances of a row may use what is owned of a chain: whole devices, of a model that they accept, with no more
// processor and memory than their share of a node.
func (c *chain) may(row *Row) bool {
	n := int64(row.GPUs)
	return row.wholeGPUs() && c.key.Pool == structs.DefaultNodePool && (len(row.Models) == 0 || slices.Contains(row.Models, c.key.Model)) && int64(row.CPU) <= c.cpu*n && int64(row.MemoryMB) <= c.memory*n
}

// freeCells is how many maximal cells are free, by chain and level.
type freeCells struct {
	chains []*chain
	count  [][]int
}

// most returns how many devices are free of the chain that has the most.
func (t *virtualTree) most() int { return t.count().most() }

// free returns what is free, to be changed.
func (t *virtualTree) free() *freeCells {
	f := &freeCells{chains: t.chains}
	for _, count := range t.count().count {
		f.count = append(f.count, slices.Clone(count))
	}
	return f
}

func (t *virtualTree) count() *freeCells {
	if t.known != nil {
		return t.known
	}
	f := &freeCells{chains: t.chains, count: make([][]int, len(t.chains))}
	for i, c := range t.chains {
		f.count[i] = make([]int, len(c.levels))
	}
	for i := range t.cells {
		c := &t.cells[i]
		for part := range c.parts {
			t.chains[c.chain].maximal(c.devices, c.parts[part].used, func(level, _ int) { f.count[c.chain][level]++ })
		}
	}
	t.known = f
	return f
}

func (f *freeCells) most() (most int) {
	for i, c := range f.chains {
		n := 0
		for l, count := range f.count[i] {
			n += count * c.levels[l].devices
		}
		most = max(most, n)
	}
	return most
}

// take takes cells for so many instances of a row, all in one chain. It reports whether there were as many; else it takes none.
func (f *freeCells) take(row *Row, instances int) bool {
	for i, c := range f.chains {
		least := c.levelFor(row.GPUs)
		if least < 0 || !c.may(row) {
			continue
		}
		had := 0
		for l := least; l < len(c.levels); l++ {
			had += f.count[i][l] * (c.levels[l].devices / c.levels[least].devices)
		}
		if had < instances {
			continue
		}
		for range instances {
			f.takeOne(i, least, row.GPUs)
		}
		return true
	}
	return false
}

// takeOne takes one cell of a level, splitting a larger one if need be, and leaves what is not used of it.
func (f *freeCells) takeOne(chain, least, devices int) {
	c, count := f.chains[chain], f.count[chain]
	at := least
	for count[at] == 0 {
		at++
	}
	count[at]--
	for ; at > least; at-- {
		count[at-1] += c.levels[at].devices/c.levels[at-1].devices - 1
	}
	c.maximal(c.levels[least].devices, firstDevices(devices), func(level, _ int) { count[level]++ })
}
