package queue

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// position is what orders an evaluation in the queue of its pool.
type position struct {
	rank structs.Rank
	pool string // "": it places nothing
	user string // who submitted its job; "": nobody in particular
}

// standingFirst is that of work that places nothing, but mostly frees room.
const standingFirst = -1

// positionOf returns the position of an evaluation by its job's best request.
func (b *blocked) positionOf(snap *state.Snapshot, e *structs.Evaluation) position {
	var at position
	if known := b.keys.of(e); known != nil {
		at = known.position
	} else {
		at = b.findPosition(snap, e)
	}
	b.gates.users = b.gates.users || at.user != ""
	return at
}

func (b *blocked) findPosition(snap *state.Snapshot, e *structs.Evaluation) position {
	job := snap.Job(nil, e.Namespace, e.JobID)
	if job == nil || job.Stopped() {
		return position{rank: structs.Rank{
			Standing: standingFirst, Band: b.config.Band(e.Priority), Number: int64(e.Priority), Submitted: e.CreateIndex, Job: e.Job(),
		}}
	}
	since := e.CreateTime
	for _, w := range b.ofJob[e.Job()] {
		since = min(since, w.eval.CreateTime)
	}
	best := b.config.Rank(job, nil, since)
	for _, request := range snap.Requests().OfGroups(job) {
		if r := b.config.Rank(job, request, since); r.Compare(&best) < 0 {
			best = r
		}
	}
	best = best.OfProject(scheduler.Standing(snap.World(), job), b.config)
	return position{best, cmp.Or(job.NodePool, structs.DefaultNodePool), job.UserName()}
}

// positionOfEntry finds the position of a blocked evaluation anew: of what is entitled of it, or of the rest; or of one that raises.
func (b *blocked) positionOfEntry(snap *state.Snapshot, w *entry) position {
	p := b.positionOf(snap, w.eval)
	switch {
	case p.pool == "":
	case w.entitled:
		p.rank = p.rank.Entitled(w.kind)
	case w.raises != "":
		p.rank = p.rank.Entitled(structs.ClaimRankRaise)
	}
	return p
}

// reposition finds the positions of a job's evaluations anew, and the groups of its requests,
// which their request keys may have changed.
func (b *Broker) reposition(snap *state.Snapshot, job structs.NamespacedID, requestKeys bool) {
	if l := b.serial[job]; l != nil {
		for _, it := range []*item{l.current, l.next} {
			if it != nil && (requestKeys || !it.past()) {
				b.repositionItem(snap, it)
			}
		}
	}
	b.blocked.reposition(snap, job, requestKeys)
}

// reposition finds the positions of a job's blocked evaluations anew, and their groups.
func (b *blocked) reposition(snap *state.Snapshot, job structs.NamespacedID, requestKeys bool) {
	for _, w := range slices.Clone(b.ofJob[job]) { // order does not matter: each has its own position
		if !requestKeys && b.positionOfEntry(snap, w) == w.position {
			continue
		}
		requestKey := b.requestKeyOf(snap, w.eval)
		twin := entryKey{w.eval.ID, true}
		switch {
		case requestKey.Entitlement.Any() == (b.of[twin] != nil):
		case b.of[twin] == nil:
			entitled := &entry{eval: w.eval, entitled: true, after: w.after}
			b.add(snap, entitled, requestKey)
			b.open(entitled.group)
		case w.key() == twin:
			b.drop(w)
			continue
		}
		open, freed := w.group.open, w.group.freed
		later, inLater := b.gates.later[w.group]
		b.leave(w)
		b.join(snap, w, requestKey)
		switch g := w.group; {
		case open && !g.open:
			g.freed = max(g.freed, freed)
			b.open(g)
		case inLater && !g.open:
			b.tryLater(g, later.round-1)
		}
		b.explainNext(w.group)
	}
}

// repositionItem finds the position of an evaluation anew that is not blocked, and reports whether it has another one now. What is
// leased stays entitled, or not: that is what its lease is for.
func (b *Broker) repositionItem(snap *state.Snapshot, it *item) bool {
	now := b.positionOfItem(snap, it)
	if now == it.position || it.token != "" && now.pool == "" {
		return false // the job was stopped meanwhile, but who decides on it may not know that
	}
	ready, gated, left := it.inReady > 0 || it.inBack > 0, it.inGate > 0, it.inLeft > 0
	b.gates.unready(it)
	b.gates.leaves(it, false)
	b.gates.ungate(it)
	it.position = now
	if ready {
		b.gates.readyUp(it) // whether it must wait in its new position is seen when it is to be taken
		b.gates.awake()
	}
	if gated {
		b.gates.enter(it)
	}
	b.gates.leaves(it, left)
	return true
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
