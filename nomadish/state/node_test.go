package state

import (
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func system(id string) *structs.Job {
	j := job(id)
	j.Type = structs.JobTypeSystem
	return j
}

func nodeEvals(s *Snapshot, jobID string) int {
	n := 0
	for _, e := range s.EvalsByJob(nil, "default", jobID) {
		if e.TriggeredBy == structs.EvalTriggerNodeUpdate {
			n++
		}
	}
	return n
}

func TestRegisterNode(t *testing.T) {
	w := newWorld(t)
	w.register(system("sys"))
	w.register(job("web"))
	snap := w.node("n")
	n := snap.Node(nil, "n")
	check(t, "create index", n.CreateIndex, 3)
	check(t, "eligible", n.SchedulingEligibility, structs.NodeEligible)
	check(t, "class", n.ComputedClass != "", true)
	check(t, "status since", n.StatusUpdatedAt, 3)
	check(t, "evaluations of the system job", nodeEvals(snap, "sys"), 1)
	check(t, "evaluations of the other job", nodeEvals(snap, "web"), 0)
	e := snap.EvalsByJob(nil, "default", "sys")[0]
	check(t, "evaluation's ID", e.ID, structs.DeriveID("register n", 0))
	check(t, "evaluation's node", e.NodeID, "n")
	if _, ok := snap.World().Node("n"); !ok {
		t.Error("the World does not know the node")
	}

	w.must(&structs.NodeEligibilityEntry{NodeID: "n", Eligibility: structs.NodeIneligible, Event: &structs.NodeEvent{Message: "off"}})
	again := node("n")
	again.Attributes = map[string]string{"kernel": "linux"}
	snap = w.must(&structs.NodeRegisterEntry{Node: again, Time: 99e9, EvalSeed: "again"})
	n = snap.Node(nil, "n")
	check(t, "eligibility is kept", n.SchedulingEligibility, structs.NodeIneligible)
	check(t, "events are kept", len(n.Events), 1)
	check(t, "status since", n.StatusUpdatedAt, 3)
	check(t, "create index", n.CreateIndex, 3)
	check(t, "attributes", n.Attributes["kernel"], "linux")

	thief := node("n")
	thief.SecretID = "another"
	w.refuses(&structs.NodeRegisterEntry{Node: thief}, structs.CodeForbidden)
	w.refuses(&structs.NodeRegisterEntry{}, structs.CodeBadRequest)
	w.refuses(&structs.NodeRegisterEntry{Node: &structs.Node{}}, structs.CodeBadRequest)
	w.refuses(&structs.NodeRegisterEntry{Node: &structs.Node{ID: "m", Status: "odd"}}, structs.CodeBadRequest)
}

func TestNodeStatus(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.node("m")
	w.register(job("web"))
	w.register(system("sys"))
	ids := w.place("web", 0, "n", "s", 2)
	snap := w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n", "m", "none"}, Status: structs.NodeStatusDown, Time: 77e9, EvalSeed: "down"})
	check(t, "status", snap.Node(nil, "n").Status, structs.NodeStatusDown)
	check(t, "since", snap.Node(nil, "n").StatusUpdatedAt, 77)
	check(t, "evaluations of the job on it", nodeEvals(snap, "web"), 1)
	check(t, "evaluations of the system job", nodeEvals(snap, "sys"), 0)
	check(t, "allocations wait for the scheduler", snap.Alloc(nil, ids[0]).ClientStatus, structs.AllocClientPending)

	index := snap.Node(nil, "n").ModifyIndex
	snap = w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusDown, EvalSeed: "same"})
	check(t, "modify index of a status that it had", snap.Node(nil, "n").ModifyIndex, index)
	snap = w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n", "m"}, Status: structs.NodeStatusReady, EvalSeed: "up"})
	check(t, "evaluations of the system job, one for both", nodeEvals(snap, "sys"), 1)
	w.refuses(&structs.NodeStatusEntry{NodeIDs: []string{"none"}, Status: structs.NodeStatusReady}, structs.CodeNotFound)
	w.refuses(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: "odd"}, structs.CodeBadRequest)
	for range 15 {
		w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusReady, Event: &structs.NodeEvent{Message: "x"}, Time: 5e9})
	}
	n := w.store.Snapshot().Node(nil, "n")
	check(t, "events kept", len(n.Events), structs.MaxNodeEvents)
	check(t, "when", n.Events[0].Timestamp, time.Unix(5, 0).UTC())
}

