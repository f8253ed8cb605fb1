package search

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Anywhere is the search without the domain that it was kept to.
func (s *Search) Anywhere() *Search {
	if s.Fit.Within == nil {
		return s
	}
	c := *s
	c.Fit = s.Fit.In(nil)
	c.ByClass = c.Fit.LooksAtMeta()
	return &c
}

// Orders in which nodes that fit are taken. binpack and spread are also the
// cluster's algorithms; a job may state any (Job.Policy).
const (
	PolicyBinpack  = structs.AlgorithmBinpack // least free room first
	PolicySpread   = structs.AlgorithmSpread  // most free room first
	PolicyFirstFit = "first-fit"              // by ID
	PolicyNextFit  = "next-fit"               // by ID, going on after the last one taken
	PolicyRandom   = "random"                 // seeded, all alike
)

// Search finds nodes for the instances of one group, one after another. Between
// two calls of next only take may change the World, so that a node that did not
// fit before does not fit now: each set of nodes is gone through once, not once
// per instance.
type Search struct {
	Edit     *world.Edit
	Request  *Request
	Fit      *feasible.Feasibility
	Random   *random.Numbers
	Policy   string
	Refusals []feasible.Refusal // distinct_hosts, distinct_property
	sort     sorter
	order    []int // the job's own order of dimensions; nil: the World's
	phases   []phase

	Sets []*SetCursor
	// ByClass: the sets are classes, not families.
	ByClass bool
	last    *SetCursor // that the last instance went to
	// passed: a cursor has gone past a node that may fit later.
	passed bool

	Scorer *Scorer    // nil: nothing is preferred
	list   *idList    // of the policies that do not go by room
	frag   *leastFrag // of the policy least-fragmentation
	// Candidates are the only nodes that may be taken; nil: all.
	Candidates []string
	// Allow reports whether a node may be taken at all, whatever it has free; nil: any.
	Allow func(n *world.NodeState) bool
	// mine are the nodes that the request has reserved, others those which others have: the indexes
	// do not show what is reserved. Each list loses what does not fit.
	mine, others []string

	found   Found // by the last call of Next or On: callers share it, as it is large
	cursors *spare[phaseCursor]
	few     [4]SetCursor // memory for sets, which mostly are not more
	fewSets [4]*SetCursor
}

// Found is a node and what the instance gets there.
type Found struct {
	Node  *world.NodeState
	entry bucket.Entry[*world.NodeState]
	set   *SetCursor // nil: taken without one
	phase int        // of the set's phases
	Grant Grant
}

// New begins a search for instances that take the request, on the nodes that f allows, in a
// policy's order.
func New(e *world.Edit, a *Request, f *feasible.Feasibility, rng *random.Numbers, policy string) *Search {
	return begin(new(Search), e, a, f, rng, policy)
}

func begin(s *Search, e *world.Edit, a *Request, f *feasible.Feasibility, rng *random.Numbers, policy string) *Search {
	world.Flush(e)
	*s = Search{Edit: e, Request: a, Fit: f, Random: rng, Policy: policy, ByClass: f.LooksAtMeta()}
	s.order = world.DimensionOrder(f.Job.Prefer)
	s.sort = newSorter(world.IndexConfig(world.Base(e)), s.order, policy == PolicySpread)
	s.phases = a.phases
	if policy != PolicyBinpack && policy != PolicyLeastFrag {
		s.phases = anywhere
	}
	all, some := f.SetsOf(e, s.ByClass), 0
	for i := range all {
		if all[i].Verdict.OK() {
			some++
		}
	}
	cursors := s.few[:]
	s.Sets = s.fewSets[:0]
	if some > len(s.few) {
		cursors, s.Sets = make([]SetCursor, some), make([]*SetCursor, 0, some)
	}
	for i := range all {
		if all[i].Verdict.OK() {
			c := &cursors[len(s.Sets)]
			c.Name = all[i].Name
			s.Sets = append(s.Sets, c)
		}
	}
	s.findCandidates()
	s.Rewind()
	return s
}

