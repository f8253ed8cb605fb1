package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func evalList() spec {
	return spec{
		synopsis: "List evaluations",
		usage:    "", accepts: []string{"ui"}, example: "-job web -status blocked", output: true,
		details: "The oldest comes first.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			job := fs.String("job", "", "only those of a `job`")
			status := fs.String("status", "", "only those of a `status`: pending, blocked, complete, failed or canceled")
			var l listFlags
			l.flagsOf(fs, "only those that match an `expression`", "at most `N`")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				if err := pageError(l.perPage); err != nil {
					return e.usage("%v", err)
				}
				q := l.query(e)
				q.Params = map[string]string{}
				if *job != "" {
					q.Params["job"] = *job
				}
				if *status != "" {
					q.Params["status"] = *status
				}
				evals, meta, err := e.client.Evaluations().List(ctx, q)
				if err != nil {
					return e.fail(err)
				}
				return showPage(e, evals, meta, l.token, "No evals found", func(_ *env, evals []*structs.Evaluation) [][]string {
					slices.SortStableFunc(evals, func(a, b *structs.Evaluation) int { return cmp.Compare(a.CreateIndex, b.CreateIndex) })
					return evalRows(evals, *verbose)
				})
			}
		},
	}
}

// evalRows is a table of evaluations.
func evalRows(evals []*structs.Evaluation, verbose bool) [][]string {
	rows := [][]string{{"ID", "Priority", "Triggered By", "Job ID", "Namespace", "Node ID", "Status", "Placement Failures"}}
	for _, v := range evals {
		rows = append(rows, []string{
			short(v.ID, verbose), fmt.Sprint(v.Priority), v.TriggeredBy, ui.OrNone(v.JobID), v.Namespace, ui.OrNone(short(v.NodeID, verbose)),
			v.Status, failures(v),
		})
	}
	return rows
}

// failures reports whether something could not be placed, as far as that is decided.
func failures(v *structs.Evaluation) string {
	if v.Status == structs.EvalStatusBlocked {
		return "N/A - In Progress"
	}
	return fmt.Sprint(len(v.FailedTGAllocs) > 0)
}
