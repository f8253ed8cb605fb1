package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/structs"
)

//go:embed whatif.html
var whatIfText string

var whatIfPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.Must(template.New("what-if").Parse(whatIfText)).Parse(styleText))
})

// whatIfView is what the page of a what-if shows.
type whatIfView struct {
	w       *structs.WhatIf
	Changes []string
	About   string
	Of      string   // what figures are parts of
	Ended   []string // why a future is not complete, or not exact
	Rows    [][]string
	Plots   []plotView
	Tables  []tableView
}

// WhatIfNoReservations is stated where nothing is reserved anew for those who wait.
const WhatIfNoReservations = "So many groups wait that none reserves room anew in either future: who needs much at once may start later than is stated."

// WhatIfOf states what the figures of use are parts of.
const WhatIfOf = "What is in use, or idle, is a part of all that the ready nodes have: nodes that are drained or take no new work count, and so do GPUs that are not healthy."

// WhatIfNotMade follows a change that was not made.
const WhatIfNotMade = ", not made: the future with the changes ended before"

// WhatIfEnded states that one of the futures (0: that without the changes) ended before it was complete, with times as at prints them.
func WhatIfEnded(future int, f *structs.WhatIfFuture, at func(int64) string) string {
	text := fmt.Sprintf("The future %s the changes is not complete: %s.", without[future], f.Ended)
	if f.EndedAt > 0 {
		text += fmt.Sprintf(" What comes after %s is not known, and no part of the figures.", at(f.EndedAt))
	}
	return text
}

// WhatIf writes the page of a what-if. The same what-if gives the same bytes.
func WhatIf(to io.Writer, w *structs.WhatIf) error {
	v := &whatIfView{w: w, Rows: WhatIfFigures(w), Of: WhatIfOf}
	for _, c := range w.Changes {
		text := fmt.Sprintf("%s, at %s", c.Text, stamp(c.Time))
		if c.NotMade {
			text += WhatIfNotMade
		}
		v.Changes = append(v.Changes, text)
	}
	lasting := "as long as finished runs took, or its time limit"
	if w.Latest {
		lasting = "all the time that it may"
	}
	v.About = fmt.Sprintf("State of index %d, from %s to %s; all that runs takes %s.", w.Index, stamp(w.Time), stamp(w.Until), lasting)
	if w.NoReservations {
		v.Ended = append(v.Ended, WhatIfNoReservations)
	}
	for i, f := range v.futures() {
		if f.Ended != "" {
			v.Ended = append(v.Ended, WhatIfEnded(i, f, stamp))
		}
	}
	v.plot("GPUs in use", "The part of all GPUs of the ready nodes that is used.", percent, 1, func(u *structs.WhatIfUsage) float64 { return u.GPU })
	v.plot("CPU in use", "The part of all CPU of the ready nodes that is used.", percent, 1, func(u *structs.WhatIfUsage) float64 { return u.CPU })
	v.plot("Instances that wait", "How many instances wait for a node.", number, 0, func(u *structs.WhatIfUsage) float64 { return u.Waiting })
	v.plot("Fragmentation", "The part of all GPUs of the ready nodes that is idle on nodes of which others are used.", percent, 0, func(u *structs.WhatIfUsage) float64 { return u.Fragmented })
	v.tables()
	return whatIfPage().Execute(to, v)
}

// stamp prints a time for people, the same everywhere.
func stamp(nanos int64) string {
	return time.Unix(0, nanos).UTC().Format("2006-01-02 15:04:05 UTC")
}

