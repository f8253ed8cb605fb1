package search

import (
	"math/bits"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// What a grant's devices were cut from, beside the classes of cells (see CellClass):
// parts of devices of which others hold parts already; devices of no single free cell.
const (
	partlyTaken = -1
	scattered   = world.CellSizes
)

// roundTries is how many nodes a search for a size between two powers of two looks
// at before it takes the next larger class of cells: cells of that very size are rare.
const roundTries = 8

// phase is one search over all nodes. Buddy allocation (semantics part 2) wants the smallest free
// cell that holds a request, wherever it is: nodes that have one of its size are looked for first,
// then those with one of twice the size, and so on; nodes that could only give scattered devices
// come last.
type phase struct {
	dim   int // the index must show at least min there; 0 in min: nothing more than the request's need
	min   int64
	most  int // the largest class that is taken
	tries int // nodes that are looked at without success before the phase ends; 0: all
}

// newPhases returns the searches that a request takes, in their order.
func newPhases(a *Request) []phase {
	whole, share := 0, 0
	for i := range a.Devices {
		if w := a.Devices[i].Whole(); w > 0 {
			whole = max(whole, w)
		} else {
			share = max(share, a.Devices[i].Share)
		}
	}
	if len(a.Devices) == 0 {
		return anywhere
	}
	out := make([]phase, 0, world.CellSizes+2)
	if whole == 0 {
		out = append(out, phase{dim: world.DimShare, min: int64(share), most: partlyTaken})
	}
	first := world.CellClass(whole)
	for class := first; class < world.CellSizes; class++ {
		p := phase{dim: world.DimCells + class, min: 1, most: class}
		if class == first && bits.OnesCount(uint(whole)) > 1 { // not negative
			p.tries = roundTries
		}
		out = append(out, p)
	}
	if whole > 1 || len(a.Devices) > 1 {
		out = append(out, phase{most: scattered})
	}
	return out
}

// anywhere is the search for what has no devices, and for policies that do not consider
// how cells are cut.
var anywhere = []phase{{most: scattered}}
