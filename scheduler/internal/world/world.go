package world

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/license"
	"github.com/nomadish/nomadish/scheduler/internal/shares"
	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/structs"
)

// World is what the scheduler sees: the nodes, what they have and what allocations use of it, and an index of the ready ones by class and free room. It is
// immutable and shares structure with the Worlds that it came from; a World may be kept, and read by many goroutines, for as long as wanted.
//
// An allocation counts while it is not terminal: what the servers have requested to stop counts as free, and the client holds a newcomer back until its
// ports and cores are free in truth.
type World struct {
	nodes  Tree[string, *NodeState] // by node ID
	allocs Tree[string, *Usage]     // by allocation ID, of those that count
	// classes and families are the ready nodes, by computed class and by family.
	classes  Tree[string, *NodeSet]
	families Tree[string, *NodeSet]
	// members identifies which nodes are in which of them: who changed that last.
	members *Token
	// supply is how many devices the ready nodes have, by family; see supply.go.
	supply   Tree[string, *Supply]
	supplier *Token // who changed it last
	// names are the known nodes by name.
	names Tree[NodeName, struct{}]
	// reservations are the reservations, by node ID.
	reservations Tree[string, *Reservation]
	// workflows are the reservations of workflows, by structs.WorkflowKey; pending are those that keep what comes free.
	workflows, pending Tree[string, *structs.WorkflowClaim]
	// gangs are the members of gangs, gang by gang; as those of a gang without a name what [Unclaimed] lists.
	gangs Tree[member, *Usage]
	// usages are the ready nodes by what they would have without those of a priority and below,
	// while usagesKept; see usageset.go.
	usages     Tree[UsageKey, *UsageSet]
	places     Tree[string, *UsageRef] // where usages has a node, by its ID
	usagesKept bool
	sites      []structs.TopologyLevel // the levels above nodes, lowest first
	rules      *rules
	claims     *claims        // nil: nobody owns anything
	slots      *slotbook.Book // nil: there are no projects
	licenses   *license.Book  // nil: there are none
	shares     shares.Sums    // what namespaces and users use opportunistically of node pools
}

// rules are what a World knows of the scheduler's configuration. They are never changed: each evaluation copies the World.
type rules struct {
	index    bucket.Config          // how room is compared
	bands    []structs.PriorityBand // empty: the default
	requeues *int                   // how often an instance is requeued for bands and slots
	slots    *structs.SlotSettings  // what a slot of a type is; nil: all at their defaults
	cycle    int64                  // of the queue, in nanoseconds
}

// NodeName is a node by its name, which others may have too.
type NodeName struct{ Name, ID string }

func compareNames(a, b NodeName) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
}

// New returns a World without nodes.
func New() *World {
	return &World{
		nodes: newTree[string, *NodeState](strings.Compare), names: newTree[NodeName, struct{}](compareNames),
		classes: newTree[string, *NodeSet](strings.Compare), families: newTree[string, *NodeSet](strings.Compare),
		supply: newTree[string, *Supply](strings.Compare), reservations: newTree[string, *Reservation](strings.Compare),
		workflows: newTree[string, *structs.WorkflowClaim](strings.Compare), pending: newTree[string, *structs.WorkflowClaim](strings.Compare), gangs: newTree[member, *Usage](compareMembers),
		allocs: newTree[string, *Usage](strings.Compare), usages: newTree[UsageKey, *UsageSet](compareUsageKeys),
		places: newTree[string, *UsageRef](strings.Compare), shares: shares.New(),
		rules: &rules{cycle: int64(structs.DefaultCycle), requeues: new(structs.DefaultMaxRequeues), index: indexConfig(&structs.SchedulerConfiguration{})},
		sites: (&structs.SchedulerConfiguration{}).SiteLevels(),
	}
}

// Edit returns a private form of the World that can be changed. The World itself never is.
func (w *World) Edit() *Edit {
	tok := &Token{}
	return &Edit{w: *w, tok: tok, pages: tok, from: w}
}

// Usages are the usages of the allocations that count, by the allocation's ID.
func Usages(w *World) *Tree[string, *Usage] { return &w.allocs }

