package whatif

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// maxTaken bounds the instances that are listed as taken, and those that are listed as displaced.
const maxTaken = 1000

// departures are instances that left their nodes, by time; more is how many are not listed.
type departures struct {
	list []structs.WhatIfTaken
	more int
}

// groupKey names a group.
type groupKey struct{ namespace, job, group string }

func (k groupKey) compare(o groupKey) int {
	return cmp.Or(strings.Compare(k.namespace, o.namespace), strings.Compare(k.job, o.job), strings.Compare(k.group, o.group))
}

// waiter is a group of which instances wait, or waited.
type waiter struct {
	project string
	spec    uint64 // the index of the job's version, as it was known first
	waits   int    // instances; 0: none waited, and what starts is begun anew
	since   time.Time
	starts  []time.Time // in the order of time
	// changed: its job is another one than it was known as first, so that whatever it lacks waits, if it was not taken.
	changed bool
	grown   []time.Time // since when the last of those that wait do, where the changed job added them
}

// waitsSince returns since when one of the instances waits that wait, in the order in which they start.
func (w *waiter) waitsSince(i int) time.Time {
	if later := i - (w.waits - len(w.grown)); later >= 0 {
		return w.grown[later]
	}
	return w.since
}

// last returns when all instances that waited have started; zero: not all have.
func (w *waiter) last() (t time.Time) {
	if w.waits == 0 || len(w.starts) < w.waits {
		return t
	}
	return w.starts[w.waits-1]
}

// watch sees what becomes of a future by the changes of its state.
type watch struct {
	store *state.Store
	feed  *state.Feed
	known map[groupKey]*waiter
	usage *usage

	missing map[string]int      // instances that wait, by the key of their request
	lacking int                 // their sum
	open    map[string]openWork // allocations that have not started, or are suspended for others
	waiting map[string]bool     // those of the latter that were suspended at the beginning: they wait, and start when they go on
	flows   map[string]bool     // workflows that have not ended

	taken     departures           // for others
	displaced departures           // as their nodes are lost or drained
	back      map[string]departure // that are not, by instanceOf
	lack      *shortfalls
}

// departure is the line of an instance that has left and is not back.
type departure struct {
	of   *departures
	line int
}

// openWork is what an allocation that does not run waits for.
type openWork uint8

const (
	toStart openWork = iota + 1
	toResume
)

func newWatch(store *state.Store, now time.Time) *watch {
	snap := store.Snapshot()
	w := &watch{
		store: store, feed: store.Feed(snap.Index()), known: map[groupKey]*waiter{}, usage: newUsage(), missing: map[string]int{},
		open: map[string]openWork{}, waiting: map[string]bool{}, flows: map[string]bool{}, back: map[string]departure{}, lack: newShortfalls(),
	}
	for n := range snap.Nodes(nil, "", false) {
		w.usage.node(n)
	}
	for row := range snap.AllocRows(nil, structs.AllNamespaces) {
		w.usage.alloc(row.ID(), row)
		w.opened(row)
		if w.open[row.ID()] == toResume {
			w.waiting[row.ID()] = true
		}
		if !row.Terminal() {
			w.of(groupKey{row.Namespace(), row.JobID().ID, row.Group()})
		}
	}
	for r := range snap.Requests().Waiting(nil, structs.AllNamespaces) {
		w.requested(requestKey(r), r.Missing)
	}
	for r := range snap.Workflows(nil).List(structs.AllNamespaces, "", false) {
		w.flow(r)
	}
	w.submitted(now, true)
	return w
}

func requestKey(r *structs.PendingRequest) string { return r.Namespace + "/" + r.JobID + "/" + r.Group }

// of returns a group as it is known.
func (w *watch) of(k groupKey) (g *waiter, is bool) {
	if g = w.known[k]; g != nil {
		return g, true
	}
	g = &waiter{}
	if job := w.store.Snapshot().Job(nil, k.namespace, k.job); job != nil {
		g.project, g.spec = job.Project, job.JobModifyIndex
	}
	w.known[k] = g
	return g, false
}

// submitted takes in what waits at a time, by evaluations that nobody has decided yet too. Of groups that ran before only those count whose job is
// another one by now, or all at the beginning: others wait as they were taken, which is listed.
func (w *watch) submitted(now time.Time, beginning bool) {
	for _, line := range queueview.Order(w.store.Snapshot(), now.UnixNano()) {
		g, known := w.of(groupKey{line.Job.Namespace, line.Job.ID, line.Group.Name})
		if known && g.waits == 0 && g.spec == line.Job.JobModifyIndex && !beginning {
			continue
		}
		g.renewed(line.Job)
		if len(g.starts) == 0 && (g.waits == 0 || g.since.Equal(now)) {
			g.since = now
			g.waits = max(g.waits, line.Request.Missing) // a group may have two lines
			g.project = line.Job.Project
		}
	}
}

