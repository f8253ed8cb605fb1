package decide

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/internal/judge"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// TestExplainEqualsWalk compares what is told of a group that finds no room with a look at
// every node: where the index shows what is lacking, nodes are only counted.
func TestExplainEqualsWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var nodes []*structs.Node
		e := world.New().Edit()
		for i := range rapid.IntRange(0, 8).Draw(rt, "nodes") {
			nodes = append(nodes, schedtest.DrawAnyNode(rt, fmt.Sprintf("n%d", i)))
			e.UpsertNode(nodes[i])
		}
		w := placeOthers(rt, e.World())
		e = w.Edit()
		takeParts(rt, nodes, e)
		for i := range rapid.IntRange(0, 3).Draw(rt, "reservations") {
			job := rapid.SampledFrom([]string{"j", "other0"}).Draw(rt, "for")
			e.Reserve(&structs.Reservation{
				NodeID: fmt.Sprintf("n%d", i), Namespace: "default", JobID: job, Group: "g", CPU: int64(rapid.IntRange(0, 4000).Draw(rt, "MHz")),
				Devices: rapid.IntRange(0, 2).Draw(rt, "devices"), Cores: rapid.IntRange(0, 2).Draw(rt, "cores"), DueAt: 1, ExpiresAt: 1 << 62,
			})
		}
		w = e.World()
		j := schedtest.DrawRequestingJob(rt)
		if rapid.Bool().Draw(rt, "whole cores") {
			schedtest.Task(j).Resources.Cores = rapid.IntRange(1, 4).Draw(rt, "cores")
		}
		if devices := schedtest.Task(j).Resources.Devices; len(devices) > 0 && rapid.Bool().Draw(rt, "one more device") {
			schedtest.Task(j).Resources.Devices = append(devices, &structs.RequestedDevice{
				Name: "gpu", Count: rapid.IntRange(1, 2).Draw(rt, "more"), Share: rapid.SampledFrom([]int{0, 400}).Draw(rt, "more share"),
				Topology: &structs.TopologyConstraint{Level: structs.LevelPCIe, Required: rapid.Bool().Draw(rt, "required")},
			})
		}
		if rapid.Bool().Draw(rt, "part of a device") {
			schedtest.Task(j).Resources = &structs.Resources{CPU: 1, MemoryMB: 10, Devices: []*structs.RequestedDevice{{
				Name: "v/gpu", Count: 1, Share: rapid.SampledFrom([]int{300, 500}).Draw(rt, "part"),
			}}}
		}
		j.ID = "j"
		in := deciding(j, 1)
		s := NewScheduler(w, &structs.Evaluation{ID: "eval", JobID: j.ID}, &in)
		find := s.newSearch(schedtest.Group(j), s.Edit, s.Fit(schedtest.Group(j)))
		walked := metric.New(j)
		walked.Classes(find, func(set *world.NodeSet) {
			for n := range set.All {
				walked.Node(find, n)
			}
		})
		if got, want := text(rt, metric.Explain(find)), text(rt, walked.AllocMetric); got != want {
			rt.Fatalf("told %s\na walk tells %s", got, want)
		}
	})
}

// placeOthers returns the World with up to three jobs on it.
func placeOthers(t *rapid.T, w *world.World) *world.World {
	for i := range rapid.IntRange(0, 3).Draw(t, "others") {
		j := schedtest.DrawRequestingJob(t)
		j.ID = fmt.Sprint("other", i)
		plan, err := Schedule(w, &structs.Evaluation{ID: "eval-" + j.ID, JobID: j.ID}, deciding(j, uint64(i))) // three
		if err != nil {
			t.Fatal(err)
		}
		e := w.Edit()
		judge.Judge(e, plan)
		w = e.World()
	}
	return w
}

// deciding is what a job is decided with, that has no allocations yet.
func deciding(j *structs.Job, seed uint64) search.Input {
	minted := uint64(0)
	return search.Input{
		Job: j, Config: structs.DefaultSchedulerConfiguration(), Now: time.Unix(1_700_000_000, 0).UTC(), Seed: seed,
		NewID: func() string { minted++; return structs.DeriveID(j.ID, minted) },
	}
}

func text(t *rapid.T, m *structs.AllocMetric) string {
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// takeParts has somebody hold a part of some devices.
func takeParts(t *rapid.T, nodes []*structs.Node, e *world.Edit) {
	for _, n := range nodes {
		for _, d := range n.NodeResources.Devices {
			for _, one := range d.Instances {
				if share := rapid.SampledFrom([]int{0, 600, 600, 800, 1000}).Draw(t, "taken"); share > 0 {
					e.UpsertAlloc(&structs.Allocation{
						ID: n.ID + one.ID, NodeID: n.ID, Namespace: "default", JobID: "parts", TaskGroup: "g",
						DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
						AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
							Devices: []*structs.AllocatedDeviceResource{{Vendor: d.Vendor, Type: d.Type, Name: d.Name, DeviceIDs: []string{one.ID}, Share: share}},
						}}},
					})
				}
			}
		}
	}
}
