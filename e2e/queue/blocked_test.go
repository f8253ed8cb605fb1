package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestNobodyCan: whatever keeps all nodes away is named, and the command exits 2.
func TestNobodyCan(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	const base = `job "ID" {
  type = "service"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
      resources {
        cpu = 20
        memory = 16
      }
    }
  }
}`
	f := func(id, from, to string, want ...string) {
		t.Helper()
		text := strings.Replace(base, "ID", id, 1)
		changed := strings.Replace(text, from, to, 1)
		if changed == text {
			t.Fatalf("%q is not in the job", from)
		}
		out, code := a.CLI("job", "run", a.JobFile(id, changed))
		if code != 2 {
			t.Errorf("%s: exit %d, want 2\n%s", id, code, out)
		}
		for _, w := range want {
			if !strings.Contains(strings.ToLower(out), w) {
				t.Errorf("%s: it does not say %q:\n%s", id, w, out)
			}
		}
	}
	f("memory", "memory = 16", "memory = 900000000", "memory", "1 node")
	f("cpu", "cpu = 20", "cpu = 900000000", "cpu", "1 node")
	f("cores", "cpu = 20", "cores = 9000", "cores", "1 node")
	f("kernel", `type = "service"`, "constraint {\n    attribute = \"${attr.kernel.name}\"\n    value = \"plan9\"\n  }", "${attr.kernel.name} = plan9", "1 node")
	f("datacenter", `type = "service"`, `datacenters = ["mars"]`, "mars")
}

// TestWakesWhenRoomComes: what waits for room runs by itself when room comes free.
func TestWakesWhenRoomComes(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "client {\n  cpu_total_compute = 1000\n}\n")
	job := harness.OfficialJob("one", "exec sleep 1000")
	job.TaskGroups[0].Tasks[0].Resources.CPU = harness.Ptr(700)
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	a.WaitRunning("one", 1, 10*time.Second)
	job.ID, job.Name = harness.Ptr("two"), harness.Ptr("two")
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 10*time.Second, "the second job's evaluation waiting", func(ctx context.Context) error {
		evals, _, err := a.API.Jobs().Evaluations(ctx, "two", nil)
		for _, e := range evals {
			if e.Status == structs.EvalStatusBlocked {
				return err
			}
		}
		return harness.Errorf("%d evaluations, none blocked, %v", len(evals), err)
	})
	if _, _, err := a.Nomad.Jobs().Deregister("one", false, nil); err != nil {
		t.Fatal(err)
	}
	a.WaitRunning("two", 1, 15*time.Second)
}
