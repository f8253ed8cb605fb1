package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// maxWaitsFor bounds the ends that are listed of what a group waits for.
const maxWaitsFor = 8

// group is a group of which instances wait, or a part of it as it stands in the queue.
type group struct {
	job     structs.NamespacedID
	name    string
	pool    string
	missing int
	// entitled: it is of those that are entitled alone.
	entitled bool
	// recounted: missing are all that a changed job lacks, those that replace what runs of it included.
	recounted bool
}

// waiting returns the groups that wait at a time, by namespace, job and name; of one of which a part is entitled this first.
func waiting(snap *state.Snapshot, now int64) []group {
	var list []group
	for _, line := range queueview.Order(snap, now) {
		list = append(list, group{job: line.Job.NamespacedID(), name: line.Group.Name, pool: line.Pool(), missing: line.Missing, entitled: line.Rank.IsEntitled()})
	}
	sortGroups(list)
	return list
}

// sortGroups orders groups by namespace, job and name. What is entitled of one comes before the rest of it already, as it does in the queue.
func sortGroups(list []group) {
	slices.SortStableFunc(list, func(a, b group) int {
		return cmp.Or(strings.Compare(a.job.Namespace, b.job.Namespace), strings.Compare(a.job.ID, b.job.ID), strings.Compare(a.name, b.name))
	})
}

// groupKey names a group.
type groupKey struct {
	job   structs.NamespacedID
	group string
}

// awaited is a group of which instances wait, as the run goes on.
type awaited struct {
	group
	left  int // instances that have not started
	room  int // that have not got room since the run began
	first time.Time
	all   time.Time // zero: some have not
	ends  []ending  // whose room they got
}

// ending is when an instance freed its room.
type ending struct {
	at time.Time
	in *instance
}

// watch sees when the groups that wait start, and by whose end.
type watch struct {
	l       *leader
	clients *clients
	groups  []*awaited
	of      map[groupKey][]*awaited // the lines of each group in the queue, of those that are entitled first
	open    int                     // of them, those of which instances have not started
	// freed is the last end on each node since the run began, and last that on any.
	freed map[string]ending
	last  ending

	runs  map[structs.NamespacedID]*awaitedRun
	order []*awaitedRun
}

func newWatch(l *leader, groups []group) *watch {
	w := &watch{l: l, of: map[groupKey][]*awaited{}, open: len(groups), freed: map[string]ending{}}
	for _, g := range groups {
		a, key := &awaited{group: g, left: g.missing, room: g.missing}, groupKey{g.job, g.name}
		w.groups = append(w.groups, a)
		w.of[key] = append(w.of[key], a)
	}
	return w
}

// awaited returns the lines of an instance's group that are awaited, in the order in which their instances start: those that are entitled go first.
func (w *watch) awaited(in *instance) []*awaited {
	lines := w.of[groupKey{in.job, in.group}]
	for len(lines) > 0 && !lines[0].all.IsZero() {
		lines = lines[1:]
	}
	return lines
}

// placed implements observer.
func (w *watch) placed(in *instance) {
	lines := w.awaited(in)
	if len(lines) == 0 {
		return
	}
	for len(lines) > 1 && lines[0].room <= 0 {
		lines = lines[1:]
	}
	a := lines[0]
	a.room--
	a.ends = w.freedFor(a.ends, in.node)
}

// freedFor returns ends with that whose room somebody gets who gets something of a node now.
func (w *watch) freedFor(ends []ending, node string) []ending {
	end, found := w.freed[node]
	if !found && w.last.in != nil && w.last.at.Equal(w.l.now) { // a license, a quota: it came free elsewhere
		end, found = w.last, true
	}
	if found && !slices.ContainsFunc(ends, func(e ending) bool { return e.in == end.in }) {
		ends = append(ends, end)
	}
	return ends
}

// starts implements observer.
func (w *watch) starts(in *instance) {
	if of := in.is.job.Workflow; of != nil {
		w.runStarts(structs.NamespacedID{Namespace: in.job.Namespace, ID: of.ID}, in)
	}
	lines := w.awaited(in)
	if in.before {
		in.before, lines = false, nil
	}
	if len(lines) == 0 {
		return
	}
	a := lines[0]
	if a.first.IsZero() {
		a.first = in.since
	}
	if a.left--; a.left <= 0 {
		a.all = in.since
		w.open--
	}
}

