package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

func setCount(n int) func(*structs.Job) { return func(j *structs.Job) { schedtest.Group(j).Count = n } }

func destructive(j *structs.Job) {
	schedtest.Task(j).Env = map[string]string{"V": fmt.Sprint(j.Version)}
}

func nodes(c *cluster, n int, change ...func(*structs.Node)) {
	for i := range n {
		c.node(fmt.Sprintf("n%02d", i), change...)
	}
}

func TestCountUpAndDown(t *testing.T) {
	for _, kind := range []string{structs.JobTypeService, structs.JobTypeBatch} {
		c := newCluster(t)
		nodes(c, 4)
		c.register(schedtest.Job(kind, 5))
		c.eval()
		c.wantPlan(5, 0, 0)
		c.runAll()
		c.eval()
		c.wantPlan(0, 0, 0)
		c.update(setCount(20))
		c.eval()
		c.wantPlan(15, 0, 5)
		c.runAll()
		c.update(setCount(3))
		c.eval()
		c.wantPlan(0, 17, 3)
		for _, a := range c.allocs {
			if isLive(a) && a.Index() > 2 {
				t.Errorf("%s is kept", a.Name)
			}
		}
		c.update(func(j *structs.Job) { j.Stop = true })
		c.eval()
		c.wantPlan(0, 3, 0)
		c.runAll()
		c.eval()
		c.wantPlan(0, 0, 0)
	}
}

func TestPurgeStopsAll(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 2))
	c.eval()
	c.job = nil
	c.eval()
	c.wantPlan(0, 2, 0)
	c.wantLive(0)
}

func TestBinpackFillsAndSpreadEvensOut(t *testing.T) {
	for algorithm, want := range map[string]map[string]int{
		structs.AlgorithmBinpack: {"n00": 4},
		structs.AlgorithmSpread:  {"n00": 1, "n01": 1, "n02": 1, "n03": 1},
	} {
		c := newCluster(t)
		c.config.SchedulerAlgorithm = algorithm
		nodes(c, 4)
		c.register(schedtest.Job(structs.JobTypeService, 4))
		c.eval()
		if got := c.liveOn(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", algorithm, got, want)
		}
	}
}

func TestPoliciesOfAJob(t *testing.T) {
	f := func(policy string, want map[string]int) {
		t.Helper()
		c := newCluster(t)
		c.node("a")
		c.node("b", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 1000 })
		c.node("c")
		c.register(schedtest.Job(structs.JobTypeService, 3, func(j *structs.Job) { j.Policy = policy }))
		c.eval()
		if got := c.liveOn(); want != nil && !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", policy, got, want)
		}
		c.wantLive(3)
	}
	f("binpack", map[string]int{"b": 2, "a": 1})
	f("spread", map[string]int{"a": 2, "c": 1})
	f("first-fit", map[string]int{"a": 3})
	f("next-fit", map[string]int{"a": 1, "b": 1, "c": 1})
	f("random", nil)
}

