package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// passedOverFor is how long a leader may leave what comes free to a workflow that is not the first any more.
const passedOverFor = 10 * time.Second

// passedOver is a workflow that keeps what comes free though another one is of higher rank.
type passedOver struct {
	by    *leader
	pair  string // who keeps it, and who is first
	since time.Duration
}

// The checks of workflows:
//
//   - after every entry: what is reserved is what is used, lent and idle of it, and what is not used is there, free or with borrowers; nobody
//     but the workflow of the highest rank keeps what comes free for long, and never two;
//   - jobs whose instances have to be on distinct hosts have as many nodes reserved, each with what one needs, are to be placed on as many, and run there;
//   - of those who leave for a stage that starts as one plan, none could have stayed;
//   - no stage starts before those before it are over, and no job is registered while it runs;
//   - when faults have stopped and all workflows have ended: nothing is reserved, and no job of theirs is left.

// entry looks at what an entry did to workflows, in the state of the replica that applied it first.
func (w *workflows) entry(r *replica, index uint64, e *entry) {
	if w == nil {
		return
	}
	snap, was := r.store.Snapshot(), w.was
	w.was = snap
	changed := snap.TableIndex(state.TableWorkflows) == index
	advanced := func(e *structs.WorkflowAdvanceEntry) {
		if row := snap.Workflows(nil).Get(e.Namespace, e.ID); was != nil && row != nil && row.ModifyIndex == index {
			w.advanced(was, row, e)
		}
	}
	switch p := e.payload.(type) {
	case *structs.WorkflowAdvanceEntry:
		advanced(p)
	case *structs.PlanCommit:
		for _, plan := range p.Plans {
			if plan != nil && plan.Advance != nil {
				advanced(plan.Advance)
				if w.decided[plan.Advance.EvalSeed] == index-1 { // else what was decided of is gone
					w.minimal(was, snap, plan)
				}
			}
		}
	case *structs.WorkflowDeleteEntry:
		if changed {
			delete(w.runs, structs.WorkflowKey(p.Namespace, p.ID))
		}
	}
	if changed {
		for row := range snap.Workflows(nil).List(structs.AllNamespaces, "", false) {
			w.inOrder(row)
		}
	}
	w.first(snap)
	if changed || len(w.checks.touched) > 0 {
		w.reserved(snap)
		checkDistinct(snap, w)
		checkLicenses(snap, w)
	}
}

// advanced looks at what a run's move started: nothing of it may run yet, and nothing before it any more.
func (w *workflows) advanced(was *state.Snapshot, row *structs.WorkflowRun, e *structs.WorkflowAdvanceEntry) {
	for _, m := range e.Jobs {
		if !m.Register {
			continue
		}
		j := row.Stages[m.Stage].Jobs[m.Job]
		if what := runs(was, row.Namespace, j.JobID); what != "" {
			w.fail("workflow %s: attempt %d of job %s is registered, and the one before is not over: %s\n    %s", row.ID, j.Attempt, j.JobID, what, history(row))
		}
		if spec := row.Workflow.Jobs()[j.Name]; j.Retried > spec.Retries {
			w.fail("workflow %s: job %s is retried %d times, of %d", row.ID, j.JobID, j.Retried, spec.Retries)
		}
	}
	for _, m := range e.Stages {
		if !m.Start {
			continue
		}
		if n := row.Stages[m.Stage].Attempt; n > structs.MaxStageAttempts || n > 1 && row.Workflow.OnFailure != structs.OnFailureRetryStage {
			w.fail("workflow %s: stage %s begins for the %d. time", row.ID, row.Stages[m.Stage].Name, n)
		}
		for _, before := range row.Stages[:m.Stage] {
			for i := range before.Jobs {
				job := was.Job(nil, row.Namespace, before.Jobs[i].JobID)
				if job != nil && job.Stop && job.Workflow.Run < row.Run {
					continue // of a run that was cancelled, and run again at once from a later stage on
				}
				if what := goesOn(was, row.Namespace, before.Jobs[i].JobID); what != "" {
					w.fail("workflow %s: stage %s starts, and job %s of stage %s is not over: %s\n    %s", row.ID, row.Stages[m.Stage].Name, before.Jobs[i].JobID,
						before.Name, what, history(row))
				}
			}
		}
	}
}

