package world

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// A part of a reservation may name its devices. They are in cells of the workflow's namespace, which the reservation binds as an instance would that
// uses a claim on them, or beside all that anybody owns, as those of system and sysbatch instances are.

// ClaimsOf returns what stands for the devices of a part that are in cells among what uses claims on cells; nil: none are.
func ClaimsOf(c *structs.WorkflowClaim, p *structs.WorkflowPart) *Usage {
	if !c.Posted || p.CellLevel == "" {
		return nil
	}
	terms := structs.AllocTerms{Claim: structs.ClaimCells, CellLevel: p.CellLevel, CellSize: p.CellSize}
	u := &Usage{NodeID: p.NodeID, Owner: &Owner{RequestName: RequestName{Namespace: c.Namespace}, Terms: terms}}
	u.Devices = WholeDevices(p.DeviceIDs)
	return u
}

// WholeDevices returns the use of whole devices.
func WholeDevices(ids []string) (out []DeviceUsage) {
	for _, id := range slices.Sorted(slices.Values(ids)) {
		out = append(out, DeviceUsage{ID: id, Share: WholeDevice})
	}
	return out
}

// equal reports whether two parts are the same, and used alike.
func (p Part) equal(o Part) bool {
	return p.Workflow == o.Workflow && p.Pending == o.Pending && p.Renews == o.Renews && p.Total == o.Total && p.Used == o.Used && p.Lent == o.Lent && p.Idle == o.Idle && p.Bad == o.Bad && p.Beside == o.Beside && p.Borrowed == o.Borrowed &&
		slices.Equal(p.Devices, o.Devices) && (p.claims == nil) == (o.claims == nil) && (p.claims == nil || p.claims.Equal(o.claims))
}

// Cells returns the level and the size of the cells that the part's devices are in; "": in none that it binds.
func (p *Part) Cells() (level string, size int) {
	if p.claims == nil {
		return "", 0
	}
	return p.claims.Owner.Terms.CellLevel, p.claims.Owner.Terms.CellSize
}

// Named reports whether the part names its devices.
func (p *Part) Named() bool { return len(p.Devices) > 0 }

// Has reports whether a device is one of those that the part names.
func (p *Part) Has(device string) bool { return slices.Contains(p.Devices, device) }

// Taken returns what a usage takes of the part: of devices only those that it names, if it names any.
func (p *Part) Taken(u *Usage) Resources { return p.taken(u, new([]string)) }

// taken is Taken beside devices that are counted already.
func (p *Part) taken(u *Usage, counted *[]string) Resources {
	if !p.Named() {
		return resourcesOf(u, counted)
	}
	of := *u
	of.Devices = slices.DeleteFunc(slices.Clone(u.Devices), func(d DeviceUsage) bool { return !p.Has(d.ID) })
	return resourcesOf(&of, counted)
}

// Bars reports whether a taker may not use a device, as a reservation names it that is not the taker's and does not lend to it, or as its own names
// others.
func (n *NodeState) Bars(device string, by *Taker) bool {
	if by == nil {
		return false
	}
	for i := range n.parts {
		switch p := &n.parts[i]; {
		case p.Pending || !p.Named():
		case p.Workflow == by.Workflow:
			if !p.Has(device) {
				return true
			}
		case p.Workflow != by.Borrows && p.Has(device):
			return true
		}
	}
	return false
}

// reservedClaims returns what stands for the parts of reservations of a node that are in cells.
func (n *NodeState) reservedClaims() (list []*Usage) {
	for i := range n.parts {
		if u := n.parts[i].claims; u != nil {
			list = append(list, u)
		}
	}
	return list
}

// reservedBeside returns the devices of a tree that reservations name beside all that anybody owns.
func (n *NodeState) reservedBeside(t *DeviceTree) (mask uint64) {
	for i := range n.parts {
		if p := &n.parts[i]; !p.Pending && p.claims == nil {
			for _, id := range p.Devices {
				if at, found := t.Find(id); found && at < 64 {
					mask |= 1 << at
				}
			}
		}
	}
	return mask
}

// claimPart binds the cells of a part that has been reserved, or takes its devices out of what can be owned. It reports whether its cells are bound.
func (x WorkflowEdit) claimPart(s *NodeState, p *Part) bool {
	e := x.E
	if p.Pending || !p.Named() {
		return true
	}
	if p.claims != nil {
		return e.w.claims != nil && (s.Node == nil || Claim(e, p.claims))
	}
	x.besideChanged(s)
	return true
}

// besideChanged has the chains of a node see which of its devices are reserved beside all that anybody owns.
func (x WorkflowEdit) besideChanged(s *NodeState) {
	e := x.E
	if e.w.claims == nil || s.Node == nil {
		return
	}
	ledger{e}.ownClaims()
	keys, trees := NodeChains(s.Node, s.Capacity)
	for i, key := range keys {
		if ed := ChainEdit(e, key); ed != nil {
			ed.SetBad(s.ID, notOwnable(s, trees[i]))
		}
	}
	ledger{e}.markClaims(s.ID)
}

// losePart ends the part of a reservation whose cells are not bound any more. What its workflow runs on the node runs on without a claim.
func (x WorkflowEdit) losePart(nodeID string, of *Usage) {
	e := x.E
	s := StateToChange(e, nodeID)
	at := slices.IndexFunc(s.parts, func(p Part) bool { return p.claims == of })
	if at < 0 {
		return
	}
	part := s.parts[at]
	c := *e.w.Workflow(part.Workflow)
	c.Parts = slices.Clone(c.Parts)
	for i := range c.Parts {
		if p := &c.Parts[i]; p.NodeID == nodeID {
			p.Lost = true
		}
	}
	s.parts = slices.Delete(slices.Clone(s.parts), at, at+1)
	for _, u := range slices.Clone(s.Usages) {
		if t := &u.Owner.Terms; t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == part.Workflow {
			ledger{e}.loseClaim(u)
		}
	}
	s.recount()
	tree.Put(e.tok, &e.w.workflows, part.Workflow, &c)
	e.claims.lostParts = append(e.claims.lostParts, part.Workflow)
}

// away reports whether the node is down, disconnected or being registered.
func (n *NodeState) away() bool { return n.Node != nil && n.Node.Status != structs.NodeStatusReady }

// loseUsages has what workflows run on a node run on without a claim where they have no part of it that is reserved. While the node is away nobody else can use it:
// what is lost with it keeps its claim, and so its gang does, until that is known; what comes back with it has none.
func (x WorkflowEdit) loseUsages(s *NodeState) {
	if s.away() {
		return
	}
	for _, u := range slices.Clone(s.Usages) {
		if p, has := s.Part(u.Owner.Terms.WorkflowKey()); u.Owner.Terms.Claim == structs.ClaimWorkflow && (!has || p.Pending) {
			ledger{x.E}.loseClaim(u)
		}
	}
}

// Lost returns the workflows, by their keys, that have lost parts of their reservations since the last call, as cells are not their
// namespaces' any more. The World counts them so; whoever keeps their rows changes these.
func (x WorkflowEdit) Lost() (keys []string) {
	keys, x.E.claims.lostParts = x.E.claims.lostParts, nil
	slices.Sort(keys)
	return slices.Compact(keys)
}
