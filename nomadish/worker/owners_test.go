package worker_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/structs"
)

// tenantCluster is a cluster of nodes of eight GPUs in a tree, with namespaces a and b; a owns cells.
func tenantCluster(t testing.TB, nodes int, owned ...*structs.CellQuota) *cluster {
	t.Helper()
	c := newCluster(true)
	for i := range nodes {
		c.eightGPUs(t, fmt.Sprint("n", i))
	}
	for _, name := range []string{"a", "b"} {
		c.Put(t, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	}
	c.owns(t, "a", owned...)
	return c
}

// owns gives a namespace cells.
func (c *cluster) owns(t testing.TB, name string, owned ...*structs.CellQuota) {
	t.Helper()
	c.Put(t, &structs.VirtualClusterUpsertEntry{
		VirtualCluster: &structs.VirtualCluster{Name: name, Cells: owned}, EvalSeed: c.next(), Time: time.Now().UnixNano(),
	})
}

func cells(level string, count int) *structs.CellQuota {
	return &structs.CellQuota{Level: level, Count: count}
}

// eightGPUs registers a node of two sockets of four GPUs.
func (c *cluster) eightGPUs(t testing.TB, id string) {
	t.Helper()
	n := testcluster.Node(id, 100_000)
	n.NodePool, n.NodeResources.Memory.MemoryMB = structs.NodePoolDefault, 100_000
	n.NodeResources.Topology = &structs.NodeTopology{}
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	for s := range 2 {
		at := &structs.TopologyCell{ID: fmt.Sprint("socket-", s), Level: structs.LevelSocket}
		for g := range 4 {
			d := fmt.Sprintf("%s-gpu-%d", id, 4*s+g)
			at.Devices = append(at.Devices, d)
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: d, Healthy: true})
		}
		n.NodeResources.Topology.Cells = append(n.NodeResources.Topology.Cells, at)
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
	n.ComputeClass()
	c.Put(t, &structs.NodeRegisterEntry{Node: n, Time: time.Now().UnixNano()})
}

// gpuJob is a job of so many instances with one GPU each.
func gpuJob(namespace, id string, priority, count int, change ...func(*structs.Job)) *structs.Job {
	j := job(id, structs.NodePoolDefault, priority, count, 100, 100)
	j.Namespace = namespace
	j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
	for _, f := range change {
		f(j)
	}
	return j
}

// classes counts the instances of a job that run by a claim, and those that run without.
func (c *cluster) classes(j *structs.Job) (guaranteed, opportunistic int) {
	for _, a := range c.store.Snapshot().AllocsByJob(nil, j.Namespace, j.ID, true) {
		switch {
		case a.Terminal():
		case a.AllocatedResources.Shared.Terms.Claim != "":
			guaranteed++
		default:
			opportunistic++
		}
	}
	return guaranteed, opportunistic
}

// wantClasses requires how many instances of a job run by a claim, and how many without.
func (c *cluster) wantClasses(t testing.TB, j *structs.Job, guaranteed, opportunistic int) {
	t.Helper()
	if g, o := c.classes(j); g != guaranteed || o != opportunistic {
		t.Errorf("of %s/%s %d are guaranteed and %d are not, want %d and %d", j.Namespace, j.ID, g, o, guaranteed, opportunistic)
	}
}

// rests waits until nothing is written any more.
func (c *cluster) rests(t testing.TB) {
	t.Helper()
	c.quiet(t)
	time.Sleep(6 * time.Second) // why something waits may be stored once more
	c.quiet(t)
	synctest.Wait()
	index := c.Index()
	time.Sleep(3 * time.Second)
	synctest.Wait()
	if now := c.Index(); now != index {
		t.Errorf("%d entries were written though nothing happened", now-index)
	}
}

