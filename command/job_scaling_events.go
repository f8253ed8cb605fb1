package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// groupScaling is one scaling event of a group.
type groupScaling struct {
	Group string
	*structs.ScalingEvent
}

func jobScalingEvents() spec {
	return spec{
		synopsis: "List the scaling events of a job",
		usage:    "<job>", example: "-verbose web", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			verbose := fs.Bool("verbose", false, "print errors, messages and evaluations too, and whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				status, _, err := e.client.Jobs().ScaleStatus(ctx, id, e.query())
				if err != nil {
					return e.fail(err)
				}
				events := scalingEvents(status)
				if done, code := e.formatted(events); done {
					return code
				}
				if len(events) == 0 {
					e.printf("No scaling events found\n")
					return exitDone
				}
				ui.Table(e.out, scalingRows(events, *verbose))
				return exitDone
			}
		},
	}
}

// scalingEvents are the events of all groups, newest first.
func scalingEvents(status *structs.JobScaleStatus) []groupScaling {
	events := []groupScaling{}
	if status == nil {
		return events
	}
	for _, name := range slices.Sorted(maps.Keys(status.TaskGroups)) {
		for _, event := range status.TaskGroups[name].Events {
			if event != nil {
				events = append(events, groupScaling{name, event})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b groupScaling) int { return cmp.Compare(b.Time, a.Time) })
	return events
}

func scalingRows(events []groupScaling, verbose bool) [][]string {
	rows := [][]string{{"Task Group", "Count", "PrevCount", "Date"}}
	if verbose {
		rows[0] = []string{"Task Group", "Count", "PrevCount", "Error", "Message", "Eval ID", "Date"}
	}
	for _, event := range events {
		count, eval := "<none>", "<none>"
		if event.Count != nil {
			count = fmt.Sprint(*event.Count)
		}
		if event.EvalID != nil {
			eval = short(*event.EvalID, verbose)
		}
		row := []string{event.Group, count, fmt.Sprint(event.PreviousCount)}
		if verbose {
			row = append(row, fmt.Sprint(event.Error), ui.OrNone(event.Message), eval)
		}
		rows = append(rows, append(row, ui.Time(event.Time)))
	}
	return rows
}
