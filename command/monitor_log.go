package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/api"
)

// unknownServer is the error of an agent that is called for a server which is not there.
const unknownServer = "unknown Nomad server"

func monitorCmd() spec {
	return spec{
		synopsis: "Stream the log of an agent",
		usage:    "", example: "-log-level debug -server-id leader",
		details: "Prints the log lines that an agent writes from now on, until Ctrl-C. The agent is the one at -address, or that of the\n" +
			"node or server named by -node-id or -server-id. -log-level is independent of the level at which the agent itself logs.\n" +
			"If the agent logs faster than the lines can be read, some are dropped, and a line reports how many.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o api.MonitorOptions
			fs.StringVar(&o.LogLevel, "log-level", "INFO", "the lowest `level` of lines: TRACE, DEBUG, INFO, WARN or ERROR")
			fs.BoolVar(&o.IncludeLocation, "log-include-location", false, "add the place in the code to each line")
			fs.StringVar(&o.NodeID, "node-id", "", "the agent of this `node`, by the beginning of its ID or by its name")
			fs.StringVar(&o.ServerID, "server-id", "", "the agent of this `server`, by its name, or \"leader\"")
			fs.BoolVar(&o.JSON, "json", false, "each line is a JSON object")
			return func(ctx context.Context, e *env, args []string) int {
				if o.NodeID != "" && o.ServerID != "" {
					return e.usage("-node-id and -server-id exclude each other")
				}
				if o.NodeID != "" {
					node, err := e.oneNode(ctx, o.NodeID)
					if err != nil {
						return e.fail(err)
					}
					o.NodeID = node.ID
				}
				err := e.client.Agent().Monitor(ctx, o, e.out)
				switch {
				case errors.Is(err, context.Canceled):
					return exitDone // this is how it ends
				case err == nil:
					err = errors.New("the agent ended the stream")
				case o.ServerID != "" && strings.Contains(err.Error(), unknownServer):
					err = fmt.Errorf("%w; `nomadish server members` lists the servers", err)
				}
				return e.fail(err)
			}
		},
	}
}
