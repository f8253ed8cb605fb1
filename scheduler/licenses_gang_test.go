package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// gangOf has the instances of a job's group be a gang of which so many must run together.
func gangOf(least int) func(*structs.Job) {
	return func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{Min: least} }
}

// TestLicensesLentToGangs: a gang borrows what it lacks of licenses, and of room, for all of its first members or for none; those above min borrow one by
// one.
func TestLicensesLentToGangs(t *testing.T) {
	for _, c := range []struct {
		name               string
		count, least, want int
		change             func(*structs.WorkflowClaim)
	}{
		{"all", 8, 8, 8, nil},
		{"more than there are", 11, 11, 0, nil},
		{"above min", 12, 7, 10, nil},
		{"to others", 8, 8, 0, func(c *structs.WorkflowClaim) { c.Lend = []*structs.WorkflowLend{{To: "namespace:b"}} }},
		{"lend_max", 8, 8, 0, func(c *structs.WorkflowClaim) {
			c.LendMax = &structs.WorkflowResources{Licenses: map[string]int64{"vcs": 3}}
		}},
	} {
		w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
		claim := *w.claim
		if w.claim = &claim; c.change != nil {
			c.change(w.claim)
		}
		w.set()
		w.others("a", "a", c.count, gangOf(c.least))
		if n := w.running("a"); n != c.want {
			t.Errorf("%s: %d run, want %d: %s", c.name, n, c.want, w.waits())
		}
		if c.want > 0 {
			w.wantShare(0, int64(c.want-4), int64(10-c.want))
		}
	}
	w := newWorkflows(t, 8, 2, &structs.WorkflowLend{To: "namespace:a"})
	w.flood("a", 7, gangOf(7))
	w.wantPart(0, 5, 1)
}

// TestLicensesTakenBackFromGangs: of a gang that borrows as few leave as it can do without, else all of it, wherever they run; and nobody else then.
func TestLicensesTakenBackFromGangs(t *testing.T) {
	for _, c := range []struct{ least, need, gang, single int }{
		{4, 2, 6, 2}, // the first named gives first
		{8, 2, 0, 2}, // and if it is a gang that does without nobody, it leaves whole
		{4, 4, 4, 2},
		{4, 6, 4, 0},
		{8, 6, 0, 2}, // with the gang more than enough leaves: the others stay
	} {
		w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"}, &structs.WorkflowLend{To: "namespace:b"})
		w.others("a", "a", 8, gangOf(c.least))
		w.others("b", "b", 2)
		stage := schedtest.Job(structs.JobTypeBatch, 1, licensed(vcs(c.need)))
		stage.Canonicalize()
		if start := scheduler.StartStage(w.w, "default/wf", scheduler.WorkflowStage{stage}, w.now.UnixNano()); start.Lacking {
			t.Errorf("%+v: it lacks something", c)
		}
		w.starts("s", c.need)
		if w.running("wf/1/s") != 1 || w.running("a") != c.gang || w.running("b") != c.single {
			t.Errorf("%+v: %d of the gang and %d others run, %d of the stage: %s", c, w.running("a"), w.running("b"), w.running("wf/1/s"), w.waits())
		}
		w.licensesConserved()
	}
}

// TestLicensesOfSuspendedGang: a member above min that was requeued waits while the rest of its gang is suspended, and comes with it.
func TestLicensesOfSuspendedGang(t *testing.T) {
	w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
	w.submit("", "j", 4, licensed(vcs(2), gangOf(3), func(j *structs.Job) { j.Namespace, j.Reclaim = "a", structs.ReclaimSuspend }))
	w.starts("s1", 4)
	w.wantOn("j, j, j, wf/1/s1") // the fourth was requeued
	w.complete("s1")
	w.starts("s2", 6)
	w.decide("j")
	w.wantOn("j suspended, j suspended, j suspended, wf/1/s2") // 4 licenses are free, for two of three
	if why := w.waits(); !strings.Contains(why, "others of its gang have no room") {
		t.Errorf("%q", why)
	}
	w.complete("s2")
	w.decide("j")
	w.wantOn("j, j, j, j")
}

// TestLicensesOfBandsAndGangs: a higher band takes licenses from a gang of a lower one, as many as that can do without or all; and a gang takes them for all
// of its first members, or none.
func TestLicensesOfBandsAndGangs(t *testing.T) {
	of := func(priority int) func(*structs.Job) { return func(j *structs.Job) { j.Priority = priority } }
	for _, c := range []struct{ least, need, gang, single int }{
		{4, 1, 6, 3}, // one is free
		{4, 3, 4, 3},
		{4, 4, 0, 3}, // whole; the single ones are of a higher priority
		{6, 2, 0, 3},
		{6, 8, 0, 2},
		{6, 11, 6, 3}, // stopped for nothing
	} {
		for _, members := range []int{1, c.need} {
			l := newLicenses(t, map[string]int64{"vcs": 10})
			l.config.PreemptionConfig.BatchSchedulerEnabled = true
			l.configure()
			l.submit("", "gang", 6, licensed(vcs(1), of(5), gangOf(c.least)))
			l.submit("", "single", 3, licensed(vcs(1), of(10)))
			l.submit("", "high", members, licensed(vcs(c.need/members), of(90), func(j *structs.Job) {
				if members > 1 {
					gangOf(members)(j)
				}
			}))
			if got := [2]int{l.running("gang"), l.running("single")}; got != [2]int{c.gang, c.single} || (l.running("high") == members) != (c.need <= 10) {
				t.Errorf("%+v: %v of the gang and single ones run, %d of %d for which they leave: %s", c, got, l.running("high"), members, l.waits())
			}
			if n := l.used("vcs"); n > 10 {
				t.Errorf("%+v: %d are used", c, n)
			}
		}
	}
}

// TestLicensesOfGangGoneSince: a member that a gang ran on without stays gone when the rest of it has left for another instance.
func TestLicensesOfGangGoneSince(t *testing.T) {
	w := newLicensedWorkflow(t)
	w.config.PreemptionConfig.BatchSchedulerEnabled = true
	w.configure()
	w.others("a", "a", 3, gangOf(2), func(j *structs.Job) { j.Priority = 20 })
	w.others("c", "c", 3, func(j *structs.Job) { j.Priority = 50 })
	w.wantOn("c, c, c")
}

// TestLicensesOfGangThatRunsInPart: of a gang of which a member is still suspended no more leave for a stage than those that run can do without, or all.
func TestLicensesOfGangThatRunsInPart(t *testing.T) {
	w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
	w.others("c", "c", 4)
	w.submit("", "gang", 3, licensed(vcs(2), gangOf(2), func(j *structs.Job) { j.Namespace, j.Reclaim = "a", structs.ReclaimSuspend }))
	w.starts("s1", 6)
	w.complete("s")
	w.starts("s2", 2)
	if w.decide("gang"); w.running("gang") != 2 {
		t.Fatalf("%d members go on beside a stage that needs 2 of 6, want 2: %s", w.running("gang"), w.on())
	}
	w.complete("s")
	if w.starts("s3", 3); w.running("gang") != 0 || w.running("wf/1/s3") != 1 {
		t.Errorf("%d members run on, and 2 must: %s", w.running("gang"), w.on())
	}
}
