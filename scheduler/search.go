package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
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

// search finds nodes for the instances of one group, one after another. Between
// two calls of next only take may change the World, so that a node that did not
// fit before does not fit now: each set of nodes is gone through once, not once
// per instance.
type search struct {
	e      *Edit
	ask    *ask
	f      *feasibility
	rng    *random
	policy string
	refuse []refusal // distinct_hosts, distinct_property
	sort   sorter
	order  []int // the job's own order of dimensions; nil: the World's
	phases []phase

	sets []*setCursor
	// byClass: the sets are classes, not families.
	byClass bool
	last    *setCursor // that the last instance went to
	// passed: a cursor has gone past a node that may fit later.
	passed bool

	scorer *scorer    // nil: nothing is preferred
	list   *idList    // of the policies that do not go by room
	frag   *leastFrag // of the policy least-fragmentation
	// candidates are the only nodes that may be taken; nil: all.
	candidates []string
	// mine are the nodes that the ask has reserved, others those which others have:
	// the indexes do not show what is reserved. Each list loses what does not fit.
	mine, others []string

	few     [8]setCursor // memory for sets, which mostly are not more
	fewSets [8]*setCursor
}

// found is a node and what the instance gets there.
type found struct {
	node  *nodeState
	entry bucket.Entry[*nodeState]
	set   *setCursor // nil: taken without one
	phase int        // of the set's phases
	grant grant
}

func newSearch(e *Edit, a *ask, f *feasibility, rng *random, policy string) *search {
	e.flush()
	s := &search{e: e, ask: a, f: f, rng: rng, policy: policy, byClass: f.looksAtMeta()}
	s.order = dimensionOrder(f.job.Prefer)
	s.sort = newSorter(e.base().indexConf(), s.order, policy == policySpread)
	s.phases = a.phases
	if policy != policyBinpack && policy != policyLeastFrag {
		s.phases = anywhere
	}
	all, some := f.setsOf(e, s.byClass), 0
	for i := range all {
		if all[i].verdict.ok() {
			some++
		}
	}
	cursors := s.few[:]
	s.sets = s.fewSets[:0]
	if some > len(s.few) {
		cursors, s.sets = make([]setCursor, some), make([]*setCursor, 0, some)
	}
	for i := range all {
		if all[i].verdict.ok() {
			c := &cursors[len(s.sets)]
			c.name = all[i].name
			s.sets = append(s.sets, c)
		}
	}
	s.findCandidates()
	s.rewind()
	return s
}

// newSearchFor begins the search for a group's instances as an evaluation's input wants it: in its policy's
// order, by its affinities and spreads, and past what is refused by where other instances are, which
// live are a part of.
func newSearchFor(in *Input, group *structs.TaskGroup, e *Edit, f *feasibility, rng *random, census *census, live []*structs.Allocation) *search {
	s := newSearch(e, in.askOf(group), f, rng, in.policy())
	s.weighBy(in.Typical)
	s.refuse = f.refusals(census, live)
	s.scorer = newScorer(in.Job, group, census, live, in.Config.NodeLimitForFeasibilityChecks)
	if sc := s.scorer; sc != nil && sc.single && sc.total > 0 {
		sc.findFavourites(s)
	}
	return s
}

// all gives the sets that the search goes over: classes if the group looks at meta,
// else families.
func (s *search) all() *tree[string, *nodeSet] {
	if s.byClass {
		return s.e.base().classesTree()
	}
	return s.e.base().familiesTree()
}

func (s *search) byID() bool {
	return s.policy == policyFirstFit || s.policy == policyNextFit || s.policy == policyRandom
}

// rewind starts every set anew; wanted after something was freed.
func (s *search) rewind() {
	s.e.flush()
	for _, c := range s.sets {
		c.taken, c.left, c.phase = "", nil, nil
		c.weighed.done = false
	}
	s.last, s.passed = nil, false
	s.mine, s.others = nil, nil
	for id, h := range s.e.base().holdsTree().All {
		if h.askName == s.ask.by.askName {
			s.mine = append(s.mine, id)
		} else if h.free(&s.ask.by) {
			s.others = append(s.others, id)
		}
	}
	if s.byID() {
		s.list = &idList{}
	}
}

// looksAtMeta tells whether nodes of one family may differ for a group.
func (f *feasibility) looksAtMeta() bool {
	if f.within != nil && f.within.nodeID == "" {
		return true
	}
	for _, c := range f.shared {
		if isMeta(c.LTarget) || isMeta(c.RTarget) {
			return true
		}
	}
	constraints := slices.Concat(f.job.Constraints, f.group.Constraints)
	affinities := slices.Concat(f.job.Affinities, f.group.Affinities)
	for _, t := range f.group.Tasks {
		constraints, affinities = append(constraints, t.Constraints...), append(affinities, t.Affinities...)
	}
	return slices.ContainsFunc(constraints, func(c *structs.Constraint) bool { return isMeta(c.LTarget) || isMeta(c.RTarget) }) ||
		slices.ContainsFunc(affinities, func(a *structs.Affinity) bool { return isMeta(a.LTarget) || isMeta(a.RTarget) }) ||
		slices.ContainsFunc(slices.Concat(f.job.Spreads, f.group.Spreads), func(s *structs.Spread) bool { return isMeta(s.Attribute) })
}

