package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/resources"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// A workflow's reservation (docs/design/semantics.md, part 5) holds a part of each of several nodes. On each of them, resource by resource,
// the part is what the workflow's own instances use of it, what is lent, and what idles:
//
//   - used is what instances with ClaimWorkflow use;
//   - lent is what borrowers use that the node has not free beside all reservations: when room comes free beside them, less is lent. So is what instances of the
//     workflow use that have lost their claim, as the rest of their gang has;
//   - idle is the rest, which is always free on the node. Nobody but the workflow and its borrowers may take it. Devices that are bad and that nobody uses are
//     apart, as nobody can take them.
//
// A reservation that is pending holds its parts before their room is free, so that what comes free on these nodes stays free.

// Resources is what is withheld on a node, or taken of it.
type Resources = resources.Resources

// ResourcesOf returns what a usage takes of a reservation.
func ResourcesOf(u *Usage) Resources { return resourcesOf(u, new([]string)) }

// resourcesOf returns what a usage takes of a reservation beside devices that are counted already: several may share one.
func resourcesOf(u *Usage, counted *[]string) Resources {
	h := Resources{Amount: u.Amount, Cores: len(u.Cores)}
	for _, d := range u.Devices {
		if !slices.Contains(*counted, d.ID) {
			*counted = append(*counted, d.ID)
			h.Devices++
		}
	}
	return h
}

// Part is what a workflow's reservation holds of a node.
type Part struct {
	Workflow string // see structs.WorkflowKey
	Pending  bool
	// Renews: it is pending in place of what a posted reservation has lost.
	Renews bool
	Total  Resources
	// Devices are the IDs of the devices that it holds; none: any.
	Devices []string
	claims  *Usage // see ClaimsOf
	// Used, Lent, Idle and Bad add up to Total, unless more is used than it holds. Of a pending part Idle is what it keeps: of what is beside all that is posted
	// that which is free, or would be if borrowers used nothing but what is posted.
	Used, Lent, Idle Resources
	Bad              int // devices, which nobody uses
	// Beside is what borrowers use beside it, and would be lent if that was reserved. Borrowed is what of Lent is theirs: the rest is the run's own, without a claim.
	Beside, Borrowed Resources
}

// compareParts orders the parts of a node: those that are pending come last, of these first what is in place of what was lost.
func compareParts(a, b Part) int {
	rank := func(p *Part) int { return slices.Index([]bool{!p.Pending, p.Renews, true}, true) }
	return cmp.Or(rank(&a)-rank(&b), strings.Compare(a.Workflow, b.Workflow))
}

// Part returns what a workflow's reservation holds of the node.
func (n *NodeState) Part(workflow string) (Part, bool) {
	if i := slices.IndexFunc(n.parts, func(p Part) bool { return p.Workflow == workflow }); i >= 0 {
		return n.parts[i], true
	}
	return Part{}, false
}

// Parts are what workflows' reservations hold of the node. They must not be changed.
func (n *NodeState) Parts() []Part { return n.parts }

// recount counts what is used, lent and idle of each part.
func (n *NodeState) recount() {
	if len(n.parts) == 0 {
		return
	}
	borrowed, own := make([]Resources, len(n.parts)), make([]Resources, len(n.parts)) // own: what the workflow itself runs without a claim
	devices := make([][]string, 2*len(n.parts))                                       // those that are used of each part, then those that are borrowed
	for i := range n.parts {
		n.parts[i].Used, n.parts[i].Lent, n.parts[i].Beside, n.parts[i].Borrowed = Resources{}, Resources{}, Resources{}, Resources{}
	}
	for _, u := range n.Usages {
		key, is := u.Owner.Terms.WorkflowKey(), u.Owner.Terms.Claim
		unclaimed := is == "" && key == ""
		if unclaimed {
			key = u.Owner.ofWorkflow()
		}
		i := slices.IndexFunc(n.parts, func(p Part) bool { return p.Workflow == key }) // not what it keeps beside
		switch {
		case i < 0:
		case unclaimed:
			own[i] = own[i].Plus(n.parts[i].taken(u, &devices[2*i+1]))
		case is == structs.ClaimWorkflow:
			n.parts[i].Used = n.parts[i].Used.Plus(n.parts[i].taken(u, &devices[2*i]))
		case is == "":
			borrowed[i] = borrowed[i].Plus(n.parts[i].taken(u, &devices[2*i+1]))
		}
	}
	var free, all, beside Resources // beside is what no workflow's run has reserved, whoever uses it
	if n.Capacity != nil {
		free = Resources{Amount: n.Free(), Cores: n.FreeCores(), Devices: n.FreeDevices()}
		beside = Resources{Amount: n.Capacity.Amount, Cores: len(n.Capacity.Cores), Devices: int(n.Capacity.WellDevices())}
	}
	for i := range n.parts {
		if p := &n.parts[i]; !p.Pending {
			p.Bad = len(n.BadOf(p, func(*Usage) bool { return true }))
			all = all.Plus(p.Total.Less(p.Used).Less(Resources{Devices: p.Bad}))
			beside = beside.Less(p.Total.Less(Resources{Devices: len(n.BadOf(p, func(*Usage) bool { return false }))}))
		}
	}
	over, keeps := all.Less(free), free
	over = n.lend(borrowed, over)
	n.lend(own, over)
	for i := range n.parts {
		p := &n.parts[i]
		left := p.Total.Less(p.Used)
		if p.Pending { // what others have reserved comes free only with the end of their runs
			p.Idle = left.Within(beside).Within(keeps)
			beside, keeps = beside.Less(left), keeps.Less(p.Idle)
			continue
		}
		p.Idle, p.Beside = left.Less(p.Lent).Less(Resources{Devices: p.Bad}), borrowed[i].Within(left).Less(p.Lent)
		keeps = keeps.Less(p.Idle.Less(p.Beside))
	}
}

