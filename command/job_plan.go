package command

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// exitPlanError: `job plan` answers 0 for no change and 1 for changes.
const exitPlanError = 255

func jobPlan() spec {
	return spec{
		synopsis: "Show what submitting a job would change and where it would be placed, without submitting it",
		usage:    "<file>", accepts: fileFlags, example: "web.nomad.hcl",
		details: "Exit codes: 0: no allocations would be created or stopped; 1: some would; 255: an error. -json-output and -t print the\n" +
			"plan as the API returns it; for a multiregion job they print an object with the plan of each region.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file jobFile
			file.flags(fs, "json")
			asJSON := fs.Bool("json-output", false, "print the plan as JSON")
			template := fs.String("t", "", "print the plan through a Go `template`")
			user := fs.String("user", "", userUsage)
			diff := fs.Bool("diff", true, "show how the job differs from the one that is registered")
			verbose := fs.Bool("verbose", false, "show every field of what is new or gone, and what does not differ")
			return func(ctx context.Context, e *env, args []string) int {
				if e.json, e.template = *asJSON, *template; e.json && e.template != "" {
					e.usage("-json-output and -t exclude each other")
					return exitPlanError
				}
				job, _, err := file.read(ctx, e, args)
				if err != nil {
					e.fail(err)
					return exitPlanError
				}
				if e.jobNamespace() != "" {
					job.Namespace = e.namespace
				}
				e.client = e.client.As(*user)
				again := file.again(args[0])
				if *user != "" {
					again = "-user " + shellWord(*user) + " " + again
				}
				if e.jobNamespace() != "" {
					again = "-namespace " + shellWord(e.namespace) + " " + again
				}
				if e.region != "" {
					again = "-region " + shellWord(e.region) + " " + again
				}
				e.toJobsRegion(job)
				if job.Multiregion != nil && e.region == "" {
					return planRegions(ctx, e, &file, job, *diff, *verbose)
				}
				p := e.waiting("waiting for the server to plan the job")
				reply, err := e.client.Jobs().Plan(ctx, &structs.JobPlanRequest{Job: job, Diff: *diff, Forecast: true})
				p.stop()
				if err != nil {
					e.fail(file.placed(err))
					return exitPlanError
				}
				reply.Warnings = file.news(reply.Warnings)
				if done, code := e.formatted(reply); done {
					return formattedPlan(code, reply)
				}
				return showPlan(e, reply, *verbose, again)
			}
		},
	}
}

// planRegions plans a multiregion job in each of its regions. The exit code is the greatest of theirs.
func planRegions(ctx context.Context, e *env, file *jobFile, job *structs.Job, diff, verbose bool) int {
	code, plans := 0, map[string]*structs.JobPlanReply{}
	formatted := e.json || e.template != ""
	for _, name := range job.RegionNames() {
		if !formatted {
			e.printf("%s\n", e.style.Bold(fmt.Sprintf("Region %q", name)))
		}
		reply, err := e.client.In(name).Jobs().Plan(ctx, &structs.JobPlanRequest{Job: job, Diff: diff, Forecast: true})
		if err != nil {
			e.fail(file.placed(err))
			code = exitPlanError
			continue
		}
		reply.Warnings = file.news(reply.Warnings)
		if plans[name] = reply; formatted {
			code = max(code, planCode(reply.Annotations))
			continue
		}
		code = max(code, showPlan(e, reply, verbose, ""))
	}
	if done, failed := e.formatted(plans); done && failed != exitDone { // by region
		return exitPlanError
	}
	return code
}

// formattedPlan is the exit code of a plan that was printed for a program.
func formattedPlan(printed int, reply *structs.JobPlanReply) int {
	if printed != exitDone {
		return exitPlanError
	}
	return planCode(reply.Annotations)
}

// showPlan prints a plan; again is how `job run` names the same file, if it can be passed an index. It returns the exit code.
func showPlan(e *env, reply *structs.JobPlanReply, verbose bool, again string) int {
	if reply.Diff != nil {
		showJobDiff(&e.printer, reply.Diff, verbose)
	}
	e.printf("%s\n", e.style.Bold("Scheduler dry-run:"))
	if len(reply.FailedTGAllocs) == 0 {
		e.printf("%s\n", e.style.Green("- All tasks successfully allocated."))
	} else {
		e.printf("%s\n", e.style.Yellow("- WARNING: Failed to place all allocations."))
		for _, group := range slices.Sorted(maps.Keys(reply.FailedTGAllocs)) {
			metric := reply.FailedTGAllocs[group]
			e.printf("  Task Group %q (failed to place %s):\n", group, plural(metric.CoalescedFailures+1, "allocation"))
			for _, line := range explain(metric) {
				e.printf("    * %s\n", line)
			}
		}
	}
	showPlanned(&e.printer, reply, e.now())
	e.printf("\n")
	showPreempted(&e.printer, reply.Annotations, verbose)
	warnOf(e, "Job", reply.Warnings)
	e.printf("%s %d\n", e.style.Bold("Job Modify Index:"), reply.JobModifyIndex)
	if again == "" {
		e.printf("\n")
		return planCode(reply.Annotations)
	}
	e.printf("To submit the job with version verification run:\n\nnomadish job run -check-index %d %s\n\n", reply.JobModifyIndex, again)
	e.printf("When running the job with the check-index flag, the job will only be run if the\n" +
		"job modify index given matches the server-side version. If the index has\n" +
		"changed, another user has modified the job and the plan's results are\n" +
		"potentially invalid.\n")
	return planCode(reply.Annotations)
}

