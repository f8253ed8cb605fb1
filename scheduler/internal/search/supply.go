package search

import (
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// How scarce what a request may use is counted to be. The figures are of the OpenB trace (docs/guides/policies.md).
const (
	// maxScarcity bounds what a request's weight is multiplied by.
	maxScarcity = 16
	// scarcitySteps: so many steps double a scarcity. Few nodes that come or go change none, and then
	// all that was measured stays valid.
	scarcitySteps = 8
)

// supply is how many devices there are for each typical request, moved on from World to World by what
// differs between their supplies.
type supply struct {
	of world.Tree[string, *world.Supply] // which it was counted of
	// all are the devices of the request's kind in the request's pool, and good those of them that it
	// may use.
	all, good []int64
}

// scarcity is all devices divided by those that are good for a request, in steps; 1 if all are.
func scarcity(all, good int64) float64 {
	if good <= 0 || all <= good {
		return 1 // without any, nothing is weighed with it
	}
	part, doubled := math.Frexp(min(maxScarcity, float64(all)/float64(good)))
	return math.Ldexp(math.Round(part*2*scarcitySteps)/(2*scarcitySteps), doubled)
}

// users are the typical requests, by number, that a group of a family's devices is of the kind and in the
// pool of, and those of them that may use it.
type users struct{ kind, good []int16 }

// usersOf returns who may use each group of the devices of a family, one of whose nodes is n.
func (t *Typical) usersOf(family string, n *structs.Node) []users {
	if known, found := t.users[family]; found {
		return known
	}
	if len(t.users) >= maxFamilies || t.users == nil {
		t.users = map[string][]users{}
	}
	out := make([]users, len(n.NodeResources.Devices))
	for i := range t.requests {
		a, number := &t.requests[i], int16(i) // below maxTypical
		verdict := a.fit.Class(n)
		if !verdict.InPool {
			continue
		}
		for g, group := range n.NodeResources.Devices {
			if group.Type != a.want.Kind {
				continue
			}
			out[g].kind = append(out[g].kind, number)
			if verdict.OK() && a.want.Matches(t.m, group) {
				out[g].good = append(out[g].good, number)
			}
		}
	}
	t.users[family] = out
	return out
}

// measuresFor returns the typical requests as they are weighted in a World. What was measured before is kept
// while nothing is scarcer or less scarce than it was.
func (t *Typical) measuresFor(e *world.Edit) *measures {
	supplies := world.Supplies(world.Base(e))
	if world.MovedSupply(e) { // the edit may go on changing what it has: it is counted apart
		t.apart = t.measuresOf((&supply{}).follow(t, supplies), t.apart)
		return t.apart
	}
	if t.measures == nil || !tree.Same(&t.supply.of, supplies) {
		t.measures = t.measuresOf(t.supply.follow(t, supplies), t.measures)
	}
	return t.measures
}

// measuresOf returns those of before if nothing else is scarce.
func (t *Typical) measuresOf(scarcity []float64, before *measures) *measures {
	if before != nil && slices.Equal(scarcity, before.scarcity) {
		return before
	}
	scarce := slices.ContainsFunc(scarcity, func(s float64) bool { return s > 1 })
	return &measures{Typical: t, scarcity: scarcity, scarce: scarce, kinds: map[family]*kinds{}}
}

// follow moves the supply on to another World's and returns how scarce what each request may use is there.
func (s *supply) follow(t *Typical, now *world.Tree[string, *world.Supply]) []float64 {
	if s.all == nil {
		s.all, s.good = make([]int64, len(t.requests)), make([]int64, len(t.requests))
	}
	tree.Changes(now, &s.of, func(a, b *world.Supply) bool { return a == b }, func(c tree.Change[string, *world.Supply]) {
		if c.Had {
			s.add(t.usersOf(c.Key, c.Was.Node), c.Was.Devices, -1)
		}
		if c.Has {
			s.add(t.usersOf(c.Key, c.Is.Node), c.Is.Devices, 1)
		}
	})
	s.of = *now
	out := make([]float64, len(t.requests))
	for i := range out {
		out[i] = scarcity(s.all[i], s.good[i])
	}
	return out
}

// add counts a family's devices for those that may use them, or (-1) counts them no more.
func (s *supply) add(of []users, devices []int64, sign int64) {
	for g := range of {
		for _, i := range of[g].kind {
			s.all[i] += sign * devices[g]
		}
		for _, i := range of[g].good {
			s.good[i] += sign * devices[g]
		}
	}
}
