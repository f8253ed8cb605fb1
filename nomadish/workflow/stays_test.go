package workflow

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// ineligible has a node take no work any more.
func (s *started) ineligible(id string) {
	s.Put(s.t, &structs.NodeEligibilityEntry{NodeID: id, Eligibility: structs.NodeIneligible, Time: int64(s.Index())})
}

// TestStayingPartIsNoRoom: in what idles of a part that stays on a node which takes no work nothing may start: what another node lost that the running stage needs is
// reserved anew, though it would fit there.
func TestStayingPartIsNoRoom(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000, 4000, 4000}, []int{1000}, []int{2000, 4000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.node("n-b", 4000, structs.NodeStatusReady)
	s.step()
	s.complete(0)
	s.step()
	s.borrow(7, 1000) // so that the jobs of the last stage start on both nodes
	for _, id := range s.live("flood-1000") {
		if s.Store.Snapshot().Alloc(nil, id).NodeID == "n-b" {
			s.ends(id)
		}
	}
	s.complete(1)
	s.step()
	const job = "chip/1/j2-0"
	if on := s.nodesOf(job); len(on) != 1 || on[0] != "n-b" {
		t.Fatalf("%s runs on %v", job, on)
	}
	s.ineligible("n-a")
	s.node("n-c", 4000, structs.NodeStatusReady)
	s.node("n-b", 4000, structs.NodeStatusDown)
	s.step()
	if r := s.run(); r.Missing != "" || len(r.Parts) != 2 || r.Parts[1].NodeID != "n-c" || r.Parts[1].CPU != 2000 {
		t.Errorf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	s.decide(job)
	if c := s.claimsOf(job); len(c) != 1 || c[0] != structs.ClaimWorkflow {
		t.Errorf("placed again it runs by %q", c)
	}
}
