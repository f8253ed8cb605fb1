package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// Dimensions of the indexes that are measured: MHz, MiB, and MiB of disk.
const (
	indexMHz = iota
	indexMemory
	indexDisk
)

// What is called of the hard indexes, what nodes have at most, and the granules.
var (
	indexNeed     = bucket.Vector{hardMHz, hardMemoryMB, 20_000}
	indexMost     = bucket.Vector{8000, 8192, 1_000_000}
	indexGranules = bucket.Vector{granuleMHz, granuleMemory, 1000}
)

// index is a bucket index by itself, without the World around it.
type index struct {
	bucket.Index[int]
	entries []bucket.Entry[int]
	rng     *rand.Rand
	dims    int
}

// newIndex makes an index of nodes that have any room (fillHalf), or of which only
// one in so many has enough for indexNeed and the others lack some of the last
// dimensions, as in the hard worlds.
func newIndex(fill string, nodes, dims, oneIn int) *index {
	order := []int{indexMHz, indexMemory, indexDisk}[:dims]
	x := &index{
		Index: bucket.New[int](bucket.Config{Order: order, Granularity: indexGranules}),
		rng:   rand.New(rand.NewPCG(3, 4)), dims: dims,
	}
	t := bucket.NewToken()
	for i := range nodes {
		at := x.room(fill)
		if fill != fillHalf && i%oneIn == oneIn/2 {
			at = x.enough()
		}
		e := bucket.Entry[int]{ID: structs.DeriveID("node", uint64(i)), At: at, Value: i}
		x.entries = append(x.entries, e)
		bucket.Add(t, &x.Index, e.ID, e.At, i)
	}
	return x
}

// enough is more than indexNeed in each dimension.
func (x *index) enough() (at bucket.Vector) {
	for d := range x.dims {
		at[d] = indexNeed[d] + x.rng.Int64N(indexMost[d]-indexNeed[d])
	}
	return at
}

// room is what a node has that does not fit, or may not.
func (x *index) room(fill string) (at bucket.Vector) {
	at = x.enough()
	last := x.dims - 1
	if fill != hardOne && x.rng.IntN(2) == 0 {
		last--
	}
	switch fill {
	case fillHalf:
		for d := range x.dims {
			at[d] = x.rng.Int64N(indexMost[d])
		}
	case hardGranule:
		at[last] = indexNeed[last] - 1 - x.rng.Int64N(indexGranules[last]-1)
	default:
		at[last] = x.rng.Int64N(indexNeed[last])
	}
	return at
}

// need is a request: any small one where any may fit.
func (x *index) need(fill string) (need bucket.Vector) {
	for d := range x.dims {
		need[d] = indexNeed[d]
		if fill == fillHalf {
			need[d] = 1 + x.rng.Int64N(indexNeed[d])
		}
	}
	return need
}

// search looks for count nodes, each the first of a search of its own, or, going on, behind the one
// before. It returns the pages visited and the time.
func (x *index) search(tb testing.TB, fill string, count int, goOn bool) (pages int, took time.Duration) {
	var c bucket.Cursor[int]
	if goOn {
		c = bucket.Search(&x.Index, bucket.Query[int]{Need: x.need(fill)})
		if _, found := c.Next(&x.Index); !found {
			tb.Fatal("nothing fits")
		}
		pages = -c.Pages()
	}
	requests := make([]bucket.Vector, count)
	for i := range requests {
		requests[i] = x.need(fill)
	}
	stop := stopwatch()
	for i := range requests {
		if !goOn {
			c = bucket.Search(&x.Index, bucket.Query[int]{Need: requests[i]})
		}
		if _, found := c.Next(&x.Index); !found {
			tb.Fatal("nothing fits")
		}
		if !goOn {
			pages += c.Pages()
		}
	}
	took = stop()
	if goOn {
		pages += c.Pages()
	}
	return pages, took
}

