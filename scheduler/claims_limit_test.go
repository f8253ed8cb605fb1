package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// decideOver decides a job of a namespace whose virtual cluster states what becomes of instances beyond what it owns.
func (x *tenants) decideOver(setting, namespace, id string, count, gpus int, change ...func(*structs.Job)) *structs.Plan {
	x.t.Helper()
	x.overLimit = setting
	defer func() { x.overLimit = "" }()
	return x.decide(namespace, id, count, gpus, change...)
}

// lacks reports whether a plan says that its first group lacks something for a reason that has a text in it.
func lacks(p *structs.Plan, text string) bool {
	m := p.FailedTGAllocs["g"]
	if m == nil {
		return false
	}
	for reason := range m.DimensionExhausted {
		if strings.Contains(reason, text) {
			return true
		}
	}
	return false
}

// TestOverLimit: what exceeds what a namespace owns runs opportunistically or waits, by its setting (semantics part 2, "Upper limit").
// A tenant with 4 GPUs: a gang of 6 waits, and a gang of 4 behind it is not blocked.
func TestOverLimit(t *testing.T) {
	nodes := func() []*structs.Node { return []*structs.Node{eightGPUs("n1"), eightGPUs("n2")} }
	const over, withheld = `over the limit: namespace "a" owns 4 GPUs, `, `withheld by over_limit = "wait"`
	x := newTenants(t, gives(t, "a", "socket", 1), nodes()...)
	plan := x.decideOver(structs.OverLimitWait, "a", "six", 6, 1, gang(0))
	if x.wantClasses("a gang of 6", plan, 0, 0); !lacks(plan, over+"0 in guaranteed use") || !lacks(plan, withheld) {
		t.Errorf("a gang of 6 lacks %v", plan.FailedTGAllocs["g"])
	}
	x.wantClasses("a gang of 4 behind it", x.decideOver(structs.OverLimitWait, "a", "four", 4, 1, gang(0)), 4, 0)
	plan = x.decideOver(structs.OverLimitWait, "a", "one more", 1, 1)
	if x.wantClasses("one more", plan, 0, 0); !lacks(plan, over+"4 in guaranteed use") || !lacks(plan, withheld) {
		t.Errorf("one more lacks %v", plan.FailedTGAllocs["g"])
	}
	accepts := func(j *structs.Job) { j.OverLimit = structs.OverLimitOpportunistic }
	x.wantClasses("a job that accepts it", x.decideOver(structs.OverLimitWait, "a", "accepts", 1, 1, accepts), 0, 1)
	x.wantClasses("one that wants no claim", x.decideOver(structs.OverLimitWait, "a", "class", 1, 1, func(j *structs.Job) { j.Class = structs.ClassOpportunistic }), 0, 1)

	// "ask" waits as well; what nobody asked for GPUs is never over the limit.
	x = newTenants(t, gives(t, "a", "socket", 1), nodes()...)
	x.wantClasses("6 single ones", x.decideOver(structs.OverLimitConfirm, "a", "six", 6, 1), 4, 0)
	x.wantClasses("without devices", x.decideOver(structs.OverLimitConfirm, "a", "plain", 3, 1, func(j *structs.Job) { schedtest.Task(j).Resources.Devices = nil }), 0, 3)
	x.wantClasses("shares", x.decideOver(structs.OverLimitConfirm, "a", "share", 1, 1, func(j *structs.Job) { schedtest.Task(j).Resources.Devices[0].Share = 500 }), 0, 0)
	x.wantClasses("another namespace", x.decideOver("", "b", "other", 3, 1), 0, 3)
	x.wantClasses("one that owns nothing", x.decideOver(structs.OverLimitWait, "c", "none", 1, 1), 0, 0)

	// What does not exceed the limit, and has no cell by other reasons, runs opportunistically: 2 GPUs of 4 single ones.
	x = newTenants(t, gives(t, "a", "gpu", 4), nodes()...)
	wants := func(j *structs.Job) {
		schedtest.Task(j).Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: "pcie", Required: true}
	}
	x.wantClasses("within the limit", x.decideOver(structs.OverLimitWait, "a", "pairs", 3, 2, wants), 0, 3)
}

