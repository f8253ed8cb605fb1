package state

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// A user's suspension takes effect at once and frees what it does not keep; only the
// scheduler resumes, and only what no user wants suspended.
func TestUserSuspends(t *testing.T) {
	w, ids := placed(t, 1)
	yes, no := true, false
	entry := func(p *bool) *structs.AllocTransitionEntry {
		return &structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{ids[0]: {Suspend: p}}}
	}
	resume := func() *structs.Allocation {
		a := w.store.Snapshot().Alloc(nil, ids[0])
		return w.plan(&structs.JudgedPlan{EvalID: "e", Update: []*structs.AllocInPlace{{
			AllocID: ids[0], JobVersion: a.JobVersion, EvalID: "e", Resume: true, Resources: a.AllocatedResources,
		}}}).Alloc(nil, ids[0])
	}
	snap := w.must(entry(&yes))
	a := snap.Alloc(nil, ids[0])
	check(t, "desired", a.DesiredStatus, structs.AllocDesiredSuspend)
	check(t, "why", a.DesiredDescription, structs.DescSuspended)
	check(t, "the client looks", a.AllocModifyIndex, w.index)
	check(t, "processor still held", snap.World().Used(a.NodeID).CPU, int64(0))
	check(t, "after a resuming that came too late", resume().DesiredStatus, structs.AllocDesiredSuspend)
	a = w.must(entry(&no)).Alloc(nil, ids[0])
	check(t, "before there is room", a.DesiredStatus, structs.AllocDesiredSuspend)
	check(t, "a user's", a.DesiredTransition.ShouldSuspend(), false)
	check(t, "resumed", resume().DesiredStatus, structs.AllocDesiredRun)
	w.must(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: ids[0], ClientStatus: structs.AllocClientComplete}}})
	check(t, "after its end", w.must(entry(&yes)).Alloc(nil, ids[0]).DesiredStatus, structs.AllocDesiredRun)
}
