package operator

import (
	"context"
	"errors"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestCheck(t *testing.T) {
	s := newSite(t, &structs.Node{ID: "n", Name: "n", Status: structs.NodeStatusReady})
	s.Router.Name = "s1"
	reply, err := s.check(t.Context(), &structs.CheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r := reply.Report
	if !r.Healthy() || r.Server != "s1" || r.StateIndex != s.Index() || r.Hash != s.Store.Snapshot().Hash() || reply.Index != s.Index() || !reply.KnownLeader {
		t.Errorf("report %+v of index %d", r, reply.Index)
	}
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{{
		Namespace: "default", JobID: "nobody", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: "n"}}, Instances: make([]structs.Instance, 1),
	}}}}})
	if reply, err := s.check(t.Context(), &structs.CheckRequest{}); err != nil || reply.Report.Healthy() {
		t.Errorf("work of no job is not found: %+v, %v", reply, err)
	}
	// One at a time: a caller that gives up waiting is let go.
	s.checking <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.check(ctx, &structs.CheckRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
