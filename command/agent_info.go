package command

import (
	"context"
	"flag"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/command/ui"
)

func agentInfo() spec {
	return spec{
		synopsis: "Show agent runtime statistics", example: "", output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(ctx context.Context, e *env, args []string) int {
				self, err := e.client.Agent().Self(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(self); done {
					return code
				}
				for _, section := range slices.Sorted(maps.Keys(self.Stats)) {
					e.printf("%s\n", e.style.Bold(section))
					var pairs []ui.Pair
					for _, key := range slices.Sorted(maps.Keys(self.Stats[section])) {
						pairs = append(pairs, ui.Pair{Key: "  " + key, Value: self.Stats[section][key]})
					}
					ui.Pairs(e.out, pairs)
				}
				return exitDone
			}
		},
	}
}
