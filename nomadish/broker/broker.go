package broker

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/structs"
)

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options tunes a broker. Zero values are replaced by the defaults named.
type Options struct {
	NackTimeout   time.Duration // a worker that says nothing for this long has lost its evaluation (1 min)
	DeliveryLimit int           // after so many failures an evaluation has failed (3)
	FirstDelay    time.Duration // before the second delivery (1 s)
	LaterDelay    time.Duration // before further ones (20 s)
	FollowUpDelay time.Duration // before the evaluation that follows a failed one (1 min)
	NewID         func() string
	Logger        hclog.Logger
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
	set(&o.FollowUpDelay, time.Minute)
	if o.DeliveryLimit <= 0 {
		o.DeliveryLimit = 3
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
}

// Broker hands out evaluations. It is safe for use by many goroutines.
type Broker struct {
	opts    Options
	applier Applier
	// latest is the newest index of the state: what a worker must see of the
	// evaluation of the same job before its own.
	latest func() uint64

	mu      sync.Mutex
	enabled bool
	paused  bool
	ready   map[string]*queue              // by job type: may be taken
	serial  map[structs.NamespacedID]*lane // by job
	known   map[string]*item               // by evaluation ID: all of the above and the delayed
	wake    chan struct{}                  // closed and replaced when something may be taken
	blocked *blocked
	chores  *chores
}

// item is one evaluation in the broker.
type item struct {
	eval     *structs.Evaluation
	seq      uint64 // order of arrival
	index    int    // in its heap
	failures int
	token    string // while a worker holds it
	timer    *time.Timer
	taken    time.Time
	since    time.Time
	again    *structs.Evaluation // to be taken in once more when it is answered
}

// lane is a job's evaluations: one ready or held, at most one behind it.
type lane struct {
	current *item
	next    *item
}

// New makes a broker; it does nothing until it is run.
func New(opts Options, applier Applier, latest func() uint64) *Broker {
	opts.defaults()
	b := &Broker{opts: opts, applier: applier, latest: latest, wake: make(chan struct{})}
	b.reset(false)
	return b
}

// reset forgets everything.
func (b *Broker) reset(enabled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.known {
		if it.timer != nil {
			it.timer.Stop()
		}
	}
	b.enabled = enabled
	b.ready = map[string]*queue{}
	b.serial = map[structs.NamespacedID]*lane{}
	b.known = map[string]*item{}
	b.blocked = newBlocked()
	b.awake()
}

func (b *Broker) awake() {
	close(b.wake)
	b.wake = make(chan struct{})
}

func notLeader() error {
	return structs.Errorf(structs.CodeNoLeader, "evaluation broker is not running here").WithHint("only the leader hands out evaluations")
}

// Pause stops or resumes handing out (scheduler configuration: PauseEvalBroker).
func (b *Broker) Pause(paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused != paused {
		b.paused = paused
		b.awake()
	}
}

// enqueue takes a pending evaluation in. One that is known already is left alone.
func (b *Broker) enqueue(eval *structs.Evaluation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if it, ok := b.known[eval.ID]; ok {
		if it.token == "" {
			it.eval = eval
		} else if eval.ModifyIndex > it.eval.ModifyIndex {
			it.again = eval // blocked and woken before its worker answered
		}
		return
	}
	it := &item{eval: eval, seq: eval.CreateIndex, since: time.Now()}
	b.known[eval.ID] = it
	if wait := time.Until(eval.WaitUntil); !eval.WaitUntil.IsZero() && wait > 0 {
		b.delay(it, wait)
		return
	}
	b.admit(it)
}

// delay puts it aside for a while.
func (b *Broker) delay(it *item, wait time.Duration) {
	it.timer = time.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.known[it.eval.ID] == it && it.token == "" {
			it.timer = nil
			b.admit(it)
		}
	})
}

// admit makes it ready, or puts it behind the evaluation of its job that is. Behind
// that there is room for one: the later of two sees all that the earlier would.
func (b *Broker) admit(it *item) {
	id := it.eval.Job()
	l := b.serial[id]
	if l == nil {
		l = &lane{}
		b.serial[id] = l
	}
	if l.current == nil {
		l.current = it
		b.offer(it)
		return
	}
	older := it
	if l.next == nil || l.next.seq < it.seq {
		older, l.next = l.next, it
	}
	if older != nil {
		delete(b.known, older.eval.ID)
		b.chores.cancel(older.eval, "a newer evaluation of the job waits already")
	}
}

func (b *Broker) offer(it *item) {
	q := b.ready[it.eval.Type]
	if q == nil {
		q = &queue{}
		b.ready[it.eval.Type] = q
	}
	q.push(it)
	b.awake()
}

// forget drops an evaluation that is over, unless a worker holds it and will say so.
func (b *Broker) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, ok := b.known[id]
	if !ok || it.token != "" {
		return
	}
	if it.timer != nil {
		it.timer.Stop()
	}
	delete(b.known, id)
	l := b.serial[it.eval.Job()]
	switch {
	case l == nil:
	case l.current == it:
		b.ready[it.eval.Type].remove(it)
		b.advance(it.eval.Job(), l)
	case l.next == it:
		l.next = nil
	}
}

