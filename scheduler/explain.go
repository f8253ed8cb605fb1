package scheduler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// explanation fills an AllocMetric: why an ask found no node, or among how many
// it found one.
type explanation struct{ *structs.AllocMetric }

func newExplanation(job *structs.Job) explanation {
	available := map[string]int{}
	for _, dc := range job.Datacenters {
		if !strings.Contains(dc, "*") {
			available[dc] = 0 // so that one without a node is named
		}
	}
	return explanation{&structs.AllocMetric{
		NodePool:       cmp.Or(job.NodePool, structs.DefaultNodePool),
		NodesAvailable: available,
	}}
}

// filtered counts nodes that the group may not use at all.
func (x explanation) filtered(n *structs.Node, reason string, nodes int) {
	x.NodesFiltered += nodes
	count(&x.ConstraintFiltered, reason, nodes)
	if n.NodeClass != "" {
		count(&x.ClassFiltered, n.NodeClass, nodes)
	}
}

// exhausted counts nodes of one node class that lack something now.
func (x explanation) exhausted(n *structs.Node, what string, nodes int) {
	if nodes == 0 {
		return
	}
	x.NodesExhausted += nodes
	count(&x.DimensionExhausted, what, nodes)
	if n.NodeClass != "" {
		count(&x.ClassExhausted, n.NodeClass, nodes)
	}
}

func count(m *map[string]int, key string, by int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key] += by
}

// classes counts what can be told without looking at single nodes. visit is
// called for each class that the group may use.
func (x explanation) classes(s *search, visit func(c *nodeSet)) {
	if visit != nil { // else it is only counted how many there are
		s.e.flush()
	}
	all := s.f.setsOf(s.e, s.byClass)
	for i := range all {
		c := &all[i]
		if !c.verdict.inPool {
			continue
		}
		x.NodesInPool += c.nodes
		if !c.verdict.inDC {
			continue
		}
		x.NodesAvailable[c.node.Datacenter] += c.nodes
		x.NodesEvaluated += c.nodes
		if c.verdict.reason != "" {
			x.filtered(c.node, c.verdict.reason, c.nodes)
		} else if visit != nil {
			set, _ := s.all().Get(c.name)
			visit(set)
		}
	}
}

// node counts one node of a class that the group may use. It tells whether the node
// would do.
func (x explanation) node(s *search, n *nodeState) bool {
	reason := s.f.alone(n.node)
	if reason == "" {
		reason = s.refused(n.node)
	}
	if reason != "" {
		x.filtered(n.node, reason, 1)
		return false
	}
	_, what := s.ask.grant(n, s.f.m, s.rng)
	if what != "" {
		x.exhausted(n.node, what, 1)
	}
	return what == ""
}

// explain says why an ask finds no node, of every node.
func explain(s *search) *structs.AllocMetric {
	x := newExplanation(s.f.job)
	x.classes(s, func(c *nodeSet) { x.set(s, c, nil) })
	return x.AllocMetric
}

// set counts the nodes of a set that the group may use. What lacks something that the
// index shows is not looked at further; fits, if any, is told of what lacks nothing.
func (x explanation) set(s *search, c *nodeSet, fits func(*nodeState)) {
	look := func(n *nodeState) {
		if x.node(s, n) && fits != nil {
			fits(n)
		}
	}
	if len(s.f.single) > 0 || len(s.f.group.Candidates) > 0 || len(s.refuse) > 0 {
		for n := range c.all {
			look(n)
		}
		return
	}
	tests, lacking := s.ask.tests()
	counts := c.nodes.Sieve(tests, func(e bucket.Entry[*nodeState]) { look(e.Value) })
	for id := range s.e.base().holdsTree().All { // the index shows what is left of them for others
		n, _ := s.e.base().nodesTree().Get(id)
		if at := s.set(n); at == "" || at != s.set(c.any()) {
			continue
		}
		if k := slices.IndexFunc(tests, func(t bucket.Test) bool { return !t.Holds(&n.at.at) }); k >= 0 {
			counts[k]--
			look(n)
		}
	}
	for k, nodes := range counts {
		x.exhausted(c.any().node, lacking[k], nodes)
	}
}

// set names the set that a node is in; "": it is in none.
func (s *search) set(n *nodeState) string {
	if s.byClass {
		return n.at.class
	}
	return n.at.family
}

// tests are what the index can tell of what a node lacks, and what it is called, in the
// order in which grant finds it out. What passes them may lack something all the same.
func (a *ask) tests() (tests []bucket.Test, lacking []string) {
	add := func(t bucket.Test, what string) { tests, lacking = append(tests, t), append(lacking, what) }
	add(bucket.Test{Dim: dimCPU, Min: a.need[dimCPU]}, lacksCPU)
	add(bucket.Test{Dim: dimMemory, Min: a.need[dimMemory]}, lacksMemory)
	add(bucket.Test{Dim: dimDisk, Min: a.need[dimDisk]}, lacksDisk)
	if n := a.need[dimCores]; n > 0 {
		add(bucket.Test{Dim: dimCores, Min: n}, lacksCores)
		return tests, lacking // the MHz of cores differ by node, and are looked at next
	}
	required := slices.ContainsFunc(a.devices, func(d deviceAsk) bool { return d.find.Required })
	if required && len(a.devices) > 1 {
		return tests, lacking // a grant may find no cell for one before too few for another
	}
	whole, part := a.need[dimGPUs], int64(0)
	for i := range a.devices {
		if a.devices[i].whole() == 0 {
			part = max(part, int64(a.devices[i].share))
		}
	}
	if whole > 0 {
		add(bucket.Test{Dim: dimGPUs, Min: whole}, lacksDevices)
	}
	if part > 0 { // of one that is free beside the whole ones, or of one of which others have parts
		add(bucket.Test{Dim: dimGPUs, Min: whole + 1, OrDim: dimShare, OrMin: part}, lacksDevices)
	}
	return tests, lacking
}

// maxScoreMeta bounds the scores that a batch records, as in Nomad.
const maxScoreMeta = 5

// chosen records the score of a node that was taken.
func (x explanation) chosen(s *search, f found) {
	if len(x.ScoreMetaData) >= maxScoreMeta {
		return
	}
	for _, m := range x.ScoreMetaData {
		if m.NodeID == f.node.id {
			return
		}
	}
	packing := s.packing(f.node)
	meta := &structs.NodeScoreMeta{NodeID: f.node.id, Scores: map[string]float64{s.policy: packing}, NormScore: packing}
	if s.scorer != nil {
		meta.NormScore = s.scorer.score(s, f)
		meta.Scores["affinities and spreads"] = meta.NormScore - 0.5*packing
	}
	x.ScoreMetaData = append(x.ScoreMetaData, meta)
}
