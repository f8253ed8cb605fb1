package forecast

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// phase is what an instance does on its node.
type phase uint8

const (
	starting  phase = iota // it is placed, and waits for those that leave its node
	running                // it runs
	suspended              // it is suspended in place
	leaving                // it was stopped, and has its kill timeout
)

// instance is an allocation on its node, as the model of clients has it.
type instance struct {
	id    string
	name  string
	job   structs.NamespacedID
	group string
	node  string
	is    *kind
	phase phase
	// before: it was placed when the run began, and had not started: it is none of those that wait.
	before bool

	started time.Time     // zero: it has not
	since   time.Time     // when it began to run, or goes on since
	ran     time.Duration // before that
	// lasts is how long it runs in all; 0: without end.
	lasts time.Duration
	next  *event    // its start, or its end
	gone  time.Time // when it leaves, while it does
}

// kind is what the model knows of a version of a group.
type kind struct {
	job    *structs.Job
	batch  bool
	limit  time.Duration // 0: none
	kill   time.Duration // between the order to stop and the end
	health time.Duration // after which an instance is reported to be healthy; 0: it is not reported
	tasks  []string
	// startUnread: no part of a leader decides by whether an instance that has been placed runs already.
	startUnread bool
}

// clients are the clients of all nodes, as a model.
type clients struct {
	l         *leader
	feed      *state.Feed
	instances map[string]*instance
	leavers   map[string][]*instance // by node
	silent    map[string]bool        // nodes whose client reports nothing
	kinds     map[*structs.TaskGroup]*kind
	reports   []report
	endless   map[string]*instance // those that run and have no end
	lasting   func(in *instance, ran time.Duration) time.Duration
	see       observer
	moved     func(*structs.WorkflowRun) // is called when a run of a workflow has changed; nil: nobody wants to know
	// terse: nobody but the leader's parts reads the state. Starts that none of them decides by are not reported: they are a third of all that is written.
	terse bool
	// rounds: ends are rounded (see rounded).
	rounds bool
}

// report is what is to be reported of an instance.
type report struct {
	in *instance
	*structs.AllocClientUpdate
}

// compareReports orders what is reported at the same time: by namespace and name, so that the IDs, which a forecast cannot know, make no difference.
func compareReports(a, b report) int {
	return cmp.Or(strings.Compare(a.in.job.Namespace, b.in.job.Namespace), strings.Compare(a.in.name, b.in.name))
}

// observer is who wants to know what becomes of instances.
type observer interface {
	placed(in *instance)  // it was placed now
	starts(in *instance)  // it starts now, or goes on after it was suspended
	ended(in *instance)   // its room comes free now
	stopped(in *instance) // it was stopped by the servers before it ended, or suspended
}

// newClients returns the clients of the nodes of a state. lasting returns how long an instance runs in all that has run for a time; 0: without end.
func newClients(l *leader, lasting func(*instance, time.Duration) time.Duration, see observer) *clients {
	snap := l.store.Snapshot()
	c := &clients{
		l: l, feed: l.store.Feed(snap.Index()), instances: map[string]*instance{}, leavers: map[string][]*instance{}, silent: map[string]bool{},
		kinds: map[*structs.TaskGroup]*kind{}, endless: map[string]*instance{}, lasting: lasting, see: see,
	}
	for n := range snap.Nodes(nil, "", false) {
		if n.Status != structs.NodeStatusReady {
			c.silent[n.ID] = true
		}
	}
	for row := range snap.AllocRows(nil, structs.AllNamespaces) {
		if !row.ClientTerminal() && !c.silent[row.NodeID()] {
			c.found(snap, row)
		}
	}
	return c
}

// found takes in an allocation that is on its node when the forecast begins.
func (c *clients) found(snap *state.Snapshot, row *state.AllocRow) {
	a := row.Whole()
	in := c.instanceOf(snap, row)
	if in == nil {
		return
	}
	now := c.l.now
	if a.ClientStatus != structs.AllocClientPending {
		in.started = startedAt(a, now)
	}
	switch {
	case row.Stopped():
		c.leave(in, time.Unix(0, a.ModifyTime))
	case row.Suspended():
		in.phase = suspended
		at := time.Unix(0, a.ModifyTime)
		if a.SuspendedAt > 0 {
			at = time.Unix(0, a.SuspendedAt)
		}
		if !in.started.IsZero() {
			in.ran = max(0, at.Sub(in.started))
		}
	case in.started.IsZero():
		in.before = true
		c.startAt(in, now)
	default:
		if res := row.Resources(); res != nil && in.is.limit > 0 && res.Shared.TimeLimit > in.is.limit { // it was suspended, its node alone knows for how long
			in.started = time.Unix(0, a.CreateTime).Add(res.Shared.TimeLimit - in.is.limit)
		}
		in.since = in.started
		c.runs(in)
	}
}