// showPlanned prints when a job starts of which something would wait.
func showPlanned(p *printer, reply *structs.JobPlanReply, now time.Time) {
	switch {
	case len(reply.FailedTGAllocs) == 0:
	case reply.Forecast != nil && len(reply.Forecast.Requests) > 0:
		p.printf("- If it were registered now (as of index %d):\n", reply.Forecast.Index)
		printSingle(p, reply.Forecast, now)
	case reply.NoForecast != "":
		p.printf("- When the rest starts is not known: %s\n", reply.NoForecast)
	}
}

// planCode is 1 when something would be created, replaced or stopped.
func planCode(a *structs.PlanAnnotations) int {
	if a == nil {
		return 0
	}
	for _, u := range a.DesiredTGUpdates { // order does not matter: any one of them decides
		if u.Place+u.Stop+u.Migrate+u.DestructiveUpdate+u.Canary > 0 {
			return 1
		}
	}
	return 0
}

func showJobDiff(p *printer, d *structs.JobDiff, verbose bool) {
	p.printf("%s Job: %q\n", mark(p, d.Type), d.ID)
	if detailed(d.Type, verbose) {
		showFields(p, d.Fields, d.Objects, 0, verbose)
	}
	for _, g := range d.TaskGroups {
		updates := ""
		for _, what := range slices.Sorted(maps.Keys(g.Updates)) {
			updates += fmt.Sprintf(", %d %s", g.Updates[what], what)
		}
		if updates != "" {
			updates = " (" + updates[2:] + ")"
		}
		p.printf("%s Task Group: %q%s\n", mark(p, g.Type), g.Name, updates)
		if detailed(g.Type, verbose) {
			showFields(p, g.Fields, g.Objects, 2, verbose)
		}
		for _, t := range g.Tasks {
			if t.Type == "None" && !verbose {
				continue
			}
			note := ""
			if len(t.Annotations) > 0 {
				note = " (" + strings.Join(t.Annotations, ", ") + ")"
			}
			p.printf("  %s Task: %q%s\n", mark(p, t.Type), t.Name, note)
			if detailed(t.Type, verbose) {
				showFields(p, t.Fields, t.Objects, 4, verbose)
			}
		}
	}
	p.printf("\n")
}

// detailed reports whether the fields of a job, a group or a task are shown. All fields of what is new or gone differ:
// the job's file describes them better.
func detailed(kind string, verbose bool) bool {
	return verbose || (kind != structs.DiffTypeAdded && kind != structs.DiffTypeDeleted)
}

func mark(p *printer, kind string) string {
	switch kind {
	case "Added":
		return p.style.Green("+")
	case "Deleted":
		return p.style.Red("-")
	case "Edited":
		return p.style.Yellow("+/-")
	}
	return " "
}

func showFields(p *printer, fields []*structs.FieldDiff, objects []*structs.ObjectDiff, depth int, verbose bool) {
	pad := strings.Repeat(" ", depth)
	for _, f := range fields {
		note := ""
		if len(f.Annotations) > 0 {
			note = " (" + strings.Join(f.Annotations, ", ") + ")"
		}
		switch f.Type {
		case "Added":
			p.printf("%s%s %s: %q%s\n", pad, mark(p, "Added"), f.Name, f.New, note)
		case "Deleted":
			p.printf("%s%s %s: %q%s\n", pad, mark(p, "Deleted"), f.Name, f.Old, note)
		case "Edited":
			p.printf("%s%s %s: %q => %q%s\n", pad, mark(p, "Edited"), f.Name, f.Old, f.New, note)
		default:
			if verbose {
				p.printf("%s  %s: %q\n", pad, f.Name, f.Old)
			}
		}
	}
	for _, o := range objects {
		if o.Type == "None" && !verbose {
			continue
		}
		p.printf("%s%s %s {\n", pad, mark(p, o.Type), o.Name)
		showFields(p, o.Fields, o.Objects, depth+2, verbose)
		p.printf("%s  }\n", pad)
	}
}
