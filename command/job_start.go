package command

import (
	"context"
	"flag"
	"fmt"
)

func jobStart() spec {
	return spec{
		synopsis: "Start stopped jobs again",
		usage:    "<job>...", example: "web",
		details: "The newest version of the job that was not stopped is registered as a new version. When stdin is a terminal, the command\n" +
			"asks for confirmation before it starts more than one job; -yes answers yes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var b bulk
			b.flags(fs, "jobs")
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				jobs, err := b.jobTargets(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				return b.each(ctx, e, "Start", "job", jobs, func(t target) int {
					return startJob(ctx, e, t, *detach, *verbose)
				})
			}
		},
	}
}

// startJob reverts a stopped job to its newest version that was not stopped.
func startJob(ctx context.Context, e *env, t target, detach, verbose bool) int {
	reply, _, err := e.client.Jobs().Versions(ctx, t.id, false, t.query())
	if err != nil {
		return e.fail(err)
	}
	if len(reply.Versions) == 0 {
		return e.fail(fmt.Errorf("no job is named %q", t.id))
	}
	if !reply.Versions[0].Stop {
		return e.fail(fmt.Errorf("job %q is not stopped", t.id))
	}
	for _, version := range reply.Versions { // newest first
		if version.Stop {
			continue
		}
		done, err := e.client.Jobs().Revert(ctx, t.id, version.Version, t.query())
		if err != nil {
			return e.fail(err)
		}
		if done.EvalID == "" || detach {
			e.printf("Job %q started as its version %d\n", t.id, version.Version)
		}
		return e.follow(ctx, done.EvalID, detach, verbose)
	}
	return e.fail(fmt.Errorf("job %q has no version any more that was not stopped: submit it with `nomadish job run`", t.id))
}
