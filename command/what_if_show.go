package command

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/command/report"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// Bounds of what a what-if lists unless -all is set.
const (
	shownGroups = 20
	shownTaken  = 10
)

// whatIfPrinter prints a what-if for people.
type whatIfPrinter struct {
	*printer
	w   *structs.WhatIf
	all bool
}

func (p *whatIfPrinter) print() {
	w := p.w
	p.printf("%s\n", p.style.Bold("Changes"))
	for _, c := range w.Changes {
		at := ""
		if c.Time > w.Time {
			at = " at " + p.stamp(c.Time)
		}
		if c.NotMade {
			at += report.WhatIfNotMade
		}
		p.printf("  %s%s\n", cmp.Or(c.Text, "change"), at)
		if c.Warnings != "" {
			p.printf("    %s\n", ui.Indented(c.Warnings))
		}
	}
	lasting := "as long as finished runs took, or else its time limit"
	if w.Latest {
		lasting = "all the time that it may"
	}
	p.printf("\nFrom %s to %s, state of index %d; all that runs takes %s.\n", p.stamp(w.Time), p.stamp(w.Until), w.Index, lasting)
	if w.NoReservations {
		p.printf("%s\n", report.WhatIfNoReservations)
	}
	for i, f := range []*structs.WhatIfFuture{&w.Before, &w.After} {
		if f.Ended != "" {
			p.printf("%s\n", report.WhatIfEnded(i, f, p.stamp))
		}
	}
	p.starts()
	p.taken()
	p.figures()
	p.workflows()
	p.shortfalls()
}

