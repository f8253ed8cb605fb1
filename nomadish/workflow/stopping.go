package workflow

import (
	"errors"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// errStopping reports that instances of jobs of a workflow that were stopped have not ended yet.
var errStopping = errors.New("instances of earlier jobs of the workflow are being stopped")

// Stopping returns the IDs of the instances of jobs of a workflow that were stopped and may still be running: of a run that was cancelled, or of a job
// that somebody has stopped. What is registered meanwhile might run beside them, and use the same files. An end that may never be reported is
// not waited for: on nodes that are down or disconnected, and of instances that no client has reported to run. index is that at which any of them last
// changed.
func Stopping(s *state.Snapshot, ws *state.WatchSet, r *structs.WorkflowRun) (allocs []string, index uint64) {
	for job := range s.Jobs(ws, r.Namespace, r.ID+"/", false) {
		if !job.Stop || job.Workflow == nil || job.Workflow.ID != r.ID || !strings.HasPrefix(job.ID, r.ID+"/") {
			continue
		}
		for _, a := range s.AllocsByJob(ws, job.Namespace, job.ID, true) {
			index = max(index, a.ModifyIndex)
			if a.ClientTerminal() || a.ClientStatus == structs.AllocClientPending || a.ClientStatus == structs.AllocClientUnknown {
				continue
			}
			if n := s.Node(ws, a.NodeID); n != nil && n.Status == structs.NodeStatusReady {
				allocs = append(allocs, a.ID)
			}
		}
	}
	return allocs, index
}
