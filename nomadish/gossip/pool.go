package gossip

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Kind is the distance over which a pool gossips.
type Kind int

// The kinds.
const (
	KindLAN Kind = iota // the servers of one region
	KindWAN             // servers of all regions; slower to call one failed
)

// Config describes a pool's own server and how to gossip.
type Config struct {
	Kind       Kind
	Name       string // of the server, unique in its region
	Region     string
	Datacenter string
	ID         string
	Version    string
	RPCAddr    string // host:port that the others reach it at
	Expect     int    // servers that bootstrap the cluster; 0: it joins one that is there
	WANAddr    string // host:port of the server's place in the pool of all regions; empty: none
	Clients    string // host:port of its part of the clients' gossip; empty: it has none

	// Entries is the last type of log entries that the server knows; 0: structs.LogTypeLast.
	Entries structs.LogType

	BindAddr  string // host:port; port 0: any free one
	Advertise string // host:port that the others reach the pool at; empty: as bound

	// Keyring encrypts the gossip; all members must have its first key. nil: it goes in the
	// clear.
	Keyring *keyring.Ring
	// RefuseKey returns why a key is not to be installed; nil: all may be.
	RefuseKey func(key []byte) error
	// OnQuery is given queries that are not for the keys of this pool; it must not wait. May be nil.
	OnQuery func(*serf.Query)
	// SnapshotPath is a file that remembers the members, so that a restarted server
	// finds them again. Empty: none.
	SnapshotPath string
	// RejoinAfterLeave makes a server that left go back to the members that it remembers.
	RejoinAfterLeave bool

	// ProbeInterval is how often a member is probed; 0: 1 s on a LAN, 3 s on a WAN.
	// Probes' other times follow it.
	ProbeInterval time.Duration
	Logger        hclog.Logger
}

const (
	tcpTimeout = 5 * time.Second // to join a member, or to compare lists with it
	// reclaim is how long a failed member's name is kept for its old address.
	reclaim = 10 * time.Second
	events  = 256 // of Serf's that wait

	// wanProbe lets an answer take 1.5 s, several times as long as round the world and back, and
	// wanSuspicion allows a suspect about 12 s to speak up: a region that is lost is known to be
	// within half a minute. memberlist's own times for a WAN make that about a minute, and it takes
	// the loss of half of the members, as a region is, for a fault of its own: it would probe ever more
	// slowly, and wait six times as long for others to agree. wanSuspect bounds both.
	wanProbe     = 3 * time.Second
	wanSuspicion = 4
	wanSuspect   = 2
	// wanReconnect is how long a region that cannot be reached is tried again, as Consul has it:
	// the line between two sites may be down over a weekend.
	wanReconnect = 72 * time.Hour
)

// Pool is this server's place in a pool. Its methods may be called from many
// goroutines.
type Pool struct {
	serf     *serf.Serf
	config   Config
	logger   hclog.Logger
	logged   wire.LogLimiter // refusals that were logged
	logLimit keyring.LogLimiter
	// interval is the time between two gossips.
	interval time.Duration

	mu          sync.Mutex
	subscribers map[chan struct{}]bool
	namesakes   string    // the name that two members had when that was last heard
	namesakesAt time.Time // when it was

	tags   sync.Mutex // one changes them at a time
	events chan serf.Event
	done   sync.WaitGroup
}

// New joins a server into a pool of its own; Join brings it to others.
func New(c Config) (*Pool, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	p := &Pool{config: c, logger: c.Logger, subscribers: map[chan struct{}]bool{}, events: make(chan serf.Event, events)}
	conf, err := p.serfConfig()
	if err != nil {
		return nil, err
	}
	p.serf, err = serf.Create(conf)
	if err != nil {
		return nil, fmt.Errorf("gossip on %s: %w (is another agent running? set ports { %s = … })", c.BindAddr, err, c.Kind.port())
	}
	p.done.Go(p.listen)
	return p, nil
}