// advance moves the next evaluation of a job up.
func (b *Broker) advance(id structs.NamespacedID, l *lane) {
	l.current, l.next = l.next, nil
	if l.current == nil {
		delete(b.serial, id)
		return
	}
	b.offer(l.current)
}

// Dequeue gives the first evaluation of the types asked, a token to answer it with,
// and the index that the worker's snapshot must have reached. It waits up to
// timeout; a nil evaluation: none came.
func (b *Broker) Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.Evaluation, string, uint64, error) {
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	for {
		it, wake, err := b.take(schedulers)
		if err != nil {
			return nil, "", 0, err
		}
		if it != nil {
			// Not older than what the job's last evaluation committed.
			return it.eval, it.token, max(it.eval.ModifyIndex, b.latest()), nil
		}
		select {
		case <-wake:
		case <-expired:
			return nil, "", 0, nil
		case <-ctx.Done():
			return nil, "", 0, ctx.Err()
		}
	}
}

func (b *Broker) take(schedulers []string) (*item, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.enabled {
		return nil, nil, notLeader()
	}
	if b.paused {
		return nil, b.wake, nil
	}
	var best *item
	for _, t := range schedulers {
		if q := b.ready[t]; q != nil && q.len() > 0 && (best == nil || q.first().before(best)) {
			best = q.first()
		}
	}
	if best == nil {
		return nil, b.wake, nil
	}
	b.ready[best.eval.Type].remove(best)
	best.token = b.opts.NewID()
	best.taken = time.Now()
	token := best.token
	best.timer = time.AfterFunc(b.opts.NackTimeout, func() {
		b.opts.Logger.Warn("a worker did not answer in time; its evaluation is given out again", "eval", best.eval.ID)
		_ = b.Nack(best.eval.ID, token) // an error: it was answered meanwhile
	})
	metrics.MeasureSince([]string{"nomad", "broker", "wait_time"}, best.since)
	return best, nil, nil
}

// held finds what a worker holds.
func (b *Broker) held(id, token string) (*item, error) {
	it, ok := b.known[id]
	if !ok || it.token == "" || it.token != token {
		return nil, structs.Errorf(structs.CodeStaleRequest, "evaluation %s is not held with that token", id)
	}
	return it, nil
}

// Ack says that an evaluation has been dealt with.
func (b *Broker) Ack(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.held(id, token)
	if err != nil {
		return err
	}
	it.timer.Stop()
	metrics.MeasureSince([]string{"nomad", "broker", "process_time"}, it.taken)
	delete(b.known, id)
	job := it.eval.Job()
	if l := b.serial[job]; l != nil {
		b.advance(job, l)
	}
	if it.again != nil {
		next := &item{eval: it.again, seq: it.again.ModifyIndex, since: time.Now()}
		b.known[id] = next
		b.admit(next)
	}
	return nil
}

// Nack says that an evaluation could not be dealt with: it is given out again, later
// each time, until it has failed too often.
func (b *Broker) Nack(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.held(id, token)
	if err != nil {
		return err
	}
	it.timer.Stop()
	it.timer, it.token = nil, ""
	it.failures++
	job := it.eval.Job()
	l := b.serial[job]
	if it.failures >= b.opts.DeliveryLimit {
		delete(b.known, id)
		b.advance(job, l)
		b.chores.fail(it.eval, b.opts.DeliveryLimit)
		return nil
	}
	// It stays its job's current one: a later evaluation does not pass it.
	wait := b.opts.LaterDelay
	if it.failures == 1 {
		wait = b.opts.FirstDelay
	}
	it.timer = time.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.known[id] == it && it.token == "" && l.current == it {
			it.timer = nil
			b.offer(it)
		}
	})
	return nil
}

// Outstanding gives the token that an evaluation is held with.
func (b *Broker) Outstanding(id string) (token string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, ok := b.known[id]
	if !ok || it.token == "" {
		return "", false
	}
	return it.token, true
}

// Extend gives the holder of an evaluation its whole time anew.
func (b *Broker) Extend(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.held(id, token)
	if err != nil {
		return err
	}
	it.timer.Reset(b.opts.NackTimeout)
	return nil
}

// Stats counts what the broker holds.
type Stats struct {
	Ready, Unacked, Waiting, Pending, Blocked, Escaped int
	ReadyBy                                            map[string]int // by job type
}

// Stats counts now.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{ReadyBy: map[string]int{}, Blocked: len(b.blocked.evals)}
	for t, q := range b.ready {
		s.ReadyBy[t] = q.len()
		s.Ready += q.len()
	}
	for _, l := range b.serial {
		if l.next != nil {
			s.Pending++
		}
	}
	for _, it := range b.known {
		switch {
		case it.token != "":
			s.Unacked++
		case it.timer != nil:
			s.Waiting++
		}
	}
	for _, e := range b.blocked.evals {
		if e.EscapedComputedClass {
			s.Escaped++
		}
	}
	return s
}
