package command

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// statsPatience bounds the wait for figures that only enrich a view.
const statsPatience = 2 * time.Second

// allocStatusOptions select how much of an allocation is shown.
type allocStatusOptions struct{ short, stats, verbose bool }

func allocStatus() spec {
	return spec{
		synopsis: "List allocations, or show one with its tasks",
		usage:    "[<allocation>]", example: "-stats 5f3a9c01", output: true, accepts: []string{"ui"},
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o allocStatusOptions
			fs.BoolVar(&o.short, "short", false, "only the head and the tasks' states")
			fs.BoolVar(&o.stats, "stats", false, "show what the tasks use, in detail")
			fs.BoolVar(&o.verbose, "verbose", false, "print whole IDs, and how the node was chosen")
			filter := fs.String("filter", "", "list only allocations that match an `expression`")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				switch len(args) {
				case 0:
					return listAllocs(ctx, e, *filter, o.verbose)
				case 1:
				default:
					return e.usage("one allocation is needed, %d given", len(args))
				}
				stub, err := e.oneAlloc(ctx, args[0])
				if err != nil {
					return e.fail(err)
				}
				alloc, _, err := e.client.Allocations().Info(ctx, stub.ID, e.query())
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(alloc); done {
					return code
				}
				return showAlloc(ctx, e, alloc, o)
			}
		},
	}
}

func listAllocs(ctx context.Context, e *env, filter string, verbose bool) int {
	q := e.query()
	q.Filter = filter
	allocs, _, err := e.client.Allocations().List(ctx, q)
	if err != nil {
		return e.fail(err)
	}
	if done, code := e.formatted(allocs); done {
		return code
	}
	if len(allocs) == 0 {
		e.printf("No allocations placed\n")
		return exitDone
	}
	ui.Table(e.out, allocJobRows(&e.printer, allocs, verbose))
	return exitDone
}

// allocJobRows is allocRows of allocations of more than one job.
func allocJobRows(p *printer, allocs []*structs.AllocListStub, verbose bool) [][]string {
	rows := allocRows(p, allocs, verbose)
	rows[0] = append(rows[0], "Job ID")
	for i, a := range newestFirst(allocs) {
		rows[i+1] = append(rows[i+1], a.JobID)
	}
	return rows
}

func showAlloc(ctx context.Context, e *env, a *structs.Allocation, o allocStatusOptions) int {
	pairs := allocHead(&e.printer, a, o.verbose)
	if text := e.preemptedText(ctx, a.PreemptedAllocations, a.Namespace); text != "" {
		ids := make([]string, 0, len(a.PreemptedAllocations))
		for _, id := range a.PreemptedAllocations {
			ids = append(ids, short(id, o.verbose))
		}
		if n := len(ids) - preemptedShown; n > 0 && !o.verbose {
			ids = append(ids[:preemptedShown], fmt.Sprintf("%d more", n))
		}
		pairs = append(pairs, ui.Pair{Key: "Preempted", Value: text + " (" + strings.Join(ids, ", ") + ")"})
	}
	ui.Pairs(e.out, pairs)
	if len(a.TaskStates) == 0 && a.Job == nil {
		return exitDone
	}
	if o.short {
		showTaskStates(&e.printer, a)
		return exitDone
	}
	showAddresses(&e.printer, a)
	showWhy(ctx, e, a)
	var used *structs.AllocResourceUsage
	code := exitDone
	if a.ClientStatus == structs.AllocClientRunning {
		limited, cancel := context.WithTimeout(ctx, statsPatience)
		var err error
		used, err = e.client.Allocations().Stats(limited, a.ID)
		cancel()
		if err != nil && o.stats {
			code = e.fail(fmt.Errorf("read the resource usage of the allocation: %w", err))
		}
	}
	for _, task := range taskNames(a) {
		showTask(&e.printer, a, task, used, o)
	}
	if o.verbose {
		showMetrics(&e.printer, a.Metrics)
	}
	return code
}

func allocHead(p *printer, a *structs.Allocation, verbose bool) []ui.Pair {
	now := p.now()
	pairs := []ui.Pair{
		{Key: "ID", Value: a.ID}, {Key: "Eval ID", Value: short(a.EvalID, verbose)}, {Key: "Name", Value: a.Name},
		{Key: "Node ID", Value: short(a.NodeID, verbose)}, {Key: "Node Name", Value: a.NodeName},
		{Key: "Job ID", Value: a.JobID}, {Key: "Job Version", Value: fmt.Sprint(a.JobVersion)},
		{Key: "Client Status", Value: a.ClientStatus}, {Key: "Client Description", Value: ui.OrNone(a.ClientDescription)},
		{Key: "Desired Status", Value: a.DesiredStatus}, {Key: "Desired Description", Value: ui.OrNone(a.DesiredDescription)},
		{Key: "Created", Value: ui.Ago(a.CreateTime, now)}, {Key: "Modified", Value: ui.Ago(a.ModifyTime, now)},
	}
	more := func(key, value string) {
		if value != "" {
			pairs = append(pairs, ui.Pair{Key: key, Value: value})
		}
	}
	if class, claim := a.ClassAndClaim(); claim != nil {
		more("Class", fmt.Sprintf("%s (%s)", class, claimText(claim)))
	}
	if g := a.Gang; g != nil {
		more("Gang", gangText(g))
		if verbose {
			more("Gang Hosts", strings.Join(g.Hosts, ","))
		}
	}
	if d := a.DeploymentStatus; d != nil && d.Healthy != nil {
		health := "unhealthy"
		if *d.Healthy {
			health = "healthy"
		}
		more("Health", health)
	}
	if t := a.RescheduleTracker; t != nil && len(t.Events) > 0 {
		more("Reschedules", fmt.Sprint(len(t.Events)))
	}
	more("Replacement Of", short(a.PreviousAllocation, verbose))
	more("Replaced By", short(a.NextAllocation, verbose))
	more("Follow-up Eval", short(a.FollowupEvalID, verbose))
	more("Preempted By", short(a.PreemptedByAllocation, verbose))
	if a.Requeues > 0 {
		more("Requeues", fmt.Sprintf("%d (the last: %s)", a.Requeues, a.RequeueReason))
	}
	return pairs
}
