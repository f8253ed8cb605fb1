package workflow

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// countedEach bounds the instances of a job that runs well of which each is looked at, to see whether it was started again.
const countedEach = 1000

// count states what the instances of a job do, and returns the index at which that last changed. cancelled is that the run was cancelled.
func count(ws *state.WatchSet, snap *state.Snapshot, namespace string, j *structs.WorkflowJobStatus, cancelled bool) uint64 {
	if j.Attempt == 0 {
		return 0
	}
	job := snap.Job(nil, namespace, j.ID) // its summary changes when its counts do
	if job != nil {
		j.Instances = job.Instances() // somebody may have changed it since it was registered
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
	var failure, before structs.LastFailure
	for _, a := range snap.AllocsByJob(ws, namespace, j.ID, false) {
		index = max(index, a.ModifyIndex)
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
		case a.ClientStatus == structs.AllocClientRunning:
			j.Running++
		case a.ClientStatus == structs.AllocClientComplete && a.DesiredStatus == structs.AllocDesiredRun:
			j.Complete++
		}
	}
	if failure.Text == "" {
		failure = before
	}
	j.Failure, j.FailureAlloc = failure.Text, failure.AllocID
	j.Complete = min(j.Complete, j.Instances)
	j.Removed = job == nil && j.State == structs.StageFailed
	j.Stopped = stopped && !cancelled && j.State == structs.StageFailed && j.Failed == 0
	return index
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
