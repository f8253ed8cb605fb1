package scheduler

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Orders in which nodes that fit are taken. binpack and spread are also the
// cluster's algorithms; a job may state any (Job.Policy).
const (
	policyBinpack  = structs.AlgorithmBinpack // least free room first
	policySpread   = structs.AlgorithmSpread  // most free room first
	policyFirstFit = "first-fit"              // by ID
	policyNextFit  = "next-fit"               // by ID, going on after the last one taken
	policyRandom   = "random"                 // seeded, all alike
)

// defaultScored is how many candidates of a class are scored when nodes of one
// class may score differently, if the configuration says nothing.
const defaultScored = 100

// search finds nodes for the instances of one group, one after another. Between
// two calls of next only take may change the World, so that a node that did not
// fit before does not fit now: each class is gone through once, not once per
// instance.
type search struct {
	e      *Edit
	ask    *ask
	f      *feasibility
	rng    *random
	policy string
	refuse []refusal // distinct_hosts, distinct_property

	classes []*classCursor
	last    *classCursor // that the last instance went to

	scorer *scorer // nil: nothing is preferred
	// list is all feasible nodes by ID, for the policies that go by ID.
	list   []*nodeState
	nextAt int
}

// classCursor is where the search is within one class.
type classCursor struct {
	name  string
	from  indexKey // nodes before (binpack) or after (spread) do not fit
	taken string   // the node last taken
}

func newSearch(e *Edit, a *ask, f *feasibility, rng *random, policy string) *search {
	e.flush()
	s := &search{e: e, ask: a, f: f, rng: rng, policy: policy}
	for name, c := range e.w.classes.All {
		if n := c.any(); f.class(n.node).ok() {
			s.classes = append(s.classes, &classCursor{name: name})
		}
	}
	s.rewind()
	switch policy {
	case policyFirstFit, policyNextFit, policyRandom:
		s.makeList()
	}
	return s
}

// rewind starts every class anew; wanted after something was freed.
func (s *search) rewind() {
	for _, c := range s.classes {
		c.taken = ""
		c.from = indexKey{cpu: s.ask.amount.CPU, memory: s.ask.amount.MemoryMB}
		if s.policy == policySpread {
			c.from = indexKey{cpu: math.MaxInt64, memory: math.MaxInt64}
		}
	}
	s.last = nil
	if s.list != nil {
		s.makeList()
	}
}

func (s *search) makeList() {
	s.list = []*nodeState{}
	for _, c := range s.classes {
		class, _ := s.e.w.classes.Get(c.name)
		for _, n := range class.nodes.All {
			s.list = append(s.list, n)
		}
	}
	slices.SortFunc(s.list, func(a, b *nodeState) int { return strings.Compare(a.id, b.id) })
	if s.nextAt >= len(s.list) {
		s.nextAt = 0
	}
}

// found is a node and what the instance gets there.
type found struct {
	node  *nodeState
	class *classCursor // nil: taken without one
	grant grant
}

// fits tries one node.
func (s *search) fits(n *nodeState) (grant, bool) {
	if n.node == nil || n.has == nil {
		return grant{}, false
	}
	if s.f.alone(n.node) != "" || s.refused(n.node) != "" {
		return grant{}, false
	}
	g, what := s.ask.grant(n, s.f.m, s.rng)
	return g, what == ""
}

// refused gives why a node is refused by where other instances are; "" if it is not.
func (s *search) refused(n *structs.Node) string {
	for i := range s.refuse {
		if r := &s.refuse[i]; r.refuses(n) {
			return r.reason
		}
	}
	return ""
}

// on tries one named node.
func (s *search) on(nodeID string) (found, bool) {
	n, known := s.e.w.nodes.Get(nodeID)
	if !known || n.node == nil || !n.node.Ready() || !s.f.class(n.node).ok() {
		return found{}, false
	}
	g, ok := s.fits(n)
	return found{node: n, grant: g}, ok
}

