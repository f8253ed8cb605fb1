package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// How often, in log entries, what is dear is looked at.
const (
	hashEvery  = 1000
	orderEvery = 500
	wholeEvery = 8 // what an entry changed is compared to the last byte
)

// checks are the invariants:
//
//   - after every entry: what it placed is not too much for its nodes, and shares no port, core
//     or GPU with anything else; a gang is whole; no instance is there twice; nobody of the same
//     or a higher band was taken from, and what was taken is there for who took it; every
//     replica answers as the first did, and changes the same;
//   - whenever a leader declares nodes lost: neither prober that it says is silent was heard; what
//     is kept is neither given up nor replaced meanwhile; who is lost is found out in time;
//   - now and then: replicas that applied the same log have equal hashes; package check finds
//     the state in order; what was acknowledged is there;
//   - what namespaces own (tenants.go), in seeds where they own something: after every entry that could change it, of every
//     replica, Invariant S holds and the accounts agree with what runs; points and exchanged cells are conserved;
//   - what workflows reserve and do (workflow_checks.go), in seeds where there are some;
//   - whenever a snapshot is restored: it yields the state that it was taken of;
//   - when faults have stopped: nothing is left to be placed, nothing runs that is to be
//     stopped, and servers and clients agree on what runs.
type checks struct {
	*sim
	hashes map[uint64]string          // by index
	states map[uint64]*state.Snapshot // the last ones of those
	calm   bool
	// moved is the last entry that changed allocations of a job other than by a plan.
	moved   map[structs.NamespacedID]uint64
	touched []structs.NamespacedID // the jobs whose allocations the last entry changed
	bands   uint64                 // the last change of the configuration
	away    map[string]bool        // allocations that a plan took for unknown
	// onNode is the last entry that changed an allocation on a node.
	onNode map[string]uint64

	encoder           *codec.Encoder
	reported, encoded []byte // of the last entry's changes; room to be used again
}

func newChecks(s *sim) *checks {
	return &checks{
		sim: s, hashes: map[uint64]string{}, states: map[uint64]*state.Snapshot{}, moved: map[structs.NamespacedID]uint64{},
		onNode: map[string]uint64{}, away: map[string]bool{}, encoder: codec.NewEncoderBytes(new([]byte), canonical),
	}
}

// entry looks at what an entry did to the state of the replica that applied it first.
func (c *checks) entry(r *replica, index uint64, e *entry) {
	// Not its bytes: maps are encoded in any order. What it has changed is there instead, so that two runs of a seed part where they decide otherwise,
	// and not where that draws more or fewer numbers.
	c.notef(r.id, "entry %d of type %d, %d bytes: %s, changes %016x", index, e.kind, len(e.data), e.answer, e.changed)
	c.result.Kinds[e.kind]++
	switch p := e.payload.(type) {
	case *structs.NodeStatusEntry:
		switch p.Status {
		case structs.NodeStatusDown:
			c.result.Lost += len(p.NodeIDs)
		case structs.NodeStatusDisconnected:
			c.result.Away += len(p.NodeIDs)
			if p.KeptUntil > 0 {
				c.result.Kept += len(p.NodeIDs)
			}
		}
	case *structs.JobDeregisterEntry:
		if w := c.users.jobs[p.JobID]; w != nil && p.Purge {
			w.purged = true
		}
	case *structs.CollectEntry:
		for _, id := range p.Jobs {
			if w := c.users.jobs[id.ID]; w != nil {
				w.purged = true
			}
		}
	case *structs.SchedulerConfigEntry:
		c.bands = index
	case *structs.PlanCommit:
		for _, plan := range p.Plans {
			c.plan(r.store.Snapshot(), plan)
			c.tenants.plan(r.store.Snapshot(), plan)
		}
	}
	if _, plans := e.payload.(*structs.PlanCommit); !plans {
		for _, job := range c.touched {
			c.moved[job] = index
		}
	}
	c.tenants.entry(r, index, e)
	c.workflows.entry(r, index, e)
	if index%orderEvery == 0 {
		c.order(r)
		c.votes(r)
	}
}

