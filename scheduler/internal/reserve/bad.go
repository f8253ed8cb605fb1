package reserve

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A GPU that turns bad is lost to the reservation that names it, unless something of the run uses it: that goes on. The part has another one of its node in place of it
// if one is free. Else it counts as without it if something of the run is on the node, and as lost if nothing is; and what is missing then is reserved anew, as with a
// node that is lost.

// turned is what of a reservation has turned bad, and the work of reserving without it.
type turned struct {
	of     *chooser // on the World as it is
	claim  *structs.WorkflowClaim
	ids    map[int][]string // of each part, by its place
	named  badTexts
	within bool // instances require a level within nodes
}

// badTexts states which devices are bad, of each node on whose part there is nothing in place of them.
type badTexts map[string]string

// badOf returns what of a reservation has turned bad.
func badOf(claim *structs.WorkflowClaim, of *chooser, stages []Stage) *turned {
	b := &turned{of: of, claim: claim, ids: map[int][]string{}, named: badTexts{}}
	for i := range claim.Parts {
		if n, known := of.w.State(claim.Parts[i].NodeID); known && !claim.Parts[i].Lost {
			if ids := reservable.Bad(n, of.key); len(ids) > 0 {
				b.ids[i], b.named[n.ID] = ids, lend.BadText(n, ids)
			}
		}
	}
	b.within = len(b.ids) > 0 && slices.ContainsFunc(stages, func(s Stage) bool { return len(withinOf(of.w, s)) > 0 })
	return b
}

// renewed is [chooser.renewed] on the World as it would be without what has turned bad. It returns the chooser on that, and the reservation as it would be.
func (b *turned) renewed(stages []Stage, rule workflow.Reserve, kept bool) (x *chooser, is *structs.WorkflowClaim, out Choice) {
	if len(b.ids) == 0 {
		return b.of, b.claim, b.of.renewed(b.claim, stages, rule, kept)
	}
	stays := b.without()
	lost := *stays
	lost.Parts = slices.Clone(stays.Parts)
	for i := range b.ids { // each has its own place: the order cannot show
		p := &lost.Parts[i]
		n, _ := b.of.w.State(p.NodeID)
		p.Lost = p.Lost || b.named[p.NodeID] != "" && !reservable.Runs(n, b.of.key)
	}
	for _, as := range []*structs.WorkflowClaim{&lost, stays} {
		x = b.as(as)
		x.bad, is = b.named, x.w.Workflow(x.key)
		// What is left of a part may not have the cells that are required within it.
		if out = x.renewed(is, stages, rule, kept); out.Missing == "" || b.within || structs.PartsEqual(stays.Parts, lost.Parts) {
			break
		}
	}
	return x, is, out
}

// without returns the reservation without what has turned bad, or with other devices of the same nodes in place of it.
func (b *turned) without() *structs.WorkflowClaim {
	now := *b.claim
	now.Parts = slices.Clone(b.claim.Parts)
	for i, ids := range b.ids { // each has its own place: the order cannot show
		now.Parts[i] = reservable.Without(now.Parts[i], func(id string) bool { return slices.Contains(ids, id) })
	}
	if b.within { // others are chosen together with all that are to be under one cell
		return &now
	}
	on := b.as(&now)
	on.list()
	own := on.owned()
	for i, ids := range b.ids { // each has its own node: the order cannot show
		if more := instead(&now.Parts[i], len(ids), on, own); more != nil {
			p := b.claim.Parts[i]
			p.DeviceIDs = slices.Sorted(slices.Values(slices.Concat(now.Parts[i].DeviceIDs, more)))
			now.Parts[i] = p
			delete(b.named, p.NodeID)
		}
	}
	return &now
}

// as returns a chooser on the World with the reservation as it would be.
func (b *turned) as(claim *structs.WorkflowClaim) *chooser {
	e := b.of.w.Edit()
	world.WorkflowEdit{E: e}.Set(claim)
	out := *b.of
	out.w = e.World()
	out.e, out.taken = out.w.Edit(), map[int]bool{}
	return &out
}

// instead returns so many devices of the node of a part in place of those that are bad; nil: so many are not free there.
func instead(p *structs.WorkflowPart, count int, on *chooser, own map[int]*ownCells) []string {
	at := slices.IndexFunc(on.nodes, func(n *world.NodeState) bool { return n.ID == p.NodeID })
	if at < 0 {
		return nil
	}
	n := on.nodes[at]
	part, has := n.Part(on.key)
	if !has || on.freeOn(n).Devices < part.Total.Devices+count {
		return nil
	}
	spare, is := on.isSpare(at), own[at]
	return nameOf(n, on.key, count, func(t *world.DeviceTree, d int) bool {
		switch {
		case part.Has(t.IDs[d]):
			return false
		case p.CellLevel != "":
			return is != nil && is.level == p.CellLevel && is.size == p.CellSize && is.has(t, d)
		}
		return spare == nil || spare(t, d)
	})
}

// lost states the parts on which nodes are lost, and which devices of others are bad.
func (b badTexts) lost(nodes []string) string {
	var list []string
	if len(nodes) > 0 {
		list = append(list, lostText(nodes))
	}
	for _, id := range slices.Sorted(maps.Keys(b)) {
		list = append(list, b[id])
	}
	return strings.Join(list, ", ")
}
