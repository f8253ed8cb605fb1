package clientpool

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// The roles of members.
const (
	RoleClient = "client"
	RoleServer = "server"
)

// Config describes a pool's own agent, and how to gossip.
type Config struct {
	ID     string // the member's name: a node's ID or a server's
	Role   string
	Region string
	// RPCAddr is where others reach a server's RPC, host:port; empty for a client.
	RPCAddr string

	BindAddr  string // host:port; port 0: any free one
	Advertise string // host:port that the others reach the pool at; empty: as bound
	// Keyring encrypts the gossip; all members must have its first key. nil: Key alone does, of 16, 24 or 32 bytes; empty: it
	// goes in the clear.
	Keyring *keyring.Ring
	Key     []byte
	// ProbeInterval is how often a member is probed; 0: 1 s. The other times follow it.
	ProbeInterval time.Duration

	// OnChange is called with each change of a member, one after the other; it must not wait. May
	// be nil.
	OnChange func(Member)
	// AllowLog reports whether one of many like warnings is the first of its kind for a while; only that is logged, and of all few a minute. Nil: each is.
	AllowLog func(kind, key string, now time.Time) bool
	Logger   hclog.Logger // nil: silent
}

// Member is what the pool knows of one.
type Member struct {
	ID      string
	Role    string
	RPCAddr string // of a server, as it states itself; empty: it states none
	Addr    string // of its gossip, host:port
	Status  string // structs.MemberAlive and so on
}

// Alive reports whether the member is heard.
func (m Member) Alive() bool { return m.Status == structs.MemberAlive }

const (
	tcpTimeout = 5 * time.Second // to join a member, or to compare lists with it
	// reclaim is how long a failed member's name is kept for its old address.
	reclaim = 10 * time.Second
	events  = 512 // of Serf's that wait
	// leaveWait bounds the time for announcing a leave, leaveSpread is how long the others have to pass
	// it on.
	leaveWait   = time.Second
	leaveSpread = 300 * time.Millisecond
)

// Pool is this agent's place in the pool. Its methods may be called from many goroutines.
type Pool struct {
	serf     *serf.Serf
	config   Config
	logger   hclog.Logger
	events   chan serf.Event
	logLimit *keyring.LogLimiter // warnings that are logged
	done     sync.WaitGroup

	mu      sync.Mutex
	members map[string]Member
}

// New makes an agent a member of a pool of its own; Join brings it to others. The error wraps ErrInUse when another has the
// port.
func New(c Config) (*Pool, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.AllowLog == nil {
		c.AllowLog = func(string, string, time.Time) bool { return true }
	}
	p := &Pool{config: c, logger: c.Logger, events: make(chan serf.Event, events), members: map[string]Member{}, logLimit: &keyring.LogLimiter{AllowOf: c.AllowLog}}
	conf, err := p.serfConfig()
	if err != nil {
		return nil, fmt.Errorf("clients' gossip: %w", err)
	}
	if err = free(c.BindAddr); err == nil {
		err = p.create(conf)
	}
	if err != nil {
		return nil, fmt.Errorf("clients' gossip on %s: %w (ports { client_gossip = … } sets another)", c.BindAddr, err)
	}
	p.done.Go(p.listen)
	return p, nil
}

// ErrInUse means that another process listens on the port.
var ErrInUse = errors.New("the port is taken")

// free reports whether a port can be listened on: Serf reports no cause, and leaves goroutines behind, when it cannot.
func free(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%w: %w", ErrInUse, err)
		}
		return err
	}
	return l.Close()
}

func (p *Pool) serfConfig() (*serf.Config, error) {
	c := &p.config
	tags := tagsOf(c)
	if err := checkMember(c.ID, tags, c.Region); err != nil {
		return nil, err
	}
	list := memberlist.DefaultLANConfig()
	var err error
	if list.BindAddr, list.BindPort, err = wire.HostPort(c.BindAddr); err != nil {
		return nil, fmt.Errorf("bind %q: %w", c.BindAddr, err)
	}
	list.AdvertisePort = list.BindPort
	if c.Advertise != "" {
		if list.AdvertiseAddr, list.AdvertisePort, err = wire.Advertised(c.Advertise); err != nil {
			return nil, fmt.Errorf("advertise { client_gossip = %q }: %w", c.Advertise, err)
		}
	}
	list.TCPTimeout, list.DeadNodeReclaimTime = tcpTimeout, reclaim
	list.SuspicionMult = 1 // a false alarm costs a check; see the package
	if c.ProbeInterval > 0 {
		list.ProbeTimeout = max(c.ProbeInterval/2, time.Millisecond)
		list.ProbeInterval, list.GossipInterval = c.ProbeInterval, max(c.ProbeInterval/5, time.Millisecond)
	}
	if c.Keyring == nil {
		if c.Keyring, err = keyring.Open("", setting(c.Role), c.Key, p.logger); err != nil {
			return nil, err
		}
	}
	if c.Keyring != nil {
		list.Keyring = c.Keyring.Memberlist()
	}
	conf := serf.DefaultConfig()
	conf.MemberlistConfig = list
	conf.NodeName, conf.Tags = c.ID, tags
	conf.EventCh = p.events
	conf.Merge = merging{p}
	conf.DisableCoordinates, conf.EnableNameConflictResolution = true, false
	conf.BroadcastTimeout, conf.LeavePropagateDelay = leaveWait, leaveSpread
	conf.LogOutput, list.LogOutput = nil, nil
	conf.Logger = rateLimitedLog{p}.logger()
	list.Logger = conf.Logger
	return conf, nil
}

