package agent

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/command/agent/inspect"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/endpoint/job"
	"github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/nomadish/gc"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/portmux"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// serverConfig makes the server's configuration of the agent's, which alone holds the defaults of a server.
func serverConfig(cfg *config.Config, logger hclog.Logger) (*nomadish.Config, error) {
	s, clocks, limits := cfg.Server.WithDefaults(), cfg.RaftClocks(), &cfg.Limits
	c := &nomadish.Config{
		Region: cfg.Region, Datacenter: cfg.Datacenter, Name: cfg.Name, Version: Version, Logger: logger,
		Port: portmux.Options{HandshakeTimeout: limits.RPCHandshakeTimeout, MaxConnsPerClient: limits.RPCMaxConns},
		Raft: raftnode.Options{
			Disk:      structs.DiskLimit{MB: s.DiskFullMB, Percent: s.DiskFullPercent},
			Heartbeat: clocks.Heartbeat, Election: clocks.Election, Lease: clocks.Lease, Commit: clocks.Commit,
			SnapshotInterval: s.RaftSnapshotInterval, SnapshotThreshold: s.RaftSnapshotThreshold, TrailingLogs: s.RaftTrailingLogs,
			ApplyTimeout: config.ApplyTimeout,
		},
		State: state.Options{EventBuffer: s.EventBufferSize, HistoryMax: structs.DefaultHistoryMax, JobVersions: s.JobTrackedVersions},
		Queue: queue.Options{NackTimeout: config.EvalNackTimeout, DeliveryLimit: config.EvalDeliveryLimit},
		Heartbeats: heartbeat.Options{
			MinTTL: s.MinHeartbeatTTL, Grace: s.HeartbeatGrace, Failover: s.FailoverHeartbeatTTL, MaxPerSecond: s.MaxHeartbeatsPerSecond,
			Liveness: heartbeat.Liveness(s.ClientLiveness),
		},
		GC: gc.Options{
			Interval: s.JobGCInterval, Eval: s.EvalGCThreshold, BatchEval: s.BatchEvalGCThreshold, Job: s.JobGCThreshold,
			Node: s.NodeGCThreshold, History: config.HistoryRetention,
		},
		Forecasts: forecasts.Options{On: s.Forecasts(), Horizon: s.Forecast.Horizon, CPUPercent: s.Forecast.CPUPercent},
		Jobs:      job.Config{MaxCount: s.JobMaxCount, DefaultPriority: s.JobDefaultPriority, MaxPriority: s.JobMaxPriority},
		Nodes:     node.Config{MaxRegistering: s.MaxRegistering, MaxMessage: int(limits.NodeMaxMessage), MaxRate: int(limits.NodeMaxRate)},
		Autopilot: cfg.AutopilotConfig(),
		Identity:  identity.Options{Trust: cfg.TrustsUserHeader()},
	}
	c.NumSchedulers, c.EnabledSchedulers = s.Schedulers()
	if !cfg.Dev {
		c.DataDir, c.Raft.LogReserve = hostOr(cfg.Server.DataDir, cfg.DataDir), config.LogReserve
	}
	c.Port.Addr = joinHostPort(hostOr(cfg.Addresses.RPC, cfg.BindAddr), cfg.Ports.RPC)
	var err error
	if c.Port.Advertise, err = advertised(cfg.Advertise.RPC, c.Port.Addr); err != nil {
		return nil, err
	}
	if c.Port.Advertise == c.Port.Addr {
		c.Port.Advertise = "" // as bound
	}
	if err := gossipConfig(c, cfg); err != nil {
		return nil, err
	}
	if c.Jobs.MaxSource, err = s.MaxSource(); err != nil {
		return nil, fmt.Errorf("server.job_max_source_size: %w", err)
	}
	if c.Jobs.MaxSize, err = s.MaxSize(); err != nil {
		return nil, fmt.Errorf("server.job_max_size: %w", err)
	}
	if c.DefaultSchedule, err = s.SchedulerConfig(); err != nil {
		return nil, fmt.Errorf("server.scheduling: %w", err)
	}
	return c, nil
}

