package workflow

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// chip returns a workflow of two stages, of which the job of the first brings along what servers state themselves.
func chip() *structs.Workflow {
	job := func() *structs.Job {
		return &structs.Job{TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}}}}}
	}
	w := &structs.Workflow{ID: "chip", Stages: []*structs.WorkflowStage{
		{Name: "synth", Jobs: []*structs.WorkflowJob{{Name: "a", Job: job()}}}, {Name: "place", Jobs: []*structs.WorkflowJob{{Name: "b", Job: job()}}},
	}}
	first := w.Stages[0].Jobs[0].Job
	first.Workflow, first.Submitter, first.Stop, first.Version = &structs.JobWorkflow{ID: "other"}, &structs.Submitter{User: "eve"}, true, 7
	return w
}

// at is an endpoint whose jobs are found wrong as refuse states; empty: they are right.
func at(t *testing.T, refuse string) (*Endpoint, *endpointtest.Site) {
	site := endpointtest.New(t)
	return New(Deps{
		Parts: rpc.Parts{Router: site.Router, Applier: site.Log, NewID: func() string { return "id" }, Now: func() time.Time { return time.Unix(100, 0) }},
		Self: func(_ context.Context, method string, args, reply any) error {
			if _, ok := args.(*structs.JobRegisterRequest); !ok || method != wire.MethodJobValidate {
				t.Errorf("a call of %s with %T", method, args)
			}
			reply.(*structs.JobValidateReply).Error = refuse
			return nil
		},
	}), site
}

// TestRun: a workflow is stored without what its jobs brought along, shown, and refused a second time while it is alive.
func TestRun(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	reply, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()})
	if err != nil || reply.Run != 1 || reply.Index == 0 {
		t.Fatalf("%+v %v", reply, err)
	}
	row := site.Store.Snapshot().Workflows(nil).Get("default", "chip")
	if job := row.Workflow.Stages[0].Jobs[0].Job; job.Workflow != nil || job.Submitter != nil || job.Stop || job.Version != 0 || job.Type != structs.JobTypeBatch {
		t.Errorf("the job has kept what it brought along: %+v", job)
	}
	if _, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()}); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a second run: %v", err)
	}
	got, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
	if err != nil || got.Workflow == nil || got.Workflow.State != structs.WorkflowPending || got.Workflow.Stage != 1 || got.Workflow.Stages[0].Jobs[0].ID != "chip/1/a" ||
		got.Workflow.Stages[0].Jobs[0].Instances != 2 || got.Index != reply.Index {
		t.Errorf("%+v %v", got.Workflow, err)
	}
	list, err := e.list(t.Context(), &structs.ListRequest{QueryOptions: structs.QueryOptions{Namespace: "*"}})
	if err != nil || len(list.Workflows) != 1 || list.Workflows[0].StageName != "synth" || list.Workflows[0].Stages != 2 {
		t.Errorf("%+v %v", list.Workflows, err)
	}
	plan, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()})
	if err != nil || plan.Plan.Alive != 1 || len(plan.Plan.Stages) != 2 || plan.Plan.Sum.MemoryMB != 2*plan.Plan.Max.MemoryMB {
		t.Errorf("%+v %v", plan, err)
	}
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	plan, err = e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()})
	if err != nil || plan.Plan.Alive != 1 || plan.Plan.Never || plan.Plan.Posted || len(plan.Plan.Packing) > 0 || plan.Plan.Missing != "" {
		t.Errorf("others may take the room of a run that has not ended: %+v %v", plan.Plan, err)
	}
}

