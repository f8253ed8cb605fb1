package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func placed(t *testing.T, n int) (*world, []string) {
	t.Helper()
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	return w, w.place("web", 0, "n", "s", n)
}

func TestPlacedAllocations(t *testing.T) {
	w, ids := placed(t, 3)
	snap := w.store.Snapshot()
	a := snap.Alloc(nil, ids[1])
	check(t, "name", a.Name, "web.web[1]")
	check(t, "job", a.Job, snap.Job(nil, "default", "web"))
	check(t, "indexes", [3]uint64{a.CreateIndex, a.ModifyIndex, a.AllocModifyIndex}, [3]uint64{3, 3, 3})
	cpu, _, _, _ := a.AllocatedResources.Total()
	check(t, "cpu", cpu, 100)
	for what, got := range map[string][]*structs.Allocation{
		"by job": snap.AllocsByJob(nil, "default", "web", false), "by node": snap.AllocsByNode(nil, "n"),
		"by evaluation": snap.AllocsByEval(nil, "e-s"), "all": slices.Collect(snap.Allocs(nil, "*", "", false)),
	} {
		check(t, what, len(got), 3)
		if !slices.IsSortedFunc(got, func(a, b *structs.Allocation) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		}) {
			t.Errorf("%s: not ordered by ID", what)
		}
		for _, a := range got {
			if a.Job == nil {
				t.Errorf("%s: an allocation without its job", what)
			}
		}
	}
	check(t, "in another namespace", len(slices.Collect(snap.Allocs(nil, "other", "", false))), 0)
	check(t, "by prefix", len(slices.Collect(snap.Allocs(nil, "default", ids[0][:8], false))), 1)
	w.plan(&structs.JudgedPlan{Place: []*structs.PlacementBatch{batch("web", 0, "n", "s", 3)}})
	check(t, "modify index after the same plan again", w.store.Snapshot().Alloc(nil, ids[1]).ModifyIndex, 3)
}

func TestRowsAreNotChangedByLaterPlans(t *testing.T) {
	w, ids := placed(t, 1)
	before := w.store.Snapshot()
	w.report(structs.AllocClientRunning, ids...)
	check(t, "status in the older snapshot", before.Alloc(nil, ids[0]).ClientStatus, structs.AllocClientPending)
}

func TestInstancesOwnPorts(t *testing.T) {
	w, _ := placed(t, 1)
	b := batch("web", 0, "n", "s2", 2)
	b.Instances[0].Ports = []structs.PortMapping{{Label: "http", Value: 20001}}
	snap := w.plan(&structs.JudgedPlan{Place: []*structs.PlacementBatch{b}})
	check(t, "ports", len(snap.Alloc(nil, structs.DeriveID("s2", 0)).AllocatedResources.Shared.Ports), 1)
	check(t, "the other's", len(snap.Alloc(nil, structs.DeriveID("s2", 1)).AllocatedResources.Shared.Ports), 0)
}

func TestBrokenPlansAreRefused(t *testing.T) {
	w, _ := placed(t, 1)
	f := func(p *structs.JudgedPlan) {
		t.Helper()
		w.refuses(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{batch("web", 0, "n", "x", 1)}}, p}}, structs.CodeBadRequest)
	}
	b := batch("web", 0, "n", "y", 1)
	b.Instances[0].Node = 1
	f(&structs.JudgedPlan{Place: []*structs.PlacementBatch{b}})
	f(&structs.JudgedPlan{Place: []*structs.PlacementBatch{nil}})
	f(&structs.JudgedPlan{Place: []*structs.PlacementBatch{batch("", 0, "n", "y", 1)}})
	f(&structs.JudgedPlan{Evals: []*structs.Evaluation{{ID: "e", Namespace: "default", JobID: "web", Status: "odd"}}})
	b = batch("web", 0, "n", "y", 1)
	b.Resources.Tasks["t"] = nil
	f(&structs.JudgedPlan{Place: []*structs.PlacementBatch{b}})
}

