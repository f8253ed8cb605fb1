package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// defaultScored is how many candidates of a class are scored when nodes of one
// class may score differently, if the configuration states nothing.
const defaultScored = 100

// scored finds, among the first nodes of each class, the one that is liked best;
// among equals the first in the policy's order.
func (s *Search) scored(avoid []string) (Found, bool) {
	var best Found
	bestScore := math.Inf(-1)
	consider := func(f Found) {
		score := s.Scorer.Score(s, f)
		if score > bestScore || (score == bestScore && s.before(f, best)) {
			best, bestScore = f, score
		}
	}
	if !s.Scorer.single {
		for _, c := range s.Sets {
			if f, ok := s.inSet(c, avoid); ok {
				consider(f)
			}
		}
		return best, best.Node != nil
	}
	world.Flush(s.Edit)
	for _, id := range s.Scorer.favourites {
		if f, ok := s.on(id); ok && !slices.Contains(avoid, id) {
			f.entry = bucket.Entry[*world.NodeState]{ID: id, At: f.Node.Indexed.At, Value: f.Node}
			consider(f)
		}
	}
	for most := s.Scorer.floor; ; most++ {
		last := s.Scorer.considerUpTo(s, most, avoid, consider)
		if best.Node != nil {
			s.Scorer.floor = most
			break
		}
		if last {
			break
		}
	}
	return best, best.Node != nil
}

// Scorer scores nodes by affinities and spreads.
type Scorer struct {
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
	count  *feasible.PropertyCount
	// wanted instances by value; nil: as even as can be.
	wanted map[string]float64
	rest   float64 // wanted for all values together that are not named
}

// Score is at most a little over 1 for what is liked, lower for what is not:
// half for packing, up to 1 for affinities, and for spreads what each further
// instance would put a value ahead of the others, a whole one each.
func (sc *Scorer) Score(s *Search, f Found) float64 {
	n := f.Node
	score := 0.5 * s.Packing(n)
	resolve := feasible.NodeResolver(n.Node)
	if sc.total > 0 {
		sum := float64(f.Grant.like) // of the devices that it would get
		for _, a := range sc.affinities {
			if s.Fit.Matcher.Match(resolve, a.LTarget, a.Operand, a.RTarget) {
				sum += float64(a.Weight)
			}
		}
		score += sum / sc.total
	}
	for _, sp := range sc.spreads {
		score += sp.score(n.Node) * float64(sp.spread.Weight) / sc.weights
	}
	return score
}

// Packing is how full a node would be (binpack), how empty (spread), or how little
// ability it would lose (least-fragmentation), 0 to 1.
func (s *Search) Packing(n *world.NodeState) float64 {
	if s.frag != nil {
		return s.frag.liking(n)
	}
	used := n.Used.Plus(s.Request.Amount)
	part := func(used, all int64) float64 {
		if all <= 0 {
			return 0
		}
		return float64(used) / float64(all)
	}
	full := (part(used.CPU, n.Capacity.Amount.CPU) + part(used.MemoryMB, n.Capacity.Amount.MemoryMB)) / 2
	if s.Policy == PolicySpread {
		return 1 - full
	}
	return full
}

func (sp *spreadCount) score(n *structs.Node) float64 {
	v, known := feasible.NodeResolver(n)(sp.spread.Attribute)
	have := float64(sp.count.ByValue[v])
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
	for value, n := range sp.count.ByValue { // a sum of whole numbers: the order cannot show
		if _, named := sp.wanted[value]; !named {
			others += float64(n)
		}
	}
	return -(others+1)*most/sp.rest - have/(others+1)
}

