package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/workflow"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

const (
	// workflowNames is how many names users have for workflows.
	workflowNames = 5
	// runOn is how long workflows may run on when faults have stopped, before they are cancelled.
	runOn = 40 * time.Second
	// patience is how many looks at the plans of a workflow the driver waits for: a gate may hold them up.
	patience = 50
)

// workflows are those who run workflows, pause, resume, cancel and retry them. They know what was acknowledged to them. nil, in which every
// method is allowed: there are none.
type workflows struct {
	*sim
	runs map[string]uint64 // the index of the last run that was acknowledged, by the workflow's key
	// was is the state before the last entry, passed when a workflow that is not the first was first seen to keep what comes free.
	was    *state.Snapshot
	passed [2]*passedOver // of those that wait, then of those that have lost something
	starts int            // of stages that were one plan with all of their instances
	left   int            // for those
	// decided is the state, by its index, that the start of a stage was decided on, by the seed of its evaluations.
	decided map[string]uint64
}

// newWorkflows returns the workflows of a run: of three seeds out of eight. The others run as they did before there were any, those
// among them that have found faults, and those that find what is planted.
func newWorkflows(s *sim) *workflows {
	if rest := s.seed % 8; s.seed < 8 || rest > 1 && rest < 7 {
		return nil
	}
	return &workflows{sim: s, runs: map[string]uint64{}, decided: map[string]uint64{}}
}

// driver returns what moves workflows on while one leads; nil: there are none.
func (w *workflows) driver(l *leader, c *wall) *workflow.Steps {
	if w == nil {
		return nil
	}
	return workflow.New(workflow.Options{NewID: l.r.newID, Clock: c}, l.r.store, advances{l}, planner{l}).Start()
}

// advances is Raft as the driver of workflows sees it.
type advances struct{ *leader }

// Apply implements workflow.Applier.
func (a advances) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	if e, ok := payload.(*structs.WorkflowAdvanceEntry); ok && a.advance != nil {
		return a.advance(a.leader, e)
	}
	return a.leader.Apply(ctx, t, payload)
}

// planner is the plan applier as the driver of workflows sees it, which waits for its plans: they are decided at once.
type planner struct{ *leader }

// Submit implements workflow.Planner.
func (p planner) Submit(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error) {
	lost := structs.Errorf(structs.CodeNoLeader, "the plan was not decided in time")
	if plan.Advance != nil {
		p.workflows.decided[plan.Advance.EvalSeed] = plan.SnapshotIndex
	}
	later := func(wait time.Duration) {
		late := copied(p.sim, plan)
		p.after(wait, "plan of a workflow", p.r.id, func() {
			if p.leads() {
				p.submit(late, func(*structs.PlanResult, error) {})
			}
		})
	}
	if p.chance(40) {
		p.fault("a plan of a workflow is late", p.r.id)
		later(p.between(10*time.Millisecond, 20*time.Second))
		return nil, lost
	}
	if p.chance(30) {
		p.fault("a plan of a workflow comes twice", p.r.id)
		later(p.between(0, 2*time.Second))
	}
	o, err := p.plans.Submit(ctx, copied(p.sim, plan))
	if err != nil {
		return nil, err
	}
	p.stir()
	for range patience {
		p.plans.Step(ctx)
		for len(p.inFlight) > 0 {
			commit := p.inFlight[0]
			p.inFlight = p.inFlight[1:]
			commit()
		}
		if result, done, err := o.Answer(); done {
			return result, err
		}
	}
	return nil, lost
}

// limit has batch jobs state how long they run, for which workflows lend to them.
func (w *workflows) limit(j *structs.Job) {
	if w != nil && j.Type == structs.JobTypeBatch {
		j.TaskGroups[0].MaxRunDuration = one(w.sim, 0, 10*time.Second, 30*time.Second, 2*time.Minute)
		requestLicense(j, w)
	}
}

