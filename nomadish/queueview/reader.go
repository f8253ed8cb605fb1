package queueview

import (
	"cmp"
	"context"
	"encoding/base32"
	"encoding/binary"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// pauseFactor is how long a Reader pauses after it has made an order, in times of what that
// took: however often the queue changes, and however many watch it, putting it in order
// takes at most a fifth of one core.
const pauseFactor = 4

// keptOrders bounds the orders that a Reader keeps: of the last states that were requested.
const keptOrders = 4

// Reader serves the queue to many callers at once: to all that request the same state, the same order.
// Safe for concurrent use.
type Reader struct {
	busy      chan struct{} // taken by whoever reads or makes what follows
	made      []made        // latest first
	notBefore time.Time     // no order is made before
	now       func() time.Time
	latest    atomic.Pointer[made] // the first of made
}

// made is an order and what it was made of.
type made struct {
	snap  uint64 // the index of its snapshot
	of    [6]uint64
	lines []*Line
	until time.Time // the next is not made before
}

// NewReader makes a reader with a clock.
func NewReader(now func() time.Time) *Reader {
	return &Reader{busy: make(chan struct{}, 1), now: now}
}

// Lines returns all that waits, by pool and rank, at the snapshot or later. The lines are
// shared: never change them. It waits for its turn; the error is ctx's.
func (r *Reader) Lines(ctx context.Context, snap *state.Snapshot) ([]*Line, error) {
	select {
	case r.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.busy }()
	of := [6]uint64{
		snap.TableIndex(state.TableRequests), snap.TableIndex(state.TableEvals),
		snap.TableIndex(state.TableJobs), snap.TableIndex(state.TableConfig), snap.ProjectUsage(nil).NowIndex(),
	}
	if snap.World().AnyOwner() { // what is entitled follows from what is free of it
		of[5] = snap.Index()
	}
	for i := range r.made {
		if r.made[i].of == of {
			return r.made[i].lines, nil
		}
	}
	if len(r.made) > 0 && r.made[0].snap > snap.Index() {
		return r.made[0].lines, nil
	}
	if wait := r.notBefore.Sub(r.now()); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	start := r.now()
	lines := Order(snap, start.UnixNano())
	end := r.now()
	r.notBefore = end.Add(pauseFactor * end.Sub(start))
	latest := made{snap.Index(), of, lines, r.notBefore}
	r.made = append([]made{latest}, r.made[:min(len(r.made), keptOrders-1)]...)
	r.latest.Store(&latest)
	return lines, nil
}

// nearBy is how old an order may be while the next is made that [Reader.Around] returns.
const nearBy = time.Second

// Around is Lines for who wants to know where one job is: while no other order may be made, and while one is being made, it does not wait, but returns
// the last if the job stands in it as it does at the snapshot. Others may have come and gone since.
func (r *Reader) Around(ctx context.Context, snap *state.Snapshot, job *structs.Job) ([]*Line, error) {
	if m := r.latest.Load(); m != nil {
		old := r.now().Sub(m.until)
		if (old < 0 || old < nearBy && len(r.busy) > 0) && m.has(snap, job) {
			return m.lines, nil
		}
	}
	return r.Lines(ctx, snap)
}

// has reports whether a job stands in an order as it does at a snapshot.
func (m *made) has(snap *state.Snapshot, job *structs.Job) bool {
	for _, ev := range snap.EvalsByJob(nil, job.Namespace, job.ID) {
		if ev.Status == structs.EvalStatusPending { // something may be missing that no request states
			return false
		}
	}
	waits := map[*structs.PendingRequest]bool{}
	for _, g := range job.TaskGroups {
		if request := snap.Requests().Get(nil, job.Namespace, job.ID, g.Name); request != nil && request.Missing > 0 {
			waits[request] = true
		}
	}
	found := map[*structs.PendingRequest]bool{}
	for _, l := range m.lines {
		if l.Job.ID == job.ID && l.Job.Namespace == job.Namespace {
			if l.Job != job || !waits[l.Request] {
				return false
			}
			found[l.Request] = true
		}
	}
	return len(found) == len(waits)
}

// Index is the index that last changed what the queue shows.
func Index(snap *state.Snapshot) uint64 {
	return max(snap.TableIndex(state.TableRequests), snap.TableIndex(state.TableEvals),
		snap.TableIndex(state.TableConfig), snap.TableIndex(state.TableReservations), snap.ProjectUsage(nil).NowIndex())
}

// base32 in an alphabet whose order is that of the values, so that tokens sort as what
// they stand for.
var tokens = base32.HexEncoding.WithPadding(base32.NoPadding)

// Token names a line by its place in the order: it stays where it is when others come
// and go, and tokens sort as their lines do.
func (l *Line) Token() string {
	r := &l.Rank
	b := append(make([]byte, 0, 128), l.Pool()...)
	b = append(b, 0, byte(r.Standing), byte(r.Claim), byte(255-min(r.Band, 255)), 1) // a few each
	if r.Requeued {
		b[len(b)-1] = 0
	}
	b = binary.BigEndian.AppendUint64(b, ^(uint64(r.Number) ^ 1<<63)) // the highest first
	b = binary.BigEndian.AppendUint64(b, r.Submitted)
	for _, part := range []string{r.Job.Namespace, r.Job.ID, l.Group.Name} {
		b = append(append(b, part...), 0)
	}
	return tokens.EncodeToString(b)
}

// TokenOf returns a token of what names an entry of another list, in the order of these names.
func TokenOf(namespace, job, group string) string {
	return tokens.EncodeToString([]byte(namespace + "\x00" + job + "\x00" + group))
}

// From returns the lines at and after a token; empty: all.
func From(lines []*Line, token string) []*Line {
	if token == "" {
		return lines
	}
	return lines[sort.Search(len(lines), func(i int) bool { return lines[i].Token() >= token }):]
}

// Viewer makes entries of lines, at one snapshot and time.
type Viewer struct {
	snap     *state.Snapshot
	config   structs.SchedulerConfiguration
	now      int64
	reserved map[structs.PendingRequest]int // nodes by request
	idle     map[idleOf]int                 // nodes
}

// idleOf names what a workflow has idle of its reservation.
type idleOf struct{ workflow, what string }

// NewViewer makes a viewer; ws watches what it reads of the whole queue.
func NewViewer(ws *state.WatchSet, snap *state.Snapshot, now time.Time) *Viewer {
	v := &Viewer{snap: snap, config: snap.SchedulerConfig(ws), now: now.UnixNano(), reserved: map[structs.PendingRequest]int{}, idle: map[idleOf]int{}}
	for h := range snap.Reservations(ws) {
		v.reserved[structs.PendingRequest{Namespace: h.Namespace, JobID: h.JobID, Group: h.Group}]++
	}
	return v
}

// Entry is a line as it is shown.
func (v *Viewer) Entry(l *Line) *structs.QueueEntry {
	a := l.Request
	e := &structs.QueueEntry{
		Namespace: a.Namespace, JobID: a.JobID, Group: a.Group, NodePool: l.Pool(), Place: l.Place,
		Priority: v.config.PriorityOf(l.Job, a, l.Standing, v.now), Class: structs.ClassOpportunistic,
		Missing: l.Missing, Wanted: max(l.Group.Count, a.Missing), Since: a.Since, Waited: time.Duration(max(0, v.now-a.Since)), EvalID: a.EvalID,
		State: structs.QueueWaiting, ReservedNodes: v.reserved[structs.PendingRequest{Namespace: a.Namespace, JobID: a.JobID, Group: a.Group}],
		Suspended: v.suspended(l), ModifyIndex: a.ModifyIndex,
	}
	e.Project, e.Step = l.Job.Project, l.Job.Step
	e.Share, e.User, e.UserShare = l.Rank.Share, l.Job.UserName(), l.Rank.UserShare
	if l.Job.Class == structs.ClassGuaranteed { // it stands among the opportunistic ones while its claims do not suffice, but never runs as one
		e.Class = structs.ClassGuaranteed
	}
	if e.Priority.Standing = l.Rank.Standing; l.Rank.IsEntitled() {
		e.Class, e.Suspended, e.ReservedNodes = structs.ClassGuaranteed, 0, 0
	}
	switch {
	case e.Suspended > 0:
		e.State = structs.QueueSuspended
	case e.ReservedNodes > 0:
		e.State = structs.QueueReserved
	case !l.Tried:
		e.State = structs.QueueNotTried
	}
	ev := v.snap.Eval(nil, a.EvalID)
	switch {
	case ev == nil || !l.Tried:
	case ev.SnapshotIndex == 0 && !l.Rank.IsEntitled() && (v.snap.World().Owns(a.Namespace) || l.Job.Project != ""): // what is entitled of it was tried alone
		e.State = structs.QueueNotTried
	default:
		m := scheduler.CurrentReasons(ev.FailedTGAllocs[a.Group], v.idleNodes)
		e.Reason, e.ReasonNodes = m.MainReason()
		if why := m.SlotsReason(); why != "" && l.Rank.IsEntitled() {
			e.Reason, e.ReasonNodes = why, 0
		}
	}
	return e
}

// idleNodes returns on how many nodes a workflow has something idle of what it has reserved.
func (v *Viewer) idleNodes(key, what string) int {
	of := idleOf{key, what}
	n, known := v.idle[of]
	if !known {
		n = scheduler.IdleNodes(v.snap.World(), key, what)
		v.idle[of] = n
	}
	return n
}

// suspended counts the group's suspended instances that wait to go on. Few jobs have any:
// those that chose it, and those of which a user had one suspended, which count as starting
// once their node has reported it.
func (v *Viewer) suspended(l *Line) int {
	if l.Job.Reclaim != structs.ReclaimSuspend {
		counts := v.snap.JobSummary(nil, l.Request.Namespace, l.Request.JobID)
		if counts == nil || counts.Summary[l.Request.Group].Starting == 0 {
			return 0
		}
	}
	n := 0
	for _, a := range v.snap.AllocsByJob(nil, l.Request.Namespace, l.Request.JobID, false) {
		if a.TaskGroup == l.Request.Group && a.Suspended() && !a.DesiredTransition.ShouldSuspend() && !a.Terminal() {
			n++
		}
	}
	return n
}

// Shows reports whether a line is among those that a request names.
func Shows(l *Line, args *structs.QueueRequest) bool {
	ns := cmp.Or(args.Namespace, structs.DefaultNamespace)
	return (ns == structs.AllNamespaces || ns == l.Request.Namespace) && strings.HasPrefix(l.Request.JobID, args.Prefix) &&
		(args.NodePool == "" || args.NodePool == l.Pool())
}
