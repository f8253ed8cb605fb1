package metric

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Explanation fills an AllocMetric: why a request found no node, or among how many it found one.
type Explanation struct{ *structs.AllocMetric }

// New returns one of a job that has counted nothing yet.
func New(job *structs.Job) Explanation {
	available := map[string]int{}
	for _, dc := range job.Datacenters {
		if !strings.Contains(dc, "*") {
			available[dc] = 0 // so that one without a node is named
		}
	}
	return Explanation{&structs.AllocMetric{
		NodePool:       cmp.Or(job.NodePool, structs.DefaultNodePool),
		NodesAvailable: available,
	}}
}

// Filtered counts nodes that the group may not use at all.
func (x Explanation) Filtered(n *structs.Node, reason string, nodes int) {
	x.NodesFiltered += nodes
	AddCount(&x.ConstraintFiltered, reason, nodes)
	if n.NodeClass != "" {
		AddCount(&x.ClassFiltered, n.NodeClass, nodes)
	}
}

// Exhausted counts nodes of one node class that lack something now.
func (x Explanation) Exhausted(n *structs.Node, what string, nodes int) {
	if nodes == 0 {
		return
	}
	x.NodesExhausted += nodes
	AddCount(&x.DimensionExhausted, what, nodes)
	if n.NodeClass != "" {
		AddCount(&x.ClassExhausted, n.NodeClass, nodes)
	}
}

// Lacks counts a node that lacks something now; nil: it is gone. Of one that is counted already only what it lacks is.
func (x Explanation) Lacks(n *structs.Node, what string, counted bool) {
	if counted {
		AddCount(&x.DimensionExhausted, what, 1)
		return
	}
	if n == nil {
		n = &structs.Node{}
	}
	x.Exhausted(n, what, 1)
	x.NodesEvaluated++
}

// AddCount adds to an entry of a map of counts, which is made with the first one.
func AddCount(m *map[string]int, key string, by int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key] += by
}

// Classes counts what can be known without looking at single nodes. visit is
// called for each class that the group may use.
func (x Explanation) Classes(s *search.Search, visit func(c *world.NodeSet)) {
	if visit != nil { // else it is only counted how many there are
		world.Flush(s.Edit)
	}
	all := s.Fit.SetsOf(s.Edit, s.ByClass)
	for i := range all {
		c := &all[i]
		if !c.Verdict.InPool {
			continue
		}
		x.NodesInPool += c.Nodes
		if !c.Verdict.InDC {
			continue
		}
		x.NodesAvailable[c.Node.Datacenter] += c.Nodes
		x.NodesEvaluated += c.Nodes
		if c.Verdict.Reason != "" {
			x.Filtered(c.Node, c.Verdict.Reason, c.Nodes)
		} else if visit != nil {
			set, _ := s.AllSets().Get(c.Name)
			visit(set)
		}
	}
}

// Node counts one node of a class that the group may use. It reports whether the node would do.
func (x Explanation) Node(s *search.Search, n *world.NodeState) bool {
	reason := s.Fit.Alone(n.Node)
	if reason == "" {
		reason = s.Refused(n.Node)
	}
	if reason != "" {
		x.Filtered(n.Node, reason, 1)
		return false
	}
	_, what := s.Request.Grant(n, s.Fit.Matcher, s.Random)
	if what != "" {
		x.Exhausted(n.Node, x.withOwner(s.Request, n, what), 1)
	}
	return what == ""
}

// Explain counts for every node why a request does not fit. Where reasons are given that no node has, they hold what would do, and all
// that is lacking beside them.
func Explain(s *search.Search, reasons ...string) *structs.AllocMetric {
	x := New(s.Fit.Job)
	var fits func(*world.NodeState)
	if len(reasons) > 0 {
		fits = func(n *world.NodeState) { x.Exhausted(n.Node, reasons[0], 1) }
	}
	x.Classes(s, func(c *world.NodeSet) { x.Set(s, c, fits) })
	for _, reason := range reasons {
		world.PutInto(&x.DimensionExhausted, reason, x.NodesExhausted)
	}
	return x.AllocMetric
}

// Set counts the nodes of a set that the group may use. What lacks something that the
// index shows is not looked at further; fits, if any, is called with what lacks nothing.
func (x Explanation) Set(s *search.Search, c *world.NodeSet, fits func(*world.NodeState)) {
	look := func(n *world.NodeState) {
		if x.Node(s, n) && fits != nil {
			fits(n)
		}
	}
	if len(s.Fit.Single) > 0 || len(s.Fit.Group.Candidates) > 0 || len(s.Refusals) > 0 {
		for n := range c.All {
			look(n)
		}
		return
	}
	tests, lacking := s.Request.Tests()
	counts := bucket.Sieve(&c.Nodes, tests, func(e bucket.Entry[*world.NodeState]) { look(e.Value) })
	for id := range world.Reservations(world.Base(s.Edit)).All { // the index shows what is left of them for others
		n, _ := world.NodeStates(world.Base(s.Edit)).Get(id)
		if at := s.SetOf(n); at == "" || at != s.SetOf(c.Any()) {
			continue
		}
		if k := slices.IndexFunc(tests, func(t bucket.Test) bool { return !t.Met(&n.Indexed.At) }); k >= 0 {
			counts[k]--
			look(n)
		}
	}
	if of := s.SetOf(c.Any()); of != "" {
		x.reserved(s, of, tests, lacking, counts)
	}
	for k, nodes := range counts {
		x.Exhausted(c.Any().Node, lacking[k], nodes)
	}
}

// maxScoreMeta bounds the scores that a batch records, as in Nomad.
const maxScoreMeta = 5

// Chosen records the score of a node that was taken.
func (x Explanation) Chosen(s *search.Search, f *search.Found) {
	if len(x.ScoreMetaData) >= maxScoreMeta {
		return
	}
	for _, m := range x.ScoreMetaData {
		if m.NodeID == f.Node.ID {
			return
		}
	}
	packing := s.Packing(f.Node)
	meta := &structs.NodeScoreMeta{NodeID: f.Node.ID, Scores: map[string]float64{s.Policy: packing}, NormScore: packing}
	if s.Scorer != nil {
		meta.NormScore = s.Scorer.Score(s, *f)
		meta.Scores["affinities and spreads"] = meta.NormScore - 0.5*packing
	}
	x.ScoreMetaData = append(x.ScoreMetaData, meta)
}
