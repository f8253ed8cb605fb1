package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func evalStatus() spec {
	return spec{
		synopsis: "Show an evaluation, or follow it",
		usage:    "<evaluation>", accepts: []string{"ui"}, example: "-monitor 8262bc83", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			monitor := fs.Bool("monitor", false, "follow it until what it placed runs")
			verbose := fs.Bool("verbose", false, "print whole IDs, and those of the evaluations before and after")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				if len(args) != 1 {
					return e.usage("one evaluation is needed, %d given (`nomadish eval list` lists them)", len(args))
				}
				ev, err := e.oneEval(ctx, args[0])
				if err != nil {
					return e.fail(err)
				}
				if *monitor && !e.json && e.template == "" {
					return newMonitor(e, *verbose).eval(ctx, ev.ID)
				}
				if ev, _, err = e.client.Evaluations().Info(ctx, ev.ID, e.query()); err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(ev); done {
					return code
				}
				allocs, _, err := e.client.Evaluations().Allocations(ctx, ev.ID, e.query())
				if err != nil {
					return e.fail(err)
				}
				showEval(&e.printer, ev, allocs, *verbose)
				return exitDone
			}
		},
	}
}

func showEval(p *printer, ev *structs.Evaluation, allocs []*structs.AllocListStub, verbose bool) {
	now := p.now()
	pairs := []ui.Pair{
		{Key: "ID", Value: short(ev.ID, verbose)}, {Key: "Create Time", Value: ui.Ago(ev.CreateTime, now)},
		{Key: "Modify Time", Value: ui.Ago(ev.ModifyTime, now)}, {Key: "Status", Value: ev.Status},
		{Key: "Status Description", Value: ui.OrNone(ev.StatusDescription)}, {Key: "Type", Value: ev.Type},
		{Key: "TriggeredBy", Value: ev.TriggeredBy}, {Key: "Job ID", Value: ui.OrNone(ev.JobID)},
		{Key: "Namespace", Value: ev.Namespace}, {Key: "Priority", Value: fmt.Sprint(ev.Priority)},
		{Key: "Placement Failures", Value: failures(ev)},
	}
	more := func(key, value string) {
		if value != "" {
			pairs = append(pairs, ui.Pair{Key: key, Value: value})
		}
	}
	more("Node ID", short(ev.NodeID, verbose))
	if verbose {
		more("Previous Eval", ui.OrNone(ev.PreviousEval))
		more("Next Eval", ui.OrNone(ev.NextEval))
		more("Blocked Eval", ui.OrNone(ev.BlockedEval))
	}
	if !ev.WaitUntil.IsZero() {
		more("Wait Until", ui.Time(ev.WaitUntil.UnixNano()))
	}
	ui.Pairs(p.out, pairs)
	if len(ev.FailedTGAllocs) > 0 {
		p.printf("\n%s\n", p.style.Bold(p.style.Yellow("Failed Placements")))
		showFailed(p, ev.FailedTGAllocs, ev.Namespace, ev.JobID)
	}
	if ev.BlockedEval != "" {
		p.printf("\nEvaluation %q waiting for additional capacity to place remainder\n", short(ev.BlockedEval, verbose))
	}
	if len(allocs) > 0 {
		p.printf("\n%s\n", p.style.Bold("Placed Allocations"))
		ui.Table(p.out, allocRows(p, allocs, verbose))
	}
}
