package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// Bounds of what a restart does at once, and of the wait for each answer of a blocking query.
const (
	maxRestarting = 32
	restartPoll   = 2 * time.Second
)

var errStopped = errors.New("ended before the last batch")

// restarter restarts the allocations of one job.
type restarter struct {
	e        *env
	o        *restartOptions
	confirms *confirmer

	mu sync.Mutex // of what is printed
}

func (r *restarter) head(format string, args ...any) {
	r.e.printf("==> %s: %s\n", r.e.now().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func (r *restarter) line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.e.printf("    %s: %s\n", r.e.now().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

// job restarts a job's allocations and returns the exit code.
func (r *restarter) job(ctx context.Context, id string) int {
	job, _, err := r.e.client.Jobs().Info(ctx, id, r.e.query())
	if err != nil {
		return r.e.fail(err)
	}
	if err := r.o.check(job); err != nil {
		return r.e.fail(err)
	}
	if job.Multiregion != nil && !r.o.yes {
		yes, err := r.confirms.yes(ctx, fmt.Sprintf("Job %q runs in several regions; restart only its allocations in region %q? [y/N] ", job.ID, job.Region), false)
		if err != nil {
			return r.e.fail(err)
		}
		if !yes {
			return r.e.fail(errors.New("nothing was done"))
		}
	}
	all, _, err := r.e.client.Jobs().Allocations(ctx, id, true, r.e.query())
	if err != nil {
		return r.e.fail(err)
	}
	allocs := r.o.chosen(all)
	if len(allocs) == 0 {
		r.e.printf("No allocations to restart\n")
		return exitDone
	}
	doing := "Restarting"
	if r.o.reschedule {
		doing = "Rescheduling"
	}
	r.head("%s %s", doing, plural(len(allocs), "allocation"))
	failed, err := r.batches(ctx, doing, r.o.batches(allocs))
	switch {
	case err != nil && ctx.Err() != nil:
		r.head("Interrupted; allocations that were not restarted yet are left as they are")
		return exitInterrupted
	case err != nil:
		r.head("Job restart %s", err)
		return exitFailed
	case failed > 0:
		r.head("Finished job restart, with errors in %s", plural(failed, "allocation"))
		return exitFailed
	}
	r.head("Finished job restart")
	r.e.printf("\nAll allocations %s successfully!\n", map[bool]string{false: "restarted", true: "rescheduled"}[r.o.reschedule])
	return exitDone
}

// batches restarts one batch after the other, and returns how many allocations could not be restarted.
func (r *restarter) batches(ctx context.Context, doing string, batches [][]*structs.AllocListStub) (failed int, err error) {
	for i, batch := range batches {
		if i > 0 {
			if err := r.between(ctx); err != nil {
				return failed, err
			}
		}
		if len(batches) > 1 {
			r.head("%s %s batch of %s", doing, ordinal(i+1), plural(len(batch), "allocation"))
		}
		bad := r.batch(ctx, batch)
		failed += bad
		if ctx.Err() != nil {
			return failed, ctx.Err()
		}
		if bad == 0 || i == len(batches)-1 {
			continue
		}
		if err := r.afterErrors(ctx, bad); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// between waits between two batches, or asks.
func (r *restarter) between(ctx context.Context) error {
	if r.o.confirm {
		if err := r.proceed(ctx); err != nil {
			return err
		}
	}
	if r.o.wait <= 0 {
		return ctx.Err()
	}
	r.head("Waiting %s before the next batch", r.o.wait)
	timer := time.NewTimer(r.o.wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// proceed asks whether to go on with the next batch. An answer that is a time is waited from then on, without asking.
func (r *restarter) proceed(ctx context.Context) error {
	for {
		answer, err := r.confirms.confirm(ctx, fmt.Sprintf("==> %s: Proceed with the next batch? [Y/n/<wait duration>] ", r.e.now().Format(time.RFC3339)))
		if err != nil {
			return err
		}
		switch strings.ToLower(answer) {
		case "", "y", "yes":
			return nil
		case "n", "no":
			return errStopped
		}
		if wait, err := time.ParseDuration(answer); err == nil && wait >= 0 {
			r.o.confirm, r.o.wait = false, wait
			return nil
		}
		r.e.eprintf("%q: answer y, n, or a time such as 30s\n", answer)
	}
}

// afterErrors decides, or asks, whether to go on after a batch with errors.
func (r *restarter) afterErrors(ctx context.Context, bad int) error {
	switch r.o.onError {
	case ignoreWord:
		return nil
	case failWord:
		return errStopped
	}
	yes, err := r.confirms.yes(ctx, fmt.Sprintf("==> %s: %s could not be restarted. Go on with the next batch? [y/N] ",
		r.e.now().Format(time.RFC3339), plural(bad, "allocation")), false)
	if err == nil && !yes {
		err = errStopped
	}
	return err
}

// batch restarts allocations together, waits until they run again, and returns how many did not.
func (r *restarter) batch(ctx context.Context, batch []*structs.AllocListStub) int {
	var wg sync.WaitGroup
	errs := make([]error, len(batch))
	slots := make(chan struct{}, maxRestarting)
	for i, a := range batch {
		wg.Go(func() {
			slots <- struct{}{} // each that holds one releases it
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			errs[i] = r.alloc(ctx, a)
		})
	}
	wg.Wait()
	bad := 0
	for i, err := range errs {
		if err != nil && ctx.Err() == nil {
			bad++
			r.e.eprintf("Error: allocation %q of group %q: %s\n", short(batch[i].ID, r.o.verbose), batch[i].TaskGroup, err)
		}
	}
	return bad
}

// alloc restarts or reschedules one allocation, if it still runs, and waits for it.
func (r *restarter) alloc(ctx context.Context, listed *structs.AllocListStub) error {
	q := &api.Query{Namespace: listed.Namespace}
	a, _, err := r.e.client.Allocations().Info(ctx, listed.ID, q)
	if err != nil {
		return err
	}
	id := short(a.ID, r.o.verbose)
	if a.DesiredStatus != structs.AllocDesiredRun || a.ClientStatus != structs.AllocClientRunning {
		r.line("Allocation %q for group %q does not run any more, and is left as it is", id, a.TaskGroup)
		return nil
	}
	if r.o.reschedule {
		r.line("Rescheduling allocation %q for group %q", id, a.TaskGroup)
		return r.replace(ctx, a)
	}
	return r.restart(ctx, a)
}

// restart restarts tasks of an allocation in place and waits until they have started anew.
func (r *restarter) restart(ctx context.Context, a *structs.Allocation) error {
	id := short(a.ID, r.o.verbose)
	names := []string{""}
	switch {
	case len(r.o.tasks) > 0:
		names = r.o.tasksOf(a.TaskStates)
		for _, name := range names {
			r.line("Restarting task %q in allocation %q for group %q", name, id, a.TaskGroup)
		}
	case r.o.allTasks:
		r.line("Restarting all tasks in allocation %q for group %q", id, a.TaskGroup)
	default:
		r.line("Restarting running tasks in allocation %q for group %q", id, a.TaskGroup)
	}
	before := map[string]time.Time{} // of the tasks that are restarted, when they started last
	for name, task := range a.TaskStates {
		named := len(r.o.tasks) == 0 || r.o.tasks.has(name)
		if task != nil && named && task.State == structs.TaskStateRunning {
			before[name] = task.StartedAt
		}
	}
	for _, name := range names {
		if err := r.e.client.Allocations().Restart(ctx, a.ID, name, r.o.allTasks); err != nil {
			return err
		}
	}
	return r.await(ctx, a.ID, a.Namespace, func(a *structs.Allocation) bool {
		for name, was := range before {
			if task := a.TaskStates[name]; task == nil || task.StartedAt.Equal(was) || task.State == structs.TaskStatePending {
				return false
			}
		}
		return true
	})
}

// has reports whether a flag was given with a value.
func (l *listFlag) has(value string) bool {
	for _, v := range *l {
		if v == value {
			return true
		}
	}
	return false
}

// await waits until an allocation runs and done reports it, or it has completed. One that fails or is lost is an error.
func (r *restarter) await(ctx context.Context, id, namespace string, done func(*structs.Allocation) bool) error {
	q := &api.Query{Namespace: namespace}
	for {
		a, meta, err := r.e.client.Allocations().Info(ctx, id, q)
		if err != nil {
			return err
		}
		switch {
		case a.ClientStatus == structs.AllocClientComplete:
			return nil
		case structs.TerminalClientStatus(a.ClientStatus):
			return fmt.Errorf("allocation %q is %s: %s", short(a.ID, r.o.verbose), a.ClientStatus, orNothing(a.ClientDescription))
		case a.ServerTerminal():
			return fmt.Errorf("allocation %q was stopped meanwhile: %s", short(a.ID, r.o.verbose), orNothing(a.DesiredDescription))
		case a.ClientStatus == structs.AllocClientRunning && done(a):
			return nil
		}
		q.Index, q.Wait = meta.Index, restartPoll
	}
}

func orNothing(text string) string {
	if text == "" {
		return "no reason is known"
	}
	return text
}

// replace stops an allocation and waits until the one that is placed instead runs.
func (r *restarter) replace(ctx context.Context, a *structs.Allocation) error {
	reply, err := r.e.client.Allocations().Stop(ctx, a.ID, r.o.noShutdownDelay)
	if err != nil {
		return err
	}
	q := &api.Query{Namespace: a.Namespace}
	var eval *structs.Evaluation // as it was before the allocation is looked at: what it placed can be seen once it is complete
	for {
		old, meta, err := r.e.client.Allocations().Info(ctx, a.ID, q)
		if err != nil {
			return err
		}
		if old.NextAllocation != "" {
			r.line("Allocation %q replaces %q", short(old.NextAllocation, r.o.verbose), short(a.ID, r.o.verbose))
			return r.await(ctx, old.NextAllocation, a.Namespace, func(*structs.Allocation) bool { return true })
		}
		if eval != nil {
			if decided, err := r.decided(eval, old); decided || err != nil {
				return err
			}
		}
		if eval, _, err = r.e.client.Evaluations().Info(ctx, reply.EvalID, &api.Query{Namespace: a.Namespace}); err != nil {
			return err
		}
		q.Index, q.Wait = meta.Index, restartPoll
	}
}

// decided reports whether the evaluation of a stop is over without a replacement; it is an error if there was no room for one.
func (r *restarter) decided(eval *structs.Evaluation, old *structs.Allocation) (bool, error) {
	switch {
	case eval.Status == structs.EvalStatusFailed || eval.Status == structs.EvalStatusCancelled:
		return true, fmt.Errorf("its replacement was not decided: evaluation %q is %s: %s", short(eval.ID, r.o.verbose), eval.Status, orNothing(eval.StatusDescription))
	case eval.FailedTGAllocs[old.TaskGroup] != nil:
		return true, fmt.Errorf("no replacement was placed: %s", strings.Join(explain(eval.FailedTGAllocs[old.TaskGroup]), "; "))
	case eval.Status == structs.EvalStatusComplete && old.ServerTerminal() && structs.TerminalClientStatus(old.ClientStatus):
		r.line("Allocation %q has ended, and its job wants no other", short(old.ID, r.o.verbose))
		return true, nil
	}
	return false, nil
}

// confirmer asks the user, one question after the other.
type confirmer struct {
	e     *env
	lines chan string
}

// confirm prints a question and returns the answer, without white space around it. It is an error if nobody answers.
func (a *confirmer) confirm(ctx context.Context, question string) (string, error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() { // ends with the input, or with the process
			defer close(a.lines)
			in := bufio.NewScanner(a.e.in)
			for in.Scan() {
				a.lines <- in.Text()
			}
		}()
	}
	a.e.eprintf("%s", question)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case answer, ok := <-a.lines:
		if !ok {
			a.e.eprintf("\n")
			return "", errors.New("ended before the last batch: standard input is no terminal, so nobody can confirm; use -yes, -batch-wait or -on-error")
		}
		return strings.TrimSpace(answer), nil
	}
}

// yes asks a question that is answered by y or n; an empty answer is byDefault.
func (a *confirmer) yes(ctx context.Context, question string, byDefault bool) (bool, error) {
	answer, err := a.confirm(ctx, question)
	switch strings.ToLower(answer) {
	case "":
		return byDefault, err
	case "y", "yes":
		return true, err
	}
	return false, err
}
