package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/alloc"
	"github.com/nomadish/nomadish/client/disk"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/gpu"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/client/state"
	"github.com/nomadish/nomadish/client/stats"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Simulated nodes share one agent: simulatedStarts bounds how many of their tasks are being started at once,
// simulatedRegistering how many of them register at once, and simulatedSessions how many sessions they have with a server
// together. One session writes one thing after the other, and with tens of thousands of nodes behind it, calls waited for
// longer than they might.
const simulatedStarts, simulatedRegistering, simulatedSessions = 256, 256, 16

// nodesPerSession is how many simulated nodes share a session, if there are not too many for that.
const nodesPerSession = 250

// Client is the running agent.
type Client struct {
	config   Config
	logger   hclog.Logger
	group    *group
	servers  *servers   // as the own node, or else the first, knows them
	links    []*servers // all there are: nodes that share one share a session
	mux      *wire.Mux
	drivers  *driver.Registry
	store    *state.Store // nil: nothing is kept
	jobs     *jobs
	baseEnv  map[string]string
	nodes    []*node // the client's own first, if there is one
	host     *stats.Host
	sampler  *stats.Sampler
	gpus     *gpu.Watcher    // nil: none are looked for
	disk     *disk.Watch     // nil: there is no node with files
	meta     *metadata       // of the own node; nil: there is none
	gossip   *gossiper       // of the first node that gossips; nil: none does
	logLimit wire.LogLimiter // warnings that were logged
	meter    *meter
}

// New starts a client. It returns once what it does on this machine is ready; it
// reaches the servers in the background, for as long as that takes.
func New(config Config) (*Client, error) {
	config = config.WithDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	c := &Client{
		config: config, logger: config.Logger.Named("client"), group: newGroup(), jobs: newJobs(),
		baseEnv: baseEnv(), sampler: &stats.Sampler{}, host: &stats.Host{AllocDir: config.AllocDir},
	}
	c.meter = newMeter(c)
	c.mux = wire.NewMux(c.logger, 0)
	c.mux.Observe(observeCall)
	c.serveMethods(c.mux)
	c.servers = c.link()
	err := c.build()
	if err == nil {
		err = c.openGossip()
	}
	if err != nil {
		_ = c.Shutdown(context.Background())
		return nil, fmt.Errorf("start client: %w", err)
	}
	c.start()
	return c, nil
}

// link makes what some of the nodes are to speak with servers by.
func (c *Client) link() *servers {
	pool := wire.NewPool(c.config.RPC, func(_ context.Context, s *wire.Session) error {
		c.group.Go(func(ctx context.Context) { c.mux.Serve(ctx, s) })
		return nil
	})
	out := newServers(pool, c.config.Servers)
	c.links = append(c.links, out)
	return out
}

// build makes the nodes; nothing of it talks to servers.
func (c *Client) build() error {
	var err error
	if c.drivers, err = driver.NewRegistry(c.config.Drivers...); err != nil {
		return err
	}
	if c.config.StateDir != "" {
		if c.store, err = state.Open(c.config.StateDir); err != nil {
			return err
		}
	}
	who, err := c.identity()
	if err != nil {
		return err
	}
	if !c.config.simulatedOnly() {
		if err := c.buildOwn(who); err != nil {
			return err
		}
	}
	if len(c.config.Simulate) > 0 {
		return c.buildSimulated(who)
	}
	return nil
}

// identity reads who the node is, or makes it up once.
func (c *Client) identity() (state.Node, error) {
	var who state.Node
	var err error
	if c.store != nil {
		if who, err = c.store.Node(); err != nil || who.ID != "" {
			return who, err
		}
	}
	who = state.Node{ID: randomID(), Secret: randomID(), Seed: randomID()}
	if c.store != nil {
		err = c.store.SetNode(who)
	}
	return who, err
}

// randomID is a UUID of nothing but random bits. A node's is none that begins with its time, for people know a node by its
// first eight digits, and machines are powered on together.
func randomID() string {
	var r [16]byte
	_, _ = rand.Read(r[:]) // never fails
	return structs.FormatUUID(r, 4)
}

// baseEnv is what tasks have of the agent's environment.
func baseEnv() map[string]string {
	out := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SHELL"} {
		if v := os.Getenv(name); v != "" {
			out[name] = v
		}
	}
	return out
}