// putBack returns a plan that puts an instance that a plan stopped back where it was, with all of its gang if nobody of that runs on.
func putBack(was, now *state.Snapshot, plan *structs.JudgedPlan, a *structs.Allocation) *structs.Plan {
	back := &structs.Plan{AllAtOnce: true}
	gang := termsOf(a).Gang
	with := func(o *structs.Allocation) bool {
		return o.Namespace == a.Namespace && o.JobID == a.JobID && gang != "" && termsOf(o).Gang == gang
	}
	for _, o := range now.AllocsByJob(nil, a.Namespace, a.JobID, true) {
		if gang != "" && with(o) && !o.Terminal() && !o.Suspended() {
			gang = ""
		}
	}
	for _, st := range plan.Stop {
		o := was.Alloc(nil, st.AllocID)
		if o == nil || o.Terminal() || o.ID != a.ID && !with(o) {
			continue
		}
		if st.DesiredStatus == structs.AllocDesiredSuspend { // it keeps its memory, which is its own
			back.Stop = append(back.Stop, &structs.AllocStop{AllocID: o.ID, DesiredStatus: structs.AllocDesiredEvict})
		}
		back.Place = append(back.Place, &structs.PlacementBatch{
			Namespace: o.Namespace, JobID: o.JobID, JobVersion: o.JobVersion, Group: o.TaskGroup, Seed: "back " + o.ID, CreateTime: o.CreateTime,
			Resources: o.AllocatedResources, Nodes: []structs.PlacedNode{{ID: o.NodeID}}, Instances: []structs.Instance{{}},
		})
	}
	return back
}

// minimal looks at who has left for a stage that started as one plan: each is put back, by itself, where it was, and must find no room there beside the
// stage; of a gang that has left whole all are put back together. Of a stage that was not placed whole the rest is placed, too, if it is to be had with
// all of them gone.
func (w *workflows) minimal(was, now *state.Snapshot, plan *structs.JudgedPlan) {
	placed := map[string]int{}
	for _, b := range plan.Place {
		placed[b.JobID] += len(b.Instances)
	}
	var rest []*structs.Job // that is not placed yet
	row := now.Workflows(nil).Get(plan.Advance.Namespace, plan.Advance.ID)
	for _, m := range plan.Advance.Jobs {
		if m.Register {
			job := now.Job(nil, row.Namespace, row.Stages[m.Stage].Jobs[m.Job].JobID)
			if job != nil && !job.PerNode() && placed[job.ID] < job.Instances() {
				rest = append(rest, job)
			}
		}
	}
	if w.starts++; len(rest) > 0 && (len(plan.Stop) == 0 || !w.placesRest(now, now.World(), rest)) {
		return // it waits for more than those who left
	}
	for _, st := range plan.Stop {
		a := was.Alloc(nil, st.AllocID)
		if a == nil || a.Terminal() {
			continue
		}
		w.left++
		edit := now.World().Edit()
		if _, refused, _ := scheduler.Judge(edit, putBack(was, now, plan, a)); len(refused) == 0 && w.placesRest(now, edit.World(), rest) {
			w.fail("workflow %s: allocation %s (%s) left (%s) for a stage beside which it had room\n    %s", row.ID, a.ID, a.Name, st.DesiredStatus, history(row))
		}
	}
}

// placesRest reports whether jobs of a stage find room for all of their instances in the reservation, and nobody leaves for them.
func (w *workflows) placesRest(now *state.Snapshot, world *scheduler.World, jobs []*structs.Job) bool {
	for _, job := range jobs {
		minted := 0
		opts := &state.InputOptions{Now: epoch.Add(w.now), Seed: 1, NewID: func() string { minted++; return fmt.Sprintf("rest-%s-%d", job.ID, minted) }}
		ev := &structs.Evaluation{
			ID: "rest-" + job.ID, Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type, Status: structs.EvalStatusPending,
			TriggeredBy: structs.EvalTriggerJobRegister,
		}
		plan, err := scheduler.Schedule(world, ev, now.Input(job, now.AllocsToDecide(job.Namespace, job.ID), opts))
		if err != nil || len(plan.Stop) > 0 {
			return false
		}
		placed := 0
		for _, b := range plan.Place {
			if t := b.Resources.Shared.Terms; t != nil && t.Claim == structs.ClaimWorkflow {
				placed += len(b.Instances)
			}
		}
		edit := world.Edit()
		if _, refused, _ := scheduler.Judge(edit, plan); len(refused) > 0 || placed < job.Instances() {
			return false
		}
		world = edit.World()
	}
	return true
}

