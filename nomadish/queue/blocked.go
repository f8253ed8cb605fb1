package queue

import (
	"slices"
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
	of           map[entryKey]*entry
	ofJob        map[structs.NamespacedID][]*entry
	groups       map[groupKey]*group
	reserved     map[string]structs.NamespacedID // the jobs that rooms are reserved for, by node
	reservations map[structs.NamespacedID]int    // counts those rooms
	due          *heap[*entry]                   // those whose time has come
	aged         *heap[*entry]                   // those of which it is to be counted anew why they wait
	freed        freed
	licenses     freedLicenses
	owners       owners
	keys         *RequestKeys // see Options.Keys; nil: none is known

	gates  *gates
	config *structs.SchedulerConfiguration
	latest func() uint64 // the newest index of the state here
	world  func() *scheduler.World
	// after has f done later, with the lock held, unless the timer is stopped or set again before.
	after func(timer *clock.Timer, wait time.Duration, f func())
}

// entryKey names one of the positions of a blocked evaluation: that of what is entitled, or that of the rest.
type entryKey struct {
	eval     string
	entitled bool
}

// entry is a blocked evaluation, at one of its positions.
type entry struct {
	eval     *structs.Evaluation
	entitled bool
	kind     int    // where it ranks then, one of the ClaimRank constants
	raises   string // it is not blocked: the pass has leased it to raise allocations of this owner
	position
	group   *group
	entries *entries // those of its user in the group
	// apart: it is in their heap no more, as its job is being decided or it backs off.
	apart    bool
	gone     bool   // by the state it waits no more
	after    uint64 // it must be decided on a state that is newer than this, or as new
	failures int    // decisions that came to nothing, one after the other
	refusals int    // plans of it that were refused, one after the other
	timer    clock.Timer
	due      time.Time // when it is to be decided whatever was freed; zero: never
	// explainAt is when it is to be counted anew why it waits; zero: never. explains is the timer of that.
	explainAt time.Time
	explains  clock.Timer
	// stated: it need not be counted why it waits though its evaluation states nothing of that, as that could not be stated.
	stated     bool
	inGroup    int
	inDue      int
	inAged     int
	inUnstated int
}

func (e *entry) key() entryKey { return entryKey{e.eval.ID, e.entitled} }

// before is the order in which they are tried.
func (e *entry) before(g *gates, o *entry) bool {
	if c := g.compare(e.rankKey(), o.rankKey()); c != 0 {
		return c < 0
	}
	return e.eval.ID < o.eval.ID
}

// within is the order of entries without regard to shares: within those of a user in a namespace they make no difference, and what is due is
// tried at once.
func within(e, o *entry) bool {
	if c := e.rank.Compare(&o.rank); c != 0 {
		return c < 0
	}
	return e.eval.ID < o.eval.ID
}

// groupKey names a group: requests of one namespace, one pool and one request key, or one request that is like no other. What is entitled and the
// rest do not speak for each other.
type groupKey struct {
	namespace, pool, requestKey, eval string
	entitled                          bool
}

// group is a set of requests that fail alike.
type group struct {
	key        groupKey
	requestKey scheduler.RequestKey
	known      *structs.Evaluation // states which classes can help, as was found last
	// first are those of one user, others of all others, by user: all fail alike, but rank by their users' shares. Most groups have one user.
	first  entries
	others map[string]*entries
	rest   []*entries // the others, to walk them
	freed  uint64     // the last release that may help
	open   bool       // it must be tried
	// helped are the nodes of which room came free since it was tried, and nothing else that may help; nil: it must be tried for another reason, too.
	helped []string
	// everywhere: they are too many to be listed, and nothing else may help.
	everywhere bool
	// oldest is which of the first of all users has waited for the longest time; nil: it is to be found anew.
	oldest *entry
	// unstated are the entries of all users that state nothing of why they wait; nil: none ever was there.
	unstated *heap[*entry]
}

// of returns those of a user, made if need be.
func (g *group) of(user string) *entries {
	if of := g.others[user]; of != nil {
		return of
	}
	if g.first.members == 0 {
		g.first.user = user
	}
	if g.first.user == user {
		return &g.first
	}
	of := newEntries(g, user)
	if g.others == nil {
		g.others = map[string]*entries{}
	}
	g.others[user] = &of
	g.rest = append(g.rest, &of)
	return &of
}

