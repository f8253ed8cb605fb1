package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestGangRestarts: whatever takes a member away takes them all, and all come back in
// the same plan.
func TestGangRestarts(t *testing.T) {
	for name, lose := range map[string]func(*cluster, *structs.Allocation){
		"node down": func(c *cluster, a *structs.Allocation) { c.changeNode(a.NodeID, down) },
		"completed": func(c *cluster, a *structs.Allocation) {
			c.client(func(b *structs.Allocation) bool { return b.ID == a.ID }, c.ended(false))
		},
		"failed, due": func(c *cluster, a *structs.Allocation) {
			c.client(func(b *structs.Allocation) bool { return b.ID == a.ID }, c.ended(true))
			c.now = c.now.Add(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.racks(4)
			c.register(gangJob(structs.JobTypeService, 3, 8))
			c.eval()
			c.runAll()
			lose(c, c.members()["j.g[1]"])
			c.eval()
			c.wantGang(3, "rack")
			if c.wantQueued(0); !c.last.AllAtOnce || placed(c.last) != 3 {
				t.Errorf("%d placed, at once: %v", placed(c.last), c.last.AllAtOnce)
			}
			for _, a := range c.members() {
				if old := c.allocs[a.PreviousAllocation]; old == nil || old.Name != a.Name {
					t.Errorf("%s stands for %v", a.Name, old)
				}
			}
			c.runAll()
			c.eval()
			c.wantPlan(0, 0, 0)
		})
	}
}

func TestGangWithoutRoomStopsAll(t *testing.T) {
	c := newCluster(t)
	c.racks(3)
	c.register(gangJob(structs.JobTypeService, 3, 8))
	c.eval()
	c.runAll()
	c.changeNode("n02", down)
	c.eval()
	c.wantPlan(0, 3, 0)
	c.wantLive(0)
	c.wantQueued(3)
	for _, a := range c.allocs {
		if a.NodeID != "n02" && a.DesiredDescription != feasible.StopGangRestart {
			t.Errorf("%s is stopped: %s", a.Name, a.DesiredDescription)
		}
	}
	c.runAll()
	c.wake(c.blocked())
	c.wantPlan(0, 0, 0)
	c.changeNode("n02", up)
	c.wake(c.blocked())
	c.wantGang(3, "rack")
}

// TestGangFailsAsOne: the policy of the member that failed counts for all of them.
func TestGangFailsAsOne(t *testing.T) {
	for _, kind := range []string{structs.JobTypeService, structs.JobTypeBatch} {
		c := newCluster(t)
		c.racks(4)
		c.register(gangJob(kind, 3, 8))
		c.eval()
		for attempt := range 3 {
			c.runAll()
			failing := c.members()[fmt.Sprintf("j.g[%d]", attempt)]
			c.client(func(a *structs.Allocation) bool { return a.ID == failing.ID }, c.ended(true))
			c.eval()
			c.wantLive(0)
			c.wantQueued(0)
			if attempt == 2 {
				break // no attempt is left
			}
			wait := c.last.Evals[1]
			if wait.WaitUntil != c.now.Add(30*time.Second) || c.allocs[failing.ID].FollowupEvalID != wait.ID {
				t.Fatalf("attempt %d: evaluation %+v", attempt, wait)
			}
			c.runAll()
			c.eval() // somebody looks before it is time
			c.wantPlan(0, 0, 0)
			c.now = wait.WaitUntil
			c.wake(wait)
			c.wantGang(3, "rack")
			for _, a := range c.members() {
				if a.RescheduleTracker == nil || len(a.RescheduleTracker.Events) != attempt+1 {
					t.Errorf("%s has %+v", a.Name, a.RescheduleTracker)
				}
			}
		}
		for _, a := range c.allocs {
			if a.NextAllocation == "" && a.ClientStatus != structs.AllocClientFailed && a.DesiredDescription != feasible.StopGangFailed {
				t.Errorf("%s is stopped: %s", a.Name, a.DesiredDescription)
			}
		}
		c.runAll()
		c.now = c.now.Add(10 * time.Minute)
		c.eval()
		c.wantPlan(0, 0, 0)
		c.wantQueued(0)
		c.update(destructive) // another version may do better
		c.eval()
		c.wantGang(3, "rack")
	}
}