func TestConstraintsAreExplained(t *testing.T) {
	f := func(change func(*structs.Job), want map[string]int) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 3, func(n *structs.Node) { n.NodeClass = "small" })
		c.node("x", func(n *structs.Node) { n.Datacenter = "dc2" })
		c.node("p", func(n *structs.Node) { n.NodePool = "other" })
		c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) { j.Datacenters = []string{"dc1"}; change(j) }))
		c.eval()
		m := c.done.FailedTGAllocs["g"]
		if m == nil {
			t.Fatalf("it was placed: %v", c.liveOn())
		}
		if !maps.Equal(m.ConstraintFiltered, want) || m.NodesFiltered != 3 || m.NodesEvaluated != 3 || m.NodesInPool != 4 ||
			m.CoalescedFailures != 1 || m.ClassFiltered["small"] != 3 || !maps.Equal(m.NodesAvailable, map[string]int{"dc1": 3}) {
			t.Errorf("explained as %+v", *m)
		}
		blocked := c.last.Evals[1]
		if blocked.Status != structs.EvalStatusBlocked || c.done.BlockedEval != blocked.ID || blocked.SnapshotIndex == 0 {
			t.Errorf("the blocked evaluation is %+v", blocked)
		}
		for class, can := range blocked.ClassEligibility {
			if can && !blocked.EscapedComputedClass {
				t.Errorf("class %s is called eligible", class)
			}
		}
	}
	constrain := func(l, op, r string) func(*structs.Job) {
		return func(j *structs.Job) {
			j.Constraints = []*structs.Constraint{{LTarget: l, Operand: op, RTarget: r}}
		}
	}
	f(constrain("${attr.kernel.name}", "=", "windows"), map[string]int{"${attr.kernel.name} = windows": 3})
	f(constrain("${attr.gone}", "is_set", ""), map[string]int{"${attr.gone} is_set": 3})
	f(constrain("${node.unique.name}", "=", "nobody"), map[string]int{"${node.unique.name} = nobody": 3})
	f(func(j *structs.Job) { schedtest.Task(j).Driver = "docker" }, map[string]int{"missing drivers: docker": 3})
	f(func(j *structs.Job) {
		schedtest.Group(j).Volumes = map[string]*structs.VolumeRequest{"v": {Type: "host", Source: "data"}}
	}, map[string]int{"missing compatible host volumes: data": 3})
	f(func(j *structs.Job) { schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "gpu"}} },
		map[string]int{"missing devices: gpu": 3})
}

func TestExhaustionIsExplained(t *testing.T) {
	f := func(change func(*structs.Job), want string, fits int) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 2)
		c.register(schedtest.Job(structs.JobTypeService, 40, change))
		c.eval()
		m := c.done.FailedTGAllocs["g"]
		if m == nil || !maps.Equal(m.DimensionExhausted, map[string]int{want: 2}) || m.NodesExhausted != 2 ||
			m.CoalescedFailures != 39-fits || c.done.QueuedAllocations["g"] != 40-fits {
			t.Errorf("%s: explained as %+v", want, m)
		}
		c.wantLive(fits)
		for class, can := range c.last.Evals[1].ClassEligibility {
			if !can {
				t.Errorf("class %s could take it when something ends", class)
			}
		}
	}
	f(func(*structs.Job) {}, "cpu", 16)
	f(func(j *structs.Job) { schedtest.Task(j).Resources.MemoryMB = 4000 }, "memory", 4)
	f(func(j *structs.Job) { schedtest.Group(j).EphemeralDisk.SizeMB = 60_000 }, "disk", 2)
	f(func(j *structs.Job) { schedtest.Task(j).Resources.CPU, schedtest.Task(j).Resources.Cores = 0, 3 }, "cores", 2)
	f(func(j *structs.Job) {
		schedtest.Group(j).Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "web", Value: 80}}}}
	}, "network: port 80 already in use", 2)
}

func TestNamedResources(t *testing.T) {
	c := newCluster(t)
	c.node("a", func(n *structs.Node) {
		n.NodeResources.MinDynamicPort, n.NodeResources.MaxDynamicPort = 20000, 20006
		n.ReservedResources = &structs.NodeReservedResources{
			Networks: structs.NodeReservedNetworkResources{ReservedHostPorts: "22,20000-20002"},
			Cpu:      structs.NodeReservedCpuResources{ReservedCpuCores: []uint16{0}},
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{{
			Vendor: "nvidia", Type: "gpu", Name: "a100", Instances: []*structs.NodeDevice{
				{ID: "g0", Healthy: true}, {ID: "g1"}, {ID: "g2", Healthy: true},
			},
		}}
	})
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) {
		schedtest.Task(j).Resources = &structs.Resources{Cores: 1, MemoryMB: 100, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu"}}}
		schedtest.Group(j).Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "a"}, {Label: "b", To: -1}}}}
	}))
	c.eval()
	var cores []uint16
	var ports []int
	var gpus []string
	for _, a := range c.sorted() {
		r := a.AllocatedResources
		cores = append(cores, r.Tasks["t"].Cpu.ReservedCores...)
		if r.Tasks["t"].Cpu.CpuShares != 1000 {
			t.Errorf("a core counts %d MHz", r.Tasks["t"].Cpu.CpuShares)
		}
		gpus = append(gpus, r.Tasks["t"].Devices[0].DeviceIDs...)
		for _, p := range r.Shared.Ports {
			ports = append(ports, p.Value)
			if p.HostIP != "10.0.0.1" || (p.Label == "b" && p.To != p.Value) {
				t.Errorf("port %+v", p)
			}
		}
	}
	slices.Sort(cores)
	slices.Sort(ports)
	slices.Sort(gpus)
	if !slices.Equal(cores, []uint16{1, 2}) || !slices.Equal(ports, []int{20003, 20004, 20005, 20006}) ||
		!slices.Equal(gpus, []string{"g0", "g2"}) {
		t.Errorf("given: cores %v, ports %v, GPUs %v", cores, ports, gpus)
	}
}

