package report

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// hasForecasts reports whether forecasts were made during a run.
func hasForecasts(f *trace.Figures) bool { return f.Forecasts != nil }

// estimateNames are what is compared, as people read it.
var estimateNames = map[string]string{
	trace.EstimateLatest: "latest", trace.EstimateExpected: "expected", trace.EstimateWholeNodes: "keeps whole nodes", trace.EstimateAlone: "by what runs alone",
}

// ForecastRows are the table of forecasts with its head: a line for each run and estimate; nil: there were none.
func (r *Report) ForecastRows() [][]string {
	if !hasForecasts(r.Runs[0]) {
		return nil
	}
	rows := [][]string{{
		"Forecasts", "seed", "estimate", "first: known", "of all", "error, median", "p90", "bias", "started later",
		"all: known", "of all", "error, median", "p90", "bias", "started later",
	}}
	for _, f := range r.Runs {
		for i := range f.Forecasts.First.Errors {
			row := []string{f.Policy, fmt.Sprint(f.Seed), estimateNames[f.Forecasts.First.Errors[i].Of]}
			for _, a := range []*trace.ForecastAccuracy{&f.Forecasts.First, &f.Forecasts.All} {
				known, e := a.Errors[i].N, &a.Errors[i].Common
				row = append(row, percent(part(known, a.Stated)), count(float64(e.N)), span(e.P50), span(e.P90), signed(e.Bias), percent(part(e.Late, e.N)))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// signed prints seconds with their sign.
func signed(s float64) string {
	switch {
	case s < 0:
		return "−" + span(-s)
	case s > 0:
		return "+" + span(s)
	}
	return span(s)
}

// ForecastMeanings explain the table of forecasts.
func (r *Report) ForecastMeanings() (lines []string) {
	f := r.Runs[0].Forecasts
	lines = []string{
		fmt.Sprintf("A forecast every %s of virtual time, %s far, while the parts of a leader replay the trace (mean wait there: %s). first: the first forecast of "+
			"each job that waited at one, all: every forecast of each.", span(f.Every), span(f.Horizon), span(f.WaitMean)),
		"error: from the start of all instances in truth, without its sign; bias: the median with it, + where the estimate is later; started later: by a second or more. " +
			"All are of the same starts, forecast at the same moments: of those that all estimates knew, whose number is the column of all; known: how many of the forecasts an " +
			"estimate knew by itself.",
		"keeps whole nodes: a plan in the order of the queue which keeps the nodes of who waits whole, as Slurm's backfill does; by what runs alone: when the room " +
			"comes free by time limits, if nobody takes it before, as explanations stated it before there were forecasts. Both, and latest, go by time limits.",
	}
	for _, f := range r.Runs {
		for _, a := range []struct {
			name string
			*trace.ForecastAccuracy
		}{{"first", &f.Forecasts.First}, {"all", &f.Forecasts.All}} {
			text := fmt.Sprintf("%s, seed %d, %s: %s forecasts, of which %s knew the latest start; exceeded: %s", f.Policy, f.Seed, a.name, count(float64(a.Stated)),
				count(float64(a.LatestKnown)), count(float64(a.Exceeded)))
			if a.Exceeded > 0 {
				text += fmt.Sprintf(" (%s), by %s in the median and %s at p90", percent(part(a.Exceeded, a.LatestKnown)), span(a.ExceededP50), span(a.ExceededP90))
			}
			for _, c := range a.Causes {
				text += fmt.Sprintf("; %s: %s (%s directly)", c.Cause, count(float64(c.Count)), count(float64(c.Direct)))
			}
			lines = append(lines, text+".")
		}
	}
	return lines
}

// forecastPlots show how right forecasts were, of the first run.
func (v *view) forecastPlots() {
	f := v.Runs[0].Forecasts
	if f == nil {
		return
	}
	keys := make([]legend, 0, len(f.Estimators))
	for i, name := range f.Estimators {
		keys = append(keys, legend{class(i), estimateNames[name]})
	}
	v.Plots = append(v.Plots,
		plotView{
			Title: "Error of first forecasts", Text: "The part of jobs whose start was estimated to within so much, by the first forecast of each; of the jobs that every estimate knew.",
			SVG: svg(quantilePlot("Error of first forecasts", &f.First)), Keys: keys,
		},
		plotView{
			Title: "Error of all forecasts", Text: "The same of every forecast of each job.",
			SVG: svg(quantilePlot("Error of all forecasts", &f.All)), Keys: keys,
		},
		plotView{
			Title: "Error over time", Text: "The median of a day's forecasts, of the starts that every estimate knew.",
			SVG: svg(forecastDays(f)), Keys: keys,
		},
		plotView{
			Title: "Later than at the latest, by cause", Text: "What had the room of jobs that started later than forecast at the latest, of all forecasts whose latest start was known.",
			SVG: svg(causeBars(f)),
		})
	v.leadTable(f)
	v.lateTable(f)
}

// quantilePlot draws the quantiles of errors, a line an estimate.
func quantilePlot(title string, a *trace.ForecastAccuracy) string {
	p := plot{title: title, xName: "of the starts", yName: "error, hours", xTick: percent, yTick: number}
	for i := range a.Errors {
		l := line{name: estimateNames[a.Errors[i].Of], colour: i, x: []float64{0}, y: []float64{0}}
		for k, q := range a.Errors[i].Quantiles {
			l.x, l.y = append(l.x, float64(k+1)*0.05), append(l.y, q/3600)
		}
		p.lines = append(p.lines, l)
	}
	return p.svg()
}

// forecastDays draws the median error of each day, a line an estimate.
func forecastDays(f *trace.ForecastFigures) string {
	p := plot{title: "Error over time", xName: "virtual time", yName: "median error, hours", xTick: hours, xSteps: hourSteps, yTick: number}
	if i := slices.IndexFunc(f.Days, func(d trace.ForecastDay) bool { return d.Stated > 0 }); i >= 0 {
		p.xLeast = f.Days[i].From / 3600 // nobody may have waited for weeks before
	}
	for i, name := range f.Estimators {
		l := line{name: estimateNames[name], colour: i}
		for _, d := range f.Days {
			if d.Stated == 0 {
				continue
			}
			l.x, l.y = append(l.x, d.From/3600+12), append(l.y, d.P50[i]/3600)
		}
		p.lines = append(p.lines, l)
	}
	return p.svg()
}

// causeBars draws how often which cause was that of a late start.
func causeBars(f *trace.ForecastFigures) string {
	var list []bar
	for i, a := range []*trace.ForecastAccuracy{&f.First, &f.All} {
		which := []string{"first", "all"}[i]
		if len(a.Causes) == 0 {
			list = append(list, bar{name: which + ": none", note: "0", gap: i > 0})
		}
		for k, c := range a.Causes {
			at := slices.Index(trace.Causes(), c.Cause)
			parts := make([]float64, len(trace.Causes()))
			parts[at] = part(c.Count, a.Exceeded)
			list = append(list, bar{
				name: which + ": " + shortCauses[c.Cause], parts: parts, gap: i > 0 && k == 0,
				note: fmt.Sprintf("%s, %s of known", count(float64(c.Count)), percent(part(c.Count, a.LatestKnown))),
			})
		}
	}
	return bars("Later than at the latest, by cause", trace.Causes(), list)
}

// shortCauses are causes as a bar has room for them.
var shortCauses = map[string]string{
	trace.CauseArrived: "came, ranks higher", trace.CauseCame: "came, backfill", trace.CausePassed: "backfill", trace.CauseOvertaken: "ranked higher later",
	trace.CauseReserved: "reserved", trace.CausePassedElsewhere: "backfill elsewhere", trace.CauseElsewhere: "higher, elsewhere", trace.CauseDelayed: "late itself", trace.CauseUnknown: "not known",
}

// leadTable lists errors by how long it still was until the start.
func (v *view) leadTable(f *trace.ForecastFigures) {
	t := tableView{
		Title: "Errors by the time until the start, of those that all estimates knew",
		Head:  []string{"until the start", "estimate", "starts", "median", "p90", "bias", "started later"},
	}
	for b := range len(trace.LeadBounds) + 1 {
		name := "longer"
		if b < len(trace.LeadBounds) {
			name = "up to " + span(trace.LeadBounds[b])
		}
		for i := range f.All.Errors {
			e := f.All.Errors[i].ByLead[b]
			t.Rows = append(t.Rows, []string{
				name, estimateNames[f.All.Errors[i].Of], count(float64(e.N)), span(e.P50), span(e.P90), signed(e.Bias), percent(part(e.Late, e.N)),
			})
		}
	}
	v.Tables = append(v.Tables, t)
}

// mostLate bounds the late starts on the page; figures.json has more.
const mostLate = 200

// lateTable lists who started later than at the latest.
func (v *view) lateTable(f *trace.ForecastFigures) {
	t := tableView{
		Title: fmt.Sprintf("Later than the first forecast stated at the latest (%d of %s)", min(mostLate, len(f.Late)), count(float64(f.First.Exceeded))),
		Head:  []string{"job", "forecast after", "latest start after", "later by", "cause", "who has the room"},
	}
	for i := range f.Late[:min(mostLate, len(f.Late))] {
		l := &f.Late[i]
		who := ""
		for _, w := range l.Who {
			who += w + "; "
		}
		t.Rows = append(t.Rows, []string{l.Job, span(l.Forecast), span(l.Latest), span(l.By), l.Cause, who})
	}
	v.Tables = append(v.Tables, t)
}

// forecasts writes how right forecasts were.
func (c *lines) forecasts(f *trace.Figures) {
	x := f.Forecasts
	if x == nil {
		return
	}
	for _, n := range []struct {
		name  string
		value float64
	}{
		{"every", x.Every}, {"horizon", x.Horizon}, {"forecasts", float64(x.Forecasts)}, {"waiting", x.Waiting}, {"jobs", float64(x.Jobs)},
		{"waited", float64(x.Waited)}, {"wait mean", x.WaitMean},
	} {
		c.put("forecasts", "", n.name, n.value)
	}
	for _, a := range []struct {
		of string
		*trace.ForecastAccuracy
	}{{"first", &x.First}, {"all", &x.All}} {
		for _, n := range []struct {
			name  string
			value float64
		}{
			{"stated", float64(a.Stated)}, {"open", float64(a.Open)}, {"latest known", float64(a.LatestKnown)}, {"exceeded", float64(a.Exceeded)},
			{"exceeded p50", a.ExceededP50}, {"exceeded p90", a.ExceededP90},
		} {
			c.put("forecasts", a.of, n.name, n.value)
		}
		for _, cause := range a.Causes {
			c.put("forecast causes", a.of, cause.Cause, float64(cause.Count))
		}
		for i := range a.Errors {
			e := &a.Errors[i]
			c.errors("forecast errors", a.of+" "+e.Of, &e.Errors)
			c.errors("forecast errors of those that all knew", a.of+" "+e.Of, &e.Common)
			for b := range e.ByLead {
				c.errors("forecast errors by lead", fmt.Sprintf("%s %s %d", a.of, e.Of, b), &e.ByLead[b])
			}
		}
	}
}

func (c *lines) errors(table, of string, e *trace.Errors) {
	c.put(table, of, "n", float64(e.N))
	c.put(table, of, "p50", e.P50)
	c.put(table, of, "p90", e.P90)
	c.put(table, of, "bias", e.Bias)
	c.put(table, of, "late", float64(e.Late))
}
