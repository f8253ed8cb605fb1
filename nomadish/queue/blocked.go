package queue

import (
	"cmp"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// blocked keeps the blocked evaluations, each of which stands for the requests of its job, and
// which of them must be tried (again) since room came free.
//
// They are kept in groups of those that fail alike: thousands of waiters are a handful
// of groups, so that a release which helps none of them costs next to nothing, and one
// that failed speaks for all of its group.
type blocked struct {
	of           map[string]*entry                          // by evaluation ID
	ofJob        map[structs.NamespacedID]map[string]*entry // by job, then evaluation ID
	groups       map[groupKey]*group
	reserved     map[string]structs.NamespacedID // the jobs that rooms are reserved for, by node
	reservations map[structs.NamespacedID]int    // counts those rooms
	due          *heap[*entry]                   // those whose time has come
	freed        freed
}

// entry is a blocked evaluation.
type entry struct {
	eval *structs.Evaluation
	position
	group *group
	// apart: it is in its group's heap no more, as its job is being decided or it backs off.
	apart    bool
	gone     bool   // by the state it waits no more
	after    uint64 // it must be decided on a state that is newer than this, or as new
	failures int    // decisions that came to nothing, one after the other
	refusals int    // plans of it that were refused, one after the other
	timer    clock.Timer
	inGroup  int
	inDue    int
}

func (e *entry) before(o *entry) bool {
	return cmp.Or(e.rank.Compare(&o.rank), strings.Compare(e.eval.ID, o.eval.ID)) < 0
}

// groupKey names a group: requests of one pool and one request key, or one request that is like no other.
type groupKey struct{ pool, requestKey, eval string }

// group is a set of requests that fail alike.
type group struct {
	key        groupKey
	requestKey scheduler.RequestKey
	known      *structs.Evaluation // says which classes can help, as was found last
	entries    *heap[*entry]
	members    int    // the entries, and those apart
	freed      uint64 // the last release that may help
	open       bool   // it must be tried

	inOpen, inWaits int
}

// pool is the queue of a node pool.
type pool struct {
	// gate is what workers have or may take and that may place something, until its plan
	// has been judged; pass what the queue pass has.
	gate *heap[*item]
	pass *heap[*item]
	// given is the last rank among those that pass has.
	given structs.Rank
	open  *heap[*group] // groups that must be tried, by their first
	all   *heap[*group] // all groups, by their first
	// first is the first entry of the open groups, as settle saw it last; nil: none was open.
	first *entry
	// back is what was sent back, as it would have overtaken others. It is counted in the
	// gate, and taken by nobody until nothing goes before it.
	back   *heap[*item]
	moving bool // what is in back is being let on
}

func newBlocked() *blocked {
	return &blocked{
		of: map[string]*entry{}, ofJob: map[structs.NamespacedID]map[string]*entry{}, groups: map[groupKey]*group{},
		reserved: map[string]structs.NamespacedID{}, reservations: map[structs.NamespacedID]int{}, freed: newFreed(),
		due: &heap[*entry]{before: (*entry).before, index: func(e *entry) *int { return &e.inDue }},
	}
}

// stop ends all timers.
func (a *blocked) stop() {
	for _, w := range a.of { // order does not matter: all are stopped
		w.stop()
	}
}

func (b *Broker) pool(name string) *pool {
	p := b.pools[name]
	if p == nil {
		by := func(x, y *group) bool {
			a, _ := x.entries.first()
			z, _ := y.entries.first()
			return a.before(z)
		}
		p = &pool{
			gate: &heap[*item]{before: (*item).before, index: func(i *item) *int { return &i.inGate }},
			pass: &heap[*item]{before: (*item).before, index: func(i *item) *int { return &i.inGate }},
			open: &heap[*group]{before: by, index: func(g *group) *int { return &g.inOpen }},
			all:  &heap[*group]{before: by, index: func(g *group) *int { return &g.inWaits }},
			back: &heap[*item]{before: (*item).before, index: func(i *item) *int { return &i.inBack }},
		}
		b.pools[name] = p
	}
	return p
}

// settle brings the heaps of a group's pool in line with the group. It must be called
// whenever the group's first, or whether it is open, may have changed.
func (b *Broker) settle(g *group) {
	p := b.pool(g.key.pool)
	if g.entries.len() > 0 {
		p.all.put(g)
	} else {
		p.all.remove(g)
	}
	if g.entries.len() > 0 && g.open {
		p.open.put(g)
		b.poke()
	} else {
		p.open.remove(g)
	}
	was := p.first
	if p.first = firstOpen(p); was != nil && was != p.first {
		b.moved(p)
	}
	if g.members == 0 {
		delete(b.blocked.groups, g.key)
	}
	b.tidy(g.key.pool)
}

// tidy drops a pool that is empty.
func (b *Broker) tidy(name string) {
	if p := b.pools[name]; p != nil && p.gate.len()+p.pass.len()+p.all.len()+p.back.len() == 0 {
		delete(b.pools, name)
	}
}

// missing names the groups that an evaluation waits for.
func missing(e *structs.Evaluation) (groups []string) {
	for name := range e.FailedTGAllocs { // order does not matter: a request key has them sorted
		groups = append(groups, name)
	}
	return groups
}

// block lets an evaluation wait for room, or until the time comes when it is to be
// decided again all the same. It takes the place of an older state of itself.
func (b *Broker) block(snap *state.Snapshot, e *structs.Evaluation) {
	b.unblock(e.ID)
	w := &entry{eval: e}
	b.blocked.of[e.ID] = w
	if b.blocked.ofJob[e.Job()] == nil {
		b.blocked.ofJob[e.Job()] = map[string]*entry{}
	}
	b.blocked.ofJob[e.Job()][e.ID] = w
	b.join(snap, w)
	if b.blocked.freed.missed(e) {
		w.group.open = true
		b.settle(w.group)
	}
	b.expectDue(w, e.WaitUntil)
}

// join puts an entry into the group of its kind.
func (b *Broker) join(snap *state.Snapshot, w *entry) {
	w.position = b.positionOf(snap, w.eval)
	key := groupKey{pool: w.pool, eval: w.eval.ID}
	var requestKey scheduler.RequestKey
	if job := snap.Job(nil, w.eval.Namespace, w.eval.JobID); job != nil {
		requestKey = scheduler.RequestKeyOf(job, missing(w.eval), standing(snap, job), b.config, b.blocked.reservations[w.eval.Job()] > 0)
	} else {
		requestKey = scheduler.RequestKeyOf(&structs.Job{}, nil, nil, b.config, false)
	}
	if requestKey.Key != "" {
		key.eval, key.requestKey = "", requestKey.Key
	}
	g := b.blocked.groups[key]
	if g == nil {
		g = &group{key: key, requestKey: requestKey, entries: &heap[*entry]{
			before: (*entry).before, index: func(e *entry) *int { return &e.inGroup },
		}}
		b.blocked.groups[key] = g
	}
	if g.known == nil || w.eval.SnapshotIndex >= g.known.SnapshotIndex {
		g.known = w.eval
	}
	w.group = g
	g.members++
	if !w.apart {
		g.entries.put(w)
	}
	b.settle(g)
}

// standing is what a job has. The counts say cheaply of most that wait that they have
// nothing.
func standing(snap *state.Snapshot, job *structs.Job) []*structs.Allocation {
	counts := snap.JobSummary(nil, job.Namespace, job.ID)
	if counts == nil {
		return nil
	}
	for _, c := range counts.Summary { // order does not matter: any will do
		if c.Running+c.Starting+c.Unknown > 0 {
			return snap.AllocsByJob(nil, job.Namespace, job.ID, true)
		}
	}
	return nil
}

// toGoOn reports whether an allocation is suspended until it has room. With that, what its
// job waits for changes.
func toGoOn(a *state.AllocRow) bool {
	to := a.Transition()
	return a.Suspended() && !to.ShouldSuspend() && !a.Terminal()
}

// leave takes an entry out of its group.
func (b *Broker) leave(w *entry) {
	g := w.group
	g.entries.remove(w)
	g.members--
	b.settle(g)
}

// unblock drops an evaluation that waits no longer.
func (b *Broker) unblock(id string) {
	w := b.blocked.of[id]
	if w == nil {
		return
	}
	w.gone = true
	w.stop()
	b.blocked.due.remove(w)
	delete(b.blocked.of, id)
	if of := b.blocked.ofJob[w.eval.Job()]; len(of) > 1 {
		delete(of, id)
	} else {
		delete(b.blocked.ofJob, w.eval.Job())
	}
	b.leave(w)
}

func (e *entry) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// expectDue has a request decided at a time, whatever was freed.
func (b *Broker) expectDue(w *entry, at time.Time) {
	w.stop()
	if at.IsZero() {
		return
	}
	b.afterEntry(w, max(0, at.Sub(b.now())), func() {
		b.blocked.due.put(w)
		b.poke()
	})
}

// afterEntry has f done later, with the lock held, unless the entry is gone by then or
// waits for something else.
func (b *Broker) afterEntry(w *entry, wait time.Duration, f func()) {
	var timer clock.Timer
	timer = b.opts.Clock.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.timer == timer {
			w.timer = nil
			f()
		}
	})
	w.timer = timer
}

