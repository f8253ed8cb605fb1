package workflow

import (
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// claimsOf returns the claims of what runs of a job.
func (s *started) claimsOf(job string) (claims []string) {
	for _, id := range s.live(job) {
		claims = append(claims, s.Store.Snapshot().Alloc(nil, id).AllocatedResources.Shared.Terms.Claim)
	}
	return claims
}

// TestPartStaysWhileUsed: a part of a reservation stays on a node that takes no work any more, as it is ineligible, drains or its disk is full, as long as
// instances of the run use it; then it is reserved elsewhere.
func TestPartStaysWhileUsed(t *testing.T) {
	t.Parallel()
	full := testcluster.Node("n-a", 8000)
	full.DiskFull = "it is full"
	for name, change := range map[string]any{
		"ineligible": &structs.NodeEligibilityEntry{NodeID: "n-a", Eligibility: structs.NodeIneligible, Time: 9},
		"full":       &structs.NodeRegisterEntry{Node: full, Time: 9},
		"drains":     &structs.NodeDrainEntry{NodeID: "n-a", Strategy: &structs.DrainStrategy{}, Time: 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStarted(t, nil, []int{4000}, []int{8000})
			s.node("n-a", 8000, structs.NodeStatusReady)
			s.step()
			s.node("n-b", 8000, structs.NodeStatusReady)
			s.Put(t, change)
			s.step()
			const job = "chip/1/j0-0"
			u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip")
			if r := s.run(); r.Missing != "" || len(r.Parts) != 1 || r.Parts[0].NodeID != "n-a" || u.Used.CPU != 4000 {
				t.Fatalf("while its instance runs there %+v are reserved, missing %q, used %+v", r.Parts, r.Missing, u.Used)
			}
			if c := s.claimsOf(job); len(c) != 1 || c[0] != structs.ClaimWorkflow {
				t.Fatalf("it runs by %q", c)
			}
			s.complete(0)
			s.step()
			if r := s.run(); r.Missing != "" || len(r.Parts) != 1 || r.Parts[0].NodeID != "n-b" {
				t.Errorf("once it has ended %+v are reserved, missing %q", r.Parts, r.Missing)
			}
		})
	}
}

// TestPartGoneLosesClaims: when a part of a reservation is reserved elsewhere while an instance of the run goes on where it was, as on a node that is cut off,
// the instance has no claim any more.
func TestPartGoneLosesClaims(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000}, []int{8000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.node("n-a", 8000, structs.NodeStatusDisconnected)
	s.step()
	if r := s.run(); r.Missing != "" || r.Parts[0].NodeID != "n-b" {
		t.Fatalf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	if c := s.claimsOf("chip/1/j0-0"); len(c) != 1 || c[0] != "" {
		t.Errorf("what runs where nothing is reserved any more has claim %q", c)
	}
}