// ForGroup begins the search for a group's instances as an evaluation's input wants it: in its policy's
// order, by its affinities and spreads, and past what is refused by where other instances are, which
// live are a part of.
func ForGroup(in *Input, group *structs.TaskGroup, e *world.Edit, f *feasible.Feasibility, rng *random.Numbers, census *feasible.Census, live []*structs.Allocation) *Search {
	var s *Search
	if p := in.Prepared; p != nil {
		s = begin(p.searches.next(), e, in.requestOf(group), f, rng, in.Policy())
		s.cursors = &p.cursors
	} else {
		s = New(e, in.requestOf(group), f, rng, in.Policy())
	}
	s.Request.LeaveOwned(in.Job, e)
	s.Request.OfProject(in, e)
	s.weighBy(in.Typical)
	s.Refusals = f.Refusals(census, live)
	s.Scorer = newScorer(in.Job, group, census, live, in.Config.NodeLimitForFeasibilityChecks)
	if sc := s.Scorer; sc != nil && sc.single && sc.total > 0 {
		sc.findFavourites(s)
	}
	return s
}

// ForNamed returns a search that tries named nodes only, for another request of the same group.
func (s *Search) ForNamed(a *Request) *Search {
	c := *s
	c.Request, c.Sets, c.frag, c.Scorer, c.last = a, nil, nil, nil, nil
	return &c
}

// ForAlike returns a search that goes on where this one is, for another request that takes as much of a node.
func (s *Search) ForAlike(a *Request) *Search {
	c := *s
	c.Request = a
	return &c
}

// AllSets returns the sets that the search goes over: classes if the group has constraints on meta, else
// families.
func (s *Search) AllSets() *world.Tree[string, *world.NodeSet] {
	if s.ByClass {
		return world.Classes(world.Base(s.Edit))
	}
	return world.Families(world.Base(s.Edit))
}

func (s *Search) byID() bool {
	return s.Policy == PolicyFirstFit || s.Policy == PolicyNextFit || s.Policy == PolicyRandom
}

// Rewind starts every set anew; wanted after something was freed.
func (s *Search) Rewind() {
	world.Flush(s.Edit)
	for _, c := range s.Sets {
		c.taken, c.left, c.phase = "", nil, nil
		c.weighed.done = false
	}
	s.last, s.passed = nil, false
	s.mine, s.others = nil, nil
	for id, h := range world.Reservations(world.Base(s.Edit)).All {
		if h.RequestName == s.Request.By.RequestName {
			s.mine = append(s.mine, id)
		} else if h.Free(&s.Request.By) {
			s.others = append(s.others, id)
		}
	}
	for key, c := range world.PendingWorkflows(world.Base(s.Edit)).All {
		if by := &s.Request.By; !by.Entitled && (!by.Recognised || c.Posted) && !by.IsOf(key) {
			continue
		}
		for _, p := range c.KeptParts() {
			s.others = append(s.others, p.NodeID)
		}
	}
	if s.byID() {
		s.list = &idList{}
	}
}

// findCandidates lists the nodes that the group names, by name or ID.
func (s *Search) findCandidates() {
	if len(s.Fit.Group.Candidates) == 0 {
		return
	}
	s.Candidates = []string{}
	for _, c := range s.Fit.Group.Candidates {
		if _, known := world.StateOf(s.Edit, c); known {
			s.Candidates = append(s.Candidates, c)
		}
		world.Names(world.Base(s.Edit)).Ascend(world.NodeName{Name: c, ID: ""}, func(n world.NodeName, _ struct{}) bool {
			if n.Name == c {
				s.Candidates = append(s.Candidates, n.ID)
			}
			return n.Name == c
		})
	}
	slices.Sort(s.Candidates)
	s.Candidates = slices.Compact(s.Candidates)
}

