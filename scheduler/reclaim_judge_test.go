package scheduler_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// TestReclaimJudgedInPart: gangs have a member on each of two nodes, and newcomers come to
// all of them. Where one node refuses, nobody comes to the other nodes of its gang either,
// nor to those of a gang that runs on with it; who has nothing to do with it comes.
func TestReclaimJudgedInPart(t *testing.T) {
	f := func(gangs [][2]string, least int, refuse []string, wantPlaced, wantStops, wantEvals int) {
		t.Helper()
		c := preempting(t)
		for _, id := range []string{"a", "b", "c", "d"} {
			c.node(id, sized(100, 100))
		}
		for i, on := range gangs {
			for _, id := range on {
				c.runs(other{job: fmt.Sprint("gang-", i), priority: 1, cpu: 100 / int64(len(gangs)-1), mem: 1, terms: structs.AllocTerms{Gang: "g", GangMin: least}}, 1, id)
			}
		}
		c.register(schedtest.Job(structs.JobTypeService, 4, requests(50, 100, 50)))
		plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
		if err != nil || len(plan.Stop) != 2*len(gangs) || placed(plan) != 4 {
			t.Fatalf("%d taken back, %d placed, %v", len(plan.Stop), placed(plan), err)
		}
		for _, id := range refuse {
			c.changeNode(id, func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 20 })
		}
		reservations, refused, why, after := judge(c, plan)
		evals := 0
		for _, ev := range reservations.Evals {
			if ev.TriggeredBy == structs.EvalTriggerPreemption {
				evals++
			}
		}
		n := 0
		for _, b := range reservations.Place {
			n += len(b.Instances)
		}
		if n != wantPlaced || len(reservations.Stop) != wantStops || evals != wantEvals || len(refused) != 4-wantPlaced {
			t.Errorf("refused %v (%s): %d placed, %d taken back, %d evaluations; want %d, %d, %d", refused, why, n, len(reservations.Stop), evals, wantPlaced, wantStops, wantEvals)
		}
		if diff := after.Diff(c.w); n == 0 && diff != nil {
			t.Errorf("nothing holds, and the World has changed: %v", diff)
		}
	}
	apart := [][2]string{{"a", "b"}, {"c", "d"}}
	f(apart, 2, nil, 4, 4, 2)
	f(apart, 2, []string{"a"}, 2, 2, 1)
	f(apart, 2, []string{"b"}, 2, 2, 1)
	f(apart, 2, []string{"b", "c"}, 0, 0, 0)
	chain := [][2]string{{"a", "b"}, {"b", "c"}, {"c", "d"}}
	f(chain, 2, nil, 4, 6, 3)
	f(chain, 2, []string{"a"}, 0, 0, 0)
	f(chain, 2, []string{"c"}, 0, 0, 0)
	f(chain, 1, []string{"d"}, 3, 5, 3) // one of the last gang may run on alone
}

// TestReclaimJudgedInPartAnything lets a plan that takes from gangs and others on many nodes
// come to a World that has changed in some places.
func TestReclaimJudgedInPartAnything(t *testing.T) {
	inPart := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := preempting(rt)
		c.seed = rapid.Uint64().Draw(rt, "seed")
		for i := range rapid.IntRange(2, 7).Draw(rt, "nodes") {
			c.node(fmt.Sprint("n", i), sized(100, 1000))
		}
		for i := range rapid.IntRange(2, 5).Draw(rt, "others") {
			drawVictims(rt, c, fmt.Sprint("other-", i))
		}
		c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) {
			j.Priority = 50
			for i := range rapid.IntRange(1, 2).Draw(rt, "groups") {
				if i > 0 {
					second := *schedtest.Group(j)
					second.Name = "h"
					second.Tasks = []*structs.Task{schedtest.Task(j).Copy()}
					j.TaskGroups = append(j.TaskGroups, &second)
				}
				g := j.TaskGroups[i]
				g.Count, g.EphemeralDisk = rapid.IntRange(1, 8).Draw(rt, "count"), &structs.EphemeralDisk{}
				g.Tasks[0].Resources = &structs.Resources{CPU: rapid.SampledFrom([]int{25, 60, 100}).Draw(rt, "cpu"), MemoryMB: 100}
			}
		}))
		plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
		if err != nil {
			rt.Fatal(err)
		}
		p := &judgedInPart{T: rt, c: c, plan: plan, changed: map[string]bool{}}
		for range rapid.IntRange(0, 3).Draw(rt, "changes") {
			p.change()
		}
		if p.check() {
			inPart++
		}
	})
	if inPart == 0 {
		t.Fatal("no plan that takes from a gang was refused in part")
	}
}

