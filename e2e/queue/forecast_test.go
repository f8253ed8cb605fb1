package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// limited is a job that takes a whole node of 1,000 MHz for at most a time; "": for any.
func limited(id, limit string) string {
	if limit != "" {
		limit = fmt.Sprintf("max_run_duration = %q", limit)
	}
	return fmt.Sprintf(`job %q {
  type = "batch"
  group "g" {
    %s
    task "t" {
      driver = "mock_driver"
      config { run_for = "10h" }
      resources {
        cpu    = 1000
        memory = 100
      }
    }
  }
}
`, id, limit)
}

// forecastOf waits until the last forecast has a job, and returns it.
func forecastOf(a *harness.Agent, job string) (r *structs.RequestForecast) {
	a.T.Helper()
	harness.Within(a.T, 20*time.Second, "a forecast of "+job, func(ctx context.Context) error {
		answer, _, err := a.API.Forecast(ctx, job, 0, nil)
		if err != nil {
			return err
		}
		if answer.Forecast == nil || len(answer.Forecast.Requests) != 1 || answer.NewerCount > 0 {
			return fmt.Errorf("there is none yet: %+v", answer)
		}
		r = answer.Forecast.Requests[0]
		return nil
	})
	return r
}

// TestForecast: on a node that is full, what waits starts when what goes before it ends by its time limit, as the queue, explanations, the status and
// the plan of a job and the API have it; before what has no limit nothing is known, and why.
func TestForecast(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, "", harness.PlainNodes("n", 1, 1000, 1000))
	a.Submit("fill", limited("fill", "1h"))
	began := a.WaitRunning("fill", 1, 20*time.Second)[0].CreateTime
	a.Submit("second", limited("second", "30m"))
	a.WaitMissing("second", 1)
	plan, code := a.CLI("job", "plan", "-no-color", a.JobFile("third", limited("third", "")))
	a.Submit("third", limited("third", ""))
	a.WaitMissing("third", 1)
	want := map[string]int64{"second": began + int64(time.Hour), "third": began + int64(90*time.Minute)}
	for job, at := range want { // each by itself
		r := forecastOf(a, job)
		for _, s := range []structs.StartForecast{r.Expected, r.Latest} {
			if off := time.Duration(s.All - at); off.Abs() > 10*time.Second || s.First != s.All || len(s.WaitsFor) != 1 {
				t.Errorf("%s starts %s from %s: %+v", job, off, time.Unix(0, at), s)
			}
		}
	}
	third := forecastOf(a, "third").Latest
	clock := time.Unix(0, third.All).Format("15:04") // which is there whatever the date
	if code != 1 || !strings.Contains(plan, "If it were registered now") || !strings.Contains(plan, clock) || !strings.Contains(plan, "second.g[0]") {
		t.Errorf("the plan does not state that third starts at %s: exit %d\n%s", clock, code, plan)
	}
	for _, args := range [][]string{{"job", "explain", "third"}, {"job", "status", "third"}} {
		if out, code := a.CLI(args...); code != 0 || !strings.Contains(out, "second.g[0] on n-0 ends, ") || !strings.Contains(out, clock) {
			t.Errorf("%v: exit %d\n%s", args, code, out)
		}
	}
	if f := a.QueueEntry("third").Forecast; f == nil || f.Latest != third.All || f.Expected != third.All || f.Index == 0 {
		t.Errorf("the queue has %+v of third", f)
	}
	a.Submit("last", limited("last", "1m"))
	a.WaitMissing("last", 1)
	if r := forecastOf(a, "last"); r.Latest.All != 0 || !strings.Contains(r.Latest.Unknown, "third.g[0] may hold their room") {
		t.Errorf("last: %+v", r.Latest)
	}
	if _, _, err := a.API.Forecast(t.Context(), "", 1000*time.Hour, nil); err == nil || !strings.Contains(err.Error(), "server.forecast.horizon") {
		t.Errorf("a horizon beyond the limit: %v", err)
	}
}
