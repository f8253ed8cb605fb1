package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/nomadish"
	"github.com/nomadish/nomadish/structs/wire"
)

// serverConfig makes the server's configuration of the agent's. What the agent's
// leaves unstated keeps the server's default.
func serverConfig(cfg *config.Config, logger hclog.Logger) (*nomadish.Config, error) {
	c := nomadish.DefaultConfig()
	if cfg.Dev {
		c.DevMode()
	} else {
		c.DataDir = hostOr(cfg.Server.DataDir, cfg.DataDir)
	}
	c.Region, c.Datacenter, c.Name, c.Version, c.Logger = cfg.Region, cfg.Datacenter, cfg.Name, Version, logger
	c.RPCAddr = joinHostPort(hostOr(cfg.Addresses.RPC, cfg.BindAddr), cfg.Ports.RPC)
	var err error
	if c.RPCAdvertise, err = advertised(cfg.Advertise.RPC, c.RPCAddr); err != nil {
		return nil, err
	}
	if c.RPCAdvertise == c.RPCAddr {
		c.RPCAdvertise = "" // as bound
	}
	s := &cfg.Server
	c.BootstrapExpect = s.BootstrapExpect
	if s.NumSchedulers != nil {
		c.NumSchedulers = *s.NumSchedulers
	}
	if len(s.EnabledSchedulers) > 0 {
		c.EnabledSchedulers = s.EnabledSchedulers
	}
	for _, clock := range []*time.Duration{&c.RaftHeartbeat, &c.RaftElection, &c.RaftLease} {
		*clock *= time.Duration(s.RaftMultiplier)
	}
	stated(&c.SnapshotInterval, s.RaftSnapshotInterval)
	stated(&c.SnapshotThreshold, s.RaftSnapshotThreshold)
	stated(&c.TrailingLogs, s.RaftTrailingLogs)
	stated(&c.MinHeartbeatTTL, s.MinHeartbeatTTL)
	stated(&c.HeartbeatGrace, s.HeartbeatGrace)
	stated(&c.FailoverHeartbeatTTL, s.FailoverHeartbeatTTL)
	stated(&c.MaxHeartbeatsPerSecond, s.MaxHeartbeatsPerSecond)
	stated(&c.GCInterval, s.JobGCInterval)
	stated(&c.EvalGCThreshold, s.EvalGCThreshold)
	stated(&c.BatchEvalGCThreshold, s.BatchEvalGCThreshold)
	stated(&c.JobGCThreshold, s.JobGCThreshold)
	stated(&c.NodeGCThreshold, s.NodeGCThreshold)
	stated(&c.EventBuffer, s.EventBufferSize)
	stated(&c.JobTrackedMax, s.JobTrackedVersions)
	stated(&c.JobMaxCount, s.JobMaxCount)
	stated(&c.JobMaxPriority, s.JobMaxPriority)
	stated(&c.JobDefaultPrio, s.JobDefaultPriority)
	source, err := s.MaxSource()
	if err != nil {
		return nil, fmt.Errorf("server.job_max_source_size: %w", err)
	}
	stated(&c.JobMaxSource, source)
	c.HandshakeTimeout = cfg.Limits.RPCHandshakeTimeout
	c.MaxConnsPerClient = cfg.Limits.RPCMaxConns
	if c.DefaultSchedule, err = s.SchedulerConfig(); err != nil {
		return nil, fmt.Errorf("server.scheduling: %w", err)
	}
	return c, nil
}

// stated lets a value of the configuration win if it is there.
func stated[T comparable](to *T, value T) {
	var none T
	if value != none {
		*to = value
	}
}

func newServer(cfg *config.Config, secure *wire.TLS, logger hclog.Logger) (*serverPart, error) {
	c, err := serverConfig(cfg, logger)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	c.TLS = secure
	s, err := nomadish.NewServer(c)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &serverPart{
		Backend: s, addr: s.RPCAddr(), bound: bound(c.RPCAddr, s.RPCAddr()), stats: s.Stats,
		stop: func(_ context.Context, leave bool) error {
			if leave {
				return s.Leave()
			}
			return s.Shutdown()
		},
	}, nil
}

// bound is where a server listens: what it was told, with the port that it got
// if any was right.
func bound(told, reached string) string {
	if !strings.HasSuffix(told, ":0") {
		return told
	}
	at := strings.LastIndex(reached, ":")
	return strings.TrimSuffix(told, ":0") + reached[at:]
}