// look takes in what has changed, at a time.
func (w *watch) look(now time.Time) error {
	return w.feed.Each(func(changes *state.Changes) {
		for i := range changes.Items {
			w.changed(&changes.Items[i], now)
		}
		for i := range changes.Items {
			if r, _ := changes.Items[i].New.(*structs.PendingRequest); r != nil && r.Missing > 0 {
				w.grow(r, now)
			}
		}
	})
}

func (w *watch) changed(c *state.Change, now time.Time) {
	switch c.Kind { //nolint:exhaustive // the others say nothing of what is shown
	case state.KindAlloc:
		was, _ := c.Old.(*state.AllocRow)
		is, _ := c.New.(*state.AllocRow)
		w.alloc(c.Key, was, is, now)
	case state.KindNode:
		if n, _ := c.New.(*structs.Node); n != nil {
			w.usage.node(n)
		} else {
			w.usage.drop(c.Key)
		}
		w.lack.stale = true
	case state.KindRequest:
		r, _ := c.New.(*structs.PendingRequest)
		if r == nil {
			w.requested(c.Key, 0)
			return
		}
		w.requested(c.Key, r.Missing)
		if r.Missing > 0 {
			if g, known := w.of(groupKey{r.Namespace, r.JobID, r.Group}); !known {
				g.waits, g.since = r.Missing, now
			}
		}
	case state.KindWorkflow:
		if r, _ := c.New.(*structs.WorkflowRun); r != nil {
			w.flow(r)
		} else {
			delete(w.flows, c.Key)
		}
	case state.KindVirtualCluster, state.KindExchange, state.KindProject:
		w.lack.stale = true
	}
}

// renewed notes whether the job of a group is another one by now.
func (w *waiter) renewed(job *structs.Job) {
	w.changed = w.changed || w.spec != 0 && w.spec != job.JobModifyIndex
	w.spec = job.JobModifyIndex
}

// grow takes in what a changed job lacks: more instances, and those whose replacements find no room. Those that were taken or displaced are listed as such.
func (w *watch) grow(r *structs.PendingRequest, now time.Time) {
	g, _ := w.of(groupKey{r.Namespace, r.JobID, r.Group})
	snap := w.store.Snapshot()
	job := snap.Job(nil, r.Namespace, r.JobID)
	if job == nil {
		return
	}
	if g.renewed(job); !g.changed {
		return
	}
	lacks := r.Missing
	for name := range w.back { // a count: the order cannot show
		if strings.HasPrefix(name, r.Namespace+"/"+r.JobID+"."+r.Group+"[") && strings.HasSuffix(name, "]") { // of one per node nobody waits for the node that is gone
			lacks--
		}
	}
	if lacks <= 0 {
		return
	}
	if g.waits == 0 {
		g.starts, g.since = nil, now
	}
	for row := range snap.AllocRowsByJob(nil, r.Namespace, r.JobID) {
		if row.Group() == r.Group && w.open[row.ID()] == toStart {
			lacks++ // it has its place, and starts before them
		}
	}
	before := g.waits
	for g.waits < len(g.starts)+lacks {
		g.waits++
		if before > 0 {
			g.grown = append(g.grown, now)
		}
	}
}

func (w *watch) requested(key string, missing int) {
	w.lacking += missing - w.missing[key]
	w.missing[key] = missing
	if missing == 0 {
		delete(w.missing, key)
	}
}

func (w *watch) flow(r *structs.WorkflowRun) {
	key := r.Namespace + "/" + r.ID
	if r.Alive() && r.State != structs.WorkflowPaused {
		w.flows[key] = true
	} else {
		delete(w.flows, key)
	}
}

// opened notes whether an allocation is still to start, or to be resumed.
func (w *watch) opened(row *state.AllocRow) {
	delete(w.open, row.ID())
	switch {
	case row.Terminal():
	case row.Suspended() && row.Whole().SuspendedAt > 0:
		w.open[row.ID()] = toResume
	case row.ClientStatus() == structs.AllocClientPending:
		w.open[row.ID()] = toStart
	}
}

