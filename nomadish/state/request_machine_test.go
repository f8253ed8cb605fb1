package state

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// requestOracle says by the plainest means what each request has waited for and how long: it
// keeps all that ever happened to a request and counts it anew each time.
type requestOracle struct {
	groups map[string][]string // of the jobs that are registered
	stop   map[string]bool
	log    map[[2]string][]requestEvent
}

// requestEvent is one thing that happened to a request: so many are missing since then.
type requestEvent struct {
	missing   int
	at        int64 // of the entry
	since     int64 // what the plan says; 0: nothing
	reclaimed bool  // instances were taken for others; requeued: not all of them were suspended
	requeued  bool
	eval      string
}

// row is what must be known of a request; nil: nothing.
func (o *requestOracle) row(k [2]string) *structs.PendingRequest {
	a := structs.PendingRequest{Namespace: "default", JobID: k[0], Group: k[1]}
	for _, e := range o.log[k] {
		if e.requeued {
			a.Requeued++
		}
		switch {
		case e.missing == 0:
			if a.Missing > 0 {
				a.Aged += e.at/cycle - a.Since/cycle
			}
			a.Since, a.EvalID = 0, ""
		case a.Missing == 0:
			a.Since = e.at
			if e.since > 0 {
				a.Since = min(e.since, e.at)
			}
			a.EvalID = e.eval
		case !e.reclaimed:
			a.EvalID = e.eval
		}
		a.Missing = e.missing
	}
	if a.Missing == 0 && a.Aged == 0 && a.Requeued == 0 {
		return nil
	}
	return &a
}

func (o *requestOracle) wants(k [2]string) bool {
	return slices.Contains(o.groups[k[0]], k[1]) && !o.stop[k[0]]
}

func (o *requestOracle) missing(k [2]string) int {
	if a := o.row(k); a != nil {
		return a.Missing
	}
	return 0
}

// requestModel drives a store and the oracle.
type requestModel struct {
	store  *Store
	w      *Writer
	oracle requestOracle
	index  uint64
	now    int64
	seeds  int
	allocs map[string]*modelAlloc
}

type modelAlloc struct {
	key       [2]string
	over      bool
	suspended bool
}

func (m *requestModel) apply(t *rapid.T, entry any) {
	m.index++
	if err := m.w.Apply(m.index, 0, entry); err != nil {
		t.Fatalf("entry %d %T: %v", m.index, entry, err)
	}
}

func (m *requestModel) job(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "ab", "b"}).Draw(t, "job")
}

func (m *requestModel) key(t *rapid.T) [2]string {
	return [2]string{m.job(t), rapid.SampledFrom([]string{"web", "db"}).Draw(t, "group")}
}

func (m *requestModel) register(t *rapid.T) {
	id, groups := m.job(t), rapid.SampledFrom([][]string{{"web"}, {"db"}, {"web", "db"}}).Draw(t, "groups")
	j := job(id)
	j.TaskGroups = nil
	for _, g := range groups {
		j.TaskGroups = append(j.TaskGroups, &structs.TaskGroup{Name: g, Count: 1})
	}
	m.apply(t, &structs.JobRegisterEntry{Job: j, Time: m.now})
	for k := range m.oracle.log { // order does not matter: each by itself
		if k[0] == id && !slices.Contains(groups, k[1]) {
			delete(m.oracle.log, k)
		}
	}
	m.oracle.groups[id], m.oracle.stop[id] = groups, false
}

func (m *requestModel) deregister(t *rapid.T) {
	id := m.job(t)
	if m.oracle.groups[id] == nil {
		t.Skip("no such job")
	}
	purge := rapid.Bool().Draw(t, "purge")
	m.apply(t, &structs.JobDeregisterEntry{Namespace: "default", JobID: id, Purge: purge, Time: m.now})
	for k := range m.oracle.log { // order does not matter: each by itself
		switch {
		case k[0] != id:
		case purge:
			delete(m.oracle.log, k)
		default:
			m.oracle.log[k] = append(m.oracle.log[k], requestEvent{at: m.now})
		}
	}
	if m.oracle.stop[id] = true; purge {
		delete(m.oracle.groups, id)
		for _, a := range m.allocs { // order does not matter: each by itself
			if a.key[0] == id {
				a.over = true // of an earlier job: not to be counted for another of its name
			}
		}
	}
}