func (c *Client) buildOwn(who state.Node) error {
	if err := os.MkdirAll(c.config.AllocDir, 0o711); err != nil {
		return fmt.Errorf("client alloc_dir: %w", err)
	}
	c.disk = disk.NewWatch(disk.Options{
		Dirs: []string{c.config.AllocDir, c.config.StateDir}, Limit: c.config.Disk, Interval: c.config.DiskInterval,
		Measure: c.config.DiskRoom, Logger: c.logger.Named("disk"),
	})
	c.disk.Look() // the node registers as it is
	c.watchGPUs()
	var err error
	if c.meta, err = c.ownMetadata(); err != nil {
		return err
	}
	found, err := c.fingerprint(c.group.ctx, who)
	if err != nil {
		return err
	}
	c.warnOfSlots(found.Name, found.NodeResources.Slots, int(found.NodeResources.Cpu.TotalCpuCores))
	n := newNode(c, found, c.drivers)
	n.meta = c.meta
	n.store, n.dir, n.keep = c.store, c.config.AllocDir, c.config.GC.MaxAllocs
	n.starts = make(chan struct{}, c.config.ParallelStarts)
	n.groups = alloc.NewGroupPool(n.dir, c.config.AllocGroups.Min, c.config.AllocGroups.Max)
	c.nodes = append(c.nodes, n)
	cpu := found.NodeResources.Cpu
	c.host.TotalMHz, c.sampler.MHzPerCore = float64(cpu.CpuShares), float64(cpu.MHzPerCore())
	if n.store == nil {
		return nil
	}
	return n.restore()
}

func (c *Client) buildSimulated(who state.Node) error {
	for _, s := range c.config.Simulate {
		if err := s.Validate(); err != nil {
			return err
		}
		c.warnOfSlots(s.Name, s.Slots, s.Cores)
	}
	mock, err := c.drivers.Get(MockDriver)
	if err != nil {
		return fmt.Errorf("simulated nodes: %w", err)
	}
	only, err := driver.NewRegistry(mock)
	if err != nil {
		return err
	}
	o := sim.Options{
		Seed: who.Seed, Datacenter: c.config.Node.Datacenter, Class: c.config.Node.Class, Pool: c.config.Node.Pool,
		HTTPAddr: c.config.HTTPAddr, Version: c.config.Version, Driver: MockDriver, Meta: c.config.Node.Meta,
		MinDynamicPort: c.config.Machine.MinDynamicPort, MaxDynamicPort: c.config.Machine.MaxDynamicPort,
		SchedulingEligibility: c.eligibility(), FingerprintedAt: time.Now().UTC(),
	}
	starts, registering := make(chan struct{}, simulatedStarts), make(chan struct{}, simulatedRegistering)
	all := sim.Nodes(c.config.Simulate, o)
	share := max(nodesPerSession, (len(all)+simulatedSessions-1)/simulatedSessions)
	for i, found := range all {
		n := newNode(c, found, only)
		n.starts, n.registering = starts, registering
		if i > 0 && i%share == 0 {
			c.link()
		}
		n.servers = c.links[len(c.links)-1]
		c.nodes = append(c.nodes, n)
	}
	return nil
}

// warnOfSlots logs that a node, or each one of a shape, states more slots than it has cores. Slots of different types share nothing, and each
// has at least one core: those that have no room are given out all the same.
func (c *Client) warnOfSlots(name string, slots map[string]int, cores int) {
	sum := 0
	for _, n := range slots { // order does not matter: they are summed
		sum += n
	}
	if sum > cores {
		c.logger.Warn("the node states more slots than it has cores, and each slot has at least one: not all of them can be in use at once",
			"node", name, "slots", sum, "cores", cores)
	}
	known := append(structs.BuiltInSlotTypes(), structs.SlotOverflow)
	for _, of := range slices.Sorted(maps.Keys(slots)) {
		if near := structs.Nearest(of, known); near != "" && near != of {
			c.logger.Warn("the node states slots of a type that is nearly that of a built-in one: if it is mistyped no calendar names it",
				"node", name, "type", of, "built_in", near)
		}
	}
}

func (c *Client) eligibility() string {
	if c.config.Node.DefaultIneligible {
		return structs.NodeIneligible
	}
	return structs.NodeEligible
}

// start starts what runs for as long as the client does.
func (c *Client) start() {
	for _, n := range c.nodes {
		c.group.Go(n.keepAlive)
		c.group.Go(n.watch)
		if n.gossip != nil {
			c.group.Go(n.gossip.joiner.keepJoined)
		}
		if n.dir != "" {
			c.group.Go(n.collectOld)
			c.group.Go(n.watchChanges)
		}
	}
	if c.disk != nil {
		c.group.Go(c.disk.Run)
	}
	c.logger.Info("client started", "nodes", len(c.nodes), "node_id", c.NodeID())
}

