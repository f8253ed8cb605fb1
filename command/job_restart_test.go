package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// restarted is an allocation whose task started anew.
func restarted(a *structs.Allocation) *structs.Allocation {
	again := *a
	again.TaskStates = map[string]*structs.TaskState{"serve": {State: structs.TaskStateRunning, StartedAt: present}}
	return &again
}

// restarts is an agent with n running allocations of the job web, each of which runs again at the second look after its restart.
func restarts(t *testing.T, n int) *fake {
	t.Helper()
	f := newFake(t).on("GET /v1/job/web", webJob())
	var stubs []*structs.AllocListStub
	for i := range n {
		id := fmt.Sprintf("5f3a9c%02d-0000-8000-8000-000000000001", i)
		a := webAlloc(id, structs.AllocClientRunning)
		a.Name = fmt.Sprintf("web.front[%d]", i)
		stubs = append(stubs, a.Stub(false, true))
		f.on("GET /v1/allocation/"+id, a, a, restarted(a)).on("PUT /v1/client/allocation/"+id+"/restart", "{}")
	}
	ended := webAlloc(allocB, structs.AllocClientComplete)
	return f.on("GET /v1/job/web/allocations", append(stubs, ended.Stub(false, true)))
}

func TestJobRestartGoesInBatches(t *testing.T) {
	shows := func(want []string, n int, args ...string) string {
		t.Helper()
		f := restarts(t, n)
		got := f.run(t, append(append([]string{"job", "restart"}, args...), "web")...)
		if got.code != exitDone {
			t.Fatalf("%q: exit code %d, stderr %q, output %s", args, got.code, got.err, got.out)
		}
		wants(t, got.out, want...)
		if requested := f.requests("PUT"); len(requested) != n {
			t.Errorf("%q: asked %q", args, requested)
		}
		looks := 0 // at each before it is restarted, after it, and until it has started anew
		for _, requested := range f.requests("GET") {
			if strings.HasPrefix(requested, "GET /v1/allocation/") {
				looks++
			}
		}
		if looks != 3*n {
			t.Errorf("%q: looked at allocations %d times, want %d", args, looks, 3*n)
		}
		return got.out
	}
	out := shows([]string{
		"Restarting 3 allocations", "Restarting 1st batch of 1 allocation", "3rd batch", `Restarting running tasks in allocation "5f3a9c00" for group "front"`,
		"Finished job restart", "All allocations restarted successfully!",
	}, 3)
	if strings.Index(out, "2nd batch") > strings.Index(out, `"5f3a9c01"`) || strings.Index(out, `"5f3a9c01"`) > strings.Index(out, "3rd batch") {
		t.Errorf("the second allocation is not in the second batch:\n%s", out)
	}
	shows([]string{"1st batch of 2 allocations", "2nd batch of 1 allocation"}, 3, "-batch-size", "50%") // rounded up
	shows([]string{"1st batch of 2 allocations", "2nd batch of 1 allocation", "Waiting 1ms before the next batch"}, 3, "-batch-size=2", "-batch-wait=1ms")
	if out := shows([]string{"Restarting 3 allocations"}, 3, "-batch-size=100%"); strings.Contains(out, "batch") {
		t.Errorf("a single batch is counted:\n%s", out)
	}
	shows([]string{`Restarting all tasks in allocation "5f3a9c00"`}, 1, "-all-tasks")
	shows([]string{`Restarting task "serve" in allocation "5f3a9c00"`}, 1, "-task", "serve", "-group", "front")
	shows([]string{"5f3a9c00-0000-8000-8000-000000000001"}, 1, "-verbose")
	f := restarts(t, 0)
	if got := f.run(t, "job", "restart", "web"); got.code != exitDone || got.out != "No allocations to restart\n" {
		t.Errorf("nothing runs: exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
}

func TestJobRestartRequests(t *testing.T) {
	requests := func(code int, stdin string, want []string, puts int, args ...string) {
		t.Helper()
		f := restarts(t, 3)
		got := f.at(t, strings.TrimSuffix(stdin, "\n"), strings.Join(append(append([]string{"job", "restart"}, args...), "web"), " "))
		if got.code != code || len(f.requests("PUT")) != puts {
			t.Errorf("%q %q: exit code %d, %d restarts, output %s\nstderr %s", stdin, args, got.code, len(f.requests("PUT")), got.out, got.err)
		}
		wants(t, got.out+got.err, want...)
	}
	requests(exitDone, "y\n\n", []string{"Proceed with the next batch? [Y/n/<wait duration>]"}, 3, "-batch-wait=ask")
	requests(exitDone, "what\n1ms\n", []string{`"what": answer y, n, or a time`, "Waiting 1ms before"}, 3, "-batch-wait=ask")
	requests(exitFailed, "n\n", []string{"ended before the last batch"}, 1, "-batch-wait=ask")
	requests(exitDone, "", nil, 3, "-batch-wait=ask", "-yes")

	f := restarts(t, 3) // not after half of them are restarted
	got := f.runIn(t, "y\ny\n", "job", "restart", "-batch-wait", "ask", "-on-error", "fail", "web")
	if got.code != exitFailed || len(f.requests("PUT")) > 0 || !strings.Contains(got.err, `-batch-wait "ask" needs a terminal`) {
		t.Errorf("without a terminal: exit code %d, %d restarts, stderr %s", got.code, len(f.requests("PUT")), got.err)
	}
	f = restarts(t, 3)
	if got := f.run(t, "job", "restart", "-batch-wait", "ask", "-yes", "web"); got.code != exitDone || len(f.requests("PUT")) != 3 {
		t.Errorf("with -yes: exit code %d, %d restarts, stderr %s", got.code, len(f.requests("PUT")), got.err)
	}
}

func TestJobRestartAndErrors(t *testing.T) {
	fails := func(stdin string, puts int, want string, args ...string) {
		t.Helper()
		f := restarts(t, 3)
		f.answers["PUT /v1/client/allocation/5f3a9c00-0000-8000-8000-000000000001/restart"] = []any{refusal{500, "the node is lost"}}
		got := f.runIn(t, stdin, append(append([]string{"job", "restart"}, args...), "web")...)
		if got.code != exitFailed || len(f.requests("PUT")) != puts || !strings.Contains(got.err, `allocation "5f3a9c00" of group "front": the node is lost`) {
			t.Errorf("%q %q: exit code %d, %d restarts, output %s\nstderr %s", stdin, args, got.code, len(f.requests("PUT")), got.out, got.err)
		}
		wants(t, got.out+got.err, want)
	}
	fails("", 1, "nobody can confirm") // asks by default
	fails("n\n", 1, "Go on with the next batch? [y/N]")
	fails("\n", 1, "ended before the last batch")
	fails("y\n", 3, "Finished job restart, with errors in 1 allocation")
	fails("", 1, "ended before the last batch", "-on-error=fail")
	fails("", 1, "ended before the last batch", "-on-error=fail", "-yes")
	fails("", 3, "with errors in 1 allocation", "-yes")
	f := restarts(t, 1)
	lost := webAlloc("5f3a9c00-0000-8000-8000-000000000001", structs.AllocClientRunning)
	dead := *lost
	dead.ClientStatus, dead.ClientDescription = structs.AllocClientFailed, "a task failed"
	f.answers["GET /v1/allocation/"+lost.ID] = []any{lost, &dead}
	if got := f.run(t, "job", "restart", "web"); got.code != exitFailed || !strings.Contains(got.err, "is failed: a task failed") {
		t.Errorf("it does not come back: exit code %d, stderr %q", got.code, got.err)
	}
	f = restarts(t, 1) // one that ends before its batch
	f.answers["GET /v1/allocation/"+lost.ID] = []any{&dead}
	if got := f.run(t, "job", "restart", "web"); got.code != exitDone || !strings.Contains(got.out, "does not run any more") || len(f.requests("PUT")) > 0 {
		t.Errorf("it has ended: exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		f := restarts(t, 1)
		if got := f.run(t, append([]string{"job", "restart"}, args...)...); got.code != exitFailed || !strings.Contains(got.err, want) || len(f.requests("PUT")) > 0 {
			t.Errorf("%q: exit code %d, stderr %q", args, got.code, got.err)
		}
	}
	refused("-batch-size", "-batch-size", "0", "web")
	refused("-batch-size", "-batch-size", "101%", "web")
	refused("-batch-size", "-batch-size", "some", "web")
	refused("-batch-wait", "-batch-wait", "-1s", "web")
	refused("-batch-wait", "-batch-wait", "5", "web")
	refused("-on-error", "-on-error", "maybe", "web")
	refused("exclude each other", "-all-tasks", "-task", "serve", "web")
	refused("exclude each other", "-reschedule", "-task", "serve", "web")
	refused(`no group "none": name one of "front"`, "-group", "none", "web")
	refused(`job "web" has no task "none": name one of "serve"`, "-task", "none", "web")
	refused("one job is needed")
}

func TestJobRestartReschedules(t *testing.T) {
	const id = "5f3a9c00-0000-8000-8000-000000000001"
	old := webAlloc(id, structs.AllocClientRunning)
	replaced := *old
	replaced.NextAllocation, replaced.DesiredStatus = allocB, structs.AllocDesiredStop
	fresh := webAlloc(allocB, structs.AllocClientPending)
	f := restarts(t, 1).on("PUT /v1/allocation/"+id+"/stop", &structs.AllocStopReply{EvalID: evalA}).
		on("GET /v1/evaluation/"+evalA, webEval(evalA, structs.EvalStatusPending)).
		on("GET /v1/allocation/"+allocB, fresh, webAlloc(allocB, structs.AllocClientRunning))
	f.answers["GET /v1/allocation/"+id] = []any{old, old, &replaced}
	got := f.run(t, "job", "restart", "-reschedule", "-no-shutdown-delay", "web")
	if got.code != exitDone {
		t.Fatalf("exit code %d, output %s, stderr %s", got.code, got.out, got.err)
	}
	wants(t, got.out, `Rescheduling allocation "5f3a9c00"`, `Allocation "5f3a9c02" replaces "5f3a9c00"`, "All allocations rescheduled successfully!")
	wants(t, strings.Join(f.requests("PUT"), "\n"), "/stop?no_shutdown_delay=true")

	f = restarts(t, 1).on("PUT /v1/allocation/"+id+"/stop", &structs.AllocStopReply{EvalID: evalA})
	stopped := *old
	stopped.DesiredStatus = structs.AllocDesiredStop
	full := unplaced(webEval(evalA, structs.EvalStatusComplete))
	full.FailedTGAllocs["front"] = full.FailedTGAllocs["back"]
	f.on("GET /v1/evaluation/"+evalA, full)
	f.answers["GET /v1/allocation/"+id] = []any{old, &stopped}
	got = f.run(t, "job", "restart", "-reschedule", "-on-error=fail", "web")
	if got.code != exitFailed || !strings.Contains(got.err, "no replacement was placed") {
		t.Errorf("no room: exit code %d, output %s, stderr %s", got.code, got.out, got.err)
	}
}

func TestJobStartRevertsToWhatRan(t *testing.T) {
	stopped, ran, older := webJob(), webJob(), webJob()
	stopped.Stop, ran.Version, older.Version = true, 2, 1
	f := cluster(t).on("PUT /v1/job/web/revert", &structs.JobRegisterReply{EvalID: evalA})
	f.answers["GET /v1/job/web/versions"] = []any{&structs.JobVersionsReply{Versions: []*structs.Job{stopped, ran, older}}}
	got := f.run(t, "job", "start", "-detach", "web")
	if got.code != exitDone || !strings.Contains(got.out, `"web" started as its version 2`) || !strings.Contains(got.out, "Evaluation ID: "+evalA) {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	wants(t, f.lastBody(), `"JobVersion":2`)
	f.answers["GET /v1/job/web/versions"] = []any{&structs.JobVersionsReply{Versions: []*structs.Job{stopped}}}
	if got := f.run(t, "job", "start", "web"); got.code != exitFailed || !strings.Contains(got.err, "no version any more that was not stopped") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	if got := cluster(t).run(t, "job", "start", "web"); got.code != exitFailed || !strings.Contains(got.err, `job "web" is not stopped`) {
		t.Errorf("it runs: exit code %d, stderr %q", got.code, got.err)
	}
}

func TestJobScalingEvents(t *testing.T) {
	f := cluster(t)
	got := f.run(t, "job", "scaling-events", "web")
	want := [][2]string{{"front", stamp(time.Minute)}, {"back", stamp(2 * time.Minute)}, {"front", stamp(time.Hour)}} // newest first
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != exitDone || len(lines) != len(want)+1 {
		t.Fatalf("exit code %d, output %q", got.code, got.out)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i+1], w[0]) || !strings.HasSuffix(lines[i+1], w[1]) {
			t.Errorf("line %d is %q, want %q", i+1, lines[i+1], w)
		}
	}
	wants(t, f.run(t, "job", "scaling-events", "-verbose", "web").out, "Message", "no room", "true", evalA)
	f.answers["GET /v1/job/web/scale"] = []any{&structs.JobScaleStatus{}}
	if got := f.run(t, "job", "scaling-events", "web"); got.code != exitDone || got.out != "No scaling events found\n" {
		t.Errorf("none: exit code %d, output %q", got.code, got.out)
	}
}

func stamp(d time.Duration) string {
	return time.Unix(0, ago(d)).Format("2006-01-02T15:04:05-07:00")
}