// startedAt returns when an allocation that runs started.
func startedAt(a *structs.Allocation, now time.Time) time.Time {
	first := time.Time{}
	for _, t := range a.TaskStates { // a minimum: the order cannot show
		if t != nil && !t.StartedAt.IsZero() && (first.IsZero() || t.StartedAt.Before(first)) {
			first = t.StartedAt
		}
	}
	if first.IsZero() || first.After(now) {
		return now
	}
	return first
}

// instanceOf makes the instance of an allocation; nil: its job's version is not known any more.
func (c *clients) instanceOf(snap *state.Snapshot, row *state.AllocRow) *instance {
	id := row.JobID()
	job := snap.JobVersion(id.Namespace, id.ID, row.JobVersion())
	if job == nil {
		return nil
	}
	is := c.kindOf(job, row.Group())
	if is == nil {
		return nil
	}
	in := &instance{id: row.ID(), name: row.Name(), job: id, group: row.Group(), node: row.NodeID(), is: is}
	c.instances[in.id] = in
	return in
}

func (c *clients) kindOf(job *structs.Job, group string) *kind {
	g := job.LookupTaskGroup(group)
	if g == nil {
		return nil
	}
	is := c.kinds[g]
	if is != nil {
		return is
	}
	is = &kind{job: job, batch: job.Type == structs.JobTypeBatch || job.Type == structs.JobTypeSysBatch, limit: g.MaxRunDuration}
	for _, t := range g.Tasks {
		is.kill = max(is.kill, g.ShutdownDelay+t.ShutdownDelay+t.KillTimeout)
		is.tasks = append(is.tasks, t.Name)
	}
	if u := g.Update; !is.batch && u != nil && u.MinHealthyTime != nil {
		is.health = max(time.Nanosecond, *u.MinHealthyTime)
	}
	is.startUnread = is.batch && g.Gang == nil && g.Disconnect == nil && job.Workflow == nil && is.health == 0
	c.kinds[g] = is
	return is
}

// follow takes in what the servers want of allocations, and reports what has become of them.
func (c *clients) follow(ctx context.Context) error {
	err := c.feed.Each(func(changes *state.Changes) {
		snap := c.l.store.Snapshot()
		for i := range changes.Items {
			switch x := &changes.Items[i]; x.Kind { //nolint:exhaustive // the others say nothing of what runs
			case state.KindAlloc:
				c.changed(snap, x)
			case state.KindWorkflow:
				if r, _ := x.New.(*structs.WorkflowRun); r != nil && c.moved != nil {
					c.moved(r)
				}
			}
		}
	})
	if err != nil {
		return err
	}
	return c.report(ctx)
}

// changed does what the servers want of an allocation.
func (c *clients) changed(snap *state.Snapshot, change *state.Change) {
	now, _ := change.New.(*state.AllocRow)
	in := c.instances[change.Key]
	switch {
	case in == nil && now != nil && !now.Terminal() && !c.silent[now.NodeID()]:
		if in = c.instanceOf(snap, now); in != nil {
			c.see.placed(in)
			c.startAt(in, c.freeAt(snap, in, now))
		}
	case in == nil:
	case now == nil || now.ClientTerminal():
		c.forget(in)
	case now.Stopped():
		if in.phase != leaving {
			c.see.stopped(in)
			c.leave(in, c.l.now)
		}
	case now.Suspended() && in.phase == running:
		c.see.stopped(in)
		in.next.stop()
		in.ran += c.l.now.Sub(in.since)
		in.phase = suspended
		delete(c.endless, in.id)
		c.state(in, structs.AllocClientSuspended)
	case !now.Suspended() && in.phase == suspended:
		in.since = c.l.now
		c.see.starts(in)
		c.state(in, structs.AllocClientRunning)
		c.runs(in)
	}
}

func (e *event) stop() {
	if e != nil {
		e.Stop()
	}
}

// startAt has an instance start at a time: not before all is decided that is decided now, as it may have to leave at once.
func (c *clients) startAt(in *instance, when time.Time) {
	in.next = c.l.at(when, func() { c.start(in) })
}

func (c *clients) start(in *instance) {
	in.started, in.since = c.l.now, c.l.now
	c.see.starts(in)
	if !c.terse || !in.is.startUnread {
		c.state(in, structs.AllocClientRunning)
	}
	if in.is.health > 0 {
		c.l.at(c.l.now.Add(in.is.health), func() { c.healthy(in) })
	}
	c.runs(in)
}

