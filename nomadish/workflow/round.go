package workflow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

const (
	// reserveEvery is the shortest time between two rounds that look at what could be reserved, unless a run begins.
	reserveEvery = 100 * time.Millisecond
	// maxPause bounds how long rounds that take long wait for the next one; see [reserving.reserve].
	maxPause = 5 * time.Second
	// reserveAnyway is the default of Options.Anew.
	reserveAnyway = time.Minute
	// maxReserving is of how many workflows of a node pool that wait for room each round looks at all anew: those of the highest rank. Those that can never
	// fit do not count. Of the others each round chooses anew for as many at most, those first that were looked at longest ago: see [reserving.others]. It
	// bounds those of a pool that have lost something alike.
	maxReserving = 16
)

// reserving looks, in rounds, at what could be reserved for the runs that wait. What it remembers of a round only spares work: a new leader knows none.
type reserving struct {
	d     *Driver
	due   bool // a round is to be made
	waits bool // there were runs in the last round that wait, or had lost something
	last  time.Time
	next  time.Time // no round before
	// known is what was chosen for the runs that wait, or have lost something, by structs.WorkflowKey, when there was no room for them.
	known map[string]*chosen
	// The changes are counted: at is how many have been seen. all is the last one after which all may be chosen otherwise, room the last one after which more
	// may be free in any pool, pools the last one in each pool.
	at, all, room uint64
	pools         map[string]uint64
}

// chosen is what was chosen for a run that waits.
type chosen struct {
	scheduler.WorkflowChoice
	run         int
	createIndex uint64
	submitted   int64
	kept        bool   // another one keeps what comes free
	at          uint64 // how many changes had been seen
	when        time.Time
	renewal     // of a run that has its reservation, and has lost something of it
}

func newReserving(d *Driver) *reserving {
	return &reserving{d: d, due: true, pools: map[string]uint64{}}
}

// note notes what changes may make of reservations.
func (v *reserving) note(c *state.Changes) {
	if mayReserve(c) {
		v.due = true
	}
	if begins(c) {
		v.next = time.Time{}
	}
	if len(v.known) == 0 {
		return
	}
	v.at++
	snap := v.d.store.Snapshot()
	for i := range c.Items {
		switch c := &c.Items[i]; c.Kind {
		case state.KindNode, state.KindConfig, state.KindProject, state.KindVirtualCluster, state.KindLicense, state.KindNodePool, state.KindExchange:
			v.all = v.at
		case state.KindReservation:
			v.room = v.at
		case state.KindAlloc:
			v.noteAlloc(snap, c)
		case state.KindWorkflow:
			was, _ := c.Old.(*structs.WorkflowRun)
			now, _ := c.New.(*structs.WorkflowRun)
			if was == nil || !was.Posted || now != nil && now.Posted && structs.PartsEqual(was.Parts, now.Parts) && structs.PartsEqual(was.Keeps, now.Keeps) {
				continue // what is pending for all of it binds no reservation that was chosen: that of a lower rank is chosen anew as it is
			}
			if v.pools[was.Workflow.NodePool] = v.at; len(was.Licenses) > 0 {
				v.room = v.at
			}
		case state.KindJob, state.KindEval, state.KindRequest:
		}
	}
}