func TestLostNode(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 3))
	c.eval()
	c.runAll()
	c.changeNode("n00", down)
	c.eval()
	c.wantPlan(3, 3, 0)
	for _, s := range c.last.Stop {
		if s.ClientStatus != structs.AllocClientLost {
			t.Errorf("stopped as %+v", s)
		}
	}
	for _, in := range c.last.Place[0].Instances {
		if in.PreviousAllocation == "" {
			t.Errorf("instance %d stands for nobody", in.Index)
		}
	}
	c.runAll()
	c.changeNode("n00", up)
	c.eval()
	c.wantPlan(0, 0, 0)
	e := c.w.Edit()
	e.DeleteNode("n01")
	delete(c.nodes, "n01")
	c.w = e.World()
	c.eval()
	c.wantPlan(3, 3, 0)
}

func TestLostNodeWithoutRoomIsMadeGoodLater(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.changeNode("n00", down)
	c.eval()
	c.wantPlan(0, 1, 0)
	blocked := c.last.Evals[1]
	if !blocked.ClassEligibility[c.nodes["n00"].ComputedClass] && len(blocked.ClassEligibility) > 0 {
		t.Errorf("the class of the node that may come back is closed: %v", blocked.ClassEligibility)
	}
	c.evaluate(blocked)
	if got := c.last.Evals; len(got) != 1 || got[0].ID != blocked.ID || got[0].Status != structs.EvalStatusBlocked {
		t.Errorf("a blocked evaluation without success is stored as %+v", got[0])
	}
	c.changeNode("n00", up)
	c.evaluate(blocked)
	c.wantPlan(1, 0, 0)
	if c.done.Status != structs.EvalStatusComplete || c.last.Place[0].Instances[0].PreviousAllocation == "" {
		t.Errorf("the evaluation ends as %s, instance %+v", c.done.Status, c.last.Place[0].Instances[0])
	}
}

func TestDrain(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 3))
	c.eval()
	c.runAll()
	c.changeNode("n00", func(n *structs.Node) { n.DrainStrategy = &structs.DrainStrategy{} })
	c.eval()
	c.wantPlan(0, 0, 0) // nobody was asked to move yet
	once := false
	c.client(func(*structs.Allocation) bool { take := !once; once = true; return take },
		func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
	c.eval()
	c.wantPlan(1, 1, 0)
	if got := c.liveOn(); !maps.Equal(got, map[string]int{"n00": 2, "n01": 1}) {
		t.Errorf("%v", got)
	}
}

func TestBatchIsNotRunTwice(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeBatch, 4))
	c.eval()
	c.client(func(a *structs.Allocation) bool { return a.Index() < 2 }, c.ended(false))
	c.changeNode(c.sorted()[0].NodeID, down)
	c.eval()
	c.wantPlan(2, 2, 0)
	c.client(isLive, c.ended(false))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.update(destructive)
	c.eval()
	c.wantPlan(4, 0, 0)
}

