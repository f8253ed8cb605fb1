package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestQueueOrder: the queue shows who waits by band, then whether it was requeued, then priority, then submission, with the
// reasons, over HTTP and on the command line; another priority, other bands and a requeueing change it at once; what comes free
// goes to the first.
func TestQueueOrder(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(`cycle = "1h"`), harness.PlainNodes("n", 1, 1000, 1000))
	one := func(id string, priority int) harness.MockJob {
		return harness.MockJob{ID: id, Priority: priority, Count: 1, CPU: 1000, Memory: 100}
	}
	place(a, one("first", 70))
	if out, code := a.CLI("queue", "-job", "nothing"); code != 0 || !strings.Contains(out, "Nothing of that kind") {
		t.Errorf("queue: exit %d\n%s", code, out)
	}
	a.WaitQueue()
	for _, v := range []harness.MockJob{one("old", 50), one("young", 50), one("low", 10), one("better", 60), one("big", 55)} {
		a.SubmitMock(v)
		a.WaitMissing(v.ID, 1)
	}
	a.WaitQueue("better", "big", "old", "young", "low")
	out, code := a.CLI("queue")
	table, _, _ := strings.Cut(strings.TrimSpace(out), "\n\n") // what follows is of the forecast
	if code != 0 || len(strings.Split(table, "\n")) != 6 {
		t.Errorf("queue: exit %d\n%s", code, out)
	}
	for _, word := range []string{"better", "60", "1 of 1", "waiting", "cpu exhausted on 1 node"} {
		if !strings.Contains(out, word) {
			t.Errorf("the queue does not say %q:\n%s", word, out)
		}
	}
	e := a.QueueEntry("big")
	if e.Missing != 1 || e.Wanted != 1 || e.State != structs.QueueWaiting || e.Priority.Declared != 55 || e.Priority.BandRange != (structs.PriorityBand{Low: 41, High: 70}) ||
		e.Priority.Total < 55 || e.Since == 0 || e.NodePool != structs.DefaultNodePool || !strings.Contains(e.Reason, "cpu") || e.ReasonNodes != 1 {
		t.Errorf("big: %+v", e)
	}
	var raw []map[string]any
	if _, err := a.API.Get(t.Context(), "/v1/queue", &api.Query{Prefix: "bi"}, &raw); err != nil || len(raw) != 1 || raw[0]["JobID"] != "big" || raw[0]["Place"] != 2.0 {
		t.Errorf("/v1/queue?prefix=bi: %v %v", raw, err)
	}

	// A job that is changed goes to its new place, bands to theirs.
	a.SubmitMock(one("young", 65))
	a.WaitQueue("young", "better", "big", "old", "low")
	set(a, "-bands", "1-40,41-55,56-62,63-100")
	a.WaitRunning("first", 1, 10*time.Second) // 70 and 65 are of one band
	a.WaitQueue("young", "better", "big", "old", "low")
	set(a, "-bands", "1-59,60-69,70-100")
	a.WaitQueue("young", "better", "big", "old", "low")

	// One that lost its place goes before all of its band that never had one.
	set(a, "-bands", "1-40,41-70,71-100")
	a.SubmitMock(one("top", 90))
	a.WaitRunning("top", 1, 20*time.Second)
	a.WaitQueue("first", "young", "better", "big", "old", "low")
	if p := a.QueueEntry("first").Priority; p.Requeued != 1 || p.RequeueBonus != 10 || p.Total != int64(p.Declared)+p.Aged+10 {
		t.Errorf("first: %+v", p)
	}
	a.SubmitMock(one("first", 45)) // it stays before them with a lower priority
	a.WaitQueue("first", "young", "better", "big", "old", "low")
	if out, code := a.CLI("queue", "-verbose"); code != 0 || !strings.Contains(out, "45 + 1 x 10 requeued") {
		t.Errorf("queue -verbose: exit %d\n%s", code, out)
	}

	// What comes free goes to the first each time.
	for _, next := range []string{"first", "young", "better"} {
		a.Stop(map[string]string{"first": "top", "young": "first", "better": "young"}[next])
		a.WaitRunning(next, 1, 20*time.Second)
	}
	a.WaitQueue("big", "old", "low")
	a.Stop("old")
	a.WaitQueue("big", "low")
}

