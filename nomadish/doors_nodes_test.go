package nomadish

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// doorWorld is a server with two nodes and a job whose three allocations are on the first.
type doorWorld struct {
	t       *testing.T
	s       *Server
	session *wire.Session
	nodes   [2]*structs.Node
	allocs  []*structs.Allocation
}

func newDoorWorld(t *testing.T, change func(*Config)) *doorWorld {
	t.Helper()
	w := &doorWorld{t: t, s: startWith(t, "", change), nodes: [2]*structs.Node{node(1), node(2)}}
	session, err := wire.Dial(t.Context(), "", w.s.RPCAddr(), wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	w.session = session
	w.must(wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: w.nodes[0]})
	r, err := register(t.Context(), w.s, batchJob("j", 3))
	if err != nil {
		t.Fatal(err)
	}
	evalDone(t, w.s, r.EvalID)
	w.allocs = w.s.store.Snapshot().AllocsByNode(nil, w.nodes[0].ID)
	if len(w.allocs) != 3 {
		t.Fatalf("%d allocations are on the node", len(w.allocs))
	}
	w.must(wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: w.nodes[1]})
	return w
}

func (w *doorWorld) call(method string, args any) error {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	return w.session.Call(ctx, method, args, &struct{}{})
}

func (w *doorWorld) must(method string, args any) {
	w.t.Helper()
	if err := w.call(method, args); err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
}

// report is a report of the first node's that says of its i-th allocation that it runs, with these tasks.
func (w *doorWorld) report(i int, tasks map[string]*structs.TaskState) *structs.ClientUpdateRequest {
	return &structs.ClientUpdateRequest{NodeID: w.nodes[0].ID, SecretID: "s", Updates: []*structs.AllocClientUpdate{{
		ID: w.allocs[i].ID, ClientStatus: structs.AllocClientRunning, TaskStates: tasks,
	}}}
}

// changed is a registration of the first node with something changed.
func (w *doorWorld) changed(change func(*structs.Node)) *structs.NodeRegisterRequest {
	n := node(1)
	change(n)
	return &structs.NodeRegisterRequest{Node: n}
}

// running is a task that runs, with n events of a message.
func running(n int, message string) *structs.TaskState {
	s := &structs.TaskState{State: structs.TaskStateRunning}
	for i := range n {
		s.Events = append(s.Events, &structs.TaskEvent{
			Type: structs.TaskDriverFailure, Time: int64(i + 1), DisplayMessage: message, DriverError: message, Details: map[string]string{"driver_error": message},
		})
	}
	return s
}

// repeated is a map of n strings.
func repeated(n int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		out[fmt.Sprintf("key-%d", i)] = "value"
	}
	return out
}

// large is a map of n strings of 4,000 bytes each.
func large(n int) map[string]string {
	out := repeated(n)
	for k := range out { // order does not matter: all are replaced
		out[k] = strings.Repeat("x", 4000)
	}
	return out
}

// doorRow is something absurd that a node says.
type doorRow struct {
	what   string
	method string
	args   any
	want   structs.Code
	names  string // part of the error
}

