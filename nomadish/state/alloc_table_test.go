package state

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/nomadish/state/internal/allocwatch"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// oracle is a plain map of whole allocations, moved on by what the feed tells.
type oracle map[string]*structs.Allocation

// model drives a store and its oracle with random entries.
type model struct {
	store *Store
	w     *Writer
	feed  *Feed
	index uint64
	seeds int
	have  oracle
	past  []pastState
	steps int
}

type pastState struct {
	snap *Snapshot
	have oracle
	hash string
}

func (m *model) snap() *Snapshot { return m.store.Snapshot() }

// take moves the oracle on by the changes of the last entry; what was must be what
// the oracle has.
func (m *model) take(t *rapid.T) {
	next, found, err := m.feed.Poll()
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return // nothing has changed
	}
	for _, c := range next.Items {
		if c.Kind != KindAlloc {
			continue
		}
		var was *structs.Allocation
		if old, _ := c.Old.(*AllocRow); old != nil {
			was = old.Whole()
		}
		if !reflect.DeepEqual(was, m.have[c.Key]) {
			t.Fatalf("index %d: %s was %+v, not %+v", next.Index, c.Key, m.have[c.Key], was)
		}
		if now, _ := c.New.(*AllocRow); now != nil {
			m.have[c.Key] = now.Whole()
		} else {
			delete(m.have, c.Key)
		}
	}
}

// read is what one read gives, from a snapshot and from the oracle.
type read struct {
	name     string
	kind     allocwatch.Kind
	key      string
	snapshot func(*Snapshot, *WatchSet) []*structs.Allocation
	oracle   func(*structs.Allocation) bool
}

// reads are all kinds of reads, of things that are there and of some that are not.
func (m *model) reads() []read {
	var out []read
	for _, id := range append(slices.Sorted(maps.Keys(m.have)), "none", structs.DeriveID("none", 0)) {
		out = append(out, read{
			"allocation " + id, allocwatch.Alloc, id,
			func(s *Snapshot, ws *WatchSet) []*structs.Allocation {
				if a := s.Alloc(ws, id); a != nil {
					return []*structs.Allocation{a}
				}
				return nil
			},
			func(a *structs.Allocation) bool { return a.ID == id },
		})
	}
	for _, id := range []string{"a", "b", "c", "none"} {
		out = append(out, read{
			"node " + id, allocwatch.Node, id,
			func(s *Snapshot, ws *WatchSet) []*structs.Allocation { return s.AllocsByNode(ws, id) },
			func(a *structs.Allocation) bool { return a.NodeID == id },
		}, read{
			"job " + id, allocwatch.Job, indexkey.HashJob("default", id).String(),
			func(s *Snapshot, ws *WatchSet) []*structs.Allocation { return s.AllocsByJob(ws, "default", id, true) },
			func(a *structs.Allocation) bool { return a.Namespace == "default" && a.JobID == id },
		})
	}
	for _, id := range []string{"e0", "e1", "e2", "up", ""} {
		out = append(out, read{
			"evaluation " + id, allocwatch.Eval, id,
			func(s *Snapshot, ws *WatchSet) []*structs.Allocation { return s.AllocsByEval(ws, id) },
			func(a *structs.Allocation) bool { return a.EvalID == id },
		})
	}
	prefixes := []string{"", "0", "1", "7", "c", "f", "o", "odd", "B", "zz"}
	if len(m.have) > 0 {
		ids := slices.Sorted(maps.Keys(m.have))
		id := ids[int(m.index)%len(ids)] // small
		prefixes = append(prefixes, id[:1], id[:min(2, len(id))], id[:len(id)/2], id, id+"x")
	}
	for _, prefix := range prefixes {
		out = append(out, read{
			"prefix " + prefix, allocwatch.Prefix, prefix[:min(len(prefix), allocwatch.MaxPrefix)],
			func(s *Snapshot, ws *WatchSet) []*structs.Allocation {
				return slices.Collect(s.Allocs(ws, "*", prefix, false))
			},
			func(a *structs.Allocation) bool { return strings.HasPrefix(a.ID, prefix) },
		})
	}
	return out
}

// list is all of it, by ID.
func (o oracle) list() []*structs.Allocation {
	var out []*structs.Allocation
	for _, id := range slices.Sorted(maps.Keys(o)) {
		out = append(out, o[id])
	}
	return out
}

func those(all []*structs.Allocation, pass func(*structs.Allocation) bool) []*structs.Allocation {
	var out []*structs.Allocation
	for _, a := range all {
		if pass(a) {
			out = append(out, a)
		}
	}
	return out
}

// bare takes the jobs off.
func bare(allocs []*structs.Allocation) []*structs.Allocation {
	for _, a := range allocs {
		a.Job = nil
	}
	return allocs
}