// setApart takes a request out of the queue while its job is being decided, or it backs off.
func (b *Broker) setApart(w *entry) {
	w.apart = true
	w.group.entries.remove(w)
	b.settle(w.group)
}

// back puts a request that was apart back into the queue, to be tried.
func (b *Broker) back(w *entry) {
	if !w.apart || w.gone {
		return
	}
	w.apart = false
	w.group.entries.put(w)
	w.group.open = true
	b.settle(w.group)
}

// idle is called when nothing of a job is being decided any more: its requests must see
// what was.
func (b *Broker) idle(job structs.NamespacedID) {
	for _, w := range b.blocked.ofJob[job] { // order does not matter: each has its own position
		w.after = b.latest()
		if w.timer == nil || w.failures == 0 { // else it backs off
			b.back(w)
		}
	}
}

// free marks what room that came free may help.
func (b *Broker) free(r *releases, index uint64) {
	for class := range r.classes { // order does not matter: all of one index
		b.blocked.freed.note(class, index)
	}
	if len(r.classes) == 0 {
		return
	}
	open := func(g *group) {
		g.freed = index
		if !g.open {
			g.open = true
			b.settle(g)
		}
	}
	for job := range r.jobs { // order does not matter: each group has its own mark
		for _, w := range b.blocked.ofJob[job] { // nor here
			open(w.group)
		}
	}
	for _, g := range b.blocked.groups { // nor here
		if g.freed < index && r.may(g) {
			open(g)
		}
	}
}