// noteAlloc notes what the end of an allocation leaves, and where instances of workflows are placed: what was lost may be reserved around them.
func (v *reserving) noteAlloc(snap *state.Snapshot, c *state.Change) {
	if now, _ := c.New.(*state.AllocRow); c.Old == nil && now != nil && strings.Contains(now.JobID().ID, "/") {
		if n := snap.Node(nil, now.NodeID()); n != nil {
			v.pools[n.NodePool] = v.at
		}
	}
	if !leaves(c) {
		return
	}
	row := c.Old.(*state.AllocRow)
	if id, _, _, is := structs.SplitWorkflowJobID(row.JobID().ID); is { // the rest of its gang may use the reservation, wherever it ran
		if r := snap.Workflows(nil).Get(row.JobID().Namespace, id); r != nil {
			v.pools[r.Workflow.NodePool] = v.at
		}
	}
	var terms *structs.AllocTerms
	if r := row.Resources(); r != nil {
		terms = r.Shared.Terms
	}
	switch n := snap.Node(nil, row.NodeID()); {
	case terms != nil && (terms.PerNode || terms.Claim != "" && terms.Claim != structs.ClaimWorkflow):
		v.all = v.at // it bounded what a node could have if it was empty
	case n == nil || terms == nil || len(terms.Licenses.List()) > 0:
		v.room = v.at
	default:
		v.pools[n.NodePool] = v.at
	}
}

// fresh reports whether nothing has changed that what was chosen for a run depends on.
func (v *reserving) fresh(was *chosen, r *structs.WorkflowRun, kept bool) bool {
	switch {
	case was == nil || was.run != r.Run || was.createIndex != r.CreateIndex || was.submitted != r.SubmitTime || v.all > was.at:
		return false
	case was.Never:
		return true
	case was.kept != kept || v.room > was.at:
		return false
	case r.Workflow.NodePool == structs.AllNodePool:
		for _, at := range v.pools { // order does not matter: any
			if at > was.at {
				return false
			}
		}
	}
	return v.pools[r.Workflow.NodePool] <= was.at
}

// stillShort reports whether a run for which another one keeps what comes free cannot have its reservation yet, for all that has come free since it was chosen
// for: all together that is free in its pool is less than its largest stage needs. What is missing is counted anew with the rounds that look at all.
func (v *reserving) stillShort(snap *state.Snapshot, was *chosen, r *structs.WorkflowRun, kept bool, k *keeping) bool {
	if was == nil || !kept || !was.kept || was.Posted || len(r.Parts) > 0 || was.run != r.Run || was.createIndex != r.CreateIndex || was.submitted != r.SubmitTime || v.all > was.at ||
		v.d.opts.Clock.Now().Sub(was.when) >= v.d.opts.Anew {
		return false
	}
	free := k.freeIn(snap, r.Workflow.NodePool)
	return free != nil && !was.Needs.Fits(*free)
}

// ready reports whether a round is to be made now.
func (v *reserving) ready() bool {
	now := v.d.opts.Clock.Now()
	if !v.due && v.waits && now.Sub(v.last) >= v.d.opts.Anew {
		v.at++
		v.due, v.all = true, v.at
	}
	return v.due && !now.Before(v.next)
}

// after returns in how long a round is to be made if nothing changes; 0: never.
func (v *reserving) after() time.Duration {
	now := v.d.opts.Clock.Now()
	switch {
	case v.due:
		return max(time.Nanosecond, v.next.Sub(now))
	case v.waits:
		return max(time.Nanosecond, v.last.Add(v.d.opts.Anew).Sub(now))
	}
	return 0
}

// reserve makes a round. between is called before each run that is looked at: what is due meanwhile, as the start of a stage, does not wait for the
// round; false ends it. A round that took long is followed by a pause, so that reserving never takes more than a fifth of the time.
func (v *reserving) reserve(ctx context.Context, between func() bool) {
	began := v.d.opts.Clock.Now()
	v.due, v.last = false, began
	if v.d.planner == nil {
		return
	}
	again := v.round(ctx, between)
	v.due = v.due || again
	took := v.d.opts.Clock.Now().Sub(began)
	v.next = began.Add(took + min(max(reserveEvery-took, 4*took), maxPause))
}

