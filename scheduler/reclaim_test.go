package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// other is a job of somebody else that runs already.
type other struct {
	job      string
	priority int
	cpu, mem int64
	terms    structs.AllocTerms // the rest of them
	// devices that each of its allocations holds, by its number.
	devices [][]string
	ports   []int // of each, by its number
}

// runs puts n allocations of another job on a node.
func (c *cluster) runs(o other, n int, node string) (ids []string) {
	e := c.w.Edit()
	for i := range n {
		c.ids++
		terms := o.terms
		terms.Priority = o.priority
		task := &structs.AllocatedTaskResources{
			Cpu: structs.AllocatedCpuResources{CpuShares: o.cpu}, Memory: structs.AllocatedMemoryResources{MemoryMB: o.mem},
		}
		if i < len(o.devices) {
			task.Devices = []*structs.AllocatedDeviceResource{{Vendor: "v", Type: "gpu", Name: "m", DeviceIDs: o.devices[i]}}
		}
		a := &structs.Allocation{
			ID: fmt.Sprintf("%s-%s-%03d", o.job, node, c.ids), Namespace: "default", JobID: o.job, TaskGroup: "g", NodeID: node,
			Name: structs.AllocName(o.job, "g", i), DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
			AllocatedResources: &structs.AllocatedResources{
				Tasks:  map[string]*structs.AllocatedTaskResources{"t": task},
				Shared: structs.AllocatedSharedResources{Terms: &terms},
			},
		}
		if i < len(o.ports) {
			a.AllocatedResources.Shared.Ports = []structs.PortMapping{{Label: "p", Value: o.ports[i]}}
		}
		c.allocs[a.ID] = a
		e.UpsertAlloc(a)
		ids = append(ids, a.ID)
	}
	c.w = e.World()
	return ids
}

// preempting is a cluster in which jobs of all types may preempt, each priority its own band.
func preempting(t tester) *cluster {
	c := newCluster(t)
	c.config.PreemptionConfig = structs.PreemptionConfig{
		SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true,
	}
	for p := 1; p <= 100; p++ {
		c.config.Bands = append(c.config.Bands, structs.PriorityBand{Low: p, High: p})
	}
	c.configure()
	return c
}

// configure tells the World of the configuration.
func (c *cluster) configure() {
	e := c.w.Edit()
	e.Configure(&c.config)
	c.w = e.World()
}

func sized(cpu, mem int64) func(*structs.Node) {
	return func(n *structs.Node) {
		n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB = cpu, mem
	}
}

func requests(priority, cpu, mem int) func(*structs.Job) {
	return func(j *structs.Job) {
		j.Priority = priority
		schedtest.Task(j).Resources = &structs.Resources{CPU: cpu, MemoryMB: mem}
		schedtest.Group(j).EphemeralDisk = &structs.EphemeralDisk{SizeMB: 0}
	}
}

// reclaimed counts what the last plan takes back, by job.
func (c *cluster) reclaimed() map[string]int {
	n := map[string]int{}
	for _, s := range c.last.Stop {
		if s.Reclaim != "" {
			n[c.allocs[s.AllocID].JobID]++
		}
	}
	return n
}

func (c *cluster) wantTaken(want map[string]int) {
	c.t.Helper()
	if got := c.reclaimed(); fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Fatalf("%v taken back, want %v", got, want)
	}
	evals := map[string]int{}
	for _, ev := range c.last.Evals {
		if ev.TriggeredBy == structs.EvalTriggerPreemption {
			evals[ev.JobID]++
		}
	}
	for job := range want {
		if evals[job] != 1 {
			c.t.Fatalf("%d evaluations of job %s, want 1", evals[job], job)
		}
	}
	if len(evals) != len(want) {
		c.t.Fatalf("evaluations of %v, want of %v", evals, want)
	}
}

// golden is the node of semantics part 3.
func golden(t tester) *cluster {
	c := preempting(t)
	c.node("n", sized(100, 100))
	c.runs(other{job: "A", priority: 3, cpu: 1, mem: 1}, 20, "n")
	c.runs(other{job: "B", priority: 2, cpu: 3, mem: 2}, 20, "n")
	c.runs(other{job: "C", priority: 1, cpu: 2, mem: 1}, 10, "n")
	return c
}

