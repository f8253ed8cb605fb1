package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

func TestJobExplain(t *testing.T) {
	s := newSite(t, endpointtest.Node("n1"), endpointtest.Node("n2"))
	s.Put(&structs.JobRegisterEntry{Job: endpointtest.Job("before", 2000)})
	s.Put(&structs.JobRegisterEntry{Job: endpointtest.Job("web", 1500)})
	s.Requests("default", "before", 2)
	s.Requests("default", "web", 2)
	reply, err := s.jobExplain(t.Context(), &structs.JobExplainRequest{ID: "web"})
	if err != nil || reply.Explanation == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	x := reply.Explanation
	if q := x.Queue; q == nil || q.Place != 2 || q.Waiting != 2 || q.Pool != "default" || q.EvalID != "b" || len(q.Ahead) != 1 || q.Ahead[0].ID != "before" ||
		q.Priority.Total != 50 || q.Priority.Declared != 50 {
		t.Errorf("its place: %+v", q)
	}
	g := x.Group("g")
	if g == nil || g.Missing != 2 || len(g.Reasons) != 1 || g.Reasons[0].Kind != structs.ReasonMemory || g.Reasons[0].Nodes != 2 || g.Reasons[0].Most != 1000 {
		t.Fatalf("%+v", g)
	}
	if r := g.Smallest; len(r) == 0 || r[0].Kind != structs.RemedyResources || string(r[0].Edits[0].Value) != "1000" || reply.Index != s.Index() {
		t.Errorf("at %d: %+v", reply.Index, r)
	}
	if reply, err = s.jobExplain(t.Context(), &structs.JobExplainRequest{ID: "web", NoRemedies: true}); err != nil || len(reply.Explanation.Group("g").Smallest) > 0 {
		t.Errorf("without changes: %v", err)
	}
	if _, err = s.jobExplain(t.Context(), &structs.JobExplainRequest{ID: "web", Group: "h"}); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "name one of g") {
		t.Errorf("a group that is not: %v", err)
	}
	for id, near := range map[string]string{"wed": "[web]", "we": "[web]", "nothing like it": "[]"} {
		if reply, err = s.jobExplain(t.Context(), &structs.JobExplainRequest{ID: id}); err != nil || reply.Explanation != nil || fmt.Sprint(reply.Near) != near {
			t.Errorf("%q: %v %v", id, reply.Near, err)
		}
	}
}

// A blocking query answers when anything changes that it looks at, and with what is then.
func TestJobExplainBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, endpointtest.Node("n1"))
		s.Put(&structs.JobRegisterEntry{Job: endpointtest.Job("web", 1500)})
		s.Requests("default", "web", 2)
		args := structs.JobExplainRequest{ID: "web", QueryOptions: structs.QueryOptions{MinQueryIndex: s.Index(), MaxQueryTime: time.Hour}}
		answer := make(chan *structs.JobExplainReply)
		go func() {
			reply, err := s.jobExplain(context.Background(), &args)
			if err != nil {
				t.Error(err)
			}
			answer <- reply
		}()
		synctest.Wait()
		select {
		case <-answer:
			t.Fatal("it answers though nothing has changed")
		default:
		}
		s.Put(&structs.NodeRegisterEntry{Node: endpointtest.Node("n2"), Time: 1, EvalSeed: "f"})
		reply := <-answer
		if reply.Index != s.Index() || reply.Explanation.Group("g").Nodes.InPool != 2 {
			t.Errorf("at %d of %d: %+v", reply.Index, s.Index(), reply.Explanation.Group("g").Nodes)
		}
	})
}

func TestAllocExplain(t *testing.T) {
	s := newSite(t, endpointtest.Node("n1"))
	low, high := endpointtest.Job("low", 100), endpointtest.Job("high", 100)
	low.Priority = 20
	s.Put(&structs.JobRegisterEntry{Job: low})
	s.Put(&structs.JobRegisterEntry{Job: high})
	batch := func(job *structs.Job, seed string) *structs.PlacementBatch {
		return &structs.PlacementBatch{
			Namespace: "default", JobID: job.ID, JobVersion: job.Version, Group: "g", Seed: seed, CreateTime: 1,
			Nodes: []structs.PlacedNode{{ID: "n1", Name: "n1"}}, Instances: []structs.Instance{{}},
			Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {}}, Shared: structs.AllocatedSharedResources{
				TimeLimit: time.Hour, Terms: &structs.AllocTerms{Priority: job.Priority},
			}},
		}
	}
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{batch(low, "a")}}}})
	victim, winner := structs.DeriveID("a", 0), structs.DeriveID("b", 0)
	explain := func(id string) *structs.AllocExplanation {
		t.Helper()
		reply, err := s.allocExplain(t.Context(), &structs.IDRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Explanation
	}
	x := explain(victim)
	if x == nil || x.NodeID != "n1" || x.Band != 0 || x.Class != structs.ClassOpportunistic || x.Lost != nil || len(x.MayLoseTo) != 2 ||
		x.MayLoseTo[0].Kind != "preemption" || x.MayLoseTo[0].LowestPriority != 41 || x.MayLoseTo[1].At != int64(time.Hour)+1 {
		t.Fatalf("%+v", x)
	}
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 2, Place: []*structs.PlacementBatch{batch(high, "b")}, Stop: []*structs.AllocStop{{
		AllocID: victim, DesiredStatus: structs.AllocDesiredEvict, PreemptedBy: winner, Reclaim: structs.ReclaimRequeue,
	}}}}})
	x = explain(victim)
	if l := x.Lost; l == nil || l.AllocID != winner || l.JobID != "high" || l.Priority != 50 || l.How != structs.ReclaimRequeue || len(x.MayLoseTo) > 0 {
		t.Errorf("preempted: %+v %v", x.Lost, x.Text)
	}
	if x = explain(winner); len(x.WaitsFor) != 1 || x.WaitsFor[0] != victim {
		t.Errorf("the winner waits for %v", x.WaitsFor)
	}
	reply, err := s.jobExplain(t.Context(), &structs.JobExplainRequest{ID: "high"})
	if err != nil {
		t.Fatal(err)
	}
	waits := reply.Explanation.Group("g").Waits
	if len(waits) == 0 || waits[len(waits)-1].Kind != structs.ReasonReclaim || waits[len(waits)-1].Allocs[0] != victim {
		t.Errorf("its job waits: %+v", waits)
	}
	if explain("nosuch") != nil {
		t.Error("there is no such allocation")
	}
}