// NodeID is the ID of the client's own node; with simulated nodes only, that of
// the first.
func (c *Client) NodeID() string {
	if len(c.nodes) == 0 {
		return ""
	}
	return c.nodes[0].id
}

// NodeIDs are the IDs of all nodes that the client stands for.
func (c *Client) NodeIDs() []string {
	ids := make([]string, 0, len(c.nodes))
	for _, n := range c.nodes {
		ids = append(ids, n.id)
	}
	return ids
}

// Servers are the RPC addresses of the servers known, the one that is spoken with first.
func (c *Client) Servers() []string { return c.servers.all() }

// How SetServers looks at what it is given.
const (
	maxServers  = 64
	serverLimit = 5 * time.Second // for all to answer, at once
)

// SetServers replaces the RPC addresses (host:port) of the servers known, those that were configured too. Servers name more
// with their next answer. One of them must answer, or nothing is changed: a client that knows none that does is lost.
func (c *Client) SetServers(addrs []string) error {
	if len(addrs) == 0 || len(addrs) > maxServers {
		return structs.Errorf(structs.CodeBadRequest, "%d servers: from 1 to %d can be set", len(addrs), maxServers)
	}
	var once []string
	for _, addr := range addrs {
		if !slices.Contains(once, addr) {
			once = append(once, addr)
		}
	}
	addrs = once
	ctx, cancel := context.WithTimeout(c.group.ctx, serverLimit)
	defer cancel()
	answers := make(chan error, len(addrs))
	for _, addr := range addrs {
		go func() { // ends with ctx
			answers <- c.servers.try(ctx, addr, 0, wire.MethodPing, &structs.EmptyRequest{}, &structs.WriteReply{})
		}()
	}
	var why error
	for range addrs {
		err := <-answers
		if err == nil {
			for _, l := range c.links {
				l.set(addrs)
			}
			c.logger.Info("the servers were set", "servers", strings.Join(addrs, ", "))
			return nil
		}
		why = moreSpecific(why, err)
	}
	return structs.Errorf(structs.CodeBadRequest, "nothing was changed: none of %s answers as a server: %w", strings.Join(addrs, ", "), why).
		WithHint("name the servers' RPC addresses, as in `server members`; their port is 4647 unless it is configured")
}

// Registered is how many of the nodes the servers have taken in.
func (c *Client) Registered() int {
	registered := 0
	for _, n := range c.nodes {
		if n.epoch.Load() > 0 {
			registered++
		}
	}
	return registered
}

// Stats are numbers about the client for people, by section.
func (c *Client) Stats() map[string]map[string]string {
	running, ended := 0, 0
	for _, n := range c.nodes {
		for _, r := range n.all() {
			if _, ok := r.EndedAt(); ok {
				ended++
			} else {
				running++
			}
		}
	}
	addr, known := c.servers.current()
	stats := map[string]string{
		"node_id": c.NodeID(), "nodes": strconv.Itoa(len(c.nodes)), "registered": strconv.Itoa(c.Registered()),
		"server": addr, "known_servers": strconv.Itoa(known),
		"allocations_running": strconv.Itoa(running), "allocations_ended": strconv.Itoa(ended),
	}
	if len(c.nodes) > 0 {
		c.nodes[0].heartbeatStats(stats)
	}
	return map[string]map[string]string{"client": stats}
}

// StopAll ends all allocations in order and waits for their ends, or for ctx: what
// an agent that is only for development does before it shuts down. What the servers place from now on, for example
// to replace them, is not run.
func (c *Client) StopAll(ctx context.Context) error {
	for _, n := range c.nodes {
		n.mu.Lock()
		n.ending = true
		n.mu.Unlock()
		for _, r := range n.all() {
			r.Halt()
		}
	}
	for _, n := range c.nodes {
		for _, r := range n.all() {
			select {
			case <-r.Ended():
			case <-ctx.Done():
				return fmt.Errorf("stop allocation %s: %w", structs.ShortID(r.ID()), ctx.Err())
			}
		}
	}
	return nil
}

// Shutdown ends the client and leaves the tasks running. It waits until nothing of
// the client is left, or for ctx; what is still left then ends by itself.
func (c *Client) Shutdown(ctx context.Context) error {
	for _, n := range c.nodes {
		n.close()
	}
	gone := make(chan error, 1)
	go func() { gone <- c.closeGossip() }() // bounded by itself
	errs := []error{c.group.stop(ctx), <-gone}
	for _, l := range c.links {
		l.pool.Close()
	}
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	return errors.Join(errs...)
}
