package workflows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// lentStage is a stage of a workflow that lends, and what is to be seen while it runs, in cores of 1,000 MHz.
type lentStage struct {
	jobs []int // cores of each
	used int
	lent []int // to each borrower
	back int   // borrowers that leave when the stage starts
}

// lendingWorkflow is a workflow that lends to namespaces, of stages whose jobs run until a file of the stage's number is there.
type lendingWorkflow struct {
	name, reserve string
	to            []string // namespaces
	shares        []int    // of each; nil: none is stated
	flood         []int    // how many instances of a core each has
	reserved      int
	stages        []lentStage
}

// text returns the workflow as a file.
func (w *lendingWorkflow) text(dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %q {\nreserve = %q\n", w.name, w.reserve)
	for i, to := range w.to {
		share := ""
		if w.shares != nil {
			share = fmt.Sprintf("share = %d", w.shares[i])
		}
		fmt.Fprintf(&b, "lend {\nto = \"namespace:%s\"\n%s\n}\n", to, share)
	}
	for i, s := range w.stages {
		fmt.Fprintf(&b, "stage \"s%d\" {\n", i)
		for k, cores := range s.jobs {
			fmt.Fprintf(&b, `job "j%d-%d" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-ec", "until test -e '%s/%s.%d'; do sleep 0.05; done"]
      }
      resources {
        cpu    = %d
        memory = 10
      }
    }
  }
}
`, i, k, dir, w.name, i, 1000*cores)
		}
		b.WriteString("}\n")
	}
	return b.String() + "}\n"
}

// borrower returns a job of a name and a namespace, of so many instances of a core that run until they are stopped.
func borrower(name, namespace string, count int, reclaim string) string {
	return fmt.Sprintf(`job %q {
  namespace = %q
  type      = "batch"
  reclaim   = %q
  group "g" {
    count = %d
    task "t" {
      driver = "mock_driver"
      config {
        run_for = "1h"
      }
      resources {
        cpu    = 1000
        memory = 10
      }
    }
  }
}
`, name, namespace, reclaim, count)
}

// seen returns why the workflow, as the API shows it, is not at a stage as it should be; nil: it is.
func (w *lendingWorkflow) seen(ctx context.Context, a *harness.Agent, stage int) error {
	s, _, err := a.API.Workflows().Info(ctx, w.name, nil)
	if err != nil {
		return err
	}
	var back, wantBack []int
	for i, want := range w.stages[:stage+1] {
		back, wantBack = append(back, s.Stages[i].Reclaimed), append(wantBack, want.back)
	}
	want, sum := w.stages[stage], 0
	var lent []int
	for i, l := range s.LentTo {
		lent, sum = append(lent, int(l.Amount.CPU/1000)), sum+want.lent[i]
	}
	got := []int64{s.Reserved.CPU, s.Used.CPU, s.Lent.CPU, s.Idle.CPU}
	if !slices.Equal(got, []int64{int64(w.reserved) * 1000, int64(want.used) * 1000, int64(sum) * 1000, 0}) || !slices.Equal(lent, want.lent) || !slices.Equal(back, wantBack) {
		return fmt.Errorf("workflow %s, %s, stage %d: reserved, used, lent, idle: %v MHz; lent to each %v, want %v; taken back by stage %v, want %v", w.name, s.State,
			stage, got, lent, want.lent, back, wantBack)
	}
	return nil
}

// TestWorkflowsLend: the examples of the guarantee that what idles of a reservation is lent and taken back just enough, as the API shows them at each stage. Who
// leaves is requeued or suspended, as it states, and runs again when there is room.
func TestWorkflowsLend(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "client {\n  cpu_total_compute = 12000\n  memory_total_mb = 8000\n}\n")
	for _, namespace := range []string{"a", "b", "c"} {
		harness.CheckOutput(t, a, 0, "namespace apply "+namespace)
	}
	two := []lentStage{{[]int{4}, 4, []int{4, 4}, 0}, {[]int{8}, 8, []int{2, 2}, 4}}
	inOrder := slices.Clone(two)
	inOrder[1].lent = []int{0, 4}
	for i, w := range []*lendingWorkflow{
		{"golden", "max", []string{"a"}, nil, []int{8}, 8, []lentStage{
			{[]int{2}, 2, []int{6}, 0}, {[]int{2, 3, 1}, 6, []int{2}, 4}, {[]int{5, 1}, 6, []int{2}, 0}, {[]int{8}, 8, []int{0}, 2},
		}},
		{"sum", "sum", []string{"a"}, nil, []int{10}, 10, []lentStage{{[]int{4}, 4, []int{6}, 0}, {[]int{6}, 6, []int{4}, 2}}},
		{"alike", "sum", []string{"a", "b"}, []int{1, 1}, []int{6, 6}, 12, two},
		{"unused", "sum", []string{"a", "b"}, []int{1, 1}, []int{9, 1}, 12, []lentStage{{[]int{4}, 4, []int{7, 1}, 0}, {[]int{8}, 8, []int{3, 1}, 4}}},
		{"order", "sum", []string{"a", "b"}, nil, []int{4, 4}, 12, inOrder},
		{"three", "sum", []string{"a", "b", "c"}, []int{2, 1, 1}, []int{5, 3, 2}, 10, []lentStage{{[]int{3}, 3, []int{3, 2, 2}, 0}, {[]int{7}, 7, []int{1, 1, 1}, 4}}},
	} {
		lendsAndTakesBack(t, a, w, []string{structs.ReclaimRequeue, structs.ReclaimSuspend}[i%2])
	}
}

