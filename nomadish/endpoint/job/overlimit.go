package job

import (
	"context"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// checkLimit refuses a job of which an instance would run beyond what its namespace owns, where the virtual cluster wants
// that confirmed (over_limit = "ask"). A job that was registered with opportunistic=true has it.
func (e *Endpoint) checkLimit(ctx context.Context, snap *state.Snapshot, job *structs.Job) error {
	v := snap.VirtualClusters().Get(nil, job.Namespace)
	if v == nil || v.OverLimit != structs.OverLimitConfirm || job.OverLimit == structs.OverLimitOpportunistic || job.Class != structs.ClassAuto && job.Class != "" {
		return nil
	}
	select {
	case e.planning <- struct{}{}:
		defer func() { <-e.planning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	now := e.Now()
	eval := structs.NewEval(e.NewID(), job, structs.EvalTriggerJobRegister, now.UnixNano())
	in := snap.Input(job.NamespacedID(), job, snap.AllocsByJob(nil, job.Namespace, job.ID, false), &state.InputOptions{Now: now, NewID: e.NewID, Typical: e.Typical})
	in.Requests, in.SnapshotIndex = nil, 0
	plan, err := scheduler.Schedule(snap.World(), eval, in)
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "job %q: whether it is over the limit of its namespace: %w", job.ID, err)
	}
	for _, m := range plan.FailedTGAllocs { // order does not matter: any will do
		for reason := range m.DimensionExhausted { // likewise
			if strings.HasPrefix(reason, "withheld by over_limit") {
				return structs.Errorf(structs.CodeConflict, "job %q: it requests more than namespace %q owns; what is beyond it may be reclaimed at any time", job.ID, job.Namespace).
					WithHint("repeat with -opportunistic (opportunistic=true), or request less")
			}
		}
	}
	return nil
}
