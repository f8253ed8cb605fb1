package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// threeTeams makes the cluster of docs/guides/virtual-clusters.md: four nodes, of which vision owns two, speech one and students a socket.
func threeTeams(t *testing.T) *cluster {
	c, chain := newCluster(t), chainOf(t)
	for i := range 4 {
		c.node(fmt.Sprint("n", i), schedtest.EightGPUs)
	}
	e := c.w.Edit()
	e.SetQuotas("vision", []world.Quota{{Chain: chain, Level: "node", Count: 2, Order: 1}})
	e.SetQuotas("speech", []world.Quota{{Chain: chain, Level: "node", Count: 1, Order: 2}})
	e.SetQuotas("students", []world.Quota{{Chain: chain, Level: "socket", Count: 1, Order: 3}})
	c.w = e.World()
	return c
}

// submitGPUs registers a job of so many instances with so many GPUs each, and commits what the scheduler places of it.
func (c *cluster) submitGPUs(namespace, id string, count, gpus int, change ...func(*structs.Job)) {
	c.submit(id, changed(gpuJobOf(namespace, id, count, gpus), change))
}

// TestExplainSystemBesideOwners: the nodes whose free GPUs are guaranteed to namespaces are counted with that as their reason, and what is
// suggested helps.
func TestExplainSystemBesideOwners(t *testing.T) {
	for _, row := range []struct {
		name                    string
		busy                    func(c *cluster)
		holding, owned, lacking int
	}{
		{"idle", func(*cluster) {}, 1, 3, 3},
		{"two owners", func(c *cluster) {
			c.submitGPUs("vision", "notebook", 1, 2)
			c.submitGPUs("vision", "train", 1, 8)
		}, 1, 2, 3},
		{"all used", func(c *cluster) { c.submitGPUs("students", "sweep", 32, 1) }, 0, 0, 4},
	} {
		c := threeTeams(t)
		row.busy(c)
		c.submitGPUs("ops", "exporter", 1, 1, system(50))
		g := c.explain().Group("g")
		owned := 0
		for _, r := range g.Reasons {
			if r.Kind == structs.ReasonOwned && r.Text == world.LacksUnowned {
				owned += r.Nodes
			}
		}
		if g.Nodes.Holding != row.holding || g.Nodes.Lacking != row.lacking || g.Nodes.Fitting != 0 || owned != row.owned {
			t.Errorf("%s: %+v, %d with GPUs that are guaranteed: %+v", row.name, g.Nodes, owned, g.Reasons)
		}
		if row.owned > 0 && !strings.Contains(g.Expected.Because, "guaranteed to namespaces") {
			t.Errorf("%s: expected %q", row.name, g.Expected.Because)
		}
		c.helps("g", g)
	}
}

// ends returns which allocations an explanation suggests to end, as "namespace/job" each, of the smallest change of that kind that places all.
func (c *cluster) ends(g *structs.GroupExplanation) (list []string) {
	for _, r := range g.Smallest {
		if r.Kind != structs.RemedyEnd || !r.All {
			continue
		}
		for _, e := range r.Edits {
			a := c.allocs[e.ID]
			list = append(list, a.Namespace+"/"+a.JobID+" "+e.Op)
		}
		return list
	}
	return nil
}

// TestExplainEndsOpportunisticFirst: an opportunistic allocation is to end before a guaranteed one, whatever the priorities.
func TestExplainEndsOpportunisticFirst(t *testing.T) {
	c := newCluster(t)
	c.node("n0", schedtest.EightGPUs)
	c.node("n1", schedtest.EightGPUs)
	e := c.w.Edit()
	owns(t, "a", "node", 1)(e)
	c.w = e.World()
	c.submitGPUs("a", "owner", 4, 2, func(j *structs.Job) { j.Priority = 10 })
	c.submitGPUs("b", "borrows", 4, 2, func(j *structs.Job) { j.Priority = 60 })
	for _, gpus := range []int{1, 3, 8} {
		c.submitGPUs("c", "waits", 1, gpus)
		g := c.explain().Group("g")
		if got := c.ends(g); len(got) != (gpus+1)/2 || slices.Contains(got, "a/owner "+structs.EditEnd) || slices.Contains(got, "a/owner "+structs.EditStop) {
			t.Errorf("%d GPUs: %q of %+v", gpus, got, g.Smallest)
		}
		for _, w := range g.Waits {
			if w.Kind == structs.ReasonPreemption && !strings.HasPrefix(w.Text, "nothing can be preempted") {
				t.Errorf("what is guaranteed cannot be preempted: %+v", w)
			}
		}
		c.helps("g", g)
	}
	// On one node, too.
	c = newCluster(t)
	c.node("n0", schedtest.EightGPUs)
	e = c.w.Edit()
	owns(t, "a", "socket", 1)(e)
	c.w = e.World()
	c.submitGPUs("a", "owner", 2, 2, func(j *structs.Job) { j.Priority = 10 })
	c.submitGPUs("b", "borrows", 2, 2, func(j *structs.Job) { j.Priority = 60 })
	c.submitGPUs("c", "waits", 1, 1)
	if got := c.ends(c.explain().Group("g")); !slices.Equal(got, []string{"b/borrows " + structs.EditEnd}) {
		t.Errorf("on one node: %q", got)
	}
	// Where only guaranteed ones are in the way, they must end for good: their jobs are entitled to what they had.
	c = newCluster(t)
	c.node("n0", schedtest.EightGPUs)
	e = c.w.Edit()
	owns(t, "a", "node", 1)(e)
	c.w = e.World()
	c.submitGPUs("a", "owner", 4, 2, func(j *structs.Job) { j.Priority = 10 })
	c.submitGPUs("c", "waits", 1, 1)
	if got := c.ends(c.explain().Group("g")); !slices.Equal(got, []string{"a/owner " + structs.EditEnd}) {
		t.Errorf("a guaranteed one: %q", got)
	}
}

