package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// notKnown stands for a start that no forecast states.
const notKnown = "not known"

// clockTime prints a time (Unix nanoseconds) in the local zone, with the date if that is not today's; "not known" for 0.
func clockTime(nanos int64, now time.Time) string {
	if nanos == 0 {
		return notKnown
	}
	at := time.Unix(0, nanos).Local()
	if y, m, d := now.Local().Date(); at.Year() == y && at.Month() == m && at.Day() == d {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// startText returns when the instances of a group start: "14:05:00", or "14:05:00 to 14:40:00" if they do not start together.
func startText(s *structs.StartForecast, now time.Time) string {
	switch {
	case s.All == 0 && s.First > 0:
		return fmt.Sprintf("%s the first, %s all", clockTime(s.First, now), notKnown)
	case s.First > 0 && s.First < s.All && clockTime(s.First, now) != clockTime(s.All, now):
		return clockTime(s.First, now) + " to " + clockTime(s.All, now)
	}
	return clockTime(s.All, now)
}

// forecastLines returns what a forecast states of a group, in sentences: when it starts, and what it waits for, in order.
func forecastLines(r *structs.RequestForecast, now time.Time) (lines []string) {
	expected := startText(&r.Expected, now)
	text, why := "Expected start: "+expected, r.Expected.Unknown
	if r.Missing > 1 && r.Expected.All > 0 && expected != clockTime(r.Expected.All, now) {
		text += fmt.Sprintf(" (the first and the last of the %d instances that wait)", r.Missing)
	}
	switch {
	case r.Expected.First == 0 && r.Latest.First == 0 && why != "":
		text, why = text+": "+why, ""
	case r.Latest.First == r.Expected.First && r.Latest.All == r.Expected.All && r.Latest.All > 0:
		text += ", also at the latest"
	case r.Latest.First > 0:
		text += ", at the latest " + startText(&r.Latest, now)
	}
	lines = append(lines, text)
	if why != "" {
		lines = append(lines, "When it is expected to start is not known: "+why)
	}
	if why := r.Latest.Unknown; why != "" && why != r.Expected.Unknown {
		lines = append(lines, "When it starts at the latest is not known: "+why)
	}
	return append(lines, waitsForLines(r, now)...)
}

// waitsForLines returns what a group waits for, in order: the ends of which it gets the room, as they are expected, and as they are at the latest where
// that is other ends.
func waitsForLines(r *structs.RequestForecast, now time.Time) (lines []string) {
	latest := map[string]int64{}
	for _, end := range r.Latest.WaitsFor {
		latest[end.Namespace+"/"+end.Name] = end.Time
	}
	for _, end := range r.Expected.WaitsFor {
		key := end.Namespace + "/" + end.Name
		line := endText(&end, r.Namespace, now)
		if at, found := latest[key]; found && at != end.Time {
			line += ", at the latest " + clockTime(at, now)
		}
		delete(latest, key)
		lines = append(lines, "  when "+line)
	}
	for _, end := range r.Latest.WaitsFor {
		if _, left := latest[end.Namespace+"/"+end.Name]; left {
			lines = append(lines, "  at the latest when "+endText(&end, r.Namespace, now))
		}
	}
	return lines
}

// endText returns "fill.g[3] on node-1 ends, 14:05:00".
func endText(end *structs.EndForecast, namespace string, now time.Time) string {
	name := end.Name
	if end.Namespace != namespace {
		name += " of namespace " + end.Namespace
	}
	if end.NodeName != "" {
		name += " on " + end.NodeName
	}
	return name + " ends, " + clockTime(end.Time, now)
}

// forecastOfText returns what a forecast is of, and how old that is: "forecast of index 123, as of 12s ago".
func forecastOfText(index uint64, made int64, now time.Time) string {
	text := fmt.Sprintf("forecast of index %d", index)
	if made == 0 { // an older server does not state it
		return text
	}
	return text + ", as of " + ui.Short(now.Sub(time.Unix(0, made))) + " ago"
}

// showForecast prints when the groups of a job start that wait, as the last forecast has it; nothing if the server has none to answer with. changed is an
// index from which on a forecast has what waits of it.
func showForecast(ctx context.Context, e *env, job structs.NamespacedID, changed uint64) {
	answer, _, err := e.client.Forecast(ctx, job.ID, 0, &api.Query{Namespace: job.Namespace})
	if err != nil { // what was requested has been answered
		return
	}
	f := answer.Forecast
	if f == nil || len(f.Requests)+answer.NewerCount == 0 {
		return
	}
	newer := map[string]bool{}
	for _, g := range answer.Newer {
		newer[g.Group] = true
	}
	e.printf("\n%s (%s)\n", e.style.Bold("Start of what waits"), forecastOfText(f.Index, f.Time, e.now()))
	rows := [][]string{{"Task Group", "Waiting", "Expected", "At the Latest", "Waits For"}}
	for _, r := range f.Requests {
		if !newer[r.Group] {
			rows = append(rows, forecastRow(f, r, e.now()))
		}
	}
	for _, g := range answer.Newer {
		rows = append(rows, []string{g.Group, "", "not part of it yet", "", ""})
	}
	ui.Table(e.out, rows)
	if in := structs.RenewalText(f.Next, changed, e.now()); in != "" && answer.NewerCount > 0 {
		e.printf("What is not part of it yet is of a forecast that is there %s.\n", in)
	}
}

// forecastRow is the row of a group in a table of starts.
func forecastRow(f *structs.Forecast, r *structs.RequestForecast, now time.Time) []string {
	waits := "<none>"
	switch ends := r.Expected.WaitsFor; {
	case len(ends) > 0:
		last := ends[len(ends)-1]
		if waits = endText(&last, r.Namespace, now); len(ends) > 1 {
			waits = fmt.Sprintf("%s, after %s", waits, plural(len(ends)-1, "other end"))
		}
	case r.Latest.Unknown != "":
		waits = r.Latest.Unknown
	}
	return []string{r.Group + partText(f, r, " (", ")"), fmt.Sprint(r.Missing), startText(&r.Expected, now), startText(&r.Latest, now), waits}
}

// partText states between two texts which part of its group a forecast is of, as the queue has it; nothing if it is of all of it that waits.
func partText(f *structs.Forecast, r *structs.RequestForecast, before, after string) string {
	switch {
	case len(f.Lines(r.Namespace, r.JobID, r.Group)) < 2:
		return ""
	case r.Entitled:
		return before + "entitled" + after
	}
	return before + "others" + after
}

// printSingle prints a forecast that was made of one job alone.
func printSingle(p *printer, f *structs.Forecast, now time.Time) {
	for _, r := range f.Requests {
		for i, line := range forecastLines(r, now) {
			if i == 0 {
				line = fmt.Sprintf("Task Group %q%s: %s", r.Group, partText(f, r, fmt.Sprintf(", %d ", r.Missing), ""), line)
			}
			p.printf("  %s\n", line)
		}
	}
}

// projectWaits bounds the groups that are listed of what waits of a project.
const projectWaits = 20

// showProjectQueue prints when what waits of a project's jobs starts: the first of each node pool's queue.
func showProjectQueue(ctx context.Context, e *env, project string) {
	q := e.query()
	q.Namespace, q.Filter, q.PerPage = structs.AllNamespaces, fmt.Sprintf("Project == %q", project), projectWaits
	entries, meta, err := e.client.Queue(ctx, "", q)
	entries = slices.DeleteFunc(entries, func(x *structs.QueueEntry) bool { return x.Project != project }) // an older server does not know it
	if err != nil || len(entries) == 0 {                                                                   // what was requested has been answered
		return
	}
	rows := [][]string{{"Waiting Job", "Namespace", "Group", "Step", "Missing", "Expected", "Latest"}}
	for _, x := range entries {
		expected, latest := forecastCells(x.Forecast, e.now())
		rows = append(rows, []string{x.JobID, x.Namespace, x.Group, ui.OrNone(x.Step), fmt.Sprintf("%d of %d", x.Missing, x.Wanted), expected, latest})
	}
	e.printf("\n")
	ui.Table(e.out, rows)
	if meta.NextToken != "" {
		e.printf("and more: `nomadish queue -namespace '*' -filter %s`\n", shellWord(q.Filter))
	}
	printForecastOf(ctx, e, entries)
}