// users yields the entries of all users.
func (g *group) users(yield func(*entries) bool) {
	if !yield(&g.first) {
		return
	}
	for _, of := range g.rest {
		if !yield(of) {
			return
		}
	}
}

// tidy drops the entries of users that have none any more, and reports whether nothing is left.
func (g *group) tidy(of *entries) (empty bool) {
	if of.members == 0 {
		if g.others[of.user] == of {
			delete(g.others, of.user)
			g.rest = slices.DeleteFunc(slices.Clone(g.rest), func(o *entries) bool { return o == of }) // it may be walked now
		}
	}
	return g.first.members == 0 && len(g.others) == 0
}

// entries are those of a group whose jobs a user submitted.
type entries struct {
	heap[*entry]
	group   *group
	user    string
	members int // those in the heap, and those apart
	inWaits int
	home    *userHeap[*entries] // as of fairHeap
	counted bool                // in pool.opened
	placed  *entry              // by which they are where they are in pool.all
}

func newEntries(g *group, user string) entries {
	return entries{group: g, user: user, heap: heap[*entry]{before: within, index: func(e *entry) *int { return &e.inGroup }}}
}

// clear forgets everything.
func (b *blocked) clear() {
	b.stop()
	*b = blocked{
		gates: b.gates, config: b.config, latest: b.latest, world: b.world, after: b.after, owners: newOwners(),
		of: map[entryKey]*entry{}, ofJob: map[structs.NamespacedID][]*entry{}, groups: map[groupKey]*group{},
		reserved: map[string]structs.NamespacedID{}, reservations: map[structs.NamespacedID]int{}, freed: newFreed(), licenses: freedLicenses{},
		due:  &heap[*entry]{before: within, index: func(e *entry) *int { return &e.inDue }},
		aged: &heap[*entry]{before: within, index: func(e *entry) *int { return &e.inAged }},
	}
}

// stop ends all timers.
func (b *blocked) stop() {
	for _, w := range b.of { // order does not matter: all are stopped
		w.stop()
		w.explained()
	}
}

// refresh brings the heaps of a group's pool in line with the entries of a user. It must be called
// whenever the first of them may have changed.
func (b *blocked) refresh(of *entries) {
	g := of.group
	p := b.gates.pool(g.key.pool)
	b.update(p, of)
	b.refreshed(p)
	if g.tidy(of) {
		delete(b.groups, g.key)
	}
	b.gates.tidy(g.key.pool)
}

// refreshAll has the entries of all users of a group be among those that must be tried, or not. It must be called whenever the group may have been
// opened, or closed; refresh, too, where the first of somebody's entries may have changed.
func (b *blocked) refreshAll(g *group) {
	p := b.gates.pool(g.key.pool)
	for of := range g.users {
		b.updateOpen(p, of)
	}
	b.refreshed(p)
	b.gates.tidy(g.key.pool)
}

func (b *blocked) update(p *pool, of *entries) {
	switch first, some := of.first(); {
	case !some:
		p.all.remove(of)
		of.placed, of.group.oldest = nil, nil
	case of.inWaits == 0 || of.placed != first:
		p.all.put(of)
		of.placed, of.group.oldest = first, nil
	}
	b.updateOpen(p, of)
}

func (b *blocked) updateOpen(p *pool, of *entries) {
	open := of.len() > 0 && of.group.open
	if open != of.counted {
		of.counted = open
		p.all.changed(of, open)
		if p.opened++; !open {
			p.opened -= 2
		}
	}
	if open {
		b.gates.poke()
	}
}

func (b *blocked) refreshed(p *pool) {
	was, moved := p.first, p.reshared
	p.first, p.reshared = firstOpen(p), false
	if was != nil && (moved || was != p.first) {
		b.gates.moved(p)
	}
}

// block lets an evaluation wait for room, or until the time comes when it is to be
// decided again all the same. It takes the place of an older state of itself.
func (b *blocked) block(snap *state.Snapshot, e *structs.Evaluation) {
	was := b.of[entryKey{eval: e.ID}]
	explainAt := was.explainDue()
	round, untried := b.roundOf(was), [...]bool{b.untried(e.ID, false), b.untried(e.ID, true)}
	b.unblock(e.ID)
	requestKey := b.requestKeyOf(snap, e)
	for i, entitled := range [...]bool{false, true} {
		if entitled && !requestKey.Entitlement.Any() {
			break
		}
		w := &entry{eval: e, entitled: entitled}
		b.add(snap, w, requestKey)
		if untried[i] || b.freed.missed(e) || b.licenses.missed(requestKey.Licenses, e) || w.entitled && b.owners.missed(e, requestKey.Entitlement.Project()) {
			b.open(w.group)
		}
		if _, pending := b.gates.later[w.group]; !w.group.open && (was == nil || !pending) {
			b.tryLater(w.group, round)
		}
		if !w.entitled {
			b.expectDue(w, e.WaitUntil)
			b.expectExplain(w, explainAt)
		}
	}
}

