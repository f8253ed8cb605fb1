package backtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// settling is how much later than forecast a start may be that does not count as late: reports of clients are taken together.
const settling = time.Second

// statement is what estimates stated of a job that waited, Unix nanoseconds; 0: not known. They are in the order of trace.Estimators.
type statement struct {
	at    int64
	start [4]int64
	of    *made
	first bool
}

// made is a forecast that was made.
type made struct {
	at     time.Time
	stays  forecast.Stays
	places map[structs.NamespacedID]int
	// requests are those with a latest start, in the order of these; due is the first that has not been looked at.
	requests []*structs.RequestForecast
	due      int
	causes   map[structs.NamespacedID]cause // of those that were late
	first    map[structs.NamespacedID]bool
}

// forecast makes the forecast of a time.
func (b *backtest) forecast(ctx context.Context, at time.Time) error {
	if err := b.future.Run(ctx, at, func() error { return b.failed }, func() bool { return true }); err != nil { // the parts follow
		return err
	}
	m := &made{at: at, stays: b.stays(), places: map[structs.NamespacedID]int{}, causes: map[structs.NamespacedID]cause{}, first: map[structs.NamespacedID]bool{}}
	store := b.future.Store()
	f, err := forecast.Run(ctx, store, forecast.Options{Now: at, Horizon: b.c.Horizon, Stays: m.stays})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	snap := store.Snapshot()
	lines := queueview.Order(snap, at.UnixNano())
	for i, l := range lines {
		if id := l.Job.NamespacedID(); m.places[id] == 0 {
			m.places[id] = i + 1
		}
	}
	groups := f.Groups()
	b.figures.forecast(at, len(groups))
	if len(groups) > 0 {
		whole := b.wholeNodes(lines, at)
		alone := newAlone(snap, at)
		for _, q := range groups {
			id := structs.NamespacedID{Namespace: q.Namespace, ID: q.JobID}
			j := b.jobs[id]
			if j == nil || j.missing == 0 {
				continue
			}
			start, err := alone.start(j)
			if err != nil {
				return fmt.Errorf("job %s: %w", id, err)
			}
			s := statement{at: at.UnixNano(), start: [4]int64{q.Latest.All, q.Expected.All, whole[id], start}, of: m, first: len(j.stated) == 0}
			if s.first {
				b.open++
			}
			j.stated = append(j.stated, s)
			m.first[id] = s.first
			if q.Latest.All > 0 {
				m.requests = append(m.requests, q)
			}
		}
		slices.SortStableFunc(m.requests, func(x, y *structs.RequestForecast) int { return cmp.Compare(x.Latest.All, y.Latest.All) })
		b.watch(m)
	}
	return nil
}

// stays returns where instances are now.
func (b *backtest) stays() forecast.Stays {
	out := make(forecast.Stays, b.running+b.waiting)
	for node, list := range b.on { // each has its own place: the order cannot show
		for name, p := range list {
			out.Begin(name, node, p.from)
		}
	}
	return out
}

// watch has a forecast looked at when its next request should have started.
func (b *backtest) watch(m *made) {
	if m.due == len(m.requests) {
		m.stays, m.places, m.requests = nil, nil, nil // nothing is compared with it any more
		return
	}
	b.future.At(time.Unix(0, m.requests[m.due].Latest.All).Add(settling), func() { b.look(m) })
}

// look finds out why those did not start that should have by now.
func (b *backtest) look(m *made) {
	now := b.future.Now()
	for ; m.due < len(m.requests); m.due++ {
		q := m.requests[m.due]
		if time.Unix(0, q.Latest.All).Add(settling).After(now) {
			break
		}
		id := structs.NamespacedID{Namespace: q.Namespace, ID: q.JobID}
		if j := b.jobs[id]; j != nil && j.missing > 0 {
			m.causes[id] = b.judge(m, q, j)
		}
	}
	b.watch(m)
}