// lendsAndTakesBack runs a workflow to its end beside its borrowers, and whatever else the node has in the hands of somebody to whom it does not lend.
func lendsAndTakesBack(t *testing.T, a *harness.Agent, w *lendingWorkflow, reclaim string) {
	t.Helper()
	const rest = 12 // cores of the node
	dir := a.Dir
	file := a.JobFile(w.name, w.text(dir))
	harness.CheckOutput(t, a, 0, "workflow plan "+file, "Lent during", fmt.Sprintf("%d MHz", 1000*(w.reserved-w.stages[0].used)))
	harness.CheckOutput(t, a, 0, "workflow run -detach "+file)
	a.WaitRunning(w.name+"/1/j0-0", 1, 20*time.Second)
	if n := rest - w.reserved; n > 0 {
		harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile("rest", borrower("rest", "default", n, reclaim)))
		a.WaitRunning("rest", n, 20*time.Second)
	}
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -pause-eval-broker=true") // all of them want to borrow when the first one is decided
	for i, to := range w.to {
		harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile(w.name+"-"+to, borrower(w.name+"-"+to, to, w.flood[i], reclaim)))
	}
	harness.CheckOutput(t, a, 0, "operator scheduler set-config -pause-eval-broker=false")
	for i := range w.stages {
		harness.Within(t, 20*time.Second, fmt.Sprintf("stage %d of workflow %s", i, w.name), func(ctx context.Context) error { return w.seen(ctx, a, i) })
		// The jobs of a stage end one after another. What the first ones leave would be lent until the last one ends, and be taken back at once.
		harness.CheckOutput(t, a, 0, "operator scheduler set-config -pause-eval-broker=true")
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d", w.name, i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if i+1 < len(w.stages) {
			stageStarted(t, a, w.name, i+1)
		}
		harness.CheckOutput(t, a, 0, "operator scheduler set-config -pause-eval-broker=false")
	}
	harness.WaitOutput(t, a, "workflow status "+w.name, w.name+" run 1  complete")
	for i, to := range w.to {
		harness.Within(t, 20*time.Second, "all borrowers to run again", func(ctx context.Context) error {
			allocs, _, err := a.API.Jobs().Allocations(ctx, w.name+"-"+to, true, &api.Query{Namespace: to})
			n := 0
			for _, alloc := range allocs {
				if alloc.DesiredStatus == structs.AllocDesiredRun && alloc.ClientStatus == structs.AllocClientRunning {
					n++
				}
			}
			if err == nil && n != w.flood[i] {
				err = fmt.Errorf("%d of %d of namespace %s run", n, w.flood[i], to)
			}
			if reclaim == structs.ReclaimSuspend && err == nil && len(allocs) != w.flood[i] {
				err = fmt.Errorf("%d allocations of namespace %s, want %d: those that left were suspended", len(allocs), to, w.flood[i])
			}
			return err
		})
		harness.CheckOutput(t, a, 0, "job stop -detach -purge -namespace "+to+" "+w.name+"-"+to)
	}
	if rest > w.reserved {
		harness.CheckOutput(t, a, 0, "job stop -detach -purge rest")
	}
}