// lend counts as lent what is taken of each part that the node has not free, over in all, and returns what is over still.
func (n *NodeState) lend(taken []Resources, over Resources) Resources {
	for i := range n.parts {
		p := &n.parts[i]
		if left := p.Total.Less(p.Used).Less(p.Lent); !p.Pending {
			lent := over.Within(left).Within(taken[i])
			if p.Named() { // whatever is free beside
				lent.Devices = min(left.Devices, taken[i].Devices)
			}
			p.Borrowed, p.Lent, over = p.Lent, p.Lent.Plus(lent), over.Less(lent) // borrowers come first, then the run's own
		}
	}
	return over
}

// Withheld returns what a taker must leave free on the node for others: what is reserved for a request that has waited longer, and what
// idles of workflows' reservations. nil takes room all the same, whoever has reserved it.
func (n *NodeState) Withheld(by *Taker) (h Resources) {
	if by == nil {
		return h
	}
	if r := n.Reservation; !r.Free(by) {
		h = Resources{Amount: r.Amount, Cores: r.Cores, Devices: r.Devices}
	}
	for i := range n.parts {
		if p := &n.parts[i]; !by.mayUse(p) {
			h = h.Plus(p.Idle)
		}
	}
	return h
}

// mayUse reports whether a reservation does not bind a taker: it is its own, lends to it, or is pending and of lower rank, or of its own run, which keeps room
// in place of what it has lost: what runs there uses the reservation once this is whole. What is kept so ranks as the claim that it is part of: who has no claim,
// recognised or not, leaves it free.
func (t *Taker) mayUse(p *Part) bool {
	return p.Workflow == t.Workflow || !p.Pending && p.Workflow == t.Borrows || p.Pending && (t.Entitled || t.Recognised && !p.Renews || t.IsOf(p.Workflow))
}

// IsOf reports whether a taker is of a job of a workflow.
func (t *Taker) IsOf(workflow string) bool {
	return workflow == (&Owner{RequestName: t.RequestName}).ofWorkflow()
}

// OfRun returns the key of the workflow of whose run it is, without a claim; "": of none.
func (h *Owner) OfRun() string {
	if h.Terms.Claim != "" || h.Terms.WorkflowKey() != "" {
		return ""
	}
	return h.ofWorkflow()
}

// ofWorkflow returns the key of the workflow of which it is a job's instance; "": of none, or of a system or sysbatch job.
func (h *Owner) ofWorkflow() string {
	if strings.Contains(h.Job, "/") && !h.Terms.PerNode {
		if id, _, _, ok := structs.SplitWorkflowJobID(h.Job); ok {
			return structs.WorkflowKey(h.Namespace, id)
		}
	}
	return ""
}

// ReservedBy names the workflow of whose reservation a taker must leave free what idles on the node; "": of none.
func (n *NodeState) ReservedBy(by *Taker) string {
	for i := range n.parts {
		if p := &n.parts[i]; !by.mayUse(p) && p.Idle != (Resources{}) {
			return p.Workflow
		}
	}
	return ""
}