// cause is why a job is late.
type cause struct {
	of     string // one of the causes
	direct bool   // not that of another job, on whose end it waits
	who    []string
}

// maxWho bounds the instances that are named in a cause.
const maxWho = 8

// judge finds out who is in the way of a request that was forecast to start now at the latest: who is on a node of those on which it was to start, and was
// not to be there, and for whom these are reserved.
func (b *backtest) judge(m *made, q *structs.RequestForecast, j *job) cause {
	at := time.Unix(0, q.Latest.All)
	best, found := len(trace.Causes())-1, cause{of: trace.CauseUnknown}
	note := func(why, who string, direct bool) {
		if i := slices.Index(trace.Causes(), why); i < best || i == best && direct && !found.direct {
			best, found.of, found.direct = i, why, direct
		}
		if len(found.who) < maxWho {
			found.who = append(found.who, who)
		}
	}
	nodes := b.nodesOf(m, j, q)
	for _, node := range nodes {
		for _, name := range sortedNames(b.on[node]) {
			p := b.on[node][name]
			was := m.stays.At(name, at)
			if p.job == j || was != nil && was.Node == node {
				continue
			}
			why := b.why(m, j, p, was != nil, m.stays.After(name, at))
			if root, late := m.causes[p.job.id]; late && (why == trace.CauseDelayed || why == trace.CauseElsewhere || why == trace.CausePassedElsewhere) {
				note(root.of, name+": late itself: "+root.of, false)
				continue
			}
			note(why, name+": "+why, true)
		}
	}
	for r := range b.future.Store().Snapshot().Reservations(nil) {
		if id := (structs.NamespacedID{Namespace: r.Namespace, ID: r.JobID}); id != j.id && slices.Contains(nodes, r.NodeID) {
			why := b.whyReserved(m, j, id)
			note(why, id.Namespace+"/"+id.ID+": "+why, true)
		}
	}
	return found
}

// whyReserved returns why room that a job was forecast to get is reserved for another one.
func (b *backtest) whyReserved(m *made, j *job, id structs.NamespacedID) string {
	if x := b.jobs[id]; x != nil && m.places[id] == 0 && b.ranksHigher(&placed{job: x, shares: b.shares}, j) {
		return trace.CauseArrived
	}
	return trace.CauseReserved
}

// nodesOf returns the nodes on which a request was forecast to start.
func (b *backtest) nodesOf(m *made, j *job, q *structs.RequestForecast) (nodes []string) {
	for i := range j.row.Count {
		for _, s := range m.stays[fmt.Sprintf("%s/%s.%s[%d]", q.Namespace, q.JobID, q.Group, i)] {
			if !slices.Contains(nodes, s.Node) {
				nodes = append(nodes, s.Node)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

func sortedNames(of map[string]*placed) []string {
	names := make([]string, 0, len(of))
	for name := range of { // sorted below
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// why returns why an instance has room that a job was forecast to get.
func (b *backtest) why(m *made, j *job, p *placed, wasElsewhere, wasLater bool) string {
	higher := b.ranksHigher(p, j)
	came := m.places[p.job.id] == 0 && p.from.After(m.at)
	switch {
	case came && higher:
		return trace.CauseArrived
	case came:
		return trace.CauseCame
	case wasElsewhere && higher:
		return trace.CauseElsewhere
	case wasElsewhere:
		return trace.CausePassedElsewhere
	case wasLater && higher:
		return trace.CauseOvertaken
	case wasLater:
		return trace.CausePassed
	}
	return trace.CauseDelayed
}

// ranksHigher reports whether an instance that was placed ranked higher then than a job that waits.
func (b *backtest) ranksHigher(p *placed, j *job) bool {
	rank := func(x *job) structs.Rank {
		share := p.shares[x.id.Namespace]
		if x.row.Tenant == "" {
			return x.rank.Shared(share, 0)
		}
		return x.rank.Shared(share, share)
	}
	a, o := rank(p.job), rank(j)
	return a.Compare(&o) < 0
}
