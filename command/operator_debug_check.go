package command

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func debugCheck() spec {
	return spec{
		synopsis: "Check the consistency of the cluster's state",
		usage:    "", example: "-stale -address http://10.0.0.2:4646", output: true,
		details: "A server reads one consistent snapshot of its state and verifies it. No node may be overcommitted; no core, port or GPU\n" +
			"may be assigned twice; no gang may run in part; no allocation may run after it was stopped, or without its job or node.\n" +
			"Counters must equal what they count, the scheduler's view must equal the tables, every pending request must have an\n" +
			"evaluation, every reservation must have a request, and no index may be ahead of the state. Exits 1 if a check fails.\n" +
			"Notes report unusual findings that may have a good reason; they do not change the exit code. The hash covers the whole\n" +
			"state: servers at the same index have the same hash.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := fs.Bool("stale", false, "check the state of the server at -address, not the leader's")
			return func(ctx context.Context, e *env, args []string) int {
				q := e.query()
				q.Stale = *stale
				p := e.waiting("waiting for the server to count its state")
				report, err := e.client.Operator().Check(ctx, q)
				p.stop()
				if err == nil && report == nil {
					err = fmt.Errorf("the server returned no report")
				}
				if err != nil {
					return e.fail(err)
				}
				done, code := e.formatted(report)
				if !done {
					showCheck(&e.printer, report)
				}
				if code == exitDone && !report.Healthy() {
					return exitFailed
				}
				return code
			}
		},
	}
}

func showCheck(p *printer, r *structs.CheckReport) {
	var rows []string
	for _, table := range slices.Sorted(maps.Keys(r.Rows)) {
		rows = append(rows, fmt.Sprintf("%d %s", r.Rows[table], table))
	}
	ui.Pairs(p.out, []ui.Pair{
		{Key: "Server", Value: ui.OrNone(r.Server)},
		{Key: "Index", Value: fmt.Sprint(r.StateIndex)},
		{Key: "Hash", Value: r.Hash},
		{Key: "Rows", Value: ui.OrNone(strings.Join(rows, ", "))},
		{Key: "Took", Value: r.Took.Round(time.Millisecond).String()},
		{Key: "Faults", Value: fmt.Sprint(len(r.Faults))},
		{Key: "Notes", Value: fmt.Sprint(len(r.Notes))},
	})
	showFindings(p, "Faults", r.Faults)
	showFindings(p, "Notes", r.Notes)
	for _, rule := range structs.CheckRules() {
		if n := r.Found[rule]; n > structs.CheckKept {
			p.printf("\nOf rule %s %d were found; the first %d are shown.\n", rule, n, structs.CheckKept)
		}
	}
	if r.Healthy() {
		p.printf("\nThe state is in order.\n")
	}
}

func showFindings(p *printer, title string, list []structs.CheckFinding) {
	if len(list) == 0 {
		return
	}
	p.printf("\n%s\n", title)
	rows := [][]string{{"Rule", "Kind", "ID", "What"}}
	for _, f := range list {
		rows = append(rows, []string{f.Rule, f.Kind, ui.OrNone(f.ID), f.What})
	}
	ui.Table(p.out, rows)
}
