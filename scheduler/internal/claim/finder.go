package claim

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

const (
	// maxTries is how many cells of a kind are named whose nodes do not hold the instance: by its constraints, static ports,
	// or more memory than the cell's share.
	maxTries = 256
	// fewTries are named first: mostly the first cell does.
	fewTries = 4
)

// Cell is a cell within a node that an instance may be placed in.
type Cell struct {
	Node         string
	Level, Index int
	Kind         cells.Kind // of the quota cell that it is, or lies in
	Loss         cells.Loss
	Devices      uint64 // of several cells of that kind, as bits; 0: those of the cell
}

// Finder finds cells for the instances of one group.
type Finder struct {
	Want  *feasible.DeviceRequest
	owner string
	pool  string
	find  *search.Search
	// within is the cell that a topology keeps the instances under; nil: any. nodes are those under it, once they are known.
	within *feasible.Domain
	nodes  []string
	// chain is the one that is looked at now, exact the lowest of its levels whose cells hold the devices.
	key   world.ChainKey
	edit  *cells.Edit
	exact int
	// pinned: only the cell that is pinned to the owner by a name may be used; pin is that; nil: there is none.
	pinned bool
	pin    *world.Pin
	// slot is how many devices a slot has, of instances that use slots of a project: the cells are of the smallest level that holds so many. 0: they
	// use cells of their namespace, of any level.
	slot int
	kind cells.Kind // of a slot, in the chain that is looked at
}

// Devices returns the devices for which a request may use a claim; nil: for none.
func Devices(job *structs.Job, a *search.Request) *feasible.DeviceRequest {
	if job.Class == structs.ClassOpportunistic || job.PerNode() {
		return nil
	}
	return feasible.Together(a.Devices)
}

// NewFinder returns a finder for the instances that a search is for; nil: they use no claim.
func NewFinder(job *structs.Job, s *search.Search) *Finder {
	want := Devices(job, s.Request)
	if want == nil {
		return nil
	}
	f := &Finder{Want: want, owner: job.Namespace, pool: cmp.Or(job.NodePool, structs.DefaultNodePool), find: s, within: s.Fit.Within}
	f.pin, f.pinned = pinOf(world.Base(s.Edit), job.Namespace, want)
	return f
}

// Within returns the cell that a topology keeps the instances under; nil: any.
func (f *Finder) Within() *feasible.Domain { return f.within }

// Matches reports whether a chain is of the job's pool and of the requested devices, and has the pinned cell if one is named.
func (f *Finder) Matches(key world.ChainKey) bool {
	return matches(f.pool, f.Want, key) && (!f.pinned || f.pin != nil && f.pin.Chain == key)
}

// Begin turns to a chain as an edit has it. It reports whether one cell within a node may hold the devices.
func (f *Finder) Begin(e *world.Edit, key world.ChainKey) bool {
	f.key, f.edit = key, world.ChainEdit(e, key)
	level, fits := f.Want.LevelIn(f.Chain())
	f.exact = level
	if f.slot > 0 {
		of, known := f.Chain().LevelFor(f.slot)
		f.kind = cells.Kind{Level: of}
		return fits && known
	}
	return fits
}

// Chain returns the chain as it is now, to be read at once.
func (f *Finder) Chain() *cells.Chain { return f.edit.View() }

// Bound returns the free cells within what the owner has bound, the smallest first.
func (f *Finder) Bound(e *world.Edit) (list []Cell) {
	f.rooms(e, f.exact, func(r world.Room) bool {
		if f.under(r.NodeID) {
			list = append(list, Cell{Node: r.NodeID, Level: r.Level, Index: r.Index, Kind: r.Bound})
		}
		return len(list) < maxTries
	})
	return list
}

// Unbound returns the cells that may be bound, a few of each kind first. The edit may change before the next is taken only if no other is.
func (f *Finder) Unbound() iter.Seq[Cell] {
	var kinds []cells.Kind
	for _, a := range f.accounts() {
		if a.Unbound() > 0 && f.Chain().Devices(a.Kind) >= f.Want.Count && a.Kind.Level >= f.exact {
			kinds = append(kinds, a.Kind)
		}
	}
	return func(yield func(Cell) bool) {
		_ = len(kinds) == 0 || f.ofKinds(kinds, fewTries, yield) && f.ofKinds(kinds, maxTries, yield)
	}
}

// ofKinds yields so many cells of each kind: those that cost nothing, of the exact size before a larger one, then those of least
// loss. It reports whether more are wanted.
func (f *Finder) ofKinds(kinds []cells.Kind, tries int, yield func(Cell) bool) bool {
	var costly []Cell
	for _, k := range kinds {
		var idle []Cell
		n := 0
		for cand := range f.candidates(k) {
			if cand.Loss > 0 {
				costly = append(costly, f.on(cand, k)...)
			} else {
				idle = append(idle, f.on(cand, k)...)
			}
			if n++; n >= tries {
				break
			}
		}
		for _, at := range idle {
			if !yield(at) {
				return false
			}
		}
	}
	slices.SortStableFunc(costly, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Loss, b.Loss), a.Kind.Compare(b.Kind), strings.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index))
	})
	for _, at := range costly {
		if !yield(at) {
			return false
		}
	}
	return true
}

