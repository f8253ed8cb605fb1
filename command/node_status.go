package command

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// nodeStatusOptions select how much of nodes is shown.
type nodeStatusOptions struct {
	self, short, verbose, stats, allocs, os, quiet bool
	filter, token                                  string
	perPage                                        int
}

func nodeStatus() spec {
	return spec{
		synopsis: "List nodes, or show one with what runs on it",
		usage:    "[<node>]", accepts: []string{"ui"}, example: "-verbose gpu-3", output: true,
		details: "A node is named by its ID, the beginning of it, or its name.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o nodeStatusOptions
			fs.BoolVar(&o.self, "self", false, "the agent's own node")
			fs.BoolVar(&o.short, "short", false, "only the head and the allocations")
			fs.BoolVar(&o.verbose, "verbose", false, "print whole IDs, attributes and meta")
			fs.BoolVar(&o.stats, "stats", false, "show what the machine uses, in detail")
			fs.BoolVar(&o.allocs, "allocs", false, "in the list, count the running allocations")
			fs.BoolVar(&o.os, "os", false, "in the list, show the operating system")
			fs.StringVar(&o.filter, "filter", "", "list only nodes that match an `expression`")
			fs.BoolVar(&o.quiet, "quiet", false, "print only IDs")
			fs.IntVar(&o.perPage, "per-page", 0, "list at most `N`")
			fs.StringVar(&o.token, "page-token", "", "go on where the page before ended, by its `token`")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				if o.quiet && (o.verbose || e.json || e.template != "") {
					return e.usage("-quiet excludes -verbose, -json and -t")
				}
				if len(args) == 0 && !o.self {
					return listNodes(ctx, e, o)
				}
				id, err := e.nodeID(ctx, args, o.self)
				if err != nil {
					return e.fail(err)
				}
				if o.quiet {
					e.printf("%s\n", id)
					return exitDone
				}
				node, _, err := e.client.Nodes().Info(ctx, id, nil)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(node); done {
					return code
				}
				return showNode(ctx, e, node, o)
			}
		},
	}
}

// nodeID finds the node that is named, or that the agent itself is.
func (e *env) nodeID(ctx context.Context, args []string, self bool) (string, error) {
	id, _, err := e.foundNode(ctx, args, self)
	return id, err
}

// foundNode is nodeID. guess is what was given, if that is only the beginning of the node's ID.
func (e *env) foundNode(ctx context.Context, args []string, self bool) (id, guess string, err error) {
	if self {
		if len(args) > 0 {
			return "", "", errors.New("-self and a node exclude each other")
		}
		agent, err := e.client.Agent().Self(ctx)
		if err != nil {
			return "", "", err
		}
		if agent.NodeID() == "" {
			return "", "", fmt.Errorf("the agent at %s runs no client: name a node", e.client.Address())
		}
		return agent.NodeID(), "", nil
	}
	if len(args) != 1 {
		return "", "", fmt.Errorf("one node is needed, %d given", len(args))
	}
	stub, err := e.oneNode(ctx, args[0])
	if err != nil {
		return "", "", err
	}
	return stub.ID, guessed(args[0], stub.ID, stub.Name), nil
}

func listNodes(ctx context.Context, e *env, o nodeStatusOptions) int {
	q := &api.Query{Filter: o.filter, PerPage: o.perPage, NextToken: o.token}
	if o.os {
		q.Params = map[string]string{"os": "true"}
	}
	nodes, meta, err := e.client.Nodes().List(ctx, q)
	if err != nil {
		return e.fail(err)
	}
	if done, code := e.formatted(nodes); done {
		return code
	}
	if len(nodes) == 0 && o.token != "" {
		return e.fail(errNothingFollows(o.token))
	}
	if len(nodes) == 0 {
		e.printf("No nodes registered\n")
		return exitDone
	}
	if o.quiet {
		for _, n := range nodes {
			e.printf("%s\n", n.ID)
		}
		return exitDone
	}
	running := map[string]int{}
	if o.allocs {
		allocs, _, err := e.client.Allocations().List(ctx, &api.Query{Namespace: structs.AllNamespaces, Filter: `ClientStatus == "running"`})
		if err != nil {
			return e.fail(err)
		}
		for _, a := range allocs {
			running[a.NodeID]++
		}
	}
	ui.Table(e.out, nodeRows(&e.printer, nodes, running, o))
	for _, n := range nodes {
		if n.StatusDescription != "" && n.Status == structs.NodeStatusReady {
			e.printf("\n%s takes no new work: %s\n", n.Name, n.StatusDescription)
		}
	}
	e.more(meta)
	return exitDone
}

func nodeRows(p *printer, nodes []*structs.NodeListStub, running map[string]int, o nodeStatusOptions) [][]string {
	head := []string{"ID", "Node Pool", "DC", "Name", "Class"}
	if o.os {
		head = append(head, "OS")
	}
	if o.verbose {
		head = append(head, "Address", "Version")
	}
	head = append(head, "Drain", "Eligibility", "Status")
	if o.allocs {
		head = append(head, "Running Allocs")
	}
	rows := [][]string{head}
	for _, n := range nodes {
		row := []string{short(n.ID, o.verbose), n.NodePool, n.Datacenter, n.Name, ui.OrNone(n.NodeClass)}
		if o.os {
			row = append(row, ui.OrNone(n.Attributes["os.name"]))
		}
		if o.verbose {
			row = append(row, n.Address, n.Version)
		}
		row = append(row, fmt.Sprint(n.Drain), n.SchedulingEligibility, n.Status)
		if o.allocs {
			row = append(row, fmt.Sprint(running[n.ID]))
		}
		rows = append(rows, row)
	}
	return rows
}
