package state

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// What virtual clusters must be, worked out anew from the words of semantics part 2: from the nodes' records, what the rows of virtual
// clusters state, and the allocations. Nothing of it comes from the accounts of the World, and nothing is remembered from one step to
// the next. Whether cells can be had is decided by trying all ways to choose them, so that clusters must be small.

// gpuLayout is what nodes of a chain are made of: its levels within nodes, the lowest first.
type gpuLayout struct {
	model, tree string
	levels      []gpuLevel
}

type gpuLevel struct {
	name    string
	devices int
}

func (s *gpuLayout) devices() int { return s.levels[len(s.levels)-1].devices }

func (s *gpuLayout) kind() string { return "nvidia/gpu/" + s.model + "/" + s.tree }

// level returns the number of a level within nodes; below 0 if it is none.
func (s *gpuLayout) level(name string) int {
	return slices.IndexFunc(s.levels, func(l gpuLevel) bool { return l.name == name })
}

// cellKind is the cells of a level and, above nodes, of a size.
type cellKind struct {
	level string
	size  int
}

type cellRight struct {
	owner string
	kind  cellKind
}

// oracleNode is a node of a chain: its devices are those of the chain from the first on.
type oracleNode struct {
	id, rack string
	ready    bool
	bad      uint64 // of the node's devices, those not healthy, and those of system jobs
	first    int
}

// oracleCell is a cell that there is: its devices as bits by their numbers in the chain.
type oracleCell struct {
	node  string // or that of one of its nodes
	index int
	mask  uint64
	ready bool
}

// oracleBound is a cell that is bound, or would be if its nodes were ready.
type oracleBound struct {
	cellRight
	cell   oracleCell
	pinned bool
	used   uint64 // devices that the owner uses by this claim
}

// oracleLot is cells that an owner was given at one time.
type oracleLot struct {
	cellRight
	count int
	order uint64
}

// oracleChain is the nodes of one layout, and what is owned and bound of them.
type oracleChain struct {
	layout  *gpuLayout
	nodes   []oracleNode
	cells   map[cellKind][]oracleCell
	lots    []oracleLot // in the order of admission
	due     []oracleLot // not given yet
	bound   []oracleBound
	claimed map[string]uint64 // devices that owners use by any claim
}

// newOracles returns the chains of a snapshot, in the order of the layouts, those that have no nodes at present among them.
func newOracles(snap *Snapshot, layouts []*gpuLayout) (list []*oracleChain) {
	for _, layout := range layouts {
		c := &oracleChain{layout: layout, cells: map[cellKind][]oracleCell{}, claimed: map[string]uint64{}}
		for n := range snap.Nodes(nil, "", false) {
			if layout.isOf(n) {
				c.addNode(n)
			}
		}
		c.findCells()
		c.own(snap)
		for _, n := range c.nodes {
			for _, a := range snap.AllocsByNode(nil, n.id) {
				c.use(a)
			}
		}
		c.pin(snap)
		list = append(list, c)
	}
	return list
}

func (c *oracleChain) addNode(n *structs.Node) {
	of := oracleNode{id: n.ID, rack: n.Meta["rack"], ready: n.Ready(), first: len(c.nodes) * c.layout.devices()}
	for i, d := range n.NodeResources.Devices[0].Instances {
		if !d.Healthy {
			of.bad |= 1 << i
		}
	}
	c.nodes = append(c.nodes, of)
}

