package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/jobcount"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

func TestOneBlockedEvaluationPerJob(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	w.register(job("db"))
	put := func(evals ...*structs.Evaluation) *Snapshot {
		return w.must(&structs.EvalUpsertEntry{Evals: evals, Time: w.now()})
	}
	put(eval("b1", "web", structs.EvalStatusBlocked), eval("other", "db", structs.EvalStatusBlocked))
	snap := put(eval("b2", "web", structs.EvalStatusBlocked))
	check(t, "older blocked one", snap.Eval(nil, "b1").Status, structs.EvalStatusCancelled)
	check(t, "newer", snap.Eval(nil, "b2").Status, structs.EvalStatusBlocked)
	check(t, "of another job", snap.Eval(nil, "other").Status, structs.EvalStatusBlocked)
	check(t, "open ones", len(snap.PendingEvals()), 2)

	snap = put(eval("b1", "web", structs.EvalStatusPending))
	check(t, "a cancelled one that is woken", snap.Eval(nil, "b1").Status, structs.EvalStatusCancelled)

	failed := eval("e1", "web", structs.EvalStatusComplete)
	failed.FailedTGAllocs = map[string]*structs.AllocMetric{"web": {}}
	check(t, "after one that placed not all", put(failed).Eval(nil, "b2").Status, structs.EvalStatusBlocked)
	snap = put(eval("e2", "web", structs.EvalStatusComplete))
	check(t, "after one that placed all", snap.Eval(nil, "b2").Status, structs.EvalStatusCancelled)
	check(t, "its create index", snap.Eval(nil, "b2").CreateIndex, 4)
	check(t, "its modify index", snap.Eval(nil, "b2").ModifyIndex, w.index)
	check(t, "of another job", snap.Eval(nil, "other").Status, structs.EvalStatusBlocked)
}

// A request goes on waiting when another evaluation of its job takes the place of the one
// that waits; another specification is another ask.
func TestBlockedEvaluationWaitsOn(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	put := func(id string, created int64) *structs.Evaluation {
		e := eval(id, "web", structs.EvalStatusBlocked)
		e.CreateTime, e.WaitUntil = created, time.Unix(0, created+100)
		return w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{e}, Time: w.now()}).Eval(nil, id)
	}
	put("b1", 1000)
	e := put("b2", 1050)
	check(t, "waits since", e.CreateTime, 1000)
	check(t, "looked at again", e.WaitUntil.UnixNano(), 1100)
	check(t, "waits since", put("b3", 1080).CreateTime, 1000)
	again := job("web")
	again.TaskGroups[0].Count = 5
	w.register(again)
	e = put("b4", 1090)
	check(t, "of another specification waits since", e.CreateTime, 1090)
	check(t, "looked at again", e.WaitUntil.UnixNano(), 1190)
}

func TestAutopilotConfiguration(t *testing.T) {
	w := newWorld(t)
	c := structs.DefaultAutopilotConfiguration()
	check(t, "before it is set", w.store.Snapshot().AutopilotConfig(nil), c)
	w.refuses(&structs.AutopilotConfigEntry{Config: c, CAS: true, CheckIndex: 9}, structs.CodeConflict)
	w.must(&structs.AutopilotConfigEntry{Config: c, CAS: true})
	c.MinQuorum = 3
	got := w.must(&structs.AutopilotConfigEntry{Config: c, CAS: true, CheckIndex: 2}).AutopilotConfig(nil)
	check(t, "quorum", got.MinQuorum, 3)
	check(t, "indexes", [2]uint64{got.CreateIndex, got.ModifyIndex}, [2]uint64{2, 3})
	c.LastContactThreshold = 0
	w.refuses(&structs.AutopilotConfigEntry{Config: c}, structs.CodeBadRequest)
	c = structs.DefaultAutopilotConfiguration()
	c.EnableRedundancyZones = true
	w.refuses(&structs.AutopilotConfigEntry{Config: c}, structs.CodeUnsupported)
}

