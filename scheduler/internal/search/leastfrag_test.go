package search

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// drawTypical draws what is typically asked for.
func drawTypical(rt *rapid.T) *Typical {
	var requests []structs.TypicalRequest
	for range rapid.IntRange(0, 5).Draw(rt, "typical asks") {
		j := schedtest.DrawJob(rt)
		requests = append(requests, structs.TypicalRequest{Job: j, Group: schedtest.Group(j), Weight: rapid.Int64Range(0, 9).Draw(rt, "weight")})
	}
	return NewTypical(requests)
}

// In a small world the policy finds the node that loses least of all, whatever was
// taken before, and always one if any fits.
func TestLeastFragmentationAgainstEveryNode(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHunter(rt)
		h.policy, h.seed, h.typical = PolicyLeastFrag, rapid.Uint64().Draw(rt, "seed"), drawTypical(rt)
		ids := []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"}[:rapid.IntRange(1, 8).Draw(rt, "nodes")]
		e := h.w.Edit()
		for _, id := range ids {
			e.UpsertNode(schedtest.DrawNode(rt, id))
		}
		h.w = e.World()
		for i := range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			h.job(ids, i)
		}
	})
}

// Which device a share goes to is the same whether it was found when the node was weighed or
// is found anew, and whether the node's devices are read from beside its place or from afar.
func TestWeighedNodesAreRememberedAsTheyAre(t *testing.T) {
	remembered := 0
	rapid.Check(t, func(rt *rapid.T) {
		h := newHunter(rt)
		h.config.SetNodeOrder(PolicyLeastFrag)
		e := h.w.Edit()
		e.UpsertNode(schedtest.Node("n", schedtest.EightGPUs))
		h.w = e.World()
		share := func(name string) int { return rapid.SampledFrom([]int{100, 250, 300, 500, 700}).Draw(rt, name) }
		request := func(share int) *structs.Job {
			return schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1, Share: share})
		}
		typical := request(share("typical"))
		h.typical = NewTypical([]structs.TypicalRequest{{Job: typical, Group: schedtest.Group(typical), Weight: 1}})
		for range rapid.IntRange(0, 12).Draw(rt, "before") {
			h.begin(request(share("held")))
			if f := h.search.Next(nil); f != nil {
				h.search.Take(f)
			}
			h.w = h.search.Edit.World()
		}
		j := request(share("asked"))
		h.begin(j)
		l := h.search.frag
		n, _ := world.StateOf(h.search.Edit, "n")
		steps, ok := l.lossOf(n, l.t.of(n), true)
		anew := *l
		anew.requestKey = 0
		p := world.Pool{At: 0, Tree: n.Capacity.Trees[0], Group: n.Capacity.Trees[0].Groups[0]}
		was, wasOK := l.levelOn(n, n.Cells[0], p)
		is, isOK := anew.levelOn(n, n.Cells[0], p)
		if was != is || wasOK != isOK {
			rt.Fatalf("remembered %d %v, found anew %d %v", was, wasOK, is, isOK)
		}
		far := *n
		far.Pool = world.OnePool{}
		loss, _, fits := l.loss(&far, l.t.of(n))
		if fits != ok || ok && lossSteps(loss) != steps {
			rt.Fatalf("from afar it loses %d (%v), from beside its place %d (%v)", lossSteps(loss), fits, steps, ok)
		}
		if ok && l.requestKey != 0 {
			remembered++
		}
	})
	if remembered == 0 {
		t.Fatal("nothing was remembered in any of the worlds")
	}
}
