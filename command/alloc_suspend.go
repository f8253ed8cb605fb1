package command

import (
	"context"
	"flag"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

func allocSuspend() spec {
	return spec{
		synopsis: "Suspend an allocation's tasks in place and free its CPU",
		takes:    "allocation", usage: "<allocation>", example: "5f3a9c01",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			detach := fs.Bool("detach", false, "do not wait until the tasks are suspended")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				stub, err := e.oneAlloc(ctx, args[0])
				if err != nil {
					return e.fail(err)
				}
				if err := e.client.Allocations().Suspend(ctx, stub.ID); err != nil {
					return e.fail(err)
				}
				if *detach {
					return exitDone
				}
				return newMonitor(e, *verbose).suspension(ctx, stub.ID, structs.AllocClientSuspended)
			}
		},
	}
}

func allocResume() spec {
	return spec{
		synopsis: "Resume a suspended allocation in place",
		takes:    "allocation", usage: "<allocation>", example: "5f3a9c01",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			detach := fs.Bool("detach", false, "do not follow the evaluation")
			verbose := fs.Bool("verbose", false, "print whole IDs")
			return func(ctx context.Context, e *env, args []string) int {
				stub, err := e.oneAlloc(ctx, args[0])
				if err != nil {
					return e.fail(err)
				}
				reply, err := e.client.Allocations().Resume(ctx, stub.ID)
				if err != nil {
					return e.fail(err)
				}
				if *detach {
					e.printf("Evaluation ID: %s\n", reply.EvalID)
					return exitDone
				}
				return newMonitor(e, *verbose).resuming(ctx, stub.ID, reply.EvalID)
			}
		},
	}
}

// resuming follows an evaluation until it shows whether a suspended allocation goes
// on, and the allocation until it does. Exit code incomplete: there is no room for it.
func (m *monitor) resuming(ctx context.Context, alloc, eval string) int {
	m.e.printf("==> %s: Monitoring evaluation %q\n", m.e.now().Format("2006-01-02T15:04:05.000"), short(eval, m.verbose))
	ev, err := m.evalDone(ctx, eval)
	if err != nil {
		return m.stopped(err)
	}
	a, _, err := m.e.client.Allocations().Info(ctx, alloc, &api.Query{Namespace: structs.AllNamespaces})
	if err != nil {
		return m.stopped(err)
	}
	if a.Suspended() {
		if len(ev.FailedTGAllocs) > 0 {
			m.failures(ctx, ev)
		}
		m.line("Allocation %q stays suspended until there is room for it on node %q", short(a.ID, m.verbose), a.NodeName)
		return exitIncomplete
	}
	m.line("Evaluation %q finished with status %q", short(ev.ID, m.verbose), ev.Status)
	return m.suspension(ctx, alloc, structs.AllocClientRunning)
}

// suspension follows an allocation until its client reports that it is suspended, or goes
// on, or has ended. It prints what it waits for.
func (m *monitor) suspension(ctx context.Context, id, status string) int {
	ctx, cancel := context.WithTimeout(ctx, m.wait)
	defer cancel()
	q := &api.Query{Namespace: structs.AllNamespaces}
	printed := ""
	for {
		a, meta, err := m.e.client.Allocations().Info(ctx, id, q)
		if err != nil {
			return m.stopped(err)
		}
		m.jobID, m.ns = a.JobID, a.Namespace
		if now := a.ClientStatus + ": " + a.ClientDescription; now != printed {
			printed = now
			m.line("Allocation %q is %s (%s)", short(a.ID, m.verbose), a.ClientStatus, a.ClientDescription)
		}
		switch {
		case a.ClientStatus == status:
			return exitDone
		case a.Terminal():
			return exitFailed
		}
		q.Index, q.Wait = meta.Index, 5*time.Second
	}
}
