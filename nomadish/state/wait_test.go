package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// woken reports whether a wait over what read reads ends when change is applied. The
// wait stands before the change comes.
func woken(t *testing.T, read func(*Snapshot, *WatchSet), change any) bool {
	t.Helper()
	var got bool
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.node("n")
		w.register(job("web"))
		w.register(job("db"))
		w.place("web", 0, "n", "s", 1)
		w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e", "web", structs.EvalStatusPending)}})
		ws := NewWatchSet()
		read(w.store.Snapshot(), ws)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answer := make(chan bool)
		go func() { answer <- ws.Wait(ctx) }()
		synctest.Wait()
		w.must(change)
		got = <-answer
	})
	return got
}

func TestWatches(t *testing.T) {
	alloc := structs.DeriveID("s", 0)
	reads := map[string]func(*Snapshot, *WatchSet){
		"job":           func(s *Snapshot, ws *WatchSet) { s.Job(ws, "default", "web") },
		"new job":       func(s *Snapshot, ws *WatchSet) { s.Job(ws, "default", "new") },
		"jobs":          func(s *Snapshot, ws *WatchSet) { s.Jobs(ws, "default", "", false) },
		"versions":      func(s *Snapshot, ws *WatchSet) { s.JobVersions(ws, "default", "web") },
		"summary":       func(s *Snapshot, ws *WatchSet) { s.JobSummary(ws, "default", "web") },
		"node":          func(s *Snapshot, ws *WatchSet) { s.Node(ws, "n") },
		"nodes":         func(s *Snapshot, ws *WatchSet) { s.Nodes(ws, "", false) },
		"eval":          func(s *Snapshot, ws *WatchSet) { s.Eval(ws, "e") },
		"evals":         func(s *Snapshot, ws *WatchSet) { s.Evals(ws, "*", "", false) },
		"job's evals":   func(s *Snapshot, ws *WatchSet) { s.EvalsByJob(ws, "default", "web") },
		"alloc":         func(s *Snapshot, ws *WatchSet) { s.Alloc(ws, alloc) },
		"allocs":        func(s *Snapshot, ws *WatchSet) { s.Allocs(ws, "*", "", false) },
		"job's allocs":  func(s *Snapshot, ws *WatchSet) { s.AllocsByJob(ws, "default", "web", false) },
		"node's allocs": func(s *Snapshot, ws *WatchSet) { s.AllocsByNode(ws, "n") },
		"eval's allocs": func(s *Snapshot, ws *WatchSet) { s.AllocsByEval(ws, "e-s") },
		"pool":          func(s *Snapshot, ws *WatchSet) { s.NodePools().Get(ws, "gpu") },
		"pools":         func(s *Snapshot, ws *WatchSet) { s.NodePools().List(ws, "", false) },
		"config":        func(s *Snapshot, ws *WatchSet) { s.SchedulerConfig(ws) },
		"history":       func(s *Snapshot, ws *WatchSet) { s.History(ws, "*", "") },
		"scaling":       func(s *Snapshot, ws *WatchSet) { s.ScalingEvents(ws, "default", "web") },
	}
	other := job("web")
	other.Priority = 9
	db := job("db")
	db.Priority = 9
	f := func(what string, change any, wakes ...string) {
		t.Helper()
		for _, name := range []string{
			"job", "new job", "jobs", "versions", "summary", "node", "nodes", "eval", "evals", "job's evals", "alloc", "allocs",
			"job's allocs", "node's allocs", "eval's allocs", "config", "history", "scaling", "pool", "pools",
		} {
			got, want := woken(t, reads[name], change), slices.Contains(wakes, name)
			// Something that is not there is watched by what is next to it: more
			// wakes than needed are allowed there, fewer are not.
			loose := slices.Contains([]string{"new job", "scaling", "config", "history", "versions"}, name)
			if got != want && (want || !loose) {
				t.Errorf("%s: %s woken %v, want %v", what, name, got, want)
			}
		}
	}
	f("the job changes", &structs.JobRegisterEntry{Job: other}, "job", "jobs", "versions")
	f("another job changes", &structs.JobRegisterEntry{Job: db}, "jobs")
	f("a job comes", &structs.JobRegisterEntry{Job: job("new")}, "new job", "jobs")
	f("the allocation runs", &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: alloc, ClientStatus: "running"}}},
		"summary", "alloc", "allocs", "job's allocs", "node's allocs", "eval's allocs")
	f("it ends", &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: alloc, ClientStatus: "failed"}}},
		"summary", "alloc", "allocs", "job's allocs", "node's allocs", "eval's allocs", "history", "job", "jobs")
	f("the evaluation ends", &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e", "web", "complete")}}, "eval", "evals", "job's evals")
	f("the node goes", &structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: "down"}, "node", "nodes")
	f("the configuration", &structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration()}, "config")
	count := int64(2)
	f("a pool", &structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "gpu"}}}, "pool", "pools")
	f("scaling", &structs.JobScaleEntry{Namespace: "default", JobID: "web", Group: "web", Count: &count, Event: &structs.ScalingEvent{}}, "scaling")
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	full := NewWatchSet()
	w.store.Snapshot().Node(full, "n")
	for _, ws := range []*WatchSet{nil, NewWatchSet(), full} {
		check(t, "woken", ws.Wait(ctx), false)
	}
	if _, err := w.store.WaitIndex(ctx, 99); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for an index: %v", err)
	}
}

