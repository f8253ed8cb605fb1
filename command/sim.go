package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/nomadish/nomadish/command/agent"
	"github.com/nomadish/nomadish/command/ui"
)

func simNodes() spec {
	return spec{
		synopsis: "Attach simulated nodes to a cluster, until interrupted",
		usage:    "", example: "-count 1000 -shape dgx.hcl",
		details: "The nodes register, send heartbeats, report GPUs and run mock_driver tasks. They are removed when this command ends.\n" +
			"With -ca-cert, -client-cert and -client-key of a client, they use TLS to the servers.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o agent.SimOptions
			var servers listFlag
			fs.IntVar(&o.Count, "count", 0, "how `many` nodes in all (default: as in the -shape file; 1 without a file)")
			fs.StringVar(&o.LayoutFile, "shape", "", "a `file` that describes the nodes' resources")
			fs.Var(&servers, "server", "a server's RPC `host:port`, several with commas (default: the leader that the agent knows)")
			fs.StringVar(&o.Datacenter, "dc", "dc1", "the nodes' `datacenter`")
			return func(ctx context.Context, e *env, args []string) int {
				if o.Count < 0 {
					return e.usage("-count %d: a number from 1 is needed", o.Count)
				}
				for _, s := range servers {
					o.Servers = append(o.Servers, strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })...)
				}
				if len(o.Servers) == 0 {
					leader, err := e.client.Status().Leader(ctx)
					if err == nil && leader == "" {
						err = errors.New("the agent knows no leader: name a server with -server")
					}
					if err != nil {
						return e.fail(err)
					}
					o.Servers = []string{leader}
				}
				o.Region, o.Version = e.region, semantic()
				if t := e.tls; t.CACert != "" && t.ClientCert != "" && t.ClientKey != "" {
					o.CAFile, o.CertFile, o.KeyFile, o.VerifyServers = t.CACert, t.ClientCert, t.ClientKey, !t.Insecure
				}
				return simulate(ctx, e, o)
			}
		},
	}
}

func simulate(ctx context.Context, e *env, o agent.SimOptions) int {
	p := &simProgress{out: e.out, live: ui.NewLive(e.out)}
	if err := agent.Simulate(ctx, o, p.report); err != nil {
		return e.fail(err)
	}
	e.printf("Simulated nodes ended\n")
	return exitDone
}

// simProgress prints how many nodes have registered: in place on a terminal, at
// every tenth elsewhere.
type simProgress struct {
	out     io.Writer
	live    *ui.Live
	printed int // tenths printed
	done    bool
}

func (p *simProgress) report(registered, all int) {
	text := fmt.Sprintf("%d of %d nodes registered", registered, all)
	switch {
	case p.done:
	case registered == all:
		p.done = true
		p.live.Clear()
		_, _ = fmt.Fprintf(p.out, "%s\nRunning until interrupted\n", text)
	case p.live.On():
		p.live.Draw([]string{ui.Bar(registered, all, 30) + " " + text})
	case registered*10/all > p.printed:
		p.printed = registered * 10 / all
		_, _ = fmt.Fprintln(p.out, text)
	}
}