func TestDeregisterNode(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	ids := w.place("web", 0, "n", "s", 2)
	w.report(structs.AllocClientComplete, ids[0])
	snap := w.must(&structs.NodeDeregisterEntry{NodeIDs: []string{"n", "none"}, EvalSeed: "gone"})
	check(t, "node", snap.Node(nil, "n"), nil)
	check(t, "what had ended", snap.Alloc(nil, ids[0]).ClientStatus, structs.AllocClientComplete)
	check(t, "what ran", snap.Alloc(nil, ids[1]).ClientStatus, structs.AllocClientLost)
	check(t, "evaluations", nodeEvals(snap, "web"), 1)
	w.refuses(&structs.NodeDeregisterEntry{NodeIDs: []string{"n"}}, structs.CodeNotFound)
}

func TestDrain(t *testing.T) {
	w := newWorld(t)
	w.register(system("sys"))
	w.node("n")
	drain := &structs.NodeDrainEntry{
		NodeID: "n", Time: 10e9, Strategy: &structs.DrainStrategy{StartedAt: time.Unix(10, 0)}, Meta: map[string]string{"why": "disk"}, EvalSeed: "d",
	}
	n := w.must(drain).Node(nil, "n")
	check(t, "eligibility", n.SchedulingEligibility, structs.NodeIneligible)
	check(t, "drains", n.DrainStrategy != nil, true)
	check(t, "record", n.LastDrain.Status, "draining")
	w.refuses(&structs.NodeEligibilityEntry{NodeID: "n", Eligibility: structs.NodeEligible}, structs.CodeConflict)

	n = w.must(&structs.NodeDrainEntry{NodeID: "n", Time: 30e9, Status: "complete", EvalSeed: "e"}).Node(nil, "n")
	check(t, "drains", n.DrainStrategy != nil, false)
	check(t, "eligibility", n.SchedulingEligibility, structs.NodeIneligible)
	check(t, "record", n.LastDrain.Status, "complete")
	check(t, "from", n.LastDrain.StartedAt, time.Unix(10, 0).UTC())
	check(t, "to", n.LastDrain.UpdatedAt, time.Unix(30, 0).UTC())
	check(t, "why", n.LastDrain.Meta["why"], "disk")

	w.must(drain)
	before := nodeEvals(w.store.Snapshot(), "sys")
	snap := w.must(&structs.NodeDrainEntry{NodeID: "n", Time: 40e9, MarkEligible: true, EvalSeed: "f"})
	n = snap.Node(nil, "n")
	check(t, "record", n.LastDrain.Status, "canceled")
	check(t, "eligibility", n.SchedulingEligibility, structs.NodeEligible)
	check(t, "the system job looks at it", nodeEvals(snap, "sys"), before+1)
	w.refuses(&structs.NodeDrainEntry{NodeID: "none"}, structs.CodeNotFound)
	w.refuses(&structs.NodeEligibilityEntry{NodeID: "n", Eligibility: "odd"}, structs.CodeBadRequest)
	w.refuses(&structs.NodeEligibilityEntry{NodeID: "none"}, structs.CodeNotFound)
}

func TestNodeEvents(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	n := w.must(&structs.NodeEventsEntry{Events: map[string][]*structs.NodeEvent{"n": {{Message: "a"}, nil, {Message: "b"}}, "none": {{}}}}).Node(nil, "n")
	check(t, "events", len(n.Events), 2)
	check(t, "index", n.Events[1].CreateIndex, w.index)
}