// act does one thing with a workflow.
func (w *workflows) act() {
	id := fmt.Sprintf("wf-%d", w.IntN(workflowNames))
	ns := w.tenants.of("job-" + id[len("wf-"):])
	if !w.tenants.has(ns) {
		return
	}
	r := w.leader.r.store.Snapshot().Workflows(nil).Get(ns, id)
	switch n := w.IntN(20); {
	case r == nil || !r.Alive() && n < 12:
		w.run(w.draw(ns, id))
	case !r.Alive() && n < 18:
		w.retry(r)
	case !r.Alive():
		w.do(wire.MethodWorkflowDelete, r)
	case n < 2 || n < 4 && r.State == structs.WorkflowPending:
		w.do(wire.MethodWorkflowCancel, r)
	case r.State == structs.WorkflowPaused:
		w.do(wire.MethodWorkflowResume, r)
	case n < 8:
		w.do(wire.MethodWorkflowPause, r)
	}
}

// do calls a method that changes a workflow.
func (w *workflows) do(method string, r *structs.WorkflowRun) {
	w.users.tell(method+" "+r.ID, w.call(method, &structs.WorkflowActionRequest{ID: r.ID, WriteRequest: structs.WriteRequest{Namespace: r.Namespace}}, &structs.WriteReply{}))
}

func (w *workflows) run(f *structs.Workflow) {
	reply := &structs.WorkflowRunReply{}
	err := w.call(wire.MethodWorkflowRun, &structs.WorkflowRunRequest{Workflow: f, WriteRequest: structs.WriteRequest{Namespace: f.Namespace}}, reply)
	w.users.tell("run workflow "+f.ID, err)
	if structs.CodeOf(err) == structs.CodeBadRequest {
		w.fail("run workflow %s: %v", f.ID, err)
	}
	w.acknowledged(f.Namespace, f.ID, reply, err)
}

// retry runs a workflow again, from the stage that failed or from another one on.
func (w *workflows) retry(r *structs.WorkflowRun) {
	args := &structs.WorkflowRetryRequest{ID: r.ID, WriteRequest: structs.WriteRequest{Namespace: r.Namespace}}
	if w.IntN(3) == 0 {
		args.Stage = one(w.sim, r.Stages...).Name
	}
	reply := &structs.WorkflowRunReply{}
	err := w.call(wire.MethodWorkflowRetry, args, reply)
	w.users.tell("retry workflow "+r.ID, err)
	w.acknowledged(r.Namespace, r.ID, reply, err)
}

func (w *workflows) acknowledged(namespace, id string, reply *structs.WorkflowRunReply, err error) {
	if err == nil {
		w.runs[structs.WorkflowKey(namespace, id)] = reply.Index
	}
}

// draw draws a workflow.
func (w *workflows) draw(namespace, id string) *structs.Workflow {
	f := &structs.Workflow{
		ID: id, Namespace: namespace, Priority: one(w.sim, 30, 50, 50, 70), OnFailure: one(w.sim, structs.WorkflowOnFailure()...),
		Reserve: structs.WorkflowReserve{Rule: one(w.sim, structs.ReserveMax, structs.ReserveMax, structs.ReserveSum)},
	}
	for i := range 1 + w.IntN(4) {
		s := &structs.WorkflowStage{Name: fmt.Sprintf("s%d", i)}
		for k := range 1 + w.IntN(3) {
			j := &structs.WorkflowJob{Name: fmt.Sprintf("j%d-%d", i, k), Job: w.job(namespace)}
			if w.IntN(3) == 0 {
				j.Retries = 1 + w.IntN(2)
			}
			if k > 0 && w.IntN(8) == 0 {
				j.DependsOn = []string{s.Jobs[k-1].Name}
			}
			s.Jobs = append(s.Jobs, j)
		}
		f.Stages = append(f.Stages, s)
	}
	names := []string{structs.DefaultNamespace}
	if w.tenants != nil {
		names = tenantNames
	}
	shared := w.IntN(2) == 0
	for _, name := range names {
		if w.IntN(4) == 0 {
			continue
		}
		l := &structs.WorkflowLend{To: "namespace:" + name, LendLonger: w.IntN(2) == 0, History: w.IntN(3) == 0}
		if shared {
			l.Share = 1 + w.IntN(3)
		}
		if w.tenants.has(name) { // else it would be refused
			f.Lend = append(f.Lend, l)
		}
	}
	if w.IntN(4) == 0 {
		f.LendMax = &structs.WorkflowResources{Cores: w.Int64N(4), MemoryMB: max(1, w.Int64N(8000)), GPUs: w.Int64N(2)}
	}
	return f
}

