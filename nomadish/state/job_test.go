package state

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestJobVersions(t *testing.T) {
	w := newWorld(t)
	j := w.register(job("web")).Job(nil, "default", "web")
	check(t, "first version", j.Version, 0)
	check(t, "create index", j.CreateIndex, 1)
	check(t, "status", j.Status, structs.JobStatusPending)
	check(t, "submit time", j.SubmitTime, 1e9)

	j = w.register(job("web")).Job(nil, "default", "web")
	check(t, "version of the same specification", j.Version, 0)
	check(t, "its modify index", j.JobModifyIndex, 1)

	changed := job("web")
	changed.Priority = 70
	j = w.register(changed).Job(nil, "default", "web")
	check(t, "version of a changed specification", j.Version, 1)
	check(t, "create index", j.CreateIndex, 1)
	check(t, "job modify index", j.JobModifyIndex, 3)

	for i := range 9 {
		next := job("web")
		next.Priority = 10 + i
		w.register(next)
	}
	versions := w.store.Snapshot().JobVersions(nil, "default", "web")
	check(t, "versions kept", len(versions), structs.DefaultJobTrackedVersions)
	for i, v := range versions {
		check(t, fmt.Sprintf("version at %d", i), v.Version, uint64(10-i))
	}
	check(t, "an old version", w.store.Snapshot().JobVersion("default", "web", 3), nil)
}

func TestVersionsThatRunAreKept(t *testing.T) {
	w := newWorld(t, Options{JobVersions: 2})
	w.node("n")
	w.register(job("web"))
	ids := w.place("web", 0, "n", "s", 1)
	for i := range 4 {
		next := job("web")
		next.Priority = 10 + i
		w.register(next)
	}
	snap := w.store.Snapshot()
	check(t, "versions kept", len(snap.JobVersions(nil, "default", "web")), 3)
	if a := snap.Alloc(nil, ids[0]); a.Job == nil || a.Job.Version != 0 {
		t.Fatalf("the running allocation's job is %+v", a.Job)
	}
	w.report(structs.AllocClientComplete, ids...)
	next := job("web")
	next.Priority = 99
	check(t, "versions kept after it ended", len(w.register(next).JobVersions(nil, "default", "web")), 2)
}

func TestJobCheckIndex(t *testing.T) {
	w := newWorld(t)
	w.refuses(&structs.JobRegisterEntry{Job: job("web"), EnforceIndex: true, CheckIndex: 5}, structs.CodeConflict)
	w.must(&structs.JobRegisterEntry{Job: job("web"), EnforceIndex: true})
	w.refuses(&structs.JobRegisterEntry{Job: job("web"), EnforceIndex: true}, structs.CodeConflict)
	w.refuses(&structs.JobRegisterEntry{Job: job("web"), EnforceIndex: true, CheckIndex: 1}, structs.CodeConflict)
	w.must(&structs.JobRegisterEntry{Job: job("web"), EnforceIndex: true, CheckIndex: 2})
}

func TestJobsThatCannotBeStored(t *testing.T) {
	f := func(what string, e *structs.JobRegisterEntry) {
		t.Run(what, func(t *testing.T) { newWorld(t).refuses(e, structs.CodeBadRequest) })
	}
	with := func(change func(*structs.Job)) *structs.JobRegisterEntry {
		j := job("web")
		change(j)
		return &structs.JobRegisterEntry{Job: j}
	}
	f("no job", &structs.JobRegisterEntry{})
	f("no ID", with(func(j *structs.Job) { j.ID = "" }))
	f("no namespace", with(func(j *structs.Job) { j.Namespace = "" }))
	f("zero byte", with(func(j *structs.Job) { j.ID = "a\x00b" }))
	f("missing group", with(func(j *structs.Job) { j.TaskGroups = append(j.TaskGroups, nil) }))
	f("missing task", with(func(j *structs.Job) { j.TaskGroups[0].Tasks = append(j.TaskGroups[0].Tasks, nil) }))
	f("evaluation of nothing", &structs.JobRegisterEntry{Job: job("web"), Eval: &structs.Evaluation{ID: "e"}})
}

