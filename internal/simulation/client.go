package simulation

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// beatEvery is the least time between a node's heartbeats, and how long one may be late.
const beatEvery = 4 * time.Second

// client is a node with its agent. It does what client does at the servers' methods; its tasks
// are times at which they end.
type client struct {
	*sim
	id   int
	node *structs.Node
	skew time.Duration

	up, cut bool
	life    int // counts its starts
	// gossips: it takes part in the clients' gossip, which may be cut by itself. member and failed are what the others have of it.
	gossips, mute, member, failed bool
	deaf, silent                  time.Duration // since when its RPC does not answer, and its gossip is not heard, if so

	seen    uint64          // the newest state that it has read
	anew    bool            // it was started, and has not read anything since
	bad     map[string]bool // its GPUs that are
	tasks   map[string]*task
	reports []*structs.AllocClientUpdate // not yet sent, oldest first
	sending bool
	pulse   *event // the next call of beat or register
}

// task is what runs of an allocation.
type task struct {
	client    *client
	alloc     *structs.Allocation
	status    string // as the client knows it
	suspended bool
	over      bool
	since     time.Time
	judged    bool // it has been said whether it is healthy
	stops     bool // it is to end
	killed    bool // it ended by that, and not by itself before
}

func (s *sim) makeClients() {
	for i := range 8 + s.IntN(5) {
		c := &client{sim: s, id: i, up: true, bad: map[string]bool{}, tasks: map[string]*task{}, gossips: s.prober != nil && s.IntN(6) > 0}
		c.node = requestKeyOf(s, i)
		s.clients = append(s.clients, c)
		s.after(s.between(0, 2*time.Second), "client", i, c.start)
	}
}

// requestKeyOf makes a node: some have GPUs, under two switches.
func requestKeyOf(s *sim, i int) *structs.Node {
	cores := uint16(8 << s.IntN(2)) // 8 or 16
	n := &structs.Node{
		ID: s.newID(), SecretID: s.newID(), Name: fmt.Sprintf("n%d", i), Datacenter: "dc1", NodePool: structs.NodePoolDefault,
		Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
		Attributes: map[string]string{"driver.mock_driver": "1", "kernel.name": "linux", structs.AttrDriverSuspend("mock_driver"): "1"},
		Drivers:    map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		Meta:       map[string]string{"rack": fmt.Sprintf("r%d", i%3)},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 1000 * int64(cores), TotalCpuCores: cores},
			Memory: structs.NodeMemoryResources{MemoryMB: 32_000}, Disk: structs.NodeDiskResources{DiskMB: 100_000},
			MinDynamicPort: 20_000, MaxDynamicPort: 20_020,
			Networks:     []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: fmt.Sprintf("10.0.0.%d", i+1)}},
			NodeNetworks: []*structs.NodeNetworkResource{{Mode: "host", Device: "eth0", Addresses: []structs.NodeNetworkAddress{{Family: "ipv4", Alias: "default", Address: fmt.Sprintf("10.0.0.%d", i+1)}}}},
		},
	}
	for c := range cores {
		n.NodeResources.Cpu.ReservableCpuCores = append(n.NodeResources.Cpu.ReservableCpuCores, c)
	}
	if s.IntN(3) > 0 || s.tenants != nil {
		giveGPUs(n, 4)
	}
	return n
}

func giveGPUs(n *structs.Node, count int) {
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	tree := &structs.NodeTopology{}
	for i := range count {
		id := fmt.Sprintf("%s-gpu-%d", n.Name, i)
		group.Instances = append(group.Instances, &structs.NodeDevice{ID: id, Healthy: true})
		if i%2 == 0 {
			tree.Cells = append(tree.Cells, &structs.TopologyCell{ID: fmt.Sprintf("pcie-%d", i/2), Level: structs.LevelPCIe})
		}
		at := tree.Cells[len(tree.Cells)-1]
		at.Devices = append(at.Devices, id)
	}
	n.NodeResources.Devices, n.NodeResources.Topology = []*structs.NodeDeviceResource{group}, tree
}

// later does something unless the agent has ended by then.
func (c *client) later(d time.Duration, what string, do func()) *event {
	life := c.life
	return c.after(d, what, c.id, func() {
		if c.life == life {
			do()
		}
	})
}

// callServer calls the servers.
func (c *client) callServer(method string, args, reply any) error {
	if c.cut {
		return noLeader()
	}
	return c.call(method, args, reply)
}

// start starts the agent.
func (c *client) start() {
	c.up, c.anew = true, true
	c.life++
	c.register()
	c.join()
	c.later(c.between(0, time.Second), "look", c.look)
	c.later(c.between(0, time.Second), "event", c.event)
}