// next finds the node for the next instance. Nodes to avoid are taken only if
// there is no other.
func (s *search) next(avoid []string) (found, bool) {
	if len(avoid) > 0 {
		if f, ok := s.pick(avoid); ok {
			return f, true
		}
	}
	return s.pick(nil)
}

func (s *search) pick(avoid []string) (found, bool) {
	switch {
	case s.scorer != nil:
		return s.scored(avoid)
	case s.list != nil:
		return s.byID(avoid)
	}
	if f, ok := s.again(s.last, avoid); ok {
		// What was taken last had the least room of all, and now has less: it is
		// still the first in the order of binpack.
		return f, true
	}
	var best found
	for _, c := range s.classes {
		f, ok := s.inClass(c, avoid)
		if ok && (best.node == nil || s.before(f.node, best.node)) {
			best = f
		}
	}
	return best, best.node != nil
}

func (s *search) before(a, b *nodeState) bool {
	c := compareKeys(a.key(), b.key())
	if s.policy == policySpread {
		return c > 0
	}
	return c < 0
}

// again offers the node that a class gave last, in the order of binpack.
func (s *search) again(c *classCursor, avoid []string) (found, bool) {
	if c == nil || c.taken == "" || s.policy == policySpread || slices.Contains(avoid, c.taken) {
		return found{}, false
	}
	n, known := s.e.w.nodes.Get(c.taken)
	if !known {
		return found{}, false
	}
	g, ok := s.fits(n)
	if !ok {
		c.taken = ""
	}
	return found{n, c, g}, ok
}

// inClass finds the first node of a class that fits.
func (s *search) inClass(c *classCursor, avoid []string) (out found, ok bool) {
	if out, ok = s.again(c, avoid); ok {
		return out, true
	}
	skipped := false
	s.walk(c, func(key indexKey, n *nodeState) bool {
		if slices.Contains(avoid, n.id) {
			skipped = true
			return true
		}
		g, fits := s.fits(n)
		if !fits {
			return true
		}
		if !skipped {
			c.from = key
		}
		out, ok = found{n, c, g}, true
		return false
	})
	if !ok && !skipped {
		c.from = s.end()
	}
	return out, ok
}

// end is a key behind all nodes in the order of the policy.
func (s *search) end() indexKey {
	if s.policy == policySpread {
		return indexKey{cpu: math.MinInt64}
	}
	return indexKey{cpu: math.MaxInt64, memory: math.MaxInt64}
}

// walk goes over a class in the order of the policy, from where nodes may fit,
// until visit returns false.
func (s *search) walk(c *classCursor, visit func(indexKey, *nodeState) bool) {
	s.e.flush()
	class, known := s.e.w.classes.Get(c.name)
	if !known {
		return
	}
	if s.policy == policySpread {
		class.nodes.Descend(c.from, func(k indexKey, n *nodeState) bool {
			return k.cpu >= s.ask.amount.CPU && visit(k, n)
		})
		return
	}
	class.nodes.Ascend(c.from, visit)
}

// byID is first-fit, next-fit and random. A node that does not fit is not looked
// at again.
func (s *search) byID(avoid []string) (found, bool) {
	left := 0 // nodes at the front that are to be avoided, and may be wanted later
	for left < len(s.list) {
		at := left
		switch s.policy {
		case policyNextFit:
			at = left + (s.nextAt % (len(s.list) - left))
		case policyRandom:
			at = left + s.rng.below(len(s.list)-left)
		}
		n := s.list[at]
		n, _ = s.e.w.nodes.Get(n.id)
		if slices.Contains(avoid, n.id) {
			s.list[at], s.list[left] = s.list[left], s.list[at]
			left++
			continue
		}
		if g, ok := s.fits(n); ok {
			s.nextAt = at + 1
			return found{node: n, grant: g}, true
		}
		s.list = slices.Delete(s.list, at, at+1)
	}
	return found{}, false
}

