package node

import (
	"context"
	"slices"
	"sync"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// maxReports bounds the clients' reports of one log entry; what one client sends at once may be more. While as many wait, up to
// maxCommitting entries are on their way at once.
const maxReports, maxCommitting = 1000, 4

// reports has clients' reports committed together that come while others are being committed: one that comes alone is
// committed at once, and when thousands of nodes start their work, an entry, its place on disk and the settling of its jobs'
// counts serve many of them. Who reports commits, itself or for others; there is no goroutine for it.
type reports struct {
	mu         sync.Mutex
	committing int       // entries on their way
	waiting    []*report // what came meanwhile, in that order; each has a call that waits, which bounds them
	updates    int       // that they contain
}

// report is one client's call.
type report struct {
	entry     *structs.AllocClientEntry
	batch     []*report     // what it is to commit, once it may
	mayCommit chan struct{} // closed then
	done      chan struct{} // closed when another has committed it
	index     uint64
	err       error
}

// commit applies an entry, by itself or with others, and returns the index at which it was. An error is of all that were
// committed with it, as the Applier returned it, or that of ctx; then it may be committed nevertheless, once it was begun.
func (r *reports) commit(ctx context.Context, to rpc.Applier, entry *structs.AllocClientEntry) (uint64, error) {
	me := &report{entry: entry, mayCommit: make(chan struct{}), done: make(chan struct{})}
	if r.begin(me) {
		return r.lead(ctx, to, me)
	}
	select {
	case <-me.done:
		return me.index, me.err
	case <-me.mayCommit:
	case <-ctx.Done():
		if !r.leads(me) {
			return 0, ctx.Err()
		}
	}
	return r.lead(ctx, to, me)
}

// begin reports whether me may commit at once; else me waits.
func (r *reports) begin(me *report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.committing > 0 {
		r.waiting = append(r.waiting, me)
		r.updates += len(me.entry.Updates)
		if r.updates >= maxReports && r.committing < maxCommitting {
			r.committing++
			r.startNext()
		}
		return false
	}
	r.committing, me.batch = 1, []*report{me}
	return true
}

// leads withdraws me, whose call is over, and reports whether others depend on it already.
func (r *reports) leads(me *report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, me); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.updates -= len(me.entry.Updates)
	}
	return me.batch != nil
}

// lead commits me's batch, and then lets the next commit.
func (r *reports) lead(ctx context.Context, to rpc.Applier, me *report) (uint64, error) {
	defer r.next()
	if len(me.batch) > 1 {
		ctx = context.WithoutCancel(ctx) // the others' calls go on; Raft answers, or ends
	}
	me.err = structs.Errorf(structs.CodeInternal, "the reports were not committed") // should it panic
	defer func() {
		for _, other := range me.batch {
			if other != me {
				other.index, other.err = me.index, me.err
				close(other.done)
			}
		}
	}()
	me.index, me.err = to.Apply(ctx, structs.LogAllocClient, merged(me.batch))
	return me.index, me.err
}

// next lets the first that waits commit, unless nobody does, or others commit and there is not a whole entry of them.
func (r *reports) next() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 || r.committing > 1 && r.updates < maxReports {
		r.committing--
		return
	}
	r.startNext()
}

// startNext lets the first that waits commit, with as many of those behind it as go into one entry.
func (r *reports) startNext() {
	n, updates := 1, len(r.waiting[0].entry.Updates)
	for ; n < len(r.waiting); n++ {
		more := len(r.waiting[n].entry.Updates)
		if updates+more > maxReports {
			break
		}
		updates += more
	}
	lead := r.waiting[0]
	lead.batch = slices.Clone(r.waiting[:n])
	r.waiting = slices.Delete(r.waiting, 0, n)
	r.updates -= updates
	close(lead.mayCommit)
}

// merged is one entry of all, at the time of the latest. A job that several of them want looked at is looked at once: that
// is after all of them.
func merged(batch []*report) *structs.AllocClientEntry {
	if len(batch) == 1 {
		return batch[0].entry
	}
	out := &structs.AllocClientEntry{}
	seen := map[structs.NamespacedID]bool{}
	for _, r := range batch {
		out.Updates = append(out.Updates, r.entry.Updates...)
		out.Time = max(out.Time, r.entry.Time)
		for _, eval := range r.entry.Evals {
			if id := (structs.NamespacedID{ID: eval.JobID, Namespace: eval.Namespace}); !seen[id] {
				seen[id] = true
				out.Evals = append(out.Evals, eval)
			}
		}
	}
	return out
}
