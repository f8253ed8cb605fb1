package scheduler

import (
	"cmp"
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
	for _, c := range s.all().All {
		n := c.any()
		v, nodes := s.f.class(n.node), c.nodes.Len()
		if !v.inPool {
			continue
		}
		x.NodesInPool += nodes
		if !v.inDC {
			continue
		}
		x.NodesAvailable[n.node.Datacenter] += nodes
		x.NodesEvaluated += nodes
		if v.reason != "" {
			x.filtered(n.node, v.reason, nodes)
		} else if visit != nil {
			visit(c)
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
	alike := len(s.f.single) == 0 && len(s.f.group.Candidates) == 0 && len(s.refuse) == 0
	if alike && s.e.w.holds.Len() == 0 {
		most := c.nodes.Max()
		if what := s.ask.lacksAt(&most); what != "" { // all lack it, whatever else
			x.exhausted(c.any().node, what, c.nodes.Len())
			return
		}
	}
	lacking, nodes := "", 0 // neighbours in the index mostly lack the same
	for e := range c.nodes.All {
		what := ""
		if alike && e.Value.hold == nil {
			what = s.ask.lacksAt(&e.At)
		}
		if what != lacking {
			x.exhausted(c.any().node, lacking, nodes)
			lacking, nodes = what, 0
		}
		if what == "" {
			if x.node(s, e.Value) && fits != nil {
				fits(e.Value)
			}
			continue
		}
		nodes++
	}
	x.exhausted(c.any().node, lacking, nodes)
}

// lacksAt is what of an ask a node lacks by what the index shows of it, in the order in
// which grant finds it out; "" if the index cannot tell.
func (a *ask) lacksAt(at *bucket.Vector) string {
	switch {
	case at[dimCPU] < a.need[dimCPU]:
		return lacksCPU
	case at[dimMemory] < a.need[dimMemory]:
		return lacksMemory
	case at[dimDisk] < a.need[dimDisk]:
		return lacksDisk
	case a.need[dimCores] > max(0, at[dimCores]):
		return lacksCores
	case a.need[dimGPUs] > max(0, at[dimGPUs]):
		return lacksDevices
	}
	return ""
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
