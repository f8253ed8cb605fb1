package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client"
	"github.com/nomadish/nomadish/client/cgroup"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
	"github.com/nomadish/nomadish/client/driver/rawexec"
	"github.com/nomadish/nomadish/client/executor"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/command/agent/inspect"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// clientConfig makes the client's configuration of the agent's.
func clientConfig(cfg *config.Config, dirs clientDirs, servers []string, httpAddr string, logger hclog.Logger) (client.Config, error) {
	cl := &cfg.Client
	cores, err := parseCores(cl.Reserved.Cores)
	if err != nil {
		return client.Config{}, fmt.Errorf("client.reserved.cores: %w", err)
	}
	c := client.Config{
		Region: cfg.Region, Version: Version, Servers: servers, HTTPAddr: httpAddr, TLSEnabled: cfg.TLS.HTTP,
		RPC: wire.Config{Logger: logger.Named("rpc")}, StateDir: dirs.state, AllocDir: dirs.alloc,
		Node: client.NodeConfig{
			Datacenter: cfg.Datacenter, Name: cfg.Name, Class: cl.Class, Pool: cl.Pool, Meta: cl.Meta, Slots: structs.NodeSlots(cl.Slots),
			DefaultIneligible: cl.DefaultIneligible,
		},
		Machine: client.MachineConfig{
			NetworkInterface: cl.NetworkInterface, CPUTotalCompute: cl.CPUTotalCompute, MemoryTotalMB: cl.MemoryTotalMB,
			DiskTotalMB: cl.DiskTotalMB, DiskFreeMB: cl.DiskFreeMB, ReservableCores: cl.ReservableCores,
			MinDynamicPort: cl.MinDynamicPort, MaxDynamicPort: cl.MaxDynamicPort,
		},
		AllocGroups:    client.GroupRange{Min: cl.Users.AllocGroupMin, Max: cl.Users.AllocGroupMax},
		MaxKillTimeout: cl.MaxKillTimeout,
		GC: client.GCConfig{
			Interval: cl.GCInterval, MaxAllocs: cl.GCMaxAllocs, DiskUsageThreshold: cl.GCDiskUsageThreshold, ParallelDestroys: cl.GCParallelDestroys,
		},
		SimulateBeside: cl.SimulateBeside, Logger: logger,
		Metrics: client.MetricsConfig{Allocations: cfg.Telemetry.PublishAllocations, Nodes: cfg.Telemetry.PublishNodes},
	}
	if c.Users, err = cl.Policy(); err != nil {
		return client.Config{}, err
	}
	c.Disk = structs.DefaultClientDiskLimit
	stated(&c.Disk.MB, cl.DiskFullMB)
	stated(&c.Disk.Percent, cl.DiskFullPercent)
	if c.Gossip, err = clientGossip(cfg); err != nil {
		return client.Config{}, err
	}
	if c.GPUs, c.NoGPUs, err = gpuOptions(cfg); err != nil {
		return client.Config{}, err
	}
	if cfg.Dev && c.Machine.NetworkInterface == "" {
		c.Machine.NetworkInterface = loopback() // a development agent's tasks are for this machine, as it is itself
	}
	c.Machine.Reserved.Cpu.CpuShares = uint64(max(0, cl.Reserved.CPU)) // not negative
	c.Machine.Reserved.Cpu.ReservedCpuCores = cores
	c.Machine.Reserved.Memory.MemoryMB = int64(cl.Reserved.MemoryMB)
	c.Machine.Reserved.Disk.DiskMB = int64(cl.Reserved.DiskMB)
	c.Machine.Reserved.Networks.ReservedHostPorts = cl.Reserved.ReservedPorts
	for name, v := range cl.HostVolumes {
		if c.Machine.HostVolumes == nil {
			c.Machine.HostVolumes = map[string]*structs.HostVolumeInfo{}
		}
		c.Machine.HostVolumes[name] = &structs.HostVolumeInfo{Name: name, Path: filepath.Clean(v.Path), ReadOnly: v.ReadOnly}
	}
	if cl.Simulate != "" {
		if c.Simulate, err = sim.ParseFile(cl.Simulate); err != nil {
			return client.Config{}, fmt.Errorf("client.simulate: %w", err)
		}
	}
	return c, nil
}