func TestReclaimGolden(t *testing.T) {
	c := golden(t)
	c.register(schedtest.Job(structs.JobTypeService, 30, requests(4, 1, 1)))
	plan := c.eval()
	if placed(plan) != 30 || len(c.done.FailedTGAllocs) > 0 {
		t.Fatalf("%d placed, %v", placed(plan), c.done.FailedTGAllocs)
	}
	c.wantTaken(map[string]int{"B": 4, "C": 9})
	if free := c.w.Free("n"); free.CPU != 0 || free.MemoryMB != 17 {
		t.Fatalf("%+v stays free, want (0,17)", free)
	}
	if n := plan.Annotations.DesiredTGUpdates["g"].Preemptions; n != 13 || len(plan.Annotations.PreemptedAllocs) != 13 {
		t.Fatalf("%d preemptions annotated, %d allocations", n, len(plan.Annotations.PreemptedAllocs))
	}
}

// TestReclaimBands: bands {1-4},{5-7},{8-10}: a 9 may take from a 7 and a 4, never from an 8.
func TestReclaimBands(t *testing.T) {
	c := preempting(t)
	c.config.Bands = []structs.PriorityBand{{Low: 1, High: 4}, {Low: 5, High: 7}, {Low: 8, High: 10}}
	c.configure()
	c.node("n", sized(300, 300))
	for _, p := range []int{8, 7, 4} {
		c.runs(other{job: fmt.Sprint("p", p), priority: p, cpu: 100, mem: 100}, 1, "n")
	}
	c.register(schedtest.Job(structs.JobTypeService, 3, requests(9, 100, 100)))
	c.eval()
	c.wantTaken(map[string]int{"p7": 1, "p4": 1})
	c.wantLive(3)
	if c.done.QueuedAllocations["g"] != 1 {
		t.Fatalf("%d wait, want 1", c.done.QueuedAllocations["g"])
	}
}

// TestReclaimOff: without the switch nobody is touched.
func TestReclaimOff(t *testing.T) {
	c := golden(t)
	c.config.PreemptionConfig.ServiceSchedulerEnabled = false
	c.register(schedtest.Job(structs.JobTypeService, 30, requests(4, 1, 1)))
	c.eval()
	c.wantTaken(map[string]int{})
}

// TestReclaimPartial: 60 do not fit beside A.
func TestReclaimPartial(t *testing.T) {
	f := func(partial string, placed, waiting int, want map[string]int) {
		t.Helper()
		c := golden(t)
		c.changeNode("n", sized(105, 100))
		c.register(schedtest.Job(structs.JobTypeService, 90, requests(3, 1, 1), func(j *structs.Job) { j.Partial = partial }))
		plan := c.eval()
		n := 0
		for _, b := range plan.Place {
			n += len(b.Instances)
		}
		if n != placed || c.done.QueuedAllocations["g"] != waiting {
			t.Fatalf("%s: %d placed, %d wait; want %d and %d", partial, n, c.done.QueuedAllocations["g"], placed, waiting)
		}
		c.wantTaken(want)
	}
	f("", 80, 10, map[string]int{"B": 20, "C": 10})
	f("free", 5, 85, map[string]int{})
	f("none", 0, 90, map[string]int{})
}

// TestReclaimSuspend: what its terms say so is suspended, if its memory can stay.
func TestReclaimSuspend(t *testing.T) {
	f := func(mem int64, status string, says string) {
		t.Helper()
		c := preempting(t)
		c.node("n", sized(100, 100))
		ids := c.runs(other{job: "low", priority: 1, cpu: 100, mem: mem, terms: structs.AllocTerms{Reclaim: structs.ReclaimSuspend}}, 1, "n")
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(4, 50, 50)))
		c.eval()
		a := c.allocs[ids[0]]
		if a.DesiredStatus != status || !strings.Contains(a.DesiredDescription, says) {
			t.Fatalf("it is to %s, as it is %q; want %s, %q", a.DesiredStatus, a.DesiredDescription, status, says)
		}
	}
	f(50, structs.AllocDesiredSuspend, "preempted by allocation ")
	f(51, structs.AllocDesiredEvict, "not suspended, as its memory cannot stay")
}

