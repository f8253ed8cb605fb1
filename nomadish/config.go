package nomadish

import (
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/endpoint/client"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Config is what a server is told at its start. DefaultConfig gives every field a
// working value.
type Config struct {
	Region     string
	Datacenter string
	Name       string // of the server, unique in its region
	Version    string

	// DataDir holds Raft's log and snapshots, under server/. Empty: all in memory.
	DataDir string

	// LogReserve is how many bytes of a new log's file are written ahead, as far as there is room; 0: none.
	LogReserve int64

	// Disk says when DataDir's disk counts as full: this server does not lead then if another can.
	// DiskRoom measures it; nil: the system's word counts.
	Disk     structs.DiskLimit
	DiskRoom func(dir string) (structs.DiskRoom, error)

	RPCAddr      string // host:port to listen on; port 0: any free one
	RPCAdvertise string // host:port that others reach us at; empty: RPCAddr
	// TLS guards the RPC port and connections to other servers; nil: they are plain.
	TLS *wire.TLS

	SerfAddr      string // host:port to gossip on; port 0: any free one
	SerfAdvertise string // host:port that others reach the gossip at; empty: as bound

	// WANAddr and WANAdvertise are the same for the gossip with servers of other regions; empty: this
	// server takes no part in it, and knows its own region only. WANProbe is how often members
	// are probed there; 0: 3 s. The others are those of the own region's gossip, see below.
	WANAddr          string
	WANAdvertise     string
	WANProbe         time.Duration
	StartJoinWAN     []string
	RetryJoinWAN     []string
	RetryMaxWAN      int
	RetryIntervalWAN time.Duration

	// BootstrapExpect is how many servers found the cluster. 1: this one alone; 0: it joins
	// one that is there.
	BootstrapExpect int
	// StartJoin and RetryJoin are addresses of other servers' gossip: NewServer fails if
	// none of the first is reached, and goes on trying the second in the background,
	// RetryMax times (0: for ever), every RetryInterval (0: 30 s).
	StartJoin        []string
	RetryJoin        []string
	RetryMax         int
	RetryInterval    time.Duration
	RejoinAfterLeave bool
	GossipKey        []byte        // the first key, of 16, 24 or 32 bytes; none, and none kept: gossip goes in the clear
	GossipProbe      time.Duration // how often members are probed; 0: 1 s

	// ClientGossip is the gossip with the clients, in which nothing of GossipKey is known; Liveness says how what it and the
	// sessions tell of clients is believed.
	ClientGossip clientgossip.Options
	Liveness     heartbeat.Liveness

	// Autopilot seeds the replicated configuration of a new cluster. AutopilotUpdate and
	// AutopilotReconcile are how often the servers' health is looked at and acted on.
	Autopilot          structs.AutopilotConfiguration
	AutopilotUpdate    time.Duration
	AutopilotReconcile time.Duration
	// Hold is how long a call waits for a leader; 0: 5 s.
	Hold time.Duration

	NumSchedulers     int      // workers; 0: none
	EnabledSchedulers []string // job types that workers take

	// Raft's clocks. A follower that hears nothing for HeartbeatTimeout asks for votes.
	RaftHeartbeat     time.Duration
	RaftElection      time.Duration
	RaftLease         time.Duration
	RaftCommit        time.Duration
	SnapshotInterval  time.Duration
	SnapshotThreshold uint64 // log entries between snapshots
	TrailingLogs      uint64
	// SnapshotMaxBytes bounds an archive of the state that is to be restored. 0: 64 GiB.
	SnapshotMaxBytes int64
	// ApplyTimeout bounds the wait for a log entry to be taken in by Raft.
	ApplyTimeout time.Duration

	// Heartbeats of nodes: see package heartbeat.
	MinHeartbeatTTL        time.Duration
	HeartbeatGrace         time.Duration
	FailoverHeartbeatTTL   time.Duration
	MaxHeartbeatsPerSecond float64
	// MaxRegistering bounds how many nodes' registrations are committed at once; others wait. 0: 256.
	MaxRegistering int

	EvalNackTimeout   time.Duration
	EvalDeliveryLimit int

	// Garbage collection: see package gc.
	GCInterval           time.Duration
	EvalGCThreshold      time.Duration
	BatchEvalGCThreshold time.Duration
	JobGCThreshold       time.Duration
	NodeGCThreshold      time.Duration
	HistoryRetention     time.Duration
	HistoryMax           int

	EventBuffer   int // single changes kept for event streams and the leader's parts
	JobTrackedMax int // versions kept of a job
	JobMaxCount   int // of all groups of a job together
	// JobDefaultPriority is the priority of a job that states none, JobMaxPriority the highest that a job may state.
	JobDefaultPriority int
	JobMaxPriority     int
	JobMaxSource       int // bytes of a job's source text that are kept
	JobMaxSize         int // bytes of a job
	DefaultSchedule    structs.SchedulerConfiguration

	HandshakeTimeout  time.Duration
	MaxConnsPerClient int
	// NodeMaxMessage bounds what a node sends in one call, in bytes. 0: 1 MiB.
	NodeMaxMessage int
	// NodeMaxRate bounds what a node sends over a longer time, in bytes per second. 0: no limit.
	NodeMaxRate int

	Logger hclog.Logger
	// Agent answers what operators ask of the agent that the server runs in; nil: nobody does.
	Agent client.Agent

	// entries is the last type of log entries that the server says it knows, in tests; 0: it says the truth.
	entries structs.LogType
}

// serverDir is where a server keeps what must outlive it; empty: nothing does.
func (c *Config) serverDir() string {
	if c.DataDir == "" {
		return ""
	}
	return filepath.Join(c.DataDir, "server")
}

// KeptKeyrings reports which gossips have keys in the data directory: that of the region's servers, that with other regions and
// that of the clients. They are encrypted with these, whatever the configuration says.
func (c *Config) KeptKeyrings() (servers, regions, clients bool) {
	dir := c.serverDir()
	if dir == "" {
		return false, false, false
	}
	kept := func(file string) bool { return keyring.Kept(filepath.Join(dir, file)) }
	return kept(membership.KeyringLAN), kept(membership.KeyringWAN), kept(clientgossip.KeyringFile)
}

// membershipOptions are how the server finds the others.
func (s *Server) membershipOptions() *membership.Options {
	c := s.cfg
	return &membership.Options{
		LAN: membership.PoolOptions{
			Addr: c.SerfAddr, Advertise: c.SerfAdvertise, Probe: c.GossipProbe,
			Start: c.StartJoin, Retry: c.RetryJoin, RetryMax: c.RetryMax, RetryInterval: c.RetryInterval,
		},
		WAN: membership.PoolOptions{
			Addr: c.WANAddr, Advertise: c.WANAdvertise, Probe: c.WANProbe,
			Start: c.StartJoinWAN, Retry: c.RetryJoinWAN, RetryMax: c.RetryMaxWAN, RetryInterval: c.RetryIntervalWAN,
		},
		Expect: c.BootstrapExpect, RejoinAfterLeave: c.RejoinAfterLeave, Key: c.GossipKey,
		ID: s.raft.ID(), Name: c.Name, Region: c.Region, Datacenter: c.Datacenter, Version: c.Version, RPCAddr: s.RPCAddr(),
		Dir: c.serverDir(), Entries: c.entries, Logger: c.Logger,
	}
}

// raftOptions are how the server takes part in Raft.
func (c *Config) raftOptions() raftnode.Options {
	return raftnode.Options{
		Dir: c.serverDir(), Name: c.Name, NewID: NewID, LogReserve: c.LogReserve, Disk: c.Disk, MeasureDisk: c.DiskRoom, Alone: c.BootstrapExpect == 1,
		Heartbeat: c.RaftHeartbeat, Election: c.RaftElection, Lease: c.RaftLease, Commit: c.RaftCommit,
		SnapshotInterval: c.SnapshotInterval, SnapshotThreshold: c.SnapshotThreshold, TrailingLogs: c.TrailingLogs,
		ApplyTimeout: c.ApplyTimeout, Logger: c.Logger,
	}
}

// DefaultConfig is a server as an operator gets it without saying anything.
func DefaultConfig() *Config {
	return &Config{
		Region: structs.DefaultRegion, Datacenter: "dc1", BootstrapExpect: 1,
		Disk: structs.DefaultServerDiskLimit, RPCAddr: "127.0.0.1:4647", SerfAddr: "127.0.0.1:4648", Autopilot: structs.DefaultAutopilotConfiguration(),
		NumSchedulers:     runtime.NumCPU(),
		EnabledSchedulers: []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch},
		// A third of Raft's own defaults: a lost leader is replaced within a second,
		// and machines in one data centre answer within milliseconds.
		RaftHeartbeat: 400 * time.Millisecond, RaftElection: 400 * time.Millisecond,
		RaftLease: 300 * time.Millisecond, RaftCommit: 50 * time.Millisecond,
		SnapshotInterval: 2 * time.Minute, SnapshotThreshold: 8192, TrailingLogs: 10240,
		ApplyTimeout:    30 * time.Second,
		MinHeartbeatTTL: 3 * time.Second, HeartbeatGrace: 3 * time.Second,
		FailoverHeartbeatTTL: 30 * time.Second, MaxHeartbeatsPerSecond: 250,
		EvalNackTimeout: time.Minute, EvalDeliveryLimit: 3,
		GCInterval: 5 * time.Minute, EvalGCThreshold: time.Hour, BatchEvalGCThreshold: 24 * time.Hour,
		JobGCThreshold: 4 * time.Hour, NodeGCThreshold: 24 * time.Hour,
		HistoryRetention: 90 * 24 * time.Hour, HistoryMax: state.DefaultHistoryMax,
		EventBuffer: state.DefaultEventBuffer, JobTrackedMax: 6, JobMaxCount: 50_000, JobMaxPriority: structs.JobMaxPriority, JobMaxSource: 1 << 20, JobMaxSize: 4 << 20,
		JobDefaultPriority: structs.JobDefaultPriority, DefaultSchedule: structs.DefaultSchedulerConfiguration(),
		HandshakeTimeout: 5 * time.Second, MaxConnsPerClient: 500, NodeMaxMessage: 1 << 20, NodeMaxRate: 1 << 20,
		Logger: hclog.NewNullLogger(),
	}
}

// DevMode makes c a development server: in memory, on loopback, leading at once.
func (c *Config) DevMode() {
	c.DataDir = ""
	c.RPCAddr, c.SerfAddr = "127.0.0.1:4647", "127.0.0.1:0"
	c.BootstrapExpect = 1
	c.RaftHeartbeat, c.RaftElection, c.RaftLease = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	c.RaftCommit = 5 * time.Millisecond
}
