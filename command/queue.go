package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func queueCmd() spec {
	return spec{
		synopsis: "Show the requests that wait for placement, in queue order, with the reason",
		usage:    "", example: "-namespace '*' -node-pool gpu", output: true,
		details: "Lists every group of a job that is not fully placed, with its position in the queue of its node pool. The priority shown is the\n" +
			"effective priority: the job's own, plus a bonus that grows with the time the group waits and with each requeue; that of\n" +
			"a job whose project has slots for it is higher by 100 (allocated_bonus). -verbose shows the parts. Expected and Latest are when all of\n" +
			"the missing instances have started, as the last forecast has it: if all runs as long as finished runs of its job or user took, and\n" +
			"if all that runs takes all the time that it may.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			pool := fs.String("node-pool", "", "only the queue of a node `pool`")
			job := fs.String("job", "", "only jobs whose ID begins with a `prefix`")
			var l listFlags
			l.flagsOf(fs, "only those that match an `expression`", "at most `N`; not given: all")
			verbose := fs.Bool("verbose", false, "print whole IDs, and what the priority is made of")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				if err := pageError(l.perPage); err != nil {
					return e.usage("%v", err)
				}
				q := l.query(e)
				q.Prefix = *job
				entries, meta, err := queuePages(ctx, e, *pool, q)
				if err != nil {
					return e.fail(err)
				}
				if done, code := e.formatted(entries); done {
					return code
				}
				if len(entries) == 0 && *pool != "" { // a name that is wrong must not look like an empty queue
					if _, _, err := e.client.NodePools().Info(ctx, *pool, nil); err != nil {
						return e.fail(err)
					}
				}
				switch {
				case len(entries) == 0 && l.token != "":
					return e.fail(errNothingFollows(l.token))
				case len(entries) > 0:
					ui.Table(e.out, queueRows(entries, e.namespace == structs.AllNamespaces, *verbose, e.now()))
					printForecastOf(ctx, e, entries)
				default:
					printNothingWaits(ctx, e, *pool, q)
				}
				if l.token+q.Filter+q.Prefix == "" {
					printWaitingWorkflows(ctx, e, *pool)
				}
				e.more(meta)
				return exitDone
			}
		},
	}
}

// printNothingWaits prints that nothing that was requested waits, and whether jobs of other namespaces do: they share the queue.
func printNothingWaits(ctx context.Context, e *env, pool string, q *api.Query) {
	what, all := "Nothing waits", "The queue is empty."
	if q.Filter+q.Prefix != "" {
		what, all = "Nothing of that kind waits", "Nothing of that kind is in the queue."
	}
	namespace := api.Config{Namespace: e.namespace}.FromEnv().Namespace
	if namespace == structs.AllNamespaces {
		e.printf("%s\n", all)
		return
	}
	other := e.query()
	other.Namespace, other.Filter, other.Prefix, other.PerPage = structs.AllNamespaces, q.Filter, q.Prefix, queuePage
	entries, meta, err := e.client.Queue(ctx, pool, other)
	if err != nil || len(entries) == 0 { // what was requested has been answered
		e.printf("%s\n", all)
		return
	}
	jobs := map[structs.NamespacedID]bool{}
	for _, x := range entries {
		jobs[structs.NamespacedID{ID: x.JobID, Namespace: x.Namespace}] = true
	}
	count := plural(len(jobs), "job") + " " + verb(len(jobs), "waits", "wait")
	if meta.NextToken != "" {
		count = "more than " + count
	}
	e.printf("%s in namespace %s; %s in others (-namespace '*').\n", what, cmp.Or(namespace, structs.DefaultNamespace), count)
}