// findCells lists all cells, complete or not.
func (c *oracleChain) findCells() {
	racks := map[string][]oracleNode{}
	for _, n := range c.nodes {
		for _, l := range c.layout.levels {
			for i := range c.layout.devices() / l.devices {
				k := cellKind{level: l.name}
				c.cells[k] = append(c.cells[k], oracleCell{n.id, i, (1<<l.devices - 1) << (n.first + i*l.devices), n.ready})
			}
		}
		if n.rack != "" {
			racks[n.rack] = append(racks[n.rack], n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(racks)) {
		cell, k := oracleCell{node: racks[name][0].id, ready: true}, cellKind{"rack", len(racks[name])}
		for _, n := range racks[name] {
			cell.mask |= (1<<c.layout.devices() - 1) << n.first
			cell.ready = cell.ready && n.ready
		}
		c.cells[k] = append(c.cells[k], cell)
	}
}

// own adds what is owned now.
func (c *oracleChain) own(snap *Snapshot) {
	for v := range snap.VirtualClusters(nil).List("", false) {
		for i := range v.Claims {
			switch q := &v.Claims[i]; {
			case q.Kind()+"/"+q.Tree != c.layout.kind():
			case q.Waits:
				c.due = append(c.due, oracleLot{cellRight{v.Name, cellKind{q.Level, q.Size}}, q.Count, q.Order})
			default:
				c.lots = append(c.lots, oracleLot{cellRight{v.Name, cellKind{q.Level, q.Size}}, q.Count, q.Order})
			}
		}
	}
	slices.SortStableFunc(c.lots, func(a, b oracleLot) int { return cmp.Compare(a.order, b.order) })
}

// use adds what an allocation uses.
func (c *oracleChain) use(a *structs.Allocation) {
	if a.Terminal() || a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil {
		return
	}
	terms, mask := a.AllocatedResources.Shared.Terms, c.maskOf(a)
	at := slices.IndexFunc(c.nodes, func(n oracleNode) bool { return n.id == a.NodeID })
	switch {
	case mask == 0:
	case terms.PerNode:
		c.nodes[at].bad |= mask >> c.nodes[at].first
	case terms.Claim == structs.ClaimCells:
		c.claimed[a.Namespace] |= mask
		r := cellRight{a.Namespace, cellKind{terms.CellLevel, terms.CellSize}}
		for _, cell := range c.cells[r.kind] {
			if cell.mask&mask != 0 {
				c.bind(r, cell, mask&cell.mask, false)
			}
		}
	}
}

// maskOf returns the devices of an allocation, whose IDs end in their numbers.
func (c *oracleChain) maskOf(a *structs.Allocation) (mask uint64) {
	for _, n := range c.nodes {
		if n.id != a.NodeID || a.AllocatedResources == nil {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks { // order does not matter: a sum
			for _, d := range t.Devices {
				for _, id := range d.DeviceIDs {
					i, _ := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
					mask |= 1 << (n.first + i)
				}
			}
		}
	}
	return mask
}

func (c *oracleChain) bind(r cellRight, cell oracleCell, used uint64, pinned bool) {
	for i := range c.bound {
		if b := &c.bound[i]; b.cellRight == r && b.cell.mask == cell.mask {
			b.used, b.pinned = b.used|used, b.pinned || pinned
			return
		}
	}
	c.bound = append(c.bound, oracleBound{r, cell, pinned, used})
}

// pin adds the cells that are pinned.
func (c *oracleChain) pin(snap *Snapshot) {
	for v := range snap.VirtualClusters(nil).List("", false) {
		for i := range v.Claims {
			q := &v.Claims[i]
			if q.Kind()+"/"+q.Tree != c.layout.kind() || q.Waits {
				continue
			}
			for _, p := range q.Pins {
				k := cellKind{q.Level, q.Size}
				if cell, ok := c.named(k, p.NodeID, p.Index); ok {
					c.bind(cellRight{v.Name, k}, cell, 0, true)
				}
			}
		}
	}
}

// named returns a cell within a node; false if there is none.
func (c *oracleChain) named(k cellKind, node string, index int) (oracleCell, bool) {
	for _, cell := range c.cells[k] {
		if cell.node == node && cell.index == index {
			return cell, true
		}
	}
	return oracleCell{}, false
}

// healthy returns the devices that may be used; those of nodes that are not ready among them if all is true.
func (c *oracleChain) healthy(all bool) (mask uint64) {
	for _, n := range c.nodes {
		if n.ready || all {
			mask |= ((1<<c.layout.devices() - 1) &^ n.bad) << n.first
		}
	}
	return mask
}

// free returns the devices that are in no bound cell.
func (c *oracleChain) free() uint64 {
	mask := c.healthy(false)
	for _, b := range c.bound {
		if b.cell.ready {
			mask &^= b.cell.mask
		}
	}
	return mask
}

// inUse returns how many of an owner's cells of a kind are bound, or pinned to cells that are not there at present.
func (c *oracleChain) inUse(r cellRight) (bound, away int) {
	for _, b := range c.bound {
		switch {
		case b.cellRight != r:
		case b.cell.ready:
			bound++
		case b.pinned:
			away++
		}
	}
	return bound, away
}

func (c *oracleChain) given(r cellRight) (n int) {
	for _, l := range c.lots {
		if l.cellRight == r {
			n += l.count
		}
	}
	return n
}

// waiting returns how many cells an owner is to have by now, and has not.
func (c *oracleChain) waiting(r cellRight) (n int) {
	for _, l := range c.due {
		if l.cellRight == r {
			n += l.count
		}
	}
	return n
}

// doomed returns the cells of each right that cannot be had: they are added in the order of admission while all can. counted are the
// others that are not bound.
func (c *oracleChain) doomed() (doomed map[cellRight]int, counted map[cellKind]int) {
	doomed, counted = map[cellRight]int{}, map[cellKind]int{}
	left, free := map[cellRight]int{}, c.free()
	for _, l := range c.lots {
		if _, seen := left[l.cellRight]; !seen {
			bound, away := c.inUse(l.cellRight)
			left[l.cellRight] = bound + away
		}
		for range l.count {
			if left[l.cellRight] > 0 {
				left[l.cellRight]--
				continue
			}
			if counted[l.kind]++; !c.embeds(counted, free) {
				counted[l.kind]--
				doomed[l.cellRight]++
			}
		}
	}
	return doomed, counted
}

// embeds reports whether so many cells of each kind can be found side by side among some devices.
func (c *oracleChain) embeds(want map[cellKind]int, among uint64) bool {
	var kinds []cellKind
	total := 0
	for k, n := range want { // sorted below
		if n <= 0 {
			continue
		}
		if len(c.cells[k]) == 0 {
			return false
		}
		kinds = append(kinds, k)
		total += n * bits.OnesCount64(c.cells[k][0].mask)
	}
	if total > bits.OnesCount64(among) {
		return false
	}
	size := func(k cellKind) int { return bits.OnesCount64(c.cells[k][0].mask) }
	slices.SortFunc(kinds, func(a, b cellKind) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.level, b.level))
	})
	return c.choose(kinds, want, among)
}

