package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// poolNames are the names of node pools that a walk gives.
func poolNames(s *Snapshot, prefix string, reverse bool) string {
	var names []string
	for p := range s.NodePools().List(nil, prefix, reverse) {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// TestNodePools: pools are made, replaced and deleted; those that are built in stay as they are, and those that are used stay.
func TestNodePools(t *testing.T) {
	w := newWorld(t)
	upsert := func(pools ...*structs.NodePool) *structs.NodePoolUpsertEntry {
		return &structs.NodePoolUpsertEntry{Pools: pools, Time: w.now()}
	}
	empty := w.store.Snapshot().Hash()
	check(t, "in a new state", poolNames(w.store.Snapshot(), "", false), "all default")
	snap := w.must(upsert(&structs.NodePool{Name: "gpu", Description: "old", Meta: map[string]string{"a": "b"}}, &structs.NodePool{Name: "dev"}))
	check(t, "by name", poolNames(snap, "", false), "all default dev gpu")
	check(t, "backwards", poolNames(snap, "", true), "gpu dev default all")
	check(t, "by prefix", poolNames(snap, "de", false), "default dev")
	snap = w.must(upsert(&structs.NodePool{Name: "gpu", Description: "new"}))
	got := snap.NodePools().Get(nil, "gpu")
	check(t, "replaced", fmt.Sprint(got.Description, got.Meta, got.CreateIndex, got.ModifyIndex), "newmap[] 1 2")
	snap = w.must(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "gpu"}, {Name: "cpu"}}, IfAbsent: true})
	check(t, "left alone", snap.NodePools().Get(nil, "gpu").Description, "new")
	check(t, "made where there was none", snap.NodePools().Get(nil, "cpu").CreateIndex, 3)

	for _, bad := range []*structs.NodePool{
		nil, {}, {Name: "a b"}, {Name: strings.Repeat("x", 129)}, {Name: "all"}, {Name: "default"}, {Name: "x", NodeIdentityTTL: -1},
		{Name: "x", Description: strings.Repeat("ä", 257)}, {Name: "x", Meta: map[string]string{"a": strings.Repeat("x", structs.MaxNodePoolMeta)}},
		{Name: "x", SchedulerConfiguration: &structs.NodePoolSchedulerConfiguration{SchedulerAlgorithm: "best"}},
	} {
		w.refuses(upsert(&structs.NodePool{Name: "fine"}, bad), structs.CodeBadRequest)
	}
	w.must(upsert(&structs.NodePool{Name: strings.Repeat("x", 128), Description: strings.Repeat("ä", 256)}))

	w.refuses(&structs.NodePoolDeleteEntry{Name: "none"}, structs.CodeNotFound)
	w.refuses(&structs.NodePoolDeleteEntry{Name: "all"}, structs.CodeBadRequest)
	w.refuses(&structs.NodePoolDeleteEntry{Name: "default"}, structs.CodeBadRequest)
	n := node("n")
	n.NodePool = "gpu"
	w.must(&structs.NodeRegisterEntry{Node: n, Time: w.now(), EvalSeed: "register"})
	w.refuses(&structs.NodePoolDeleteEntry{Name: "gpu"}, structs.CodeConflict)
	w.must(&structs.NodeDeregisterEntry{NodeIDs: []string{"n"}, EvalSeed: "away"})
	j := job("web")
	j.NodePool = "gpu"
	w.must(&structs.JobRegisterEntry{Job: j, Time: w.now(), Eval: eval("e", "web", structs.EvalStatusPending)})
	w.refuses(&structs.NodePoolDeleteEntry{Name: "gpu"}, structs.CodeConflict)
	w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Time: w.now()})
	wf := &structs.Workflow{ID: "chip", NodePool: "gpu", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "a", Job: job("a")}}}}}
	wf.Stages[0].Jobs[0].Job.Type, wf.Stages[0].Jobs[0].Job.NodePool = structs.JobTypeBatch, ""
	wf.Canonicalize()
	w.must(&structs.WorkflowRunEntry{Workflow: wf, Time: w.now()})
	w.refuses(&structs.NodePoolDeleteEntry{Name: "gpu"}, structs.CodeConflict)
	w.must(&structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, Time: w.now()})
	w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e", "web", structs.EvalStatusComplete)}})
	check(t, "the job", w.store.Snapshot().Job(nil, "default", "web").Status, structs.JobStatusDead)
	for _, name := range []string{"gpu", "cpu", "dev", strings.Repeat("x", 128)} {
		snap = w.must(&structs.NodePoolDeleteEntry{Name: name})
	}
	check(t, "deleted", poolNames(snap, "", false), "all default")
	check(t, "index", snap.TableIndex(TableNodePools), w.index)
	if snap.Hash() == empty {
		t.Error("the hash does not know of the table's index")
	}
}

