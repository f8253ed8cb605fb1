package claimtable

import (
	"iter"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Reads reads what the namespaces of a snapshot own.
type Reads struct {
	memtable.Watched
	// World is the snapshot's.
	World *scheduler.World
}

// Get returns the virtual cluster of a namespace; nil if it has none.
func (r Reads) Get(name string) *structs.VirtualCluster {
	return memtable.One[structs.VirtualCluster](r.Watched, VirtualClusters, byID, name)
}

// List walks the virtual clusters whose name begins with prefix, by name, or backwards.
func (r Reads) List(prefix string, reverse bool) iter.Seq[*structs.VirtualCluster] {
	return memtable.Many[structs.VirtualCluster](r.Watched, reverse, VirtualClusters, byPrefix, prefix)
}

// Exchanges walks the offers and bids that are not settled, by ID.
func (r Reads) Exchanges() iter.Seq[*structs.Exchange] {
	return memtable.Many[structs.Exchange](r.Watched, false, Exchanges, byPrefix, "")
}

// ClaimsEdge returns the next time at which what is owned changes, or what an edit that waits would change, in Unix nanoseconds: after the
// time up to which it has been moved on. It is 0 if there is none.
func (r Reads) ClaimsEdge() int64 {
	passed, next := int64(0), int64(0)
	if row := memtable.One[structs.ClaimsTime](r.Watched, ClaimsTime, byID); row != nil {
		passed = row.Now
	}
	note := func(t int64) {
		if t > passed && (next == 0 || t < next) {
			next = t
		}
	}
	for c := range r.List("", false) {
		for _, t := range c.Edges(passed) {
			note(t)
		}
		if c.Pending != nil { // with its windows over, an edit may be admitted
			for _, t := range c.Waiting().Edges(passed) {
				note(t)
			}
		}
	}
	for x := range r.Exchanges() {
		note(x.From.UnixNano())
	}
	return next
}

// Status returns a virtual cluster as it is shown, with what views of the World report about it. It watches nothing.
func (r Reads) Status(of *structs.VirtualCluster, views map[string]*scheduler.ClaimView) *structs.VirtualClusterStatus {
	s := &structs.VirtualClusterStatus{
		Name: of.Name, OverLimit: of.OverLimit, Points: of.Points, Pending: of.Pending, Windows: of.Windows, Changes: of.Changes, Cells: []*structs.CellStatus{},
		CreateIndex: of.CreateIndex, ModifyIndex: of.ModifyIndex,
	}
	view := views[of.Name]
	if view == nil {
		return s
	}
	s.Cells, s.Bound, s.GuaranteedGPUs, s.OpportunisticGPUs = view.Cells, view.Bound, view.GuaranteedGPUs, view.OpportunisticGPUs
	line := func(of *structs.CellQuota) *structs.CellStatus {
		c := of.Claim()
		for _, l := range s.Cells {
			if l.Kind == c.Kind() && l.NodePool == c.NodePool && l.Level == c.Level && l.Size == c.Size {
				return l
			}
		}
		return &structs.CellStatus{}
	}
	now := int64(0)
	if row := memtable.Get[structs.ClaimsTime](r.Rows, ClaimsTime, byID); row != nil {
		now = row.Now
	}
	for i := range of.Changes {
		if c := &of.Changes[i]; c.Why == structs.CellChangeWon && c.From <= now && now < c.Until {
			l := line(&c.Cells)
			l.Won += c.Cells.Count
			l.Given -= c.Cells.Count
		}
	}
	for x := range memtable.Rows[structs.Exchange](r.Rows, false, Exchanges, byID) {
		if !x.Bid && x.Owner == of.Name {
			line(&x.Cells).Offered += x.Cells.Count
		}
	}
	if of.CellsWait() {
		why := "it waits in order"
		if err := scheduler.AdmitClaims(r.World, of.Name, of.AllGiven()); err != nil {
			why = reasonOf(err)
		}
		s.AddWaiting(of, why)
	}
	return s
}
