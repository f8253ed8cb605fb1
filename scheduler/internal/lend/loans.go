package lend

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Loans is how a workflow's reservation is used. Used, Lent, Idle and Lost add up to Reserved; of the processor in MHz, those of whole cores included: a core of which others
// use the MHz, without the core, does not idle.
type Loans struct {
	Reserved, Used, Lent, Idle structs.WorkflowResources
	// Lost is what it has lost, and nobody uses: of parts that are lost (see Missing) or that stay only until what runs there has ended (see Stays), GPUs that are bad,
	// and licenses that there are not any more.
	Lost structs.WorkflowResources
	// Leaves names the nodes whose parts stay only until what runs there has ended, as a sentence; "": none.
	Leaves string
	// Bad names the GPUs of it that are bad, used or not, as a sentence; "": none.
	Bad string
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
	var gone world.Resources
	var bad, leaves []string
	var borrows, more world.Resources // what borrowers have, and what idles that can be lent to them
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if known && n.Capacity != nil {
			mhz = max(mhz, n.Capacity.MHzPerCore)
		}
		if part := &c.Parts[i]; !known || part.Lost {
			gone = gone.Plus(world.Resources{
				Amount: world.Vector{CPU: part.CPU, MemoryMB: part.MemoryMB, DiskMB: part.DiskMB}, Cores: part.Cores, Devices: part.Devices,
			})
			continue
		}
		p, _ := n.Part(key)
		idle, lost := split(n, c, p)
		add(&out.Reserved, n, p.Total)
		add(&out.Used, n, usedOf(p))
		add(&out.Lent, n, p.Borrowed)
		add(&out.Idle, n, withMHz(idle, mhzOf(n)))
		add(&out.Lost, n, withMHz(lost, mhzOf(n)))
		borrowed, lendable := n.Lends(key)
		borrows, more = borrows.Plus(borrowed), more.Plus(lendable.Within(idle))
		if ids := n.BadOf(&p, func(*world.Usage) bool { return false }); len(ids) > 0 {
			slices.Sort(ids)
			bad = append(bad, BadText(n, ids))
		}
		if Stays(n, c) {
			leaves = append(leaves, leavesText(n))
		}
		out.borrowers(n, c, borrowed)
	}
	out.Bad, out.Leaves = strings.Join(bad, "; "), strings.Join(leaves, "; ")
	addOf(&out.Reserved, mhz, gone)
	addOf(&out.Lost, mhz, gone)
	out.licenses(w, c)
	var lends structs.WorkflowResources
	addOf(&lends, mhz, borrows.Plus(withMHz(more.Less((world.WorkflowEdit{E: w.Edit()}).Awaited(c, mhz)), mhz)))
	out.due(c, lends, mhz)
	return out
}

// borrowers adds what each lend block has on a node, of which so much is of the part of the reservation there.
func (l *Loans) borrowers(n *world.NodeState, c *structs.WorkflowClaim, lent world.Resources) {
	for _, u := range n.Usages {
		if t := &u.Owner.Terms; t.BorrowsFrom() == c.Key() && len(c.Lend) > 0 {
			to, has := &l.To[indexOf(c, t.LentTo())], world.ResourcesOf(u)
			of := has.Within(lent)
			lent = lent.Less(of)
			add(&to.Amount, n, has)
			add(&to.Lent, n, of)
			to.Allocs = append(to.Allocs, u.ID)
		}
	}
}

// usedOf returns what a run itself uses of a part, with its claim or without one.
func usedOf(p world.Part) world.Resources { return p.Used.Plus(p.Lent.Less(p.Borrowed)) }

// split returns what idles of a part of a node, and what of that is lost: all of it if the part is, or the node takes no more work, else its GPUs that are bad and
// that nobody uses.
func split(n *world.NodeState, c *structs.WorkflowClaim, p world.Part) (idle, lost world.Resources) {
	if p.Pending { // it waits for what comes free
		return p.Idle, lost
	}
	if lost.Devices = p.Bad; lostWith(n, c) || !n.Node.Ready() {
		return world.Resources{}, lost.Plus(p.Idle)
	}
	return p.Idle, lost
}

// BadText states which GPUs of a node are bad, or not there any more.
func BadText(n *world.NodeState, ids []string) string {
	name, are := nameOf(n), "bad"
	if slices.ContainsFunc(ids, func(id string) bool { return !has(n, id) }) {
		are = "bad or gone"
	}
	if len(ids) == 1 {
		return "GPU " + ids[0] + " of node " + name + " is " + are
	}
	last := len(ids) - 1
	return "GPUs " + strings.Join(ids[:last], ", ") + " and " + ids[last] + " of node " + name + " are " + are
}