// TestReclaimLeastLoss: the node that loses least is freed: the lowest highest-priority
// victim first, then the fewest instances, then the ID.
func TestReclaimLeastLoss(t *testing.T) {
	f := func(want string, fill func(c *cluster)) {
		t.Helper()
		c := preempting(t)
		for _, id := range []string{"a", "b", "c"} {
			c.node(id, sized(100, 100))
		}
		fill(c)
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 50, 50)))
		c.eval()
		for id, n := range c.liveOn() {
			for _, a := range c.allocs {
				if a.JobID == "j" && isLive(a) && a.NodeID == id && id != want && n > 0 {
					t.Fatalf("it is on %s, want %s", id, want)
				}
			}
		}
	}
	one := func(c *cluster, node string, priority, n int) {
		c.runs(other{job: fmt.Sprint(node, priority), priority: priority, cpu: 100 / int64(n), mem: 1}, n, node)
	}
	f("b", func(c *cluster) { one(c, "a", 9, 1); one(c, "b", 8, 4); one(c, "c", 10, 1) })
	f("c", func(c *cluster) { one(c, "a", 9, 10); one(c, "b", 9, 5); one(c, "c", 9, 2) })
	f("a", func(c *cluster) { one(c, "a", 9, 2); one(c, "b", 9, 2); one(c, "c", 9, 1) })
	f("c", func(c *cluster) { one(c, "a", 60, 2); one(c, "b", 50, 2); one(c, "c", 49, 50) })
}

// TestReclaimManyNodes: one job, or one gang, takes from as many nodes as it needs, however
// many of them are compared before one is taken.
func TestReclaimManyNodes(t *testing.T) {
	const nodes = 2*decide.ReclaimLook + 1
	f := func(each int, gang *structs.Gang) {
		t.Helper()
		c := preempting(t)
		for i := range nodes {
			id := fmt.Sprintf("n%03d", i)
			c.node(id, sized(100, 100))
			c.runs(other{job: "low", priority: 1, cpu: int64(100 / each), mem: 1}, each, id)
		}
		c.register(schedtest.Job(structs.JobTypeBatch, nodes, requests(50, 100, 50), func(j *structs.Job) { schedtest.Group(j).Gang = gang }))
		c.eval()
		if n := placed(c.last); n != nodes {
			t.Errorf("%d of %d are placed where each node gives up %d", n, nodes, each)
		}
	}
	f(1, nil)
	f(2, nil)
	f(1, &structs.Gang{})
	f(2, &structs.Gang{})
}

// TestReclaimSystemOnItsNode: an instance of a system job takes from its own node alone.
func TestReclaimSystemOnItsNode(t *testing.T) {
	c := preempting(t)
	for _, id := range []string{"a", "b"} {
		c.node(id, sized(100, 100))
	}
	c.runs(other{job: "low", priority: 1, cpu: 60, mem: 1}, 1, "a")
	c.runs(other{job: "high", priority: 90, cpu: 60, mem: 1}, 1, "b")
	c.register(schedtest.Job(structs.JobTypeSystem, 1, requests(50, 50, 50)))
	c.eval()
	c.wantTaken(map[string]int{"low": 1})
	if c.done.QueuedAllocations["g"] != 1 {
		t.Fatalf("%v wait, want one", c.done.QueuedAllocations)
	}
}

