package nomadish

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/endpoint/job"
	nodeendpoint "github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/nomadish/portmux"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/structs"
)

// testConfig is a server of tests: alone, on loopback with any free ports, in memory, with two workers. Its clocks of Raft are those of
// operators' servers. What it does not say is as the parts have it that it configures.
func testConfig() *Config {
	return &Config{
		Region: structs.DefaultRegion, Datacenter: "dc1", Name: "s1",
		Port: portmux.Options{Addr: "127.0.0.1:0", HandshakeTimeout: 5 * time.Second},
		Raft: raftnode.Options{
			Disk:      structs.DefaultServerDiskLimit,
			Heartbeat: 400 * time.Millisecond, Election: 400 * time.Millisecond, Lease: 300 * time.Millisecond, Commit: 50 * time.Millisecond,
			SnapshotInterval: 2 * time.Minute, SnapshotThreshold: 8192, TrailingLogs: 10240, ApplyTimeout: 30 * time.Second,
		},
		Membership:    membership.Options{LAN: membership.PoolOptions{Addr: "127.0.0.1:0"}, Expect: 1},
		Autopilot:     structs.DefaultAutopilotConfiguration(),
		NumSchedulers: 2, EnabledSchedulers: []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch},
		DefaultSchedule: structs.DefaultSchedulerConfiguration(),
		Jobs: job.Config{
			MaxCount: 50_000, DefaultPriority: structs.JobDefaultPriority, MaxPriority: structs.JobMaxPriority, MaxSource: 1 << 20, MaxSize: 4 << 20,
		},
		Nodes:  nodeendpoint.Config{MaxMessage: 1 << 20, MaxRate: 1 << 20},
		Logger: hclog.NewNullLogger(),
	}
}

// quickTestConfig is testConfig of a server that leads at once.
func quickTestConfig() *Config {
	c := testConfig()
	c.Raft.Heartbeat, c.Raft.Election, c.Raft.Lease = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	c.Raft.Commit = 5 * time.Millisecond
	return c
}