// printWaitingWorkflows prints the workflows whose reservation is pending, those first that are to have theirs first.
func printWaitingWorkflows(ctx context.Context, e *env, pool string) {
	list, _, err := e.client.Workflows().List(ctx, e.query())
	if err != nil { // what was requested has been answered
		return
	}
	list = slices.DeleteFunc(list, func(w *structs.WorkflowStub) bool {
		return w.State != structs.WorkflowPending || pool != "" && w.NodePool != pool
	})
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(a, b *structs.WorkflowStub) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.SubmitTime, b.SubmitTime))
	})
	foreseen := slices.ContainsFunc(list, func(w *structs.WorkflowStub) bool { return w.Forecast != nil })
	rows := [][]string{{"Workflow", "Namespace", "Pool", "Priority", "Waited", "Reason"}}
	starts := make([]forecastCell, 0, len(list))
	for _, w := range list {
		row := []string{w.ID, w.Namespace, w.NodePool, fmt.Sprint(w.Priority), ui.Short(e.now().Sub(time.Unix(0, w.SubmitTime))), ui.OrNone(w.Missing)}
		if foreseen {
			expected, latest := forecastCells(w.Forecast, e.now())
			row = slices.Insert(row, 5, expected, latest)
		}
		rows, starts = append(rows, row), append(starts, forecastCell{w.ID, w.ModifyIndex, w.Forecast})
	}
	if foreseen {
		rows[0] = slices.Insert(rows[0], 5, "Expected", "Latest")
	}
	e.printf("\nWorkflows that wait for their reservation\n")
	ui.Table(e.out, rows)
	printForecast(ctx, e, starts, "Expected and latest start of their first stages", "nomadish workflow status <workflow>")
}

// queuePage is how many entries are requested at once where all are shown.
const queuePage = 1000

// queuePages reads the queue: one page if its length or its beginning is given, else all of it, page by page.
func queuePages(ctx context.Context, e *env, pool string, q *api.Query) ([]*structs.QueueEntry, api.Meta, error) {
	if q.PerPage > 0 || q.NextToken != "" {
		return e.client.Queue(ctx, pool, q)
	}
	q.PerPage = queuePage
	all := []*structs.QueueEntry{}
	for {
		entries, meta, err := e.client.Queue(ctx, pool, q)
		if err != nil {
			return nil, meta, err
		}
		all = append(all, entries...)
		if meta.NextToken == "" || len(entries) == 0 {
			return all, meta, nil
		}
		q.NextToken = meta.NextToken
	}
}

// standingNames name the standings, which are compared before anything else.
var standingNames = [...]string{
	structs.StandingEntitled: "entitled", structs.StandingRecognised: "recognised", structs.StandingNormal: "normal", structs.StandingFailed: "failed",
}

// queueRows is a table of the queue. Pools are shown where they differ, namespaces also where those of all are requested, users where there
// are any that differ, standings where not all are normal.
func queueRows(entries []*structs.QueueEntry, all, verbose bool, now time.Time) [][]string {
	first := entries[0]
	pools := verbose || slices.ContainsFunc(entries, func(x *structs.QueueEntry) bool { return x.NodePool != first.NodePool })
	spaces := all || verbose || slices.ContainsFunc(entries, func(x *structs.QueueEntry) bool { return x.Namespace != first.Namespace })
	users := slices.ContainsFunc(entries, func(x *structs.QueueEntry) bool { return x.User != first.User || verbose && x.User != "" })
	foreseen := slices.ContainsFunc(entries, func(x *structs.QueueEntry) bool { return x.Forecast != nil })
	standings := slices.ContainsFunc(entries, func(x *structs.QueueEntry) bool { return x.Priority.Standing != structs.StandingNormal })
	rows := [][]string{nil}
	for i, x := range entries {
		var row []string
		cell := func(title, value string) {
			if i == 0 {
				rows[0] = append(rows[0], title)
			}
			row = append(row, value)
		}
		if pools {
			cell("Pool", x.NodePool)
		}
		cell("Position", fmt.Sprint(x.Place))
		if spaces {
			cell("Namespace", x.Namespace)
		}
		cell("Job ID", x.JobID)
		cell("Group", x.Group)
		if s := x.Priority.Standing; standings && s >= 0 && s < len(standingNames) {
			cell("Standing", standingNames[s])
		}
		if verbose {
			cell("Band", fmt.Sprintf("%d-%d", x.Priority.BandRange.Low, x.Priority.BandRange.High))
			cell("Priority", priorityParts(&x.Priority))
			cell("Class", x.Class)
		} else {
			cell("Priority", fmt.Sprint(x.Priority.Total))
		}
		if spaces {
			cell("Share", fmt.Sprintf("%d %%", x.Share))
		}
		if users {
			cell("User", ui.OrNone(x.User))
			cell("User Share", fmt.Sprintf("%d %%", x.UserShare))
		}
		cell("Missing", fmt.Sprintf("%d of %d", x.Missing, x.Wanted))
		cell("Waited", ui.Short(x.Waited))
		if foreseen {
			expected, latest := forecastCells(x.Forecast, now)
			cell("Expected", expected)
			cell("Latest", latest)
		}
		if verbose {
			cell("Eval ID", ui.OrNone(x.EvalID))
		}
		cell("State", x.StateText())
		cell("Reason", ui.OrNone(x.ReasonText()))
		rows = append(rows, row)
	}
	return rows
}

