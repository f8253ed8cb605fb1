package plan

import "github.com/nomadish/nomadish/structs"

// Sizes in bytes of what a log entry contains, as msgpack encodes it, on the high side.
// TestSizes compares them with the encoding.
const (
	sizePlan     = 256
	sizeBatch    = 1024
	sizeTask     = 320
	sizeNode     = 96
	sizeGang     = 48
	sizeHost     = 3
	sizeInstance = 48
	sizePort     = 96
	sizeTracker  = 64
	sizeEvent    = 192
	sizeStop     = 384
	sizeUpdate   = 256
	sizeEval     = 1024
	sizeReserve  = 256
	sizeMetric   = 768
	sizeRequest  = 160
	sizeClass    = 48
	sizeMove     = 64
)

// part is what of a plan goes into one log entry.
type part struct {
	*judged
	accepted *structs.JudgedPlan
	last     bool // nothing of the plan comes after it
}

// pack makes log entries of judged plans, in their order: as many in one as fit into
// limit bytes. A plan too large for one is cut, unless it is AllAtOnce: that one has
// an entry of its own, however large. Of a plan that was refused in part the entry states what
// is missing of requests that wait.
func pack(plans []*judged, limit int, known facts) [][]part {
	var entries [][]part
	room := -1
	add := func(p part, size int) {
		if size > room {
			entries, room = append(entries, nil), limit
		}
		at := len(entries) - 1
		entries[at] = append(entries[at], p)
		room = max(0, room-size)
	}
	for _, j := range plans {
		if size := sizeOf(j.accepted); size <= limit || j.plan.AllAtOnce {
			if len(j.refused) > 0 {
				j.accepted.Requests = missingOf(j, known).last(j.accepted.Requests)
				size = sizeOf(j.accepted)
			}
			add(part{judged: j, accepted: j.accepted, last: true}, size)
			continue
		}
		pieces := cut(j, limit, known)
		for i, piece := range pieces {
			add(part{judged: j, accepted: piece, last: i == len(pieces)-1}, sizeOf(piece))
		}
	}
	return entries
}

func sizeOf(p *structs.JudgedPlan) int {
	size := sizePlan
	for _, s := range p.Stop {
		size += sizeOfStop(s)
	}
	for _, u := range p.Update {
		size += sizeOfUpdate(u)
	}
	for _, b := range p.Place {
		size += sizeOfBatch(b) + len(b.Nodes)*sizeNode
		for i := range b.Instances {
			size += sizeOfInstance(&b.Instances[i])
		}
	}
	for _, r := range p.Reserve {
		size += sizeOfReservation(r)
	}
	if p.Workflow != nil {
		size += sizeReserve * (1 + len(p.Workflow.Parts))
	}
	if p.Advance != nil {
		size += sizePlan + sizeMove*len(p.Advance.Jobs)
	}
	return size + sizeOfIDs(p.Unreserve) + sizeOfRequests(p.Requests) + sizeOfEvals(p.Evals)
}

func sizeOfStop(s *structs.AllocStop) int { return sizeStop + len(s.DesiredDescription) }

func sizeOfRequests(requests []*structs.RequestUpdate) (size int) {
	for _, u := range requests {
		size += sizeRequest + len(u.Namespace) + len(u.JobID) + len(u.Group)
	}
	return size
}

func sizeOfIDs(ids []string) (size int) {
	for _, id := range ids {
		size += 3 + len(id)
	}
	return size
}

func sizeOfReservation(r *structs.Reservation) int {
	return sizeReserve + len(r.NodeID) + len(r.Namespace) + len(r.JobID) + len(r.Group)
}

func sizeOfUpdate(u *structs.AllocInPlace) int {
	size := sizeUpdate
	if u.Resources != nil {
		size += sizeBatch + sizeTask*len(u.Resources.Tasks)
	}
	return size
}

// sizeOfBatch is what a batch takes but its nodes and instances.
func sizeOfBatch(b *structs.PlacementBatch) int {
	size := sizeBatch + len(b.Namespace) + len(b.JobID) + len(b.Group)
	if b.Resources != nil {
		size += sizeTask * len(b.Resources.Tasks)
	}
	if b.Metrics != nil {
		size += sizeOfMetric(b.Metrics)
	}
	if b.Gang != nil {
		size += sizePort + sizeOfIDs(b.Gang.Hosts)
	}
	return size
}

func sizeOfMetric(m *structs.AllocMetric) int {
	return sizeMetric + sizeClass*(len(m.ClassFiltered)+len(m.ClassExhausted)+len(m.NodesAvailable)) +
		2*sizeNode*(len(m.ConstraintFiltered)+len(m.DimensionExhausted)+len(m.ScoreMetaData)+len(m.QuotaExhausted))
}

func sizeOfInstance(in *structs.Instance) int {
	size := sizeInstance + len(in.Ports)*sizePort + len(in.Networks)*4*sizePort + len(in.PreviousAllocation)
	for task, cores := range in.Cores { // order does not matter: a sum
		size += 2*len(task) + 48 + 3*len(cores)
	}
	for task, devices := range in.Devices { // order does not matter: a sum
		size += len(task) + 24
		for _, d := range devices {
			size += sizePort
			for _, id := range d.DeviceIDs {
				size += 3 + len(id)
			}
		}
	}
	if in.RescheduleTracker != nil {
		size += sizeTracker + sizeEvent*len(in.RescheduleTracker.Events)
	}
	return size
}

func sizeOfEvals(evals []*structs.Evaluation) int {
	size := 0
	for _, e := range evals {
		size += sizeEval + len(e.StatusDescription) + sizeClass*(len(e.ClassEligibility)+len(e.QueuedAllocations))
		for _, m := range e.FailedTGAllocs { // order does not matter: a sum
			size += sizeOfMetric(m)
		}
		if e.PlanAnnotations != nil {
			size += sizeMetric * len(e.PlanAnnotations.DesiredTGUpdates)
		}
	}
	return size
}
