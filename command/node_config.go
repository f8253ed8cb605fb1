package command

import (
	"context"
	"errors"
	"flag"
)

func nodeConfig() spec {
	return spec{
		synopsis: "Show or set the servers that a client knows",
		usage:    "[<server address> ...]", example: "-update-servers server1:4647 server2",
		details: "The agent at -address must run a client. Servers send their clients the addresses of the other servers. Set the addresses by\n" +
			"hand when a client has lost all its servers, or to move it to other servers. Nothing is changed unless one of the named\n" +
			"servers answers. The default port is 4647.",
		output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			show := fs.Bool("servers", false, "show the servers that it knows")
			update := fs.Bool("update-servers", false, "set them to the addresses that are named: all that it is to know")
			return func(ctx context.Context, e *env, args []string) int {
				switch {
				case *show == *update:
					return e.usage("either -servers or -update-servers is needed")
				case *update && len(args) == 0:
					return e.usage("-update-servers: name at least one server, as host or host:port")
				case *show && len(args) > 0:
					return e.usage("-servers takes no arguments, %d given", len(args))
				case *update:
					if err := e.client.Agent().SetServers(ctx, args); err != nil {
						return e.fail(err)
					}
					return exitDone
				}
				addrs, err := e.client.Agent().Servers(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(addrs); done {
					return code
				}
				if len(addrs) == 0 {
					return e.fail(errors.New("the client knows no server yet"))
				}
				for _, addr := range addrs {
					e.printf("%s\n", addr)
				}
				return exitDone
			}
		},
	}
}
