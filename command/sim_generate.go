package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/command/tracefile"
	"github.com/nomadish/nomadish/scheduler/trace"
)

// simGenerateOptions is a `sim generate` as it was requested.
type simGenerateOptions struct {
	nodes, out, load, workflows string
	seed                        string
	span, stage, single         time.Duration
}

func simGenerate() spec {
	return spec{
		synopsis: "Generate a trace of workflows and single jobs for `sim run`",
		usage:    "", example: "-nodes examples/workflow-nodes.hcl -seed 1 -out mix.csv",
		local: true,
		details: "The trace is in the simple format (docs/guides/simulation.md), and the same for the same nodes, options and seed.\n" +
			"Sizes are counted in cores, or, where nodes have GPUs, in GPUs with their part of their node.\n" +
			"A workflow has three to six stages, the largest of which takes an eighth to a third of all nodes. Single jobs take 1 to 8 cores or GPUs.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o simGenerateOptions
			fs.StringVar(&o.nodes, "nodes", "", "a `file` with the nodes that the trace is for, as `sim run` reads it")
			fs.StringVar(&o.seed, "seed", "1", "what the random numbers begin with, a `number` from 0")
			fs.StringVar(&o.load, "load", "150%", "the demand, in `parts` of what the nodes can do in that time")
			fs.StringVar(&o.workflows, "workflows", "30%", "the `part` of the demand that is of workflows")
			fs.DurationVar(&o.span, "time", 24*time.Hour, "the `time` in which all arrives")
			fs.DurationVar(&o.stage, "stage", time.Hour, "the mean `time` that a stage takes")
			fs.DurationVar(&o.single, "single", 3*time.Minute, "the mean `time` that a single job takes")
			fs.StringVar(&o.out, "out", "", "the `file` for the trace")
			return func(_ context.Context, e *env, args []string) int {
				for _, f := range []struct{ name, value string }{{"-nodes FILE", o.nodes}, {"-out FILE", o.out}} {
					if f.value == "" {
						return e.usage("%s is needed", f.name)
					}
				}
				rows, err := o.rows()
				if err == nil {
					err = writeRows(o.out, rows)
				}
				if err != nil {
					return e.fail(err)
				}
				names := map[string]bool{}
				single := 0
				for _, r := range rows {
					if r.Workflow == nil {
						single++
					} else {
						names[r.Workflow.Name] = true
					}
				}
				e.printf("Written: %s, with %d workflows of %d jobs, and %d single jobs\n", o.out, len(names), len(rows)-single, single)
				return exitDone
			}
		},
	}
}

// rows draws the trace.
func (o *simGenerateOptions) rows() ([]*trace.Row, error) {
	m := tracefile.Mix{Span: o.span, Stage: o.stage, Single: o.single}
	var err error
	if m.Seed, err = strconv.ParseUint(o.seed, 10, 53); err != nil {
		return nil, fmt.Errorf("-seed %q: must be a number from 0", o.seed)
	}
	if m.Load, err = parsePart("-load", o.load, 100); err != nil {
		return nil, err
	}
	if m.Workflows, err = parsePart("-workflows", o.workflows, 1); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"-time", o.span}, {"-stage", o.stage}, {"-single", o.single}} {
		if f.value < time.Second || f.value > trace.MaxTime/100 {
			return nil, fmt.Errorf("%s %s: must be 1s to %s", f.name, f.value, trace.MaxTime/100)
		}
	}
	if m.Nodes, err = tracefile.OpenNodes(o.nodes); err != nil {
		return nil, err
	}
	rows, err := m.Rows()
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	return rows, nil
}

// parsePart reads "110%" or "1.1", from 0 to most.
func parsePart(name, text string, most float64) (float64, error) {
	v, err := parsePercent(text)
	if err != nil || !(v >= 0 && v <= most) {
		return 0, fmt.Errorf("%s %q: must be 0%% to %.0f%%", name, text, most*100)
	}
	return v, nil
}

func writeRows(path string, rows []*trace.Row) (err error) {
	f, err := os.Create(path) // the user names the file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return tracefile.WriteSimple(f, rows)
}
