package scheduler

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// World is what the scheduler sees: the nodes, what they have and what
// allocations use of it, and an index of the ready ones by class and free room.
// It is immutable and shares structure with the Worlds that it came from; a
// World may be kept, and read by many goroutines, for as long as wanted.
//
// An allocation counts while it is not terminal: what the servers have asked to
// stop counts as free, and the client holds a newcomer back until its ports and
// cores are free in truth.
type World struct {
	nodes   tree[string, *nodeState]  // by node ID
	allocs  tree[string, *use]        // by allocation ID, of those that count
	classes tree[string, *classState] // by computed class, of ready nodes
}

// classState is the ready nodes of one class, by free room.
type classState struct {
	owner *token
	nodes tree[indexKey, *nodeState]
}

// any gives one node of the class; all are alike but for unique attributes.
func (c *classState) any() *nodeState {
	for _, n := range c.nodes.All {
		return n
	}
	return nil // not while the class is in a World: it has at least one
}

// indexKey orders nodes by free room, dimension by dimension, then by ID.
type indexKey struct {
	cpu, memory int64
	id          string
}

func compareKeys(a, b indexKey) int {
	return cmp.Or(cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory), strings.Compare(a.id, b.id))
}

func (n *nodeState) key() indexKey {
	free := n.free()
	return indexKey{free.CPU, free.MemoryMB, n.id}
}

// NewWorld gives a World without nodes.
func NewWorld() *World {
	return &World{
		nodes:   newTree[string, *nodeState](strings.Compare),
		allocs:  newTree[string, *use](strings.Compare),
		classes: newTree[string, *classState](strings.Compare),
	}
}

// Edit gives a private form of the World that can be changed. The World itself
// never is.
func (w *World) Edit() *Edit { return &Edit{w: *w, tok: &token{}} }

// Node gives a node by its ID.
func (w *World) Node(id string) (*structs.Node, bool) {
	if s, found := w.nodes.Get(id); found && s.node != nil {
		return s.node, true
	}
	return nil, false
}

// Nodes gives all nodes in order of their IDs.
func (w *World) Nodes() iter.Seq[*structs.Node] {
	return func(yield func(*structs.Node) bool) {
		for _, s := range w.nodes.All {
			if s.node != nil && !yield(s.node) {
				return
			}
		}
	}
}

// Used is what the counting allocations of a node use, whether it is known or not.
func (w *World) Used(nodeID string) Vector {
	if s, found := w.nodes.Get(nodeID); found {
		return s.used
	}
	return Vector{}
}

// Free is what a node has left; nothing if it is not known.
func (w *World) Free(nodeID string) Vector {
	if s, found := w.nodes.Get(nodeID); found {
		return s.free()
	}
	return Vector{}
}

// Diff names, in order, what differs between two Worlds; nil if nothing does. A
// World that was moved on step by step must equal one rebuilt from the tables.
func (w *World) Diff(other *World) []string {
	var out []string
	diffTrees(&out, "node", &w.nodes, &other.nodes, diffNode)
	diffTrees(&out, "allocation", &w.allocs, &other.allocs, func(a, b *use) string {
		if a.equal(b) {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", *a, *b)
	})
	diffTrees(&out, "class", &w.classes, &other.classes, func(a, b *classState) string {
		var inner []string
		diffTrees(&inner, "entry", &a.nodes, &b.nodes, func(a, b *nodeState) string { return diffNode(a, b) })
		return strings.Join(inner, "; ")
	})
	return out
}

func diffTrees[K, V any](out *[]string, noun string, a, b *tree[K, V], differ func(a, b V) string) {
	for k, v := range a.All {
		if o, found := b.Get(k); !found {
			*out = append(*out, fmt.Sprintf("%s %v: only in the first", noun, k))
		} else if what := differ(v, o); what != "" {
			*out = append(*out, fmt.Sprintf("%s %v: %s", noun, k, what))
		}
	}
	for k := range b.All {
		if _, found := a.Get(k); !found {
			*out = append(*out, fmt.Sprintf("%s %v: only in the second", noun, k))
		}
	}
}

func diffNode(a, b *nodeState) string {
	switch {
	case (a.node == nil) != (b.node == nil):
		return "known in one only"
	case a.node != nil && (a.node.Status != b.node.Status || a.node.Ready() != b.node.Ready() ||
		a.node.ComputedClass != b.node.ComputedClass || a.node.ModifyIndex != b.node.ModifyIndex):
		return fmt.Sprintf("status %s, class %s, index %d, not %s, %s, %d", a.node.Status, a.node.ComputedClass,
			a.node.ModifyIndex, b.node.Status, b.node.ComputedClass, b.node.ModifyIndex)
	case a.allocs != b.allocs || a.used != b.used:
		return fmt.Sprintf("%d allocations use %+v, not %d use %+v", a.allocs, a.used, b.allocs, b.used)
	case a.free() != b.free():
		return fmt.Sprintf("%+v is free, not %+v", a.free(), b.free())
	case !slices.Equal(a.ports, b.ports):
		return fmt.Sprintf("ports %v, not %v", a.ports, b.ports)
	case !slices.Equal(a.cores, b.cores):
		return fmt.Sprintf("cores %v, not %v", a.cores, b.cores)
	case !slices.Equal(a.devices, b.devices):
		return fmt.Sprintf("devices %v, not %v", a.devices, b.devices)
	case a.at != b.at:
		return fmt.Sprintf("indexed at %+v, not %+v", a.at, b.at)
	}
	return ""
}
