package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestGangWithoutClaimUsesItsOwn: a member of a gang that has lost its claim, as too few of its members are in parts that stay, is placed again in what idles of the
// reservation of its own run, without a claim, where nothing else is free: nobody else may take that. It is not what another job of the stage has still to take.
func TestGangWithoutClaimUsesItsOwn(t *testing.T) {
	for _, awaited := range []bool{false, true} {
		w := newWorkflows(t, 4, 0)
		for _, id := range []string{"n2", "n3"} {
			w.slotNode(id, 4)
			w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: id, CPU: 4000, MemoryMB: 4000, DiskMB: 3000})
		}
		const id = "wf/1/a"
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: id, Needs: structs.WorkflowPart{CPU: 12000, MemoryMB: 12000, DiskMB: 900}}}
		w.set()
		w.submit("", id, 3, requests(50, 4000, 4000), ofStage, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{Min: 2} })
		if by := w.byClaim(id); by != "[workflow:3]" {
			t.Fatalf("there run %s: %s", by, w.on())
		}
		w.claim.Parts = w.claim.Parts[2:]
		if awaited {
			w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: "wf/1/b", Starting: true, Needs: structs.WorkflowPart{CPU: 1000, MemoryMB: 100, DiskMB: 300}})
		}
		w.set()
		if by := w.byClaim(id); by != "[:3]" {
			t.Fatalf("two parts have gone, and there run %s", by)
		}
		w.client(func(a *structs.Allocation) bool { return a.NodeID == "n3" }, w.ended(true))
		w.submit("", "fill", 1, requests(90, 1000, 1000))
		w.now = w.now.Add(3600e9)
		w.decide(id)
		want := "[:3]"
		if awaited {
			want = "[:2]"
		}
		if by := w.byClaim(id); by != want || w.running("fill") != 0 {
			t.Errorf("another job awaited %v: there run %s: %s", awaited, by, w.on())
		}
	}
}

// TestGangStartsInWhatIsLeft: a gang that has no room in what is left of its reservation starts without a claim, in that and in what else is free.
func TestGangStartsInWhatIsLeft(t *testing.T) {
	w := newWorkflows(t, 4, 0)
	w.slotNode("n2", 4)
	w.submit("", "wf/1/a", 2, requests(50, 4000, 4000), ofStage, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} })
	if by := w.byClaim("wf/1/a"); by != "[:2]" {
		t.Errorf("there run %s: %s", by, w.on())
	}
	w.submit("", "wf/1/b", 1, requests(50, 4000, 4000), ofStage)
	w.wantPart(0, 4, 0)
}

// TestOneOfTheStageUsesWhatIdles: an instance for which the parts that are left have cores but too little of something else uses what idles of them, without a claim, with
// what is free on the node, as a borrower does: it waited beside its own cores, since the disk reserved there was that of one instance.
func TestOneOfTheStageUsesWhatIdles(t *testing.T) {
	for _, awaited := range []bool{false, true} {
		w := newWorkflows(t, 8, 0)
		w.claim.Parts[0].DiskMB = 300
		const id = "wf/1/a"
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: id, Needs: structs.WorkflowPart{CPU: 8000, MemoryMB: 8000, DiskMB: 600}}}
		if awaited {
			w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: "wf/1/b", Starting: true, Needs: structs.WorkflowPart{CPU: 1000, MemoryMB: 100}})
		}
		w.set()
		w.submit("", "fill", 8, requests(90, 1000, 1000))
		w.submit("", id, 2, requests(50, 4000, 4000), ofStage)
		want := "[:1 workflow:1]"
		if awaited {
			want = "[workflow:1]"
		}
		if by := w.byClaim(id); by != want || w.running("fill") != 0 {
			t.Errorf("another job awaited %v: there run %s: %s", awaited, by, w.on())
		}
	}
}

// smallDisk is a job of which an instance finds too little disk in the parts, so that it uses what idles of them without a claim.
func smallDisk(j *structs.Job) { j.TaskGroups[0].EphemeralDisk = &structs.EphemeralDisk{SizeMB: 400} }