func TestClusterIsNamedOnce(t *testing.T) {
	w := newWorld(t)
	check(t, "before", w.store.Snapshot().Cluster(), structs.ClusterMeta{})
	w.must(&structs.ClusterMetaEntry{ClusterID: "a", Time: 7})
	got := w.must(&structs.ClusterMetaEntry{ClusterID: "b", Time: 8}).Cluster()
	check(t, "after", got, structs.ClusterMeta{ClusterID: "a", CreateTime: 7, CreateIndex: 1})
}

// Whoever takes instances of a job back does not know what type it is of.
func TestEvaluationOfVictimIsOfItsJob(t *testing.T) {
	w := newWorld(t)
	j := job("sort")
	j.Type, j.Priority = structs.JobTypeBatch, 7
	w.register(j)
	e := eval("p1", "sort", structs.EvalStatusPending)
	e.TriggeredBy = structs.EvalTriggerPreemption
	e = w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{e}, Time: w.now()}).Eval(nil, "p1")
	check(t, "type", e.Type, structs.JobTypeBatch)
	check(t, "priority", e.Priority, 7)
}

func TestEvaluationsThatCannotBeStored(t *testing.T) {
	w := newWorld(t)
	f := func(e *structs.Evaluation) {
		t.Helper()
		w.refuses(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("fine", "web", "pending"), e}}, structs.CodeBadRequest)
	}
	f(nil)
	f(eval("", "web", structs.EvalStatusPending))
	f(eval("e", "", structs.EvalStatusPending))
	f(eval("e", "web", "odd"))
}

func TestSchedulerConfiguration(t *testing.T) {
	w := newWorld(t)
	check(t, "before it is set", fmt.Sprintf("%+v", w.store.Snapshot().SchedulerConfig(nil)), fmt.Sprintf("%+v", structs.DefaultSchedulerConfiguration()))
	c := structs.DefaultSchedulerConfiguration()
	w.refuses(&structs.SchedulerConfigEntry{Config: c, CAS: true, CheckIndex: 9}, structs.CodeConflict)
	w.must(&structs.SchedulerConfigEntry{Config: c, CAS: true})
	w.refuses(&structs.SchedulerConfigEntry{Config: c, CAS: true}, structs.CodeConflict)
	c.SchedulerAlgorithm = structs.AlgorithmSpread
	got := w.must(&structs.SchedulerConfigEntry{Config: c, CAS: true, CheckIndex: 2}).SchedulerConfig(nil)
	check(t, "algorithm", got.SchedulerAlgorithm, structs.AlgorithmSpread)
	check(t, "indexes", [2]uint64{got.CreateIndex, got.ModifyIndex}, [2]uint64{2, 4})
	c.SchedulerAlgorithm = "odd"
	w.refuses(&structs.SchedulerConfigEntry{Config: c}, structs.CodeBadRequest)
}