// TestReclaimForUpdate: the successor of an instance takes what the old one's room lacks, and
// if that is not enough nobody is touched and the old one runs on.
func TestReclaimForUpdate(t *testing.T) {
	f := func(cpu, live int, want map[string]int) {
		t.Helper()
		c := preempting(t)
		c.node("n", sized(1000, 1000))
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 400, 1)))
		c.eval()
		c.client(isLive, healthy)
		c.runs(other{job: "low", priority: 1, cpu: 100, mem: 1}, 4, "n")
		c.runs(other{job: "high", priority: 60, cpu: 200, mem: 1}, 1, "n")
		c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = cpu })
		c.eval()
		c.wantTaken(want)
		if n := len(c.last.Place); n != live {
			t.Fatalf("%d MHz: %d batches are placed, want %d", cpu, n, live)
		}
	}
	f(400, 0, map[string]int{})
	f(500, 1, map[string]int{"low": 1})
	f(800, 1, map[string]int{"low": 4})
	f(801, 0, map[string]int{})
}

// TestReclaimForAnotherGroup: what one group of a job took comes back where what another
// group takes afterwards leaves enough over.
func TestReclaimForAnotherGroup(t *testing.T) {
	c := preempting(t)
	c.node("n", sized(1000, 1000))
	c.runs(other{job: "large", priority: 1, cpu: 501, mem: 1, terms: structs.AllocTerms{Submitted: 1}}, 1, "n")
	c.runs(other{job: "small", priority: 1, cpu: 32, mem: 1, terms: structs.AllocTerms{Submitted: 2}}, 8, "n")
	c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 250, 1), func(j *structs.Job) {
		h := j.TaskGroups[0].Copy()
		h.Name = "h"
		j.TaskGroups = append(j.TaskGroups, h)
	}))
	c.eval()
	c.wantTaken(map[string]int{"large": 1})
	if len(c.done.FailedTGAllocs) > 0 {
		t.Fatalf("%v", c.done.FailedTGAllocs)
	}
}

// TestReclaimCell: GPUs that are required under one switch are freed there, and no others.
func TestReclaimCell(t *testing.T) {
	c := preempting(t)
	c.node("n", sized(1000, 1000), gpuNode)
	c.runs(other{job: "low", priority: 1, cpu: 1, mem: 1, devices: [][]string{{"gpu-0"}, {"gpu-2"}, {"gpu-3"}}}, 3, "n")
	c.runs(other{job: "mid", priority: 2, cpu: 1, mem: 1, devices: [][]string{{"gpu-1"}}}, 1, "n")
	c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 1, 1), func(j *structs.Job) {
		schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{
			Name: "v/gpu/m", Count: 2, Topology: &structs.TopologyConstraint{Level: structs.LevelPCIe, Required: true},
		}}
	}))
	c.eval()
	c.wantTaken(map[string]int{"low": 2})
	for _, s := range c.last.Stop {
		d := c.allocs[s.AllocID].AllocatedResources.Tasks["t"].Devices[0].DeviceIDs
		if !slices.Contains([]string{"gpu-2", "gpu-3"}, d[0]) {
			t.Fatalf("the holder of %v is taken, want those of gpu-2 and gpu-3", d)
		}
	}
}

// TestReclaimSparesBadGPUs: one whose GPU has turned bad has nothing that the newcomer could use. It is walked, as it is of the lowest priority, and gets back what it had:
// nobody is stopped who could have stayed (semantics part 3).
func TestReclaimSparesBadGPUs(t *testing.T) {
	for _, keepWhole := range []bool{false, true} {
		c := preempting(t)
		c.config.KeepWhole = keepWhole
		n := c.node("n", sized(1000, 1000), gpuNode)
		c.runs(other{job: "low", priority: 1, cpu: 1, mem: 1, devices: [][]string{{"gpu-0"}}}, 1, "n")
		c.runs(other{job: "mid", priority: 2, cpu: 1, mem: 1, devices: [][]string{{"gpu-1"}, {"gpu-2"}, {"gpu-3"}}}, 3, "n")
		c.changeNode(n.ID, func(n *structs.Node) { n.NodeResources.Devices[0].Instances[0].Healthy = false })
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 1, 1), func(j *structs.Job) {
			schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "v/gpu/m", Count: 1}}
		}))
		c.eval()
		c.wantTaken(map[string]int{"mid": 1})
	}
}

