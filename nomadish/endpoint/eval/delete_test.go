package eval

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/structs"
)

// lessee is a broker that handed out one evaluation before it was paused.
type lessee struct {
	queue.Evaluations
	id string
}

func (h lessee) Outstanding(id string) (string, bool) { return "token", id == h.id }

// TestEvalDelete: evaluations are deleted while the broker is paused, but for those whose allocations still matter.
func TestEvalDelete(t *testing.T) {
	s := newSite(t, testcluster.Node(endpointtest.ID(900), 1000))
	s.Applier, s.Broker = s, lessee{id: endpointtest.ID(8)}
	s.Plans = plan.New(plan.Options{}, s.Store, s, nil)
	s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "other"}})
	job := func(ns, id string) {
		j := &structs.Job{Namespace: ns, ID: id, Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
		j.Canonicalize()
		s.Put(&structs.JobRegisterEntry{Job: j, Time: 1})
	}
	eval := func(n int, ns, job, status string) {
		s.Put(&structs.EvalUpsertEntry{Time: 2, Evals: []*structs.Evaluation{{
			ID: endpointtest.ID(n), Namespace: ns, JobID: job, Type: structs.JobTypeService, TriggeredBy: structs.EvalTriggerJobRegister, Status: status,
		}}})
	}
	place := func(n int, job, seed string) string {
		s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: endpointtest.ID(n), Time: 3, Place: []*structs.PlacementBatch{{
			Namespace: "default", EvalID: endpointtest.ID(n), JobID: job, Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: endpointtest.ID(900)}}, Instances: []structs.Instance{{}},
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
	s.Put(&structs.AllocClientEntry{Time: 4, Updates: []*structs.AllocClientUpdate{{ID: ended, ClientStatus: structs.AllocClientComplete}}})
	s.Put(&structs.JobDeregisterEntry{Namespace: "default", JobID: "over", Time: 4})
	eval(5, "other", "far", structs.EvalStatusPending)
	eval(6, "default", "web", structs.EvalStatusFailed)
	eval(7, "default", "web", structs.EvalStatusComplete) // its allocation has failed and may be rescheduled
	failed := place(7, "web", "c")
	s.Put(&structs.AllocClientEntry{Time: 4, Updates: []*structs.AllocClientUpdate{{ID: failed, ClientStatus: structs.AllocClientFailed}}})

	eval(8, "default", "web", structs.EvalStatusPending)

	request := func(filter string, ids ...int) (*structs.EvalDeleteReply, error) {
		args := &structs.EvalDeleteRequest{Filter: filter}
		for _, n := range ids {
			args.EvalIDs = append(args.EvalIDs, endpointtest.ID(n))
		}
		return s.delete(t.Context(), args)
	}
	refused := func(what string, want error, text, filter string, ids ...int) {
		t.Helper()
		before := s.Index()
		if reply, err := request(filter, ids...); !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%s: %+v, %v", what, reply, err)
		}
		if s.Index() != before {
			t.Errorf("%s: something was written", what)
		}
	}
	deleted := func(filter string, count int, ids ...int) {
		t.Helper()
		if reply, err := request(filter, ids...); err != nil || reply.Count != count || reply.Index != s.Index() {
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
			should = append(should, endpointtest.ID(n))
		}
		if fmt.Sprint(got) != fmt.Sprint(should) {
			t.Errorf("left are %v, want %v", got, should)
		}
	}
	refused("while the broker hands out", structs.ErrBadRequest, "eval broker is enabled", "", 2)
	refused("while the broker hands out", structs.ErrBadRequest, "eval broker is enabled", "", 99)
	s.Put(&structs.SchedulerConfigEntry{Config: structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PauseEvalBroker: true}})
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
	reply, err := s.delete(t.Context(), &structs.EvalDeleteRequest{Filter: `Status == "pending"`, WriteRequest: structs.WriteRequest{Namespace: "*"}})
	if err != nil || reply.Count != 1 {
		t.Errorf("in all namespaces: %+v, %v", reply, err)
	}
	left(1, 7, 8)
	if open := s.Store.Snapshot().PendingEvals(); len(open) != 1 {
		t.Errorf("open are %v", open)
	}
}

// deleting is a paused site whose jobs have a group g, which can be placed on node 900.
type deleting struct{ *site }

func newDeleting(t *testing.T, leased int) deleting {
	t.Helper()
	d := deleting{newSite(t, testcluster.Node(endpointtest.ID(900), 1000))}
	d.Applier, d.Broker = d, lessee{id: endpointtest.ID(leased)}
	d.Plans = plan.New(plan.Options{EntryBytes: 1}, d.Store, d, nil)
	d.Put(&structs.SchedulerConfigEntry{Config: structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PauseEvalBroker: true}})
	return d
}

func (d deleting) job(id string) {
	d.T.Helper()
	j := &structs.Job{ID: id, Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
	j.Canonicalize()
	d.Put(&structs.JobRegisterEntry{Job: j, Time: 1})
}

func (d deleting) eval(n int, job, status string) *structs.Evaluation {
	d.T.Helper()
	ev := &structs.Evaluation{ID: endpointtest.ID(n), Namespace: "default", JobID: job, Type: structs.JobTypeService, TriggeredBy: structs.EvalTriggerJobRegister, Status: status}
	d.Put(&structs.EvalUpsertEntry{Time: 2, Evals: []*structs.Evaluation{ev}})
	return ev
}

// wait has a job wait in an evaluation, with room reserved on a node; 0: none.
func (d deleting) wait(n int, job string, node int) {
	d.T.Helper()
	d.eval(n, job, structs.EvalStatusBlocked)
	p := &structs.JudgedPlan{EvalID: endpointtest.ID(n), Time: 3, Requests: []*structs.RequestUpdate{{Namespace: "default", JobID: job, Group: "g", Missing: 1, Since: 2, EvalID: endpointtest.ID(n)}}}
	if node != 0 {
		p.Reserve = []*structs.Reservation{{NodeID: endpointtest.ID(node), Namespace: "default", JobID: job, Group: "g", MemoryMB: 1, MadeAt: 3, DueAt: 4, ExpiresAt: 5}}
	}
	d.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

func (d deleting) place(n int, job string) string {
	d.T.Helper()
	d.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: endpointtest.ID(n), Time: 3, Place: []*structs.PlacementBatch{{
		Namespace: "default", EvalID: endpointtest.ID(n), JobID: job, Group: "g", Seed: job, Nodes: []structs.PlacedNode{{ID: endpointtest.ID(900)}}, Instances: []structs.Instance{{}},
	}}}}})
	return structs.DeriveID(job, 0)
}