// untried reports whether a blocked evaluation must be tried at a position. It may be there anew as it was explained, on a state on which it was not tried.
func (b *blocked) untried(id string, entitled bool) bool {
	w := b.of[entryKey{id, entitled}]
	return w != nil && w.group.open
}

// add takes an entry in.
func (b *blocked) add(snap *state.Snapshot, w *entry, requestKey scheduler.RequestKey) {
	b.of[w.key()] = w
	job := w.eval.Job()
	b.ofJob[job] = append(b.ofJob[job], w)
	b.join(snap, w, requestKey)
}

// requestKeyOf returns the request key of what an evaluation waits for.
func (b *blocked) requestKeyOf(snap *state.Snapshot, e *structs.Evaluation) scheduler.RequestKey {
	if known := b.keys.of(e); known != nil {
		return known.requestKey
	}
	return b.findRequestKey(snap, e)
}

func (b *blocked) findRequestKey(snap *state.Snapshot, e *structs.Evaluation) scheduler.RequestKey {
	if job := snap.Job(nil, e.Namespace, e.JobID); job != nil {
		return scheduler.RequestKeyOf(snap.World(), job, missing(e), standing(snap, job), *b.config, b.reservations[e.Job()] > 0)
	}
	return scheduler.RequestKeyOf(snap.World(), &structs.Job{}, nil, nil, *b.config, false)
}

// join puts an entry into the group of its kind.
func (b *blocked) join(snap *state.Snapshot, w *entry, requestKey scheduler.RequestKey) {
	w.kind = requestKey.Entitlement.Kind()
	w.position = b.positionOfEntry(snap, w)
	key := groupKey{namespace: w.eval.Namespace, pool: w.pool, eval: w.eval.ID, entitled: w.entitled}
	if requestKey.Key != "" {
		key.eval, key.requestKey = "", requestKey.Key
	}
	g := b.groups[key]
	if g == nil {
		g = &group{key: key, requestKey: requestKey}
		g.first = newEntries(g, w.user)
		b.groups[key] = g
	}
	of := g.of(w.user)
	if g.known == nil || w.eval.SnapshotIndex >= g.known.SnapshotIndex {
		g.known = w.eval
	}
	w.group, w.entries = g, of
	b.expectUnstated(w)
	of.members++
	if !w.apart {
		of.put(w)
	}
	b.refresh(of)
}

// missing names the groups that an evaluation waits for.
func missing(e *structs.Evaluation) (groups []string) {
	for name := range e.FailedTGAllocs { // order does not matter: a request key has them sorted
		groups = append(groups, name)
	}
	return groups
}

// standing is what a job has. The counts show cheaply of most that wait that they have
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

func (e *entry) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

func jobOf(r *structs.Reservation) structs.NamespacedID {
	return structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}
}

// leave takes an entry out of its group.
func (b *blocked) leave(w *entry) {
	w.entries.remove(w)
	w.entries.members--
	b.refresh(w.entries)
	b.explainNext(w.group)
}

// unblock drops an evaluation that waits no longer.
func (b *blocked) unblock(id string) {
	for _, entitled := range []bool{false, true} {
		if w := b.of[entryKey{id, entitled}]; w != nil {
			b.drop(w)
		}
	}
}

// drop takes an entry out.
func (b *blocked) drop(w *entry) {
	w.gone = true
	w.stop()
	w.explained()
	b.due.remove(w)
	b.aged.remove(w)
	delete(b.of, w.key())
	job := w.eval.Job()
	if of := b.ofJob[job]; len(of) > 1 {
		b.ofJob[job] = slices.DeleteFunc(slices.Clone(of), func(o *entry) bool { return o == w }) // it may be walked now
	} else {
		delete(b.ofJob, job)
	}
	b.leave(w)
}

