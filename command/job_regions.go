package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// toJobsRegion has the agent called for the region that a job is for: that of -region, which the job gets
// then, or its own. A multiregion job is the business of whichever agent is called.
func (e *env) toJobsRegion(job *structs.Job) {
	switch {
	case job.Multiregion != nil:
	case e.region != "":
		job.Region = e.region
	case job.Region != "":
		e.client = e.client.In(job.Region)
	}
}

// followRegions follows a multiregion job's evaluations, one region after the other. It returns the worst of their
// exit codes.
func (e *env) followRegions(ctx context.Context, regions []structs.JobRegionReply, detach, verbose bool) int {
	code := exitDone
	for _, r := range regions {
		e.printf("%s\n", e.style.Bold(fmt.Sprintf("Region %q", r.Region)))
		there := *e
		there.client = e.client.In(r.Region)
		code = max(code, there.follow(ctx, r.EvalID, detach, verbose))
	}
	return code
}

// showRegions prints how a multiregion job fares in each of its regions, as far as they answer.
func showRegions(ctx context.Context, e *env, job *structs.Job) {
	if job.Multiregion == nil {
		return
	}
	e.printf("\n%s\n", e.style.Bold("Regions"))
	rows := [][]string{{"Region", "Status", "Running", "Version"}}
	var reasons []string
	for _, name := range job.RegionNames() {
		row := []string{name, "", "", ""}
		there, _, err := e.client.In(name).Jobs().Info(ctx, job.ID, e.query())
		if err != nil {
			var reason string
			if row[1], reason = regionError(err); reason != "" {
				reasons = append(reasons, name+": "+reason)
			}
			rows = append(rows, row)
			continue
		}
		row[1], row[3] = there.Status, fmt.Sprint(there.Version)
		if there.Stop {
			row[1] += " (stopped)"
		}
		if summary, _, err := e.client.In(name).Jobs().Summary(ctx, job.ID, e.query()); err == nil {
			running := 0
			for _, g := range summary.Summary { // order does not matter: a sum
				running += g.Running
			}
			row[2] = fmt.Sprint(running)
		}
		rows = append(rows, row)
	}
	ui.Table(e.out, rows)
	for _, r := range reasons {
		e.printf("%s\n", r)
	}
}

// regionError returns in a word why a region shows no job, and, if that is a fault, the reason in full.
func regionError(err error) (status, reason string) {
	var refusal *api.Error
	switch {
	case api.IsNotFound(err):
		return "not registered", ""
	case !errors.As(err, &refusal):
		return "cannot be reached", err.Error()
	case strings.Contains(refusal.Msg, "No cluster leader"):
		return "no leader", refusal.Msg
	}
	return "cannot be reached", refusal.Msg
}
