package reserve

import (
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// TestTries: how often stages are packed to find who can stay is bounded by the pairs of a node and an instance that are looked at: the leader does it, for one
// workflow after the other.
func TestTries(t *testing.T) {
	for _, of := range []struct{ nodes, instances, want int }{
		{0, 0, maxFewest}, {100, 100, maxFewest}, {1000, 500, 8}, {1000, 2000, 2}, {1000, 10_000, 0},
	} {
		stages := [][]workflow.Instance{make([]workflow.Instance, of.instances/2), make([]workflow.Instance, of.instances/2)}
		if got := triesFor(of.nodes, stages); got != of.want {
			t.Errorf("%d nodes, %d instances: %d tries, want %d", of.nodes, of.instances, got, of.want)
		}
	}
}

// TestFewestOften: of nodes that lose somebody of priorities 10, 20 and 30, three have to lose up to 20. With fewer tries more nodes do, but none above the
// priority up to which it packs, and never fewer than are needed.
func TestFewestOften(t *testing.T) {
	const nodes, needed = 40, 3
	p := &preemption{chooser: &chooser{nodes: make([]*world.NodeState, nodes)}, losses: make([][]loss, nodes)}
	for i := range p.losses {
		p.losses[i] = []loss{{priority: 10, count: 1}, {priority: 20, count: 2}, {priority: 30, count: 3}}
	}
	upTo20 := func(upTo []int) (n int) {
		for _, most := range upTo {
			if most == 20 {
				n++
			}
		}
		return n
	}
	before := nodes
	for _, often := range []int{0, 2, 4, 8, maxFewest} {
		packed := 0
		got := fewest(p, []int{10, 20}, often, func(upTo []int) bool {
			packed++
			return upTo20(upTo) >= needed
		})
		n := upTo20(got)
		if packed > often || n < needed || n > before || slices.Max(got) > 20 {
			t.Errorf("at most %d tries: %d, on %d nodes up to 20 (before: %d): %v", often, packed, n, before, got)
		}
		before = n
	}
	if before != needed {
		t.Errorf("%d nodes lose up to 20, and %d would do", before, needed)
	}
}