// TestTwoPositions: what a namespace is entitled to goes before all others, and the rest of the same request behind those of a higher band,
// with two lines in the queue (semantics part 0, rule 6).
func TestTwoPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("node", 1))
		of16, of12 := gpuJob("a", "sixteen", 50, 16), gpuJob("b", "twelve", 90, 12)
		c.register(t, of12)
		c.register(t, of16)
		lines := func() (list []string) {
			for _, l := range queueview.Order(c.store.Snapshot(), time.Now().UnixNano()) {
				list = append(list, fmt.Sprintf("%d %s %d of standing %d", l.Place, l.Job.ID, l.Missing, l.Rank.Standing))
			}
			return list
		}
		if got, want := fmt.Sprint(lines()), "[1 sixteen 8 of standing 0 2 twelve 12 of standing 2 3 sixteen 8 of standing 2]"; got != want {
			t.Errorf("the queue is %s, want %s", got, want)
		}
		defer c.run(t.Context(), 4)()
		c.rests(t)
		c.wantClasses(t, of16, 8, 0)
		c.wantClasses(t, of12, 0, 8)
		if got, want := fmt.Sprint(lines()), "[1 twelve 4 of standing 2 2 sixteen 8 of standing 2]"; got != want {
			t.Errorf("then it is %s, want %s", got, want)
		}
		// Four more GPUs: those of B, whose rank is better than that of the rest.
		c.eightGPUs(t, "n2")
		c.rests(t)
		c.wantClasses(t, of12, 0, 12)
		c.wantClasses(t, of16, 8, 4)
	})
}

// TestWhatWaitsSaysWhyAtOnce: of requests that come together, and of which what is entitled goes first, the rest states why it waits as soon as such
// counts may follow each other. It is not shown as not tried for as long as what others have stated stands.
func TestWhatWaitsSaysWhyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("socket", 1))
		owners := []string{"a", "b", "c", "d"}
		for _, name := range owners[1:] {
			c.Put(t, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
			c.owns(t, name, cells("socket", 1))
		}
		c.explain = time.Hour
		defer c.run(t.Context(), 4)()
		for _, name := range owners {
			c.register(t, gpuJob(name, "six", 50, 6))
		}
		c.quiet(t)
		time.Sleep(time.Second)
		synctest.Wait()
		c.wantReasons(t, slices.Repeat([]int{2}, len(owners))...)
	})
}

// wantReasons requires that as many requests wait as there are counts of what is missing of each, in the order of the queue, and that each states why.
func (c *cluster) wantReasons(t testing.TB, missing ...int) {
	t.Helper()
	snap := c.store.Snapshot()
	view, lines := queueview.NewViewer(nil, snap, time.Now()), queueview.Order(snap, time.Now().UnixNano())
	if len(lines) != len(missing) {
		t.Fatalf("%d requests wait, want %d", len(lines), len(missing))
	}
	for i, l := range lines {
		if e := view.Entry(l); e.Missing != missing[i] || e.State != structs.QueueWaiting || e.Reason == "" {
			t.Errorf("%s/%s: %d are missing, want %d; %s, reason %q", e.Namespace, e.JobID, e.Missing, missing[i], e.State, e.Reason)
		}
	}
}

// TestAlikeStateWhyAtOnce: of many requests of one namespace that are alike and come together, of which a part is entitled, each states soon why it waits, though
// the first that finds no room speaks for all of them, and none of the others is tried.
func TestAlikeStateWhyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("socket", 2))
		c.explain = time.Hour
		const many = 1000
		for i := range many {
			c.register(t, gpuJob("a", fmt.Sprint("six-", i), 50, 6))
		}
		defer c.run(t.Context(), 4)()
		c.quiet(t)
		time.Sleep(time.Second)
		synctest.Wait()
		c.wantReasons(t, append([]int{2}, slices.Repeat([]int{6}, many-3)...)...)
	})
}

// TestSaysWhyAgain: what states why it waits does so again soon after a part of it ran by what its namespace owns, though the reason is the same.
func TestSaysWhyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 1, cells("socket", 1))
		defer c.run(t.Context(), 4)()
		one, six := gpuJob("a", "one", 60, 1), gpuJob("a", "six", 50, 6)
		c.register(t, one)
		c.rests(t)
		c.register(t, gpuJob("b", "fills", 90, 4))
		c.rests(t)
		c.register(t, six)
		c.rests(t)
		c.wantClasses(t, six, 3, 0)
		c.wantReasons(t, 3)
		c.deregister(t, one)
		c.quiet(t)
		time.Sleep(time.Second)
		synctest.Wait()
		c.wantClasses(t, six, 4, 0)
		c.wantReasons(t, 2)
	})
}

