package gc

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// log is a Raft of one.
type log struct {
	writer *state.Writer
	index  uint64
}

func (l *log) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	l.index++
	return l.index, l.writer.Apply(l.index, t, payload)
}

// TestCollect: what an evaluation's allocations still say is kept with it, and a dead
// job goes with everything of it.
func TestCollect(t *testing.T) {
	const hour = time.Hour
	const evicted = "complete, while it was being stopped for somebody else"
	f := func(name, kind, client string, stop bool, opts Options, wantJobs, wantEvals, wantAllocs int) {
		t.Helper()
		store, writer := state.New(state.Options{})
		l := &log{writer: writer}
		must := func(typ structs.LogType, payload any) {
			t.Helper()
			if _, err := l.Apply(t.Context(), typ, payload); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		then := time.Now().Add(-10 * hour).UnixNano()
		node := &structs.Node{ID: "n", Name: "n", Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}}
		must(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: node, Time: then})
		job := &structs.Job{ID: "j", Type: kind, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}}}}}
		job.Canonicalize()
		eval := &structs.Evaluation{ID: "e", Namespace: job.Namespace, JobID: "j", Type: kind, Status: structs.EvalStatusPending}
		must(structs.LogJobRegister, &structs.JobRegisterEntry{Job: job, Eval: eval, Time: then})
		done := eval.Copy()
		done.Status = structs.EvalStatusComplete
		must(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
			EvalID: "e", Time: then, Evals: []*structs.Evaluation{done},
			Place: []*structs.PlacementBatch{{
				Namespace: job.Namespace, JobID: "j", Group: "g", EvalID: "e", Seed: "s",
				Nodes: []structs.PlacedNode{{ID: "n", Name: "n"}}, Instances: []structs.Instance{{}}, Resources: &structs.AllocatedResources{},
			}},
		}}})
		if client == evicted {
			client = structs.AllocClientComplete
			must(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
				Time: then, Stop: []*structs.AllocStop{{AllocID: structs.DeriveID("s", 0), DesiredStatus: structs.AllocDesiredEvict}},
			}}})
		}
		must(structs.LogAllocClient, &structs.AllocClientEntry{Time: then, Updates: []*structs.AllocClientUpdate{{
			ID: structs.DeriveID("s", 0), NodeID: "n", ClientStatus: client, ModifyTime: then,
		}}})
		if stop {
			must(structs.LogJobDeregister, &structs.JobDeregisterEntry{Namespace: job.Namespace, JobID: "j", Time: then})
		}
		if err := New(opts, store, l).collect(t.Context(), false); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		snap := store.Snapshot()
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
