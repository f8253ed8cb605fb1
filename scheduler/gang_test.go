package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// dgxIn is a node of 8 GPUs in a rack.
func dgxIn(rack string) func(*structs.Node) {
	return func(n *structs.Node) {
		n.Meta["rack"] = rack
		n.Attributes["unique.network.ip-address"] = "10.1.0." + strings.TrimLeft(n.ID, "nr0")
		d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "h100"}
		for i := range 8 {
			d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", n.ID, i), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
	}
}

// racks adds nodes of 8 GPUs: so many to each rack, r1 first.
func (c *cluster) racks(sizes ...int) {
	n := 0
	for rack, size := range sizes {
		for range size {
			n++
			c.node(fmt.Sprintf("n%02d", n), dgxIn(fmt.Sprintf("r%d", rack+1)))
		}
	}
}

// gangJob is a gang of one group, of instances that ask for so many GPUs.
func gangJob(kind string, count, gpus int, change ...func(*structs.Job)) *structs.Job {
	return schedtest.Job(kind, count, append([]func(*structs.Job){func(j *structs.Job) {
		schedtest.Group(j).Gang = &structs.Gang{}
		if gpus > 0 {
			schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: gpus}}
		}
		j.Reschedule = &structs.ReschedulePolicy{
			Attempts: new(2), Interval: new(time.Hour), Delay: new(30 * time.Second),
			DelayFunction: new(structs.DelayFunctionConstant), Unlimited: new(false),
		}
	}}, change...)...)
}

func inRack(required bool) func(*structs.Job) {
	return func(j *structs.Job) {
		schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: "rack", Required: required}
	}
}

func minimum(n int) func(*structs.Job) {
	return func(j *structs.Job) { schedtest.Group(j).Gang.Min = n }
}

func byMember(j *structs.Job) { schedtest.Group(j).Gang.OnLoss = structs.GangOnLossMember }

// withPeer adds a second group to the gang, of plain instances.
func withPeer(count int) func(*structs.Job) {
	return func(j *structs.Job) {
		h := schedtest.Group(j).Copy()
		h.Name, h.Count, h.Gang, h.Tasks[0].Resources.Devices = "h", count, nil, nil
		h.Topology = schedtest.Group(j).Topology
		schedtest.Group(j).Gang.Groups = []string{"h"}
		j.TaskGroups = append(j.TaskGroups, h)
	}
}

// members are the live members by name.
func (c *cluster) members() map[string]*structs.Allocation {
	out := map[string]*structs.Allocation{}
	for _, a := range c.allocs {
		if isLive(a) {
			out[a.Name] = a
		}
	}
	return out
}

// wantGang checks what the live members know of each other.
func (c *cluster) wantGang(size int, level string) {
	c.t.Helper()
	c.wantLive(size)
	ranks := map[int]bool{}
	for _, a := range c.members() {
		g := a.Gang
		if g == nil || g.Size != size || len(g.Hosts) != size || g.Level != level || ranks[g.Rank] {
			c.t.Fatalf("%s knows %+v of a gang of %d at level %q", a.Name, g, size, level)
		}
		ranks[g.Rank] = true
		if host := c.nodes[a.NodeID].Attributes["unique.network.ip-address"]; host != "" && !strings.HasPrefix(g.Hosts[g.Rank], host) {
			c.t.Fatalf("%s on %s is said to be at %s", a.Name, a.NodeID, g.Hosts[g.Rank])
		}
	}
}

// wantReason looks for a text in what a group is said to lack.
func (c *cluster) wantReason(group, text string) {
	c.t.Helper()
	m := c.done.FailedTGAllocs[group]
	if m == nil {
		c.t.Fatalf("group %s has found room", group)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(m.DimensionExhausted)), func(s string) bool { return strings.Contains(s, text) }) {
		c.t.Fatalf("group %s lacks %v, not %q", group, m.DimensionExhausted, text)
	}
}

func (c *cluster) wantQueued(n int) {
	c.t.Helper()
	sum := 0
	for _, q := range c.done.QueuedAllocations {
		sum += q
	}
	if sum != n || (n > 0) != (c.blocked() != nil) {
		c.t.Fatalf("%d are queued, blocked: %v, want %d", sum, c.blocked() != nil, n)
	}
}