// TestReclaimBesideReserved: who preempts on a node of which another has reserved GPUs
// leaves as many of them free.
func TestReclaimBesideReserved(t *testing.T) {
	c := preempting(t)
	c.node("n", sized(1000, 1000), gpuNode)
	c.runs(other{job: "low", priority: 1, cpu: 1, mem: 1, devices: [][]string{{"gpu-0"}, {"gpu-1"}, {"gpu-2"}, {"gpu-3"}}}, 4, "n")
	e := c.w.Edit()
	e.Reserve(&structs.Reservation{NodeID: "n", Namespace: "default", JobID: "big", Group: "g", Devices: 1})
	c.w = e.World()
	c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 1, 1), func(j *structs.Job) {
		schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "v/gpu/m", Count: 1}}
	}))
	c.eval()
	c.wantTaken(map[string]int{"low": 2})
}

// TestReclaimBesideItsOwnReservation: what was reserved for a group that misses nothing any more makes nobody leave for
// another group of its job.
func TestReclaimBesideItsOwnReservation(t *testing.T) {
	c := preempting(t)
	c.node("n", sized(1000, 1000))
	c.runs(other{job: "low", priority: 1, cpu: 500, mem: 1}, 1, "n")
	job := schedtest.Job(structs.JobTypeService, 0, requests(50, 400, 1), func(j *structs.Job) {
		h := schedtest.Group(j).Copy()
		h.Name, h.Count = "h", 1
		j.TaskGroups = append(j.TaskGroups, h)
	})
	e := c.w.Edit()
	e.Reserve(&structs.Reservation{NodeID: "n", Namespace: job.Namespace, JobID: job.ID, Group: "g", CPU: 300})
	c.w = e.World()
	c.register(job)
	c.eval()
	c.wantTaken(map[string]int{})
	if placed(c.last) != 1 || !slices.Equal(c.last.Unreserve, []string{"n"}) {
		t.Errorf("%d placed, unreserved %v", placed(c.last), c.last.Unreserve)
	}
}

// Neither does anybody leave for the sake of a reservation that is over, though its group still misses something.
func TestReclaimBesideAReservationThatIsOver(t *testing.T) {
	f := func(left time.Duration, taken map[string]int) {
		t.Helper()
		c := preempting(t)
		c.node("n", sized(1000, 1000))
		c.runs(other{job: "low", priority: 1, cpu: 500, mem: 1}, 1, "n")
		job := schedtest.Job(structs.JobTypeService, 0, requests(50, 5000, 1), func(j *structs.Job) { // g finds no node
			h := schedtest.Group(j).Copy()
			h.Name, h.Count, h.Tasks[0].Resources.CPU = "h", 1, 400
			schedtest.Group(j).Count = 1
			j.TaskGroups = append(j.TaskGroups, h)
		})
		until := c.now.Add(left).UnixNano()
		e := c.w.Edit()
		e.Reserve(&structs.Reservation{NodeID: "n", Namespace: job.Namespace, JobID: job.ID, Group: "g", CPU: 300, DueAt: until, ExpiresAt: until})
		c.w = e.World()
		c.register(job)
		c.eval()
		c.wantTaken(taken)
		if placed(c.last) != 1 {
			t.Errorf("reserved for %v more: %d placed", left, placed(c.last))
		}
	}
	f(time.Hour, map[string]int{"low": 1}) // while it is not over, it is in the way
	f(-time.Second, map[string]int{})
}

// gpuNode gives a node four GPUs under two switches.
func gpuNode(n *structs.Node) {
	d := &structs.NodeDeviceResource{Vendor: "v", Type: "gpu", Name: "m"}
	topology := &structs.NodeTopology{}
	for i := range 4 {
		id := fmt.Sprint("gpu-", i)
		d.Instances = append(d.Instances, &structs.NodeDevice{ID: id, Healthy: true})
		if i%2 == 0 {
			topology.Cells = append(topology.Cells, &structs.TopologyCell{ID: fmt.Sprint("pcie-", i/2), Level: "pcie"})
		}
		sw := topology.Cells[i/2]
		sw.Devices = append(sw.Devices, id)
	}
	n.NodeResources.Devices, n.NodeResources.Topology = []*structs.NodeDeviceResource{d}, topology
}