// drawVictims fills what is free of some nodes with a job that may be a gang of two groups.
func drawVictims(t *rapid.T, c *cluster, job string) {
	gang, counts := "", []int{rapid.IntRange(1, 6).Draw(t, "members")}
	if rapid.IntRange(0, 4).Draw(t, "is gang") > 0 {
		gang = "g0"
		if rapid.Bool().Draw(t, "two groups") {
			counts = append(counts, rapid.IntRange(1, 3).Draw(t, "others"))
		}
	}
	cpu := rapid.SampledFrom([]int64{25, 50, 100}).Draw(t, "cpu")
	reclaim := rapid.SampledFrom([]string{structs.ReclaimRequeue, structs.ReclaimSuspend}).Draw(t, "reclaim")
	priority := rapid.IntRange(1, 20).Draw(t, "priority")
	for i, count := range counts {
		var ids []string
		for range count {
			on := fmt.Sprint("n", rapid.IntRange(0, len(c.nodes)-1).Draw(t, "on"))
			if c.w.Free(on).CPU >= cpu {
				ids = append(ids, c.runs(other{job: job, priority: priority, cpu: cpu, mem: 10, terms: structs.AllocTerms{Gang: gang, Reclaim: reclaim}}, 1, on)...)
			}
		}
		if len(ids) == 0 || gang == "" {
			continue
		}
		least := rapid.IntRange(1, len(ids)).Draw(t, "min")
		c.client(func(a *structs.Allocation) bool { return slices.Contains(ids, a.ID) }, func(a *structs.Allocation) {
			a.AllocatedResources, a.TaskGroup = a.AllocatedResources.Copy(), fmt.Sprint("g", i)
			a.AllocatedResources.Shared.Terms.GangMin = least
		})
	}
}

// judgedInPart is a plan and the World that it comes to.
type judgedInPart struct {
	*rapid.T
	c       *cluster
	plan    *structs.Plan
	changed map[string]bool // nodes and jobs that are not as the plan saw them
}

// change changes the World that the plan comes to.
func (p *judgedInPart) change() {
	c := p.c
	node := fmt.Sprint("n", rapid.IntRange(0, len(c.nodes)-1).Draw(p.T, "changed"))
	p.changed[node] = true
	var there []*structs.Allocation
	for _, a := range c.sorted() {
		if a.NodeID == node && isLive(a) {
			there = append(there, a)
		}
	}
	what := rapid.IntRange(0, 5).Draw(p.T, "change")
	switch {
	case what == 0:
		c.changeNode(node, down)
	case what == 1:
		c.changeNode(node, func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 90 })
	case what == 2:
		c.runs(other{job: "high", priority: 90, cpu: 25, mem: 1}, 1, node)
	case len(there) == 0:
	default:
		a := rapid.SampledFrom(there).Draw(p.T, "of")
		p.changed[a.JobID] = true
		is := func(b *structs.Allocation) bool { return a.ID == b.ID }
		switch what {
		case 3:
			c.client(is, c.ended(false))
		case 4:
			c.client(is, func(b *structs.Allocation) {
				b.AllocatedResources = b.AllocatedResources.Copy()
				b.AllocatedResources.Shared.Terms.Priority = 50
			})
		default: // another member
			ids := c.runs(other{job: a.JobID, priority: 1, terms: *a.AllocatedResources.Shared.Terms}, 1, node)
			c.client(func(b *structs.Allocation) bool { return b.ID == ids[0] }, func(b *structs.Allocation) { b.TaskGroup = a.TaskGroup })
		}
	}
}

