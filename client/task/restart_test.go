package task

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

func TestRestartsNext(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fail := Policy{Attempts: 2, Interval: time.Minute, Delay: 10 * time.Second, Mode: structs.RestartPolicyModeFail}
	with := func(edit func(*Policy)) Policy { p := fail; edit(&p); return p }
	f := func(name string, p Policy, had Restarts, well, curable bool, want Decision) {
		t.Helper()
		_, got := had.Next(p, well, curable, start, 0)
		if got.Restart != want.Restart || got.Failed != want.Failed || got.Delay != want.Delay {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if got.Reason == "" {
			t.Errorf("%s: no reason", name)
		}
	}
	service := with(func(p *Policy) { p.OnSuccess = true })
	delay := with(func(p *Policy) { p.Mode = structs.RestartPolicyModeDelay })
	none := with(func(p *Policy) { p.Attempts = 0 })
	used := Restarts{Count: 2, Since: start.Add(-20 * time.Second)}
	old := Restarts{Count: 2, Since: start.Add(-2 * time.Minute)}
	f("batch that ended well", fail, Restarts{}, true, true, Decision{})
	f("service that ended well", service, Restarts{}, true, true, Decision{Restart: true, Delay: 10 * time.Second})
	f("first failure", fail, Restarts{}, false, true, Decision{Restart: true, Delay: 10 * time.Second})
	f("attempts used up", fail, used, false, true, Decision{Failed: true})
	f("attempts used up, delay", delay, used, false, true, Decision{Restart: true, Delay: 40 * time.Second})
	f("used up long ago", fail, old, false, true, Decision{Restart: true, Delay: 10 * time.Second})
	f("incurable", service, Restarts{}, false, false, Decision{Failed: true})
	f("no restarts allowed", none, Restarts{}, false, true, Decision{Failed: true})
	f("no restarts allowed, delay", with(func(p *Policy) { p.Attempts, p.Mode = 0, structs.RestartPolicyModeDelay }), Restarts{}, false, true,
		Decision{Restart: true, Delay: time.Minute})
}

// Within any interval there are never more restarts than attempts, whenever the
// failures come.
func TestRestartsNeverMoreThanAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Attempts: rapid.IntRange(0, 5).Draw(t, "attempts"), Interval: time.Duration(rapid.IntRange(1, 100).Draw(t, "interval")) * time.Second,
			Delay: time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * time.Second, Mode: structs.RestartPolicyModeFail,
		}
		now := time.Unix(0, 0)
		var r Restarts
		var since time.Time
		restarts := 0
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "wait")) * time.Second)
			var d Decision
			r, d = r.Next(p, false, true, now, rapid.Float64Range(0, 0.999).Draw(t, "random"))
			if r.Since != since {
				since, restarts = r.Since, 0
			}
			if !d.Restart {
				return
			}
			restarts++
			if restarts > p.Attempts {
				t.Fatalf("restart %d within one interval, allowed are %d", restarts, p.Attempts)
			}
			if d.Delay < p.Delay || d.Delay > p.Delay+p.Delay/jitter {
				t.Fatalf("delay %v of %v", d.Delay, p.Delay)
			}
		}
	})
}

func TestPolicyOf(t *testing.T) {
	side := &structs.TaskLifecycle{Hook: structs.TaskLifecycleHookPrestart, Sidecar: true}
	once := &structs.TaskLifecycle{Hook: structs.TaskLifecycleHookPrestart}
	f := func(kind string, l *structs.TaskLifecycle, onSuccess bool) {
		t.Helper()
		if got := PolicyOf(nil, kind, l).OnSuccess; got != onSuccess {
			t.Errorf("%s %+v: restarted after success %v, want %v", kind, l, got, onSuccess)
		}
	}
	f(structs.JobTypeService, nil, true)
	f(structs.JobTypeSystem, nil, true)
	f(structs.JobTypeBatch, nil, false)
	f(structs.JobTypeSysBatch, nil, false)
	f(structs.JobTypeService, once, false)
	f(structs.JobTypeBatch, side, true)
}
