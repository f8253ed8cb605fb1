package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// jobStatusOptions select how much of a job is shown.
type jobStatusOptions struct{ short, evals, all, verbose bool }

// jobReport is what is shown of a job.
type jobReport struct {
	Job         *structs.Job
	Summary     *structs.JobSummary
	Evaluations []*structs.Evaluation
	Allocations []*structs.AllocListStub
}

// jobState is what -json and -t see of each job: Nomad's fields, in their order.
type jobState struct {
	Summary          *structs.JobSummary
	Allocations      []*structs.AllocListStub
	LatestDeployment any // always null: there are no deployments yet
	Evaluations      []*structs.Evaluation
}

// formattedJobs prints jobs as -json or -t request; false: neither was given.
func formattedJobs(ctx context.Context, e *env, jobs []structs.NamespacedID, all bool) (bool, int) {
	if !e.json && e.template == "" {
		return false, 0
	}
	states := make([]jobState, 0, len(jobs))
	for _, j := range jobs {
		r := &jobReport{}
		if err := r.read(ctx, e, j, all); err != nil {
			return true, e.fail(err)
		}
		states = append(states, jobState{Summary: r.Summary, Allocations: r.Allocations, Evaluations: r.Evaluations})
	}
	return e.formatted(states)
}

func jobStatus() spec {
	return spec{
		synopsis: "List jobs, or show one with its allocations",
		usage:    "[<job>]", accepts: []string{"ui"}, example: "-verbose web", output: true,
		details: "If some instances could not be placed, the output states for each constraint and resource how many nodes it excluded.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o jobStatusOptions
			fs.BoolVar(&o.short, "short", false, "only the head")
			fs.BoolVar(&o.evals, "evals", false, "list the job's evaluations too")
			fs.BoolVar(&o.all, "all-allocs", false, "also allocations of an earlier job of this name")
			fs.BoolVar(&o.verbose, "verbose", false, "print whole IDs, and more")
			filter := fs.String("filter", "", "list only jobs that match an `expression`")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				if len(args) == 0 {
					return listJobs(ctx, e, *filter, o.all)
				}
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				job := structs.NamespacedID{Namespace: e.namespace, ID: id}
				if done, code := formattedJobs(ctx, e, []structs.NamespacedID{job}, o.all); done {
					return code
				}
				report, err := readJob(ctx, e, job, o.all)
				if err != nil {
					return e.fail(err)
				}
				showJob(ctx, e, report, o)
				return exitDone
			}
		},
	}
}

func listJobs(ctx context.Context, e *env, filter string, all bool) int {
	q := e.query()
	q.Filter = filter
	jobs, _, err := e.client.Jobs().List(ctx, q)
	if err != nil {
		return e.fail(err)
	}
	ids := make([]structs.NamespacedID, 0, len(jobs))
	for _, j := range jobs {
		ids = append(ids, structs.NamespacedID{Namespace: cmp.Or(j.Namespace, e.namespace), ID: j.ID})
	}
	if done, code := formattedJobs(ctx, e, ids, all); done {
		return code
	}
	if len(jobs) == 0 {
		e.printf("No running jobs\n")
		return exitDone
	}
	ui.Table(e.out, jobRows(e, jobs))
	return exitDone
}

// jobRows is a table of jobs. Namespaces are shown where those of all are requested.
func jobRows(e *env, jobs []*structs.JobListStub) [][]string {
	rows := [][]string{{"ID", "Type", "Priority", "Status", "Submit Date"}}
	every := e.namespace == structs.AllNamespaces
	if every {
		rows[0] = slices.Insert(rows[0], 1, "Namespace")
	}
	for _, j := range jobs {
		status := j.Status
		if j.Stop {
			status += " (stopped)"
		}
		row := []string{j.ID, j.Type, fmt.Sprint(j.Priority), status, ui.Time(j.SubmitTime)}
		if every {
			row = slices.Insert(row, 1, j.Namespace)
		}
		rows = append(rows, row)
	}
	return rows
}

func readJob(ctx context.Context, e *env, job structs.NamespacedID, all bool) (*jobReport, error) {
	var r jobReport
	var err error
	if r.Job, _, err = e.client.Jobs().Info(ctx, job.ID, &api.Query{Namespace: job.Namespace}); err != nil {
		return nil, err
	}
	if err := r.read(ctx, e, job, all); err != nil {
		return nil, err
	}
	return &r, nil
}

