package rpc

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Cluster is the set of the Raft servers.
type Cluster interface {
	Configuration() (*structs.RaftConfigurationReply, error)
	// Readable returns an error that names the servers which would stop at a log entry of this type.
	Readable(t structs.LogType) error
}

// Gossip is who this server knows by gossip.
type Gossip interface {
	Members() []structs.ServerMember
}

// Bootstrap is how the cluster comes to be.
type Bootstrap interface {
	// WhyNotBootstrapped returns why this server belongs to no cluster yet, and what to do; empty: it does.
	WhyNotBootstrapped() (why, todo string)
}

// Config describes this server, and what else the router needs.
type Config struct {
	ID           string // of this server
	Name         string
	Region       string
	MaxQueryTime time.Duration // of a blocking query; 0: 10 min
	DefaultQuery time.Duration // of one that states none; 0: 5 min
	Hold         time.Duration // how long a call waits for a leader; 0: 5 s
}

// Deps are the parts that the router works with.
type Deps struct {
	Store      *state.Store
	Leadership Leadership
	Cluster    Cluster
	Gossip     Gossip
	Bootstrap  Bootstrap
	Pool       *wire.Pool // sessions to other servers
	Regions    Regions    // nil: there is this one only
	Far        *wire.Pool // sessions to servers of other regions
	Logger     hclog.Logger
}

// Router has calls answered by who may: this server, the leader, a server of another region, or the client of a node. The
// endpoints, each of which answers the methods of one service, stand on it.
type Router struct {
	Config
	Deps
	// Sessions are those that clients have opened to this server.
	Sessions *Sessions
}

// New returns a new router.
func New(c Config, d Deps) *Router {
	if c.MaxQueryTime <= 0 {
		c.MaxQueryTime = 10 * time.Minute
	}
	if c.DefaultQuery <= 0 {
		c.DefaultQuery = 5 * time.Minute
	}
	if c.Hold <= 0 {
		c.Hold = defaultHold
	}
	return &Router{Config: c, Deps: d, Sessions: NewSessions()}
}

// Snapshot returns the state as it is now.
func (r *Router) Snapshot() *state.Snapshot { return r.Store.Snapshot() }

// Method is a row of a service's table: a method that this server answers. The table of package wire states who may call it.
type Method struct {
	Name    string
	Handler wire.Handler
	// MaxBytes bounds the argument before it is decoded, and Hint states who sets that; 0: as all arguments are.
	MaxBytes int
	Hint     string
}

// Parts are what every endpoint works with that reads the state and commits log entries.
type Parts struct {
	Router  *Router
	Applier Applier
	NewID   func() string
	Now     func() time.Time
}

// Service answers the methods of its table.
type Service interface {
	Methods() []Method
}

// Register registers the methods of services with a mux.
func Register(mux *wire.Mux, services ...Service) {
	for _, s := range services {
		for _, m := range s.Methods() {
			mux.Handle(m.Name, m.Handler)
			if m.MaxBytes > 0 {
				mux.Bound(m.Name, m.MaxBytes, m.Hint)
			}
		}
	}
}