// stamp prints a time.
func (p *whatIfPrinter) stamp(nanos int64) string {
	t, now := time.Unix(0, nanos).Local(), time.Unix(0, p.w.Time).Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// starts lists the groups whose start changes, those first whose start changes most.
func (p *whatIfPrinter) starts() {
	if len(p.w.Groups) == 0 {
		text := "No instance waits, neither without the changes nor with them."
		for _, f := range []*structs.WhatIfFuture{&p.w.Before, &p.w.After} {
			if len(f.Taken)+len(f.Displaced) > 0 {
				text = "No instance waits but those that leave their nodes."
			}
		}
		p.printf("\n%s\n", text)
		return
	}
	counts := map[string]int{}
	var list []*structs.WhatIfGroup
	for _, g := range p.w.Groups {
		counts[g.Verdict]++
		if g.Verdict != structs.WhatIfSame || p.all {
			list = append(list, g)
		}
	}
	p.printf("\n%s", p.style.Bold("Starts"))
	for _, v := range []string{
		structs.WhatIfEarlier, structs.WhatIfLater, structs.WhatIfNever, structs.WhatIfStarts, structs.WhatIfNew, structs.WhatIfGone, structs.WhatIfSame, structs.WhatIfUnknown,
	} {
		if counts[v] > 0 {
			p.printf("  %s %d", report.WhatIfVerdict(&structs.WhatIfGroup{Verdict: v}), counts[v])
		}
	}
	p.printf("\n")
	if len(list) == 0 {
		return
	}
	if !p.all {
		slices.SortStableFunc(list, func(a, b *structs.WhatIfGroup) int { return cmp.Compare(changed(b), changed(a)) })
	}
	rows := [][]string{{"Job", "Group", "Instances", "Without", "With", "Change"}}
	more := 0
	if !p.all && len(list) > shownGroups {
		list, more = list[:shownGroups], len(list)-shownGroups
	}
	for _, g := range list {
		n := 0
		for _, s := range []*structs.WhatIfStart{g.Before, g.After} {
			if s != nil {
				n = s.Waits
			}
		}
		rows = append(rows, []string{
			jobOf(g.Namespace, g.JobID), g.Group, strconv.Itoa(n), report.WhatIfStartText(g.Before, &p.w.Before, p.stamp), report.WhatIfStartText(g.After, &p.w.After, p.stamp), report.WhatIfVerdict(g),
		})
	}
	ui.Table(p.out, rows)
	if more > 0 {
		p.printf("%d more; -all lists them.\n", more)
	}
	for _, g := range list {
		if s := g.After; s != nil && s.Why != "" {
			p.printf("%s, group %q, with the changes: %s\n", jobOf(g.Namespace, g.JobID), g.Group, s.Why)
		}
	}
}

// jobOf names a job, with its namespace where that is not the default one.
func jobOf(namespace, id string) string {
	if namespace == structs.DefaultNamespace {
		return id
	}
	return namespace + "/" + id
}

// changed is how much a start changes, to sort by: what starts in one future only first, and of what nothing is known last.
func changed(g *structs.WhatIfGroup) time.Duration {
	if g.Verdict == structs.WhatIfUnknown {
		return 0
	}
	if g.Shift == 0 && g.Verdict != structs.WhatIfSame {
		return math.MaxInt64
	}
	return g.Shift.Abs()
}

// taken lists the instances that leave their nodes with the changes: for others, and as their nodes are lost or drained.
func (p *whatIfPrinter) taken() {
	before, after := &p.w.Before, &p.w.After
	departures(p, "Taken for others", after.Taken, after.TakenMore, len(before.Taken)+before.TakenMore, []string{"How", "For"}, func(t *structs.WhatIfTaken) []string {
		how := "evicted"
		if t.Suspended {
			how = "suspended"
		}
		return []string{how, t.For}
	})
	departures(p, "Displaced", after.Displaced, after.DisplacedMore, len(before.Displaced)+before.DisplacedMore, []string{"Node Is"}, func(t *structs.WhatIfTaken) []string {
		return []string{t.For}
	})
}

// departures lists some of them, of which more are not in the list.
func departures(p *whatIfPrinter, title string, list []structs.WhatIfTaken, more, without int, head []string, why func(*structs.WhatIfTaken) []string) {
	if len(list) == 0 {
		return
	}
	p.printf("\n%s\n", p.style.Bold(fmt.Sprintf("%s with the changes: %d (without: %d)", title, len(list)+more, without)))
	rows := [][]string{slices.Concat([]string{"Instance", "Node", "When"}, head, []string{"Runs again"})}
	if !p.all {
		more += max(0, len(list)-shownTaken)
		list = list[:min(len(list), shownTaken)]
	}
	for i := range list {
		t := &list[i]
		rows = append(rows, slices.Concat([]string{jobOf(t.Namespace, t.Name), t.NodeName, p.stamp(t.Time)}, why(t), []string{report.WhatIfTime(t.Back, &p.w.After, p.stamp)}))
	}
	ui.Table(p.out, rows)
	if more > 0 {
		p.printf("%d more; -all lists up to 1,000.\n", more)
	}
}

func (p *whatIfPrinter) figures() {
	p.printf("\n")
	rows := append([][]string{{"Figure", "Without", "With"}}, report.WhatIfFigures(p.w)...)
	for _, of := range []struct {
		noun          string
		before, after []structs.WhatIfWaits
	}{{"namespace", p.w.Before.Namespaces, p.w.After.Namespaces}, {"project", p.w.Before.Projects, p.w.After.Projects}} {
		for _, name := range namesOf(of.before, of.after) {
			rows = append(rows, []string{"Wait of " + of.noun + " " + name + ", mean (max)", waitText(of.before, name, &p.w.Before), waitText(of.after, name, &p.w.After)})
		}
	}
	ui.Table(p.out, rows)
	p.printf("%s\n", report.WhatIfOf)
}

func namesOf(lists ...[]structs.WhatIfWaits) (names []string) {
	for _, list := range lists {
		for _, w := range list {
			names = append(names, w.Of)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func waitText(list []structs.WhatIfWaits, name string, f *structs.WhatIfFuture) string {
	at := slices.IndexFunc(list, func(w structs.WhatIfWaits) bool { return w.Of == name })
	if at < 0 {
		return "-"
	}
	w := list[at]
	switch {
	case w.Started == 0 && f.Ended != "":
		return fmt.Sprintf("not known, of %d", w.Waits)
	case w.Started == 0:
		return fmt.Sprintf("none of %d starts", w.Waits)
	}
	text := fmt.Sprintf("%s (%s)", ui.Short(w.Mean), ui.Short(w.Max))
	if never := w.Waits - w.Started; never > 0 {
		text += fmt.Sprintf(", %d %s", never, report.WhatIfTime(0, f, nil))
	}
	return text
}

func (p *whatIfPrinter) workflows() {
	type flow struct{ before, after *structs.WhatIfWorkflow }
	all := map[string]*flow{}
	var keys []string
	of := func(w *structs.WhatIfWorkflow) *flow {
		key := jobOf(w.Namespace, w.ID)
		if all[key] == nil {
			all[key] = &flow{}
			keys = append(keys, key)
		}
		return all[key]
	}
	for i := range p.w.Before.Workflows {
		of(&p.w.Before.Workflows[i]).before = &p.w.Before.Workflows[i]
	}
	for i := range p.w.After.Workflows {
		of(&p.w.After.Workflows[i]).after = &p.w.After.Workflows[i]
	}
	if len(keys) == 0 {
		return
	}
	p.printf("\n")
	slices.Sort(keys)
	rows := [][]string{{"Workflow", "Starts without", "Ends", "Starts with", "Ends", "Stages start"}}
	for _, key := range keys {
		row, stages := []string{key}, ""
		for i, w := range []*structs.WhatIfWorkflow{all[key].before, all[key].after} {
			f := []*structs.WhatIfFuture{&p.w.Before, &p.w.After}[i]
			at := func(nanos int64) string { return report.WhatIfWorkflowTime(nanos, w, f, p.stamp) }
			if w == nil {
				row = append(row, "-", "-")
				continue
			}
			row = append(row, at(w.Start), at(w.End))
			stages = ""
			for i, s := range w.Stages {
				if i > 0 {
					stages += ", "
				}
				stages += s.Name + " " + at(s.Start)
			}
		}
		rows = append(rows, append(row, stages))
	}
	ui.Table(p.out, rows)
}

func (p *whatIfPrinter) shortfalls() {
	if len(p.w.Before.Shortfalls)+len(p.w.After.Shortfalls) == 0 {
		return
	}
	p.printf("\n")
	rows := [][]string{{"What owners of claims lack at worst", "Of", "When", "Cells", "Not given yet", "Instances that wait"}}
	for i, f := range []*structs.WhatIfFuture{&p.w.Before, &p.w.After} {
		for _, s := range f.Shortfalls {
			rows = append(rows, []string{
				s.Owner + ", " + []string{"without", "with"}[i], report.WhatIfLacks(&s), p.stamp(s.Time), strconv.Itoa(s.Cells), strconv.Itoa(s.Waiting), strconv.Itoa(s.Instances),
			})
		}
	}
	ui.Table(p.out, rows)
}
