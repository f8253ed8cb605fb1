package command

import (
	"context"
	"flag"
)

func systemGC() spec {
	return spec{
		synopsis: "Run garbage collection on all finished objects, whatever their age",
		usage:    "", example: "",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return withoutArgs(func(ctx context.Context, e *env) int {
				if err := e.client.System().GC(ctx); err != nil {
					return e.fail(err)
				}
				e.printf("Garbage collected\n")
				return exitDone
			})
		},
	}
}

func systemReconcile() spec {
	return spec{
		synopsis: "Rebuild the job summaries, and report what was wrong in them",
		usage:    "", example: "", output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return withoutArgs(func(ctx context.Context, e *env) int {
				reply, err := e.client.System().Reconcile(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(reply); done {
					return code
				}
				if len(reply.Differences) == 0 {
					e.printf("Nothing was wrong\n")
				}
				for _, d := range reply.Differences {
					e.printf("put right: %s\n", d)
				}
				return exitDone
			})
		},
	}
}
