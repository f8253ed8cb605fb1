package judge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Judge finds what of a plan holds on this edit, and applies that to it. A node
// that is not ready, or lacks room, a port, a core or a device for what the plan
// places there, refuses all of it: those placements, and the stops that they
// replace, are left out of valid, and the node is named. What counted on the room
// of such a stop is refused as well. A preemption that would leave a gang below its
// minimum is refused, too. reason is why the first one refused. A plan that is
// AllAtOnce holds whole or not at all.
//
// The plan's evaluations hold only if everything does, except delayed follow-ups:
// stops that hold name them.
func Judge(e *world.Edit, plan *structs.Plan) (valid *structs.JudgedPlan, refusedNodes []string, reason string) {
	plan = takenOnce(plan)
	world.ReturnDevices(e)
	j := judgement{e: e, plan: plan}
	j.refuseOrphans()
	j.unreserve()
	end := j.keepCells()
	j.stop()
	j.mayReclaim()
	j.update()
	j.place()
	j.refuseMixed()
	end()
	j.undoRefused()
	if len(j.refusedNodes) > 0 && plan.AllAtOnce {
		j.refuseAll()
	}
	j.reserve()
	j.reserveWorkflow()
	return j.result(), j.refusedNodes, j.reason
}

// judgement is one plan on its way through Judge.
type judgement struct {
	e            *world.Edit
	plan         *structs.Plan
	freed        map[string]*world.Usage  // what the plan's stops released, by allocation
	taken        []string                 // allocations that were placed
	byNode       map[string][]instanceRef // see on
	refused      map[string]bool          // by node
	refusedNodes []string
	undone       map[string]bool               // refused nodes on which nothing of the plan is left
	stops        map[string]*structs.AllocStop // by allocation; only once a node has refused
	stopsOn      map[string][]string           // allocations by node; likewise
	moved        map[string]string             // the node that an allocation's successor goes to; likewise
	back         map[string]bool               // allocations whose stops are kept back
	updated      []*world.Usage                // what in-place updates used before
	updates      []*structs.AllocInPlace
	lowered      []loweredUse
	reason       string
	unreserved   []*world.Reservation
	reserved     []*structs.Reservation
	victims      []*structs.AllocStop // that are taken back and had not ended before
	reclaims     map[string][]string  // allocations taken back, by the newcomer that they are for
	gangs        map[world.GangName]*takenGang
	gangList     []*takenGang      // in the order of the plan
	ended        map[string]bool   // allocations that were to be taken back
	protected    map[string]bool   // allocations that were to be taken back and use bound cells
	home         map[string]string // see homes
	stray        bool              // something is taken back for nobody
	workflow     *structs.WorkflowReservation
	takenBack    []*world.Owner // of what is reclaimed for a stage that starts
}

func (j *judgement) refuse(node, why string) {
	if j.refused[node] {
		return
	}
	world.PutInto(&j.refused, node, true)
	j.refusedNodes = append(j.refusedNodes, node)
	if j.reason == "" {
		j.reason = fmt.Sprintf("node %s: %s", structs.ShortID(node), why)
	}
}

// refuseOrphans refuses new members of a gang if none of the members that they were placed to join runs any more: another plan may
// have preempted all of them.
func (j *judgement) refuseOrphans() {
	for _, gang := range j.plan.Beside {
		if slices.ContainsFunc(gang, func(id string) bool {
			_, there := world.Usages(world.Base(j.e)).Get(id)
			return there
		}) {
			continue
		}
		for _, batch := range j.plan.Place {
			for i := range batch.Instances {
				if batch.Gang != nil {
					j.refuse(batch.Nodes[batch.Instances[i].Node].ID, "the rest of its gang is gone")
				}
			}
		}
	}
}

// unreserve ends the job's reservations that the plan ends.
func (j *judgement) unreserve() {
	for _, id := range j.plan.Unreserve {
		if h, found := world.Reservations(world.Base(j.e)).Get(id); found && h.Namespace == j.plan.Namespace && h.Job == j.plan.JobID {
			j.e.Unreserve(id)
			j.unreserved = append(j.unreserved, h)
		}
	}
}

// reserve puts back the reservations of what was refused, and makes new ones where nobody else was
// faster. One that does not come about is tried again by its request.
func (j *judgement) reserve() {
	whole := j.plan.AllAtOnce && len(j.refusedNodes) > 0
	j.unreserved = slices.DeleteFunc(j.unreserved, func(h *world.Reservation) bool {
		back := j.refused[h.NodeID] || whole
		if back {
			world.PutReservation(j.e, h)
		}
		return back
	})
	if whole {
		return
	}
	for _, r := range j.plan.Reserve {
		n, known := world.StateOf(j.e, r.NodeID)
		if known && n.Node != nil && n.Node.Ready() && n.Reservation == nil {
			j.e.Reserve(r)
			j.reserved = append(j.reserved, r)
		}
	}
}

