package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// node has a node of so many MHz be as stated.
func (s *started) node(id string, mhz int64, status string) {
	n := testcluster.Node(id, mhz)
	n.Name, n.Status = "name of "+id, status
	n.ComputeClass()
	s.Put(s.t, &structs.NodeRegisterEntry{Node: n, Time: int64(s.Index())})
}

// TestRenewalKeepsWhatComesFree: what was lost of a reservation is kept free of others as it comes, as a whole reservation is, until all of it is there; who
// waits keeps only what is beside that, whatever its priority, and has what is kept only after the other.
func TestRenewalKeepsWhatComesFree(t *testing.T) {
	for _, waits := range []int{0, 40, 60} { // the priority of who waits beside it
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
		if k := scheduler.WorkflowKeeps(s.Store.Snapshot().World(), "default/chip"); len(k) != 1 || k[0].Node != "name of n-b" || k[0].Amount.CPU != 8000 || k[0].Idle.CPU != 0 {
			t.Errorf("%+v are kept", k)
		}
		if text := s.run().Missing; !strings.HasPrefix(text, "the part on node name of n-a is lost") {
			t.Error(text)
		}
		waiting := func() *structs.WorkflowRun { return s.Store.Snapshot().Workflows(nil).Get("default", "waits") }
		if waits > 0 {
			s.runs(lendingWorkflow("waits", waits, []int{1000}))
		}
		for ends := 1; s.run().Missing != ""; ends++ {
			if ends > 8 {
				t.Fatalf("after %d ends %q", ends, s.run().Missing)
			}
			s.ends(s.live("flood-1000")[0])
			s.decide("flood-1000") // before the reservation is looked at
			if s.step(); waits > 0 && s.run().Missing != "" && (waiting().Posted || waiting().Missing == "" || s.idleKept("waits") > 0) {
				t.Fatalf("priority %d: posted %v, keeps %+v, missing %q", waits, waiting().Posted, waiting().Parts, waiting().Missing)
			}
		}
		if r := s.run(); len(r.Parts) != 1 || r.Parts[0].NodeID != "n-b" || len(r.Keeps) > 0 || waits == 0 && len(scheduler.PendingWorkflows(s.Store.Snapshot().World())) > 0 {
			t.Errorf("renewed: %+v, kept %+v", r.Parts, r.Keeps)
		}
		if waits > 0 && keeps() != "waits" {
			t.Errorf("%s keeps what comes free", keeps())
		}
	}
}

// TestRenewalClaimsWhatRuns: an instance that was lost with its node, and is placed again before the lost part is reserved anew, runs without a claim until then;
// the part is reserved where it runs, and it uses it from then on, in place. Nothing is reserved for it a second time.
func TestRenewalClaimsWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  []int64 // beside the one that is lost
		jobs   []int   // of the running stage
		missed bool    // the reservation is whole only once another node is there
	}{
		"all of a node":     {nodes: []int64{8000}, jobs: []int{8000}},
		"a part of one":     {nodes: []int64{16_000}, jobs: []int{8000}},
		"on several":        {nodes: []int64{4000, 4000}, jobs: []int{4000, 4000}},
		"beside what lacks": {nodes: []int64{6000}, jobs: []int{4000, 4000}, missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := lendingWorkflow("chip", 50, c.jobs, c.jobs)
			w.Lend = nil
			s := startedWith(t, nil, w)
			s.node("n-a", 8000, structs.NodeStatusReady)
			s.step()
			s.inOne(0)
			for i, mhz := range c.nodes {
				s.node(fmt.Sprintf("n-b%d", i), mhz, structs.NodeStatusReady)
			}
			s.node("n-a", 8000, structs.NodeStatusDown)
			again := func() {
				for _, j := range s.run().Stages[0].Jobs {
					s.decide(j.JobID) // before the reservation is looked at
				}
				s.step()
			}
			if again(); c.missed {
				if s.run().Missing == "" {
					t.Fatal("nothing is missing")
				}
				s.node("n-c", 4000, structs.NodeStatusReady)
				again()
			}
			if r := s.run(); r.Missing != "" || r.State != structs.WorkflowRunning {
				t.Fatalf("the run is %s, missing %q", r.State, r.Missing)
			}
			u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip")
			if u.Reserved.CPU != 8000 || u.Used.CPU != 8000 || u.Idle.CPU != 0 {
				t.Errorf("reserved %+v, used %+v, idle %+v", u.Reserved, u.Used, u.Idle)
			}
			for _, j := range s.run().Stages[0].Jobs {
				if n := len(s.live(j.JobID)); n != 1 {
					t.Errorf("job %s: %d run", j.JobID, n)
				}
			}
		})
	}
}