// TestWrongRequests: what is refused, and why.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	f := func(what string, err error, code structs.Code, want string) {
		t.Helper()
		if structs.CodeOf(err) != code || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s: %q", what, err, code, want)
		}
	}
	e, _ := at(t, `job "a" is not for this cluster`)
	_, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()})
	f("a wrong job", err, structs.CodeBadRequest, `workflow "chip": stage "synth": job "a" is not for this cluster`)
	e, site := at(t, "")
	_, err = e.run(t.Context(), &structs.WorkflowRunRequest{})
	f("no workflow", err, structs.CodeBadRequest, "the request has no workflow")
	_, err = e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: &structs.Workflow{ID: "x", Stages: []*structs.WorkflowStage{nil}}})
	f("a missing stage", err, structs.CodeBadRequest, "stage 1 is missing")
	_, err = e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: chip(), WriteRequest: structs.WriteRequest{Namespace: "none"}})
	f("a missing namespace", err, structs.CodeBadRequest, "none")
	pool := chip()
	pool.NodePool = "none"
	_, err = e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: pool})
	f("a missing node pool", err, structs.CodeBadRequest, `workflow "chip": node_pool: node pool "none" does not exist`)
	_, err = e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip"})
	f("retry of none", err, structs.CodeNotFound, `workflow "chip" in namespace "default": not found`)
	site.Put(&structs.WorkflowRunEntry{Workflow: stored(t), Time: 1})
	_, err = e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip", Stage: "x"})
	f("retry of no stage", err, structs.CodeBadRequest, `it has no stage "x"`)
	_, err = e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip"})
	f("retry while it runs", err, structs.CodeConflict, "run 1 has not ended, it is pending")
	action := &structs.WorkflowActionRequest{ID: "chip"}
	_, err = e.delete(t.Context(), action)
	f("delete while it runs", err, structs.CodeConflict, "run 1 has not ended")
	if _, err := e.act(t.Context(), structs.WorkflowActionCancel, action); err != nil {
		t.Error(err)
	}
	_, err = e.act(t.Context(), structs.WorkflowActionPause, action)
	f("pause after its end", err, structs.CodeConflict, "run 1 has ended, it is cancelled")
	action.User = "eve"
	_, err = e.delete(t.Context(), action)
	f("a user that is not trusted", err, structs.CodeForbidden, "trust no such header")
	action.User = ""
	if _, err := e.delete(t.Context(), action); err != nil {
		t.Error(err)
	}
}

// TestPriorities: a workflow has the region's default priority if it states none, and no more than the highest that jobs may state.
func TestPriorities(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	e.DefaultPriority, e.MaxPriority = 20, 60
	w := chip()
	w.Priority = 61
	if _, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: w}); err == nil || !strings.Contains(err.Error(), "allow at most 60 (job_max_priority)") {
		t.Errorf("more than the maximum: %v", err)
	}
	if _, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()}); err != nil {
		t.Fatal(err)
	}
	if row := site.Store.Snapshot().Workflows(nil).Get("default", "chip"); row.Workflow.Priority != 20 || row.Workflow.Stages[0].Jobs[0].Job.Priority != 20 {
		t.Errorf("the priority is %d", row.Workflow.Priority)
	}
}

// TestRetryIsAdmitted: a retry is admitted as a run is, and begins with no stage that waits for another one.
func TestRetryIsAdmitted(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	site.Put(&structs.WorkflowRunEntry{Workflow: stored(t), Time: 1})
	if _, err := e.act(t.Context(), structs.WorkflowActionCancel, &structs.WorkflowActionRequest{ID: "chip"}); err != nil {
		t.Fatal(err)
	}
	_, err := e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip", Stage: "place"})
	if structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), `stage "synth" before it is not complete`) {
		t.Errorf("from the second stage: %v", err)
	}
	c := structs.DefaultSchedulerConfiguration()
	c.RejectJobRegistration = true
	site.Log.Put(t, &structs.SchedulerConfigEntry{Config: c, Time: 1})
	if _, err := e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip"}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("while registration is switched off: %v", err)
	}
	c.RejectJobRegistration = false
	site.Log.Put(t, &structs.SchedulerConfigEntry{Config: c, Time: 1})
	if _, err := e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip"}); err != nil {
		t.Error(err)
	}
}