// plan looks at what a judged plan did.
func (c *checks) plan(snap *state.Snapshot, p *structs.JudgedPlan) {
	nodes, jobs := map[string]bool{}, map[structs.NamespacedID]uint64{} // with the version that is placed
	placed := map[string]*structs.PlacementBatch{}
	for _, b := range p.Place {
		jobs[structs.NamespacedID{ID: b.JobID, Namespace: b.Namespace}] = b.JobVersion
		for i, in := range b.Instances {
			nodes[b.Nodes[in.Node].ID] = true
			placed[b.Allocation(i).ID] = b
			c.result.Placed++
		}
	}
	for _, u := range p.Update {
		if a := snap.Alloc(nil, u.AllocID); a != nil && u.Resources != nil {
			nodes[a.NodeID] = true
		}
	}
	for _, id := range sortedKeys(nodes) {
		if what := overcommitted(snap, id); what != "" {
			c.fail("after the plan of evaluation %s: %s", p.EvalID, what)
		}
	}
	for _, s := range p.Stop {
		if s.PreemptedBy != "" {
			c.reclaimed(snap, p, s, placed)
		}
		if a := snap.Alloc(nil, s.AllocID); s.ClientStatus == structs.AllocClientLost && a != nil && c.stays(snap, a) && knew(p, snap, a) {
			c.fail("%s is given up, whose node is kept (plan of evaluation %s):%s", s.AllocID, p.EvalID, notices(snap, structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}))
		}
		if s.ClientStatus == structs.AllocClientUnknown { // it may have been heard of again meanwhile
			c.away[s.AllocID] = true
			if a := snap.Alloc(nil, s.AllocID); a != nil && a.ClientStatus == structs.AllocClientUnknown {
				c.result.Unknown++
			}
		}
	}
	for id, version := range jobs { // order does not matter: they are of one job, mostly, and any is a failure
		c.instances(snap, id)
		if p.JudgedAt >= c.moved[id] {
			c.gangs(snap, id, version)
		}
	}
}

// overcommitted returns which resources of a node were allocated twice, by sums of its own; "": none.
func overcommitted(snap *state.Snapshot, nodeID string) string {
	node := snap.Node(nil, nodeID)
	if node == nil {
		return ""
	}
	var cpu, memory, disk int64
	shares, cores, ports := map[string]int{}, map[uint16]string{}, map[int]string{}
	for _, a := range snap.AllocsByNode(nil, nodeID) {
		if a.Terminal() || a.AllocatedResources == nil {
			continue
		}
		c, m, d, _ := a.AllocatedResources.Total()
		memory, disk = memory+m, disk+d
		if a.Suspended() {
			continue // it keeps its memory and its disk
		}
		cpu += c
		for _, p := range a.AllocatedResources.Shared.Ports {
			if other := ports[p.Value]; other != "" {
				return fmt.Sprintf("port %d of node %s is given to %s and to %s", p.Value, node.Name, other, a.ID)
			}
			ports[p.Value] = a.ID
		}
		for _, t := range a.AllocatedResources.Tasks { // order does not matter: any is a failure
			for _, core := range t.Cpu.ReservedCores {
				if other := cores[core]; other != "" {
					return fmt.Sprintf("core %d of node %s is given to %s and to %s", core, node.Name, other, a.ID)
				}
				cores[core] = a.ID
			}
			for _, dev := range t.Devices {
				for _, id := range dev.DeviceIDs {
					shares[id] += cmp.Or(dev.Share, structs.DeviceShareWhole)
				}
			}
		}
	}
	has := node.NodeResources
	switch {
	case cpu > has.Cpu.CpuShares:
		return fmt.Sprintf("node %s: %d MHz of %d are given away", node.Name, cpu, has.Cpu.CpuShares)
	case memory > has.Memory.MemoryMB:
		return fmt.Sprintf("node %s: %d MiB of %d are given away", node.Name, memory, has.Memory.MemoryMB)
	case disk > has.Disk.DiskMB:
		return fmt.Sprintf("node %s: %d MiB of disk of %d are given away", node.Name, disk, has.Disk.DiskMB)
	}
	for _, id := range sortedKeys(shares) {
		if shares[id] > structs.DeviceShareWhole {
			return fmt.Sprintf("GPU %s: %d thousandths are given away", id, shares[id])
		}
	}
	return ""
}