// TestDoomedCells: cells that the hardware cannot hold lower the limit, and are named.
func TestDoomedCells(t *testing.T) {
	x := newTenants(t, gives(t, "a", "node", 2), eightGPUs("n1"), eightGPUs("n2"))
	e := x.pass.World().Edit()
	e.UpsertNode(eightGPUs("n2", down))
	x.pass = scheduler.NewPass(e.World())
	x.wantClasses("the first", x.decideOver(structs.OverLimitWait, "a", "first", 1, 8), 1, 0)
	plan := x.decideOver(structs.OverLimitWait, "a", "second", 1, 8)
	if x.wantClasses("the second", plan, 0, 0); !lacks(plan, `over the limit: namespace "a" owns 16 GPUs, 8 in guaranteed use`) ||
		!lacks(plan, `cells doomed: 8 GPUs of namespace "a" cannot be had at present`) {
		t.Errorf("the second lacks %v", plan.FailedTGAllocs["g"])
	}
	plan = x.decide("a", "guaranteed", 1, 8, func(j *structs.Job) { j.Class = structs.ClassGuaranteed })
	if x.wantClasses("a guaranteed one", plan, 0, 0); !lacks(plan, `withheld by class = "guaranteed"`) || !lacks(plan, "cells doomed") {
		t.Errorf("a guaranteed one lacks %v", plan.FailedTGAllocs["g"])
	}
}

// explainOver explains a job of a namespace as decideOver decides it.
func (x *tenants) explainOver(setting, namespace, id string, count, gpus int, change ...func(*structs.Job)) *structs.GroupExplanation {
	x.t.Helper()
	job := gpuJobOf(namespace, id, count, gpus)
	for _, f := range change {
		f(job)
	}
	in := scheduler.ExplainInput{Input: inputOf(job, &x.ids)}
	in.OverLimit = setting
	out, err := scheduler.Explain(x.pass.World(), in)
	if err != nil {
		x.t.Fatal(err)
	}
	return out.Groups[0]
}

// TestExplainOverLimit: an explanation names the limit, the cells that are doomed and the setting that withholds, and the smallest change.
func TestExplainOverLimit(t *testing.T) {
	remedy := func(g *structs.GroupExplanation, kind string) string {
		for _, r := range g.Smallest {
			if r.Kind == kind && r.All {
				return r.Text
			}
		}
		return ""
	}
	kinds := func(g *structs.GroupExplanation) (list []string) {
		for _, w := range g.Waits {
			list = append(list, w.Kind)
		}
		return list
	}
	const opportunistic = `run the job opportunistically (class = "opportunistic"): what it uses may be reclaimed at any time`
	x := newTenants(t, gives(t, "a", "socket", 1), eightGPUs("n1"), eightGPUs("n2"))
	x.decide("a", "first", 1, 4)
	g := x.explainOver(structs.OverLimitWait, "a", "more", 2, 4)
	if got := kinds(g); !slices.Contains(got, structs.ReasonOverLimit) || !slices.Contains(got, structs.ReasonWithheld) || slices.Contains(got, structs.ReasonDoomed) {
		t.Errorf("over the limit: %v", got)
	}
	if got := remedy(g, structs.RemedyCells); got != `2 more cells of level socket for namespace "a"` {
		t.Errorf("more cells: %q of %+v", got, g.Smallest)
	}
	if got := remedy(g, structs.RemedyClass); got != opportunistic {
		t.Errorf("another class: %q of %+v", got, g.Smallest)
	}
	g = x.explainOver(structs.OverLimitWait, "a", "gang", 6, 1, gang(0))
	if got := kinds(g); !slices.Contains(got, structs.ReasonOverLimit) || !slices.Contains(got, structs.ReasonWithheld) || remedy(g, structs.RemedyClass) == "" {
		t.Errorf("a gang over the limit: %v, %+v", got, g.Smallest)
	}
	if got := remedy(g, structs.RemedyCells); got != `2 more cells of level socket for namespace "a"` {
		t.Errorf("more cells for a gang: %q of %+v", got, g.Smallest)
	}

	// Everything is in use by others: 1 more cell takes it back, and another class does not help.
	x = newTenants(t, gives(t, "a", "node", 1), eightGPUs("n1"), eightGPUs("n2"))
	x.decide("a", "first", 1, 8)
	x.decide("b", "flood", 8, 1)
	g = x.explainOver("", "a", "second", 1, 8)
	if got := remedy(g, structs.RemedyCells); got != `1 more cell of level node for namespace "a"` || remedy(g, structs.RemedyClass) != "" {
		t.Errorf("1 more cell: %q of %+v", got, g.Smallest)
	}
	// No more cells can be owned than there are.
	g = x.explainOver("", "a", "two", 2, 8)
	if got := remedy(g, structs.RemedyCells); got != "" {
		t.Errorf("2 more of 1 that is left: %q", got)
	}
}

