package bucket_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// TestSieve compares counts and visits with a walk over all entries. Values below zero and
// above 31 bits stand beside what the pages are scanned by.
func TestSieve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]int64{-3, 0, 0, 1, 2, 3, 1 << 40})
		x := bucket.New[int](bucket.Config{Order: []int{cpu, memory}})
		tok := bucket.NewToken()
		for i := range rapid.IntRange(0, 120).Draw(t, "entries") {
			bucket.Add(tok, &x, fmt.Sprintf("n%03d", i), bucket.Vector{cpu: value.Draw(t, "cpu"), memory: value.Draw(t, "memory"), disk: value.Draw(t, "disk")}, i)
		}
		var tests []bucket.Test
		for range rapid.IntRange(0, 4).Draw(t, "tests") {
			dim := rapid.IntRange(0, ports)
			tests = append(tests, bucket.Test{
				Dim: dim.Draw(t, "dimension"), Min: value.Draw(t, "least"), OrDim: dim.Draw(t, "or dimension"), OrMin: value.Draw(t, "or least"),
			})
		}
		want, left := make([]int, len(tests)), []int{}
		for e := range x.All {
			failed := slices.IndexFunc(tests, func(test bucket.Test) bool {
				return e.At[test.Dim] < test.Min && (test.OrMin <= 0 || e.At[test.OrDim] < test.OrMin)
			})
			if failed < 0 {
				left = append(left, e.Value)
			} else {
				want[failed]++
			}
		}
		visited := []int{}
		got := bucket.Sieve(&x, tests, func(e bucket.Entry[int]) { visited = append(visited, e.Value) })
		if !slices.Equal(got, want) || !slices.Equal(visited, left) {
			t.Fatalf("%v fail and %v are visited, want %v and %v", got, visited, want, left)
		}
	})
}
