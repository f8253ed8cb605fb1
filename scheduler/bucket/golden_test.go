package bucket_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// golden are the nodes of the example in semantics part 1: (vcore, memory GiB).
var golden = []struct {
	id            string
	vcore, memory int64
}{
	{"a", 4, 4}, {"b", 4, 2}, {"c", 3, 5}, {"d", 3, 5}, {"e", 6, 1}, {"f", 4, 1},
	{"g", 3, 3}, {"h", 6, 3}, {"p", 6, 4}, {"q", 1, 3}, {"u", 5, 5}, {"v", 5, 2},
}

func goldenIndex(grain bucket.Vector, only ...string) bucket.Index[int] {
	x, t := bucket.New[int](bucket.Config{Order: []int{0, 1}, Granularity: grain}), bucket.NewToken()
	for i, n := range golden {
		if len(only) == 0 || slices.Contains(only, n.id) {
			bucket.Add(t, &x, n.id, bucket.Vector{n.vcore, n.memory}, i)
		}
	}
	return x
}

func goldenEntries(only ...string) []entry {
	out := []entry{}
	for i, n := range golden {
		if slices.Contains(only, n.id) {
			out = append(out, entry{ID: n.id, At: bucket.Vector{n.vcore, n.memory}, Value: i})
		}
	}
	return out
}

// rest returns the IDs of all that a cursor still offers.
func rest(x *bucket.Index[int], q bucket.Query[int]) string {
	out := ""
	c := bucket.Search(x, q)
	for e, ok := c.Next(x); ok; e, ok = c.Next(x) {
		out += e.ID
	}
	return out
}

func TestGolden(t *testing.T) {
	x := goldenIndex(bucket.Vector{1, 1})
	if all, leaves := bucket.Vertices(&x); all != 17 || leaves != 11 {
		t.Errorf("%d vertices, %d leaves; want 17, 11", all, leaves)
	}
	need, candidates := bucket.Vector{1, 2}, []string{"b", "c", "e", "f"}
	f := func(x bucket.Index[int], q bucket.Query[int], want string) {
		t.Helper()
		q.Need = need
		if got := rest(&x, q); got != want {
			t.Errorf("%+v offers %s, want %s", q, got, want)
		}
	}
	named := goldenEntries(candidates...)
	f(x, bucket.Query[int]{Policy: bucket.LeastFit, Candidates: named}, "bc")
	f(x, bucket.Query[int]{Policy: bucket.BestFit, Candidates: named}, "cb")
	// An index of the candidates alone says the same.
	f(goldenIndex(bucket.Vector{1, 1}, candidates...), bucket.Query[int]{Policy: bucket.LeastFit}, "bc")
	f(goldenIndex(bucket.Vector{1, 1}, candidates...), bucket.Query[int]{Policy: bucket.BestFit}, "cb")

	// With granularity (2,3) e comes first in order, and the exact check refuses it.
	coarse := goldenIndex(bucket.Vector{2, 3})
	if _, leaves := bucket.Vertices(&coarse); leaves != 5 {
		t.Errorf("%d leaves with granularity (2,3); want 5", leaves)
	}
	f(coarse, bucket.Query[int]{Policy: bucket.LeastFit, Candidates: named}, "cb")
	f(goldenIndex(bucket.Vector{2, 3}, candidates...), bucket.Query[int]{Policy: bucket.LeastFit}, "cb")
	need = bucket.Vector{1, 1}
	f(goldenIndex(bucket.Vector{2, 3}, candidates...), bucket.Query[int]{Policy: bucket.LeastFit}, "ecbf")

	// All nodes, by every policy that has an order.
	need = bucket.Vector{4, 2}
	f(x, bucket.Query[int]{Policy: bucket.BestFit}, "bavuhp")
	f(x, bucket.Query[int]{Policy: bucket.LeastFit}, "phuvab")
	f(x, bucket.Query[int]{Policy: bucket.FirstFit}, "abhpuv")
	f(x, bucket.Query[int]{Policy: bucket.NextFit, After: "h"}, "puvabh")
	f(x, bucket.Query[int]{Policy: bucket.BestFit, Order: []int{1, 0}}, "bvhapu")
	f(x, bucket.Query[int]{Policy: bucket.LeastFit, Order: []int{1, 0}}, "upahvb")
	reserved := []entry{{ID: "q", At: bucket.Vector{9, 9}}, {ID: "v", At: bucket.Vector{5, 2}}, {ID: "a", At: bucket.Vector{4, 1}}}
	f(x, bucket.Query[int]{Policy: bucket.BestFit, First: reserved}, "vqbuhp")
	f(x, bucket.Query[int]{Policy: bucket.LeastFit, First: reserved}, "qvphub")
	f(x, bucket.Query[int]{Policy: bucket.LeastFit, First: reserved, Candidates: goldenEntries("v", "a", "p")}, "vp")
}

