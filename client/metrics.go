package client

import (
	"cmp"
	"context"
	"time"

	"github.com/nomadish/nomadish/client/alloc"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/stats"
	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// MetricsConfig specifies which series there are of what costs something to measure.
type MetricsConfig struct {
	Allocations bool // what each task uses
	Nodes       bool // what the machine does
}

// measureLimit bounds how long the tasks and the machine are measured for metrics. What was not measured by then is left out.
const measureLimit = 2 * time.Second

// keepEnded is how long the counters of tasks are shown after their allocation's end, so that they are seen by who looks but now
// and then.
const keepEnded = 5 * time.Minute

// meter is what is kept from one derivation of the client's series to the next. One goroutine at a time uses it.
type meter struct {
	begun   time.Time
	booted  time.Time   // when the machine was started
	host    *stats.Host // its own: rates are since its last use
	nodes   map[string]nodeSeries
	tasks   map[taskKey]*taskSeries
	touched time.Time
}

type nodeSeries struct {
	node   *structs.Node
	ready  bool
	labels *telemetry.LabelSet
	cores  []*telemetry.LabelSet
	disk   *telemetry.LabelSet
}

type taskKey struct{ alloc, task string }

type taskSeries struct {
	labels *telemetry.LabelSet
	counts *telemetry.LabelSet // the same, for taskCounters
	handle driver.Handle
	last   driver.Stats
	used   time.Time // by which derivation
}

func newMeter(c *Client) *meter {
	return &meter{
		begun: time.Now(), booted: stats.Booted(), host: &stats.Host{AllocDir: c.config.AllocDir}, nodes: map[string]nodeSeries{}, tasks: map[taskKey]*taskSeries{},
	}
}

// nodeGauges are the series of each node.
var nodeGauges = struct {
	blocked, migrating, pending, running, terminal                     *telemetry.Family
	tasksPending, tasksRunning, tasksDead                              *telemetry.Family
	cpu, memory, maxMemory, disk, freeCPU, freeMemory, freeDisk, since *telemetry.Family
}{
	telemetry.Named("client.allocations.blocked"), telemetry.Named("client.allocations.migrating"), telemetry.Named("client.allocations.pending"),
	telemetry.Named("client.allocations.running"), telemetry.Named("client.allocations.terminal"),
	telemetry.Named("client.tasks.pending"), telemetry.Named("client.tasks.running"), telemetry.Named("client.tasks.dead"),
	telemetry.Named("client.allocated.cpu"), telemetry.Named("client.allocated.memory"), telemetry.Named("client.allocated.max_memory"),
	telemetry.Named("client.allocated.disk"), telemetry.Named("client.unallocated.cpu"), telemetry.Named("client.unallocated.memory"),
	telemetry.Named("client.unallocated.disk"), telemetry.Named("client.uptime"),
}

const seriesOfNode = 16

// tally is what a node's allocations are and have.
type tally struct {
	blocked, pending, running, terminal int
	tasks                               map[string]int // by state
	cpu, memory, maxMemory, disk        int64
}

// Metrics adds the series of the client to a batch.
func (c *Client) Metrics(b *telemetry.Batch) {
	ctx, cancel := context.WithTimeout(c.group.ctx, measureLimit)
	defer cancel()
	m := c.meter
	m.touched = time.Now()
	for _, n := range c.nodes {
		shown := b.Room(telemetry.OfNodes, seriesOfNode)
		runners := n.anyOrder()
		t := tally{tasks: map[string]int{}}
		for _, r := range runners {
			t.add(n, r, b, c)
		}
		if shown {
			c.addNode(b, n, &t)
			if c.config.Metrics.Nodes && n.dir != "" {
				c.addHost(ctx, b, m.seriesOf(n))
			}
		}
		if c.config.Metrics.Allocations {
			for _, r := range runners {
				c.addUsage(ctx, b, r)
			}
		}
	}
	for key, t := range m.tasks { // order does not matter: each by itself
		if t.used != m.touched {
			delete(m.tasks, key)
		}
	}
}

// add counts an allocation, and adds the counters of its tasks to a batch.
func (t *tally) add(n *node, r *alloc.Runner, b *telemetry.Batch, c *Client) {
	a, now := r.Alloc(), r.Snapshot()
	switch {
	case structs.TerminalClientStatus(now.ClientStatus):
		t.terminal++
	case now.ClientStatus == structs.AllocClientRunning:
		t.running++
	case n.claims.isWaiting(r.ID()):
		t.blocked++
	default:
		t.pending++
	}
	if !structs.TerminalClientStatus(now.ClientStatus) {
		cpu, memory, disk, _ := a.AllocatedResources.Total()
		t.cpu, t.memory, t.disk = t.cpu+cpu, t.memory+memory, t.disk+disk
		if a.AllocatedResources != nil {
			for _, one := range a.AllocatedResources.Tasks { // order does not matter: a sum
				t.maxMemory += max(one.Memory.MemoryMB, one.Memory.MemoryMaxMB)
			}
		}
	}
	ended, over := r.EndedAt()
	forgotten := over && c.meter.touched.Sub(ended) > keepEnded
	for name, s := range now.TaskStates { // order does not matter: each has its own series
		t.tasks[s.State]++
		if forgotten || n.dir == "" && !c.config.Metrics.Allocations || !b.Room(telemetry.OfAllocations, len(taskCounters)) {
			continue
		}
		labels := c.meter.taskOf(r, a, name).counts
		for i, v := range countersOf(s) {
			b.Add(taskCounters[i], v, labels)
		}
	}
}

// taskCounters are what has happened to a task, in the order of countersOf.
var taskCounters = [...]*telemetry.Family{
	telemetry.Named("client.allocs.running"), telemetry.Named("client.allocs.restart"), telemetry.Named("client.allocs.complete"),
	telemetry.Named("client.allocs.failed"), telemetry.Named("client.allocs.oom_killed"),
}

func countersOf(s *structs.TaskState) (out [len(taskCounters)]float64) {
	if !s.StartedAt.IsZero() {
		out[0] = float64(s.Restarts + 1)
	}
	out[1] = float64(s.Restarts)
	if s.State == structs.TaskStateDead {
		out[2] = 1
		if s.Failed {
			out[2], out[3] = 0, 1
		}
	}
	for _, e := range s.Events {
		if e.Details["oom_killed"] == "true" {
			out[4]++
		}
	}
	return out
}

// taskOf returns what is kept of a task's series.
func (m *meter) taskOf(r *alloc.Runner, a *structs.Allocation, task string) *taskSeries {
	key := taskKey{a.ID, task}
	t := m.tasks[key]
	if t == nil {
		pairs := []string{"job", a.JobID, "task_group", a.TaskGroup, "alloc_id", a.ID, "namespace", a.Namespace, "task", task}
		if a.Job != nil && a.Job.ParentID != "" {
			pairs = append(pairs, "parent_id", a.Job.ParentID)
		}
		t = &taskSeries{labels: telemetry.Labels(pairs...)}
		if t.counts = t.labels; !r.Restored() {
			t.counts = t.labels.FromZero()
		}
		m.tasks[key] = t
	}
	t.used = m.touched
	return t
}

// seriesOf returns the labels of a node's series.
func (m *meter) seriesOf(n *node) nodeSeries {
	now, ready := n.Node(), n.epoch.Load() > 0
	s, ok := m.nodes[n.id]
	if ok && s.node == now && s.ready == ready {
		return s
	}
	status := structs.NodeStatusInit
	if ready {
		status = structs.NodeStatusReady
	}
	s = nodeSeries{node: now, ready: ready, labels: telemetry.Labels(
		"node_id", n.id, "datacenter", now.Datacenter, "node_class", cmp.Or(now.NodeClass, "none"), "node_pool", now.NodePool,
		"node_status", status, "node_scheduling_eligibility", now.SchedulingEligibility,
	)}
	m.nodes[n.id] = s
	return s
}

func (c *Client) addNode(b *telemetry.Batch, n *node, t *tally) {
	g, s := &nodeGauges, c.meter.seriesOf(n)
	set := func(f *telemetry.Family, v float64) { b.Add(f, v, s.labels) }
	set(g.blocked, float64(t.blocked))
	set(g.migrating, 0) // nothing is migrated
	set(g.pending, float64(t.pending))
	set(g.running, float64(t.running))
	set(g.terminal, float64(t.terminal))
	set(g.tasksPending, float64(t.tasks[structs.TaskStatePending]))
	set(g.tasksRunning, float64(t.tasks[structs.TaskStateRunning]))
	set(g.tasksDead, float64(t.tasks[structs.TaskStateDead]))
	set(g.cpu, float64(t.cpu))
	set(g.memory, float64(t.memory))
	set(g.maxMemory, float64(t.maxMemory))
	set(g.disk, float64(t.disk))
	cpu, memory, disk := s.node.NodeResources.Cpu.CpuShares, s.node.NodeResources.Memory.MemoryMB, s.node.NodeResources.Disk.DiskMB
	if r := s.node.ReservedResources; r != nil {
		cpu, memory, disk = cpu-int64(r.Cpu.CpuShares), memory-r.Memory.MemoryMB, disk-r.Disk.DiskMB // MHz of a machine
	}
	set(g.freeCPU, float64(cpu-t.cpu))
	set(g.freeMemory, float64(memory-t.memory))
	set(g.freeDisk, float64(disk-t.disk))
	begun := c.meter.begun
	if n.dir != "" {
		begun = c.meter.booted
	}
	set(g.since, time.Since(begun).Seconds())
}

// hostGauges are the series of the machine.
var hostGauges = struct {
	user, system, idle, total, percent, ticks, ticksCount *telemetry.Family
	memTotal, memAvailable, memUsed, memFree              *telemetry.Family
	size, used, available, usedPercent, inodes            *telemetry.Family
}{
	telemetry.Named("client.host.cpu.user"), telemetry.Named("client.host.cpu.system"), telemetry.Named("client.host.cpu.idle"),
	telemetry.Named("client.host.cpu.total"), telemetry.Named("client.host.cpu.total_percent"), telemetry.Named("client.host.cpu.total_ticks"),
	telemetry.Named("client.host.cpu.total_ticks_count"),
	telemetry.Named("client.host.memory.total"), telemetry.Named("client.host.memory.available"), telemetry.Named("client.host.memory.used"),
	telemetry.Named("client.host.memory.free"),
	telemetry.Named("client.host.disk.size"), telemetry.Named("client.host.disk.used"), telemetry.Named("client.host.disk.available"),
	telemetry.Named("client.host.disk.used_percent"), telemetry.Named("client.host.disk.inodes_percent"),
}

// addHost measures the machine.
func (c *Client) addHost(ctx context.Context, b *telemetry.Batch, s nodeSeries) {
	m := c.meter
	m.host.TotalMHz = c.host.TotalMHz
	h, err := m.host.Stats(ctx, time.Now())
	if err != nil {
		c.logger.Debug("measure the machine for metrics", "error", err)
		return
	}
	g, busy := &hostGauges, m.host.Busy()
	perCore := m.host.TotalMHz / float64(max(1, len(h.CPU)))
	if !b.Room(telemetry.OfNodes, 4+5*len(h.DiskStats)+7*len(h.CPU)) {
		return
	}
	for i, core := range h.CPU {
		if i >= len(s.cores) {
			s.cores = append(s.cores, s.labels.With("cpu", core.CPU))
		}
		l := s.cores[i]
		b.Add(g.user, core.User, l)
		b.Add(g.system, core.System, l)
		b.Add(g.idle, core.Idle, l)
		b.Add(g.total, core.Total, l)
		b.Add(g.percent, core.TotalPercent, l)
		b.Add(g.ticks, core.TotalPercent/100*perCore, l)
		b.Add(g.ticksCount, busy[i]*perCore, l)
	}
	b.Add(g.memTotal, float64(h.Memory.Total), s.labels)
	b.Add(g.memAvailable, float64(h.Memory.Available), s.labels)
	b.Add(g.memUsed, float64(h.Memory.Used), s.labels)
	b.Add(g.memFree, float64(h.Memory.Free), s.labels)
	for _, d := range h.DiskStats {
		if s.disk == nil {
			s.disk = s.labels.With("disk", d.Device)
		}
		b.Add(g.size, float64(d.Size), s.disk)
		b.Add(g.used, float64(d.Used), s.disk)
		b.Add(g.available, float64(d.Available), s.disk)
		b.Add(g.usedPercent, d.UsedPercent, s.disk)
		b.Add(g.inodes, d.InodesUsedPercent, s.disk)
	}
	m.nodes[s.node.ID] = s // with the labels that were made
}

// useFamilies are what a task has and uses, in the order of useOf.
var useFamilies = [...]*telemetry.Family{
	telemetry.Named("client.allocs.cpu.allocated"), telemetry.Named("client.allocs.memory.allocated"), telemetry.Named("client.allocs.memory.max_allocated"),
	telemetry.Named("client.allocs.memory.usage"), telemetry.Named("client.allocs.memory.rss"), telemetry.Named("client.allocs.memory.swap"),
	telemetry.Named("client.allocs.cpu.user"), telemetry.Named("client.allocs.cpu.system"), telemetry.Named("client.allocs.cpu.total_percent"),
	telemetry.Named("client.allocs.cpu.total_ticks"), telemetry.Named("client.allocs.cpu.total_ticks_count"),
	telemetry.Named("client.allocs.cpu.throttled_periods"), telemetry.Named("client.allocs.cpu.throttled_time"),
}

// addUsage measures the tasks of an allocation that run.
func (c *Client) addUsage(ctx context.Context, b *telemetry.Batch, r *alloc.Runner) {
	a := r.Alloc()
	for name, h := range r.Handles() { // order does not matter: each has its own series
		if !b.Room(telemetry.OfAllocations, len(useFamilies)) {
			continue
		}
		now, err := h.Stats(ctx)
		if err != nil { // it has just ended, or there was no time
			continue
		}
		t := c.meter.taskOf(r, a, name)
		if t.handle != h {
			t.handle, t.last = h, driver.Stats{}
		}
		var given structs.AllocatedTaskResources
		if a.AllocatedResources != nil && a.AllocatedResources.Tasks[name] != nil {
			given = *a.AllocatedResources.Tasks[name]
		}
		for i, v := range useOf(&given, &t.last, &now, c.sampler.MHzPerCore) {
			b.Add(useFamilies[i], v, t.labels)
		}
		t.last = now
	}
}

// useOf returns what a task has and what it has used since an earlier measurement; there are no rates without one.
func useOf(given *structs.AllocatedTaskResources, last, now *driver.Stats, mhz float64) [len(useFamilies)]float64 {
	user, system := 0.0, 0.0
	if elapsed := now.Timestamp.Sub(last.Timestamp).Seconds(); !last.Timestamp.IsZero() && elapsed > 0 {
		user = max(0, (now.CPUUser-last.CPUUser).Seconds()/elapsed*100)
		system = max(0, (now.CPUSystem-last.CPUSystem).Seconds()/elapsed*100)
	}
	return [...]float64{
		float64(given.Cpu.CpuShares), float64(given.Memory.MemoryMB << 20), float64(max(given.Memory.MemoryMB, given.Memory.MemoryMaxMB) << 20),
		float64(now.MemoryRSS), float64(now.MemoryRSS), float64(now.MemorySwap),
		user, system, user + system, (user + system) / 100 * mhz, (now.CPUUser + now.CPUSystem).Seconds() * mhz, 0, 0,
	}
}

var (
	requests, requestErrors = telemetry.NewCount("client.rpc.request"), telemetry.NewCount("client.rpc.request_error")
	streams, streamErrors   = telemetry.NewCount("client.streaming_rpc.request"), telemetry.NewCount("client.streaming_rpc.request_error")
)

// callTimers are the timers of what servers call on a client, with Nomad's names.
var callTimers = func() map[string]*telemetry.Timer {
	out := map[string]*telemetry.Timer{}
	for method, name := range map[string]string{
		wire.MethodClientAllocStats: "allocations.stats", wire.MethodClientAllocRestart: "allocations.restart",
		wire.MethodClientAllocSignal: "allocations.signal", wire.MethodClientAllocGC: "allocations.garbage_collect",
		wire.MethodClientGC: "allocations.garbage_collect_all", wire.MethodClientHostStats: "client_stats.stats",
		wire.MethodClientFSList: "file_system.list", wire.MethodClientFSStat: "file_system.stat", wire.MethodClientFSRead: "file_system.stream",
	} { // order does not matter: a map made of a map
		out[method] = telemetry.NewTimer("client." + name)
	}
	return out
}()

// observeCall counts and times a call of a server.
func observeCall(method string, begun time.Time, err error) {
	count, failed := requests, requestErrors
	if method == wire.MethodClientFSRead {
		count, failed = streams, streamErrors
	}
	count.Add(1)
	if err != nil {
		failed.Add(1)
	}
	callTimers[method].Since(begun)
}