func TestGangMemberAlone(t *testing.T) {
	c := newCluster(t)
	c.racks(3)
	c.register(gangJob(structs.JobTypeService, 3, 8, byMember, inRack(true)))
	c.eval()
	c.wantGang(3, "rack")
	c.runAll()
	lost := c.members()["j.g[1]"]
	c.changeNode(lost.NodeID, down)
	c.eval()
	c.wantPlan(0, 1, 0)
	c.wantLive(2)
	c.wantQueued(1)
	c.node("n07", dgxIn("r2")) // a node elsewhere does not help
	c.node("n08", dgxIn("r1"))
	c.wake(c.blocked())
	c.wantPlan(1, 0, 0)
	got := c.members()["j.g[1]"]
	if got == nil || got.NodeID != "n08" || got.Gang.Rank != lost.Gang.Rank || got.Gang.Size != 3 || got.Gang.Hosts[lost.Gang.Rank] != "10.1.0.8" {
		t.Fatalf("the successor is %+v with %+v", got, got.Gang)
	}
	// All of them at once are placed as one again.
	c.runAll()
	c.client(isLive, c.ended(true))
	c.now = c.now.Add(time.Minute)
	c.eval()
	if c.wantGang(3, "rack"); !c.last.AllAtOnce {
		t.Errorf("the gang was not placed as one")
	}
}

func TestGangCompletedMembersAreDone(t *testing.T) {
	c := newCluster(t)
	c.racks(4)
	c.register(gangJob(structs.JobTypeBatch, 4, 8))
	c.eval()
	c.runAll()
	done := c.members()["j.g[2]"]
	c.client(func(a *structs.Allocation) bool { return a.ID == done.ID }, c.ended(false))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.client(func(a *structs.Allocation) bool { return a.Name == "j.g[0]" }, c.ended(true))
	c.now = c.now.Add(time.Minute)
	c.eval()
	c.wantLive(3)
	if c.members()["j.g[2]"] != nil {
		t.Errorf("what had completed is run again")
	}
	for name, a := range c.members() {
		if g := a.Gang; g.Rank != a.Index() || g.Size != 4 || g.Hosts[2] != done.Gang.Hosts[2] {
			t.Errorf("%s knows %+v", name, g)
		}
	}
	// Those that were stopped with the gang were not done, even if they ended well.
	c.client((*structs.Allocation).ServerTerminal, c.ended(false))
	c.runAll()
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantLive(3)
	c.client(isLive, c.ended(false))
	c.eval()
	c.wantPlan(0, 0, 0)
}

func TestGangStoppedMembersAreNotDone(t *testing.T) {
	c := newCluster(t)
	c.racks(2)
	c.register(gangJob(structs.JobTypeBatch, 2, 8))
	c.eval()
	c.runAll()
	c.changeNode("n02", down)
	c.eval()
	c.wantLive(0)
	c.client(func(a *structs.Allocation) bool { return a.NodeID == "n01" }, c.ended(false))
	c.changeNode("n02", up)
	c.eval()
	c.wantGang(2, "rack")
}

func migrate(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) }

func TestGangDrains(t *testing.T) {
	c := newCluster(t)
	c.racks(3)
	c.register(gangJob(structs.JobTypeService, 3, 8))
	c.eval()
	c.runAll()
	deadline := c.now.Add(time.Hour)
	c.changeNode("n02", func(n *structs.Node) { n.DrainStrategy = &structs.DrainStrategy{ForceDeadline: deadline} })
	leaving := c.client(func(a *structs.Allocation) bool { return a.NodeID == "n02" }, migrate)
	c.eval()
	if c.wantPlan(0, 0, 0); leaving != 1 {
		t.Fatalf("%d leave", leaving)
	}
	c.wantLive(3) // until there is room for all
	c.wantQueued(3)
	wait := c.last.Evals[slices.IndexFunc(c.last.Evals, func(e *structs.Evaluation) bool { return !e.WaitUntil.IsZero() })]
	if !wait.WaitUntil.Equal(deadline) {
		t.Errorf("looked at again at %v", wait.WaitUntil)
	}
	d := *c
	d.allocs, d.nodes = maps.Clone(c.allocs), maps.Clone(c.nodes)
	d.node("n04", dgxIn("r1"))
	d.eval()
	d.wantPlan(3, 3, 0)
	d.wantGang(3, "rack")
	if u := d.last.Annotations.DesiredTGUpdates["g"]; u.Migrate != 1 || u.Place != 1 || u.DestructiveUpdate != 2 || u.Stop != 0 {
		t.Errorf("annotated %+v", u)
	}
	// At the drain's deadline it must go, room or not.
	c.now = deadline
	c.wake(wait)
	c.wantPlan(0, 3, 0)
	c.wantLive(0)
	c.wantQueued(3)
}

func TestGangIsUpdatedAsAWhole(t *testing.T) {
	c := newCluster(t)
	c.racks(4)
	c.register(gangJob(structs.JobTypeService, 3, 8, withPeer(1), func(j *structs.Job) {
		j.Update = &structs.UpdateStrategy{MaxParallel: new(1)}
	}))
	c.eval()
	c.runAll()
	c.update(func(j *structs.Job) { j.Priority = 60 })
	c.eval()
	c.wantPlan(0, 0, 4)
	c.update(destructive)
	c.eval()
	c.wantPlan(4, 4, 0)
	c.wantGang(4, "rack")
	if u := c.last.Annotations.DesiredTGUpdates; u["g"].DestructiveUpdate != 3 || u["h"].DestructiveUpdate != 1 || u["g"].Place+u["g"].Stop != 0 {
		t.Errorf("annotated %+v, %+v", u["g"], u["h"])
	}
	// There is no room for what it is to be: it stays as it is.
	c.runAll()
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.MemoryMB = 9000 })
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantLive(4)
	c.wantQueued(4)
	c.wantReason("g", "gang: there is room for 1 of 4 instances, and all must start together")
}

