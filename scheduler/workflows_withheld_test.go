package scheduler_test

import (
	"maps"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestWithheldBesideLicense: GPUs are not reserved beside the cells of a namespace with over_limit = "wait", either, where the cells hold them and a license is missing.
// Where bands preempt, the license is taken from lower ones, beside who leaves the cells.
func TestWithheldBesideLicense(t *testing.T) {
	for _, c := range []struct {
		preempts bool
		priority int // of who uses the license
		want     map[string]int
	}{{false, 10, nil}, {true, 60, nil}, {true, 10, map[string]int{"lic": 1, "cells": 5}}} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		x.config.PreemptionConfig.BatchSchedulerEnabled = c.preempts
		x.configure()
		(&licenses{x.projects}).set("vcs", 1)
		x.submit("", "lic", 1, licensed(vcs(1), func(j *structs.Job) { j.Namespace, j.Priority = "others", c.priority }))
		x.submit("", "cells", 8, gpusIn("others", 1), func(j *structs.Job) { j.Priority = 70 })
		x.owns("default", "node", 1)
		job := schedtest.Job(structs.JobTypeBatch, 1, licensed(vcs(1), gpusIn("default", 5)), func(j *structs.Job) { j.ID = "wf/1/0" })
		job.Canonicalize()
		claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 60}
		e := x.w.Edit()
		scheduler.SetWorkflow(e, claim)
		x.w, x.workflows.workflows[claim.Key()] = e.World(), claim
		bands := x.bands()
		bands.OverLimit = func(string) string { return structs.OverLimitWait }
		got := scheduler.ReserveOrPreempt(x.w, "default/wf", "default", []scheduler.WorkflowStage{{job}}, structs.WorkflowReserve{Rule: structs.ReserveMax}, false, bands)
		if c.want == nil {
			if got.Posted || !got.Withheld || len(got.Parts) > 0 || got.Missing != `1 of license "vcs" is missing` {
				t.Errorf("%+v: posted %v, withheld %v, %q on %+v", c, got.Posted, got.Withheld, got.Missing, got.Parts)
			}
			continue
		}
		if left := x.left(got); !got.Posted || !maps.Equal(left, c.want) || len(got.Parts) != 1 || got.Parts[0].CellLevel != "node" || len(got.Licenses) != 1 {
			t.Errorf("%+v: posted %v, %v leave, %q on %+v", c, got.Posted, left, got.Missing, got.Parts)
		}
		if why := x.post(claim, got); why != "" {
			t.Errorf("%+v: %s", c, why)
		}
	}
}