// findCandidates lists the nodes that the group names, by name or ID.
func (s *search) findCandidates() {
	if len(s.f.group.Candidates) == 0 {
		return
	}
	s.candidates = []string{}
	for _, c := range s.f.group.Candidates {
		if _, known := s.e.node(c); known {
			s.candidates = append(s.candidates, c)
		}
		s.e.base().namesTree().Ascend(nodeName{c, ""}, func(n nodeName, _ struct{}) bool {
			if n.name == c {
				s.candidates = append(s.candidates, n.id)
			}
			return n.name == c
		})
	}
	slices.Sort(s.candidates)
	s.candidates = slices.Compact(s.candidates)
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

// refusesSet tells whether a node is refused by what all of its set have in common.
func (s *search) refusesSet(n *structs.Node) bool {
	for i := range s.refuse {
		r := &s.refuse[i]
		if target := r.count.target; !unique(target) && (s.byClass || !isMeta(target)) && r.refuses(n) {
			return true
		}
	}
	return false
}

// on tries one named node.
func (s *search) on(nodeID string) (found, bool) {
	n, known := s.e.node(nodeID)
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
		passed := s.passed // by others, which avoided other nodes
		f, ok := s.pick(avoid)
		if !ok && passed {
			s.rewind()
			f, ok = s.pick(avoid)
		}
		if ok {
			return f, true
		}
	}
	f, ok := s.pick(nil)
	if !ok && s.passed {
		s.rewind()
		f, ok = s.pick(nil)
	}
	return f, ok
}

// pick goes on where it was: first to what the ask has reserved, last to what others
// have reserved for a time when its work has ended.
func (s *search) pick(avoid []string) (found, bool) {
	if f, ok := s.onReserved(&s.mine, avoid); ok {
		return f, true
	}
	if f, ok := s.unreserved(avoid); ok {
		return f, true
	}
	return s.onReserved(&s.others, avoid)
}

func (s *search) unreserved(avoid []string) (found, bool) {
	switch {
	case s.scorer != nil:
		return s.scored(avoid)
	case s.candidates != nil:
		return s.amongCandidates(avoid)
	case s.policy == policyRandom:
		return s.drawn(avoid)
	case s.byID():
		return s.inList(avoid)
	case s.frag != nil:
		return s.leastFragmented(avoid)
	}
	if f, ok := s.again(s.last, avoid); ok {
		// What was taken last had the least room of all, and now has less: it is
		// still the first in the order of binpack.
		return f, true
	}
	s.keepOrder()
	return s.inPhases(avoid)
}

// inPhases finds the first node of all sets that a phase takes, phase after phase.
func (s *search) inPhases(avoid []string) (found, bool) {
	for phase := range s.phases {
		var best found
		for _, c := range s.sets {
			if f := s.head(c, phase, avoid); f.node != nil && (best.node == nil || s.before(f, best)) {
				best = f
			}
		}
		if best.node != nil {
			return best, true
		}
	}
	return found{}, false
}

// keepOrder brings the indexes up to date where an order needs it. That of binpack does
// not: a node that was taken from has less room than before and is offered again before
// all others, or has been passed.
func (s *search) keepOrder() {
	if s.policy != policyBinpack {
		s.e.flush()
	}
}

// onReserved tries reserved nodes. Those that do not fit, or are reserved no more, are
// not looked at again.
func (s *search) onReserved(list *[]string, avoid []string) (found, bool) {
	for i := 0; i < len(*list); {
		id := (*list)[i]
		if slices.Contains(avoid, id) {
			s.passed = true
			i++
			continue
		}
		if n, known := s.e.node(id); known && n.hold != nil {
			if f, ok := s.on(id); ok {
				return f, true
			}
		}
		*list = slices.Delete(*list, i, i+1)
	}
	return found{}, false
}

func (s *search) before(a, b found) bool { return s.sort.compare(&a.entry, &b.entry) < 0 }

// amongCandidates takes the first that fits of the nodes that the group names, in the
// order of the policy; of devices the smallest cell comes first.
func (s *search) amongCandidates(avoid []string) (found, bool) {
	s.e.flush()
	var best found
	for _, id := range s.candidates {
		f, ok := s.on(id)
		if !ok || slices.Contains(avoid, id) {
			continue
		}
		f.entry = bucket.Entry[*nodeState]{ID: id, At: f.node.at.at, Value: f.node}
		if best.node == nil || s.betterCandidate(f, best) {
			best = f
		}
	}
	return best, best.node != nil
}

func (s *search) betterCandidate(a, b found) bool {
	switch {
	case s.byID():
		return false // they come by ID
	case s.frag != nil:
		x, y := s.weighOne(a), s.weighOne(b)
		return s.compareWeighed(&x, &y) < 0
	case s.policy == policyBinpack && len(s.ask.devices) > 0 && a.grant.cell != b.grant.cell:
		return a.grant.cell < b.grant.cell
	}
	return s.before(a, b)
}

// take gives a found node to an instance.
func (s *search) take(f found) {
	n := f.node
	s.e.takeLater(n.id, f.grant.use)
	s.last = f.set
	if f.set != nil {
		f.set.taken = n.id
		if f.set.left != nil {
			for class := range f.set.left {
				f.set.left[class] = slices.DeleteFunc(f.set.left[class], func(id string) bool { return id == n.id })
			}
		}
		if f.phase < len(f.set.phase) && f.set.phase[f.phase] != nil {
			if head := &f.set.phase[f.phase].head; head.node != nil && head.node.id == n.id {
				*head = found{}
			}
		}
	}
	// Its cells are cut and cursors may be past it; with the policy spread the others
	// of as much room come first, and then it may come again.
	s.passed = s.passed || f.set == nil || s.policy == policySpread || s.frag != nil
	if s.frag != nil {
		s.forget(n)
	}
}
