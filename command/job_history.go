package command

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// historyOptions select what of a job's versions is shown.
type historyOptions struct {
	diffs, full     bool
	only, comparing int64 // -1: none is named
}

func jobHistory() spec {
	return spec{
		synopsis: "List a job's versions",
		usage:    "<job>", example: "-p web", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o historyOptions
			fs.BoolVar(&o.diffs, "p", false, "show how each differs from the one before")
			fs.BoolVar(&o.full, "full", false, "print each version's whole job as JSON")
			fs.Int64Var(&o.only, "version", -1, "only this `version`")
			fs.Int64Var(&o.comparing, "diff-version", -1, "show how each differs from this `version`")
			return func(ctx context.Context, e *env, args []string) int {
				if o.diffs && o.comparing >= 0 {
					return e.usage("-p and -diff-version exclude each other")
				}
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				reply, _, err := e.client.Jobs().Versions(ctx, id, o.diffs, e.query())
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(reply.Versions); done {
					return code
				}
				return showHistory(e, id, reply, o)
			}
		},
	}
}

func showHistory(e *env, id string, reply *structs.JobVersionsReply, o historyOptions) int {
	var base *structs.Job
	if o.comparing >= 0 {
		at := slices.IndexFunc(reply.Versions, func(j *structs.Job) bool { return j.Version == uint64(o.comparing) }) // not negative
		if at < 0 {
			return e.fail(fmt.Errorf("job %q has no version %d any more (`nomadish job history` lists those that it has)", id, o.comparing))
		}
		base = reply.Versions[at]
	}
	for i, job := range reply.Versions {
		if o.only >= 0 && job.Version != uint64(o.only) { // not negative
			continue
		}
		ui.Pairs(e.out, []ui.Pair{
			{Key: "Version", Value: fmt.Sprint(job.Version)}, {Key: "Stable", Value: fmt.Sprint(job.Stable)},
			{Key: "Stopped", Value: fmt.Sprint(job.Stop)}, {Key: "Submit Date", Value: ui.Time(job.SubmitTime)},
		})
		switch {
		case base != nil && base.Version != job.Version:
			e.printf("Diff        =\n")
			showJobDiff(&e.printer, base.Diff(job, false), false)
		case o.diffs && i < len(reply.Diffs):
			e.printf("Diff        =\n")
			showJobDiff(&e.printer, reply.Diffs[i], false)
		}
		if o.full {
			e.printf("Full        =\n")
			if err := ui.JSON(e.out, job); err != nil {
				return e.fail(err)
			}
		}
		e.printf("\n")
	}
	return exitDone
}