// check judges the plan and reports whether a part of one that takes from gangs was refused.
func (p *judgedInPart) check() bool {
	c, before, was := p.c, p.c.w, maps.Clone(p.c.allocs)
	e := before.Edit()
	reservations, refused, why := scheduler.Judge(e, p.plan)
	again, _, _ := scheduler.Judge(before.Edit(), p.plan)
	if !bytes.Equal(asJSON(p.T, reservations), asJSON(p.T, again)) {
		p.Fatalf("judged again, something else holds")
	}
	judged := e.World()
	c.commit(reservations)
	for _, w := range []*scheduler.World{c.w, c.rebuilt()} {
		if diff := judged.Diff(w); diff != nil {
			p.Fatalf("judged %v, committed: %v", refused, diff)
		}
	}
	here := map[string]string{}
	for _, b := range reservations.Place {
		for i := range b.Instances {
			here[b.Allocation(i).ID] = b.Allocation(i).NodeID
		}
	}
	p.checkRefused(refused, why, here)
	p.checkVictims(reservations, before, here)
	p.checkFit(was, here)
	return p.checkGangs(was) && len(here) > 0 && len(here) < placed(p.plan)
}

// checkRefused checks that nothing comes to a node that refused, and that none did that has
// nothing to do with what has changed.
func (p *judgedInPart) checkRefused(refused []string, why string, here map[string]string) {
	home, ties := map[string]string{}, [][]string{}
	for _, b := range p.plan.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			home[a.ID] = a.NodeID
			if reserved := here[a.ID] != ""; reserved == slices.Contains(refused, a.NodeID) {
				p.Fatalf("refused %v (%s); that %s comes to %s: %v", refused, why, a.ID, a.NodeID, reserved)
			}
		}
	}
	for _, s := range p.plan.Stop {
		a := p.c.allocs[s.AllocID]
		ties = append(ties, []string{home[s.PreemptedBy], a.NodeID, a.JobID})
	}
	reached := maps.Clone(p.changed)
	for range ties { // as often as the longest chain is long
		for _, tie := range ties {
			if slices.ContainsFunc(tie, func(key string) bool { return reached[key] }) {
				for _, key := range tie {
					reached[key] = true
				}
			}
		}
	}
	for _, id := range refused {
		if !reached[id] {
			p.Fatalf("%s refused (%s), and has nothing to do with %v", id, why, p.changed)
		}
	}
}

// checkVictims checks that those make room for whom somebody comes, and no others.
func (p *judgedInPart) checkVictims(reservations *structs.JudgedPlan, before *scheduler.World, here map[string]string) {
	stopped, jobs := map[string]bool{}, map[string]bool{}
	for _, s := range reservations.Stop {
		stopped[s.AllocID] = true
		jobs[p.c.allocs[s.AllocID].JobID] = true
	}
	for _, s := range p.plan.Stop {
		u, ran := world.Usages(before).Get(s.AllocID)
		if want := ran && here[s.PreemptedBy] != ""; stopped[s.AllocID] != want {
			p.Fatalf("%s makes room: %v, want %v", s.AllocID, stopped[s.AllocID], want)
		}
		if now, runs := world.Usages(p.c.w).Get(s.AllocID); ran && !stopped[s.AllocID] && (!runs || !now.Equal(u)) {
			p.Fatalf("%s was to make room and does not: it holds %+v, held %+v", s.AllocID, now, u)
		}
	}
	for _, ev := range reservations.Evals {
		if ev.TriggeredBy == structs.EvalTriggerPreemption {
			if !jobs[ev.JobID] {
				p.Fatalf("job %s is told, and loses nothing", ev.JobID)
			}
			delete(jobs, ev.JobID)
		}
	}
	if len(jobs) > 0 {
		p.Fatalf("%v are not told", jobs)
	}
}

