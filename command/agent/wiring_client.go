package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// clientConfig makes the client's configuration of the agent's.
func clientConfig(cfg *config.Config, dirs clientDirs, servers []string, httpAddr string, logger hclog.Logger) (client.Config, error) {
	cl := &cfg.Client
	cores, err := parseCores(cl.Reserved.Cores)
	if err != nil {
		return client.Config{}, fmt.Errorf("client.reserved.cores: %w", err)
	}
	c := client.Config{
		Region: cfg.Region, Datacenter: cfg.Datacenter, NodeName: cfg.Name, NodeClass: cl.Class, NodePool: cl.Pool,
		Meta: cl.Meta, Options: cl.Options, Version: Version, Servers: servers, HTTPAddr: httpAddr,
		RPC: wire.Config{Logger: logger.Named("rpc")}, StateDir: dirs.state, AllocDir: dirs.alloc,
		NetworkInterface: cl.NetworkInterface, CPUTotalCompute: cl.CPUTotalCompute, MemoryTotalMB: cl.MemoryTotalMB,
		DiskTotalMB: cl.DiskTotalMB, DiskFreeMB: cl.DiskFreeMB, ReservableCores: cl.ReservableCores,
		MinDynamicPort: cl.MinDynamicPort, MaxDynamicPort: cl.MaxDynamicPort, DefaultIneligible: cl.DefaultIneligible,
		MaxKillTimeout: cl.MaxKillTimeout, GCInterval: cl.GCInterval, GCMaxAllocs: cl.GCMaxAllocs,
		GCDiskUsageThreshold: cl.GCDiskUsageThreshold, GCParallelDestroys: cl.GCParallelDestroys,
		SimulateBeside: cl.SimulateBeside, Logger: logger,
	}
	c.Reserved.Cpu.CpuShares = uint64(max(0, cl.Reserved.CPU)) //nolint:gosec // not negative
	c.Reserved.Cpu.ReservedCpuCores = cores
	c.Reserved.Memory.MemoryMB = int64(cl.Reserved.MemoryMB)
	c.Reserved.Disk.DiskMB = int64(cl.Reserved.DiskMB)
	c.Reserved.Networks.ReservedHostPorts = cl.Reserved.ReservedPorts
	for name, v := range cl.HostVolumes {
		if c.HostVolumes == nil {
			c.HostVolumes = map[string]*structs.HostVolumeInfo{}
		}
		c.HostVolumes[name] = &structs.HostVolumeInfo{Name: name, Path: filepath.Clean(v.Path), ReadOnly: v.ReadOnly}
	}
	if cl.Simulate != "" {
		if c.Simulate, err = sim.ParseFile(cl.Simulate); err != nil {
			return client.Config{}, fmt.Errorf("client.simulate: %w", err)
		}
	}
	c.Drivers, err = drivers(cfg, dirs, logger)
	return c, err
}

func newClient(cfg *config.Config, dirs clientDirs, servers []string, httpAddr string, logger hclog.Logger) (*clientPart, error) {
	c, err := clientConfig(cfg, dirs, servers, httpAddr, logger)
	if err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	cl, err := client.New(c)
	if err != nil {
		return nil, err
	}
	return &clientPart{
		nodeID: cl.NodeID(), stats: cl.Stats,
		servers: func() []string { return servers },
		setServers: func([]string) error {
			return structs.Errorf(structs.CodeUnsupported, "the client's servers cannot be changed while it runs yet; the servers tell it of each other")
		},
		stop: func(ctx context.Context, endTasks bool) error {
			var ended error
			if endTasks {
				ended = cl.StopAll(ctx)
			}
			return errors.Join(ended, cl.Shutdown(ctx))
		},
	}, nil
}

// drivers are the task drivers of this machine's node.
func drivers(*config.Config, clientDirs, hclog.Logger) ([]driver.Driver, error) {
	return nil, nil
}

// rawExecEnabled tells whether raw_exec, which runs tasks without isolation, may
// be used: always in -dev, else only where the configuration says so, in its
// plugin block or the older client option.
func rawExecEnabled(cfg *config.Config) bool {
	if p := cfg.Plugins["raw_exec"]; p != nil {
		if on, ok := p.Config["enabled"].(bool); ok {
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
