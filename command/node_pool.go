package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// listFlags are those of a command that lists a page of something.
type listFlags struct {
	filter, token string
	perPage       int
}

func (l *listFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&l.filter, "filter", "", "list only those that match an `expression`")
	fs.IntVar(&l.perPage, "per-page", 0, "list at most `N`")
	fs.StringVar(&l.token, "page-token", "", "go on where the page before ended, by its `token`")
}

// query is the read options of the page.
func (l *listFlags) query(e *env) *api.Query {
	q := e.query()
	q.Filter, q.PerPage, q.NextToken = l.filter, l.perPage, l.token
	return q
}

// pageError returns what is wrong with the flags for a page, before the request.
func pageError(perPage int) error {
	if perPage < 0 {
		return fmt.Errorf("-per-page %d: allowed are 0 and more", perPage)
	}
	return nil
}

// errNothingFollows is of a page that is empty although a token stated where it begins.
func errNothingFollows(token string) error {
	return fmt.Errorf("nothing follows -page-token %q: the token is not from this list, or everything after it was removed", token)
}

// more prints where the next page begins, if there is one.
func (e *env) more(meta api.Meta) {
	if meta.NextToken != "" {
		e.printf("\nThere are more; go on with -page-token %s\n", meta.NextToken)
	}
}

// showPage prints a page of a list that begins at token: as -json or -t requests, else the table of rows, or none if there is
// nothing at all.
func showPage[T any](e *env, items []T, meta api.Meta, token, none string, rows func(*env, []T) [][]string) int {
	if done, code := e.formatted(items); done {
		return code
	}
	if len(items) == 0 && token != "" {
		return e.fail(errNothingFollows(token))
	}
	if len(items) == 0 {
		e.printf("%s\n", none)
		return exitDone
	}
	ui.Table(e.out, rows(e, items))
	e.more(meta)
	return exitDone
}

// pageOfAll is a command without arguments that lists a page: list reads it, none states that there is nothing, and rows are
// the table.
func pageOfAll[T any](
	fs *flag.FlagSet, none string, list func(context.Context, *env, *api.Query) ([]T, api.Meta, error), rows func([]T) [][]string,
) func(context.Context, *env, []string) int {
	var l listFlags
	l.flags(fs)
	stale := staleFlag(fs)
	return func(ctx context.Context, e *env, args []string) int {
		stale(e)
		items, meta, err := list(ctx, e, l.query(e))
		if err != nil {
			return e.fail(err)
		}
		return showPage(e, items, meta, l.token, none, func(_ *env, items []T) [][]string { return rows(items) })
	}
}

func nodePoolList() spec {
	return spec{
		synopsis: "List the node pools",
		usage:    "", example: "-filter 'Meta.owner == \"sre\"'", output: true,
		details: "Every node is in the pool \"all\". A node that states no pool is in the pool \"default\".",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			return pageOfAll(fs, "No node pools", func(ctx context.Context, e *env, q *api.Query) ([]*structs.NodePool, api.Meta, error) {
				return e.client.NodePools().List(ctx, q)
			}, poolRows)
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
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				pool, err := e.nodePool(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(pool); done {
					return code
				}
				pairs := []ui.Pair{{Key: "Name", Value: pool.Name}, {Key: "Description", Value: ui.OrNone(pool.Description)}}
				if pool.NodeIdentityTTL > 0 {
					pairs = append(pairs, ui.Pair{Key: "Node Identity TTL", Value: pool.NodeIdentityTTL.String()})
				}
				ui.Pairs(e.out, pairs)
				if len(pool.Meta) == 0 {
					e.printf("\n%s\nNo metadata\n", e.style.Bold("Metadata"))
				}
				showMap(&e.printer, "Metadata", pool.Meta)
				return exitDone
			}
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
		pool, err := e.nodePool(ctx, args)
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
			return func(ctx context.Context, e *env, args []string) int {
				if err := e.client.NodePools().Delete(ctx, args[0]); err != nil {
					return e.fail(err)
				}
				e.printf("Successfully deleted node pool %q!\n", args[0])
				return exitDone
			}
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
