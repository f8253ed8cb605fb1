package workflows

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// licensedJob is a job of so many instances that run until they are stopped, each with one license.
func licensedJob(name string, count int, license string) string {
	return fmt.Sprintf(`job %q {
  group "g" {
    count = %d
    task "t" {
      driver = "mock_driver"
      config {
        run_for = "1h"
      }
      resources {
        cpu      = 20
        memory   = 10
        licenses = { %s = 1 }
      }
    }
  }
}
`, name, count, license)
}

// TestLicenses: ten licenses are used, the eleventh instance waits and says why; a higher count, and then a job that ends, let others run.
func TestLicenses(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	harness.CheckOutput(t, a, 1, "job run -detach "+a.JobFile("none", licensedJob("none", 1, "vcs")), `unknown license "vcs": this region has no licenses`, "license apply")
	harness.CheckOutput(t, a, 0, "license apply -count 10 vcs", `Successfully applied license "vcs"!`)
	harness.CheckOutput(t, a, 1, "license apply -count 10 -check-index 0 vcs", "its count is 10 now", "(HTTP 409)")
	harness.CheckOutput(t, a, 1, "job run -detach "+a.JobFile("near", licensedJob("near", 1, "vsc")), `did you mean "vcs"?`)
	harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile("sim", licensedJob("sim", 10, "vcs")))
	a.WaitRunning("sim", 10, 30*time.Second)
	harness.CheckOutput(t, a, 0, "license list", "vcs   10     10    0")
	harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile("more", licensedJob("more", 2, "vcs")))
	harness.WaitOutput(t, a, "job status more", `license "vcs": 1 needed, 0 of 10 free`)
	harness.CheckOutput(t, a, 0, "job explain more", `license "vcs": 1 needed, 0 of 10 free`, `used by job "sim" of namespace "default" (10)`, `count 12`)
	harness.CheckOutput(t, a, 0, "license status vcs", "Used        = 10", "default    sim  g           10           10")
	harness.CheckOutput(t, a, 1, "license delete vcs", "is in use: 10", "(HTTP 409)")
	harness.CheckOutput(t, a, 0, "license apply -count 11 vcs")
	a.WaitRunning("more", 1, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job stop -detach sim")
	a.WaitRunning("more", 2, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job stop -detach more")
	harness.WaitOutput(t, a, "license status vcs", "Used        = 0", "No users")
	harness.CheckOutput(t, a, 0, "license delete vcs", `Successfully deleted license "vcs"!`)
	harness.CheckOutput(t, a, 0, "license list", "No licenses")
}

// licensedWorkflow is a workflow of two stages, the first without licenses and the second with six, each of which runs until a file is there.
func licensedWorkflow(name, dir, lend string) string {
	stage := func(name string, count, licenses int) string {
		return fmt.Sprintf(`
  stage %[1]q {
    job %[1]q {
      group "g" {
        count = %[2]d
        task "t" {
          driver = "raw_exec"
          config {
            command = "/bin/sh"
            args    = ["-ec", "until test -e %[3]s/go-%[1]s; do sleep 0.1; done"]
          }
          resources {
            cpu      = 20
            memory   = 10
            licenses = { %[4]s }
          }
        }
      }
    }
  }
`, name, count, dir, map[bool]string{true: fmt.Sprintf("vcs = %d", licenses)}[licenses > 0])
	}
	return fmt.Sprintf("workflow %q {\n%s%s%s}\n", name, lend, stage("a", 1, 0), stage("b", 3, 2))
}

// TestLicensesOfWorkflow: of ten licenses of which a workflow reserves six, jobs that it does not lend to have four. Those that it lends to have ten while
// its stage needs none; the stage that needs six has just enough back, and they run again after it.
func TestLicensesOfWorkflow(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	ends := func(stage string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(a.Dir, "go-"+stage), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	harness.CheckOutput(t, a, 0, "license apply -count 10 vcs")
	plain := a.JobFile("plain", licensedWorkflow("plain", a.Dir, ""))
	harness.CheckOutput(t, a, 0, "workflow plan "+plain, "b              b     3          60 MHz  30 MiB  900 MiB  vcs 6", "Reserved       max", "It would start at once")
	harness.CheckOutput(t, a, 0, "workflow run -detach "+plain)
	a.WaitRunning("plain/1/a", 1, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile("sim", licensedJob("sim", 10, "vcs")))
	a.WaitRunning("sim", 4, 20*time.Second)
	harness.WaitOutput(t, a, "job status sim", `license "vcs": 1 needed, 0 of 10 free, 6 reserved by workflow default/plain`)
	harness.CheckOutput(t, a, 0, "license list", "vcs   10     4     0     6")
	harness.CheckOutput(t, a, 0, "license status vcs", "Reserved    = 6", "default    plain     reserved  6         0     0     6")
	harness.CheckOutput(t, a, 0, "workflow run -detach "+a.JobFile("late", licensedWorkflow("late", a.Dir, "")))
	harness.WaitOutput(t, a, "workflow status late", `late run 1  pending`, `6 of license "vcs" are missing`)
	harness.CheckOutput(t, a, 0, "workflow cancel late")
	harness.CheckOutput(t, a, 1, "license delete vcs", "(HTTP 409)")
	harness.CheckOutput(t, a, 0, "job stop -detach sim")
	harness.CheckOutput(t, a, 0, "workflow cancel plain")
	harness.WaitOutput(t, a, "license status vcs", "Used        = 0", "Reserved    = 0")

	harness.CheckOutput(t, a, 0, "workflow run -detach "+a.JobFile("chip", licensedWorkflow("chip", a.Dir, "  lend {\n    to = \"namespace:default\"\n  }\n")))
	a.WaitRunning("chip/1/a", 1, 20*time.Second)
	harness.CheckOutput(t, a, 0, "job run -detach "+a.JobFile("lent", licensedJob("lent", 10, "vcs")))
	a.WaitRunning("lent", 10, 20*time.Second)
	harness.CheckOutput(t, a, 0, "license status vcs", "default    chip      reserved  6         0     6     0", "may borrow from workflow default/chip")
	ends("a")
	a.WaitRunning("chip/1/b", 3, 20*time.Second)
	a.WaitRunning("lent", 4, 20*time.Second)
	harness.WaitOutput(t, a, "license status vcs", "default    chip      reserved  6         6     0     0", "reservation of workflow default/chip")
	harness.CheckOutput(t, a, 0, "workflow status chip", "used 60 MHz, 30 MiB, vcs 6", "taken back: 0, 6")
	ends("b")
	a.WaitRunning("lent", 10, 20*time.Second)
	harness.WaitOutput(t, a, "workflow status chip", "chip run 1  complete")
}