// blocked is the evaluation that waits for room.
func (c *cluster) blocked() *structs.Evaluation {
	for _, e := range c.last.Evals {
		if e.Status == structs.EvalStatusBlocked {
			return e
		}
	}
	return nil
}

// wake decides an evaluation that waited.
func (c *cluster) wake(ev *structs.Evaluation) {
	c.t.Helper()
	c.newEval() // what it mints differs from what was minted before
	c.evaluate(ev)
}

func TestGangWholeOrNotAtAll(t *testing.T) {
	f := func(nodes, count int, want int) {
		t.Helper()
		c := newCluster(t)
		c.racks(nodes)
		c.register(gangJob(structs.JobTypeService, count, 8))
		c.eval()
		if c.wantLive(want); want == 0 {
			c.wantQueued(count)
			c.wantReason("g", fmt.Sprintf("gang: there is room for %d of %d instances, and all must start together", nodes, count))
			return
		}
		c.wantQueued(0)
		if !c.last.AllAtOnce {
			t.Errorf("the plan may be cut")
		}
		level := "rack"
		if count == 1 {
			level = "node"
		}
		c.wantGang(count, level)
	}
	f(4, 4, 4)
	f(4, 1, 1)
	f(3, 4, 0)
	f(0, 4, 0)
}

func TestGangOfGroups(t *testing.T) {
	c := newCluster(t)
	c.racks(2)
	c.register(gangJob(structs.JobTypeService, 2, 8, withPeer(3)))
	c.eval()
	c.wantGang(5, "rack")
	ranks := map[string]int{}
	for name, a := range c.members() {
		ranks[name] = a.Gang.Rank
	}
	want := map[string]int{"j.g[0]": 0, "j.g[1]": 1, "j.h[0]": 2, "j.h[1]": 3, "j.h[2]": 4}
	if !maps.Equal(ranks, want) {
		t.Errorf("ranks %v", ranks)
	}
	// One group that finds no room keeps the other from being placed.
	c = newCluster(t)
	c.racks(1)
	c.register(gangJob(structs.JobTypeService, 2, 8, withPeer(3)))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantQueued(5)
	c.wantReason("g", "gang: there is room for 4 of 5 instances, and all must start together")
	c.wantReason("h", "gang: there is room for 4 of 5 instances, and all must start together")
}

func TestGangHosts(t *testing.T) {
	c := newCluster(t)
	c.racks(2)
	c.node("n03", dgxIn("r1"), func(n *structs.Node) {
		delete(n.Attributes, "unique.network.ip-address")
		n.HTTPAddr = "10.9.9.9:4646"
	})
	c.register(gangJob(structs.JobTypeService, 3, 8, func(j *structs.Job) {
		schedtest.Group(j).Networks = []*structs.NetworkResource{{
			ReservedPorts: []structs.Port{{Label: "rendezvous", Value: 29500}}, DynamicPorts: []structs.Port{{Label: "other"}},
		}}
	}))
	c.eval()
	c.wantLive(3)
	for _, a := range c.members() {
		hosts := slices.Sorted(slices.Values(a.Gang.Hosts))
		if !slices.Equal(hosts, []string{"10.1.0.1:29500", "10.1.0.2:29500", "10.9.9.9:29500"}) {
			t.Fatalf("hosts %v", hosts)
		}
	}
}

func TestGangRequiredRack(t *testing.T) {
	// Two racks of two cannot hold four: it waits, and says why.
	c := newCluster(t)
	c.racks(2, 2)
	c.register(gangJob(structs.JobTypeService, 4, 8, inRack(true)))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.wantQueued(4)
	c.wantReason("g", "no rack fits 4 instances of 8 GPUs: rack r1 has room for 2, rack r2 for 2")
	if m := c.done.FailedTGAllocs["g"]; m.NodesExhausted != 4 || m.NodesFiltered != 0 {
		t.Errorf("%d nodes are exhausted and %d filtered", m.NodesExhausted, m.NodesFiltered)
	}
	// Two more nodes in one of them do.
	c.node("n05", dgxIn("r2"))
	c.node("n06", dgxIn("r2"))
	c.wake(c.blocked())
	c.wantGang(4, "rack")
	for _, a := range c.members() {
		if c.nodes[a.NodeID].Meta["rack"] != "r2" {
			t.Errorf("%s is on %s", a.Name, a.NodeID)
		}
	}
}

