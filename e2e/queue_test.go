package e2e

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
	"github.com/nomadish/nomadish/structs"
)

// line waits until the queue holds these jobs in this order.
func (a *agent) line(want ...string) {
	a.t.Helper()
	within(a.t, 20*time.Second, "the queue "+strings.Join(want, ", "), func(ctx context.Context) error {
		entries, err := a.queue(ctx)
		if err != nil {
			return err
		}
		var have []string
		for i, e := range entries {
			have = append(have, e.JobID)
			if e.Place != i+1 {
				return fmt.Errorf("%s has place %d, not %d", e.JobID, e.Place, i+1)
			}
		}
		if !slices.Equal(have, want) {
			return fmt.Errorf("it is %v", have)
		}
		return nil
	})
}

// entry is a job's line of the queue.
func (a *agent) entry(job string) *structs.QueueEntry {
	a.t.Helper()
	entries, err := a.queue(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range entries {
		if e.JobID == job {
			return e
		}
	}
	a.t.Fatalf("%s does not wait", job)
	return nil
}

// TestQueueOrder: the queue shows who waits by band, then whether it was requeued, then priority, then submission, with the
// reasons, over HTTP and on the command line; another priority, other bands and a requeueing change it at once; what comes free
// goes to the first.
func TestQueueOrder(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, preempting(`cycle = "1h"`), plainNodes("n", 1, 1000, 1000))
	one := func(id string, priority int) volume {
		return volume{id: id, priority: priority, count: 1, cpu: 1000, memory: 100}
	}
	a.place(one("first", 70))
	if out, code := a.cli("queue", "-job", "nothing"); code != 0 || !strings.Contains(out, "Nothing of that kind") {
		t.Errorf("queue: exit %d\n%s", code, out)
	}
	a.line()
	for _, v := range []volume{one("old", 50), one("young", 50), one("low", 10), one("better", 60), one("big", 55)} {
		a.submitVolume(v)
		a.missing(v.id, 1)
	}
	a.line("better", "big", "old", "young", "low")
	out, code := a.cli("queue")
	table, _, _ := strings.Cut(strings.TrimSpace(out), "\n\n") // what follows is of the forecast
	if code != 0 || len(strings.Split(table, "\n")) != 6 {
		t.Errorf("queue: exit %d\n%s", code, out)
	}
	for _, word := range []string{"better", "60", "1 of 1", "waiting", "cpu exhausted on 1 node"} {
		if !strings.Contains(out, word) {
			t.Errorf("the queue does not say %q:\n%s", word, out)
		}
	}
	e := a.entry("big")
	if e.Missing != 1 || e.Wanted != 1 || e.State != structs.QueueWaiting || e.Priority.Declared != 55 || e.Priority.BandRange != (structs.PriorityBand{Low: 41, High: 70}) ||
		e.Priority.Total < 55 || e.Since == 0 || e.NodePool != structs.DefaultNodePool || !strings.Contains(e.Reason, "cpu") || e.ReasonNodes != 1 {
		t.Errorf("big: %+v", e)
	}
	var raw []map[string]any
	if _, err := a.api.Get(t.Context(), "/v1/queue", &api.Query{Prefix: "bi"}, &raw); err != nil || len(raw) != 1 || raw[0]["JobID"] != "big" || raw[0]["Place"] != 2.0 {
		t.Errorf("/v1/queue?prefix=bi: %v %v", raw, err)
	}

	// A job that is changed goes to its new place, bands to theirs.
	a.submitVolume(one("young", 65))
	a.line("young", "better", "big", "old", "low")
	a.set("-bands", "1-40,41-55,56-62,63-100")
	a.running("first", 1, 10*time.Second) // 70 and 65 are of one band
	a.line("young", "better", "big", "old", "low")
	a.set("-bands", "1-59,60-69,70-100")
	a.line("young", "better", "big", "old", "low")

	// One that lost its place goes before all of its band that never had one.
	a.set("-bands", "1-40,41-70,71-100")
	a.submitVolume(one("top", 90))
	a.running("top", 1, 20*time.Second)
	a.line("first", "young", "better", "big", "old", "low")
	if p := a.entry("first").Priority; p.Requeued != 1 || p.RequeueBonus != 10 || p.Total != int64(p.Declared)+p.Aged+10 {
		t.Errorf("first: %+v", p)
	}
	a.submitVolume(one("first", 45)) // it stays before them with a lower priority
	a.line("first", "young", "better", "big", "old", "low")
	if out, code := a.cli("queue", "-verbose"); code != 0 || !strings.Contains(out, "45 + 1 x 10 requeued") {
		t.Errorf("queue -verbose: exit %d\n%s", code, out)
	}

	// What comes free goes to the first each time.
	for _, next := range []string{"first", "young", "better"} {
		a.stop(map[string]string{"first": "top", "young": "first", "better": "young"}[next])
		a.running(next, 1, 20*time.Second)
	}
	a.line("big", "old", "low")
	a.stop("old")
	a.line("big", "low")
}