// collecting: what is not over any more, or not yet, is left alone.
func TestCollect(t *testing.T) {
	web := structs.NamespacedID{Namespace: "default", ID: "web"}
	f := func(what, typ string, prepare func(w *world, ids []string), jobGoes, firstAllocGoes, evalGoes, nodeGoes bool) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.node("n")
			j := job("web")
			j.Type = typ
			w.register(j)
			ids := w.place("web", 0, "n", "s", 2)
			prepare(w, ids)
			snap := w.must(&structs.CollectEntry{
				Evals: []string{"e", "none"}, Allocs: append(ids, "none"), Jobs: []structs.NamespacedID{web, {ID: "none"}}, Nodes: []string{"n", "none"},
			})
			check(t, "job goes", snap.Job(nil, "default", "web") == nil, jobGoes)
			check(t, "allocation goes", snap.Alloc(nil, ids[0]) == nil, firstAllocGoes)
			check(t, "evaluation goes", snap.Eval(nil, "e") == nil, evalGoes)
			check(t, "node goes", snap.Node(nil, "n") == nil, nodeGoes)
		})
	}
	put := func(w *world, status string) {
		w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e", "web", status)}})
	}
	end := func(w *world, ids []string) { w.report(structs.AllocClientComplete, ids...) }
	down := func(w *world) {
		w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusDown})
	}
	f("all runs", "batch", func(w *world, _ []string) { put(w, structs.EvalStatusPending) }, false, false, false, false)
	f("all is over", "batch", func(w *world, ids []string) { end(w, ids); put(w, structs.EvalStatusComplete); down(w) }, true, true, true, true)
	f("it is decided on again", "batch", func(w *world, ids []string) { end(w, ids); put(w, structs.EvalStatusPending) }, false, false, false, false)
	f("half of a batch is done", "batch", func(w *world, ids []string) { end(w, ids[:1]); put(w, structs.EvalStatusComplete) }, false, false, true, false)
	f("its node is down, not heard of", "service", func(w *world, _ []string) { put(w, structs.EvalStatusComplete); down(w) }, false, false, true, false)
	f("one was stopped and has ended", "service", func(w *world, ids []string) {
		w.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[0]}}})
		put(w, structs.EvalStatusComplete)
		end(w, ids[:1])
	}, false, true, true, false)
	f("one was stopped and its client is silent", "service", func(w *world, ids []string) {
		w.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[0]}}})
		put(w, structs.EvalStatusComplete)
	}, false, false, true, false)
	f("an old version's has ended", "service", func(w *world, ids []string) {
		end(w, ids[:1])
		next := job("web")
		next.Priority = 3
		w.register(next)
		put(w, structs.EvalStatusComplete)
	}, false, true, true, false)
}

// What is derived can be made anew when it was wrong.
func TestReconcileMends(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	w.place("web", 0, "n", "s", 3)
	good := w.store.Snapshot()
	want := *good.JobSummary(nil, "default", "web")

	// Damage all that is derived, as a fault of ours would.
	txn := w.w.db.Txn(true)
	wrong := &structs.JobSummary{Namespace: "default", JobID: "web", Summary: map[string]structs.TaskGroupSummary{"web": {Failed: 7}}}
	if err := txn.Insert(TableSummaries, wrong); err != nil {
		t.Fatal(err)
	}
	damaged := *w.store.current.Load()
	damaged.txn, damaged.superseded = txn.Snapshot(), make(chan struct{})
	persist.Put(persist.NewToken(), &damaged.tallies, indexkey.HashJob("default", "web"), &jobcount.Tally{Namespace: "default", JobID: "web", Live: -1})
	edit := damaged.world.Edit()
	edit.DeleteNode("n")
	damaged.world = edit.World()
	w.store.publish(&damaged, nil, nil, nil)
	txn.Commit()
	if d := Differences(w.store.Snapshot()); len(d) < 3 {
		t.Fatalf("the damage is not seen: %v", d)
	}

	snap := w.must(&structs.ReconcileEntry{Time: 1})
	got := snap.JobSummary(nil, "default", "web")
	check(t, "line", got.Summary["web"], want.Summary["web"])
	if d := snap.World().Diff(good.World()); len(d) > 0 {
		t.Errorf("World: %v", d)
	}
	index := snap.TableIndex(TableSummaries)
	check(t, "index after there was nothing to mend", w.must(&structs.ReconcileEntry{}).TableIndex(TableSummaries), index)
}

// TestSigningKey: the first key is given once, whoever tries, and one that is known stays as it is.
func TestSigningKey(t *testing.T) {
	w := newWorld(t)
	add := func(id string, first bool) {
		w.must(&structs.SigningKeyEntry{Key: structs.SigningKey{KeyID: id, PrivateKey: []byte(id)}, First: first, Time: 5})
	}
	add("b", true)
	add("c", true)
	add("a", false)
	add("a", false)
	var have []string
	for _, k := range w.store.Snapshot().SigningKeys(nil) {
		have = append(have, k.KeyID)
		check(t, "time", k.CreateTime, 5)
	}
	check(t, "keys", strings.Join(have, " "), "a b")
	check(t, "index of b", w.store.Snapshot().SigningKeys(nil)[1].CreateIndex < w.store.Snapshot().SigningKeys(nil)[0].CreateIndex, true)
}
