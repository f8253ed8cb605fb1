package forecast

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// FutureOptions are how a future is run.
type FutureOptions struct {
	Now time.Time // when it begins; needed
	// Entries bounds the log entries that are applied (200,000), and Reserving the groups that wait and get reservations (1,000).
	Entries   int
	Reserving int
	// Expected: instances run as long as the finished runs of their job, or else of their user, did in the mean. Otherwise they take all the time that they may.
	Expected bool
	// Lasting, not nil, returns how long an instance of a group runs unless its time limit ends it before: the future is then a replay of what is known to
	// have happened, in which the scheduler learns what is typically requested as time goes on.
	Lasting func(job *structs.Job, group string) time.Duration
	// See, not nil, sees where instances are.
	See Observer
	// IDs is what all IDs that the leader's parts mint derive from.
	IDs string
}

// Future is a fork of a state in virtual time, with a leader and a model of clients, which its caller runs on step by step. It is for one
// goroutine, and must be closed.
type Future struct {
	*leader
	o       FutureOptions
	fork    *fork
	clients *clients
	ended   string

	noReservations bool
}

// Observer sees where instances are.
type Observer interface {
	// Started is called when an instance starts.
	Started(in Instance)
	// Left is called when its room comes free, or when the servers stop it.
	Left(in Instance)
}

// Instance is an instance on its node.
type Instance struct {
	Job   structs.NamespacedID
	Group string
	Name  string // job.group[index]
	Node  string // its ID
}

// NewFuture returns a future of the state that a store has now.
func NewFuture(base *state.Store, o FutureOptions) *Future {
	if o.Entries <= 0 {
		o.Entries = maxEntries
	}
	if o.Reserving <= 0 {
		o.Reserving = maxReserving
	}
	base = fsm.NewFork(base, 1).Store
	snap := base.Snapshot()
	f := &Future{o: o, fork: newFork(base, o.Entries)}
	reserveFrom := o.Now.Add(1)
	if len(waiting(snap, o.Now.UnixNano())) > o.Reserving {
		reserveFrom, f.noReservations = o.Now.Add(2*structs.MaxForecastHorizon), true
	}
	lasting := latest
	if o.Expected {
		if past := historyOf(snap); !past.empty() {
			lasting = past.lasting
		}
	}
	typicals, see := worker.LearnOnce(), observer(unseen{})
	if o.Lasting != nil {
		lasting, typicals = o.lasting, worker.NewTypicals()
	}
	if o.See != nil {
		see = seen{o.See}
	}
	f.leader = newLeader(f.fork.Store, f.fork.apply, o.Now, ids(o.IDs), worker.PassOptions{
		ReserveFrom: reserveFrom, Explain: never, ExplainEach: never, Unread: true, Typicals: typicals,
	}, queue.Options{})
	f.drop = f.fork.Drop
	f.clients = newClients(f.leader, lasting, see)
	return f
}

// Store returns the state, which nobody but the future writes to.
func (f *Future) Store() *state.Store { return f.fork.Store }

// NewID mints an ID.
func (f *Future) NewID() string { return f.newID() }

// At has something done at a time of the future.
func (f *Future) At(when time.Time, do func()) { f.at(when, do) }

// NoReservations reports whether so many groups wait at the beginning that none reserves room anew.
func (f *Future) NoReservations() bool { return f.noReservations }

// Spent reports whether as many log entries have been applied as may be, so that the future ends when it is run.
func (f *Future) Spent() bool { return f.fork.spent() }

// Ended states why the future cannot be run on; empty: it can.
func (f *Future) Ended() string { return f.ended }

// Why states why not all instances of a group have started that wait: that none can on the nodes that there are, if none has, or else what holds its room
// in its pool, as nobody knows when it ends. Empty: neither is known.
func (f *Future) Why(job structs.NamespacedID, group string, none bool) string {
	snap := f.Store().Snapshot()
	if none {
		if why := tooLarge(snap, job, group); why != "" {
			return why
		}
	}
	if f.ended != "" {
		return "" // what holds it may have ended next
	}
	pool := structs.DefaultNodePool
	if j := snap.Job(nil, job.Namespace, job.ID); j != nil {
		pool = cmp.Or(j.NodePool, pool)
	}
	return f.clients.holding(pool)
}

// Close ends the future.
func (f *Future) Close() { f.stop() }

// Run runs the future until a time, or until done reports true, which is called whenever nothing is left to be done at the time that it is. look is called
// after every step, when the state may have changed. ctx bounds the time that it takes. It returns an error if a part of the leader fails.
func (f *Future) Run(ctx context.Context, until time.Time, look func() error, done func() bool) (err error) {
	defer func() {
		if r := recover(); r != nil { // the future must not take the present with it
			err = structs.Errorf(structs.CodeInternal, "the future panicked: %v", r)
		}
	}()
	step := func(ctx context.Context) error {
		if err := f.clients.follow(ctx); err != nil {
			return err
		}
		return look()
	}
	for f.ended == "" {
		switch err := f.settle(ctx, step); {
		case f.fork.spent():
			f.ended = fmt.Sprintf("it ends after %d log entries, at %s", f.o.Entries, f.now.UTC().Format(time.RFC3339))
		case ctx.Err() != nil:
			f.ended = fmt.Sprintf("it ran out of time at %s", f.now.UTC().Format(time.RFC3339))
		case err != nil:
			return fmt.Errorf("run the future: %w", err)
		case done():
			return nil
		case !f.advance(until):
			f.now = until
			return nil
		}
	}
	return nil
}

// unseen is an observer that nothing is done by.
type unseen struct{}

func (unseen) placed(*instance)  {}
func (unseen) starts(*instance)  {}
func (unseen) ended(*instance)   {}
func (unseen) stopped(*instance) {}

// lasting returns how long an instance runs, in all.
func (o *FutureOptions) lasting(in *instance, ran time.Duration) time.Duration {
	took := max(1, o.Lasting(in.is.job, in.group), ran)
	if most := latest(in, ran); most > 0 {
		return min(took, most)
	}
	return took
}

// seen is an observer that passes on where instances are.
type seen struct{ Observer }

func (s seen) instance(in *instance) Instance { return Instance{in.job, in.group, in.name, in.node} }

func (s seen) placed(*instance)     {}
func (s seen) starts(in *instance)  { s.Started(s.instance(in)) }
func (s seen) ended(in *instance)   { s.Left(s.instance(in)) }
func (s seen) stopped(in *instance) { s.Left(s.instance(in)) }
