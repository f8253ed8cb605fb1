package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// confirmWord is the value of -batch-wait and -on-error by which the user is asked; failWord and ignoreWord state what else is done
// after a batch with errors.
const confirmWord, failWord, ignoreWord = "ask", "fail", "ignore"

// restartOptions select which allocations of a job are restarted, and how.
type restartOptions struct {
	size    int // of a batch: allocations, or percent of them
	percent bool
	wait    time.Duration // between batches
	confirm bool          // between batches
	groups  listFlag
	tasks   listFlag

	allTasks, reschedule, noShutdownDelay bool
	yes, verbose                          bool

	onError string // confirmWord, failWord, or with -yes alone ignoreWord
}

func jobRestart() spec {
	return spec{
		synopsis: "Restart or reschedule the allocations of a job in batches",
		usage:    "<job>", example: "-batch-size 25% -batch-wait 10s web",
		details: "Running tasks are restarted in place, one allocation at a time, and each batch must run again before the next one is\n" +
			"restarted. With -reschedule the allocations are stopped instead, and their replacements must run. Update blocks such as\n" +
			"max_parallel and health checks are not taken into account. Exits 1 if an allocation could not be restarted, or if the\n" +
			"user ends it before the last batch.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var o restartOptions
			size := fs.String("batch-size", "1", "how many allocations are restarted at once, a `number or a percentage` of those that run, rounded up")
			wait := fs.String("batch-wait", "0s", "the `time` to wait between batches, or \"ask\": ask for confirmation before each batch (the answer may be a time); \"ask\" needs a terminal")
			fs.StringVar(&o.onError, "on-error", confirmWord, "what to `do` when a batch has errors: \"ask\" whether to continue, or \"fail\"")
			fs.Var(&o.groups, "group", "only allocations of this `group`; repeatable")
			fs.Var(&o.tasks, "task", "only this `task`; repeatable")
			fs.BoolVar(&o.allTasks, "all-tasks", false, "also tasks that have ended")
			fs.BoolVar(&o.reschedule, "reschedule", false, "stop the allocations and have others placed instead")
			fs.BoolVar(&o.noShutdownDelay, "no-shutdown-delay", false, "with -reschedule, do not wait for shutdown_delay; a restart in place never does")
			fs.BoolVar(&o.yes, "yes", false, "answer yes to questions, also to those of -batch-wait ask, and continue after errors unless -on-error is set")
			fs.BoolVar(&o.verbose, "verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				if err := o.parse(fs, *size, *wait); err != nil {
					return e.usage("%v", err)
				}
				if o.confirm && !ui.IsTerminal(e.in) { // before the first batch, not between two of them
					return e.usage("-batch-wait %q needs a terminal; use a time, or -yes", confirmWord)
				}
				r := &restarter{e: e, o: &o, confirms: &confirmer{e: e}}
				id, err := e.jobName(ctx, args)
				if err != nil {
					return e.fail(err)
				}
				return r.job(ctx, id)
			}
		},
	}
}

// parse reads the flags that are words or numbers, and refuses those that contradict each other.
func (o *restartOptions) parse(fs *flag.FlagSet, size, wait string) error {
	number, percent := strings.CutSuffix(size, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || percent && n > 100 {
		return fmt.Errorf("-batch-size %q: must be a number from 1, or a percentage from 1%% to 100%%", size)
	}
	o.size, o.percent = n, percent
	if o.confirm = wait == confirmWord; !o.confirm {
		if o.wait, err = time.ParseDuration(wait); err != nil || o.wait < 0 {
			return fmt.Errorf("-batch-wait %q: must be a time such as 30s or 5m, or %q", wait, confirmWord)
		}
	}
	if o.onError != confirmWord && o.onError != failWord {
		return fmt.Errorf("-on-error %q: must be %q or %q", o.onError, confirmWord, failWord)
	}
	switch {
	case o.allTasks && len(o.tasks) > 0:
		return errors.New("-all-tasks and -task exclude each other")
	case o.reschedule && len(o.tasks) > 0:
		return errors.New("-reschedule and -task exclude each other: an allocation is rescheduled as a whole")
	}
	if o.yes {
		o.confirm = false
		if !stated(fs, "on-error") {
			o.onError = ignoreWord
		}
	}
	return nil
}

// batches splits allocations as -batch-size states.
func (o *restartOptions) batches(allocs []*structs.AllocListStub) [][]*structs.AllocListStub {
	size := o.size
	if o.percent {
		size = (len(allocs)*o.size + 99) / 100
	}
	return slices.Collect(slices.Chunk(allocs, max(1, size)))
}

// check refuses groups and tasks that the job does not have, and what jobs of its type cannot do.
func (o *restartOptions) check(job *structs.Job) error {
	if o.reschedule && job.Type == structs.JobTypeSysBatch {
		return fmt.Errorf("job %q is of type %s: its allocations cannot be rescheduled", job.ID, job.Type)
	}
	for _, name := range o.groups {
		if job.LookupTaskGroup(name) == nil {
			return fmt.Errorf("job %q has no group %q: name one of %s", job.ID, name, groupNames(job))
		}
	}
	var tasks []string // of the groups that are meant
	for _, g := range job.TaskGroups {
		if len(o.groups) > 0 && !slices.Contains(o.groups, g.Name) {
			continue
		}
		for _, t := range g.Tasks {
			if quoted := strconv.Quote(t.Name); !slices.Contains(tasks, quoted) {
				tasks = append(tasks, quoted)
			}
		}
	}
	for _, name := range o.tasks {
		if slices.Contains(tasks, strconv.Quote(name)) {
			continue
		}
		where := ""
		if len(o.groups) > 0 {
			where = " in the groups that -group names"
		}
		return fmt.Errorf("job %q has no task %q%s: name one of %s", job.ID, name, where, listText(tasks))
	}
	return nil
}

// wants reports whether an allocation is one to restart.
func (o *restartOptions) wants(a *structs.AllocListStub) bool {
	if a.DesiredStatus != structs.AllocDesiredRun || a.ClientStatus != structs.AllocClientRunning {
		return false
	}
	if len(o.groups) > 0 && !slices.Contains(o.groups, a.TaskGroup) {
		return false
	}
	return len(o.tasks) == 0 || len(o.tasksOf(a.TaskStates)) > 0
}

// tasksOf are the tasks of -task that an allocation has.
func (o *restartOptions) tasksOf(states map[string]*structs.TaskState) []string {
	var tasks []string
	for _, name := range o.tasks {
		if states[name] != nil && !slices.Contains(tasks, name) {
			tasks = append(tasks, name)
		}
	}
	return tasks
}

// chosen are the allocations to restart, by their names.
func (o *restartOptions) chosen(allocs []*structs.AllocListStub) []*structs.AllocListStub {
	var out []*structs.AllocListStub
	for _, a := range allocs {
		if o.wants(a) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b *structs.AllocListStub) int {
		return cmp.Or(cmp.Compare(a.TaskGroup, b.TaskGroup), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}
