package scheduler_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// TestReclaimAnything lets random jobs of all kinds come one after the other onto few
// nodes, each with its own priority and allowed to preempt. After every evaluation
// cluster.evaluate checks that the plan is the same again, holds whole, and that no node
// is over-committed and nothing is given twice. Here it is checked who was taken from, and
// that none of it could be put back.
func TestReclaimAnything(t *testing.T) {
	reclaims := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := preempting(rt)
		c.config.Bands = rapid.SampledFrom([][]structs.PriorityBand{c.config.Bands, nil, {{Low: 1, High: 10}, {Low: 11, High: 100}}}).Draw(rt, "bands")
		c.config.KeepWhole = rapid.Bool().Draw(rt, "keep whole")
		c.configure()
		c.seed = rapid.Uint64().Draw(rt, "seed")
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			n := schedtest.DrawNode(rt, fmt.Sprintf("n%d", i))
			if can := rapid.SampledFrom([]string{"", "1", "0"}).Draw(rt, "freezes"); can != "" {
				suspending(map[string]string{"mock_driver": can})(n)
			}
			c.setNode(n)
		}
		e := c.w.Edit()
		for i := range rapid.IntRange(0, 2).Draw(rt, "reservations") {
			n := c.sortedNodes()[i%len(c.nodes)]
			e.Reserve(&structs.Reservation{
				NodeID: n.ID, Namespace: "default", JobID: rapid.SampledFrom([]string{"j1", "another"}).Draw(rt, "for"), Group: "g",
				CPU: int64(rapid.IntRange(0, 2000).Draw(rt, "MHz")), Devices: rapid.IntRange(0, 2).Draw(rt, "devices"),
				Cores: rapid.IntRange(0, 2).Draw(rt, "cores"), DueAt: c.now.Add(time.Hour).UnixNano(), ExpiresAt: 1 << 62,
			})
		}
		c.w = e.World()
		for i := range rapid.IntRange(2, 6).Draw(rt, "jobs") {
			j := schedtest.DrawJob(rt)
			j.ID, j.Priority, j.CreateIndex = fmt.Sprint("j", i), rapid.SampledFrom([]int{1, 5, 20, 45, 60, 90}).Draw(rt, "priority"), uint64(i+1) // small
			j.Partial = rapid.SampledFrom([]string{"", "", "", "free", "none"}).Draw(rt, "partial")
			j.Reclaim = rapid.SampledFrom([]string{structs.ReclaimRequeue, structs.ReclaimSuspend}).Draw(rt, "reclaim")
			if !j.PerNode() && schedtest.Group(j).Count > 0 && rapid.IntRange(0, 3).Draw(rt, "gang") == 0 {
				schedtest.Group(j).Gang = &structs.Gang{Min: rapid.IntRange(1, schedtest.Group(j).Count).Draw(rt, "min")}
			}
			if was := c.job; was != nil && was.Type == j.Type && rapid.Bool().Draw(rt, "update") {
				j.ID, j.CreateIndex, j.Version = was.ID, was.CreateIndex, was.Version+1
				c.client(isLive, healthy) // so that it goes on at once
			}
			c.job = j
			ev := c.newEval()
			ev.JobID, ev.Type, ev.Priority = j.ID, j.Type, j.Priority
			before := c.w
			sameUnkept(rt, c, ev)
			c.evaluate(ev)
			reclaims += checkReclaimed(rt, c, before)
		}
	})
	if reclaims == 0 && !testing.Short() { // in few worlds there may be none
		t.Fatal("nobody was taken from in any of the worlds")
	}
}

// sameUnkept checks that who must leave does not depend on whether the World keeps who holds
// what by priority, and how many wait not on whether only that is asked.
func sameUnkept(t *rapid.T, c *cluster, ev *structs.Evaluation) {
	decide := func(w *scheduler.World, counting bool) (*structs.Plan, string) {
		in, minted := c.input(), uint64(0)
		in.CountOnly = counting
		in.NewID = func() string { minted++; return structs.DeriveID("same", minted) }
		plan, err := scheduler.Schedule(w, ev, in)
		if err != nil {
			t.Fatal(err)
		}
		return plan, string(asJSON(t, plan))
	}
	e, unasked := c.w.Edit(), c.config
	unasked.PreemptionConfig = structs.PreemptionConfig{}
	e.Configure(&unasked)
	plan, kept := decide(c.w, false)
	if _, unkept := decide(e.World(), false); kept != unkept {
		t.Fatalf("where it is kept who holds what:\n%s\nwhere not:\n%s", kept, unkept)
	}
	counted, _ := decide(c.w, true)
	if got, want := counted.Evals[0].QueuedAllocations, plan.Evals[0].QueuedAllocations; !maps.Equal(got, want) {
		t.Fatalf("%v would wait, but %v do: %s", got, want, kept)
	}
}

// checkReclaimed checks what the last plan takes from others, and counts it.
func checkReclaimed(t *rapid.T, c *cluster, before *scheduler.World) (n int) {
	gangs := map[string]bool{}
	for _, s := range c.last.Stop {
		if s.PreemptedBy == "" {
			continue
		}
		n++
		a := c.allocs[s.AllocID]
		terms := a.AllocatedResources.Shared.Terms
		if a.JobID == c.job.ID || c.config.Band(terms.Priority) >= c.config.Band(c.job.Priority) {
			t.Fatalf("one of priority %d of job %s is taken from for %d", terms.Priority, a.JobID, c.job.Priority)
		}
		if by := c.allocs[s.PreemptedBy]; by == nil || by.JobID != c.job.ID {
			t.Fatalf("%s makes room for %q", a.ID, s.PreemptedBy)
		}
		if s.Reclaim == structs.ReclaimSuspend && c.nodes[a.NodeID].CannotSuspend("mock_driver") {
			t.Fatalf("%s is suspended, and its node cannot freeze it", a.ID)
		}
		if terms.Gang != "" {
			gangs[a.JobID] = true
			continue
		}
		u, _ := world.Usages(before).Get(a.ID)
		e := c.w.Edit()
		world.Release(e, a.ID)
		if node, _ := world.StateOf(e, a.NodeID); node.LacksUse(u, &world.Taker{}) == "" {
			t.Fatalf("%s of job %s could be put back on %s", a.ID, a.JobID, a.NodeID)
		}
	}
	for job := range gangs { // each is looked at alone: the order cannot show
		runs, least := 0, 0
		for _, a := range c.allocs { // counted: the order cannot show
			if a.JobID == job && isLive(a) && a.DesiredStatus == structs.AllocDesiredRun && a.AllocatedResources.Shared.Terms.Gang != "" && a.TaskGroup == "g" {
				runs, least = runs+1, a.AllocatedResources.Shared.Terms.GangMin
			}
		}
		if runs < least {
			t.Fatalf("%d of gang %s run on, of at least %d", runs, job, least)
		}
	}
	return n
}