// expectDue has a request decided at a time, whatever was freed.
func (b *blocked) expectDue(w *entry, at time.Time) {
	w.stop()
	if w.due = at; at.IsZero() {
		return
	}
	b.after(&w.timer, max(0, at.Sub(b.gates.opts.Clock.Now())), func() {
		b.due.put(w)
		if twin := b.of[entryKey{w.eval.ID, true}]; twin != nil { // at the rank that it has then
			b.open(twin.group)
		}
		b.gates.poke()
	})
}

// setApart takes a request out of the queue while its job is being decided, or it backs off.
func (b *blocked) setApart(w *entry) {
	w.apart = true
	w.entries.remove(w)
	b.refresh(w.entries)
}

// leased takes a request out of the queue that the pass has now. It counts in the gate of its pool as it did: whoever is the first of the others, nothing
// that was behind it may go on before its lease ends.
func (b *blocked) leased(w *entry) {
	w.apart = true
	w.entries.remove(w)
	b.update(b.gates.pool(w.pool), w.entries)
}

// back puts a request that was apart back into the queue, to be tried.
func (b *blocked) back(w *entry) {
	if !w.apart || w.gone {
		return
	}
	w.apart = false
	w.entries.put(w)
	b.refresh(w.entries)
	b.open(w.group)
}

// idle is called when nothing of a job is being decided any more: its requests must see
// what was.
func (b *blocked) idle(job structs.NamespacedID) {
	for _, w := range b.ofJob[job] { // order does not matter: each has its own position
		w.after = b.latest()
		if w.timer == nil || w.failures == 0 { // else it backs off
			b.back(w)
		}
		b.explainAfter(w)
	}
}

// free marks what room that came free may help.
func (b *blocked) free(r *releases, index uint64) {
	for class := range r.classes { // order does not matter: all of one index
		b.freed.note(class, index)
	}
	b.owners.note(r, index)
	b.licenses.note(r, index)
	if len(r.classes)+len(r.owners)+len(r.projects)+len(r.licenses) == 0 && !r.allOwners && !r.allProjects {
		return
	}
	pools := map[string]bool{}
	open := func(g *group, byNodes bool, by []string) {
		was, helped, everywhere := g.open, g.helped, g.everywhere
		g.freed = index
		if b.mark(g) {
			pools[g.key.pool] = true
		}
		switch {
		case !byNodes || was && helped == nil && !everywhere: // there is another reason, too
		case by != nil && !everywhere && len(helped)+len(by) <= maxPositions:
			g.helped = append(slices.Clip(by), helped...)
		default:
			g.everywhere = true
		}
	}
	nodes := r.nodeIDs()
	for job := range r.jobs { // order does not matter: each group has its own mark
		for _, w := range b.ofJob[job] { // nor here
			open(w.group, false, nil)
		}
	}
	for _, g := range b.groups { // nor here
		if g.freed < index {
			if may, byNodes := r.may(g); may {
				open(g, byNodes, nodes)
			}
		}
	}
	for name := range pools { // nor here
		b.refreshed(b.gates.pool(name))
		b.gates.tidy(name)
	}
	b.reserveNext(r.unreserved, index)
}

// tryAll has all requests tried again that may take the same nodes as a request of a pool: what
// they were tried on has not come to pass.
func (b *blocked) tryAll(pool string) {
	for _, g := range b.groups { // order does not matter: each has its own mark
		if g.key.pool == pool || g.key.pool == structs.NodePoolAll || pool == structs.NodePoolAll {
			b.open(g)
		}
	}
}

// open has a group tried, unless it is entitled to nothing that is free.
func (b *blocked) open(g *group) {
	if b.mark(g) {
		b.refreshed(b.gates.pool(g.key.pool))
		b.gates.tidy(g.key.pool)
	}
}

// mark is open, but what follows from it for the pool, and reports whether the group was not open: refreshed must be called then.
func (b *blocked) mark(g *group) (opened bool) {
	g.helped, g.everywhere = nil, false
	if g.open || g.key.entitled && g.requestKey.Entitlement.Free(b.world(), 1) <= 0 {
		return false
	}
	g.open = true
	delete(b.gates.later, g)
	p := b.gates.pool(g.key.pool)
	for of := range g.users {
		b.updateOpen(p, of)
	}
	return true
}

// tried marks a group that was tried in a round of lending, unless room came free that it has not been tried on.
func (b *blocked) tried(g *group, index uint64, left *structs.Evaluation, round int) {
	g.known = left
	if g.freed <= index {
		g.open, g.helped, g.everywhere = false, nil, false
		b.tryLater(g, round)
	}
}