// stop frees what the plan stops: a plan may count on its own stops.
func (j *judgement) stop() {
	if len(j.plan.Stop) == 0 {
		return
	}
	j.freed = make(map[string]*world.Usage, len(j.plan.Stop))
	j.reclaims, j.ended, j.gangs = map[string][]string{}, map[string]bool{}, map[world.GangName]*takenGang{}
	j.protect() // before anything is stopped: a gang may be stopped whole
	for _, s := range j.plan.Stop {
		if s.KeepRunning {
			continue
		}
		if s.PreemptedBy != "" {
			j.reclaim(s)
			continue
		}
		if u := world.Release(j.e, s.AllocID); u != nil {
			if j.freed[s.AllocID] = u; s.DesiredStatus == structs.AllocDesiredSuspend {
				world.Take(j.e, u.Suspended())
			}
			if s.Reclaim != "" {
				j.takenBack = append(j.takenBack, u.Owner)
			}
		}
	}
}

// update tries the in-place updates that change what an allocation holds.
func (j *judgement) update() {
	for _, up := range j.plan.Update {
		old, found := world.Usages(world.Base(j.e)).Get(up.AllocID)
		if !found {
			continue // it has ended meanwhile: there is nothing to update
		}
		if up.ClassTo != "" {
			j.lower(up, old)
			continue
		}
		if up.Resources != nil {
			u := world.NewUse(up.AllocID, old.NodeID, world.NewOwner(old.Owner.RequestName, up.Resources), up.Resources, up.Created)
			if u.Requeues = old.Requeues; !up.Resume {
				u.Ends = old.Ends
			}
			world.Release(j.e, up.AllocID)
			s := world.StateToChange(j.e, old.NodeID)
			if s.Capacity == nil {
				world.Take(j.e, old)
				j.refuse(old.NodeID, "it is not known any more")
				continue
			}
			what := ""
			if up.Resume { // as it was decided: others may have got since what was free beside reservations
				what = s.LacksUse(u, &world.Taker{RequestName: old.Owner.RequestName, Borrows: old.Owner.Terms.BorrowsFrom()})
			} else if !hasAll(old, u) {
				what = s.LacksUse(u.Beyond(old), nil)
			}
			if what == "" && u.Owner.Terms.BorrowsFrom() != old.Owner.Terms.BorrowsFrom() { // it is to stay by a claim of its own
				what = s.LacksUse(u, &world.Taker{RequestName: u.Owner.RequestName, Entitled: true, Recognised: true})
			}
			if what == "" && (!old.PerNode() || !u.PerNode()) { // what it has already is nobody's to own
				what = world.ClaimLacks(j.e, u)
			}
			if what == "" && (up.Resume || u.Owner.Terms.BorrowsFrom() != old.Owner.Terms.BorrowsFrom()) { // else it keeps those that it has
				what = world.LicenseEdit{E: j.e}.Lacks(u, true)
			}
			if what != "" {
				world.Take(j.e, old)
				j.refuse(old.NodeID, what)
				continue
			}
			world.Take(j.e, u)
			j.updated = append(j.updated, old)
		}
		j.updates = append(j.updates, up)
	}
}

// hasAll reports whether what an allocation uses has already all that it is to use: that its node has no room for, as it has become smaller, is no reason against
// another claim.
func hasAll(old, is *world.Usage) bool {
	return is.Amount == old.Amount && slices.Equal(is.Cores, old.Cores) && slices.Equal(is.Ports, old.Ports) && slices.Equal(is.Devices, old.Devices)
}

// instanceRef is one instance of a plan.
type instanceRef struct{ batch, instance int }

// place tries the placements node by node, in the order in which the plan names them.
func (j *judgement) place() {
	common := make([]*world.Usage, len(j.plan.Place))
	for b, batch := range j.plan.Place {
		common[b] = world.NewUse("", "", world.NewOwner(world.RequestName{Namespace: batch.Namespace, Job: batch.JobID, Group: batch.Group}, batch.Resources), batch.Resources, batch.CreateTime)
	}
	if p := j.plan.Place; len(p) == 1 && len(p[0].Instances) == 1 { // most plans of a queue pass
		if node := p[0].Nodes[p[0].Instances[0].Node].ID; !j.refused[node] {
			j.placeOn(node, []instanceRef{{}}, common)
		}
		return
	}
	seen := map[string]bool{}
	for _, batch := range j.plan.Place {
		for i := range batch.Instances {
			node := batch.Nodes[batch.Instances[i].Node].ID
			if seen[node] {
				continue
			}
			if seen[node] = true; !j.refused[node] {
				j.placeOn(node, j.on(node), common)
			}
		}
	}
}