// goesOn returns what of a job that is over runs, or is to run; "": nothing. A sysbatch job that was not stopped may run again: on nodes that
// come later.
func goesOn(snap *state.Snapshot, namespace, id string) string {
	job := snap.Job(nil, namespace, id)
	if job == nil || job.PerNode() && !job.Stop {
		return ""
	}
	complete := map[string]bool{}
	for _, a := range snap.AllocsByJob(nil, namespace, id, true) {
		complete[a.Name] = complete[a.Name] || a.ClientStatus == structs.AllocClientComplete
	}
	if job.Stop || len(complete) >= job.Instances() && !slices.Contains(slices.Collect(maps.Values(complete)), false) {
		return liveOf(snap, namespace, id) // whatever its evaluations still find
	}
	return runs(snap, namespace, id)
}

// liveOf returns which allocation of a job runs, or is to run; "": none.
func liveOf(snap *state.Snapshot, namespace, id string) string {
	for _, a := range snap.AllocsByJob(nil, namespace, id, true) {
		if !a.Terminal() {
			return fmt.Sprintf("allocation %s is %s, %s", a.ID, a.DesiredStatus, a.ClientStatus)
		}
	}
	return ""
}

// runs returns what of a job runs, or is to run; "": nothing.
func runs(snap *state.Snapshot, namespace, id string) string {
	job := snap.Job(nil, namespace, id)
	if job == nil {
		return ""
	}
	if what := liveOf(snap, namespace, id); what != "" {
		return what
	}
	if job.Status != structs.JobStatusDead {
		return fmt.Sprintf("it is %s (stopped: %v):%s", job.Status, job.Stop, open(snap, job.NamespacedID()))
	}
	return ""
}

// history describes a run for who is to find out what went wrong.
func history(r *structs.WorkflowRun) string {
	text := fmt.Sprintf("run %d, %s, priority %d, on_failure %s:", r.Run, r.State, r.Workflow.Priority, r.Workflow.OnFailure)
	for i, s := range r.Stages {
		text += fmt.Sprintf("\n    stage %d (%s) is %s, attempt %d: %+v", i, s.Name, s.State, s.Attempt, s.Jobs)
	}
	return text + fmt.Sprintf("\n    reserved: %+v; runs before: %+v", r.Parts, r.Previous)
}

// inOrder looks for a stage that has begun before one before it was over.
func (w *workflows) inOrder(r *structs.WorkflowRun) {
	for i, s := range r.Stages {
		if s.State == structs.StageWaiting {
			continue
		}
		for _, before := range r.Stages[:i] {
			over := before.State == structs.StageComplete || before.State == structs.StageFailed && r.Workflow.OnFailure == structs.OnFailureContinue
			if !over {
				w.fail("workflow %s: stage %s is %s, and stage %s before it is %s", r.ID, s.Name, s.State, before.Name, before.State)
			}
		}
	}
}

// waiting returns the runs that wait for their reservation, the highest rank first.
func waiting(snap *state.Snapshot) (list []*structs.WorkflowRun) {
	for r := range snap.Workflows(nil).Alive() {
		reserves := false
		for _, j := range r.Workflow.Jobs() { // order does not matter: any
			reserves = reserves || !j.Job.PerNode()
		}
		if r.State == structs.WorkflowPending && !r.Posted && reserves {
			list = append(list, r)
		}
	}
	byRank(list)
	return list
}

// byRank orders runs, the highest rank first.
func byRank(list []*structs.WorkflowRun) {
	slices.SortFunc(list, func(a, b *structs.WorkflowRun) int {
		return cmp.Or(cmp.Compare(b.Workflow.Priority, a.Workflow.Priority), cmp.Compare(a.SubmitTime, b.SubmitTime),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.ID, b.ID))
	})
}

// amounts are amounts of what workflows reserve, in the order of [amountNames].
type amounts [5]int64

var amountNames = [...]string{"MHz", "MiB of memory", "MiB of disk", "cores", "devices"}

// exceeds names what there is more of than in another; "": of nothing.
func (a amounts) exceeds(o amounts) string {
	for i, n := range a {
		if n > o[i] {
			return fmt.Sprintf("%d %s of %d", n, amountNames[i], o[i])
		}
	}
	return ""
}

