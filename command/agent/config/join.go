package config

import (
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxExpect bounds bootstrap_expect: each server more makes every write wait for more.
const maxExpect = 31

// Expect is how many servers found the cluster: what bootstrap_expect says. Not stated,
// a server that is told of others joins them, and one that is told of none is alone.
func (s *Server) Expect() int {
	if s.BootstrapExpect != nil {
		return *s.BootstrapExpect
	}
	if start, retry := s.Joins(); len(start)+len(retry) > 0 {
		return 0
	}
	return 1
}

// Joins are the addresses of other servers' gossip: those that must be reached at the
// start, and those that are tried until they are.
func (s *Server) Joins() (start, retry []string) {
	return slices.Concat(s.StartJoin, s.Join.StartJoin), slices.Concat(s.RetryJoin, s.Join.RetryJoin)
}

// Retry is how often (0: for ever) and in which intervals (0: the default) joining is
// tried.
func (s *Server) Retry() (most int, interval time.Duration) {
	return max(s.RetryMax, s.Join.RetryMax), max(s.RetryInterval, s.Join.RetryInterval)
}

// WANPort is the port of the gossip with other regions; below 0: it is off. Not stated, it is the
// default where the gossip of the region has its own default port: agents that are given ports
// of their own do not get in each other's way.
func (c *Config) WANPort() int {
	if c.Ports.SerfWAN != nil {
		return *c.Ports.SerfWAN
	}
	if c.Ports.Serf == DefaultSerfPort {
		return DefaultSerfWANPort
	}
	return -1
}

// Key is the gossip's key; nil: none.
func (s *Server) Key() ([]byte, error) {
	if s.Encrypt == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(s.Encrypt)
	if err != nil {
		return nil, fmt.Errorf("must be base64, as `nomadish operator gossip keyring generate` or `openssl rand -base64 32` makes it")
	}
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return nil, fmt.Errorf("holds %d bytes; a key has 16, 24 or 32 (`openssl rand -base64 32` makes one)", n)
	}
	return key, nil
}

// ServerAddrs are the servers' RPC addresses that a client begins with.
func (c *Client) ServerAddrs() []string {
	all := slices.Concat(c.Servers, c.Join.StartJoin, c.Join.RetryJoin)
	for i, addr := range all {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			all[i] = net.JoinHostPort(strings.Trim(addr, "[]"), strconv.Itoa(DefaultRPCPort))
		}
	}
	return all
}

func (k *checker) joining() {
	s := &k.c.Server
	if s.BootstrapExpect != nil && (*s.BootstrapExpect < 0 || *s.BootstrapExpect > maxExpect) {
		k.bad("server.bootstrap_expect", " %d: must be from 1 to %d, or 0 to join a cluster that is there", *s.BootstrapExpect, maxExpect)
	}
	for path, addrs := range map[string][]string{
		"server.start_join": s.StartJoin, "server.retry_join": s.RetryJoin,
		"server.server_join.start_join": s.Join.StartJoin, "server.server_join.retry_join": s.Join.RetryJoin,
		"server.server_join.start_join_wan": s.Join.StartJoinWAN, "server.server_join.retry_join_wan": s.Join.RetryJoinWAN,
	} {
		k.addrs(path, addrs)
		if strings.HasSuffix(path, "_wan") && len(addrs) > 0 && k.c.WANPort() < 0 {
			k.bad(path, ": the gossip with other regions is off: state ports { serf_wan = %d }, as ports.serf is stated too", DefaultSerfWANPort)
		}
	}
	for path, n := range map[string]int64{
		"server.retry_max": int64(s.RetryMax), "server.retry_interval": int64(s.RetryInterval),
		"server.server_join.retry_max": int64(s.Join.RetryMax), "server.server_join.retry_interval": int64(s.Join.RetryInterval),
		"server.server_join.retry_max_wan": int64(s.Join.RetryMaxWAN), "server.server_join.retry_interval_wan": int64(s.Join.RetryIntervalWAN),
	} {
		if n < 0 {
			k.bad(path, ": must not be negative")
		}
	}
	if _, err := s.Key(); err != nil {
		k.bad("server.encrypt", ": %v", err) // never the key itself
	}
	a := &k.c.Autopilot
	for path, n := range map[string]int64{
		"autopilot.server_stabilization_time": int64(a.ServerStabilizationTime), "autopilot.last_contact_threshold": int64(a.LastContactThreshold),
		"autopilot.max_trailing_logs": int64(a.MaxTrailingLogs), "autopilot.min_quorum": int64(a.MinQuorum),
	} {
		if n < 0 {
			k.bad(path, ": must not be negative")
		}
	}
}

// addrs checks addresses of other agents: host or host:port.
func (k *checker) addrs(path string, addrs []string) {
	for _, addr := range addrs {
		switch {
		case strings.Contains(addr, "provider="):
			k.bad(path, " %q: finding servers through a cloud is not supported; write their addresses", addr)
		case addr == "" || strings.ContainsAny(addr, " /\t\n"):
			k.bad(path, " %q: must be host or host:port", addr)
		}
	}
}