func TestStopPurgeAndComeBack(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	ids := w.place("web", 0, "n", "s", 2)
	snap := w.must(&structs.JobDeregisterEntry{
		Namespace: "default", JobID: "web", NoShutdownDelay: true, Eval: eval("e1", "web", structs.EvalStatusPending), Time: 1,
	})
	j := snap.Job(nil, "default", "web")
	check(t, "stopped", j.Stop, true)
	check(t, "version of the stop", j.Version, 1)
	check(t, "status while it runs", j.Status, structs.JobStatusRunning)
	check(t, "evaluation's job index", snap.Eval(nil, "e1").JobModifyIndex, j.JobModifyIndex)
	if d := snap.Alloc(nil, ids[0]).DesiredTransition; d.NoShutdownDelay == nil || !*d.NoShutdownDelay {
		t.Error("its allocations keep their shutdown delay")
	}
	w.report(structs.AllocClientComplete, ids...)
	snap = w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e1", "web", structs.EvalStatusComplete)}})
	check(t, "status at the end", snap.Job(nil, "default", "web").Status, structs.JobStatusDead)
	check(t, "version of a second stop", w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web"}).Job(nil, "default", "web").Version, 1)

	snap = w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true})
	check(t, "purged job", snap.Job(nil, "default", "web"), nil)
	check(t, "its summary", snap.JobSummary(nil, "default", "web"), nil)
	check(t, "its versions", len(snap.JobVersions(nil, "default", "web")), 0)
	check(t, "its allocations", len(snap.AllocsByJob(nil, "default", "web", true)), 2)
	w.refuses(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web"}, structs.CodeNotFound)

	snap = w.register(job("web"))
	check(t, "the new job's version is past the old one's allocations", snap.Job(nil, "default", "web").Version, 1)
	check(t, "allocations of the new job", len(snap.AllocsByJob(nil, "default", "web", false)), 0)
	check(t, "the old ones' job", snap.Alloc(nil, ids[0]).Job, nil)
}

func TestStopShadowsTheSpecification(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web"})
	j := w.register(job("web")).Job(nil, "default", "web")
	check(t, "stopped", j.Stop, false)
	check(t, "version", j.Version, 2)
}

func TestScale(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	scale := func(group string, count int64) *structs.JobScaleEntry {
		return &structs.JobScaleEntry{
			Namespace: "default", JobID: "web", Group: group, Count: &count, Event: &structs.ScalingEvent{Message: fmt.Sprint(count)}, Time: 9,
		}
	}
	j := w.must(scale("web", 5)).Job(nil, "default", "web")
	check(t, "count", j.TaskGroups[0].Count, 5)
	check(t, "version", j.Version, 1)
	check(t, "count of the version before", w.store.Snapshot().JobVersion("default", "web", 0).TaskGroups[0].Count, 2)
	for range 30 {
		w.must(scale("web", 5))
	}
	check(t, "version after the same again", w.store.Snapshot().Job(nil, "default", "web").Version, 1)
	events := w.must(scale("web", 6)).ScalingEvents(nil, "default", "web")["web"]
	check(t, "events kept", len(events), maxScalingEvents)
	check(t, "newest event", events[0].Message, "6")
	check(t, "its index", events[0].CreateIndex, w.index)
	w.refuses(scale("db", 1), structs.CodeBadRequest)
	w.refuses(scale("web", -1), structs.CodeBadRequest)
	w.refuses(scale("web", 1<<40), structs.CodeBadRequest)
	w.refuses(&structs.JobScaleEntry{Namespace: "default", JobID: "none"}, structs.CodeNotFound)
	w.must(&structs.JobScaleEntry{Namespace: "default", JobID: "web", Group: "web", Event: &structs.ScalingEvent{Error: true}})
}

func TestSubmissions(t *testing.T) {
	w := newWorld(t, Options{JobVersions: 1})
	w.must(&structs.JobRegisterEntry{Job: job("web"), Submission: &structs.JobSubmission{Source: "zero"}})
	check(t, "source", w.store.Snapshot().JobSubmission("default", "web", 0).Source, "zero")
	next := job("web")
	next.Priority = 1
	snap := w.must(&structs.JobRegisterEntry{Job: next, Submission: &structs.JobSubmission{Source: "one"}})
	check(t, "source", snap.JobSubmission("default", "web", 1).Source, "one")
	check(t, "of a version that is gone", snap.JobSubmission("default", "web", 0), nil)
}

