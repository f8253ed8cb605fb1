package workflow

import (
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// ProgressOf returns how far a job is, by the state.
func ProgressOf(snap *state.Snapshot, namespace, id string) stages.Progress {
	job := snap.Job(nil, namespace, id)
	switch {
	case job == nil:
		return stages.Stopped
	case job.Status == structs.JobStatusRunning:
		return stages.Running
	case job.Status != structs.JobStatusDead:
		if s := snap.JobSummary(nil, namespace, id); s != nil && anyRan(s) {
			return stages.Running
		}
		return stages.Pending
	case job.Stop:
		return stages.Stopped
	case completed(snap, job):
		return stages.Complete
	}
	return stages.Failed
}

func anyRan(s *structs.JobSummary) bool {
	for _, line := range s.Summary { // order does not matter
		if line.Complete+line.Failed+line.Running+line.Lost > 0 {
			return true
		}
	}
	return false
}

// completed reports whether all instances of a dead job have completed under its newest version. One that was ended at its time limit has not: what
// follows needs its result. A sysbatch job has an instance on every node that fits, so that it is complete if none has failed.
func completed(snap *state.Snapshot, job *structs.Job) bool {
	done := map[string]map[string]bool{}
	for _, a := range snap.AllocsByJob(nil, job.Namespace, job.ID, false) {
		if a.JobVersion != job.Version {
			continue
		}
		late := a.ClientDescription == structs.DescMaxRunDuration
		well := a.ClientStatus == structs.AllocClientComplete && !late && (!a.ServerTerminal() || structs.EndedByThemselves(a.TaskStates))
		switch {
		case well && done[a.TaskGroup] == nil:
			done[a.TaskGroup] = map[string]bool{a.Name: true}
		case well:
			done[a.TaskGroup][a.Name] = true
		case job.PerNode() && a.NextAllocation == "" && (late || a.ClientStatus == structs.AllocClientFailed):
			return false
		}
	}
	for _, g := range job.TaskGroups {
		if !job.PerNode() && len(done[g.Name]) < g.Count {
			return false
		}
	}
	return true
}