func (p *Pool) serfConfig() (*serf.Config, error) {
	c := &p.config
	tags, err := tagsOf(c)
	if err != nil {
		return nil, err
	}
	list := memberlist.DefaultLANConfig()
	if c.Kind == KindWAN {
		list = memberlist.DefaultWANConfig()
		list.ProbeInterval, list.ProbeTimeout, list.SuspicionMult = wanProbe, wanProbe/2, wanSuspicion
		list.AwarenessMaxMultiplier, list.SuspicionMaxTimeoutMult = wanSuspect, wanSuspect
	}
	if list.BindAddr, list.BindPort, err = wire.HostPort(c.BindAddr); err != nil {
		return nil, fmt.Errorf("gossip: bind %q: %w", c.BindAddr, err)
	}
	list.AdvertisePort = list.BindPort
	if c.Advertise != "" {
		if list.AdvertiseAddr, list.AdvertisePort, err = wire.Advertised(c.Advertise); err != nil {
			return nil, fmt.Errorf("advertise { %s = %q }: %w", c.Kind.port(), c.Advertise, err)
		}
	}
	list.TCPTimeout, list.DeadNodeReclaimTime = tcpTimeout, reclaim
	if c.ProbeInterval > 0 {
		list.ProbeTimeout = max(c.ProbeInterval/2, time.Millisecond)
		list.ProbeInterval, list.GossipInterval = c.ProbeInterval, max(c.ProbeInterval/5, time.Millisecond)
	}
	p.interval = list.GossipInterval
	if c.Keyring != nil {
		list.Keyring = c.Keyring.Memberlist()
	}
	conf := serf.DefaultConfig()
	conf.MemberlistConfig = list
	conf.NodeName = c.Name + "." + c.Region
	conf.Tags = tags
	conf.EventCh = p.events
	conf.Merge = merging{p}
	// Distances are not estimated, and the loser of a quarrel over a name stays up, says
	// so and waits for its operator: it may be the only one that has the state.
	conf.DisableCoordinates, conf.EnableNameConflictResolution = true, false
	conf.RejoinAfterLeave = c.RejoinAfterLeave
	if c.Kind == KindWAN {
		conf.ReconnectTimeout = wanReconnect
	}
	if c.SnapshotPath != "" {
		if err := os.MkdirAll(filepath.Dir(c.SnapshotPath), 0o700); err != nil {
			return nil, fmt.Errorf("gossip: %w", err)
		}
		conf.SnapshotPath = c.SnapshotPath
	}
	std := keyring.Log(p.logger, &p.logLimit, p.heardNamesakes)
	conf.Logger, list.Logger = std, std
	conf.LogOutput, list.LogOutput = nil, nil
	return conf, nil
}

// listen turns Serf's events into notices and answers, until Serf has shut down.
func (p *Pool) listen() {
	for {
		select {
		case e := <-p.events:
			switch e := e.(type) {
			case serf.MemberEvent:
				for _, one := range e.Members {
					p.logger.Info("a member changed", "event", e.Type, "member", one.Name, "addr", net.JoinHostPort(one.Addr.String(), strconv.Itoa(int(one.Port))))
				}
				p.notify()
			case *serf.Query:
				if !p.Keys().Answer(e) && p.config.OnQuery != nil {
					p.config.OnQuery(e)
				}
			}
		case <-p.serf.ShutdownCh():
			return
		}
	}
}

func (p *Pool) notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.subscribers { // order does not matter: each has its own notice
		select {
		case c <- struct{}{}:
		default: // one waits already
		}
	}
}

// Subscribe returns a channel that has a notice whenever members have changed since the
// last one was taken, and a function that ends that.
func (p *Pool) Subscribe() (changed <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers[c] = true
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subscribers, c)
	}
}

// Members lists all members, failed and left ones too until they are forgotten, by
// name.
func (p *Pool) Members() []structs.ServerMember {
	found := p.serf.Members()
	out := make([]structs.ServerMember, 0, len(found))
	for i := range found {
		out = append(out, memberOf(&found[i]))
	}
	slices.SortFunc(out, func(a, b structs.ServerMember) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// namesakesFor is for how long two members of one name are taken to be there since they were heard of: each exchange of lists
// shows them, of which there is one in half a minute.
const namesakesFor = time.Minute

func (p *Pool) heardNamesakes(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.namesakes, p.namesakesAt = name, time.Now()
}

// Namesakes is a name that two members have, of whom one is not seen therefore; empty: none was heard of lately.
func (p *Pool) Namesakes() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.namesakesAt) > namesakesFor {
		return ""
	}
	return p.namesakes
}