func same(a, b []*structs.Allocation) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// agree checks all reads of a snapshot against the oracle.
func (m *model) agree(t *rapid.T, snap *Snapshot, have oracle) {
	all := have.list()
	for _, r := range m.reads() {
		if got, want := bare(r.snapshot(snap, nil)), those(all, r.oracle); !same(got, want) {
			t.Fatalf("%s at index %d: %s, not %s", r.name, snap.Index(), show(got), show(want))
		}
	}
	back := bare(slices.Collect(snap.Allocs(nil, "*", "", true)))
	slices.Reverse(back)
	if !same(back, all) {
		t.Fatalf("backwards: %s, not %s", show(back), show(all))
	}
}

func show(allocs []*structs.Allocation) string {
	var b strings.Builder
	for _, a := range allocs {
		fmt.Fprintf(&b, "\n  %+v", *a)
	}
	return b.String()
}

// apply applies an entry. Waits that began before it must end when, and only when,
// the read gives something else; those that begin after it, on the state before,
// must not begin to wait then.
func (m *model) apply(t *rapid.T, entry any) {
	before, was := m.snap(), m.have.list()
	reads := m.reads()
	early := make([]*allocwatch.Waiter, len(reads))
	for i, r := range reads {
		early[i] = m.store.join([]allocwatch.Interest{{Subject: allocwatch.Subject{Kind: r.kind, Key: r.key}, Seen: before.v.allocs}})
	}
	m.index++
	_ = m.w.Apply(m.index, 0, entry) // what is refused must have changed nothing
	m.take(t)
	now := m.have.list()
	for i, r := range reads {
		woken := closed(early[i].Woken)
		moved := !slices.Equal(those(was, r.oracle), those(now, r.oracle)) // what changed is another value
		if len(r.name) > len("prefix ")+allocwatch.MaxPrefix && !moved {
			moved = woken // so long a prefix is watched by its beginning
		}
		if woken != moved {
			t.Fatalf("%s after %T: woken %v, want %v", r.name, entry, woken, moved)
		}
		m.store.leave(early[i])
		ws := NewWatchSet()
		r.snapshot(before, ws)
		late := m.store.join(ws.interests)
		if (late == nil) != moved {
			t.Fatalf("%s after %T: a late wait is over %v, want %v", r.name, entry, late == nil, moved)
		}
		if late != nil {
			m.store.leave(late)
		}
	}
	if !m.store.hub.Idle() {
		t.Fatal("there are subjects that are waited for by nobody")
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func draw[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

// anyID is the ID of an allocation, mostly of one that is there.
func (m *model) anyID(t *rapid.T) string {
	return draw(t, "allocation", append(slices.Sorted(maps.Keys(m.have)), "none")...)
}

func (m *model) plan(t *rapid.T, p *structs.JudgedPlan) {
	p.Time, p.EvalID = int64(m.index)*10, "e0"
	m.apply(t, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

func (m *model) place(t *rapid.T) {
	m.seeds++
	seed := fmt.Sprint("s", m.seeds-rapid.IntRange(0, 1).Draw(t, "again"))
	n := rapid.IntRange(1, 3).Draw(t, "instances")
	b := batch(draw(t, "job", "a", "b"), uint64(rapid.IntRange(0, 1).Draw(t, "version")), "a", seed, n) // small
	b.EvalID = draw(t, "evaluation", "e0", "e1", "")
	b.Nodes = append(b.Nodes, structs.PlacedNode{ID: "b", Name: draw(t, "node name", "b", "bee")}, structs.PlacedNode{ID: "c", Name: "c"})
	if rapid.Bool().Draw(t, "gang") {
		b.Gang = &structs.AllocGang{Size: n, Hosts: []string{"h1", "h2", "h3"}[:n], Level: "rack"}
	}
	if draw(t, "resources", true, true, true, false) == false {
		b.Resources = nil
	}
	for i := range b.Instances {
		in := &b.Instances[i]
		in.Node, in.Rank = rapid.IntRange(0, 2).Draw(t, "node"), draw(t, "rank", i, i, 70_000)
		in.Index = draw(t, "index", i, -1, 1<<31)
		switch draw(t, "has", "", "", "ports", "devices", "previous") {
		case "ports":
			in.Ports = []structs.PortMapping{{Label: "http", Value: 20_000 + m.seeds}}
		case "devices":
			in.Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{Vendor: "v", Type: "gpu", Name: "n", DeviceIDs: []string{"0"}, Share: 250, Level: "pcie"}}}
		case "previous":
			in.PreviousAllocation = m.anyID(t)
			in.RescheduleTracker = &structs.RescheduleTracker{Events: []*structs.RescheduleEvent{{PrevAllocID: in.PreviousAllocation}}}
		}
	}
	stop := &structs.AllocStop{AllocID: m.anyID(t), PreemptedBy: draw(t, "preempted by", "", structs.DeriveID(seed, 0))}
	m.plan(t, &structs.JudgedPlan{Place: []*structs.PlacementBatch{b}, Stop: []*structs.AllocStop{stop}})
}

func (m *model) stop(t *rapid.T) {
	m.plan(t, &structs.JudgedPlan{Stop: []*structs.AllocStop{{
		AllocID: m.anyID(t), DesiredStatus: draw(t, "wanted", "", structs.AllocDesiredEvict, structs.AllocDesiredRun),
		DesiredDescription: draw(t, "why", "", "x", "y"), ClientStatus: draw(t, "status", "", structs.AllocClientLost, structs.AllocClientUnknown),
		FollowupEvalID: draw(t, "followup", "", "later"), KeepRunning: rapid.Bool().Draw(t, "keep"),
	}}})
}

func (m *model) update(t *rapid.T) {
	p := &structs.JudgedPlan{}
	for range 2 {
		u := &structs.AllocInPlace{AllocID: m.anyID(t), JobVersion: uint64(rapid.IntRange(0, 2).Draw(t, "version")), EvalID: draw(t, "evaluation", "up", "e1")} // small
		if rapid.Bool().Draw(t, "resources") {
			u.Resources = batch("a", 0, "a", "x", 0).Resources
			u.Resources.Tasks["t"].Memory.MemoryMB = rapid.Int64Range(1, 2).Draw(t, "memory")
		}
		// An evaluation that has and loses an allocation within one entry is told so;
		// that is a wake too many, and no plan does it.
		if len(p.Update) == 0 || p.Update[0].AllocID != u.AllocID {
			p.Update = append(p.Update, u)
		}
	}
	m.plan(t, p)
}

func (m *model) report(t *rapid.T) {
	e := &structs.AllocClientEntry{Time: int64(m.index)}
	for range 2 {
		u := &structs.AllocClientUpdate{
			ID: m.anyID(t), ClientStatus: draw(t, "status", "", "pending", "running", "running", "failed", "unknown", "odd"),
			ClientDescription: draw(t, "description", "", "fine"),
		}
		if rapid.Bool().Draw(t, "tasks") {
			u.TaskStates = map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning, StartedAt: time.Unix(5, 0).UTC()}}
		}
		if yes := rapid.Bool().Draw(t, "healthy"); yes {
			u.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: &yes}
			u.NetworkStatus = &structs.AllocNetworkStatus{Address: "1.2.3.4"}
		}
		e.Updates = append(e.Updates, u)
	}
	m.apply(t, e)
}

