package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// drawJob draws a job of one or two groups with all that a placement looks at.
func drawJob(t *rapid.T) *structs.Job {
	kind := rapid.SampledFrom([]string{
		structs.JobTypeService, structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch,
	}).Draw(t, "type")
	j := testJob(kind, rapid.IntRange(0, 12).Draw(t, "count"))
	drawSpec(t, j)
	return j
}

func drawSpec(t *rapid.T, j *structs.Job) {
	g, tk := group(j), task(j)
	yes := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	tk.Resources = &structs.Resources{
		CPU: rapid.IntRange(1, 2000).Draw(t, "cpu"), MemoryMB: rapid.IntRange(10, 4000).Draw(t, "memory"),
	}
	if yes("cores") {
		tk.Resources.CPU, tk.Resources.Cores = 0, rapid.IntRange(1, 3).Draw(t, "n")
	}
	if yes("gpu") {
		d := &structs.RequestedDevice{Name: rapid.SampledFrom([]string{"gpu", "v/gpu", "v/gpu/m"}).Draw(t, "kind"), Count: rapid.IntRange(1, 4).Draw(t, "gpus")}
		if d.Count == 1 {
			d.Share = rapid.SampledFrom([]int{1, 300, 500, 1000}).Draw(t, "share")
		}
		if yes("topology") {
			level := rapid.SampledFrom([]string{"gpu", "pcie", "socket", "node", "nvlink"}).Draw(t, "level")
			d.Topology = &structs.TopologyAsk{Level: level, Required: rapid.Bool().Draw(t, "required")}
		}
		tk.Resources.Devices = []*structs.RequestedDevice{d}
		if yes("another device") {
			tk.Resources.Devices = append(tk.Resources.Devices, &structs.RequestedDevice{Name: "v/gpu/m", Count: 1})
		}
	}
	g.Networks, g.Constraints, g.Affinities, g.Spreads = nil, nil, nil, nil
	if yes("network") {
		g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "a"}, {Label: "b"}}}}
		if yes("static") {
			g.Networks[0].ReservedPorts = []structs.Port{{Label: "s", Value: rapid.IntRange(79, 81).Draw(t, "port")}}
		}
	}
	if yes("distinct") {
		g.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	}
	if yes("affinity") {
		g.Affinities = []*structs.Affinity{{LTarget: "${node.datacenter}", RTarget: "dc0", Operand: "=", Weight: 30}}
	}
	if yes("spread") {
		target := rapid.SampledFrom([]string{"${node.datacenter}", "${node.unique.id}"}).Draw(t, "target")
		g.Spreads = []*structs.Spread{{Attribute: target, Weight: 50}}
	}
	j.TaskGroups = j.TaskGroups[:1]
	if yes("second group") {
		h := g.Copy()
		h.Name, h.Count = "h", rapid.IntRange(0, 4).Draw(t, "its count")
		j.TaskGroups = append(j.TaskGroups, h)
	}
	j.Policy = rapid.SampledFrom([]string{"", "spread", "first-fit", "next-fit", "random"}).Draw(t, "policy")
	g.Count = rapid.IntRange(0, 12).Draw(t, "count again")
	j.Canonicalize()
}

func drawNode(t *rapid.T, id string) *structs.Node {
	return testNode(id, func(n *structs.Node) {
		n.Datacenter = fmt.Sprint("dc", rapid.IntRange(0, 2).Draw(t, "dc"))
		n.NodeResources.Cpu.CpuShares = 1000 * int64(rapid.IntRange(1, 5).Draw(t, "GHz"))
		n.NodeResources.Memory.MemoryMB = int64(rapid.IntRange(100, 9000).Draw(t, "node memory"))
		n.NodeResources.MinDynamicPort, n.NodeResources.MaxDynamicPort = 20000, 20000+rapid.IntRange(0, 12).Draw(t, "ports")
		drawDevices(t, n.NodeResources)
		if rapid.Bool().Draw(t, "in a rack") {
			n.Meta["rack"] = rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")
		}
	})
}

