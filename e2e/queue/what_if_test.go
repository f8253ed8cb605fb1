package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// limitedJob is a job of one instance with all eight GPUs of a node, for so long.
func limitedJob(name, limit string, priority int) string {
	return fmt.Sprintf(`job %q {
  type     = "batch"
  priority = %d
  group "g" {
    max_run_duration = %q
    task "t" {
      driver = "mock_driver"
      config {
        run_for = "24h"
      }
      resources {
        cpu    = 100
        memory = 100
        device "nvidia/gpu" {
          count = 8
        }
      }
    }
  }
}
`, name, priority, limit)
}

// TestWhatIf: what changes would do to a queue, of the cluster and of a saved state; nothing gets into the log.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, harness.PatientServer, harness.DGXNodes("dgx", 1, "r1"))
	for i, limit := range []string{"1h", "2h", "3h"} {
		name := fmt.Sprint("job-", i)
		harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile(name, limitedJob(name, limit, 50)))
		if i == 0 {
			a.WaitRunning(name, 1, 20*time.Second)
		}
	}
	harness.WaitOutput(t, a, "queue", "job-1", "job-2")
	applied := func() string {
		t.Helper()
		out, _ := a.CLI("agent-info", "-t", `{{index .stats.raft "applied_index"}}`)
		return strings.TrimSpace(out)
	}
	harness.Within(t, 20*time.Second, "a what-if while nothing else writes", func(context.Context) error {
		before := applied()
		if err := harness.TryOutput(a, 0, "what-if drain:dgx-0", "never 2"); err != nil {
			return err
		}
		if after := applied(); after != before || before == "" {
			return fmt.Errorf("the log was at entry %q, and is at %q", before, after)
		}
		return nil
	})
	harness.CheckOutput(t, a, 0, "what-if add-nodes:1:like=dgx-0", "add-nodes:1:like=dgx-0", "Starts  earlier 2", "job-2  g      1", "earlier", "GPUs in use, mean                      100 %")
	urgent := a.JobFile("urgent", limitedJob("urgent", "30m", 90))
	harness.CheckOutput(t, a, 0, "what-if config:preemption=true job:"+urgent, "Taken for others with the changes: 1 (without: 0)", "job-0.g[0]  dgx-0", "preempted by urgent.g[0]")
	harness.CheckOutput(t, a, 0, "job run -what-if "+urgent, "new 1", "urgent")
	harness.CheckOutput(t, a, 0, "node drain -enable -what-if dgx-0", "never 2")
	harness.CheckOutput(t, a, 1, "what-if lose:dgx-9", `node "dgx-9": not found`, "(HTTP 404)")
	harness.CheckOutput(t, a, 1, "what-if -horizon 2400h lose:dgx-0", "horizon 2400h0m0s: must be more than 0 and at most 2160h0m0s")
	file, page := filepath.Join(t.TempDir(), "a.snap"), filepath.Join(t.TempDir(), "a.html")
	harness.CheckOutput(t, a, 0, "operator snapshot save "+file)
	a.Kill()
	harness.CheckOutput(t, a, 0, "what-if -snapshot "+file+" -report "+page+" lose:dgx-0:after=30m", "never 2", "The plots are in")
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<svg") {
		t.Errorf("%v: %.200s", err, html)
	}
}
