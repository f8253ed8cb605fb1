package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/structs"
)

const victim = "5f3a9c10-0000-8000-8000-0000000000"

// taken is what job web's allocation has taken: n allocations of job night, and one of a
// job of another namespace; the last of the list is not known any more.
func taken(f *fake, n int) *structs.Allocation {
	taker := webAlloc(allocA, structs.AllocClientRunning)
	give := func(i int, job, ns string) {
		id := fmt.Sprintf("%s%02d", victim, i)
		a := webAlloc(id, structs.AllocClientSuspended)
		a.JobID, a.Namespace, a.DesiredStatus, a.PreemptedByAllocation = job, ns, structs.AllocDesiredSuspend, allocA
		f.on("GET /v1/allocation/"+id, a)
		taker.PreemptedAllocations = append(taker.PreemptedAllocations, id)
	}
	for i := range n {
		give(i, "night", "default")
	}
	give(n, "etl", "data")
	taker.PreemptedAllocations = append(taker.PreemptedAllocations, victim+"99")
	f.on("GET /v1/allocation/"+allocA, taker)
	return taker
}

const tookText = `2 allocations of job "night", 1 allocation of job "etl" in namespace "data" and 1 more`

// Whoever took somebody's place is told whose, wherever the taker is shown.
func TestTakersNameWhatTheyTook(t *testing.T) {
	f := newFake(t)
	stubs := []*structs.AllocListStub{taken(f, 2).Stub(false, true)}
	f.on("GET /v1/jobs", []*structs.JobListStub{{ID: "web"}}).on("GET /v1/job/web", webJob()).on("GET /v1/job/web/summary", &structs.JobSummary{}).
		on("GET /v1/job/web/evaluations", []*structs.Evaluation{}).on("GET /v1/job/web/allocations", stubs).on("GET /v1/allocations", stubs)
	wants(t, f.run(t, "job", "status", "web").out, "Preemptions\nIts allocations took the place of "+tookText+"\n")
	wants(t, f.run(t, "alloc", "status", allocA).out, "= "+tookText+" (5f3a9c10, 5f3a9c10, 5f3a9c10, 5f3a9c10)\n")
	registered(f).on("GET /v1/evaluation/"+evalA, webEval(evalA, structs.EvalStatusComplete)).on("GET /v1/evaluation/"+evalA+"/allocations", stubs)
	got := f.run(t, "job", "run", file(t, "a.hcl", examples.Service))
	if n := strings.Count(got.out, ": Preempted "+tookText+"\n"); n != 1 {
		t.Errorf("told %d times:\n%s", n, got.out)
	}
}

// Many are found with one request, and all of them named by their jobs.
func TestManyPreemptedAreNamed(t *testing.T) {
	f := newFake(t)
	a := taken(f, 40)
	stubs := []*structs.AllocListStub{a.Stub(false, true)}
	for i, id := range a.PreemptedAllocations[:41] {
		job, ns := "night", "default"
		if i == 40 {
			job, ns = "etl", "data"
		}
		stubs = append(stubs, &structs.AllocListStub{ID: id, JobID: job, Namespace: ns, PreemptedByAllocation: allocA})
	}
	f.on("GET /v1/allocations", stubs)
	wants(t, f.run(t, "alloc", "status", allocA).out, `40 allocations of job "night", 1 allocation of job "etl" in namespace "data" and 1 more (5f3a9c10,`)
	if n := len(f.requests("GET")); n > 10 {
		t.Errorf("%d requests", n)
	}
}

