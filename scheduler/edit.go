package scheduler

import "github.com/nomadish/nomadish/structs"

// Edit is a private, mutable form of a World: what one log entry, one judged
// plan or one evaluation changes. It is for one goroutine. Abandoning it costs
// nothing.
type Edit struct {
	w   World
	tok *token
	// moved are the states that the index has at a wrong place.
	moved []*nodeState
}

// World ends the edit and gives its result. The Edit may be gone on with: what
// it changes then is seen by Worlds taken later only.
func (e *Edit) World() *World {
	e.flush()
	e.tok = &token{}
	w := e.w
	return &w
}

// state gives a node's state to change, made if need be.
func (e *Edit) state(id string) *nodeState {
	s, found := e.w.nodes.Get(id)
	if found && s.owner == e.tok {
		e.touch(s)
		return s
	}
	if !found {
		s = &nodeState{owner: e.tok, id: id}
	} else {
		s = s.own(e.tok)
	}
	e.w.nodes.Put(e.tok, id, s)
	e.touch(s)
	return s
}

func (e *Edit) touch(s *nodeState) {
	if !s.dirty {
		s.dirty = true
		e.moved = append(e.moved, s)
	}
}

// flush moves the index on to what was changed since the last one.
func (e *Edit) flush() {
	for _, s := range e.moved {
		if !s.dirty {
			continue
		}
		s.dirty = false
		e.index(s)
		if s.node == nil && s.allocs == 0 {
			e.w.nodes.Delete(e.tok, s.id)
		}
	}
	e.moved = e.moved[:0]
}

func (e *Edit) index(s *nodeState) {
	var to place
	if s.node != nil && s.node.Ready() {
		to = place{s.node.ComputedClass, s.key()}
	}
	if s.at.class != "" && s.at != to {
		class := e.class(s.at.class)
		class.nodes.Delete(e.tok, s.at.key)
		if class.nodes.Len() == 0 {
			e.w.classes.Delete(e.tok, s.at.class)
		}
	}
	s.at = to
	if to.class != "" {
		class := e.class(to.class)
		class.nodes.Put(e.tok, to.key, s)
	}
}

// class gives a class's state to change, made if need be.
func (e *Edit) class(name string) *classState {
	c, found := e.w.classes.Get(name)
	switch {
	case !found:
		c = &classState{owner: e.tok, nodes: newTree[indexKey, *nodeState](compareKeys)}
	case c.owner == e.tok:
		return c
	default:
		c = &classState{owner: e.tok, nodes: c.nodes}
	}
	e.w.classes.Put(e.tok, name, c)
	return c
}

// UpsertNode stores what a node is. What is used of it is kept. The node must
// not be changed afterwards.
func (e *Edit) UpsertNode(n *structs.Node) {
	if n.ComputedClass == "" {
		n = n.Copy()
		n.ComputeClass()
	}
	s := e.state(n.ID)
	s.node, s.has = n, newCapacity(n)
}

// DeleteNode forgets a node. What its allocations use stays counted, until they
// are terminal or deleted.
func (e *Edit) DeleteNode(id string) {
	if _, found := e.w.nodes.Get(id); !found {
		return
	}
	s := e.state(id)
	s.node, s.has = nil, nil
}

// UpsertAlloc counts an allocation while it is not terminal, and forgets it when
// it is. It may be called again without effect.
func (e *Edit) UpsertAlloc(a *structs.Allocation) {
	if a.Terminal() {
		e.release(a.ID)
		return
	}
	e.take(newUse(a.ID, a.NodeID, a.AllocatedResources))
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
	}
	e.state(u.nodeID).take(u)
	e.w.allocs.Put(e.tok, u.id, u)
}

// release forgets an allocation's use and gives it; nil if it did not count.
func (e *Edit) release(id string) *use {
	old, found := e.w.allocs.Get(id)
	if !found {
		return nil
	}
	e.state(old.nodeID).give(old)
	e.w.allocs.Delete(e.tok, id)
	return old
}
