package state

import (
	"iter"

	"github.com/nomadish/nomadish/structs"
)

// Reservations walks the room that is kept for requests that wait, by node ID.
func (s *Snapshot) Reservations(ws *WatchSet) iter.Seq[*structs.Reservation] {
	return many[structs.Reservation](s.v, ws, false, TableReservations, byPrefix, "")
}

// reserve keeps room on a node, in place of what was kept there before. A node that is
// gone keeps none.
func (x *txn) reserve(r *structs.Reservation) {
	if x.node(r.NodeID) == nil {
		return
	}
	was := get[structs.Reservation](x.rows, TableReservations, byID, r.NodeID)
	now := *r
	now.CreateIndex = x.index
	x.put(TableReservations, &now)
	x.edit.Reserve(&now)
	note(x, KindReservation, r.NodeID, was, &now)
}

// unreserve removes a node's reservation, if it has one.
func (x *txn) unreserve(nodeID string) {
	was := get[structs.Reservation](x.rows, TableReservations, byID, nodeID)
	if was == nil {
		return
	}
	x.drop(TableReservations, was)
	x.edit.Unreserve(nodeID)
	note(x, KindReservation, nodeID, was, nil)
}