// TestOneOfTheStageLeavesWhatIsReplaced: what uses what idles of its run's reservation without a claim does not leave, so it leaves alone what is to be placed again of
// another job of the stage, of which the rest runs: that waited until it ended.
func TestOneOfTheStageLeavesWhatIsReplaced(t *testing.T) {
	for _, fails := range []bool{false, true} {
		w := newWorkflows(t, 8, 0)
		w.claim.Parts[0].DiskMB = 600
		w.claim.Jobs = []structs.WorkflowClaimJob{
			{JobID: "wf/1/b", Needs: structs.WorkflowPart{CPU: 4000, MemoryMB: 4000, DiskMB: 600}}, {JobID: "wf/1/c", Needs: structs.WorkflowPart{CPU: 4000, MemoryMB: 4000, DiskMB: 400}},
		}
		w.set()
		w.submit("", "wf/1/b", 2, requests(50, 2000, 2000), ofStage)
		if !fails {
			w.submit("", "wf/1/c", 1, requests(50, 4000, 4000), ofStage, smallDisk)
			if c := w.byClaim("wf/1/c"); c != "[:1]" {
				t.Errorf("all of b runs, and of c there run %s", c)
			}
			continue
		}
		w.client(w.oneOf("wf/1/b"), w.ended(true))
		w.decide("wf/1/b") // it is tried again after a delay
		w.submit("", "wf/1/c", 1, requests(50, 5000, 5000), ofStage, smallDisk)
		w.now = w.now.Add(3600e9)
		if w.decide("wf/1/b"); w.byClaim("wf/1/b") != "[workflow:2]" {
			t.Errorf("of b there run %s, of c %s", w.byClaim("wf/1/b"), w.byClaim("wf/1/c"))
		}
	}
}

// oneOf picks one allocation of a job.
func (w *workflows) oneOf(job string) func(*structs.Allocation) bool {
	picked := false
	return func(a *structs.Allocation) bool {
		is := !picked && a.JobID == job
		picked = picked || is
		return is
	}
}

// TestJudgeLeavesWhatIsAwaited: an instance without a claim for which there was room beside the reservation of its run when it was decided on, and is none any more, takes
// what idles of that only if it leaves what another job of the stage has still to take.
func TestJudgeLeavesWhatIsAwaited(t *testing.T) {
	for _, awaited := range []int64{4000, 2000} {
		w := newWorkflows(t, 8, 2)
		w.claim.Parts[0].DiskMB = 600
		w.claim.Jobs = []structs.WorkflowClaimJob{
			{JobID: "wf/1/a", Needs: structs.WorkflowPart{CPU: 2000, MemoryMB: 2000, DiskMB: 300}},
			{JobID: "wf/1/b", Starting: true, Needs: structs.WorkflowPart{CPU: awaited, MemoryMB: awaited}},
		}
		w.set()
		w.submit("", "wf/1/a", 1, requests(50, 2000, 2000), ofStage)
		w.jobs["wf/1/c"] = schedtest.Job(structs.JobTypeBatch, 1, requests(50, 2000, 2000), ofStage, smallDisk, func(j *structs.Job) { j.ID = "wf/1/c" })
		plan := (&licenses{w.projects}).planOf("wf/1/c")
		if placed(plan) != 1 {
			t.Fatal("there is room beside the reservation")
		}
		w.submit("", "fill", 2, requests(90, 1000, 1000))
		judged, _, why := scheduler.Judge(w.w.Edit(), plan)
		if holds := len(judged.Place) > 0; w.running("fill") != 2 || holds != (awaited == 2000) {
			t.Errorf("b awaits %d MHz of 4000: the placement holds %v: %s", awaited, holds, why)
		}
		plan.AllAtOnce = true // it is decided on, and judged, as a whole
		if judged, _, why := scheduler.Judge(w.w.Edit(), plan); len(judged.Place) == 0 {
			t.Errorf("b awaits %d MHz of 4000: the plan does not hold as a whole: %s", awaited, why)
		}
	}
}

// TestNotRaisedFromItsOwn: an instance that uses what idles of its own reservation is raised to no cell of its namespace in place, as that would take the room from the
// reservation, unless it has room beside it.
func TestNotRaisedFromItsOwn(t *testing.T) {
	for beside, want := range map[int64]string{1000: "[:1]", 5000: "[cells node:1]"} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		n, _ := x.w.State("n1")
		const id = "wf/1/a"
		x.claim = &structs.WorkflowClaim{
			Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true,
			Parts: []structs.WorkflowPart{{NodeID: "n1", CPU: n.Capacity.Amount.CPU - beside}}, Jobs: []structs.WorkflowClaimJob{{JobID: id}},
		}
		x.set()
		x.submit("", id, 1, requests(50, 4000, 100), gpusIn("default", 1), ofStage)
		if by := x.byClaim(id); by != "[:1]" {
			t.Fatalf("%d MHz beside: there run %s", beside, by)
		}
		x.owns("default", "node", 1)
		x.decide(id)
		if by := x.byClaim(id); by != want {
			t.Errorf("%d MHz beside: there run %s, want %s", beside, by, want)
		}
	}
}