// TestQueueAges: what waits gets one more of effective priority each cycle, unless that is switched off; its order stays.
func TestQueueAges(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(`cycle = "50ms"`), harness.PlainNodes("n", 1, 1000, 1000))
	place(a, harness.MockJob{ID: "holds", Priority: 70, Count: 1, CPU: 1000, Memory: 100})
	for i, p := range []int{50, 51, 41} {
		a.SubmitMock(harness.MockJob{ID: fmt.Sprintf("w%d", i), Priority: p, Count: 1, CPU: 1000, Memory: 100})
		a.WaitMissing(fmt.Sprintf("w%d", i), 1)
	}
	total := func(job string) (p structs.EffectivePriority) { return a.QueueEntry(job).Priority }
	harness.Within(t, 20*time.Second, "ten cycles", func(context.Context) error {
		if p := total("w2"); p.Aged < 10 || p.Total != 41+p.Aged {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	a.SubmitMock(harness.MockJob{ID: "late", Priority: 45, Count: 1, CPU: 1000, Memory: 100})
	a.WaitMissing("late", 1)
	entries, err := a.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := int64(1 << 40)
	for _, e := range entries { // within the band, the effective priority is the order
		if e.Priority.Total > last {
			t.Errorf("%s has %d, after %d", e.JobID, e.Priority.Total, last)
		}
		last = e.Priority.Total
	}
	set(a, "-aging", "false")
	a.WaitQueue("w1", "w0", "late", "w2")
	if p := total("w2"); p.Total != 41 {
		t.Errorf("nothing ages: %+v", p)
	}
	set(a, "-aging", "true", "-cycle", "1h")
	a.WaitQueue("w1", "w0", "late", "w2")
}

// TestQueuePools: each node pool has a queue of its own, and pages follow each other.
func TestQueuePools(t *testing.T) {
	t.Parallel()
	other := strings.Replace(harness.PlainNodes("m", 1, 1000, 1000), "count = 1", "count = 1\n  pool = \"other\"", 1)
	a := harness.StartSimulated(t, 2, preempting(""), harness.PlainNodes("n", 1, 1000, 1000), other)
	a.SubmitMock(harness.MockJob{ID: "elsewhere", Priority: 1, Count: 1, CPU: 2000, Memory: 100, Job: `node_pool = "other"`})
	a.WaitMissing("elsewhere", 1)
	for i := range 25 {
		a.SubmitMock(harness.MockJob{ID: fmt.Sprintf("j%02d", i), Priority: 100 - i, Count: 1, CPU: 2000, Memory: 100})
	}
	harness.Within(t, 20*time.Second, "26 that wait", func(ctx context.Context) error {
		if all, err := a.Queue(ctx); err != nil || len(all) != 26 {
			return harness.Errorf("%d %v", len(all), err)
		}
		return nil
	})
	var seen []string
	q := &api.Query{PerPage: 10}
	for pages := 1; ; pages++ {
		entries, meta, err := a.API.Queue(t.Context(), "default", q)
		if err != nil || len(entries) > 10 || pages > 3 {
			t.Fatalf("page %d: %d entries, %v", pages, len(entries), err)
		}
		for _, e := range entries {
			seen = append(seen, e.JobID)
		}
		if q.NextToken = meta.NextToken; q.NextToken == "" {
			break
		}
	}
	if len(seen) != 25 || !slices.IsSorted(seen) {
		t.Errorf("the pages hold %v", seen)
	}
	if entries, _, err := a.API.Queue(t.Context(), "other", nil); err != nil || len(entries) != 1 || entries[0].JobID != "elsewhere" || entries[0].Place != 1 {
		t.Errorf("the other pool: %d entries, %v", len(entries), err)
	}
	// A look that waits is woken by the next change.
	_, meta, err := a.API.Queue(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan []*structs.QueueEntry, 1)
	go func() {
		entries, _, err := a.API.Queue(t.Context(), "", &api.Query{Index: meta.Index, Wait: time.Minute})
		if err == nil {
			woken <- entries
		}
		close(woken)
	}()
	a.Stop("j10")
	if entries := <-woken; len(entries) != 25 {
		t.Errorf("woken with %d entries", len(entries))
	}
}

// TestQueueEvents: the event stream tells who begins to wait, who is taken back and who has its place, in that order.
func TestQueueEvents(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(""), harness.PlainNodes("n", 1, 1000, 1000))
	ctx, cancel := context.WithCancel(t.Context())
	body, err := a.API.Raw(ctx, "/v1/event/stream?topic=Queue&index=1", nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var mu sync.Mutex
	var reported []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		dec := json.NewDecoder(body)
		for {
			var line structs.Events
			if dec.Decode(&line) != nil {
				return
			}
			mu.Lock()
			for _, e := range line.Events {
				var payload struct {
					Request structs.PendingRequest `json:"Request"`
				}
				raw, _ := json.Marshal(e.Payload)
				if err := json.Unmarshal(raw, &payload); err != nil || e.Topic != structs.TopicQueue {
					reported = append(reported, fmt.Sprintf("%s: %v", e.Topic, err))
				}
				reported = append(reported, fmt.Sprintf("%s %s %d missing, requeued %d", e.Key, payload.Request.Group, payload.Request.Missing, payload.Request.Requeued))
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = body.Close()
		<-done
	})
	says := func(want string) {
		t.Helper()
		harness.Within(t, 20*time.Second, "the event "+want, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if i := slices.Index(reported, want); i >= 0 {
				reported = reported[i+1:] // what follows comes later
				return nil
			}
			return fmt.Errorf("they say %q", reported)
		})
	}
	low := harness.MockJob{ID: "low", Priority: 10, Count: 4, CPU: 250, Memory: 100}
	place(a, low)
	a.SubmitMock(harness.MockJob{ID: "peer", Priority: 20, Count: 2, CPU: 250, Memory: 100})
	says("peer g 2 missing, requeued 0")
	a.SubmitMock(harness.MockJob{ID: "top", Priority: 90, Count: 3, CPU: 250, Memory: 100})
	says("low g 3 missing, requeued 1")
	a.Stop("peer")
	says("peer g 0 missing, requeued 0")
	a.Stop("top")
	says("low g 0 missing, requeued 1")
}
