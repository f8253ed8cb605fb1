package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func scalingPolicyList() spec {
	return spec{
		synopsis: "List the scaling policies of jobs",
		usage:    "", example: "-job web", output: true,
		details: "A policy is the scaling block of a group. An autoscaler reads the policies and scales the jobs. The servers keep every\n" +
			"count, also one of \"job scale\", between min and max.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			job := fs.String("job", "", "only those of a `job`")
			kind := fs.String("type", "", "only those of a `type`: there is horizontal")
			fs.Bool("verbose", false, "accepted as elsewhere: IDs are always whole")
			return func(ctx context.Context, e *env, args []string) int {
				q := e.query()
				q.Params = map[string]string{}
				if *job != "" {
					q.Params["job"] = *job
				}
				if *kind != "" {
					q.Params["type"] = *kind
				}
				policies, _, err := e.client.Scaling().ListPolicies(ctx, q)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(policies); done {
					return code
				}
				if len(policies) == 0 {
					e.printf("No policies found\n")
					return exitDone
				}
				ui.Table(e.out, scalingPolicyRows(policies))
				return exitDone
			}
		},
	}
}

func scalingPolicyRows(policies []*structs.ScalingPolicyListStub) [][]string {
	rows := [][]string{{"ID", "Enabled", "Type", "Target"}}
	for _, p := range policies {
		rows = append(rows, []string{p.ID, fmt.Sprint(p.Enabled), p.Type, scalingTarget(p.Target)})
	}
	return rows
}

// scalingTarget is what a policy is for, from the widest to the narrowest.
func scalingTarget(target map[string]string) string {
	var parts []string
	for _, key := range []string{"Namespace", "Job", "Group", "Task"} {
		if v := target[key]; v != "" {
			parts = append(parts, key+":"+v)
		}
	}
	return strings.Join(parts, ",")
}

func scalingPolicyInfo() spec {
	return spec{
		synopsis: "Show a scaling policy",
		takes:    "policy", usage: "<policy>", example: "31a53813", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			fs.Bool("verbose", false, "accepted as elsewhere: IDs are always whole")
			return func(ctx context.Context, e *env, args []string) int {
				e.namespace = structs.AllNamespaces // an ID is of one namespace alone
				stub, err := one(ctx, e, kind[*structs.ScalingPolicyListStub]{
					word: "scaling policy",
					list: e.client.Scaling().ListPolicies,
					id:   func(p *structs.ScalingPolicyListStub) string { return p.ID },
					name: func(p *structs.ScalingPolicyListStub) string { return scalingTarget(p.Target) },
					rows: func(p []*structs.ScalingPolicyListStub, _ bool) [][]string { return scalingPolicyRows(p) },
				}, args[0])
				if err != nil {
					return e.fail(err)
				}
				p, _, err := e.client.Scaling().GetPolicy(ctx, stub.ID, e.query())
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(p); done {
					return code
				}
				showScalingPolicy(&e.printer, p)
				return exitDone
			}
		},
	}
}

func showScalingPolicy(to *printer, p *structs.ScalingPolicy) {
	ui.Pairs(to.out, []ui.Pair{
		{Key: "ID", Value: p.ID}, {Key: "Enabled", Value: fmt.Sprint(p.Enabled)}, {Key: "Target", Value: scalingTarget(p.Target)},
		{Key: "Min", Value: fmt.Sprint(p.Min)}, {Key: "Max", Value: fmt.Sprint(p.Max)},
	})
	policy := p.Policy
	if policy == nil {
		policy = map[string]any{}
	}
	to.printf("\n%s\n", to.style.Bold("Policy:"))
	if err := ui.JSON(to.out, policy); err != nil {
		to.printf("%s\n", err)
	}
}