// healthy reports that an instance is.
func (c *clients) healthy(in *instance) {
	if in.phase != running || c.instances[in.id] != in {
		return
	}
	u := c.update(in, structs.AllocClientRunning)
	u.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: new(true), Timestamp: c.l.now}
	c.reports = append(c.reports, report{in, u})
}

// runs has an instance run until its end.
func (c *clients) runs(in *instance) {
	in.phase = running
	ran := in.ran + c.l.now.Sub(in.since)
	in.lasts = c.lasting(in, ran)
	if in.lasts == 0 {
		c.endless[in.id] = in
		return
	}
	end := c.l.now.Add(in.lasts - ran)
	if c.rounds {
		end = rounded(end, in.lasts)
		if most := latest(in, ran); most > 0 && end.After(c.l.now.Add(most-ran)) {
			end = c.l.now.Add(most - ran)
		}
	}
	in.next = c.l.at(end, func() { c.end(in) })
}

// end ends an instance by itself.
func (c *clients) end(in *instance) {
	u := c.update(in, structs.AllocClientComplete)
	if !in.is.batch {
		u.ClientDescription = structs.DescMaxRunDuration // it is not begun anew
	}
	c.reports = append(c.reports, report{in, u})
	c.see.ended(in)
	c.forget(in)
}

// leave has an instance end that was stopped at a time: when its kill timeout is over.
func (c *clients) leave(in *instance, at time.Time) {
	in.next.stop()
	delete(c.endless, in.id)
	if in.started.IsZero() {
		c.left(in)
		return
	}
	in.phase, in.gone = leaving, at.Add(in.is.kill)
	c.leavers[in.node] = append(c.leavers[in.node], in)
	in.next = c.l.at(in.gone, func() { c.left(in) })
}

// left reports the end of an instance that was stopped.
func (c *clients) left(in *instance) {
	u := c.update(in, structs.AllocClientComplete)
	for _, t := range u.TaskStates { // all get the same
		t.Events = []*structs.TaskEvent{{Type: structs.TaskKilled}}
	}
	c.reports = append(c.reports, report{in, u})
	c.forget(in)
}

// forget forgets an instance that has ended.
func (c *clients) forget(in *instance) {
	in.next.stop()
	delete(c.instances, in.id)
	delete(c.endless, in.id)
	if in.phase == leaving {
		c.leavers[in.node] = slices.DeleteFunc(c.leavers[in.node], func(o *instance) bool { return o == in })
	}
}

// state reports an instance's state.
func (c *clients) state(in *instance, status string) {
	c.reports = append(c.reports, report{in, c.update(in, status)})
}

func (c *clients) update(in *instance, status string) *structs.AllocClientUpdate {
	u := &structs.AllocClientUpdate{
		ID: in.id, NodeID: in.node, ClientStatus: status, ModifyTime: c.l.now.UnixNano(), TaskStates: make(map[string]*structs.TaskState, len(in.is.tasks)),
	}
	for _, name := range in.is.tasks {
		t := &structs.TaskState{State: structs.TaskStateRunning, StartedAt: in.started}
		if structs.TerminalClientStatus(status) {
			t.State, t.FinishedAt = structs.TaskStateDead, c.l.now
		}
		u.TaskStates[name] = t
	}
	return u
}

// report commits what there is to be reported, with the evaluations that it triggers.
func (c *clients) report(ctx context.Context) error {
	if len(c.reports) == 0 {
		return nil
	}
	snap, now := c.l.store.Snapshot(), c.l.now.UnixNano()
	slices.SortStableFunc(c.reports, compareReports)
	entry := &structs.AllocClientEntry{Time: now}
	reports := c.reports
	c.reports = nil
	seen := map[structs.NamespacedID]bool{}
	for _, r := range reports {
		u := r.AllocClientUpdate
		entry.Updates = append(entry.Updates, u)
		row := snap.AllocRow(u.ID)
		if row == nil || r.in.is.batch && u.ClientStatus == structs.AllocClientComplete && u.DeploymentStatus == nil && !row.Stopped() { // it is done
			continue
		}
		if seen[row.JobID()] || u.ClientStatus == structs.AllocClientRunning && u.DeploymentStatus == nil && row.ClientStatus() == structs.AllocClientPending {
			continue
		}
		id := row.JobID()
		job := snap.Job(nil, id.Namespace, id.ID)
		if job == nil || job.Stop {
			continue
		}
		trigger := structs.ReportTrigger(job, snap.AllocToDecide(u.ID), u)
		if trigger == "" || trigger == structs.EvalTriggerAllocHealth && !snap.OlderWait(job) {
			continue
		}
		seen[id] = true
		entry.Evals = append(entry.Evals, structs.NewEval(c.l.newID(), job, trigger, now))
	}
	_, err := c.l.Apply(ctx, structs.LogAllocClient, entry)
	return err
}