// job draws a job of a workflow.
func (w *workflows) job(namespace string) *structs.Job {
	j := &structs.Job{
		Region: structs.DefaultRegion, Namespace: namespace, Datacenters: []string{"*"}, Type: structs.JobTypeBatch,
		TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: 1 + w.IntN(4), Tasks: []*structs.Task{w.users.task()}, MaxRunDuration: one(w.sim, 0, 20*time.Second, time.Minute),
		}},
	}
	g := j.TaskGroups[0]
	for _, d := range g.Tasks[0].Resources.Devices { // of a device that it has only a part of, others may have parts, and keep it
		d.Share = structs.DeviceShareWhole
	}
	requestLicense(j, w)
	switch {
	case w.IntN(12) == 0:
		j.Type, g.Count = structs.JobTypeSysBatch, 1
	case w.IntN(5) == 0:
		g.Gang = &structs.Gang{Min: 1 + w.IntN(g.Count)}
	case w.IntN(2) == 0:
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: new(0), Unlimited: new(false), Interval: new(time.Duration(0))}
	}
	onDistinctHosts(j, w)
	return j
}

// finish has workflows end, now that faults have stopped: those that are paused are resumed, and those that run for long are cancelled.
func (w *workflows) finish() {
	if w != nil {
		w.after(time.Second, "resume workflows", -1, func() { w.all(structs.WorkflowPaused, wire.MethodWorkflowResume) })
		w.after(runOn, "end of workflows", -1, func() { w.idles(0) })
	}
}

// all calls a method for each workflow that is in a state; "": that has not ended.
func (w *workflows) all(state, method string) {
	if w.leader == nil {
		return
	}
	for r := range w.leader.r.store.Snapshot().Workflows(nil).Alive() {
		if state == "" || r.State == state {
			w.do(method, r)
		}
	}
}

// cancel cancels all workflows, however often it takes.
func (w *workflows) cancel() {
	w.all("", wire.MethodWorkflowCancel)
	if w.leader == nil || w.leader.over || len(slices.Collect(w.leader.r.store.Snapshot().Workflows(nil).Alive())) > 0 {
		w.after(time.Second, "end of workflows", -1, w.cancel)
	}
}

// idles fails if a workflow waits for its reservation though all that it needs has been free at some looks in succession. Then all are cancelled.
func (w *workflows) idles(looks int) {
	const enough = 4
	if w.leader == nil || w.leader.over {
		w.after(time.Second, "end of workflows", -1, func() { w.idles(0) })
		return
	}
	snap := w.leader.r.store.Snapshot()
	for _, r := range waiting(snap) {
		key := structs.WorkflowKey(r.Namespace, r.ID)
		// It takes from nobody, and its namespace may withhold what is beyond its cells, as it may from what the driver chooses.
		bands := scheduler.WorkflowBands{OverLimit: workflow.BandsAt(snap, epoch.Add(w.now)).OverLimit}
		if !stages.Choose(snap.World(), r, true, bands).Posted {
			continue
		}
		if looks >= enough {
			w.fail("workflow %s could have its reservation, and waits (%q)", key, r.Missing)
			return
		}
		w.after(time.Second, "end of workflows", -1, func() { w.idles(looks + 1) })
		return
	}
	w.cancel()
}
