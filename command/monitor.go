package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// monitor follows an evaluation from its registration until what it placed runs (or,
// of work that runs to completion, has ended). It prints a line for every step, and
// a progress bar for each group on a terminal.
type monitor struct {
	e       *env
	live    *ui.Live
	verbose bool
	jobID   string
	ns      string
	// wait: how long placed allocations are followed until they run, and those that are stopped until they have ended. Work that
	// runs to completion is followed to its end.
	wait time.Duration
	// linger: how long, where not all could be placed.
	linger time.Duration

	stopping bool // what is followed is the end of the job

	seen   map[string]string      // allocation → client status last printed
	quiet  bool                   // only the summary of changes: many instances
	counts map[string]*groupCount // group → what was last printed about it, if quiet
	shown  map[[2]string]bool     // group and what went wrong in it, of which the first was reported
}

func newMonitor(e *env, verbose bool) *monitor {
	return &monitor{
		e: e, live: ui.NewLive(e.out), verbose: verbose, wait: 5 * time.Minute, linger: 5 * time.Second,
		seen: map[string]string{}, counts: map[string]*groupCount{}, shown: map[[2]string]bool{},
	}
}

func (m *monitor) line(format string, args ...any) {
	m.live.Clear()
	m.e.printf("    %s: %s\n", m.e.now().Format("2006-01-02T15:04:05.000"), fmt.Sprintf(format, args...))
}

// eval follows an evaluation, and those that it leads to at once. Exit code: done,
// incomplete when not all could be placed or does run, failed when batch work failed, or
// interrupted. That something could not be placed is known at once: the caller need not wait
// until the rest of it has ended.
func (m *monitor) eval(ctx context.Context, id string) int {
	m.e.printf("==> %s: Monitoring evaluation %q\n", m.e.now().Format("2006-01-02T15:04:05.000"), short(id, m.verbose))
	code := exitDone
	for id != "" {
		ev, err := m.evalDone(ctx, id)
		if err != nil {
			return m.stopped(err)
		}
		if ev.Status == structs.EvalStatusFailed || ev.Status == structs.EvalStatusCancelled {
			m.line("Evaluation %q finished with status %q: %s", short(ev.ID, m.verbose), ev.Status, ev.StatusDescription)
			code = exitFailed
		} else if len(ev.FailedTGAllocs) == 0 {
			m.line("Evaluation %q finished with status %q", short(ev.ID, m.verbose), ev.Status)
		}
		if len(ev.FailedTGAllocs) > 0 {
			m.live.Clear()
			m.failures(ctx, ev)
			code = exitIncomplete
		}
		id = ""
		if ev.NextEval != "" && code == exitDone {
			id = ev.NextEval
			m.line("Evaluation %q continues as %q", short(ev.ID, m.verbose), short(id, m.verbose))
			continue
		}
		became, err := m.allocs(ctx, ev)
		if err != nil {
			return m.stopped(err)
		}
		if code == exitDone {
			code = became
		}
	}
	return code
}

// failures prints, for each group that was not placed, what kept it from which nodes.
func (m *monitor) failures(ctx context.Context, ev *structs.Evaluation) {
	m.line("Evaluation %q finished with status %q but failed to place all allocations:", short(ev.ID, m.verbose), ev.Status)
	for _, group := range slices.Sorted(maps.Keys(ev.FailedTGAllocs)) {
		metric := ev.FailedTGAllocs[group]
		m.e.printf("      Task Group %q (failed to place %s):\n", group, plural(metric.CoalescedFailures+1, "allocation"))
		for _, line := range explain(metric) {
			m.e.printf("        * %s\n", line)
		}
	}
	m.e.printf("      %s\n", explainHint(ev.Namespace, ev.JobID))
	if ev.BlockedEval != "" {
		m.line("Evaluation %q waiting for additional capacity to place remainder", short(ev.BlockedEval, m.verbose))
		m.forecast(ctx, ev)
	}
}