// gossipConfig returns how the server finds the others.
func gossipConfig(c *nomadish.Config, cfg *config.Config) error {
	c.Membership.LAN.Addr = joinHostPort(hostOr(cfg.Addresses.Serf, cfg.BindAddr), cfg.Ports.Serf)
	var err error
	if c.Membership.LAN.Advertise, err = advertised(cfg.Advertise.Serf, c.Membership.LAN.Addr); err != nil {
		return err
	}
	if c.Membership.LAN.Advertise == c.Membership.LAN.Addr {
		c.Membership.LAN.Advertise = "" // as bound
	}
	if err := wanConfig(c, cfg); err != nil {
		return err
	}
	if err := clientsConfig(c, cfg); err != nil {
		return err
	}
	s := &cfg.Server
	if c.Membership.Key, err = s.Key(); err != nil {
		return fmt.Errorf("server.encrypt: %w", err)
	}
	c.Membership.Expect = s.Expect()
	c.Membership.LAN.Start, c.Membership.LAN.Retry = s.Joins()
	c.Membership.LAN.RetryMax, c.Membership.LAN.RetryInterval = s.Retry()
	c.Membership.RejoinAfterLeave = s.RejoinAfterLeave
	return nil
}

// wanConfig returns how the server finds those of other regions.
func wanConfig(c *nomadish.Config, cfg *config.Config) error {
	port := cfg.WANPort()
	if port < 0 {
		return nil
	}
	c.Membership.WAN.Addr = joinHostPort(hostOr(cfg.Addresses.SerfWAN, hostOr(cfg.Addresses.Serf, cfg.BindAddr)), port)
	stated := cfg.Advertise.SerfWAN
	if stated == "" && cfg.Advertise.Serf != "" { // the same host; the port is another
		stated = cfg.Advertise.Serf
		if host, _, err := net.SplitHostPort(stated); err == nil {
			stated = host
		}
	}
	var err error
	if c.Membership.WAN.Advertise, err = advertised(stated, c.Membership.WAN.Addr); err != nil {
		return err
	}
	if c.Membership.WAN.Advertise == c.Membership.WAN.Addr {
		c.Membership.WAN.Advertise = "" // as bound
	}
	j := &cfg.Server.Join
	c.Membership.WAN.Start, c.Membership.WAN.Retry, c.Membership.WAN.RetryMax, c.Membership.WAN.RetryInterval = j.StartJoinWAN, j.RetryJoinWAN, j.RetryMaxWAN, j.RetryIntervalWAN
	return nil
}

// clientsConfig returns how the server gossips with clients.
func clientsConfig(c *nomadish.Config, cfg *config.Config) error {
	bind, advertise, err := clientGossipAddrs(cfg)
	if err != nil {
		return err
	}
	c.ClientGossip = clientgossip.Options{On: cfg.ServerGossips(), Addr: bind, Advertise: advertise, MayMiss: !cfg.ClientGossipPortStated()}
	if c.ClientGossip.Key, err = cfg.Server.ClientKey(); err != nil {
		return fmt.Errorf("server.client_gossip_encrypt: %w", err)
	}
	return nil
}

// clientGossipAddrs are where the agent takes part in the clients' gossip, and what it advertises if that is not the same.
func clientGossipAddrs(cfg *config.Config) (bind, advertise string, err error) {
	bind = joinHostPort(hostOr(cfg.Addresses.ClientGossip, cfg.BindAddr), cfg.Ports.ClientGossip)
	if advertise, err = advertised(cfg.Advertise.ClientGossip, bind); err != nil || advertise == bind {
		advertise = "" // as bound
	}
	return bind, advertise, err
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
	c.Port.TLS, c.Agent = secure, own
	giveHeadroom(serverHeadroom, mostHeadroom)
	s, err := nomadish.NewServer(c)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &serverPart{
		Backend: s, addr: s.RPCAddr(), bound: bound(c.Port.Addr, s.RPCAddr()), stats: s.Stats, metrics: s.Metrics, failed: s.Failed(),
		serf: s.SerfAddr(), serfBound: bound(c.Membership.LAN.Addr, s.SerfAddr()), setSchedulers: s.SetSchedulers, encrypted: s.Encrypted(), wan: s.WANAddr(), clients: s.ClientGossipAddr(),
		stop: func(_ context.Context, leave bool) error {
			if leave {
				return s.Leave()
			}
			return s.Shutdown()
		},
	}, nil
}

// bound is where a server listens: the configured address, with the port that it got
// if any was right.
func bound(configured, reached string) string {
	if !strings.HasSuffix(configured, ":0") {
		return configured
	}
	at := strings.LastIndex(reached, ":")
	return strings.TrimSuffix(configured, ":0") + reached[at:]
}