// forecastCells are when all that waits of an entry has started, as is expected and at the latest.
func forecastCells(f *structs.QueueForecast, now time.Time) (expected, latest string) {
	if f == nil {
		return "not yet", "not yet"
	}
	return clockTime(f.Expected, now), clockTime(f.Latest, now)
}

// forecastCell is what a table states of the start of something.
type forecastCell struct {
	name    string
	changed uint64                 // the index with which it came, or changed
	is      *structs.QueueForecast // nil: nothing yet
}

// printForecastOf prints which forecast the starts of a queue are of, and what "not yet" and "not known" stand for if they are there.
func printForecastOf(ctx context.Context, e *env, entries []*structs.QueueEntry) {
	cells := make([]forecastCell, 0, len(entries))
	for _, x := range entries {
		cells = append(cells, forecastCell{x.JobID, x.ModifyIndex, x.Forecast})
	}
	printForecast(ctx, e, cells, "Expected and latest start of all of a group's missing instances", "nomadish job explain <job>")
}

// printForecast is printForecastOf for whatever a table is of; command states why a start is not known.
func printForecast(ctx context.Context, e *env, cells []forecastCell, title, command string) {
	var of *structs.QueueForecast
	newer, why, changed := 0, "", uint64(0)
	for _, x := range cells {
		switch {
		case x.is == nil:
			newer, changed = newer+1, max(changed, x.changed)
		case of == nil:
			of = x.is
		}
		if x.is != nil && (x.is.Latest == 0 || x.is.Expected == 0) && why == "" {
			why = x.name + ": " + x.is.Unknown
		}
	}
	next := ""
	if newer > 0 {
		next = nextForecast(ctx, e, changed)
	}
	switch {
	case of == nil && next == "":
		return
	case of == nil:
		e.printf("\n%s: they are part of a forecast that is there %s.\n", title, next)
		return
	}
	e.printf("\n%s, by the %s", title, forecastOfText(of.Index, of.Time, e.now()))
	if newer > 0 {
		e.printf("; what is newer is not yet part of it")
		if next != "" {
			e.printf(", but of one that is there %s", next)
		}
	}
	e.printf(".\n")
	if why != "" {
		e.printf("Not known: %s. `%s` states it for each.\n", why, command)
	}
}

// nextForecastTime is how long it is waited for when the next forecast is there: what was requested has been answered.
const nextForecastTime = 500 * time.Millisecond

// nextForecast returns in how long there is a forecast of what came with an index; "": that is not known.
func nextForecast(ctx context.Context, e *env, index uint64) string {
	limited, cancel := context.WithTimeout(ctx, nextForecastTime)
	defer cancel()
	answer, _, err := e.client.Forecast(limited, "", 0, &api.Query{PerPage: 1})
	if err != nil || answer == nil || answer.Forecast == nil {
		return ""
	}
	return structs.RenewalText(answer.Forecast.Next, index, e.now())
}

// priorityParts returns what an effective priority is made of: "83 = 60 + 3 waited + 2 x 10 requeued".
func priorityParts(p *structs.EffectivePriority) string {
	text := fmt.Sprint(p.Total)
	if p.Total == int64(p.Declared) {
		return text
	}
	text += fmt.Sprintf(" = %d", p.Declared)
	if p.Aged > 0 {
		text += fmt.Sprintf(" + %d waited", p.Aged)
	}
	if p.AllocatedBonus > 0 {
		text += fmt.Sprintf(" + %d slots", p.AllocatedBonus)
	}
	if p.Requeued > 0 {
		text += fmt.Sprintf(" + %d x %d requeued", p.Requeued, p.RequeueBonus/int64(p.Requeued))
	}
	return text
}