func TestReports(t *testing.T) {
	w, ids := placed(t, 2)
	a := w.report(structs.AllocClientRunning, ids[0], "unknown").Alloc(nil, ids[0])
	check(t, "status", a.ClientStatus, structs.AllocClientRunning)
	check(t, "modify index", a.ModifyIndex, w.index)
	check(t, "alloc modify index", a.AllocModifyIndex, 3)
	check(t, "modify time", a.ModifyTime, int64(w.index)*1e9)

	w.report(structs.AllocClientFailed, ids[0])
	index := w.index
	a = w.report(structs.AllocClientRunning, ids[0]).Alloc(nil, ids[0])
	check(t, "status of what has ended", a.ClientStatus, structs.AllocClientFailed)
	check(t, "its modify index", a.ModifyIndex, index)

	w.must(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{nil, {ID: ids[1], NodeID: "other", ClientStatus: structs.AllocClientFailed}}})
	w.must(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: ids[1], ClientStatus: "sleeping"}}})
	check(t, "status after false reports", w.store.Snapshot().Alloc(nil, ids[1]).ClientStatus, structs.AllocClientPending)
	healthy := true
	snap := w.must(&structs.AllocClientEntry{
		Updates: []*structs.AllocClientUpdate{{ID: ids[1], DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: &healthy}}},
		Evals:   []*structs.Evaluation{eval("after", "web", structs.EvalStatusPending)}, Time: 5,
	})
	check(t, "healthy", snap.Alloc(nil, ids[1]).DeploymentStatus.IsHealthy(), true)
	check(t, "health's index", snap.Alloc(nil, ids[1]).DeploymentStatus.ModifyIndex, w.index)
	check(t, "evaluation", snap.Eval(nil, "after").CreateTime, 5)
}

func TestStopsAndReplacements(t *testing.T) {
	w, ids := placed(t, 4)
	again := batch("web", 0, "n", "again", 1)
	again.Instances[0].PreviousAllocation = ids[0]
	next := structs.DeriveID("again", 0)
	snap := w.plan(&structs.JudgedPlan{
		Stop: []*structs.AllocStop{
			{AllocID: ids[0], DesiredDescription: "node lost", ClientStatus: structs.AllocClientLost},
			{AllocID: ids[1], DesiredStatus: structs.AllocDesiredEvict, PreemptedBy: next},
			{AllocID: ids[2], KeepRunning: true, FollowupEvalID: "later"},
			{AllocID: "gone"}, nil,
		},
		Place: []*structs.PlacementBatch{again},
		Evals: []*structs.Evaluation{eval("e", "web", structs.EvalStatusComplete)},
	})
	lost, evicted, kept := snap.Alloc(nil, ids[0]), snap.Alloc(nil, ids[1]), snap.Alloc(nil, ids[2])
	check(t, "lost", lost.ClientStatus+"/"+lost.DesiredStatus, "lost/stop")
	check(t, "replaced by", lost.NextAllocation, next)
	check(t, "evicted", evicted.DesiredStatus, structs.AllocDesiredEvict)
	check(t, "evicted by", evicted.PreemptedByAllocation, next)
	check(t, "evicts", fmt.Sprint(snap.Alloc(nil, next).PreemptedAllocations), fmt.Sprint([]string{ids[1]}))
	check(t, "kept", kept.DesiredStatus+"/"+kept.FollowupEvalID, "run/later")
	check(t, "the client looks", kept.AllocModifyIndex, w.index)
	check(t, "evaluation", snap.Eval(nil, "e").Status, structs.EvalStatusComplete)

	snap = w.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[1], DesiredDescription: "late"}}})
	check(t, "stopped twice", snap.Alloc(nil, ids[1]).DesiredStatus, structs.AllocDesiredEvict)
	snap = w.plan(&structs.JudgedPlan{Update: []*structs.AllocInPlace{{AllocID: ids[3], JobVersion: 4, EvalID: "up"}, {AllocID: ids[1], JobVersion: 4}, nil}})
	check(t, "updated", snap.Alloc(nil, ids[3]).JobVersion, 4)
	check(t, "a stopped one", snap.Alloc(nil, ids[1]).JobVersion, 0)
}

