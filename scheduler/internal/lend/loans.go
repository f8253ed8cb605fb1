package lend

import (
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Loans is how a workflow's reservation is used. Used, Lent and Idle add up to Reserved.
type Loans struct {
	Reserved, Used, Lent, Idle structs.WorkflowResources
	// To is what each lend block has lent, in their order.
	To []structs.WorkflowLoan
}

// LoansOf returns how a workflow's reservation is used; nil: it has none. What borrowers of a lend block have may be more than what is lent: it is
// theirs, whether in the reservation or beside it.
func LoansOf(w *world.World, key string) *Loans {
	c := w.Workflow(key)
	if c == nil || len(c.Parts) == 0 {
		return nil
	}
	out := &Loans{To: make([]structs.WorkflowLoan, len(c.Lend))}
	for i, l := range c.Lend {
		out.To[i].To, out.To[i].Share = l.To, l.Share
	}
	var mhz int64 // of a core
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if !known {
			continue
		}
		if n.Capacity != nil {
			mhz = max(mhz, n.Capacity.MHzPerCore)
		}
		p, _ := n.Part(key)
		add(&out.Reserved, n, p.Total)
		add(&out.Used, n, p.Used)
		add(&out.Lent, n, p.Lent)
		add(&out.Idle, n, p.Idle)
		for _, u := range n.Usages {
			if t := &u.Owner.Terms; t.BorrowsFrom() == key && len(c.Lend) > 0 {
				to := &out.To[indexOf(c, t.LentTo())]
				add(&to.Amount, n, world.ResourcesOf(u))
				to.Allocs = append(to.Allocs, u.ID)
			}
		}
	}
	out.licenses(w, c)
	out.due(c, mhz)
	return out
}

// PartsOn returns what workflows have reserved of a node, and how it is used; nil: nothing.
func PartsOn(w *world.World, nodeID string) (out []*structs.ReservedPart) {
	n, known := w.State(nodeID)
	if !known {
		return nil
	}
	for _, p := range n.Parts() {
		c := w.Workflow(p.Workflow)
		if c == nil {
			continue
		}
		r := &structs.ReservedPart{Namespace: c.Namespace, Workflow: c.ID, Pending: p.Pending}
		add(&r.Reserved, n, p.Total)
		add(&r.Used, n, p.Used)
		add(&r.Lent, n, p.Lent)
		add(&r.Idle, n, p.Idle)
		out = append(out, r)
	}
	return out
}

// KeptOf returns where a workflow keeps what comes free; nil: nowhere.
func KeptOf(w *world.World, key string) (out []structs.WorkflowKept) {
	c := w.Workflow(key)
	if c == nil {
		return nil
	}
	for _, part := range c.KeptParts() {
		n, known := w.State(part.NodeID)
		if !known {
			continue
		}
		k := structs.WorkflowKept{NodeID: n.ID}
		if n.Node != nil {
			k.Node = n.Node.Name
		}
		for _, p := range n.Parts() {
			if p.Workflow == key && p.Pending {
				add(&k.Amount, n, p.Total)
				add(&k.Idle, n, p.Idle)
			}
		}
		out = append(out, k)
	}
	return out
}

// due states what each lend block would have by its share; without shares, all that may be lent. mhz is what a core has.
func (l *Loans) due(c *structs.WorkflowClaim, mhz int64) {
	shares := make([]int64, len(c.Lend))
	for i := range c.Lend {
		shares[i] = int64(c.Lend[i].Share)
	}
	each := func(total int64, of func(*structs.WorkflowResources) *int64) {
		parts := workflow.Shares(total, shares)
		for i := range l.To {
			if *of(&l.To[i].Due) = total; c.Shared() {
				*of(&l.To[i].Due) = parts[i]
			}
		}
	}
	a, b := &l.Lent, &l.Idle
	most := atMostLent(c, structs.WorkflowResources{CPU: a.CPU + b.CPU, Cores: a.Cores + b.Cores, MemoryMB: a.MemoryMB + b.MemoryMB, GPUs: a.GPUs + b.GPUs}, mhz)
	each(most.CPU, func(r *structs.WorkflowResources) *int64 { return &r.CPU })
	each(most.Cores, func(r *structs.WorkflowResources) *int64 { return &r.Cores })
	each(most.MemoryMB, func(r *structs.WorkflowResources) *int64 { return &r.MemoryMB })
	each(most.GPUs, func(r *structs.WorkflowResources) *int64 { return &r.GPUs })
}

// atMostLent returns what of an amount is lent at most, by lend_max.
func atMostLent(c *structs.WorkflowClaim, of structs.WorkflowResources, mhz int64) structs.WorkflowResources {
	most := c.LendMax
	if most == nil {
		return of
	}
	bound := func(amount *int64, stated, most int64) {
		if stated > 0 {
			*amount = min(*amount, max(0, most))
		}
	}
	bound(&of.Cores, most.Cores, most.Cores)
	// MHz are those beside whole cores, and are bounded together with these.
	bound(&of.CPU, most.Cores+most.CPU, most.Cores*mhz+most.CPU-of.Cores*mhz)
	bound(&of.MemoryMB, most.MemoryMB, most.MemoryMB)
	bound(&of.GPUs, most.GPUs, most.GPUs)
	return of
}

// add adds an amount of a node to resources, whose MHz are those of tasks that request no whole cores.
func add(r *structs.WorkflowResources, n *world.NodeState, h world.Resources) {
	r.Cores += int64(h.Cores)
	r.MemoryMB += h.Amount.MemoryMB
	r.GPUs += int64(h.Devices)
	mhz := h.Amount.CPU
	if n.Capacity != nil {
		mhz -= int64(h.Cores) * n.Capacity.MHzPerCore
	}
	r.CPU += max(0, mhz)
}

// Missing returns the nodes of the parts of a reservation that are lost: nodes that are not ready any more, or gone, or not of its pool any more, or on which it
// has no cells any more.
func Missing(w *world.World, c *structs.WorkflowClaim) (nodes []string) {
	for i := range c.Parts {
		if n, known := w.State(c.Parts[i].NodeID); c.Parts[i].Lost || !known || n.Node == nil || !n.Node.Ready() || !n.Node.InPool(c.NodePool) {
			nodes = append(nodes, c.Parts[i].NodeID)
		}
	}
	return nodes
}
