package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// TestExplainEqualsWalk compares what is told of a group that finds no room with a look at
// every node: where the index shows what is lacking, nodes are only counted.
func TestExplainEqualsWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		for i := range rapid.IntRange(0, 8).Draw(rt, "nodes") {
			c.setNode(drawExplained(rt, fmt.Sprintf("n%d", i)))
		}
		for i := range rapid.IntRange(0, 3).Draw(rt, "others") {
			c.submit(fmt.Sprint("other", i), drawAsking(rt))
		}
		e := c.w.Edit()
		takeParts(rt, c, e)
		for i := range rapid.IntRange(0, 3).Draw(rt, "reservations") {
			job := rapid.SampledFrom([]string{"j", "other0"}).Draw(rt, "for")
			e.Reserve(&structs.Reservation{
				NodeID: fmt.Sprintf("n%d", i), Namespace: "default", JobID: job, Group: "g", CPU: int64(rapid.IntRange(0, 4000).Draw(rt, "MHz")),
				Devices: rapid.IntRange(0, 2).Draw(rt, "devices"), Cores: rapid.IntRange(0, 2).Draw(rt, "cores"), DueAt: 1, ExpiresAt: 1 << 62,
			})
		}
		c.w = e.World()
		j := drawAsking(rt)
		if rapid.Bool().Draw(rt, "whole cores") {
			task(j).Resources.Cores = rapid.IntRange(1, 4).Draw(rt, "cores")
		}
		if devices := task(j).Resources.Devices; len(devices) > 0 && rapid.Bool().Draw(rt, "one more device") {
			task(j).Resources.Devices = append(devices, &structs.RequestedDevice{
				Name: "gpu", Count: rapid.IntRange(1, 2).Draw(rt, "more"), Share: rapid.SampledFrom([]int{0, 400}).Draw(rt, "more share"),
				Topology: &structs.TopologyAsk{Level: structs.LevelPCIe, Required: rapid.Bool().Draw(rt, "required")},
			})
		}
		if rapid.Bool().Draw(rt, "part of a device") {
			task(j).Resources = &structs.Resources{CPU: 1, MemoryMB: 10, Devices: []*structs.RequestedDevice{{
				Name: "v/gpu", Count: 1, Share: rapid.SampledFrom([]int{300, 500}).Draw(rt, "part"),
			}}}
		}
		j.ID, c.job = "j", j
		in, ev := c.input(), c.newEval()
		s := newScheduler(c.w, ev, &in)
		find := s.newSearch(group(j), s.edit, s.fit(group(j)))
		walked := newExplanation(j)
		walked.classes(find, func(set *nodeSet) {
			for n := range set.all {
				walked.node(find, n)
			}
		})
		if got, want := string(asJSON(rt, explain(find))), string(asJSON(rt, walked.AllocMetric)); got != want {
			rt.Fatalf("told %s\na walk tells %s", got, want)
		}
	})
}

// takeParts has somebody hold a part of some devices.
func takeParts(t *rapid.T, c *cluster, e *Edit) {
	for _, n := range c.sortedNodes() {
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

func (c *cluster) sortedNodes() (out []*structs.Node) {
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		out = append(out, c.nodes[id])
	}
	return out
}