// checkFit checks that nothing is given twice where something came, or where nothing was before.
func (p *judgedInPart) checkFit(was map[string]*structs.Allocation, here map[string]string) {
	came := slices.Collect(maps.Values(here))
	for id, n := range p.c.nodes { // each is looked at alone: the order cannot show
		on := func(allocs map[string]*structs.Allocation) error {
			list := slices.DeleteFunc(slices.Collect(maps.Values(allocs)), func(a *structs.Allocation) bool { return a.NodeID != id })
			return overcommitted(map[string]*structs.Node{id: n}, list)
		}
		if err := on(p.c.allocs); err != nil && (slices.Contains(came, id) || on(was) == nil) {
			p.Fatal(err)
		}
	}
}

// checkGangs checks that of each gang that lost somebody nobody runs, or as many as must. It
// reports whether the plan takes from a gang.
func (p *judgedInPart) checkGangs(was map[string]*structs.Allocation) (taken bool) {
	type part struct{ job, group string }
	count := func(allocs map[string]*structs.Allocation) (runs, least map[part]int, all map[string]int) {
		runs, least, all = map[part]int{}, map[part]int{}, map[string]int{}
		for _, a := range allocs { // counted: the order cannot show
			terms := a.AllocatedResources.Shared.Terms
			if isLive(a) && a.DesiredStatus == structs.AllocDesiredRun && terms.Gang != "" {
				runs[part{a.JobID, a.TaskGroup}]++
				least[part{a.JobID, a.TaskGroup}] = terms.GangMin
				all[a.JobID]++
			}
		}
		return runs, least, all
	}
	before, least, had := count(was)
	after, _, have := count(p.c.allocs)
	for of := range before { // each is looked at alone: the order cannot show
		if had[of.job] != have[of.job] && have[of.job] > 0 && after[of] < least[of] {
			p.Fatalf("%d of %d in group %s of gang %s run on, of at least %d", after[of], before[of], of.group, of.job, least[of])
		}
	}
	return slices.ContainsFunc(p.plan.Stop, func(s *structs.AllocStop) bool {
		return was[s.AllocID].AllocatedResources.Shared.Terms.Gang != ""
	})
}

// TestReclaimOfOneForMany: an allocation is suspended for a newcomer, and must go for the next two, so that the plan names it
// three times. It goes once, and what it held is not given away beyond that.
func TestReclaimOfOneForMany(t *testing.T) {
	c := preempting(t)
	c.node("a", sized(300, 400))
	victim := c.runs(other{job: "lender", priority: 1, cpu: 200, mem: 200, terms: structs.AllocTerms{Reclaim: structs.ReclaimSuspend}}, 1, "a")[0]
	c.register(schedtest.Job(structs.JobTypeService, 3, requests(50, 100, 130)))
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil || placed(plan) != 3 || len(plan.Stop) == 0 {
		t.Fatalf("%d placed, %d taken back, %v", placed(plan), len(plan.Stop), err)
	}
	last := plan.Stop[len(plan.Stop)-1]
	if last.AllocID != victim || last.DesiredStatus != structs.AllocDesiredEvict {
		t.Fatalf("the last stop is %+v", last)
	}
	first := *last
	first.DesiredStatus, first.Reclaim = structs.AllocDesiredSuspend, structs.ReclaimSuspend
	again := *last
	plan.Stop = []*structs.AllocStop{&first, &again, last}
	reservations, refused, why, after := judge(c, plan)
	if len(refused) > 0 || len(reservations.Stop) != 1 || reservations.Stop[0] != last || len(reservations.Place) != 1 || len(reservations.Place[0].Instances) != 3 {
		t.Errorf("refused %v (%s); %d stops", refused, why, len(reservations.Stop))
	}
	if free := after.Free("a"); free.CPU < 0 || free.MemoryMB < 0 || free.CPU != 0 {
		t.Errorf("free on the node is %+v", free)
	}
	if len(plan.Stop) != 3 {
		t.Error("the plan that was judged has been changed")
	}
}
