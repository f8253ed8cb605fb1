package bucket_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// TestUpdateEmptiesPages moves a run of neighbours away, one after the other, so that
// pages go while other neighbours stay: what is behind them is found all the same.
func TestUpdateEmptiesPages(t *testing.T) {
	const n = 2000
	f := func(first, last int, to int64) {
		t.Helper()
		x, token := bucket.New[int](bucket.Config{Order: []int{0}}), bucket.NewToken()
		want := &oracle{config: bucket.Config{Order: []int{0}}}
		for i := range n { // in order: that leaves full pages
			e := entry{ID: fmt.Sprintf("%04d", i), At: bucket.Vector{int64(i * 10)}, Value: i}
			bucket.Add(token, &x, e.ID, e.At, e.Value)
			want.entries = append(want.entries, e)
		}
		for i := first; i < last; i++ {
			e := &want.entries[i]
			from := e.At
			e.At[0] += to
			bucket.Update(token, &x, e.ID, from, e.At, e.Value)
			if err := want.check(&x); err != nil {
				t.Fatalf("%d to %d moved by %d: %v", first, i, to, err)
			}
		}
		if err := want.same(&x); err != nil {
			t.Errorf("%d to %d moved by %d: %v", first, last, to, err)
		}
	}
	for _, to := range []int64{300, 3000, 15_000, -200, -3000} { // in the same page of pages, and in others
		f(300, 500, to)
	}
}

// TestUpdateAdds what stands nowhere yet.
func TestUpdateAdds(t *testing.T) {
	x := bucket.New[int](bucket.Config{Order: []int{0}})
	for i := range 100 {
		bucket.Update(nil, &x, fmt.Sprint(i), bucket.Vector{int64(i % 7)}, bucket.Vector{int64(i)}, i)
		if err := bucket.Check(&x); err != nil || x.Len() != i+1 {
			t.Fatalf("%d entries, want %d: %v", x.Len(), i+1, err)
		}
	}
}
