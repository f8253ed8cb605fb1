// Package node answers the RPC methods of nodes and node pools: what nodes report about themselves and of their work, within the bounds of
// what one may report, and what people request of nodes.
package node

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// Heartbeats keeps the nodes' time limits; it answers only on the leader.
type Heartbeats interface {
	// Beat records that a node lives and returns the time within which it must report again.
	Beat(nodeID string) time.Duration
}

// Gossip is that of the clients.
type Gossip interface {
	// Contacts returns the answer about gossip to a client that has these keys; nil: none.
	Contacts(nodeID string, has *structs.GossipKeys) *structs.ClientGossip
}

// Config bounds what nodes may send.
type Config struct {
	Datacenter     string // of a node that states none: this server's
	MaxRegistering int    // nodes' registrations that are committed at once, others wait; 0: 256
	MaxMessage     int    // bytes that a node sends in one call; 0: 1 MiB
	MaxRate        int    // bytes per second that a node sends over a longer time; 0: no limit
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	rpc.Parts
	Heartbeats Heartbeats
	Gossip     Gossip // nil: clients do not gossip
	Logger     hclog.Logger
}

// Endpoint answers the methods of nodes.
type Endpoint struct {
	Config
	Deps
	reports reports
	rates   nodeRates
	// hostRates are of the hosts from which nodes register that are not known.
	hostRates nodeRates
	// registering has a slot for each of the nodes' registrations that are being committed.
	registering chan struct{}
	logLimit    wire.LogLimiter // refused node secrets, and rates of nodes and hosts that were exceeded, which were logged
}

// New returns a new endpoint.
func New(c Config, d Deps) *Endpoint {
	if c.MaxRegistering <= 0 {
		c.MaxRegistering = structs.DefaultMaxRegistering
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = structs.DefaultNodeMaxMessage
	}
	return &Endpoint{
		Config: c, Deps: d, registering: make(chan struct{}, c.MaxRegistering),
		rates:     nodeRates{rate: float64(c.MaxRate), burst: nodeBurst * float64(c.MaxRate)},
		hostRates: nodeRates{rate: hostRate * float64(c.MaxRate), burst: hostBurst * float64(c.MaxRate)},
	}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	const hint = "`limits { node_max_message_bytes }` of the servers bounds it"
	r := e.Router
	registers := e.hostCharged(charged(e, statusCost, func(a *structs.NodeRegisterRequest) (id, secret string) {
		if a.Node == nil {
			return "", ""
		}
		return a.Node.ID, a.Node.SecretID
	}, e.register))
	reports := charged(e, reportCost, func(a *structs.ClientUpdateRequest) (id, secret string) { return a.NodeID, a.SecretID }, e.updateAllocs)
	happens := charged(e, eventsCost, func(a *structs.NodeEventsRequest) (id, secret string) { return a.NodeID, a.SecretID }, e.events)
	return []rpc.Method{
		{Name: wire.MethodNodeRegister, Handler: registers, MaxBytes: e.MaxMessage, Hint: hint},
		{Name: wire.MethodNodeUpdateAllocs, Handler: reports, MaxBytes: e.MaxMessage, Hint: hint},
		{Name: wire.MethodNodeEvents, Handler: happens, MaxBytes: e.MaxMessage, Hint: hint},
		{Name: wire.MethodNodeHeartbeat, Handler: rpc.FromNodes(r, e.heartbeat), MaxBytes: nodeQuestion},
		{Name: wire.MethodNodeClientAllocs, Handler: r.OwnRegion(rpc.Read(r, e.clientAllocs)), MaxBytes: nodeQuestion},
		{Name: wire.MethodClientHello, Handler: e.hello, MaxBytes: nodeQuestion},
		{Name: wire.MethodNodeList, Handler: rpc.Read(r, e.list)},
		{Name: wire.MethodNodeGet, Handler: rpc.Read(r, e.get)},
		{Name: wire.MethodNodeAllocs, Handler: rpc.Read(r, e.allocs)},
		{Name: wire.MethodNodeDrain, Handler: rpc.Write(r, e.drain)},
		{Name: wire.MethodNodeEligibility, Handler: rpc.Write(r, e.eligibility)},
		{Name: wire.MethodNodePurge, Handler: rpc.Write(r, e.purge)},
		{Name: wire.MethodNodeEvaluate, Handler: rpc.Write(r, e.evaluate)},
		{Name: wire.MethodNodePoolList, Handler: rpc.VersionedRead(r, lastPoolEntry, e.poolList)},
		{Name: wire.MethodNodePoolGet, Handler: rpc.VersionedRead(r, lastPoolEntry, e.poolGet)},
		{Name: wire.MethodNodePoolNodes, Handler: rpc.VersionedRead(r, lastPoolEntry, e.poolNodes)},
		{Name: wire.MethodNodePoolJobs, Handler: rpc.VersionedRead(r, lastPoolEntry, e.poolJobs)},
		{Name: wire.MethodNodePoolUpsert, Handler: rpc.VersionedWrite(r, lastPoolEntry, e.poolUpsert)},
		{Name: wire.MethodNodePoolDelete, Handler: rpc.VersionedWrite(r, lastPoolEntry, e.poolDelete)},
	}
}