// on returns the instances of the plan that are to be on a node, in its order.
func (j *judgement) on(node string) []instanceRef {
	if j.byNode == nil {
		j.byNode = map[string][]instanceRef{}
		for b, batch := range j.plan.Place {
			for i := range batch.Instances {
				on := batch.Nodes[batch.Instances[i].Node].ID
				j.byNode[on] = append(j.byNode[on], instanceRef{b, i})
			}
		}
	}
	return j.byNode[node]
}

func (j *judgement) placeOn(node string, instances []instanceRef, common []*world.Usage) {
	s, found := world.StateOf(j.e, node)
	if !found || s.Node == nil {
		j.refuse(node, "it is not known any more")
		return
	}
	if !s.Node.Ready() {
		why := "status " + s.Node.Status + ", " + s.Node.SchedulingEligibility
		if s.Node.DiskFull != "" {
			why += ", its disk is full"
		}
		j.refuse(node, "it takes no new work ("+why+")")
		return
	}
	var placed []string
	for _, at := range instances {
		batch := j.plan.Place[at.batch]
		id := structs.DeriveID(batch.Seed, uint64(batch.Instances[at.instance].Ordinal))
		u := world.InstanceUse(batch, at.instance, id, common[at.batch])
		s, _ = world.StateOf(j.e, node)
		by := j.taker(u)
		if what := cmp.Or(j.lacks(s, u, by), world.ClaimLacks(j.e, u), world.LicenseEdit{E: j.e}.Lacks(u, by.Recognised)); what != "" {
			for _, id := range placed {
				world.Release(j.e, id)
			}
			j.refuse(node, what)
			return
		}
		world.Take(j.e, u)
		placed = append(placed, id)
	}
	j.taken = append(j.taken, placed...)
}

// taker returns who takes a usage.
func (j *judgement) taker(u *world.Usage) *world.Taker {
	t := &world.Taker{
		RequestName: u.Owner.RequestName, Ends: u.Ends, Entitled: u.Guaranteed(), Recognised: standing.Recognised(world.Base(j.e), u),
		Borrows: u.Owner.Terms.BorrowsFrom(),
	}
	if u.Owner.Terms.Claim == structs.ClaimWorkflow {
		t.Workflow = u.Owner.Terms.WorkflowKey()
	}
	return t
}

// undoRefused takes back what the plan does on nodes that refused.
func (j *judgement) undoRefused() {
	if len(j.refusedNodes) == 0 && !j.stray {
		return
	}
	j.stops, j.stopsOn = map[string]*structs.AllocStop{}, map[string][]string{}
	j.back, j.undone, j.moved = map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, batch := range j.plan.Place {
		for i := range batch.Instances {
			if old := batch.Instances[i].PreviousAllocation; old != "" {
				j.moved[old] = batch.Nodes[batch.Instances[i].Node].ID
			}
		}
	}
	for _, s := range j.plan.Stop {
		if s.KeepRunning || s.ClientStatus != "" {
			continue // it ends whatever becomes of the rest: its node is gone
		}
		j.stops[s.AllocID] = s
		if u := j.freed[s.AllocID]; u != nil && s.PreemptedBy == "" {
			j.stopsOn[u.NodeID] = append(j.stopsOn[u.NodeID], s.AllocID)
		}
	}
	j.keepReclaimed("")
	for i := 0; ; {
		for ; i < len(j.refusedNodes); i++ { // undoing one may add others
			j.undo(j.refusedNodes[i])
		}
		if j.refuseUnlicensed(); i < len(j.refusedNodes) {
			continue
		}
		if j.refuseParted(); i == len(j.refusedNodes) { // no more of them: the nodes are finite
			return
		}
	}
}

