package projects

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestUserSharesOrder: of two users of one namespace, the job of the one who has less of the pool is placed first, though the other's has the
// higher priority; the queue shows both shares.
func TestUserSharesOrder(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, "", harness.PlainNodes("n", 1, 1000, 1000))
	submit := func(user string, v harness.MockJob) {
		t.Helper()
		line := "job run -detach "
		if user != "" {
			line += "-user " + user + " "
		}
		harness.CheckOutput(t, a, 0, line+a.JobFile(v.ID, v.Text()))
	}
	for user, v := range map[string]harness.MockJob{
		"ada": {ID: "ada-runs", CPU: 500}, "bob": {ID: "bob-runs", CPU: 200}, "": {ID: "nobody-runs", CPU: 300},
	} {
		v.Priority, v.Count, v.Memory = 50, 1, 100
		submit(user, v)
		a.WaitRunning(v.ID, 1, 20*time.Second)
	}
	submit("ada", harness.MockJob{ID: "ada-waits", Priority: 60, Count: 1, CPU: 300, Memory: 100})
	a.WaitMissing("ada-waits", 1)
	submit("bob", harness.MockJob{ID: "bob-waits", Priority: 50, Count: 1, CPU: 300, Memory: 100})
	a.WaitMissing("bob-waits", 1)
	a.WaitQueue("bob-waits", "ada-waits")
	harness.CheckOutput(t, a, 0, "queue", "User  User Share", "bob   20 %", "ada   50 %")
	if e := a.QueueEntry("ada-waits"); e.User != "ada" || e.UserShare != 50 || e.Share < 99 {
		t.Errorf("ada-waits: %+v", e)
	}
	a.Stop("nobody-runs")
	a.WaitRunning("bob-waits", 1, 20*time.Second)
	a.WaitQueue("ada-waits")
}