// A set that watches more than its limit still wakes, by the table.
func TestWatchingMoreThanTheLimit(t *testing.T) {
	w := newWorld(t)
	for i := range 3 * maxWatched {
		w.node(fmt.Sprintf("n%03d", i))
	}
	ws := NewWatchSet()
	snap := w.store.Snapshot()
	for i := range 3 * maxWatched {
		snap.Node(ws, fmt.Sprintf("n%03d", i))
	}
	if n := len(ws.channels); n > maxWatched+1 {
		t.Errorf("%d channels, want at most %d", n, maxWatched+1)
	}
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{fmt.Sprintf("n%03d", 3*maxWatched-1)}, Status: structs.NodeStatusDown})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check(t, "woken", ws.Wait(ctx), true)
}

// Whoever wakes finds what woke it.
func TestAWakeFindsTheChange(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	var wg sync.WaitGroup
	const last = 200
	for range 4 {
		wg.Go(func() {
			for seen := uint64(0); seen < last; {
				ws := NewWatchSet()
				index := w.store.Snapshot().Node(ws, "n").ModifyIndex
				if seen != 0 && index <= seen {
					t.Errorf("woken at %d without a change", seen)
					return
				}
				seen = index
				if seen < last && !ws.Wait(t.Context()) {
					return
				}
			}
		})
	}
	for w.index < last {
		w.must(&structs.NodeEventsEntry{Events: map[string][]*structs.NodeEvent{"n": {{Message: "x"}}}})
	}
	wg.Wait()
}

func TestWaitIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		got := make(chan uint64)
		go func() {
			snap, err := w.store.WaitIndex(t.Context(), 3)
			if err != nil {
				t.Error(err)
			}
			got <- snap.Index()
		}()
		w.node("n")
		w.node("m")
		synctest.Wait()
		select {
		case i := <-got:
			t.Fatalf("index %d came too early", i)
		default:
		}
		w.refuses(&structs.JobDeregisterEntry{JobID: "none"}, structs.CodeNotFound) // moves the index all the same
		check(t, "index", <-got, 3)
		w.w.Advance(9)
		w.w.Advance(4)
		check(t, "index", w.store.LatestIndex(), 9)
	})
}

func TestTableIndex(t *testing.T) {
	w := newWorld(t)
	for _, table := range Tables() {
		check(t, table+" when empty", w.store.Snapshot().TableIndex(table), 1)
	}
	w.node("n")
	w.node("m")
	snap := w.register(job("web"))
	check(t, "nodes", snap.TableIndex(TableNodes), 2)
	check(t, "jobs", snap.TableIndex(TableJobs), 3)
	check(t, "jobs after one went", w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true}).TableIndex(TableJobs), 4)
}

