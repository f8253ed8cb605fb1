package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// regionRow is a region as -json and -t see it.
type regionRow struct {
	Name    string
	Leader  string // its RPC address; empty: none is known
	Alive   int    // servers that are there
	Servers int    // failed ones, and such as left a while ago, too
}

func regionList() spec {
	return spec{
		synopsis: "List the regions that the agent's servers know",
		usage:    "", example: "", output: true,
		details: "The agent forwards requests with -region NAME, or NOMADISH_REGION, to that region. A region is known once one of its\n" +
			"servers has joined a server of this region: `nomadish server join -wan`.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(ctx context.Context, e *env, args []string) int {
				names, err := e.client.Status().Regions(ctx)
				if err != nil {
					return e.fail(err)
				}
				members, err := e.client.Agent().Members(ctx)
				if err != nil {
					return e.fail(err)
				}
				leaders, _, _ := e.leaders(ctx, names) // a region without one is shown so
				list := regionRows(names, members, leaders)
				if done, code := e.formatted(list); done {
					return code
				}
				rows := [][]string{{"Region", "Servers", "Leader"}}
				for _, r := range list {
					rows = append(rows, []string{r.Name, fmt.Sprintf("%d of %d alive", r.Alive, r.Servers), ui.OrNone(r.Leader)})
				}
				ui.Table(e.out, rows)
				return exitDone
			}
		},
	}
}

func regionRows(names []string, members []api.Member, leaders map[string]string) []regionRow {
	var list []regionRow
	for _, name := range names {
		row := regionRow{Name: name, Leader: leaders[name]}
		for _, m := range members {
			if m.Tags["region"] != name {
				continue
			}
			row.Servers++
			if m.Status == structs.MemberAlive {
				row.Alive++
			}
		}
		list = append(list, row)
	}
	return list
}
