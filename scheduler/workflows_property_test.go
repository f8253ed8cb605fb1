package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// conserved checks that of each part of a posted reservation what is used, lent and idle add up to it, that what idles is free on its node, and that nobody
// but borrowers and the workflow itself is in it.
func (w *workflows) conserved() {
	w.t.Helper()
	for _, n := range world.NodeStates(w.w).All {
		var idle world.Resources
		for _, p := range n.Parts() {
			if p.Pending {
				continue
			}
			idle = idle.Plus(p.Idle)
			if sum := p.Used.Plus(p.Lent).Plus(p.Idle).Plus(world.Resources{Devices: p.Bad}); sum != p.Total {
				w.t.Fatalf("node %s: used %+v, lent %+v, idle %+v and bad %d are not %+v", n.ID, p.Used, p.Lent, p.Idle, p.Bad, p.Total)
			}
		}
		free := world.Resources{Amount: n.Free(), Cores: n.FreeCores(), Devices: n.FreeDevices()}
		if lack := free.Lacks(idle); lack != "" && n.Capacity != nil {
			w.t.Fatalf("node %s: %s: %+v idle, of which %+v are free", n.ID, lack, idle, free)
		}
	}
}

// goesOrComesBack has a node go down with what runs there, or be ready again before its part of the reservation is reserved elsewhere.
func (w *workflows) goesOrComesBack(id string) {
	change := up
	if w.nodes[id].Status == structs.NodeStatusReady {
		change = down
	}
	w.changeNode(id, change)
	w.client(func(a *structs.Allocation) bool { return a.NodeID == id && !a.ClientTerminal() }, func(a *structs.Allocation) {
		a.ClientStatus, a.DesiredStatus = structs.AllocClientLost, structs.AllocDesiredStop
	})
}

// unclaimed submits a job of the run for which no part has enough disk, and checks that its instance runs without a claim if there is room once borrowers leave,
// and that each of those who leave has to.
func (w *workflows) unclaimed(stage string, cores int) {
	w.t.Helper()
	id, before := fmt.Sprintf("wf/1/%su%d", stage, len(w.jobs)), w.w
	mayRun := false
	for _, n := range world.NodeStates(w.w).All {
		without := world.TrialOf(n)
		for _, u := range n.Usages {
			if u.Owner.Terms.BorrowsFrom() == w.claim.Key() {
				without.Give(u)
			}
		}
		free := without.Free()
		mayRun = mayRun || n.Node.Ready() && free.CPU >= int64(1000*cores) && free.MemoryMB >= 100 && free.DiskMB >= 3001
	}
	w.submit("", id, 1, requests(50, 1000*cores, 100), ofStage, func(j *structs.Job) {
		j.TaskGroups[0].EphemeralDisk = &structs.EphemeralDisk{SizeMB: 3001}
	})
	if runs := w.running(id) == 1; runs != mayRun || runs && w.byClaim(id) != "[:1]" {
		w.t.Fatalf("an instance of %d cores runs %v, may %v, by %s: %s", cores, runs, mayRun, w.byClaim(id), w.on())
	}
	for _, s := range w.last.Stop {
		u, _ := world.Usages(before).Get(s.AllocID)
		if n, _ := w.w.State(u.NodeID); n.LacksUse(u, &world.Taker{}) == "" && s.Reclaim == structs.ReclaimRequeue {
			w.t.Fatalf("%s has left for nothing", u.Owner.Job)
		}
	}
}

