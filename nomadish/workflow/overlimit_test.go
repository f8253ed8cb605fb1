package workflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestOverLimitWaits: a run whose namespace has over_limit = "wait" waits until its cells hold all of its GPUs, though as many are free beside them. It keeps nothing
// meanwhile, so that another one of a lower rank may.
func TestOverLimitWaits(t *testing.T) {
	t.Parallel()
	s := withheldBy(t)
	s.borrow(4, 1000) // which the other run waits for
	s.runs(lendingWorkflow("low", 40, []int{6500, 6500}))
	s.step()
	if r, want := s.run(), `the cells of namespace "default" (4 GPUs, 1 in guaranteed use) do not hold 4 GPUs`; r.Posted || !strings.HasPrefix(r.Missing, want) {
		t.Errorf("posted %v on %+v, missing %q", r.Posted, r.Parts, r.Missing)
	}
	if r := s.Store.Snapshot().Workflows(nil).Get("default", "low"); r.Posted || len(r.Parts) == 0 {
		t.Errorf("the run of a lower rank: posted %v, keeps %+v, missing %q", r.Posted, r.Parts, r.Missing)
	}
	s.ends(s.live("own")...)
	s.step()
	if r := s.run(); !r.Posted || r.Parts[0].CellLevel != structs.LevelNode {
		t.Errorf("the cell is free: posted %v on %+v, missing %q", r.Posted, r.Parts, r.Missing)
	}
}

// ofCells returns a workflow that needs the GPUs of a whole node.
func ofCells(id string) *structs.Workflow {
	w := lendingWorkflow(id, 90, []int{1000})
	w.Lend = nil
	w.Stages[0].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 4}}
	return w
}

// withheldBy returns a cluster of two nodes with GPUs, one of which is owned by the namespace of a run that needs it, with over_limit = "wait"; a job uses a part of it.
func withheldBy(t *testing.T) *started {
	t.Helper()
	s := startedWith(t, nil, ofCells("chip"))
	for _, id := range []string{"n-a", "n-b"} {
		n := testcluster.Node(id, 8000)
		group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
		for i := range 4 {
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", id, i), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
		s.Put(t, &structs.NodeRegisterEntry{Node: n, Time: 1})
	}
	s.Put(t, &structs.VirtualClusterUpsertEntry{EvalSeed: "owns", VirtualCluster: &structs.VirtualCluster{
		Name: "default", OverLimit: structs.OverLimitWait, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}},
	}})
	own := cores(1, 1000)
	own.ID = "own"
	own.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
	own.Canonicalize()
	s.Put(t, &structs.JobRegisterEntry{Job: own, Time: int64(s.Index())})
	if s.decide("own") != 1 {
		t.Fatal("the cell is not in use")
	}
	return s
}

// TestFirstOfOthersKeeps: runs that wait for cells of their namespace, however many, keep no other from keeping what comes free, and it is the first by rank that
// does. They took the places of those that a round looks at, and the others kept in turn, each by an entry of the log.
func TestFirstOfOthersKeeps(t *testing.T) {
	t.Parallel()
	s := withheldBy(t)
	s.borrow(8, 1000)
	for i := range 2 * maxReserving {
		s.runs(ofCells(fmt.Sprintf("cells%d", i)))
	}
	s.step()
	for i := range 2 * maxReserving {
		s.runs(lendingWorkflow(fmt.Sprintf("low%d", i), 10, []int{6500, 6500}))
	}
	s.step()
	s.runs(lendingWorkflow("high", 80, []int{6500, 6500}))
	s.step()
	at := s.Index()
	for range 100 {
		s.clock.now = s.clock.now.Add(time.Second)
		s.steps.Step(t.Context())
	}
	if s.Index() != at {
		t.Errorf("nothing happens, and %d entries are written", s.Index()-at)
	}
	for _, r := range waiting(s.Store.Snapshot()) {
		if keeps := len(r.Parts) > 0; keeps != (r.ID == "high") {
			t.Errorf("%s keeps %v", r.ID, r.Parts)
		}
	}
}