// reportRows are reports that no honest client sends.
func reportRows(w *doorWorld) []doorRow {
	invented := &structs.ClientUpdateRequest{NodeID: w.nodes[0].ID, SecretID: "s"}
	for i := range w.allocs {
		tasks := map[string]*structs.TaskState{}
		for t := range 50_000 {
			tasks[fmt.Sprintf("t%d", t)] = running(1, "x")
		}
		invented.Updates = append(invented.Updates, w.report(i, tasks).Updates...)
	}
	several := w.report(0, map[string]*structs.TaskState{"t": running(1, "x")})
	for range 5000 {
		several.Updates = append(several.Updates, several.Updates[0])
	}
	status := w.report(0, nil)
	status.Updates[0].ClientStatus = strings.Repeat("x", 1000)
	others := w.report(0, nil)
	others.NodeID = w.nodes[1].ID
	network := w.report(0, nil)
	network.Updates[0].NetworkStatus = &structs.AllocNetworkStatus{DNS: &structs.DNSConfig{Servers: make([]string, 5000)}}
	empty := &structs.TaskState{State: structs.TaskStateRunning, Events: make([]*structs.TaskEvent, 0, 100_000)}
	for range 100_000 {
		empty.Events = append(empty.Events, &structs.TaskEvent{})
	}
	const m = wire.MethodNodeUpdateAllocs
	const bad = structs.CodeBadRequest
	return []doorRow{
		{"three allocations with 50,000 invented tasks each", m, invented, bad, "bytes"},
		{"an invented task", m, w.report(0, map[string]*structs.TaskState{"t": running(1, "x"), "invented": running(1, "x")}), bad, `"invented"`},
		{"an invented task with a long name", m, w.report(0, map[string]*structs.TaskState{strings.Repeat("n", 100_000): running(1, "x")}), bad, "nnnn"},
		{"a task without a state", m, w.report(0, map[string]*structs.TaskState{"t": nil}), bad, `"t"`},
		{"101 events of a task", m, w.report(0, map[string]*structs.TaskState{"t": running(101, "x")}), bad, "events"},
		{"100,000 empty events of a task", m, w.report(0, map[string]*structs.TaskState{"t": empty}), bad, ""},
		{"an event without content", m, w.report(0, map[string]*structs.TaskState{"t": {Events: []*structs.TaskEvent{nil}}}), bad, "event"},
		{"a task's state of 1,000 letters", m, w.report(0, map[string]*structs.TaskState{"t": {State: strings.Repeat("x", 1000)}}), bad, "state"},
		{"a status of 1,000 letters", m, status, bad, "status"},
		{"5,000 name servers", m, network, bad, "network"},
		{"5,001 states of one allocation", m, several, bad, "5001"},
		{"a message of 2 MiB", m, w.report(0, map[string]*structs.TaskState{"t": running(1, strings.Repeat("x", 2<<20))}), bad, "bytes"},
		{"another node's allocation", m, others, structs.CodeForbidden, "not on it"},
	}
}

