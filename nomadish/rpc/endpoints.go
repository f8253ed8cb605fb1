package rpc

import (
	"context"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Plans judges and commits plans; it answers only on the leader.
type Plans interface {
	Submit(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error)
	// Withdraw takes asks out of the queue and ends the reservations of nodes.
	Withdraw(ctx context.Context, asks []*structs.AskUpdate, nodes []string) error
}

// Heartbeats keeps the nodes' time limits; it answers only on the leader.
type Heartbeats interface {
	// Beat says that a node lives and gives the time within which it must say so again.
	Beat(nodeID string) time.Duration
	// Suspect has nodes looked for whose sessions were lost.
	Suspect(nodeIDs ...string)
}

// Collector forgets what is over.
type Collector interface {
	Force(ctx context.Context) error
}

// Cluster is the set of the Raft servers.
type Cluster interface {
	Configuration() (*structs.RaftConfigurationReply, error)
	// Change removes a server (by ID or address), or hands leadership over.
	Change(ctx context.Context, remove bool, id, address string) error
	// State is this server's own view.
	State() (*structs.RaftStateReply, error)
	// Readable gives an error that names the servers which would stop at a log entry of this type.
	Readable(t structs.LogType) error
}

// Gossip is who this server knows by gossip.
type Gossip interface {
	Members() []structs.ServerMember
	Join(addrs []string) (reached int, err error)
	ForceLeave(name string, prune bool) error
}

// Founding answers servers that would found the cluster.
type Founding interface {
	Consider(args *structs.FoundRequest) (*structs.FoundReply, error)
	// Claim answers the leader of a cluster that would add this server: the cluster that it
	// belongs to then, or the name of who has its promise.
	Claim(args *structs.RaftStateRequest) (cluster, promised string, err error)
	// Unfounded says why this server belongs to no cluster yet, and what to do; empty: it does.
	Unfounded() (why, todo string)
}

// Keeper knows the servers' health; it does on the leader only.
type Keeper interface {
	Health() structs.AutopilotHealth
}

// Snapshots takes and restores the whole state.
type Snapshots interface {
	// Take gives this server's state as it is; the caller closes the reader.
	Take() (*structs.SnapshotMeta, io.ReadCloser, error)
	// Restore puts the state of an archive, of info.Meta.StateBytes and found whole, in
	// place of the cluster's. It answers on the leader, when the followers have it too, and
	// gives the index at which it did.
	Restore(ctx context.Context, info *structs.SnapshotInfo, state io.Reader) (index uint64, err error)
}

// Config is what the endpoints are told.
type Config struct {
	ID          string // of this server
	Name        string
	Region      string
	Datacenter  string
	Version     string
	JobMaxCount int
	// JobDefaultPriority is the priority of a job that states none; 0: 50. JobMaxPriority is the highest that one may state; 0: 100.
	JobDefaultPriority int
	JobMaxPriority     int
	JobMaxSource       int
	JobMaxSize         int           // bytes of a job; 0: no limit
	MaxQueryTime       time.Duration // of a blocking query; 0: 10 min
	DefaultQuery       time.Duration // of one that states none; 0: 5 min
	Hold               time.Duration // how long a call waits for a leader; 0: 5 s
	MaxRegistering     int           // nodes' registrations that are committed at once, others wait; 0: 256
	NodeMaxMessage     int           // bytes that a node sends in one call; 0: 1 MiB
	NodeMaxRate        int           // bytes per second that a node sends over a longer time; 0: no limit
}

// Deps are the parts that the endpoints work with.
type Deps struct {
	Store      *state.Store
	Applier    Applier
	Broker     queue.Evaluations
	Plans      Plans
	Heartbeats Heartbeats
	Collector  Collector
	Leadership Leadership
	Cluster    Cluster
	Snapshots  Snapshots
	Spool      *snapshot.Spool
	Gossip     Gossip
	Keyrings   Keyrings
	Founding   Founding
	Keeper     Keeper
	Pool       *wire.Pool // sessions to other servers
	Regions    Regions    // nil: there is this one only
	Far        *wire.Pool // sessions to servers of other regions
	// Self calls a method as if this server were asked for it by its own agent.
	Self    func(ctx context.Context, method string, args, reply any) error
	Clients ClientGossip // nil: clients do not gossip
	Agent   Agent        // nil: it is not known, as in tests
	// Typical tells what the policy least-fragmentation keeps room for when a job is planned;
	// nil: it packs.
	Typical func(*state.Snapshot, *structs.Job, *structs.SchedulerConfiguration) *scheduler.Typical
	Logger  hclog.Logger
	NewID   func() string
	Now     func() time.Time
}

// Endpoints answers the RPC methods.
type Endpoints struct {
	Config
	Deps
	sessions *sessions
	held     *held
	queue    *queueview.Reader
	reports  reports
	rates    nodeRates
	// hostRates are of the hosts from which nodes register that are not known.
	hostRates nodeRates
	// explaining is held by those who make an explanation.
	explaining chan struct{}
	// planning is held by those whose job is being planned, which takes up to a second of a core.
	planning chan struct{}
	// checking is held by who checks the state.
	checking chan struct{}
	// saving and restoring are held by who saves and restores the state, fetching by the few
	// who fetch what was saved: each has a file of that size.
	saving, restoring, fetching chan struct{}
	// registering is held by nodes' registrations that are being committed.
	registering chan struct{}
	told        wire.Once // refused node secrets, and rates of nodes and hosts that were exceeded, which were logged
}

// New makes the endpoints.
func New(c Config, d Deps) *Endpoints {
	if c.MaxQueryTime <= 0 {
		c.MaxQueryTime = 10 * time.Minute
	}
	if c.DefaultQuery <= 0 {
		c.DefaultQuery = 5 * time.Minute
	}
	if c.Hold <= 0 {
		c.Hold = defaultHold
	}
	if c.MaxRegistering <= 0 {
		c.MaxRegistering = defaultRegistering
	}
	if c.NodeMaxMessage <= 0 {
		c.NodeMaxMessage = defaultNodeMessage
	}
	return &Endpoints{
		Config: c, Deps: d, sessions: newSessions(), held: newHeld(), queue: queueview.NewReader(d.Now),
		explaining: make(chan struct{}, maxExplaining), planning: make(chan struct{}, maxPlanning),
		checking: make(chan struct{}, 1), saving: make(chan struct{}, 1), restoring: make(chan struct{}, 1),
		fetching: make(chan struct{}, 4), registering: make(chan struct{}, c.MaxRegistering),
		rates:     nodeRates{rate: float64(c.NodeMaxRate), burst: nodeBurst * float64(c.NodeMaxRate)},
		hostRates: nodeRates{rate: hostRate * float64(c.NodeMaxRate), burst: hostBurst * float64(c.NodeMaxRate)},
	}
}

// Register gives every method to the mux.
func (e *Endpoints) Register(mux *wire.Mux) {
	e.registerStatus(mux)
	e.registerJobs(mux)
	e.registerAllocs(mux)
	e.registerEvals(mux)
	e.registerScaling(mux)
	e.registerNodes(mux)
	e.registerNodePools(mux)
	e.registerOperator(mux)
	e.registerCheck(mux)
	e.registerSnapshot(mux)
	e.registerServers(mux)
	e.registerTopology(mux)
	e.registerQueue(mux)
	e.registerExplain(mux)
	e.registerClients(mux)
	e.registerReach(mux)
	e.registerAgent(mux)
	mux.Handle(wire.MethodEventStream, e.routed(false, wire.Streaming(e.eventStream)))
	mux.Handle(wire.MethodSearch, read(e, e.search))
}