func TestFeed(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	early := w.store.Feed(0)
	late := w.store.Feed(1)
	w.register(job("web"))
	w.must(&structs.EvalUpsertEntry{}) // changes nothing, and nobody hears of it
	ids := w.place("web", 0, "n", "s", 2)
	next := func(f *Feed) Changes {
		t.Helper()
		c, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	check(t, "first", next(early).Index, 1)
	for _, f := range []*Feed{early, late} {
		check(t, "registration", next(f).Index, 2)
		c := next(f)
		check(t, "placement", c.Index, 4)
		check(t, "changes", len(c.Items), 3) // two allocations, and the job is running
		first := c.Items[0]
		check(t, "kind", first.Kind, KindAlloc)
		check(t, "key", first.Key, ids[0])
		check(t, "type", first.Type, "PlanResult")
		check(t, "before", first.Old, nil)
		if a, ok := first.New.(*AllocRow); !ok || a.ID() != ids[0] {
			t.Errorf("after: %v", first.New)
		}
	}
	w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true})
	c := next(late)
	check(t, "purged", c.Items[0].New, nil)
	check(t, "type", c.Items[0].Type, "JobDeregistered")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := late.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing comes: %v", err)
	}
}

func TestFeedWaitsAndFallsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{EventBuffer: 3})
		slow := w.store.Feed(0)
		fast := w.store.Feed(0)
		got := make(chan uint64)
		go func() {
			for range 10 {
				c, err := fast.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- c.Index
			}
		}()
		for i := range uint64(10) {
			synctest.Wait()
			w.node(fmt.Sprint("n", i))
			check(t, "index", <-got, i+1)
		}
		if _, err := slow.Next(t.Context()); !errors.Is(err, ErrFellBehind) {
			t.Errorf("the slow one: %v", err)
		}
		again := w.store.Feed(7)
		if c, err := again.Next(t.Context()); err != nil || c.Index != 8 {
			t.Errorf("from what is kept: %v, %v", c.Index, err)
		}
	})
}

func TestARestoreWakesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		snap := w.node("n")
		other := newWorld(t)
		other.node("m")
		ws := NewWatchSet()
		snap.Node(ws, "n")
		feed := w.store.Feed(1)
		var wg sync.WaitGroup
		wg.Go(func() { check(t, "watcher woken", ws.Wait(t.Context()), true) })
		wg.Go(func() {
			if _, err := feed.Next(t.Context()); !errors.Is(err, ErrFellBehind) {
				t.Errorf("feed: %v", err)
			}
		})
		wg.Go(func() {
			s, err := w.store.WaitIndex(t.Context(), 50)
			if err != nil || s.Node(nil, "m") == nil || s.Node(nil, "n") != nil {
				t.Errorf("what was restored is not there: %v", err)
			}
		})
		synctest.Wait()
		in := w.w.Import()
		if err := other.store.Snapshot().Export(func(table string, row any) error { return in.Add(table, row) }); err != nil {
			t.Fatal(err)
		}
		w.w.Commit(in, 50)
		wg.Wait()
		check(t, "the older snapshot", snap.Node(nil, "n") != nil, true)
		check(t, "hash", w.store.Snapshot().Hash(), other.store.Snapshot().Hash())
	})
}

// Readers of all kinds work while the writer writes; the race detector watches.
func TestReadersBesideTheWriter(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			feed := w.store.Feed(w.store.LatestIndex())
			for ctx.Err() == nil {
				ws := NewWatchSet()
				snap := w.store.Snapshot()
				for _, a := range snap.AllocsByJob(ws, "default", "web", true) {
					if a.Job == nil || a.CreateIndex > snap.Index() {
						t.Errorf("allocation %+v at index %d", a, snap.Index())
					}
				}
				snap.Hash()
				ws.Wait(ctx)
				_, _ = feed.Next(ctx) // falling behind is no fault here
			}
		})
	}
	for i := range 100 {
		w.report(structs.AllocClientRunning, w.place("web", 0, "n", fmt.Sprint("s", i), 3)...)
	}
	cancel()
	wg.Wait()
}
