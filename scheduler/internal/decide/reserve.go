package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reservedLook bounds the nodes of each set that are looked at for a reservation:
// those with the most room.
const reservedLook = 1000

// ReservedLate is for how long after it was due a reservation may not have served its request: what
// was in the way is given its time to end.
const ReservedLate = 30 * time.Second

// serves reports whether a reservation may go on for what its group misses: its time is not over,
// and its node can take work.
func (s *Scheduler) serves(h *world.Reservation) bool {
	_, ever := s.Input.Config.ReserveAfter()
	n, known := world.StateOf(s.Edit, h.NodeID)
	return ever && min(h.Expires, h.Due+int64(ReservedLate)) > s.Input.Now.UnixNano() && known && n.Node != nil && n.Node.Ready()
}

// lapse has the job's reservations that are over, or for groups that miss nothing, be in nobody's way: reserve ends them in this
// very plan, and others of the job's groups must not have somebody leave for their sake.
func (s *Scheduler) lapse(groups []*reconcile.GroupWork) {
	for id, h := range world.Reservations(s.World).All {
		if h.Namespace != s.eval.Namespace || h.Job != s.eval.JobID {
			continue
		}
		misses := func(w *reconcile.GroupWork) bool { return w.Group.Name == h.Group && len(w.Place)+len(w.Update) > 0 }
		if !s.serves(h) || !slices.ContainsFunc(groups, misses) {
			s.Edit.Unreserve(id)
		}
	}
}

// reserve ends the job's reservations that are not wanted any more, and makes new ones for requests
// that have waited too long.
func (s *Scheduler) reserve() {
	if len(s.failed) == 0 && world.Reservations(s.World).Len() == 0 {
		return
	}
	missing := map[string]int{}
	for group := range s.failed { // each has its own place: the order cannot show
		missing[group] = s.queued[group]
	}
	after, ever := s.Input.Config.ReserveAfter()
	for id, h := range world.Reservations(s.World).All {
		if h.Namespace != s.eval.Namespace || h.Job != s.eval.JobID {
			continue
		}
		_, reserved := world.Reservations(world.Base(s.Edit)).Get(id) // what was placed there has ended it
		if reserved && missing[h.Group] > 0 && s.serves(h) {
			missing[h.Group]--
			continue
		}
		s.plan.Unreserve = append(s.plan.Unreserve, id)
		s.Edit.Unreserve(id)
	}
	if !ever || s.Input.Job == nil || s.Input.EntitledOnly || s.eval.Status != structs.EvalStatusBlocked && s.eval.TriggeredBy != structs.EvalTriggerQueuedAllocs ||
		s.Input.Now.Sub(time.Unix(0, s.eval.CreateTime)) < after {
		return
	}
	for _, g := range s.Input.Job.TaskGroups {
		if find := s.found(g.Name).search; missing[g.Name] > 0 && find != nil {
			s.reserveFor(find, missing[g.Name])
		}
	}
	world.KeepReservations(s.World, s.plan)
}

// lookAgain is when a blocked evaluation is to be decided again though nothing came free: when its
// request may reserve room, then when its first reservation ends. Zero: never.
func (s *Scheduler) lookAgain(blocked *structs.Evaluation) time.Time {
	after, ever := s.Input.Config.ReserveAfter()
	if !ever {
		return time.Time{}
	}
	if at := time.Unix(0, blocked.CreateTime).Add(after); at.After(s.Input.Now) {
		return at.UTC()
	}
	var first int64
	nodes := 0
	ends := func(at int64) {
		if first == 0 || at < first {
			first = at
		}
	}
	for _, h := range world.Reservations(world.Base(s.Edit)).All {
		if h.Namespace == s.eval.Namespace && h.Job == s.eval.JobID {
			ends(min(h.Expires, h.Due+int64(ReservedLate)))
			nodes++
		}
	}
	for _, r := range s.plan.Reserve {
		ends(min(r.ExpiresAt, r.DueAt+int64(ReservedLate)))
		nodes++
	}
	if nodes > 0 {
		blocked.StatusDescription = fmt.Sprintf("waits with room reserved on %d nodes", nodes)
	}
	if first == 0 {
		blocked.StatusDescription = "waits; no room is reserved, as nothing that is in the way ends by a max_run_duration"
		return s.Input.Now.Add(s.Input.Config.ReserveAgain()).UTC()
	}
	return time.Unix(0, first).UTC()
}

// reserveFor makes up to n reservations, where room comes soonest; for a gang, where
// there will be room for all of it.
func (s *Scheduler) reserveFor(find *search.Search, n int) {
	gang := feasible.GangsOf(s.Input.Job)[find.Fit.Group.Name]
	var instances []search.Future
	taken := map[string]bool{}
	for _, r := range s.plan.Reserve {
		taken[r.NodeID] = true
	}
	look := func(node *world.NodeState) {
		node, _ = world.StateOf(s.Edit, node.ID) // a gang's search was on an edit of its own
		if node.Reservation != nil || taken[node.ID] || find.Fit.Alone(node.Node) != "" || find.Refused(node.Node) != "" {
			return
		}
		// A gang needs what is free now as well: others must not take it meanwhile.
		if instance, comes := find.RoomAt(node, s.Input.Now.UnixNano(), gang != nil); comes {
			instances = append(instances, instance)
		}
	}
	if s.Input.Job.PerNode() {
		for _, id := range s.lacking[find.Fit.Group.Name] {
			if node, known := world.StateOf(s.Edit, id); known && node.Node != nil && node.Node.Ready() {
				look(node)
			}
		}
	} else {
		for _, c := range find.Sets {
			find.MostFirst(c, reservedLook, look)
		}
	}
	slices.SortFunc(instances, func(a, b search.Future) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Node.ID, b.Node.ID))
	})
	if gang != nil {
		instances = domain.OfGang(s.Edit, s.Input, gang, find.Fit.Group, instances, n, s.plan.Reserve)
	}
	instances = instances[:min(n, len(instances))]
	if gang != nil { // all of it starts together: until then others may use what is free already
		for i := range instances {
			instances[i].At = instances[len(instances)-1].At
		}
	}
	a := find.Request
	for _, instance := range instances {
		r := &structs.Reservation{
			NodeID: instance.Node.ID, Namespace: s.Input.Job.Namespace, JobID: s.Input.Job.ID, Group: a.Group.Name,
			CPU: a.Amount.CPU, MemoryMB: a.Amount.MemoryMB, DiskMB: a.Amount.DiskMB, Devices: int(a.Need[world.DimGPUs]),
			Cores: int(a.Need[world.DimCores]), MadeAt: s.Input.Now.UnixNano(), DueAt: instance.At,
			ExpiresAt: s.Input.Now.Add(s.Input.Config.ReserveTTL()).UnixNano(),
		}
		r.CPU += int64(r.Cores) * instance.Node.Capacity.MHzPerCore
		s.plan.Reserve = append(s.plan.Reserve, r)
	}
}
