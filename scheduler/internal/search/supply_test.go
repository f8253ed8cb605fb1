package search

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// drawConstrained draws a job for a GPU of any kind, some kinds or one, on some nodes or all.
func drawConstrained(t *rapid.T) *structs.Job {
	d := structs.RequestedDevice{Name: rapid.SampledFrom([]string{"gpu", "gpu", "v/gpu", "v/gpu/m", "v/gpu/other", "mig"}).Draw(t, "kind"), Count: 1}
	if models := rapid.SampledFrom([]string{"", "m", "m,other", "none"}).Draw(t, "models"); models != "" {
		d.Constraints = []*structs.Constraint{{LTarget: "${device.model}", Operand: structs.ConstraintSetContainsAny, RTarget: models}}
	}
	j := schedtest.GPUJob(1, d)
	j.NodePool = rapid.SampledFrom([]string{"", "other", structs.NodePoolAll}).Draw(t, "pool")
	if rapid.IntRange(0, 3).Draw(t, "datacenters") == 0 {
		j.Datacenters = []string{"dc0"}
	}
	if rapid.IntRange(0, 3).Draw(t, "class") == 0 {
		j.Constraints = []*structs.Constraint{{LTarget: "${node.class}", Operand: "=", RTarget: "fast"}}
	}
	return j
}

// suppliedTo counts, node by node, the devices of a job's kind in its pool, and those of them that it may use.
func suppliedTo(w *world.World, j *structs.Job) (all, good int64) {
	m := feasible.NewMatcher()
	fit := feasible.NewFeasibility(j, schedtest.Group(j), m)
	for n := range w.Nodes() {
		if !n.Ready() || !n.InPool(cmp.Or(j.NodePool, structs.DefaultNodePool)) {
			continue
		}
		for _, d := range n.NodeResources.Devices {
			for _, one := range d.Instances {
				if !one.Healthy || d.Type != fit.Devices[0].Kind {
					continue
				}
				all++
				if fit.Class(n).OK() && fit.Devices[0].Matches(m, d) {
					good++
				}
			}
		}
	}
	return all, good
}

// What each typical request may use is moved on from World to World, forwards and backwards and within an
// edit, and is always what a count of all nodes finds.
func TestSupplyFollowsTheWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var requests []structs.TypicalRequest
		for range rapid.IntRange(1, 5).Draw(rt, "requests") {
			j := drawConstrained(rt)
			requests = append(requests, structs.TypicalRequest{Job: j, Group: schedtest.Group(j), Weight: 1})
		}
		typical := NewTypical(requests)
		worlds := []*world.World{world.New()}
		check := func(e *world.Edit, of *world.World) {
			m := typical.measuresFor(e)
			for i, r := range requests {
				all, good := suppliedTo(of, r.Job)
				if want := scarcity(all, good); m.scarcity[i] != want {
					rt.Fatalf("request %d: scarcity %v, want %v, as %d of %d devices are good for it", i, m.scarcity[i], want, good, all)
				}
			}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			e := worlds[len(worlds)-1].Edit()
			for range rapid.IntRange(1, 3).Draw(rt, "changes") {
				id := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(rt, "node"))
				if rapid.IntRange(0, 3).Draw(rt, "goes") == 0 {
					e.DeleteNode(id)
				} else {
					e.UpsertNode(schedtest.DrawAnyNode(rt, id))
				}
				if rapid.Bool().Draw(rt, "within the edit") {
					world.Flush(e)
					check(e, world.Base(e))
				}
			}
			worlds = append(worlds, e.World())
			w := rapid.SampledFrom(worlds).Draw(rt, "world")
			check(w.Edit(), w)
		}
	})
}

func TestScarcity(t *testing.T) {
	f := func(all, good int64, want float64) {
		t.Helper()
		if have := scarcity(all, good); have != want {
			t.Errorf("%d of %d devices are good: scarcity %v, want %v", good, all, have, want)
		}
	}
	f(8, 8, 1)
	f(8, 0, 1) // there is nothing to weigh
	f(0, 0, 1)
	f(10_000, 9_999, 1) // nearly all
	f(10, 9, 1.125)
	f(8, 4, 2)
	f(9, 4, 2.25)
	f(1000, 70, 14)
	f(6212, 842, 7.5)
	f(6212, 265, 16)
	f(1_000_000, 1, 16)
}

// In a cluster of which no request is for only some of the devices of its pool, nothing is scarce.
func TestWithoutConstraintsNothingIsScarce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := world.New().Edit()
		for i := range rapid.IntRange(0, 6).Draw(rt, "nodes") {
			n := schedtest.DrawNode(rt, fmt.Sprint("n", i))
			n.NodePool = rapid.SampledFrom([]string{structs.NodePoolDefault, "other"}).Draw(rt, "pool")
			n.ComputeClass()
			e.UpsertNode(n)
		}
		var requests []structs.TypicalRequest
		for range rapid.IntRange(1, 5).Draw(rt, "requests") {
			j := schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: rapid.IntRange(1, 4).Draw(rt, "gpus")})
			j.NodePool = rapid.SampledFrom([]string{"", "other", structs.NodePoolAll}).Draw(rt, "pool")
			requests = append(requests, structs.TypicalRequest{Job: j, Group: schedtest.Group(j), Weight: 1})
		}
		for i, s := range NewTypical(requests).measuresFor(e.World().Edit()).scarcity {
			if s != 1 {
				rt.Fatalf("request %d: scarcity %v, want 1", i, s)
			}
		}
	})
}