// TestRetryOfSplitStage: a stage whose jobs depend on each other is run again from its first part on, by the name that it has in the file.
func TestRetryOfSplitStage(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	w := chip()
	w.Stages[0].Jobs = append(w.Stages[0].Jobs, &structs.WorkflowJob{Name: "c", DependsOn: []string{"a"}, Job: w.Stages[1].Jobs[0].Job.Copy()})
	w.Stages[0].Jobs[0].Name = "a"
	if _, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: w}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.act(t.Context(), structs.WorkflowActionCancel, &structs.WorkflowActionRequest{ID: "chip"}); err != nil {
		t.Fatal(err)
	}
	reply, err := e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip", Stage: "synth"})
	if err != nil || reply.Run != 2 {
		t.Fatalf("%+v %v", reply, err)
	}
	if r := site.Store.Snapshot().Workflows(nil).Get("default", "chip"); r.Stages[r.Stage].Name != "synth-1" {
		t.Errorf("it begins with stage %q", r.Stages[r.Stage].Name)
	}
}

// TestPlanSysbatchTooLarge: a sysbatch job that no node could hold keeps its stage from ending, and a plan refuses the workflow for it.
func TestPlanSysbatchTooLarge(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	for mhz, never := range map[int]bool{1000: false, 20_000: true} {
		w := chip()
		job := w.Stages[1].Jobs[0].Job
		job.Type, job.TaskGroups[0].Count = structs.JobTypeSysBatch, 1
		job.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: mhz, MemoryMB: 10}
		reply, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: w})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Plan.Never != never || reply.Plan.Posted == never || never != strings.Contains(reply.Plan.Missing, `job "chip/1/b", of type sysbatch, would wait on every node that may run it`) {
			t.Errorf("%d MHz: %+v", mhz, reply.Plan)
		}
	}
}

// TestPlansWait: two workflows are planned at a time. Who waits and hangs up waits no longer, and nothing is planned.
func TestPlansWait(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	made := 0
	e.Forecasts = fixed{run: func(*structs.WorkflowRunEntry) (*structs.RunForecast, error) {
		if made++; len(e.planning) != maxPlanning {
			t.Errorf("%d workflows are being planned, not %d", len(e.planning), maxPlanning)
		}
		return &structs.RunForecast{}, nil
	}}
	for range maxPlanning {
		e.planning <- struct{}{}
	}
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := e.plan(ctx, &structs.WorkflowRunRequest{Workflow: chip(), Forecast: true}); !errors.Is(err, context.Canceled) || made != 0 {
		t.Errorf("a caller that hung up: %v, %d forecasts were made", err, made)
	}
	<-e.planning
	if _, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: chip(), Forecast: true}); err != nil || made != 1 || len(e.planning) != maxPlanning-1 {
		t.Errorf("a plan: %v, %d forecasts were made, %d are planned after it", err, made, len(e.planning))
	}
}

// TestTooManyInstances: a workflow whose jobs have more instances together than are allowed is refused when it is run, planned, and run again; it may be
// stored from before that was bounded.
func TestTooManyInstances(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	large := func(w *structs.Workflow) *structs.Workflow {
		for _, s := range w.Stages {
			s.Jobs[0].Job.TaskGroups[0].Count = structs.MaxWorkflowInstances/2 + 1
		}
		return w
	}
	refused := func(what string, err error) {
		t.Helper()
		if structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "its jobs have 100002 instances together, at most 100000 are allowed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := e.run(t.Context(), &structs.WorkflowRunRequest{Workflow: large(chip())})
	refused("run", err)
	_, err = e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: large(chip())})
	refused("plan", err)
	site.Put(&structs.WorkflowRunEntry{Workflow: large(stored(t)), Time: 1})
	if _, err := e.act(t.Context(), structs.WorkflowActionCancel, &structs.WorkflowActionRequest{ID: "chip"}); err != nil {
		t.Fatal(err)
	}
	_, err = e.retry(t.Context(), &structs.WorkflowRetryRequest{ID: "chip"})
	refused("retry", err)
}