// add adds an amount, or takes it away.
func (a *amounts) add(o amounts, times int64) {
	for i := range a {
		a[i] += times * o[i]
	}
}

// useOf returns what an allocation uses of its node.
func useOf(a *structs.Allocation) (u amounts) {
	if a.Terminal() || a.AllocatedResources == nil {
		return u
	}
	u[0], u[1], u[2], _ = a.AllocatedResources.Total()
	if a.Suspended() {
		u[0] = 0 // it keeps its memory, its disk and its GPUs
	}
	for _, t := range a.AllocatedResources.Tasks { // order does not matter: sums
		if !a.Suspended() {
			u[3] += int64(len(t.Cpu.ReservedCores))
		}
		for _, d := range t.Devices {
			u[4] += int64(len(d.DeviceIDs))
		}
	}
	return u
}

// gpus counts the GPUs of an allocation that somebody has not been counted for yet.
func gpus(a *structs.Allocation, seen map[string]bool, whose string, among ...string) (n int64) {
	for _, t := range a.AllocatedResources.Tasks { // order does not matter: each counts once
		for _, d := range t.Devices {
			for _, id := range d.DeviceIDs {
				if !seen[whose+" "+id] && (len(among) == 0 || slices.Contains(among, id)) {
					seen[whose+" "+id], n = true, n+1
				}
			}
		}
	}
	return n
}

// part is what a posted reservation has of a node.
type part struct {
	key   string
	total amounts
	gpus  []string // that it names
}

// use is what a workflow's own instances use, by its claim and, on nodes of which it has parts, without one.
type use struct{ claimed, own amounts }

// reserved looks at what is reserved, by sums of its own.
func (w *workflows) reserved(snap *state.Snapshot) {
	parts := map[string][]part{} // by node
	sums := map[string]use{}
	over := map[string]bool{} // workflows that use more of a node than they have reserved of it
	for r := range snap.Workflows(nil).Alive() {
		if !r.Posted || len(r.Parts) == 0 { // of a run that is retried, what is left may be sysbatch jobs alone
			continue
		}
		key := structs.WorkflowKey(r.Namespace, r.ID)
		sums[key] = use{}
		for i := range r.Parts {
			p := &r.Parts[i]
			if p.Lost {
				continue
			}
			parts[p.NodeID] = append(parts[p.NodeID], part{key, amounts{p.CPU, p.MemoryMB, p.DiskMB, int64(p.Cores), int64(p.Devices)}, p.DeviceIDs})
		}
	}
	for _, id := range sortedKeys(parts) {
		w.onNode(snap, id, parts[id], sums, over)
		w.mhz(snap, id, parts[id], over)
	}
	for _, key := range sortedKeys(sums) {
		u := scheduler.WorkflowUse(snap.World(), key)
		if u == nil {
			w.fail("workflow %s has posted its reservation, and the scheduler has none", key)
			return
		}
		for i, of := range []func(*structs.WorkflowResources) int64{
			1: func(r *structs.WorkflowResources) int64 { return r.MemoryMB },
			3: func(r *structs.WorkflowResources) int64 { return r.Cores },
			4: func(r *structs.WorkflowResources) int64 { return r.GPUs },
		} {
			if of == nil {
				continue
			}
			reserved, used, lent, idle := of(&u.Reserved), of(&u.Used), of(&u.Lent), of(&u.Idle)+of(&u.Lost)
			const cores = 3 // of which those may do nothing of which the MHz are used without
			if by := sums[key]; (reserved < used+lent+idle || reserved > used+lent+idle && i != cores) && !over[key] || used < by.claimed[i] || used > by.claimed[i]+by.own[i] {
				w.fail("workflow %s: %d %s are reserved; used are %d (by what runs: %d, and %d without a claim), lent %d, idle %d:%s", key, reserved, amountNames[i], used, by.claimed[i], by.own[i],
					lent, idle, partakers(snap, key))
			}
		}
	}
}