// round reserves for the runs that wait for it as far as it can be had now, and makes reservations whole of which nodes were lost. It reports whether to
// look again soon: what it wanted was not to be had any more, or could not be committed, or it has made a reservation, beside which the others are to be
// looked at.
func (v *reserving) round(ctx context.Context, between func() bool) (again bool) {
	snap := v.d.store.Snapshot()
	list := slices.Concat(losing(snap), waiting(snap)) // what was guaranteed to a run, and was lost, comes before what nobody has yet
	v.waits = len(list) > 0
	v.forget(list)
	k := keeping{v: v, waiting: map[string]int{}, withheld: map[string]int{}, lacking: map[string]int{}}
	if k.letGo(ctx, func(c *structs.WorkflowClaim) bool {
		return !slices.ContainsFunc(list, func(r *structs.WorkflowRun) bool { return r.Namespace == c.Namespace && r.ID == c.ID })
	}) {
		return true
	}
	var others []*structs.WorkflowRun
	again = v.walk(ctx, between, list, func(snap *state.Snapshot, r *structs.WorkflowRun) (over bool) {
		switch {
		case r.Posted:
			again = v.renew(ctx, snap, r, &k) || again
		case k.looksAtNoMore(r):
			others = append(others, r)
		default:
			return v.try(ctx, snap, r, &k) // the others see what is left
		}
		return false
	}) || again
	return v.others(ctx, between, others, &k) || again
}

// walk looks at runs, one after the other, until look reports that a round is to begin anew. It reports whether to look again soon.
func (v *reserving) walk(ctx context.Context, between func() bool, list []*structs.WorkflowRun, look func(*state.Snapshot, *structs.WorkflowRun) (over bool)) (again bool) {
	for _, r := range list {
		if !between() || ctx.Err() != nil {
			return true
		}
		snap := v.d.store.Snapshot()
		if snap.Workflows(nil).Get(r.Namespace, r.ID) != r {
			again = true // it has changed meanwhile
			continue
		}
		if look(snap, r) {
			return true
		}
	}
	return again
}

// others looks at the runs that wait beyond the first of their pools. One of them may have all that it needs where these have too little, so none of them
// is left out for ever: a round chooses anew for those that were looked at longest ago, and reports that there are more.
func (v *reserving) others(ctx context.Context, between func() bool, list []*structs.WorkflowRun, k *keeping) (again bool) {
	slices.SortStableFunc(list, func(a, b *structs.WorkflowRun) int { return v.looked(a).Compare(v.looked(b)) })
	anew, more := map[string]int{}, false
	return v.walk(ctx, between, list, func(snap *state.Snapshot, r *structs.WorkflowRun) (over bool) {
		if pool := r.Workflow.NodePool; !v.stands(snap, r, k) {
			if anew[pool] >= maxReserving {
				more = true
				return false
			}
			anew[pool]++
		}
		return v.try(ctx, snap, r, k)
	}) || more
}

// looked returns when it was last chosen for a run that waits: the zero time if it never was.
func (v *reserving) looked(r *structs.WorkflowRun) time.Time {
	if c := v.known[structs.WorkflowKey(r.Namespace, r.ID)]; c != nil && c.run == r.Run {
		return c.when
	}
	return time.Time{}
}

// stands reports whether what was chosen for a run that waits would be chosen again, or that it still has no room.
func (v *reserving) stands(snap *state.Snapshot, r *structs.WorkflowRun, k *keeping) bool {
	c, kept := v.known[structs.WorkflowKey(r.Namespace, r.ID)], k.keeps(r.Workflow.NodePool)
	return v.fresh(c, r, kept) || v.stillShort(snap, c, r, kept, k)
}

// try reserves for a run that waits. It reports whether a round is to begin anew: it has its reservation, or what it wanted was not to be had.
func (v *reserving) try(ctx context.Context, snap *state.Snapshot, r *structs.WorkflowRun, k *keeping) (again bool) {
	key, kept := structs.WorkflowKey(r.Namespace, r.ID), k.keeps(r.Workflow.NodePool)
	c := v.known[key]
	if !v.stands(snap, r, k) {
		c = v.choose(snap, r, kept)
	}
	delete(v.known, key)
	choice := c.WorkflowChoice
	if !choice.Posted {
		v.known[key] = c
		k.count(r, &choice)
		if choice = k.add(r, choice, kept); k.releases(ctx, r, choice) {
			return true
		}
	}
	if stages.Same(r, stages.Reservation(r, choice)) {
		return false
	}
	return v.d.submit(ctx, v.d.store.Snapshot(), r, choice) || choice.Posted
}

