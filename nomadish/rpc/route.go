package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Reign is who leads, as this server knows.
type Reign struct {
	Addr string // RPC; empty: nobody
	ID   string
	// Over ends when this server learns of another leader.
	Over context.Context
}

// Leadership is who leads the servers.
type Leadership interface {
	Reign() Reign
	// IsLeader tells whether this server leads and its leader's parts run.
	IsLeader() bool
	// Verify asks a majority whether this server still leads.
	Verify(ctx context.Context) error
	// Changed is closed when anything of it may have changed.
	Changed() <-chan struct{}
	// LastContact is how long ago this server heard of the leader; negative: never.
	LastContact() time.Duration
}

const (
	defaultHold = 5 * time.Second
	// defaultRegistering keeps a group commit of Raft full, and answers within a fraction of a second.
	defaultRegistering = 256
	// holdStep bounds the wait for a notice that leadership has changed: a leader that
	// cannot be reached may come back without one.
	holdStep = 250 * time.Millisecond
	// writeGrace is how long a write that was passed on may still come back once another
	// server leads: the old leader may have handed over in good order.
	writeGrace = time.Second
)

// write registers a method that only the leader answers.
func write[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return e.routed(false, wire.Unary(f))
}

// fromNodes registers a write that nodes ask their own region's servers for.
func fromNodes[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return ownRegion(e, write(e, f))
}

// read registers a read: the leader answers it, having made sure that it still
// leads, or any server if the caller allows stale answers.
func read[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return e.routed(true, wire.Unary(f))
}

// newer registers a write whose log entry is of a type that not every version which forms clusters knows. The server that is
// asked says so itself: an older leader knows nothing of the method.
func (e *Endpoints) newer(t structs.LogType, here wire.Handler) wire.Handler {
	return e.regional(false, func(ctx context.Context, call *wire.Call) error {
		if err := e.Cluster.Readable(t); err != nil {
			return err
		}
		return e.atLeader(ctx, call, false, here)
	})
}

// local registers a method that every server answers for itself.
func local[A, R any](f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return wire.Unary(f)
}

func (e *Endpoints) routed(isRead bool, here wire.Handler) wire.Handler {
	return e.regional(isRead, func(ctx context.Context, call *wire.Call) error {
		r, err := call.Routing()
		if err != nil {
			return err
		}
		if isRead && r.AllowStale {
			return here(ctx, call)
		}
		return e.atLeader(ctx, call, isRead, here)
	})
}

// atLeader has the leader answer. While there is none, the call is held for a while:
// an election takes less. It is tried again only when nothing can have come of it: a
// write that got to a leader is not, a read is.
func (e *Endpoints) atLeader(ctx context.Context, call *wire.Call, isRead bool, here wire.Handler) error {
	limit := time.NewTimer(e.Hold)
	defer limit.Stop()
	for {
		changed := e.Leadership.Changed()
		err := e.onceAtLeader(ctx, call, isRead, here)
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
				return structs.Errorf(structs.CodeNotLeader, "%w", e.explained(again))
			}
			return e.explained(again)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ErrNothingDone is within an Applier's error when the entry was surely not taken: this
// server does not lead any more.
var ErrNothingDone = errors.New("nothing was done")

// notYet says that nobody has answered and nothing was done.
type notYet struct{ why error } // nil: nobody leads, as Endpoints.noLeader says it at length

func (n *notYet) Error() string {
	if n.why == nil {
		return "No cluster leader"
	}
	return n.why.Error()
}

// explained is why nobody has answered, and what to do.
func (e *Endpoints) explained(n *notYet) error {
	if n.why == nil {
		return e.noLeader()
	}
	return n.why
}

func (e *Endpoints) onceAtLeader(ctx context.Context, call *wire.Call, isRead bool, here wire.Handler) error {
	reign := e.Leadership.Reign()
	if e.Leadership.IsLeader() {
		if isRead && e.Leadership.Verify(ctx) != nil {
			return &notYet{}
		}
		err := here(ctx, call)
		if errors.Is(err, ErrNothingDone) { // a write has one entry
			return &notYet{err}
		}
		return err
	}
	if reign.Addr == "" || reign.ID == e.ID || call.Via == wire.ViaLeader {
		return &notYet{}
	}
	return e.passOn(ctx, call, isRead, reign)
}

// passOn passes a call on to the leader. When another server takes over meanwhile, a
// read turns to that one; of a write nobody knows then what has come of it.
func (e *Endpoints) passOn(ctx context.Context, call *wire.Call, isRead bool, to Reign) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(to.Over, func() {
		if isRead {
			cancel()
			return
		}
		time.AfterFunc(writeGrace, cancel)
	})()
	session, err := e.Pool.Session(within, to.Addr)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &notYet{structs.Errorf(structs.CodeNoLeader, "leader %s at %s: %w", to.ID, to.Addr, err).WithHint("try again")}
	}
	err = call.Relay(within, session, wire.ViaLeader, func(e *structs.Error) bool { return e.Code == structs.CodeNotLeader })
	var said *structs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said) && said.Code == structs.CodeNotLeader:
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
	return lost.WithHint("whether it was done is not known: look, then try again")
}
