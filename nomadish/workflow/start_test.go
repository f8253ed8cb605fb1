package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// judged has plans judged on the state as it is and commits what holds, as the plan applier does.
type judged struct {
	*testcluster.Log
	// before is called with each plan that starts a stage before it is judged, after between that and its commit; nil: neither.
	before, after func(*structs.Plan)
	// reserves is called once, before a reservation is committed; nil: nothing is.
	reserves func()
	starts   []*structs.Plan // that were committed
	at       []uint64        // the index of each
	types    []structs.LogType
}

// Submit implements Planner.
func (l *judged) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	if p.Advance != nil && l.before != nil {
		l.before(p)
	}
	valid, refused, why := scheduler.Judge(l.Store.Snapshot().World().Edit(), p)
	if len(refused) > 0 || valid.Workflow == nil {
		return &structs.PlanResult{RefusedNodes: refused, RefusedReason: why}, nil
	}
	if p.Advance != nil && l.after != nil {
		l.after(p)
	}
	if reserves := l.reserves; p.Workflow.Posted && reserves != nil {
		l.reserves = nil
		reserves()
	}
	of := structs.LogPlanApply
	switch {
	case valid.Renews():
		of = structs.LogWorkflowRenew
	case p.Advance != nil:
		of = structs.LogWorkflowStart
	}
	l.types = append(l.types, of)
	valid.Time = int64(l.Index()) + 1
	index, err := l.Apply(ctx, of, &structs.PlanCommit{Plans: []*structs.JudgedPlan{valid}})
	if err != nil {
		return nil, err
	}
	if p.Advance != nil {
		l.starts, l.at = append(l.starts, p), append(l.at, index)
	}
	return &structs.PlanResult{AllocIndex: index}, nil
}

// stated is a clock that a test moves on.
type stated struct {
	clock.Clock
	now time.Time
}

func (c *stated) Now() time.Time { return c.now }

// started is a cluster with workflows, of which the test looks at one.
type started struct {
	*judged
	t     testcluster.TB
	id    string // of the workflow
	steps *Steps
	known bool // servers know plans that start a stage
	clock *stated
	newID func() string
}

// cores returns a job of so many instances of so many MHz each.
func cores(count, mhz int) *structs.Job {
	j := batchJob()
	j.TaskGroups[0].Count = count
	j.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: mhz, MemoryMB: 10}
	return j
}

// newStarted returns a cluster of nodes of so many MHz, and a workflow whose stages have jobs of one instance each.
func newStarted(t testcluster.TB, nodes []int64, stages ...[]int) *started {
	return startedWith(t, nodes, lendingWorkflow("chip", 50, stages...))
}

// lendingWorkflow returns a workflow that lends to all, whose stages have jobs of one instance of so many MHz each.
func lendingWorkflow(id string, priority int, stages ...[]int) *structs.Workflow {
	w := &structs.Workflow{ID: id, Priority: priority, Lend: []*structs.WorkflowLend{{To: "node_pool:default", LendLonger: true}}}
	for i, jobs := range stages {
		stage := &structs.WorkflowStage{Name: fmt.Sprintf("s%d", i)}
		for k, mhz := range jobs {
			stage.Jobs = append(stage.Jobs, &structs.WorkflowJob{Name: fmt.Sprintf("j%d-%d", i, k), Job: cores(1, mhz)})
		}
		w.Stages = append(w.Stages, stage)
	}
	return w
}

// startedWith returns a cluster of nodes of so many MHz, and a workflow.
func startedWith(t testcluster.TB, nodes []int64, w *structs.Workflow) *started {
	s := &started{
		judged: &judged{Log: testcluster.New(10, state.Options{})}, t: t, id: w.ID, known: true, clock: &stated{now: time.Unix(1000, 0)},
		newID: testcluster.IDs("%08d-0000-0000-0000-000000000000"),
	}
	for i, mhz := range nodes {
		s.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node(fmt.Sprintf("node-%03d", i), mhz), Time: 1})
	}
	s.runs(w)
	s.leads()
	return s
}

// runs has a workflow run.
func (s *started) runs(w *structs.Workflow) {
	w.Canonicalize()
	s.Put(s.t, &structs.WorkflowRunEntry{Workflow: w, Time: int64(s.Index())})
}

