package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// askName names an ask: a group of a job.
type askName struct{ namespace, job, group string }

// hold is a reservation as the World keeps it. Never changed once made.
type hold struct {
	askName
	nodeID  string
	amount  Vector
	cores   int
	devices int
	due     int64 // Unix nanoseconds
	expires int64
}

func newHold(r *structs.Reservation) *hold {
	return &hold{
		askName: askName{r.Namespace, r.JobID, r.Group}, nodeID: r.NodeID, amount: Vector{r.CPU, r.MemoryMB, r.DiskMB},
		cores: r.Cores, devices: r.Devices, due: r.DueAt, expires: r.ExpiresAt,
	}
}

// taker is who asks a node for room: reservations of others bind it, unless its work
// ends before the reserved room is due.
type taker struct {
	askName
	ends int64 // Unix nanoseconds; 0: nobody knows
}

// free tells whether a hold does not bind a taker; nobody is bound by no hold.
func (h *hold) free(t *taker) bool {
	return h == nil || t == nil || h.askName == t.askName || (t.ends > 0 && t.ends <= h.due)
}

// Reserve keeps room on a node, in place of what was reserved there before.
func (e *Edit) Reserve(r *structs.Reservation) {
	e.hold(newHold(r))
}

func (e *Edit) hold(h *hold) {
	e.state(h.nodeID).hold = h
	e.w.holds.Put(e.tok, h.nodeID, h)
}

// Unreserve ends the reservation of a node, if there is one.
func (e *Edit) Unreserve(nodeID string) {
	if e.w.holds.Delete(e.tok, nodeID) {
		e.state(nodeID).hold = nil
	}
}

// reservedLook bounds the nodes of each set that are looked at for a reservation:
// those with the most room.
const reservedLook = 1000

// reservedLate is for how long after it was due a reservation may not have served its
// ask: what was in the way is given its time to end.
const reservedLate = 30 * time.Second

// serves tells whether a reservation may go on for what its group misses: its time is not over, and its node can take work.
func (s *scheduler) serves(h *hold) bool {
	_, ever := s.in.Config.ReserveAfter()
	n, known := s.edit.node(h.nodeID)
	return ever && min(h.expires, h.due+int64(reservedLate)) > s.in.Now.UnixNano() && known && n.node != nil && n.node.Ready()
}

// lapse has the job's reservations that are over, or for groups that miss nothing, be in nobody's way: reserve ends them in this
// very plan, and others of the job's groups must not have somebody leave for their sake.
func (s *scheduler) lapse(groups []*groupWork) {
	for id, h := range s.w.holdsTree().All {
		if h.namespace != s.eval.Namespace || h.job != s.eval.JobID {
			continue
		}
		misses := func(w *groupWork) bool { return w.group.Name == h.group && len(w.place)+len(w.update) > 0 }
		if !s.serves(h) || !slices.ContainsFunc(groups, misses) {
			s.edit.Unreserve(id)
		}
	}
}

// reserve ends the job's reservations that are not wanted any more, and makes new
// ones for asks that have waited too long.
func (s *scheduler) reserve() {
	missing := map[string]int{}
	for group := range s.failed { // each has its own place: the order cannot show
		missing[group] = s.queued[group]
	}
	after, ever := s.in.Config.ReserveAfter()
	for id, h := range s.w.holdsTree().All {
		if h.namespace != s.eval.Namespace || h.job != s.eval.JobID {
			continue
		}
		_, held := s.edit.base().holdsTree().Get(id) // what was placed there has ended it
		if held && missing[h.group] > 0 && s.serves(h) {
			missing[h.group]--
			continue
		}
		s.plan.Unreserve = append(s.plan.Unreserve, id)
		s.edit.Unreserve(id)
	}
	if !ever || s.in.Job == nil || s.eval.Status != structs.EvalStatusBlocked && s.eval.TriggeredBy != structs.EvalTriggerQueuedAllocs ||
		s.in.Now.Sub(time.Unix(0, s.eval.CreateTime)) < after {
		return
	}
	for _, g := range s.in.Job.TaskGroups {
		if find := s.found(g.Name).search; missing[g.Name] > 0 && find != nil {
			s.reserveFor(find, missing[g.Name])
		}
	}
}

// lookAgain is when a blocked evaluation is to be decided again though nothing came
// free: when its ask may reserve room, then when its first reservation ends. Zero: never.
func (s *scheduler) lookAgain(blocked *structs.Evaluation) time.Time {
	after, ever := s.in.Config.ReserveAfter()
	if !ever {
		return time.Time{}
	}
	if at := time.Unix(0, blocked.CreateTime).Add(after); at.After(s.in.Now) {
		return at.UTC()
	}
	var first int64
	nodes := 0
	ends := func(at int64) {
		if first == 0 || at < first {
			first = at
		}
	}
	for _, h := range s.edit.base().holdsTree().All {
		if h.namespace == s.eval.Namespace && h.job == s.eval.JobID {
			ends(min(h.expires, h.due+int64(reservedLate)))
			nodes++
		}
	}
	for _, r := range s.plan.Reserve {
		ends(min(r.ExpiresAt, r.DueAt+int64(reservedLate)))
		nodes++
	}
	if nodes > 0 {
		blocked.StatusDescription = fmt.Sprintf("waits with room reserved on %d nodes", nodes)
	}
	if first == 0 {
		blocked.StatusDescription = "waits; no room is reserved, as nothing that is in the way ends by a max_run_duration"
		return s.in.Now.Add(max(after, time.Second)).UTC()
	}
	return time.Unix(0, first).UTC()
}

// spotInTime is a node on which there will be room.
type spotInTime struct {
	node *nodeState
	at   int64
	// holds is for how many there will be room when all that has a time limit has ended.
	holds int64
}

