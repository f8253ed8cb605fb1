package command

import (
	"context"
	"flag"
)

func nodeEligibility() spec {
	return spec{
		synopsis: "Set whether new allocations are placed on a node",
		usage:    "<node>", example: "-disable gpu-3",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			enable := fs.Bool("enable", false, "it takes new work")
			disable := fs.Bool("disable", false, "it takes no new work; what runs goes on")
			self := fs.Bool("self", false, "the agent's own node")
			return func(ctx context.Context, e *env, args []string) int {
				if *enable == *disable {
					return e.usage("either -enable or -disable is needed")
				}
				id, err := e.nodeID(ctx, args, *self)
				if err != nil {
					return e.fail(err)
				}
				if _, err := e.client.Nodes().SetEligibility(ctx, id, *enable); err != nil {
					return e.fail(err)
				}
				what := "not eligible"
				if *enable {
					what = "eligible"
				}
				e.printf("Node %q scheduling eligibility set: %s for scheduling\n", id, what)
				return exitDone
			}
		},
	}
}