// drawDevices gives a node up to seven GPUs of one or two models, in an uneven tree,
// by their places or without any.
func drawDevices(t *rapid.T, r *structs.NodeResources) {
	count := rapid.SampledFrom([]int{0, 0, 1, 3, 4, 7}).Draw(t, "GPUs")
	if count == 0 {
		return
	}
	groups := []*structs.NodeDeviceResource{{Vendor: "v", Type: "gpu", Name: "m"}, {Vendor: "v", Type: "gpu", Name: "other"}}
	topology := &structs.NodeTopology{Cells: []*structs.TopologyCell{{ID: "socket-0", Level: "socket"}, {ID: "socket-1", Level: "socket"}}}
	placed := rapid.Bool().Draw(t, "places")
	for i := range count {
		id := fmt.Sprint("gpu-", i)
		g := groups[0]
		if rapid.IntRange(0, 4).Draw(t, "model") == 0 {
			g = groups[1]
		}
		g.Instances = append(g.Instances, &structs.NodeDevice{ID: id, Healthy: rapid.IntRange(0, 5).Draw(t, "well") > 0})
		if i == 0 || rapid.Bool().Draw(t, "its own switch") {
			sw := &structs.TopologyCell{ID: fmt.Sprint("pcie-", i), Level: "pcie", Parent: fmt.Sprint("socket-", rapid.IntRange(0, 1).Draw(t, "socket"))}
			topology.Cells = append(topology.Cells, sw)
		}
		sw := topology.Cells[len(topology.Cells)-1]
		sw.Devices = append(sw.Devices, id)
	}
	for _, g := range groups {
		if len(g.Instances) > 0 {
			r.Devices = append(r.Devices, g)
		}
	}
	if placed {
		r.Topology = topology
	}
}

// TestAnyHistory drives one job through random changes of nodes, of itself and of
// what clients report. After every evaluation cluster.evaluate checks that the
// same input gives the same plan, that the World which a plan was made on holds
// all of it, that judging, committing and rebuilding give one World, and that no
// node is over-committed and nothing is given twice. Here it is checked too that
// what was seen before never changes, and that the job ends up as it is wanted.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.seed = rapid.Uint64().Draw(rt, "seed")
		for i := range rapid.IntRange(0, 6).Draw(rt, "nodes") {
			c.setNode(drawNode(rt, fmt.Sprintf("n%d", i)))
		}
		c.register(drawJob(rt))
		var seen []remembered
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			seen = append(seen, remember(c))
			step(rt, c)
			c.eval()
			wanted(rt, c)
		}
		for _, s := range seen {
			if diff := s.w.Diff(s.rebuilt); diff != nil {
				rt.Fatalf("a World changed after it was taken: %v", diff)
			}
		}
	})
}

// remembered is a World and an equal one that shares nothing with it.
type remembered struct{ w, rebuilt *World }

func remember(c *cluster) remembered { return remembered{c.w, c.rebuilt()} }

