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
		synopsis: "Tell the agent's server to join others by gossip",
		usage:    "ADDRESS…", example: "10.0.0.2 10.0.0.3:4648",
		details: "One server that is reached is enough: it tells of all others. The port is that of gossip, 4648 by default.\n" +
			"Only servers of the same region join each other so. A server that belongs to another cluster is not taken over.\n" +
			"With -wan, servers of other regions are joined: from then on each region passes on what is asked of the others. Their\n" +
			"port is 4649 by default.",
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
		synopsis: "Make a failed server count as one that left for good",
		usage:    "NAME", example: "server-3.global",
		details: "A failed server is waited for; this ends that, and the leader removes it from Raft. One that is alive is refused: it would come back by itself.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			prune := fs.Bool("prune", false, "forget the server altogether")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) != 1 {
					return e.usage("one server's name is needed, %d given", len(args))
				}
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
