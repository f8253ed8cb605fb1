package scheduler

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// Edit is a private, mutable form of a World: what log entries that are applied
// together, one judged plan or one evaluation changes. It is for one goroutine. Abandoning it costs
// nothing.
type Edit struct {
	w   World
	tok *token
	// from is the World that was begun with, or was given last, while nothing of it has been changed.
	from *World
	// over are the states that this edit has made, by node ID. The World has them, and
	// the indexes have them at their places, only after flush: an evaluation that
	// places many needs neither, and throws the edit away.
	over map[string]*nodeState
	// moved are those of them that were changed since the last flush.
	moved []*nodeState
	// owed is what the last search took of a node, and was not taken yet: most
	// evaluations end with one placement, and their edit is thrown away.
	owed     *use
	owedNode string
	of       *holder // of the allocation last upserted
}

// begin begins an edit of a World in memory that the caller has, with a token of its own.
func (e *Edit) begin(w *World, tok *token) { *e = Edit{w: *w, tok: tok} }

// base is the World as the edit has it so far: its nodes and sets are up to date after flush, all else always.
func (e *Edit) base() *World { return &e.w }

// movedMembers reports whether this edit has changed which nodes are in which class and family, and
// may go on doing so.
func (e *Edit) movedMembers() bool { return e.w.members == e.tok }

// owns reports whether a set of nodes was made by this edit, which may change it again.
func (e *Edit) owns(c *nodeSet) bool { return c.owner == e.tok }

// takeLater has a use taken of a node before anything is looked at again.
func (e *Edit) takeLater(nodeID string, u *use) {
	e.settle()
	e.from, e.owedNode, e.owed = nil, nodeID, u
}

// settle takes what is owed.
func (e *Edit) settle() {
	if u := e.owed; u != nil {
		e.owed = nil
		e.state(e.owedNode).take(u)
	}
}

// World ends the edit and gives its result. The Edit may be gone on with: what
// it changes then is seen by Worlds taken later only. If nothing has changed, it is
// the same World as before.
func (e *Edit) World() *World {
	if e.from != nil {
		return e.from
	}
	e.flush()
	e.tok, e.over = &token{}, nil
	w := e.w
	e.from = &w
	return e.from
}

// node gives a node's state as it is now.
func (e *Edit) node(id string) (*nodeState, bool) {
	e.settle()
	if s, made := e.over[id]; made {
		return s, true
	}
	return e.w.nodes.Get(id)
}

// now gives the state of a node as it is now, of one that an index has.
func (e *Edit) now(n *nodeState) *nodeState {
	e.settle()
	if s, made := e.over[n.id]; made {
		return s
	}
	return n
}

// state gives a node's state to change, made if need be.
func (e *Edit) state(id string) *nodeState {
	e.settle()
	e.from = nil
	s, made := e.over[id]
	if !made {
		if was, found := e.w.nodes.Get(id); found {
			s = was.own(e.tok)
		} else {
			h := fnv.New64a()
			_, _ = h.Write([]byte(id)) // never fails
			s = &nodeState{owner: e.tok, id: id, hash: h.Sum64()}
		}
		if e.over == nil {
			e.over = map[string]*nodeState{}
		}
		e.over[id] = s
	}
	e.touch(s)
	return s
}

func (e *Edit) touch(s *nodeState) {
	if !s.dirty {
		s.dirty = true
		e.moved = append(e.moved, s)
	}
}

// flush moves the World and the indexes on to what was changed since the last one.
func (e *Edit) flush() {
	e.settle()
	for _, s := range e.moved {
		if !s.dirty {
			continue
		}
		s.dirty = false
		e.index(s)
		if s.node == nil && len(s.uses) == 0 && s.hold == nil {
			e.w.nodes.Delete(e.tok, s.id)
			delete(e.over, s.id)
			continue
		}
		e.w.nodes.Put(e.tok, s.id, s)
	}
	e.moved = e.moved[:0]
}

// index moves the two sets that a node is in.
func (e *Edit) index(s *nodeState) {
	var to place
	if s.node != nil && s.node.Ready() {
		to = place{s.node.ComputedClass, s.has.family, s.vector()}
	}
	from := s.at
	s.at, s.pool = to, s.onePool()
	e.move(&e.w.classes, from.class, to.class, from.at, to.at, s)
	e.move(&e.w.families, from.family, to.family, from.at, to.at, s)
	if e.w.heldKept {
		e.indexHeld(s)
	}
}

