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
		allocs = append(allocs, a.ID)
	}
	return allocs, index
}

// jobsOf returns the jobs of a run by the state.
func jobsOf(s *state.Snapshot, r *structs.WorkflowRun) stages.Jobs {
	all := sync.OnceValue(func() []*structs.Allocation {
		list, _ := stopping(s, nil, r)
		return list
	})
	return stages.Jobs{
		Progress: func(job string) stages.Progress { return ProgressOf(s, r.Namespace, job) },
		Stopping: func(job string) bool {
			return slices.ContainsFunc(all(), func(a *structs.Allocation) bool {
				return job == "" || a.JobID == job || !strings.HasPrefix(a.JobID, structs.WorkflowJobID(r.ID, r.Run, ""))
			})
		},
	}
}

// stopping returns the instances of jobs of a workflow that were stopped or purged and may still be running: of a run that was cancelled, or of a job with which
// somebody did so. An end that may never be reported is not waited for: on nodes that are down or disconnected, and of instances that no client has reported to run.
func stopping(s *state.Snapshot, ws *state.WatchSet, r *structs.WorkflowRun) (list []*structs.Allocation, index uint64) {
	add := func(id string, createdBefore uint64) {
		for _, a := range s.AllocsByJob(ws, r.Namespace, id, true) {
			index = max(index, a.ModifyIndex)
			if a.CreateIndex >= createdBefore || !runsOn(a) {
				continue
			}
			if n := s.Node(ws, a.NodeID); n != nil && n.Status == structs.NodeStatusReady {
				list = append(list, a)
			}
		}
	}
	const all = ^uint64(0)
	stopped := map[string]bool{}
	for job := range s.Jobs(ws, r.Namespace, r.ID+"/", false) {
		if job.Stop && job.Workflow != nil && job.Workflow.ID == r.ID {
			stopped[job.ID] = true
			add(job.ID, all)
		}
	}
	for _, id := range purged(s, r, stopped) {
		created := all
		if job := s.Job(ws, r.Namespace, id); job != nil { // it was registered again
			created = job.CreateIndex
		}
		add(id, created)
	}
	return list, index
}

// runsOn reports whether a client may still run an allocation that the servers have stopped.
func runsOn(a *structs.Allocation) bool {
	return !a.ClientTerminal() && a.ClientStatus != structs.AllocClientPending && a.ClientStatus != structs.AllocClientUnknown
}

// purged returns the IDs of jobs of a workflow that were purged and of which instances have not ended, in order. Nothing but these instances names them any more.
func purged(s *state.Snapshot, r *structs.WorkflowRun, without map[string]bool) (ids []string) {
	seen := map[string]bool{}
	for a := range s.AllocRows(nil, r.Namespace) {
		id := a.JobID().ID
		if !strings.HasPrefix(id, r.ID+"/") || a.ClientTerminal() || seen[id] || without[id] {
			continue
		}
		if _, _, _, ok := structs.SplitWorkflowJobID(id); !ok {
			continue
		}
		if job := s.Job(nil, r.Namespace, id); job == nil || a.CreateIndex() < job.CreateIndex {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
