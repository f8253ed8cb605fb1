package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestGangRanksOfThoseThatCompleted: who stands for a member does that member's work, and
// no work that is done already.
func TestGangRanksOfThoseThatCompleted(t *testing.T) {
	for _, onLoss := range []string{structs.GangOnLossGang, structs.GangOnLossMember} {
		for how, lose := range map[string]func(*cluster, *structs.Allocation){
			"alloc stop": func(c *cluster, a *structs.Allocation) {
				c.client(func(b *structs.Allocation) bool { return b.ID == a.ID }, migrate)
			},
			"node down": func(c *cluster, a *structs.Allocation) { c.changeNode(a.NodeID, down) },
			"failed": func(c *cluster, a *structs.Allocation) {
				c.client(func(b *structs.Allocation) bool { return b.ID == a.ID }, c.ended(true))
				c.now = c.now.Add(time.Minute)
			},
		} {
			for done := range 2 {
				t.Run(fmt.Sprint(onLoss, " ", how, " after ", done), func(t *testing.T) {
					c := newCluster(t)
					c.racks(4)
					c.register(gangJob(structs.JobTypeBatch, 2, 8, func(j *structs.Job) { schedtest.Group(j).Gang.OnLoss = onLoss }))
					c.eval()
					c.runAll()
					first, other := c.members()[fmt.Sprintf("j.g[%d]", done)], c.members()[fmt.Sprintf("j.g[%d]", 1-done)]
					c.client(func(a *structs.Allocation) bool { return a.ID == first.ID }, c.ended(false))
					lose(c, other)
					c.eval()
					c.wantPlan(1, len(c.last.Stop), 0)
					got := c.members()[other.Name]
					if got == nil || got.Gang.Rank != other.Gang.Rank || got.Gang.Size != 2 ||
						got.Gang.Hosts[first.Gang.Rank] != first.Gang.Hosts[first.Gang.Rank] || slices.Contains(got.Gang.Hosts, "") {
						t.Fatalf("%s had %+v, its successor has %+v", other.Name, other.Gang, got)
					}
				})
			}
		}
	}
}

// TestGangRanksAfterAnotherCount: another gang has ranks of its own, and those that
// completed count in it.
func TestGangRanksAfterAnotherCount(t *testing.T) {
	c := newCluster(t)
	c.racks(8)
	c.register(gangJob(structs.JobTypeBatch, 3, 8, withPeer(2)))
	c.eval()
	c.runAll()
	for _, name := range []string{"j.g[1]", "j.h[1]"} {
		c.client(func(a *structs.Allocation) bool { return a.Name == name }, c.ended(false))
	}
	want := func(ranks map[string]int, size int) {
		t.Helper()
		for name, a := range c.members() {
			if a.Gang.Rank != ranks[name] || a.Gang.Size != size || slices.Contains(a.Gang.Hosts, "") {
				t.Errorf("%s has %+v, not rank %d of %d", name, a.Gang, ranks[name], size)
			}
		}
	}
	c.update(setCount(2))
	c.eval()
	c.wantLive(2) // g[0] and h[0]
	want(map[string]int{"j.g[0]": 0, "j.h[0]": 2}, 4)
	c.runAll()
	c.client(func(a *structs.Allocation) bool { return a.Name == "j.h[0]" }, migrate)
	c.eval()
	c.wantLive(2)
	want(map[string]int{"j.g[0]": 0, "j.h[0]": 2}, 4)
}

// TestGangRanksOfMembersThatWait: one that joins does not get the rank of one that finds
// no room.
func TestGangRanksOfMembersThatWait(t *testing.T) {
	c := newCluster(t)
	c.racks(2)
	c.register(gangJob(structs.JobTypeService, 2, 8, withPeer(1), byMember, func(j *structs.Job) {
		j.TaskGroups[1].Gang = &structs.Gang{OnLoss: structs.GangOnLossMember, Min: 1}
	}))
	c.eval()
	c.runAll()
	lost := c.members()["j.g[1]"]
	c.changeNode(lost.NodeID, down)
	c.update(func(j *structs.Job) { j.TaskGroups[1].Count = 2 })
	c.eval()
	c.wantLive(3)
	if got := c.members()["j.h[1]"]; got == nil || got.Gang.Rank != 3 {
		t.Fatalf("h[1] has %+v", got)
	}
	c.runAll()
	c.changeNode(lost.NodeID, up)
	c.wake(c.blocked())
	if got := c.members()["j.g[1]"]; got == nil || got.Gang.Rank != lost.Gang.Rank || got.Gang.Size != 4 {
		t.Fatalf("g[1] has %+v", got)
	}
}