// take gives a found node to an instance.
func (s *search) take(f found) {
	n := s.e.state(f.node.id)
	n.take(f.grant.use)
	s.last = f.class
	if f.class != nil {
		f.class.taken = n.id
	}
}

// scored finds, among the first nodes of each class, the one that is liked best;
// among equals the first in the policy's order.
func (s *search) scored(avoid []string) (found, bool) {
	var best found
	bestScore := math.Inf(-1)
	consider := func(f found) {
		score := s.scorer.score(s, f.node)
		if score > bestScore || (score == bestScore && s.before(f.node, best.node)) {
			best, bestScore = f, score
		}
	}
	if !s.scorer.single {
		for _, c := range s.classes {
			if f, ok := s.inClass(c, avoid); ok {
				consider(f)
			}
		}
		return best, best.node != nil
	}
	s.e.flush()
	for _, id := range s.scorer.favourites {
		if f, ok := s.on(id); ok && !slices.Contains(avoid, id) {
			consider(f)
		}
	}
	for most := s.scorer.floor; ; most++ {
		last := s.scorer.considerUpTo(s, most, avoid, consider)
		if best.node != nil {
			s.scorer.floor = most
			break
		}
		if last {
			break
		}
	}
	return best, best.node != nil
}

// scorer scores nodes by affinities and spreads.
type scorer struct {
	affinities []*structs.Affinity
	total      float64 // of the affinities' weights
	spreads    []*spreadCount
	weights    float64 // of the spreads
	// single: nodes of one class may score differently; then limit candidates of
	// each class are scored, those with the strongest affinity besides.
	single     bool
	limit      int
	favourites []string
	// floor is how many instances a value of a unique target must have for its
	// node not to be a candidate any more; it rises as the group grows.
	floor int
}

// spreadCount is a spread with the instances counted so far.
type spreadCount struct {
	spread *structs.Spread
	count  *propertyCount
	// wanted instances by value; nil: as even as can be.
	wanted map[string]float64
	rest   float64 // wanted for all values together that are not named
}

// score is at most a little over 1 for what is liked, lower for what is not:
// half for packing, up to 1 for affinities, and for spreads what each further
// instance would put a value ahead of the others, a whole one each.
func (sc *scorer) score(s *search, n *nodeState) float64 {
	score := 0.5 * s.packing(n)
	resolve := nodeResolver(n.node)
	if sc.total > 0 {
		sum := 0.0
		for _, a := range sc.affinities {
			if s.f.m.match(resolve, a.LTarget, a.Operand, a.RTarget) {
				sum += float64(a.Weight)
			}
		}
		score += sum / sc.total
	}
	for _, sp := range sc.spreads {
		score += sp.score(n.node) * float64(sp.spread.Weight) / sc.weights
	}
	return score
}

// packing is how full a node would be (binpack) or how empty (spread), 0 to 1.
func (s *search) packing(n *nodeState) float64 {
	used := n.used.plus(s.ask.amount)
	part := func(used, all int64) float64 {
		if all <= 0 {
			return 0
		}
		return float64(used) / float64(all)
	}
	full := (part(used.CPU, n.has.amount.CPU) + part(used.MemoryMB, n.has.amount.MemoryMB)) / 2
	if s.policy == policySpread {
		return 1 - full
	}
	return full
}

func (sp *spreadCount) score(n *structs.Node) float64 {
	v, known := nodeResolver(n)(sp.spread.Attribute)
	have := float64(sp.count.byValue[v])
	if !known {
		return -1e6 // a node without the attribute comes last
	}
	if sp.wanted == nil {
		return -have
	}
	most := 1.0
	for _, w := range sp.wanted { // a maximum: the order cannot show
		most = max(most, w)
	}
	if wanted := sp.wanted[v]; wanted > 0 {
		return -(have + 1) * most / wanted
	}
	if _, named := sp.wanted[v]; named || sp.rest <= 0 {
		return -2*most - have
	}
	others := 0.0
	for value, n := range sp.count.byValue { // a sum of whole numbers: the order cannot show
		if _, named := sp.wanted[value]; !named {
			others += float64(n)
		}
	}
	return -(others+1)*most/sp.rest - have/(others+1)
}