func (d deleting) queued() (waiting, reserved []string) {
	snap := d.Store.Snapshot()
	for request := range snap.Requests().Waiting(nil, "*") {
		waiting = append(waiting, request.JobID)
	}
	for r := range snap.Reservations(nil) {
		reserved = append(reserved, r.JobID)
	}
	return waiting, reserved
}

func (d deleting) inOrder() {
	d.T.Helper()
	report, err := check.Run(d.T.Context(), d.Store.Snapshot(), check.Options{})
	if err != nil || len(report.Faults) > 0 {
		d.T.Errorf("the state is out of order: %+v, %v", report, err)
	}
}

// TestEvalDeleteEndsWaiting: with its last open evaluation a job leaves the queue and frees what room is reserved for it.
func TestEvalDeleteEndsWaiting(t *testing.T) {
	d := newDeleting(t, 0)
	for _, n := range []int{901, 902} {
		d.Put(&structs.NodeRegisterEntry{Time: 1, EvalSeed: "e", Node: &structs.Node{ID: endpointtest.ID(n), Name: fmt.Sprint(n), Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}}})
	}
	for _, id := range []string{"one", "two", "plain", "stays"} {
		d.job(id)
	}
	d.wait(1, "one", 900)
	d.wait(2, "two", 901)
	d.eval(3, "two", structs.EvalStatusPending)
	d.wait(4, "plain", 0)
	d.wait(5, "stays", 902)
	d.inOrder()
	del := func(args *structs.EvalDeleteRequest, count int, want string) {
		t.Helper()
		if reply, err := d.delete(t.Context(), args); err != nil || reply.Count != count || reply.Index != d.Index() {
			t.Fatal(reply, err)
		}
		waiting, reserved := d.queued()
		if got := fmt.Sprint(waiting, reserved); got != want {
			t.Errorf("waiting and reserved for are %s, want %s", got, want)
		}
		d.inOrder()
	}
	del(&structs.EvalDeleteRequest{EvalIDs: []string{endpointtest.ID(2)}}, 1, "[one plain stays two] [one two stays]") // another of it is open
	del(&structs.EvalDeleteRequest{EvalIDs: []string{endpointtest.ID(1)}}, 1, "[plain stays two] [two stays]")
	del(&structs.EvalDeleteRequest{Filter: `JobID != "stays"`}, 2, "[stays] [stays]")
}

// TestEvalDeleteKeepsWhatStops: of a job that is stopped or gone the evaluation stays that stops what is left of it.
func TestEvalDeleteKeepsWhatStops(t *testing.T) {
	for _, purge := range []bool{false, true} {
		d := newDeleting(t, 5)
		d.job("over")
		d.eval(1, "over", structs.EvalStatusComplete)
		alloc := d.place(1, "over")
		stop := d.eval(2, "over", structs.EvalStatusPending)
		d.Put(&structs.JobDeregisterEntry{Namespace: "default", JobID: "over", Purge: purge, Time: 4, Eval: stop})
		d.job("ended") // nothing of it is left
		d.Put(&structs.JobDeregisterEntry{Namespace: "default", JobID: "ended", Purge: purge, Time: 4, Eval: d.eval(3, "ended", structs.EvalStatusPending)})
		d.eval(4, "over", structs.EvalStatusBlocked) // may be cancelled undecided
		d.eval(5, "over", structs.EvalStatusPending) // a worker has it, since before the stop
		d.eval(6, "over", structs.EvalStatusPending)
		refused := func(ids ...string) {
			t.Helper()
			before := d.Index()
			_, err := d.delete(t.Context(), &structs.EvalDeleteRequest{EvalIDs: ids})
			if !errors.Is(err, structs.ErrConflict) || !strings.Contains(fmt.Sprint(err), "no other evaluation would stop them") || d.Index() != before {
				t.Errorf("purge %v: %v are deleted: %v", purge, ids, err)
			}
		}
		del := func(count int, args *structs.EvalDeleteRequest) {
			t.Helper()
			if reply, err := d.delete(t.Context(), args); err != nil || reply.Count != count {
				t.Errorf("purge %v: %+v: %+v, %v", purge, args, reply, err)
			}
			d.inOrder()
		}
		refused(endpointtest.ID(2), endpointtest.ID(6))
		del(1, &structs.EvalDeleteRequest{EvalIDs: []string{endpointtest.ID(6)}})
		refused(endpointtest.ID(2))
		del(2, &structs.EvalDeleteRequest{Filter: `Status == "pending" or Status == "blocked"`}) // 3 and 4
		refused(endpointtest.ID(2))
		d.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: endpointtest.ID(5), Time: 5, Stop: []*structs.AllocStop{{AllocID: alloc, DesiredStatus: structs.AllocDesiredStop}}}}})
		del(1, &structs.EvalDeleteRequest{EvalIDs: []string{endpointtest.ID(2)}})
	}
}