// reserveFor makes up to n reservations, where room comes soonest; for a gang, where
// there will be room for all of it.
func (s *scheduler) reserveFor(search *search, n int) {
	gang := gangsOf(s.in.Job)[search.f.group.Name]
	var spots []spotInTime
	taken := map[string]bool{}
	for _, r := range s.plan.Reserve {
		taken[r.NodeID] = true
	}
	look := func(node *nodeState) {
		node, _ = s.edit.node(node.id) // a gang's search was on an edit of its own
		if node.hold != nil || taken[node.id] || search.f.alone(node.node) != "" || search.refused(node.node) != "" {
			return
		}
		// A gang needs what is free now as well: others must not take it meanwhile.
		if spot, comes := search.roomAt(node, s.in.Now.UnixNano(), gang != nil); comes {
			spots = append(spots, spot)
		}
	}
	if s.in.Job.PerNode() {
		for _, id := range s.lacking[search.f.group.Name] {
			if node, known := s.edit.node(id); known && node.node != nil && node.node.Ready() {
				look(node)
			}
		}
	} else {
		for _, c := range search.sets {
			search.mostFirst(c, reservedLook, look)
		}
	}
	slices.SortFunc(spots, func(a, b spotInTime) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.node.id, b.node.id))
	})
	if gang != nil {
		spots = s.spotsOfGang(gang, search.f.group, spots, n)
	}
	spots = spots[:min(n, len(spots))]
	if gang != nil { // all of it starts together: until then others may use what is free already
		for i := range spots {
			spots[i].at = spots[len(spots)-1].at
		}
	}
	a := search.ask
	for _, spot := range spots {
		r := &structs.Reservation{
			NodeID: spot.node.id, Namespace: s.in.Job.Namespace, JobID: s.in.Job.ID, Group: a.group.Name,
			CPU: a.amount.CPU, MemoryMB: a.amount.MemoryMB, DiskMB: a.amount.DiskMB, Devices: int(a.need[dimGPUs]),
			Cores: int(a.need[dimCores]), MadeAt: s.in.Now.UnixNano(), DueAt: spot.at,
			ExpiresAt: s.in.Now.Add(s.in.Config.ReserveTTL()).UnixNano(),
		}
		r.CPU += int64(r.Cores) * spot.node.has.mhzPerCore
		s.plan.Reserve = append(s.plan.Reserve, r)
	}
}

// spotsOfGang gives those of the spots, which come in the order of their time, that a group
// of a gang, of which n are missing, is kept room on: those under the cell that it requires
// where it can start first. None, if there will not be room for as many as start together:
// then they would only keep others out.
func (s *scheduler) spotsOfGang(g *gang, group *structs.TaskGroup, spots []spotInTime, n int) []spotInTime {
	need := int64(n)
	for i := range g.groups {
		if g.groups[i].group == group {
			need = min(need, int64(g.groups[i].min))
		}
	}
	under := s.underOf(g)
	only, bound := "", false // where other groups of it, or others of this one, have reserved room
	mine := func(nodeID string) {
		if node, known := s.edit.node(nodeID); known && node.node != nil && !bound {
			only, bound = under(node.node), true
		}
	}
	for id, h := range s.edit.base().holdsTree().All {
		if h.namespace == s.in.Job.Namespace && h.job == s.in.Job.ID {
			need--
			mine(id)
		}
	}
	for _, r := range s.plan.Reserve {
		mine(r.NodeID)
	}
	room, of := map[string]int64{}, map[string][]spotInTime{}
	for _, spot := range spots {
		cell := under(spot.node.node)
		if bound && cell != only {
			continue
		}
		room[cell] += spot.holds
		of[cell] = append(of[cell], spot)
		if room[cell] >= need { // the first that holds all of it
			return of[cell]
		}
	}
	return nil
}

// underOf tells under which cell of the level that a gang requires a node is; all are under
// one if it requires none.
func (s *scheduler) underOf(g *gang) func(*structs.Node) string {
	if g.topology == nil || !g.topology.Required {
		return func(*structs.Node) string { return "" }
	}
	if level, _, site := s.siteLevel(g.topology.Level); site {
		return func(n *structs.Node) string { return n.Meta[level.Meta] }
	}
	return func(n *structs.Node) string { return n.ID }
}

// roomAt is when a node has room for what is searched for, if what runs there ends at its
// time limit, and for how many of it then; false: what has no limit is in the way, or, unless
// free is set, it has room now. What a node would give says so, not sums: of devices it
// matters which are free.
func (s *search) roomAt(n *nodeState, now int64, free bool) (spotInTime, bool) {
	uses := slices.DeleteFunc(slices.Clone(n.uses), func(u *use) bool { return u.ends == 0 })
	slices.SortFunc(uses, func(a, b *use) int { return cmp.Or(cmp.Compare(a.ends, b.ends), strings.Compare(a.id, b.id)) })
	later := n.own(&token{})
	room := func() (grant, bool) {
		g, lacks := s.ask.grant(later, s.f.m, &random{})
		return g, lacks == ""
	}
	spot, comes := spotInTime{node: n, at: now}, false
	if free {
		_, comes = room()
	}
	for _, u := range uses {
		later.give(u)
		if comes {
			continue
		}
		if _, comes = room(); comes {
			spot.at = max(now, u.ends)
		}
	}
	for comes && spot.holds < maxSpotHolds {
		g, more := room()
		if !more {
			break
		}
		spot.holds++
		if s.ask.plain { // the sum says it all
			later.used = later.used.plus(s.ask.amount)
			continue
		}
		later.take(g.use)
	}
	return spot, comes
}

// maxSpotHolds bounds how many of a gang are counted on one node.
const maxSpotHolds = 1024
