package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestJobRunTakesSeveralFiles(t *testing.T) {
	a, b := file(t, "a.hcl", smallJob("a")), file(t, "b.hcl", smallJob("b"))
	f := newFake(t).on("PUT /v1/jobs", &structs.JobRegisterReply{EvalID: evalA}, &structs.JobRegisterReply{EvalID: evalB})
	got := f.run(t, "job", "run", "-detach", a, b)
	if want := "Job \"a\":\nJob registration successful\nEvaluation ID: " + evalA + "\nJob \"b\":\nJob registration successful\nEvaluation ID: " + evalB + "\n"; got.code != exitDone || got.out != want {
		t.Errorf("exit code %d, printed\n%s\nwant\n%s\n%s", got.code, got.out, want, got.err)
	}
	sent := func(want int, code int, err string, args ...string) {
		t.Helper()
		f := newFake(t).on("PUT /v1/jobs", refusal{400, "bad job"}, &structs.JobRegisterReply{EvalID: evalB})
		got := f.run(t, append([]string{"job", "run", "-detach"}, args...)...)
		if n := len(f.requests("PUT")); n != want || got.code != code || !strings.Contains(got.err, err) {
			t.Errorf("%q: %d jobs sent of %d, exit code %d, stderr %q, want %q in it", args, n, want, got.code, got.err, err)
		}
	}
	sent(2, exitFailed, "bad job", a, b)                                                // one that is refused keeps no other back
	sent(0, exitFailed, "no such file", a, "nowhere.hcl")                               // all are read before the first is sent
	sent(0, exitFailed, "both state the job \"a\"", a, file(t, "c.hcl", smallJob("a"))) // the second would be a new version
	sent(0, exitFailed, "-check-index is of one job", "-check-index", "3", a, b)
	sent(0, exitFailed, "-output prints one job", "-output", a, b)
	sent(0, exitFailed, "at least one job file is needed")
}

// smallJob is a job file.
func smallJob(id string) string {
	return `job "` + id + `" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "1s" }
    }
  }
}
`
}
