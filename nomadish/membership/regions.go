package membership

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// bringAlongEvery is how often servers that could not be brought along are tried again.
const bringAlongEvery = 10 * time.Second

// BringAlong joins the servers of the own region into the pool of all regions, until ctx ends:
// one that knows another region is enough.
func BringAlong(ctx context.Context, lan, wan *gossip.Pool, logger hclog.Logger) {
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

// Regions is who serves other regions, as the pool of all regions knows.
type Regions struct {
	own  string
	wan  *gossip.Pool // nil: switched off
	next atomic.Uint32
}

// NewRegions returns the regions as a server of region own knows them; wan nil: it knows its own alone.
func NewRegions(own string, wan *gossip.Pool) *Regions { return &Regions{own: own, wan: wan} }

// Known implements rpc.Regions.
func (r *Regions) Known() []string {
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
func (r *Regions) Servers(region string) []string {
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
	at := int(r.next.Add(1) % uint32(len(addrs))) // a few servers
	return slices.Concat(addrs[at:], addrs[:at])
}

// Members implements rpc.Regions.
func (r *Regions) Members() []structs.ServerMember {
	if r.wan == nil {
		return nil
	}
	return slices.DeleteFunc(r.wan.Members(), func(m structs.ServerMember) bool { return m.Tags["region"] == r.own })
}

// Join implements rpc.Regions.
func (r *Regions) Join(addrs []string) (int, error) {
	if r.wan == nil {
		return 0, structs.Errorf(structs.CodeBadRequest, "this server takes no part in the gossip of all regions").
			WithHint("set ports { serf_wan = %d } and start it again", structs.DefaultPortSerfWAN)
	}
	return r.wan.Join(addrs)
}

// ForceLeave implements rpc.Regions.
func (r *Regions) ForceLeave(name string, prune bool) error {
	if r.wan == nil {
		return structs.Errorf(structs.CodeNotFound, "no member %q of another region", name)
	}
	return r.wan.ForceLeave(name, prune)
}

// Stats are what `agent-info` shows of the pool.
func (r *Regions) Stats() map[string]string {
	if r.wan == nil {
		return map[string]string{"enabled": "false"}
	}
	stats := r.wan.Stats()
	stats["enabled"] = strconv.FormatBool(true)
	return stats
}