// stored returns a workflow that may be stored as it is.
func stored(t *testing.T) *structs.Workflow {
	w := chip()
	clearJob(w.Stages[0].Jobs[0].Job, "global")
	w.Canonicalize()
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

// fixed is forecasts as a test states them.
type fixed struct {
	last *structs.Forecast
	run  func(entry *structs.WorkflowRunEntry) (*structs.RunForecast, error)
}

func (f fixed) Last() (*structs.Forecast, string) { return f.last, "there is none" }
func (f fixed) IfRun(_ context.Context, entry *structs.WorkflowRunEntry) (*structs.RunForecast, error) {
	return f.run(entry)
}

// TestPlanPreempts: a plan counts whom the reservation would preempt, and names their jobs, where batch jobs preempt; else it would wait.
func TestPlanPreempts(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	low := testcluster.Batch("low", "n", "seed", 4)
	low.Resources = &structs.AllocatedResources{
		Tasks:  map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 2500}}},
		Shared: structs.AllocatedSharedResources{Terms: &structs.AllocTerms{Priority: 10}},
	}
	site.Put(&structs.JobRegisterEntry{Job: testcluster.Job("low", structs.JobTypeBatch, 4), Time: 1})
	site.Put(testcluster.Place("", 1, low))
	for _, on := range []bool{false, true} {
		config := structs.DefaultSchedulerConfiguration()
		config.PreemptionConfig.BatchSchedulerEnabled = on
		site.Put(&structs.SchedulerConfigEntry{Config: config, Time: 1})
		reply, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: chip()})
		if err != nil || reply.Plan.Posted != on || (reply.Plan.Preempted == 1) != on || reply.Plan.Leaving != 0 || (reply.Plan.Missing == "") != on {
			t.Errorf("preemption %v: %+v %v", on, reply.Plan, err)
		}
		want := []structs.WorkflowLeaver{{Namespace: "default", JobID: "low", TaskGroup: "g", Instances: 1, Priority: 10, Band: "1-40"}}
		if got := reply.Plan.Leavers; on && !slices.Equal(got, want) || !on && len(got) > 0 {
			t.Errorf("preemption %v: %+v leave, want %+v", on, got, want)
		}
	}
}

// TestForecast: a plan states when the workflow would start if that is requested, and the status of one that waits when it does; or why that is not known.
func TestForecast(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	of, refused := &structs.RunForecast{Index: 7}, error(nil)
	made := 0
	now := fixed{run: func(entry *structs.WorkflowRunEntry) (*structs.RunForecast, error) {
		if made++; entry.Workflow.ID != "chip" || entry.Time == 0 {
			t.Errorf("%+v", entry)
		}
		return of, refused
	}}
	e.Forecasts = now
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	f := func(requested bool, want *structs.RunForecast, why string) {
		t.Helper()
		reply, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: chip(), Forecast: requested})
		if err != nil || reply.Plan.Forecast != want || reply.Plan.NoForecast != why {
			t.Errorf("%+v %v", reply, err)
		}
	}
	f(false, nil, "")
	f(true, of, "")
	of, refused = nil, structs.Errorf(structs.CodeLimited, "there is no time")
	f(true, nil, "there is no time")
	site.Put(&structs.WorkflowRunEntry{Workflow: stored(t), Time: 1})
	f(true, nil, "run 1 has not ended")
	if made != 2 {
		t.Errorf("%d forecasts were made, not 2", made)
	}
	shown := func(last *structs.Forecast, index uint64, why string) {
		t.Helper()
		now.last = last
		e.Forecasts = now
		reply, err := e.get(t.Context(), &structs.IDRequest{ID: "chip"})
		if err != nil || (reply.Workflow.Forecast != nil) != (index > 0) || index > 0 && reply.Workflow.Forecast.Index != index || reply.Workflow.NoForecast != why {
			t.Errorf("%+v %v", reply.Workflow, err)
		}
	}
	shown(nil, 0, "there is none")
	listed := func(want *structs.QueueForecast) {
		t.Helper()
		reply, err := e.list(t.Context(), &structs.ListRequest{})
		if err != nil || len(reply.Workflows) != 1 || !reflect.DeepEqual(reply.Workflows[0].Forecast, want) {
			t.Errorf("%+v %v", reply, err)
		}
	}
	shown(&structs.Forecast{Index: 3, Time: 88e9}, 0, "it is not part of a forecast yet: the last one is of index 3, as of 12s ago")
	listed(nil)
	shown(&structs.Forecast{Index: 4, Time: 88e9, Workflows: []*structs.WorkflowForecast{{
		Namespace: "default", ID: "chip", Run: 1, Latest: structs.WorkflowStartForecast{Start: 200e9}, Expected: structs.WorkflowStartForecast{Unknown: "no time"},
	}}}, 4, "")
	listed(&structs.QueueForecast{Index: 4, Time: 88e9, Latest: 200e9, Unknown: "no time"})
}

