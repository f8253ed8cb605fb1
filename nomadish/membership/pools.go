package membership

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// Options are how a server finds the others and forms a cluster with them.
type Options struct {
	// LAN is the gossip of the server's region, WAN that with servers of other regions. Without an address for the WAN this
	// server takes no part in it, and knows its own region only.
	LAN, WAN PoolOptions
	// Expect is how many servers form the cluster. 1: this one alone; 0: it joins one that is there.
	Expect           int
	RejoinAfterLeave bool   // a server that left goes back to the members that it remembers
	Key              []byte // the first key, of 16, 24 or 32 bytes; none, and none kept: gossip goes in the clear

	// What follows is of the server, not of its configuration.

	ID         string // Raft's
	Name       string
	Region     string
	Datacenter string
	Version    string
	RPCAddr    string          // host:port that others reach the server at
	Dir        string          // where it keeps what must outlive it; empty: nothing does
	Entries    structs.LogType // the last type of log entries that it knows; 0: structs.LogTypeLast
	Logger     hclog.Logger
}

// PoolOptions are the options of a server's part in one gossip.
type PoolOptions struct {
	Addr      string        // host:port to gossip on; port 0: any free one
	Advertise string        // host:port that others reach the gossip at; empty: as bound
	Probe     time.Duration // how often members are probed; 0: 1 s in the LAN, 3 s in the WAN

	// Start and Retry are addresses of other servers' gossip: Join fails if none of the first is reached, and KeepJoining tries
	// the second, RetryMax times (0: for ever), every RetryInterval (0: 30 s).
	Start         []string
	Retry         []string
	RetryMax      int
	RetryInterval time.Duration
}

// Hooks are what the rest of the server has to do with a gossip.
type Hooks struct {
	WANAddr     string // host:port of the server's place in the WAN; empty: none
	ClientsAddr string // host:port of its part of the clients' gossip; empty: none
	// RefuseKey returns why a key is not to be installed.
	RefuseKey func(key []byte) error
	// OnQuery is given queries that are not for the keys of the gossip; it must not wait. May be nil.
	OnQuery func(*serf.Query)
}

// OpenLAN joins the server into the pool of its region, alone as yet.
func OpenLAN(o *Options, keys *keyring.Ring, h Hooks) (*gossip.Pool, error) {
	c := o.gossip(gossip.KindLAN, &o.LAN, keys, o.Logger.Named("gossip"), "snapshot")
	c.Clients, c.WANAddr, c.RefuseKey, c.OnQuery, c.Entries = h.ClientsAddr, h.WANAddr, h.RefuseKey, h.OnQuery, o.Entries
	return gossip.New(c)
}

// OpenWAN joins the server into the pool of all regions, alone as yet; nil: it is switched off.
func OpenWAN(o *Options, keys *keyring.Ring, refuse func(key []byte) error) (*gossip.Pool, error) {
	if o.WAN.Addr == "" {
		return nil, nil // there is none, as the configuration states
	}
	c := o.gossip(gossip.KindWAN, &o.WAN, keys, o.Logger.Named("gossip").Named("wan"), "wan-snapshot")
	c.RefuseKey = refuse
	return gossip.New(c)
}

func (o *Options) gossip(kind gossip.Kind, p *PoolOptions, keys *keyring.Ring, logger hclog.Logger, snapshot string) gossip.Config {
	c := gossip.Config{
		Kind: kind, Name: o.Name, Region: o.Region, Datacenter: o.Datacenter, ID: o.ID, Version: o.Version,
		RPCAddr: o.RPCAddr, Expect: o.Expect, BindAddr: p.Addr, Advertise: p.Advertise, Keyring: keys,
		RejoinAfterLeave: o.RejoinAfterLeave, ProbeInterval: p.Probe, Logger: logger,
	}
	if o.Dir != "" {
		c.SnapshotPath = filepath.Join(o.Dir, "serf", snapshot)
	}
	return c
}

// Join joins a pool to the servers that must be reached now, if there are any. setting names these in the configuration, retry
// those that KeepJoining tries.
func (p *PoolOptions) Join(pool *gossip.Pool, setting, retry string) error {
	if len(p.Start) == 0 {
		return nil
	}
	if n, err := pool.Join(p.Start); n == 0 {
		return fmt.Errorf("%s: no server was reached: %w (%s goes on trying)", setting, err, retry)
	}
	return nil
}

// KeepJoining goes on looking for the other servers of the region until one is reached or ctx ends. It returns an error if it gives up.
func (o *Options) KeepJoining(ctx context.Context, lan *gossip.Pool) error {
	if len(o.LAN.Retry) == 0 {
		return nil
	}
	return lan.KeepJoining(ctx, gossip.JoinConfig{Addrs: o.LAN.Retry, Max: o.LAN.RetryMax, Interval: o.LAN.RetryInterval})
}

// KeepMeeting looks for servers of other regions whenever none is there, until ctx ends. It returns an error if it gives up.
func (o *Options) KeepMeeting(ctx context.Context, wan *gossip.Pool) error {
	if len(o.WAN.Retry) == 0 {
		return nil
	}
	return wan.KeepMeeting(ctx, gossip.JoinConfig{Addrs: o.WAN.Retry, Max: o.WAN.RetryMax, Interval: o.WAN.RetryInterval})
}