// plot adds a figure over time, of both futures.
func (v *whatIfView) plot(title, text string, tick func(float64) string, most float64, get func(u *structs.WhatIfUsage) float64) {
	if !v.uses(get) {
		return // nodes without GPUs
	}
	p := plot{title: title, xName: "time from the beginning", yName: title, xTick: hours, yTick: tick, yMost: most, xSteps: hourSteps}
	for i, f := range v.futures() {
		l := line{name: without[i], colour: i}
		for k := range f.Usage {
			l.x = append(l.x, float64(f.Usage[k].From-v.w.Time)/float64(time.Hour))
			l.y = append(l.y, get(&f.Usage[k]))
		}
		p.lines = append(p.lines, l)
	}
	v.Plots = append(v.Plots, plotView{Title: title, Text: text, SVG: svg(p.svg()), Legend: true})
}

// WhatIfFigures returns the figures of both futures: what, without the changes, with them.
func WhatIfFigures(w *structs.WhatIf) [][]string {
	var rows [][]string
	row := func(name string, get func(f *structs.WhatIfFuture) string) {
		rows = append(rows, []string{name, get(&w.Before), get(&w.After)})
	}
	row("GPUs in use, mean", func(f *structs.WhatIfFuture) string { return percent(f.Mean.GPU) })
	row("CPU in use, mean", func(f *structs.WhatIfFuture) string { return percent(f.Mean.CPU) })
	row("Memory in use, mean", func(f *structs.WhatIfFuture) string { return percent(f.Mean.Memory) })
	row("GPUs idle beside used ones", func(f *structs.WhatIfFuture) string { return percent(f.Mean.Fragmented) })
	row("Instances that wait, mean", func(f *structs.WhatIfFuture) string { return strconv.FormatFloat(f.Mean.Waiting, 'f', 1, 64) })
	row("Taken for others", func(f *structs.WhatIfFuture) string { return strconv.Itoa(len(f.Taken) + f.TakenMore) })
	row("Displaced", func(f *structs.WhatIfFuture) string { return strconv.Itoa(len(f.Displaced) + f.DisplacedMore) })
	return rows
}

// tables adds what is listed.
func (v *whatIfView) tables() {
	starts := tableView{Title: "Starts", Head: []string{"job", "group", "without", "with", ""}, Open: true}
	for _, g := range v.w.Groups {
		with := WhatIfStartText(g.After, &v.w.After, stamp)
		if g.After != nil && g.After.Why != "" {
			with += ": " + g.After.Why
		}
		starts.Rows = append(starts.Rows, []string{g.Namespace + "/" + g.JobID, g.Group, WhatIfStartText(g.Before, &v.w.Before, stamp), with, WhatIfVerdict(g)})
	}
	taken := tableView{Title: "Taken with the changes", Head: []string{"instance", "node", "when", "how", "for what", "runs again"}, Open: true}
	for _, t := range v.w.After.Taken {
		how := "evicted"
		if t.Suspended {
			how = "suspended"
		}
		taken.Rows = append(taken.Rows, []string{t.Namespace + "/" + t.Name, t.NodeName, stamp(t.Time), how, t.For, WhatIfTime(t.Back, &v.w.After, stamp)})
	}
	displaced := tableView{Title: "Displaced with the changes", Head: []string{"instance", "node", "when", "node is", "runs again"}, Open: true}
	for _, t := range v.w.After.Displaced {
		displaced.Rows = append(displaced.Rows, []string{t.Namespace + "/" + t.Name, t.NodeName, stamp(t.Time), t.For, WhatIfTime(t.Back, &v.w.After, stamp)})
	}
	waits := tableView{Title: "Waits", Head: []string{"of", "", "instances", "started", "mean", "p95", "max"}, Open: true}
	for i, f := range v.futures() {
		which := without[i]
		for _, kind := range []struct {
			name string
			list []structs.WhatIfWaits
		}{{"namespace", f.Namespaces}, {"project", f.Projects}} {
			for _, x := range kind.list {
				waits.Rows = append(waits.Rows, []string{kind.name + " " + x.Of, which, strconv.Itoa(x.Waits), strconv.Itoa(x.Started), span(x.Mean.Seconds()), span(x.P95.Seconds()), span(x.Max.Seconds())})
			}
		}
	}
	v.Tables = append(v.Tables, starts, v.workflows(), taken, displaced, v.shortfalls(), waits)
	v.Tables = slices.DeleteFunc(v.Tables, func(t tableView) bool { return len(t.Rows) == 0 })
}

