package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// What a namespace owns comes first (semantics part 2): an instance that requests whole devices goes into a free cell of what its
// namespace has bound already, the smallest first; else a cell that its namespace owns is bound for it, one whose binding leaves
// what all others own, without loss before others, then of least loss. What runs there opportunistically is
// reclaimed, whatever its priority.

const (
	// claimTries is how many cells of a kind are tried whose nodes do not hold the instance: by its constraints, static ports,
	// or more memory than the cell's share.
	claimTries = 256
	// fewTries are tried first: mostly the first cell does.
	fewTries = 4
)

// claimRun places instances of one group by what their namespace owns.
type claimRun struct {
	g    *groupRun
	want *feasible.DeviceRequest // nil: the group uses no claim
	// chain is the one that is tried now.
	chain world.ChainKey
	// runs are the placings by kind of cell: a batch has one right.
	runs []*groupRun
	none bool // nothing more is to be had
	// stale: what the group's search has found free may be taken, and more may be free.
	stale bool
}

// claims begins the placing of a group by what its namespace owns; nil: it owns nothing. The class of a job says nothing then, as
// nobody was given anything.
func (g *groupRun) claims() *claimRun {
	job, a := g.s.Input.Job, g.search.Request
	if !g.s.World.Owns(job.Namespace) {
		return nil
	}
	c := &claimRun{g: g}
	if job.Class == structs.ClassOpportunistic || job.PerNode() || g.work.Gang != nil {
		return c
	}
	if len(a.Devices) == 1 && a.Devices[0].Whole() > 0 && a.Devices[0].Within == nil {
		c.want = &a.Devices[0]
	}
	return c
}

// place places one instance in a cell of its namespace. It reports whether it did.
func (c *claimRun) place(p reconcile.Placement) bool {
	if c == nil || c.want == nil || c.none || p.NodeID != "" {
		return false
	}
	world.FlushClaims(c.g.search.Edit)
	for key := range c.g.s.World.Chains {
		if !c.matches(key) {
			continue
		}
		c.chain = key
		ed := world.ChainEdit(c.g.search.Edit, key)
		if level, fits := c.level(ed.View()); fits && (c.placeBound(ed, level, p) || c.placeNew(ed, level, p)) {
			c.stale = true
			return true
		}
	}
	c.none = true
	return false
}

// placeAgain places the successor of an instance that has just given back what it used.
func (c *claimRun) placeAgain(p reconcile.Placement) bool {
	if c != nil {
		c.none = false
	}
	return c.place(p)
}

// batches adds what was placed to the plan.
func (c *claimRun) batches() {
	if c != nil {
		for _, r := range c.runs {
			r.addBatch()
		}
	}
}

// rewind begins the group's search anew if cells were given since.
func (c *claimRun) rewind() {
	if c != nil && c.stale {
		c.stale = false
		c.g.search.Rewind()
	}
}

// mayDoWithout reports whether an instance that no claim was found for may run opportunistically. One that may not is explained.
func (c *claimRun) mayDoWithout(p reconcile.Placement) bool {
	if c == nil || c.g.s.Input.Job.Class != structs.ClassGuaranteed {
		c.rewind()
		return true
	}
	c.g.fail(p)
	return false
}

// matches reports whether a chain is of the job's pool and of the requested devices.
func (c *claimRun) matches(key world.ChainKey) bool {
	pool := cmp.Or(c.g.s.Input.Job.NodePool, structs.DefaultNodePool)
	w := c.want
	return (pool == key.Pool || pool == structs.AllNodePool) && (w.Vendor == "" || w.Vendor == key.Vendor) && w.Kind == key.Type &&
		(w.Name == "" || w.Name == key.Model)
}

// level returns the lowest level of a chain whose cells hold the devices; false if a required topology level is below
// it, or none does.
func (c *claimRun) level(chain *cells.Chain) (int, bool) {
	level, fits := chain.LevelFor(c.want.Count)
	if !fits || !c.want.Find.Required {
		return level, fits
	}
	k, known := chain.KindOf(c.want.Find.Level, 0)
	return level, known && level <= k.Level
}

// cellOn is a cell within a node that an instance may be placed in.
type cellOn struct {
	node         string
	level, index int
	kind         cells.Kind // of the quota cell that it is, or lies in
	loss         cells.Loss
}

// placeBound places an instance in the smallest free cell of what its namespace has bound.
func (c *claimRun) placeBound(ed *cells.Edit, level int, p reconcile.Placement) bool {
	var list []cellOn
	world.Rooms(c.g.search.Edit, c.chain, c.g.s.Input.Job.Namespace, level, func(r world.Room) bool {
		list = append(list, cellOn{node: r.NodeID, level: r.Level, index: r.Index, kind: r.Bound})
		return len(list) < claimTries
	})
	return slices.ContainsFunc(list, func(at cellOn) bool { return c.tryOn(ed, at, p) })
}

