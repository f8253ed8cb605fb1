package workflow

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestGangWaitsForANode: a stage whose gang has no room, as a node of the reservation is lost, has nobody leave: what is left of that stays lent, with what comes free of it,
// until another node is there. Then the gang runs whole in the reservation, and who borrowed has left.
func TestGangWaitsForANode(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000}, []int{4000})
	gang := w.Stages[1].Jobs[0].Job
	gang.TaskGroups[0].Count, gang.TaskGroups[0].Gang = 3, &structs.Gang{}
	s := startedWith(t, nil, w)
	for _, id := range []string{"n-a", "n-b", "n-c"} {
		s.node(id, 4000, structs.NodeStatusReady)
	}
	s.step()
	s.inOne(0)
	if n := s.borrow(100, 1000); n != 11 || len(s.run().Parts) != 3 {
		t.Fatalf("%d borrow of %+v", n, s.run().Parts)
	}
	lost := "n-c"
	if s.nodesOf("chip/1/j0-0")[0] == lost {
		lost = "n-b"
	}
	s.node(lost, 4000, structs.NodeStatusDown)
	s.complete(0)
	s.step()
	const id = "chip/1/j1-0"
	on := func() (n int) { // how many borrow where nodes are ready
		for _, a := range s.live("flood-1000") {
			if s.Store.Snapshot().Alloc(nil, a).NodeID != lost {
				n++
			}
		}
		return n
	}
	if r := s.run(); on() != 7 || r.Stage != 1 || r.Missing == "" || len(s.live(id)) != 0 {
		t.Fatalf("%d borrow; stage %d, %d of the gang run, missing %q", on(), r.Stage, len(s.live(id)), r.Missing)
	}
	if own, more := s.decide(id), s.decide("flood-1000"); own != 0 || more != 1 || on() != 8 {
		t.Errorf("%d of the gang are placed, %d more borrow, %d in all", own, more, on())
	}
	at := s.Index()
	s.clock.now = s.clock.now.Add(reserveAnyway)
	if s.step(); s.Index() != at {
		t.Errorf("%d entries a minute later", s.Index()-at)
	}
	s.node("n-d", 4000, structs.NodeStatusReady)
	s.step()
	if r := s.run(); r.Missing != "" || len(r.Parts) != 3 {
		t.Fatalf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	if more := s.decide("flood-1000"); more != 0 {
		t.Errorf("%d borrow what the gang has still to take", more)
	}
	s.decide(id)
	if by := s.claimsOf(id); len(by) != 3 || by[0] != structs.ClaimWorkflow || by[1] != structs.ClaimWorkflow || by[2] != structs.ClaimWorkflow || on() != 0 {
		t.Errorf("the gang runs by %q, and %d borrow", by, on())
	}
}
