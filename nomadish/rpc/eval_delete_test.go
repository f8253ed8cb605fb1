package rpc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// holder is a broker that handed out one evaluation before it was paused.
type holder struct {
	Broker
	id string
}

func (h holder) Outstanding(id string) (string, bool) { return "token", id == h.id }

func idOf(n int) string { return fmt.Sprintf("%08d-0000-8000-8000-000000000000", n) }

// TestEvalDelete: evaluations are deleted while the broker is paused, but for those whose allocations still matter.
func TestEvalDelete(t *testing.T) {
	s := newSite(t, &structs.Node{ID: idOf(900), Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}})
	s.Applier, s.Broker = s, holder{id: idOf(8)}
	apply := func(kind structs.LogType, entry any) {
		t.Helper()
		if _, err := s.Apply(t.Context(), kind, entry); err != nil {
			t.Fatal(err)
		}
	}
	job := func(ns, id string) {
		j := &structs.Job{Namespace: ns, ID: id, Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
		j.Canonicalize()
		apply(structs.LogJobRegister, &structs.JobRegisterEntry{Job: j, Time: 1})
	}
	eval := func(n int, ns, job, status string) {
		apply(structs.LogEvalUpsert, &structs.EvalUpsertEntry{Time: 2, Evals: []*structs.Evaluation{{
			ID: idOf(n), Namespace: ns, JobID: job, Type: structs.JobTypeService, TriggeredBy: structs.EvalTriggerJobRegister, Status: status,
		}}})
	}
	place := func(n int, job, seed string) string {
		apply(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: idOf(n), Time: 3, Place: []*structs.PlacementBatch{{
			Namespace: "default", EvalID: idOf(n), JobID: job, Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: idOf(900)}}, Instances: []structs.Instance{{}},
		}}}}})
		return structs.DeriveID(seed, 0)
	}
	job("default", "web")
	job("default", "over")
	job("other", "far")
	eval(1, "default", "web", structs.EvalStatusComplete) // its allocation runs
	live := place(1, "web", "a")
	eval(2, "default", "web", structs.EvalStatusPending)
	eval(3, "default", "web", structs.EvalStatusBlocked)
	eval(4, "default", "over", structs.EvalStatusComplete) // its allocation has ended, and its job was stopped
	ended := place(4, "over", "b")
	apply(structs.LogAllocClient, &structs.AllocClientEntry{Time: 4, Updates: []*structs.AllocClientUpdate{{ID: ended, ClientStatus: structs.AllocClientComplete}}})
	apply(structs.LogJobDeregister, &structs.JobDeregisterEntry{Namespace: "default", JobID: "over", Time: 4})
	eval(5, "other", "far", structs.EvalStatusPending)
	eval(6, "default", "web", structs.EvalStatusFailed)
	eval(7, "default", "web", structs.EvalStatusComplete) // its allocation has failed and may be rescheduled
	failed := place(7, "web", "c")
	apply(structs.LogAllocClient, &structs.AllocClientEntry{Time: 4, Updates: []*structs.AllocClientUpdate{{ID: failed, ClientStatus: structs.AllocClientFailed}}})

	eval(8, "default", "web", structs.EvalStatusPending)

	ask := func(filter string, ids ...int) (*structs.EvalDeleteReply, error) {
		args := &structs.EvalDeleteRequest{Filter: filter}
		for _, n := range ids {
			args.EvalIDs = append(args.EvalIDs, idOf(n))
		}
		return s.evalDelete(t.Context(), args)
	}
	refused := func(what string, want error, text, filter string, ids ...int) {
		t.Helper()
		before := s.index
		if reply, err := ask(filter, ids...); !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%s: %+v, %v", what, reply, err)
		}
		if s.index != before {
			t.Errorf("%s: something was written", what)
		}
	}
	deleted := func(filter string, count int, ids ...int) {
		t.Helper()
		if reply, err := ask(filter, ids...); err != nil || reply.Count != count || reply.Index != s.index {
			t.Errorf("%q %v: %+v, %v; want %d", filter, ids, reply, err, count)
		}
	}
	left := func(want ...int) {
		t.Helper()
		var got, should []string
		for ev := range s.Store.Snapshot().Evals(nil, "*", "", false) {
			got = append(got, ev.ID)
		}
		for _, n := range want {
			should = append(should, idOf(n))
		}
		if fmt.Sprint(got) != fmt.Sprint(should) {
			t.Errorf("left are %v, want %v", got, should)
		}
	}
	refused("while the broker hands out", structs.ErrBadRequest, "eval broker is enabled", "", 2)
	refused("while the broker hands out", structs.ErrBadRequest, "eval broker is enabled", "", 99)
	apply(structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{Config: structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PauseEvalBroker: true}})
	refused("unknown", structs.ErrNotFound, "eval not found", "", 2, 99)
	refused("it runs", structs.ErrConflict, "not safe to delete", "", 2, 1)
	refused("it may be rescheduled", structs.ErrConflict, "not safe to delete", "", 7)
	refused("nothing is named", structs.ErrBadRequest, "which evaluations", "")
	refused("both", structs.ErrBadRequest, "exclude", `Status == "pending"`, 2)
	refused("a filter that is none", structs.ErrBadRequest, "filter", `Status ==`)
	refused("too many", structs.ErrTooLarge, "at most", "", make([]int, maxNamedEvals+1)...)
	refused("a worker has it", structs.ErrConflict, "being decided", "", 8)
	left(1, 2, 3, 4, 5, 6, 7, 8)

	deleted("", 2, 2, 4, 2)
	left(1, 3, 5, 6, 7, 8)
	snap := s.Store.Snapshot()
	if snap.Alloc(nil, ended) != nil || snap.Alloc(nil, live) == nil {
		t.Error("the ended allocation is kept, or the one that runs is not")
	}
	deleted(`JobID == "web" or JobID == "far"`, 2) // not what is of another namespace, nor what still matters
	left(1, 5, 7, 8)
	deleted(`JobID == "nobody"`, 0)
	reply, err := s.evalDelete(t.Context(), &structs.EvalDeleteRequest{Filter: `Status == "pending"`, WriteRequest: structs.WriteRequest{Namespace: "*"}})
	if err != nil || reply.Count != 1 {
		t.Errorf("in all namespaces: %+v, %v", reply, err)
	}
	left(1, 7, 8)
	if open := s.Store.Snapshot().PendingEvals(); len(open) != 1 {
		t.Errorf("open are %v", open)
	}
}
