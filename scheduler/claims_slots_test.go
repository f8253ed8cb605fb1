package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// TestSlotsAreInNoShare: the processor and memory of the slots that a node states are subtracted before the shares of its GPUs are computed
// (semantics part 4). A node that states none has none, as it has GPUs.
func TestSlotsAreInNoShare(t *testing.T) {
	volume := func(slot structs.SlotType) func(*structs.SchedulerConfiguration) {
		return func(c *structs.SchedulerConfiguration) {
			c.Slots = &structs.SlotSettings{Types: []structs.SlotType{slot}}
		}
	}
	for _, row := range []struct {
		slots       map[string]int
		config      func(*structs.SchedulerConfiguration)
		cpu, memory int // a GPU's share: an eighth of 128 cores of 2000 MHz and of 1 TiB, less the slots
	}{
		{nil, nil, 32_000, 131_072},
		{map[string]int{"batch": 0}, nil, 32_000, 131_072},
		{map[string]int{"batch": 16}, nil, 28_000, 114_688},
		{map[string]int{"batch": 8, "wide": 8}, nil, 28_000, 114_688},
		{map[string]int{"batch": 8, "wide": 8}, volume(structs.SlotType{Name: "wide", Cores: 3}), 24_000, 98_304},
		{map[string]int{"batch": 16}, volume(structs.SlotType{Name: "batch", Cores: 2, MemoryMB: 1024}), 24_000, 129_024},
		{map[string]int{"gpu": 4}, volume(structs.SlotType{Name: "gpu", Cores: 8, GPUs: 1}), 24_000, 98_304},
		{map[string]int{"batch": 128}, nil, 0, 0},
		{map[string]int{"a": 65536, "b": 65536}, nil, 0, 0}, // more than the node has
	} {
		config := structs.DefaultSchedulerConfiguration()
		if row.config != nil {
			row.config(&config)
		}
		guaranteed := func(cpu, memory int) bool {
			own := owns(t, "a", "node", 1)
			x := newTenants(t, func(e *scheduler.Edit) {
				own(e)
				e.Configure(&config)
			}, eightGPUs("n1", func(n *structs.Node) { n.NodeResources.Slots = row.slots }))
			n, _ := classes(x.decide("a", "j", 1, 1, func(j *structs.Job) {
				schedtest.Task(j).Resources.CPU, schedtest.Task(j).Resources.MemoryMB = cpu, memory
			}))
			return n == 1
		}
		if !guaranteed(row.cpu, row.memory) || guaranteed(row.cpu+1, row.memory) || guaranteed(row.cpu, row.memory+1) {
			t.Errorf("%v: a GPU's share is not %d MHz and %d MiB", row.slots, row.cpu, row.memory)
		}
	}
}

// TestSlotsKeepFromRaising: what runs beyond the share that slots leave is not raised, and is when the node no longer states them; what is
// guaranteed already stays so.
func TestSlotsKeepFromRaising(t *testing.T) {
	c := newCluster(t)
	node := func(slots map[string]int) {
		c.node("n1", schedtest.EightGPUs, func(n *structs.Node) { n.NodeResources.Slots = slots })
	}
	node(map[string]int{"batch": 16})
	e := c.w.Edit()
	e.SetQuotas("default", []world.Quota{{Chain: chainOf(t), Level: "node", Count: 1, Order: 1}})
	c.w = e.World()
	job := gpuJobOf("default", "j", 1, 1)
	schedtest.Task(job).Resources.CPU = 30_000
	c.register(job)
	has := func(when string, want int) {
		t.Helper()
		n := 0
		for _, u := range world.Usages(c.w).All {
			if u.Guaranteed() {
				n++
			}
		}
		if n != want || len(c.allocs) != 1 {
			t.Errorf("%s: %d of %d are guaranteed", when, n, len(c.allocs))
		}
	}
	c.eval()
	c.runAll()
	c.eval()
	has("16 slots", 0)
	node(nil)
	c.eval()
	has("no slots", 1)
	node(map[string]int{"batch": 16})
	c.eval()
	has("16 slots again", 1)
}