// BenchmarkIndex is the bucket index alone.
func BenchmarkIndex(b *testing.B) {
	hard := []string{fillHalf, hardOne, hardEither, hardGranule}
	for _, n := range sizes(100_000) {
		for _, dims := range []int{2, 3} {
			row := map[int]string{2: "search-2", 3: "first-3"}[dims]
			for _, fill := range hard {
				searches(b, fmt.Sprintf("%s/%s/nodes=%s", row, fill, thousands(n)), fill, 50, false, func() *index {
					return newIndex(fill, n, dims, n)
				})
			}
		}
		for _, fill := range hard {
			searches(b, fmt.Sprintf("following-3/%s-1%%-fit/nodes=%s", fill, thousands(n)), fill, n/200, true, func() *index {
				return newIndex(fill, n, 3, 100)
			})
		}
		updates(b, "update", n, false)
		updates(b, "update-snapshot", n, true)
	}
	pagesGrowth(b)
}

func searches(b *testing.B, name, fill string, count int, goOn bool, build func() *index) {
	b.Run(name, func(b *testing.B) {
		x := build()
		var took []time.Duration
		pages, rounds := 0, 0
		b.ResetTimer()
		for b.Loop() {
			p, t := x.search(b, fill, count, goOn)
			took = append(took, t)
			pages, rounds = pages+p, rounds+1
		}
		b.ReportMetric(micros(median(took))/float64(count), "µs/search")
		b.ReportMetric(float64(pages)/float64(rounds*count), "pages/search")
		b.ReportMetric(0, "ns/op")
	})
}

// taken is a node's room when it has given one volume more, or got all back.
func (x *index) taken(at bucket.Vector) bucket.Vector {
	volume := bucket.Vector{500, 1024}
	if !at.Fits(&volume) {
		return x.enough()
	}
	for d := range x.dims {
		at[d] -= volume[d]
	}
	return at
}

// updates lets nodes, any, give a volume each.
func updates(b *testing.B, row string, n int, snapshots bool) {
	const count = 200
	b.Run(fmt.Sprintf("%s/nodes=%s", row, thousands(n)), func(b *testing.B) {
		x := newIndex(fillHalf, n, 2, n)
		t := bucket.NewToken()
		var kept bucket.Index[int]
		var took []time.Duration
		b.ResetTimer()
		for b.Loop() {
			var which [count]int // each another
			var to [count]bucket.Vector
			for i, first := 0, x.rng.IntN(n); i < count; i++ {
				which[i] = (first + i*7919) % n
				to[i] = x.taken(x.entries[which[i]].At)
			}
			stop := stopwatch()
			for i, k := range which {
				e := &x.entries[k]
				if snapshots {
					kept, t = x.Index, bucket.NewToken()
				}
				bucket.Update(t, &x.Index, e.ID, e.At, to[i], e.Value)
				e.At = to[i]
			}
			took = append(took, stop())
		}
		if kept.Len() != n && snapshots || x.Len() != n {
			b.Fatalf("%d entries, want %d", x.Len(), n)
		}
		b.ReportMetric(micros(median(took))/count, "µs/update")
		b.ReportMetric(0, "ns/op")
	})
}

// pagesGrowth compares the pages that searches visit in a small and a large index.
func pagesGrowth(b *testing.B) {
	small, large := 1000, 100_000
	if testing.Short() {
		small, large = 500, 1000
	}
	for _, fill := range []string{fillHalf, hardOne, hardEither, hardGranule} {
		b.Run(fmt.Sprintf("pages-growth/%s/nodes=%s:%s", fill, thousands(large), thousands(small)), func(b *testing.B) {
			on := [2]*index{newIndex(fill, small, 2, small), newIndex(fill, large, 2, large)}
			var pages [2]int
			for b.Loop() {
				for i, x := range on {
					p, _ := x.search(b, fill, 50, false)
					pages[i] += p
				}
			}
			b.ReportMetric(float64(pages[1])/float64(pages[0]), "growth")
			b.ReportMetric(0, "ns/op")
		})
	}
}