func TestJobStatus(t *testing.T) {
	f := func(what, typ string, change func(w *world), want string) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.node("n")
			j := job("web")
			j.Type = typ
			if typ == "periodic" {
				j.Type, j.Periodic = structs.JobTypeBatch, &structs.PeriodicConfig{Enabled: true}
			}
			w.register(j)
			change(w)
			check(t, "status", w.store.Snapshot().Job(nil, "default", "web").Status, want)
		})
	}
	open := func(w *world) {
		w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e", "web", structs.EvalStatusPending)}})
	}
	done := func(w *world) {
		w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval("e", "web", structs.EvalStatusComplete)}})
	}
	placed := func(w *world) { w.place("web", 0, "n", "s", 1) }
	ended := func(w *world) { w.report(structs.AllocClientComplete, w.place("web", 0, "n", "s", 1)...) }
	stopped := func(w *world) { w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web"}) }

	f("new", "service", func(*world) {}, structs.JobStatusPending)
	f("being decided", "service", open, structs.JobStatusPending)
	f("decided, nothing to do", "service", done, structs.JobStatusDead)
	f("placed", "service", placed, structs.JobStatusRunning)
	f("ended", "batch", ended, structs.JobStatusDead)
	f("ended, being decided", "batch", func(w *world) { ended(w); open(w) }, structs.JobStatusPending)
	f("stopped", "service", stopped, structs.JobStatusDead)
	f("system job without nodes", "system", done, structs.JobStatusPending)
	f("stopped system job", "system", stopped, structs.JobStatusDead)
	f("periodic", "periodic", func(*world) {}, structs.JobStatusRunning)
	f("stopped periodic", "periodic", stopped, structs.JobStatusDead)
}

func TestSummary(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	line := func() structs.TaskGroupSummary {
		return w.store.Snapshot().JobSummary(nil, "default", "web").Summary["web"]
	}
	check(t, "new", line(), structs.TaskGroupSummary{})
	waiting := eval("e", "web", structs.EvalStatusBlocked)
	waiting.QueuedAllocations = map[string]int{"web": 3}
	w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{waiting}})
	check(t, "waiting", line(), structs.TaskGroupSummary{Queued: 3})
	ids := w.place("web", 0, "n", "s", 4)
	check(t, "placed", line(), structs.TaskGroupSummary{Queued: 3, Starting: 4})
	w.report(structs.AllocClientRunning, ids...)
	w.report(structs.AllocClientFailed, ids[0])
	w.report(structs.AllocClientComplete, ids[1])
	w.report(structs.AllocClientUnknown, ids[2])
	check(t, "reported", line(), structs.TaskGroupSummary{Queued: 3, Running: 1, Failed: 1, Complete: 1, Unknown: 1})
	index := w.index
	check(t, "modify index", w.store.Snapshot().JobSummary(nil, "default", "web").ModifyIndex, index)
	w.node("m")
	check(t, "modify index after something else", w.store.Snapshot().JobSummary(nil, "default", "web").ModifyIndex, index)
	finished := eval("e", "web", structs.EvalStatusComplete)
	finished.QueuedAllocations = map[string]int{}
	w.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{finished}})
	check(t, "all placed", line().Queued, 0)
}

// TestSummaryOfPurgedJob: what an earlier job of the ID ran is not counted as the new one's, however it ends.
func TestSummaryOfPurgedJob(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	ids := w.place("web", 0, "n", "s", 3)
	w.report(structs.AllocClientRunning, ids...)
	w.report(structs.AllocClientComplete, ids[0])
	w.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true})
	w.register(job("web"))
	line := func() structs.TaskGroupSummary {
		return w.store.Snapshot().JobSummary(nil, "default", "web").Summary["web"]
	}
	check(t, "new", line(), structs.TaskGroupSummary{})
	w.report(structs.AllocClientComplete, ids[1])
	w.place("web", 1, "n", "later", 2)
	w.report(structs.AllocClientFailed, ids[2])
	check(t, "its own", line(), structs.TaskGroupSummary{Starting: 2})
}

func TestJobStability(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	next := job("web")
	next.Priority = 70
	w.register(next)
	for version := range uint64(2) {
		for _, stable := range []bool{true, false} {
			w.must(&structs.JobStabilityEntry{Namespace: "default", JobID: "web", Version: version, Stable: stable})
			snap := w.store.Snapshot()
			check(t, "stable", snap.JobVersion("default", "web", version).Stable, stable)
			check(t, "versions", len(snap.JobVersions(nil, "default", "web")), 2)
			check(t, "the newest version", snap.Job(nil, "default", "web").Version, 1)
		}
	}
}
