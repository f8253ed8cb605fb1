package command

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func evalDelete() spec {
	return spec{
		synopsis: "Delete pending evaluations",
		usage:    "[<evaluation> ...]", example: `-filter 'Status == "pending" and JobID == "web"'`,
		details: "Use this after an outage that left so many evaluations that deleting them is faster than processing them. The\n" +
			"evaluation broker must be paused meanwhile: run \"operator scheduler set-config -pause-eval-broker=true\" before, and\n" +
			"=false afterwards. A job whose evaluation was deleted is not evaluated again until the job changes or\n" +
			"\"job eval\" is run.\n" +
			"\n" +
			"An evaluation is not deleted if its allocations are still running or its job still needs them. If such an evaluation is\n" +
			"named, the command fails; if -filter selects it, it is skipped. When an ID is shorter than the short ID that lists\n" +
			"print, the command asks for confirmation, or needs -yes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			filter := fs.String("filter", "", "delete those that match an `expression`")
			yes := fs.Bool("yes", false, "do not ask for confirmation")
			return func(ctx context.Context, e *env, args []string) int {
				if (len(args) == 0) == (*filter == "") {
					return e.usage("either evaluations or -filter are needed")
				}
				if err := brokerPaused(ctx, e); err != nil { // before anything is asked
					return e.fail(err)
				}
				if *filter != "" {
					return deleteFiltered(ctx, e, *filter, *yes)
				}
				ids := make([]string, 0, len(args))
				for _, arg := range args {
					eval, err := e.oneEval(ctx, arg)
					if err != nil {
						return e.fail(err)
					}
					if guess := guessedShort(arg, eval.ID, ""); guess != "" && !*yes {
						if err := e.sure("Delete evaluation", "evaluation", guess, eval.ID); err != nil {
							return e.fail(err)
						}
					}
					ids = append(ids, eval.ID)
				}
				return deleteEvals(ctx, e, ids, 0, e.query())
			}
		},
	}
}

// brokerPaused is an error while the servers hand out evaluations: they refuse to delete any then.
func brokerPaused(ctx context.Context, e *env) error {
	config, err := e.client.Operator().SchedulerConfig(ctx)
	if err != nil {
		return err
	}
	if config == nil || !config.PauseEvalBroker {
		return errors.New("eval broker is enabled; it must be paused before evaluations are deleted:\n" +
			"nomadish operator scheduler set-config -pause-eval-broker=true")
	}
	return nil
}

// deleteFiltered deletes what matches, after the user has seen how many and has agreed.
func deleteFiltered(ctx context.Context, e *env, filter string, yes bool) int {
	q := e.query()
	q.Filter = filter
	matched := 0 // not counted where nobody is asked
	if !yes {
		evals, _, err := e.client.Evaluations().List(ctx, q)
		switch {
		case err != nil:
			return e.fail(err)
		case len(evals) == 0:
			return e.fail(errors.New("no evaluation is of that kind"))
		case !ui.IsTerminal(e.in):
			return e.fail(fmt.Errorf("nothing was done to %s: standard input is no terminal, so nobody can confirm; use -yes", plural(len(evals), "evaluation")))
		}
		if e.confirm(fmt.Sprintf("Do you want to list evals (%d) before deletion? [y/N] ", len(evals))) {
			listForDeletion(&e.printer, evals)
		}
		if !e.confirm(fmt.Sprintf("Are you sure you want to delete %s? [y/N] ", plural(len(evals), "eval"))) {
			return e.fail(errors.New("nothing was done"))
		}
		matched = len(evals)
	}
	return deleteEvals(ctx, e, nil, matched, q)
}

func listForDeletion(p *printer, evals []*structs.Evaluation) {
	p.printf("\n")
	ui.Table(p.out, evalRows(evals, false))
	p.printf("\n")
}

func deleteEvals(ctx context.Context, e *env, ids []string, matched int, q *api.Query) int {
	count, err := e.client.Evaluations().Delete(ctx, ids, q)
	if err != nil {
		return e.fail(err)
	}
	e.printf("Successfully deleted %s\n", plural(count, "evaluation"))
	if matched > count {
		e.printf("%s passed over: one that is being decided, whose allocations have not ended, or that its job still needs, is kept\n",
			plural(matched-count, "evaluation"))
	}
	return exitDone
}
