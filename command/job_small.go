package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

func jobValidate() spec {
	return spec{
		synopsis: "Validate a job file, locally and with a server if one answers",
		usage:    "<file>", accepts: fileFlags, example: "web.nomad.hcl",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var file jobFile
			file.flags(fs, "json")
			return func(ctx context.Context, e *env, args []string) int {
				job, _, err := file.read(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				e.toJobsRegion(job)
				reply, err := e.client.Jobs().Validate(ctx, job)
				var nobody *api.Unreachable
				if errors.As(err, &nobody) { // what can be checked without a server stands
					e.printf("Job validation successful (checked without a server)\n")
					return exitDone
				}
				if err != nil {
					return e.fail(err)
				}
				warnOf(e, "Job", file.news(reply.Warnings))
				if reply.Error != "" {
					var lines []string
					for _, v := range reply.ValidationErrors {
						for _, line := range strings.Split(v, "\n") {
							if line, listed := strings.CutPrefix(line, "  * "); listed || !strings.HasSuffix(line, " problems:") {
								lines = append(lines, line)
							}
						}
					}
					lines, _ = file.locateLines(lines)
					return e.fail(fmt.Errorf("job validation failed:\n%s", joinLines(lines)))
				}
				e.printf("Job validation successful\n")
				return exitDone
			}
		},
	}
}

func joinLines(lines []string) string {
	out := ""
	for i, l := range lines {
		if i > 0 {
			out += "\n"
		}
		out += "* " + l
	}
	return out
}

func jobStop() spec {
	return spec{
		synopsis: "Stop jobs",
		usage:    "<job>...", example: "-purge web",
		details: "When stdin is a terminal, the command asks for confirmation before it stops more than one job, or a job of whose ID only a\n" +
			"prefix is given; -yes answers yes. Without a terminal, both are refused unless -yes is set.\n" +
			"\n" +
			"-purge also deletes the job from the state. If a job of the same name is registered later, its versions continue the\n" +
			"old numbering, and its summary includes the remaining allocations of the old job until `system gc` runs.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			b := bulk{guards: true}
			b.flags(fs, "jobs")
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			purge := fs.Bool("purge", false, "forget the job as well")
			hurry := fs.Bool("no-shutdown-delay", false, "do not wait for the groups' and tasks' shutdown_delay")
			priority := fs.Int("eval-priority", 0, "the evaluation's `priority`, if not the job's")
			global := fs.Bool("global", false, "stop a multiregion job in all its regions, not in one alone")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				if *priority < 0 || *priority > structs.JobMaxPriority {
					return e.usage("-eval-priority %d: allowed are 1 to %d, and 0 for the job's own", *priority, structs.JobMaxPriority)
				}
				jobs, err := b.jobTargets(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				return b.each(ctx, e, "Stop", "job", jobs, func(t target) int {
					q := t.query()
					q.Params = stopParams(*global, *hurry, *priority)
					reply, err := e.client.Jobs().Deregister(ctx, t.id, *purge, q)
					if err != nil {
						return e.fail(err)
					}
					if len(reply.Regions) > 0 {
						return e.followRegions(ctx, reply.Regions, *detach, *verbose)
					}
					return e.follow(ctx, reply.EvalID, *detach, *verbose)
				})
			}
		},
	}
}

// stopParams are the parameters of a request that stops a job.
func stopParams(global, noShutdownDelay bool, priority int) map[string]string {
	params := map[string]string{}
	if global {
		params["global"] = "true"
	}
	if noShutdownDelay {
		params["no_shutdown_delay"] = "true"
	}
	if priority > 0 {
		params["eval_priority"] = strconv.Itoa(priority)
	}
	return params
}