// listen keeps the members as Serf reports them, until it has shut down.
func (p *Pool) listen() {
	for {
		select {
		case e := <-p.events:
			if m, ok := e.(serf.MemberEvent); ok {
				for i := range m.Members {
					p.changed(memberOf(&m.Members[i]), m.Type == serf.EventMemberReap)
				}
			}
		case <-p.serf.ShutdownCh():
			return
		}
	}
}

func (p *Pool) changed(m Member, forgotten bool) {
	p.mu.Lock()
	if forgotten {
		delete(p.members, m.ID)
	} else {
		p.members[m.ID] = m
	}
	p.mu.Unlock()
	p.logger.Debug("a member changed", "member", m.ID, "role", m.Role, "addr", m.Addr, "status", m.Status, "forgotten", forgotten)
	if p.config.OnChange != nil && !forgotten {
		p.config.OnChange(m)
	}
}

// Member is one by its ID, if it was ever heard of and is not forgotten.
func (p *Pool) Member(id string) (Member, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.members[id]
	return m, ok
}

// Servers are the members that claim to be one and to be there, without this one.
func (p *Pool) Servers() []Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Member
	for id, m := range p.members { // order does not matter: they are alike
		if m.Role == RoleServer && m.Alive() && id != p.config.ID {
			out = append(out, m)
		}
	}
	return out
}

// Clients counts the clients that are heard.
func (p *Pool) Clients() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, m := range p.members { // order does not matter: they are counted
		if m.Role == RoleClient && m.Alive() {
			n++
		}
	}
	return n
}

// Alone reports whether no other member is heard.
func (p *Pool) Alone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, m := range p.members { // order does not matter: any will do
		if m.Alive() && id != p.config.ID {
			return false
		}
	}
	return true
}

// Addr is the address that others reach the pool at.
func (p *Pool) Addr() string {
	n := p.serf.Memberlist().LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// Encrypted reports whether the gossip is.
func (p *Pool) Encrypted() bool { return p.config.Keyring != nil }

// Stats are Serf's numbers for people.
func (p *Pool) Stats() map[string]string { return p.serf.Stats() }

// Join contacts a member at host or host:port and learns of all that it knows.
func (p *Pool) Join(addr string) error {
	_, err := p.serf.Join([]string{WithPort(addr)}, true)
	if err == nil {
		return nil
	}
	err = keyring.Flat(err)
	if keyring.OtherKey(err) {
		err = fmt.Errorf("its gossip has another key than this agent's, or one of them has none (%s): %w", sameKey(p.config.Role), err)
	}
	return fmt.Errorf("join the clients' gossip at %s: %w", addr, err)
}

// Probe checks directly, by its ID, whether a member is there. It waits for half a probe interval at most.
func (p *Pool) Probe(id string) error {
	m, ok := p.Member(id)
	if !ok {
		return fmt.Errorf("member %s: not known here", id)
	}
	addr, err := net.ResolveUDPAddr("udp", m.Addr)
	if err != nil {
		return fmt.Errorf("member %s: %w", id, err)
	}
	_, err = p.serf.Memberlist().Ping(id, addr)
	return err
}

// Leave notifies the others that this agent goes in good order, so that nobody misses it. Shutdown must follow.
func (p *Pool) Leave() error { return p.serf.Leave() }

// Shutdown ends the gossip without a word: to the others the member fails.
func (p *Pool) Shutdown() error {
	err := p.serf.Shutdown()
	p.done.Wait()
	return err
}

// WithPort adds the default port to an address that has none.
func WithPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), strconv.Itoa(structs.DefaultPortClientGossip))
}