// Each instance counts once, where it is: suspended ones neither start nor are they queued.
func TestSuspendedCountOnce(t *testing.T) {
	suspended := func(id, status string, byUser bool) *structs.AllocListStub {
		a := webAlloc(id, status)
		a.DesiredStatus = structs.AllocDesiredSuspend
		if byUser {
			a.DesiredTransition.Suspend = new(true)
		}
		return a.Stub(false, true)
	}
	f := func(want string, summary structs.TaskGroupSummary, allocs ...*structs.AllocListStub) {
		t.Helper()
		fake := newFake(t).on("GET /v1/jobs", []*structs.JobListStub{{ID: "web"}}).on("GET /v1/job/web", webJob()).
			on("GET /v1/job/web/evaluations", []*structs.Evaluation{}).on("GET /v1/job/web/allocations", allocs).
			on("GET /v1/job/web/summary", &structs.JobSummary{Summary: map[string]structs.TaskGroupSummary{"front": summary}})
		wants(t, fake.run(t, "job", "status", "web").out, want)
	}
	head := "Task Group  Queued  Starting  Running  Failed  Complete  Lost  Unknown"
	f(head+"  Suspended\nfront       0       0         1        0       0         0     0        1\n",
		structs.TaskGroupSummary{Queued: 1, Starting: 1, Running: 1}, suspended(allocA, structs.AllocClientSuspended, false))
	f(head+"  Suspended\nfront       2       1         0        0       0         0     0        1\n", // by a user: it waits for nobody
		structs.TaskGroupSummary{Queued: 2, Starting: 2}, suspended(allocA, structs.AllocClientSuspended, true))
	f(head+"\nfront       1       0         1        0       0         0     0\n", // not suspended yet
		structs.TaskGroupSummary{Queued: 2, Running: 1}, suspended(allocA, structs.AllocClientRunning, false))
	f(head+"\nfront       1       0         0        0       1         0     0\n",
		structs.TaskGroupSummary{Queued: 1, Complete: 1}, suspended(allocA, structs.AllocClientComplete, false))
}

// What was stopped to make room for others has not completed: its request went back to the queue.
func TestRequeuedAreNotComplete(t *testing.T) {
	evicted := func(id, status string) *structs.AllocListStub {
		a := webAlloc(id, status)
		a.DesiredStatus = structs.AllocDesiredEvict
		return a.Stub(false, true)
	}
	f := newFake(t).on("GET /v1/jobs", []*structs.JobListStub{{ID: "web"}}).on("GET /v1/job/web", webJob()).
		on("GET /v1/job/web/evaluations", []*structs.Evaluation{}).
		on("GET /v1/job/web/allocations", []*structs.AllocListStub{
			evicted(allocA, structs.AllocClientComplete), evicted(allocB, structs.AllocClientRunning), webAlloc(evalA, structs.AllocClientComplete).Stub(false, true),
		}).
		on("GET /v1/job/web/summary", &structs.JobSummary{Summary: map[string]structs.TaskGroupSummary{"front": {Queued: 2, Running: 1, Complete: 2}}})
	wants(t, f.run(t, "job", "status", "web").out, "Task Group  Queued  Starting  Running  Failed  Complete  Lost  Unknown  Requeued\n"+
		"front       2       0         1        0       1         0     0        1\n")
}

// A task that is suspended does not run.
func TestSuspendedTasksAreSuspended(t *testing.T) {
	a := webAlloc(allocA, structs.AllocClientSuspended)
	a.DesiredStatus = structs.AllocDesiredSuspend
	f := newFake(t).on("GET /v1/allocations", []*structs.AllocListStub{a.Stub(false, true)}).on("GET /v1/allocation/"+allocA, a)
	wants(t, f.run(t, "alloc", "status", allocA).out, `Task "serve" is suspended`)
	wants(t, f.run(t, "alloc", "status", "-short", allocA).out, "serve  suspended  Started")
}

// An allocation says how often its instance was requeued, and why it was the last time.
func TestAllocStatusShowsRequeues(t *testing.T) {
	f := newFake(t)
	a := webAlloc(allocA, structs.AllocClientRunning)
	f.on("GET /v1/allocation/"+allocA, a).on("GET /v1/allocations", []*structs.AllocListStub{a.Stub(false, true)})
	if got := f.run(t, "alloc", "status", allocA).out; strings.Contains(got, "Requeues") {
		t.Errorf("it was never requeued:\n%s", got)
	}
	a.Requeues, a.RequeueReason = 2, "its node needed the memory"
	wants(t, f.run(t, "alloc", "status", allocA).out, "Requeues", "= 2 (the last: its node needed the memory)\n")
	if s := a.Stub(false, false); s.Requeues != 2 || s.RequeueReason != a.RequeueReason {
		t.Errorf("in lists: %+v", s)
	}
}