// event reports to the servers something that happened on the node.
func (c *client) event() {
	if c.quiet() {
		return
	}
	c.later(c.between(100*time.Millisecond, 700*time.Millisecond), "event", c.event)
	_ = c.callServer(wire.MethodNodeEvents, &structs.NodeEventsRequest{ // what is lost is lost
		NodeID: c.node.ID, SecretID: c.node.SecretID,
		Events: []*structs.NodeEvent{{Subsystem: "Driver", Message: "looked after", Timestamp: epoch.Add(c.now + c.skew)}},
	}, &structs.WriteReply{})
}

// register registers the node with the servers.
func (c *client) register() {
	n := c.node.Copy()
	for _, group := range c.node.NodeResources.Devices {
		g := *group
		g.Instances = nil
		for _, d := range group.Instances {
			one := *d
			one.Healthy = !c.bad[d.ID]
			g.Instances = append(g.Instances, &one)
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{&g}
	}
	reply := &structs.NodeUpdateReply{}
	if err := c.callServer(wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: n}, reply); err != nil {
		if code := structs.CodeOf(err); code == structs.CodeBadRequest {
			c.fail("register node %s: %v", c.node.Name, err)
		}
		c.next(c.between(500*time.Millisecond, 2*time.Second), "register", c.register)
		return
	}
	c.beatIn(reply.HeartbeatTTL)
}

// next has the servers called later, instead of what was to be called before.
func (c *client) next(d time.Duration, what string, do func()) {
	if c.pulse != nil {
		c.pulse.Stop()
	}
	c.pulse = c.later(d, what, do)
}

func (c *client) beatIn(d time.Duration) {
	if c.chance(60) {
		c.fault("a heartbeat is late", c.id)
		d += c.between(time.Second, 3*beatEvery)
	}
	c.next(d, "heartbeat", c.beat)
}

func (c *client) beat() {
	reply := &structs.NodeUpdateReply{}
	err := c.callServer(wire.MethodNodeHeartbeat, &structs.NodeHeartbeatRequest{NodeID: c.node.ID, SecretID: c.node.SecretID, Status: structs.NodeStatusReady}, reply)
	switch {
	case err != nil:
		c.next(c.between(500*time.Millisecond, 2*time.Second), "heartbeat", c.beat)
	case !reply.Registered:
		c.register()
	default:
		c.beatIn(reply.HeartbeatTTL)
	}
}

// look reads what the node is to run, of any replica that is not older than what it read last.
func (c *client) look() {
	c.later(c.between(300*time.Millisecond, 2*time.Second), "look", c.look)
	if c.cut {
		return
	}
	r := one(c.sim, c.replicas...)
	if !r.reachable() || r.index() < c.seen {
		return
	}
	snap, last := r.store.Snapshot(), c.seen
	if c.seen = snap.Index(); c.checks.onNode[c.node.ID] <= last && !c.anew {
		return // there is nothing new
	}
	c.anew = false
	wanted := map[string]bool{}
	for _, a := range snap.AllocsByNode(nil, c.node.ID) {
		wanted[a.ID] = true
		c.consider(a)
	}
	for _, id := range sortedKeys(c.tasks) {
		if !wanted[id] { // the servers have forgotten it
			delete(c.tasks, id)
		}
	}
}

// consider does what the servers want of an allocation.
func (c *client) consider(a *structs.Allocation) {
	t := c.tasks[a.ID]
	switch {
	case t == nil && a.Terminal() && a.ClientTerminal():
	case t == nil && (a.ServerTerminal() || a.ClientStatus != structs.AllocClientPending):
		// It never ran here, or did so in an earlier life of the agent.
		t = &task{client: c, alloc: a, over: true, killed: true}
		c.tasks[a.ID] = t
		status := structs.AllocClientFailed
		if a.ServerTerminal() {
			status = structs.AllocClientComplete
		}
		c.report(t, status, nil)
	case t == nil:
		t = &task{client: c, alloc: a, status: structs.AllocClientPending}
		c.tasks[a.ID] = t
		c.later(c.between(10*time.Millisecond, time.Second), "run", t.run)
	case t.over:
	case a.Terminal() && !t.stops:
		t.stops = true
		c.later(c.between(0, 3*time.Second), "kill", t.kill)
	case a.Suspended() && !t.suspended && t.status == structs.AllocClientRunning:
		t.suspended = true
		c.report(t, structs.AllocClientSuspended, nil)
	case !a.Suspended() && t.suspended:
		t.suspended = false
		c.report(t, structs.AllocClientRunning, nil)
		t.endLater()
	}
}

// run starts a task.
func (t *task) run() {
	c := t.client
	if t.over || t.stops || c.tasks[t.alloc.ID] != t {
		return
	}
	t.since = epoch.Add(c.now + c.skew)
	c.report(t, structs.AllocClientRunning, nil)
	t.healthyLater()
	t.endLater()
}

