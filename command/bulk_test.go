package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestBulkCommands(t *testing.T) {
	reply := &structs.JobRegisterReply{EvalID: evalA}
	check := func(line string, code int, want []string, says string) {
		t.Helper()
		f := cluster(t).on("GET /v1/job/webhook", &structs.Job{ID: "webhook"}).
			on("DELETE /v1/job/web", reply).on("DELETE /v1/job/webhook", reply).
			on("PUT /v1/job/web/evaluate", reply).on("PUT /v1/job/webhook/evaluate", reply).
			on("PUT /v1/allocation/"+allocA+"/stop", &structs.AllocStopReply{EvalID: evalA}).
			on("PUT /v1/allocation/"+allocB+"/stop", &structs.AllocStopReply{EvalID: evalA})
		got := f.run(t, strings.Fields(strings.ReplaceAll(line, "NAME", `Name!=""`))...)
		var did []string
		for _, r := range append(f.requests("DELETE"), f.requests("PUT")...) {
			path, _, _ := strings.Cut(r, "?")
			did = append(did, path)
		}
		if got.code != code || strings.Join(did, ",") != strings.Join(want, ",") || !strings.Contains(got.out+got.err, says) {
			t.Errorf("%s: exit code %d, did %q, want %d and %q; printed %q %q, want %q in it", line, got.code, did, code, want, got.out, got.err, says)
		}
	}
	both := []string{"DELETE /v1/job/web", "DELETE /v1/job/webhook"}
	check("job stop -detach -yes web webhook web", exitDone, both, "")
	check("job stop -detach web webhook", exitDone, both, "  web\n  webhook\n") // no terminal to ask at
	check("job stop -detach -yes -prefix web", exitDone, both, "Job \"web\":\nEvaluation ID: "+evalA+"\nJob \"webhook\":\nEvaluation ID: ")
	check("job stop -detach web", exitDone, both[:1], "")
	check("alloc stop -detach -yes -prefix 5f3a9c0", exitDone, []string{"PUT /v1/allocation/" + allocA + "/stop"}, `Allocation "`+allocA+` web.front[0]":`)
	check("job stop -detach -prefix web", exitFailed, nil, "use -yes") // names were not given, and nobody can be asked
	check("job stop -detach -yes -namespace * -filter NAME", exitDone, both, "")
	check("job stop -detach web nobody", exitFailed, nil, "no job is named") // all are found before the first is stopped
	check("job stop -detach -yes -filter NAME web", exitFailed, nil, "exclude each other")
	check("job stop", exitFailed, nil, "one job at least is needed")
	check("job stop -detach -yes -prefix zzz", exitFailed, nil, "no job has an ID that starts so")
	check("job eval -detach -yes web webhook", exitDone, []string{"PUT /v1/job/web/evaluate", "PUT /v1/job/webhook/evaluate"}, "")
	check("alloc stop -detach -yes 5f3a9c01 5f3a9c02", exitDone, []string{"PUT /v1/allocation/" + allocA + "/stop", "PUT /v1/allocation/" + allocB + "/stop"}, "")
	check("alloc stop -detach -yes -prefix 5f3a9c", exitDone, []string{"PUT /v1/allocation/" + allocA + "/stop"}, "") // the other has ended
}

func TestQueueShowsAllPages(t *testing.T) {
	f := cluster(t)
	f.pages = map[string]int{"/v1/queue": 1}
	got := f.run(t, "queue")
	all := smallQueue()
	if n := len(f.requests("GET /v1/queue")); n != len(all) || strings.Contains(got.out, "-page-token") {
		t.Errorf("%d requests for %d entries of a page each:\n%s", n, len(all), got.out)
	}
	if one := f.run(t, "queue", "-per-page", "1"); !strings.Contains(one.out, "-page-token") {
		t.Errorf("-per-page shows more than a page:\n%s", one.out)
	}
}
