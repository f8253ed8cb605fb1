package scheduler_test

import (
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
	x.wantClasses("6 single ones", x.decideOver(structs.OverLimitAsk, "a", "six", 6, 1), 4, 0)
	x.wantClasses("without devices", x.decideOver(structs.OverLimitAsk, "a", "plain", 3, 1, func(j *structs.Job) { schedtest.Task(j).Resources.Devices = nil }), 0, 3)
	x.wantClasses("shares", x.decideOver(structs.OverLimitAsk, "a", "share", 1, 1, func(j *structs.Job) { schedtest.Task(j).Resources.Devices[0].Share = 500 }), 0, 0)
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
