package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
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
	a := startDev(t, "")
	says(t, a, 1, "job run -detach "+a.job("none", licensedJob("none", 1, "vcs")), `unknown license "vcs": this region has no licenses`, "license apply")
	says(t, a, 0, "license apply -count 10 vcs", `Successfully applied license "vcs"!`)
	says(t, a, 1, "license apply -count 10 -check-index 0 vcs", "its count is 10 now", "(HTTP 409)")
	says(t, a, 1, "job run -detach "+a.job("near", licensedJob("near", 1, "vsc")), `did you mean "vcs"?`)
	says(t, a, 0, "job run -detach "+a.job("sim", licensedJob("sim", 10, "vcs")))
	a.running("sim", 10, 30*time.Second)
	says(t, a, 0, "license list", "vcs   10     10    0")
	says(t, a, 0, "job run -detach "+a.job("more", licensedJob("more", 2, "vcs")))
	until(t, a, "job status more", `license "vcs": 1 needed, 0 of 10 free`)
	says(t, a, 0, "job explain more", `license "vcs": 1 needed, 0 of 10 free`, `used by job "sim" of namespace "default" (10)`, `count 12`)
	says(t, a, 0, "license status vcs", "Used        = 10", "default    sim  g           10           10")
	says(t, a, 1, "license delete vcs", "is in use: 10", "(HTTP 409)")
	says(t, a, 0, "license apply -count 11 vcs")
	a.running("more", 1, 20*time.Second)
	says(t, a, 0, "job stop -detach sim")
	a.running("more", 2, 20*time.Second)
	says(t, a, 0, "job stop -detach more")
	until(t, a, "license status vcs", "Used        = 0", "No users")
	says(t, a, 0, "license delete vcs", `Successfully deleted license "vcs"!`)
	says(t, a, 0, "license list", "No licenses")
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
	a := startDev(t, "")
	ends := func(stage string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(a.dir, "go-"+stage), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says(t, a, 0, "license apply -count 10 vcs")
	plain := a.job("plain", licensedWorkflow("plain", a.dir, ""))
	says(t, a, 0, "workflow plan "+plain, "b              b     3          60 MHz  30 MiB  vcs 6", "Reserved       max", "It would start at once")
	says(t, a, 0, "workflow run -detach "+plain)
	a.running("plain/1/a", 1, 20*time.Second)
	says(t, a, 0, "job run -detach "+a.job("sim", licensedJob("sim", 10, "vcs")))
	a.running("sim", 4, 20*time.Second)
	until(t, a, "job status sim", `license "vcs": 1 needed, 0 of 10 free, 6 reserved by workflow default/plain`)
	says(t, a, 0, "license list", "vcs   10     4     6     6")
	says(t, a, 0, "license status vcs", "Reserved    = 6", "default    plain     reserved  6         0     0     6")
	says(t, a, 0, "workflow run -detach "+a.job("late", licensedWorkflow("late", a.dir, "")))
	until(t, a, "workflow status late", `late run 1  pending`, `6 of license "vcs" are missing`)
	says(t, a, 0, "workflow cancel late")
	says(t, a, 1, "license delete vcs", "(HTTP 409)")
	says(t, a, 0, "job stop -detach sim")
	says(t, a, 0, "workflow cancel plain")
	until(t, a, "license status vcs", "Used        = 0", "Reserved    = 0")

	says(t, a, 0, "workflow run -detach "+a.job("chip", licensedWorkflow("chip", a.dir, "  lend {\n    to = \"namespace:default\"\n  }\n")))
	a.running("chip/1/a", 1, 20*time.Second)
	says(t, a, 0, "job run -detach "+a.job("lent", licensedJob("lent", 10, "vcs")))
	a.running("lent", 10, 20*time.Second)
	says(t, a, 0, "license status vcs", "default    chip      reserved  6         0     6     0", "may borrow from workflow default/chip")
	ends("a")
	a.running("chip/1/b", 3, 20*time.Second)
	a.running("lent", 4, 20*time.Second)
	until(t, a, "license status vcs", "default    chip      reserved  6         6     0     0", "reservation of workflow default/chip")
	says(t, a, 0, "workflow status chip", "used 60 MHz, 30 MiB, vcs 6", "taken back: 0, 6")
	ends("b")
	a.running("lent", 10, 20*time.Second)
	until(t, a, "workflow status chip", "chip run 1  complete")
}
