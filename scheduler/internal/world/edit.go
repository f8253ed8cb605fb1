package world

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/family"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Edit is a private, mutable form of a World: what log entries that are applied together, one judged plan or one evaluation changes. It is for one
// goroutine. Abandoning it costs nothing.
type Edit struct {
	w       World
	tok     *Token
	pages   *Token // of the pages of nodes and usages, of which many are changed
	inPlace bool   // see InPlace
	// from is the World that was begun with, or was given last, while nothing of it has been changed.
	from *World
	// over are the states that this edit has made, by node ID. The World has them, and the indexes have them at their places, only after flush: an
	// evaluation that places many needs neither, and throws the edit away.
	over map[string]*NodeState
	// moved are those of them that were changed since the last flush.
	moved []*NodeState
	// owed is what the last search took of a node, and was not taken yet: most evaluations end with one placement, and their edit is thrown away.
	owed     *Usage
	owedNode string
	of       *Owner // of the allocation last upserted
	claims   claimsEdit
	pair     [2]*NodeSet // that sets returned last
	placed   int         // instances of projects that an evaluation has placed
}

// Begin begins an edit of a World in memory that the caller has, with a token of its own.
func Begin(e *Edit, w *World, tok *Token) { *e = Edit{w: *w, tok: tok, pages: tok} }

// InPlace begins an edit that changes the Worlds which World returned before, of which the caller keeps none.
func InPlace(w *World) *Edit {
	e := w.Edit()
	e.inPlace = true
	return e
}

// Base is the World as the edit has it so far: its nodes and sets are up to date after flush, all else always.
func Base(e *Edit) *World { return &e.w }

// MovedMembers reports whether this edit has changed which nodes are in which class and family, and may go on doing so.
func MovedMembers(e *Edit) bool { return e.w.members == e.tok }

// Owns reports whether a set of nodes was made by this edit, which may change it again.
func Owns(e *Edit, c *NodeSet) bool { return c.Owner == e.tok }

// TakeLater adds a usage to a node before the edit is read again.
func TakeLater(e *Edit, nodeID string, u *Usage) {
	e.settle()
	e.from, e.owedNode, e.owed = nil, nodeID, u
}

// settle adds the usages that TakeLater has deferred.
func (e *Edit) settle() {
	if u := e.owed; u != nil {
		e.owed = nil
		StateToChange(e, e.owedNode).Take(u)
	}
}

// World ends the edit and returns its result. The Edit may still be used: what it changes then is seen by Worlds taken later only (but see InPlace). If
// nothing has changed, it is the same World as before.
func (e *Edit) World() *World {
	if e.from != nil {
		return e.from
	}
	e.loseGangs()
	ledger{e}.closeChains()
	Flush(e)
	e.tok, e.over = &Token{}, nil
	if !e.inPlace {
		e.pages = e.tok
	}
	w := e.w
	e.from = &w
	return e.from
}

// StateOf returns a node's state as it is now.
func StateOf(e *Edit, id string) (*NodeState, bool) {
	e.settle()
	if s, made := e.over[id]; made {
		return s, true
	}
	return e.w.nodes.Get(id)
}

// Current returns the state of a node as it is now, of one that an index has.
func Current(e *Edit, n *NodeState) *NodeState {
	e.settle()
	if s, made := e.over[n.ID]; made {
		return s
	}
	return n
}

// StateToChange returns a node's state to change, made if need be.
func StateToChange(e *Edit, id string) *NodeState {
	e.settle()
	e.from = nil
	s, made := e.over[id]
	if !made {
		if was, found := e.w.nodes.Get(id); found {
			s = was.Own(e.tok)
		} else {
			h := fnv.New64a()
			_, _ = h.Write([]byte(id)) // never fails
			s = &NodeState{owner: e.tok, ID: id, Hash: h.Sum64()}
		}
		if e.over == nil {
			e.over = map[string]*NodeState{}
		}
		e.over[id] = s
	}
	e.touch(s)
	return s
}

func (e *Edit) touch(s *NodeState) {
	if !s.Dirty {
		s.Dirty = true
		e.moved = append(e.moved, s)
	}
}

// Flush moves the World and the indexes on to what was changed since the last one.
func Flush(e *Edit) {
	e.settle()
	for _, s := range e.moved {
		if !s.Dirty {
			continue
		}
		s.Dirty = false
		e.index(s)
		if s.Node == nil && len(s.Usages) == 0 && s.Reservation == nil && len(s.parts) == 0 {
			tree.Delete(e.pages, &e.w.nodes, s.ID)
			delete(e.over, s.ID)
			continue
		}
		tree.Put(e.pages, &e.w.nodes, s.ID, s)
	}
	e.moved = e.moved[:0]
}