// clientGossip returns how the client gossips.
func clientGossip(cfg *config.Config) (client.GossipConfig, error) {
	g := client.GossipConfig{On: cfg.ClientGossips(), MayMiss: !cfg.ClientGossipPortStated(), Join: cfg.GossipAddrs(), Simulated: cfg.Client.SimulateGossip}
	if !g.On {
		return g, nil
	}
	var err error
	if g.BindAddr, g.Advertise, err = clientGossipAddrs(cfg); err != nil {
		return g, err
	}
	if g.Key, err = cfg.Client.Key(); err != nil {
		return g, fmt.Errorf("client.gossip_encrypt: %w", err)
	}
	return g, nil
}

func newClient(cfg *config.Config, dirs clientDirs, servers []string, httpAddr string, secure *wire.TLS, own *inspect.Inspector, logger hclog.Logger) (*clientPart, error) {
	c, err := clientConfig(cfg, dirs, servers, httpAddr, logger)
	if err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	set, err := newDrivers(cfg, dirs, logger)
	if err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	c.Drivers, c.RPC.TLS, c.Agent = set.drivers, secure, own
	cl, err := client.New(c)
	if err != nil {
		return nil, errors.Join(err, set.close(context.Background(), false))
	}
	return &clientPart{
		nodeID: cl.NodeID(), gossip: cl.GossipAddr(), stats: cl.Stats,
		servers: cl.Servers, local: cl, metrics: cl.Metrics,
		setServers: cl.SetServers,
		stop: func(ctx context.Context, endTasks bool) error {
			var ended error
			if endTasks {
				ended = cl.StopAll(ctx)
			}
			return errors.Join(ended, cl.Shutdown(ctx), set.close(ctx, endTasks))
		},
	}, nil
}

// loopback is the name of this machine's loopback interface; empty if it has none.
func loopback() string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return ""
}

// driverSet are the task drivers of this machine's node, and what they share.
type driverSet struct {
	drivers []driver.Driver
	exec    *executor.Client // nil: the node runs no processes
	raw     *rawexec.Driver  // nil likewise
	started chan struct{}    // closed when the early start of the executor is over
	cancel  context.CancelFunc
}