// mhz looks at what the scheduler counts of a node's MHz, those of whole cores included: apart, as what is lent or idle of cores may have been used without.
func (w *workflows) mhz(snap *state.Snapshot, nodeID string, parts []part, over map[string]bool) {
	node := snap.Node(nil, nodeID)
	if node == nil {
		return
	}
	perCore := node.NodeResources.Cpu.MHzPerCore()
	all := func(r *structs.WorkflowResources) int64 { return r.CPU + r.Cores*perCore }
	for _, r := range scheduler.ReservedOn(snap.World(), nodeID) {
		at := slices.IndexFunc(parts, func(p part) bool { return p.key == structs.WorkflowKey(r.Namespace, r.Workflow) })
		if r.Pending || at < 0 || over[parts[at].key] {
			continue
		}
		var used, own int64
		for _, a := range snap.AllocsByNode(nil, nodeID) {
			switch t := termsOf(a); {
			case t.Claim == structs.ClaimWorkflow && t.WorkflowKey() == parts[at].key:
				used += useOf(a)[0]
			case t.Claim == "" && t.WorkflowKey() == "" && !t.PerNode && ofWorkflow(a, parts[at].key):
				own += useOf(a)[0]
			}
		}
		total, reserved, sum := parts[at].total[0], all(&r.Reserved), all(&r.Used)+all(&r.Lent)+all(&r.Idle)+all(&r.Lost)
		// Cores of which the MHz are used without, or are reserved elsewhere, count as if they had them.
		beyond := func(r *structs.WorkflowResources) bool { return r.CPU == 0 && r.Cores > 0 }
		if all(&r.Used) < used || all(&r.Used) > used+own && !beyond(&r.Used) || reserved < total || reserved > total && !beyond(&r.Reserved) || sum < total || sum > total && !beyond(&r.Lent) && !beyond(&r.Used) {
			w.fail("workflow %s: %d MHz of node %s are reserved (by its part: %d); used are %d (by what runs: %d, and %d without a claim), lent %d, idle %d:%s", parts[at].key, reserved,
				node.Name, total, all(&r.Used), used, own, all(&r.Lent), all(&r.Idle), onIt(snap, nodeID))
		}
	}
}

// partakers lists the allocations that use a reservation or borrow from it.
func partakers(snap *state.Snapshot, key string) string {
	var out strings.Builder
	for n := range snap.Nodes(nil, "", false) {
		for _, a := range snap.AllocsByNode(nil, n.ID) {
			if t := termsOf(a); t.WorkflowKey() == key && !a.Terminal() {
				fmt.Fprintf(&out, "\n    on %s (%s): %s", n.Name, n.Status, line(a))
			}
		}
	}
	return out.String()
}

// onIt lists the allocations of a node that have not ended.
func onIt(snap *state.Snapshot, nodeID string) string {
	var out strings.Builder
	for _, a := range snap.AllocsByNode(nil, nodeID) {
		if !a.Terminal() {
			out.WriteString("\n    " + line(a))
		}
	}
	return out.String()
}

// line describes an allocation and what it uses.
func line(a *structs.Allocation) string {
	t := termsOf(a)
	text := fmt.Sprintf("%s (%s), claim %q, workflow %q, per node %v: %s, %s: %v; placed at %d, changed at %d", a.ID, a.Name, t.Claim, t.WorkflowKey(), t.PerNode,
		a.DesiredStatus, a.ClientStatus, useOf(a), a.CreateIndex, a.ModifyIndex)
	if a.AllocatedResources != nil {
		for _, d := range a.AllocatedResources.Tasks["t"].Devices {
			text += fmt.Sprintf(", GPUs %v (%d thousandths)", d.DeviceIDs, cmp.Or(d.Share, structs.DeviceShareWhole))
		}
	}
	return text
}

// termsOf returns the terms of an allocation; none if it has not any.
func termsOf(a *structs.Allocation) *structs.AllocTerms {
	if a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil {
		return &structs.AllocTerms{}
	}
	return a.AllocatedResources.Shared.Terms
}

// ofWorkflow reports whether an allocation is of a job of a workflow.
func ofWorkflow(a *structs.Allocation, key string) bool {
	id, _, _, ok := structs.SplitWorkflowJobID(a.JobID)
	return ok && structs.WorkflowKey(a.Namespace, id) == key
}