// TestGangOfAllIsAnotherGangWithAnotherCount: its members were told how many they are.
func TestGangOfAllIsAnotherGangWithAnotherCount(t *testing.T) {
	c := newCluster(t)
	c.racks(4)
	c.register(gangJob(structs.JobTypeService, 2, 8))
	c.eval()
	c.runAll()
	c.update(setCount(4))
	c.eval()
	c.wantPlan(4, 2, 0)
	c.wantGang(4, "rack")
	c.runAll()
	c.update(setCount(5))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantLive(4)
	c.wantQueued(5)
	c.update(setCount(3))
	c.eval()
	c.wantPlan(3, 4, 0)
	c.wantGang(3, "rack")
	c.runAll()
	c.update(func(j *structs.Job) { j.Stop = true })
	c.eval()
	c.wantPlan(0, 3, 0)
}

// TestGroupWithARequiredTopologyStaysTogether: its instances are no gang to
// themselves, but under one cell all the same.
func TestGroupWithARequiredTopologyStaysTogether(t *testing.T) {
	c := newCluster(t)
	c.racks(1, 2)
	c.register(gangJob(structs.JobTypeService, 2, 8, inRack(true), func(j *structs.Job) { schedtest.Group(j).Gang = nil }))
	c.eval()
	c.wantLive(2)
	for _, a := range c.members() {
		if a.Gang != nil || c.nodes[a.NodeID].Meta["rack"] != "r2" {
			t.Errorf("%s is on %s, and told %v", a.Name, a.NodeID, a.Gang)
		}
	}
	c.runAll()
	c.update(setCount(3))
	c.eval()
	c.wantPlan(0, 0, 2)
	c.wantQueued(1)
}

// TestGangRefusedIsRefusedWhole: nothing of a restart happens when one of its nodes
// is not what it was; decided again on what is, the gang stops and waits.
func TestGangRefusedIsRefusedWhole(t *testing.T) {
	c := newCluster(t)
	c.racks(4)
	c.register(gangJob(structs.JobTypeService, 3, 8))
	c.eval()
	c.runAll()
	lost := c.members()["j.g[0]"].NodeID
	c.changeNode(lost, down)
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil || placed(plan) != 3 || len(plan.Stop) != 3 || !plan.AllAtOnce {
		t.Fatalf("%d placed, %d stopped, %v", placed(plan), len(plan.Stop), err)
	}
	otherAlloc(c, "n04", 4000)
	reservations, refused, why, after := judge(c, plan)
	if !slices.Contains(refused, "n04") || why == "" {
		t.Errorf("refused %v because %q", refused, why)
	}
	if n := len(reservations.Place) + len(reservations.Stop) + len(reservations.Update) + len(reservations.Evals); n != 0 || after.Diff(c.w) != nil {
		t.Errorf("%d parts hold: %v", n, after.Diff(c.w))
	}
	again, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil || placed(again) != 0 || len(again.Stop) != 3 {
		t.Fatalf("%d placed, %d stopped, %v", placed(again), len(again.Stop), err)
	}
	if reservations, refused, _, _ := judge(c, again); len(refused) != 0 || len(reservations.Stop) != 3 {
		t.Errorf("refused %v, %d stops hold", refused, len(reservations.Stop))
	}
}

// TestGangMemberComesBesideOthersOnly: one that stands for a lost member does not hold when all others have been taken back since it
// was decided; if one of them is there it does.
func TestGangMemberComesBesideOthersOnly(t *testing.T) {
	c := newCluster(t)
	c.racks(3)
	c.register(gangJob(structs.JobTypeService, 3, 8, byMember, inRack(true)))
	c.eval()
	c.runAll()
	c.node("n08", dgxIn("r1"))
	c.changeNode(c.members()["j.g[1]"].NodeID, down)
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Beside) != 1 || len(plan.Beside[0]) != 2 || placed(plan) == 0 {
		t.Fatalf("%d placed, beside %v", placed(plan), plan.Beside)
	}
	for gone := range 3 {
		e := c.w.Edit()
		for _, id := range plan.Beside[0][:gone] {
			e.DeleteAlloc(id, c.allocs[id].NodeID)
		}
		reservations, refused, why := scheduler.Judge(e, plan)
		if whole := gone < 2; (len(reservations.Place) == 1) != whole || (len(refused) == 0) != whole || strings.Contains(why, "gang is gone") == whole {
			t.Errorf("%d of the others are gone: %d batches hold, refused %v: %s", gone, len(reservations.Place), refused, why)
		}
	}
}