func jobInspect() spec {
	return spec{
		synopsis: "Print a job as it is stored",
		usage:    "<job>", example: "-version 2 web", output: true,
		details: "By default the job is printed as a request that registers it, {\"Job\": …}. -json prints the job alone, and -t applies its\n" +
			"template to the job.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			version := fs.Int64("version", -1, "an older `version`")
			source := fs.Bool("hcl", false, "print the file that it was submitted from")
			return func(ctx context.Context, e *env, args []string) int {
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				versions, _, err := e.client.Jobs().Versions(ctx, id, false, e.query())
				if err != nil {
					return e.fail(err)
				}
				for _, job := range versions.Versions {
					if *version >= 0 && job.Version != uint64(*version) {
						continue
					}
					if *source {
						sub, err := e.client.Jobs().Submission(ctx, id, job.Version, e.query())
						if err != nil || sub == nil {
							return e.fail(fmt.Errorf("job %q version %d: its source was not kept", id, job.Version))
						}
						if ui.IsTerminal(e.out) {
							e.printf("%s", ui.Lines(sub.Source))
							return exitDone
						}
						if _, err := io.WriteString(ui.Raw(e.out), sub.Source); err != nil { // the file as it was, to be submitted again
							return e.fail(err)
						}
						return exitDone
					}
					if done, code := e.formatted(job); done {
						return code
					}
					if err := ui.JSON(e.out, map[string]any{"Job": job}); err != nil { // as a request that registers it
						return e.fail(err)
					}
					return exitDone
				}
				return e.fail(fmt.Errorf("job %q has no version %d any more", id, *version))
			}
		},
	}
}

func jobRevert() spec {
	return spec{
		synopsis: "Revert a job to an older version",
		usage:    "<job> <version>", example: "web 3",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) != 2 {
					return e.usage("a job and a version are needed, %d arguments given", len(args))
				}
				version, err := strconv.ParseUint(args[1], 10, 64)
				if err != nil {
					return e.usage("version %q: a number is needed", args[1])
				}
				id, err := e.jobName(ctx, args[:1])
				if err != nil {
					return e.fail(err)
				}
				reply, err := e.client.Jobs().Revert(ctx, id, version, e.query())
				if err != nil {
					return e.fail(err)
				}
				return e.follow(ctx, reply.EvalID, *detach, *verbose)
			}
		},
	}
}

func jobScale() spec {
	return spec{
		synopsis: "Change the count of a job's group",
		usage:    "<job> [<group>] <count>", example: "web frontend 5",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			check := fs.Uint64("check-index", 0, "only if the job's modify index is `N`; 0: whatever it is")
			return func(ctx context.Context, e *env, args []string) int {
				if len(args) < 1 || len(args) > 3 {
					return e.usage("a job, its group and a count are needed, %d arguments given", len(args))
				}
				count, err := strconv.ParseInt(args[len(args)-1], 10, 64)
				if len(args) == 1 || err != nil {
					return e.noCount(ctx, args)
				}
				if count < 0 { // behind "--", as it would be a flag else
					return e.usage("count %d: must be 0 or more", count)
				}
				id, err := e.jobName(ctx, args[:1])
				if err != nil {
					return e.fail(err)
				}
				group := ""
				if len(args) == 3 {
					group = args[1]
				} else {
					job, _, err := e.client.Jobs().Info(ctx, id, e.query())
					if err != nil {
						return e.fail(err)
					}
					if len(job.TaskGroups) != 1 {
						return e.usage("job %q has %d groups: name one of %s", id, len(job.TaskGroups), groupNames(job))
					}
					group = job.TaskGroups[0].Name
				}
				reply, err := e.client.Jobs().ScaleAt(ctx, id, group, count, "submitted using the nomadish CLI", *check, e.query())
				if err != nil {
					return e.fail(e.noGroup(ctx, id, group, err))
				}
				return e.follow(ctx, reply.EvalID, *detach, *verbose)
			}
		},
	}
}

