package config

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// What a server does that no file can state.
const (
	// LogReserve is how many bytes of a new server's log are written ahead: what some thousand entries take before there is a
	// first snapshot, after which the log's pages are used again. With -dev there is no log on disk.
	LogReserve = 32 << 20
	// ApplyTimeout bounds the wait for a log entry to be taken in by Raft.
	ApplyTimeout = 30 * time.Second
	// EvalNackTimeout is after how long a silent worker has lost its evaluation, which has failed after
	// EvalDeliveryLimit such failures.
	EvalNackTimeout   = time.Minute
	EvalDeliveryLimit = 3
	// HistoryRetention is how long records of the history are kept.
	HistoryRetention = 90 * 24 * time.Hour
)

// jobMaxSource and jobMaxSize are job_max_source_size and job_max_size, in bytes, where they are not stated.
const (
	jobMaxSource = 1 << 20
	jobMaxSize   = 4 << 20
)

// RaftClocks are the clocks of Raft. A follower that hears nothing for Heartbeat starts an election.
type RaftClocks struct {
	Heartbeat, Election, Lease, Commit time.Duration
}

// RaftClocks returns the clocks of Raft. They are a third of Raft's own defaults: a lost leader is replaced within a second, and machines
// in one data centre answer within milliseconds. With -dev there is nobody to wait for.
func (c *Config) RaftClocks() RaftClocks {
	clocks := RaftClocks{Heartbeat: 400 * time.Millisecond, Election: 400 * time.Millisecond, Lease: 300 * time.Millisecond, Commit: 50 * time.Millisecond}
	if c.Dev {
		clocks = RaftClocks{Heartbeat: 50 * time.Millisecond, Election: 50 * time.Millisecond, Lease: 50 * time.Millisecond, Commit: 5 * time.Millisecond}
	}
	for _, clock := range []*time.Duration{&clocks.Heartbeat, &clocks.Election, &clocks.Lease} {
		*clock *= time.Duration(c.Server.RaftMultiplier)
	}
	return clocks
}

// WithDefaults returns the server's part with a value for everything that has one if it is not stated. What is left out may be: 0 is
// marked as effective where it is declared, or a method returns the value that counts.
func (s *Server) WithDefaults() Server {
	d := *s
	orDefault(&d.DiskFullMB, structs.DefaultServerDiskLimit.MB)
	orDefault(&d.DiskFullPercent, structs.DefaultServerDiskLimit.Percent)
	orDefault(&d.RaftSnapshotInterval, 2*time.Minute)
	orDefault(&d.RaftSnapshotThreshold, 8192)
	orDefault(&d.RaftTrailingLogs, 10240)
	orDefault(&d.MinHeartbeatTTL, 3*time.Second)
	orDefault(&d.HeartbeatGrace, 3*time.Second)
	orDefault(&d.FailoverHeartbeatTTL, 30*time.Second)
	orDefault(&d.MaxHeartbeatsPerSecond, 250)
	orDefault(&d.MaxRegistering, structs.DefaultMaxRegistering)
	orDefault(&d.JobGCInterval, 5*time.Minute)
	orDefault(&d.EvalGCThreshold, time.Hour)
	orDefault(&d.BatchEvalGCThreshold, 24*time.Hour)
	orDefault(&d.JobGCThreshold, 4*time.Hour)
	orDefault(&d.NodeGCThreshold, 24*time.Hour)
	orDefault(&d.EventBufferSize, structs.DefaultEventBufferSize)
	orDefault(&d.JobTrackedVersions, structs.DefaultJobTrackedVersions)
	orDefault(&d.JobMaxCount, 50_000)
	orDefault(&d.JobMaxPriority, structs.JobMaxPriority)
	orDefault(&d.JobDefaultPriority, structs.JobDefaultPriority)
	orDefault(&d.Forecast.Horizon, structs.DefaultForecastHorizon)
	orDefault(&d.Forecast.CPUPercent, structs.DefaultForecastCPUPercent)
	return d
}

// Forecasts reports whether the server makes forecasts of the queue.
func (s *Server) Forecasts() bool { return s.Forecast.Enabled == nil || *s.Forecast.Enabled }

// orDefault sets a setting to a value if it has none.
func orDefault[T comparable](setting *T, value T) {
	*setting = cmp.Or(*setting, value)
}

// Schedulers returns how many workers the server has, and the types of jobs that they take.
func (s *Server) Schedulers() (n int, enabled []string) {
	n, enabled = runtime.NumCPU(), []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}
	if s.NumSchedulers != nil {
		n = *s.NumSchedulers
	}
	if len(s.EnabledSchedulers) > 0 {
		enabled = slices.Clone(s.EnabledSchedulers)
	}
	return n, enabled
}

// TrustsUserHeader reports whether the server believes who a request states to be of.
func (c *Config) TrustsUserHeader() bool {
	if c.Server.TrustUserHeader == nil {
		return c.Dev
	}
	return *c.Server.TrustUserHeader
}

// AutopilotConfig returns what a new cluster's autopilot starts with.
func (c *Config) AutopilotConfig() structs.AutopilotConfiguration {
	out, a := structs.DefaultAutopilotConfiguration(), &c.Autopilot
	if a.CleanupDeadServers != nil {
		out.CleanupDeadServers = *a.CleanupDeadServers
	}
	out.ServerStabilizationTime = cmp.Or(a.ServerStabilizationTime, out.ServerStabilizationTime)
	out.LastContactThreshold = cmp.Or(a.LastContactThreshold, out.LastContactThreshold)
	out.MaxTrailingLogs = cmp.Or(uint64(max(0, a.MaxTrailingLogs)), out.MaxTrailingLogs)  // not negative
	out.MinQuorum = cmp.Or(uint(max(0, a.MinQuorum)), autopilotQuorum(c.Server.Expect())) // not negative
	return out
}

// autopilotQuorum is how many servers cleaning up leaves by default: those that the
// cluster was planned with. One that is down for a while is waited for, and makes
// place only for another.
func autopilotQuorum(expect int) uint {
	if expect < 3 {
		return 0
	}
	return uint(expect) // checked
}
