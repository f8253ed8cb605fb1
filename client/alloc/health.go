package alloc

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Defaults of an update block, as the jobs documentation has them.
const (
	defaultMinHealthy = 10 * time.Second
	defaultDeadline   = 5 * time.Minute
)

// health decides once whether an allocation is healthy: when all its tasks ran for
// the minimum time without a restart; unhealthy when a task fails for good or the
// deadline comes first. Service checks are not looked at.
type health struct {
	watched  bool
	minimum  time.Duration
	okTimer  *time.Timer
	deadline *time.Timer
	// generation is of the deadline, streak of okTimer: a timer of an older one
	// that has fired already decides nothing.
	generation, streak int
}

// reset begins anew for the allocation's present version.
func (h *health) reset(r *Runner) {
	h.stop()
	h.generation++
	h.watched = false
	if d := r.state.Deployment; d != nil && d.Healthy != nil || !r.state.EndedAt.IsZero() {
		return
	}
	g := groupOf(r.alloc)
	if r.alloc.Job.Type != structs.JobTypeService && r.alloc.Job.Type != structs.JobTypeSystem {
		return
	}
	minimum, deadline, check := defaultMinHealthy, defaultDeadline, structs.HealthCheckChecks
	set := func(c *string, m, d *time.Duration) {
		if c != nil {
			check = *c
		}
		if m != nil {
			minimum = *m
		}
		if d != nil {
			deadline = *d
		}
	}
	switch {
	case g.Update != nil:
		set(g.Update.HealthCheck, g.Update.MinHealthyTime, g.Update.HealthyDeadline)
	case g.Migrate != nil:
		set(g.Migrate.HealthCheck, g.Migrate.MinHealthyTime, g.Migrate.HealthyDeadline)
	default:
		return
	}
	if check == structs.HealthCheckManual {
		return
	}
	h.watched, h.minimum = true, minimum
	h.deadline = h.after(r, deadline, false)
}

// after decides once d has passed, unless things have changed before.
func (h *health) after(r *Runner, d time.Duration, healthy bool) *time.Timer {
	gen, streak := h.generation, h.streak
	return time.AfterFunc(d, func() {
		r.Do(func() {
			if h.watched && h.generation == gen && (!healthy || h.streak == streak) && !r.closed {
				h.decide(r, healthy)
			}
		})
	})
}

// update looks at the tasks after a change.
func (h *health) update(r *Runner) {
	if !h.watched {
		return
	}
	if r.halt != haltNone || r.state.Expired {
		h.stop()
		h.watched = false
		return
	}
	if !r.state.SuspendedAt.IsZero() { // leaveSuspended begins anew
		h.stop()
		h.watched = false
		return
	}
	ok := true
	for _, t := range r.tasks {
		if t.Failed() {
			h.decide(r, false)
			return
		}
		switch roleOf(t.Task()) {
		case roleMain, rolePrestartSidecar, rolePoststartSidecar:
			ok = ok && t.Running()
		case rolePrestart:
			ok = ok && t.Dead()
		case rolePoststart:
			ok = ok && (t.Running() || t.Dead())
		case rolePoststop:
		}
	}
	switch {
	case ok && h.okTimer == nil:
		h.okTimer = h.after(r, h.minimum, true)
	case !ok && h.okTimer != nil:
		h.okTimer.Stop()
		h.okTimer = nil
		h.streak++
	}
}

func (h *health) decide(r *Runner, healthy bool) {
	h.stop()
	h.watched = false
	canary := r.state.Deployment != nil && r.state.Deployment.Canary
	r.state.Deployment = &structs.AllocDeploymentStatus{Healthy: &healthy, Timestamp: time.Now().UTC(), Canary: canary}
	r.save(nil)
	r.c.Host.Report(r.id, true)
}

func (h *health) stop() {
	for _, t := range []*time.Timer{h.okTimer, h.deadline} {
		if t != nil {
			t.Stop()
		}
	}
	h.okTimer, h.deadline = nil, nil
}