// forecast prints when what waits of a job starts, by a forecast that is made of it now.
func (m *monitor) forecast(ctx context.Context, ev *structs.Evaluation) {
	f, err := m.e.client.Jobs().Forecast(ctx, ev.JobID, &api.Query{Namespace: ev.Namespace})
	var failed *api.Error
	switch {
	case errors.As(err, &failed) && failed.Status == http.StatusTooManyRequests:
		m.line("When it starts: %s", failed.Msg)
	case err == nil && f != nil && len(f.Requests) > 0:
		m.line("Forecast of index %d:", f.Index)
		printSingle(&m.e.printer, f, m.e.now())
	}
}

// explain puts an allocation metric in sentences.
func explain(a *structs.AllocMetric) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if a.NodesEvaluated == 0 {
		add("No nodes were eligible for evaluation")
	}
	for _, dc := range slices.Sorted(maps.Keys(a.NodesAvailable)) {
		if a.NodesAvailable[dc] == 0 {
			add("No nodes are available in datacenter %q", dc)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(a.ClassFiltered)) {
		add("Class %q: %s excluded by filter", class, plural(a.ClassFiltered[class], "node"))
	}
	for _, c := range slices.Sorted(maps.Keys(a.ConstraintFiltered)) {
		add("Constraint %q: %s excluded by filter", c, plural(a.ConstraintFiltered[c], "node"))
	}
	if a.NodesExhausted > 0 {
		add("Resources exhausted on %s", plural(a.NodesExhausted, "node"))
	}
	for _, class := range slices.Sorted(maps.Keys(a.ClassExhausted)) {
		add("Class %q exhausted on %s", class, plural(a.ClassExhausted[class], "node"))
	}
	for _, d := range slices.Sorted(maps.Keys(a.DimensionExhausted)) {
		if structs.StatesReason(d) {
			add("%s: %s", plural(a.DimensionExhausted[d], "node"), d)
			continue
		}
		add("Dimension %q exhausted on %s", d, plural(a.DimensionExhausted[d], "node"))
	}
	for _, q := range a.QuotaExhausted {
		if strings.Contains(q, " ") { // a sentence: no name of a quota has spaces
			add("%s", q)
			continue
		}
		add("Quota limit hit %q", q)
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "cy"); ok {
		return fmt.Sprintf("%d %scies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// evalDone waits until the evaluation has been decided.
func (m *monitor) evalDone(ctx context.Context, id string) (*structs.Evaluation, error) {
	q := &api.Query{Namespace: structs.AllNamespaces}
	for announced := false; ; {
		ev, meta, err := m.e.client.Evaluations().Info(ctx, id, q)
		if err != nil {
			return nil, err
		}
		if !announced {
			announced = true
			m.jobID, m.ns, m.stopping = ev.JobID, ev.Namespace, ev.TriggeredBy == structs.EvalTriggerJobDeregister
			m.line("Evaluation triggered by job %q", ev.JobID)
		}
		if ev.Status != structs.EvalStatusPending {
			return ev, nil
		}
		q.Index, q.Wait = meta.Index, 5*time.Second
	}
}

// allocs follows what an evaluation placed until all of it runs or has ended, and
// returns the exit code that this means: failed if work that was to complete did not, incomplete if an instance of other
// work failed or does not run in time. Where not all was placed, the
// rest is followed only until it runs, and not for long.
func (m *monitor) allocs(ctx context.Context, ev *structs.Evaluation) (int, error) {
	completes := ev.Type == structs.JobTypeBatch || ev.Type == structs.JobTypeSysBatch
	wait, toTheEnd := m.wait, completes
	if len(ev.FailedTGAllocs) > 0 {
		wait, toTheEnd = min(wait, m.linger), false
	}
	if wait <= 0 {
		return exitDone, nil
	}
	limited := !toTheEnd || m.stopping // what runs for days is followed for days
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	q := &api.Query{Namespace: structs.AllNamespaces}
	for {
		allocs, meta, err := m.e.client.Evaluations().Allocations(ctx, ev.ID, q)
		if limited && errors.Is(err, context.DeadlineExceeded) {
			m.line("Stopped following after %s; `nomadish job status %s%s` goes on", wait, inNamespace(m.ns), shellWord(m.jobID))
			if m.stopping {
				return exitDone, nil
			}
			return exitIncomplete, nil
		}
		if err != nil {
			return exitDone, err
		}
		if len(allocs) == 0 {
			if toTheEnd && len(m.seen) == 0 && ev.TriggeredBy == structs.EvalTriggerJobRegister {
				return m.placedBefore(ctx, ev)
			}
			return exitDone, nil
		}
		m.took(ctx, allocs)
		done := m.settled(allocs, toTheEnd, ev.CreateIndex)
		again := 10 * time.Second
		if m.quiet {
			again = m.progress(allocs, done)
		}
		if !m.stopping {
			m.trouble(allocs)
		}
		if done {
			m.live.Clear()
			return m.outcome(allocs, completes), nil
		}
		q.Index, q.Wait = meta.Index, again
	}
}

// outcome prints what has failed of allocations of which there is nothing to wait for, and returns the exit code.
func (m *monitor) outcome(allocs []*structs.AllocListStub, completes bool) int {
	if n := len(slices.DeleteFunc(slices.Clone(allocs), func(a *structs.AllocListStub) bool { return !timedOut(a) })); n > 0 && m.quiet {
		m.line("Ended at their time limit, max_run_duration: %s", plural(n, "allocation"))
	}
	switch {
	case m.stopping || !slices.ContainsFunc(allocs, unwell):
		return exitDone
	case completes:
		m.failed(allocs)
		return exitFailed
	case m.quiet: // of few instances of a service each was reported
		m.failed(allocs)
	}
	return exitIncomplete
}

// settled prints what has changed and reports whether there is nothing to wait for.
// What was made before index is only updated in place.
func (m *monitor) settled(allocs []*structs.AllocListStub, completes bool, index uint64) bool {
	m.quiet = len(allocs) > 10
	done := true
	groups := map[string][3]int{} // placed, running, ended
	for _, a := range allocs {
		g := groups[a.TaskGroup]
		g[0]++
		switch {
		case a.ClientStatus == structs.AllocClientRunning:
			g[1]++
			done = done && !completes
		case structs.TerminalClientStatus(a.ClientStatus):
			g[2]++
		default:
			done = false
		}
		groups[a.TaskGroup] = g
		if m.seen[a.ID] == a.ClientStatus {
			continue
		}
		if !m.quiet {
			if _, known := m.seen[a.ID]; !known {
				what := "created"
				if a.CreateIndex < index {
					what = "updated in place"
				}
				m.line("Allocation %q %s: node %q, group %q", short(a.ID, m.verbose), what, a.NodeName, a.TaskGroup)
			}
			if a.ClientStatus != structs.AllocClientPending {
				m.line("Allocation %q is %s%s", short(a.ID, m.verbose), a.ClientStatus, howEnded(a))
			}
		}
		m.seen[a.ID] = a.ClientStatus
	}
	var bars []string
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		reached, word := g[1]+g[2], "running"
		if completes {
			reached, word = g[2], "finished"
		}
		bars = append(bars, fmt.Sprintf("    %s %s %d/%d %s", name, ui.Bar(reached, g[0], 30), reached, g[0], word))
	}
	m.live.Draw(bars)
	return done
}

func exitText(a *structs.AllocListStub) string {
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		if t := a.TaskStates[name]; t != nil && t.State == structs.TaskStateDead {
			if code, ok := t.ExitCode(); ok {
				return fmt.Sprintf(" (task %q exit code %d)", name, code)
			}
		}
	}
	return ""
}