// considerUpTo considers, in each class, the first nodes that fit and whose values
// of unique spreads have at most so many instances. It tells whether more
// instances would let no other node in.
func (sc *scorer) considerUpTo(s *search, most int, avoid []string, consider func(found)) (last bool) {
	last = true
	limit := max(1, min(sc.limit, 4*sc.limit/max(1, len(s.classes))))
	for _, c := range s.classes {
		seen := 0
		s.walk(c, func(_ indexKey, n *nodeState) bool {
			if slices.Contains(avoid, n.id) {
				return true
			}
			if sc.above(n.node, most) {
				last = false
				return true
			}
			if g, ok := s.fits(n); ok {
				consider(found{n, nil, g})
				seen++
			}
			return seen < limit
		})
	}
	return last
}

func (sc *scorer) above(n *structs.Node, most int) bool {
	for _, sp := range sc.spreads {
		if unique(sp.spread.Attribute) {
			if have, _ := sp.count.of(n); have > most {
				return true
			}
		}
	}
	return false
}

// newScorer gives nil if the group prefers nothing.
func newScorer(job *structs.Job, group *structs.TaskGroup, c *census, live []*structs.Allocation, limit uint) *scorer {
	sc := &scorer{limit: int(cmp.Or(min(limit, 1<<20), defaultScored))} //nolint:gosec // bounded
	sc.affinities = append(append(sc.affinities, job.Affinities...), group.Affinities...)
	for _, t := range group.Tasks {
		sc.affinities = append(sc.affinities, t.Affinities...)
	}
	for _, a := range sc.affinities {
		sc.total += math.Abs(float64(a.Weight))
		sc.single = sc.single || unique(a.LTarget) || unique(a.RTarget)
	}
	for _, sp := range append(slices.Clone(job.Spreads), group.Spreads...) {
		if sp.Weight <= 0 {
			continue
		}
		sc.weights += float64(sp.Weight)
		sc.single = sc.single || unique(sp.Attribute)
		sc.spreads = append(sc.spreads, newSpreadCount(sp, group, c, live))
	}
	if sc.total == 0 && len(sc.spreads) == 0 {
		return nil
	}
	return sc
}

func newSpreadCount(sp *structs.Spread, group *structs.TaskGroup, c *census, live []*structs.Allocation) *spreadCount {
	s := &spreadCount{spread: sp, count: c.count(group.Name, sp.Attribute, live)}
	if len(sp.SpreadTarget) == 0 {
		return s
	}
	s.wanted = map[string]float64{}
	left := 100
	for _, t := range sp.SpreadTarget {
		s.wanted[t.Value] = float64(t.Percent) / 100 * float64(group.Count)
		left -= t.Percent
	}
	s.rest = max(0, float64(left)/100*float64(group.Count))
	return s
}

// findFavourites finds the nodes that affinities on unique targets like best:
// every feasible node is looked at, once an evaluation.
func (sc *scorer) findFavourites(s *search) {
	type liked struct {
		id  string
		sum int
	}
	var list []liked
	for _, c := range s.classes {
		class, _ := s.e.w.classes.Get(c.name)
		for _, n := range class.nodes.All {
			sum := 0
			resolve := nodeResolver(n.node)
			for _, a := range sc.affinities {
				if s.f.m.match(resolve, a.LTarget, a.Operand, a.RTarget) {
					sum += a.Weight
				}
			}
			if sum > 0 {
				list = append(list, liked{n.id, sum})
			}
		}
	}
	slices.SortFunc(list, func(a, b liked) int { return cmp.Or(cmp.Compare(b.sum, a.sum), strings.Compare(a.id, b.id)) })
	for _, l := range list[:min(len(list), sc.limit)] {
		sc.favourites = append(sc.favourites, l.id)
	}
}