// without names both futures.
var without = [2]string{"without", "with"}

// futures returns both.
func (v *whatIfView) futures() []*structs.WhatIfFuture {
	return []*structs.WhatIfFuture{&v.w.Before, &v.w.After}
}

// uses reports whether a figure is anything but 0 at any time.
func (v *whatIfView) uses(get func(u *structs.WhatIfUsage) float64) bool {
	return slices.ContainsFunc(v.futures(), func(f *structs.WhatIfFuture) bool {
		return slices.ContainsFunc(f.Usage, func(u structs.WhatIfUsage) bool { return get(&u) != 0 })
	})
}

// workflows lists when the stages of workflows start and end.
func (v *whatIfView) workflows() tableView {
	t := tableView{Title: "Workflows", Head: []string{"workflow", "stage", "", "starts", "ends"}, Open: true}
	for i, f := range v.futures() {
		for _, w := range f.Workflows {
			for _, s := range w.Stages {
				t.Rows = append(t.Rows, []string{w.Namespace + "/" + w.ID, s.Name, without[i], WhatIfWorkflowTime(s.Start, &w, f, stamp), WhatIfWorkflowTime(s.End, &w, f, stamp)})
			}
		}
	}
	return t
}

// shortfalls lists what owners of claims lack at worst.
func (v *whatIfView) shortfalls() tableView {
	t := tableView{Title: "Shortfalls of what is owned, at worst", Head: []string{"owner", "of", "", "cells that there are not", "cells that are not given yet", "instances that wait", "since"}, Open: true}
	for i, f := range v.futures() {
		for _, s := range f.Shortfalls {
			t.Rows = append(t.Rows, []string{s.Owner, WhatIfLacks(&s), without[i], strconv.Itoa(s.Cells), strconv.Itoa(s.Waiting), strconv.Itoa(s.Instances), stamp(s.Time)})
		}
	}
	return t
}

// WhatIfLacks prints what an owner lacks some of.
func WhatIfLacks(s *structs.WhatIfShortfall) string {
	return cmp.Or(strings.TrimSpace(s.Kind+" "+s.Level), "all that is owned")
}

// WhatIfStartText prints when the instances of a group start in a future, with times as at prints them.
func WhatIfStartText(s *structs.WhatIfStart, f *structs.WhatIfFuture, at func(int64) string) string {
	switch {
	case s == nil:
		return "-"
	case s.All == 0 && s.First > 0:
		return "some " + WhatIfTime(0, f, at)
	}
	return WhatIfTime(s.All, f, at)
}

// WhatIfTime prints when something happens in a future, as at prints times. What does not (0) does so never, unless the future ended before it was complete.
func WhatIfTime(nanos int64, f *structs.WhatIfFuture, at func(int64) string) string {
	switch {
	case nanos > 0:
		return at(nanos)
	case f.Ended != "":
		return "not known"
	}
	return "never"
}

// WhatIfWorkflowTime is WhatIfTime for what happens in a workflow: once that has ended, nothing does.
func WhatIfWorkflowTime(nanos int64, w *structs.WhatIfWorkflow, f *structs.WhatIfFuture, at func(int64) string) string {
	if w.Ended() {
		f = &structs.WhatIfFuture{}
	}
	return WhatIfTime(nanos, f, at)
}

// WhatIfVerdict prints what the changes do to the start of a group.
func WhatIfVerdict(g *structs.WhatIfGroup) string {
	switch {
	case g.Verdict == structs.WhatIfUnknown:
		return "not known"
	case g.AtLeast:
		return "at least " + span(g.Shift.Abs().Seconds()) + " " + g.Verdict
	case g.Shift != 0:
		return span(g.Shift.Abs().Seconds()) + " " + g.Verdict
	}
	return g.Verdict
}
