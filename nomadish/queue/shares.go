package queue

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Within normal standing the requests of those go first that run the least opportunistically (semantics part 7). Ranks are compared with
// the shares of their namespaces as they are, what has been judged and the pass's own placements included; what the pass has, with what it
// was when the pass took it, if that was less: else a pass could place one request of a namespace only.

// share returns that of a namespace in a pool, in percent. It is looked up when it is first needed, and kept up to date from then on.
func (g *gates) share(pool, namespace string) int {
	of := g.shares[pool]
	if of == nil {
		of = map[string]int{}
		g.shares[pool] = of
	}
	percent, known := of[namespace]
	if !known {
		percent = g.world().Share(pool, namespace)
		of[namespace] = percent
	}
	return percent
}

// setShare states the share of a namespace, and moves what waits of it to where that puts it.
func (g *gates) setShare(pool, namespace string, percent int) {
	if g.putShare(pool, namespace, percent) {
		g.sharesMoved(pool)
	}
}

// putShare is setShare without what follows from it; it reports whether the share is another one than before. Whoever changes several does
// so one after the other: a heap in which two have moved cannot be mended.
func (g *gates) putShare(pool, namespace string, percent int) bool {
	of := g.shares[pool]
	if was, known := of[namespace]; !known || was == percent {
		return false
	}
	of[namespace] = percent
	for key, ready := range g.ready { // order does not matter: each by itself
		if key.pool == pool {
			ready.shared(namespace)
		}
	}
	if p := g.pools[pool]; p != nil {
		p.gate.shared(namespace)
		p.pass.shared(namespace)
		p.back.shared(namespace)
		p.open.shared(namespace)
		p.all.shared(namespace)
	}
	return true
}

// sharesMoved is called when the shares of a pool's namespaces have changed.
func (g *gates) sharesMoved(pool string) {
	if p := g.pools[pool]; p != nil {
		p.first = firstOpen(p)
		g.moved(p)
	}
}

// reshare looks up the shares that may have changed with a commit.
func (g *gates) reshare(r *releases) {
	w := r.snap.World()
	for _, pool := range slices.Sorted(maps.Keys(g.shares)) {
		moved := false
		for namespace := range g.shares[pool] { // order does not matter: each has its own place
			if r.sharesDiffer || r.used[namespace] {
				moved = g.putShare(pool, namespace, w.Share(pool, namespace)) || moved
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
}

// rankKey is what the order of those that wait follows from.
type rankKey struct {
	*position
	namespace string
	// passed: the pass has it, and its namespace's share was this percentage when that began.
	passed bool
	share  int
}

func (i *item) rankKey() rankKey {
	return rankKey{&i.position, i.eval.Namespace, i.entry != nil, i.share}
}

func (e *entry) rankKey() rankKey { return rankKey{position: &e.position, namespace: e.eval.Namespace} }

// rankAt returns the rank of what waits with its namespace's share.
func (g *gates) rankAt(at rankKey) structs.Rank {
	percent := g.share(at.pool, at.namespace)
	if at.passed {
		percent = min(percent, at.share)
	}
	return at.rank.Shared(percent)
}

// compare is below zero if a goes before b. Within a namespace shares make no difference.
func (g *gates) compare(a, b rankKey) int {
	if a.namespace == b.namespace || a.rank.Standing != structs.StandingNormal || b.rank.Standing != structs.StandingNormal {
		return a.rank.Compare(&b.rank)
	}
	x, y := g.rankAt(a), g.rankAt(b)
	return x.Compare(&y)
}