// alloc takes in what has become of an allocation.
func (w *watch) alloc(id string, was, is *state.AllocRow, now time.Time) {
	w.usage.alloc(id, is)
	if is == nil {
		delete(w.open, id)
		return
	}
	w.opened(is)
	key := groupKey{is.Namespace(), is.JobID().ID, is.Group()}
	g, known := w.of(key)
	if was == nil && !known { // it was placed before anybody saw it wait
		g.since, g.waits = now, 1
		if job := w.store.Snapshot().Job(nil, key.namespace, key.job); job != nil && job.LookupTaskGroup(key.group) != nil {
			g.waits = job.LookupTaskGroup(key.group).Count
		}
	}
	runs := is.ClientStatus() == structs.AllocClientRunning && !is.Stopped() && !is.Suspended()
	if runs && (was == nil || was.ClientStatus() == structs.AllocClientPending || w.waiting[id]) {
		delete(w.waiting, id)
		g.starts = append(g.starts, now)
	}
	if runs {
		w.isBack(is, now)
	}
	if left := is.DesiredStatus() == structs.AllocDesiredEvict || is.Suspended(); left && was != nil && was.DesiredStatus() == structs.AllocDesiredRun {
		w.left(is, &w.taken, takenFor(is, w.store.Snapshot()), now)
		return
	}
	if why := displacedBy(was, is); why != "" {
		w.left(is, &w.displaced, why, now)
	}
}

// displacedBy returns why an allocation that ran leaves its node though nobody takes it: its node is lost or drained. Empty: it does not.
func displacedBy(was, is *state.AllocRow) string {
	if was == nil || was.Terminal() || was.DesiredStatus() != structs.AllocDesiredRun {
		return ""
	}
	switch {
	case is.ClientStatus() == structs.AllocClientLost:
		return "lost"
	case is.DesiredStatus() == structs.AllocDesiredStop && is.Whole().DesiredTransition.ShouldMigrate():
		return "drained"
	}
	return ""
}

// instanceOf names an instance, whichever allocation it is now. Those of a job that has one on each node have all the same name.
func (w *watch) instanceOf(a *structs.Allocation) string {
	name := a.Namespace + "/" + a.Name
	if job := w.store.Snapshot().Job(nil, a.Namespace, a.JobID); job != nil && job.PerNode() {
		name += " on " + a.NodeID
	}
	return name
}

// isBack notes that an instance runs that was taken.
func (w *watch) isBack(row *state.AllocRow, now time.Time) {
	if len(w.back) == 0 {
		return
	}
	name := w.instanceOf(row.Whole())
	if d, was := w.back[name]; was {
		d.of.list[d.line].Back = now.UnixNano()
		delete(w.back, name)
	}
}

// left notes that an instance has left its node, and why.
func (w *watch) left(row *state.AllocRow, in *departures, why string, now time.Time) {
	a := row.Whole()
	if _, away := w.back[w.instanceOf(a)]; away { // it was placed, and did not run before it had to leave again
		return
	}
	if len(in.list) == maxTaken {
		in.more++
		return
	}
	t := structs.WhatIfTaken{Time: now.UnixNano(), Namespace: a.Namespace, JobID: a.JobID, Name: a.Name, Suspended: row.Suspended(), For: why}
	if n := w.store.Snapshot().Node(nil, a.NodeID); n != nil {
		t.NodeName = n.Name
	}
	w.back[w.instanceOf(a)] = departure{in, len(in.list)}
	in.list = append(in.list, t)
}

// takenFor returns for what an allocation is taken.
func takenFor(row *state.AllocRow, snap *state.Snapshot) string {
	a := row.Whole()
	by := a.PreemptedByAllocation
	if by == "" {
		return a.DesiredDescription
	}
	if other := snap.AllocRow(by); other != nil {
		return strings.ReplaceAll(a.DesiredDescription, "allocation "+by, other.Whole().Name)
	}
	return strings.ReplaceAll(a.DesiredDescription, "allocation "+by, "an instance that is gone") // an ID that nobody knows says nothing
}

// idle reports whether nothing waits, nothing is still to start or to be resumed, and no workflow runs.
func (w *watch) idle() bool { return w.lacking == 0 && len(w.open) == 0 && len(w.flows) == 0 }

// settled takes in how things stand when nothing is left to be done at a time.
func (w *watch) settled(now time.Time) {
	w.usage.settled(now, w.lacking)
	w.lack.look(w.store.Snapshot(), now)
}

// lines returns the groups that waited, in order.
func (w *watch) lines() (keys []groupKey) {
	for k, g := range w.known { // order does not matter: sorted below
		if g.waits > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, groupKey.compare)
	return keys
}
