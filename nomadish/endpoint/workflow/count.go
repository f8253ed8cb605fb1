package workflow

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// countedEach bounds the instances of a job that runs well of which each is looked at, to see whether it was started again, which takes 0.2 µs each.
const countedEach = 10_000

// count states what the instances of a job do, and returns the index at which that last changed. cancelled is that the run was cancelled.
func count(ws *state.WatchSet, snap *state.Snapshot, namespace string, j *structs.WorkflowJobStatus, cancelled bool) uint64 {
	if j.Attempt == 0 {
		return 0
	}
	job := snap.Job(nil, namespace, j.ID) // its summary changes when its counts do
	if job != nil {
		j.Instances = job.Instances() // somebody may have changed it since it was registered
		if job.Type == structs.JobTypeSysBatch {
			j.Instances = onNodes(ws, snap, job)
		}
	}
	if j.State == structs.StageComplete {
		j.Complete = j.Instances
		return 0
	}
	index, all := uint64(0), 0
	if summary := snap.JobSummary(ws, namespace, j.ID); summary != nil {
		index = summary.ModifyIndex
		for _, line := range summary.Summary { // order does not matter: sums
			j.Running += line.Running
			j.Complete += line.Complete
			j.Failed += line.Failed
			j.Queued += line.Queued
			all += line.Queued + line.Starting + line.Running + line.Complete + line.Failed + line.Lost + line.Unknown
		}
	}
	// The summary counts what was replaced, too, and as complete what was stopped to begin anew, as the mates of a gang are.
	// Nor does it know which were ended at their time limit, and which have failed and are tried again.
	each := j.State == structs.StageRunning && j.Instances <= countedEach
	if j.State == structs.StageFailed || each || j.Attempt > 1 || j.Failed > 0 || all > j.Instances || j.Complete > 0 && limited(job) {
		return max(index, countLast(ws, snap, namespace, j, cancelled))
	}
	j.Complete = min(j.Complete, j.Instances)
	return index
}

// onNodes is how many instances a sysbatch job has, which is one for each node that may run it: those that were placed, and those that wait for room.
func onNodes(ws *state.WatchSet, snap *state.Snapshot, job *structs.Job) int {
	n := 0
	for row := range snap.AllocRowsByJob(ws, job.Namespace, job.ID) {
		if row.CreateIndex() >= job.CreateIndex && row.NextAllocation() == "" {
			n++
		}
	}
	if summary := snap.JobSummary(ws, job.Namespace, job.ID); summary != nil {
		for _, line := range summary.Summary { // order does not matter: sums
			n += line.Queued
		}
	}
	return max(n, job.Instances())
}

// limited reports whether instances of a job may be ended at a time limit.
func limited(job *structs.Job) bool {
	return job != nil && slices.ContainsFunc(job.TaskGroups, func(g *structs.TaskGroup) bool { return g.MaxRunDuration > 0 })
}

// countLast states what the instances of a job's last attempt do, without those that others have replaced. What was stopped has not completed,
// however it ended.
func countLast(ws *state.WatchSet, snap *state.Snapshot, namespace string, j *structs.WorkflowJobStatus, cancelled bool) (index uint64) {
	job := snap.Job(ws, namespace, j.ID)
	version, stopped := uint64(0), false
	if job != nil {
		index, version, stopped = job.ModifyIndex, job.Version, job.Stop
	}
	if stopped && version > 0 { // that it was stopped is a version of its own
		version--
	}
	j.Running, j.Complete, j.Failed, j.TimedOut = 0, 0, 0, 0
	since := uint64(0) // what is older is of an earlier job of the name
	if job != nil {
		since = job.CreateIndex
	}
	var failure, before structs.LastFailure
	uneventful := uneventfulForms{}
	for row := range snap.AllocRowsByJob(ws, namespace, j.ID) {
		if row.CreateIndex() < since {
			continue
		}
		index = max(index, row.ModifyIndex())
		if row.JobVersion() >= version && uneventful.has(row) {
			countQuiet(row, j)
			continue
		}
		a := row.Whole()
		switch {
		case a.JobVersion < version:
			if a.JobVersion+1 == version && a.NextAllocation == "" && failedAtLast(a) {
				j.FailedBefore++
				before.Add(a)
			}
		case j.State == structs.StageRunning:
			countFailures(snap, a, j)
		}
		if a.JobVersion >= version {
			failure.Add(a)
		}
		switch {
		case a.JobVersion < version || a.NextAllocation != "":
		case timedOut(a):
			j.Failed++
			j.TimedOut++
		case a.ClientStatus == structs.AllocClientFailed:
			j.Failed++
		default:
			countQuiet(row, j)
		}
	}
	if failure.Text() == "" {
		failure = before
	}
	j.Failure, j.FailureAlloc = failure.Text(), failure.AllocID()
	j.Complete = min(j.Complete, j.Instances)
	j.Removed = job == nil && j.State == structs.StageFailed
	j.Stopped = stopped && !cancelled && j.State == structs.StageFailed && j.Failed == 0
	return index
}