// TestMissingOfPosted: of a reservation that is posted it is stated which GPUs are bad, and of which licenses workflows have reserved more together than
// there are.
func TestMissingOfPosted(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	node := testcluster.Node("n", 10_000)
	node.NodeResources.Devices = []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: []*structs.NodeDevice{
		{ID: "gpu-0", Healthy: true}, {ID: "gpu-1"},
	}}}
	site.Put(&structs.NodeRegisterEntry{Node: node, Time: 1})
	licenses := func(count int64) {
		site.Put(&structs.LicenseUpsertEntry{License: &structs.License{Name: "vcs", Count: count}})
	}
	licenses(10)
	for _, id := range []string{"chip", "next"} {
		w := chip()
		w.ID = id
		w.Canonicalize()
		site.Put(&structs.WorkflowRunEntry{Workflow: w, Time: 1})
		site.Put(testcluster.Commit(&structs.JudgedPlan{JudgedAt: 100, Workflow: &structs.WorkflowReservation{
			Namespace: structs.DefaultNamespace, ID: id, Run: 1, Posted: true, Licenses: []structs.RequestedLicense{{Name: "vcs", Count: 4}},
			Parts: []structs.WorkflowPart{{NodeID: "n", MemoryMB: 1, Devices: 1, DeviceIDs: []string{map[string]string{"chip": "gpu-0", "next": "gpu-1"}[id]}}},
		}}))
	}
	f := func(id, want string) {
		t.Helper()
		snap := site.Store.Snapshot()
		if s, _ := status(nil, snap, snap.Workflows(nil).Get("default", id)); s.Missing != want || !s.Posted || s.Parts[0].NodeName != "n" || s.Parts[0].NodeID != "n" {
			t.Errorf("%s, posted %v, on %v: %q, want %q", id, s.Posted, s.Parts, s.Missing, want)
		}
	}
	const bad, few = "GPU gpu-1 of node n is bad", `8 of license "vcs" are reserved, and there are 6: by workflows default/chip (4), default/next (4)`
	f("chip", "")
	f("next", bad)
	const nowhere = bad + ", and nowhere is so much free: 1 GPU is missing"
	missing := func(id, text, level string) {
		site.Put(testcluster.Commit(&structs.JudgedPlan{JudgedAt: 100, Workflow: &structs.WorkflowReservation{
			Namespace: structs.DefaultNamespace, ID: id, Run: 1, Posted: true, Missing: text, Licenses: []structs.RequestedLicense{{Name: "vcs", Count: 4}},
			Parts: []structs.WorkflowPart{{NodeID: "n", MemoryMB: 1, Devices: 1, DeviceIDs: []string{"gpu-1"}, CellLevel: level}},
		}}))
	}
	missing("next", nowhere, "")
	f("next", nowhere) // once
	well := testcluster.Node("well", 10_000)
	well.NodeResources.Devices = []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: []*structs.NodeDevice{
		{ID: "well-0", Healthy: true}, {ID: "well-1", Healthy: true},
	}}}
	site.Put(&structs.NodeRegisterEntry{Node: well, Time: 1})
	site.Put(&structs.VirtualClusterUpsertEntry{EvalSeed: "owns", VirtualCluster: &structs.VirtualCluster{Name: "default", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}}}})
	f("next", nowhere+`; GPUs of the cells of namespace "default" are not counted, as these do not hold every stage`)
	missing("next", nowhere, structs.LevelNode)
	f("next", nowhere) // it is in these cells
	site.Put(&structs.VirtualClusterDeleteEntry{Name: "default"})
	missing("next", "", "")
	licenses(6)
	f("chip", few)
	late := chip()
	late.ID = "late"
	late.Canonicalize()
	site.Put(&structs.WorkflowRunEntry{Workflow: late, Time: 1})
	site.Put(testcluster.Commit(&structs.JudgedPlan{JudgedAt: 100, Workflow: &structs.WorkflowReservation{
		Namespace: structs.DefaultNamespace, ID: "late", Run: 1, Missing: "there is not enough free",
	}}))
	site.Put(&structs.WorkflowStateEntry{Namespace: structs.DefaultNamespace, ID: "late", Action: structs.WorkflowActionPause, Time: 1})
	snap := site.Store.Snapshot()
	if s, _ := status(nil, snap, snap.Workflows(nil).Get("default", "late")); s.Missing != "it was paused before its reservation" {
		t.Errorf("a run that is paused before its reservation waits as %q", s.Missing)
	}
	f("next", bad+"; "+few)
	licenses(8)
	f("chip", "")
	taker := testcluster.Job("taker", structs.JobTypeBatch, 1)
	taker.TaskGroups[0].Tasks[0].Resources.Licenses = map[string]int{"vcs": 1}
	site.Put(&structs.JobRegisterEntry{Job: taker, Time: 1})
	batch := testcluster.Batch("taker", "n", "taker", 1)
	batch.Resources = &structs.AllocatedResources{Shared: structs.AllocatedSharedResources{Terms: &structs.AllocTerms{Licenses: taker.TaskGroups[0].Licenses()}}}
	site.Put(testcluster.Place("", 1, batch))
	const taken = `8 of license "vcs" are reserved, and there are 8, of which others use 1 beside the reservations: by workflows default/chip (4), default/next (4)`
	f("chip", taken)
}