// fits tries one node.
func (s *Search) fits(n *world.NodeState) (Grant, bool) {
	if n.Node == nil || n.Capacity == nil {
		return Grant{}, false
	}
	if s.Fit.Alone(n.Node) != "" || s.Refused(n.Node) != "" || s.Allow != nil && !s.Allow(n) {
		return Grant{}, false
	}
	g, what := s.Request.Grant(n, s.Fit.Matcher, s.Random)
	return g, what == ""
}

// Refused returns why a node is refused by where other instances are; "" if it is not.
func (s *Search) Refused(n *structs.Node) string {
	for i := range s.Refusals {
		if r := &s.Refusals[i]; r.Refuses(n) {
			return r.Reason
		}
	}
	return ""
}

// refusesSet reports whether a node is refused by what all of its set have in common.
func (s *Search) refusesSet(n *structs.Node) bool {
	for i := range s.Refusals {
		r := &s.Refusals[i]
		if target := r.Count.Target; !feasible.IsUnique(target) && (s.ByClass || !feasible.IsMeta(target)) && r.Refuses(n) {
			return true
		}
	}
	return false
}

// On tries one named node. The answer is valid until the next call of Next or On; nil: it does not take the instance.
func (s *Search) On(nodeID string) *Found {
	var ok bool
	if s.found, ok = s.on(nodeID); !ok {
		return nil
	}
	return &s.found
}

// Takes reports whether a node takes the instance as it is given, which may be a trial.
func (s *Search) Takes(n *world.NodeState) bool {
	if n.Node == nil || !n.Node.Ready() || !s.Fit.Class(n.Node).OK() {
		return false
	}
	_, ok := s.fits(n)
	return ok
}

func (s *Search) on(nodeID string) (Found, bool) {
	n, known := world.StateOf(s.Edit, nodeID)
	if !known || n.Node == nil || !n.Node.Ready() || !s.Fit.Class(n.Node).OK() {
		return Found{}, false
	}
	g, ok := s.fits(n)
	return Found{Node: n, Grant: g}, ok
}

// Next finds the node for the next instance; nil: there is none. Nodes to avoid are taken only if there is no other. The answer is valid
// until the next call of Next or On.
func (s *Search) Next(avoid []string) *Found {
	if len(avoid) > 0 && s.next(avoid) || s.next(nil) {
		return &s.found
	}
	return nil
}

// next tries what has not been passed, then all again if some were passed that others avoided.
func (s *Search) next(avoid []string) (ok bool) {
	passed := s.passed
	if ok = s.pick(avoid); !ok && (passed || len(avoid) == 0 && s.passed) {
		s.Rewind()
		ok = s.pick(avoid)
	}
	return ok
}

// pick goes on where it was: first to what the request has reserved, last to what others have
// reserved for a time when its work has ended. What it finds is in s.found: it is large, so it is copied once.
func (s *Search) pick(avoid []string) (ok bool) {
	if len(s.mine) > 0 {
		s.found, ok = s.onReserved(&s.mine, avoid)
	}
	if ok = ok || s.unreserved(avoid); !ok && len(s.others) > 0 {
		s.found, ok = s.onReserved(&s.others, avoid)
	}
	return ok
}

func (s *Search) unreserved(avoid []string) (ok bool) {
	switch {
	case s.Scorer != nil:
		s.found, ok = s.scored(avoid)
		return ok
	case s.Candidates != nil:
		s.found, ok = s.amongCandidates(avoid)
		return ok
	case s.Policy == PolicyRandom:
		s.found, ok = s.drawn(avoid)
		return ok
	case s.byID():
		s.found, ok = s.inList(avoid)
		return ok
	case s.frag != nil:
		s.found, ok = s.leastFragmented(avoid)
		return ok
	}
	if s.found, ok = s.again(s.last, avoid); !ok {
		// What was taken last had the least room of all, and now has less: it was
		// still the first in the order of binpack.
		s.keepOrder()
		s.found, ok = s.inPhases(avoid)
	}
	return ok
}

