package state

import (
	"fmt"
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

// TestRequeuesAreStored: what is requeued counts it and knows why, once; its successor carries what its plan states.
func TestRequeuesAreStored(t *testing.T) {
	w, ids := placed(t, 2)
	stop := func(id, reason string) *structs.Allocation {
		return w.plan(&structs.JudgedPlan{EvalID: "e", Stop: []*structs.AllocStop{{
			AllocID: id, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue, RequeueReason: reason,
		}}}).Alloc(nil, id)
	}
	a := stop(ids[0], "why")
	check(t, "requeues", a.Requeues, 1)
	check(t, "reason", a.RequeueReason, "why")
	a = stop(ids[0], "again")
	check(t, "requeues of what was stopped before", a.Requeues, 1)
	w.must(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: ids[1], ClientStatus: structs.AllocClientComplete}}})
	check(t, "requeues of what had ended", stop(ids[1], "too late").Requeues, 0)
	for _, devices := range []map[string][]*structs.AllocatedDeviceResource{nil, {"t": {{DeviceIDs: []string{"d"}}}}} {
		batch := &structs.PlacementBatch{
			Namespace: a.Namespace, JobID: a.JobID, Group: a.TaskGroup, Seed: fmt.Sprint(len(devices)), Nodes: []structs.PlacedNode{{ID: a.NodeID}},
			Resources: a.AllocatedResources, Instances: []structs.Instance{{Requeues: 3, RequeueReason: "thrice", Devices: devices}},
		}
		snap := w.plan(&structs.JudgedPlan{EvalID: "e", Place: []*structs.PlacementBatch{batch}})
		a := snap.Alloc(nil, structs.DeriveID(batch.Seed, 0))
		check(t, "requeues of a successor", a.Requeues, 3)
		check(t, "reason of a successor", a.RequeueReason, "thrice")
		if diff := Differences(snap); len(diff) > 0 {
			t.Error(diff)
		}
	}
}

// TestSuspensionHasATime: what the scheduler suspends knows since when, until it goes on, ends, or a user suspends it.
func TestSuspensionHasATime(t *testing.T) {
	w, ids := placed(t, 1)
	yes := true
	stop := func(s structs.AllocStop) int64 {
		s.AllocID = ids[0]
		return w.plan(&structs.JudgedPlan{EvalID: "e", Stop: []*structs.AllocStop{&s}}).Alloc(nil, ids[0]).SuspendedAt
	}
	suspend := func() int64 {
		return stop(structs.AllocStop{DesiredStatus: structs.AllocDesiredSuspend, SuspendedAt: 17})
	}
	resume := func() int64 {
		a := w.store.Snapshot().Alloc(nil, ids[0])
		return w.plan(&structs.JudgedPlan{EvalID: "e", Update: []*structs.AllocInPlace{{
			AllocID: ids[0], JobVersion: a.JobVersion, EvalID: "e", Resume: true, Resources: a.AllocatedResources,
		}}}).Alloc(nil, ids[0]).SuspendedAt
	}
	check(t, "suspended", suspend(), int64(17))
	check(t, "resumed", resume(), int64(0))
	check(t, "again", suspend(), int64(17))
	byUser := &structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{ids[0]: {Suspend: &yes}}}
	check(t, "by a user", w.must(byUser).Alloc(nil, ids[0]).SuspendedAt, int64(0))
	check(t, "stopped", stop(structs.AllocStop{DesiredStatus: structs.AllocDesiredEvict}), int64(0))
	if diff := Differences(w.store.Snapshot()); len(diff) > 0 {
		t.Error(diff)
	}
}
