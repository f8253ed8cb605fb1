package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// forecastFigures are of one job that started an hour later than its only forecast stated at the latest.
func forecastFigures() *trace.ForecastFigures {
	a := trace.ForecastAccuracy{
		Stated: 4, LatestKnown: 4, Exceeded: 1, ExceededP50: 3600, ExceededP90: 3600, Causes: []trace.CauseCount{{Cause: trace.CauseCame, Count: 1, Direct: 1}},
	}
	for i, name := range trace.Estimators() {
		e := trace.Errors{N: 4, P50: 60 * float64(i), P90: 7200, Bias: -30, Late: 1}
		common := e // what all knew is less than what each knows
		common.N, common.P50 = 3, e.P50*1.5
		a.Errors = append(a.Errors, trace.EstimateErrors{Of: name, Errors: e, Common: common, ByLead: make([]trace.Errors, len(trace.LeadBounds)+1), Quantiles: []float64{0, 60, 7200}})
	}
	return &trace.ForecastFigures{
		Every: 3600, Horizon: 86400, Forecasts: 2, Waiting: 1.5, Jobs: 10, Waited: 4, Estimators: trace.Estimators(), First: a, All: a,
		Late: []trace.LateStart{{Job: "a<b>/j-1", Forecast: 3600, Latest: 7200, By: 3600, Cause: trace.CauseCame, Who: []string{"x/j-2.work[0]"}}},
		Days: []trace.ForecastDay{{From: 0, Waiting: 1.5, Stated: 4, Exceeded: 1, P50: []float64{1, 2, 3, 4}}},
	}
}

// The report has forecasts as a table, as figures and as plots.
func TestForecasts(t *testing.T) {
	f := figures("binpack", 1, 0.5)
	f.Forecasts = forecastFigures()
	r := New([]*trace.Figures{f})
	if rows := r.ForecastRows(); len(rows) != 5 || strings.Join(rows[2], "|") != "binpack|1|expected|100 %|3|90 s|2 h|−30 s|33.3 %|100 %|3|90 s|2 h|−30 s|33.3 %" {
		t.Errorf("%q", rows)
	}
	var page, lines bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	selfContained(t, page.String())
	for _, want := range []string{
		"exceeded: 1 (25 %), by 60 min in the median and 60 min at p90; backfill by a job that came after the forecast: 1 (1 directly).",
		"x/j-2.work[0]", "a&lt;b&gt;/j-1", `aria-label="Error of all forecasts"`, "came, backfill",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	late := forecastFigures()
	for i := range 30 {
		late.Days = append(late.Days, trace.ForecastDay{From: float64(i+1) * 86400, P50: []float64{1, 2, 3, 4}})
	}
	late.Days[0].Stated, late.Days[20].Stated, late.Days[24].Stated = 0, 1, 1
	if over := forecastDays(late); strings.Contains(over, ">0 h<") || !strings.Contains(over, ">20 d<") || !strings.Contains(over, ">24 d<") {
		t.Errorf("the errors of the days from the 20th on are drawn as %s", over)
	}
	if err := r.CSV(&lines); err != nil || !strings.Contains(lines.String(), "binpack,1,forecast causes,first,backfill by a job that came after the forecast,1\n") {
		t.Errorf("%v: %s", err, lines.String())
	}
	if r := New([]*trace.Figures{figures("binpack", 1, 0.5)}); r.ForecastRows() != nil {
		t.Error("there are rows without forecasts")
	}
}
