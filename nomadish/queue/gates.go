package queue

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler"
)

// gates are the queues of the node pools: what each has ready for workers, and what it counts in its gate. See gate.go for
// what counts. The Broker's lock protects it.
type gates struct {
	opts   *Options
	pools  map[string]*pool
	ready  map[readyKey]*fairHeap[*item]
	shares map[string]*poolShares // those that were looked up, by pool; see shares.go
	latest struct {               // of shares, as it was looked up last; nil: look it up
		pool string
		of   *poolShares
	}
	users    bool // a job that waits, or waited, has a user: only then is any looked up of users
	world    func() *scheduler.World
	keys     []readyKey            // of ready, as sortedReady returned them last
	dequeued map[string]time.Time  // by job type: when a worker last wanted one
	wake     chan struct{}         // closed and replaced when something may be taken
	gated    bool                  // something ready waits for a gate
	raises   bool                  // something may be raised
	later    map[*group]laterRound // the groups that are to be tried in a later round of lending
	opened   chan struct{}         // has a token when a gate may have opened
	untried  chan struct{}         // has a token when there may be something for a queue pass
}

func newGates(opts *Options, world func() *scheduler.World) *gates {
	g := &gates{opts: opts, world: world, wake: make(chan struct{}), opened: make(chan struct{}, 1), untried: make(chan struct{}, 1)}
	g.clear()
	return g
}

// clear forgets everything. Who waits, waits on.
func (g *gates) clear() {
	g.pools = map[string]*pool{}
	g.ready = map[readyKey]*fairHeap[*item]{}
	g.shares, g.users, g.later = map[string]*poolShares{}, false, map[*group]laterRound{}
	g.latest.of = nil
}

// pool is the queue of a node pool.
type pool struct {
	// gate is what workers have or may take and that may place something, until its plan
	// has been judged; pass what the queue pass has.
	gate *fairHeap[*item]
	pass *fairHeap[*item]
	// given is the last one of each tenant by rank of those that pass has, or has had since it had none: what one of them takes raises the shares that
	// ranks are compared by between tenants, and within one they make no difference.
	given map[tenant]*item
	all   *fairHeap[*entries] // of all groups, by their first
	// opened is how many of those are of groups that must be tried. These have no order of their own: a release opens most groups, and what takes its
	// room closes them.
	opened int
	// first is the first entry of the open groups, as refresh saw it last; nil: none was open. reshared: since then shares have moved, so another one may be.
	first    *entry
	reshared bool
	// back is what was sent back, as it would have overtaken others. It is counted in the
	// gate, and taken by nobody until nothing goes before it.
	back   *fairHeap[*item]
	moving bool // what is in back is being let on
	// left is what was judged on the state of the applier's round, or a round on it, and found no room for a part of it; see Broker.round.
	left *fairHeap[*item]
}

// readyKey names a queue of what workers may take: that of a job type and a node pool.
type readyKey struct{ kind, pool string }

func (g *gates) newHeap(index func(*item) *int) *fairHeap[*item] {
	before := func(a, b *item) bool { return a.before(g, b) }
	return newFairHeap(before, before, index, func(it *item) tenant { return tenant{it.eval.Namespace, it.user} })
}

func (g *gates) newGroups(index func(*entries) *int) *fairHeap[*entries] {
	before := func(x, y *entries) bool {
		a, _ := x.first()
		z, _ := y.first()
		return a.before(g, z)
	}
	within := func(x, y *entries) bool { return within(x.list[0], y.list[0]) }
	h := newFairHeap(before, within, index, func(of *entries) tenant { return tenant{of.group.key.namespace, of.user} })
	h.home = func(of *entries) **userHeap[*entries] { return &of.home }
	h.ok = func(of *entries) bool { return of.group.open }
	return h
}

// pool returns the queue of a node pool, made if need be.
func (g *gates) pool(name string) *pool {
	p := g.pools[name]
	if p == nil {
		inGate := func(i *item) *int { return &i.inGate }
		p = &pool{
			gate: g.newHeap(inGate),
			pass: g.newHeap(inGate),
			all:  g.newGroups(func(of *entries) *int { return &of.inWaits }),
			back: g.newHeap(func(i *item) *int { return &i.inBack }),
			left: g.newHeap(func(i *item) *int { return &i.inLeft }),
		}
		g.pools[name] = p
	}
	return p
}

// tidy drops a pool that is empty.
func (g *gates) tidy(name string) {
	if p := g.pools[name]; p != nil && p.gate.len()+p.pass.len()+p.all.len()+p.back.len()+p.left.len() == 0 {
		delete(g.pools, name)
		g.forgetShares(name)
	}
}

// awake lets all that wait in Dequeue look again.
func (g *gates) awake() {
	close(g.wake)
	g.wake = make(chan struct{})
}

// offer lets workers take it.
func (g *gates) offer(it *item) {
	g.readyUp(it)
	g.enter(it)
	g.awake()
}

// readyUp puts an evaluation among what workers may take.
func (g *gates) readyUp(it *item) {
	key := readyKey{it.eval.Type, it.pool}
	q := g.ready[key]
	if q == nil {
		q = g.newHeap(func(i *item) *int { return &i.inReady })
		g.ready[key] = q
	}
	q.put(it)
}

// unready takes it out of what workers may take, if it is there.
func (g *gates) unready(it *item) {
	key := readyKey{it.eval.Type, it.pool}
	if q := g.ready[key]; q != nil {
		if q.remove(it); q.len() == 0 {
			delete(g.ready, key)
		}
	}
	if p := g.pools[it.pool]; p != nil {
		p.back.remove(it)
	}
}