// TestSnapshots keeps a snapshot before each of many edits and finds each as it was.
func TestSnapshots(t *testing.T) {
	w := worlds[1]
	x, nodes := w.build(2000, w.order)
	digest := func(x *bucket.Index[int]) string {
		var sum uint64 = 14695981039346656037
		for e := range x.All {
			sum = (sum ^ uint64(e.Value)) * 1099511628211
			for _, v := range e.At {
				sum = (sum ^ uint64(v)) * 1099511628211
			}
			for _, c := range []byte(e.ID) {
				sum = (sum ^ uint64(c)) * 1099511628211
			}
		}
		return fmt.Sprint(x.Len(), x.Max(), sum)
	}
	type kept struct {
		index  bucket.Index[int]
		digest string
	}
	var all []kept
	for round := range 30 {
		all = append(all, kept{x, digest(&x)})
		token := bucket.NewToken()
		for i := round; i < len(nodes); i += 7 {
			n := &nodes[i]
			switch (i + round) % 3 {
			case 0:
				bucket.Remove(token, &x, n.ID, n.At)
			case 1:
				bucket.Add(token, &x, n.ID+"x", n.At, i)
			default:
				to := with(n.At, cpu, n.At[cpu]/2)
				bucket.Update(token, &x, n.ID, n.At, to, -i)
				n.At = to
			}
		}
	}
	for i, k := range all {
		if got := digest(&k.index); got != k.digest {
			t.Errorf("snapshot %d changed from %s to %s", i, k.digest, got)
		}
		if err := bucket.Check(&k.index); err != nil {
			t.Errorf("snapshot %d: %v", i, err)
		}
	}
}

// TestRandomIsUniform counts what searches of many seeds draw; chi-square with as
// many degrees of freedom as there are suitable nodes but one. The seeds are
// fixed, so the outcome is.
func TestRandomIsUniform(t *testing.T) {
	f := func(fit, of int, draws int, limit float64) {
		t.Helper()
		x, token := bucket.New[int](bucket.Config{}), bucket.NewToken()
		for i := range of {
			bucket.Add(token, &x, fmt.Sprintf("%05d", i*7919%10_007), bucket.Vector{int64(i % (of / fit)), 1}, i)
		}
		need := bucket.Vector{int64(of/fit) - 1}
		counts := map[int]int{}
		for seed := range draws {
			c := bucket.Search(&x, bucket.Query[int]{Need: need, Policy: bucket.Random, Seed: uint64(seed)})
			e, ok := c.Next(&x)
			if !ok {
				t.Fatal("nothing is drawn")
			}
			counts[e.Value]++
			e, _ = c.Next(&x) // the second is as good as the first
			counts[e.Value]++
		}
		chi, mean := 0.0, float64(2*draws)/float64(fit)
		for i := range of {
			if i%(of/fit) == of/fit-1 {
				d := float64(counts[i]) - mean
				chi += d * d / mean
			} else if counts[i] > 0 {
				t.Errorf("node %d does not fit and is drawn", i)
			}
		}
		if chi > limit {
			t.Errorf("%d of %d fit: chi-square %.1f, limit %.1f", fit, of, chi, limit)
		}
	}
	// The limits are the 99.9 % points for 49 and 9 degrees of freedom.
	f(50, 100, 20_000, 85.4)  // drawn by rank
	f(10, 10_000, 2000, 27.9) // found by going through the suitable
}