// step changes one thing.
func step(t *rapid.T, c *cluster) {
	pick := func(a *structs.Allocation) bool { return isLive(a) && rapid.Bool().Draw(t, "this") }
	id := fmt.Sprintf("n%d", rapid.IntRange(0, 7).Draw(t, "node"))
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0:
		c.setNode(drawNode(t, id))
		// It may have shrunk below what runs there; that is no fault of a plan's.
		if overcommitted(c.nodes, c.sorted()) != nil {
			c.client(func(a *structs.Allocation) bool { return a.NodeID == id && isLive(a) }, c.ended(true))
		}
	case 1:
		if c.nodes[id] != nil {
			c.changeNode(id, down)
		}
	case 2:
		if c.nodes[id] != nil {
			delete(c.nodes, id)
			e := c.w.Edit()
			e.DeleteNode(id)
			c.w = e.World()
		}
	case 3:
		if c.nodes[id] != nil {
			c.changeNode(id, func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
		}
	case 4:
		c.client(pick, c.ended(true))
	case 5:
		c.client(pick, c.ended(false))
	case 6:
		c.client(pick, healthy)
	case 7:
		c.update(func(j *structs.Job) { drawSpec(t, j) })
	case 8:
		c.client(pick, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
	}
}

// wanted checks that the job has what it asks for, or says what it lacks: no
// index is held twice, and of a counted group holders and queued make up count.
func wanted(t *rapid.T, c *cluster) {
	names := map[string]string{}
	holders := 0
	for _, a := range c.sorted() {
		if !isLive(a) {
			continue
		}
		key := a.Name
		if c.job.PerNode() {
			key = a.TaskGroup + " on " + a.NodeID
		}
		if other, twice := names[key]; twice {
			t.Fatalf("%s is held by %s and %s", key, other, a.ID)
		}
		names[key] = a.ID
		if a.TaskGroup == "g" {
			holders++
		}
	}
	if m := c.done.FailedTGAllocs["g"]; m != nil && !c.job.PerNode() && m.NodesFiltered+m.NodesExhausted != m.NodesEvaluated {
		t.Fatalf("of %d nodes %d are filtered and %d exhausted: the others would do", m.NodesEvaluated, m.NodesFiltered, m.NodesExhausted)
	}
	if c.job.Type != structs.JobTypeService {
		return
	}
	// A failed one that waits to be rescheduled, or stays failed, holds its place.
	waiting := map[int]bool{}
	for _, a := range c.sorted() {
		if a.ClientStatus == structs.AllocClientFailed && a.TaskGroup == "g" && !a.ServerTerminal() && a.NextAllocation == "" && names[a.Name] == "" {
			waiting[a.Index()] = true
		}
	}
	queued := c.done.QueuedAllocations["g"]
	if g := group(c.job); holders > g.Count || (holders+queued < g.Count-len(waiting)) {
		t.Fatalf("%d holders, %d queued, %d waiting, want %d", holders, queued, len(waiting), g.Count)
	}
	if queued > 0 && c.done.FailedTGAllocs["g"] == nil {
		t.Fatalf("%d are queued without a reason", queued)
	}
}

// TestJudgeOnAnotherWorld judges plans that were made side by side on one World:
// whatever holds must fit together.
func TestJudgeOnAnotherWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			c.setNode(drawNode(rt, fmt.Sprintf("n%d", i)))
		}
		var plans []*structs.Plan
		for i := range rapid.IntRange(2, 5).Draw(rt, "plans") {
			j := drawJob(rt)
			j.ID = fmt.Sprint("j", i)
			c.job = j
			in := c.input()
			in.NewID = func() string { c.ids++; return fmt.Sprint(j.ID, c.ids) }
			ev := c.newEval()
			plan, err := Schedule(c.w, ev, in)
			if err != nil {
				rt.Fatal(err)
			}
			plan.AllAtOnce = rapid.Bool().Draw(rt, "all at once")
			plans = append(plans, plan)
		}
		e := c.w.Edit()
		for _, plan := range plans {
			holds, refused, why := e.Judge(plan)
			n := 0
			for _, b := range holds.Place {
				n += len(b.Instances)
				for _, in := range b.Instances {
					if slices.Contains(refused, b.Nodes[in.Node].ID) {
						rt.Fatalf("a refused node is placed on")
					}
				}
			}
			if (len(refused) > 0) != (why != "") || (len(refused) == 0 && n != placed(plan)) || (plan.AllAtOnce && n != 0 && n != placed(plan)) {
				rt.Fatalf("%d of %d hold, refused %v, %q", n, placed(plan), refused, why)
			}
			c.commit(holds)
		}
		if diff := e.World().Diff(c.rebuilt()); diff != nil {
			rt.Fatal(diff)
		}
		if err := overcommitted(c.nodes, c.sorted()); err != nil {
			rt.Fatal(err)
		}
	})
}