// TestQueueAges: what waits gets one more of effective priority each cycle, unless that is switched off; its order stays.
func TestQueueAges(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, preempting(`cycle = "50ms"`), plainNodes("n", 1, 1000, 1000))
	a.place(volume{id: "holds", priority: 70, count: 1, cpu: 1000, memory: 100})
	for i, p := range []int{50, 51, 41} {
		a.submitVolume(volume{id: fmt.Sprintf("w%d", i), priority: p, count: 1, cpu: 1000, memory: 100})
		a.missing(fmt.Sprintf("w%d", i), 1)
	}
	total := func(job string) (p structs.EffectivePriority) { return a.entry(job).Priority }
	within(t, 20*time.Second, "ten cycles", func(context.Context) error {
		if p := total("w2"); p.Aged < 10 || p.Total != 41+p.Aged {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	a.submitVolume(volume{id: "late", priority: 45, count: 1, cpu: 1000, memory: 100})
	a.missing("late", 1)
	entries, err := a.queue(t.Context())
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
	a.set("-aging", "false")
	a.line("w1", "w0", "late", "w2")
	if p := total("w2"); p.Total != 41 {
		t.Errorf("nothing ages: %+v", p)
	}
	a.set("-aging", "true", "-cycle", "1h")
	a.line("w1", "w0", "late", "w2")
}

// TestQueuePools: each node pool has a queue of its own, and pages follow each other.
func TestQueuePools(t *testing.T) {
	t.Parallel()
	other := strings.Replace(plainNodes("m", 1, 1000, 1000), "count = 1", "count = 1\n  pool = \"other\"", 1)
	a := startLayouts(t, 2, preempting(""), plainNodes("n", 1, 1000, 1000), other)
	a.submitVolume(volume{id: "elsewhere", priority: 1, count: 1, cpu: 2000, memory: 100, job: `node_pool = "other"`})
	a.missing("elsewhere", 1)
	for i := range 25 {
		a.submitVolume(volume{id: fmt.Sprintf("j%02d", i), priority: 100 - i, count: 1, cpu: 2000, memory: 100})
	}
	within(t, 20*time.Second, "26 that wait", func(ctx context.Context) error {
		if all, err := a.queue(ctx); err != nil || len(all) != 26 {
			return errorf("%d %v", len(all), err)
		}
		return nil
	})
	var seen []string
	q := &api.Query{PerPage: 10}
	for pages := 1; ; pages++ {
		entries, meta, err := a.api.Queue(t.Context(), "default", q)
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
	if entries, _, err := a.api.Queue(t.Context(), "other", nil); err != nil || len(entries) != 1 || entries[0].JobID != "elsewhere" || entries[0].Place != 1 {
		t.Errorf("the other pool: %d entries, %v", len(entries), err)
	}
	// A look that waits is woken by the next change.
	_, meta, err := a.api.Queue(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan []*structs.QueueEntry, 1)
	go func() {
		entries, _, err := a.api.Queue(t.Context(), "", &api.Query{Index: meta.Index, Wait: time.Minute})
		if err == nil {
			woken <- entries
		}
		close(woken)
	}()
	a.stop("j10")
	if entries := <-woken; len(entries) != 25 {
		t.Errorf("woken with %d entries", len(entries))
	}
}

// TestQueueEvents: the event stream tells who begins to wait, who is taken back and who has its place, in that order.
func TestQueueEvents(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, preempting(""), plainNodes("n", 1, 1000, 1000))
	ctx, cancel := context.WithCancel(t.Context())
	body, err := a.api.Raw(ctx, "/v1/event/stream?topic=Queue&index=1", nil)
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
		within(t, 20*time.Second, "the event "+want, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if i := slices.Index(reported, want); i >= 0 {
				reported = reported[i+1:] // what follows comes later
				return nil
			}
			return fmt.Errorf("they say %q", reported)
		})
	}
	low := volume{id: "low", priority: 10, count: 4, cpu: 250, memory: 100}
	a.place(low)
	a.submitVolume(volume{id: "peer", priority: 20, count: 2, cpu: 250, memory: 100})
	says("peer g 2 missing, requeued 0")
	a.submitVolume(volume{id: "top", priority: 90, count: 3, cpu: 250, memory: 100})
	says("low g 3 missing, requeued 1")
	a.stop("peer")
	says("peer g 0 missing, requeued 0")
	a.stop("top")
	says("low g 0 missing, requeued 1")
}