// NodeStates are the nodes that are known or that somebody uses, by ID.
func NodeStates(w *World) *Tree[string, *NodeState] { return &w.nodes }

// Classes are the ready nodes by computed class.
func Classes(w *World) *Tree[string, *NodeSet] { return &w.classes }

// Families are the ready nodes by family.
func Families(w *World) *Tree[string, *NodeSet] { return &w.families }

// MembersToken identifies the last change of which nodes are in which class and family: while it is the same,
// they are.
func MembersToken(w *World) *Token { return w.members }

// Names are the known nodes by name.
func Names(w *World) *Tree[NodeName, struct{}] { return &w.names }

// Reservations are the reservations, by node ID.
func Reservations(w *World) *Tree[string, *Reservation] { return &w.reservations }

// KeepsUsage reports whether the World keeps who holds what by priority.
func KeepsUsage(w *World) bool { return w.usagesKept }

// UsageSets are the ready nodes by what they would have without those of a priority and below; empty
// unless that is kept.
func UsageSets(w *World) *Tree[UsageKey, *UsageSet] { return &w.usages }

// UsageRefs returns in which of the sets by priority a node is, by its ID.
func UsageRefs(w *World) *Tree[string, *UsageRef] { return &w.places }

// Rules are what the World knows of the scheduler's configuration about preemption: the bands, and how often an instance is requeued for them.
func Rules(w *World) *structs.SchedulerConfiguration {
	return &structs.SchedulerConfiguration{Bands: w.rules.bands, Slots: &structs.SlotSettings{MaxRequeues: w.rules.requeues}}
}

// IndexConfig returns how room is compared.
func IndexConfig(w *World) bucket.Config { return w.rules.index }

// Node returns a node by its ID.
func (w *World) Node(id string) (*structs.Node, bool) {
	if s, found := w.nodes.Get(id); found && s.Node != nil {
		return s.Node, true
	}
	return nil, false
}

// State returns a node with what is used of it; of one that is not registered, what is used of it alone.
func (w *World) State(id string) (*NodeState, bool) { return w.nodes.Get(id) }

// Nodes returns all nodes in order of their IDs.
func (w *World) Nodes() iter.Seq[*structs.Node] {
	return func(yield func(*structs.Node) bool) {
		for _, s := range w.nodes.All {
			if s.Node != nil && !yield(s.Node) {
				return
			}
		}
	}
}

// HasDevices reports whether a node that is ready has devices.
func (w *World) HasDevices() bool {
	for _, set := range w.families.All {
		if len(set.Any().Cells) > 0 {
			return true
		}
	}
	return false
}

// Used is what the counting allocations of a node use, whether it is known or not.
func (w *World) Used(nodeID string) Vector {
	if s, found := w.nodes.Get(nodeID); found {
		return s.Used
	}
	return Vector{}
}

// Free is what a node has left; nothing if it is not known.
func (w *World) Free(nodeID string) Vector {
	if s, found := w.nodes.Get(nodeID); found {
		return s.Free()
	}
	return Vector{}
}

