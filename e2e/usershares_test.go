package e2e

import (
	"testing"
	"time"
)

// TestUserSharesOrder: of two users of one namespace, the job of the one who has less of the pool is placed first, though the other's has the
// higher priority; the queue shows both shares.
func TestUserSharesOrder(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, "", plainNodes("n", 1, 1000, 1000))
	submit := func(user string, v volume) {
		t.Helper()
		line := "job run -detach "
		if user != "" {
			line += "-user " + user + " "
		}
		says(t, a, 0, line+a.job(v.id, v.text()))
	}
	for user, v := range map[string]volume{
		"ada": {id: "ada-runs", cpu: 500}, "bob": {id: "bob-runs", cpu: 200}, "": {id: "nobody-runs", cpu: 300},
	} {
		v.priority, v.count, v.memory = 50, 1, 100
		submit(user, v)
		a.running(v.id, 1, 20*time.Second)
	}
	submit("ada", volume{id: "ada-waits", priority: 60, count: 1, cpu: 300, memory: 100})
	a.missing("ada-waits", 1)
	submit("bob", volume{id: "bob-waits", priority: 50, count: 1, cpu: 300, memory: 100})
	a.missing("bob-waits", 1)
	a.line("bob-waits", "ada-waits")
	says(t, a, 0, "queue", "User  User Share", "bob   20 %", "ada   50 %")
	if e := a.entry("ada-waits"); e.User != "ada" || e.UserShare != 50 || e.Share < 99 {
		t.Errorf("ada-waits: %+v", e)
	}
	a.stop("nobody-runs")
	a.running("bob-waits", 1, 20*time.Second)
	a.line("ada-waits")
}
