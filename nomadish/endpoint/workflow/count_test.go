package workflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestCountsOfAttempt: of a job that was registered again after it had failed, the instances of its last attempt count, each as what its newest
// allocation does; a job that has failed as it was stopped says so.
func TestCountsOfAttempt(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	register := func(mhz, n int, seed string) {
		job := testcluster.Job("chip/1/a", structs.JobTypeBatch, 2)
		job.TaskGroups[0].Tasks[0].Resources.CPU = mhz
		site.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
		batch := testcluster.Batch("chip/1/a", "n", seed, n)
		batch.JobVersion = site.Store.Snapshot().Job(nil, "default", "chip/1/a").Version
		site.Put(testcluster.Place("", 1, batch))
	}
	report := func(seed string, i int, status string) {
		site.Put(&structs.AllocClientEntry{Time: 2, Updates: []*structs.AllocClientUpdate{{ID: testcluster.AllocID(seed, i), ClientStatus: status}}})
	}
	f := func(state string, attempt int, want string) {
		t.Helper()
		j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: state, Attempt: attempt, Instances: 2}
		count(nil, site.Store.Snapshot(), "default", j, false)
		if got := fmt.Sprintf("%d running, %d complete, %d failed, stopped %v", j.Running, j.Complete, j.Failed, j.Stopped); got != want {
			t.Errorf("attempt %d, %s: have %s, want %s", attempt, state, got, want)
		}
	}
	register(100, 2, "first")
	report("first", 0, structs.AllocClientFailed)
	report("first", 1, structs.AllocClientFailed)
	f(structs.StageRunning, 1, "0 running, 0 complete, 2 failed, stopped false")
	register(200, 2, "second")
	report("second", 0, structs.AllocClientComplete)
	report("second", 1, structs.AllocClientRunning)
	f(structs.StageRunning, 2, "1 running, 1 complete, 0 failed, stopped false")
	site.Put(&structs.JobDeregisterEntry{Namespace: "default", JobID: "chip/1/a", Time: 3})
	f(structs.StageFailed, 2, "1 running, 1 complete, 0 failed, stopped true")
	j := &structs.WorkflowJobStatus{ID: "chip/1/purged", State: structs.StageFailed, Attempt: 1, Instances: 2}
	if count(nil, site.Store.Snapshot(), "default", j, false); !j.Removed {
		t.Error("a job that was purged is not said to be there no more")
	}
}

// TestCountsOfFailures: of a job that runs it is counted how often its instances have failed, with when the next is tried again, and how many wait in the queue;
// after it has failed and was registered again, how many had failed before.
func TestCountsOfFailures(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	register := func(mhz int, seed string) {
		job := testcluster.Job("chip/1/a", structs.JobTypeBatch, 2)
		job.TaskGroups[0].Tasks[0].Resources.CPU = mhz
		site.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
		batch := testcluster.Batch("chip/1/a", "n", seed, 2)
		batch.JobVersion = site.Store.Snapshot().Job(nil, "default", "chip/1/a").Version
		site.Put(testcluster.Place("", 1, batch))
	}
	report := func(seed string, i int, status string, restarts uint64, last *structs.TaskEvent) {
		site.Put(&structs.AllocClientEntry{Time: 2, Updates: []*structs.AllocClientUpdate{{ID: testcluster.AllocID(seed, i), ClientStatus: status,
			TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStatePending, Restarts: restarts, Events: []*structs.TaskEvent{last}}}}}})
	}
	f := func(attempt int, want string) {
		t.Helper()
		j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: structs.StageRunning, Attempt: attempt, Instances: 2}
		count(nil, site.Store.Snapshot(), "default", j, false)
		if got := fmt.Sprintf("%d running, %d failures, again at %d, %d before", j.Running, j.Failures, j.RetryTime, j.FailedBefore); got != want {
			t.Errorf("have %s, want %s", got, want)
		}
	}
	restarting := &structs.TaskEvent{Type: structs.TaskRestarting, Time: 10, StartDelay: 15}
	register(100, "first")
	report("first", 0, structs.AllocClientPending, 2, restarting)
	report("first", 1, structs.AllocClientRunning, 1, &structs.TaskEvent{Type: structs.TaskStarted, Time: 10})
	f(1, "1 running, 3 failures, again at 25, 0 before")
	report("first", 0, structs.AllocClientFailed, 3, &structs.TaskEvent{Type: structs.TaskNotRestarting, Time: 30})
	f(1, "1 running, 4 failures, again at 0, 0 before")
	register(200, "second")
	report("second", 0, structs.AllocClientRunning, 0, &structs.TaskEvent{Type: structs.TaskStarted, Time: 40})
	f(2, "1 running, 0 failures, again at 0, 1 before")
}