// borrowsBeside reports whether what a plan stops is an allocation, or another of its job, that borrows from the workflow of a winner: of a gang all leave.
func borrowsBeside(snap *state.Snapshot, st *structs.AllocStop, victim, winner *structs.Allocation) bool {
	a := snap.Alloc(nil, st.AllocID)
	return a != nil && a.Namespace == victim.Namespace && a.JobID == victim.JobID && termsOf(a).BorrowsFrom() != "" && ofWorkflow(winner, termsOf(a).BorrowsFrom())
}

// reclaimed looks at what was taken from one for another.
func (c *checks) reclaimed(snap *state.Snapshot, p *structs.JudgedPlan, s *structs.AllocStop, placed map[string]*structs.PlacementBatch) {
	victim := snap.Alloc(nil, s.AllocID)
	if victim == nil || victim.AllocatedResources == nil {
		return
	}
	winner := snap.Alloc(nil, s.PreemptedBy)
	if winner == nil && victim.PreemptedByAllocation != s.PreemptedBy {
		return // the commit did nothing of the plan, as its claims did not hold any more
	}
	if winner == nil {
		c.fail("%s was taken back for %s, which is not there (plan of evaluation %s)", s.AllocID, s.PreemptedBy, p.EvalID)
		return
	}
	if placed[s.PreemptedBy] == nil && !slices.ContainsFunc(p.Update, func(u *structs.AllocInPlace) bool { return u.AllocID == s.PreemptedBy }) {
		c.fail("%s was taken back for %s, which the plan does not place", s.AllocID, s.PreemptedBy)
	}
	was, is := victim.AllocatedResources.Shared.Terms, winner.AllocatedResources.Shared.Terms
	config := snap.SchedulerConfig(nil)
	if was == nil || is == nil || p.JudgedAt < c.bands {
		return
	}
	if is.Claim != "" && was.Claim == "" {
		return // a claim takes what has none, whatever its priority
	}
	if was.Claim == "" && slices.ContainsFunc(p.Stop, func(st *structs.AllocStop) bool { return borrowsBeside(snap, st, victim, winner) }) {
		return // a workflow takes back what it has lent for its own, with a claim or without one
	}
	if is.Claim != "" && was.CellSize > 0 && !wholeRack(snap, victim.NodeID, was.CellSize) {
		return // while a node of its rack is not ready, or more have joined it, its cell is unbound
	}
	if snap.TableIndex(state.TableVirtualClusters) == snap.Index() {
		return // an edit that waited was admitted after the plan, and may have taken the winner's claim
	}
	if was.Claim != "" && (is.Claim == "" || victim.Namespace != winner.Namespace) {
		c.fail("%s of namespace %s uses what that owns, and was taken back for %s of %s", s.AllocID, victim.Namespace, s.PreemptedBy, winner.Namespace)
	}
	before := victim.Requeues
	if s.RequeueReason != "" {
		before--
	}
	if is.Claim == "" && before >= config.RequeuesAllowed() {
		c.fail("%s was requeued %d times and was taken back once more, by bands", s.AllocID, before)
	}
	if config.Band(was.Priority) >= config.Band(is.Priority) {
		c.fail("%s of priority %d was taken back for %s of priority %d", s.AllocID, was.Priority, s.PreemptedBy, is.Priority)
	}
}

// wholeRack reports whether the rack of a node has so many nodes, all of which are ready.
func wholeRack(snap *state.Snapshot, nodeID string, nodes int) bool {
	of := snap.Node(nil, nodeID)
	if of == nil {
		return false
	}
	for n := range snap.Nodes(nil, "", false) {
		if n.Meta["rack"] == of.Meta["rack"] {
			if nodes--; !n.Ready() {
				return false
			}
		}
	}
	return nodes == 0
}

