package scheduler

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// defaultScored is how many candidates of a class are scored when nodes of one
// class may score differently, if the configuration says nothing.
const defaultScored = 100

// scored finds, among the first nodes of each class, the one that is liked best;
// among equals the first in the policy's order.
func (s *search) scored(avoid []string) (found, bool) {
	var best found
	bestScore := math.Inf(-1)
	consider := func(f found) {
		score := s.scorer.score(s, f)
		if score > bestScore || (score == bestScore && s.before(f, best)) {
			best, bestScore = f, score
		}
	}
	if !s.scorer.single {
		for _, c := range s.sets {
			if f, ok := s.inSet(c, avoid); ok {
				consider(f)
			}
		}
		return best, best.node != nil
	}
	s.e.flush()
	for _, id := range s.scorer.favourites {
		if f, ok := s.on(id); ok && !slices.Contains(avoid, id) {
			f.entry = bucket.Entry[*nodeState]{ID: id, At: f.node.at.at, Value: f.node}
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
func (sc *scorer) score(s *search, f found) float64 {
	n := f.node
	score := 0.5 * s.packing(n)
	resolve := nodeResolver(n.node)
	if sc.total > 0 {
		sum := float64(f.grant.like) // of the devices that it would get
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

// packing is how full a node would be (binpack), how empty (spread), or how little
// ability it would lose (least-fragmentation), 0 to 1.
func (s *search) packing(n *nodeState) float64 {
	if s.frag != nil {
		return s.frag.liking(n)
	}
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
	limit := max(1, min(sc.limit, 4*sc.limit/max(1, len(s.sets))))
	for _, c := range s.sets {
		seen := 0
		s.walk(c, func(n *nodeState) bool {
			if slices.Contains(avoid, n.id) {
				return true
			}
			if sc.above(n.node, most) {
				last = false
				return true
			}
			if g, ok := s.fits(n); ok {
				consider(found{node: n, entry: bucket.Entry[*nodeState]{ID: n.id, At: n.at.at, Value: n}, grant: g})
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
	if !prefers(job, group) {
		return nil
	}
	sc := &scorer{limit: int(cmp.Or(min(limit, 1<<20), defaultScored))} //nolint:gosec // bounded
	sc.affinities = append(append(sc.affinities, job.Affinities...), group.Affinities...)
	for _, t := range group.Tasks {
		sc.affinities = append(sc.affinities, t.Affinities...)
	}
	for _, a := range sc.affinities {
		sc.total += math.Abs(float64(a.Weight))
		sc.single = sc.single || unique(a.LTarget) || unique(a.RTarget)
	}
	for _, t := range group.Tasks {
		for _, d := range deviceAsks(t) {
			for _, a := range d.req.Affinities {
				sc.total += math.Abs(float64(a.Weight))
			}
		}
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

// prefers tells whether a group would rather have some nodes than others.
func prefers(job *structs.Job, group *structs.TaskGroup) bool {
	if len(job.Affinities)+len(group.Affinities)+len(job.Spreads)+len(group.Spreads) > 0 {
		return true
	}
	return slices.ContainsFunc(group.Tasks, func(t *structs.Task) bool {
		return len(t.Affinities) > 0 || t.Resources != nil &&
			slices.ContainsFunc(t.Resources.Devices, func(d *structs.RequestedDevice) bool { return len(d.Affinities) > 0 })
	})
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
	for _, c := range s.sets {
		set, _ := s.all().Get(c.name)
		for n := range set.all {
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