// inPhases finds the first node of all sets that a phase takes, phase after phase.
func (s *Search) inPhases(avoid []string) (Found, bool) {
	for phase := range s.phases {
		var best Found
		for _, c := range s.Sets {
			if f := s.head(c, phase, avoid); f.Node != nil && (best.Node == nil || s.before(f, best)) {
				best = f
			}
		}
		if best.Node != nil {
			return best, true
		}
	}
	return Found{}, false
}

// keepOrder brings the indexes up to date where an order needs it. That of binpack does
// not: a node that was taken from has less room than before and is offered again before
// all others, or has been passed.
func (s *Search) keepOrder() {
	if s.Policy != PolicyBinpack {
		world.Flush(s.Edit)
	}
}

// onReserved tries reserved nodes. Those that do not fit, or are reserved no more, are
// not checked again.
func (s *Search) onReserved(list *[]string, avoid []string) (Found, bool) {
	for i := 0; i < len(*list); {
		id := (*list)[i]
		if slices.Contains(avoid, id) {
			s.passed = true
			i++
			continue
		}
		if n, known := world.StateOf(s.Edit, id); known && (n.Reservation != nil || len(n.Parts()) > 0) {
			if f, ok := s.on(id); ok {
				return f, true
			}
		}
		*list = slices.Delete(*list, i, i+1)
	}
	return Found{}, false
}

func (s *Search) before(a, b Found) bool { return s.sort.compare(&a.entry, &b.entry) < 0 }

// amongCandidates takes the first that fits of the nodes that the group names, in the
// order of the policy; of devices the smallest cell comes first.
func (s *Search) amongCandidates(avoid []string) (Found, bool) {
	world.Flush(s.Edit)
	var best Found
	for _, id := range s.Candidates {
		f, ok := s.on(id)
		if !ok || slices.Contains(avoid, id) {
			continue
		}
		f.entry = bucket.Entry[*world.NodeState]{ID: id, At: f.Node.Indexed.At, Value: f.Node}
		if best.Node == nil || s.betterCandidate(f, best) {
			best = f
		}
	}
	return best, best.Node != nil
}

func (s *Search) betterCandidate(a, b Found) bool {
	switch {
	case s.byID():
		return false // they come by ID
	case s.frag != nil:
		x, y := s.weighOne(a), s.weighOne(b)
		return s.compareWeighed(&x, &y) < 0
	case s.Policy == PolicyBinpack && len(s.Request.Devices) > 0 && a.Grant.cell != b.Grant.cell:
		return a.Grant.cell < b.Grant.cell
	}
	return s.before(a, b)
}

// Take assigns a found node to an instance.
func (s *Search) Take(f *Found) {
	world.TakeLater(s.Edit, f.Node.ID, f.Grant.Usage)
	s.Taken(f)
}

// Taken goes on after a node that was found has been taken from for the request of another search.
func (s *Search) Taken(f *Found) {
	n := f.Node
	s.last = f.set
	if f.set != nil {
		f.set.taken = n.ID
		if f.set.left != nil {
			for class := range f.set.left {
				f.set.left[class] = slices.DeleteFunc(f.set.left[class], func(id string) bool { return id == n.ID })
			}
		}
		if f.phase < len(f.set.phase) && f.set.phase[f.phase] != nil {
			if head := &f.set.phase[f.phase].head; head.Node != nil && head.Node.ID == n.ID {
				*head = Found{}
			}
		}
	}
	// Its cells are cut and cursors may be past it; with the policy spread the others
	// of as much room come first, and then it may come again.
	s.passed = s.passed || f.set == nil || s.Policy == PolicySpread || s.frag != nil
	if s.frag != nil {
		s.forget(n)
	}
}