// choose chooses for a run that waits.
func (v *reserving) choose(snap *state.Snapshot, r *structs.WorkflowRun, kept bool) *chosen {
	return &chosen{
		WorkflowChoice: stages.Choose(snap.World(), r, kept, BandsAt(snap, v.d.opts.Clock.Now())),
		run:            r.Run, createIndex: r.CreateIndex, submitted: r.SubmitTime, kept: kept, at: v.at, when: v.d.opts.Clock.Now(),
	}
}

// forget forgets what was chosen for runs that do not wait any more.
func (v *reserving) forget(list []*structs.WorkflowRun) {
	was := v.known
	v.known = make(map[string]*chosen, len(list))
	for _, r := range list {
		key := structs.WorkflowKey(r.Namespace, r.ID)
		if c := was[key]; c != nil {
			v.known[key] = c
		}
	}
}

// licensesShort names the licenses of which there are fewer by now than a run has reserved; "": of none.
func licensesShort(snap *state.Snapshot, r *structs.WorkflowRun) string {
	var short []string
	for _, reserved := range r.Licenses {
		var count int64
		if l := snap.Licenses().Get(nil, reserved.Name); l != nil {
			count = l.Count
		}
		if count < reserved.Count {
			short = append(short, fmt.Sprintf("%d of license %q are reserved, and there are %d", reserved.Count, reserved.Name, count))
		}
	}
	return strings.Join(short, "; ")
}

// keeping is who keeps what comes free, as far as a round has seen: of each node pool the first run that has lost something, and, of this and of licenses, the first
// that waits, and is not never to fit.
type keeping struct {
	v        *reserving
	renewing map[string]bool // the pools in which what was lost is kept
	pools    map[string]bool // those in which what waits is
	licenses bool
	waiting  map[string]int // how many of each pool wait and may fit, without those that are
	withheld map[string]int // as they wait for cells of their namespaces, and keep nothing: else these could keep all others from keeping what comes free
	lacking  map[string]int // how many of each pool have lost something that may come free, and were looked at
	free     map[string]*scheduler.WorkflowAmounts
}

// count counts a run that waits, by what was chosen for it.
func (k *keeping) count(r *structs.WorkflowRun, c *scheduler.WorkflowChoice) {
	switch {
	case c.Never:
	case c.Withheld:
		k.withheld[r.Workflow.NodePool]++
	default:
		k.waiting[r.Workflow.NodePool]++
	}
}

// looksAtNoMore reports whether a round has looked at as many runs of a pool as it does in the order of their ranks: of those that were withheld, as far as is
// known, or of the others. The first of these is the one that keeps what comes free, so that it is always among them.
func (k *keeping) looksAtNoMore(r *structs.WorkflowRun) bool {
	pool := r.Workflow.NodePool
	if c := k.v.known[structs.WorkflowKey(r.Namespace, r.ID)]; c != nil && c.run == r.Run && c.Withheld {
		return k.withheld[pool] >= maxReserving
	}
	return k.waiting[pool] >= maxReserving
}

// freeIn returns a bound of what may be reserved of a pool, as it was when it was first looked up in the round; nil: there is none.
func (k *keeping) freeIn(snap *state.Snapshot, pool string) *scheduler.WorkflowAmounts {
	free, known := k.free[pool]
	if !known {
		if sum, bounded := scheduler.ReservableAtMost(snap.World(), pool, BandsAt(snap, k.v.d.opts.Clock.Now())); bounded {
			free = &sum
		}
		if k.free == nil {
			k.free = map[string]*scheduler.WorkflowAmounts{}
		}
		k.free[pool] = free
	}
	return free
}

