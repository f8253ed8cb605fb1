package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/structs"
)

// tailBytes is what -tail shows by default.
const (
	tailLines   = 10
	lineGuess   = 120     // bytes a line, to fetch about enough
	maxTailRead = 8 << 20 // bytes looked through for lines
)

// tailOptions select which part of a file is wanted.
type tailOptions struct {
	follow, tail bool
	lines, bytes int64
}

func (o *tailOptions) flags(fs *flag.FlagSet) {
	fs.BoolVar(&o.follow, "f", false, "follow the file as it grows")
	fs.BoolVar(&o.tail, "tail", false, "only the end")
	fs.Int64Var(&o.lines, "n", 0, "only the last `N` lines (10 with -tail)")
	fs.Int64Var(&o.bytes, "c", 0, "only the last `N` bytes")
}

// check settles what was requested: lines, bytes, or all (both 0).
func (o *tailOptions) check() error {
	switch {
	case o.lines < 0 || o.bytes < 0:
		return errors.New("-n and -c take numbers from 0")
	case o.lines > 0 && o.bytes > 0:
		return errors.New("-n and -c exclude each other")
	case o.tail && o.lines == 0 && o.bytes == 0:
		o.lines = tailLines
	}
	return nil
}

// copyTail writes what is wanted to w. open copies the file from origin and offset,
// following or not.
func (o *tailOptions) copyTail(w io.Writer, open func(origin string, offset int64, follow bool, w io.Writer) error) error {
	if o.lines == 0 {
		origin := "start"
		if o.bytes > 0 {
			origin = "end"
		}
		return open(origin, o.bytes, o.follow, w)
	}
	// Lines: look at a growing end of the file until it has enough of them.
	size := min(o.lines, maxTailRead/lineGuess) * lineGuess
	for {
		var buf strings.Builder
		if err := open("end", size, false, &buf); err != nil {
			return err
		}
		text := buf.String()
		last, enough := lastLines(text, o.lines)
		if !enough && int64(len(text)) >= size && size < maxTailRead {
			size = min(size*4, maxTailRead)
			continue
		}
		if o.follow {
			return open("end", int64(len(last)), true, w)
		}
		_, err := io.WriteString(w, last)
		return err
	}
}

// lastLines cuts off all but the last n lines; false: there are not that many.
func lastLines(text string, n int64) (string, bool) {
	at := len(strings.TrimSuffix(text, "\n"))
	for range n {
		at = strings.LastIndexByte(text[:at], '\n')
		if at < 0 {
			return text, false
		}
	}
	return text[at+1:], true
}

func allocLogs() spec {
	return spec{
		synopsis: "Print the logs of a task",
		usage:    "<allocation> [<task>]", example: "-f -tail 5f3a9c01 web",
		details: "With -job, the newest running allocation of the job is used. If several run, standard error names the one\nthat was chosen.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o tailOptions
			o.flags(fs)
			stderr := fs.Bool("stderr", false, "the task's standard error")
			stdout := fs.Bool("stdout", false, "the task's standard output (the default)")
			task := fs.String("task", "", "the `task`, if there are several")
			job := fs.Bool("job", false, "a job is named instead of an allocation")
			group := fs.String("group", "", "with -job: an allocation of this `group`")
			fs.Bool("verbose", false, "accepted, for scripts made for Nomad")
			return func(ctx context.Context, e *env, args []string) int {
				if err := o.check(); err != nil {
					return e.usage("%v", err)
				}
				if *stderr && *stdout {
					return e.usage("-stderr and -stdout exclude each other")
				}
				alloc, name, err := e.logSource(ctx, args, *task, *group, *job)
				if err != nil {
					return e.fail(err)
				}
				kind := "stdout"
				if *stderr {
					kind = "stderr"
				}
				err = o.copyTail(ui.Raw(e.out), func(origin string, offset int64, follow bool, w io.Writer) error {
					return e.client.AllocFS().Logs(ctx, alloc, api.LogOptions{Task: name, Type: kind, Follow: follow, Origin: origin, Offset: offset}, w)
				})
				if o.follow && errors.Is(err, context.Canceled) {
					return exitDone // this is how following ends
				}
				if err != nil {
					return e.fail(err)
				}
				return exitDone
			}
		},
	}
}

// logSource finds the allocation and the task that are meant.
func (e *env) logSource(ctx context.Context, args []string, task, group string, job bool) (alloc, name string, err error) {
	if job {
		if len(args) == 0 || len(args) > 2 {
			return "", "", fmt.Errorf("a job is needed, and maybe one of its tasks; %d arguments given", len(args))
		}
		if alloc, err = e.allocOfJob(ctx, args[0], group); err != nil {
			return "", "", err
		}
		args = append([]string{alloc}, args[1:]...)
	}
	if alloc, name, err = e.allocAndTask(ctx, args, task); err != nil || name != "" {
		return alloc, name, err
	}
	a, _, err := e.client.Allocations().Info(ctx, alloc, e.query())
	if err != nil {
		return "", "", err
	}
	switch names := taskNames(a); len(names) {
	case 0:
		return "", "", fmt.Errorf("allocation %s has no task that has started", short(alloc, false))
	case 1:
		return alloc, names[0], nil
	default:
		return "", "", fmt.Errorf("allocation %s has the tasks %s: name one", short(alloc, false), printable.EscapeLine(strings.Join(names, ", ")))
	}
}

// allocOfJob picks an allocation of a job: the newest that runs, or else the newest. Where
// there are several it prints which, beside what the command prints.
func (e *env) allocOfJob(ctx context.Context, job, group string) (string, error) {
	id, err := e.jobName(ctx, []string{job})
	if err != nil {
		return "", err
	}
	allocs, _, err := e.client.Jobs().Allocations(ctx, id, false, e.query())
	if err != nil {
		return "", err
	}
	allocs = slices.DeleteFunc(allocs, func(a *structs.AllocListStub) bool { return group != "" && a.TaskGroup != group })
	if len(allocs) == 0 {
		what := fmt.Sprintf("job %q", id)
		if group != "" {
			what += fmt.Sprintf(" group %q", group)
		}
		return "", fmt.Errorf("%s has no allocations (`nomadish job status %s` shows why)", what, printable.EscapeLine(shellWord(id)))
	}
	allocs = newestFirst(allocs)
	running := slices.DeleteFunc(slices.Clone(allocs), func(a *structs.AllocListStub) bool { return a.ClientStatus != structs.AllocClientRunning })
	taken, which := allocs[0], "none of them running, the newest"
	if len(running) > 0 {
		taken, which = running[0], fmt.Sprintf("%d of them running, the newest that runs", len(running))
	}
	if len(allocs) > 1 {
		e.eprintf("Of %d allocations, %s is taken: %s %q on node %q (`nomadish job allocs %s%s` lists all)\n",
			len(allocs), which, taken.Name, short(taken.ID, false), taken.NodeName, inNamespace(taken.Namespace), shellWord(id))
	}
	return taken.ID, nil
}