// Diff names, in order, what differs between two Worlds; nil if nothing does. A
// World that was moved on step by step must equal one rebuilt from the tables.
func (w *World) Diff(other *World) []string {
	var out []string
	if a, b := w.rules.slots.Effective(), other.rules.slots.Effective(); !reflect.DeepEqual(a, b) {
		out = append(out, fmt.Sprintf("slots: %+v, not %+v", *a, *b))
	}
	diffTrees(&out, "node", &w.nodes, &other.nodes, diffNode)
	diffTrees(&out, "allocation", &w.allocs, &other.allocs, func(a, b *Usage) string {
		if a.Equal(b) {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", *a, *b)
	})
	diffTrees(&out, "class", &w.classes, &other.classes, diffSet)
	diffTrees(&out, "family", &w.families, &other.families, diffSet)
	diffTrees(&out, "supply", &w.supply, &other.supply, diffSupply)
	diffTrees(&out, "reservation", &w.reservations, &other.reservations, func(a, b *Reservation) string {
		if *a == *b {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", *a, *b)
	})
	diffTrees(&out, "workflow", &w.workflows, &other.workflows, func(a, b *structs.WorkflowClaim) string {
		if reflect.DeepEqual(a, b) {
			return ""
		}
		return fmt.Sprintf("%+v, not %+v", *a, *b)
	})
	diffTrees(&out, "member", &w.gangs, &other.gangs, func(a, b *Usage) string {
		if a.Equal(b) {
			return ""
		}
		return "its usage differs"
	})
	diffTrees(&out, "usage", &w.usages, &other.usages, diffUsage)
	diffTrees(&out, "usage of node", &w.places, &other.places, func(a, b *UsageRef) string {
		if a.equal(b) {
			return ""
		}
		return fmt.Sprintf("usage %+v, not %+v", *a, *b)
	})
	diffClaims(&out, w.claims, other.claims)
	out = append(append(out, w.shares.Diff(&other.shares)...), w.slots.Diff(other.slots)...)
	out = append(out, w.licenses.Diff(other.licenses)...)
	diffTrees(&out, "name", &w.names, &other.names, func(struct{}, struct{}) string { return "" })
	return out
}

func diffSet(a, b *NodeSet) string {
	if a.Sum != b.Sum {
		return fmt.Sprintf("%v is free in all, not %v", a.Sum, b.Sum)
	}
	return diffIndex(&a.Nodes, &b.Nodes)
}

func diffUsage(a, b *UsageSet) string { return diffIndex(&a.Nodes, &b.Nodes) }

func diffIndex(a, b *bucket.Index[*NodeState]) string {
	if a.Max() != b.Max() {
		return fmt.Sprintf("at most %v, not %v", a.Max(), b.Max())
	}
	var x, y []bucket.Entry[*NodeState]
	a.All(func(e bucket.Entry[*NodeState]) bool { x = append(x, e); return true })
	b.All(func(e bucket.Entry[*NodeState]) bool { y = append(y, e); return true })
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

func diffTrees[K, V any](out *[]string, noun string, a, b *Tree[K, V], differ func(a, b V) string) {
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

// sameNode reports whether two are one to the scheduler, which does not look at events.
func sameNode(a, b *structs.Node) bool {
	if a == b {
		return true
	}
	x, y := *a, *b
	x.Events, x.ModifyIndex, y.Events, y.ModifyIndex = nil, 0, nil, 0
	return reflect.DeepEqual(&x, &y)
}

func diffNode(a, b *NodeState) string {
	switch {
	case (a.Node == nil) != (b.Node == nil):
		return "known in one only"
	case !sameNode(a.Node, b.Node):
		return fmt.Sprintf("status %s, class %s, index %d, not %s, %s, %d, or another part of what it is", a.Node.Status, a.Node.ComputedClass,
			a.Node.ModifyIndex, b.Node.Status, b.Node.ComputedClass, b.Node.ModifyIndex)
	case a.Used != b.Used || !slices.EqualFunc(a.Usages, b.Usages, (*Usage).Equal):
		return fmt.Sprintf("%d allocations use %+v, not %d use %+v", len(a.Usages), a.Used, len(b.Usages), b.Used)
	case a.Free() != b.Free():
		return fmt.Sprintf("%+v is free, not %+v", a.Free(), b.Free())
	case !slices.Equal(a.ports, b.ports):
		return fmt.Sprintf("ports %v, not %v", a.ports, b.ports)
	case !slices.Equal(a.cores, b.cores):
		return fmt.Sprintf("cores %v, not %v", a.cores, b.cores)
	case !slices.Equal(a.Devices, b.Devices):
		return fmt.Sprintf("devices %v, not %v", a.Devices, b.Devices)
	case !reflect.DeepEqual(a.Reservation, b.Reservation):
		return fmt.Sprintf("%+v is reserved, not %+v", a.Reservation, b.Reservation)
	case !slices.EqualFunc(a.parts, b.parts, Part.equal):
		return fmt.Sprintf("workflows reserve %+v, not %+v", a.parts, b.parts)
	case a.Indexed != b.Indexed:
		return fmt.Sprintf("indexed at %+v, not %+v", a.Indexed, b.Indexed)
	case !slices.EqualFunc(a.Cells, b.Cells, func(a, b *cell.State) bool { return a.Equal(b) }):
		return "what is taken of the devices"
	}
	return ""
}