// plan draws one plan: it takes allocations back, says what is missing, and places.
func (m *requestModel) plan(t *rapid.T) {
	p := &structs.JudgedPlan{Time: m.now}
	taken, requeued, order := map[[2]string]int{}, map[[2]string]bool{}, [][2]string{}
	for _, id := range m.some(t) {
		suspend := rapid.Bool().Draw(t, "suspend")
		stop := &structs.AllocStop{AllocID: id, Reclaim: structs.ReclaimRequeue, DesiredStatus: structs.AllocDesiredEvict}
		if suspend {
			stop.Reclaim, stop.DesiredStatus = structs.ReclaimSuspend, structs.AllocDesiredSuspend
		}
		p.Stop = append(p.Stop, stop)
		a := m.allocs[id]
		if a.over {
			continue
		}
		if _, known := taken[a.key]; !known {
			order = append(order, a.key)
			taken[a.key] = 0
		}
		if !a.suspended {
			taken[a.key]++
		}
		requeued[a.key] = requeued[a.key] || !suspend
		a.suspended, a.over = suspend, !suspend
	}
	for _, k := range order {
		if m.oracle.wants(k) {
			m.oracle.log[k] = append(m.oracle.log[k], requestEvent{missing: m.oracle.missing(k) + taken[k], at: m.now, reclaimed: true, requeued: requeued[k]})
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "asks") {
		k := m.key(t)
		u := &structs.RequestUpdate{Namespace: "default", JobID: k[0], Group: k[1], Missing: rapid.IntRange(0, 3).Draw(t, "missing")}
		if u.Missing > 0 {
			u.Since = m.now - rapid.Int64Range(-1, 5).Draw(t, "waited")*cycle
			u.EvalID = rapid.SampledFrom([]string{"", "b1", "b2"}).Draw(t, "eval")
		}
		p.Requests = append(p.Requests, u)
		if m.oracle.wants(k) {
			m.oracle.log[k] = append(m.oracle.log[k], requestEvent{missing: u.Missing, at: m.now, since: u.Since, eval: u.EvalID})
		}
	}
	m.apply(t, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

// some draws a few allocations, in an order of its own.
func (m *requestModel) some(t *rapid.T) []string {
	ids := slices.Sorted(maps.Keys(m.allocs))
	if len(ids) == 0 {
		return nil
	}
	ids = rapid.Permutation(ids).Draw(t, "victims")
	return ids[:rapid.IntRange(0, min(3, len(ids))).Draw(t, "taken")]
}

func (m *requestModel) place(t *rapid.T) {
	k := m.key(t)
	if !m.oracle.wants(k) {
		t.Skip("nobody asks for it")
	}
	m.seeds++
	b := batch(k[0], 0, "n", fmt.Sprint("s", m.seeds), 2)
	b.Group = k[1]
	m.apply(t, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: m.now, Place: []*structs.PlacementBatch{b}}}})
	for i := range uint64(2) {
		m.allocs[structs.DeriveID(b.Seed, i)] = &modelAlloc{key: k}
	}
}

// restore replaces the store by what its export gives.
func (m *requestModel) restore(t *rapid.T) {
	store, w := New(Options{})
	in := w.Import()
	snap := m.store.Snapshot()
	if err := snap.Export(func(table string, row any) error { return copyRow(in, table, row) }); err != nil {
		t.Fatal(err)
	}
	w.Commit(in, m.index)
	if store.Snapshot().Hash() != snap.Hash() {
		t.Fatal("what was exported and imported has another hash")
	}
	m.store, m.w = store, w
}

func copyRow(in *Import, table string, row any) error {
	data, err := codec.Encode(row)
	if err != nil {
		return err
	}
	fresh, err := NewRow(table)
	if err != nil {
		return err
	}
	if err := codec.Decode(data, fresh); err != nil {
		return err
	}
	return in.Add(table, fresh)
}

func (m *requestModel) compare(t *rapid.T) {
	snap := m.store.Snapshot()
	waiting := 0
	for _, id := range []string{"a", "ab", "b"} {
		for _, group := range []string{"db", "web"} {
			want, have := m.oracle.row([2]string{id, group}), snap.Requests().Get(nil, "default", id, group)
			if have != nil {
				bare := *have
				bare.CreateIndex, bare.ModifyIndex = 0, 0
				have = &bare
			}
			if !reflect.DeepEqual(have, want) {
				t.Fatalf("index %d, %s/%s:\nhave %+v\nwant %+v", m.index, id, group, have, want)
			}
			if want != nil && want.Missing > 0 {
				waiting++
			}
		}
	}
	if n := len(slices.Collect(snap.Requests().Waiting(nil, "*"))); n != waiting {
		t.Fatalf("index %d: %d wait, not %d", m.index, n, waiting)
	}
	if d := Differences(snap); len(d) > 0 {
		t.Fatalf("index %d: %v", m.index, d)
	}
}

// Whatever plans and jobs do, each request has waited, was requeued and misses what a plain
// account of all that happened says; a restored snapshot goes on alike.
func TestRequestsAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, w := New(Options{})
		m := &requestModel{
			store: store, w: w, now: int64(time.Hour), allocs: map[string]*modelAlloc{},
			oracle: requestOracle{groups: map[string][]string{}, stop: map[string]bool{}, log: map[[2]string][]requestEvent{}},
		}
		m.apply(t, &structs.NodeRegisterEntry{Node: node("n"), Time: m.now})
		t.Repeat(map[string]func(*rapid.T){
			"register":   m.register,
			"deregister": m.deregister,
			"plan":       m.plan,
			"plan again": m.plan,
			"place":      m.place,
			"restore":    m.restore,
			"reconcile":  func(t *rapid.T) { m.apply(t, &structs.ReconcileEntry{Time: m.now}) },
			"": func(t *rapid.T) {
				m.now += rapid.Int64Range(0, 3*cycle).Draw(t, "later")
				m.compare(t)
			},
		})
	})
}
