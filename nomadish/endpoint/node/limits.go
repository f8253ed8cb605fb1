package node

import (
	"context"
	"crypto/subtle"
	"math"
	"net"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const (
	// nodeQuestion bounds what a node sends when it only identifies itself.
	nodeQuestion = 64 << 10
	// nodeBurst is for how long a node that was silent may send at any rate: so many seconds' worth of its rate.
	nodeBurst = 16
	// What a call costs a node at least, in bytes of its rate, however small it is: each is a log entry, and that of a node's status or
	// of the node itself makes evaluations.
	reportCost, eventsCost, statusCost = 4 << 10, 64 << 10, 256 << 10
	// hostRate and hostBurst bound the registrations of unknown nodes that come from one host, as multiples of a node's rate: how many bytes
	// per second, and how many at once. With a node's rate of 1 MiB/s, a process of 50,000 simulated nodes registers all at once.
	hostRate, hostBurst = 16, 128
	// unknownCost is what such a registration costs the host at least.
	unknownCost = 2 << 10
)

// charged registers a write of nodes that counts against the caller's rate, by its size, and as cost at least. of returns who calls.
func charged[A, R any](e *Endpoint, cost int, of func(*A) (id, secret string), f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return e.Router.OwnRegion(e.Router.Routed(false, func(ctx context.Context, call *wire.Call) error {
		return wire.Unary(func(ctx context.Context, args *A) (*R, error) {
			// Only who has the node's secret counts against its rate; nobody else gets further than this.
			id, secret := of(args)
			node := e.Router.Snapshot().Node(nil, id)
			if node != nil && subtle.ConstantTimeCompare([]byte(node.SecretID), []byte(secret)) == 1 {
				if err := e.chargeNode(id, max(call.Size(), cost)); err != nil {
					return nil, err
				}
			}
			return f(ctx, args)
		})(ctx, call)
	}))
}

// chargeNode counts a call against the rate of a node. It returns an error if the node has used its rate up.
func (e *Endpoint) chargeNode(id string, cost int) error {
	wait := e.rates.take(id, cost, e.Now())
	if wait == 0 {
		return nil
	}
	if e.logLimit.AllowOf("rate", id, e.Now()) {
		e.Logger.Warn("a node sends more than `limits { node_max_bytes_per_second }` allows; its calls are refused, and that is not logged for an hour", "node_id", id)
	}
	return structs.Errorf(structs.CodeLimited, "node %s sends more than %d bytes per second (`limits { node_max_bytes_per_second }` of the servers)", id, e.MaxRate).
		WithHint("try again in %v", wait)
}

// hostCharged counts registrations of nodes that are not known against the host that they come from: nobody has vouched for them, and each
// is kept. The server that has the caller's session counts them, because it alone knows the host; a call that another server passed on is
// counted already. Who states that it passes a call on must be a server by its certificate, where certificates are used.
func (e *Endpoint) hostCharged(f wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		if e.hostRates.rate <= 0 || call.Session == nil || call.Via != "" && call.Session.Peer().IsServer() {
			return f(ctx, call)
		}
		var args struct{ Node *struct{ ID string } }
		if err := call.Args(&args); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		}
		if args.Node == nil || e.Router.Snapshot().Node(nil, args.Node.ID) == nil {
			if err := e.chargeHost(call.Session.Addr(), max(call.Size(), unknownCost)); err != nil {
				return err
			}
		}
		return f(ctx, call)
	}
}

// chargeHost counts a registration against the rate of the host that it comes from. It returns an error if the host has used its rate up.
func (e *Endpoint) chargeHost(addr string, cost int) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	wait := e.hostRates.take(host, cost, e.Now())
	if wait == 0 {
		return nil
	}
	if e.logLimit.AllowOf("host rate", host, e.Now()) {
		e.Logger.Warn("a host registers more new nodes than `limits { node_max_bytes_per_second }` allows; the registrations are refused, and that is not logged for an hour", "host", host)
	}
	return structs.Errorf(structs.CodeLimited, "new nodes at %s: their registrations have more than %d bytes per second (%d times `limits { node_max_bytes_per_second }` of the servers)",
		host, hostRate*e.MaxRate, hostRate).WithHint("try again in %v", wait)
}

// nodeRates are how much nodes, or hosts, have sent lately.
type nodeRates struct {
	rate  float64 // bytes per second; 0: no limit
	burst float64 // bytes at once, of who was silent
	mu    sync.Mutex
	nodes map[string]nodeRate
	sweep int // how many there may be before those that have been silent are forgotten
}

// nodeRate is what a node had spent at a time; it gets that back at its rate.
type nodeRate struct {
	spent float64
	at    time.Time
}

// fewRates are never looked through for those to be forgotten.
const fewRates = 1024

// left returns what is spent still.
func (n nodeRate) left(rate float64, now time.Time) float64 {
	return max(0, n.spent-rate*max(0, now.Sub(n.at).Seconds()))
}

// take notes that a node spends so much, or returns how long it has to wait before it may. A node that has spent nothing may spend any
// amount.
func (r *nodeRates) take(id string, cost int, now time.Time) (wait time.Duration) {
	if r.rate <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	spent := r.nodes[id].left(r.rate, now)
	if over := spent + float64(cost) - r.burst; over > 0 && spent > 0 {
		return time.Duration(math.Ceil(min(over, spent)/r.rate)) * time.Second
	}
	if r.nodes == nil {
		r.nodes = map[string]nodeRate{}
	}
	r.nodes[id] = nodeRate{spent + float64(cost), now}
	if len(r.nodes) > max(r.sweep, fewRates) {
		for other, n := range r.nodes { // order does not matter: each is looked at by itself
			if n.left(r.rate, now) == 0 {
				delete(r.nodes, other)
			}
		}
		r.sweep = 2 * len(r.nodes)
	}
	return 0
}

// checkReport returns a node's report of one of its allocations as it is kept, with what is too long cut. It returns an error if no
// client sends such a thing.
func checkReport(snap *state.Snapshot, row *state.AllocRow, u *structs.AllocClientUpdate) (*structs.AllocClientUpdate, error) {
	if err := u.CheckLimits(); err != nil {
		return nil, err
	}
	given := row.Resources()
	unchecked := 0
	for name := range u.TaskStates { // order does not matter: any that is wrong will do
		if given != nil && given.Tasks[name] != nil {
			continue
		}
		has, known := hasTask(snap, u.ID, name)
		if !has {
			return nil, structs.Errorf(structs.CodeBadRequest, "allocation %s has no task %q", u.ID, structs.CutText(name, rpc.MaxNamed))
		}
		if known {
			continue
		}
		if unchecked++; unchecked > maxUnchecked {
			return nil, structs.Errorf(structs.CodeBadRequest, "allocation %s: its job is no longer known, and for such an allocation at most %d task states are accepted", u.ID, maxUnchecked)
		}
	}
	return u.Cut(structs.MaxTaskText, structs.MaxTaskEvents), nil
}

const (
	// maxUnchecked bounds the tasks in a report of an allocation whose job is not known: nothing states which tasks it has.
	maxUnchecked = 256
)

// hasTask reports whether the group of an allocation has a task, and whether that is known: where its job's version is not, any short name
// may be one.
func hasTask(snap *state.Snapshot, allocID, name string) (has, known bool) {
	a := snap.AllocToDecide(allocID)
	if a == nil || a.Job == nil {
		return len(name) <= rpc.MaxNamed, false
	}
	g := a.Job.LookupTaskGroup(a.TaskGroup)
	return g != nil && g.LookupTask(name) != nil, true
}
