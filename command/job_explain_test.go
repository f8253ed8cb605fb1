package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func smallExplanation() *structs.JobExplanation {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixNano()
	return &structs.JobExplanation{
		JobID: "web", Type: "service", Status: "pending", NodePool: "default", Priority: 50,
		Queue: &structs.QueuePosition{
			Pool: "default", Place: 2, Waiting: 12, Ahead: []structs.NamespacedID{{ID: "big"}},
			Priority: structs.EffectivePriority{
				Total: 73, Declared: 50, Aged: 3, Requeued: 2, RequeueBonus: 20, BandRange: structs.PriorityBand{Low: 41, High: 70}, Standing: structs.StandingNormal,
			},
		},
		Groups: []*structs.GroupExplanation{{
			Group: "front", Wanted: 4, Placed: 3, Running: 3, Missing: 1, Nodes: structs.NodeCounts{Known: 10, InPool: 9, OtherPools: 1, Refused: 4, Lacking: 5},
			Waits: []structs.Wait{{Kind: structs.ReasonPreemption, Text: "nothing is preempted", Allocs: []string{allocA}, AllocCount: 3}},
			Reasons: []structs.NodeReason{
				{Kind: structs.ReasonConstraint, Nodes: 4, Text: "constraint not met: ${attr.x} = y", Classes: map[string]int{"small": 4}},
				{Kind: structs.ReasonMemory, Nodes: 5, Text: "memory: 900 MiB are requested, at most 700 are free on a node"},
			},
			Smallest: []structs.Remedy{
				{Text: "request less: memory of task \"t\" 700 instead of 900", All: true, Places: 1}, {Text: "b", All: true}, {Text: "c", All: true}, {Text: "the fourth"},
			},
			Expected: &structs.Expected{Known: true, First: start, All: start, Because: "allocation x ends"},
			On:       []structs.PlacedOn{{NodeID: "n1", NodeName: "gpu-1", Instances: 3}}, OnNodes: 1,
		}},
	}
}

func TestJobExplain(t *testing.T) {
	f := cluster(t)
	got := f.run(t, "job", "explain", "web")
	wants(t, got.out,
		"2nd of 12 in the queue of node pool default, with an effective priority of 73: 50 declared + 3 waited + 20 for being taken back twice (band 41 to 70)",
		`3 of 4 placed (3 running); 1 waits, 2nd in the queue of pool default.`, "9 are in its pool: 4 may not be used, 5 without room",
		"nothing is preempted [5f3a9c01, 2 more]", "4      constraint not met: ${attr.x} = y (by class: small=4)", "5      memory: 900 MiB",
		`-> request less: memory of task "t" 700 instead of 900`, "The smallest change that would place it (1 job before it in the queue may take the room first):",
		"1 other change, with -verbose", "allocation x ends", "gpu-1")
	wants(t, got.out, `Right before it: job "big".`)
	other := smallExplanation()
	other.Queue.Ahead[0].Namespace = "vision"
	wants(t, queueSentence(other), `Right before it: job "big" in namespace "vision".`)
	for standing, want := range map[int]string{
		structs.StandingEntitled: "(entitled, band 41", structs.StandingRecognised: "(recognised, band 41", structs.StandingFailed: "(last, as the submission check failed, band 41",
	} {
		other.Queue.Priority.Standing = standing
		wants(t, queueSentence(other), want)
	}
	other.Submission, other.SubmissionText = structs.SubmissionUnknownProject, `there is no project "chop": its requests go last; did you mean "chip"?`
	checked := newFake(t).on("GET /v1/job/web/explain", other).on("GET /v1/job/web", &structs.Job{ID: "web"})
	wants(t, checked.run(t, "job", "explain", "web").out, "\nSubmission check: unknown-project: there is no project \"chop\": its requests go last; did you mean \"chip\"?\n")
	if strings.Contains(got.out, "the fourth") || strings.Contains(got.out, "Submission") {
		t.Error("all changes are shown")
	}
	wants(t, f.run(t, "job", "explain", "-verbose", "web").out, "or the fourth (places 0 of 1)")
	wants(t, f.run(t, "job", "explain", "-t", "{{(index .Groups 0).Missing}}", "web").out, "1")
	f.run(t, "job", "explain", "-group", "front", "web")
	if got := f.run(t, "job", "explain", "nosuch"); got.code != exitFailed || !strings.Contains(got.err, `no job is named "nosuch"`) {
		t.Errorf("%d %s", got.code, got.err)
	}
	if got := f.run(t, "job", "explain"); got.code != exitFailed || !strings.Contains(got.err, "one job is needed") {
		t.Errorf("%d %s", got.code, got.err)
	}
}

// TestExplainAccountsForNodes: every node of the pool is counted once.
func TestExplainAccountsForNodes(t *testing.T) {
	x := smallExplanation()
	x.Groups[0].Nodes = structs.NodeCounts{Known: 10, InPool: 10, Refused: 1, Lacking: 3, Fitting: 2, Holding: 4}
	wants(t, groupSentence(x, x.Groups[0]), "1 may not be used, 3 without room. 2 have room for an instance. 4 have their instance.")
	x.Groups[0].Nodes = structs.NodeCounts{Known: 2, InPool: 2, Fitting: 1, Holding: 1}
	wants(t, groupSentence(x, x.Groups[0]), "0 without room. 1 has room for an instance. 1 has its instance.")
}

func TestExplainAPlacedJob(t *testing.T) {
	x := smallExplanation()
	x.Queue = nil
	g := x.Groups[0]
	g.Placed, g.Missing, g.Waits, g.Reasons, g.Smallest, g.Expected = 4, 0, nil, nil, nil, nil
	f := newFake(t).on("GET /v1/job/web/explain", x).on("GET /v1/job/web", &structs.Job{ID: "web"})
	got := f.run(t, "job", "explain", "web")
	wants(t, got.out, "4 of 4 placed (3 running).", "Placed on 1 node", "alloc status")
	for _, no := range []string{"queue", "smallest", "Expected"} {
		if strings.Contains(got.out, no) {
			t.Errorf("%q is in\n%s", no, got.out)
		}
	}
}

func TestAllocStatusSaysWhy(t *testing.T) {
	f := cluster(t)
	f.on("GET /v1/allocation/"+allocA+"/explain", &structs.AllocExplanation{Text: []string{"it is opportunistic", "nobody may preempt it"}})
	wants(t, f.run(t, "alloc", "status", allocA).out, "Why Here, and What It May Lose", "  * it is opportunistic", "  * nobody may preempt it")
	if got := f.run(t, "alloc", "status", "-short", allocA); strings.Contains(got.out, "Why Here") {
		t.Error("-short says why")
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 101: "101st", 112: "112th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