// TestNodePoolsAreKept: a state that is written and read again has its node pools and their index.
func TestNodePoolsAreKept(t *testing.T) {
	w := newWorld(t)
	before := w.store.Snapshot().Hash()
	snap := w.must(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "gpu", Meta: map[string]string{"a": "b"}}}, Time: w.now()})
	if snap.Hash() == before {
		t.Error("the hash does not know of node pools")
	}
	other := newWorld(t)
	in := other.w.Import()
	if err := snap.Export(in.Add); err != nil {
		t.Fatal(err)
	}
	other.w.Commit(in, snap.Index())
	now := other.store.Snapshot()
	check(t, "hash", now.Hash(), snap.Hash())
	check(t, "meta", now.NodePools().Get(nil, "gpu").Meta["a"], "b")
	if err := CheckRow(TableNodePools, &structs.NodePool{Name: "a b"}); err == nil {
		t.Error("a pool that there cannot be is imported")
	}
}

// TestNodePoolsAreNotWithoutEnd: nodes make pools by naming them.
func TestNodePoolsAreNotWithoutEnd(t *testing.T) {
	w := newWorld(t)
	e := &structs.NodePoolUpsertEntry{}
	fill := func(until int) {
		t.Helper()
		for i := len(e.Pools); i < until; i++ {
			e.Pools = append(e.Pools, &structs.NodePool{Name: fmt.Sprint("pool-", i)})
		}
		w.must(e)
	}
	fill(structs.MaxNodePoolsOfNodes - 1)
	for _, id := range []string{"a", "b"} {
		n := node(id)
		n.NodePool = id
		w.must(&structs.NodeRegisterEntry{Node: n, EvalSeed: id})
	}
	check(t, "missing, as far as there is room", fmt.Sprint(w.store.Snapshot().NodePools().Missing()), "[a]")
	w.refuses(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "a"}, {Name: "b"}}, IfAbsent: true}, structs.CodeTooLarge)
	w.must(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "a"}, {Name: "a"}}, IfAbsent: true})
	w.refuses(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "b"}}, IfAbsent: true}, structs.CodeTooLarge)

	// The rest is for operators alone.
	w.must(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "b"}}})
	fill(structs.MaxNodePools - 2)
	w.refuses(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "c"}}}, structs.CodeTooLarge)
	w.must(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "a"}}}) // no more than there were
}

// TestMissingNodePools: those that nodes and jobs name and that a version without node pools did not keep.
func TestMissingNodePools(t *testing.T) {
	w := newWorld(t)
	for id, pool := range map[string]string{"n": "gpu", "m": "gpu", "o": "a b", "p": "default"} {
		n := node(id)
		n.NodePool = pool
		w.must(&structs.NodeRegisterEntry{Node: n, EvalSeed: id})
	}
	for id, pool := range map[string]string{"web": "waits", "db": "kept", "old": "gone"} {
		j := job(id)
		j.NodePool = pool
		j.Stop = id == "old"
		w.register(j)
	}
	w.must(&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "kept"}}})
	check(t, "missing", fmt.Sprint(w.store.Snapshot().NodePools().Missing()), "[gpu waits]")
	snap := w.store.Snapshot()
	for name, want := range map[string]bool{"gpu": true, "kept": true, "all": true, "default": true, "waits": false, "gone": false} {
		check(t, name+" may be named", snap.NodePools().Has(name), want)
	}
}
