package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func serverMembers() spec {
	return spec{
		synopsis: "List the servers, including those of other regions",
		usage:    "", example: "-verbose", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			verbose := fs.Bool("verbose", false, "show the servers' tags")
			fs.BoolVar(verbose, "detailed", false, "the same, for older scripts")
			return func(ctx context.Context, e *env, args []string) int {
				members, err := e.client.Agent().Members(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(members); done {
					return code
				}
				leaders, lost, err := e.leaders(ctx, regionsOf(members))
				rows := [][]string{{"Name", "Address", "Port", "Status", "Leader", "Raft Version", "Build", "Datacenter", "Region"}}
				if *verbose {
					rows[0] = append(rows[0], "Tags")
				}
				for _, m := range members {
					leads := net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]) == leaders[m.Tags["region"]]
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
						e.printf("\n%s does not take leadership: its disk is %s\n", m.Name, disk)
					}
				}
				for _, region := range lost {
					e.printf("\nRegion %s: no leader is known there now\n", region)
				}
				if err != nil {
					return e.fail(noLeaderNow(err))
				}
				return exitDone
			}
		},
	}
}

// noLeaderNow returns in the server's words why there is no leader, and what of it for those who had one.
func noLeaderNow(err error) error {
	var refusal *api.Error
	if errors.As(err, &refusal) {
		err = errors.New(refusal.Msg)
	}
	if strings.Contains(err.Error(), "not bootstrapped yet") || strings.Contains(err.Error(), "belongs to no cluster yet") {
		return err
	}
	return fmt.Errorf("%w\nThere is no leader now: jobs run on, but nothing new is placed", err)
}

// regionsOf are the regions of some servers, in order.
func regionsOf(members []api.Member) []string {
	var names []string
	for _, m := range members {
		if region := m.Tags["region"]; !slices.Contains(names, region) {
			names = append(names, region)
		}
	}
	slices.Sort(names)
	return names
}

// leaders returns the RPC addresses of the leaders of regions, and which of the others than the one requested
// have none that is known. The error is of the requested region.
func (e *env) leaders(ctx context.Context, names []string) (leaders map[string]string, lost []string, err error) {
	leaders = map[string]string{}
	own, err := e.client.Status().Leader(ctx)
	if err == nil && own == "" {
		err = errors.New("no leader")
	}
	if len(names) == 1 {
		leaders[names[0]] = own
		return leaders, nil, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, region := range names {
		all.Go(func() {
			addr, failed := e.client.In(region).Status().Leader(ctx)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil || addr == "" {
				lost = append(lost, region)
				return
			}
			leaders[region] = addr
		})
	}
	all.Wait()
	slices.Sort(lost)
	return leaders, lost, err
}