// registerRows are nodes that no machine is.
func registerRows(w *doorWorld) []doorRow {
	var rows []doorRow
	f := func(what, names string, change func(*structs.Node)) {
		rows = append(rows, doorRow{what, wire.MethodNodeRegister, w.changed(change), structs.CodeBadRequest, names})
	}
	long := strings.Repeat("x", 10_000)
	f("2^40 MB of memory", "memory", func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 1 << 40 })
	f("less memory than none", "memory", func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = -1 })
	f("2^62 MHz", "CPU", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 1 << 62 })
	f("2^62 MB of disk", "disk", func(n *structs.Node) { n.NodeResources.Disk.DiskMB = 1 << 62 })
	f("more reserved than any machine has", "reserved", func(n *structs.Node) {
		n.ReservedResources = &structs.NodeReservedResources{Cpu: structs.NodeReservedCpuResources{CpuShares: 1<<64 - 1}}
	})
	f("less disk reserved than none", "reserved", func(n *structs.Node) {
		n.ReservedResources = &structs.NodeReservedResources{Disk: structs.NodeDiskResources{DiskMB: -5}}
	})
	f("70,000 cores to reserve", "cores", func(n *structs.Node) { n.NodeResources.Cpu.ReservableCpuCores = make([]uint16, 70_000) })
	f("a port above all", "port", func(n *structs.Node) { n.NodeResources.MaxDynamicPort = 1 << 30 })
	f("an attribute of 1 MiB", "bytes", func(n *structs.Node) { n.Attributes["a"] = strings.Repeat("x", 1<<20) })
	f("an attribute of 10,000 bytes", "attribute", func(n *structs.Node) { n.Attributes["a"] = long })
	f("an attribute with a name of 10,000 bytes", "attribute", func(n *structs.Node) { n.Attributes[long] = "" })
	f("20,000 attributes", "attributes", func(n *structs.Node) { n.Attributes = repeated(20_000) })
	f("5,000 pairs of meta", "meta", func(n *structs.Node) { n.Meta = repeated(5000) })
	f("5,000 links", "links", func(n *structs.Node) { n.Links = repeated(5000) })
	f("880 KB of attributes", "262144", func(n *structs.Node) { n.ID, n.Attributes = node(11).ID, large(220) })
	f("300 KB of attributes, meta and links together", "262144", func(n *structs.Node) { n.Attributes, n.Meta, n.Links = large(25), large(25), large(25) })
	f("300 KB of meta", "262144", func(n *structs.Node) { n.Meta = large(75) })
	f("300 KB of drivers' attributes", "262144", func(n *structs.Node) { n.Drivers["mock_driver"].Attributes = large(75) })
	f("300 KB of devices' attributes", "262144", func(n *structs.Node) {
		d := &structs.NodeDeviceResource{Vendor: "v", Type: "gpu", Name: "m", Attributes: map[string]*structs.Attribute{}}
		for name, text := range large(75) {
			d.Attributes[name] = &structs.Attribute{StringVal: &text}
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
	})
	f("a name of 10,000 bytes", "name", func(n *structs.Node) { n.Name = long })
	f("a datacenter of 10,000 bytes", "datacenter", func(n *structs.Node) { n.Datacenter = long })
	f("a class of 10,000 bytes", "class", func(n *structs.Node) { n.NodeClass = long })
	f("a pool of 10,000 bytes", "pool", func(n *structs.Node) { n.NodePool = long })
	f("an address of 10,000 bytes", "address", func(n *structs.Node) { n.HTTPAddr = long })
	f("a secret of 10,000 bytes", "secret", func(n *structs.Node) { n.ID, n.SecretID = node(9).ID, long })
	f("5,000 drivers", "drivers", func(n *structs.Node) {
		for name := range maps.Keys(repeated(5000)) {
			n.Drivers[name] = &structs.DriverInfo{}
		}
	})
	f("a driver of 10,000 attributes", "driver", func(n *structs.Node) { n.Drivers["mock_driver"].Attributes = repeated(10_000) })
	f("5,000 host volumes", "volumes", func(n *structs.Node) {
		n.HostVolumes = map[string]*structs.HostVolumeInfo{}
		for name := range maps.Keys(repeated(5000)) {
			n.HostVolumes[name] = &structs.HostVolumeInfo{Name: name, Path: "/"}
		}
	})
	f("5,000 networks", "networks", func(n *structs.Node) {
		for range 5000 {
			n.NodeResources.NodeNetworks = append(n.NodeResources.NodeNetworks, &structs.NodeNetworkResource{Device: "e"})
		}
	})
	f("5,000 devices", "devices", func(n *structs.Node) {
		d := &structs.NodeDeviceResource{Vendor: "v", Type: "gpu", Name: "m"}
		for i := range 5000 {
			d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprintf("d%d", i), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
	})
	f("a device with a long name", "device", func(n *structs.Node) {
		n.NodeResources.Devices = []*structs.NodeDeviceResource{{Vendor: "v", Type: "gpu", Name: "m", Instances: []*structs.NodeDevice{{ID: long}}}}
	})
	f("slots of 5,000 types", "5000 types", func(n *structs.Node) {
		n.NodeResources.Slots = map[string]int{}
		for name := range maps.Keys(repeated(5000)) {
			n.NodeResources.Slots[name] = 1
		}
	})
	f("2^30 slots", "slots: batch", func(n *structs.Node) { n.NodeResources.Slots = map[string]int{"batch": 1 << 30} })
	f("an eligibility of its own making", "eligibility", func(n *structs.Node) { n.ID, n.SchedulingEligibility = node(10).ID, "always" })
	f("200 events of its own", "events", func(n *structs.Node) { n.Events = make([]*structs.NodeEvent, 200) })
	return rows
}

// otherRows are heartbeats and events that no honest client sends, and what is said in the name of another node.
func otherRows(w *doorWorld) []doorRow {
	id, long := w.nodes[0].ID, strings.Repeat("x", 2<<20)
	events := make([]*structs.NodeEvent, 1000)
	for i := range events {
		events[i] = &structs.NodeEvent{Message: "x"}
	}
	stolen := w.changed(func(n *structs.Node) { n.SecretID = "another" })
	const bad, no = structs.CodeBadRequest, structs.CodeForbidden
	beat := func(status, secret string) *structs.NodeHeartbeatRequest {
		return &structs.NodeHeartbeatRequest{NodeID: id, SecretID: secret, Status: status}
	}
	return []doorRow{
		{"a heartbeat of 2 MiB", wire.MethodNodeHeartbeat, beat(long, "s"), bad, "bytes"},
		{"a heartbeat with an invented status", wire.MethodNodeHeartbeat, beat("excellent", "s"), bad, "excellent"},
		{"a heartbeat with a long status", wire.MethodNodeHeartbeat, beat(strings.Repeat("x", 60_000), "s"), bad, "status"},
		{
			"a heartbeat with 10,000 keys", wire.MethodNodeHeartbeat,
			&structs.NodeHeartbeatRequest{NodeID: id, SecretID: "s", GossipKeys: &structs.GossipKeys{Prints: make([]string, 10_000)}}, bad, "keys",
		},
		{"a greeting of 2 MiB", wire.MethodClientHello, beat(long, "s"), bad, "bytes"},
		{"a question of 2 MiB", wire.MethodNodeClientAllocs, &structs.ClientAllocsRequest{NodeID: id, SecretID: long}, bad, "bytes"},
		{"1,000 events", wire.MethodNodeEvents, &structs.NodeEventsRequest{NodeID: id, SecretID: "s", Events: events}, bad, "events"},
		{"an event of 2 MiB", wire.MethodNodeEvents, &structs.NodeEventsRequest{NodeID: id, SecretID: "s", Events: []*structs.NodeEvent{{Message: long}}}, bad, "bytes"},
		{
			"an event with 1,000 details", wire.MethodNodeEvents,
			&structs.NodeEventsRequest{NodeID: id, SecretID: "s", Events: []*structs.NodeEvent{{Details: repeated(1000)}}}, bad, "details",
		},
		// Held before, to be held on.
		{"another secret: registration", wire.MethodNodeRegister, stolen, no, "secret"},
		{"another secret: heartbeat", wire.MethodNodeHeartbeat, beat("down", "another"), no, "secret"},
		{"another secret: greeting", wire.MethodClientHello, beat("", "another"), no, "secret"},
		{"another secret: what it is to run", wire.MethodNodeClientAllocs, &structs.ClientAllocsRequest{NodeID: id, SecretID: "another"}, no, "secret"},
		{"another secret: report", wire.MethodNodeUpdateAllocs, &structs.ClientUpdateRequest{NodeID: id, SecretID: "another"}, no, "secret"},
		{"another secret: events", wire.MethodNodeEvents, &structs.NodeEventsRequest{NodeID: id, SecretID: "another"}, no, "secret"},
		{"no secret", wire.MethodNodeUpdateAllocs, &structs.ClientUpdateRequest{NodeID: id}, no, "secret"},
		{"nobody's report", wire.MethodNodeUpdateAllocs, &structs.ClientUpdateRequest{NodeID: node(7).ID, SecretID: "s"}, structs.CodeNotFound, ""},
	}
}

// TestDoorNodes: what no honest node says is refused with the reason, in few words, and nothing comes of it: no log entry, no change of
// what is known of the node or its allocations.
func TestDoorNodes(t *testing.T) {
	w := newDoorWorld(t, func(c *Config) { c.Heartbeats.MinTTL, c.Nodes.MaxRate = time.Hour, 0 }) // nothing else is to write log entries
	quiet := func() (entries uint64, node, alloc uint64) {
		snap := w.s.store.Snapshot()
		return w.s.raft.LastIndex(), snap.Node(nil, w.nodes[0].ID).ModifyIndex, snap.Alloc(nil, w.allocs[0].ID).ModifyIndex
	}
	for _, rows := range [][]doorRow{reportRows(w), registerRows(w), otherRows(w)} {
		for _, r := range rows {
			entries, nodeAt, allocAt := quiet()
			err := w.call(r.method, r.args)
			if code := structs.CodeOf(err); err == nil || code != r.want {
				t.Errorf("%s: %.200v, want %s", r.what, err, r.want)
				continue
			}
			if text := err.Error(); !strings.Contains(strings.ToLower(text), strings.ToLower(r.names)) || len(text) > 1024 {
				t.Errorf("%s: the error says, in %d bytes: %.300s; want a short one that names %s", r.what, len(text), text, r.names)
			}
			if e, n, a := quiet(); e != entries || n != nodeAt || a != allocAt {
				t.Errorf("%s: refused, and written nevertheless: entries %d → %d, node %d → %d, allocation %d → %d", r.what, entries, e, nodeAt, n, allocAt, a)
			}
		}
	}
	w.must(wire.MethodNodeUpdateAllocs, w.report(0, map[string]*structs.TaskState{"t": running(10, "all is well")}))
	w.must(wire.MethodNodeRegister, w.changed(func(*structs.Node) {}))
}

// TestDoorNodeRate: a node that sends more than its rate is told to wait, another one is not, and after a while it is heard again. What
// only has its ID does not use up its rate.
func TestDoorNodeRate(t *testing.T) {
	w := newDoorWorld(t, func(c *Config) { c.Heartbeats.MinTTL, c.Nodes.MaxRate = time.Hour, 32<<10 })
	flood := func(args *structs.ClientUpdateRequest) (refused error) {
		for range 200 { // 800 KiB, as each counts for 4 at least, where 512 are allowed at once
			if err := w.call(wire.MethodNodeUpdateAllocs, args); err != nil {
				refused = err
			}
		}
		return refused
	}
	thief := w.report(0, nil)
	thief.SecretID = "another"
	if err := flood(thief); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("with another secret: %v", err)
	}
	report := w.report(0, map[string]*structs.TaskState{"t": running(1, "x")})
	w.must(wire.MethodNodeUpdateAllocs, report)
	before := w.s.raft.LastIndex()
	err := flood(report)
	if structs.CodeOf(err) != structs.CodeLimited || !strings.Contains(err.Error(), "try again in") || !strings.Contains(err.Error(), "node_max_bytes_per_second") {
		t.Errorf("200 reports at once: %v, want %s with when to try again", err, structs.CodeLimited)
	}
	if n := w.s.raft.LastIndex() - before; n > 150 {
		t.Errorf("200 reports at once became %d log entries", n)
	}
	w.must(wire.MethodNodeEvents, &structs.NodeEventsRequest{NodeID: w.nodes[1].ID, SecretID: "s", Events: []*structs.NodeEvent{{Message: "x"}}})
	w.must(wire.MethodNodeHeartbeat, &structs.NodeHeartbeatRequest{NodeID: w.nodes[0].ID, SecretID: "s"})
	within(t, 10*time.Second, "its next report being taken", func(context.Context) error { return w.call(wire.MethodNodeUpdateAllocs, report) })
}