func TestDistinct(t *testing.T) {
	f := func(operand, target, value string, count, want int) {
		t.Helper()
		c := newCluster(t)
		for i := range 6 {
			c.node(fmt.Sprint("n", i), func(n *structs.Node) { n.Meta["rack"] = fmt.Sprint("r", i/2) })
		}
		c.register(schedtest.Job(structs.JobTypeService, count, func(j *structs.Job) {
			schedtest.Group(j).Constraints = []*structs.Constraint{{LTarget: target, Operand: operand, RTarget: value}}
		}))
		c.eval()
		c.wantLive(want)
		if want < count && c.done.FailedTGAllocs["g"].NodesFiltered != 6 {
			t.Errorf("explained as %+v", c.done.FailedTGAllocs["g"])
		}
		c.runAll()
		c.changeNode(c.last.Place[0].Nodes[0].ID, down)
		c.eval()
		for _, n := range c.liveOn() {
			if operand == structs.ConstraintDistinctHosts && value != "false" && n > 1 {
				t.Errorf("%v", c.liveOn())
			}
		}
	}
	f(structs.ConstraintDistinctHosts, "", "", 4, 4)
	f(structs.ConstraintDistinctHosts, "", "", 8, 6)
	f(structs.ConstraintDistinctHosts, "", "false", 8, 8)
	f(structs.ConstraintDistinctProperty, "${meta.rack}", "", 5, 3)
	f(structs.ConstraintDistinctProperty, "${meta.rack}", "2", 10, 6)
}

func TestSpreads(t *testing.T) {
	f := func(count int, spread *structs.Spread, want map[string]int) {
		t.Helper()
		c := newCluster(t)
		for i := range 6 {
			c.node(fmt.Sprint("n", i), func(n *structs.Node) {
				n.Datacenter = fmt.Sprint("dc", i%3)
				n.NodeResources.Cpu.CpuShares = 20_000
			})
		}
		spread.Weight = 50
		c.register(schedtest.Job(structs.JobTypeService, count, func(j *structs.Job) { j.Spreads = []*structs.Spread{spread} }))
		c.eval()
		got := map[string]int{}
		for id, n := range c.liveOn() {
			got[c.nodes[id].Datacenter] += n
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	even := "${node.datacenter}"
	f(9, &structs.Spread{Attribute: even}, map[string]int{"dc0": 3, "dc1": 3, "dc2": 3})
	f(10, &structs.Spread{Attribute: even, SpreadTarget: []*structs.SpreadTarget{{Value: "dc0", Percent: 70}, {Value: "dc1", Percent: 30}}},
		map[string]int{"dc0": 7, "dc1": 3})
	f(10, &structs.Spread{Attribute: even, SpreadTarget: []*structs.SpreadTarget{{Value: "dc0", Percent: 60}}},
		map[string]int{"dc0": 6, "dc1": 2, "dc2": 2})

	c := newCluster(t)
	nodes(c, 150)
	c.register(schedtest.Job(structs.JobTypeService, 300, func(j *structs.Job) {
		j.Spreads = []*structs.Spread{{Attribute: "${node.unique.id}", Weight: 50}}
	}))
	c.eval()
	for id, n := range c.liveOn() {
		if n != 2 {
			t.Errorf("%s has %d", id, n)
		}
	}
}

func TestAffinities(t *testing.T) {
	f := func(target, value string, weight int, ok func(*structs.Node) bool) {
		t.Helper()
		c := newCluster(t)
		for i := range 130 {
			c.node(fmt.Sprintf("n%03d", i), func(n *structs.Node) { n.Meta["fast"] = fmt.Sprint(i%5 == 3) })
		}
		c.register(schedtest.Job(structs.JobTypeService, 3, func(j *structs.Job) {
			schedtest.Group(j).Affinities = []*structs.Affinity{{LTarget: target, Operand: "=", RTarget: value, Weight: weight}}
		}))
		c.eval()
		for id := range c.liveOn() {
			if !ok(c.nodes[id]) {
				t.Errorf("placed on %s", id)
			}
		}
	}
	f("${meta.fast}", "true", 50, func(n *structs.Node) bool { return n.Meta["fast"] == "true" })
	f("${meta.fast}", "true", -50, func(n *structs.Node) bool { return n.Meta["fast"] == "false" })
	f("${node.unique.id}", "n129", 50, func(n *structs.Node) bool { return n.ID == "n129" })
}

func TestCandidates(t *testing.T) {
	c := newCluster(t)
	nodes(c, 5)
	c.register(schedtest.Job(structs.JobTypeService, 10, func(j *structs.Job) { schedtest.Group(j).Candidates = []string{"n03", "name-n04"} }))
	c.eval()
	if got := c.liveOn(); !maps.Equal(got, map[string]int{"n03": 8, "n04": 2}) {
		t.Errorf("%v", got)
	}
}

func TestAllAtOnce(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 9, func(j *structs.Job) { j.AllAtOnce = true }))
	c.eval()
	c.wantPlan(0, 0, 0)
	if c.done.QueuedAllocations["g"] != 9 {
		t.Errorf("queued: %v", c.done.QueuedAllocations)
	}
}