// choose tries all ways to take cells of some kinds, the largest first.
func (c *oracleChain) choose(kinds []cellKind, want map[cellKind]int, among uint64) bool {
	if len(kinds) == 0 {
		return true
	}
	var of func(list []oracleCell, left int, among uint64) bool
	of = func(list []oracleCell, left int, among uint64) bool {
		if left == 0 {
			return c.choose(kinds[1:], want, among)
		}
		for i, cell := range list {
			if among&cell.mask == cell.mask && of(list[i+1:], left-1, among&^cell.mask) {
				return true
			}
		}
		return false
	}
	return of(c.cells[kinds[0]], want[kinds[0]], among)
}

// rooms returns how many devices each free cell of an owner's virtual tree has, those of racks node by node: cells that it may bind, and
// the largest that it does not use of those that it has bound.
func (c *oracleChain) rooms(owner string, doomed map[cellRight]int) (list []int) {
	for _, r := range c.rights(owner) {
		bound, away := c.inUse(r)
		for range c.given(r) - bound - away - doomed[r] {
			if r.kind.size == 0 {
				list = append(list, c.layout.levels[c.layout.level(r.kind.level)].devices)
			}
			for range r.kind.size {
				list = append(list, c.layout.devices())
			}
		}
	}
	for _, b := range c.bound {
		if b.owner != owner || !b.cell.ready {
			continue
		}
		among := b.cell.mask & c.healthy(false) &^ c.claimed[owner]
		for _, l := range slices.Backward(c.layout.levels) {
			for _, cell := range c.cells[cellKind{level: l.name}] {
				if among&cell.mask == cell.mask {
					among &^= cell.mask
					list = append(list, l.devices)
				}
			}
		}
	}
	return list
}

// rights returns what an owner has any cells of, in the order of admission; of all owners if none is named.
func (c *oracleChain) rights(owner string) (list []cellRight) {
	for _, l := range c.lots {
		if (owner == "" || l.owner == owner) && !slices.Contains(list, l.cellRight) {
			list = append(list, l.cellRight)
		}
	}
	return list
}

// ownedAt returns what a virtual cluster owns of a chain at a time: its cells, or those of the window that it is in, and the shifts and
// exchanges beside.
func (c *oracleChain) ownedAt(v *structs.VirtualCluster, at int64) map[cellKind]int {
	owned := c.statedAt(v, at)
	for k, n := range owned { // order does not matter: each by itself
		owned[k] = max(n, 0)
	}
	return owned
}

// overdrawn reports whether a virtual cluster would have fewer cells than are pinned, or than it has shifted and sold, at a time.
func (c *oracleChain) overdrawn(v *structs.VirtualCluster, at int64) bool {
	stated := c.statedAt(v, at)
	for _, q := range v.Cells {
		if q.Kind == c.layout.kind() {
			stated[cellKind{q.Level, q.Size}] -= len(q.Pin)
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(stated)), func(n int) bool { return n < 0 })
}

// statedAt is ownedAt, below 0 where more is shifted and sold than there is.
func (c *oracleChain) statedAt(v *structs.VirtualCluster, at int64) map[cellKind]int {
	owned := map[cellKind]int{}
	set := func(q *structs.CellQuota, count int) {
		if q.Kind == c.layout.kind() {
			owned[cellKind{q.Level, q.Size}] = count
		}
	}
	for _, q := range v.Cells {
		set(q, q.Count)
	}
	for _, w := range v.Windows {
		if w.From.UnixNano() <= at && at < w.To.UnixNano() {
			for _, q := range w.Cells {
				set(q, q.Count)
			}
		}
	}
	for i := range v.Changes {
		if x := &v.Changes[i]; x.From <= at && at < x.Until {
			set(&x.Cells, owned[cellKind{x.Cells.Level, x.Cells.Size}]+x.Cells.Count)
		}
	}
	return owned
}

// String describes a chain for a failure.
func (c *oracleChain) String() string {
	return fmt.Sprintf("%s: nodes %+v, lots %+v, bound %+v", c.layout.kind(), c.nodes, c.lots, c.bound)
}