// countQuiet counts an allocation that has not failed, if no other has replaced it.
func countQuiet(row *state.AllocRow, j *structs.WorkflowJobStatus) {
	switch status := row.ClientStatus(); {
	case row.NextAllocation() != "":
	case status == structs.AllocClientRunning:
		j.Running++
	case status == structs.AllocClientComplete && row.DesiredStatus() == structs.AllocDesiredRun:
		j.Complete++
	}
}

// uneventfulForms are what clients report of allocations of which nothing has failed or was ended at a time limit, and no task was started again, true, and of
// others, false. Most allocations of a job have one of a few forms, and to make one whole takes longer than all else.
type uneventfulForms map[state.ReportForm]bool

// has reports whether a row is such an allocation.
func (f uneventfulForms) has(row *state.AllocRow) bool {
	if row.ClientStatus() == structs.AllocClientFailed {
		return false
	}
	form := row.ReportForm()
	if form == (state.ReportForm{}) {
		return true
	}
	is, known := f[form]
	if !known {
		is = nothingHappened(row.Whole())
		f[form] = is
	}
	return is
}

func nothingHappened(a *structs.Allocation) bool {
	var failure structs.LastFailure
	failure.Add(a)
	for _, t := range a.TaskStates { // order does not matter: any will do
		if t != nil && t.Restarts > 0 {
			return false
		}
		if _, restarts := t.RestartsAt(); restarts {
			return false
		}
	}
	return failure.Text() == "" && a.ClientDescription != structs.DescMaxRunDuration
}

// timedOut reports whether an allocation was ended at its time limit.
func timedOut(a *structs.Allocation) bool {
	return a.ClientTerminal() && a.ClientDescription == structs.DescMaxRunDuration
}

// failedAtLast reports whether an allocation that nothing has replaced has failed.
func failedAtLast(a *structs.Allocation) bool {
	return timedOut(a) || a.ClientStatus == structs.AllocClientFailed
}

// countFailures adds how often the tasks of an allocation of a job that runs have failed, and when the next of them is tried again.
func countFailures(snap *state.Snapshot, a *structs.Allocation, j *structs.WorkflowJobStatus) {
	if timedOut(a) {
		return
	}
	retry := func(at int64) {
		if j.RetryTime == 0 || at < j.RetryTime {
			j.RetryTime = at
		}
	}
	for _, t := range a.TaskStates { // order does not matter: sums, and the first of some times
		if t == nil {
			continue
		}
		j.Failures += int(t.Restarts)
		if at, waits := t.RestartsAt(); waits && !a.Terminal() {
			retry(at)
		}
	}
	if a.ClientStatus != structs.AllocClientFailed || a.NextAllocation == "" && a.FollowupEvalID == "" { // one that nothing is to replace has failed for good
		return
	}
	if j.Failures++; a.NextAllocation != "" {
		return
	}
	if eval := snap.Eval(nil, a.FollowupEvalID); eval != nil && !eval.WaitUntil.IsZero() {
		retry(eval.WaitUntil.UnixNano())
	}
}
