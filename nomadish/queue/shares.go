package queue

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Within normal standing the requests of those go first that run the least opportunistically: of the namespaces, and then of the users
// (semantics part 7). Ranks are compared with the shares of their namespaces and users as they are, what has been judged and the pass's own
// placements included; what the pass has, with what they were when the pass took it, if that was less: else a pass could place one request
// of a namespace only. The shares of users are not looked up before a job that has one comes: until then all have the same user, whose
// share makes no difference.

// poolShares are shares of a pool, in percent, of the namespaces and users of which they were needed. They are kept up to date from then on.
type poolShares struct{ namespaces, users map[string]int }

func (g *gates) sharesOf(pool string) *poolShares {
	if g.latest.of != nil && g.latest.pool == pool {
		return g.latest.of
	}
	of := g.shares[pool]
	if of == nil {
		of = &poolShares{map[string]int{}, map[string]int{}}
		g.shares[pool] = of
	}
	g.latest.pool, g.latest.of = pool, of
	return of
}

// share returns that of a namespace in a pool, in percent.
func (g *gates) share(pool, namespace string) int {
	of := g.sharesOf(pool)
	percent, known := of.namespaces[namespace]
	if !known {
		percent = g.world().Share(pool, namespace)
		of.namespaces[namespace] = percent
	}
	return percent
}

// userShare returns that of a user in a pool, in percent; 0 while no job has a user.
func (g *gates) userShare(pool, user string) int {
	if !g.users {
		return 0
	}
	of := g.sharesOf(pool)
	percent, known := of.users[user]
	if !known {
		percent = g.world().UserShare(pool, user)
		of.users[user] = percent
	}
	return percent
}

// setShares takes in the shares of an evaluation's namespace and user, and moves what waits of them to where these put it.
func (g *gates) setShares(it *item, now Shares) {
	moved := g.putShare(it.pool, it.eval.Namespace, now)
	if g.putUserShare(it.pool, it.user, now) || moved {
		g.sharesMoved(it.pool)
	}
}

// putShare takes in the share of a namespace without what follows from it; it reports whether that is another one than before. Whoever
// changes several shares does so one after the other: a heap in which several have moved for different reasons cannot be mended.
func (g *gates) putShare(pool, namespace string, now Shares) bool {
	of := g.shares[pool]
	if of == nil || !replaced(of.namespaces, namespace, func() int { return now.Share(pool, namespace) }) {
		return false
	}
	for h := range g.heapsOf(pool) { // order does not matter: each by itself
		h.shared(namespace)
	}
	return true
}

// putUserShare is putShare of a user.
func (g *gates) putUserShare(pool, user string, now Shares) bool {
	of := g.shares[pool]
	if of == nil || !replaced(of.users, user, func() int { return now.UserShare(pool, user) }) {
		return false
	}
	for h := range g.heapsOf(pool) { // order does not matter: each by itself
		h.userShared(user)
	}
	return true
}

// replaced puts the share that one has now in place of a known one; it reports whether that is another one than before.
func replaced(shares map[string]int, name string, now func() int) bool {
	was, known := shares[name]
	if !known {
		return false
	}
	percent := now()
	shares[name] = percent
	return percent != was
}

// sharedHeap is a fairHeap as a change of shares concerns it.
type sharedHeap interface {
	shared(namespace string)
	userShared(user string)
}

// heapsOf yields all heaps of a pool whose order depends on shares.
func (g *gates) heapsOf(pool string) func(yield func(sharedHeap) bool) {
	return func(yield func(sharedHeap) bool) {
		for key, ready := range g.ready { // order does not matter to those who change shares
			if key.pool == pool && !yield(ready) {
				return
			}
		}
		if p := g.pools[pool]; p != nil {
			for _, h := range [...]sharedHeap{p.gate, p.pass, p.back, p.left, p.all} {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// sharesMoved is called when shares of a pool have changed.
func (g *gates) sharesMoved(pool string) {
	if p := g.pools[pool]; p != nil {
		p.reshared = true
		g.moved(p)
	}
}

// reshare looks up the shares that may have changed with a commit.
func (g *gates) reshare(r *releases) {
	w := r.snap.World()
	for _, pool := range slices.Sorted(maps.Keys(g.shares)) {
		moved := false
		for namespace := range g.shares[pool].namespaces { // order does not matter: each has its own position
			if r.sharesDiffer || r.used[namespace] {
				moved = g.putShare(pool, namespace, w) || moved
			}
		}
		for user := range g.shares[pool].users { // nor here
			if r.sharesDiffer || r.users[user] {
				moved = g.putUserShare(pool, user, w) || moved
			}
		}
		if moved {
			g.sharesMoved(pool)
		}
	}
}

// forgetShares forgets those of a pool in whose queue nothing is left.
func (g *gates) forgetShares(pool string) {
	for key := range g.ready { // order does not matter: any will do
		if key.pool == pool {
			return
		}
	}
	delete(g.shares, pool)
	g.latest.of = nil
}

// rankKey is what the order of those that wait follows from.
type rankKey struct {
	*position
	namespace string
	// passed: the pass has it, and its namespace's and user's shares were these percentages when that began.
	passed           bool
	share, userShare int
}

func (i *item) rankKey() rankKey {
	return rankKey{&i.position, i.eval.Namespace, i.entry != nil, i.share, i.userShare}
}

func (e *entry) rankKey() rankKey { return rankKey{position: &e.position, namespace: e.eval.Namespace} }

// rankAt returns the rank of what waits with its namespace's and its user's share.
func (g *gates) rankAt(at rankKey) structs.Rank {
	return at.rank.Shared(g.shareOf(at), g.userShareOf(at))
}

// shareOf returns the share of the namespace of what waits, as its rank has it.
func (g *gates) shareOf(at rankKey) int {
	percent := g.share(at.pool, at.namespace)
	if at.passed {
		return min(percent, at.share)
	}
	return percent
}

// userShareOf is shareOf for its user.
func (g *gates) userShareOf(at rankKey) int {
	percent := g.userShare(at.pool, at.user)
	if at.passed {
		return min(percent, at.userShare)
	}
	return percent
}

// compare is below zero if a goes before b. Within a namespace its share makes no difference, and within what a user has there none does.
func (g *gates) compare(a, b rankKey) int {
	x, y := &a.rank, &b.rank
	within := a.namespace == b.namespace
	if within && a.user == b.user || x.Standing != structs.StandingNormal || y.Standing != structs.StandingNormal || x.Claim != y.Claim || x.Band != y.Band {
		return x.Compare(y)
	}
	if !within {
		if c := cmp.Compare(g.shareOf(a), g.shareOf(b)); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(g.userShareOf(a), g.userShareOf(b)); c != 0 {
		return c
	}
	return x.Compare(y)
}