// newDrivers makes the drivers. The executor, which runs processes so that they
// outlive the agent, is started at once where it will be needed: the first task
// shall not wait for it.
func newDrivers(cfg *config.Config, dirs clientDirs, logger hclog.Logger) (*driverSet, error) {
	// The mock runs nothing of this machine: it is on everywhere, for simulated nodes
	// and for trying things out.
	d := &driverSet{drivers: []driver.Driver{mock.New(nil)}}
	if dirs.state == "" {
		return d, nil
	}
	conf := executor.Config{Dir: filepath.Join(dirs.state, "executor"), Logger: logger.Named("executor")}
	if cfg.Dev {
		conf.IdleTimeout = devExecutorIdle
	}
	var err error
	if d.exec, err = executor.NewClient(conf); err != nil {
		return nil, fmt.Errorf("start drivers: %w", err)
	}
	enabled := rawExecEnabled(cfg)
	opts, err := rawExecOptions(cfg, enabled)
	if err == nil && enabled && !cfg.SimulatedOnly() {
		opts.Limits, err = rawExecLimits(cfg, conf.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("start drivers: %w", err)
	}
	d.raw = rawexec.New(d.exec, opts)
	d.drivers = append(d.drivers, d.raw)
	if enabled && !cfg.SimulatedOnly() {
		var ctx context.Context
		ctx, d.cancel = context.WithCancel(context.Background())
		d.started = make(chan struct{})
		go func() { // ends when the executor serves, or with close
			defer close(d.started)
			if _, err := d.exec.Ensure(ctx); err != nil && ctx.Err() == nil {
				logger.Warn("the executor does not start; tasks will try again", "error", err)
			}
		}()
	}
	return d, nil
}

// devExecutorIdle is how long the executor of a -dev agent outlives it.
const devExecutorIdle = 2 * time.Second

// close lets go of the executor, whose tasks go on; or ends it, when none is left
// that should.
func (d *driverSet) close(ctx context.Context, end bool) error {
	if d.exec == nil {
		return nil
	}
	var err error
	if d.cancel != nil {
		d.cancel()
		<-d.started
		if end {
			err = d.exec.Shutdown(ctx)
		}
	}
	d.raw.Close()
	return errors.Join(err, d.exec.Close())
}

// rawExecOptions reads raw_exec's plugin block.
func rawExecOptions(cfg *config.Config, enabled bool) (rawexec.Options, error) {
	o := rawexec.Options{Enabled: enabled, DeniedEnv: deniedEnv(cfg)}
	p := cfg.Plugins["raw_exec"]
	if p == nil {
		return o, nil
	}
	o.AllowNewPrivs, _ = strconv.ParseBool(fmt.Sprint(p.Config["allow_new_privs"])) // not stated: false
	o.AllowCgroupOverride, _ = strconv.ParseBool(fmt.Sprint(p.Config["allow_cgroup_override"]))
	var err error
	o.DeniedUIDs, o.DeniedGIDs, err = cfg.DeniedHostIDs()
	return o, err
}

// deniedEnv are the patterns of environment variables that raw_exec keeps from tasks.
func deniedEnv(cfg *config.Config) []string {
	p := cfg.Plugins["raw_exec"]
	if p == nil {
		return nil
	}
	var out []string
	patterns, _ := p.Config["denied_envvars"].([]any)
	for _, one := range patterns {
		if text, ok := one.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// rawExecLimits returns how tasks of raw_exec are limited, and where the agent's control groups are. dir is its executor's
// directory, which is made if need be: it distinguishes the agents of one machine.
func rawExecLimits(cfg *config.Config, dir string) (rawexec.Limits, error) {
	var limits rawexec.Limits
	if p := cfg.Plugins["raw_exec"]; p != nil {
		if off, err := strconv.ParseBool(fmt.Sprint(p.Config["no_cgroups"])); err == nil && off {
			limits.Reason = `switched off by no_cgroups in the agent's plugin "raw_exec"`
			return limits, nil
		}
		if text, stated := p.Config["pids_limit"]; stated {
			n, err := strconv.Atoi(fmt.Sprint(text))
			if err != nil || n < -1 {
				return limits, fmt.Errorf(`plugin "raw_exec": pids_limit %v: must be a number of processes and threads, 0 for the default, or -1 for no limit`, text)
			}
			limits.Pids = n
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return limits, fmt.Errorf("executor's directory: %w", err)
	}
	parent := cmp.Or(strings.Trim(cfg.Client.CgroupParent, "/"), cgroup.DefaultParent)
	limits.Parent = parent + "/" + cgroup.AgentName(dir)
	return limits, nil
}

// rawExecEnabled reports whether raw_exec, which runs tasks without isolation, may
// be used: always in -dev, else only where the configuration enables it, in its
// plugin block or the older client option.
func rawExecEnabled(cfg *config.Config) bool {
	if p := cfg.Plugins["raw_exec"]; p != nil {
		if on, err := strconv.ParseBool(fmt.Sprint(p.Config["enabled"])); err == nil { // "true" is taken for true, as elsewhere
			return on
		}
	}
	switch cfg.Client.Options["driver.raw_exec.enable"] {
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	return cfg.Dev
}