// TestFailureOfJob: of a job that fails it is stated what failed last, of its last attempt or else of the one before, and nothing of what was killed.
func TestFailureOfJob(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	register := func(mhz int, seed string) {
		job := testcluster.Job("chip/1/a", structs.JobTypeBatch, 2)
		job.TaskGroups[0].Tasks[0].Resources.CPU = mhz
		site.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
		batch := testcluster.Batch("chip/1/a", "n", seed, 2)
		batch.JobVersion = site.Store.Snapshot().Job(nil, "default", "chip/1/a").Version
		site.Put(testcluster.Place("", 1, batch))
	}
	report := func(seed string, i int, status string, events ...*structs.TaskEvent) {
		site.Put(&structs.AllocClientEntry{Time: 2, Updates: []*structs.AllocClientUpdate{{ID: testcluster.AllocID(seed, i), ClientStatus: status,
			TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateDead, Events: events}}}}})
	}
	f := func(state string, attempt int, want, alloc string) {
		t.Helper()
		j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: state, Attempt: attempt, Instances: 2}
		if count(nil, site.Store.Snapshot(), "default", j, false); j.Failure != want || j.FailureAlloc != alloc {
			t.Errorf("have %q of %s, want %q of %s", j.Failure, j.FailureAlloc, want, alloc)
		}
	}
	event := func(kind string, time int64, text string, code int) *structs.TaskEvent {
		return &structs.TaskEvent{Type: kind, Time: time, DisplayMessage: text, ExitCode: code}
	}
	register(100, "first")
	report("first", 0, structs.AllocClientRunning, event(structs.TaskTerminated, 5, "Exit Code: 0", 0), event(structs.TaskStarted, 6, "", 0),
		event(structs.TaskKilling, 7, "", 0), event(structs.TaskTerminated, 8, "Exit Code: 137", 137))
	f(structs.StageRunning, 1, "", "")
	first := `task "t": no such file "/bin/synthesise"`
	report("first", 0, structs.AllocClientFailed, event(structs.TaskDriverFailure, 20, "no such file\n\"/bin/synthesise\"", 0), event(structs.TaskNotRestarting, 21, "Exceeded", 0))
	f(structs.StageRunning, 1, first, testcluster.AllocID("first", 0))
	report("first", 1, structs.AllocClientFailed, event(structs.TaskTerminated, 19, "Exit Code: 3", 3), event(structs.TaskNotRestarting, 22, "Exceeded", 0))
	f(structs.StageFailed, 1, first, testcluster.AllocID("first", 0))
	register(200, "second")
	f(structs.StageRunning, 2, first, testcluster.AllocID("first", 0))
	report("second", 1, structs.AllocClientFailed, event(structs.TaskTerminated, 30, strings.Repeat("x", 1000), 4))
	f(structs.StageFailed, 2, structs.Clip("task \"t\": "+strings.Repeat("x", 1000), structs.MaxFailureText), testcluster.AllocID("second", 1))
}

// TestCountsOfForms: instances of which clients report the same, as most of a job, count as each by itself, in whatever order they are looked at: what others have
// replaced does not, nor what was stopped, and what failed or was started again is seen among them.
func TestCountsOfForms(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	site.Put(&structs.JobRegisterEntry{Job: testcluster.Job("chip/1/a", structs.JobTypeBatch, 8), Time: 1})
	site.Put(testcluster.Place("", 1, testcluster.Batch("chip/1/a", "n", "first", 8)))
	again := testcluster.Place("", 2, testcluster.Batch("chip/1/a", "n", "second", 1))
	again.Plans[0].Stop = []*structs.AllocStop{{AllocID: testcluster.AllocID("first", 6), DesiredStatus: structs.AllocDesiredStop}}
	again.Plans[0].Place[0].Instances[0].PreviousAllocation = testcluster.AllocID("first", 7)
	site.Put(again)
	e := &structs.AllocClientEntry{Time: 2}
	report := func(i int, status string, restarts uint64, code int) {
		events := []*structs.TaskEvent{{Type: structs.TaskStarted, Time: int64(i)}}
		if restarts > 0 || code > 0 {
			events = append(events, &structs.TaskEvent{Type: structs.TaskTerminated, Time: int64(10 + i), DisplayMessage: "Exit Code: 3", ExitCode: 3})
		}
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: testcluster.AllocID("first", i), ClientStatus: status,
			TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning, Restarts: restarts, Events: events}}})
	}
	report(0, structs.AllocClientRunning, 0, 0)
	report(1, structs.AllocClientRunning, 0, 0)
	report(2, structs.AllocClientComplete, 0, 0)
	report(3, structs.AllocClientComplete, 0, 0)
	report(4, structs.AllocClientFailed, 0, 3)
	report(5, structs.AllocClientRunning, 2, 0)
	report(6, structs.AllocClientComplete, 0, 0) // stopped
	report(7, structs.AllocClientRunning, 0, 0)  // replaced
	site.Put(e)
	j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: structs.StageRunning, Attempt: 1, Instances: 8}
	count(nil, site.Store.Snapshot(), "default", j, false)
	if j.Running != 3 || j.Complete != 2 || j.Failed != 1 || j.Failures != 2 || j.FailureAlloc != testcluster.AllocID("first", 5) {
		t.Errorf("%+v", j)
	}
}

