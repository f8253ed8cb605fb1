package command

import (
	"context"
	"flag"

	"github.com/nomadish/nomadish/command/agent"
)

func configValidate() spec {
	return spec{
		synopsis: "Check the configuration of an agent without starting it",
		usage:    "PATH…", example: "/etc/nomadish.d", local: true,
		details: "PATH is a file in HCL or JSON, or a directory, of which all files whose names end in .hcl or .json are taken. Several\n" +
			"are laid over each other in their order, as by `agent -config`. Exits 1, with every problem and its place, if an agent\n" +
			"would not start with them.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(_ context.Context, e *env, args []string) int {
				if len(args) == 0 {
					return e.usage("at least one file or directory is needed")
				}
				warnings, err := agent.CheckConfig(args...)
				for _, w := range warnings {
					e.eprintf("Warning: %s\n", w)
				}
				if err != nil {
					return e.fail(err)
				}
				e.printf("Configuration is valid!\n")
				return exitDone
			}
		},
	}
}
