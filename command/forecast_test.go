package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestForecastOfTheRest: of several instances that wait, a forecast states whose starts its two times are.
func TestForecastOfTheRest(t *testing.T) {
	start := structs.StartForecast{First: 3600e9, All: 7200e9}
	now := time.Unix(0, 0)
	f := func(missing int, want string) {
		t.Helper()
		r := &structs.RequestForecast{Missing: missing, Expected: start, Latest: start}
		if got := strings.Join(forecastLines(r, now), "\n"); got != "Expected start: "+want+", also at the latest" {
			t.Errorf("of %d: %s", missing, got)
		}
	}
	first, all := clockTime(3600e9, now), clockTime(7200e9, now)
	f(4, first+" to "+all+" (the first and the last of the 4 instances that wait)")
	start.First = start.All
	f(4, all)
}

// TestForecastOfParts: of a group of which a part is entitled, it is stated which part starts when.
func TestForecastOfParts(t *testing.T) {
	f := &structs.Forecast{Requests: []*structs.RequestForecast{{Group: "g", Entitled: true, Missing: 10}, {Group: "g", Missing: 35}}}
	var out strings.Builder
	printSingle(&printer{out: &out}, f, present)
	wants(t, out.String(), "Task Group \"g\", 10 entitled: Expected start", "Task Group \"g\", 35 others: Expected start")
	if a, b := forecastRow(f, f.Requests[0], present), forecastRow(f, f.Requests[1], present); a[0] != "g (entitled)" || b[0] != "g (others)" {
		t.Errorf("%q, %q", a[0], b[0])
	}
	f.Requests = f.Requests[:1]
	if a := forecastRow(f, f.Requests[0], present); a[0] != "g" {
		t.Errorf("of all: %q", a[0])
	}
}

// TestNewerThanTheForecast: of a job that came, or changed, after the last forecast it is stated when there is one that it is part of.
func TestNewerThanTheForecast(t *testing.T) {
	answer := &structs.ForecastAnswer{
		Forecast: &structs.Forecast{Index: 7, Time: ago(12 * time.Second), Next: []structs.ForecastRenewal{
			{Index: 8, End: present.Add(40 * time.Second).UnixNano()}, {End: present.Add(-time.Second).UnixNano(), Latest: present.Add(121 * time.Second).UnixNano()},
		}},
		Newer: []structs.RequestName{{Namespace: "default", JobID: "web", Group: "api"}}, NewerCount: 1,
	}
	for changed, in := range map[uint64]string{8: "in about 40 s", 9: "in about 3 min at most"} {
		var out strings.Builder
		e := newFake(t).on("GET /v1/forecast", answer).one(t)
		e.printer, e.now = printer{out: &out}, func() time.Time { return present }
		showForecast(t.Context(), e, structs.NamespacedID{Namespace: "default", ID: "web"}, changed)
		wants(t, out.String(), "forecast of index 7, as of 12s ago", "api                  not part of it yet", "What is not part of it yet is of a forecast that is there "+in+".\n")
	}
}

// TestWaitsSince: what waits of a job came to wait with its evaluations, where the job itself came before.
func TestWaitsSince(t *testing.T) {
	r := &jobReport{Job: &structs.Job{JobModifyIndex: 5}, Evaluations: []*structs.Evaluation{
		{Status: structs.EvalStatusComplete, CreateIndex: 9}, {Status: structs.EvalStatusBlocked, CreateIndex: 8}, {Status: structs.EvalStatusPending, CreateIndex: 4},
	}}
	if since := waitsSince(r); since != 8 {
		t.Errorf("since index %d", since)
	}
	r.Job.JobModifyIndex = 10
	if since := waitsSince(r); since != 10 {
		t.Errorf("since index %d", since)
	}
}