// tryAll has all requests tried again that may take the same nodes as a request of a pool: what
// they were tried on has not come to pass.
func (b *Broker) tryAll(pool string) {
	for _, g := range b.blocked.groups { // order does not matter: each has its own mark
		if !g.open && (g.key.pool == pool || g.key.pool == structs.NodePoolAll || pool == structs.NodePoolAll) {
			g.open = true
			b.settle(g)
		}
	}
}

// reserved counts the reservations of jobs; what has one is like no
// other request.
func (b *Broker) reserved(snap *state.Snapshot, c *state.Change) {
	if now, ok := c.New.(*structs.Reservation); ok && b.blocked.reserved[c.Key] == jobOf(now) {
		return
	}
	changed := map[structs.NamespacedID]bool{}
	if job, had := b.blocked.reserved[c.Key]; had {
		delete(b.blocked.reserved, c.Key)
		if b.blocked.reservations[job]--; b.blocked.reservations[job] == 0 {
			delete(b.blocked.reservations, job)
			changed[job] = true
		}
	}
	if now, ok := c.New.(*structs.Reservation); ok {
		b.blocked.reserved[c.Key] = jobOf(now)
		b.blocked.reservations[jobOf(now)]++
		changed[jobOf(now)] = changed[jobOf(now)] || b.blocked.reservations[jobOf(now)] == 1
	}
	for job, really := range changed { // order does not matter: each has its own requests
		if really {
			b.reposition(snap, job, true)
		}
	}
}

// reposition finds the positions of a job's evaluations anew, and the groups of its requests,
// which their request keys may have changed.
func (b *Broker) reposition(snap *state.Snapshot, job structs.NamespacedID, requestKeys bool) {
	if l := b.serial[job]; l != nil {
		for _, it := range []*item{l.current, l.next} {
			if it != nil {
				b.repositionItem(snap, it)
			}
		}
	}
	for _, w := range b.blocked.ofJob[job] { // order does not matter: each has its own position
		if !requestKeys && b.positionOf(snap, w.eval) == w.position {
			continue
		}
		open, freed := w.group.open, w.group.freed
		b.leave(w)
		b.join(snap, w)
		if g := w.group; open && !g.open {
			g.open, g.freed = true, max(g.freed, freed)
			b.settle(g)
		}
	}
}

func (b *Broker) repositionItem(snap *state.Snapshot, it *item) {
	now := b.positionOf(snap, it.eval)
	if now == it.position || it.token != "" && now.pool == "" {
		return // the job was stopped meanwhile, but who decides on it may not know that
	}
	ready, gated := it.inReady > 0 || it.inBack > 0, it.inGate > 0
	b.unready(it)
	b.ungate(it)
	it.position = now
	if ready {
		b.readyUp(it) // whether it must wait in its new position is seen when it is to be taken
		b.awake()
	}
	if gated {
		b.enter(it)
	}
}

func jobOf(r *structs.Reservation) structs.NamespacedID {
	return structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}
}
