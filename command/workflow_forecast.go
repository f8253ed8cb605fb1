package command

import (
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// runStart returns what a forecast states of the start of a run, as it states that of a group.
func runStart(f *structs.RunForecast) *structs.RequestForecast {
	start := func(s *structs.WorkflowStartForecast) structs.StartForecast {
		out := structs.StartForecast{First: s.Start, All: s.Start, WaitsFor: s.WaitsFor}
		if s.Start == 0 {
			out.Unknown = s.Unknown
		}
		return out
	}
	return &structs.RequestForecast{Namespace: f.Namespace, JobID: f.ID, Latest: start(&f.Latest), Expected: start(&f.Expected)}
}

// workflowWaitLines returns when a workflow starts that waits for its reservation, and what it waits for; nothing if it does not wait.
func workflowWaitLines(w *structs.WorkflowStatus, now time.Time) []string {
	switch {
	case w.Forecast != nil:
		lines := forecastLines(runStart(w.Forecast), now)
		lines[0] += " (" + forecastOfText(w.Forecast.Index, w.Forecast.Time, now) + ")"
		return lines
	case w.NoForecast != "":
		return []string{"When it is expected to start is not known: " + w.NoForecast}
	}
	return nil
}

// printPlanForecast prints when the stages of a plan would start and end.
func printPlanForecast(p *printer, plan *structs.WorkflowPlan, now time.Time) {
	f := plan.Forecast
	if f == nil {
		if plan.NoForecast != "" && !plan.Never && plan.Alive == 0 { // else it is stated beside it
			p.printf("\nWhen its stages would start is not known: %s\n", plan.NoForecast)
		}
		return
	}
	p.printf("\nIf it were run now (as of index %d):\n", f.Index)
	for _, line := range forecastLines(runStart(f), now) {
		p.printf("  %s\n", line)
	}
	if f.Expected.Start == 0 && f.Latest.Start == 0 {
		return
	}
	rows := [][]string{{"Stage", "Expected", "At the Latest"}}
	for i, s := range f.Latest.Stages {
		expected := notKnown
		if i < len(f.Expected.Stages) {
			expected = stageText(f.Expected.Stages[i], now)
		}
		rows = append(rows, []string{s.Name, expected, stageText(s, now)})
	}
	ui.Table(p.out, rows)
	var reasons []string
	for _, why := range []string{f.Expected.Unknown, f.Latest.Unknown} {
		if why != "" && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	if len(reasons) > 0 {
		text := "not known: " + strings.Join(reasons, "; ")
		if strings.HasPrefix(reasons[0], notKnown) { // it is the sentence itself
			text = strings.Join(reasons, "; ")
		}
		p.printf("%s\n", "N"+text[1:])
	}
}

// stageText returns when a stage starts and ends: "14:05:00 to 14:40:00".
func stageText(s structs.StageForecast, now time.Time) string {
	switch {
	case s.Start == 0:
		return notKnown
	case s.End == 0:
		return "from " + clockTime(s.Start, now)
	}
	start, end := clockTime(s.Start, now), clockTime(s.End, now)
	if start == end {
		return start + ", for " + durationText(time.Duration(s.End-s.Start))
	}
	return start + " to " + end
}
