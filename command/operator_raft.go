package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/printable"
)

func raftListPeers() spec {
	return spec{
		synopsis: "List the servers of the Raft cluster",
		usage:    "", example: "", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := staleFlag(fs)
			return withoutArgs(func(ctx context.Context, e *env) int {
				stale(e)
				conf, err := e.client.Operator().RaftConfig(ctx)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(conf); done {
					return code
				}
				rows := [][]string{{"Node", "ID", "Address", "State", "Voter", "RaftProtocol"}}
				for _, s := range conf.Servers {
					state := "follower"
					if s.Leader {
						state = "leader"
					}
					rows = append(rows, []string{s.Node, s.ID, s.Address, state, fmt.Sprint(s.Voter), ui.OrNone(s.RaftProtocol)})
				}
				ui.Table(e.out, rows)
				return exitDone
			})
		},
	}
}

// peer is the one server that is meant, by a flag or by an argument.
type peer struct{ id, address string }

func (p *peer) flags(fs *flag.FlagSet) {
	fs.StringVar(&p.id, "peer-id", "", "the server's `ID`, as list-peers shows it")
	fs.StringVar(&p.address, "peer-address", "", "the server's `host:port`, instead of its ID")
}

// named checks that one server is named, once, and returns what it was called.
func (p *peer) named(args []string) (string, error) {
	switch {
	case p.id != "" && p.address != "":
		return "", errors.New("-peer-id and -peer-address exclude each other: use one of them")
	case len(args) > 1, len(args) == 1 && p.id+p.address != "":
		return "", fmt.Errorf("exactly one server is needed, but several are named (%s)", strings.TrimSpace(p.id+p.address+" "+strings.Join(args, " ")))
	case len(args) == 0 && p.id+p.address == "":
		return "", errors.New("a server is needed: its NAME, -peer-id or -peer-address (`nomadish operator raft list-peers` lists them)")
	case len(args) == 1:
		return args[0], nil
	}
	return p.id + p.address, nil
}

// find looks up the server that an argument names, if there is one: by its name, with or without the region, its ID or address.
func (p *peer) find(ctx context.Context, e *env, args []string) error {
	if len(args) == 0 {
		return nil
	}
	conf, err := e.client.Operator().RaftConfig(ctx)
	if err != nil {
		return err
	}
	var all []string
	n := 0
	for _, s := range conf.Servers {
		plain := s.Node
		if at := strings.LastIndex(plain, "."); at > 0 { // a region's name has none
			plain = plain[:at]
		}
		if slices.Contains([]string{s.ID, s.Node, plain, s.Address}, args[0]) {
			p.id = s.ID
			n++
		}
		all = append(all, fmt.Sprintf("%s (%s at %s)", s.Node, s.ID, s.Address))
	}
	switch {
	case n == 0:
		return fmt.Errorf("no server %q in the Raft configuration; there are %s", args[0], printable.EscapeLine(strings.Join(all, ", ")))
	case n > 1:
		return fmt.Errorf("%d servers are named %q: use the ID of one; the servers are %s", n, args[0], printable.EscapeLine(strings.Join(all, ", ")))
	}
	return nil
}

// peerCommand is a command about one server.
func peerCommand(do func(ctx context.Context, e *env, p *peer) error, done string) func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
	return func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
		var p peer
		p.flags(fs)
		return func(ctx context.Context, e *env, args []string) int {
			name, err := p.named(args)
			if err != nil {
				return e.usage("%v", err)
			}
			if err := p.find(ctx, e, args); err != nil {
				return e.fail(err)
			}
			wait := e.waiting("waiting for the leader")
			err = do(ctx, e, &p)
			wait.stop()
			if err != nil {
				return e.fail(err)
			}
			e.printf("%s %s\n", done, name)
			return exitDone
		}
	}
}

func raftRemovePeer() spec {
	return spec{
		synopsis: "Remove a server that will not come back from the Raft cluster",
		usage:    "[NAME]", example: "server-3",
		details: "The server is given by its name, or by -peer-id or -peer-address. A server that is alive is refused, because the leader would add it\n" +
			"again at once.",
		setup: peerCommand(func(ctx context.Context, e *env, p *peer) error {
			return e.client.Operator().RaftRemovePeer(ctx, p.id, p.address)
		}, "Removed peer"),
	}
}

func raftTransfer() spec {
	return spec{
		synopsis: "Transfer leadership to another server",
		usage:    "[NAME]", example: "server-2",
		details: "The server is named by its name, or by -peer-id or -peer-address.",
		setup: peerCommand(func(ctx context.Context, e *env, p *peer) error {
			return e.client.Operator().RaftTransfer(ctx, p.id, p.address)
		}, "Leadership transferred to"),
	}
}