// TestExplainCountsReclaim: what an owner may reclaim need not end for its job; what it uses of its cells itself must.
func TestExplainCountsReclaim(t *testing.T) {
	for _, class := range []string{"", structs.ClassGuaranteed} {
		c := newCluster(t)
		c.node("n0", schedtest.EightGPUs)
		c.node("n1", schedtest.EightGPUs)
		e := c.w.Edit()
		owns(t, "a", "node", 1)(e)
		c.w = e.World()
		c.submitGPUs("a", "small", 1, 1, func(j *structs.Job) { j.Priority = 90 })
		c.submitGPUs("b", "borrows", 15, 1)
		c.submitGPUs("a", "large", 1, 8, func(j *structs.Job) { j.Class = class })
		g := c.explain().Group("g")
		if got := c.ends(g); !slices.Equal(got, []string{"a/small " + structs.EditEnd}) {
			t.Errorf("class %q: %q of %+v", class, got, g.Smallest)
		}
		c.helps("g", g)
	}
}

// TestExplainHelpsBesideOwners: each change that is named of a job that waits beside what namespaces own places, when made, what it says.
func TestExplainHelpsBesideOwners(t *testing.T) {
	chain := chainOf(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.config.PreemptionConfig.BatchSchedulerEnabled = rapid.Bool().Draw(rt, "batch jobs preempt")
		for i := range rapid.IntRange(1, 3).Draw(rt, "nodes") {
			c.node(fmt.Sprint("n", i), schedtest.EightGPUs)
		}
		for i, owner := range []string{"a", "b"} {
			q := world.Quota{
				Chain: chain, Level: rapid.SampledFrom([]string{"node", "socket", "pcie"}).Draw(rt, "level"),
				Count: rapid.IntRange(1, 2).Draw(rt, "cells"), Order: uint64(i + 1),
			}
			if e := c.w.Edit(); e.Shortage(owner, []world.Quota{q}) == nil {
				e = c.w.Edit()
				e.SetQuotas(owner, []world.Quota{q})
				c.w = e.World()
			}
		}
		draw := func(id string) {
			c.submitGPUs(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "namespace"), id,
				rapid.IntRange(1, 12).Draw(rt, "count"), rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(rt, "GPUs"),
				func(j *structs.Job) {
					j.Type = rapid.SampledFrom([]string{structs.JobTypeBatch, structs.JobTypeBatch, structs.JobTypeSystem}).Draw(rt, "type")
					j.Priority = rapid.SampledFrom([]int{10, 50, 90}).Draw(rt, "priority")
					j.Class = rapid.SampledFrom([]string{"", "", structs.ClassGuaranteed, structs.ClassOpportunistic}).Draw(rt, "class")
				})
		}
		for i := range rapid.IntRange(0, 4).Draw(rt, "others") {
			draw(fmt.Sprint("other", i))
		}
		draw("j")
		g := c.explain().Group("g")
		if queued := c.copyOf().settle()["g"]; queued != g.Missing-g.PlacedNow {
			rt.Fatalf("%d missing, %d of them placed now, but %d wait", g.Missing, g.PlacedNow, queued)
		}
		if g.Missing == g.PlacedNow || g.PlacedNow > 0 {
			return
		}
		if n := g.Nodes; n.InPool != n.Refused+n.Holding+n.Lacking+n.Fitting {
			rt.Fatalf("%+v", n)
		}
		c.helps("g", g)
	})
}
