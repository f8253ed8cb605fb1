package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

var (
	nackCount   = telemetry.NewCount("nomad.broker.nack")
	waitTime    = telemetry.NewTimer("nomad.broker.wait_time")
	processTime = telemetry.NewTimer("nomad.broker.process_time")
)

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options tunes a broker. Zero values are replaced by the defaults named.
type Options struct {
	NackTimeout   time.Duration // a worker that is silent for this long has lost its evaluation (1 min)
	DeliveryLimit int           // after so many failures an evaluation has failed (3)
	FirstDelay    time.Duration // before the second delivery (1 s)
	LaterDelay    time.Duration // before the third; each further one waits twice as long (20 s)
	MaxDelay      time.Duration // no such wait is longer (5 min)
	FollowUpDelay time.Duration // before the evaluation that follows a failed one (1 min)
	// LeaseLimit is how long others wait for what a worker has: then it counts in the
	// gate of its pool no more (5 s). GateLimit is how long a ready evaluation waits
	// for the gate before it is given out all the same (500 ms): it may have something
	// to stop; what it places does not overtake anybody.
	LeaseLimit time.Duration
	// Keys, not nil, are those of the state that the broker begins with.
	Keys      *RequestKeys
	GateLimit time.Duration
	// Unread: nobody reads why requests wait, as the state is a fork that is gone soon (see worker.PassOptions).
	Unread bool
	NewID  func() string // mints tokens and evaluation IDs; needed
	Clock  clock.Clock   // (the machine's)
	Logger hclog.Logger
}

func (o *Options) defaults() {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.NackTimeout, time.Minute)
	set(&o.FirstDelay, time.Second)
	set(&o.LaterDelay, 20*time.Second)
	set(&o.MaxDelay, 5*time.Minute)
	set(&o.FollowUpDelay, time.Minute)
	set(&o.LeaseLimit, 5*time.Second)
	set(&o.GateLimit, 500*time.Millisecond)
	if o.DeliveryLimit <= 0 {
		o.DeliveryLimit = 3
	}
	o.Clock = clock.Or(o.Clock)
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
}

var responseTime = telemetry.NewTimer("nomad.broker.response_time")

// Broker hands out evaluations. It is safe for use by many goroutines.
type Broker struct {
	opts    Options
	applier Applier
	// latest is the newest index of the state here: whoever takes an evaluation must
	// see what the one of the same job before it has committed.
	latest func() uint64

	mu      sync.Mutex
	enabled bool
	paused  bool
	serial  map[structs.NamespacedID]*lane // by job
	known   map[string]*item               // by evaluation ID: all that are not blocked
	gates   *gates
	blocked *blocked
	chores  *chores
	config  structs.SchedulerConfiguration
	// snapshot returns the newest state, fed the index up to which the feed has its changes.
	snapshot func() *state.Snapshot
	fed      func() uint64

	ending   []*item       // answered; they end in this order, which is that of ends
	seen     uint64        // how far the broker has followed the feed
	watched  chan struct{} // closed when it has followed on; nil: nobody waits for that
	lessened uint64        // when nodes last came to be of less use, or the configuration changed
	round    uint64        // the state on which the applier judges: what is in pool.left was judged on it
}

// New returns a new Broker; it refuses to hand out anything until it is run. latest returns
// the newest index that the state here has reached.
func New(opts Options, applier Applier, latest func() uint64) *Broker {
	opts.defaults()
	b := &Broker{opts: opts, applier: applier, latest: latest}
	world := func() *scheduler.World { return b.snapshot().World() }
	b.gates = newGates(&b.opts, world)
	b.blocked = &blocked{gates: b.gates, config: &b.config, latest: latest, after: b.after, world: world}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	return b
}

// clear forgets everything.
func (b *Broker) clear() {
	for _, it := range b.known { // order does not matter: all are stopped
		it.stop()
	}
	b.gates.clear()
	b.serial = map[structs.NamespacedID]*lane{}
	b.known = map[string]*item{}
	b.ending = nil
	b.gates.dequeued = map[string]time.Time{}
	b.blocked.clear()
	b.chores = newChores(b.opts.NewID, b.opts.Clock, b.opts.FollowUpDelay)
}

