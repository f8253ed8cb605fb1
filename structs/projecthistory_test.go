package structs

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWaits: the histogram's quantile is at least the true one, and at most 1.42 times that or a second; two that are merged count as one.
func TestWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(0, int64(60*24*time.Hour)), 1, 60).Draw(t, "waits")
		var all, a, b WaitHistogram
		for i, w := range list {
			all.Observe(time.Duration(w))
			if i%2 == 0 {
				a.Observe(time.Duration(w))
			} else {
				b.Observe(time.Duration(w))
			}
		}
		a.Merge(&b)
		if a.Sum != all.Sum || a.Max != all.Max || a.Count != all.Count || !slices.Equal(a.Buckets, all.Buckets) {
			t.Fatalf("merged %+v, want %+v", a, all)
		}
		slices.Sort(list)
		exact := time.Duration(list[min(len(list)-1, int(0.95*float64(len(list))))]).Truncate(time.Millisecond)
		got := all.Quantile(0.95)
		if got < exact || exact < 10*24*time.Hour && got > max(time.Second, exact*1415/1000+time.Millisecond) {
			t.Fatalf("p95 %s, exactly %s", got, exact)
		}
	})
	if h := (&WaitHistogram{}); h.Mean() != 0 || h.Quantile(0.95) != 0 {
		t.Error("no waits have a mean")
	}
}

// TestMeanRuns: the mean counts from ten runs on; a run without a start counts from its placement.
func TestMeanRuns(t *testing.T) {
	h := &ProjectHistory{}
	for range MinMeanRuns - 1 {
		h.Completed = append(h.Completed, &ProjectRun{Placed: 5e9, Started: 6e9, Ended: 8e9})
	}
	if h.MeanRun() != 0 || (*ProjectHistory)(nil).MeanRun() != 0 {
		t.Error("too few runs have a mean")
	}
	h.Completed = append(h.Completed, &ProjectRun{Placed: 5e9, Ended: 17e9})
	if got := h.MeanRun(); got != 3*time.Second {
		t.Errorf("mean %s, want 3s", got)
	}
}
