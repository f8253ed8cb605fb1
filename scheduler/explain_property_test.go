package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestExplainCountsAndHelps: what is told of a job that waits on a random world is what a
// dumb walk over all nodes and allocations counts, and each change that is named, when
// made, places what it says.
func TestExplainCountsAndHelps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.config.PreemptionConfig.BatchSchedulerEnabled = rapid.Bool().Draw(rt, "batch jobs preempt")
		for i := range rapid.IntRange(0, 6).Draw(rt, "nodes") {
			c.setNode(schedtest.DrawAnyNode(rt, fmt.Sprintf("n%d", i)))
		}
		for i := range rapid.IntRange(0, 3).Draw(rt, "others") {
			j := schedtest.DrawRequestingJob(rt)
			j.Priority = rapid.SampledFrom([]int{10, 50, 90}).Draw(rt, "priority")
			c.submit(fmt.Sprint("other", i), j)
		}
		if rapid.Bool().Draw(rt, "somebody leaves") {
			c.client(func(a *structs.Allocation) bool { return rapid.Bool().Draw(rt, "this one") }, c.ended(false))
		}
		c.submit("j", schedtest.DrawRequestingJob(rt))
		x := c.explain()
		g := x.Group("g")
		if queued := c.copyOf().settle()["g"]; queued != g.Missing-g.PlacedNow {
			rt.Fatalf("%d missing, %d of them placed now, but %d wait", g.Missing, g.PlacedNow, queued)
		}
		if g.Missing == g.PlacedNow {
			return
		}
		if g.PlacedNow > 0 { // it took from others, and may take more now
			return
		}
		want, nodes := c.dumb()
		got := map[string]int{}
		for _, r := range g.Reasons {
			got[r.Kind+" "+r.Subject] += r.Nodes
		}
		if !maps.Equal(got, want) {
			rt.Fatalf("told %v\ncounted %v\nof %s", got, want, asJSON(rt, c.job.TaskGroups))
		}
		if g.Nodes != nodes {
			rt.Fatalf("told %+v, counted %+v", g.Nodes, nodes)
		}
		c.metricsAreTrue()
		c.helps("g", g)
	})
}

// metricsAreTrue compares what an evaluation says in Nomad's shape, where a node counts
// under its first reason and what is not ready is not looked at, with a count by hand.
func (c *cluster) metricsAreTrue() {
	c.t.Helper()
	ev := c.newEval()
	ev.JobID, ev.Type = c.job.ID, c.job.Type
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil || plan.FailedTGAllocs["g"] == nil {
		c.t.Fatalf("nothing failed: %v", err)
	}
	m := plan.FailedTGAllocs["g"]
	var inPool, evaluated, filtered, exhausted, fast int
	available := map[string]int{}
	for _, n := range c.nodes {
		list := c.dumbRefusals(n)
		if n.NodePool != "default" || !n.Ready() {
			continue
		}
		inPool++
		if slices.Contains(list, "datacenter "+n.Datacenter) {
			continue
		}
		evaluated++
		available[n.Datacenter]++
		switch {
		case len(list) > 0:
			filtered++
			if n.NodeClass == "fast" {
				fast++
			}
		case len(c.dumbLacks(n)) > 0:
			exhausted++
		}
	}
	if m.NodesInPool != inPool || m.NodesEvaluated != evaluated || m.NodesFiltered != filtered || m.NodesExhausted != exhausted ||
		sum(m.ConstraintFiltered) != filtered || sum(m.DimensionExhausted) != exhausted || m.ClassFiltered["fast"] != fast || m.NodePool != "default" {
		c.t.Fatalf("counted %d in the pool, %d evaluated, %d filtered (%d fast), %d exhausted; told %s", inPool, evaluated, filtered, fast, exhausted, asJSON(c.t, m))
	}
	for dc, n := range m.NodesAvailable {
		if n != available[dc] {
			c.t.Fatalf("%d nodes are available in %s, told %s", available[dc], dc, asJSON(c.t, m))
		}
	}
	if m.CoalescedFailures != plan.Evals[0].QueuedAllocations["g"]-1 {
		c.t.Fatalf("%d wait: %s", plan.Evals[0].QueuedAllocations["g"], asJSON(c.t, m))
	}
}

func sum(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}