func (b *Broker) now() time.Time { return b.opts.Clock.Now() }

func notLeader() error {
	return structs.Errorf(structs.CodeNoLeader, "evaluation broker is not running here").WithHint("only the leader hands out evaluations")
}

func (b *Broker) pause(paused bool) {
	if b.paused != paused {
		b.paused = paused
		b.gates.awake()
		b.gates.poke()
	}
}

// enqueue takes a pending evaluation in.
func (b *Broker) enqueue(snap *state.Snapshot, eval *structs.Evaluation, failures int) {
	if it, ok := b.known[eval.ID]; ok {
		switch {
		case it.token == "":
			it.eval = eval // its position stays
		case eval.ModifyIndex > it.eval.ModifyIndex:
			it.again = eval // blocked and woken before its worker answered
		}
		return
	}
	it := &item{eval: eval, seq: eval.CreateIndex, since: b.now(), failures: failures}
	it.position = b.positionOfItem(snap, it)
	b.known[eval.ID] = it
	if wait := eval.WaitUntil.Sub(b.now()); !eval.WaitUntil.IsZero() && wait > 0 {
		it.since = eval.WaitUntil
		b.after(&it.timer, wait, func() { b.admit(it) })
		return
	}
	b.admit(it)
}

// after has f done later, with the lock held, unless the timer is stopped or set again before.
func (b *Broker) after(set *clock.Timer, wait time.Duration, f func()) {
	var timer clock.Timer
	timer = b.opts.Clock.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if *set == timer { // else it was stopped when this was on its way
			*set = nil
			f()
		}
	})
	*set = timer
}

// admit makes an evaluation ready, or puts it behind the one of its job.
func (b *Broker) admit(it *item) {
	l := b.serial[it.eval.Job()]
	if l == nil {
		l = &lane{}
		b.serial[it.eval.Job()] = l
	}
	if l.current == nil {
		l.current = it
		b.gates.offer(it)
		return
	}
	older := it
	switch backingOff := l.current.token == "" && l.current.timer != nil; {
	case backingOff && l.current.seq < it.seq:
		// The job may have been mended meanwhile: no use in waiting for the old one.
		older, l.current = l.current, it
		b.gates.offer(it)
	case l.next == nil || l.next.seq < it.seq:
		older, l.next = l.next, it
		if l.current.token != "" {
			l.current.stand(b)
		}
	}
	if older != nil {
		older.stop()
		delete(b.known, older.eval.ID)
		b.chores.cancel(older.eval, "a newer evaluation of the job does its work")
	}
}

// forget drops an evaluation that is not pending any more. One that is leased stays
// until its worker has answered.
func (b *Broker) forget(id string) {
	it, ok := b.known[id]
	if !ok {
		return
	}
	if it.token != "" {
		it.over, it.again = true, nil
		return
	}
	b.drop(it)
}

// drop takes an evaluation out, wherever it is, and moves the next of its job up.
func (b *Broker) drop(it *item) {
	it.stop()
	b.gates.unready(it)
	b.gates.leaves(it, false)
	b.gates.ungate(it)
	delete(b.known, it.eval.ID)
	job := it.eval.Job()
	l := b.serial[job]
	switch {
	case l == nil:
	case l.next == it:
		l.next = nil
	case l.current == it:
		if l.current, l.next = l.next, nil; l.current == nil {
			delete(b.serial, job)
			b.blocked.idle(job)
			if b.gates.raises {
				b.gates.poke()
			}
		} else {
			b.gates.offer(l.current)
		}
	}
}

