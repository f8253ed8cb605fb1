package world

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Text names whom the room is reserved for.
func (h *Reservation) Text() string { return h.Namespace + "/" + h.Job + "/" + h.Group }

// RequestName names a request: a group of a job.
type RequestName struct{ Namespace, Job, Group string }

// Reservation is a reservation as the World keeps it. Never changed once made.
type Reservation struct {
	RequestName
	NodeID  string
	Amount  Vector
	Cores   int
	Devices int
	Due     int64 // Unix nanoseconds
	Expires int64
}

func newReservation(r *structs.Reservation) *Reservation {
	return &Reservation{
		RequestName: RequestName{r.Namespace, r.JobID, r.Group}, NodeID: r.NodeID, Amount: Vector{CPU: r.CPU, MemoryMB: r.MemoryMB, DiskMB: r.DiskMB},
		Cores: r.Cores, Devices: r.Devices, Due: r.DueAt, Expires: r.ExpiresAt,
	}
}

// Taker is the job that requests room of a node: reservations of others bind it, unless its work
// ends before the reserved room is due.
type Taker struct {
	RequestName
	Ends int64 // Unix nanoseconds; 0: nobody knows
	// Entitled: it takes what its owner is guaranteed; no request's reservation binds it. Recognised: the submission check recognised it, so
	// that it ranks above workflows' reservations that are pending, but for what those keep that were posted, in place of what they have lost.
	Entitled, Recognised bool
	// Workflow names the workflow whose reservation it uses, and Borrows the one from whose reservation it may borrow, or of which it may use what idles
	// without a claim, as it is of its run; "": none.
	Workflow, Borrows string
}

// Free reports whether a reservation does not bind a taker; nobody is bound by no reservation.
func (h *Reservation) Free(t *Taker) bool {
	return h == nil || t == nil || h.RequestName == t.RequestName || t.Entitled || (t.Ends > 0 && t.Ends <= h.Due)
}

// Reserve keeps room on a node, in place of what was reserved there before.
func (e *Edit) Reserve(r *structs.Reservation) {
	PutReservation(e, newReservation(r))
}

// PutReservation keeps room on a node as a reservation states that a World has already.
func PutReservation(e *Edit, h *Reservation) {
	StateToChange(e, h.NodeID).Reservation = h
	tree.Put(e.tok, &e.w.reservations, h.NodeID, h)
}

// Unreserve ends the reservation of a node, if there is one.
func (e *Edit) Unreserve(nodeID string) {
	if tree.Delete(e.tok, &e.w.reservations, nodeID) {
		StateToChange(e, nodeID).Reservation = nil
	}
}

// KeepReservations takes out of a plan what it reserves of nodes as its job has it reserved already and the plan would end: as the end of a reservation
// has its own request decided again, that would go on for ever.
func KeepReservations(w *World, p *structs.Plan) {
	p.Reserve = slices.DeleteFunc(p.Reserve, func(r *structs.Reservation) bool {
		h, found := w.reservations.Get(r.NodeID)
		at := slices.Index(p.Unreserve, r.NodeID)
		same := found && at >= 0 && h.RequestName == newReservation(r).RequestName && min(h.Expires, h.Due) > r.MadeAt
		if same {
			p.Unreserve = slices.Delete(p.Unreserve, at, at+1)
		}
		return same
	})
}