// TestRaisedOnceServersKnow: what was reserved anew while servers of older versions were there, beside an instance that had been placed again without a claim, is
// used by this as soon as all servers know how.
func TestRaisedOnceServersKnow(t *testing.T) {
	w := lendingWorkflow("chip", 50, []int{4000, 4000}, []int{4000})
	w.Lend = nil
	s := startedWith(t, nil, w)
	s.node("n-a", 4000, structs.NodeStatusReady)
	s.node("n-b", 4000, structs.NodeStatusReady)
	s.step()
	s.inOne(0)
	s.node("n-b", 12_000, structs.NodeStatusReady)
	s.node("n-a", 4000, structs.NodeStatusDown)
	s.known = false
	for _, j := range s.run().Stages[0].Jobs {
		s.decide(j.JobID)
	}
	for _, used := range []int64{4000, 8000} {
		s.step()
		if u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip"); u.Used.CPU != used || u.Reserved.CPU != 8000 || s.run().Missing != "" {
			t.Errorf("used %+v, reserved %+v, missing %q", u.Used, u.Reserved, s.run().Missing)
		}
		s.known = true
		s.clock.now = s.clock.now.Add(reserveAnyway)
	}
	from := s.Index()
	if s.step(); s.Index() != from {
		t.Errorf("%d entries though all is used", s.Index()-from)
	}
}

// TestRenewalClaimsGPUs: an instance with GPUs that was placed again uses the part that is reserved where it runs, too, which names its GPUs.
func TestRenewalClaimsGPUs(t *testing.T) {
	w := lendingWorkflow("chip", 50, []int{1000, 1000}, []int{1000, 1000})
	w.Lend = nil
	for _, stage := range w.Stages {
		for _, j := range stage.Jobs {
			j.Job.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 2}}
		}
	}
	s := startedWith(t, nil, w)
	node := func(id, status string) {
		n := testcluster.Node(id, 8000)
		n.Status = status
		group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
		for i := range 4 {
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", id, i), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
		s.Put(t, &structs.NodeRegisterEntry{Node: n, Time: 1})
	}
	node("n-a", structs.NodeStatusReady)
	s.step()
	s.inOne(0)
	node("n-b", structs.NodeStatusReady)
	node("n-a", structs.NodeStatusDown)
	for _, j := range s.run().Stages[0].Jobs {
		s.decide(j.JobID) // before the reservation is looked at
	}
	s.step()
	r, u := s.run(), scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip")
	if r.Missing != "" || len(r.Parts) != 1 || r.Parts[0].NodeID != "n-b" || len(r.Parts[0].DeviceIDs) != 4 {
		t.Errorf("renewed as %+v, missing %q", r.Parts, r.Missing)
	}
	if u.Reserved.GPUs != 4 || u.Used.GPUs != 4 || u.Used.CPU != 2000 {
		t.Errorf("reserved %+v, used %+v, idle %+v", u.Reserved, u.Used, u.Idle)
	}
}

// TestRenewalKeepsForItsOwn: an instance of the run may use what is kept in place of what it has lost, and does not wait until all of that is free. It uses the
// reservation once this is whole.
func TestRenewalKeepsForItsOwn(t *testing.T) {
	w := lendingWorkflow("chip", 50, []int{4000, 4000}, []int{8000})
	w.Lend = nil
	s := startedWith(t, nil, w)
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.inOne(0)
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.borrow(100, 1000)
	s.node("n-a", 8000, structs.NodeStatusDown)
	s.step()
	for _, j := range s.run().Stages[0].Jobs {
		s.ends(s.live("flood-1000")[:4]...)
		flood := s.decide("flood-1000")
		if own := s.decide(j.JobID); flood != 0 || own != 1 {
			t.Fatalf("%d of the flood and %d of %s run in what is kept", flood, own, j.JobID)
		}
		s.step()
	}
	if u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip"); s.run().Missing != "" || u.Used.CPU != 8000 {
		t.Errorf("used %+v, missing %q", u.Used, s.run().Missing)
	}
}

