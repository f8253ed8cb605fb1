package forecast

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestExpectedIsNotAfterLatest: a job that passes another one in a gap, if all take their time, is expected to start after it where that gap is expected to be
// none: it starts then at the latest.
func TestExpectedIsNotAfterLatest(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	by := &structs.Submitter{User: "ada"}
	submit := func(id string, priority, gpus int, limit time.Duration) {
		j := gpuJob(id, priority, 1, gpus, limit)
		j.Submitter = by
		r.submit(j)
	}
	r.takes = func(*structs.Allocation) time.Duration { return time.Hour }
	submit("done", 50, 8, time.Hour)
	r.until(epoch.Add(2 * time.Hour))
	submit("long", 50, 4, 3*time.Hour)
	submit("short", 50, 4, time.Hour)
	r.until(r.now.Add(time.Minute))
	submit("high", 80, 8, time.Hour)
	submit("low", 50, 4, 90*time.Minute)
	r.until(r.now.Add(time.Minute))
	f := r.forecast(Options{})
	high, low := f.Of(structs.DefaultNamespace, "high", "g"), f.Of(structs.DefaultNamespace, "low", "g")
	end := epoch.Add(3 * time.Hour).UnixNano() // when both are expected to end that run
	if high.Expected.All != end || high.Latest.All <= end {
		t.Fatalf("the one that ranks higher: %+v", high)
	}
	if after := end + int64(time.Hour); low.Expected.All != after || low.Latest.All != after || low.Latest.First != after {
		t.Errorf("expected %s, at the latest %s to %s, not both %s", time.Unix(0, low.Expected.All), time.Unix(0, low.Latest.First), time.Unix(0, low.Latest.All), time.Unix(0, after))
	}
	if ends := low.Latest.WaitsFor; len(ends) != 1 || ends[0].JobID != "high" {
		t.Errorf("at the latest it waits for %+v", ends)
	}
}

// TestLaterTime: what neither run has seen is not known, nor what the expected one has not seen until after the other's start.
func TestLaterTime(t *testing.T) {
	until := time.Unix(0, 100)
	f := func(at, then, want int64) {
		t.Helper()
		if got := laterTime(at, then, until); got != want {
			t.Errorf("%d and %d: %d, not %d", at, then, got, want)
		}
	}
	f(50, 40, 50)
	f(50, 60, 60)
	f(0, 60, 0)
	f(50, 0, 0)    // it runs on
	f(120, 0, 120) // it ended before
	f(0, 0, 0)
}
