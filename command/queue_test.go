package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func smallQueue() []*structs.QueueEntry {
	high := structs.PriorityBand{Low: 71, High: 100}
	low := structs.PriorityBand{Low: 1, High: 40}
	return []*structs.QueueEntry{
		{
			Namespace: "default", JobID: "train", Group: "workers", NodePool: "default", Place: 1, Class: "opportunistic",
			Priority: structs.EffectivePriority{Total: 95, Declared: 72, Standing: structs.StandingNormal, Aged: 3, Requeued: 2, RequeueBonus: 20, Band: 2, BandRange: high},
			Missing:  4, Wanted: 8, Since: ago(time.Minute), Waited: time.Minute, EvalID: evalA, State: structs.QueueReserved, ReservedNodes: 2,
			Reason: "memory exhausted", ReasonNodes: 3,
		},
		{
			Namespace: "default", JobID: "late", Group: "g", NodePool: "default", Place: 2, Class: "opportunistic",
			Priority: structs.EffectivePriority{Total: 30, Declared: 30, Standing: structs.StandingNormal, BandRange: low}, Missing: 1, Wanted: 1,
			Since: ago(3 * time.Second), Waited: 3 * time.Second, State: structs.QueueNotTried,
		},
	}
}

func TestQueue(t *testing.T) {
	f := newFake(t).on("GET /v1/queue", smallQueue())
	got := f.run(t, "queue", "-node-pool", "default", "-job", "t", "-filter", "Missing > 0", "-per-page", "7", "-page-token", "tok")
	want := `Position  Job ID  Group    Priority  Missing  Waited  State                     Reason
1         train   workers  95        4 of 8   1m0s    reserved room on 2 nodes  memory exhausted on 3 nodes
2         late    g        30        1 of 1   3s      not tried yet             <none>
`
	if got.code != exitDone || got.out != want {
		t.Errorf("code %d, %s\nhave\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
	requested := f.requests("GET /v1/queue")[0]
	for _, part := range []string{"node_pool=default", "prefix=t", "filter=Missing+%3E+0", "per_page=7", "next_token=tok"} {
		if !strings.Contains(requested, part) {
			t.Errorf("asked %s, without %s", requested, part)
		}
	}
	got = f.run(t, "queue", "-verbose")
	wants(t, got.out, "Pool     Position  Namespace", "71-100  95 = 72 + 3 waited + 2 x 10 requeued  opportunistic", "1-40    30 ", evalA)

	two := smallQueue()
	two[1].Namespace, two[1].NodePool, two[1].Suspended, two[1].State, two[1].Place = "team", "gpu", 3, structs.QueueSuspended, 1
	got = newFake(t).on("GET /v1/queue", two).run(t, "queue", "-namespace", "*")
	wants(t, got.out, "Pool     Position  Namespace  Job ID", "gpu      1         team       late", "3 suspended")
	got = newFake(t).on("GET /v1/queue", two[:1]).run(t, "queue", "-namespace", "*") // one row has the columns of many
	wants(t, got.out, "Position  Namespace  Job ID  Group    Priority  Share  Missing", "1         default    train   workers  95        0 %    4 of 8")
}

// TestQueueStandings: standings are shown where they are not all normal: a higher priority may stand behind a lower one then.
func TestQueueStandings(t *testing.T) {
	two := smallQueue()
	two[1].Priority.Standing = structs.StandingFailed
	got := newFake(t).on("GET /v1/queue", two).run(t, "queue")
	wants(t, got.out, "Job ID  Group    Standing  Priority", "train   workers  normal    95", "late    g        failed    30")
}

// TestQueueWorkflows: workflows whose reservation is pending follow the queue, even where it is empty.
func TestQueueWorkflows(t *testing.T) {
	stub := func(id, state string, priority int) *structs.WorkflowStub {
		return &structs.WorkflowStub{ID: id, Namespace: "default", NodePool: "default", State: state, Priority: priority, SubmitTime: ago(time.Minute), Missing: "6 cores are missing"}
	}
	all := []*structs.WorkflowStub{stub("low", structs.WorkflowPending, 40), stub("runs", structs.WorkflowRunning, 90), stub("high", structs.WorkflowPending, 80)}
	got := newFake(t).on("GET /v1/queue", []*structs.QueueEntry{}).on("GET /v1/workflows", all).run(t, "queue")
	want := `The queue is empty.

Workflows that wait for their reservation
Workflow  Namespace  Pool     Priority  Waited  Reason
high      default    default  80        1m0s    6 cores are missing
low       default    default  40        1m0s    6 cores are missing
`
	if got.code != exitDone || got.out != want {
		t.Errorf("code %d, %s\nhave\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
	got = newFake(t).on("GET /v1/queue", smallQueue()).on("GET /v1/workflows", all[1:2]).run(t, "queue")
	if strings.Contains(got.out, "Workflow") {
		t.Errorf("none waits: %s", got.out)
	}
}

// TestQueueForecast: which forecast the starts are of, how old that is, and why one is not known, is stated of groups and of workflows.
func TestQueueForecast(t *testing.T) {
	at := func(of time.Duration) int64 { return present.Add(of).UnixNano() }
	two := smallQueue()
	two[0].Forecast = &structs.QueueForecast{Index: 7, Time: ago(12 * time.Second), Latest: at(time.Minute), Unknown: "the forecast ran out of time at noon"}
	flows := []*structs.WorkflowStub{
		{ID: "chip", Namespace: "default", NodePool: "default", State: structs.WorkflowPending, Priority: 40, SubmitTime: ago(time.Minute), Missing: "6 cores are missing",
			Forecast: &structs.QueueForecast{Index: 7, Time: ago(12 * time.Second), Expected: at(time.Minute), Latest: at(time.Hour)}},
		{ID: "new", Namespace: "default", NodePool: "default", State: structs.WorkflowPending, Priority: 30, SubmitTime: ago(time.Second)},
	}
	got := newFake(t).on("GET /v1/queue", two).on("GET /v1/workflows", flows).run(t, "queue")
	minute, hour := clockTime(at(time.Minute), present), clockTime(at(time.Hour), present)
	wants(t, got.out, "not known  "+minute+"  reserved room", "not yet    not yet", "by the forecast of index 7, as of 12s ago; what is newer is not yet part of it.\n",
		"Not known: train: the forecast ran out of time at noon. `nomadish job explain <job>` states it for each.\n",
		"Waited  Expected  Latest", "1m0s    "+minute+"  "+hour+"  6 cores are missing\n", "1s      not yet   not yet   <none>\n",
		"Expected and latest start of their first stages, by the forecast of index 7, as of 12s ago; what is newer")
	// When the next forecast is there.
	next := &structs.ForecastAnswer{Forecast: &structs.Forecast{Index: 7, Next: []structs.ForecastRenewal{
		{Index: 8, End: at(40 * time.Second), Latest: at(5 * time.Minute)}, {End: at(90 * time.Second), Latest: at(20 * time.Minute)},
	}}}
	got = newFake(t).on("GET /v1/queue", two).on("GET /v1/forecast", next).run(t, "queue")
	wants(t, got.out, "what is newer is not yet part of it, but of one that is there in about 40 s.\n")
	two[1].ModifyIndex = 9
	got = newFake(t).on("GET /v1/queue", two).on("GET /v1/forecast", next).run(t, "queue")
	wants(t, got.out, "but of one that is there in about 90 s.\n")
	next.Forecast.Next[1].End = 0
	got = newFake(t).on("GET /v1/queue", two[1:]).on("GET /v1/forecast", next).run(t, "queue")
	wants(t, got.out, "Expected and latest start of all of a group's missing instances: they are part of a forecast that is there in about 20 min at most.\n")
}

// TestQueueUsers: users are shown where they differ, and with -verbose where there are any.
func TestQueueUsers(t *testing.T) {
	two := smallQueue()
	two[0].User, two[0].UserShare, two[1].UserShare = "ada", 12, 3
	got := newFake(t).on("GET /v1/queue", two).run(t, "queue")
	wants(t, got.out, "Priority  User    User Share  Missing", "95        ada     12 %        4 of 8", "30        <none>  3 %         1 of 1")
	two[1].User = "ada"
	got = newFake(t).on("GET /v1/queue", two).run(t, "queue")
	if strings.Contains(got.out, "User") {
		t.Errorf("all are of one user, who is shown:\n%s", got.out)
	}
	got = newFake(t).on("GET /v1/queue", two).run(t, "queue", "-verbose")
	wants(t, got.out, "User  User Share")
}

func TestEmptyQueue(t *testing.T) {
	f := newFake(t).on("GET /v1/queue", []*structs.QueueEntry{})
	if got := f.run(t, "queue"); got.code != exitDone || got.out != "The queue is empty.\n" {
		t.Errorf("code %d: %s%s", got.code, got.out, got.err)
	}
	if got := f.run(t, "queue", "-job", "x"); got.out != "Nothing of that kind is in the queue.\n" {
		t.Errorf("of a kind: %s", got.out)
	}
	others := smallQueue()
	others[1].Namespace, others[0].Namespace = "speech", "vision"
	none := []*structs.QueueEntry{}
	f = newFake(t).on("GET /v1/queue", none, others, none, others, none)
	if got := f.run(t, "queue"); got.out != "Nothing waits in namespace default; 2 jobs wait in others (-namespace '*').\n" {
		t.Errorf("others wait: %s%s", got.out, got.err)
	}
	if got := f.run(t, "queue", "-namespace", "x", "-job", "l"); got.out != "Nothing of that kind waits in namespace x; 2 jobs wait in others (-namespace '*').\n" {
		t.Errorf("others of a kind wait: %s%s", got.out, got.err)
	}
	if got := f.run(t, "queue", "-json"); got.out != "[]\n" {
		t.Errorf("JSON: %q", got.out)
	}
	if got := f.run(t, "queue", "web"); got.code != exitFailed || !strings.Contains(got.err, "no arguments are taken") {
		t.Errorf("with an argument: %d %s", got.code, got.err)
	}
	refused := newFake(t).on("GET /v1/queue", refusal{400, "failed to read filter expression"})
	if got := refused.run(t, "queue", "-filter", "=="); got.code != exitFailed || !strings.Contains(got.err, "filter expression") {
		t.Errorf("a bad filter: %d %s", got.code, got.err)
	}
}
