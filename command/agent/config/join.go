package config

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// maxExpect bounds bootstrap_expect: each server more makes every write wait for more.
const maxExpect = 31

// Expect is how many servers bootstrap the cluster: bootstrap_expect. Not stated,
// a server that knows of others joins them, and one that knows of none is alone.
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
	if c.Ports.Serf == structs.DefaultPortSerf {
		return structs.DefaultPortSerfWAN
	}
	return -1
}

// Key is the key of the servers' gossip; nil: none.
func (s *Server) Key() ([]byte, error) { return gossipKey(s.Encrypt) }

// ClientKey is the key of the clients' gossip on a server; nil: none.
func (s *Server) ClientKey() ([]byte, error) { return gossipKey(s.ClientGossipEncrypt) }

// Key is the key of the clients' gossip on a client; nil: none.
func (c *Client) Key() ([]byte, error) { return gossipKey(c.GossipEncrypt) }

func gossipKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("must be base64, of 16, 24 or 32 bytes, as `nomadish operator gossip keyring generate` or `openssl rand -base64 32` makes it")
	}
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return nil, fmt.Errorf("holds %d bytes; a key has 16, 24 or 32 (`openssl rand -base64 32` makes one)", n)
	}
	return key, nil
}

// ServerGossips reports whether the server takes part in the clients' gossip, ClientGossips whether the client does: in an agent
// that is both, the server stands for it.
func (c *Config) ServerGossips() bool {
	return c.Server.Enabled && (c.Server.ClientGossip == nil || *c.Server.ClientGossip)
}

// ClientGossips reports whether the client itself takes part: see ServerGossips. An agent of simulated nodes only does so when that is configured.
func (c *Config) ClientGossips() bool {
	if !c.Client.Enabled || c.Server.Enabled {
		return false
	}
	return (c.Client.Gossip == nil || *c.Client.Gossip) && (!c.SimulatedOnly() || c.Client.SimulateGossip)
}

// ClientGossipPortStated reports whether somebody chose the port: then there is no going on without it.
func (c *Config) ClientGossipPortStated() bool {
	_, stated := c.Sources.origins["ports.client_gossip"]
	return stated
}

// BindAddrStated reports whether somebody chose where to listen.
func (c *Config) BindAddrStated() bool {
	_, stated := c.Sources.origins["bind_addr"]
	return stated || c.Addresses != (Addresses{})
}

// ServerAddrs are the servers' RPC addresses that a client begins with. What server_join names with the port of the clients'
// gossip is none.
func (c *Config) ServerAddrs() []string {
	var all []string
	for _, addr := range slices.Concat(c.Client.Servers, c.Client.Join.StartJoin, c.Client.Join.RetryJoin) {
		_, port, err := net.SplitHostPort(addr)
		switch {
		case err != nil:
			all = append(all, net.JoinHostPort(strings.Trim(addr, "[]"), strconv.Itoa(structs.DefaultPortRPC)))
		case !c.ofGossip(port):
			all = append(all, addr)
		}
	}
	return all
}

func (c *Config) ofGossip(port string) bool {
	return port != "0" && port == strconv.Itoa(c.Ports.ClientGossip) && c.ClientGossips()
}

// GossipAddrs are the members of the clients' gossip that a client begins with: gossip_join, and of server_join what has its
// port or none at all, as it may mean either.
func (c *Config) GossipAddrs() []string {
	if !c.ClientGossips() {
		return nil
	}
	all := slices.Clone(c.Client.GossipJoin)
	for _, addr := range slices.Concat(c.Client.Join.StartJoin, c.Client.Join.RetryJoin) {
		if _, port, err := net.SplitHostPort(addr); err != nil || c.ofGossip(port) {
			all = append(all, addr)
		}
	}
	return all
}

// clientGossip checks what is stated about the clients' gossip.
func (k *checker) clientGossip() {
	c := k.c
	keys := map[string][]byte{} // of the clients' gossip
	for path, key := range map[string]func() ([]byte, error){
		"server.client_gossip_encrypt": c.Server.ClientKey, "client.gossip_encrypt": c.Client.Key,
	} {
		var err error
		if keys[path], err = key(); err != nil {
			k.bad(path, ": %v", err) // never the key itself
		}
	}
	own, _ := c.Server.Key() // what is wrong with it is reported elsewhere
	for path, key := range keys {
		if len(own) > 0 && bytes.Equal(own, key) {
			k.bad(path, ": is also the key of server.encrypt, which only servers may have: every client could act as a server with it. Generate another one (`nomadish operator gossip keyring generate`)")
		}
	}
	for path, port := range map[string]int{"ports.http": c.Ports.HTTP, "ports.rpc": c.Ports.RPC, "ports.serf": c.Ports.Serf} {
		if p := c.Ports.ClientGossip; p != 0 && p == port && (c.ServerGossips() || c.ClientGossips() && path == "ports.http") {
			k.bad("ports.client_gossip", " %d: is that of %s too", p, path)
		}
	}
	k.addrs("client.gossip_join", c.Client.GossipJoin)
	l := c.Server.ClientLiveness
	for path, n := range map[string]float64{
		"check": float64(l.Check), "silence": float64(l.Silence), "keep": float64(l.Keep), "mass_failure_min": float64(l.MassFailureMin),
		"mass_failure_window": float64(l.MassFailureWindow), "mass_failure_limit": float64(l.MassFailureLimit), "mass_failure_share": l.MassFailureShare,
	} {
		if n < 0 {
			k.bad("server.client_liveness."+path, ": must not be negative")
		}
	}
	if l.MassFailureShare > 1 {
		k.bad("server.client_liveness.mass_failure_share", " %v: must be from 0 to 1", l.MassFailureShare)
	}
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
			k.bad(path, ": the gossip with other regions is off: state ports { serf_wan = %d }, as ports.serf is stated too", structs.DefaultPortSerfWAN)
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