// leads has a leader that knows nothing but the state drive workflows from now on.
func (s *started) leads() {
	s.steps = New(Options{NewID: s.newID, Clock: s.clock, Readable: func(structs.LogType) error {
		if s.known {
			return nil
		}
		return errors.New("a server does not know it")
	}}, s.Store, s.Log, s.judged).Start()
}

// step moves the workflow on as far as it goes.
func (s *started) step() {
	for was := uint64(0); was != s.Index(); {
		was = s.Index()
		s.clock.now = s.clock.now.Add(time.Second)
		s.steps.Step(context.Background())
	}
}

func (s *started) run() *structs.WorkflowRun {
	return s.Store.Snapshot().Workflows(nil).Get("default", s.id)
}

// borrow has instances of others run in what is lent, as long as there is any.
func (s *started) borrow(count, mhz int) (placed int) {
	job := cores(count, mhz)
	job.ID = fmt.Sprintf("flood-%d", mhz)
	job.TaskGroups[0].MaxRunDuration = time.Minute
	job.Canonicalize()
	s.Put(s.t, &structs.JobRegisterEntry{Job: job, Time: int64(s.Index())})
	return s.decide(job.ID)
}

// decide has a job decided on as workers do, and returns how many of its instances are placed.
func (s *started) decide(id string) (placed int) {
	snap := s.Store.Snapshot()
	job := snap.Job(nil, "default", id)
	ev := &structs.Evaluation{ID: fmt.Sprintf("%s-%d", id, s.Index()), Namespace: "default", JobID: id, Priority: 50, Type: job.Type, Status: structs.EvalStatusPending}
	plan, err := scheduler.Schedule(snap.World(), ev, snap.Input(job, snap.AllocsToDecide("default", id), &state.InputOptions{
		Now: s.clock.Now(), Seed: 1, NewID: testcluster.IDs(fmt.Sprint(s.Index()) + "-%d"),
	}))
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	if len(plan.Place)+len(plan.Stop) > 0 {
		s.Put(s.t, testcluster.Commit(&structs.JudgedPlan{EvalID: ev.ID, Place: plan.Place, Stop: plan.Stop, Time: int64(s.Index())}))
	}
	for _, b := range plan.Place {
		placed += len(b.Instances)
	}
	return placed
}

// complete ends the jobs of a stage.
func (s *started) complete(stage int) {
	e := &structs.AllocClientEntry{Time: int64(s.Index())}
	for _, j := range s.run().Stages[stage].Jobs {
		for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", j.JobID, true) {
			e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: a.ID, ClientStatus: structs.AllocClientComplete})
		}
	}
	s.Put(s.t, e)
}

// inOne fails unless a stage started as one entry: all its jobs, all their instances, and those who left for them.
func (s *started) inOne(stage int) {
	s.t.Helper()
	snap := s.Store.Snapshot()
	run := s.run()
	if run.Stage != stage || run.Stages[stage].State != structs.StageRunning || len(s.starts) == 0 {
		s.t.Fatalf("stage %d is %s, the run is at %d: %q", stage, run.Stages[stage].State, run.Stage, run.Missing)
	}
	at := s.at[len(s.at)-1]
	for _, j := range run.Stages[stage].Jobs {
		job := snap.Job(nil, "default", j.JobID)
		allocs := snap.AllocsByJob(nil, "default", j.JobID, true)
		if job == nil || len(allocs) != 1 || allocs[0].CreateIndex != at || allocs[0].JobVersion != job.Version {
			s.t.Fatalf("job %s of index %d: %+v, %d allocations", j.JobID, at, job, len(allocs))
		}
		terms := allocs[0].AllocatedResources.Shared.Terms
		if terms.Claim != structs.ClaimWorkflow || terms.Submitted != job.CreateIndex {
			s.t.Fatalf("job %s: its instance is of claim %q, submitted at %d, not at %d", j.JobID, terms.Claim, terms.Submitted, job.CreateIndex)
		}
		evals := snap.EvalsByJob(nil, "default", j.JobID)
		if len(evals) != 1 || evals[0].Status != structs.EvalStatusComplete || evals[0].ID != allocs[0].EvalID {
			s.t.Fatalf("job %s: its evaluations are %+v", j.JobID, evals)
		}
	}
	left := 0
	for _, p := range s.starts[len(s.starts)-1].Stop {
		a := snap.Alloc(nil, p.AllocID)
		if left++; a.DesiredStatus != structs.AllocDesiredEvict || a.ModifyIndex != at {
			s.t.Fatalf("who leaves: %s at %d, the stage started at %d", a.DesiredStatus, a.ModifyIndex, at)
		}
	}
	if run.Stages[stage].Reclaimed != left {
		s.t.Fatalf("stage %d: %d were taken back, the plan says %d", stage, run.Stages[stage].Reclaimed, left)
	}
}