// TestExplainGuaranteed: an allocation that uses a claim is said to be guaranteed, and who may take it.
func TestExplainGuaranteed(t *testing.T) {
	x := newTenants(t, gives(t, "a", "socket", 1), eightGPUs("n1"))
	a := x.decide("a", "one", 1, 4).Place[0].Allocation(0)
	config := structs.DefaultSchedulerConfiguration()
	out := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: config})
	if text := strings.Join(out.Text, "\n"); out.Class != structs.ClassGuaranteed || len(out.MayLoseTo) != 0 ||
		!strings.Contains(text, `it uses a cell of level socket that namespace "a" owns`) || !strings.Contains(text, "it cannot be preempted: it is guaranteed") {
		t.Errorf("class %s, may lose to %+v:\n%s", out.Class, out.MayLoseTo, text)
	}
	config.PreemptionConfig.BatchSchedulerEnabled = true
	if out := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: config}); len(out.MayLoseTo) != 1 || !strings.Contains(out.MayLoseTo[0].Text, "only jobs of its namespace") {
		t.Errorf("with preemption: %+v", out.MayLoseTo)
	}
}

// TestReplacedOverLimit: what runs opportunistically and is updated destructively waits for a claim where its class or its namespace
// wants that, and runs on meanwhile; it is replaced as soon as there is one.
func TestReplacedOverLimit(t *testing.T) {
	c := newCluster(t)
	c.node("n1", schedtest.EightGPUs)
	give := func(level string) {
		e := c.w.Edit()
		owns(t, "default", level, 1)(e)
		c.w = e.World()
	}
	give("pcie")
	c.register(gpuJobOf("default", "train", 1, 4))
	c.eval()
	c.runAll()
	c.update(func(j *structs.Job) { destructive(j); j.Class = structs.ClassGuaranteed })
	plan := c.eval()
	c.wantPlan(0, 0, 0)
	if !lacks(plan, `withheld by class = "guaranteed"`) {
		t.Errorf("it lacks %v", plan.FailedTGAllocs["g"])
	}
	c.wantLive(1)
	give("socket")
	plan = c.eval()
	c.wantPlan(1, 1, 0)
	if g, o := classes(plan); g != 1 || o != 0 {
		t.Errorf("%d guaranteed, %d opportunistic", g, o)
	}
}

// TestGuaranteedWithoutCells: what is to be guaranteed waits while its namespace owns nothing, single instances and gangs, and is placed as soon
// as it does.
func TestGuaranteedWithoutCells(t *testing.T) {
	x := newTenants(t, func(*scheduler.Edit) {}, eightGPUs("n1"))
	class := func(j *structs.Job) { j.Class = structs.ClassGuaranteed }
	for _, change := range [][]func(*structs.Job){{class}, {class, gang(0)}} {
		plan := x.decide("a", "j", 2, 1, change...)
		if x.wantClasses("without cells", plan, 0, 0); !lacks(plan, `claim: namespace "a" owns no cells at present`) || !lacks(plan, `withheld by class = "guaranteed"`) {
			t.Errorf("it lacks %v", plan.FailedTGAllocs["g"])
		}
	}
	e := x.pass.World().Edit()
	owns(t, "a", "node", 1)(e)
	x.pass = scheduler.NewPass(e.World())
	x.wantClasses("with a node", x.decide("a", "j", 2, 1, class), 2, 0)
}
