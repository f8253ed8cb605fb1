package workflow

import (
	"errors"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// errStopping reports that instances of jobs of a workflow that were stopped have not ended yet.
var errStopping = errors.New("instances of earlier jobs of the workflow are being stopped")

// stopping reports whether an instance of a job of a workflow that was stopped may still be running: of a run that was cancelled, or of a job that
// somebody has stopped. What is registered meanwhile might run beside it, and use the same files. An end that may never be reported
// is not waited for: on nodes that are down or disconnected, and of instances that no client has reported to run.
func stopping(snap *state.Snapshot, r *structs.WorkflowRun) bool {
	for job := range snap.Jobs(nil, r.Namespace, r.ID+"/", false) {
		if !job.Stop || job.Workflow == nil || job.Workflow.ID != r.ID || !strings.HasPrefix(job.ID, r.ID+"/") {
			continue
		}
		for _, a := range snap.AllocsByJob(nil, job.Namespace, job.ID, true) {
			if a.ClientTerminal() || a.ClientStatus == structs.AllocClientPending || a.ClientStatus == structs.AllocClientUnknown {
				continue
			}
			if n := snap.Node(nil, a.NodeID); n != nil && n.Status == structs.NodeStatusReady {
				return true
			}
		}
	}
	return false
}