// TestStageIsOnePlan: a stage starts as one entry of the log, with who leaves for it and the place of each of its 1,000 jobs.
func TestStageIsOnePlan(t *testing.T) {
	t.Parallel()
	nodes := slices.Repeat([]int64{16_000}, 130)
	s := newStarted(t, nodes, []int{1000}, slices.Repeat([]int{2000}, 1000))
	s.step()
	s.inOne(0)
	if n := s.borrow(3000, 500); n < 2500 {
		t.Fatalf("%d run in what is lent", n)
	}
	s.complete(0)
	before := s.Index()
	s.step()
	s.inOne(1)
	if s.at[1] != before+1 || len(s.starts[1].Stop) == 0 {
		t.Errorf("the second stage started %d entries later, %d left for it", s.at[1]-before, len(s.starts[1].Stop))
	}
}

// TestStageStartsProperty: whatever the sizes of nodes and jobs, each stage of a reservation starts as one plan, though what was lent is in use: the jobs
// come to run as they were packed.
func TestStageStartsProperty(t *testing.T) {
	t.Parallel()
	stages, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.Int64Range(4, 16), 2, 5).Draw(t, "nodes")
		for i := range nodes {
			nodes[i] *= 1000
		}
		list := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(1, 7), 1, 6), 1, 4).Draw(t, "stages")
		for _, jobs := range list {
			for i := range jobs {
				jobs[i] *= 1000
			}
		}
		s := newStarted(t, nodes, list...)
		for i := range list {
			s.step()
			if i == 0 && !s.run().Posted {
				return // there is no room for it
			}
			s.inOne(i)
			stages, taken = stages+1, taken+len(s.starts[i].Stop)
			s.borrow(rapid.IntRange(0, 30).Draw(t, "borrowers"), 500)
			s.borrow(rapid.IntRange(0, 5).Draw(t, "large borrowers"), 1700)
			s.complete(i)
		}
		if s.step(); s.run().State != structs.WorkflowComplete {
			t.Fatalf("the workflow is %s", s.run().State)
		}
	})
	if stages == 0 || taken == 0 {
		t.Errorf("%d stages started, %d left for them", stages, taken)
	}
}

// TestStageStartRefused: a run that is paused while its next stage is decided, or while that is committed, starts none, and nobody leaves.
func TestStageStartRefused(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		s := newStarted(t, []int64{8000}, []int{2000}, []int{8000})
		s.step()
		if s.borrow(20, 500) == 0 {
			t.Fatal("nothing is lent")
		}
		s.complete(0)
		pause := func(*structs.Plan) {
			if s.run().State == structs.WorkflowRunning {
				s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionPause, EvalSeed: "pause", Time: 5})
			}
		}
		if s.before = pause; when == "after" {
			s.before, s.after = nil, pause
		}
		s.step()
		run, snap := s.run(), s.Store.Snapshot()
		if run.State != structs.WorkflowPaused || run.Stages[1].State != structs.StageWaiting || snap.Job(nil, "default", run.Stages[1].Jobs[0].JobID) != nil {
			t.Errorf("paused %s the plan was judged: the run is %s, stage 2 is %s", when, run.State, run.Stages[1].State)
		}
		for _, a := range snap.AllocsByJob(nil, "default", "flood-500", true) {
			if a.DesiredStatus != structs.AllocDesiredRun {
				t.Fatalf("paused %s the plan was judged: an allocation is %s", when, a.DesiredStatus)
			}
		}
		s.before, s.after = nil, nil
		s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionResume, EvalSeed: "resume", Time: 6})
		s.step()
		s.inOne(1)
	}
}