// TestClassGivenUp: an allocation that gives up its class for another runs on with all else that it has.
func TestClassGivenUp(t *testing.T) {
	w := newWorld(t)
	w.must(&structs.NodeRegisterEntry{Node: gpuNode("n", "r1"), Time: w.now()})
	w.must(owns(structs.DefaultNamespace, cellsOf("node", 0, 1)))
	w.register(job("web"))
	b := batch("web", 0, "n", "s", 1)
	b.Instances[0].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{"n-gpu-0"}}}}
	b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 7, Claim: structs.ClaimCells, CellLevel: "node"}
	id := structs.DeriveID("s", 0)
	was := w.plan(&structs.JudgedPlan{EvalID: "e-s", Place: []*structs.PlacementBatch{b}}).Alloc(nil, id)
	now := w.plan(&structs.JudgedPlan{Update: []*structs.AllocInPlace{{AllocID: id, EvalID: "e2", ClassTo: "other"}}}).Alloc(nil, id)
	check(t, "terms", *now.AllocatedResources.Shared.Terms, structs.AllocTerms{Priority: 7})
	check(t, "what it was", *was.AllocatedResources.Shared.Terms, *b.Resources.Shared.Terms)
	check(t, "memory", now.AllocatedResources.Tasks["t"].Memory, was.AllocatedResources.Tasks["t"].Memory)
	check(t, "version, evaluation and status", [3]string{fmt.Sprint(now.JobVersion), now.EvalID, now.DesiredStatus}, [3]string{"0", "e-s", structs.AllocDesiredRun})
}

func TestPlacedOnANodeThatIsGone(t *testing.T) {
	w, _ := placed(t, 1)
	b := batch("web", 0, "gone", "s2", 1)
	snap := w.plan(&structs.JudgedPlan{EvalID: "e2", Place: []*structs.PlacementBatch{b}})
	check(t, "status", snap.Alloc(nil, structs.DeriveID("s2", 0)).ClientStatus, structs.AllocClientLost)
	evals := snap.EvalsByJob(nil, "default", "web")
	check(t, "evaluations that follow", len(evals), 1)
	check(t, "trigger", evals[0].TriggeredBy, structs.EvalTriggerNodeUpdate)

	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusDown})
	snap = w.plan(&structs.JudgedPlan{EvalID: "e3", Place: []*structs.PlacementBatch{batch("web", 0, "n", "s3", 1)}})
	check(t, "status on a node that is down", snap.Alloc(nil, structs.DeriveID("s3", 0)).ClientStatus, structs.AllocClientPending)
	check(t, "evaluations that follow", len(snap.EvalsByJob(nil, "default", "web")), 2)
}

func TestTransitions(t *testing.T) {
	w, ids := placed(t, 1)
	yes := true
	w.must(&structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{ids[0]: {Migrate: &yes}, "gone": {Migrate: &yes}, "nil": nil}})
	a := w.must(&structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{ids[0]: {ForceReschedule: &yes}}}).Alloc(nil, ids[0])
	check(t, "migrates", a.DesiredTransition.ShouldMigrate(), true)
	check(t, "is rescheduled", a.DesiredTransition.ShouldForceReschedule(), true)
	check(t, "the client looks", a.AllocModifyIndex, w.index)
}