// read reads what belongs to a job.
func (r *jobReport) read(ctx context.Context, e *env, job structs.NamespacedID, all bool) error {
	q, id := &api.Query{Namespace: job.Namespace}, job.ID
	var err error
	if r.Summary, _, err = e.client.Jobs().Summary(ctx, id, q); err != nil {
		return err
	}
	if r.Evaluations, _, err = e.client.Jobs().Evaluations(ctx, id, q); err != nil {
		return err
	}
	if r.Allocations, _, err = e.client.Jobs().Allocations(ctx, id, all, q); err != nil {
		return err
	}
	slices.SortStableFunc(r.Evaluations, func(a, b *structs.Evaluation) int {
		return cmp.Compare(b.CreateIndex, a.CreateIndex) // newest first
	})
	return nil
}

func showJob(ctx context.Context, e *env, r *jobReport, o jobStatusOptions) {
	j := r.Job
	status := j.Status
	if j.Stop {
		status += " (stopped)"
	}
	if j.StatusDescription != "" {
		status += ": " + j.StatusDescription
	}
	pairs := []ui.Pair{
		{Key: "ID", Value: j.ID}, {Key: "Name", Value: j.Name}, {Key: "Submit Date", Value: ui.Time(j.SubmitTime)},
		{Key: "Type", Value: j.Type}, {Key: "Priority", Value: fmt.Sprint(j.Priority)},
		{Key: "Datacenters", Value: strings.Join(j.Datacenters, ",")}, {Key: "Namespace", Value: j.Namespace},
		{Key: "Node Pool", Value: j.NodePool}, {Key: "Status", Value: status}, {Key: "Version", Value: fmt.Sprint(j.Version)},
		{Key: "Periodic", Value: fmt.Sprint(j.IsPeriodic())}, {Key: "Parameterized", Value: fmt.Sprint(j.IsParameterized())},
	}
	if j.Region != "" && j.Region != structs.DefaultRegion { // as most clusters have the one only
		pairs = append(pairs, ui.Pair{Key: "Region", Value: j.Region})
	}
	if s := j.Submitter; s != nil {
		pairs = append(pairs, ui.Pair{Key: "Submitted By", Value: submitterText(s)})
	}
	if j.Project != "" {
		pairs = append(pairs, ui.Pair{Key: "Project", Value: projectText(j)})
	}
	ui.Pairs(e.out, pairs)
	if o.short {
		return
	}
	showRegions(ctx, e, j)
	showSummary(&e.printer, r)
	if o.evals || o.verbose {
		e.printf("\n%s\n", e.style.Bold("Evaluations"))
		ui.Table(e.out, evalRows(r.Evaluations, o.verbose))
	}
	showUnplaced(&e.printer, r)
	if waits(r) {
		showForecast(ctx, e, j.NamespacedID(), waitsSince(r))
	}
	if text := e.preemptedText(ctx, preemptedFor(r.Allocations), j.Namespace); text != "" {
		e.printf("\n%s\nIts allocations took the place of %s\n", e.style.Bold("Preemptions"), text)
	}
	e.printf("\n%s\n", e.style.Bold("Allocations"))
	if len(r.Allocations) == 0 {
		e.printf("No allocations placed\n")
		return
	}
	ui.Table(e.out, allocRows(&e.printer, r.Allocations, o.verbose))
}

// waits reports whether instances of a job may be in the queue.
func waits(r *jobReport) bool {
	if r.Job.Stop || r.Summary == nil {
		return false
	}
	for _, g := range r.Summary.Summary { // order does not matter: any one of them decides
		if g.Queued > 0 {
			return true
		}
	}
	return false
}

// waitsSince returns an index from which on a forecast has what waits of a job: it may wait since long after the job came, or changed.
func waitsSince(r *jobReport) uint64 {
	index := r.Job.JobModifyIndex
	for _, e := range r.Evaluations {
		if e.Status == structs.EvalStatusBlocked || e.Status == structs.EvalStatusPending {
			index = max(index, e.CreateIndex)
		}
	}
	return index
}

