package command

import (
	"context"
	"flag"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func nodePoolList() spec {
	return spec{
		synopsis: "List the node pools",
		usage:    "", example: "-filter 'Meta.owner == \"sre\"'", output: true,
		details: "Every node is in the pool \"all\". A node that states no pool is in the pool \"default\".",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No node pools", func(e *env) listOf[*structs.NodePool] { return e.client.NodePools().List }, poolRows)
		},
	}
}

// poolRows is a table of node pools.
func poolRows(pools []*structs.NodePool) [][]string {
	rows := [][]string{{"Name", "Description"}}
	for _, p := range pools {
		rows = append(rows, []string{p.Name, ui.OrNone(p.Description)})
	}
	return rows
}

func nodePoolInfo() spec {
	return spec{
		synopsis: "Show a node pool",
		usage:    "<node-pool>", example: "gpu", output: true,
		details: "The pool is given by its name or a prefix of it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return showOne(fs, nodePoolNamed, func(e *env, pool *structs.NodePool) error {
				pairs := []ui.Pair{{Key: "Name", Value: pool.Name}, {Key: "Description", Value: ui.OrNone(pool.Description)}}
				if pool.NodeIdentityTTL > 0 {
					pairs = append(pairs, ui.Pair{Key: "Node Identity TTL", Value: pool.NodeIdentityTTL.String()})
				}
				ui.Pairs(e.out, pairs)
				if len(pool.Meta) == 0 {
					e.printf("\n%s\nNo metadata\n", e.style.Bold("Metadata"))
				}
				showMap(&e.printer, "Metadata", pool.Meta)
				return nil
			})
		},
	}
}

// pageOfNodePool is a command that lists a page of what the pool has that its argument names: list requests it, none states
// that there is nothing, and rows are the table.
func pageOfNodePool[T any](
	fs *flag.FlagSet, none string, list func(api.NodePools, context.Context, string, *api.Query) ([]T, api.Meta, error),
	rows func(*env, []T) [][]string,
) func(context.Context, *env, []string) int {
	var l listFlags
	l.flags(fs)
	stale := staleFlag(fs)
	return func(ctx context.Context, e *env, args []string) int {
		stale(e)
		pool, err := nodePoolNamed(ctx, e, args)
		if err != nil {
			return e.fail(err)
		}
		items, meta, err := list(e.client.NodePools(), ctx, pool.Name, l.query(e))
		if err != nil {
			return e.fail(err)
		}
		return showPage(e, items, meta, l.token, none, rows)
	}
}

func nodePoolNodes() spec {
	return spec{
		synopsis: "List the nodes of a node pool",
		usage:    "<node-pool>", example: "-verbose gpu", output: true,
		details: "The pool is given by its name or a prefix of it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			verbose := fs.Bool("verbose", false, "print whole IDs, and more")
			return pageOfNodePool(fs, "No nodes", api.NodePools.ListNodes, func(e *env, nodes []*structs.NodeListStub) [][]string {
				return nodeRows(&e.printer, nodes, nil, nodeStatusOptions{verbose: *verbose})
			})
		},
	}
}

func nodePoolJobs() spec {
	return spec{
		synopsis: "List the jobs that name a node pool",
		usage:    "<node-pool>", example: "-namespace '*' gpu", output: true,
		details: "The pool is given by its name or a prefix of it. Jobs of the pool \"all\" are listed for that pool only, although they may\n" +
			"run on nodes of other pools.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfNodePool(fs, "No jobs", api.NodePools.ListJobs, jobRows)
		},
	}
}

func nodePoolDelete() spec {
	return spec{
		synopsis: "Delete a node pool",
		takes:    "node pool", usage: "<node-pool>", example: "gpu",
		details: "The pool must have no nodes, and no job that is not dead may use it. The built-in pools cannot be deleted.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return deleteNamed("node pool", func(e *env) func(context.Context, string) error { return e.client.NodePools().Delete })
		},
	}
}

func nodePoolApply() spec {
	return spec{
		synopsis: "Create or update a node pool",
		takes:    "file", usage: "<file>", example: "gpu.nomad.hcl",
		details: "The file is HCL (or JSON with -json); \"-\" reads standard input. The file replaces the whole pool: a field that it does not state is\n" +
			"cleared. `nomadish node pool init` writes an example.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			isJSON := fs.Bool("json", false, "the file is JSON, not HCL")
			return func(ctx context.Context, e *env, args []string) int {
				pool, err := readNodePool(e, args[0], *isJSON)
				if err != nil {
					return e.fail(err)
				}
				if pool.NodeIdentityTTL != 0 {
					e.eprintf("Warning: node_identity_ttl is kept, and has no effect yet: nodes have no identities\n")
				}
				if err := e.client.NodePools().Register(ctx, pool); err != nil {
					return e.fail(err)
				}
				e.printf("Successfully applied node pool %q!\n", pool.Name)
				return exitDone
			}
		},
	}
}