// TestOneOfTheStageHasBorrowersLeave: an instance for which the parts that are left have cores but too little of something else has borrowers leave for it, just enough, as
// one that fits into them has: it waited beside its own cores while these were lent. Nobody leaves where it has no room even so, nor if another job of the stage has
// still to take the rest.
func TestOneOfTheStageHasBorrowersLeave(t *testing.T) {
	change := func(is bool, by func(*structs.Job)) func(*structs.Job) {
		return func(j *structs.Job) {
			if is {
				by(j)
			}
		}
	}
	for _, c := range []struct {
		name            string
		idle            int // cores
		awaits          int64
		suspends, gang  bool
		change          func(*structs.Job)
		placed, borrows int
	}{
		{name: "it lacks disk", placed: 1},
		{name: "borrowers are suspended", suspends: true, placed: 1},
		{name: "it is a gang", gang: true, placed: 1},
		{name: "some cores idle", idle: 2, placed: 1, borrows: 2},
		{name: "another job has still to take some", idle: 2, awaits: 2000, placed: 1, borrows: 2},
		{name: "another job has still to take more", idle: 2, awaits: 3000, borrows: 4},
		{name: "its node has no room", change: func(j *structs.Job) { j.TaskGroups[0].EphemeralDisk = &structs.EphemeralDisk{SizeMB: 1 << 20} }, borrows: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkflows(t, 8+c.idle, 0, &structs.WorkflowLend{To: "namespace:interns"})
			w.claim.Parts[0].MemoryMB, w.claim.Parts[0].DiskMB = 4000, 300
			w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/a"}, {JobID: "wf/1/b"}}
			w.set()
			w.submit("", "wf/1/a", 1, requests(50, 4000, 4000), ofStage)
			w.flood("interns", 4, requests(50, 1000, 100), change(c.suspends, func(j *structs.Job) { j.Reclaim = structs.ReclaimSuspend }))
			w.wantPart(4, 4, c.idle)
			if c.awaits > 0 {
				w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: "wf/1/c", Starting: true, Needs: structs.WorkflowPart{CPU: c.awaits}})
				w.set()
			}
			w.submit("", "wf/1/b", 1, requests(50, 4000, 100), ofStage, change(c.gang, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} }), change(c.change != nil, c.change))
			if n, borrows := w.running("wf/1/b"), w.running("flood-interns"); n != c.placed || borrows != c.borrows || w.byClaim("wf/1/a") != "[workflow:1]" {
				t.Errorf("%d run, and %d borrow, want %d and %d: %s, by %s", n, borrows, c.placed, c.borrows, w.on(), w.byClaim("wf/1/b"))
			}
			w.conserved()
			w.again("interns")
			if borrows := w.running("flood-interns"); borrows != c.borrows {
				t.Errorf("%d borrow again", borrows)
			}
		})
	}
}

// TestTwoOfTheStageLackDisk: of two jobs for which too little disk is left in the reservation for an instance, so that neither can come by its claim, and cores for one, one
// runs: each waited for the other to take these.
func TestTwoOfTheStageLackDisk(t *testing.T) {
	for i, disk := range []int64{300, 300, 400, 599} {
		lend := i%2 == 1
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:interns"})
		w.claim.Parts[0].DiskMB = disk
		for _, id := range []string{"wf/1/a", "wf/1/b", "wf/1/c"} {
			one := structs.WorkflowPart{CPU: 4000, MemoryMB: 100, DiskMB: 300}
			w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: id, Needs: one, Each: []structs.WorkflowPart{one}})
		}
		w.set()
		w.submit("", "wf/1/a", 1, requests(50, 4000, 100), ofStage)
		if lend {
			w.claim.Jobs = w.claim.Jobs[:1]
			w.set()
			w.flood("interns", 8)
			w.claim.Jobs = w.claim.Jobs[:3]
			w.set()
		}
		w.submit("", "wf/1/b", 1, requests(50, 4000, 100), ofStage)
		w.submit("", "wf/1/c", 1, requests(50, 4000, 100), ofStage)
		if b, c, borrow := w.byClaim("wf/1/b"), w.byClaim("wf/1/c"), w.running("flood-interns"); b != "[:1]" || c != "[]" || borrow != 0 {
			t.Errorf("%d MiB of disk, %v is lent: of b there run %s, of c %s, and %d borrow", disk, lend, b, c, borrow)
		}
		w.conserved()
	}
}