// candidates returns the cells of a kind that may be bound, on the nodes that the instances are kept to if they are.
func (f *Finder) candidates(k cells.Kind) iter.Seq[cells.Candidate] {
	if f.within == nil || k.Size > 0 {
		return f.edit.Candidates(k)
	}
	var all []cells.Candidate
	for _, id := range f.domainNodes() {
		all = append(all, f.edit.CandidatesOn(id, k)...)
	}
	slices.SortStableFunc(all, func(a, b cells.Candidate) int {
		return cmp.Or(cmp.Compare(a.Loss, b.Loss), a.From.Compare(b.From), strings.Compare(a.Cell.Node, b.Cell.Node))
	})
	return slices.Values(all)
}

// on returns the cells within nodes of a candidate, of nodes that the instances are kept to: itself, or the nodes of a site cell.
func (f *Finder) on(cand cells.Candidate, k cells.Kind) (list []Cell) {
	if cand.Cell.Site == "" {
		return []Cell{{Node: cand.Cell.Node, Level: k.Level, Index: cand.Cell.Index, Kind: k, Loss: cand.Loss}}
	}
	f.Chain().NodesOf(cand.Cell, func(id string) bool {
		if f.under(id) {
			list = append(list, Cell{Node: id, Level: len(f.Chain().Levels()) - 1, Kind: k, Loss: cand.Loss})
		}
		return true
	})
	return list
}

// under reports whether a node is one that the instances are kept to.
func (f *Finder) under(id string) bool {
	if f.within == nil {
		return true
	}
	_, found := slices.BinarySearch(f.domainNodes(), id)
	return found
}

// domainNodes returns the nodes that the instances are kept to, sorted.
func (f *Finder) domainNodes() []string {
	if f.nodes == nil {
		f.nodes = []string{}
		if f.within.NodeID != "" {
			f.nodes = append(f.nodes, f.within.NodeID)
			return f.nodes
		}
		for _, in := range f.find.Sets {
			if set, known := f.find.AllSets().Get(in.Name); known {
				for n := range set.All {
					f.nodes = append(f.nodes, n.ID)
				}
			}
		}
		slices.Sort(f.nodes)
	}
	return f.nodes
}

// Uses adds to a list what the owner uses by its claims of the chain.
func (f *Finder) Uses(e *world.Edit, list []*world.Usage) []*world.Usage {
	f.Chain().Bindings(func(b cells.Binding, _ bool) bool {
		if b.Owner != f.owner || f.pin != nil && (b.Cell != f.pin.Cell || b.Kind != f.pin.Kind) {
			return true
		}
		f.Chain().NodesOf(b.Cell, func(id string) bool {
			n, _ := world.StateOf(e, id)
			for _, u := range n.Usages {
				if u.ID != "" && u.UsesCells() && u.CellOwner() == f.owner && !slices.Contains(list, u) {
					list = append(list, u)
				}
			}
			return true
		})
		return true
	})
	return list
}

// BeyondShare reports whether an instance needs more processor or memory than its devices' share of a node: that much is not
// guaranteed to anybody.
func (f *Finder) BeyondShare(n *world.NodeState) bool {
	return BeyondShare(f.find.Edit, n, amountOn(f.find.Request, n), f.Want.Count)
}

// BeyondShare reports whether an amount is beyond the share that so many devices have of a node, less its system and sysbatch
// instances and the slots that it states.
func BeyondShare(e *world.Edit, n *world.NodeState, amount world.Vector, devices int) bool {
	has, all := world.Base(e).Claimable(n)
	total, k := int64(all), int64(devices)
	return amount.CPU*total > has.CPU*k || amount.MemoryMB*total > has.MemoryMB*k
}

// Aim keeps a request to a cell. It takes one of exactly the smallest level that holds it there, so that its owner's other cells stay whole.
func (f *Finder) Aim(a *search.Request, n *world.NodeState, at Cell) {
	one := a.Together()
	one.Within = f.domain(n, at)
	one.Find.Level, one.Find.Required = f.Chain().Levels()[f.exact].Name, true
	if at.Devices != 0 {
		one.Find.Level, one.Find.Required = f.Want.Find.Level, false
	}
}

// domain returns a cell as what a request for devices is kept within.
func (f *Finder) domain(n *world.NodeState, at Cell) *feasible.Domain {
	mask := at.Devices
	if mask == 0 {
		mask = f.Chain().Mask(at.Level, at.Index)
	}
	d := &feasible.Domain{Level: f.Chain().LevelName(cells.Kind{Level: at.Level}), NodeID: n.ID, Name: n.Node.Name, Devices: map[string]bool{}}
	for _, t := range n.Capacity.Trees {
		if key, ok := world.ChainOf(n.Node, t); !ok || key != f.key {
			continue
		}
		for i, id := range t.IDs {
			if mask&(1<<i) != 0 && (f.within == nil || f.within.Devices == nil || f.within.Devices[id]) {
				d.Devices[id] = true
			}
		}
	}
	return d
}