// ended implements observer.
func (w *watch) ended(in *instance) {
	w.last = ending{w.l.now, in}
	w.freed[in.node] = w.last
}

// stopped implements observer.
func (w *watch) stopped(in *instance) {
	lines := w.awaited(in)
	if len(lines) == 0 {
		return
	}
	if a := lines[len(lines)-1]; (in.before || !in.started.IsZero()) && in.phase != suspended && (!a.recounted || !w.replaced(in)) {
		a.left++ // it waits again, behind those that are entitled
	}
}

// replaced reports whether an instance is stopped as its job was changed: what replaces it is among those that wait.
func (w *watch) replaced(in *instance) bool {
	snap := w.l.store.Snapshot()
	row, job := snap.AllocRow(in.id), snap.Job(nil, in.job.Namespace, in.job.ID)
	return row != nil && job != nil && row.JobVersion() != job.Version && row.DesiredStatus() == structs.AllocDesiredStop
}

// results returns when each group starts; why states why the run ended before some of them did.
func (w *watch) results(why string) []structs.StartForecast {
	out := make([]structs.StartForecast, len(w.groups))
	holding, snap := map[string]string{}, w.l.store.Snapshot()
	for i, a := range w.groups {
		s := &out[i]
		if !a.first.IsZero() {
			s.First = a.first.UnixNano()
		}
		s.WaitsFor = w.waitsFor(a.ends)
		if !a.all.IsZero() {
			s.All = a.all.UnixNano()
			continue
		}
		if a.first.IsZero() {
			if s.Unknown = tooLarge(snap, a.job, a.name); s.Unknown != "" { // whatever ends
				continue
			}
		}
		text, known := holding[a.pool]
		if !known {
			text = w.clients.holding(a.pool)
			holding[a.pool] = text
		}
		s.Unknown = joined(why, text)
	}
	return out
}

// tooLarge states why a group cannot start on the nodes that there are, whatever ends; empty: it may be able to.
func tooLarge(snap *state.Snapshot, id structs.NamespacedID, name string) string {
	job := snap.Job(nil, id.Namespace, id.ID)
	if job == nil || job.Workflow != nil { // it may run in what its workflow has reserved alone
		return ""
	}
	g := job.LookupTaskGroup(name)
	if g == nil {
		return ""
	}
	return scheduler.TooLarge(snap.World(), job, g)
}

// joined joins reasons of which the second may be empty.
func joined(why, more string) string {
	if more == "" {
		return why
	}
	return why + "; " + more
}

// waitsFor returns the ends whose room somebody got.
func (w *watch) waitsFor(ends []ending) (list []structs.EndForecast) { // in the order of time
	slices.SortStableFunc(ends, func(a, b ending) int { return a.at.Compare(b.at) })
	if len(ends) > maxWaitsFor {
		ends = append(slices.Clone(ends[:maxWaitsFor-1]), ends[len(ends)-1])
	}
	snap := w.l.store.Snapshot()
	for _, e := range ends {
		end := structs.EndForecast{Time: e.at.UnixNano(), Namespace: e.in.job.Namespace, JobID: e.in.job.ID, Name: e.in.name}
		if node := snap.Node(nil, e.in.node); node != nil {
			end.NodeName = node.Name
		}
		list = append(list, end)
	}
	return list
}

// maxHolding bounds the instances that are named as holding their room.
const maxHolding = 3

// holding states what holds its room in a pool, as nobody knows when it ends; empty: nothing does.
func (c *clients) holding(pool string) string {
	snap := c.l.store.Snapshot()
	var names []string
	for _, in := range c.endless { // order does not matter: sorted below
		if node := snap.Node(nil, in.node); node == nil || cmp.Or(node.NodePool, structs.DefaultNodePool) != pool {
			continue
		}
		names = append(names, in.name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - maxHolding; n > 0 {
		names, more = names[:maxHolding], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more + " may hold their room: no max_run_duration and no finished run of their job or user"
}
