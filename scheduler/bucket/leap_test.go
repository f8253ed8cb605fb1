package bucket_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// With a leap after each, a search gives the first entry of each distinct coordinates.
func TestLeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &oracle{config: bucket.Config{Order: []int{0, 1}, Granularity: bucket.Vector{1, 2}}}
		x := bucket.New[int](o.config)
		token := bucket.NewToken()
		for i := range rapid.IntRange(0, 200).Draw(t, "entries") {
			var at bucket.Vector
			for d := range 3 {
				at[d] = rapid.Int64Range(-1, 5).Draw(t, "at")
			}
			e := entry{ID: fmt.Sprintf("n%03d", i), At: at, Value: i}
			bucket.Add(token, &x, e.ID, e.At, e.Value)
			o.entries = append(o.entries, e)
		}
		q := bucket.Query[int]{Policy: rapid.SampledFrom([]bucket.Policy{bucket.BestFit, bucket.LeastFit}).Draw(t, "policy")}
		q.Need[0], q.Need[2] = rapid.Int64Range(0, 3).Draw(t, "need"), rapid.Int64Range(0, 3).Draw(t, "need")
		order := o.config.Order
		if rapid.Bool().Draw(t, "own order") {
			q.Order = []int{1}
			order = q.Order
		}
		down := q.Policy == bucket.LeastFit
		slices.SortFunc(o.entries, func(a, b entry) int { return o.compare(order, down, a, b) })
		var want, have []string
		var last *entry
		for i := range o.entries {
			e := &o.entries[i]
			if !fits(e.At, q.Need) {
				continue
			}
			if last == nil || o.compare(order, down, entry{At: last.At}, entry{At: e.At}) != 0 {
				want = append(want, e.ID)
				last = e
			}
		}
		c := bucket.Search(&x, q)
		for e, ok := c.Next(&x); ok; e, ok = c.Next(&x) {
			have = append(have, e.ID)
			c.Leap()
		}
		if !slices.Equal(have, want) {
			t.Fatalf("have %v, want %v", have, want)
		}
	})
}

// Offer returns what a cursor gives, whatever is taken of it, and ends where it should.
func TestOffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := bucket.New[int](bucket.Config{Order: []int{0, 1}, Granularity: bucket.Vector{1, 2}})
		token := bucket.NewToken()
		for i := range rapid.IntRange(0, 200).Draw(t, "entries") {
			var at bucket.Vector
			for d := range 3 {
				at[d] = rapid.Int64Range(-1, 5).Draw(t, "at")
			}
			bucket.Add(token, &x, fmt.Sprintf("n%03d", i), at, i)
		}
		q := bucket.Query[int]{Policy: rapid.SampledFrom([]bucket.Policy{bucket.BestFit, bucket.LeastFit, bucket.FirstFit}).Draw(t, "policy")}
		q.Need[0], q.Need[2] = rapid.Int64Range(0, 3).Draw(t, "need"), rapid.Int64Range(0, 3).Draw(t, "need")
		if rapid.Bool().Draw(t, "own order") {
			q.Order = []int{1}
		}
		entries, taken := rapid.IntRange(0, 20).Draw(t, "entries offered"), rapid.IntRange(1, 5).Draw(t, "taken")
		takes := rapid.SliceOfN(rapid.Bool(), entries, entries).Draw(t, "takes")
		var have, want []bucket.Entry[int]
		bucket.Offer(&x, q, entries, taken, func(e bucket.Entry[int]) bool {
			have = append(have, e)
			return takes[len(have)-1]
		})
		c, left := bucket.Search(&x, q), taken
		for i := range entries {
			e, ok := c.Next(&x)
			if !ok {
				break
			}
			want = append(want, e)
			if takes[i] {
				if left--; left == 0 {
					break
				}
				c.Leap()
			}
		}
		if !slices.Equal(have, want) {
			t.Fatalf("have %v, want %v", have, want)
		}
	})
}
