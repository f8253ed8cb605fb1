package alloc

import (
	"time"

	"github.com/nomadish/nomadish/client/task"
	"github.com/nomadish/nomadish/structs"
)

// settle does what follows from a change until nothing more does, then reports to the
// node. The lock is held.
func (r *Runner) settle() {
	if !r.changed {
		return
	}
	for r.changed && !r.closed {
		r.changed = false
		r.step()
	}
	r.changed = false
	if r.closed {
		return
	}
	status, description := r.state.ClientStatus, r.state.ClientDescription
	r.sumUp()
	urgent := r.urgent && status != structs.AllocClientPending ||
		status != r.state.ClientStatus || description != r.state.ClientDescription
	r.urgent = false
	r.health.update(r)
	r.c.Host.Report(r.id, urgent)
}

// step starts and ends the tasks that are due.
func (r *Runner) step() {
	now := time.Now()
	r.updateSuspension(now)
	r.watchLimit(now)
	halt := r.halt
	if halt == haltNone && r.state.Expired {
		halt = haltStop
	}
	views := make([]view, len(r.tasks))
	for i, t := range r.tasks {
		views[i] = view{
			role: roleOf(t.Task()), leader: t.Task().Leader, waiting: t.Waiting(),
			running: t.Running(), ran: t.Ran(), dead: t.Dead(), failed: t.Failed(),
		}
	}
	for _, m := range moves(views, halt) {
		t := r.tasks[m.task]
		if m.start {
			if r.granted && !r.suspendWanted() {
				t.Start()
			}
			continue
		}
		t.Kill(r.reason(m, now), r.noDelay)
	}
}

// reason is the event of a task that is ended.
func (r *Runner) reason(m move, now time.Time) *structs.TaskEvent {
	switch m.why {
	case whySibling:
		return task.SiblingFailed(r.tasks[m.from].Name(), now)
	case whyLeader:
		return task.LeaderDead(now)
	case whyMain:
		return task.MainDead(now)
	case whyStop:
		if r.halt == haltNone && r.state.Expired {
			return task.MaxRunDuration(groupOf(r.alloc).MaxRunDuration, now)
		}
	case whyUnused:
	}
	return nil
}

// watchLimit starts the allocation's time when its first task runs.
func (r *Runner) watchLimit(now time.Time) {
	if r.state.StartedAt.IsZero() {
		for _, t := range r.tasks {
			if t.Ran() {
				r.state.StartedAt = now
				r.save(nil)
				break
			}
		}
	}
	limit := groupOf(r.alloc).MaxRunDuration
	if limit <= 0 || !r.state.SuspendedAt.IsZero() || r.state.StartedAt.IsZero() || r.state.Expired || r.limit != nil || !r.state.EndedAt.IsZero() {
		return
	}
	r.limit = time.AfterFunc(max(0, r.state.StartedAt.Add(limit+r.state.SuspendedFor).Sub(now)), func() {
		r.Do(func() {
			if r.closed || !r.state.EndedAt.IsZero() || !r.state.SuspendedAt.IsZero() || r.halt != haltNone {
				return
			}
			r.state.Expired, r.changed = true, true
			r.save(nil)
		})
	})
}

// sumUp derives the allocation's status from its tasks, and notes its end.
func (r *Runner) sumUp() {
	if !r.state.EndedAt.IsZero() {
		return
	}
	states := make([]*structs.TaskState, len(r.tasks))
	dead := true
	for i, t := range r.tasks {
		states[i] = t.Bare()
		dead = dead && t.Dead()
	}
	r.state.ClientStatus, r.state.ClientDescription = r.statusNow(states, dead)
	if !dead {
		return
	}
	r.state.EndedAt = time.Now()
	if r.limit != nil {
		r.limit.Stop()
	}
	r.save(nil)
	if r.ended != nil {
		close(r.ended)
	}
	r.c.Host.Room(r.id)
}
