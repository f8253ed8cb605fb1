package scheduler

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/cell"
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
	nodes  tree[string, *nodeState] // by node ID
	allocs tree[string, *use]       // by allocation ID, of those that count
	// classes and families are the ready nodes, by computed class and by family.
	classes  tree[string, *nodeSet]
	families tree[string, *nodeSet]
	// members tells apart which nodes are in which of them: who changed that last.
	members *token
	// names are the known nodes by name.
	names tree[nodeName, struct{}]
	// holds are the reservations, by node ID.
	holds  tree[string, *hold]
	config bucket.Config
	// gangs are the members of gangs, gang by gang.
	gangs tree[member, *use]
	// held are the ready nodes by what they would have without those of a priority and
	// below, while heldKept; see reclaim_index.go.
	held     tree[heldKey, *heldSet]
	places   tree[string, *heldPlace] // where held has a node, by its ID
	heldKept bool
	bands    []structs.PriorityBand // empty: the default
}

// nodeName is a node by its name, which others may have too.
type nodeName struct{ name, id string }

func compareNames(a, b nodeName) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.id, b.id))
}

// NewWorld gives a World without nodes.
func NewWorld() *World {
	return &World{
		nodes:    newTree[string, *nodeState](strings.Compare),
		allocs:   newTree[string, *use](strings.Compare),
		classes:  newTree[string, *nodeSet](strings.Compare),
		families: newTree[string, *nodeSet](strings.Compare),
		names:    newTree[nodeName, struct{}](compareNames),
		holds:    newTree[string, *hold](strings.Compare),
		gangs:    newTree[member, *use](compareMembers),
		held:     newTree[heldKey, *heldSet](compareHeldKeys),
		places:   newTree[string, *heldPlace](strings.Compare),
		config:   indexConfig(&structs.SchedulerConfiguration{}),
	}
}

// Edit gives a private form of the World that can be changed. The World itself
// never is.
func (w *World) Edit() *Edit { return &Edit{w: *w, tok: &token{}, from: w} }

// allocsTree are the uses of the allocations that count, by the allocation's ID.
func (w *World) allocsTree() *tree[string, *use] { return &w.allocs }

// nodesTree are the nodes that are known or that somebody uses, by ID.
func (w *World) nodesTree() *tree[string, *nodeState] { return &w.nodes }

// classesTree are the ready nodes by computed class.
func (w *World) classesTree() *tree[string, *nodeSet] { return &w.classes }

// familiesTree are the ready nodes by family.
func (w *World) familiesTree() *tree[string, *nodeSet] { return &w.families }

// membersTok says who changed last which nodes are in which class and family: while it is the same,
// they are.
func (w *World) membersTok() *token { return w.members }

// namesTree are the known nodes by name.
func (w *World) namesTree() *tree[nodeName, struct{}] { return &w.names }

// holdsTree are the reservations, by node ID.
func (w *World) holdsTree() *tree[string, *hold] { return &w.holds }

// keepsHeld reports whether the World keeps who holds what by priority.
func (w *World) keepsHeld() bool { return w.heldKept }

// heldTree are the ready nodes by what they would have without those of a priority and below; empty
// unless that is kept.
func (w *World) heldTree() *tree[heldKey, *heldSet] { return &w.held }

// placesTree says in which of the sets by priority a node is, by its ID.
func (w *World) placesTree() *tree[string, *heldPlace] { return &w.places }

// bandList are the bands of priorities; empty: the default.
func (w *World) bandList() []structs.PriorityBand { return w.bands }

// indexConf says how room is compared.
func (w *World) indexConf() bucket.Config { return w.config }

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