// TestReservedOfPending: of a run that waits it is stated where it keeps what comes free, not as what it has reserved.
func TestReservedOfPending(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	w := stored(t)
	w.Lend = []*structs.WorkflowLend{{To: "namespace:default", Share: 2}}
	site.Put(&structs.WorkflowRunEntry{Workflow: w, Time: 1})
	for _, posted := range []bool{false, true} {
		site.Put(testcluster.Commit(&structs.JudgedPlan{JudgedAt: 100, Workflow: &structs.WorkflowReservation{
			Namespace: structs.DefaultNamespace, ID: "chip", Run: 1, Posted: posted, Parts: []structs.WorkflowPart{{NodeID: "n", CPU: 2000, MemoryMB: 1}},
		}}))
		snap := site.Store.Snapshot()
		s, _ := status(nil, snap, snap.Workflows(nil).Get("default", "chip"))
		if nothing := s.Reserved.CPU == 0 && s.Idle.CPU == 0 && len(s.Parts) == 0; nothing == posted || posted == (len(s.Keeps) > 0) {
			t.Errorf("posted %v: reserved %+v, idle %+v, %d parts, keeps %+v", posted, s.Reserved, s.Idle, len(s.Parts), s.Keeps)
		}
		if len(s.LentTo) != 1 || s.LentTo[0].To != "namespace:default" || s.LentTo[0].Share != 2 {
			t.Errorf("posted %v: lent to %+v", posted, s.LentTo)
		}
	}
}

// TestPausedWithoutReservation: a paused run for which nothing is to be reserved misses nothing.
func TestPausedWithoutReservation(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	w := chip()
	for _, s := range w.Stages {
		s.Jobs[0].Job.Type, s.Jobs[0].Job.TaskGroups[0].Count = structs.JobTypeSysBatch, 1
	}
	clearJob(w.Stages[0].Jobs[0].Job, "global")
	w.Canonicalize()
	site.Put(&structs.WorkflowRunEntry{Workflow: w, Time: 1})
	site.Put(&structs.WorkflowStateEntry{Namespace: structs.DefaultNamespace, ID: "chip", Action: structs.WorkflowActionPause, Time: 1})
	snap := site.Store.Snapshot()
	if s, _ := status(nil, snap, snap.Workflows(nil).Get("default", "chip")); s.Missing != "" {
		t.Errorf("a paused run of sysbatch jobs waits as %q", s.Missing)
	}
}