// showSummary counts the instances of each group, each once. One that is suspended is
// starting for the servers, and missing too, as it waits in the queue: here it has a
// column of its own, where there are any. So has one that was stopped to make room for
// others, which is complete for the servers, as in Nomad: its request is queued again.
func showSummary(p *printer, r *jobReport) {
	if r.Summary == nil || len(r.Summary.Summary) == 0 {
		return
	}
	suspended, waiting, requeued := map[string]int{}, map[string]int{}, map[string]int{}
	for _, a := range r.Allocations {
		if a.ClientStatus == structs.AllocClientSuspended {
			suspended[a.TaskGroup]++
		}
		ended := structs.TerminalClientStatus(a.ClientStatus)
		if a.DesiredStatus == structs.AllocDesiredSuspend && !a.DesiredTransition.ShouldSuspend() && !ended {
			waiting[a.TaskGroup]++
		}
		if a.DesiredStatus == structs.AllocDesiredEvict && a.ClientStatus == structs.AllocClientComplete {
			requeued[a.TaskGroup]++
		}
	}
	p.printf("\n%s\n", p.style.Bold("Summary"))
	rows := [][]string{{"Task Group", "Queued", "Starting", "Running", "Failed", "Complete", "Lost", "Unknown"}}
	if len(suspended) > 0 {
		rows[0] = append(rows[0], "Suspended")
	}
	if len(requeued) > 0 {
		rows[0] = append(rows[0], "Requeued")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Summary.Summary)) {
		g := r.Summary.Summary[name]
		row := []string{name}
		queued, starting := max(0, g.Queued-waiting[name]), max(0, g.Starting-suspended[name])
		for _, n := range []int{queued, starting, g.Running, g.Failed, max(0, g.Complete-requeued[name]), g.Lost, g.Unknown} {
			row = append(row, fmt.Sprint(n))
		}
		if len(suspended) > 0 {
			row = append(row, fmt.Sprint(suspended[name]))
		}
		if len(requeued) > 0 {
			row = append(row, fmt.Sprint(requeued[name]))
		}
		rows = append(rows, row)
	}
	ui.Table(p.out, rows)
}

// showUnplaced explains what waits for room: as the newest evaluation that has been
// decided found it, or, while one is blocked, the newest that could not place all.
func showUnplaced(p *printer, r *jobReport) {
	if r.Job.Stop {
		return
	}
	blocked := slices.ContainsFunc(r.Evaluations, func(v *structs.Evaluation) bool { return v.Status == structs.EvalStatusBlocked })
	for _, ev := range r.Evaluations { // newest first
		decided := ev.Status == structs.EvalStatusComplete || ev.Status == structs.EvalStatusFailed
		if len(ev.FailedTGAllocs) > 0 && (blocked || decided) {
			p.printf("\n%s\n", p.style.Bold(p.style.Yellow("Placement Failure")))
			showFailed(p, ev.FailedTGAllocs, r.Job.Namespace, r.Job.ID)
			return
		}
		if decided && !blocked {
			return
		}
	}
}

func showFailed(p *printer, failed map[string]*structs.AllocMetric, namespace, job string) {
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		p.printf("Task Group %q (failed to place %s):\n", group, plural(failed[group].CoalescedFailures+1, "allocation"))
		for _, line := range explain(failed[group]) {
			p.printf("  * %s\n", line)
		}
	}
	p.printf("%s\n", explainHint(namespace, job))
}

// explainHint names the command that goes deeper than what an evaluation found.
func explainHint(namespace, job string) string {
	return fmt.Sprintf("`nomadish job explain %s%s` lists every reason and the smallest change that would place it", inNamespace(namespace), shellWord(job))
}

// newestFirst sorts allocations for people: what was made last stands on top.
func newestFirst(allocs []*structs.AllocListStub) []*structs.AllocListStub {
	out := slices.Clone(allocs)
	slices.SortStableFunc(out, func(a, b *structs.AllocListStub) int {
		return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex),
			cmp.Compare(len(a.Name), len(b.Name)), // web[2] before web[10]
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// projectText is the project of a job, and what the submission check finds.
func projectText(j *structs.Job) string {
	text := j.Project
	if j.Step != "" {
		text += ", step " + j.Step
	}
	if j.Submission != "" {
		text += " (" + j.Submission + ")"
	}
	return text
}

// submitterText is who registered a job, with the groups.
func submitterText(s *structs.Submitter) string {
	if len(s.Groups) == 0 {
		return s.User
	}
	return s.User + " (" + strings.Join(s.Groups, ", ") + ")"
}
