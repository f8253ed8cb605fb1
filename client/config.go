package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/gpu"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Agent answers operators' queries of the agent that a client runs in.
type Agent interface {
	// Monitor sends the agent's log lines as frames until ctx ends.
	Monitor(ctx context.Context, args *structs.AgentMonitorRequest, send func(any) error) error
	Host(ctx context.Context, args *structs.AgentHostRequest) (*structs.AgentHostReply, error)
	Profile(ctx context.Context, args *structs.AgentProfileRequest) (*structs.AgentProfileReply, error)
}

// Config configures a client. Zero values mean the default that is named;
// what has none named must be set.
type Config struct {
	// Region is where the client and its servers are. Default "global".
	Region string
	// Node specifies what the node is called and what it is for.
	Node NodeConfig
	// Version is ours, reported as the attributes nomad.version and nomadish.version.
	Version string

	// Servers are RPC addresses, host:port; at least one, unless Gossip has addresses to join. The servers name
	// of more.
	Servers []string
	// HTTPAddr is the agent's HTTP address as others reach it.
	HTTPAddr string
	// TLSEnabled is true if HTTPAddr speaks TLS.
	TLSEnabled bool
	// Metrics specifies what is measured for metrics.
	Metrics MetricsConfig
	// Gossip specifies how the client gossips; the zero value: it does not.
	Gossip GossipConfig
	// RPC tunes the sessions.
	RPC wire.Config

	// StateDir keeps what outlives the agent, AllocDir the allocations' files. Both
	// are absolute and made when missing. A client of simulated nodes only may
	// leave both empty: nothing is kept then.
	StateDir string
	AllocDir string

	// Disk specifies when the disks of StateDir and AllocDir count as full; the zero value:
	// structs.DefaultClientDiskLimit. DiskRoom measures them; nil: the system's word counts.
	Disk     structs.DiskLimit
	DiskRoom func(dir string) (structs.DiskRoom, error)
	// DiskInterval is how often they are looked at (default 1 s), LookInterval how often
	// the machine is (default 15 s). What changes is reported at once, and what changes within
	// ChangeInterval (default 1 s) after that together.
	DiskInterval   time.Duration
	LookInterval   time.Duration
	ChangeInterval time.Duration

	// GPUs specifies how the machine's GPUs are watched; the zero value: as they should be.
	// NoGPUs: they are not looked for.
	GPUs   gpu.Options
	NoGPUs bool

	// Drivers run the tasks; the one named mock_driver also runs those of
	// simulated nodes.
	Drivers []driver.Driver

	// Machine specifies what of the machine is for tasks.
	Machine MachineConfig

	// Users specifies as whom tasks may run. The zero value: as anybody.
	Users users.Policy
	// AllocGroups are the IDs of groups that allocations get of which tasks run as other users than the agent's.
	AllocGroups GroupRange

	// MaxKillTimeout bounds a task's kill_timeout. Default 30 s.
	MaxKillTimeout time.Duration
	// ParallelStarts bounds how many tasks are being started at once. Default 4 per
	// core, at least 8.
	ParallelStarts int
	// ReportInterval is the time between two status reports of a busy node; the first
	// two after a quiet time go at once. Default 25 ms.
	ReportInterval time.Duration

	// GC specifies when what is left of ended allocations goes.
	GC GCConfig

	// Simulate makes simulated nodes. They replace the real node unless
	// SimulateBeside is set.
	Simulate       []sim.Layout
	SimulateBeside bool

	// Agent answers operators' queries of the agent that the client runs in; nil: nobody does.
	Agent Agent
	// Logger logs what happens; silent if nil.
	Logger hclog.Logger
}

// NodeConfig describes the node to the servers. Defaults: "dc1", the host's name, none, "default", none.
type NodeConfig struct {
	Datacenter string
	Name       string
	Class      string
	Pool       string
	Meta       map[string]string
	// Slots are how many slots of each type the own node offers to calendars of projects; nil: it states none.
	Slots map[string]int
	// DefaultIneligible registers the node as ineligible the first time.
	DefaultIneligible bool
}

// MachineConfig specifies what of a machine is for tasks, and corrects what is found of it.
type MachineConfig struct {
	// Reserved is kept from tasks. ReservedHostPorts is a list like "22,8500-8600".
	Reserved structs.NodeReservedResources
	// NetworkInterface is the interface whose address tasks get; default: that of
	// the default route.
	NetworkInterface string
	// CPUTotalCompute (MHz), MemoryTotalMB, DiskTotalMB and DiskFreeMB (MiB)
	// override what is found. 0: what is found.
	CPUTotalCompute int
	MemoryTotalMB   int
	DiskTotalMB     int
	DiskFreeMB      int
	// ReservableCores is a list like "0-3,6" of the cores that tasks may own; all
	// if empty.
	ReservableCores string
	// MinDynamicPort to MaxDynamicPort are given to tasks. Default 20000 to 32000.
	MinDynamicPort int
	MaxDynamicPort int
	HostVolumes    map[string]*structs.HostVolumeInfo
}