// beyondPart returns what a taker that uses its workflow's reservation requests of the node beyond it; "": it uses none, or has room in it.
func (n *NodeState) beyondPart(request Resources, by *Taker) string {
	if by == nil || by.Workflow == "" {
		return ""
	}
	p, has := n.Part(by.Workflow)
	if !has || p.Pending {
		return LacksPart
	}
	return p.Idle.Lacks(request)
}

// Workflow returns the reservation of a workflow; nil: it has none.
func (w *World) Workflow(key string) *structs.WorkflowClaim {
	c, _ := w.workflows.Get(key)
	return c
}

// Workflows are the reservations of workflows, by their keys.
func Workflows(w *World) *Tree[string, *structs.WorkflowClaim] { return &w.workflows }

// Claim returns the reservation of a workflow as the edit has it; nil: it has none.
func (x WorkflowEdit) Claim(key string) *structs.WorkflowClaim { return x.E.w.Workflow(key) }

// PendingWorkflows are the reservations that keep what comes free, by their keys: of each node pool one at most in place of what it has lost, and one at most of those
// that wait for all of theirs; of these one at most with licenses.
func PendingWorkflows(w *World) *Tree[string, *structs.WorkflowClaim] { return &w.pending }

// WorkflowEdit is an Edit as what changes workflows' reservations, and looks at them.
type WorkflowEdit struct{ E *Edit }

// Set stores a workflow's reservation, in place of the one that it had. It must not be changed afterwards.
func (x WorkflowEdit) Set(c *structs.WorkflowClaim) {
	e, key := x.E, c.Key()
	e.from, e.w.licenses = nil, e.w.licenses.Reserve(e.tok, c)
	was, _ := e.w.workflows.Get(key)
	var had, keep, stay []structs.WorkflowPart
	if was != nil {
		x.dropParts(key, was.Keeps, nil, true)
		if had = was.Parts; was.Posted == c.Posted { // the cells of a part that stays must not be unbound
			keep, stay = c.Parts, had
		}
		x.dropParts(key, had, keep, !was.Posted)
	}
	tree.Put(e.tok, &e.w.workflows, key, c)
	tree.Delete(e.tok, &e.w.pending, key)
	if c.KeepsFree() {
		tree.Put(e.tok, &e.w.pending, key, c)
	}
	x.addParts(c, c.Parts, stay, !c.Posted)
	x.addParts(c, c.Keeps, nil, true)
	x.leave(had, keep)
}

// leave has what the workflow runs where parts have gone, all but those that stay, run on without a claim.
func (x WorkflowEdit) leave(had, keep []structs.WorkflowPart) {
	for _, p := range had {
		if s, known := StateOf(x.E, p.NodeID); known && !p.Lost && !slices.ContainsFunc(keep, p.Equal) {
			x.loseUsages(s)
		}
	}
}

// Drop ends a workflow's reservation, if it has one.
func (x WorkflowEdit) Drop(key string) {
	e := x.E
	c, found := e.w.workflows.Get(key)
	if !found {
		return
	}
	x.dropParts(key, c.Keeps, nil, true)
	x.dropParts(key, c.Parts, nil, !c.Posted)
	e.from, e.w.licenses = nil, e.w.licenses.Release(e.tok, key)
	tree.Delete(e.tok, &e.w.workflows, key)
	tree.Delete(e.tok, &e.w.pending, key)
	x.leave(c.Parts, nil)
}

// addParts reserves parts of a reservation that it had not before; pending: it keeps what comes free. Those whose cells cannot be bound are lost.
func (x WorkflowEdit) addParts(c *structs.WorkflowClaim, list, had []structs.WorkflowPart, pending bool) {
	var lost []*Usage
	for _, p := range list {
		if p.Lost || slices.ContainsFunc(had, p.Equal) {
			continue
		}
		s := StateToChange(x.E, p.NodeID)
		part := Part{Workflow: c.Key(), Pending: pending, Renews: pending && c.Posted, Total: Resources{Amount: Vector{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB}, Cores: p.Cores, Devices: p.Devices}, Devices: p.DeviceIDs}
		part.claims = ClaimsOf(c, &p)
		at, _ := slices.BinarySearchFunc(s.parts, part, compareParts)
		s.parts = slices.Insert(slices.Clone(s.parts), at, part)
		s.recount()
		if !x.claimPart(s, &part) {
			lost = append(lost, part.claims)
		}
	}
	for _, u := range lost {
		x.losePart(u.NodeID, u)
	}
}