// TestStageOneLendsNothingBefore: between the reservation and the start of the first stage nothing is lent, which would be taken back at once; while the
// run is paused there it is.
func TestStageOneLendsNothingBefore(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{8000}, []int{2000}, []int{8000})
	s.steps.Step(context.Background()) // reserves
	if run := s.run(); !run.Posted || run.State != structs.WorkflowPending {
		t.Fatalf("the run is %s, posted %v", run.State, run.Posted)
	}
	if n := s.borrow(20, 500); n != 0 {
		t.Errorf("%d borrow before the first stage", n)
	}
	s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionPause, EvalSeed: "pause", Time: 5})
	if n := s.borrow(20, 400); n == 0 {
		t.Error("nobody borrows while the run is paused")
	}
	s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionResume, EvalSeed: "resume", Time: 6})
	s.step()
	s.inOne(0)
}

// TestStageStartOlderServers: while a server does not know plans that start a stage, its jobs are registered and evaluated as others are.
func TestStageStartOlderServers(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{8000}, []int{2000}, []int{8000})
	s.known = false
	s.step()
	run, snap := s.run(), s.Store.Snapshot()
	evals := snap.EvalsByJob(nil, "default", run.Stages[0].Jobs[0].JobID)
	if run.Stages[0].State != structs.StageStarting || len(s.starts) != 0 || len(evals) != 1 || evals[0].Status != structs.EvalStatusPending {
		t.Errorf("stage 1 is %s, %d started as one plan, its evaluations are %+v", run.Stages[0].State, len(s.starts), evals)
	}
}

// TestStageWaitsForStopped: a run that is started again at once after it was cancelled starts no job while instances of the run before are being
// stopped; it does not wait for a node that is down.
func TestStageWaitsForStopped(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		s := newStarted(t, []int64{8000, 8000}, []int{2000})
		s.step()
		old := s.Store.Snapshot().AllocsByJob(nil, "default", "chip/1/j0-0", true)[0]
		report := func(status string) {
			s.Put(t, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: old.ID, ClientStatus: status}}, Time: int64(s.Index())})
		}
		report(structs.AllocClientRunning)
		s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, EvalSeed: "cancel", Time: 5})
		s.Put(t, &structs.WorkflowRunEntry{Namespace: "default", ID: "chip", From: "s0", Time: 6})
		s.step()
		if run := s.run(); run.Run != 2 || !run.Posted || run.State != structs.WorkflowPending {
			t.Fatalf("while an instance is being stopped, run %d is %s, posted %v", run.Run, run.State, run.Posted)
		} else if waits, _ := Stopping(s.Store.Snapshot(), nil, run); !run.Awaits() || len(waits) != 1 || waits[0] != old.ID {
			t.Errorf("it waits %v, for %v", run.Awaits(), waits)
		}
		if wait, again := s.steps.Again(); !again || wait != retryAfter {
			t.Errorf("it is looked at again in %s, %v", wait, again)
		}
		if down {
			s.Put(t, &structs.NodeStatusEntry{NodeIDs: []string{old.NodeID}, Status: structs.NodeStatusDown, Time: int64(s.Index())})
		} else {
			report(structs.AllocClientComplete)
		}
		if s.step(); s.run().State != structs.WorkflowRunning {
			t.Errorf("its end was reported or its node is down (%v): run %d is %s", down, s.run().Run, s.run().State)
		}
	}
}

