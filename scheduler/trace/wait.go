package trace

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// WaitFigures are waits of jobs, from arrival until all of their instances had a place
// for the first time. Seconds.
type WaitFigures struct {
	// Of is the size or the tenant that the jobs have in common.
	Of string
	// Jobs that have been placed, and that never were.
	Jobs  int64
	Never int64 `json:",omitempty"`
	Mean  float64
	P50   float64
	P95   float64
	P99   float64
	Max   float64
	// GPUHours is what they used, over all times.
	GPUHours float64
	// Spread is how many waited how long: counts by the bounds of WaitBounds.
	Spread []int64
}

// WaitBounds are the upper bounds of WaitFigures.Spread; the last entry has none.
var WaitBounds = []time.Duration{
	0, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// waits adds waits up in bounded memory. Quantiles are within 1 % of the true ones.
type waits struct {
	n, never int64
	sum      float64
	max      int64
	buckets  map[int]int64
	spread   []int64
	milliSec float64 // thousandths of a GPU times seconds
}

// step is the ratio of two bounds of buckets.
const step = 1.01

func newWaits() *waits {
	return &waits{buckets: map[int]int64{}, spread: make([]int64, len(WaitBounds)+1)}
}

func (w *waits) add(wait int64) {
	w.n++
	w.sum += float64(wait) / 1e9
	w.max = max(w.max, wait)
	w.buckets[waitBucket(wait)]++
	at, _ := slices.BinarySearch(WaitBounds, time.Duration(wait))
	w.spread[at]++
}

// waitBucket is the bucket of a wait: 0 for none, then by milliseconds.
func waitBucket(wait int64) int {
	if wait <= 0 {
		return 0
	}
	return 1 + max(0, int(math.Ceil(math.Log(float64(wait)/1e6)/math.Log(step))))
}

func (w *waits) figures(of string) WaitFigures {
	f := WaitFigures{Of: of, Jobs: w.n, Never: w.never, Max: float64(w.max) / 1e9, Spread: w.spread, GPUHours: round(w.milliSec/1000/3600, 6)}
	if w.n == 0 {
		return f
	}
	f.Mean = round(w.sum/float64(w.n), 6)
	keys := make([]int, 0, len(w.buckets))
	for k := range w.buckets { // sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	quantile := func(q float64) float64 {
		want, have := int64(math.Ceil(q*float64(w.n))), int64(0)
		for _, k := range keys {
			if have += w.buckets[k]; have >= want {
				if k == 0 {
					return 0
				}
				return round(min(math.Pow(step, float64(k-1))/1e3, float64(w.max)/1e9), 6)
			}
		}
		return float64(w.max) / 1e9
	}
	f.P50, f.P95, f.P99 = quantile(0.50), quantile(0.95), quantile(0.99)
	return f
}

// round cuts a figure to so many digits behind the point: the rest is noise that may
// differ between machines.
func round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

// sizes are the classes of jobs by all GPUs that they take, in thousandths.
var sizes = []struct {
	name  string
	milli int64
}{
	{"no GPU", 0}, {"part of a GPU", 999}, {"1 GPU", 1999}, {"2 GPUs", 2999}, {"3-4 GPUs", 4999}, {"5-8 GPUs", 8999}, {"9-16 GPUs", 16_999},
	{"17-32 GPUs", 32_999}, {"33-64 GPUs", 64_999}, {"over 64 GPUs", math.MaxInt64},
}

func sizeOf(r *Row) int {
	return slices.IndexFunc(sizes, func(s struct {
		name  string
		milli int64
	}) bool {
		return r.gpuMilli() <= s.milli
	})
}

// maxTenants bounds the tenants that are distinguished; those that come first after so many
// are counted together.
const maxTenants = 1000

// OtherTenants names those that are counted together.
const OtherTenants = "(others)"

// tally is the waits of all jobs, by size and by tenant.
type tally struct {
	all      *waits
	bySize   []*waits
	byTenant map[string]*waits
}

func newTally() *tally {
	t := &tally{all: newWaits(), byTenant: map[string]*waits{}}
	for range sizes {
		t.bySize = append(t.bySize, newWaits())
	}
	return t
}

// of returns the three accounts that a job is in.
func (t *tally) of(j *job) [3]*waits {
	w := t.byTenant[j.spec.Namespace]
	if w == nil {
		name := j.spec.Namespace
		if len(t.byTenant) >= maxTenants {
			name = OtherTenants
		}
		if w = t.byTenant[name]; w == nil {
			w = newWaits()
			t.byTenant[name] = w
		}
	}
	return [3]*waits{t.all, t.bySize[j.size], w}
}

func (t *tally) figures() (all WaitFigures, bySize, byTenant []WaitFigures) {
	for i, w := range t.bySize {
		if w.n+w.never > 0 {
			bySize = append(bySize, w.figures(sizes[i].name))
		}
	}
	for name, w := range t.byTenant { // sorted below
		byTenant = append(byTenant, w.figures(name))
	}
	slices.SortFunc(byTenant, func(a, b WaitFigures) int {
		return cmp.Or(cmp.Compare(b.GPUHours, a.GPUHours), cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Of, b.Of))
	})
	return t.all.figures("all"), bySize, byTenant
}
