package bucket_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// The dimensions of the test worlds: cpu (MHz), memory (MiB), disk (MiB), and
// two of few values, which are checked by maxima only.
const (
	cpu = iota
	memory
	disk
	gpus
	ports
)

// world is a generated set of nodes and a request.
type world struct {
	name  string
	order []int
	need  bucket.Vector
	node  func(rng *rand.Rand, i, n int) bucket.Vector
}

var (
	two   = []int{cpu, memory}
	three = []int{cpu, memory, disk}
	want  = bucket.Vector{cpu: 2000, memory: 4096, disk: 10_000}
	whole = bucket.Vector{cpu: 64_000, memory: 262_144, disk: 2_000_000, ports: 100}
)

// with returns a vector with one dimension changed.
func with(v bucket.Vector, d int, value int64) bucket.Vector {
	v[d] = value
	return v
}

// filled is a node of which jobs took a random part, up to share percent.
func filled(share int64) func(*rand.Rand, int, int) bucket.Vector {
	return func(rng *rand.Rand, _, _ int) bucket.Vector {
		v := whole
		for d := range disk + 1 {
			v[d] -= v[d] / 100 * rng.Int64N(share+1)
			v[d] -= rng.Int64N(max(1, v[d]/100))
		}
		v[ports] -= rng.Int64N(50)
		return v
	}
}

// loose is above what is wanted in each dimension, by a random amount.
func loose(rng *rand.Rand) bucket.Vector {
	v := whole
	for d := range disk + 1 {
		v[d] = want[d] + rng.Int64N(whole[d]-want[d])
	}
	return v
}

// short makes a node lack up to by of a dimension.
func short(rng *rand.Rand, v bucket.Vector, d int, by int64) bucket.Vector {
	return with(v, d, want[d]-1-rng.Int64N(by))
}

var worlds = []world{
	{"empty", two, want, func(*rand.Rand, int, int) bucket.Vector { return whole }},
	{"half full", two, want, filled(100)},
	{"95 full", two, bucket.Vector{cpu: 60_000, memory: 200_000}, filled(100)},
	// The hard ones.
	{"one fits", two, want, func(rng *rand.Rand, i, n int) bucket.Vector {
		if i == n/2 {
			return loose(rng)
		}
		return short(rng, loose(rng), memory, want[memory])
	}},
	{"one fits of three", three, want, func(rng *rand.Rand, i, n int) bucket.Vector {
		if i == n/2 {
			return loose(rng)
		}
		return short(rng, loose(rng), disk, want[disk])
	}},
	{"halves short", three, want, func(rng *rand.Rand, i, n int) bucket.Vector {
		if i%(n/100) == 0 {
			return loose(rng)
		}
		return short(rng, loose(rng), memory+i%2, want[memory+i%2])
	}},
	{"halves short none fits", three, want, func(rng *rand.Rand, i, _ int) bucket.Vector {
		return short(rng, loose(rng), memory+i%2, want[memory+i%2])
	}},
	{"less than a granule", three, want, func(rng *rand.Rand, i, _ int) bucket.Vector {
		return short(rng, loose(rng), memory+i%2, 63)
	}},
	{"less than a granule in one", three, want, func(rng *rand.Rand, _, _ int) bucket.Vector {
		return short(rng, loose(rng), disk, 63)
	}},
}

// granularity is 64 in all but cpu: there no two nodes need be alike.
var granularity = bucket.Vector{memory: 64, disk: 64}

func uuid(rng *rand.Rand, i int) string {
	return fmt.Sprintf("0190a5b2-%04x-7%03x-8%03x-%012x", i/100, rng.IntN(4096), rng.IntN(4096), rng.Uint64N(1<<48))
}

// build makes an index of n nodes.
func (w *world) build(n int, order []int) (bucket.Index[int], []entry) {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	x, t := bucket.New[int](bucket.Config{Order: order, Granularity: granularity}), bucket.NewToken()
	nodes := make([]entry, n)
	for i := range nodes {
		nodes[i] = entry{ID: uuid(rng, i), At: w.node(rng, i, n), Value: i}
		bucket.Add(t, &x, nodes[i].ID, nodes[i].At, i)
	}
	return x, nodes
}
