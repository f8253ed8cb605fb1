package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// requeues returns how often what runs of a group was requeued, and why, by instance.
func (c *cluster) requeues() (out string) {
	all := c.sorted()
	slices.SortFunc(all, func(a, b *structs.Allocation) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range all {
		if !a.Terminal() {
			out += fmt.Sprintf("%s: %d %s\n", a.Name, a.Requeues, a.RequeueReason)
		}
	}
	return out
}

// requeued has the newest instance of an index taken back for somebody else, as a plan does, and places it again.
func (c *cluster) requeued(index int, reason string) {
	c.t.Helper()
	for _, a := range c.sorted() {
		if a.Terminal() || a.Index() != index {
			continue
		}
		c.commit(&structs.JudgedPlan{Stop: []*structs.AllocStop{{
			AllocID: a.ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue, RequeueReason: reason,
		}}})
	}
	c.client(func(a *structs.Allocation) bool { return a.ServerTerminal() }, func(a *structs.Allocation) { a.ClientStatus = structs.AllocClientComplete })
	c.eval()
}

// TestRequeuesAreCarried: the successor of an instance knows how often it was requeued, and why it was the last time. Failures, updates and
// reschedules do not count, and nothing is forgotten by them; a job of the same name that was purged was another.
func TestRequeuesAreCarried(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	job := schedtest.Job(structs.JobTypeService, 2)
	c.register(job)
	c.eval()
	c.client(isLive, healthy)
	f := func(what, want string) {
		t.Helper()
		if got := c.requeues(); got != want {
			t.Fatalf("%s:\n%swant\n%s", what, got, want)
		}
	}
	name := func(i int) string { return structs.AllocName(job.ID, "g", i) }
	f("before", name(0)+": 0 \n"+name(1)+": 0 \n")
	c.requeued(1, "once")
	f("once", name(0)+": 0 \n"+name(1)+": 1 once\n")
	c.requeued(1, "again")
	f("again", name(0)+": 0 \n"+name(1)+": 2 again\n")
	c.client(isLive, func(a *structs.Allocation) {
		a.ClientStatus, a.TaskStates = structs.AllocClientFailed, map[string]*structs.TaskState{"t": {State: structs.TaskStateDead, Failed: true, FinishedAt: c.now}}
	})
	c.now = c.now.Add(3600e9)
	c.eval()
	f("both have failed and are placed again", name(0)+": 0 \n"+name(1)+": 2 again\n")
	c.client(isLive, healthy)
	c.update(func(j *structs.Job) { schedtest.Task(j).Config = map[string]any{"command": "other"} })
	c.eval()
	c.client(isLive, healthy)
	c.eval()
	f("another version", name(0)+": 0 \n"+name(1)+": 2 again\n")
	c.requeued(0, "the other")
	f("the other", name(0)+": 1 the other\n"+name(1)+": 2 again\n")
	for id, u := range world.Usages(c.w).All {
		if int(u.Requeues) != c.allocs[id].Requeues {
			t.Errorf("the World counts %d of %s", u.Requeues, id)
		}
	}
	anew := c.job.Copy()
	anew.CreateIndex, c.job = c.index+1, nil
	c.register(anew)
	c.requeued(1, "of the purged")
	if got := c.requeues(); strings.Contains(got, "again") || strings.Contains(got, "purged") {
		t.Errorf("a job of the same name:\n%s", got)
	}
}

// TestFailedToSuspendIsRequeued: what could not be suspended is placed again as what was requeued is.
func TestFailedToSuspendIsRequeued(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.client(isLive, healthy)
	c.client(isLive, func(a *structs.Allocation) {
		a.DesiredStatus, a.ClientStatus = structs.AllocDesiredSuspend, structs.AllocClientFailed
	})
	c.eval()
	if got := c.requeues(); !strings.HasSuffix(got, ": 1 it could not be suspended\n") {
		t.Errorf("%s", got)
	}
}

// TestRequeueReasons: who is requeued is told for whom.
func TestRequeueReasons(t *testing.T) {
	c := preempting(t)
	c.config.Bands = nil
	c.configure()
	c.node("n", sized(100, 100))
	stops := func(c *cluster, o other, by *structs.Job) string {
		t.Helper()
		c.runs(o, 1, "n")
		c.register(by)
		c.eval()
		if len(c.last.Stop) != 1 {
			t.Fatalf("%d stop", len(c.last.Stop))
		}
		return c.last.Stop[0].RequeueReason
	}
	named := func(priority int) *structs.Job {
		return schedtest.Job(structs.JobTypeService, 1, requests(priority, 50, 50))
	}
	if got := stops(c, other{job: "low", priority: 1, cpu: 100, mem: 1}, named(90)); got != "preempted by job j of band 71-100" {
		t.Errorf("by bands: %q", got)
	}
	c = preempting(t)
	c.node("n", sized(100, 100))
	suspend := structs.AllocTerms{Reclaim: structs.ReclaimSuspend}
	if got := stops(c, other{job: "low", priority: 1, cpu: 100, mem: 1, terms: suspend}, named(90)); got != "" {
		t.Errorf("suspended: %q", got)
	}
	c = newCluster(t)
	c.node("n", schedtest.EightGPUs)
	e := c.w.Edit()
	owns(t, "default", "node", 1)(e)
	c.w = e.World()
	job := gpuJobOf("default", "j", 1, 8)
	if got := stops(c, other{job: "low", priority: 90, cpu: 1, mem: 1, devices: [][]string{{"n-gpu-0"}}}, job); got != "reclaimed for what namespace default owns" {
		t.Errorf("for a claim: %q", got)
	}
}

// TestImmuneToBands: an instance that was requeued max_requeues times is not preempted by bands any more, for gangs and for what needs named
// devices neither; what a namespace owns is its own all the same.
func TestImmuneToBands(t *testing.T) {
	f := func(requeues int, allowed *int, by *structs.Job, stops int) {
		t.Helper()
		c := preempting(t)
		c.config.Slots = &structs.SlotSettings{MaxRequeues: allowed}
		c.node("n", schedtest.EightGPUs, sized(8000, 8000))
		id := c.runs(other{job: "low", priority: 1, cpu: 8000, mem: 1, devices: [][]string{{"n-gpu-0"}}}, 1, "n")[0]
		a := *c.allocs[id]
		a.Requeues = requeues
		c.allocs[id] = &a
		e := c.w.Edit()
		e.Configure(&c.config)
		e.UpsertAlloc(&a)
		if by.Class == structs.ClassGuaranteed {
			owns(t, "default", "node", 1)(e)
		}
		c.w = e.World()
		c.register(by)
		if c.eval(); len(c.last.Stop) != stops {
			t.Errorf("requeued %d times, %v allowed, %s: %d stop, want %d", requeues, allowed, by.ID, len(c.last.Stop), stops)
		}
	}
	one, none := 1, 0
	high := func(change ...func(*structs.Job)) *structs.Job {
		return schedtest.Job(structs.JobTypeService, 1, append([]func(*structs.Job){requests(90, 500, 50)}, change...)...)
	}
	f(2, nil, high(), 1)
	f(3, nil, high(), 0)
	f(4, nil, high(), 0)
	f(0, &one, high(), 1)
	f(1, &one, high(), 0)
	f(0, &none, high(), 0)
	f(2, nil, high(gang(0)), 1)
	f(3, nil, high(gang(0)), 0)
	claims := gpuJobOf("default", "j", 1, 8)
	claims.Class = structs.ClassGuaranteed
	f(3, nil, claims, 1)
}

// TestExplainImmune: the explanation of a job that waits names the instances that bands do not take any more, and that of such an allocation says that it is one.
func TestExplainImmune(t *testing.T) {
	f := func(requeues []int, text string) {
		t.Helper()
		c := preempting(t)
		c.node("n", sized(100, 100))
		ids := c.runs(other{job: "low", priority: 1, cpu: 30, mem: 1}, 3, "n")
		for i, n := range requeues {
			c.client(func(a *structs.Allocation) bool { return a.ID == ids[i] }, func(a *structs.Allocation) { a.Requeues = n })
		}
		c.submit("j", schedtest.Job(structs.JobTypeService, 1, requests(90, 100, 50)))
		if g := c.explain().Group("g"); len(g.Waits) != 1 || g.Waits[0].Kind != structs.ReasonPreemption || !strings.Contains(g.Waits[0].Text, text) {
			t.Errorf("requeued %v times: %s, want %q", requeues, asJSON(t, g.Waits), text)
		}
		x := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: c.allocs[ids[0]], Config: c.config, Node: c.nodes["n"]})
		if told := slices.ContainsFunc(x.Text, func(s string) bool {
			return strings.Contains(s, "it is not preempted any more: its instance was requeued 3 times, and max_requeues is 3")
		}); told != (requeues[0] == 3) || len(x.MayLoseTo) == 0 == !told {
			t.Errorf("requeued %d times: %q, %v", requeues[0], x.Text, x.MayLoseTo)
		}
	}
	f([]int{3, 0, 0}, "would not be enough; 1 instance is not preempted any more: requeued 3 times")
	f([]int{3, 4, 3}, "nothing can be preempted")
	f([]int{2, 4, 3}, "; 2 instances are not preempted any more: requeued 3 times")
}

// TestJudgeKnowsImmunity: what was to be preempted by bands and is immune by now, as the configuration has changed, is left alone.
func TestJudgeKnowsImmunity(t *testing.T) {
	c := preempting(t)
	c.node("n", sized(100, 100))
	id := c.runs(other{job: "low", priority: 1, cpu: 100, mem: 1}, 1, "n")[0]
	c.client(func(a *structs.Allocation) bool { return a.ID == id }, func(a *structs.Allocation) { a.Requeues = 1 })
	c.register(schedtest.Job(structs.JobTypeService, 1, requests(90, 50, 50)))
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil || len(plan.Stop) != 1 {
		t.Fatal(plan.Stop, err)
	}
	for _, allowed := range []int{2, 1} {
		c.config.Slots = &structs.SlotSettings{MaxRequeues: &allowed}
		c.configure()
		valid, refused, why := scheduler.Judge(c.w.Edit(), plan)
		if len(valid.Stop) != allowed-1 || len(refused) != 2-allowed || allowed == 1 && !strings.Contains(why, "was requeued too often") {
			t.Errorf("%d allowed: %d stop, refused %v: %s", allowed, len(valid.Stop), refused, why)
		}
	}
}