// Dequeue returns the first evaluation of the requested types, a token to answer it with,
// the index that the state it is decided on must have reached, and whether that is to place nothing
// but what is entitled. It waits up to timeout (0: as long as ctx); a nil evaluation: none came. The error is
// structs.ErrNoLeader where the broker does not run, or ctx's.
func (b *Broker) Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	for {
		if err := ctx.Err(); err != nil { // who is gone takes nothing
			return nil, err
		}
		got, wake, later, err := b.take(schedulers)
		if err != nil {
			return nil, err
		}
		if got.Eval != nil {
			return got, nil
		}
		var gated <-chan time.Time
		if later > 0 {
			gated = time.After(later)
		}
		select {
		case <-wake:
		case <-gated:
		case <-expired:
			return got, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns the first evaluation, or what to wait for; later, if not 0, is when one
// has waited for its gate long enough.
func (b *Broker) take(schedulers []string) (got *structs.EvalDequeueReply, wake <-chan struct{}, later time.Duration, err error) {
	got = &structs.EvalDequeueReply{}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.enabled {
		return nil, nil, 0, notLeader()
	}
	for _, kind := range schedulers {
		b.gates.dequeued[kind] = b.now()
	}
	if b.paused {
		return got, b.gates.wake, 0, nil
	}
	var first *item
	for seen := (chan struct{})(nil); seen != b.gates.wake; { // to look may let something on, which may go before what was found
		seen = b.gates.wake
		if first, later = b.first(schedulers); first != nil && first.rank.IsEntitled() {
			b.repositionItem(b.snapshot(), first) // others of its namespace may have taken what was free
		}
	}
	if first == nil {
		return got, b.gates.wake, later, nil
	}
	b.gates.unready(first)
	first.token, first.taken, first.seeds = b.opts.NewID(), b.now(), nil
	b.gates.enter(first) // it may have waited for so long that it did not count any more
	b.expect(first)
	waitTime.If(clock.IsMachine(b.opts.Clock)).Since(first.since)
	got.Eval, got.Token, got.EntitledOnly = first.eval, first.token, first.rank.IsEntitled()
	got.WaitIndex = max(first.eval.ModifyIndex, b.latest())
	return got, nil, 0, nil
}

// first is the first evaluation that may be taken now; nil: there is none, but maybe one later, if that is not 0.
func (b *Broker) first(schedulers []string) (first *item, later time.Duration) {
	for _, key := range b.gates.sortedReady() { // to look at one may move what is in others of its pool
		q := b.gates.ready[key]
		if q == nil || !slices.Contains(schedulers, key.kind) {
			continue
		}
		it, ok := b.gates.firstReady(q)
		if !ok {
			continue
		}
		if p := b.gates.pools[key.pool]; p != nil && b.gates.openAhead(p, it) {
			if wait := b.opts.GateLimit - b.now().Sub(it.since); wait > 0 {
				b.gates.gated = true
				if later == 0 || wait < later {
					later = wait
				}
				continue
			}
		}
		if first == nil || it.before(b.gates, first) {
			first = it
		}
	}
	return first, later
}

// expect lets a lease begin anew: after NackTimeout it ends.
func (b *Broker) expect(it *item) {
	it.stop()
	b.after(&it.timer, b.opts.NackTimeout, func() {
		b.opts.Logger.Warn("a worker did not answer in time; its evaluation is given out again", "eval", it.eval.ID, "job", it.eval.JobID)
		b.handleReply(it, replyNack)
	})
}

// leased finds what a token is the lease of.
func (b *Broker) leased(id, token string) (*item, error) {
	it, ok := b.known[id]
	if !ok || token == "" || it.token != token || it.ends > 0 {
		return nil, structs.Errorf(structs.CodeStaleRequest, "evaluation %s is not leased with that token (any more)", id).
			WithHint("its worker took too long, or the leader changed; it is given out again")
	}
	return it, nil
}

// Ack records that an evaluation has been processed. One that is still pending in the
// state has not been: that is an error, and counts as a Nack.
func (b *Broker) Ack(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.leased(id, token)
	if err != nil {
		return err
	}
	if now := b.snapshot().Eval(nil, id); now != nil && now.Status == structs.EvalStatusPending && now.ModifyIndex <= it.eval.ModifyIndex {
		b.handleReply(it, replyNack)
		return structs.Errorf(structs.CodeConflict, "evaluation %s is still pending: a worker commits its end before it acknowledges it", id)
	}
	b.handleReply(it, replyAck)
	return nil
}

// Nack records that an evaluation could not be processed: it is delivered again, later
// each time, until it has failed too often.
func (b *Broker) Nack(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.leased(id, token)
	if err != nil {
		return err
	}
	nackCount.If(clock.IsMachine(b.opts.Clock)).Add(1)
	b.handleReply(it, replyNack)
	return nil
}

// handleReply acts on a worker's reply, or keeps it until its lease is not retained any more.
func (b *Broker) handleReply(it *item, r reply) {
	switch {
	case it.retained > 0:
		it.reply = r
	case r == replyAck || it.over || it.again != nil: // what was to be done has been done
		b.conclude(it)
	default:
		b.backOff(it)
	}
}

// conclude takes an answered evaluation out, once the feed has reported what has become of it:
// were it gone before what it leaves is there, others would overtake that.
func (b *Broker) conclude(it *item) {
	real := clock.IsMachine(b.opts.Clock)
	processTime.If(real).Since(it.taken)
	responseTime.If(real).Since(it.since)
	fed := b.fed()
	if b.seen >= fed {
		b.finish(it)
		return
	}
	it.stop()
	it.ends = fed
	b.ending = append(b.ending, it)
}

// finish takes an evaluation out that has been answered, and takes in what it has become.
func (b *Broker) finish(it *item) {
	b.drop(it)
	if it.again != nil {
		b.enqueue(b.snapshot(), it.again, 0)
	}
}

// backOff lets an evaluation wait for its next delivery. It stays its job's current one.
func (b *Broker) backOff(it *item) {
	it.stop()
	b.gates.leaves(it, false)
	b.gates.ungate(it)
	it.token = ""
	if it.failures++; it.failures >= b.opts.DeliveryLimit {
		b.drop(it)
		b.chores.fail(it.eval, b.opts.DeliveryLimit)
		return
	}
	wait := b.backOffTime(it.failures)
	it.since = b.now().Add(wait)
	if l := b.serial[it.eval.Job()]; l.next != nil {
		// A later one is there already and sees all that this one would.
		b.drop(it)
		b.chores.cancel(it.eval, "a newer evaluation of the job does its work")
		return
	}
	b.after(&it.timer, wait, func() {
		b.repositionItem(b.snapshot(), it)
		b.gates.offer(it)
	})
}

// backOffTime is how long is waited after so many failures.
func (b *Broker) backOffTime(failures int) time.Duration {
	if failures <= 1 {
		return b.opts.FirstDelay
	}
	return min(b.opts.LaterDelay<<min(failures-2, 16), b.opts.MaxDelay)
}

// Outstanding returns the token that an evaluation is leased with.
func (b *Broker) Outstanding(id string) (token string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, ok := b.known[id]
	if !ok || it.token == "" || it.ends > 0 {
		return "", false
	}
	return it.token, true
}

// Retain keeps an evaluation leased while a plan of it is being committed: until unretain is
// called, neither the nack timeout nor its worker's word lets anybody else take it or
// another evaluation of its job. It is refused (false) without the right token,
// when the worker has given the evaluation back already, and for a plan that came before
// (seed is the plan's own, "": it places nothing): what of it was refused then has been
// decided anew.
func (b *Broker) Retain(id, token, seed string) (unretain func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.leased(id, token)
	if err != nil || it.reply != replyNone || slices.Contains(it.seeds, seed) {
		return nil, false
	}
	if seed != "" {
		it.seeds = append(it.seeds, seed)
	}
	it.retained++
	return sync.OnceFunc(func() { b.unretain(it) }), true
}

func (b *Broker) unretain(it *item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it.retained--
	if it.retained > 0 || b.known[it.eval.ID] != it {
		return
	}
	if kept := it.reply; kept != replyNone {
		it.reply = replyNone
		b.handleReply(it, kept)
		return
	}
	if it.entry == nil { // the pass answers when all of its plans are through
		b.expect(it) // the time that Raft took is not the worker's
	}
}

// Renew lets a lease begin anew, with its whole time.
func (b *Broker) Renew(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.leased(id, token)
	if err != nil {
		return err
	}
	if it.reply == replyNone {
		b.expect(it)
	}
	return nil
}