// TestTwoOfTheStageFitNoPart: two jobs of which an instance needs more cores than each part has take what idles of the parts, with what is free beside: each waited for the other
// to take it.
func TestTwoOfTheStageFitNoPart(t *testing.T) {
	w := newWorkflows(t, 4, 2)
	w.slotNode("n2", 4)
	w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 2000, MemoryMB: 2000, DiskMB: 3000})
	for _, id := range []string{"wf/1/a", "wf/1/b"} {
		one := structs.WorkflowPart{CPU: 4000, MemoryMB: 100, DiskMB: 300}
		w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: id, Needs: one, Each: []structs.WorkflowPart{one}})
	}
	w.set()
	w.submit("", "wf/1/a", 1, requests(50, 4000, 100), ofStage)
	w.submit("", "wf/1/b", 1, requests(50, 4000, 100), ofStage)
	if a, b := w.byClaim("wf/1/a"), w.byClaim("wf/1/b"); a != "[:1]" || b != "[:1]" {
		t.Errorf("of a there run %s, of b %s: %s", a, b, w.on())
	}
	w.conserved()
}

// TestOneOfTheStageHasGPUsLeft: borrowers leave GPUs that the reservation names, in cells of its namespace or beside what is owned, for an instance that finds too little
// disk in its part.
func TestOneOfTheStageHasGPUsLeft(t *testing.T) {
	for _, owns := range []bool{false, true} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		if owns {
			x.owns("default", "node", 1)
		}
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns"}}, gpuStage("default", 8)); why != "" {
			t.Fatal(why)
		}
		x.claim = x.w.Workflow("default/wf")
		x.starts("default", "a", 1, 4)
		x.submit("", "flood-interns", 2, gpusIn("interns", 1))
		x.submit("", "flood-interns2", 2, gpusIn("interns", 1))
		if n := x.running("flood-interns") + x.running("flood-interns2"); n != 4 {
			t.Fatalf("%d borrow", n)
		}
		x.submit("", "wf/1/b", 1, gpusIn("default", 3), ofStage, smallDisk)
		if n := x.running("flood-interns") + x.running("flood-interns2"); x.byClaim("wf/1/b") != "[:1]" || n != 1 {
			t.Errorf("owned %v: there run %s, by %s", owns, x.on(), x.byClaim("wf/1/b"))
		}
		x.conserved()
	}
}

// TestOneWithoutClaimLeavesWhereFewestLeave: of the nodes on which borrowers leave for an instance without a claim it goes to the one on which fewest do, wherever that is
// in the reservation.
func TestOneWithoutClaimLeavesWhereFewestLeave(t *testing.T) {
	for _, few := range []string{"n1", "n2"} {
		w := newWorkflows(t, 4, 0, &structs.WorkflowLend{To: "namespace:interns"})
		w.slotNode("n2", 4)
		w.claim.Parts[0].DiskMB = 300
		w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 4000, MemoryMB: 4000, DiskMB: 300})
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/a"}}
		w.set()
		for _, node := range []string{"n1", "n2"} {
			n, cores := 4, 1
			if node == few {
				n, cores = 2, 2
			}
			w.submit("", "on-"+node, n, requests(50, 1000*cores, 100), func(j *structs.Job) {
				j.Namespace, j.TaskGroups[0].Candidates = "interns", []string{node}
			})
		}
		w.submit("", "wf/1/a", 1, requests(50, 4000, 100), ofStage, smallDisk)
		if w.byClaim("wf/1/a") != "[:1]" || w.running("on-"+few) != 0 || w.running("on-n1")+w.running("on-n2") != 4 {
			t.Errorf("fewest on %s: there run %s", few, w.on())
		}
	}
}

// TestUseWithoutClaimIsNotLent: what the run uses of its own reservation without a claim counts as used by it, beside what borrowers have: it is not lent, nor may as
// much be lent in place of it.
func TestUseWithoutClaimIsNotLent(t *testing.T) {
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:interns"})
	w.claim.Parts[0].DiskMB = 300
	w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/a"}}
	w.set()
	w.submit("", "wf/1/a", 1, requests(50, 4000, 100), ofStage, smallDisk)
	w.flood("interns", 3, requests(50, 1000, 100))
	if by := w.byClaim("wf/1/a"); by != "[:1]" || w.running("flood-interns") != 3 {
		t.Fatalf("there run %s: %s", by, w.on())
	}
	u, on := scheduler.WorkflowUse(w.w, "default/wf"), scheduler.ReservedOn(w.w, "n1")[0]
	if u.Used.CPU != 4000 || u.Lent.CPU != 3000 || u.Idle.CPU != 1000 || u.To[0].Due.CPU != 4000 || u.To[0].Lent.CPU != 3000 {
		t.Errorf("used %+v, lent %+v, idle %+v, to %+v", u.Used, u.Lent, u.Idle, u.To[0])
	}
	if on.Used.CPU != 4000 || on.Lent.CPU != 3000 || on.Idle.CPU != 1000 {
		t.Errorf("on the node used %+v, lent %+v, idle %+v", on.Used, on.Lent, on.Idle)
	}
}