// instances looks for an instance that is there twice. One whose node is disconnected may have a replacement, and stands beside it
// when it is back until the evaluations of its return have ended: a plan may have been made before that, and judged after it. For
// one that is kept as it surely runs, nothing may stand meanwhile.
func (c *checks) instances(snap *state.Snapshot, id structs.NamespacedID) {
	open := slices.ContainsFunc(snap.EvalsByJob(nil, id.Namespace, id.ID), func(e *structs.Evaluation) bool { return e.Status == structs.EvalStatusPending })
	at := map[string]string{}
	for _, a := range snap.AllocsByJob(nil, id.Namespace, id.ID, true) {
		if a.Terminal() {
			continue
		}
		if a.Job == nil {
			continue // of a job that was forgotten: nobody wants it
		}
		if unknown := a.ClientStatus == structs.AllocClientUnknown; unknown && !c.stays(snap, a) || !unknown && c.away[a.ID] && open {
			continue
		}
		name := a.Name
		if a.Job.Type == structs.JobTypeSystem || a.Job.Type == structs.JobTypeSysBatch {
			name = a.TaskGroup + " on node " + a.NodeID
		}
		if other := at[name]; other != "" {
			c.fail("job %s: instance %s is there twice, as %s and as %s:%s", id, name, other, a.ID, notices(snap, id))
			return
		}
		at[name] = a.ID
	}
}

// notices returns a list of a job's allocations, for finding out what went wrong.
func notices(snap *state.Snapshot, id structs.NamespacedID) string {
	var out strings.Builder
	for _, a := range snap.AllocsByJob(nil, id.Namespace, id.ID, true) {
		kind := "of a version that is not kept"
		if a.Job != nil {
			kind = a.Job.Type
		}
		fmt.Fprintf(&out, "\n    %s %s version %d (%s) on %.8s: %s, %s %q %q; placed at %d, changed at %d, follows %.8s, followed by %.8s", a.ID, a.Name, a.JobVersion, kind,
			a.NodeID, a.DesiredStatus, a.ClientStatus, a.DesiredDescription, a.ClientDescription, a.CreateIndex, a.ModifyIndex, a.PreviousAllocation, a.NextAllocation)
	}
	return out.String()
}

// gangs looks for one that is there in part.
func (c *checks) gangs(snap *state.Snapshot, id structs.NamespacedID, version uint64) {
	job := snap.JobVersion(id.Namespace, id.ID, version)
	if job == nil || job.Stop {
		return
	}
	for _, g := range job.TaskGroups {
		if g.Gang == nil {
			continue
		}
		least, there, ended, old := g.Gang.Min, 0, 0, false
		if least == 0 {
			least = g.Count
		}
		for _, a := range snap.AllocsByJob(nil, id.Namespace, id.ID, false) {
			switch {
			case a.TaskGroup != g.Name:
			case !a.Terminal():
				there++
				old = old || a.CreateIndex < snap.Index()
			case a.ClientStatus == structs.AllocClientLost && a.CreateIndex == snap.Index():
				there++ // its node was purged after the plan was judged: its job is looked at again for that
			case a.ClientStatus == structs.AllocClientComplete:
				ended++
			}
		}
		if old && g.Gang.OnLoss == structs.GangOnLossMember {
			continue // whoever is missing comes when there is room
		}
		if there > 0 && there+ended < least {
			c.fail("job %s: %d members of the gang of %q are there, of at least %d (version %d of the job):%s",
				id, there, g.Name, least, job.Version, notices(snap, id))
		}
	}
}

// replica compares the states of replicas that have applied the same log.
func (c *checks) replica(r *replica, index uint64) {
	c.tenants.claims(r)
	if index%hashEvery != 0 || c.failed != nil {
		return
	}
	snap := r.store.Snapshot()
	hash, known := snap.Hash(), c.states[index]
	switch {
	case known == nil:
		c.states[index] = snap
		delete(c.states, index-4*hashEvery)
		c.hashes[index] = hash
		c.note(hash, -1)
	case c.hashes[index] != hash:
		c.fail("replica %d has hash %.8s at index %d, others have %.8s:%s", r.id, hash, index, c.hashes[index], differ(snap, known))
	}
}

// differ lists the rows in which two states differ.
func differ(a, b *state.Snapshot) string {
	rows := func(s *state.Snapshot) (out []string) {
		_ = s.Export(func(table string, row any) error { // never fails here
			data, err := json.Marshal(row)
			out = append(out, fmt.Sprintf("\n    %s: %s %v", table, data, err))
			return nil
		})
		slices.Sort(out)
		return out
	}
	var out []string
	mine, others := rows(a), rows(b)
	for _, row := range mine {
		if _, same := slices.BinarySearch(others, row); !same {
			out = append(out, "\n  here:"+row)
		}
	}
	for _, row := range others {
		if _, same := slices.BinarySearch(mine, row); !same {
			out = append(out, "\n  there:"+row)
		}
	}
	return strings.Join(out, "")
}