// modelNode is a node of GPUs of a model.
func modelNode(id, model string, gpus, cpu int) *structs.Node {
	return schedtest.Node(id, func(n *structs.Node) {
		n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB = int64(cpu), 100_000
		d := &structs.NodeDeviceResource{Vendor: "v", Type: "gpu", Name: model}
		for i := range gpus {
			d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprint(id, "-", i), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
	})
}

// What was measured is kept while nodes come and go that make nothing scarcer, and only then.
func TestMeasuresAreKeptWhileNothingIsScarcer(t *testing.T) {
	e := world.New().Edit()
	for i := range 200 {
		e.UpsertNode(modelNode(fmt.Sprint("common-", i), "m", 8, 64_000))
	}
	for i := range 10 {
		e.UpsertNode(modelNode(fmt.Sprint("scarce-", i), "other", 8, 64_000))
	}
	j := schedtest.GPUJob(1, structs.RequestedDevice{Name: "v/gpu/m", Count: 1})
	k := schedtest.GPUJob(1, structs.RequestedDevice{Name: "v/gpu/other", Count: 1})
	typical := NewTypical([]structs.TypicalRequest{{Job: j, Group: schedtest.Group(j), Weight: 1}, {Job: k, Group: schedtest.Group(k), Weight: 1}})
	first := typical.measuresFor(e.World().Edit())
	if want := []float64{1, 16}; !slices.Equal(first.scarcity, want) {
		t.Fatalf("scarcities %v, want %v", first.scarcity, want)
	}
	e.DeleteNode("common-7")
	if typical.measuresFor(e.World().Edit()) != first {
		t.Error("all was measured anew because one of 200 nodes went")
	}
	for i := range 20 {
		e.UpsertNode(modelNode(fmt.Sprint("more-", i), "other", 8, 64_000))
	}
	if now := typical.measuresFor(e.World().Edit()); now == first || now.scarcity[1] != 7.5 {
		t.Errorf("with three times as many devices the scarcity is %v, want 7.5", now.scarcity[1])
	}
}

// A request that may go anywhere leaves scarce devices to those that may go nowhere else, also where
// they have little CPU, which makes them worth less to most requests.
func TestScarceDevicesAreLeftToThoseThatNameThem(t *testing.T) {
	e := world.New().Edit()
	for i := range 20 {
		e.UpsertNode(modelNode(fmt.Sprint("common-", i), "m", 8, 80_000))
	}
	for i := range 3 {
		e.UpsertNode(modelNode(fmt.Sprint("scarce-", i), "other", 2, 8000))
	}
	request := func(name string, cpu int, weight int64) structs.TypicalRequest {
		j := schedtest.GPUJob(1, structs.RequestedDevice{Name: name, Count: 1})
		schedtest.Task(j).Resources.CPU = cpu
		return structs.TypicalRequest{Job: j, Group: schedtest.Group(j), Weight: weight}
	}
	h := &hunter{w: e.World(), config: structs.DefaultSchedulerConfiguration(), seed: 1}
	h.config.SetNodeOrder(PolicyLeastFrag)
	h.typical = NewTypical([]structs.TypicalRequest{request("gpu", 9000, 9), request("v/gpu/other", 4000, 1)})
	h.begin(request("gpu", 4000, 1).Job)
	f := h.search.Next(nil)
	if f == nil || f.Node.Capacity.Trees[0].Groups[0].Name != "m" {
		t.Errorf("it goes to %+v, want a node of the common model", f)
	}
}

// BenchmarkSupply is a decision's share of the work when one of 10,000 nodes of 100 families has gone or come
// back since the last one: what 256 requests may use is moved on.
func BenchmarkSupply(b *testing.B) {
	e := world.New().Edit()
	for i := range 10_000 {
		n := modelNode(fmt.Sprint("n", i), fmt.Sprint("m", i%10), 8, 64_000)
		n.Attributes["kernel.version"] = fmt.Sprint(i % 100 / 10)
		n.ComputeClass()
		e.UpsertNode(n)
	}
	all := e.World()
	e = all.Edit()
	e.DeleteNode("n77")
	less := e.World()
	var requests []structs.TypicalRequest
	for i := range 256 {
		j := schedtest.GPUJob(1, structs.RequestedDevice{Name: []string{"gpu", fmt.Sprint("v/gpu/m", i%10)}[i%2], Count: 1})
		requests = append(requests, structs.TypicalRequest{Job: j, Group: schedtest.Group(j), Weight: int64(i)})
	}
	typical := NewTypical(requests)
	worlds := []*world.Edit{all.Edit(), less.Edit()}
	typical.measuresFor(worlds[1])
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		typical.measuresFor(worlds[i%2])
	}
}