// TestUserRuns: the scheduler is told how long the latest completed runs of a user took, also after a snapshot was restored.
func TestUserRuns(t *testing.T) {
	w := newWorld(t, Options{})
	w.node("n")
	j := job("web")
	j.Submitter = &structs.Submitter{User: "ada"}
	w.register(j)
	for i, id := range w.place("web", 0, "n", "s", 3) {
		status := structs.AllocClientComplete
		if i == 2 {
			status = structs.AllocClientFailed
		}
		w.must(&structs.AllocClientEntry{Time: 1e9, Updates: []*structs.AllocClientUpdate{{ID: id, ClientStatus: status, TaskStates: map[string]*structs.TaskState{
			"t": {State: structs.TaskStateDead, StartedAt: time.Unix(50, 0).UTC(), FinishedAt: time.Unix(int64(60+10*i), 0).UTC()},
		}}}})
	}
	for _, snap := range []*Snapshot{w.store.Snapshot(), restored(t, w.store.Snapshot())} {
		runs := snap.Input(nil, nil, &InputOptions{}).UserRuns
		check(t, "runs of ada", fmt.Sprint(runs("ada")), "[20s 10s]")
		check(t, "runs of bob", len(runs("bob")), 0)
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(t, Options{HistoryMax: 3})
	w.node("n")
	w.register(job("web"))
	ids := w.place("web", 0, "n", "s", 5)
	start, end := time.Unix(50, 0).UTC(), time.Unix(90, 0).UTC()
	w.must(&structs.AllocClientEntry{Time: 1e9, Updates: []*structs.AllocClientUpdate{{
		ID: ids[0], ClientStatus: structs.AllocClientFailed, TaskStates: map[string]*structs.TaskState{
			"t": {State: structs.TaskStateDead, StartedAt: start, FinishedAt: end, Events: []*structs.TaskEvent{{Type: structs.TaskTerminated, ExitCode: 3}}},
		},
	}}})
	records := slices.Collect(w.store.Snapshot().History(nil, "default", ""))
	check(t, "records", len(records), 1)
	got := *records[0]
	check(t, "exit codes", fmt.Sprint(got.ExitCodes), "map[t:3]")
	got.ExitCodes = nil
	check(t, "record", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", structs.HistoryRecord{
		AllocID: ids[0], Namespace: "default", JobID: "web", Type: "service", Group: "web", Priority: 50, User: "ann", NodeID: "n", NodeName: "n",
		CPU: 100, MemoryMB: 64, DiskMB: 10, Submitted: 2e9, Placed: 7, Started: start.UnixNano(), Ended: end.UnixNano(),
		ClientStatus: structs.AllocClientFailed, Index: 4,
	}))
	w.must(&structs.CollectEntry{Allocs: ids[:1]})
	check(t, "records after a collection that took nothing", len(slices.Collect(w.store.Snapshot().History(nil, "default", "we"))), 1)
	for i := range 4 {
		w.must(&structs.AllocClientEntry{Time: int64(100+i) * 1e9, Updates: []*structs.AllocClientUpdate{{ID: ids[i+1], ClientStatus: structs.AllocClientComplete}}})
	}
	records = slices.Collect(w.store.Snapshot().History(nil, "*", "web"))
	check(t, "records kept", len(records), 3)
	check(t, "the latest is first", records[0].AllocID, ids[4])
	check(t, "of another job", len(slices.Collect(w.store.Snapshot().History(nil, "*", "db"))), 0)
	snap := w.must(&structs.CollectEntry{HistoryBefore: 103e9})
	check(t, "records after that time", len(slices.Collect(snap.History(nil, "*", ""))), 1)
}

// TestHistoryOfPurgedJob: the record of an instance whose job was purged while it ran states the job's type and priority.
func TestHistoryOfPurgedJob(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e-s", "web", structs.EvalStatusComplete)}})
	ids := w.place("web", 0, "n", "s", 1)
	w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true})
	for h := range w.report(structs.AllocClientComplete, ids...).History(nil, "default", "") {
		check(t, "type", h.Type, structs.JobTypeService)
		check(t, "priority", h.Priority, 50)
	}
}

// What a follow-up evaluation was made for waits for it until it has ended, or is not kept any more.
func TestPastFollowUps(t *testing.T) {
	w := newWorld(t)
	open := &structs.Evaluation{ID: "open", Namespace: "default", JobID: "j", Type: structs.JobTypeService, Status: structs.EvalStatusPending}
	ended := &structs.Evaluation{ID: "ended", Namespace: "default", JobID: "j", Type: structs.JobTypeService, Status: structs.EvalStatusComplete}
	snap := w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{open, ended}})
	of := func(eval, desired string) *structs.Allocation {
		return &structs.Allocation{FollowupEvalID: eval, DesiredStatus: desired}
	}
	run, stop := structs.AllocDesiredRun, structs.AllocDesiredStop
	eval := func(id string) *structs.Evaluation { return snap.Eval(nil, id) }
	if past := pastFollowUps([]*structs.Allocation{of("", run), of("open", run), of("ended", stop)}, eval); past != nil {
		t.Errorf("past: %v", past)
	}
	past := pastFollowUps([]*structs.Allocation{of("open", run), of("ended", run), of("ended", run), of("forgotten", run), of("other", stop)}, eval)
	if len(past) != 2 || !past["ended"] || !past["forgotten"] {
		t.Errorf("past: %v", past)
	}
}