// order has the checker that anybody can run look at a state: World and all else that is
// derived is as the tables say, too.
func (c *checks) order(r *replica) {
	report, err := check.Run(forever, r.store.Snapshot(), check.Options{})
	if err != nil {
		c.fail("replica %d: %v", r.id, err)
		return
	}
	for _, f := range report.Faults {
		c.fail("replica %d at index %d: %s: %s %s: %s", r.id, r.index(), f.Rule, f.Kind, f.ID, f.What)
	}
}

// votes looks for what was acknowledged.
func (c *checks) votes(r *replica) {
	snap := r.store.Snapshot()
	for _, name := range c.users.names() {
		p := c.users.jobs[name]
		if p.purged || p.index > snap.Index() {
			continue
		}
		job := snap.Job(nil, c.tenants.of(name), name)
		if job == nil || job.JobModifyIndex < p.index {
			c.fail("replica %d: the registration of %s at index %d was acknowledged and is not there", r.id, name, p.index)
		}
	}
	c.tenants.votes(r)
	c.workflows.votes(r)
}

// untilCalm waits for everything to come to rest, now that faults have stopped.
func (c *checks) untilCalm() {
	c.after(2*time.Second, "is it calm?", -1, func() {
		why := c.unrest()
		if why == "" {
			why = c.tenants.waiting(c.leader.r.store.Snapshot())
		}
		switch {
		case why == "":
			c.result.Calm = c.now - c.quietAt
			c.finish()
			c.calm = true
		case c.now-c.quietAt > calm:
			c.fail("%s after the last fault: %s", c.now-c.quietAt, why)
		default:
			c.untilCalm()
		}
	})
}

// unrest returns what is still changing; "": nothing is.
func (c *checks) unrest() string {
	l := c.leader
	if l == nil || l.over {
		return "nobody leads"
	}
	snap := l.r.store.Snapshot()
	for _, n := range c.clients {
		if node := snap.Node(nil, n.node.ID); node == nil || node.Status != structs.NodeStatusReady {
			return "node " + n.node.Name + " is not ready"
		}
	}
	for _, e := range snap.PendingEvals() {
		if e.Status == structs.EvalStatusPending {
			return fmt.Sprintf("evaluation %s of job %s (%s) is pending, until %v", e.ID, e.JobID, e.TriggeredBy, e.WaitUntil)
		}
	}
	if what := c.disagree(snap); what != "" {
		return what
	}
	if what := c.workflows.remains(snap); what != "" {
		return what
	}
	for job := range snap.Jobs(nil, structs.AllNamespaces, "", false) {
		if what := c.left(snap, job); what != "" {
			return what
		}
	}
	return ""
}

// left returns what of a job can be done that is not: it is decided anew, and nothing may come
// of that.
func (c *checks) left(snap *state.Snapshot, job *structs.Job) string {
	in := snap.Input(job, snap.AllocsByJob(nil, job.Namespace, job.ID, true), &state.InputOptions{
		Now: epoch.Add(c.now), Seed: 1, NewID: func() string { return "unused" }, Typical: worker.NewTypicals().For,
	})
	plan, err := scheduler.Schedule(snap.World(), &structs.Evaluation{
		ID: "fresh", Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Priority: job.Priority, Status: structs.EvalStatusPending,
		TriggeredBy: structs.EvalTriggerForce,
	}, in)
	if job.PerNode() && err == nil {
		withoutFailed(plan, job, in.Allocs)
	}
	switch {
	case err != nil:
		return fmt.Sprintf("job %s: %v", job.ID, err)
	case len(plan.Place) > 0:
		return fmt.Sprintf("job %s: %d instances of group %s can be placed on %v and are not:%s", job.ID, len(plan.Place[0].Instances),
			plan.Place[0].Group, plan.Place[0].Nodes, open(snap, job.NamespacedID()))
	case len(plan.Stop) > 0:
		return fmt.Sprintf("job %s: %d allocations are to be stopped and are not: %+v:%s", job.ID, len(plan.Stop), *plan.Stop[0],
			open(snap, job.NamespacedID()))
	case len(plan.Update) > 0:
		return fmt.Sprintf("job %s: %d allocations are to be updated and are not: %+v:%s", job.ID, len(plan.Update), *plan.Update[0],
			open(snap, job.NamespacedID()))
	}
	return ""
}

