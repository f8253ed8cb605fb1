package search

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// OfWorkflow returns the request as one that uses the reservation of its workflow.
func (a *Request) OfWorkflow(key string) *Request {
	c := a.withTerms(func(t *structs.AllocTerms) { *t = t.Reserved(key) })
	c.By.Workflow, c.By.Entitled = key, true
	return c
}

// Borrowing returns the request as one that borrows from the reservation of a workflow, by the lend block that lends to lentTo; licenses alone, and
// nothing of its nodes. lentTo is "" if the workflow is its own: it uses what idles without a claim.
func (a *Request) Borrowing(key, lentTo string, licenses bool) *Request {
	c := a.copy()
	if lentTo != "" {
		c = a.withTerms(func(t *structs.AllocTerms) { t.Workflow = &structs.WorkflowTerms{Key: key, LentTo: lentTo} })
	}
	if !licenses {
		c.By.Borrows = key
	}
	return c
}

// withTerms returns the request by other terms.
func (a *Request) withTerms(change func(*structs.AllocTerms)) *Request {
	c := a.copy()
	terms, resources := *a.Resources.Shared.Terms, *a.Resources
	change(&terms)
	resources.Shared.Terms = &terms
	c.Resources = &resources
	c.common.Owner = world.NewOwner(a.By.RequestName, &resources)
	return c
}

// NeedsOn returns what an instance takes of a node's reservation.
func (a *Request) NeedsOn(n *world.NodeState) world.Resources {
	h := world.Resources{Amount: a.Amount, Devices: int(a.Need[world.DimGPUs])}
	for _, c := range a.Cores {
		h.Cores += c.n
	}
	if n.Capacity != nil {
		h.Amount.CPU += int64(h.Cores) * n.Capacity.MHzPerCore
	}
	return h
}
