package workflow

import (
	"slices"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// nodesOf returns the nodes on which a job's instances run in the reservation, in order, all of them since the last stage's start.
func (s *started) nodesOf(id string) (nodes []string) {
	for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", id, true) {
		t := a.AllocatedResources.Shared.Terms
		if !a.Terminal() && t != nil && t.Claim == structs.ClaimWorkflow && a.CreateIndex == s.at[len(s.at)-1] {
			nodes = append(nodes, a.NodeID)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// TestStageOnDistinctHosts: a job whose instances have to be on distinct hosts has its reservation there, lends it until its stage starts, and then starts
// whole as one plan.
func TestStageOnDistinctHosts(t *testing.T) {
	w := lendingWorkflow("chip", 50, []int{1000}, []int{1000})
	job := w.Stages[1].Jobs[0].Job
	job.TaskGroups[0].Count = 2
	job.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts, RTarget: "true"}}
	s := startedWith(t, []int64{2000, 1000}, w)
	s.step()
	if parts := s.run().Parts; len(parts) != 2 {
		t.Fatalf("reserved: %+v", parts)
	}
	s.inOne(0)
	if n := s.borrow(10, 1000); n != 2 {
		t.Fatalf("%d run beside the first stage, want 2", n)
	}
	s.complete(0)
	s.step()
	if nodes := s.nodesOf("chip/1/j1-0"); !slices.Equal(nodes, []string{"node-000", "node-001"}) {
		t.Errorf("in the reservation on %v", nodes)
	}
}