// TestCellsFreedAreTheirOwners: GPUs that come free within a bound cell are for a request of their owner, though others of higher priority
// wait for them.
func TestCellsFreedAreTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 1, cells("node", 1))
		defer c.run(t.Context(), 4)()
		var running []*structs.Job
		for i := range 8 {
			running = append(running, gpuJob("a", fmt.Sprint("runs-", i), 50, 1))
			c.register(t, running[i])
		}
		c.rests(t)
		for i := range 20 {
			c.register(t, gpuJob("b", fmt.Sprint("waits-", i), 80, 1))
		}
		waits := gpuJob("a", "waits", 50, 2)
		only := gpuJob("a", "only", 40, 1, func(j *structs.Job) { j.Class = structs.ClassGuaranteed })
		c.register(t, waits)
		c.register(t, only)
		c.rests(t)
		c.wantClasses(t, waits, 0, 0)
		for i, want := range [][2]int{{1, 0}, {2, 0}, {2, 1}} {
			c.deregister(t, running[i])
			c.rests(t)
			c.wantClasses(t, waits, want[0], 0)
			c.wantClasses(t, only, want[1], 0)
		}
		c.deregister(t, running[3]) // now others may borrow it
		c.rests(t)
		if n := len(c.borrowers()); n != 1 {
			t.Errorf("%d of B run in A's cell, want 1", n)
		}
	})
}

// borrowers are the running allocations of namespace b.
func (c *cluster) borrowers() (list []*structs.Allocation) {
	for a := range c.store.Snapshot().Allocs(nil, "b", "", false) {
		if !a.Terminal() {
			list = append(list, a)
		}
	}
	return list
}

// TestEntitledPassesAFlood: many identical jobs of B run and wait; A's entitled one runs, and takes from one of B alone.
func TestEntitledPassesAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("node", 1))
		defer c.run(t.Context(), 4)()
		for i := range 600 {
			c.register(t, gpuJob("b", fmt.Sprint("flood-", i), 90, 1))
		}
		c.rests(t)
		start := c.written()
		mine := gpuJob("a", "mine", 10, 1)
		c.register(t, mine)
		c.rests(t)
		c.wantClasses(t, mine, 1, 0)
		if n := len(c.borrowers()); n != 15 {
			t.Errorf("%d of B run, want 15", n)
		}
		// The registration, its plan, and that of the one that was requeued.
		if n := c.written() - start; n > 4 {
			t.Errorf("%d entries were written", n)
		}
	})
}

// TestRaisedByThePass: when cells of an owner come free, its oldest opportunistic allocations are raised in place, as many as there is
// room for, whichever jobs they are of; then nothing more is written (semantics part 2, "Raise").
func TestRaisedByThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 1, cells("gpu", 3))
		defer c.run(t.Context(), 4)()
		first := []*structs.Job{gpuJob("a", "first-0", 50, 1), gpuJob("a", "first-1", 50, 2)}
		old, young := gpuJob("a", "z-old", 50, 1), gpuJob("a", "a-young", 50, 2)
		never := gpuJob("a", "never", 50, 1, func(j *structs.Job) { j.Class = structs.ClassOpportunistic })
		for _, j := range append(first, never, old, young) {
			c.register(t, j)
			c.rests(t)
		}
		ids := func() (list []string) {
			for _, j := range []*structs.Job{old, young} {
				for _, a := range c.store.Snapshot().AllocsByJob(nil, j.Namespace, j.ID, true) {
					list = append(list, a.ID+a.DesiredStatus)
				}
			}
			return list
		}
		before := fmt.Sprint(ids())
		c.wantClasses(t, old, 0, 1)
		c.deregister(t, first[0])
		c.rests(t)
		c.wantClasses(t, old, 1, 0)
		c.wantClasses(t, young, 0, 2)
		// One that waits for the cells goes first.
		wants := gpuJob("a", "wants", 10, 1, func(j *structs.Job) { j.Class = structs.ClassGuaranteed })
		c.register(t, wants)
		c.rests(t)
		c.deregister(t, first[1])
		c.rests(t)
		c.wantClasses(t, wants, 1, 0)
		c.wantClasses(t, young, 1, 1)
		c.deregister(t, wants)
		c.rests(t)
		c.wantClasses(t, young, 2, 0)
		c.wantClasses(t, never, 0, 1)
		if after := fmt.Sprint(ids()); after != before {
			t.Errorf("the allocations were %s, and are %s", before, after)
		}
	})
}

