package command

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/command/ui"
)

func raftListPeers() spec {
	return spec{
		synopsis: "List the servers of the Raft cluster",
		usage:    "", example: "", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, _ []string) int {
				stale(e)
				conf, err := e.client.RaftConfig(ctx)
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
			}
		},
	}
}

// peerFlags name one server.
type peerFlags struct{ id, address string }

func (p *peerFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&p.id, "peer-id", "", "the server's `ID`, as list-peers shows it")
	fs.StringVar(&p.address, "peer-address", "", "the server's `host:port`, instead of its ID")
}

func (p *peerFlags) check() error {
	if (p.id == "") == (p.address == "") {
		return errors.New("either -peer-id or -peer-address is needed (`nomadish operator raft list-peers` lists them)")
	}
	return nil
}

func (p *peerFlags) String() string { return p.id + p.address }

func raftRemovePeer() spec {
	return spec{
		synopsis: "Remove a server that will not come back from the Raft cluster",
		usage:    "", example: "-peer-id 01976c1c-5f3a-7c11-a9d0-5d1f2b3c4d5e",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var peer peerFlags
			peer.flags(fs)
			return func(ctx context.Context, e *env, _ []string) int {
				if err := peer.check(); err != nil {
					return e.usage("%v", err)
				}
				if err := e.client.RaftRemovePeer(ctx, peer.id, peer.address); err != nil {
					return e.fail(err)
				}
				e.printf("Removed peer %s\n", &peer)
				return exitDone
			}
		},
	}
}

func raftTransfer() spec {
	return spec{
		synopsis: "Hand leadership to another server",
		usage:    "", example: "-peer-address 10.0.0.2:4647",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var peer peerFlags
			peer.flags(fs)
			return func(ctx context.Context, e *env, _ []string) int {
				if err := peer.check(); err != nil {
					return e.usage("%v", err)
				}
				if err := e.client.RaftTransfer(ctx, peer.id, peer.address); err != nil {
					return e.fail(err)
				}
				e.printf("Leadership transferred to %s\n", &peer)
				return exitDone
			}
		},
	}
}
