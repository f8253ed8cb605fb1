package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func autopilotGetConfig() spec {
	return spec{
		synopsis: "Show the Autopilot configuration",
		usage:    "", example: "-json", output: true,
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return withoutArgs(func(ctx context.Context, e *env) int {
				c, err := e.client.Operator().AutopilotConfig(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(c); done {
					return code
				}
				ui.Pairs(e.out, []ui.Pair{
					{Key: "CleanupDeadServers", Value: strconv.FormatBool(c.CleanupDeadServers)},
					{Key: "LastContactThreshold", Value: c.LastContactThreshold.String()},
					{Key: "MaxTrailingLogs", Value: fmt.Sprint(c.MaxTrailingLogs)},
					{Key: "MinQuorum", Value: fmt.Sprint(c.MinQuorum)},
					{Key: "ServerStabilizationTime", Value: c.ServerStabilizationTime.String()},
				})
				return exitDone
			})
		},
	}
}

func autopilotSetConfig() spec {
	return spec{
		synopsis: "Change the Autopilot configuration; options that are not set stay as they are",
		usage:    "", example: "-min-quorum 3",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var wanted structs.AutopilotConfiguration
			fs.BoolVar(&wanted.CleanupDeadServers, "cleanup-dead-servers", false, "remove servers that failed from Raft: =true or =false")
			fs.DurationVar(&wanted.LastContactThreshold, "last-contact-threshold", 0, "how long a healthy server may not have heard the leader, as `200ms`")
			fs.Uint64Var(&wanted.MaxTrailingLogs, "max-trailing-logs", 0, "by how many log `entries` a healthy server may lag")
			fs.UintVar(&wanted.MinQuorum, "min-quorum", 0, "how many `voters` cleaning up must leave")
			fs.DurationVar(&wanted.ServerStabilizationTime, "server-stabilization-time", 0, "how long a new server must be healthy before it votes, as `10s`")
			return func(ctx context.Context, e *env, args []string) int {
				c, err := e.client.Operator().AutopilotConfig(ctx)
				if err != nil {
					return e.fail(err)
				}
				n := 0
				fs.Visit(func(f *flag.Flag) {
					n++
					switch f.Name {
					case "cleanup-dead-servers":
						c.CleanupDeadServers = wanted.CleanupDeadServers
					case "last-contact-threshold":
						c.LastContactThreshold = wanted.LastContactThreshold
					case "max-trailing-logs":
						c.MaxTrailingLogs = wanted.MaxTrailingLogs
					case "min-quorum":
						c.MinQuorum = wanted.MinQuorum
					case "server-stabilization-time":
						c.ServerStabilizationTime = wanted.ServerStabilizationTime
					default:
						n-- // not of the configuration
					}
				})
				if n == 0 {
					return e.usage("nothing to change is named")
				}
				updated, err := e.client.Operator().SetAutopilotConfig(ctx, c)
				switch {
				case err != nil:
					return e.fail(err)
				case !updated:
					return e.fail(fmt.Errorf("the configuration was changed by somebody else meanwhile; look at it and try again"))
				}
				e.printf("Configuration updated!\n")
				return exitDone
			}
		},
	}
}

func autopilotHealth() spec {
	return spec{
		synopsis: "Show the servers' health as determined by the leader",
		usage:    "", example: "", output: true, details: "The exit code is 1 while a server is not healthy.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return withoutArgs(func(ctx context.Context, e *env) int {
				h, err := e.client.Operator().AutopilotHealth(ctx)
				if err != nil {
					return e.fail(err)
				}
				code := exitDone
				if !h.Healthy {
					code = exitFailed
				}
				if done, bad := e.formatted(h); done {
					return max(code, bad)
				}
				ui.Pairs(e.out, []ui.Pair{
					{Key: "Healthy", Value: strconv.FormatBool(h.Healthy)},
					{Key: "FailureTolerance", Value: fmt.Sprint(h.FailureTolerance)},
					{Key: "Leader", Value: ui.OrNone(h.Leader)},
				})
				e.printf("\n")
				rows := [][]string{{"ID", "Name", "Address", "SerfStatus", "Leader", "Voter", "Healthy", "LastContact", "LastTerm", "LastIndex", "StableSince"}}
				for i := range h.Servers {
					s := &h.Servers[i]
					rows = append(rows, []string{
						s.ID, ui.OrNone(s.Name), s.Address, ui.OrNone(s.SerfStatus), fmt.Sprint(s.Leader), fmt.Sprint(s.Voter), fmt.Sprint(s.Healthy),
						lastContact(time.Duration(s.LastContact)), fmt.Sprint(s.LastTerm), fmt.Sprint(s.LastIndex), ui.Time(s.StableSince.UnixNano()),
					})
				}
				ui.Table(e.out, rows)
				for i := range h.Servers {
					if s := &h.Servers[i]; s.Reason != "" {
						e.printf("\n%s does not take leadership: %s\n", ui.OrNone(s.Name), s.Reason)
					}
				}
				return code
			})
		},
	}
}

func lastContact(d time.Duration) string {
	switch {
	case d < 0:
		return "never"
	case d >= time.Minute:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