// restore replaces the state by its own export, as a snapshot's stream carries it,
// with allocations among it that nothing of ours would make.
func (m *model) restore(t *rapid.T) {
	before := m.snap()
	in, want := m.w.Import(), oracle{}
	add := func(table string, row any) error {
		data, err := codec.Encode(row)
		if err != nil {
			return err
		}
		var rows [2]any
		for i := range rows {
			if rows[i], err = NewRow(table); err != nil {
				return err
			}
			if err := codec.Decode(data, rows[i]); err != nil {
				return err
			}
		}
		if a, ok := rows[0].(*structs.Allocation); ok {
			want[a.ID] = a
		}
		return in.Add(table, rows[1])
	}
	odd := rapid.Bool().Draw(t, "odd ones")
	err := before.Export(add)
	for i, id := range []string{"odd-1", "Bdd0f2f5-0000-8000-8000-000000000000", "z", strings.Repeat("ö", 18)} {
		if odd && err == nil {
			a := &structs.Allocation{
				ID: id, Namespace: "default", JobID: "a", TaskGroup: "web", NodeID: "a", NodeName: "old", Name: draw(t, "name", "", "a.web[0]", "a.web[007]", "mine"),
				ClientStatus: draw(t, "status", "running", "asleep", ""), DesiredStatus: draw(t, "wanted", "run", "", "walk"),
				PreemptedAllocations: []string{}, CreateIndex: 1, ModifyIndex: uint64(i), DeploymentID: "d", // small
			}
			if i == 1 {
				a.Gang = &structs.AllocGang{Rank: -1, Size: 2}
			}
			err = add(TableAllocs, a)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	m.index++
	m.w.Commit(in, m.index)
	if !odd && before.Hash() != m.snap().Hash() {
		t.Fatal("the restored state has another hash")
	}
	m.have, m.feed = want, m.store.Feed(m.index)
	if odd { // nobody has counted them
		m.apply(t, &structs.ReconcileEntry{})
	}
}

func (m *model) check(t *rapid.T) {
	if m.steps++; m.steps%3 != 0 { // each entry's changes are compared anyway
		return
	}
	snap := m.snap()
	m.agree(t, snap, m.have)
	if d := Differences(snap); len(d) > 0 {
		t.Fatalf("at index %d: %v", m.index, d)
	}
}

// The rows say what a plain map of whole allocations says, whatever happens; what was
// taken stays as it was; whoever waits is woken when, and only when, something changed.
func TestRowsAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, w := New(Options{HistoryMax: 3})
		m := &model{store: store, w: w, feed: store.Feed(0), have: oracle{}}
		for _, id := range []string{"a", "b"} {
			m.apply(t, &structs.NodeRegisterEntry{Node: node(id)})
			m.apply(t, &structs.JobRegisterEntry{Job: job(id)})
		}
		t.Repeat(map[string]func(*rapid.T){
			"place": m.place, "place more": m.place, "stop": m.stop, "update": m.update, "report": m.report, "restore": m.restore,
			"transition": func(t *rapid.T) {
				yes := true
				m.apply(t, &structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{m.anyID(t): {Migrate: &yes}}})
			},
			"end job": func(t *rapid.T) {
				m.apply(t, &structs.JobDeregisterEntry{
					Namespace: "default", JobID: draw(t, "job", "a", "b"), Purge: rapid.Bool().Draw(t, "purge"), NoShutdownDelay: true,
				})
			},
			"begin job": func(t *rapid.T) { m.apply(t, &structs.JobRegisterEntry{Job: job(draw(t, "job", "a", "b"))}) },
			"end node": func(t *rapid.T) {
				m.apply(t, &structs.NodeDeregisterEntry{NodeIDs: []string{draw(t, "node", "a", "b", "c")}, EvalSeed: "s"})
			},
			"begin node": func(t *rapid.T) {
				m.apply(t, &structs.NodeRegisterEntry{Node: node(draw(t, "node", "a", "b", "c"))})
			},
			"collect": func(t *rapid.T) {
				m.apply(t, &structs.CollectEntry{Allocs: []string{m.anyID(t), m.anyID(t), m.anyID(t)}})
			},
			"reconcile": func(t *rapid.T) { m.apply(t, &structs.ReconcileEntry{}) },
			"keep": func(*rapid.T) {
				if snap := m.snap(); len(m.past) < 5 {
					m.past = append(m.past, pastState{snap, maps.Clone(m.have), snap.Hash()})
				}
			},
			"": m.check,
		})
		for _, p := range m.past {
			m.agree(t, p.snap, p.have)
			if p.snap.Hash() != p.hash {
				t.Fatalf("the snapshot at index %d has changed", p.snap.Index())
			}
		}
	})
}

