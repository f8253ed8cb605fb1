package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

func simHealth() spec {
	return spec{
		synopsis: "Mark a simulated node or GPU as bad or good",
		usage:    "<node or GPU> bad|good", example: "dgx-0-gpu-3 bad",
		details: "A GPU is named <node>-gpu-<number>, a MIG slice <GPU>-mig-<number>. A node that is made bad is down until it is made good\n" +
			"again. The command reaches whichever process simulates the node.",
		setup: func(*flag.FlagSet) func(context.Context, *env, []string) int {
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) != 2 || args[1] != "bad" && args[1] != "good" {
					return e.usage("the name of a simulated node or GPU is needed, and bad or good")
				}
				node, device, err := e.simulated(ctx, args[0])
				if err == nil {
					err = e.client.Nodes().SetSimHealth(ctx, node, device, args[1] == "good")
				}
				if err != nil {
					return e.fail(err)
				}
				e.printf("%s is %s\n", args[0], args[1])
				return exitDone
			}
		},
	}
}

// simulated finds the node of a name, or the node that has the GPU of that name.
func (e *env) simulated(ctx context.Context, name string) (node, device string, err error) {
	names := []string{name}
	if i := strings.LastIndex(name, "-gpu-"); i > 0 {
		names = append(names, name[:i])
	}
	q := e.query()
	for i, want := range names {
		q.Filter = fmt.Sprintf("Name == %q", want)
		var nodes []*structs.NodeListStub
		if nodes, _, err = e.client.Nodes().List(ctx, q); err != nil {
			return "", "", err
		}
		if len(nodes) > 1 {
			return "", "", fmt.Errorf("%d nodes are named %q; only the name of one can be used", len(nodes), want)
		}
		if len(nodes) == 1 {
			if i > 0 {
				device = name
			}
			return nodes[0].ID, device, nil
		}
	}
	return "", "", fmt.Errorf("no node or GPU is named %q; `node status` lists the nodes, GPUs are named <node>-gpu-<number>", name)
}