// dumb counts by hand why each node takes no instance of the job.
func (c *cluster) dumb() (map[string]int, structs.NodeCounts) {
	out, counts := map[string]int{}, structs.NodeCounts{}
	for _, n := range c.nodes {
		counts.Known++
		if n.NodePool != "default" {
			counts.OtherPools++
			continue
		}
		counts.InPool++
		list := c.dumbRefusals(n)
		if len(list) > 0 {
			counts.Refused++
		} else if list = c.dumbLacks(n); len(list) > 0 {
			counts.Lacking++
		} else {
			counts.Fitting++
		}
		for _, r := range list {
			out[r]++
		}
	}
	return out, counts
}

func (c *cluster) dumbRefusals(n *structs.Node) (out []string) {
	g, add := schedtest.Group(c.job), func(r string) { out = append(out, r) }
	switch {
	case n.Status == structs.NodeStatusDown:
		add("node-down ")
	case n.DrainStrategy != nil:
		add("node-draining ")
	case n.SchedulingEligibility == structs.NodeIneligible:
		add("node-ineligible ")
	}
	if !slices.Contains(c.job.Datacenters, n.Datacenter) && !slices.Contains(c.job.Datacenters, "*") {
		add("datacenter " + n.Datacenter)
	}
	if n.Drivers["mock_driver"] == nil {
		add("driver mock_driver")
	}
	if len(c.job.Constraints) > 0 && n.Meta["rack"] != "r1" {
		add("constraint ${meta.rack} = r1")
	}
	for _, con := range g.Constraints {
		if con.Operand == "!=" && n.ID == "n1" {
			add("constraint ${attr.unique.hostname} != host-n1")
		}
		if con.Operand == structs.ConstraintDistinctHosts && slices.ContainsFunc(c.own(), func(a *structs.Allocation) bool { return isLive(a) && a.NodeID == n.ID }) {
			add("distinct-hosts distinct_hosts")
		}
	}
	if len(g.Candidates) > 0 && n.ID != "n0" && n.ID != "n2" {
		add("candidates ")
	}
	for _, d := range schedtest.Task(c.job).Resources.Devices {
		if !slices.ContainsFunc(n.NodeResources.Devices, func(have *structs.NodeDeviceResource) bool { return dumbKind(d, have) }) {
			add("device-kind " + d.Name)
		}
	}
	return out
}

func dumbKind(d *structs.RequestedDevice, have *structs.NodeDeviceResource) bool {
	return d.Name == "gpu" || d.Name == "v/gpu" || d.Name == "v/gpu/"+have.Name
}

func (c *cluster) dumbLacks(n *structs.Node) (out []string) {
	add := func(r string) { out = append(out, r) }
	cpu, memory, reserved, ports := n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB, map[string]int{}, map[int]bool{}
	for _, a := range c.sorted() {
		if a.NodeID != n.ID || a.Terminal() {
			continue
		}
		r := a.AllocatedResources
		mhz, mib, _, _ := r.Total()
		cpu, memory = cpu-mhz, memory-mib
		for _, p := range r.Shared.Ports {
			ports[p.Value] = true
		}
		for _, d := range r.Tasks["t"].Devices {
			for _, id := range d.DeviceIDs {
				if d.Share == 0 {
					reserved[id] += 1000
				}
				reserved[id] += d.Share
			}
		}
	}
	want := schedtest.Task(c.job).Resources
	if int64(want.CPU) > cpu {
		add("cpu ")
	}
	if int64(want.MemoryMB) > memory {
		add("memory ")
	}
	for _, net := range schedtest.Group(c.job).Networks {
		if p := net.ReservedPorts[0].Value; ports[p] {
			add(fmt.Sprint("port ", p))
		}
	}
	for _, d := range want.Devices {
		most, part := 0, 0
		for _, have := range n.NodeResources.Devices {
			free := 0
			for _, one := range have.Instances {
				if !one.Healthy || !dumbKind(d, have) {
					continue
				}
				if reserved[one.ID] == 0 {
					free++
				}
				part = max(part, 1000-reserved[one.ID])
			}
			most = max(most, free)
		}
		switch whole := d.Share == 0 || d.Share == 1000; {
		case whole && most < d.Count:
			add("devices " + d.Name)
		case !whole && part < d.Share:
			add("share " + d.Name)
		}
	}
	return out
}