// noCount returns the error of job scale without a count, which lists the groups that can be scaled.
func (e *env) noCount(ctx context.Context, args []string) int {
	id, err := e.jobName(ctx, args[:1])
	if err != nil {
		return e.fail(err)
	}
	job, _, err := e.client.Jobs().Info(ctx, id, e.query())
	if err != nil {
		return e.fail(err)
	}
	if last := args[len(args)-1]; len(args) == 3 || len(args) == 2 && job.LookupTaskGroup(last) == nil {
		return e.usage("count %q: a number from 0 is needed", last)
	}
	var groups []string
	for _, g := range job.TaskGroups {
		groups = append(groups, fmt.Sprintf("%q (%d now)", g.Name, g.Count))
	}
	what := "group"
	if len(groups) > 1 {
		what = "groups"
	}
	return e.usage("the count is missing; job %q has the %s %s", id, what, listText(groups))
}

// listText lists up to maxListed names.
func listText(names []string) string {
	more := ""
	if n := len(names) - maxListed; n > 0 {
		names, more = names[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// noGroup returns which groups there are if a job was refused for having none of that
// name; any other error stays as it is.
func (e *env) noGroup(ctx context.Context, id, group string, err error) error {
	job, _, readErr := e.client.Jobs().Info(ctx, id, e.query())
	if readErr != nil || job == nil || slices.ContainsFunc(job.TaskGroups, func(g *structs.TaskGroup) bool { return g.Name == group }) {
		return err
	}
	return fmt.Errorf("job %q has no group %q: name one of %s", id, group, groupNames(job))
}

func groupNames(job *structs.Job) string {
	var names []string
	for _, g := range job.TaskGroups {
		names = append(names, strconv.Quote(g.Name))
	}
	return listText(names)
}

func jobEval() spec {
	return spec{
		synopsis: "Evaluate jobs again",
		usage:    "<job>...", example: "-force-reschedule web",
		details: "When stdin is a terminal, the command asks for confirmation before it evaluates more than one job; -yes answers yes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var b bulk
			b.flags(fs, "jobs")
			force := fs.Bool("force-reschedule", false, "replace failed allocations even past their policy")
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				jobs, err := b.jobTargets(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				return b.each(ctx, e, "Evaluate", "job", jobs, func(t target) int {
					reply, err := e.client.Jobs().Evaluate(ctx, t.id, *force, t.query())
					if err != nil {
						return e.fail(err)
					}
					return e.follow(ctx, reply.EvalID, *detach, *verbose)
				})
			}
		},
	}
}

func jobAllocs() spec {
	return spec{
		synopsis: "List a job's allocations",
		usage:    "<job>", example: "web", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			all := fs.Bool("all", false, "also those of an earlier job of this name")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			stale := staleFlag(fs)
			return func(ctx context.Context, e *env, args []string) int {
				stale(e)
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				allocs, _, err := e.client.Jobs().Allocations(ctx, id, *all, e.query())
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
				ui.Table(e.out, allocRows(&e.printer, allocs, *verbose))
				return exitDone
			}
		},
	}
}

// allocRows is a table of allocations, newest first.
func allocRows(p *printer, allocs []*structs.AllocListStub, verbose bool) [][]string {
	rows := [][]string{{"ID", "Node ID", "Node Name", "Task Group", "Version", "Desired", "Status", "Created", "Modified"}}
	now := p.now()
	for _, a := range newestFirst(allocs) {
		rows = append(rows, []string{
			short(a.ID, verbose), short(a.NodeID, verbose), a.NodeName, a.TaskGroup, fmt.Sprint(a.JobVersion), a.DesiredStatus,
			statusText(a), ui.Ago(a.CreateTime, now), ui.Ago(a.ModifyTime, now),
		})
	}
	return rows
}

func jobInit() spec {
	return spec{
		synopsis: "Write an example job file",
		usage:    "[<file>]", example: "-batch hello.nomad.hcl", local: true,
		details: exampleDetails,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			batch := fs.Bool("batch", false, "a job that runs to completion instead of a service")
			fs.Bool("short", false, "accepted, for scripts made for Nomad")
			return func(_ context.Context, e *env, args []string) int {
				text := examples.Service
				if *batch {
					text = examples.Batch
				}
				return initFile{"example.nomad.hcl", text, "job file"}.write(e, args)
			}
		},
	}
}
