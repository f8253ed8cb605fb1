package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// What projects have to do with scheduling is changed one flag at a time, and what no flag names stays.
func TestSlotFlags(t *testing.T) {
	var is structs.SlotSettings
	var f *fake
	set := func(args []string, want string) {
		t.Helper()
		f = newFake(t).on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{
			SchedulerConfig: (&structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", Slots: &is}).Effective(),
		}).on("PUT /v1/operator/scheduler/configuration", &structs.SchedulerSetReply{Updated: true})
		got := f.run(t, append([]string{"operator", "scheduler", "set-config"}, args...)...)
		if got.code != exitDone {
			t.Fatalf("%q: %d %s", args, got.code, got.err)
		}
		wants(t, f.lastPut(), `"Slots":`+want)
	}
	set([]string{"-grace", "30s"}, `{"Grace":30000000000}`)
	set([]string{"-grace", "0s", "-max-requeues", "0"}, `{"Grace":0,"MaxRequeues":0}`)
	set([]string{"-allocated-bonus", "7", "-requeue-bonus", "8", "-suspend-limit", "2h", "-light", "0.5"},
		`{"AllocatedBonus":7,"RequeueBonus":8,"SuspendLimit":7200000000000,"Light":0.5}`)
	set([]string{"-slot", "batch=cores:2,memory:4096", "-slot", "gpu=gpus:1,kind:H100,grace:5s"},
		`{"Types":[{"Name":"batch","Cores":2,"MemoryMB":4096},{"Name":"gpu","Cores":0,"GPUs":1,"Kind":"H100","Grace":5000000000}]}`)
	two := 2
	is = structs.SlotSettings{MaxRequeues: &two, Types: []structs.SlotType{{Name: "batch", Cores: 2, MemoryMB: 4096}, {Name: "wide", Cores: 4}}}
	set([]string{"-slot", "batch=cores:3"}, `{"Types":[{"Name":"batch","Cores":3,"MemoryMB":4096},{"Name":"wide","Cores":4}],"MaxRequeues":2}`)
	set([]string{"-slot", "wide=default", "-max-requeues", "default"}, `{"Types":[{"Name":"batch","Cores":2,"MemoryMB":4096}]}`)
	set([]string{"-slot", "default"}, `{"MaxRequeues":2}`)
	set([]string{"-slot", "default", "-max-requeues", ""}, `{}`)
	bad := func(want string, args ...string) {
		t.Helper()
		puts := len(f.requests("PUT"))
		got := f.run(t, append([]string{"operator", "scheduler", "set-config"}, args...)...)
		if got.code != exitFailed || !strings.Contains(got.err, want) || len(f.requests("PUT")) != puts {
			t.Errorf("%q: %d %q, want %q", args, got.code, got.err, want)
		}
	}
	bad(`-grace "soon": write a duration, such as 60s`, "-grace", "soon")
	bad(`-grace "-1s": grace -1s: must not be negative`, "-grace", "-1s")
	bad(`-suspend-limit "0s": suspend_limit 0s: must be more than 0`, "-suspend-limit", "0s")
	bad(`-max-requeues "many": write a whole number`, "-max-requeues", "many")
	bad(`-light "half": write a part from 0 to 1`, "-light", "half")
	bad(`-light "NaN": light NaN: must be 0 to 1`, "-light", "NaN")
	bad(`-slot "batch": write it as TYPE=cores:2`, "-slot", "batch")
	bad(`"core": there are cores, memory, gpus, kind and grace`, "-slot", "batch=core:2")
	bad(`cores "two": write it as batch=cores:2`, "-slot", "batch=cores:two")
	bad(`cores 0: a slot has 1 or more; batch=default resets the type`, "-slot", "batch=cores:0")
	bad(`type "batch": cores, memory and gpus must not be negative`, "-slot", "batch=cores:-1")
	bad(`type "a b": a type of slots is named by`, "-slot", "a b=cores:1")
}

// What nodes do not hold of their slots is said where the volume of a slot is set, and so is a type that loses its GPUs.
func TestSlotWarnings(t *testing.T) {
	resources := &structs.NodeResources{Cpu: structs.NodeCpuResources{TotalCpuCores: 8}, Slots: map[string]int{"batch": 8}}
	node := &structs.Node{ID: nodeA, Name: "n1", NodeResources: resources}
	settings := &structs.SlotSettings{Types: []structs.SlotType{{Name: "batch", Cores: 2}, {Name: "gpu", GPUs: 1}}}
	config := &structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", Slots: settings}
	f := newFake(t).on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{SchedulerConfig: config}).
		on("PUT /v1/operator/scheduler/configuration", &structs.SchedulerSetReply{Updated: true}).
		on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: "n1", NodeResources: resources}, {ID: nodeB, Name: "n2", NodeResources: resources}}).
		on("GET /v1/node/"+nodeA, node).on("GET /v1/node/"+nodeA+"/allocations", []*structs.Allocation{})
	got := f.run(t, "operator", "scheduler", "set-config", "-slot", "gpu=default")
	wants(t, got.err, `slot type "batch": on 2 nodes the cores and the memory do not hold all slots, as on n1: of 8 only 4 may be given out`,
		`slot type "gpu" has no GPUs any more`)
	if got.code != exitDone || strings.Contains(f.run(t, "operator", "scheduler", "set-config", "-grace", "5s").err, "Warning") {
		t.Errorf("%d %s", got.code, got.err)
	}
	wants(t, f.run(t, "node", "status", "-short", nodeA).out, "= batch: 8 (4 count: its cores and memory hold no more)\n")
	settings.Types[0].Cores = 1
	wants(t, f.run(t, "node", "status", "-short", nodeA).out, "= batch: 8\n")
}

// A row is written as -slot reads it.
func TestSlotRows(t *testing.T) {
	pairs := slotPairs(&structs.SlotSettings{Types: []structs.SlotType{{Name: "gpu", MemoryMB: 512, GPUs: 2, Kind: "nvidia/gpu/H100"}}})
	got := pairs[len(pairs)-4]
	if want := "cores:1,memory:512,gpus:2,kind:nvidia/gpu/H100,grace:1m0s"; got.Key != "Slot gpu" || got.Value != want {
		t.Errorf("have %+v", pairs)
	}
}
