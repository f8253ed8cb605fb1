package job

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestScalingPolicies: the scaling blocks of jobs are listed as policies, with IDs and indexes that stay while nothing of them changes.
func TestScalingPolicies(t *testing.T) {
	s := newSite(t)
	s.Applier = s
	register := func(ns, id string, count int, maxCount int64) {
		t.Helper()
		j := &structs.Job{Namespace: ns, ID: id, TaskGroups: []*structs.TaskGroup{
			{Name: "g", Count: count, Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}, {Name: "plain", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d"}}},
		}}
		if maxCount > 0 {
			j.TaskGroups[0].Scaling = &structs.ScalingPolicy{Min: 1, Max: maxCount, Enabled: true, Policy: map[string]any{"key": "value"}}
		}
		j.Canonicalize()
		s.Put(&structs.JobRegisterEntry{Job: j, Time: 1})
	}
	list := func(args structs.ScalingPolicyListRequest) []*structs.ScalingPolicyListStub {
		t.Helper()
		reply, err := s.scalingList(t.Context(), &args)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Policies
	}
	all := structs.QueryOptions{Namespace: "*"}
	if got := list(structs.ScalingPolicyListRequest{QueryOptions: all}); len(got) != 0 {
		t.Errorf("at first: %v", got)
	}
	register("default", "web", 2, 5)
	register("default", "none", 2, 0)
	s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "other"}})
	register("other", "far", 2, 5)
	web := structs.ScalingPolicyID("default", "web", "g")
	for _, row := range []struct {
		args structs.ScalingPolicyListRequest
		want int
	}{
		{structs.ScalingPolicyListRequest{QueryOptions: all}, 2}, {structs.ScalingPolicyListRequest{}, 1},
		{structs.ScalingPolicyListRequest{Job: "web"}, 1}, {structs.ScalingPolicyListRequest{Job: "far"}, 0},
		{structs.ScalingPolicyListRequest{Type: "horizontal"}, 1}, {structs.ScalingPolicyListRequest{Type: "vertical"}, 0},
		{structs.ScalingPolicyListRequest{QueryOptions: structs.QueryOptions{Prefix: web[:8]}}, 1},
		{structs.ScalingPolicyListRequest{QueryOptions: structs.QueryOptions{Prefix: "zz"}}, 0},
		{structs.ScalingPolicyListRequest{QueryOptions: structs.QueryOptions{Namespace: "*", PerPage: 1}}, 1},
		{structs.ScalingPolicyListRequest{QueryOptions: structs.QueryOptions{Filter: `Target.Job == "web"`}}, 1},
	} {
		if got := list(row.args); len(got) != row.want {
			t.Errorf("%+v: %d policies, want %d", row.args, len(got), row.want)
		}
	}
	get := func(id string) *structs.ScalingPolicy {
		t.Helper()
		reply, err := s.scalingGet(t.Context(), &structs.IDRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Policy
	}
	first := get(web)
	if first == nil || first.Max != 5 || first.Target["Job"] != "web" || first.Policy["key"] != "value" || first.CreateIndex != 1 || first.ModifyIndex != 1 {
		t.Fatalf("%+v", first)
	}
	if get("unknown") != nil {
		t.Error("an unknown one is found")
	}
	register("default", "web", 3, 5) // scaled: the policy is what it was
	if p := get(web); p.ID != first.ID || p.ModifyIndex != 1 || p.CreateIndex != 1 {
		t.Errorf("after scaling: %+v", p)
	}
	register("default", "web", 3, 6)
	if p := get(web); p.ModifyIndex != s.Index() || p.CreateIndex != 1 || p.Max != 6 {
		t.Errorf("after a change: %+v at %d", p, s.Index())
	}
	// Who waits for a policy hears of its end.
	since := s.Index()
	came := make(chan *structs.ScalingPolicyReply, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		reply, _ := s.scalingGet(ctx, &structs.IDRequest{ID: web, QueryOptions: structs.QueryOptions{MinQueryIndex: since, MaxQueryTime: time.Minute}})
		came <- reply
	}()
	s.Put(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Time: 2})
	if reply := <-came; reply == nil || reply.Policy != nil || reply.Index <= since {
		t.Errorf("after the job was stopped: %+v", reply)
	}
	if got := list(structs.ScalingPolicyListRequest{}); len(got) != 0 {
		t.Errorf("after the job was stopped: %v", got)
	}
}