// A wait on what was read ends at once when it has changed meanwhile, and a set may
// be waited on again.
func TestWaitingOnWhatChangedMeanwhile(t *testing.T) {
	w, ids := placed(t, 2)
	ws := NewWatchSet()
	w.store.Snapshot().Alloc(ws, ids[0])
	w.report(structs.AllocClientRunning, ids[0])
	check(t, "woken", ws.Wait(t.Context()), true)
	check(t, "woken again", ws.Wait(t.Context()), true)
}

// An import may bring one allocation twice: the last one stands.
func TestImportOfOneAllocationTwice(t *testing.T) {
	w := newWorld(t)
	in := w.w.Import()
	for i, node := range []string{"n", "m"} {
		a := &structs.Allocation{ID: "x", Namespace: "default", JobID: fmt.Sprint("j", i), NodeID: node, EvalID: node}
		if err := in.Add(TableAllocs, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Add(TableAllocs, &structs.Node{ID: "n"}); err == nil {
		t.Error("a node among the allocations is taken")
	}
	w.w.Commit(in, 5)
	snap := w.store.Snapshot()
	check(t, "first", len(snap.AllocsByNode(nil, "n"))+len(snap.AllocsByEval(nil, "n"))+len(snap.AllocsByJob(nil, "default", "j0", true)), 0)
	check(t, "second", len(snap.AllocsByNode(nil, "m"))+len(snap.AllocsByEval(nil, "m"))+len(snap.AllocsByJob(nil, "default", "j1", true)), 3)
	check(t, "all", len(slices.Collect(snap.Allocs(nil, "*", "", false))), 1)
}

// An export that cannot be written on ends with the reason.
func TestExportEnds(t *testing.T) {
	w, _ := placed(t, 3)
	full := errors.New("full")
	n := 0
	err := w.store.Snapshot().Export(func(table string, _ any) error {
		if table != TableAllocs {
			return nil
		}
		n++
		return full
	})
	check(t, "rows", n, 1)
	check(t, "error", errors.Is(err, full), true)
}
