package workflow

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestTimeRuleHeedsSysbatch: a sysbatch job of the running stage, for which nothing is reserved, counts in what is left of the stage from when it started,
// as the others do, and not from now on for ever.
func TestTimeRuleHeedsSysbatch(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000}, []int{8000})
	w.Lend[0].LendLonger = false
	w.Stages[0].Jobs[0].Job.TaskGroups[0].MaxRunDuration = time.Hour
	sys := cores(1, 100)
	sys.Type, sys.TaskGroups[0].MaxRunDuration = structs.JobTypeSysBatch, time.Hour
	w.Stages[0].Jobs = append(w.Stages[0].Jobs, &structs.WorkflowJob{Name: "sys", Job: sys})
	s := startedWith(t, []int64{8100}, w)
	s.clock.now = time.Unix(0, 1000)
	s.step()
	if n := s.decide("chip/1/sys"); n != 1 {
		t.Fatalf("%d instances of the sysbatch job run", n)
	}
	e := &structs.AllocClientEntry{Time: int64(s.Index())}
	for a := range s.Store.Snapshot().Allocs(nil, "default", "", false) {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: a.ID, ClientStatus: structs.AllocClientRunning})
	}
	s.Put(t, e)
	s.step()
	s.clock.now = s.clock.now.Add(59 * time.Minute)
	for id, limit := range map[string]time.Duration{"long": 30*time.Minute + time.Second, "short": time.Second} {
		job := cores(4, 1000)
		job.ID, job.TaskGroups[0].MaxRunDuration = id, limit
		job.Canonicalize()
		s.Put(t, &structs.JobRegisterEntry{Job: job, Time: int64(s.Index())})
		if n := s.decide(id); (n > 0) != (id == "short") {
			t.Errorf("a minute before the stage's limit, %d instances borrow that run for up to %s", n, job.TaskGroups[0].MaxRunDuration)
		}
	}
}

// TestLostInstanceHasBorrowersLeave: an instance that was lost with its node, for which the part that is left has cores but no disk, does not wait beside cores of its own run
// that are lent: just enough is taken back. What was lost stays missing for the later stage until there is room for it, and nothing changes from round to round.
func TestLostInstanceHasBorrowersLeave(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000, 4000}, []int{8000, 4000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.node("n-b", 4000, structs.NodeStatusReady)
	s.step()
	s.inOne(0)
	lost := "chip/1/j0-0"
	if s.nodesOf(lost)[0] != "n-b" {
		lost = "chip/1/j0-1"
	}
	if n := s.borrow(100, 1000); n != 4 || s.nodesOf(lost)[0] != "n-b" {
		t.Fatalf("%d borrow; %s runs on %v", n, lost, s.nodesOf(lost))
	}
	s.node("n-b", 4000, structs.NodeStatusDown)
	own := s.decide(lost)
	s.step()
	if n, by := len(s.live("flood-1000")), s.claimsOf(lost); own != 1 || n != 0 || len(by) != 1 || by[0] != "" || s.run().Missing == "" {
		t.Fatalf("%d placed, by %q, %d borrow, missing %q", own, by, n, s.run().Missing)
	}
	sums := func() {
		t.Helper()
		u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip")
		if u.Used.CPU+u.Lent.CPU+u.Idle.CPU+u.Lost.CPU != 12_000 || u.Reserved.CPU != 12_000 || u.Reserved.DiskMB != 600 || u.Used.CPU != 8000 || u.Lent.CPU != 0 {
			t.Errorf("used %+v, lent %+v, idle %+v, lost %+v of %+v", u.Used, u.Lent, u.Idle, u.Lost, u.Reserved)
		}
	}
	sums()
	at := s.Index()
	s.clock.now = s.clock.now.Add(reserveAnyway)
	if s.step(); s.Index() != at || s.decide("flood-1000") != 0 || s.decide(lost) != 0 {
		t.Errorf("%d entries a minute later", s.Index()-at)
	}
	s.node("n-c", 4000, structs.NodeStatusReady)
	s.step()
	if r := s.run(); r.Missing != "" || len(r.Parts) != 2 || r.Parts[1].NodeID != "n-c" {
		t.Errorf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	sums()
	s.complete(0)
	s.step()
	s.inOne(1)
}
