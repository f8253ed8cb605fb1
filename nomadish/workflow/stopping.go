package workflow

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// errStopping reports that instances of jobs of a workflow that were stopped have not ended yet.
var errStopping = errors.New("instances of earlier jobs of the workflow are being stopped")

// Stopping returns the IDs of the instances for whose end a run waits before it starts anything more: those of jobs of the workflow that were stopped or purged and
// may still be running. What is registered meanwhile might run beside them, and use the same files. index is that at which any of them last changed.
func Stopping(s *state.Snapshot, ws *state.WatchSet, r *structs.WorkflowRun) (allocs []string, index uint64) {
	if !r.Awaits() {
		if _, waits := stages.Next(r, jobsOf(s, r)); !waits {
			return nil, 0
		}
	}
	list, index := stopping(s, ws, r)
	for _, a := range list {
		allocs = append(allocs, a.ID())
	}
	return allocs, index
}

// jobsOf returns the jobs of a run by the state.
func jobsOf(s *state.Snapshot, r *structs.WorkflowRun) stages.Jobs {
	all := sync.OnceValue(func() []*state.AllocRow {
		list, _ := stopping(s, nil, r)
		return list
	})
	return stages.Jobs{
		Progress: func(job string) stages.Progress { return ProgressOf(s, r.Namespace, job) },
		Stopping: func(job string) bool {
			return slices.ContainsFunc(all(), func(a *state.AllocRow) bool {
				id := a.JobID().ID
				return job == "" || id == job || !strings.HasPrefix(id, structs.WorkflowJobID(r.ID, r.Run, ""))
			})
		},
	}
}

// stopping returns the instances of jobs of a workflow that were stopped or purged and may still be running: of a run that was cancelled, or of a job with which
// somebody did so. An end that may never be reported is not waited for: on nodes that are down or disconnected, and of instances that no client has reported to run.
func stopping(s *state.Snapshot, ws *state.WatchSet, r *structs.WorkflowRun) (list []*state.AllocRow, index uint64) {
	add := func(id string, createdBefore uint64) {
		from := len(list)
		for a := range s.AllocRowsByJob(ws, r.Namespace, id) {
			index = max(index, a.ModifyIndex())
			if a.CreateIndex() >= createdBefore || !runsOn(a) {
				continue
			}
			if n := s.Node(ws, a.NodeID()); n != nil && n.Status == structs.NodeStatusReady {
				list = append(list, a)
			}
		}
		slices.SortFunc(list[from:], func(a, b *state.AllocRow) int { return strings.Compare(a.ID(), b.ID()) })
	}
	const all = ^uint64(0)
	stopped := map[string]bool{}
	for job := range s.Jobs(ws, r.Namespace, r.ID+"/", false) {
		if job.Stop && job.Workflow != nil && job.Workflow.ID == r.ID {
			stopped[job.ID] = true
			add(job.ID, all)
		}
	}
	for id, first := range s.EvaluatedJobs(r.Namespace, r.ID+"/") {
		if _, _, _, ok := structs.SplitWorkflowJobID(id); !ok || stopped[id] {
			continue
		}
		switch job := s.Job(nil, r.Namespace, id); {
		case job == nil: // it was purged: nothing but its instances and their evaluations names it any more
			add(id, all)
		case first < job.CreateIndex: // and registered again
			add(id, job.CreateIndex)
		}
	}
	return list, index
}

// runsOn reports whether a client may still run an allocation that the servers have stopped.
func runsOn(a *state.AllocRow) bool {
	return !a.ClientTerminal() && a.ClientStatus() != structs.AllocClientPending && a.ClientStatus() != structs.AllocClientUnknown
}