// Configure sets how room is compared from now on, which the bands are, what a slot of a type is, and whether it must be known who holds what. The
// indexes are built anew if that changes.
func (e *Edit) Configure(c *structs.SchedulerConfiguration) {
	e.from = nil
	Flush(e)
	allowed, was := c.RequeuesAllowed(), e.w.rules.index
	e.w.rules = &rules{index: indexConfig(c), bands: slices.Clone(c.Bands), cycle: int64(c.CycleLength()), slots: c.Slots.Copy(), requeues: &allowed}
	SlotEdit{e}.rebuild()
	e.keepUsage(reclaims(c))
	ledger{e}.setSites(c.SiteLevels())
	if is := e.w.rules.index; is.Granularity == was.Granularity && slices.Equal(is.Order, was.Order) {
		return
	}
	Flush(e)
	e.w.classes = newTree[string, *NodeSet](strings.Compare)
	e.w.families = newTree[string, *NodeSet](strings.Compare)
	for _, id := range e.nodeIDs() {
		StateToChange(e, id).Indexed = IndexKey{}
	}
}

// UpsertNode stores what a node is. What is used of it is kept. The node must not be changed afterwards.
func (e *Edit) UpsertNode(n *structs.Node) {
	if n.ComputedClass == "" {
		n = n.Copy()
		n.ComputeClass()
	}
	of := family.Of(n)
	var like *Capacity
	if set, found := e.w.families.Get(of); found {
		if other := set.Any(); other != nil {
			like = other.Capacity
		}
	}
	PutNode(e, n, NewCapacity(n, of, like))
}

// PutNode stores what a node is and what it has.
func PutNode(e *Edit, n *structs.Node, has *Capacity) {
	s := StateToChange(e, n.ID)
	e.forgetName(s)
	tree.Put(e.tok, &e.w.names, NodeName{n.Name, n.ID}, struct{}{})
	move, away := ledger{e}.beginMove(s, n, has), s.away()
	shareSums{e}.node(s, n, has)
	s.Node = n
	s.setCapacity(has)
	ledger{e}.endMove(s, move)
	if away {
		WorkflowEdit{e}.loseUsages(s)
	}
	SlotEdit{e}.node(n)
}

func (e *Edit) forgetName(s *NodeState) {
	if s.Node != nil {
		tree.Delete(e.tok, &e.w.names, NodeName{s.Node.Name, s.Node.ID})
	}
}

// DeleteNode forgets a node. What its allocations use stays counted, until they are terminal or deleted.
func (e *Edit) DeleteNode(id string) {
	if _, found := StateOf(e, id); !found {
		return
	}
	s := StateToChange(e, id)
	e.forgetName(s)
	move := ledger{e}.beginMove(s, nil, nil)
	shareSums{e}.node(s, nil, nil)
	s.Node = nil
	s.setCapacity(nil)
	ledger{e}.endMove(s, move)
	SlotEdit{e}.forget(id)
}

// UpsertAlloc counts an allocation while it is not terminal, and forgets it when it is. It may be called again without effect.
func (e *Edit) UpsertAlloc(a *structs.Allocation) {
	if a.Terminal() {
		Release(e, a.ID)
		return
	}
	of := NewOwner(RequestName{a.Namespace, a.JobID, a.TaskGroup}, a.AllocatedResources)
	if e.of != nil && e.of.equal(of) {
		of = e.of // allocations of one group mostly come one after the other
	}
	e.of = of
	u := NewUse(a.ID, a.NodeID, of, a.AllocatedResources, a.CreateTime)
	u.Requeues = boundedCount(a.Requeues)
	if a.DesiredStatus == structs.AllocDesiredSuspend {
		u = u.Suspended()
		u.ByHand = a.SuspendedAt <= 0
	}
	Take(e, u)
}

// DeleteAlloc forgets an allocation. The node's ID is not needed.
func (e *Edit) DeleteAlloc(id string, _ string) { Release(e, id) }

// Take counts a usage, in place of what the same allocation used before.
func Take(e *Edit, u *Usage) {
	if old, found := e.w.allocs.Get(u.ID); found {
		if old.Equal(u) {
			return
		}
		Unclaim(e, old)
		s := StateToChange(e, old.NodeID)
		s.Give(old)
		shareSums{e}.use(s.Node, old, -1)
		e.dismiss(old)
		ledger{e}.markUsage(old)
	}
	u = ledger{e}.claimFor(u)
	s := StateToChange(e, u.NodeID)
	s.Take(u)
	shareSums{e}.use(s.Node, u, 1)
	ledger{e}.markUsage(u)
	tree.Put(e.pages, &e.w.allocs, u.ID, u)
	e.enlist(u)
}

// Release removes an allocation's usage and returns it, or nil if it was not counted.
func Release(e *Edit, id string) *Usage {
	old, found := e.w.allocs.Get(id)
	if !found {
		return nil
	}
	Unclaim(e, old)
	s := StateToChange(e, old.NodeID)
	s.Give(old)
	shareSums{e}.use(s.Node, old, -1)
	tree.Delete(e.pages, &e.w.allocs, id)
	e.dismiss(old)
	ledger{e}.markUsage(old)
	return old
}
