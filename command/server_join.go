package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
)

func serverJoin() spec {
	return spec{
		synopsis: "Join the agent's server to other servers by gossip",
		usage:    "ADDRESS…", example: "10.0.0.2 10.0.0.3:4648",
		details: "One reachable server is enough: it passes on the addresses of all others. The port is the gossip port, 4648 by default.\n" +
			"Only servers of the same region can join each other without -wan. A server that belongs to another cluster is refused.\n" +
			"\n" +
			"With -wan, the agent's server joins servers of other regions. The regions then forward requests to each other. The\n" +
			"default port is 4649.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			wan := fs.Bool("wan", false, "join servers of another region")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) == 0 {
					return e.usage("at least one address is needed")
				}
				join := e.client.Agent().Join
				if *wan {
					join = e.client.Agent().JoinWAN
				}
				p := e.waiting("waiting for servers at these addresses to answer")
				n, err := join(ctx, args...)
				p.stop()
				if err != nil {
					return e.fail(errors.New(string(ui.Indented(err.Error())))) // an agent's text
				}
				e.printf("Joined %d servers successfully\n", n)
				return exitDone
			}
		},
	}
}

func serverForceLeave() spec {
	return spec{
		synopsis: "Force a failed server into the left state",
		takes:    "server's name", usage: "NAME", example: "server-3.global",
		details: "The cluster waits for a failed server to come back. This command ends the wait, and the leader removes the server from\n" +
			"Raft. A server that is alive is refused, because it would rejoin by itself.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			prune := fs.Bool("prune", false, "forget the server altogether")
			return func(ctx context.Context, e *env, args []string) int {
				name := strings.TrimSpace(args[0])
				if err := e.knownMember(ctx, name); err != nil {
					return e.fail(err)
				}
				if err := e.client.Agent().ForceLeave(ctx, name, *prune); err != nil {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

// knownMember refuses the name of a server that is not there: agents answer that all is well then.
func (e *env) knownMember(ctx context.Context, name string) error {
	members, err := e.client.Agent().Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name == name || strings.HasPrefix(m.Name, name+".") {
			return nil
		}
	}
	return fmt.Errorf("no server %q (`server members` lists them)", name)
}
