package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

var sizes = []int{1000, 10_000, 100_000}

var found entry // keeps the compiler from leaving searches out

// measure runs one search after the other and reports what each took.
func measure(b *testing.B, x *bucket.Index[int], q bucket.Query[int]) {
	b.ReportAllocs()
	pages := 0
	start := time.Now()
	for b.Loop() {
		c := bucket.Search(x, q)
		found, _ = c.Next(x)
		pages += c.Pages()
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), "ns/search")
	b.ReportMetric(float64(pages)/float64(b.N), "pages/search")
}

// BenchmarkSearchFirst is the first search of a request.
func BenchmarkSearchFirst(b *testing.B) {
	for _, w := range worlds {
		for _, n := range sizes {
			x, _ := w.build(n, w.order)
			for _, p := range []bucket.Policy{bucket.BestFit, bucket.LeastFit} {
				b.Run(fmt.Sprintf("%s/policy=%d/n=%d", w.name, p, n), func(b *testing.B) {
					measure(b, &x, bucket.Query[int]{Need: w.need, Policy: p})
				})
			}
		}
	}
}

// BenchmarkSearchNext is the following search of a request, in the worlds where more than one node
// fits.
func BenchmarkSearchNext(b *testing.B) {
	for _, w := range worlds {
		for _, n := range sizes {
			x, _ := w.build(n, w.order)
			start := bucket.Search(&x, bucket.Query[int]{Need: w.need})
			start.Next(&x)
			if again := start; !more(&again, &x) {
				continue
			}
			b.Run(fmt.Sprintf("%s/n=%d", w.name, n), func(b *testing.B) {
				var spent time.Duration
				c, pages, count := start, 0, 0
				for b.Loop() {
					was, at := c.Pages(), time.Now()
					ok := more(&c, &x)
					took := time.Since(at)
					if !ok { // what there is has been offered: from the start
						c = start
						continue
					}
					spent, pages, count = spent+took, pages+c.Pages()-was, count+1
				}
				b.ReportMetric(float64(spent.Nanoseconds())/float64(max(1, count)), "ns/search")
				b.ReportMetric(float64(pages)/float64(max(1, count)), "pages/search")
			})
		}
	}
}

func more(c *bucket.Cursor[int], x *bucket.Index[int]) (ok bool) {
	found, ok = c.Next(x)
	return ok
}

// BenchmarkSearchOrder asks for another order than the index's.
func BenchmarkSearchOrder(b *testing.B) {
	w := worlds[1]
	for _, n := range sizes {
		x, _ := w.build(n, w.order)
		for _, p := range []bucket.Policy{bucket.BestFit, bucket.LeastFit} {
			b.Run(fmt.Sprintf("policy=%d/n=%d", p, n), func(b *testing.B) {
				measure(b, &x, bucket.Query[int]{Need: w.need, Policy: p, Order: []int{memory, cpu}})
			})
		}
	}
}

// BenchmarkSearchByID is of an index ordered by ID.
func BenchmarkSearchByID(b *testing.B) {
	w := worlds[1]
	for _, n := range sizes {
		x, nodes := w.build(n, nil)
		for _, p := range []bucket.Policy{bucket.FirstFit, bucket.NextFit, bucket.Random} {
			b.Run(fmt.Sprintf("policy=%d/n=%d", p, n), func(b *testing.B) {
				measure(b, &x, bucket.Query[int]{Need: w.need, Policy: p, Seed: 1, After: nodes[n/2].ID})
			})
		}
	}
}

// BenchmarkUpdate moves nodes about: in one transient, and with a snapshot before each.
func BenchmarkUpdate(b *testing.B) {
	for _, w := range []world{worlds[0], worlds[1]} {
		for _, n := range sizes {
			for _, snapshots := range []bool{false, true} {
				x, nodes := w.build(n, w.order)
				rng := rand.New(rand.NewPCG(1, 2))
				t := bucket.NewToken()
				name := "transient"
				if snapshots {
					name = "snapshot"
				}
				b.Run(fmt.Sprintf("%s/%s/n=%d", w.name, name, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						e := &nodes[rng.IntN(n)]
						to := e.At
						if to[cpu] -= 500; to[cpu] < 0 {
							to[cpu] = whole[cpu]
						}
						if to[memory] -= 1024; to[memory] < 0 {
							to[memory] = whole[memory]
						}
						if snapshots {
							t = bucket.NewToken()
						}
						bucket.Update(t, &x, e.ID, e.At, to, e.Value)
						e.At = to
					}
				})
			}
		}
	}
}
