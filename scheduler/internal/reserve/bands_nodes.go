package reserve

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// loss is what a node loses if those leave that can, of a priority and below.
type loss struct {
	priority, count int
	left            *world.Resources // what may be reserved of the node then; nil: it was not looked up yet
}

// nobody is in place of a priority up to which nobody leaves.
const nobody = failedRank - 1

// maxFewest bounds how often stages are packed to find the nodes that have to lose somebody of a priority.
const maxFewest = 64

// upTo has those leave alone that are of a priority and below.
func (p *preemption) upTo(most int) {
	p.most, p.leave, p.losses = most, map[world.GangName]map[string]bool{}, make([][]loss, len(p.nodes))
	for i, n := range p.nodes {
		if p.taken[i] {
			continue
		}
		var ranks []int
		for _, u := range n.Usages {
			if p.leaves(u) {
				rank, _ := p.rank(u)
				ranks = append(ranks, rank)
			}
		}
		slices.Sort(ranks)
		for k, rank := range ranks {
			if k+1 == len(ranks) || ranks[k+1] != rank {
				p.losses[i] = append(p.losses[i], loss{priority: rank, count: k + 1})
			}
		}
	}
}

// lossOf returns what a node loses up to a priority; nil: nothing.
func lossOf(losses []loss, most int) (is *loss) {
	for k := range losses {
		if l := &losses[k]; l.priority <= most {
			is = l
		}
	}
	return is
}

// without returns a node as it would be without those who can leave it, up to a priority.
func (p *preemption) without(i, most int) *world.NodeState {
	n := p.nodes[i]
	if lossOf(p.losses[i], most) == nil {
		return n
	}
	n = world.TrialOf(n)
	for _, u := range p.nodes[i].Usages {
		if rank, _ := p.rank(u); rank <= most && p.leaves(u) {
			n.Give(u)
		}
	}
	return n
}

// amounts returns what may be reserved of each node without those who can leave it, up to a priority of each node.
func (p *preemption) amounts(upTo []int) []workflow.Amounts {
	list := slices.Clone(p.asIs)
	for i, most := range upTo {
		l := lossOf(p.losses[i], most)
		if l == nil {
			continue
		}
		if l.left == nil {
			left := p.freeOf(i, p.without(i, l.priority))
			l.left = &left
		}
		list[i] = *l.left
	}
	return p.besideSlots(list, false)
}

// as is the nodes without those who can leave them, up to a priority of each node.
func (p *preemption) as(upTo []int) nodesAs {
	known := map[int]*world.NodeState{} // looked up only
	return nodesAs{state: func(i int) *world.NodeState {
		if known[i] == nil {
			known[i] = p.without(i, upTo[i])
		}
		return known[i]
	}, allowed: p.isSpare}
}

// fewest returns up to which priority of some, the lowest first, those leave that can, on each node, for stages that pack if all do: somebody of the highest
// on no node that can do without if all lower ones leave, those first that would lose the fewest up to it; then, on the other nodes, of the next one that is
// needed, and so on. It packs as often as often states at most: what is not tried any more leaves.
func fewest(p *preemption, levels []int, often int, packs func(upTo []int) bool) []int {
	tries := 0
	works := func(upTo []int) bool {
		tries++
		return tries <= often && packs(upTo)
	}
	levels = append([]int{nobody}, levels...)
	var rest []int // the nodes of which it is not known yet
	upTo := make([]int, len(p.nodes))
	for i := range p.nodes {
		if upTo[i] = nobody; len(p.losses[i]) > 0 {
			rest = append(rest, i)
		}
	}
	with := func(at []int, most, others int) []int { // the rest as stated
		list := slices.Clone(upTo)
		for _, i := range rest {
			list[i] = others
		}
		for _, i := range at {
			list[i] = most
		}
		return list
	}
	for k := len(levels) - 1; k > 0; k-- { // it packs with the rest at this level
		var at, must []int
		for _, i := range rest {
			if l := lossOf(p.losses[i], levels[k]); l != nil && l.priority == levels[k] {
				at = append(at, i)
			}
		}
		slices.SortStableFunc(at, func(a, b int) int {
			return cmp.Compare(lossOf(p.losses[a], levels[k]).count, lossOf(p.losses[b], levels[k]).count)
		})
		for len(at) > 0 && tries < often { // of the first that will do the last one is needed
			n := first(len(at), func(n int) bool { return works(with(slices.Concat(must, at[:n]), levels[k], levels[k-1])) })
			if at = at[:n]; n > 0 {
				must, at = append(must, at[n-1]), at[:n-1]
			}
		}
		must = append(must, at...)
		upTo = with(must, levels[k], levels[k-1])
		rest = slices.DeleteFunc(rest, func(i int) bool { return slices.Contains(must, i) })
		k = 1 + first(k-1, func(k int) bool { return works(with(nil, nobody, levels[k])) })
	}
	return with(nil, nobody, nobody)
}
