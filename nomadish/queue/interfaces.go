package queue

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// What the other parts of a server need of the queue is declared here and nowhere else, one
// interface a part. docs/design/queue.md shows in which order they are called.

// Leader is the leader as a worker calls it, on this server or on another one.
type Leader interface {
	Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error)
	Ack(ctx context.Context, evalID, token string) error
	Nack(ctx context.Context, evalID, token string) error
	Submit(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error)
	// Update stores evaluations for the worker with that lease.
	Update(ctx context.Context, evalID, token string, evals []*structs.Evaluation) error
}

// Evaluations is the queue as the RPC endpoints call it for the workers of other servers. It
// answers only on the leader.
type Evaluations interface {
	Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error)
	Ack(id, token string) error
	Nack(id, token string) error
	Outstanding(id string) (token string, ok bool)
}

// Requests is the blocked requests in the order of their ranks, as the queue pass sees them. It is
// for one goroutine.
type Requests interface {
	// Await waits until there may be a request to be tried; the error is ctx's.
	Await(ctx context.Context) error
	// Next returns the first that must be tried, to be decided on the state of index; again
	// reports that one must be, but not on so old a state. It is the pass's until one of
	// the following is reported about it. Those that are hopeless are taken to have been tried (nil: none is).
	Next(index uint64, hopeless Hopeless) (lease *Lease, again bool)
	// Tried: there is no room for any of it. left is how it waits on.
	Tried(lease *Lease, index uint64, left *structs.Evaluation)
	// Planned: a plan of it is on its way. There is no room for what it leaves (nil: it leaves nothing); shares are those with what
	// it places.
	Planned(lease *Lease, index uint64, left *structs.Evaluation, shares Shares)
	// Answered: its plan has been committed; or, with again, must be decided anew; or,
	// with failed, could not be made or committed.
	Answered(lease *Lease, again, failed bool)
}

// Hopeless reports whether a request need not be tried, as it is of a kind that found no room before some nodes, and nothing else, came to have more,
// and these have too little for it now; or, with Due set, as its time alone has come, which changes nothing for it, and no node has enough: then again is
// when it is due next (zero: never).
type Hopeless func(r Untried) (hopeless bool, again time.Time)

// Untried is a request that may be hopeless.
type Untried struct {
	Eval  *structs.Evaluation
	Kind  *scheduler.RequestKey
	Nodes []string // that came to have more; nil: these are too many to be listed, or it is due
	Due   bool
	// Early: others go before it. What comes of these may end reservations, which alone it would not be tried for once more.
	Early bool
	// Alone: no other request is of its kind. Reserved is how many reservations its job has.
	Alone    bool
	Reserved int
}

// Shares are dominant shares of a node pool, in whole percent (semantics part 7). A World has them.
type Shares interface {
	Share(pool, namespace string) int
	UserShare(pool, user string) int
}

// Raises is what may be raised, as the queue pass sees it once nothing entitled is left to be tried. It is for one goroutine.
type Raises interface {
	// DueRaises returns the owners of whom something may be raised, each once until cells come free again. again reports that
	// there are others, of whom the state of index does not show it yet.
	DueRaises(index uint64) (due []string, again bool)
	// LeaseRaise leases an evaluation that is not in the state, until Answered. nil: not now; its owner is due again then.
	LeaseRaise(e *structs.Evaluation, owner string) *Lease
}

// Leases is the plan applier's view of the evaluations' leases.
type Leases interface {
	// Retain keeps a lease from ending until unretain; false: the token is not (or no longer)
	// that of the lease, or the plan with that seed came before. A plan without a seed
	// places nothing.
	Retain(evalID, token, seed string) (unretain func(), ok bool)
}

// Gate is the plan applier's view of what must be tried before others are placed
// (semantics part 7). Its methods do not block, but CatchUp.
type Gate interface {
	// CatchUp waits until the gates know what every snapshot shows that was taken before.
	CatchUp(ctx context.Context) error
	// Admit reports whether placements of an evaluation may be judged on the state of base;
	// freed states that plans judged since have freed room on it.
	Admit(evalID string, base uint64, freed bool) Admission
	// Judged records that a plan of an evaluation has been judged, whether all of it was accepted, and
	// which blocked evaluation it leaves (nil: none). shares are those with what was accepted; nil: they are as before.
	Judged(evalID string, whole bool, left *structs.Evaluation, shares Shares)
	// SendBack has an evaluation given out again when its rank allows.
	SendBack(evalID, token string)
	// Gates has a value whenever a gate may have opened.
	Gates() <-chan struct{}
}

// The Broker is all of them but the Leader, which the wiring of a server makes of it, of the
// plan applier and of the RPC methods.
var (
	_ Evaluations = (*Broker)(nil)
	_ Requests    = (*Broker)(nil)
	_ Raises      = (*Broker)(nil)
	_ Leases      = (*Broker)(nil)
	_ Gate        = (*Broker)(nil)
)