// sortedReady is where something is ready, until it is called again.
func (g *gates) sortedReady() []readyKey {
	g.keys = slices.AppendSeq(g.keys[:0], maps.Keys(g.ready))
	slices.SortFunc(g.keys, func(a, o readyKey) int {
		return cmp.Or(strings.Compare(a.pool, o.pool), strings.Compare(a.kind, o.kind))
	})
	return g.keys
}

// firstReady is the first of a queue that need not wait for its gate however long that takes.
func (g *gates) firstReady(q *fairHeap[*item]) (it *item, ok bool) {
	for it, ok = q.first(); ok && it.sentBack && it.pool != "" && g.behind(g.pool(it.pool), it); it, ok = q.first() {
		g.unready(it)
		g.pool(it.pool).back.put(it)
	}
	return it, ok
}

// enter counts an evaluation in the gate of its pool.
func (g *gates) enter(it *item) {
	if it.pool == "" {
		return
	}
	p := g.pool(it.pool)
	if it.entry != nil {
		p.gave(g, it)
	}
	p.gateOf(it).put(it)
}

// leaves records that an evaluation was judged and found no room for a part of it, or that it has left nothing.
func (g *gates) leaves(it *item, something bool) {
	switch {
	case it.pool == "":
	case something:
		g.pool(it.pool).left.put(it)
	case it.inLeft > 0:
		g.pool(it.pool).left.remove(it)
		g.tidy(it.pool)
	}
}

// clearLeft forgets what was judged and found no room.
func (g *gates) clearLeft() {
	for name, p := range g.pools { // order does not matter: each by itself
		for it, some := p.left.first(); some; it, some = p.left.first() {
			p.left.remove(it)
		}
		g.tidy(name)
	}
}

// leftAhead reports whether anything that was judged and found no room goes before an evaluation.
func (g *gates) leftAhead(p *pool, it *item) bool {
	first, some := p.left.first()
	return some && g.goesBefore(first, it.rankKey(), it.eval)
}

// ungate counts it no more.
func (g *gates) ungate(it *item) {
	if it.inGate == 0 {
		return
	}
	p := g.pool(it.pool)
	p.gateOf(it).remove(it)
	g.moved(p)
	g.tidy(it.pool)
}

// moved is called when a gate may have opened.
func (g *gates) moved(p *pool) {
	g.letOn(p)
	if p.opened > 0 || g.raises || len(g.later) > 0 {
		g.poke()
	}
	select {
	case g.opened <- struct{}{}:
	default:
	}
	if g.gated {
		g.gated = false
		g.awake()
	}
}

// letOn makes available again what was sent back and is now first in its order.
func (g *gates) letOn(p *pool) {
	if p.moving {
		return
	}
	p.moving = true
	for it, some := p.back.first(); some && !g.behind(p, it); it, some = p.back.first() {
		p.back.remove(it)
		it.since = g.opts.Clock.Now()
		g.offer(it)
	}
	p.moving = false
}

// behind reports whether anything goes before what an evaluation places.
func (g *gates) behind(p *pool, it *item) bool { return g.openAhead(p, it) || g.ahead(p, it) != nil }

// ahead is what of a pool goes before an evaluation and is with a worker or a pass, or may be
// taken; nil: nothing.
func (g *gates) ahead(p *pool, it *item) *item {
	if head := g.head(p, p.pass); head != nil && g.goesBefore(head, it.rankKey(), it.eval) {
		return head
	}
	if head := g.head(p, p.gate); head != nil && g.goesBefore(head, it.rankKey(), it.eval) {
		return head
	}
	return nil
}

// head is the first of what a pool counts in one of its gates; nil: there is none.
func (g *gates) head(p *pool, gate *fairHeap[*item]) *item {
	expired := false
	defer func() {
		if expired {
			g.moved(p)
		}
	}()
	for {
		it, ok := gate.first()
		if !ok {
			return nil
		}
		since := it.taken
		if it.token == "" {
			since = it.since
		}
		if g.opts.Clock.Now().Sub(since) <= g.opts.LeaseLimit || it.token == "" && !g.dequeued[it.eval.Type].Before(it.since) {
			return it
		}
		gate.remove(it) // it has had its time: the others need not wait for it
		expired = true
	}
}

// poke has a queue pass look whether there is something to try.
func (g *gates) poke() {
	select {
	case g.untried <- struct{}{}:
	default:
	}
}

// outranks reports whether a request goes before one whose plan is on its way. It came into
// the queue later, or room came free for it that the queue has seen since, and must not be tried
// on a World in which that one has its room: were it marked tried there, that one would overtake it.
func (g *gates) outranks(w *entry) bool {
	p := g.pool(w.pool)
	if p.pass.len() == 0 {
		return false
	}
	for _, last := range p.given { // order does not matter: any will do
		if g.compare(w.rankKey(), last.rankKey()) < 0 {
			return true
		}
	}
	return false
}

// gave notes what the pass takes of a pool.
func (p *pool) gave(g *gates, it *item) {
	if p.pass.len() == 0 {
		p.given = map[tenant]*item{}
	}
	of := tenant{it.eval.Namespace, it.user}
	if last := p.given[of]; last == nil || g.compare(last.rankKey(), it.rankKey()) < 0 {
		p.given[of] = it
	}
}
