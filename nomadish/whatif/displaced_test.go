package whatif

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestDisplaced: a job that runs on a node that is lost, or drained, is listed as displaced, with when it runs again.
func TestDisplaced(t *testing.T) {
	add := &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 1, Like: "node-0"}, After: 2 * time.Minute}
	for why, ch := range map[string]*structs.WhatIfChange{
		"lost": {Lose: "node-0", After: time.Minute}, "drained": {Drain: &structs.WhatIfDrain{Node: "node-0", DrainSpec: structs.DrainSpec{Deadline: time.Minute}}},
	} {
		w, err := Run(t.Context(), fullNode(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{ch, add}}, Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		left, back := now.Add(time.Minute), now.Add(2*time.Minute)
		x := w.After.Displaced
		if len(x) != 1 || x[0].Name != "low.g[0]" || x[0].For != why || x[0].NodeName != "node-0" || x[0].Time < left.UnixNano() || x[0].Back < back.UnixNano() {
			t.Errorf("%s: %+v", why, x)
		}
		if len(w.Before.Displaced)+len(w.After.Taken) != 0 {
			t.Errorf("%s: without %+v; taken %+v", why, w.Before.Displaced, w.After.Taken)
		}
	}
}

// TestDisplacedOfSystemJobs: the instances of a system job have one name and a node each. Each that is displaced is listed, and none runs again on the node of
// another.
func TestDisplacedOfSystemJobs(t *testing.T) {
	l := testcluster.New(1, state.Options{})
	for i := range 3 {
		l.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node(fmt.Sprint("node-", i), 1000), Time: now.UnixNano(), EvalSeed: "e"})
	}
	sys := testcluster.Job("sys", structs.JobTypeSystem, 1)
	l.Put(t, &structs.JobRegisterEntry{Job: sys, Eval: structs.NewEval("eval-sys", sys, structs.EvalTriggerJobRegister, now.UnixNano()), Time: now.UnixNano()})
	w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{
		{Lose: "node-0", After: time.Minute}, {Lose: "node-1", After: time.Minute}, {AddNodes: &structs.WhatIfNodes{Count: 1, Like: "node-2"}, After: 2 * time.Minute},
		{Drain: &structs.WhatIfDrain{Node: "node-2", DrainSpec: structs.DrainSpec{Deadline: time.Minute}}, After: 3 * time.Minute},
	}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]bool{}
	for _, x := range w.After.Displaced {
		nodes[x.NodeName] = true
		if x.Name != "sys.g[0]" || x.Back != 0 {
			t.Errorf("%+v", x)
		}
	}
	if len(nodes) != 3 || len(w.After.Displaced) != 3 {
		t.Errorf("displaced: %+v", w.After.Displaced)
	}
}
