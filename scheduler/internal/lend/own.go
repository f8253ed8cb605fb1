package lend

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Node is a node on which an instance uses its workflow's reservation.
type Node struct {
	ID string
	// Leave are the IDs of the allocations of borrowers that leave it; nil: none do.
	Leave map[string]bool
}

// Nodes yields the nodes of a reservation that have room for one more instance of its workflow by what they have idle, the ones on which fewest leave first, and
// among those on which nobody does the assigned one, if it is there, then the one that has least left then. If the instance finds no devices on any of them, as
// these do not match or have no cell of the level that it requires, there follow those on which it does once borrowers leave.
func Nodes(s *search.Search, c *structs.WorkflowClaim, assigned string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for _, of := range []func() []Node{
			func() []Node { return byAmount(s.Edit, c, s.Request, assigned) },
			func() []Node { return byDevices(s, c) },
		} {
			for _, n := range of() {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// byAmount returns the nodes that have room by how much of each resource is idle there, or lent.
func byAmount(e *world.Edit, c *structs.WorkflowClaim, a *search.Request, assigned string) []Node {
	type room struct {
		Node
		left world.Resources
	}
	var rooms []room
	var lent []int64 // see lentTo; nil: nobody had to leave yet
	for i := range c.Parts {
		n, known := world.StateOf(e, c.Parts[i].NodeID)
		if !known || n.Node == nil || n.Capacity == nil { // whether it takes work is for who places the instance
			continue
		}
		part, has := n.Part(c.Key())
		need := a.NeedsOn(n)
		switch {
		case !has || part.Total.Less(part.Used).Lacks(need) != "":
		case part.Idle.Lacks(need) == "":
			rooms = append(rooms, room{Node{ID: n.ID}, part.Idle.Less(need)})
		default:
			if lent == nil {
				lent = lentTo(e, c)
			}
			if leave := leaving(e, n, c, lent, anyBorrower, func(n *world.NodeState) bool {
				part, _ := n.Part(c.Key())
				return part.Idle.Lacks(need) == ""
			}); leave != nil {
				rooms = append(rooms, room{Node{n.ID, leave}, world.Resources{}})
			}
		}
	}
	elsewhere := func(r *room) int {
		if r.ID == assigned {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rooms, func(a, b room) int {
		return cmp.Or(cmp.Compare(len(a.Leave), len(b.Leave)), cmp.Compare(elsewhere(&a), elsewhere(&b)), cmp.Compare(a.left.Devices, b.left.Devices), cmp.Compare(a.left.Amount.CPU, b.left.Amount.CPU),
			cmp.Compare(a.left.Amount.MemoryMB, b.left.Amount.MemoryMB), strings.Compare(a.ID, b.ID))
	})
	nodes := make([]Node, len(rooms))
	for i := range rooms {
		nodes[i] = rooms[i].Node
	}
	return nodes
}

// leftBy returns the nodes of its own workflow's reservation on which one more instance, which uses that without a claim, has room with what is free beside it once
// borrowers leave, the ones on which fewest do first. What it lacks of the reservation itself must not keep it from what is lent of that.
func (l *Lender) leftBy(s *search.Search) (nodes []Node) {
	e, a, lent := s.Edit, s.Request, lentTo(s.Edit, l.Claim)
	by := &world.Taker{RequestName: a.By.RequestName, Borrows: l.Claim.Key()}
	for i := range l.Claim.Parts {
		n, known := world.StateOf(e, l.Claim.Parts[i].NodeID)
		if !known || n.Node == nil || n.Capacity == nil {
			continue
		}
		need := a.NeedsOn(n)
		hasRoom := func(n *world.NodeState) bool {
			return freeFor(n, by).Lacks(need) == ""
		}
		var leave map[string]bool
		if a.Reserved == 0 {
			leave = leaving(e, n, l.Claim, lent, anyBorrower, hasRoom)
		} else if all := unlent(n, l.Claim); hasRoom(all) && s.Takes(all) { // which devices leave counts, too, see byDevices
			leave = fewestByCell(s, n, l.Claim, lent)
		}
		if len(leave) > 0 {
			nodes = append(nodes, Node{n.ID, leave})
		}
	}
	slices.SortStableFunc(nodes, fewestLeave)
	return nodes
}

func fewestLeave(a, b Node) int {
	return cmp.Or(cmp.Compare(len(a.Leave), len(b.Leave)), strings.Compare(a.ID, b.ID))
}

// anyBorrower has all borrowers leave, if need be.
func anyBorrower(*world.Usage) bool { return true }

// leaving returns those borrowers, of some, that leave a node until there is room: first those above their share, and of them who came last; then whoever could stay
// beside the rest stays. nil: all of them are too few. lent is what each lend block has lent, see lentTo.
func leaving(e *world.Edit, n *world.NodeState, c *structs.WorkflowClaim, lent []int64, of func(*world.Usage) bool, hasRoom func(*world.NodeState) bool) map[string]bool {
	trial := world.TrialOf(n)
	lent = slices.Clone(lent)
	var gone []*world.Usage
	for !hasRoom(trial) {
		u := firstToLeave(trial, c, lent, of)
		if u == nil {
			return nil
		}
		lent[indexOf(c, u.Owner.Terms.LentTo())] -= amountOf(c, world.ResourcesOf(u))
		trial.Give(u)
		gone = append(gone, u)
	}
	leave := map[string]bool{}
	units := together.UnitsOf(e, gone)
	here := func(of together.Unit, change func(*world.Usage)) { // a gang has members elsewhere, too
		for _, u := range of {
			if u.NodeID == n.ID {
				change(u)
			}
		}
	}
	for _, of := range units {
		here(of, func(u *world.Usage) {
			if !slices.Contains(gone, u) { // it leaves with the rest of its gang
				trial.Give(u)
			}
		})
	}
	for _, of := range units { // whoever left first is the first to stay
		if here(of, trial.Take); hasRoom(trial) {
			continue
		}
		here(of, trial.Give)
		for _, u := range of {
			leave[u.ID] = true
		}
	}
	return leave
}

// firstToLeave returns the borrower on a node, of some, that leaves first; nil: there is none.
func firstToLeave(n *world.NodeState, c *structs.WorkflowClaim, lent []int64, of func(*world.Usage) bool) (first *world.Usage) {
	above := func(u *world.Usage) int64 { // how much its lend block is above its share, in thousandths of the share
		i := indexOf(c, u.Owner.Terms.LentTo())
		if !c.Shared() {
			return int64(len(c.Lend) - i) // the first named gives first
		}
		return lent[i] * 1000 / int64(max(1, c.Lend[i].Share))
	}
	for _, u := range n.Usages {
		if t := &u.Owner.Terms; t.BorrowsFrom() != c.Key() || !of(u) {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(above(u), above(first)), cmp.Compare(u.Created, first.Created)) > 0 {
			first = u
		}
	}
	return first
}

// indexOf returns the place of a lend block among those of a workflow; 0 of one that it does not state any more.
func indexOf(c *structs.WorkflowClaim, to string) int {
	return max(0, slices.IndexFunc(c.Lend, func(l *structs.WorkflowLend) bool { return l.To == to }))
}

// amountOf returns how much is lent in one number, by which the shares of lend blocks are compared: devices where the workflow reserves some, else MHz.
func amountOf(c *structs.WorkflowClaim, h world.Resources) int64 {
	if slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.Devices > 0 }) {
		return int64(h.Devices)
	}
	return h.Amount.CPU
}

// lentTo returns how much is lent by each lend block, in the number of amountOf.
func lentTo(e *world.Edit, c *structs.WorkflowClaim) []int64 {
	out := make([]int64, max(1, len(c.Lend)))
	for i := range c.Parts {
		n, known := world.StateOf(e, c.Parts[i].NodeID)
		if !known {
			continue
		}
		for _, u := range n.Usages {
			if t := &u.Owner.Terms; t.BorrowsFrom() == c.Key() {
				out[indexOf(c, t.LentTo())] += amountOf(c, world.ResourcesOf(u))
			}
		}
	}
	return out
}
