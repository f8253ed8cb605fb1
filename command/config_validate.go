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
		details: "PATH is a file in HCL or JSON, or a directory; of a directory, all files whose names end in .hcl or .json are read. Later\n" +
			"files override earlier ones, as with `agent -config`. Exits 1 and prints every problem with its file and line if an agent\n" +
			"would not start with these files. When there is none, the certificates and keys of the block tls are read, too, as the agent\n" +
			"does: run it on the agent's machine, and as its user.",
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
