package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// LeaderInfo is the leader and its term, as this server knows them.
type LeaderInfo struct {
	Addr string // RPC; empty: nobody
	ID   string
	// Over ends when this server learns of another leader.
	Over context.Context
}

// Leadership is who leads the servers.
type Leadership interface {
	Leader() LeaderInfo
	// IsLeader reports whether this server leads and its leader's parts run.
	IsLeader() bool
	// Verify confirms with a majority that this server still leads.
	Verify(ctx context.Context) error
	// Changed is closed when anything of it may have changed.
	Changed() <-chan struct{}
	// LastContact is how long ago this server heard of the leader; negative: never.
	LastContact() time.Duration
}

const (
	defaultHold = 5 * time.Second
	// holdStep bounds the wait for a notice that leadership has changed: a leader that
	// cannot be reached may come back without one.
	holdStep = 250 * time.Millisecond
	// writeGrace is how long a write that was passed on may still come back once another
	// server leads: the old leader may have handed over in good order.
	writeGrace = time.Second
)

// Write registers a method that only the leader answers.
func Write[A, R any](r *Router, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return r.Routed(false, wire.Unary(f))
}

// FromNodes registers a write that nodes request of their own region's servers.
func FromNodes[A, R any](r *Router, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return r.OwnRegion(Write(r, f))
}

// Read registers a read: the leader answers it, having made sure that it still
// leads, or any server if the caller allows stale answers.
func Read[A, R any](r *Router, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return r.Routed(true, wire.Unary(f))
}

// VersionedWrite registers a write whose log entry is of a type that not every version which forms clusters knows. The server that is
// queried reports it itself: an older leader knows nothing of the method.
func VersionedWrite[A, R any](r *Router, t structs.LogType, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	here := wire.Unary(f)
	return r.Regional(false, func(ctx context.Context, call *wire.Call) error {
		if err := r.Cluster.Readable(t); err != nil {
			return err
		}
		return r.atLeader(ctx, call, false, here)
	})
}

// VersionedRead registers a read of what log entries of such a type write. While some server of the region does not know the type there
// is nothing to read but what is built in, and the server that is queried answers itself: an older leader knows nothing
// of the method.
func VersionedRead[A, R any](r *Router, t structs.LogType, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	here := wire.Unary(f)
	routed := r.Routed(true, here)
	return r.Regional(true, func(ctx context.Context, call *wire.Call) error {
		if !r.Leadership.IsLeader() && r.Cluster.Readable(t) != nil {
			return here(ctx, call)
		}
		return routed(ctx, call)
	})
}

// Local registers a method that every server answers for itself.
func Local[A, R any](f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return wire.Unary(f)
}

// Routed returns a handler that has the leader answer, or this server a read that may be stale.
func (r *Router) Routed(isRead bool, here wire.Handler) wire.Handler {
	return r.Regional(isRead, func(ctx context.Context, call *wire.Call) error {
		routing, err := call.Routing()
		if err != nil {
			return err
		}
		if isRead && routing.AllowStale {
			return here(ctx, call)
		}
		return r.atLeader(ctx, call, isRead, here)
	})
}

// atLeader has the leader answer. While there is none, the call waits for a while:
// an election takes less. It is tried again only when nothing can have come of it: a
// write that got to a leader is not, a read is.
func (r *Router) atLeader(ctx context.Context, call *wire.Call, isRead bool, here wire.Handler) error {
	limit := time.NewTimer(r.Hold)
	defer limit.Stop()
	for {
		changed := r.Leadership.Changed()
		err := r.onceAtLeader(ctx, call, isRead, here)
		var again *notYet
		if !errors.As(err, &again) {
			return err
		}
		if call.Via == wire.ViaLeader { // whoever passed it on will look for another
			return structs.Errorf(structs.CodeNotLeader, "%s", again)
		}
		select {
		case <-changed:
		case <-time.After(holdStep):
		case <-limit.C:
			if call.Via == wire.ViaRegion || call.Session != nil { // as above: another server of this region may know one
				return structs.Errorf(structs.CodeNotLeader, "%w", r.explained(again))
			}
			return r.explained(again)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Applied commits a log entry, and returns the reply to the write that it is.
func Applied(ctx context.Context, a Applier, t structs.LogType, entry any) (*structs.WriteReply, error) {
	index, err := a.Apply(ctx, t, entry)
	if err != nil {
		return nil, err
	}
	return &structs.WriteReply{WriteMeta: structs.WriteMeta{Index: index}}, nil
}

// notYet returns the error for a call that no server has answered and that had no effect.
type notYet struct{ why error } // nil: nobody leads, as Router.NoLeader describes

func (n *notYet) Error() string {
	if n.why == nil {
		return "No cluster leader"
	}
	return n.why.Error()
}

// explained is why nobody has answered, and what to do.
func (r *Router) explained(n *notYet) error {
	if n.why == nil {
		return r.NoLeader()
	}
	return n.why
}

func (r *Router) onceAtLeader(ctx context.Context, call *wire.Call, isRead bool, here wire.Handler) error {
	term := r.Leadership.Leader()
	if r.Leadership.IsLeader() {
		if isRead && r.Leadership.Verify(ctx) != nil {
			return &notYet{}
		}
		err := here(ctx, call)
		if errors.Is(err, structs.ErrNothingDone) { // a write has one entry
			return &notYet{err}
		}
		return err
	}
	if term.Addr == "" || term.ID == r.ID || call.Via == wire.ViaLeader {
		return &notYet{}
	}
	return r.passOn(ctx, call, isRead, term)
}

// passOn passes a call on to the leader. When another server takes over meanwhile, a
// Read turns to that one; of a write nobody knows then what has come of it.
func (r *Router) passOn(ctx context.Context, call *wire.Call, isRead bool, to LeaderInfo) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(to.Over, func() {
		if isRead {
			cancel()
			return
		}
		time.AfterFunc(writeGrace, cancel)
	})()
	session, err := r.Pool.Session(within, to.Addr)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &notYet{structs.Errorf(structs.CodeNoLeader, "leader %s at %s: %w", to.ID, to.Addr, err).WithHint("try again")}
	}
	err = call.Relay(within, session, wire.ViaLeader, func(refusal *structs.Error) bool { return refusal.Code == structs.CodeNotLeader })
	var refusal *structs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal) && refusal.Code == structs.CodeNotLeader:
		return &notYet{}
	case ctx.Err() != nil:
		return ctx.Err()
	case call.Answered(), !errors.Is(err, wire.ErrSessionClosed) && within.Err() == nil:
		return fmt.Errorf("leader %s: %w", to.ID, err)
	}
	lost := structs.Errorf(structs.CodeNoLeader, "leader %s was lost before it answered", to.ID)
	if isRead {
		return &notYet{lost.WithHint("try again")}
	}
	return lost.WithHint("the request may have been applied; check before retrying")
}