// TestVacatedCellsAreTheirOwners: when the node of a bound cell goes down, its owner's cell is free to be bound elsewhere, and what waits for
// it is tried at once, though no GPU came free.
func TestVacatedCellsAreTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("node", 1))
		defer c.run(t.Context(), 4)()
		lost := gpuJob("a", "lost", 10, 1)
		c.register(t, lost)
		c.rests(t)
		wants := gpuJob("a", "wants", 90, 1, func(j *structs.Job) {
			j.Class, j.TaskGroups[0].Tasks[0].Resources.Devices[0].Count = structs.ClassGuaranteed, 8
		})
		c.register(t, wants)
		c.register(t, gpuJob("b", "fills", 100, 16))
		c.rests(t)
		c.wantClasses(t, wants, 0, 0)
		at := c.store.Snapshot().AllocsByJob(nil, "a", "lost", true)[0].NodeID
		c.Put(t, &structs.NodeStatusEntry{NodeIDs: []string{at}, Status: structs.NodeStatusDown, Time: time.Now().UnixNano()})
		c.rests(t)
		c.wantClasses(t, wants, 1, 0)
	})
}

// TestRestRunsOpportunistically: 16 instances of one GPU on 8 owned are 8 guaranteed and 8 opportunistic ones; when their owner gets 8 more,
// all are guaranteed, and none is restarted.
func TestRestRunsOpportunistically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("node", 1))
		defer c.run(t.Context(), 2)()
		j := gpuJob("a", "sixteen", 50, 16)
		c.register(t, j)
		c.rests(t)
		c.wantClasses(t, j, 8, 8)
		c.owns(t, "a", cells("node", 2))
		c.rests(t)
		c.wantClasses(t, j, 16, 0)
		if n := len(c.store.Snapshot().AllocsByJob(nil, "a", "sixteen", true)); n != 16 {
			t.Errorf("there were %d allocations, want 16", n)
		}
	})
}

// TestGangIsEntitled: a gang of 4 that its namespace's 4 GPUs hold goes before what others have waiting, and is not blocked by a gang of 6 of
// the same namespace, which they do not hold.
func TestGangIsEntitled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 1, cells("socket", 1))
		defer c.run(t.Context(), 4)()
		for i := range 30 {
			c.register(t, gpuJob("b", fmt.Sprint("flood-", i), 90, 1))
		}
		c.rests(t)
		gang := func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} }
		six, four := gpuJob("a", "six", 80, 6, gang), gpuJob("a", "four", 50, 4, gang)
		c.register(t, six)
		c.rests(t)
		c.register(t, four)
		if lines := queueview.Order(c.store.Snapshot(), time.Now().UnixNano()); lines[0].Job.ID != "four" || lines[0].Missing != 4 || !lines[0].Rank.IsEntitled() {
			t.Errorf("the first in the queue is %+v", lines[0])
		}
		c.rests(t)
		c.wantClasses(t, four, 4, 0)
		c.wantClasses(t, six, 0, 0)
		if n := len(c.borrowers()); n != 4 {
			t.Errorf("%d of B run, want 4", n)
		}
	})
}

// TestGangIsRaised: a gang that runs opportunistically becomes guaranteed as a whole when another job of its namespace ends and leaves the
// cells for it, and not before.
func TestGangIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 1, cells("gpu", 6))
		defer c.run(t.Context(), 4)()
		two := gpuJob("a", "two", 50, 2)
		c.register(t, two)
		c.rests(t)
		six := gpuJob("a", "six", 50, 6, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{} })
		c.register(t, six)
		c.rests(t)
		c.wantClasses(t, two, 2, 0)
		c.wantClasses(t, six, 0, 6)
		c.deregister(t, two)
		c.rests(t)
		c.wantClasses(t, six, 6, 0)
	})
}

// TestRaiseLeavesWhatWaits: what a job has waiting goes on waiting when allocations of it are raised.
func TestRaiseLeavesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 1, cells("gpu", 6))
		defer c.run(t.Context(), 4)()
		two := gpuJob("a", "two", 50, 2)
		c.register(t, two)
		c.rests(t)
		six := gpuJob("a", "six", 50, 6, func(j *structs.Job) {
			big := j.TaskGroups[0].Copy()
			big.Name, big.Count, big.Tasks[0].Resources.CPU, big.Tasks[0].Resources.Devices = "big", 1, 1_000_000, nil
			j.TaskGroups = append(j.TaskGroups, big)
		})
		c.register(t, six)
		c.rests(t)
		c.wantClasses(t, six, 4, 2)
		c.deregister(t, two)
		c.rests(t)
		c.wantClasses(t, six, 6, 0)
		if n := c.broker.Stats().Blocked; n != 1 {
			t.Errorf("%d evaluations wait, want that of group big", n)
		}
	})
}
