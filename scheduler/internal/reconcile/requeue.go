package reconcile

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Why an instance was requeued, as its successor has it.
const (
	// NeededMemory is of one that was suspended, and did not release its memory so.
	NeededMemory = "its node needed the memory"
	// notSuspended is of one that was to be suspended and ended instead.
	notSuspended = "it could not be suspended"
)

// PastLimit is of one that was suspended for longer than a limit.
func PastLimit(limit time.Duration) string {
	text := limit.String() // 1h0m0s
	for _, rest := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, rest) {
			text = text[:len(text)-2]
		}
	}
	return "suspended for longer than " + text
}

// Requeues is how often the instances of a job were requeued: what the allocations that were placed last for them record.
type Requeues struct {
	perNode bool
	last    map[instance]*structs.Allocation
}

// instance names an instance of a job: by its group and index, and of a job that has one on each node by the node.
type instance struct {
	group, nodeID string
	index         int
}

func (r *Requeues) instance(group string, index int, nodeID string) instance {
	if r.perNode {
		return instance{group, nodeID, 0}
	}
	return instance{group, "", index}
}

// requeuesOf returns how often the instances of a job were requeued. Most jobs' were not, and need no table.
func requeuesOf(job *structs.Job, allocs []*structs.Allocation) (r Requeues) {
	some := false
	for _, a := range allocs {
		some = some || a.Requeues > 0 || FailedToSuspend(a)
	}
	if job == nil || !some {
		return r
	}
	r.perNode = job.PerNode()
	for _, a := range allocs {
		if a.CreateIndex < job.CreateIndex { // of a job of the same name that was purged
			continue
		}
		at := r.instance(a.TaskGroup, a.Index(), a.NodeID)
		if was := r.last[at]; was == nil || cmp.Or(cmp.Compare(was.CreateIndex, a.CreateIndex), strings.Compare(was.ID, a.ID)) < 0 {
			world.PutInto(&r.last, at, a)
		}
	}
	return r
}

// Of returns how often an instance was requeued, and why it was the last time.
func (r *Requeues) Of(group string, index int, nodeID string) (times int32, reason string) {
	if len(r.last) == 0 {
		return 0, ""
	}
	switch was := r.last[r.instance(group, index, nodeID)]; {
	case was == nil:
		return 0, ""
	case FailedToSuspend(was):
		return bounded(was.Requeues + 1), notSuspended
	default:
		return bounded(was.Requeues), was.RequeueReason
	}
}

func bounded(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) } // bounded
