package lend

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Loans is how a workflow's reservation is used. Used, Lent and Idle add up to Reserved.
type Loans struct {
	Reserved, Used, Lent, Idle world.Held
	// To is what each lend block has lent, in their order.
	To []Loan
}

// Loan is what a lend block has lent.
type Loan struct {
	To     string
	Amount world.Held // what its borrowers use, in the reservation or beside it
	Allocs []string
}

// LoansOf returns how a workflow's reservation is used; nil: it has none.
func LoansOf(w *world.World, key string) *Loans {
	c := w.Workflow(key)
	if c == nil || len(c.Parts) == 0 {
		return nil
	}
	out := &Loans{To: make([]Loan, len(c.Lend))}
	for i, l := range c.Lend {
		out.To[i].To = l.To
	}
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if !known {
			continue
		}
		p, _ := n.Part(key)
		out.Reserved, out.Used = out.Reserved.Plus(p.Held), out.Used.Plus(p.Used)
		out.Lent, out.Idle = out.Lent.Plus(p.Lent), out.Idle.Plus(p.Idle)
		for _, u := range n.Usages {
			if t := &u.Owner.Terms; t.BorrowsFrom() == key && len(c.Lend) > 0 {
				to := &out.To[indexOf(c, t.LentTo())]
				to.Amount, to.Allocs = to.Amount.Plus(world.HeldBy(u)), append(to.Allocs, u.ID)
			}
		}
	}
	return out
}

// Missing returns the nodes of a reservation that are not ready any more, or gone.
func Missing(w *world.World, c *structs.WorkflowClaim) (nodes []string) {
	for i := range c.Parts {
		if n, known := w.State(c.Parts[i].NodeID); !known || n.Node == nil || !n.Node.Ready() {
			nodes = append(nodes, c.Parts[i].NodeID)
		}
	}
	return nodes
}
