package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// GossipConfig specifies whether and how the client gossips with the other clients and the servers of its region.
type GossipConfig struct {
	On bool
	// BindAddr is host:port; port 0: any free one. Advertise is what others learn; empty: as bound.
	BindAddr, Advertise string
	// MayMiss lets the client do without when another agent has the port.
	MayMiss bool
	Key     []byte // 16, 24 or 32 bytes; empty: it goes in the clear
	// Join are addresses of any members, host or host:port. Servers name more.
	Join []string
	// Simulated lets simulated nodes gossip too, each on a port of its own.
	Simulated bool
	// ProbeInterval is how often members are probed; 0: 1 s.
	ProbeInterval time.Duration
	// Retry bounds the time between two tries to join; 0: 30 s. Each is at a moment of its own.
	Retry time.Duration
}

// gossipKeys is the file that keeps the keys, from the first change on.
const gossipKeys = "gossip.keyring"

// KeepsGossipKeys reports whether a client with this state directory encrypts its gossip with keys that are kept there.
func KeepsGossipKeys(stateDir string) bool {
	return stateDir != "" && keyring.Kept(filepath.Join(stateDir, gossipKeys))
}

// gossiper is one node's place in the gossip.
type gossiper struct {
	pool     *clientpool.Pool
	ring     *keyring.Ring // of all nodes of the client; nil: the gossip goes in the clear
	file     string        // that keeps it
	logLimit *wire.LogLimiter
	joiner   *joiner
	logger   hclog.Logger
}

// GossipAddr is where others reach the client's part of the gossip; empty: it has none.
func (c *Client) GossipAddr() string {
	if c.gossip == nil {
		return ""
	}
	return c.gossip.pool.Addr()
}

// openGossip makes the nodes members, each alone as yet.
func (c *Client) openGossip() error {
	g := c.config.Gossip
	if !g.On {
		return nil
	}
	path := ""
	if c.config.StateDir != "" {
		path = filepath.Join(c.config.StateDir, gossipKeys)
	}
	ring, err := keyring.Open(path, "gossip_encrypt", g.Key, c.logger)
	if err != nil {
		return fmt.Errorf("clients' gossip: %w", err)
	}
	for i, n := range c.nodes {
		own := i == 0 && !c.config.simulatedOnly()
		if !own && !g.Simulated {
			continue
		}
		conf := clientpool.Config{
			ID: n.id, Role: clientpool.RoleClient, Region: c.config.Region, BindAddr: g.BindAddr, Advertise: g.Advertise, Keyring: ring,
			ProbeInterval: g.ProbeInterval, AllowLog: c.logLimit.AllowOf, Logger: n.logger.Named("gossip"),
		}
		if !own {
			conf.BindAddr, conf.Advertise = anyPort(g.BindAddr), ""
		}
		if own || c.gossip == nil {
			conf.OnChange = c.learnServer
		}
		pool, err := clientpool.New(conf)
		if errors.Is(err, clientpool.ErrInUse) && len(c.config.Servers) == 0 {
			return fmt.Errorf("%w; this client finds its servers by gossip only and cannot run without it: give it a port of its own, or name servers by their RPC port, client { servers = [\"10.0.0.1:4647\"] }", err)
		}
		if errors.Is(err, clientpool.ErrInUse) && g.MayMiss {
			c.logger.Warn("this client does not gossip: its loss is seen by its heartbeats alone; give it a port of its own, or set client { gossip = false }", "error", err)
			continue
		}
		if err != nil {
			return err
		}
		n.gossip = &gossiper{pool: pool, ring: ring, file: path, logLimit: &c.logLimit, joiner: newJoiner(pool, n.servers.known, g, conf.Logger), logger: conf.Logger}
		if c.gossip == nil {
			c.gossip = n.gossip
		}
	}
	return nil
}

// anyPort is a host without its port.
func anyPort(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, "0")
}

// learnServer takes note of a server that the gossip names. Whether it is one shows when it is called: by its certificate, or, without
// TLS, by being the only one there is.
func (c *Client) learnServer(m clientpool.Member) {
	if m.Role == clientpool.RoleServer && m.Alive() && m.RPCAddr != "" {
		for _, l := range c.links {
			l.hint(m.RPCAddr)
		}
	}
}

// learn applies what a server reports about the gossip.
func (g *gossiper) learn(info *structs.ClientGossip) {
	if g == nil || info == nil {
		return
	}
	g.learnKeys(info)
	g.joiner.learn(info.Addrs, info.Spread)
}

// missed takes note of a call of the servers that came to nothing.
func (g *gossiper) missed(err error) {
	if g != nil {
		g.joiner.missed(err)
	}
}

// keys are those that the node has, as reported to its servers; nil: none.
func (g *gossiper) keys() *structs.GossipKeys {
	if g == nil || g.ring == nil {
		return nil
	}
	prints := g.ring.Prints()
	return &prints
}

// learnKeys takes the ring of the servers, if it is newer.
func (g *gossiper) learnKeys(info *structs.ClientGossip) {
	var err error
	switch {
	case g.ring == nil && info.Primary == "":
		return
	case g.ring == nil:
		err = errors.New("this client has no key")
	case len(info.Keyring) > 0:
		err = g.takeKeys(info.Keyring)
	case info.Primary != "" && !slices.Contains(g.ring.Prints().Prints, info.Primary):
		err = errors.New("this client has only other keys: they may have been replaced while it was away")
	}
	if err != nil && g.logLimit.Allow("keys "+err.Error(), time.Now()) {
		g.logger.Error("the gossip is encrypted with a key that this client does not have, so the other members do not hear it; put the current key into "+
			"client { gossip_encrypt }, remove the file, if there is one, and start it again", "file", g.file, "error", err)
	}
}

func (g *gossiper) takeKeys(sealed []byte) error {
	s, err := g.ring.Unseal(sealed)
	if err != nil {
		return err
	}
	taken, err := g.ring.Take(s)
	if taken {
		g.logger.Info("the keys of the clients' gossip were changed by the servers", "keys", len(s.Keys), "version", s.Version)
	}
	return err
}

// close leaves the gossip in order, and ends it.
func (g *gossiper) close() error {
	if g == nil {
		return nil
	}
	var err error
	if !g.pool.Alone() {
		err = g.pool.Leave()
	}
	return errors.Join(err, g.pool.Shutdown())
}

// closeGossip ends the gossip of all nodes, at once.
func (c *Client) closeGossip() error {
	var wg sync.WaitGroup
	errs := make([]error, len(c.nodes))
	for i, n := range c.nodes {
		wg.Go(func() { errs[i] = n.gossip.close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ping answers a server that wants to know whether the client is there.
func (c *Client) ping(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
	return &structs.WriteReply{}, nil
}

// probe probes a neighbour by gossip, for a server that does not hear it.
func (c *Client) probe(_ context.Context, req *structs.NodeProbeRequest) (*structs.NodeProbeReply, error) {
	if c.gossip == nil {
		return nil, structs.Errorf(structs.CodeUnsupported, "this client does not gossip")
	}
	return &structs.NodeProbeReply{Gossip: c.gossip.pool.Probe(req.NodeID) == nil}, nil
}
