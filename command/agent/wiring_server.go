package agent

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/command/agent/inspect"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
)

// logReserve is how much of a new server's log is written ahead: what some thousand entries take before there is a first
// snapshot, after which the log's pages are used again.
const logReserve = 32 << 20

// serverConfig makes the server's configuration of the agent's. What the agent's
// leaves unstated keeps the server's default.
func serverConfig(cfg *config.Config, logger hclog.Logger) (*nomadish.Config, error) {
	c := nomadish.DefaultConfig()
	if cfg.Dev {
		c.DevMode()
	} else {
		c.DataDir, c.LogReserve = hostOr(cfg.Server.DataDir, cfg.DataDir), logReserve
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
	if err := gossipConfig(c, cfg); err != nil {
		return nil, err
	}
	s := &cfg.Server
	c.NumSchedulers, c.EnabledSchedulers = schedulers(s)
	for _, clock := range []*time.Duration{&c.RaftHeartbeat, &c.RaftElection, &c.RaftLease} {
		*clock *= time.Duration(s.RaftMultiplier)
	}
	stated(&c.Disk.MB, s.DiskFullMB)
	stated(&c.Disk.Percent, s.DiskFullPercent)
	stated(&c.SnapshotInterval, s.RaftSnapshotInterval)
	stated(&c.SnapshotThreshold, s.RaftSnapshotThreshold)
	stated(&c.TrailingLogs, s.RaftTrailingLogs)
	stated(&c.MinHeartbeatTTL, s.MinHeartbeatTTL)
	stated(&c.HeartbeatGrace, s.HeartbeatGrace)
	stated(&c.FailoverHeartbeatTTL, s.FailoverHeartbeatTTL)
	stated(&c.MaxHeartbeatsPerSecond, s.MaxHeartbeatsPerSecond)
	stated(&c.MaxRegistering, s.MaxRegistering)
	stated(&c.GCInterval, s.JobGCInterval)
	stated(&c.EvalGCThreshold, s.EvalGCThreshold)
	stated(&c.BatchEvalGCThreshold, s.BatchEvalGCThreshold)
	stated(&c.JobGCThreshold, s.JobGCThreshold)
	stated(&c.NodeGCThreshold, s.NodeGCThreshold)
	stated(&c.EventBuffer, s.EventBufferSize)
	stated(&c.JobTrackedMax, s.JobTrackedVersions)
	stated(&c.JobMaxCount, s.JobMaxCount)
	stated(&c.JobMaxPriority, s.JobMaxPriority)
	stated(&c.JobDefaultPriority, s.JobDefaultPriority)
	source, err := s.MaxSource()
	if err != nil {
		return nil, fmt.Errorf("server.job_max_source_size: %w", err)
	}
	stated(&c.JobMaxSource, source)
	size, err := s.MaxSize()
	if err != nil {
		return nil, fmt.Errorf("server.job_max_size: %w", err)
	}
	stated(&c.JobMaxSize, size)
	c.HandshakeTimeout = cfg.Limits.RPCHandshakeTimeout
	c.MaxConnsPerClient = cfg.Limits.RPCMaxConns
	c.NodeMaxMessage, c.NodeMaxRate = int(cfg.Limits.NodeMaxMessage), int(cfg.Limits.NodeMaxRate)
	if c.DefaultSchedule, err = s.SchedulerConfig(); err != nil {
		return nil, fmt.Errorf("server.scheduling: %w", err)
	}
	return c, nil
}

// schedulers returns how many workers the server has, and the types of jobs that they take.
func schedulers(s *config.Server) (n int, enabled []string) {
	c := nomadish.DefaultConfig()
	n, enabled = c.NumSchedulers, c.EnabledSchedulers
	if s.NumSchedulers != nil {
		n = *s.NumSchedulers
	}
	if len(s.EnabledSchedulers) > 0 {
		enabled = s.EnabledSchedulers
	}
	return n, enabled
}

// gossipConfig says how the server finds the others.
func gossipConfig(c *nomadish.Config, cfg *config.Config) error {
	c.SerfAddr = joinHostPort(hostOr(cfg.Addresses.Serf, cfg.BindAddr), cfg.Ports.Serf)
	var err error
	if c.SerfAdvertise, err = advertised(cfg.Advertise.Serf, c.SerfAddr); err != nil {
		return err
	}
	if c.SerfAdvertise == c.SerfAddr {
		c.SerfAdvertise = "" // as bound
	}
	if err := wanConfig(c, cfg); err != nil {
		return err
	}
	if err := clientsConfig(c, cfg); err != nil {
		return err
	}
	s := &cfg.Server
	if c.GossipKey, err = s.Key(); err != nil {
		return fmt.Errorf("server.encrypt: %w", err)
	}
	c.BootstrapExpect = s.Expect()
	c.StartJoin, c.RetryJoin = s.Joins()
	c.RetryMax, c.RetryInterval = s.Retry()
	c.RejoinAfterLeave = s.RejoinAfterLeave

	a := &cfg.Autopilot
	c.Autopilot.MinQuorum = autopilotQuorum(c.BootstrapExpect)
	if a.CleanupDeadServers != nil {
		c.Autopilot.CleanupDeadServers = *a.CleanupDeadServers
	}
	stated(&c.Autopilot.ServerStabilizationTime, a.ServerStabilizationTime)
	stated(&c.Autopilot.LastContactThreshold, a.LastContactThreshold)
	stated(&c.Autopilot.MaxTrailingLogs, uint64(max(0, a.MaxTrailingLogs))) //nolint:gosec // not negative
	stated(&c.Autopilot.MinQuorum, uint(max(0, a.MinQuorum)))               //nolint:gosec // not negative
	return nil
}

// wanConfig says how the server finds those of other regions.
func wanConfig(c *nomadish.Config, cfg *config.Config) error {
	port := cfg.WANPort()
	if port < 0 {
		return nil
	}
	c.WANAddr = joinHostPort(hostOr(cfg.Addresses.SerfWAN, hostOr(cfg.Addresses.Serf, cfg.BindAddr)), port)
	stated := cfg.Advertise.SerfWAN
	if stated == "" && cfg.Advertise.Serf != "" { // the same host; the port is another
		stated = cfg.Advertise.Serf
		if host, _, err := net.SplitHostPort(stated); err == nil {
			stated = host
		}
	}
	var err error
	if c.WANAdvertise, err = advertised(stated, c.WANAddr); err != nil {
		return err
	}
	if c.WANAdvertise == c.WANAddr {
		c.WANAdvertise = "" // as bound
	}
	j := &cfg.Server.Join
	c.StartJoinWAN, c.RetryJoinWAN, c.RetryMaxWAN, c.RetryIntervalWAN = j.StartJoinWAN, j.RetryJoinWAN, j.RetryMaxWAN, j.RetryIntervalWAN
	return nil
}

// clientsConfig says how the server gossips with clients, and how they are told lost.
func clientsConfig(c *nomadish.Config, cfg *config.Config) error {
	bind, advertise, err := clientGossipAddrs(cfg)
	if err != nil {
		return err
	}
	c.ClientGossip = clientgossip.Options{On: cfg.ServerGossips(), Addr: bind, Advertise: advertise, MayMiss: !cfg.ClientGossipPortStated()}
	if c.ClientGossip.Key, err = cfg.Server.ClientKey(); err != nil {
		return fmt.Errorf("server.client_gossip_encrypt: %w", err)
	}
	c.Liveness = heartbeat.Liveness(cfg.Server.ClientLiveness)
	return nil
}

// clientGossipAddrs are where the agent takes part in the clients' gossip, and what others are told if that is not the same.
func clientGossipAddrs(cfg *config.Config) (bind, advertise string, err error) {
	bind = joinHostPort(hostOr(cfg.Addresses.ClientGossip, cfg.BindAddr), cfg.Ports.ClientGossip)
	if advertise, err = advertised(cfg.Advertise.ClientGossip, bind); err != nil || advertise == bind {
		advertise = "" // as bound
	}
	return bind, advertise, err
}

// autopilotQuorum is how many servers cleaning up leaves by default: those that the
// cluster was planned with. One that is down for a while is waited for, and makes
// place only for another.
func autopilotQuorum(expect int) uint {
	if expect < 3 {
		return 0
	}
	return uint(expect) //nolint:gosec // checked
}

// stated lets a value of the configuration win if it is there.
func stated[T comparable](to *T, value T) {
	var none T
	if value != none {
		*to = value
	}
}

func newServer(cfg *config.Config, secure *wire.TLS, own *inspect.Inspector, logger hclog.Logger) (*serverPart, error) {
	c, err := serverConfig(cfg, logger)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	c.TLS, c.Agent = secure, own
	giveHeadroom(serverHeadroom, mostHeadroom)
	s, err := nomadish.NewServer(c)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &serverPart{
		Backend: s, addr: s.RPCAddr(), bound: bound(c.RPCAddr, s.RPCAddr()), stats: s.Stats, metrics: s.Metrics, failed: s.Failed(),
		serf: s.SerfAddr(), serfBound: bound(c.SerfAddr, s.SerfAddr()), setSchedulers: s.SetSchedulers, encrypted: s.Encrypted(), wan: s.WANAddr(), clients: s.ClientGossipAddr(),
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
