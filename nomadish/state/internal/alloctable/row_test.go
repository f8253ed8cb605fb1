package alloctable

import (
	"reflect"
	"testing"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// An allocation without statuses, as no writer of ours makes one, is read as it is.
func TestRowWithoutStatuses(t *testing.T) {
	a := &structs.Allocation{ID: "00000000-0000-7000-8000-000000000001", Name: "j.g[0]", JobID: "j", TaskGroup: "g", NodeID: "n"}
	b := &Batch{jobID: "j", group: "g"}
	r := newRow(a, b, &nodeRef{id: indexkey.Hash("n")}, nil)
	if r.ClientStatus() != "" || r.DesiredStatus() != "" || r.Terminal() {
		t.Errorf("statuses %q and %q", r.ClientStatus(), r.DesiredStatus())
	}
}

// What is made here of a batch is what structs makes of it.
func TestPlainInstances(t *testing.T) {
	b := &structs.PlacementBatch{
		Namespace: "default", JobID: "web", JobVersion: 3, Group: "web", EvalID: "e", Seed: "s", CreateTime: 7,
		Nodes:     []structs.PlacedNode{{ID: "n", Name: "n"}},
		Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {}}},
		Metrics:   &structs.AllocMetric{NodesEvaluated: 1},
		Instances: []structs.Instance{{}, {Ordinal: 1, Index: 1}, {}},
	}
	b.Gang = &structs.AllocGang{Rank: 9, Size: 3, Hosts: []string{"a", "b", "c"}, Level: "rack"}
	b.Instances[1].Rank, b.Instances[1].PreviousAllocation = 1, "before"
	b.Instances[1].RescheduleTracker = &structs.RescheduleTracker{LastReschedule: "x"}
	b.Instances[2].Index, b.Instances[2].Ordinal = -1, 70
	c := NewBatch(b, 5)
	for i := range b.Instances {
		want := b.Allocation(i)
		if got := c.Allocation(b, i, want.ID); !reflect.DeepEqual(got, want) {
			t.Errorf("instance %d: %+v, not %+v", i, got, want)
		}
	}
}
