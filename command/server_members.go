package command

import (
	"context"
	"flag"
	"fmt"
	"net"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func serverMembers() spec {
	return spec{
		synopsis: "List the servers",
		usage:    "", example: "-verbose", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			verbose := fs.Bool("verbose", false, "show the servers' tags")
			fs.BoolVar(verbose, "detailed", false, "the same, as older scripts say it")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) > 0 {
					return e.usage("no arguments are taken, %d given", len(args))
				}
				members, err := e.client.Members(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(members); done {
					return code
				}
				leader, err := e.client.Leader(ctx)
				rows := [][]string{{"Name", "Address", "Port", "Status", "Leader", "Raft Version", "Build", "Datacenter", "Region"}}
				if *verbose {
					rows[0] = append(rows[0], "Tags")
				}
				for _, m := range members {
					leads := err == nil && net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]) == leader
					row := []string{
						m.Name, m.Addr, fmt.Sprint(m.Port), m.Status, fmt.Sprint(leads), ui.OrNone(m.Tags["raft_vsn"]),
						m.Tags["build"], m.Tags["dc"], m.Tags["region"],
					}
					if *verbose {
						row = append(row, pairsText(m.Tags))
					}
					rows = append(rows, row)
				}
				ui.Table(e.out, rows)
				for _, m := range members {
					if disk := m.Tags["disk"]; disk != "" && m.Status == structs.MemberAlive {
						e.printf("\n%s has stepped aside: its disk is %s\n", m.Name, disk)
					}
				}
				if err != nil || leader == "" {
					return e.fail(fmt.Errorf("there is no leader now: jobs run on, but nothing new is placed"))
				}
				return exitDone
			}
		},
	}
}