// onNode looks at what is reserved of one node, and adds what is used of it.
func (w *workflows) onNode(snap *state.Snapshot, nodeID string, parts []part, sums map[string]use, over map[string]bool) {
	node := snap.Node(nil, nodeID)
	if node == nil {
		return // it was purged
	}
	has := node.NodeResources
	room := amounts{has.Cpu.CpuShares, has.Memory.MemoryMB, has.Disk.DiskMB, int64(len(has.Cpu.ReservableCpuCores)), 0}
	for _, d := range has.Devices {
		room[4] += int64(len(d.Instances))
	}
	var all amounts
	for _, p := range parts {
		all.add(p.total, 1)
	}
	if what := all.exceeds(room); what != "" {
		w.fail("node %s: %s are reserved for workflows", node.Name, what)
		return
	}
	used := map[string]amounts{} // by workflow
	own := map[string]amounts{}  // of what has lost its claim, and goes on where it is
	seen := map[string]bool{}    // GPUs, by whom they are counted for: several may share one
	for _, a := range snap.AllocsByNode(nil, nodeID) {
		u := useOf(a)
		if u == (amounts{}) {
			continue
		}
		terms := termsOf(a)
		key := terms.WorkflowKey()
		at := slices.IndexFunc(parts, func(p part) bool { return p.key == key })
		theirs := at >= 0
		switch {
		case theirs && terms.Claim == structs.ClaimWorkflow:
			u[4] = gpus(a, seen, key, parts[at].gpus...) // others are beside it
			sum := used[key]
			sum.add(u, 1)
			used[key] = sum
		case theirs && terms.Claim == "":
			continue // what borrowers have is reserved, or is free beside it
		case terms.Claim == "" && !terms.PerNode:
			if at := slices.IndexFunc(parts, func(p part) bool { return ofWorkflow(a, p.key) }); at >= 0 {
				sum, with := own[parts[at].key], u
				with[4] = gpus(a, seen, parts[at].key+" own", parts[at].gpus...)
				sum.add(with, 1)
				own[parts[at].key] = sum
			}
		}
		u[4] = gpus(a, seen, "")
		room.add(u, -1)
	}
	for _, p := range parts {
		rest := p.total
		rest.add(used[p.key], -1)
		for i := range rest {
			over[p.key] = over[p.key] || rest[i] < 0
			rest[i] = max(0, rest[i]-own[p.key][i])
		}
		room.add(rest, -1)
		sum := sums[p.key]
		sum.claimed.add(used[p.key], 1)
		sum.own.add(own[p.key], 1)
		sums[p.key] = sum
	}
	if what := (amounts{}).exceeds(room); what != "" {
		w.fail("node %s: what workflows have reserved and do not use is given to others: %v are left, after %v:%s", node.Name, room, parts, onIt(snap, nodeID))
	}
}

// votes looks for the runs that were acknowledged.
func (w *workflows) votes(r *replica) {
	if w == nil {
		return
	}
	snap := r.store.Snapshot()
	for _, key := range sortedKeys(w.runs) {
		index := w.runs[key]
		if index > snap.Index() {
			continue
		}
		namespace, id, _ := strings.Cut(key, "/")
		if row := snap.Workflows(nil).Get(namespace, id); row == nil || row.ModifyIndex < index {
			w.fail("replica %d: the run of workflow %s at index %d was acknowledged and is not there", r.id, key, index)
		}
	}
}

// remains returns what is left of workflows, which all are to end; "": nothing.
func (w *workflows) remains(snap *state.Snapshot) string {
	if w == nil {
		return ""
	}
	for r := range snap.Workflows(nil).List(structs.AllNamespaces, "", false) {
		if key := structs.WorkflowKey(r.Namespace, r.ID); r.Alive() {
			return fmt.Sprintf("workflow %s is %s, at stage %d: %s", key, r.State, r.Stage, r.Missing)
		} else if len(r.Parts) > 0 || r.Posted || snap.World().Workflow(key) != nil {
			return fmt.Sprintf("workflow %s is %s, and has a reservation: %+v", key, r.State, r.Parts)
		}
	}
	if p := scheduler.PendingWorkflows(snap.World()); len(p) > 0 {
		return fmt.Sprintf("what comes free is kept for workflow %s, and all have ended", p[0].Key())
	}
	for job := range snap.Jobs(nil, structs.AllNamespaces, "", false) {
		if job.Workflow == nil {
			continue
		}
		if what := goesOn(snap, job.Namespace, job.ID); what != "" {
			return fmt.Sprintf("workflow %s has ended, and its job %s has not: %s", job.Workflow.ID, job.ID, what)
		}
	}
	return ""
}