// placeNew binds a cell for an instance.
func (c *claimRun) placeNew(ed *cells.Edit, level int, p reconcile.Placement) bool {
	chain, owner := ed.View(), c.g.s.Input.Job.Namespace
	var kinds []cells.Kind
	for _, a := range chain.Accounts(owner) {
		if a.Unbound() > 0 && chain.Devices(a.Kind) >= c.want.Count && a.Kind.Level >= level {
			kinds = append(kinds, a.Kind)
		}
	}
	return c.tryKinds(ed, kinds, fewTries, p) || c.tryKinds(ed, kinds, claimTries, p)
}

// tryKinds tries so many cells of each kind: those that cost nothing, of the exact size before a larger one, then those of least
// loss.
func (c *claimRun) tryKinds(ed *cells.Edit, kinds []cells.Kind, tries int, p reconcile.Placement) bool {
	chain := ed.View()
	var costly []cellOn
	for _, k := range kinds {
		var idle []cellOn
		n := 0
		for cand := range ed.Candidates(k) {
			if cand.Loss > 0 {
				costly = append(costly, within(chain, cand, k)...)
			} else {
				idle = append(idle, within(chain, cand, k)...)
			}
			if n++; n >= tries {
				break
			}
		}
		if slices.ContainsFunc(idle, func(at cellOn) bool { return c.tryOn(ed, at, p) }) {
			return true
		}
	}
	slices.SortStableFunc(costly, func(a, b cellOn) int {
		return cmp.Or(cmp.Compare(a.loss, b.loss), a.kind.Compare(b.kind), strings.Compare(a.node, b.node), cmp.Compare(a.index, b.index))
	})
	return slices.ContainsFunc(costly, func(at cellOn) bool { return c.tryOn(ed, at, p) })
}

// within returns the cells within nodes of a candidate: itself, or the nodes of a site cell.
func within(chain *cells.Chain, cand cells.Candidate, k cells.Kind) (list []cellOn) {
	if cand.Cell.Site == "" {
		return []cellOn{{cand.Cell.Node, k.Level, cand.Cell.Index, k, cand.Loss}}
	}
	chain.NodesOf(cand.Cell, func(id string) bool {
		list = append(list, cellOn{id, len(chain.Levels()) - 1, 0, k, cand.Loss})
		return true
	})
	return list
}

// tryOn tries to place an instance in a cell, and reclaims what is there if need be.
func (c *claimRun) tryOn(ed *cells.Edit, at cellOn, p reconcile.Placement) bool {
	n, known := world.StateOf(c.g.search.Edit, at.node)
	if !known || n.Node == nil || slices.Contains(avoided(p), at.node) {
		return false
	}
	if c.beyondShare(n) {
		return false
	}
	run := c.run(ed.View().LevelName(at.kind), at.kind.Size)
	run.search.Request.Devices[0].Within = c.domain(n, ed.View(), at)
	if f, ok := run.search.On(at.node); ok {
		run.accept(p, f)
		return true
	}
	r := c.g.s.reclaimer(c.g.search.Edit)
	r.below = preempt.EveryBand
	find := &reclaimSearch{r: r, run: run, seen: map[string]bool{}}
	p.NodeID = at.node
	return r.assign(find, p) && len(r.settle()) == 0
}

// beyondShare reports whether an instance needs more processor or memory than its devices' share of a node: that much is not
// guaranteed to anybody.
func (c *claimRun) beyondShare(n *world.NodeState) bool {
	a := c.g.search.Request
	amount := a.Amount
	amount.CPU += a.Need[world.DimCores] * n.Capacity.MHzPerCore
	return beyondShare(n, amount, c.want.Count)
}

// beyondShare reports whether an amount is beyond the share that so many devices have of a node.
func beyondShare(n *world.NodeState, amount world.Vector, devices int) bool {
	total := int64(0)
	for _, t := range n.Capacity.Trees {
		total += int64(len(t.IDs))
	}
	has, k := n.Capacity.Amount, int64(devices)
	return amount.CPU*total > has.CPU*k || amount.MemoryMB*total > has.MemoryMB*k
}

// run returns the placing of the group by a kind of cell, begun if need be.
func (c *claimRun) run(level string, size int) *groupRun {
	for _, r := range c.runs {
		if t := r.search.Request.Resources.Shared.Terms; t.CellLevel == level && t.CellSize == size {
			return r
		}
	}
	r := *c.g
	r.batch, r.nodes, r.short = nil, nil, nil
	r.search = c.g.search.ForNamed(c.g.search.Request.Claiming(level, size))
	c.runs = append(c.runs, &r)
	return &r
}

// domain returns a cell as what a request for devices is kept within.
func (c *claimRun) domain(n *world.NodeState, chain *cells.Chain, at cellOn) *feasible.Domain {
	mask := chain.Mask(at.level, at.index)
	d := &feasible.Domain{Level: chain.LevelName(cells.Kind{Level: at.level}), NodeID: n.ID, Name: n.Node.Name, Devices: map[string]bool{}}
	for _, t := range n.Capacity.Trees {
		if key, ok := world.ChainOf(n.Node, t); !ok || key != c.chain {
			continue
		}
		for i, id := range t.IDs {
			if mask&(1<<i) != 0 {
				d.Devices[id] = true
			}
		}
	}
	return d
}