func TestGangTakesTheTightestRack(t *testing.T) {
	c := newCluster(t)
	c.racks(4, 3, 2, 2)
	c.register(gangJob(structs.JobTypeService, 2, 8, inRack(false)))
	c.eval()
	c.wantGang(2, "rack")
	for _, a := range c.members() {
		if rack := c.nodes[a.NodeID].Meta["rack"]; rack != "r3" {
			t.Errorf("%s is in %s: of the least room, the first", a.Name, rack)
		}
	}
}

// TestGangTriesTheNextRack: what a rack seems to have may not do, and leaves no trace.
func TestGangTriesTheNextRack(t *testing.T) {
	c := newCluster(t)
	c.racks(1, 2)
	c.register(gangJob(structs.JobTypeService, 2, 1, inRack(true), func(j *structs.Job) {
		schedtest.Group(j).Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "p", Value: 8080}}}}
		schedtest.Group(j).Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctProperty, LTarget: "${node.datacenter}", RTarget: "2"}}
	}))
	c.eval()
	c.wantGang(2, "rack")
	for _, a := range c.members() {
		if rack := c.nodes[a.NodeID].Meta["rack"]; rack != "r2" {
			t.Errorf("%s is in %s", a.Name, rack)
		}
	}
}

// TestGroupsOfAGangSeeWhatTheOthersTake: a node that a group had in view may be fuller
// when it comes back to it.
func TestGroupsOfAGangSeeWhatTheOthersTake(t *testing.T) {
	c := newCluster(t)
	c.node("n1", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 1500 })
	c.node("n2", func(n *structs.Node) { n.Attributes["cpu.arch"] = "arm64" })
	c.register(gangJob(structs.JobTypeService, 1, 0, func(j *structs.Job) {
		for i, mhz := range []int{2000, 1100, 1000} {
			g := schedtest.Group(j).Copy()
			g.Name, g.Tasks[0].Resources.CPU = fmt.Sprint("g", i), mhz
			if g.Gang = (&structs.Gang{Min: 1}); i > 0 {
				g.Count, g.Gang.Groups = 2, []string{"g0"}
			}
			j.TaskGroups = append(j.TaskGroups, g)
		}
		j.TaskGroups = j.TaskGroups[1:]
	}))
	c.eval() // which checks that no node gives more than it has
	c.wantLive(4)
	c.wantQueued(1)
	c.wantReason("g1", "cpu")
}

// levels are racks in pods: r1 and r2 in p1, r3 and r4 in p2.
func (c *cluster) levels() {
	c.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}, {Name: "pod", Meta: "pod"}}
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		c.changeNode(id, func(n *structs.Node) {
			n.Meta["pod"] = "p1"
			if n.Meta["rack"] > "r2" {
				n.Meta["pod"] = "p2"
			}
			n.ComputeClass()
		})
	}
}

func TestGangLevels(t *testing.T) {
	f := func(level string, required bool, count, gpus int, want string) {
		t.Helper()
		c := newCluster(t)
		c.racks(2, 2, 1, 1)
		c.levels()
		c.register(gangJob(structs.JobTypeService, count, gpus, func(j *structs.Job) {
			if level != "" {
				schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: level, Required: required}
			}
		}))
		c.eval()
		if want == "none" {
			c.wantPlan(0, 0, 0)
			c.wantQueued(count)
			return
		}
		c.wantGang(count, want)
	}
	// Preferred: the lowest level that works, from the one that is stated.
	f("node", false, 4, 2, "node")
	f("pcie", false, 4, 2, "node")
	f("node", false, 2, 8, "rack")
	f("rack", false, 2, 8, "rack")
	f("rack", false, 4, 8, "pod")
	f("rack", false, 5, 8, "")
	f("node", false, 6, 8, "")
	f("zone", false, 2, 8, "rack")
	// Required: that level, or none.
	f("node", true, 4, 2, "node")
	f("node", true, 5, 2, "none")
	f("rack", true, 2, 8, "rack")
	f("rack", true, 3, 8, "none")
	f("pod", true, 4, 8, "pod")
	f("pod", true, 5, 8, "none")
	f("zone", true, 2, 8, "none")
	// Nothing is stated: the level that happens is told.
	f("", false, 1, 8, "node")
	f("", false, 6, 8, "")
}

