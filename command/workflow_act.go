package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/structs"
)

// workflowAction is a command that changes a workflow by its name.
type workflowAction struct {
	synopsis, example, details string
	done                       string // what it prints with the name
	do                         func(w api.Workflows, ctx context.Context, id string, q *api.Query) error
	already                    func(state string) bool // whether it changes nothing about a run that has not ended; nil: never
}

func (a workflowAction) spec() spec {
	return spec{
		synopsis: a.synopsis, takes: "workflow", usage: "<workflow>", example: a.example, details: a.details,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			user := fs.String("user", "", userUsage)
			return func(ctx context.Context, e *env, args []string) int {
				e.client = e.client.As(*user)
				was := ""
				if a.already != nil {
					if w, _, err := e.client.Workflows().Info(ctx, args[0], e.query()); err == nil && w.EndTime == 0 {
						was = w.State
					}
				}
				if err := a.do(e.client.Workflows(), ctx, args[0], e.query()); err != nil {
					return e.fail(err)
				}
				if was != "" && a.already(was) {
					e.printf("Nothing to do: workflow %q is %s already\n", args[0], was)
					return exitDone
				}
				e.printf(a.done+"\n", args[0])
				return exitDone
			}
		},
	}
}

func workflowPause() spec {
	return workflowAction{
		synopsis: "Keep further stages of a workflow from starting", example: "chip", done: "Workflow %q is paused", do: api.Workflows.Pause,
		details: "Jobs that were started run on, and are run again if they fail and have retries left. What is reserved stays reserved.",
		already: func(state string) bool { return state == structs.WorkflowPaused },
	}.spec()
}

func workflowResume() spec {
	return workflowAction{
		synopsis: "Let a paused workflow go on", example: "chip", done: "Workflow %q goes on", do: api.Workflows.Resume,
		already: func(state string) bool { return state != structs.WorkflowPaused },
	}.spec()
}

func workflowCancel() spec {
	return workflowAction{
		synopsis: "End the run of a workflow and stop its jobs", example: "chip", done: "Workflow %q is cancelled", do: api.Workflows.Cancel,
		details: "All jobs of the run that have not ended are stopped, and nothing stays reserved. `nomadish workflow retry` runs it again.",
	}.spec()
}

func workflowDelete() spec {
	return workflowAction{
		synopsis: "Delete a workflow whose run has ended", example: "chip", done: "Workflow %q was deleted", do: api.Workflows.Delete,
		details: "The jobs of its runs stay until they are collected as other jobs that have ended. A run that has not ended is not ended by it:\n" +
			"that is refused, and `nomadish workflow cancel` ends the run before.",
	}.spec()
}

func workflowRetry() spec {
	return spec{
		synopsis: "Run a workflow again from a stage on, and follow it",
		takes:    "workflow", usage: "<workflow>", example: "-stage place chip",
		details: "It is a new run of the workflow as it was run last: the stages before count as complete, and the jobs of the stage and of those after it are\n" +
			"registered anew. The last run must have ended.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			stage := fs.String("stage", "", "the `stage` to begin with; without it the first that is not complete")
			detach := fs.Bool("detach", false, "do not follow the run")
			user := fs.String("user", "", userUsage)
			return func(ctx context.Context, e *env, args []string) int {
				e.client = e.client.As(*user)
				reply, err := e.client.Workflows().Retry(ctx, args[0], *stage, e.query())
				if err != nil {
					return e.fail(err)
				}
				return followRun(ctx, e, structs.NamespacedID{Namespace: e.namespace, ID: args[0]}, reply, *detach)
			}
		},
	}
}

func workflowLogs() spec {
	return spec{
		synopsis: "Print the logs of a job of a workflow",
		usage:    "<workflow> <job> [<task>]", example: "-f chip synth",
		details: "The job is given by its name in the workflow, and is that of the last run. If it has several allocations, the newest running one is used, or\n" +
			"else the newest; standard error names it.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o tailOptions
			o.flags(fs)
			stderr := fs.Bool("stderr", false, "the task's standard error")
			group := fs.String("group", "", "an allocation of this `group`")
			return func(ctx context.Context, e *env, args []string) int {
				if err := o.check(); err != nil {
					return e.usage("%v", err)
				}
				if len(args) < 2 || len(args) > 3 {
					return e.usage("a workflow and one of its jobs are needed, and maybe a task; %d arguments given", len(args))
				}
				job, err := workflowReader{e}.jobID(ctx, args[0], args[1])
				if err != nil {
					return e.fail(err)
				}
				alloc, task, err := e.logSource(ctx, append([]string{job}, args[2:]...), "", *group, true)
				if err != nil {
					return e.fail(err)
				}
				kind := "stdout"
				if *stderr {
					kind = "stderr"
				}
				err = o.copyTail(ui.Raw(e.out), func(origin string, offset int64, follow bool, w io.Writer) error {
					return e.client.AllocFS().Logs(ctx, alloc, api.LogOptions{Task: task, Type: kind, Follow: follow, Origin: origin, Offset: offset}, w)
				})
				if err != nil && (!o.follow || !errors.Is(err, context.Canceled)) {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

// jobID returns the ID of a job of the last run of a workflow.
func (r workflowReader) jobID(ctx context.Context, workflow, job string) (string, error) {
	e := r.e
	id, err := r.named(ctx, workflow)
	if err != nil && strings.Count(workflow, "/") == 2 {
		return "", fmt.Errorf("%w; if %q is the ID of a job, `nomadish alloc logs -job %s` prints its logs", err, workflow, shellWord(workflow))
	}
	if err != nil {
		return "", err
	}
	w, _, err := e.client.Workflows().Info(ctx, id, e.query())
	if err != nil {
		return "", err
	}
	var names []string
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			if j.Name == job {
				return j.ID, nil
			}
			names = append(names, j.Name)
		}
	}
	return "", fmt.Errorf("workflow %q has no job %q; its jobs are %s", id, job, printable.EscapeLine(listedUpTo(names, 20)))
}