// healthyLater has it said of a task, once, whether it is healthy; not while it is suspended. An agent that ends before begins anew
// when it is back.
func (t *task) healthyLater() {
	c := t.client
	c.later(c.between(200*time.Millisecond, 3*time.Second), "healthy", func() {
		switch {
		case t.over || t.stops:
		case t.suspended:
			t.healthyLater()
		default:
			t.judged = true
			well := !c.chance(30)
			if !well {
				c.fault("an allocation is not healthy", c.id)
			}
			c.report(t, structs.AllocClientRunning, &structs.AllocDeploymentStatus{Healthy: &well, Timestamp: epoch.Add(c.now + c.skew)})
		}
	})
}

// endLater has a task end by itself, if it does.
func (t *task) endLater() {
	c := t.client
	batch := t.alloc.Job != nil && (t.alloc.Job.Type == structs.JobTypeBatch || t.alloc.Job.Type == structs.JobTypeSysBatch)
	switch {
	case batch:
		c.later(c.between(time.Second, 15*time.Second), "end", func() {
			switch {
			case t.suspended:
			case c.chance(12):
				c.fault("a task fails", c.id)
				t.ends(structs.AllocClientFailed)
			default:
				t.ends(structs.AllocClientComplete)
			}
		})
	case c.chance(4):
		c.later(c.between(time.Second, 90*time.Second), "fail", func() {
			if !c.quiet() && !t.suspended && !t.over && !t.stops {
				c.fault("a task fails", c.id)
				t.ends(structs.AllocClientFailed)
			}
		})
	}
}

// kill ends a task that is told to, if it has not ended by itself meanwhile.
func (t *task) kill() {
	t.killed = !t.over
	t.ends(structs.AllocClientComplete)
}

func (t *task) ends(status string) {
	c := t.client
	if t.over || c.tasks[t.alloc.ID] != t {
		return
	}
	t.over = true
	c.report(t, status, nil)
}

// report reports to the servers what became of a task.
func (c *client) report(t *task, status string, health *structs.AllocDeploymentStatus) {
	t.status = status
	state := &structs.TaskState{State: structs.TaskStateRunning, StartedAt: t.since}
	if structs.TerminalClientStatus(status) {
		state.State, state.FinishedAt, state.Failed = structs.TaskStateDead, epoch.Add(c.now+c.skew), status == structs.AllocClientFailed
	}
	if t.killed {
		state.Events = []*structs.TaskEvent{{Type: structs.TaskKilled}}
	}
	c.reports = append(c.reports, &structs.AllocClientUpdate{
		ID: t.alloc.ID, ClientStatus: status, TaskStates: map[string]*structs.TaskState{"t": state}, DeploymentStatus: health,
	})
	c.sendSoon(c.between(2*time.Millisecond, 40*time.Millisecond))
}

func (c *client) sendSoon(wait time.Duration) {
	if c.sending {
		return
	}
	c.sending = true
	if c.chance(20) {
		c.fault("a report is late", c.id)
		wait = c.between(time.Second, 20*time.Second)
	}
	c.later(wait, "report", c.send)
}

func (c *client) send() {
	c.sending = false
	batch := c.reports
	if len(batch) == 0 {
		return
	}
	tell := func() error {
		args := &structs.ClientUpdateRequest{NodeID: c.node.ID, SecretID: c.node.SecretID, Updates: batch}
		return c.callServer(wire.MethodNodeUpdateAllocs, args, &structs.WriteReply{})
	}
	if c.chance(15) {
		c.fault("a report comes twice", c.id)
		_ = tell() // as if its answer had been lost
	}
	if err := tell(); err != nil {
		c.sendSoon(c.between(500*time.Millisecond, 2*time.Second))
		return
	}
	c.reports = c.reports[len(batch):]
	if len(c.reports) > 0 {
		c.sendSoon(c.between(5*time.Millisecond, 150*time.Millisecond))
	}
}

// end ends the agent; with its tasks, if the machine went down.
func (c *client) end(machine bool) {
	c.lost(true, true)
	c.up = false
	c.life++
	c.sending = false
	c.missed(pingsMissed)
	c.noticed()
	if machine {
		c.tasks, c.reports = map[string]*task{}, nil
	}
}

// back starts it again. What ran on meanwhile goes on being watched.
func (c *client) back() {
	c.start()
	for _, id := range sortedKeys(c.tasks) {
		switch t := c.tasks[id]; {
		case t.over:
		case t.stops:
			c.later(c.between(0, time.Second), "kill", t.kill)
		case t.status == structs.AllocClientPending:
			c.later(c.between(10*time.Millisecond, time.Second), "run", t.run)
		default:
			if !t.judged {
				t.healthyLater()
			}
			if !t.suspended {
				t.endLater()
			}
		}
	}
	if len(c.reports) > 0 {
		c.sendSoon(c.between(5*time.Millisecond, 150*time.Millisecond))
	}
}