// keeps reports whether a run that waits keeps what comes free in a pool.
func (k *keeping) keeps(pool string) bool { return hasPool(k.pools, pool) }

// renews reports whether a run keeps what comes free in a pool in place of what it has lost.
func (k *keeping) renews(pool string) bool { return hasPool(k.renewing, pool) }

// hasPool reports whether a pool is among some, or has nodes of one of them.
func hasPool(of map[string]bool, pool string) bool {
	return len(of) > 0 && (of[pool] || of[structs.AllNodePool] || pool == structs.AllNodePool)
}

// add returns what was chosen for a run that waits as far as it may keep it: of what a run of a higher rank keeps nothing. One that waits for cells of its namespace
// keeps nothing itself.
func (k *keeping) add(r *structs.WorkflowRun, c scheduler.WorkflowChoice, kept bool) scheduler.WorkflowChoice {
	if c.Never || kept || len(c.Parts)+len(c.Licenses) == 0 {
		return c
	}
	k.pools = withPool(k.pools, r.Workflow.NodePool)
	if k.licenses {
		c.Licenses = nil
	}
	k.licenses = k.licenses || len(c.Licenses) > 0
	return c
}

// withPool returns some pools and one more.
func withPool(of map[string]bool, pool string) map[string]bool {
	if of == nil {
		of = map[string]bool{}
	}
	of[pool] = true
	return of
}

// releases has runs of lower ranks keep nothing any more that one is to keep now. It reports whether that failed.
func (k *keeping) releases(ctx context.Context, r *structs.WorkflowRun, c scheduler.WorkflowChoice) (failed bool) {
	return len(c.Parts) > 0 && k.letGo(ctx, k.before(r, len(c.Licenses) > 0))
}

// before returns which others keep what a run is to keep, as it has lost something as they have, or waits as they do: nodes of its pool, or licenses.
func (k *keeping) before(r *structs.WorkflowRun, licenses bool) func(*structs.WorkflowClaim) bool {
	return func(o *structs.WorkflowClaim) bool {
		samePool := o.NodePool == r.Workflow.NodePool || o.NodePool == structs.AllNodePool || r.Workflow.NodePool == structs.AllNodePool
		return (o.Namespace != r.Namespace || o.ID != r.ID) && o.Posted == r.Posted && (samePool || licenses && len(o.Licenses) > 0)
	}
}

// letGo has the runs keep nothing any more that keep what comes free, and for which a function answers true. It reports whether that failed.
func (k *keeping) letGo(ctx context.Context, which func(*structs.WorkflowClaim) bool) (failed bool) {
	for _, c := range scheduler.PendingWorkflows(k.v.d.store.Snapshot().World()) {
		if !which(c) {
			continue
		}
		snap := k.v.d.store.Snapshot()
		if r := snap.Workflows(nil).Get(c.Namespace, c.ID); r != nil {
			choice := scheduler.WorkflowChoice{Missing: r.Missing}
			if r.Posted { // it keeps what it has
				choice.Posted, choice.Parts, choice.Licenses = true, r.Parts, r.Licenses
			}
			failed = k.v.d.submit(ctx, snap, r, choice) || failed
		}
	}
	return failed
}

// pause reports in how long a driver goes on though nothing has changed; 0: it does not.
func (v *reserving) pause(failed map[structs.NamespacedID]bool) time.Duration {
	after := v.after()
	if len(failed) > 0 && (after == 0 || after > retryAfter) {
		after = retryAfter
	}
	return after
}

// merged returns both sets as one.
func merged(a, b map[structs.NamespacedID]bool) map[structs.NamespacedID]bool {
	if a == nil {
		return b
	}
	maps.Copy(a, b)
	return a
}