// move takes a node out of one set and puts it into another, or moves it within one.
// A set without nodes goes.
func (e *Edit) move(sets *tree[string, *nodeSet], from, to string, was, is bucket.Vector, s *nodeState) {
	if from != "" && from == to {
		set := e.set(sets, from)
		set.nodes.Update(e.tok, s.id, was, is, s)
		set.add(was, is)
		return
	}
	e.w.members = e.tok
	if from != "" {
		set := e.set(sets, from)
		set.nodes.Remove(e.tok, s.id, was)
		set.add(was, bucket.Vector{})
		if set.nodes.Len() == 0 {
			sets.Delete(e.tok, from)
		}
	}
	if to != "" {
		set := e.set(sets, to)
		set.nodes.Add(e.tok, s.id, is, s)
		set.add(bucket.Vector{}, is)
	}
}

// add moves the sum on.
func (c *nodeSet) add(was, is bucket.Vector) {
	for d := range c.sum {
		c.sum[d] += is[d] - was[d]
	}
}

// set gives a set to change, made if need be.
func (e *Edit) set(sets *tree[string, *nodeSet], name string) *nodeSet {
	c, found := sets.Get(name)
	switch {
	case !found:
		c = &nodeSet{owner: e.tok, nodes: bucket.New[*nodeState](e.w.config)}
	case c.owner == e.tok:
		return c
	default:
		c = &nodeSet{owner: e.tok, nodes: c.nodes, sum: c.sum}
	}
	sets.Put(e.tok, name, c)
	return c
}

// Configure says how room is compared from now on, which the bands are, and whether it
// must be known who holds what. The indexes are built anew if that changes.
func (e *Edit) Configure(c *structs.SchedulerConfiguration) {
	e.from = nil
	e.w.bands = slices.Clone(c.Bands)
	e.keepHeld(reclaims(c))
	config := indexConfig(c)
	if e.w.config.Granularity == config.Granularity && slices.Equal(e.w.config.Order, config.Order) {
		return
	}
	e.flush()
	e.w.config = config
	e.w.classes = newTree[string, *nodeSet](strings.Compare)
	e.w.families = newTree[string, *nodeSet](strings.Compare)
	for _, id := range e.nodeIDs() {
		e.state(id).at = place{}
	}
}

// UpsertNode stores what a node is. What is used of it is kept. The node must
// not be changed afterwards.
func (e *Edit) UpsertNode(n *structs.Node) {
	if n.ComputedClass == "" {
		n = n.Copy()
		n.ComputeClass()
	}
	family := familyOf(n)
	var like *capacity
	if set, found := e.w.families.Get(family); found {
		if other := set.any(); other != nil {
			like = other.has
		}
	}
	e.putNode(n, newCapacity(n, family, like))
}

// putNode stores what a node is and what it has.
func (e *Edit) putNode(n *structs.Node, has *capacity) {
	s := e.state(n.ID)
	e.forgetName(s)
	e.w.names.Put(e.tok, nodeName{n.Name, n.ID}, struct{}{})
	s.node = n
	s.setCapacity(has)
}

func (e *Edit) forgetName(s *nodeState) {
	if s.node != nil {
		e.w.names.Delete(e.tok, nodeName{s.node.Name, s.node.ID})
	}
}

// DeleteNode forgets a node. What its allocations use stays counted, until they
// are terminal or deleted.
func (e *Edit) DeleteNode(id string) {
	if _, found := e.node(id); !found {
		return
	}
	s := e.state(id)
	e.forgetName(s)
	s.node = nil
	s.setCapacity(nil)
}

// UpsertAlloc counts an allocation while it is not terminal, and forgets it when
// it is. It may be called again without effect.
func (e *Edit) UpsertAlloc(a *structs.Allocation) {
	if a.Terminal() {
		e.release(a.ID)
		return
	}
	of := newHolder(askName{a.Namespace, a.JobID, a.TaskGroup}, a.AllocatedResources)
	if e.of != nil && *e.of == *of {
		of = e.of // allocations of one group mostly come one after the other
	}
	e.of = of
	u := newUse(a.ID, a.NodeID, of, a.AllocatedResources, a.CreateTime)
	if a.DesiredStatus == structs.AllocDesiredSuspend {
		u = u.suspended()
	}
	e.take(u)
}

// DeleteAlloc forgets an allocation. The node's ID is not needed.
func (e *Edit) DeleteAlloc(id string, _ string) { e.release(id) }

// take counts a use, in place of what the same allocation used before.
func (e *Edit) take(u *use) {
	if old, found := e.w.allocs.Get(u.id); found {
		if old.equal(u) {
			return
		}
		e.state(old.nodeID).give(old)
		e.dismiss(old)
	}
	e.state(u.nodeID).take(u)
	e.w.allocs.Put(e.tok, u.id, u)
	e.enlist(u)
}

// release forgets an allocation's use and gives it; nil if it did not count.
func (e *Edit) release(id string) *use {
	old, found := e.w.allocs.Get(id)
	if !found {
		return nil
	}
	e.state(old.nodeID).give(old)
	e.w.allocs.Delete(e.tok, id)
	e.dismiss(old)
	return old
}