// withoutFailed drops from a plan for a job of one instance per node those that would follow one that failed on the same
// node. A node may be registered anew without any change that has its jobs evaluated: that makes such an instance
// replaceable, but no evaluation has to come for it.
func withoutFailed(plan *structs.Plan, job *structs.Job, allocs []*structs.Allocation) {
	failed := map[string]bool{} // by node and group
	for _, a := range allocs {
		if a.ClientStatus == structs.AllocClientFailed && !a.ServerTerminal() && a.JobVersion == job.Version {
			failed[a.NodeID+a.TaskGroup] = true
		}
	}
	plan.Place = slices.DeleteFunc(plan.Place, func(p *structs.PlacementBatch) bool {
		return !slices.ContainsFunc(p.Nodes, func(n structs.PlacedNode) bool { return !failed[n.ID+p.Group] })
	})
}

// open lists what a job waits in, for who is to find out why.
func open(snap *state.Snapshot, id structs.NamespacedID) string {
	var out strings.Builder
	for _, e := range snap.EvalsByJob(nil, id.Namespace, id.ID) {
		fmt.Fprintf(&out, "\n    evaluation %s (%s) of index %d is %s (%s), decided on %d, until %v, for %v, as %+v; classes %v", e.ID, e.TriggeredBy, e.ModifyIndex, e.Status,
			e.StatusDescription, e.SnapshotIndex, e.WaitUntil, e.QueuedAllocations, e.FailedTGAllocs, e.ClassEligibility)
		for _, g := range sortedKeys(e.FailedTGAllocs) {
			fmt.Fprintf(&out, "\n      %s: %+v", g, *e.FailedTGAllocs[g])
		}
	}
	for _, a := range snap.Requests().OfJob(nil, id.Namespace, id.ID) {
		fmt.Fprintf(&out, "\n    ask %+v", *a)
	}
	for r := range snap.Reservations(nil) {
		fmt.Fprintf(&out, "\n    reserved: %+v", *r)
	}
	config := snap.SchedulerConfig(nil)
	job, _ := json.Marshal(snap.Job(nil, id.Namespace, id.ID)) // for people
	fmt.Fprintf(&out, "\n    %+v\n    %s", config, job)
	return out.String() + notices(snap, id)
}

// disagree returns where servers and clients do not agree on what runs; "": nowhere.
func (c *checks) disagree(snap *state.Snapshot) string {
	for _, n := range c.clients {
		for _, a := range snap.AllocsByNode(nil, n.node.ID) {
			t := n.tasks[a.ID]
			switch {
			case a.ServerTerminal() && !a.ClientTerminal():
				return fmt.Sprintf("allocation %s is to be stopped, and is %s", a.ID, a.ClientStatus)
			case a.ClientStatus == structs.AllocClientPending:
				return fmt.Sprintf("allocation %s has not started", a.ID)
			case !a.Terminal() && (t == nil || t.over):
				return fmt.Sprintf("allocation %s is %s, and does not run", a.ID, a.ClientStatus)
			}
		}
		for _, id := range sortedKeys(n.tasks) {
			if a := snap.Alloc(nil, id); !n.tasks[id].over && (a == nil || a.Terminal()) {
				return fmt.Sprintf("allocation %s runs, and has ended", id)
			}
		}
	}
	return ""
}

// finish compares all replicas at the end.
func (c *checks) finish() {
	var first string
	for _, r := range c.replicas {
		r.apply(c.log.last()) //nolint:errcheck // what the state says to it is compared
		hash := r.store.Snapshot().Hash()
		if first == "" {
			first = hash
		}
		if hash != first {
			c.fail("replica %d has hash %.8s at the end, others have %.8s", r.id, hash, first)
		}
		c.order(r)
		c.votes(r)
	}
	_, _ = c.trace.Write([]byte(first)) // never fails
}
