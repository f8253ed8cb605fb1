// Package slotroom counts the room that a workflow must leave for slots: a reservation never takes from what is given to projects this week
// (docs/design/semantics.md, part 5). It changes nothing.
//
// What is given of a type and not used yet must have room on nodes, beside all that is guaranteed and reserved there. What there are more slots of
// than that may be reserved. Slots with GPUs count by their cores and memory here.
package slotroom

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/slotbook"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Room is how many slots may be lost to reservations. nil: there are no projects, and any may.
type Room struct {
	w     *world.World
	key   string         // of the workflow that would reserve: its own parts do not count
	alone bool           // no other workflow's parts count, either
	spare map[string]int // by type; less than 0: so many that were given have no room
}

// Of counts the room beside all reservations but that of the workflow of a key; alone: as if no other workflow had reserved anything.
func Of(w *world.World, key string, alone bool) *Room {
	book := w.Slots()
	if book == nil {
		return nil
	}
	r := &Room{w: w, key: key, alone: alone, spare: map[string]int{}}
	for _, name := range book.Projects() {
		account := book.Account(name)
		for _, kind := range account.Types() {
			r.spare[kind] -= max(0, account.Given(kind)-account.Used(kind))
		}
	}
	for _, n := range world.NodeStates(w).All {
		for _, l := range r.left(n, r.beside(n)) {
			r.spare[l.kind] += l.count
		}
	}
	return r
}

// unusedNamed is of how many projects and types [Unused] states the slots.
const unusedNamed = 4

// Unused states the slots that projects are given and do not use, for users.
func Unused(w *world.World) string {
	var list []string
	book := w.Slots()
	for _, name := range book.Projects() {
		account := book.Account(name)
		for _, kind := range account.Types() {
			if n := account.Given(kind) - account.Used(kind); n > 0 {
				list = append(list, fmt.Sprintf("project %q: %d of type %q", name, n, kind))
			}
		}
	}
	if len(list) > unusedNamed {
		list = append(list[:unusedNamed], "and more")
	}
	return strings.Join(list, ", ")
}

// left is how many slots of a type have room on a node, of so much each.
type left struct {
	kind  string
	count int
	each  world.Vector
}

// left returns the slots of a node that no instance uses and for which there is room, type by type.
func (r *Room) left(n *world.NodeState, room world.Vector) (out []left) {
	if n.Node == nil || n.Node.NodeResources == nil || !n.Node.Ready() {
		return nil
	}
	offer := slotbook.OfferOf(n.Node)
	for _, kind := range slices.Sorted(maps.Keys(offer.Slots)) {
		if kind == structs.SlotOverflow {
			continue
		}
		l := left{kind: kind, count: max(0, r.w.Slots().Left(n.ID, kind))}
		l.each.CPU, l.each.MemoryMB = r.w.SlotSettings().TypeOf(kind).VolumeOn(n.Node.NodeResources)
		if l.each.CPU > 0 {
			l.count = min(l.count, int(room.CPU/l.each.CPU))
		}
		if l.each.MemoryMB > 0 {
			l.count = min(l.count, int(room.MemoryMB/l.each.MemoryMB))
		}
		room.CPU -= int64(l.count) * l.each.CPU
		room.MemoryMB -= int64(l.count) * l.each.MemoryMB
		out = append(out, l)
	}
	return out
}

// beside returns what a node has beside all that is guaranteed there, and what other workflows have reserved: whoever else uses it leaves for a slot.
func (r *Room) beside(n *world.NodeState) world.Vector {
	if n.Capacity == nil {
		return world.Vector{}
	}
	room := n.Capacity.Amount
	for _, u := range n.Usages {
		if u.PerNode() || u.Guaranteed() && !r.ignores(u.Owner.Terms.WorkflowKey()) {
			room = room.Minus(u.Amount)
		}
	}
	for _, p := range n.Parts() {
		if !p.Pending && !r.ignores(p.Workflow) {
			room = room.Minus(p.Total.Less(p.Used).Amount)
		}
	}
	return world.Vector{CPU: max(0, room.CPU), MemoryMB: max(0, room.MemoryMB), DiskMB: max(0, room.DiskMB)}
}

// ignores reports whether what the workflow of a key has reserved and uses is not counted; "": none's.
func (r *Room) ignores(key string) bool { return key != "" && (r.alone || key == r.key) }

// Reservable returns what of an amount of a node may be reserved, and counts the slots that are lost so.
func (r *Room) Reservable(n *world.NodeState, amount world.Resources) world.Resources {
	if r == nil {
		return amount
	}
	room := r.beside(n)
	for _, l := range r.left(n, room) {
		lost := max(0, min(l.count, r.spare[l.kind]))
		r.spare[l.kind] -= lost
		room.CPU -= int64(l.count-lost) * l.each.CPU
		room.MemoryMB -= int64(l.count-lost) * l.each.MemoryMB
	}
	amount.Amount.CPU, amount.Amount.MemoryMB = min(amount.Amount.CPU, max(0, room.CPU)), min(amount.Amount.MemoryMB, max(0, room.MemoryMB))
	return amount
}

// Lacks returns of which slots a reservation leaves too few; "": of none, or it had the same parts before.
func Lacks(w *world.World, c *structs.WorkflowClaim) string {
	was := w.Workflow(c.Key())
	if !c.Posted || was != nil && was.Posted && structs.PartsEqual(was.Parts, c.Parts) {
		return ""
	}
	r := Of(w, c.Key(), false)
	if r == nil {
		return ""
	}
	lost := map[string]int{} // of each type
	for _, p := range c.Parts {
		n, known := w.State(p.NodeID)
		if !known {
			continue
		}
		room := r.beside(n)
		for _, l := range r.left(n, room) {
			lost[l.kind] += l.count
		}
		room.CPU, room.MemoryMB = max(0, room.CPU-p.CPU), max(0, room.MemoryMB-p.MemoryMB)
		for _, l := range r.left(n, room) {
			lost[l.kind] -= l.count
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(lost)) {
		if lost[kind] > max(0, r.spare[kind]) {
			return fmt.Sprintf("it would take %d slots of type %q, and %d are not given to projects this week", lost[kind], kind, max(0, r.spare[kind]))
		}
	}
	return ""
}