// TestCountsOfGang: mates of a gang that are stopped as the gang begins anew have not completed.
func TestCountsOfGang(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	site.Put(&structs.JobRegisterEntry{Job: testcluster.Job("chip/1/a", structs.JobTypeBatch, 2), Time: 1})
	report := func(seed string, i int, status string) {
		site.Put(&structs.AllocClientEntry{Time: 2, Updates: []*structs.AllocClientUpdate{{ID: testcluster.AllocID(seed, i), ClientStatus: status}}})
	}
	f := func(want int) {
		t.Helper()
		j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: structs.StageRunning, Attempt: 1, Instances: 2}
		if count(nil, site.Store.Snapshot(), "default", j, false); j.Complete != want {
			t.Errorf("%d of 2 instances complete, want %d", j.Complete, want)
		}
	}
	site.Put(testcluster.Place("", 1, testcluster.Batch("chip/1/a", "n", "first", 2)))
	report("first", 0, structs.AllocClientLost)
	again := testcluster.Place("", 2, testcluster.Batch("chip/1/a", "n", "second", 2))
	again.Plans[0].Stop = []*structs.AllocStop{{AllocID: testcluster.AllocID("first", 1), DesiredStatus: structs.AllocDesiredStop}}
	site.Put(again)
	report("first", 1, structs.AllocClientComplete)
	f(0)
	report("second", 0, structs.AllocClientComplete)
	f(1)
}

// TestCountsOfSysbatch: a sysbatch job has as many instances as nodes that it is placed on, and those that wait for room on theirs.
func TestCountsOfSysbatch(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	job := testcluster.Job("chip/1/sb", structs.JobTypeSysBatch, 1)
	site.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	for i, node := range []string{"a", "b"} {
		site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node(node, 10_000), Time: 1})
		site.Put(testcluster.Place("", int64(i+1), testcluster.Batch("chip/1/sb", node, "on-"+node, 1)))
		site.Put(&structs.AllocClientEntry{Time: 2, Updates: []*structs.AllocClientUpdate{{ID: testcluster.AllocID("on-"+node, 0), ClientStatus: structs.AllocClientComplete}}})
	}
	site.Put(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{{
		ID: "e", Namespace: "default", JobID: job.ID, Type: job.Type, Status: structs.EvalStatusComplete, QueuedAllocations: map[string]int{job.TaskGroups[0].Name: 1},
	}}, Time: 3})
	f := func(state string, instances, complete int) {
		t.Helper()
		j := &structs.WorkflowJobStatus{ID: "chip/1/sb", State: state, Attempt: 1, Instances: 1}
		if count(nil, site.Store.Snapshot(), "default", j, false); j.Instances != instances || j.Complete != complete {
			t.Errorf("%s: %d of %d complete, want %d of %d", state, j.Complete, j.Instances, complete, instances)
		}
	}
	f(structs.StageRunning, 3, 2)
}

// TestCountsOfTimeLimit: what was ended at its time limit counts as failed, while the job runs, too.
func TestCountsOfTimeLimit(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	job := testcluster.Job("chip/1/a", structs.JobTypeBatch, 2)
	job.TaskGroups[0].MaxRunDuration = time.Minute
	site.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	site.Put(testcluster.Place("", 1, testcluster.Batch("chip/1/a", "n", "first", 2)))
	site.Put(&structs.AllocClientEntry{Time: 2, Updates: []*structs.AllocClientUpdate{
		{ID: testcluster.AllocID("first", 0), ClientStatus: structs.AllocClientComplete, ClientDescription: structs.DescMaxRunDuration},
		{ID: testcluster.AllocID("first", 1), ClientStatus: structs.AllocClientComplete},
	}})
	j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: structs.StageRunning, Attempt: 1, Instances: 2}
	if count(nil, site.Store.Snapshot(), "default", j, false); j.Complete != 1 || j.Failed != 1 || j.TimedOut != 1 {
		t.Errorf("%+v", j)
	}
}

// TestInstancesAsRegistered: a job of which somebody has changed the count has as many instances as it states now.
func TestInstancesAsRegistered(t *testing.T) {
	t.Parallel()
	_, site := at(t, "")
	site.Put(&structs.NodeRegisterEntry{Node: testcluster.Node("n", 10_000), Time: 1})
	site.Put(&structs.JobRegisterEntry{Job: testcluster.Job("chip/1/a", structs.JobTypeBatch, 3), Time: 1})
	site.Put(testcluster.Place("", 1, testcluster.Batch("chip/1/a", "n", "first", 3)))
	f := func(state string, want int) {
		t.Helper()
		j := &structs.WorkflowJobStatus{ID: "chip/1/a", State: state, Attempt: 1, Instances: 2}
		if count(nil, site.Store.Snapshot(), "default", j, false); j.Instances != 3 || j.Complete != want {
			t.Errorf("%s: %d of %d are complete, not %d of 3", state, j.Complete, j.Instances, want)
		}
	}
	f(structs.StageRunning, 0)
	e := &structs.AllocClientEntry{Time: 2}
	for i := range 3 {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: testcluster.AllocID("first", i), ClientStatus: structs.AllocClientComplete})
	}
	site.Put(e)
	f(structs.StageRunning, 3)
	f(structs.StageComplete, 3)
}
