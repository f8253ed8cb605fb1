package structs

import (
	"reflect"
	"testing"
)

// TestPlanCommitOlder: what servers without projects would pass over is left out, and nothing else; the entry itself stays as it is.
func TestPlanCommitOlder(t *testing.T) {
	entry := func(times int, why string, suspended int64) *PlanCommit {
		return &PlanCommit{Plans: []*JudgedPlan{
			{EvalID: "a", Stop: []*AllocStop{{AllocID: "1", Reclaim: ReclaimSuspend, SuspendedAt: suspended}, {AllocID: "2", Reclaim: ReclaimRequeue, RequeueReason: why}}},
			{EvalID: "b", Place: []*PlacementBatch{{JobID: "j", Instances: []Instance{{Index: 3, Requeues: int32(times), RequeueReason: why}, {Index: 4}}}, {JobID: "k"}}},
		}}
	}
	is, was := entry(2, "for others", 7), entry(2, "for others", 7)
	older, since := is.Older()
	if want := entry(0, "", 0); !reflect.DeepEqual(older, want) || since != LogProjectUpsert {
		t.Errorf("%+v, since type %d", older, since)
	}
	if !reflect.DeepEqual(is, was) {
		t.Error("the entry itself has changed")
	}
	if older, _ := entry(0, "", 0).Older(); older != nil {
		t.Errorf("%+v, of an entry that has nothing newer", older)
	}
}