// HasDevices tells whether a node that is ready has devices.
func (w *World) HasDevices() bool {
	for _, set := range w.families.All {
		if len(set.any().cells) > 0 {
			return true
		}
	}
	return false
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
	diffTrees(&out, "class", &w.classes, &other.classes, diffSet)
	diffTrees(&out, "family", &w.families, &other.families, diffSet)
	diffTrees(&out, "reservation", &w.holds, &other.holds, func(a, b *hold) string {
		if *a == *b {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", *a, *b)
	})
	diffTrees(&out, "member", &w.gangs, &other.gangs, func(a, b *use) string {
		if a.equal(b) {
			return ""
		}
		return "it holds something else"
	})
	diffTrees(&out, "held by", &w.held, &other.held, diffHeld)
	diffTrees(&out, "place of node", &w.places, &other.places, func(a, b *heldPlace) string {
		if a.equal(b) {
			return ""
		}
		return fmt.Sprintf("held as %+v, not %+v", *a, *b)
	})
	diffTrees(&out, "name", &w.names, &other.names, func(struct{}, struct{}) string { return "" })
	return out
}

func diffSet(a, b *nodeSet) string {
	if a.sum != b.sum {
		return fmt.Sprintf("%v is free in all, not %v", a.sum, b.sum)
	}
	return diffIndex(&a.nodes, &b.nodes)
}

func diffHeld(a, b *heldSet) string { return diffIndex(&a.nodes, &b.nodes) }

func diffIndex(a, b *bucket.Index[*nodeState]) string {
	if a.Max() != b.Max() {
		return fmt.Sprintf("at most %v, not %v", a.Max(), b.Max())
	}
	var x, y []bucket.Entry[*nodeState]
	a.All(func(e bucket.Entry[*nodeState]) bool { x = append(x, e); return true })
	b.All(func(e bucket.Entry[*nodeState]) bool { y = append(y, e); return true })
	if len(x) != len(y) {
		return fmt.Sprintf("%d nodes, not %d", len(x), len(y))
	}
	for i := range x {
		if x[i].ID != y[i].ID || x[i].At != y[i].At {
			return fmt.Sprintf("node %s at %v, not %s at %v", x[i].ID, x[i].At, y[i].ID, y[i].At)
		}
		if what := diffNode(x[i].Value, y[i].Value); what != "" {
			return "node " + x[i].ID + ": " + what
		}
	}
	return ""
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

// sameNode tells whether two are one to the scheduler, which does not look at events.
func sameNode(a, b *structs.Node) bool {
	if a == b {
		return true
	}
	x, y := *a, *b
	x.Events, x.ModifyIndex, y.Events, y.ModifyIndex = nil, 0, nil, 0
	return reflect.DeepEqual(&x, &y)
}

func diffNode(a, b *nodeState) string {
	switch {
	case (a.node == nil) != (b.node == nil):
		return "known in one only"
	case !sameNode(a.node, b.node):
		return fmt.Sprintf("status %s, class %s, index %d, not %s, %s, %d, or another part of what it is", a.node.Status, a.node.ComputedClass,
			a.node.ModifyIndex, b.node.Status, b.node.ComputedClass, b.node.ModifyIndex)
	case a.used != b.used || !slices.EqualFunc(a.uses, b.uses, (*use).equal):
		return fmt.Sprintf("%d allocations use %+v, not %d use %+v", len(a.uses), a.used, len(b.uses), b.used)
	case a.free() != b.free():
		return fmt.Sprintf("%+v is free, not %+v", a.free(), b.free())
	case !slices.Equal(a.ports, b.ports):
		return fmt.Sprintf("ports %v, not %v", a.ports, b.ports)
	case !slices.Equal(a.cores, b.cores):
		return fmt.Sprintf("cores %v, not %v", a.cores, b.cores)
	case !slices.Equal(a.devices, b.devices):
		return fmt.Sprintf("devices %v, not %v", a.devices, b.devices)
	case !reflect.DeepEqual(a.hold, b.hold):
		return fmt.Sprintf("%+v is reserved, not %+v", a.hold, b.hold)
	case a.at != b.at:
		return fmt.Sprintf("indexed at %+v, not %+v", a.at, b.at)
	case !slices.EqualFunc(a.cells, b.cells, func(a, b *cell.State) bool { return a.Equal(b) }):
		return "what is taken of the devices"
	}
	return ""
}