// considerUpTo considers, in each class, the first nodes that fit and whose values of unique
// spreads have at most so many instances. It reports whether more instances would let no other node
// in.
func (sc *Scorer) considerUpTo(s *Search, most int, avoid []string, consider func(Found)) (last bool) {
	last = true
	limit := max(1, min(sc.limit, 4*sc.limit/max(1, len(s.Sets))))
	for _, c := range s.Sets {
		seen := 0
		s.walk(c, func(n *world.NodeState) bool {
			if slices.Contains(avoid, n.ID) {
				return true
			}
			if sc.above(n.Node, most) {
				last = false
				return true
			}
			if g, ok := s.fits(n); ok {
				consider(Found{Node: n, entry: bucket.Entry[*world.NodeState]{ID: n.ID, At: n.Indexed.At, Value: n}, Grant: g})
				seen++
			}
			return seen < limit
		})
	}
	return last
}

func (sc *Scorer) above(n *structs.Node, most int) bool {
	for _, sp := range sc.spreads {
		if feasible.IsUnique(sp.spread.Attribute) {
			if have, _ := sp.count.Of(n); have > most {
				return true
			}
		}
	}
	return false
}

// newScorer returns nil if the group prefers nothing.
func newScorer(job *structs.Job, group *structs.TaskGroup, c *feasible.Census, live []*structs.Allocation, limit uint) *Scorer {
	if !prefers(job, group) {
		return nil
	}
	sc := &Scorer{limit: int(cmp.Or(min(limit, 1<<20), defaultScored))} // bounded
	sc.affinities = append(append(sc.affinities, job.Affinities...), group.Affinities...)
	for _, t := range group.Tasks {
		sc.affinities = append(sc.affinities, t.Affinities...)
	}
	for _, a := range sc.affinities {
		sc.total += math.Abs(float64(a.Weight))
		sc.single = sc.single || feasible.IsUnique(a.LTarget) || feasible.IsUnique(a.RTarget)
	}
	for _, t := range group.Tasks {
		for _, d := range feasible.DeviceRequests(t) {
			for _, a := range d.Request.Affinities {
				sc.total += math.Abs(float64(a.Weight))
			}
		}
	}
	for _, sp := range append(slices.Clone(job.Spreads), group.Spreads...) {
		if sp.Weight <= 0 {
			continue
		}
		sc.weights += float64(sp.Weight)
		sc.single = sc.single || feasible.IsUnique(sp.Attribute)
		sc.spreads = append(sc.spreads, newSpreadCount(sp, group, c, live))
	}
	if sc.total == 0 && len(sc.spreads) == 0 {
		return nil
	}
	return sc
}

// prefers reports whether a group would rather have some nodes than others.
func prefers(job *structs.Job, group *structs.TaskGroup) bool {
	if len(job.Affinities)+len(group.Affinities)+len(job.Spreads)+len(group.Spreads) > 0 {
		return true
	}
	return slices.ContainsFunc(group.Tasks, func(t *structs.Task) bool {
		return len(t.Affinities) > 0 || t.Resources != nil &&
			slices.ContainsFunc(t.Resources.Devices, func(d *structs.RequestedDevice) bool { return len(d.Affinities) > 0 })
	})
}

func newSpreadCount(sp *structs.Spread, group *structs.TaskGroup, c *feasible.Census, live []*structs.Allocation) *spreadCount {
	s := &spreadCount{spread: sp, count: c.Count(group.Name, sp.Attribute, live)}
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
func (sc *Scorer) findFavourites(s *Search) {
	type liked struct {
		id  string
		sum int
	}
	var list []liked
	for _, c := range s.Sets {
		set, _ := s.AllSets().Get(c.Name)
		for n := range set.All {
			sum := 0
			resolve := feasible.NodeResolver(n.Node)
			for _, a := range sc.affinities {
				if s.Fit.Matcher.Match(resolve, a.LTarget, a.Operand, a.RTarget) {
					sum += a.Weight
				}
			}
			if sum > 0 {
				list = append(list, liked{n.ID, sum})
			}
		}
	}
	slices.SortFunc(list, func(a, b liked) int { return cmp.Or(cmp.Compare(b.sum, a.sum), strings.Compare(a.id, b.id)) })
	for _, l := range list[:min(len(list), sc.limit)] {
		sc.favourites = append(sc.favourites, l.id)
	}
}