// Servers are the members that can be worked with. What cannot is left out and logged
// when it changes only, by the pool's own refusals.
func (p *Pool) Servers() []Server {
	members := p.Members()
	out := make([]Server, 0, len(members))
	for i := range members {
		if s, err := ServerOf(&members[i]); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// Self is this server as the others see it.
func (p *Pool) Self() structs.ServerMember {
	m := p.serf.LocalMember()
	return memberOf(&m)
}

// Addr is the address that others reach the pool at.
func (p *Pool) Addr() string {
	n := p.serf.Memberlist().LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// Encrypted reports whether the gossip is.
func (p *Pool) Encrypted() bool { return p.config.Keyring != nil }

// Keys is the pool as its keys are changed.
func (p *Pool) Keys() *keyring.Pool {
	return &keyring.Pool{Serf: p.serf, Ring: p.config.Keyring, Interval: p.interval, Refuse: p.config.RefuseKey, Logger: p.logger}
}

// Stats are Serf's numbers for people.
func (p *Pool) Stats() map[string]string { return p.serf.Stats() }

// Join contacts members at host or host:port and learns of all that they know. It
// returns how many were reached; the error names those that were not.
func (p *Pool) Join(addrs []string) (int, error) {
	reached := 0
	var errs []error
	for _, addr := range addrs {
		n, err := p.serf.Join([]string{p.config.Kind.WithPort(addr)}, true)
		reached += n
		if err != nil {
			err = keyring.Flat(err)
			if keyring.OtherKey(err) {
				err = fmt.Errorf("its gossip has another key than this server's (server { encrypt } must be the same on all): %w", err)
			}
			errs = append(errs, fmt.Errorf("join %s: %w", addr, err))
		}
	}
	return reached, errors.Join(errs...)
}

// WithPort adds the default port of such pools to an address that has none.
func (k Kind) WithPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	port := structs.DefaultPortSerf
	if k == KindWAN {
		port = structs.DefaultPortSerfWAN
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), strconv.Itoa(port))
}

// port is the name that the configuration has for the pool's port.
func (k Kind) port() string {
	if k == KindWAN {
		return "serf_wan"
	}
	return "serf"
}

// ForceLeave makes a failed member count as one that left. prune: it is forgotten at
// once. name may leave out the region.
func (p *Pool) ForceLeave(name string, prune bool) error {
	full := p.fullName(name)
	if full == "" {
		return structs.Errorf(structs.CodeNotFound, "no member %q", name).WithHint("`server members` lists them")
	}
	if full == p.config.Name+"."+p.config.Region {
		return structs.Errorf(structs.CodeBadRequest, "member %q is this server itself", name).WithHint("end its agent instead")
	}
	remove := p.serf.RemoveFailedNode
	if prune {
		remove = p.serf.RemoveFailedNodePrune
	}
	if err := remove(full); err != nil {
		return fmt.Errorf("force member %s to leave: %w", full, err)
	}
	p.notify()
	return nil
}

func (p *Pool) fullName(name string) string {
	for _, m := range p.Members() {
		if m.Name == name || m.Name == name+"."+p.config.Region {
			return m.Name
		}
	}
	return ""
}

// Leave notifies the others that this server goes for good, so that nobody takes it for
// failed. Shutdown must follow.
func (p *Pool) Leave() error { return p.serf.Leave() }

// Shutdown ends the gossip without a word: to the others the server fails.
func (p *Pool) Shutdown() error {
	err := p.serf.Shutdown()
	p.done.Wait()
	return err
}

// merging refuses members that do not belong to the pool.
type merging struct{ p *Pool }

// NotifyMerge implements serf.MergeDelegate.
func (m merging) NotifyMerge(members []*serf.Member) error {
	for _, one := range members {
		other := memberOf(one)
		s, err := ServerOf(&other)
		if wan := other.Tags[tagPool] == poolWAN; err == nil && wan != (m.p.config.Kind == KindWAN) {
			err = fmt.Errorf("member %s is of another kind of pool: servers of one region join each other at their port serf, those of different regions at serf_wan", one.Name)
		}
		if err == nil && m.p.config.Kind == KindLAN && s.Region != m.p.config.Region {
			err = fmt.Errorf("member %s is of region %q, this pool of %q (servers of other regions are joined on their port serf_wan: retry_join_wan)",
				one.Name, s.Region, m.p.config.Region)
		}
		if err != nil {
			if _, ok := m.p.logLimit.Allow("member", fmt.Sprintf("%s %.64s", one.Addr, one.Name), time.Now()); ok {
				m.p.logger.Warn("refused a member; more of it is not logged for an hour", "addr", one.Addr, "reason", err)
			}
			return fmt.Errorf("refused: %w", err)
		}
	}
	return nil
}
