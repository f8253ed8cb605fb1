package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func projectReport() spec {
	return spec{
		synopsis: "Show what a project had and used of its slots, by week",
		usage:    "<project>", example: "-weeks 4 chip-a", output: true,
		details: "Given, used, borrowed, lent, beside and guards are slot-hours: 2 slots for 3 hours are 6. Borrowed is what instances cost that ran beyond\n" +
			"the slots, on what idled. Lent are the slots that the project's instances did not use, so that others could. Beside is what instances cost\n" +
			"that used cells of their namespace. Guards were kept free of others beside instances that need more memory than their slots have.\n" +
			"\n" +
			"Waits are of the instances placed in the week, from when they were requested, or requeued, to their placement. Of the last 53 weeks the\n" +
			"last 4 are shown, or as many as -weeks says. With -json amounts are slot-seconds.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			week := fs.String("week", "", "show only this ISO `week`, as 2026-W48")
			weeks := fs.Int("weeks", 4, "show so `many` weeks, the last ones")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				if err := reportOptions(fs, *weeks); err != nil {
					return e.usage("%v", err)
				}
				stale(e)
				p, err := projectReader{e}.named(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				report, _, err := e.client.Projects().Report(ctx, p.Name, *week, e.query())
				if err != nil {
					return e.fail(err)
				}
				report.Weeks = report.Weeks[:min(*weeks, len(report.Weeks))]
				if done, code := e.formatted(report); done {
					return code
				}
				projectReader{e}.printReport(report)
				return exitDone
			}
		},
	}
}

// reportOptions returns what is wrong with the options of a report.
func reportOptions(fs *flag.FlagSet, weeks int) error {
	named := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { named[f.Name] = true })
	switch {
	case named["week"] && named["weeks"]:
		return errors.New("-week and -weeks are both stated: leave one of the two out")
	case weeks < 1:
		return fmt.Errorf("-weeks %d: must be 1 or more", weeks)
	}
	return nil
}

// printReport prints a report for people, the last week first.
func (p projectReader) printReport(r *structs.ProjectReport) {
	e := p.e
	rows := [][]string{{
		"Week", "Type", "Given", "Used", "Borrowed", "Lent", "Beside", "Guards", "Placed", "Completed", "Requeued", "Suspended", "Mean Wait", "P95 Wait",
	}}
	hours := func(seconds float64) string { return strconv.FormatFloat(seconds/3600, 'f', 2, 64) }
	wait := func(s *structs.ReportSlots, seconds float64) string {
		if s.Placed == 0 {
			return ui.OrNone("")
		}
		return ui.Short(time.Duration(seconds * float64(time.Second)).Round(time.Second))
	}
	for _, w := range r.Weeks {
		for _, s := range w.Types {
			rows = append(rows, []string{
				w.Week, s.Type, hours(s.Given), hours(s.Used), hours(s.Borrowed), hours(s.Lent), hours(s.Beside), hours(s.Guards),
				strconv.Itoa(s.Placed), strconv.Itoa(s.Completed), strconv.Itoa(s.Requeued), strconv.Itoa(s.Suspended),
				wait(s, s.WaitMeanSeconds), wait(s, s.WaitP95Seconds),
			})
		}
	}
	if len(rows) == 1 {
		e.printf("Project %q had no slots and ran nothing in these weeks\n", r.Project)
		return
	}
	e.printf("Amounts are slot-hours   Time zone = %s", r.TimeZone)
	if r.MeanRunSeconds > 0 {
		e.printf("   Mean run = %s", ui.Short(time.Duration(r.MeanRunSeconds*float64(time.Second)).Round(time.Second)))
	}
	e.printf("\n")
	ui.Table(e.out, rows)
}