// TestDoorUnknownNodes: a host that registers ever more nodes is refused when it has used up its rate, at the server that it is connected
// to. Nodes that are known register nevertheless, and after a while new ones are taken again.
func TestDoorUnknownNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(_ int, c *Config) { c.Heartbeats.MinTTL, c.Nodes.MaxRate = time.Hour, 1<<10 }) // 128 KiB at once, then 16 a second
	for what, at := range map[string]*Server{"the leader": f.all[f.leader()], "another server": f.all[f.follower()]} {
		session, err := wire.Dial(t.Context(), "global", at.RPCAddr(), wire.Config{})
		if err != nil {
			t.Fatal(err)
		}
		first := 100
		if at != f.all[f.leader()] {
			first = 300
		}
		register := func(i, pairs int) error {
			n := node(first + i)
			n.Meta = large(pairs)
			return session.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: n}, &structs.NodeUpdateReply{})
		}
		taken, refused := 0, error(nil)
		for i := range 100 { // 6 MB
			if err := register(i, 15); err == nil {
				taken++
			} else {
				refused = err
			}
		}
		if structs.CodeOf(refused) != structs.CodeLimited || taken < 2 || taken > 50 {
			t.Fatalf("%s: %d of 100 nodes that nobody knew were taken; the last error: %v", what, taken, refused)
		}
		for _, says := range []string{"127.0.0.1", "try again in", "node_max_bytes_per_second"} {
			if !strings.Contains(refused.Error(), says) {
				t.Errorf("%s: the error does not say %q: %v", what, says, refused)
			}
		}
		within(t, 10*time.Second, "a known node being taken", func(context.Context) error { return register(0, 0) })
		within(t, 20*time.Second, "a new node being taken", func(context.Context) error { return register(100, 0) })
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDoorLongTexts: what an honest client of an earlier version sends, which does not cut what it says, is taken and cut.
func TestDoorLongTexts(t *testing.T) {
	w := newDoorWorld(t, func(c *Config) { c.Heartbeats.MinTTL = time.Hour })
	long := strings.Repeat("x", 100<<10) + ": no such file"
	report := w.report(0, map[string]*structs.TaskState{"t": running(1, long)})
	report.Updates[0].ClientDescription = long
	report.Updates = append(report.Updates, w.report(1, map[string]*structs.TaskState{"t": running(structs.MaxTaskEvents+5, "short")}).Updates...)
	w.must(wire.MethodNodeUpdateAllocs, report)
	w.must(wire.MethodNodeEvents, &structs.NodeEventsRequest{NodeID: w.nodes[0].ID, SecretID: "s", Events: []*structs.NodeEvent{{Message: long, Details: map[string]string{"d": long}}}})
	w.must(wire.MethodNodeRegister, w.changed(func(n *structs.Node) { n.Drivers["mock_driver"].HealthDescription, n.DiskFull = long, long }))

	snap := w.s.store.Snapshot()
	first, second, n := snap.Alloc(nil, w.allocs[0].ID), snap.Alloc(nil, w.allocs[1].ID), snap.Node(nil, w.nodes[0].ID)
	event := first.TaskStates["t"].Events[0]
	last := n.Events[len(n.Events)-1]
	for what, text := range map[string]string{
		"description": first.ClientDescription, "message": event.DisplayMessage, "driver's error": event.DriverError, "detail": event.Details["driver_error"],
		"node event": last.Message, "its detail": last.Details["d"], "driver's health": n.Drivers["mock_driver"].HealthDescription, "disk": n.DiskFull,
	} {
		if len(text) > 4096 || len(text) < 1024 || !strings.HasSuffix(text, ": no such file") || !strings.Contains(text, "102414 bytes") {
			t.Errorf("%s: %d bytes are kept, which end in %q", what, len(text), text[max(0, len(text)-20):])
		}
	}
	if events := second.TaskStates["t"].Events; len(events) != structs.MaxTaskEvents || events[0].Time != 6 {
		t.Errorf("%d events are kept, the first of them of %d; want the latest %d", len(events), events[0].Time, structs.MaxTaskEvents)
	}
}
