package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

func nodeMetaApply() spec {
	return spec{
		synopsis: "Change the metadata of a node while it runs",
		usage:    "[<key>=<value> ...]", example: "-node-id gpu-3 -unset canary rack=r7",
		details: "Values set here override the metadata of the agent's configuration and survive a restart of the agent. The node\n" +
			"registers the change at once, or within a second of an earlier change.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			node := fs.String("node-id", "", "the `node` (default: the node of the agent at -address)")
			unset := fs.String("unset", "", "`keys` to unset, with commas between them; also those of the configuration")
			return func(ctx context.Context, e *env, args []string) int {
				change, err := metaChange(args, *unset)
				if err != nil {
					return e.usage("%s", err)
				}
				id, err := e.metaNode(ctx, *node)
				if err != nil {
					return e.fail(err)
				}
				if _, err := e.client.Nodes().ApplyMeta(ctx, id, change); err != nil {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

// metaChange reads what is to be set and unset.
func metaChange(pairs []string, unset string) (map[string]*string, error) {
	change := map[string]*string{}
	for key := range strings.SplitSeq(unset, ",") {
		if key = strings.TrimSpace(key); key != "" {
			change[key] = nil
		}
	}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%q: write it as key=value", pair)
		}
		if was, twice := change[key]; twice {
			if was == nil {
				return nil, fmt.Errorf("%q is to be set and unset", key)
			}
			return nil, fmt.Errorf("%q is stated twice", key)
		}
		change[key] = &value
	}
	if len(change) == 0 {
		return nil, errors.New("nothing is to be changed: name key=value pairs, or keys with -unset")
	}
	return change, nil
}

// metaNode is the ID of the node that -node-id states; empty: the agent's own.
func (e *env) metaNode(ctx context.Context, stated string) (string, error) {
	if stated == "" {
		return "", nil
	}
	return e.nodeID(ctx, []string{stated}, false)
}

func nodeMetaRead() spec {
	return spec{
		synopsis: "Show the metadata of a node, read from its client",
		counts:   true, usage: "", example: "-node-id gpu-3", output: true,
		details: "`node status -verbose` shows the metadata that the servers schedule by. A change reaches the servers within about a\n" +
			"second.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			node := fs.String("node-id", "", "the `node` (default: the node of the agent at -address)")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) > 0 {
					return e.usage("no arguments are taken, %d given; a node is named with -node-id", len(args))
				}
				id, err := e.metaNode(ctx, *node)
				if err != nil {
					return e.fail(err)
				}
				meta, err := e.client.Nodes().Meta(ctx, id)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(meta); done {
					return code
				}
				showNodeMeta(&e.printer, meta)
				return exitDone
			}
		},
	}
}

func showNodeMeta(p *printer, meta *structs.NodeMeta) {
	dynamic := make(map[string]string, len(meta.Dynamic))
	for key, value := range meta.Dynamic {
		dynamic[key] = "<unset>"
		if value != nil {
			dynamic[key] = *value
		}
	}
	for i, part := range []struct {
		title string
		pairs map[string]string
	}{{"All Meta", meta.Meta}, {"Dynamic Meta", dynamic}, {"Static Meta", meta.Static}} {
		if i > 0 {
			p.printf("\n")
		}
		p.printf("%s\n", p.style.Bold(part.title))
		if len(part.pairs) == 0 {
			p.printf("<none>\n")
			continue
		}
		showPairs(p, part.pairs)
	}
}
