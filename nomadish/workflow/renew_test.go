package workflow

import (
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// node has a node of so many MHz be as stated.
func (s *started) node(id string, mhz int64, status string) {
	n := testcluster.Node(id, mhz)
	n.Status = status
	n.ComputeClass()
	s.Put(s.t, &structs.NodeRegisterEntry{Node: n, Time: int64(s.Index())})
}

// TestRenewalKeepsWhatComesFree: what was lost of a reservation is kept free of others as it comes, as a whole reservation is, until all of it is there; who
// waits with a higher rank keeps it instead.
func TestRenewalKeepsWhatComesFree(t *testing.T) {
	for _, higher := range []bool{false, true} {
		w := lendingWorkflow("chip", 50, []int{1000}, []int{8000})
		w.Lend = nil
		s := startedWith(t, nil, w)
		s.node("n-a", 8000, "ready")
		s.step()
		s.inOne(0)
		s.node("n-b", 8000, "ready")
		s.borrow(100, 1000)
		s.node("n-a", 8000, "down")
		s.step()
		keeps := func() string { return scheduler.PendingWorkflows(s.Store.Snapshot().World())[0].ID }
		if r := s.run(); len(r.Keeps) != 1 || r.Keeps[0].NodeID != "n-b" || r.Missing == "" || keeps() != "chip" {
			t.Fatalf("%+v are kept, missing %q", r.Keeps, r.Missing)
		}
		if higher {
			s.runs(lendingWorkflow("first", 60, []int{8000}))
			if s.step(); keeps() != "first" || len(s.run().Keeps) > 0 || len(s.run().Parts) != 1 {
				t.Fatalf("%s keeps what comes free, and chip %+v", keeps(), s.run().Keeps)
			}
			continue
		}
		for ends := 1; s.run().Missing != ""; ends++ {
			if ends > 8 {
				t.Fatalf("after %d ends %q", ends, s.run().Missing)
			}
			s.ends(s.live("flood-1000")[0])
			s.decide("flood-1000") // before the reservation is looked at
			s.step()
		}
		if r := s.run(); len(r.Parts) != 1 || r.Parts[0].NodeID != "n-b" || len(r.Keeps) > 0 || len(scheduler.PendingWorkflows(s.Store.Snapshot().World())) > 0 {
			t.Errorf("renewed: %+v, kept %+v", r.Parts, r.Keeps)
		}
	}
}
