//go:build netns

package net

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// floodJob is an ordinary job of real processes of the size of those of the example, which end by themselves, and not before their kill timeout
// when they are to stop.
func floodJob(name string, count int, runs, killTimeout time.Duration) string {
	return fmt.Sprintf(`job %q {
  type = "batch"
  group "g" {
    count            = %d
    max_run_duration = "1m"
    task "t" {
      driver       = "raw_exec"
      kill_timeout = %q
      config {
        command = "/bin/sh"
        args    = ["-ec", "trap '' INT TERM; exec sleep %g"]
      }
    }
  }
}
`, name, count, killTimeout, runs.Seconds())
}

// span is when a task ran.
type span struct{ from, to time.Time }

// within returns how long a span lies in another.
func (s span) within(o span) time.Duration {
	if o.from.After(s.from) {
		s.from = o.from
	}
	if o.to.Before(s.to) {
		s.to = o.to
	}
	return max(0, s.to.Sub(s.from))
}

// spans returns when the tasks of jobs with a prefix ran, by job; what runs still, until now.
func spans(a *harness.Agent, prefix string) map[string][]span {
	a.T.Helper()
	stubs, _, err := a.API.Allocations().List(a.T.Context(), &api.Query{Params: map[string]string{"task_states": "true"}})
	if err != nil {
		a.T.Fatal(err)
	}
	out := map[string][]span{}
	for _, stub := range stubs {
		for _, task := range stub.TaskStates { // order does not matter: they are added up
			if strings.HasPrefix(stub.JobID, prefix) && !task.StartedAt.IsZero() {
				s := span{task.StartedAt, task.FinishedAt}
				if s.to.IsZero() {
					s.to = time.Now()
				}
				out[stub.JobID] = append(out[stub.JobID], s)
			}
		}
	}
	return out
}

// stageRan is when a stage of a run ran.
type stageRan struct {
	instances int
	full      span      // from the start of the last of them to the end of the first
	end       time.Time // of the last
}

// stagesRan returns when the stages of a run of the example ran, which have these jobs.
func stagesRan(a *harness.Agent, stages ...[]string) (list []stageRan) {
	a.T.Helper()
	ran := spans(a, "chip/1/")
	for _, jobs := range stages {
		var s stageRan
		for _, job := range jobs {
			for _, one := range ran["chip/1/"+job] {
				if s.instances++; s.instances == 1 {
					s.full, s.end = one, one.to
				}
				if one.from.After(s.full.from) {
					s.full.from = one.from
				}
				if one.to.Before(s.full.to) {
					s.full.to = one.to
				}
				if one.to.After(s.end) {
					s.end = one.to
				}
			}
		}
		if s.instances == 0 {
			a.T.Fatalf("nothing of %v ran: %v", jobs, ran)
		}
		list = append(list, s)
	}
	return list
}

// TestNetWorkflowFlood: the workflow of examples/ on a node that has just what it reserves, under a flood of ordinary jobs that run for a twentieth of a stage
// each. A stage waits for no more than the kill timeouts of those who borrow, and what is lent is used.
func TestNetWorkflowFlood(t *testing.T) {
	t.Parallel()
	const killTimeout, most = 500 * time.Millisecond, 3 // instances of a stage
	stage := long(200*time.Millisecond, 40*time.Second)
	a := harness.StartDev(t, fmt.Sprintf("client {\n  cpu_total_compute = %d\n  memory_total_mb = %d\n}\n", most*100, most*300))
	const examples = "../../examples/workflows/"
	text, err := os.ReadFile(examples + "chip.nomad.hcl")
	if err != nil {
		t.Fatal(err)
	}
	route, err := os.ReadFile(examples + "route.nomad.hcl")
	if err != nil {
		t.Fatal(err)
	}
	lends := strings.Replace(string(text), "  reserve    = \"max\"\n", "  reserve    = \"max\"\n  lend {\n    to = \"namespace:default\"\n  }\n", 1)
	file := a.JobFile("chip", lends)
	a.JobFile("route", string(route))
	dir := filepath.Join(a.Dir, "chip")
	harness.CheckOutput(t, a, 0, fmt.Sprintf("workflow run -detach -var dir=%s -var seconds=%g %s", dir, stage.Seconds(), file))
	jobs := 3
	if harness.FaultsLong {
		jobs = 30
	}
	for i := range jobs {
		name := fmt.Sprint("flood-", i)
		harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile(name, floodJob(name, 10, stage/20, killTimeout)))
	}
	harness.Within(t, 6*stage+20*time.Second, "the workflow to complete", func(ctx context.Context) error {
		w, _, err := a.API.Workflows().Info(ctx, "chip", nil)
		if err == nil && w.State != structs.WorkflowComplete {
			err = fmt.Errorf("it is %s, at stage %d", w.State, w.Stage)
		}
		return err
	})
	if report, err := os.ReadFile(filepath.Join(dir, "report")); err != nil || !strings.Contains(string(report), "60 cells, sum 1830") {
		t.Errorf("the report is %q: %v", report, err)
	}

	stages := stagesRan(a, []string{"generate"}, []string{"low", "high"}, []string{"place"}, []string{"route"}, []string{"signoff"})
	var lent, used, longest time.Duration
	instances := 0
	for i, s := range stages {
		if i > 0 {
			wait := s.full.from.Sub(stages[i-1].end)
			if longest = max(longest, wait); wait > harness.Scaled(time.Second)+killTimeout {
				t.Errorf("the last instance of stage %d started %s after the end of the stage before", i+1, wait)
			}
			t.Logf("stage %d of %d instances started whole %v after the end of the one before", i+1, s.instances, wait.Round(time.Millisecond))
		}
		lent += time.Duration(most-s.instances) * max(0, s.full.to.Sub(s.full.from))
	}
	for _, ran := range spans(a, "flood-") { // order does not matter: a sum
		instances += len(ran)
		for _, f := range ran {
			for _, s := range stages {
				used += f.within(s.full)
			}
		}
	}
	part := used.Seconds() / lent.Seconds()
	if t.Logf("FIGURE workflow under a flood of %d instances of %v: stages of %v wait %v at most; %.1f %% of what is lent is used",
		instances, stage/20, stage, longest.Round(time.Millisecond), 100*part); harness.FaultsLong && part < 0.9 {
		t.Errorf("%.1f %% of what is lent is used", 100*part)
	}
}