// TestStageWaitsForPurged: a run that is started again at once after it was cancelled starts no job beside the instances of a job that was purged, either.
func TestStageWaitsForPurged(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{8000, 8000}, []int{2000})
	s.step()
	old := s.Store.Snapshot().AllocsByJob(nil, "default", "chip/1/j0-0", true)[0]
	report := func(status string) {
		s.Put(t, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: old.ID, ClientStatus: status}}, Time: int64(s.Index())})
	}
	report(structs.AllocClientRunning)
	s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, EvalSeed: "cancel", Time: 5})
	s.Put(t, &structs.JobDeregisterEntry{Namespace: "default", JobID: "chip/1/j0-0", Purge: true, Time: 6})
	s.Put(t, &structs.WorkflowRunEntry{Namespace: "default", ID: "chip", From: "s0", Time: 7})
	s.step()
	if run := s.run(); run.Run != 2 || !run.Posted || run.State != structs.WorkflowPending {
		t.Errorf("while an instance of a purged job runs, run %d is %s, posted %v", run.Run, run.State, run.Posted)
	} else if waits, _ := Stopping(s.Store.Snapshot(), nil, run); len(waits) != 1 || waits[0] != old.ID {
		t.Errorf("it waits for %v", waits)
	}
	again := testcluster.Job("chip/1/j0-0", structs.JobTypeBatch, 1)
	s.Put(t, &structs.JobRegisterEntry{Job: again, Eval: testcluster.Eval("99999999-0000-0000-0000-000000000000", again, structs.EvalStatusComplete), Time: 8})
	if waits, _ := Stopping(s.Store.Snapshot(), nil, s.run()); len(waits) != 1 || waits[0] != old.ID {
		t.Errorf("its name was registered again: the run waits for %v", waits)
	}
	report(structs.AllocClientComplete)
	if s.step(); s.run().State != structs.WorkflowRunning {
		t.Errorf("its end was reported: run %d is %s", s.run().Run, s.run().State)
	}
}

// TestStoppedDelaysNoSibling: while instances of a job that somebody has stopped end, the ends of its siblings are recorded and they are retried; the next
// stage waits for these instances, and status names them.
func TestStoppedDelaysNoSibling(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000, 1000, 1000}, []int{1000})
	w.OnFailure, w.Stages[0].Jobs[1].Retries = structs.OnFailureContinue, 1
	s := startedWith(t, []int64{8000}, w)
	s.step()
	first := func(job int) string {
		return s.Store.Snapshot().AllocsByJob(nil, "default", s.run().Stages[0].Jobs[job].JobID, true)[0].ID
	}
	report := func(id, status string) {
		s.Put(t, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: id, ClientStatus: status}}, Time: int64(s.Index())})
	}
	stopped := first(0)
	report(stopped, structs.AllocClientRunning)
	s.Put(t, &structs.JobDeregisterEntry{Namespace: "default", JobID: s.run().Stages[0].Jobs[0].JobID, Time: 5})
	s.Put(t, testcluster.Commit(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: stopped, DesiredStatus: structs.AllocDesiredStop}}, Time: int64(s.Index())}))
	report(first(1), structs.AllocClientFailed)
	report(first(2), structs.AllocClientComplete)
	s.step()
	jobs := s.run().Stages[0].Jobs
	if jobs[0].State != structs.StageFailed || jobs[1].Attempt != 2 || jobs[2].State != structs.StageComplete {
		t.Fatalf("while a job is being stopped its stage has %+v", jobs)
	}
	if waits, _ := Stopping(s.Store.Snapshot(), nil, s.run()); len(waits) != 0 {
		t.Errorf("nothing is to start, and it waits for %v", waits)
	}
	for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", jobs[1].JobID, true) {
		if !a.ClientTerminal() {
			report(a.ID, structs.AllocClientComplete)
		}
	}
	s.step()
	if run := s.run(); run.Stage != 0 || run.Stages[0].Jobs[1].State != structs.StageComplete || run.Stages[1].State != structs.StageWaiting {
		t.Errorf("stage 2 is %s, job 2 of stage 1 is %s", run.Stages[1].State, run.Stages[0].Jobs[1].State)
	} else if waits, _ := Stopping(s.Store.Snapshot(), nil, run); len(waits) != 1 || waits[0] != stopped {
		t.Errorf("stage 2 waits for %v", waits)
	}
	report(stopped, structs.AllocClientComplete)
	if s.step(); s.run().Stage != 1 {
		t.Errorf("its end was reported, and the run is at %d", s.run().Stage)
	}
}

// TestPausedWhileReserved: a run that is paused while its reservation is being committed lends what it has reserved.
func TestPausedWhileReserved(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{8000}, []int{2000}, []int{8000})
	s.reserves = func() {
		s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionPause, EvalSeed: "pause", Time: 5})
	}
	s.step()
	if run := s.run(); !run.Posted || run.State != structs.WorkflowPaused || run.Closed {
		t.Fatalf("the run is %s, posted %t, closed %t", run.State, run.Posted, run.Closed)
	}
	if s.borrow(20, 500) == 0 {
		t.Error("nobody borrows while the run is paused")
	}
}
