package gc

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestCollect: what an evaluation's allocations still say is kept with it, and a dead
// job goes with everything of it.
func TestCollect(t *testing.T) {
	const hour = time.Hour
	const evicted = "complete, while it was being stopped for somebody else"
	f := func(name, kind, client string, stop bool, opts Options, wantJobs, wantEvals, wantAllocs int) {
		t.Helper()
		b := newBed(t)
		then := time.Now().Add(-10 * hour).UnixNano()
		b.Put(b, &structs.NodeRegisterEntry{Node: testcluster.Node("n", 1000), Time: then})
		job := testcluster.Job("j", kind, 1)
		eval := testcluster.Eval("e", job, structs.EvalStatusPending)
		b.Put(b, &structs.JobRegisterEntry{Job: job, Eval: eval, Time: then})
		done := eval.Copy()
		done.Status = structs.EvalStatusComplete
		commit := testcluster.Place("e", then, testcluster.Batch("j", "n", "s", 1))
		commit.Plans[0].Evals = []*structs.Evaluation{done}
		b.Put(b, commit)
		if client == evicted {
			client = structs.AllocClientComplete
			b.Put(b, testcluster.Commit(&structs.JudgedPlan{
				Time: then, Stop: []*structs.AllocStop{{AllocID: testcluster.AllocID("s", 0), DesiredStatus: structs.AllocDesiredEvict}},
			}))
		}
		b.Put(b, &structs.AllocClientEntry{Time: then, Updates: []*structs.AllocClientUpdate{{
			ID: testcluster.AllocID("s", 0), NodeID: "n", ClientStatus: client, ModifyTime: then,
		}}})
		if stop {
			b.Put(b, &structs.JobDeregisterEntry{Namespace: job.Namespace, JobID: "j", Time: then})
		}
		if err := New(opts, b.store, b).collect(t.Context(), false); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		snap := b.store.Snapshot()
		jobs, evals := 0, 0
		for range snap.Jobs(nil, structs.AllNamespaces, "", false) {
			jobs++
		}
		for range snap.Evals(nil, structs.AllNamespaces, "", false) {
			evals++
		}
		allocs := len(snap.AllocsByJob(nil, job.Namespace, "j", true))
		if jobs != wantJobs || evals != wantEvals || allocs != wantAllocs {
			t.Errorf("%s: left are %d jobs, %d evaluations, %d allocations; want %d, %d, %d", name, jobs, evals, allocs, wantJobs, wantEvals, wantAllocs)
		}
		if diff := state.Differences(snap); len(diff) > 0 {
			t.Errorf("%s: %v", name, diff)
		}
	}
	long, batch := 100*hour, structs.JobTypeBatch
	running, complete, failed := structs.AllocClientRunning, structs.AllocClientComplete, structs.AllocClientFailed
	f("too young", batch, complete, false, Options{BatchEval: long, Job: long}, 1, 1, 1)
	f("an ended batch job's evaluation, before the job itself", batch, complete, false, Options{BatchEval: hour, Job: long}, 1, 1, 1)
	f("the same, ended as it was being stopped", batch, evicted, false, Options{BatchEval: hour, Job: long}, 1, 1, 1)
	f("the same, with the job itself", batch, evicted, false, Options{BatchEval: hour, Job: hour}, 0, 0, 0)
	f("the same, of a stopped job", batch, evicted, true, Options{BatchEval: hour, Job: long}, 1, 0, 0)
	f("an ended batch job", batch, complete, false, Options{BatchEval: long, Job: hour}, 0, 0, 0)
	f("a running batch job", batch, running, false, Options{BatchEval: hour, Job: hour}, 1, 1, 1)
	f("a stopped batch job that still runs", batch, running, true, Options{BatchEval: hour, Job: hour}, 1, 1, 1)
	f("a service that may be rescheduled", structs.JobTypeService, failed, false, Options{Eval: hour, Job: long}, 1, 1, 1)
	f("a stopped service, before the job itself", structs.JobTypeService, complete, true, Options{Eval: hour, Job: long}, 1, 0, 0)
	f("a stopped service", structs.JobTypeService, complete, true, Options{Eval: long, Job: hour}, 0, 0, 0)
}

// TestCollectRequeued: what records how often an instance was requeued goes when another allocation of the instance records it, or when
// its job is stopped.
func TestCollectRequeued(t *testing.T) {
	b := newBed(t)
	then := time.Now().Add(-10 * time.Hour).UnixNano()
	b.Put(b, &structs.NodeRegisterEntry{Node: testcluster.Node("n", 1000), Time: then})
	job := testcluster.Job("j", structs.JobTypeService, 1)
	b.Put(b, &structs.JobRegisterEntry{Job: job, Eval: testcluster.Eval("waits", job, structs.EvalStatusPending), Time: then})
	for _, seed := range []string{"first", "second"} {
		done := testcluster.Eval("e-"+seed, job, structs.EvalStatusComplete)
		done.ModifyTime = then
		commit := testcluster.Place(done.ID, then, testcluster.Batch("j", "n", seed, 1))
		commit.Plans[0].Evals = []*structs.Evaluation{done}
		b.Put(b, commit)
		id := testcluster.AllocID(seed, 0)
		b.Put(b, testcluster.Commit(&structs.JudgedPlan{Time: then, Stop: []*structs.AllocStop{{
			AllocID: id, DesiredStatus: structs.AllocDesiredEvict, RequeueReason: "why",
		}}}))
		b.Put(b, &structs.AllocClientEntry{Time: then, Updates: []*structs.AllocClientUpdate{{
			ID: id, NodeID: "n", ClientStatus: structs.AllocClientComplete, ModifyTime: then,
		}}})
	}
	left := func() (ids []string) {
		t.Helper()
		if err := New(Options{Eval: time.Hour, Job: 100 * time.Hour}, b.store, b).collect(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for _, a := range b.store.Snapshot().AllocsByJob(nil, job.Namespace, "j", true) {
			ids = append(ids, a.ID)
		}
		return ids
	}
	if got := left(); len(got) != 1 || got[0] != testcluster.AllocID("second", 0) {
		t.Errorf("while it waits %q are left", got)
	}
	b.Put(b, &structs.JobDeregisterEntry{Namespace: job.Namespace, JobID: "j", Time: then})
	if got := left(); len(got) != 0 {
		t.Errorf("when the job is stopped %q are left", got)
	}
}