func TestAnnotations(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 4))
	c.eval()
	f := func(want structs.DesiredUpdates) {
		t.Helper()
		if got := c.last.Annotations.DesiredTGUpdates["g"]; *got != want {
			t.Errorf("%+v, want %+v", *got, want)
		}
	}
	f(structs.DesiredUpdates{Place: 4})
	c.client(isLive, healthy)
	c.update(setCount(6))
	c.eval()
	f(structs.DesiredUpdates{Place: 2, InPlaceUpdate: 4})
	c.client(isLive, healthy)
	c.update(func(j *structs.Job) { schedtest.Group(j).Count = 5; destructive(j) })
	c.eval()
	f(structs.DesiredUpdates{Stop: 1, DestructiveUpdate: 1, Ignore: 4})
	c.update(func(j *structs.Job) { j.TaskGroups[0].Name = "other" })
	c.eval()
	f(structs.DesiredUpdates{Stop: 5})
}

func TestAThousandOnAHundredNodes(t *testing.T) {
	c := newCluster(t)
	nodes(c, 100, func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 5000 })
	c.register(schedtest.Job(structs.JobTypeService, 1000))
	c.eval()
	c.wantPlan(1000, 0, 0)
	if len(c.last.Place) != 1 || len(c.last.Place[0].Nodes) != 100 || len(c.last.Evals) != 1 {
		t.Errorf("%d batches, %d nodes, %d evaluations", len(c.last.Place), len(c.last.Place[0].Nodes), len(c.last.Evals))
	}
	c.runAll()
	c.update(setCount(10))
	c.eval()
	c.wantPlan(0, 990, 10)
}

func TestPeriodicAndParameterizedJobsDoNotRun(t *testing.T) {
	for _, change := range []func(*structs.Job){
		func(j *structs.Job) { j.Periodic = &structs.PeriodicConfig{Enabled: true} },
		func(j *structs.Job) { j.ParameterizedJob = &structs.ParameterizedJobConfig{} },
	} {
		c := newCluster(t)
		nodes(c, 1)
		c.register(schedtest.Job(structs.JobTypeBatch, 1, change))
		c.eval()
		c.wantPlan(0, 0, 0)
	}
}

func TestNewVersionReplacesAFailedOneAtOnce(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.client(isLive, c.ended(true))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.update(destructive)
	c.eval()
	c.wantPlan(1, 1, 0)
	if in := c.last.Place[0].Instances[0]; in.RescheduleTracker != nil || in.PreviousAllocation == "" {
		t.Errorf("placed as %+v", in)
	}
}

func TestScheduleWithoutWhatItNeeds(t *testing.T) {
	if _, err := scheduler.Schedule(scheduler.NewWorld(), nil, scheduler.Input{}); err == nil {
		t.Error("no evaluation, but no error")
	}
}

func TestStoppedWhileItsNodeIsGone(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.runAll()
	c.changeNode("n00", down)
	c.update(func(j *structs.Job) { j.Stop = true })
	c.eval()
	c.wantPlan(0, 1, 0)
	if s := c.last.Stop[0]; s.ClientStatus != structs.AllocClientLost {
		t.Errorf("stopped as %+v", s)
	}
	c.changeNode("n00", up)
	c.eval()
	c.wantPlan(0, 0, 0)
}

func TestStickyDiskGoesBack(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) { schedtest.Group(j).EphemeralDisk.Sticky = true }))
	c.eval()
	c.runAll()
	c.node("b", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 600 }) // binpack would take it
	c.client(isLive, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
	c.eval()
	if got := c.liveOn(); !maps.Equal(got, map[string]int{"a": 1}) {
		t.Errorf("%v", got)
	}
}