func TestGangSaysWhatLevelItLacks(t *testing.T) {
	f := func(level string, want string) {
		t.Helper()
		c := newCluster(t)
		c.racks(1, 1, 1, 1, 1)
		c.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}, {Name: "pod", Meta: "pod"}}
		c.register(gangJob(structs.JobTypeService, 2, 8, func(j *structs.Job) {
			schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: level, Required: true}
		}))
		c.eval()
		c.wantReason("g", want)
	}
	f("node", "no node fits 2 instances of 8 GPUs: node name-n01 has room for 1, node name-n02 for 1, node name-n03 for 1, 2 others have room for no more")
	f("rack", "no rack fits 2 instances of 8 GPUs: rack r1 has room for 1, rack r2 for 1, rack r3 for 1, 2 others have room for no more")
	f("pod", "gang: no pod is known: no node that fits states meta.pod")
	f("zone", `gang: level "zone" is not known`)
}

func TestGangLargerThanTheCluster(t *testing.T) {
	for _, change := range []func(*structs.Job){inRack(true), inRack(false)} {
		c := newCluster(t)
		c.racks(2, 2)
		c.register(gangJob(structs.JobTypeService, 8, 8, change))
		c.eval()
		c.wantPlan(0, 0, 0)
		c.wantQueued(8)
		c.wantReason("g", "gang: larger than the cluster: wants 64 devices, all nodes that fit have 32")
	}
}

func TestGangGrows(t *testing.T) {
	c := newCluster(t)
	c.racks(2, 2)
	c.register(gangJob(structs.JobTypeService, 4, 8, minimum(2), inRack(true)))
	c.eval()
	c.wantGang(2, "rack")
	c.wantQueued(2)
	c.client(isLive, run)
	first := c.members()["j.g[0]"]
	rack := c.nodes[first.NodeID].Meta["rack"]
	c.node("n05", dgxIn("r1"))
	c.node("n06", dgxIn("r2"))
	c.wake(c.blocked())
	c.wantPlan(1, 0, 0)
	if c.last.AllAtOnce {
		t.Errorf("one that joins need not come with others")
	}
	c.wantLive(3)
	third := c.members()["j.g[2]"]
	if third == nil || third.Gang.Rank != 2 || third.Gang.Size != 3 || !slices.Equal(third.Gang.Hosts[:2], first.Gang.Hosts) ||
		c.nodes[third.NodeID].Meta["rack"] != rack {
		t.Fatalf("the third is %+v", third)
	}
	// Less than there are, but not less than min: the last ones leave.
	c.update(setCount(2))
	c.eval()
	c.wantPlan(0, 1, 2)
	c.wantLive(2)
}

func TestGangsOf(t *testing.T) {
	g := func(name string, others ...string) *structs.TaskGroup {
		t := &structs.TaskGroup{Name: name, Count: 2}
		if name < "x" {
			t.Gang = &structs.Gang{Groups: others}
		}
		return t
	}
	f := func(want string, groups ...*structs.TaskGroup) {
		t.Helper()
		gangs := feasible.GangsOf(&structs.Job{Type: structs.JobTypeService, TaskGroups: groups})
		var parts []string
		seen := map[*feasible.Gang]bool{}
		for _, tg := range groups {
			of := gangs[tg.Name]
			if of == nil || seen[of] {
				continue
			}
			seen[of] = true
			part := ""
			for _, m := range of.Groups {
				part += m.Group.Name
			}
			parts = append(parts, part)
		}
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("a b", g("a"), g("b"))
	f("ab", g("a", "b"), g("b"))
	f("ab", g("a", "b"), g("b", "a"))
	f("abc", g("a", "c"), g("b", "c"), g("c"))
	f("acbd", g("a", "b"), g("c", "d"), g("b", "d"), g("d"))
	f("ax b", g("a", "x"), g("b"), g("x"), g("y"))
	f("", g("x"), g("y"))
	f("a", g("a", "nobody"))
}