// GroupRange is a range of group IDs. Default 2100000000 to 2100065535; Min negative: none.
type GroupRange struct{ Min, Max int }

// GCConfig specifies when what is left of ended allocations is removed.
type GCConfig struct {
	Interval           time.Duration // between two looks (default 1 min)
	MaxAllocs          int           // kept on the node (default 50) before the oldest ended ones go
	DiskUsageThreshold float64       // percent of the allocations' disk (default 80) above which the oldest ended ones go
	ParallelDestroys   int           // removals at once (default 2)
}

// MockDriver is the name of the driver that simulated nodes run tasks with.
const MockDriver = "mock_driver"

// simulatedOnly reports whether there is no real node.
func (c *Config) simulatedOnly() bool { return len(c.Simulate) > 0 && !c.SimulateBeside }

// WithDefaults returns the configuration with a value for everything that has a default and was not set.
func (c Config) WithDefaults() Config {
	str := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	num := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	dur := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	str(&c.Region, structs.DefaultRegion)
	str(&c.Node.Datacenter, "dc1")
	str(&c.Node.Pool, structs.NodePoolDefault)
	str(&c.Version, "dev")
	num(&c.Machine.MinDynamicPort, 20000)
	num(&c.Machine.MaxDynamicPort, 32000)
	num(&c.AllocGroups.Min, 2_100_000_000)
	num(&c.AllocGroups.Max, 2_100_065_535)
	dur(&c.MaxKillTimeout, 30*time.Second)
	num(&c.ParallelStarts, max(8, 4*runtime.GOMAXPROCS(0)))
	dur(&c.ReportInterval, 25*time.Millisecond)
	dur(&c.GC.Interval, time.Minute)
	dur(&c.DiskInterval, time.Second)
	dur(&c.LookInterval, 15*time.Second)
	dur(&c.ChangeInterval, time.Second)
	if c.Disk == (structs.DiskLimit{}) {
		c.Disk = structs.DefaultClientDiskLimit
	}
	num(&c.GC.MaxAllocs, structs.DefaultGCMaxAllocs)
	num(&c.GC.ParallelDestroys, 2)
	if c.GC.DiskUsageThreshold == 0 {
		c.GC.DiskUsageThreshold = 80
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// validate refuses what cannot work. It is called after WithDefaults.
func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Servers) == 0 && (!c.Gossip.On || len(c.Gossip.Join) == 0) {
		bad("client servers: none given; name at least one RPC address (host:port), or a member of the clients' gossip to join")
	}
	if !c.simulatedOnly() {
		if !filepath.IsAbs(c.StateDir) {
			bad("client state_dir %q: must be an absolute path", c.StateDir)
		}
		if !filepath.IsAbs(c.AllocDir) {
			bad("client alloc_dir %q: must be an absolute path", c.AllocDir)
		}
	}
	if c.Machine.MinDynamicPort < 1 || c.Machine.MaxDynamicPort > 65535 || c.Machine.MinDynamicPort > c.Machine.MaxDynamicPort {
		bad("client dynamic ports %d to %d: must be a range within 1 to 65535", c.Machine.MinDynamicPort, c.Machine.MaxDynamicPort)
	}
	if c.AllocGroups.Min > 0 && (c.AllocGroups.Max > math.MaxUint32-1 || c.AllocGroups.Min > c.AllocGroups.Max) {
		bad("client alloc groups %d to %d: must be a range of group IDs", c.AllocGroups.Min, c.AllocGroups.Max)
	}
	if c.GC.DiskUsageThreshold < 0 || c.GC.DiskUsageThreshold > 100 {
		bad("client gc_disk_usage_threshold %v: must be a percentage", c.GC.DiskUsageThreshold)
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"gc_max_allocs", c.GC.MaxAllocs}, {"gc_parallel_destroys", c.GC.ParallelDestroys},
		{"cpu_total_compute", c.Machine.CPUTotalCompute}, {"memory_total_mb", c.Machine.MemoryTotalMB},
		{"disk_total_mb", c.Machine.DiskTotalMB}, {"disk_free_mb", c.Machine.DiskFreeMB},
	} {
		if n.value < 0 {
			bad("client %s %d: must not be negative", n.name, n.value)
		}
	}
	return errors.Join(errs...)
}
