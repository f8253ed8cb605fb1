package command

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

// allocAndTask reads "<allocation> [<task>]"; -task may name the task as well.
func (e *env) allocAndTask(ctx context.Context, args []string, flagged string) (alloc, task string, err error) {
	switch {
	case len(args) == 0 || len(args) > 2:
		return "", "", fmt.Errorf("an allocation is needed, and maybe one of its tasks; %d arguments given", len(args))
	case len(args) == 2 && flagged != "" && args[1] != flagged:
		return "", "", fmt.Errorf("two tasks are named, %q and %q: name one", args[1], flagged)
	case len(args) == 2:
		flagged = args[1]
	}
	stub, err := e.oneAlloc(ctx, args[0])
	if err != nil {
		return "", "", err
	}
	return stub.ID, flagged, nil
}

func allocSignal() spec {
	return spec{
		synopsis: "Send a signal to an allocation's tasks",
		usage:    "<allocation> [<task>]", example: "-s SIGHUP 5f3a9c01 web",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			signal := fs.String("s", "SIGKILL", "the `signal`, such as SIGHUP")
			task := fs.String("task", "", "only this `task`")
			fs.Bool("verbose", false, "accepted, for scripts made for Nomad")
			return func(ctx context.Context, e *env, args []string) int {
				id, name, err := e.allocAndTask(ctx, args, *task)
				if err != nil {
					return e.fail(err)
				}
				sent := strings.ToUpper(*signal)
				if !strings.HasPrefix(sent, "SIG") {
					sent = "SIG" + sent
				}
				if err := e.client.Allocations().Signal(ctx, id, name, sent); err != nil {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

func allocRestart() spec {
	return spec{
		synopsis: "Restart an allocation's tasks in place",
		usage:    "<allocation> [<task>]", example: "5f3a9c01 web",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			task := fs.String("task", "", "only this `task`")
			all := fs.Bool("all-tasks", false, "also tasks that have ended")
			fs.Bool("verbose", false, "accepted, for scripts made for Nomad")
			return func(ctx context.Context, e *env, args []string) int {
				if *all && (*task != "" || len(args) == 2) {
					return e.usage("-all-tasks and a task exclude each other")
				}
				id, name, err := e.allocAndTask(ctx, args, *task)
				if err != nil {
					return e.fail(err)
				}
				p := e.waiting("restarting: tasks that run end first, which may take their kill_timeout")
				err = e.client.Allocations().Restart(ctx, id, name, *all)
				p.stop()
				if err != nil {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

func allocStop() spec {
	return spec{
		synopsis: "Stop allocations; their jobs place replacements",
		usage:    "<allocation>...", example: "5f3a9c01",
		details: "When stdin is a terminal, the command asks for confirmation before it stops more than one allocation; -yes answers yes.\n" +
			"It also asks when an ID is shorter than the short ID that lists print. Without a terminal, both are refused unless -yes is set.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			b := bulk{guards: true}
			b.flags(fs, "allocations")
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			hurry := fs.Bool("no-shutdown-delay", false, "do not wait for the group's shutdown_delay")
			return func(ctx context.Context, e *env, args []string) int {
				allocs, err := b.allocTargets(ctx, e, args)
				if err != nil {
					return e.fail(err)
				}
				return b.each(ctx, e, "Stop", "allocation", allocs, func(t target) int {
					reply, err := e.client.Allocations().Stop(ctx, t.id, *hurry)
					if err != nil {
						return e.fail(err)
					}
					return e.follow(ctx, reply.EvalID, *detach, *verbose)
				})
			}
		},
	}
}
