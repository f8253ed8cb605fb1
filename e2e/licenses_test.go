package e2e

import (
	"fmt"
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