// undo takes back what the plan does on a node that refused: its placements, and the
// stops that were to make room for them or that they stand for.
func (j *judgement) undo(node string) {
	if j.undone[node] {
		return
	}
	j.undone[node] = true
	for _, at := range j.on(node) {
		batch := j.plan.Place[at.batch]
		world.Release(j.e, structs.DeriveID(batch.Seed, uint64(batch.Instances[at.instance].Ordinal)))
	}
	j.undoUpdates(node)
	j.keepReclaimed(node)
	for _, id := range j.stopsOn[node] {
		if to, moves := j.moved[id]; moves && !j.refused[to] {
			continue // its successor holds elsewhere: two of one instance must not run
		}
		j.keepBack(id)
	}
	for _, at := range j.on(node) {
		j.keepBack(j.plan.Place[at.batch].Instances[at.instance].PreviousAllocation)
	}
}

// undoUpdates restores the usages that the plan changed in place on a node.
func (j *judgement) undoUpdates(node string) {
	before := map[string]bool{}
	for _, old := range j.updated {
		if old.NodeID == node {
			before[old.ID] = true
			world.Take(j.e, old)
		}
	}
	for _, l := range j.lowered {
		if home, placed := j.homeOf(l.up.ClassTo); !placed || home == node {
			before[l.up.AllocID] = true
			world.Take(j.e, l.old)
		}
	}
	j.updates = slices.DeleteFunc(j.updates, func(up *structs.AllocInPlace) bool { return before[up.AllocID] })
}

// keepBack lets an allocation run on that the plan was to stop. If its room has been
// given away, its node refuses what was placed there.
func (j *judgement) keepBack(id string) {
	if j.stops[id] == nil || j.back[id] {
		return
	}
	j.back[id] = true
	u := j.freed[id]
	if u == nil {
		return // it had ended already
	}
	if g, some := u.Owner.Gang(); some && j.gangs[g] != nil {
		j.gangs[g].moved = true
	}
	world.Release(j.e, id) // what it would keep while suspended
	if s := world.StateToChange(j.e, u.NodeID); s.Capacity != nil && !j.refused[u.NodeID] {
		var by *world.Taker
		if len(j.on(u.NodeID)) > 0 { // what was placed there may have counted on its room, and would use what is reserved for others
			by = j.taker(u)
		}
		if what := s.LacksUse(u, by); what != "" {
			j.refuse(u.NodeID, what)
			j.undo(u.NodeID)
		}
	}
	world.Take(j.e, u)
}

// refuseAll undoes everything.
func (j *judgement) refuseAll() {
	for _, id := range j.taken {
		world.Release(j.e, id)
	}
	for _, u := range j.updated {
		world.Take(j.e, u)
	}
	for _, l := range j.lowered {
		world.Take(j.e, l.old)
	}
	for _, s := range j.plan.Stop {
		if u := j.freed[s.AllocID]; u != nil {
			world.Take(j.e, u)
		}
	}
}

// result is what holds.
func (j *judgement) result() *structs.JudgedPlan {
	valid := &structs.JudgedPlan{EvalID: j.plan.EvalID}
	whole := len(j.refusedNodes) == 0
	if !whole && j.plan.AllAtOnce {
		return valid
	}
	valid.Update, valid.Reserve, valid.Workflow, valid.Advance = j.updates, j.reserved, j.workflow, j.plan.Advance
	for _, h := range j.unreserved {
		valid.Unreserve = append(valid.Unreserve, h.NodeID)
	}
	for _, s := range j.plan.Stop {
		if s.KeepRunning || !j.back[s.AllocID] && !j.ended[s.AllocID] {
			valid.Stop = append(valid.Stop, s)
		}
	}
	for _, batch := range j.plan.Place {
		if kept := j.kept(batch); kept != nil {
			valid.Place = append(valid.Place, kept)
		}
	}
	for _, ev := range j.plan.Evals {
		if is, stands := j.reportsReclaim(ev); is {
			if stands {
				valid.Evals = append(valid.Evals, ev)
			}
			continue
		}
		if whole || (ev.Status == structs.EvalStatusPending && !ev.WaitUntil.IsZero()) {
			valid.Evals = append(valid.Evals, ev)
		}
	}
	if whole {
		valid.Requests = j.plan.Requests
	}
	return valid
}

// kept is the part of a batch that holds; nil if nothing does. Ordinals stay as
// they were decided, and with them the allocations' IDs.
func (j *judgement) kept(batch *structs.PlacementBatch) *structs.PlacementBatch {
	refused := func(in structs.Instance) bool { return j.refused[batch.Nodes[in.Node].ID] }
	if !slices.ContainsFunc(batch.Instances, refused) {
		return batch
	}
	c := *batch
	c.Instances = slices.DeleteFunc(slices.Clone(batch.Instances), refused)
	if len(c.Instances) == 0 {
		return nil
	}
	return &c
}
