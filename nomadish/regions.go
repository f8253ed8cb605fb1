package nomadish

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// openWAN joins the server into the pool of all regions, alone as yet; nil: it is switched off.
func openWAN(cfg *Config, keys *keyring.Ring, refuse func([]byte) error, id, rpcAddr string) (*gossip.Pool, error) {
	if cfg.WANAddr == "" {
		return nil, nil //nolint:nilnil // there is none, as the configuration says
	}
	c := gossip.Config{
		Kind: gossip.KindWAN, Name: cfg.Name, Region: cfg.Region, Datacenter: cfg.Datacenter, ID: id, Version: cfg.Version,
		RPCAddr: rpcAddr, Expect: cfg.BootstrapExpect, BindAddr: cfg.WANAddr, Advertise: cfg.WANAdvertise, Keyring: keys, RefuseKey: refuse,
		RejoinAfterLeave: cfg.RejoinAfterLeave, ProbeInterval: cfg.WANProbe, Logger: cfg.Logger.Named("gossip").Named("wan"),
	}
	if dir := cfg.serverDir(); dir != "" {
		c.SnapshotPath = filepath.Join(dir, "serf", "wan-snapshot")
	}
	return gossip.New(c)
}

// bringAlongEvery is how often servers that could not be brought along are tried again.
const bringAlongEvery = 10 * time.Second

// bringAlong joins the servers of the own region into the pool of all regions, until ctx ends:
// one that was told of another region is enough.
func bringAlong(ctx context.Context, lan, wan *gossip.Pool, logger hclog.Logger) {
	changed, cancel := lan.Subscribe()
	defer cancel()
	tick := time.NewTicker(bringAlongEvery)
	defer tick.Stop()
	for {
		there := map[string]bool{}
		for _, s := range wan.Servers() {
			there[s.Member] = s.Alive()
		}
		for _, s := range lan.Servers() {
			if s.WANAddr == "" || !s.Alive() || there[s.Member] {
				continue
			}
			if _, err := wan.Join([]string{s.WANAddr}); err != nil {
				logger.Debug("a server of this region is not in the pool of all regions yet", "server", s.Name, "error", err)
			}
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// regions is who serves other regions, as the pool of all regions knows.
type regions struct {
	own  string
	wan  *gossip.Pool // nil: switched off
	next atomic.Uint32
}

// Known implements rpc.Regions.
func (r *regions) Known() []string {
	known := []string{r.own}
	if r.wan == nil {
		return known
	}
	for _, s := range r.wan.Servers() {
		if !slices.Contains(known, s.Region) {
			known = append(known, s.Region)
		}
	}
	slices.Sort(known)
	return known
}

// Servers implements rpc.Regions. Each call begins with another one, so that they share the work.
func (r *regions) Servers(region string) []string {
	var addrs []string
	if r.wan == nil {
		return nil
	}
	for _, s := range r.wan.Servers() {
		if s.Region == region && s.Alive() {
			addrs = append(addrs, s.RPCAddr)
		}
	}
	if len(addrs) < 2 {
		return addrs
	}
	at := int(r.next.Add(1) % uint32(len(addrs))) //nolint:gosec // a few servers
	return slices.Concat(addrs[at:], addrs[:at])
}

// Members implements rpc.Regions.
func (r *regions) Members() []structs.ServerMember {
	if r.wan == nil {
		return nil
	}
	return slices.DeleteFunc(r.wan.Members(), func(m structs.ServerMember) bool { return m.Tags["region"] == r.own })
}

// Join implements rpc.Regions.
func (r *regions) Join(addrs []string) (int, error) {
	if r.wan == nil {
		return 0, structs.Errorf(structs.CodeBadRequest, "this server takes no part in the gossip of all regions").
			WithHint("set ports { serf_wan = %d } and start it again", gossip.DefaultWANPort)
	}
	return r.wan.Join(addrs)
}

// ForceLeave implements rpc.Regions.
func (r *regions) ForceLeave(name string, prune bool) error {
	if r.wan == nil {
		return structs.Errorf(structs.CodeNotFound, "no member %q of another region", name)
	}
	return r.wan.ForceLeave(name, prune)
}

// stats are what `agent-info` shows of the pool.
func (r *regions) stats() map[string]string {
	if r.wan == nil {
		return map[string]string{"enabled": "false"}
	}
	stats := r.wan.Stats()
	stats["enabled"] = strconv.FormatBool(true)
	return stats
}

// findRegions joins servers of other regions, and goes on looking for them.
func (s *Server) findRegions(ctx context.Context) error {
	if s.wan == nil {
		return nil
	}
	if start := s.cfg.StartJoinWAN; len(start) > 0 {
		if n, err := s.wan.Join(start); n == 0 {
			return fmt.Errorf("start_join_wan: no server was reached: %w (retry_join_wan goes on trying)", err)
		}
	}
	s.wg.Go(func() { bringAlong(ctx, s.gossip, s.wan, s.logger) })
	if retry := s.cfg.RetryJoinWAN; len(retry) > 0 {
		s.wg.Go(func() {
			err := s.wan.KeepMeeting(ctx, gossip.JoinConfig{Addrs: retry, Max: s.cfg.RetryMaxWAN, Interval: s.cfg.RetryIntervalWAN})
			if err != nil {
				s.failed <- err
			}
		})
	}
	return nil
}