// TestWorkflowsConserve: whatever stages, borrowers and others do, on nodes that go and come back, the reservation is used, lent and idle, each core once.
func TestWorkflowsConserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorkflows(t, 8, 2, &structs.WorkflowLend{To: "namespace:a", Share: 2}, &structs.WorkflowLend{To: "namespace:b", Share: 1, LendLonger: true})
		w.slotNode("n2", 6)
		w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 4000, MemoryMB: 4000, DiskMB: 3000})
		w.set()
		stage, jobs := 0, 0
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0: // the next stage: none of its jobs starts before the others have ended
				w.complete(fmt.Sprintf("s%d-", stage))
				stage++
				w.stage(fmt.Sprintf("s%d-", stage), rapid.SliceOfN(rapid.IntRange(1, 4), 1, 2).Draw(t, "cores")...)
			case 1:
				w.complete(fmt.Sprintf("s%d-", stage))
			case 2, 3:
				jobs++
				ns := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")
				limit := time.Duration(rapid.IntRange(0, 2).Draw(t, "limit")) * time.Minute
				suspends := rapid.Bool().Draw(t, "suspends")
				w.submit("", fmt.Sprintf("flood-%d", jobs), rapid.IntRange(1, 6).Draw(t, "count"), requests(50, 1000*rapid.IntRange(1, 3).Draw(t, "size"), 500), func(j *structs.Job) {
					j.Namespace, j.TaskGroups[0].MaxRunDuration = ns, limit
					if suspends {
						j.Reclaim = structs.ReclaimSuspend
					}
				})
			case 4:
				if jobs > 0 {
					w.ends(fmt.Sprintf("flood-%d", rapid.IntRange(1, jobs).Draw(t, "job")), rapid.IntRange(1, 3).Draw(t, "end"))
				}
			case 5:
				if jobs > 0 {
					w.decide(fmt.Sprintf("flood-%d", rapid.IntRange(1, jobs).Draw(t, "again")))
				}
			case 6:
				w.claim.Closed = !w.claim.Closed
				w.set()
			case 7:
				w.goesOrComesBack("n2")
			case 8:
				w.unclaimed(fmt.Sprintf("s%d-", stage), rapid.IntRange(1, 4).Draw(t, "more cores"))
			}
			w.conserved()
			w.checkWorld()
		}
		w.complete("s")
		w.client(func(a *structs.Allocation) bool { return !a.Terminal() }, w.ended(false))
		w.conserved()
		for _, n := range world.NodeStates(w.w).All {
			for _, p := range n.Parts() {
				if p.Idle != p.Total {
					t.Fatalf("all have ended, and of %+v %+v idle", p.Total, p.Idle)
				}
			}
		}
		e := w.w.Edit()
		scheduler.DropWorkflow(e, "default/wf")
		w.w, w.workflows = e.World(), nil
		w.checkWorld()
	})
}

// TestReservationsLeaveSlots: whatever runs and is reserved, each slot that is given to a project this week has room: its instances all run on slots in
// the end, as all but what is guaranteed leaves for them.
func TestReservationsLeaveSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &workflows{projects: newProjects(t)}
		slots := 0
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			cores := rapid.IntRange(1, 8).Draw(t, "cores")
			w.slotNode(fmt.Sprintf("n%d", i), cores)
			slots += cores
		}
		given := rapid.IntRange(0, slots).Draw(t, "given")
		w.gives("chip", given)
		w.submit("", "others", rapid.IntRange(0, slots).Draw(t, "others"))
		w.submit("chip", "before", rapid.IntRange(0, given).Draw(t, "before"))
		w.after(time.Hour)
		w.runAll()
		for i := range rapid.IntRange(1, 3).Draw(t, "workflows") {
			claim := &structs.WorkflowClaim{Namespace: "default", ID: fmt.Sprintf("wf%d", i), Run: 1, NodePool: "default", Priority: 50}
			var jobs []int
			for range rapid.IntRange(1, 3).Draw(t, "jobs") {
				jobs = append(jobs, rapid.IntRange(1, 4).Draw(t, "size"))
			}
			c := scheduler.ChooseReservation(w.w, claim.Key(), "default", stagesOf(jobs), structs.WorkflowReserve{Rule: structs.ReserveMax}, false)
			e := w.w.Edit()
			scheduler.SetWorkflow(e, claim)
			if c.Posted {
				judged, _, why := scheduler.Judge(e, &structs.Plan{Namespace: "default", JobID: claim.ID, Workflow: &structs.WorkflowReservation{
					Namespace: "default", ID: claim.ID, Run: 1, Posted: true, Parts: c.Parts,
				}})
				if judged.Workflow == nil {
					t.Fatalf("what was chosen does not hold: %s", why)
				}
			}
			w.w = e.World()
			if now := w.w.Workflow(claim.Key()); now != nil {
				if w.workflows == nil {
					w.workflows = map[string]*structs.WorkflowClaim{}
				}
				w.workflows[claim.Key()] = now
			}
		}
		left := given - w.running("before")
		w.submit("chip", "after", left)
		for range 3 {
			w.after(time.Hour)
			w.decide("after")
			w.runAll()
		}
		if n := w.running("after"); n != left {
			t.Fatalf("%d slots are given, %d instances run on them before and %d after the reservations: %s", given, w.running("before"), n, w.on())
		}
	})
}