// TestRenewalOlderServers: while a server does not know entries that renew a reservation, nothing is kept for what was lost, and what runs without a claim stays
// so; what was lost is reserved anew all the same.
func TestRenewalOlderServers(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{4000}, []int{8000})
	w.Lend = nil
	s := startedWith(t, nil, w)
	s.known = false
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.decide("chip/1/j0-0")
	s.step()
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.node("n-a", 8000, structs.NodeStatusDown)
	s.decide("chip/1/j0-0")
	if s.step(); s.run().Missing == "" || len(s.run().Keeps) > 0 {
		t.Fatalf("%+v are kept, missing %q", s.run().Keeps, s.run().Missing)
	}
	s.known = true
	s.borrow(1, 100) // something changes
	s.ends(s.live("flood-100")...)
	if s.step(); s.run().Missing != "" || len(s.run().Keeps) > 0 {
		t.Fatalf("%+v are kept, missing %q", s.run().Keeps, s.run().Missing)
	}
	if n := len(s.types); s.types[n-1] != structs.LogWorkflowRenew || slices.Index(s.types, structs.LogWorkflowRenew) != n-1 {
		t.Errorf("entries %v", s.types)
	}
}

// TestRenewalOfWhatEnds: an instance that ends before the entry is committed by which it was to use the reservation uses nothing of it; it is reserved all the same.
func TestRenewalOfWhatEnds(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{8000}, []int{8000})
	w.Lend = nil
	s := startedWith(t, nil, w)
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.node("n-a", 8000, structs.NodeStatusDown)
	s.decide("chip/1/j0-0")
	ended := false
	s.Before = func(of structs.LogType, _ any) error {
		if of == structs.LogWorkflowRenew && !ended {
			ended = true
			s.ends(s.live("chip/1/j0-0")...)
		}
		return nil
	}
	s.clock.now = s.clock.now.Add(time.Minute)
	s.steps.Step(context.Background())
	u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip")
	if r := s.run(); !ended || r.Missing != "" || r.Parts[0].NodeID != "n-b" || u.Used.CPU != 0 || u.Idle.CPU != 8000 {
		t.Errorf("ended %v, missing %q, %+v: used %+v, idle %+v", ended, r.Missing, r.Parts, u.Used, u.Idle)
	}
}

// TestRenewalOfGangKeepsMax: a gang that lost a node of its rack is reserved in another rack, and what is left in the first one, which nothing of the run uses,
// is not reserved beside that: no more than the largest stage needs is. What the running stage uses stays.
func TestRenewalOfGangKeepsMax(t *testing.T) {
	for _, c := range []struct {
		first []int // the MHz of the jobs of the running stage
		want  int64
	}{{[]int{1000}, 8000}, {[]int{3000, 3000}, 12_000}} {
		w := lendingWorkflow("chip", 50, c.first, []int{4000})
		w.Lend = nil
		gang := w.Stages[1].Jobs[0].Job.TaskGroups[0]
		gang.Count, gang.Gang, gang.Topology = 2, &structs.Gang{}, &structs.TopologyConstraint{Level: "rack", Required: true}
		s := startedWith(t, nil, w)
		node := func(id, rack, status string) {
			n := testcluster.Node(id, 4000)
			n.Status, n.Meta = status, map[string]string{"rack": rack}
			n.ComputeClass()
			s.Put(t, &structs.NodeRegisterEntry{Node: n, Time: int64(s.Index())})
		}
		node("n-a", "r1", "ready")
		node("n-b", "r1", "ready")
		s.step()
		s.inOne(0)
		node("n-c", "r2", "ready")
		node("n-d", "r2", "ready")
		lost := s.Store.Snapshot().Alloc(nil, s.live("chip/1/j0-0")[0]).NodeID // of which one is left whose part is used only if the stage has two jobs
		node(lost, "r1", "down")
		s.step()
		var sum int64
		for _, p := range s.run().Parts {
			sum += p.CPU
		}
		if s.run().Missing != "" || sum != c.want {
			t.Errorf("jobs of %v: %d MHz are reserved, missing %q: %+v", c.first, sum, s.run().Missing, s.run().Parts)
		}
	}
}
