package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// However one-GPU jobs came, they leave as many nodes whole as can be.
func TestPackingLeavesWholeNodes(t *testing.T) {
	kinds := []string{structs.JobTypeBatch, structs.JobTypeService}
	for _, percent := range []int{50, 75} {
		want := packedNodes * (100 - percent) / 100
		for _, alike := range []bool{true, false} {
			for seed := range packingSeeds {
				kind := kinds[seed%len(kinds)]
				t.Run(fmt.Sprintf("%d%%/alike=%t/%s/seed=%d", percent, alike, kind, seed), func(t *testing.T) {
					p := newPacker(t, packedNodes, kind, uint64(seed))
					p.fill(packedNodes*gpusPerNode*percent/100, alike)
					if got := p.wholeNodes(); got != want {
						t.Fatalf("%d eight-GPU jobs fit, want %d", got, want)
					}
				})
			}
		}
	}
}

// Nor do many arrivals and departures scatter what is free. Ideal is the number of
// free GPUs by eight.
func TestPackingOutlastsChurn(t *testing.T) {
	for seed := range packingSeeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			p := newPacker(t, packedNodes, structs.JobTypeBatch, uint64(seed))
			p.fill(packedNodes*gpusPerNode*3/4, true)
			p.churn(churnEvents)
			ideal := (p.nodes*gpusPerNode - len(p.owner)) / gpusPerNode
			if got := p.wholeNodes(); got*10 < ideal*9 {
				t.Fatalf("%d eight-GPU jobs fit, want 90%% of %d", got, ideal)
			}
		})
	}
}