// dropParts ends parts of a reservation, which are pending or not, all but those that stay.
func (x WorkflowEdit) dropParts(key string, had, keep []structs.WorkflowPart, pending bool) {
	for _, p := range had {
		if p.Lost || slices.ContainsFunc(keep, p.Equal) {
			continue
		}
		s := StateToChange(x.E, p.NodeID)
		var part Part
		s.parts = slices.DeleteFunc(slices.Clone(s.parts), func(p Part) bool {
			if p.Workflow != key || p.Pending != pending {
				return false
			}
			part = p
			return true
		})
		s.recount()
		switch {
		case part.claims != nil:
			Unclaim(x.E, part.claims)
		case part.Named() && !part.Pending:
			x.besideChanged(s)
		}
	}
}

// BorrowLacks returns why a usage cannot borrow what it would of a node; "": it can, or it borrows nothing.
func (x WorkflowEdit) BorrowLacks(nodeID string, u *Usage) string {
	key := u.Owner.Terms.BorrowsFrom()
	if key == "" || x.E.w.Workflow(key) == nil {
		return ""
	}
	return x.lendable(x.E.w.Workflow(key), nodeID).Lacks(ResourcesOf(u))
}

// Awaited returns what the jobs of the running stage still have to take of the reservation, with so many MHz for a core: it is not lent. Those are jobs
// that have just been registered, or of which nothing is there for now, without those that cannot start even if all borrowers left.
func (x WorkflowEdit) Awaited(c *structs.WorkflowClaim, mhz int64) (h Resources) {
	for i := range c.Jobs {
		j := &c.Jobs[i]
		if has, there := x.there(c, j); there && j.Starting || !there && x.holds(c, j.Whole) {
			h = h.Plus(NeedsOf(&j.Needs, mhz).Less(has))
		}
	}
	return h
}

// there returns what of a job there is, if anything: wherever it runs, and by whichever claim, it is not to come.
func (x WorkflowEdit) there(c *structs.WorkflowClaim, j *structs.WorkflowClaimJob) (has Resources, there bool) {
	for _, u := range OfJob(x.E, c.Namespace, j.JobID) {
		s, known := StateOf(x.E, u.NodeID)
		if !known {
			continue
		}
		if _, part := s.Part(c.Key()); !s.away() || part && u.Owner.Terms.Claim == structs.ClaimWorkflow {
			has, there = has.Plus(ResourcesOf(u)), true
		}
	}
	return has, there
}

// lendable returns how much more a borrower on a node may use: of what the reservation has idle on all its nodes, less what its running stage still has
// to take, and of the node what is free beside all reservations; as lend_max bounds it.
func (x WorkflowEdit) lendable(c *structs.WorkflowClaim, nodeID string) Resources {
	s, known := StateOf(x.E, nodeID)
	if !known || s.Capacity == nil {
		return Resources{}
	}
	var all, lent Resources
	for i := range c.Parts {
		if s, known := StateOf(x.E, c.Parts[i].NodeID); known {
			borrowed, idle := s.Lends(c.Key())
			lent, all = lent.Plus(borrowed), all.Plus(idle)
		}
	}
	mhz := s.Capacity.MHzPerCore
	all = all.Less(x.Awaited(c, mhz))
	if most := c.LendMax; most != nil {
		bound := func(of *int64, most, lent int64) {
			if most > 0 {
				*of = max(0, min(*of, most-lent))
			}
		}
		cores, devices := int64(all.Cores), int64(all.Devices)
		bound(&all.Amount.CPU, most.Cores*mhz+most.CPU, lent.Amount.CPU)
		bound(&cores, most.Cores, int64(lent.Cores))
		bound(&all.Amount.MemoryMB, most.MemoryMB, lent.Amount.MemoryMB)
		bound(&devices, most.GPUs, int64(lent.Devices))
		all.Cores, all.Devices = int(cores), int(devices)
	}
	beside := Resources{Amount: s.Free(), Cores: s.FreeCores(), Devices: s.FreeDevices()}.Less(s.Withheld(&Taker{}))
	return all.Plus(beside)
}

// Lends returns what borrowers have of a workflow's part of the node, and what more of it can be lent: what idles, if something may start on the node.
func (n *NodeState) Lends(workflow string) (lent, idle Resources) {
	p, _ := n.Part(workflow)
	if n.Node == nil || !n.Node.Ready() {
		return p.Borrowed, Resources{}
	}
	return p.Borrowed, p.Idle
}

// TrialOf returns a copy of a node's state for what would be if usages came or went.
func TrialOf(n *NodeState) *NodeState { return n.Own(&Token{}) }
