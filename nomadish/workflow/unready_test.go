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

// TestPartGoneLosesClaims: when a part of a reservation is reserved elsewhere while an instance of the run goes on where it was, the instance has no claim any
// more, and nothing is held back from borrowers for it, as it is there.
func TestPartGoneLosesClaims(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000}, []int{8000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.node("n-b", 8000, structs.NodeStatusReady)
	elsewhere := testcluster.Node("n-a", 8000)
	elsewhere.NodePool = "other"
	elsewhere.ComputeClass()
	s.Put(t, &structs.NodeRegisterEntry{Node: elsewhere, Time: 9})
	s.step()
	if r := s.run(); r.Missing != "" || r.Parts[0].NodeID != "n-b" {
		t.Fatalf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	if c := s.claimsOf("chip/1/j0-0"); len(c) != 1 || c[0] != "" {
		t.Errorf("what runs where nothing is reserved any more has claim %q", c)
	}
	if n := s.borrow(20, 1000); n != 8 {
		t.Errorf("of 8 cores that are reserved and idle %d are lent", n)
	}
}

// TestPartGoneWhileAway: what runs on a node that is cut off keeps its claim, as nobody else can use the node; what comes back with it has none if its part was
// reserved elsewhere meanwhile.
func TestPartGoneWhileAway(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000}, []int{8000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.node("n-b", 8000, structs.NodeStatusReady)
	for _, c := range []struct{ status, claim string }{{structs.NodeStatusDisconnected, structs.ClaimWorkflow}, {structs.NodeStatusReady, ""}} {
		s.node("n-a", 8000, c.status)
		s.step()
		if r := s.run(); r.Missing != "" || r.Parts[0].NodeID != "n-b" {
			t.Fatalf("reserved %+v, missing %q", r.Parts, r.Missing)
		}
		if is := s.claimsOf("chip/1/j0-0"); len(is) != 1 || is[0] != c.claim {
			t.Errorf("on a node that is %s it has claim %q, want %q", c.status, is, c.claim)
		}
	}
}

// TestPartKeepsGang: a gang of which a member's part has gone has no claim any more, as a gang has it whole or not at all. The others go on in the room of parts
// that stay, which is nobody else's, and no other workflow's, until they end.
func TestPartKeepsGang(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{8000}, []int{8000})
	group := w.Stages[0].Jobs[0].Job.TaskGroups[0]
	group.Count, group.Gang = 2, &structs.Gang{Min: 2}
	s := startedWith(t, nil, w)
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.step()
	const job = "chip/1/j0-0"
	if n := len(s.live(job)); n != 2 || len(s.run().Parts) != 2 {
		t.Fatalf("%d run, reserved %+v", n, s.run().Parts)
	}
	s.node("n-c", 8000, structs.NodeStatusReady)
	elsewhere := testcluster.Node("n-a", 8000)
	elsewhere.NodePool = "other"
	elsewhere.ComputeClass()
	s.Put(t, &structs.NodeRegisterEntry{Node: elsewhere, Time: 9})
	s.step()
	if c := s.claimsOf(job); len(c) != 2 || c[0] != "" || c[1] != "" {
		t.Errorf("the gang has claims %q", c)
	}
	u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip")
	if u.Reserved.CPU != 16_000 || u.Used.CPU != 8000 || u.Lent.CPU != 0 || u.Idle.CPU != 8000 {
		t.Errorf("reserved %+v, used %+v, lent %+v, idle %+v", u.Reserved, u.Used, u.Lent, u.Idle)
	}
	if n := s.borrow(20, 1000); n != 8 {
		t.Errorf("%d are lent beside the gang, want 8", n)
	}
	for _, id := range s.live(job) { // the rest of the gang is raised where it is
		if s.Store.Snapshot().Alloc(nil, id).NodeID == "n-a" {
			s.ends(id)
		}
	}
	s.step()
	if u = scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip"); u.Used.CPU != 8000 || u.Lent.CPU != 8000 || u.Idle.CPU != 0 {
		t.Errorf("once raised: used %+v, lent %+v, idle %+v", u.Used, u.Lent, u.Idle)
	}
}
