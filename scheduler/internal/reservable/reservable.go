// Package reservable decides what a workflow may reserve of nodes (docs/design/semantics.md, part 5), for who chooses a reservation and for who judges it. It
// changes nothing.
package reservable

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/slotroom"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// As returns the reservation of a workflow as a plan changes it, and why it does not hold; "": it does. raises reports that instances of the workflow use it
// from then on, as the edit has it already, where nothing is reserved yet.
func As(e *world.Edit, r *structs.WorkflowReservation, raises bool) (now *structs.WorkflowClaim, lack string) {
	x := world.WorkflowEdit{E: e}
	was := x.Claim(r.Key())
	if was == nil || was.Run != r.Run {
		return nil, "its run is over"
	}
	c := *was
	c.Parts, c.Licenses, c.Posted, c.Closed, c.Keeps = r.Parts, r.Licenses, r.Posted, r.Closed, r.Keeps
	if c.KeepsFree() && rival(e, &c) {
		return nil, "another workflow keeps what comes free"
	}
	if !r.Posted {
		return &c, ""
	}
	if lack := (world.LicenseEdit{E: e}).LacksToReserve(was, r.Licenses); lack != "" {
		return nil, lack
	}
	if lack := partsLack(e, was, &c, raises); lack != "" {
		return nil, lack
	}
	if lack := slotroom.Lacks(e.World(), &c); lack != "" {
		return nil, lack
	}
	return &c, ""
}

// rival reports whether another workflow keeps what comes free, so that one cannot: nodes of its node pool, or licenses. What one keeps in place of what it has lost is
// beside what the first of those keeps that wait for all.
func rival(e *world.Edit, c *structs.WorkflowClaim) bool {
	for key, o := range world.PendingWorkflows(world.Base(e)).All {
		samePool := o.NodePool == c.NodePool || o.NodePool == structs.AllNodePool || c.NodePool == structs.AllNodePool
		if key != c.Key() && o.Posted == c.Posted && (samePool || !o.Posted && len(o.Licenses) > 0 && len(c.Licenses) > 0) {
			return true
		}
	}
	return false
}

// partsLack returns what a node has too little of for a part of a reservation that is posted, beyond what the workflow had; "": nothing.
func partsLack(e *world.Edit, was, c *structs.WorkflowClaim, raises bool) string {
	trial := withoutBad(e, was, c) // parts in cells are bound one after the other
	keeps := func(nodeID string) bool {
		return slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.NodeID == nodeID && !p.Lost })
	}
	beside := NewBeside(trial, c.Key(), keeps) // and those beside what is owned, too
	inCells := slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.CellLevel != "" })
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.Lost || was.Posted && containsPart(was.Parts, p) {
			continue // it holds nothing, or is the workflow's, whether or not its node is ready
		}
		if lack := partLacks(trial, beside, was, p, raises, inCells); lack != "" {
			return "node " + structs.ShortID(p.NodeID) + ": " + lack
		}
		if u := world.ClaimsOf(c, p); u != nil {
			if trial == e {
				trial = e.World().Edit()
			}
			world.Claim(trial, u)
			beside = NewBeside(trial, c.Key(), keeps)
		}
	}
	return ""
}

// keepsBefore reports whether one reservation ranks before another one, so that this may have nothing of what that keeps: in place of what was lost of one that
// was posted before all that wait, else by priority. Of the same priority who came first keeps it: that is chosen, not judged.
func keepsBefore(o, c *structs.WorkflowClaim) bool {
	if o.Posted != c.Posted {
		return o.Posted
	}
	return o.Priority > c.Priority
}

func containsPart(list []structs.WorkflowPart, p *structs.WorkflowPart) bool {
	for i := range list {
		if list[i].Equal(*p) {
			return true
		}
	}
	return false
}

// partLacks returns what a node has too little of for a part of a reservation that is posted; "": nothing. inCells: it is in cells, as an entitled request is,
// for which what others keep is no bound.
func partLacks(e *world.Edit, beside *Beside, c *structs.WorkflowClaim, p *structs.WorkflowPart, raises, inCells bool) string {
	n, known := world.StateOf(e, p.NodeID)
	if !known || n.Node == nil || n.Capacity == nil || !n.Node.Ready() {
		return "it takes no work"
	}
	if !n.Node.InPool(c.NodePool) {
		return "it is not in node pool " + c.NodePool
	}
	amount := world.Vector{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB}
	free := Free(n, c.Key())
	if raises {
		free = FreeWithUsed(n, c.Key())
	}
	if !inCells {
		free = free.Less(Kept(n, func(p *world.Part) bool {
			o := world.WorkflowEdit{E: e}.Claim(p.Workflow)
			return p.Workflow != c.Key() && o != nil && keepsBefore(o, c)
		}))
	}
	if lack := free.Lacks(world.Resources{Amount: amount, Cores: p.Cores, Devices: p.Devices}); lack != "" {
		return lack
	}
	var used []string // by those who use it from now on
	if raises {
		used = UsedDevices(n, c.Key())
	}
	return devicesLack(e, beside, n, c, p, used)
}

// devicesLack returns why a part of a reservation cannot have the devices that it names; "": it can. Those in cells must be bound for its namespace, or
// binding them must leave what all others own; others must be left beside all that is owned. Those that its own instances use by it already need not be free.
func devicesLack(e *world.Edit, beside *Beside, n *world.NodeState, c *structs.WorkflowClaim, p *structs.WorkflowPart, used []string) string {
	if len(p.DeviceIDs) == 0 {
		return ""
	}
	own, has := n.Part(c.Key())
	for _, id := range p.DeviceIDs {
		if has && own.Has(id) || slices.Contains(used, id) {
			continue
		}
		if n.LacksDevice(id, world.WholeDevice) || n.Bars(id, &world.Taker{Borrows: c.Key()}) {
			return world.LacksDevices
		}
	}
	posted := *c
	posted.Posted = true
	if u := world.ClaimsOf(&posted, p); u != nil {
		return world.ClaimLacks(e, u)
	}
	return beside.takes(n, p.DeviceIDs)
}

// Free returns what a workflow may reserve of a node: what is free and nobody else has reserved, and what it has of it already; of one that takes no work
// nothing.
func Free(n *world.NodeState, key string) world.Resources {
	if n.Capacity == nil || n.Node == nil || !n.Node.Ready() {
		return world.Resources{}
	}
	withheld := n.Withheld(&world.Taker{Workflow: key, Recognised: true})
	for _, p := range n.Parts() {
		if withheld = withheld.Less(p.Beside); p.Renews && p.Workflow != key { // what borrowers use beside another reservation is lent once the rest is reserved
			withheld = withheld.Less(p.Idle) // it is for who chooses, or judges, whether that is left free, see Kept
		}
	}
	free := world.Resources{Amount: n.Free(), Cores: n.FreeCores(), Devices: n.FreeDevices()}.Less(withheld)
	if part, has := n.Part(key); has {
		free = free.Plus(part.Used).Plus(part.Lent)
	}
	return free
}

// Kept returns what some workflows keep of what has come free of a node, though they have not all that they want yet: what others may not reserve for which
// they keep it.
func Kept(n *world.NodeState, by func(*world.Part) bool) (sum world.Resources) {
	for _, p := range n.Parts() {
		if p.Pending && by(&p) {
			sum = sum.Plus(p.Idle)
		}
	}
	return sum
}