func TestPagesAreBounded(t *testing.T) {
	// Pages that one search may visit at up to 100,000 nodes, by world. Only the worlds
	// that no maxima help are scanned.
	limits := map[string]int{
		"empty": 10, "half full": 12, "95 full": 24, "one fits": 10, "one fits of three": 10,
		"less than a granule in one": 1,
	}
	for _, w := range worlds {
		limit, bounded := limits[w.name]
		if !bounded {
			continue
		}
		var small [2]int // pages at 1,000 nodes, by policy
		for n := 1000; n <= boundedNodes; n *= 10 {
			x, nodes := w.build(n, w.order)
			for policy := range small {
				pages := 0
				for i := 0; i < n; i += n / 50 { // many requests of about this size
					q := bucket.Query[int]{Need: w.need, Policy: bucket.Policy(policy)}
					q.Need[cpu] -= nodes[i].At[cpu] % 500
					c := bucket.Search(&x, q)
					c.Next(&x)
					pages += c.Pages()
					if c.Pages() > limit {
						t.Errorf("%s, policy %d, n=%d: %d pages visited, at most %d expected", w.name, policy, n, c.Pages(), limit)
					}
				}
				if n == 1000 {
					small[policy] = pages
				} else if pages > 3*small[policy] {
					t.Errorf("%s, policy %d: %d pages at n=%d, %d at 1,000: more than 3 times as many",
						w.name, policy, pages, n, small[policy])
				}
			}
		}
	}
}

// TestFollowingPages bounds what all searches of one request visit together: they go on where the
// last one ended, and do not begin again.
func TestFollowingPages(t *testing.T) {
	w := worlds[5]
	if w.name != "halves short" {
		t.Fatal(w.name)
	}
	x, _ := w.build(10_000, w.order)
	c := bucket.Search(&x, bucket.Query[int]{Need: w.need})
	offered := 0
	for token := bucket.NewToken(); ; offered++ {
		e, ok := c.Next(&x)
		if !ok {
			break
		}
		bucket.Update(token, &x, e.ID, e.At, with(e.At, cpu, 0), e.Value)
	}
	if offered != 100 || c.Pages() > 1500 {
		t.Errorf("%d offered with %d pages visited; want 100, at most 1500", offered, c.Pages())
	}
}

// TestCursorInOlderIndex goes on in a snapshot that knows fewer dimensions than
// the entry given last has.
func TestCursorInOlderIndex(t *testing.T) {
	f := func(policy bucket.Policy, at int64, want bool) {
		t.Helper()
		x := bucket.New[int](bucket.Config{})
		bucket.Add(nil, &x, "a", bucket.Vector{}, 1)
		older := x
		bucket.Update(nil, &x, "a", bucket.Vector{}, bucket.Vector{2: at}, 2)
		c := bucket.Search(&x, bucket.Query[int]{Policy: policy, Order: []int{2}})
		if e, ok := c.Next(&x); !ok || e.Value != 2 {
			t.Fatalf("%v, %t", e, ok)
		}
		if e, ok := c.Next(&older); ok != want {
			t.Errorf("policy %d, at %d: %v, %t", policy, at, e, ok)
		}
	}
	f(bucket.BestFit, -3, true)
	f(bucket.BestFit, 3, false)
	f(bucket.LeastFit, -3, false)
	f(bucket.LeastFit, 3, true)
}