// has reports whether a node has a device.
func has(n *world.NodeState, id string) bool {
	return slices.ContainsFunc(n.Capacity.Trees, func(t *world.DeviceTree) bool {
		_, found := t.Find(id)
		return found
	})
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
		r := &structs.ReservedPart{Namespace: c.Namespace, Workflow: c.ID, Pending: p.Pending, DeviceIDs: p.Devices}
		add(&r.Reserved, n, p.Total)
		add(&r.Used, n, usedOf(p))
		add(&r.Lent, n, p.Borrowed)
		idle, lost := split(n, c, p)
		add(&r.Idle, n, withMHz(idle, mhzOf(n)))
		add(&r.Lost, n, withMHz(lost, mhzOf(n)))
		out = append(out, r)
	}
	return out
}

// KeptOf returns what licenses a workflow keeps as they come free, and where it keeps what comes free of nodes; nil: nothing.
func KeptOf(w *world.World, key string) (out []structs.WorkflowKept) {
	c := w.Workflow(key)
	if c == nil {
		return nil
	}
	var licenses structs.WorkflowKept
	for _, r := range c.Licenses {
		if s := w.Licenses().ShareOf(r.Name, key); s.Pending {
			addLicense(&licenses.Amount, r.Name, s.Total)
			addLicense(&licenses.Idle, r.Name, s.Idle)
		}
	}
	if len(licenses.Amount.Licenses) > 0 {
		out = append(out, licenses)
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
				add(&k.Idle, n, withMHz(p.Idle, mhzOf(n)))
			}
		}
		out = append(out, k)
	}
	return out
}

// due states what each lend block would have by its share of what is lent in all; without shares, all of it. mhz is what a core has.
func (l *Loans) due(c *structs.WorkflowClaim, lends structs.WorkflowResources, mhz int64) {
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
	most := atMostLent(c, lends, mhz)
	each(most.CPU, func(r *structs.WorkflowResources) *int64 { return &r.CPU })
	each(most.Cores, func(r *structs.WorkflowResources) *int64 { return &r.Cores })
	each(most.MemoryMB, func(r *structs.WorkflowResources) *int64 { return &r.MemoryMB })
	each(most.DiskMB, func(r *structs.WorkflowResources) *int64 { return &r.DiskMB })
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
	addOf(r, mhzOf(n), h)
}

// mhzOf returns what a core of a node has.
func mhzOf(n *world.NodeState) int64 {
	if n.Capacity == nil {
		return 0
	}
	return n.Capacity.MHzPerCore
}

// withMHz returns what idles with no more whole cores than it has the MHz for: tasks that request no cores may use the MHz of those that are reserved.
func withMHz(idle world.Resources, mhz int64) world.Resources {
	if mhz > 0 {
		idle.Cores = min(idle.Cores, int(idle.Amount.CPU/mhz))
	}
	return idle
}

// addOf is add with what MHz a core has.
func addOf(r *structs.WorkflowResources, mhz int64, h world.Resources) {
	r.Cores += int64(h.Cores)
	r.MemoryMB += h.Amount.MemoryMB
	r.DiskMB += h.Amount.DiskMB
	r.GPUs += int64(h.Devices)
	r.CPU += max(0, h.Amount.CPU-int64(h.Cores)*mhz)
}

// Missing returns the nodes of the parts of a reservation that are lost: nodes that are not ready any more, unless a part stays, or gone, or not of its pool any
// more, or on which it has no cells any more; and those of parts of which a GPU is bad that the run does not use.
func Missing(w *world.World, c *structs.WorkflowClaim) (nodes []string) {
	for i := range c.Parts {
		if n, known := w.State(c.Parts[i].NodeID); c.Parts[i].Lost || !known || lostWith(n, c) || len(reservable.Bad(n, c.Key())) > 0 {
			nodes = append(nodes, c.Parts[i].NodeID)
		}
	}
	return nodes
}

// lostWith reports whether a part of a reservation is lost with its node.
func lostWith(n *world.NodeState, c *structs.WorkflowClaim) bool {
	return n.Node == nil || !n.Node.InPool(c.NodePool) || !n.Node.Ready() && !Stays(n, c)
}
