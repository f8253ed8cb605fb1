package scheduler

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// drawTypical draws what is typically asked for.
func drawTypical(rt *rapid.T) *Typical {
	var asks []structs.TypicalAsk
	for range rapid.IntRange(0, 5).Draw(rt, "typical asks") {
		j := drawJob(rt)
		asks = append(asks, structs.TypicalAsk{Job: j, Group: group(j), Weight: rapid.Int64Range(0, 9).Draw(rt, "weight")})
	}
	return NewTypical(asks)
}

// In a small world the policy finds the node that loses least of all, whatever was
// taken before, and always one if any fits.
func TestLeastFragmentationAgainstEveryNode(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.seed, c.typical = rapid.Uint64().Draw(rt, "seed"), drawTypical(rt)
		ids := []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"}[:rapid.IntRange(1, 8).Draw(rt, "nodes")]
		for _, id := range ids {
			c.setNode(drawNode(rt, id))
		}
		h := &hunter{t: rt, policy: policyLeastFrag}
		for i := range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			h.job(c, ids, i)
		}
	})
}