// A node with an empty driver, volume or device is refused, and nothing is lost.
func TestNodeWithEmptyParts(t *testing.T) {
	for what, spoil := range map[string]func(*structs.Node){
		"driver": func(n *structs.Node) { n.Drivers = map[string]*structs.DriverInfo{"x": nil} },
		"volume": func(n *structs.Node) { n.HostVolumes = map[string]*structs.HostVolumeInfo{"x": nil} },
		"group":  func(n *structs.Node) { n.NodeResources.Devices = []*structs.NodeDeviceResource{nil} },
		"device": func(n *structs.Node) {
			n.NodeResources.Devices = []*structs.NodeDeviceResource{{Instances: []*structs.NodeDevice{nil}}}
		},
	} {
		store, w := New(Options{})
		n := node("a")
		n.ComputedClass = ""
		spoil(n)
		if err := w.Apply(1, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: n}); err == nil {
			t.Errorf("an empty %s was taken", what)
		}
		if store.Snapshot().Node(nil, "a") != nil {
			t.Errorf("the node with an empty %s is there", what)
		}
	}
}

// What was unknown while its node was disconnected is what the node last said of it, once
// that is heard again, and is not looked at again later.
func TestHeardAgain(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	w.node("n")
	w.node("other")
	ids := w.place("web", 0, "n", "seed", 3)
	away := w.place("web", 0, "other", "else", 1)
	w.must(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
		{ID: ids[0], ClientStatus: structs.AllocClientRunning, TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning}}},
	}})
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n", "other"}, Status: structs.NodeStatusDisconnected})
	var stops []*structs.AllocStop
	for _, id := range append(slices.Clone(ids[:2]), away[0]) {
		stops = append(stops, &structs.AllocStop{
			AllocID: id, ClientStatus: structs.AllocClientUnknown, DesiredDescription: "away", FollowupEvalID: "later", KeepRunning: true,
		})
	}
	snap := w.plan(&structs.JudgedPlan{Stop: stops})
	check(t, "while it is away", snap.Alloc(nil, ids[0]).ClientStatus, structs.AllocClientUnknown)
	check(t, "it is to run", snap.Alloc(nil, ids[0]).DesiredStatus, structs.AllocDesiredRun)
	check(t, "still away", w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusDisconnected}).Alloc(nil, ids[0]).ClientStatus, structs.AllocClientUnknown)

	snap = w.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusReady, EvalSeed: "back"})
	check(t, "what ran", snap.Alloc(nil, ids[0]).ClientStatus, structs.AllocClientRunning)
	check(t, "what had not begun", snap.Alloc(nil, ids[1]).ClientStatus, structs.AllocClientPending)
	check(t, "what is said of it", snap.Alloc(nil, ids[0]).ClientDescription+snap.Alloc(nil, ids[0]).FollowupEvalID, "")
	check(t, "what was not unknown", snap.Alloc(nil, ids[2]).ClientStatus, structs.AllocClientPending)
	check(t, "on the other node", snap.Alloc(nil, away[0]).ClientStatus, structs.AllocClientUnknown)
	check(t, "evaluations", nodeEvals(snap, "web") > 0, true)
}

// A plan that was made while a node was disconnected, and comes when it is back, makes nothing
// unknown: nobody would say again what it is.
func TestUnknownComesTooLate(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	w.node("n")
	id := w.place("web", 0, "n", "seed", 1)[0]
	late := &structs.AllocStop{AllocID: id, ClientStatus: structs.AllocClientUnknown, FollowupEvalID: "later", KeepRunning: true}
	snap := w.plan(&structs.JudgedPlan{Stop: []*structs.AllocStop{late}})
	check(t, "status", snap.Alloc(nil, id).ClientStatus, structs.AllocClientPending)
	check(t, "looked at later", snap.Alloc(nil, id).FollowupEvalID, "")
}
