package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// full is a cluster whose nodes are full of jobs "busy-…" of 1000 each, with so many
// jobs waiting, with so many request keys.
func full(t testing.TB, nodes, waiting, requestKeys int) (c *cluster, busy []*structs.Job, stop func()) {
	c = newCluster(true)
	for i := range nodes {
		c.node(t, fmt.Sprint("node-", i), structs.NodePoolDefault, 1000)
	}
	stop = c.run(t.Context(), 4)
	for i := range nodes {
		busy = append(busy, job(fmt.Sprint("busy-", i), structs.NodePoolDefault, 100, 1, 1000, 1000))
		c.register(t, busy[i])
	}
	c.quiet(t)
	for i := range waiting {
		c.register(t, job(fmt.Sprint("waits-", i), structs.NodePoolDefault, 50, 1, 900-i%requestKeys, 900))
	}
	c.quiet(t)
	return c, busy, stop
}

// quiet waits until nothing is pending.
func (c *cluster) quiet(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if e := c.store.Snapshot().PendingEvals(); len(e) == 0 || e[0].Status != structs.EvalStatusPending {
			return
		}
	}
	t.Errorf("never quiet: %+v", c.broker.Stats())
}

func (c *cluster) written() (n int) {
	return int(c.Index()) // small
}

// TestWritesOfARelease: what a release does not help is not written, however much waits;
// what it helps is one entry, for as many as it helps.
func TestWritesOfARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, busy, stop := full(t, 4, 300, 7)
		defer stop()
		start := c.written()
		c.deregister(t, busy[0])
		c.quiet(t)
		synctest.Wait()
		// The deregistration, its evaluation's plan, and the plan of the one that fits.
		if n := c.written() - start; n > 3 {
			t.Errorf("a release wrote %d entries", n)
		}
		if got := c.broker.Stats().Blocked; got != 299 {
			t.Errorf("%d wait, want 299", got)
		}
		start = c.written()
		c.deregister(t, busy[1])
		c.deregister(t, busy[2])
		c.deregister(t, busy[3])
		c.quiet(t)
		synctest.Wait()
		if n := c.written() - start; n > 9 {
			t.Errorf("three releases wrote %d entries", n)
		}
	})
}

// TestOneEntryForMany: what a release lets many have is decided in one pass, in the order of
// their ranks, and written together.
func TestOneEntryForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(true)
		c.node(t, "node", structs.NodePoolDefault, 1000)
		defer c.run(t.Context(), 4)()
		busy := job("busy", structs.NodePoolDefault, 100, 1, 1000, 1000)
		c.register(t, busy)
		c.quiet(t)
		for i := range 20 {
			c.register(t, job(fmt.Sprint("waits-", i), structs.NodePoolDefault, 30+i, 1, 100, 100))
		}
		c.quiet(t)
		synctest.Wait()
		start := c.written()
		c.deregister(t, busy)
		c.quiet(t)
		synctest.Wait()
		// The deregistration, its evaluation's plan, and one for all that have room now.
		if n := c.written() - start; n > 3 {
			t.Errorf("a release for ten wrote %d entries", n)
		}
		for i := range 20 {
			if n := len(c.store.Snapshot().AllocsByJob(nil, "default", fmt.Sprint("waits-", i), true)); (n == 1) != (i >= 10) {
				t.Errorf("of job %d, of priority %d, %d are placed", i, 30+i, n)
			}
		}
	})
}

// TestReservesWithoutWrites: what waits for long reserves room in the pass, and goes on
// blocked all the time; its reservations are renewed.
func TestReservesWithoutWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(true)
		defer c.run(t.Context(), 2)()
		c.node(t, "node", structs.NodePoolDefault, 1000)
		config := structs.DefaultSchedulerConfiguration()
		config.ReservationAfter, config.ReservationTTL = time.Minute, 10*time.Minute
		c.Put(t, &structs.SchedulerConfigEntry{Config: config})
		busy := job("busy", structs.NodePoolDefault, 50, 1, 500, 500)
		busy.TaskGroups[0].MaxRunDuration = time.Hour
		c.register(t, busy)
		synctest.Wait()
		c.register(t, job("large", structs.NodePoolDefault, 50, 1, 1000, 1000))
		leased := func() (until int64) {
			synctest.Wait()
			for r := range c.store.Snapshot().Reservations(nil) {
				until = r.ExpiresAt
			}
			return until
		}
		if leased() != 0 {
			t.Fatal("reserved at once")
		}
		time.Sleep(time.Minute + time.Second)
		first := leased()
		if first == 0 {
			t.Fatalf("nothing is reserved: %+v", c.broker.Stats())
		}
		before := c.written()
		time.Sleep(11 * time.Minute)
		if next := leased(); next <= first {
			t.Fatalf("not renewed: %d, then %d", first, next)
		}
		if n := c.written() - before; n > 3 {
			t.Fatalf("renewing wrote %d entries", n)
		}
		for _, e := range c.store.Snapshot().EvalsByJob(nil, "default", "large") {
			if e.Status == structs.EvalStatusPending || e.Status == structs.EvalStatusFailed {
				t.Fatalf("evaluation %s: %s", e.ID, e.Status)
			}
		}
		small := job("small", structs.NodePoolDefault, 90, 1, 200, 200)
		c.register(t, small)
		synctest.Wait()
		if n := len(c.store.Snapshot().AllocsByJob(nil, "default", "small", true)); n != 0 {
			t.Fatalf("%d of a job without a time limit took reserved room", n)
		}
		c.deregister(t, busy)
		c.quiet(t)
		synctest.Wait()
		if n := len(c.store.Snapshot().AllocsByJob(nil, "default", "large", true)); n != 1 {
			t.Fatalf("%d of the job that had reserved are placed", n)
		}
	})
}

// TestRequestsAreWritten: rows follow what waits; what is placed at once has none.
func TestRequestsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(true)
		defer c.run(t.Context(), 2)()
		c.node(t, "node", structs.NodePoolDefault, 1000)
		busy := job("busy", structs.NodePoolDefault, 50, 1, 500, 500)
		c.register(t, busy)
		e := c.register(t, job("two", structs.NodePoolDefault, 50, 2, 400, 400))
		synctest.Wait()
		if a := c.store.Snapshot().Requests().Get(nil, "default", "busy", "g"); a != nil {
			t.Fatalf("placed at once, but %+v", a)
		}
		a := c.store.Snapshot().Requests().Get(nil, "default", "two", "g")
		if a == nil || a.Missing != 1 || a.Since != e.CreateTime {
			t.Fatalf("ask %+v, want one missing since %d", a, e.CreateTime)
		}
		if b := c.store.Snapshot().Eval(nil, a.EvalID); b == nil || b.Status != structs.EvalStatusBlocked {
			t.Fatalf("it waits in %+v", b)
		}
		time.Sleep(5 * time.Second) // short of a cycle, or in the next: both may be
		c.deregister(t, busy)
		synctest.Wait()
		if a := c.store.Snapshot().Requests().Get(nil, "default", "two", "g"); a != nil && a.Missing != 0 {
			t.Fatalf("all is placed, but %+v", a)
		}
	})
}

// BenchmarkReleases: 10,000 jobs wait for one node, with 20 request keys or with 800; each round
// what runs there is stopped, and what is measured is until the next runs.
func BenchmarkReleases(b *testing.B) {
	for _, requestKeys := range []int{20, 800} {
		b.Run(fmt.Sprint("shapes=", requestKeys), func(b *testing.B) {
			c, busy, stop := full(b, 1, 10000, requestKeys)
			defer stop()
			last := c.lastPlaced(busy[0].ID)
			written := c.written()
			b.ResetTimer()
			for range b.N {
				c.deregister(b, &structs.Job{ID: last(), Namespace: structs.DefaultNamespace, Type: structs.JobTypeService})
				// That, the stop that follows, and the placement.
				if _, err := c.store.WaitIndex(b.Context(), uint64(c.written()+2)); err != nil { // small
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.written()-written)/float64(b.N), "entries/release")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "releases/s")
		})
	}
}

// lastPlaced notes whose instance was placed last.
func (c *cluster) lastPlaced(id string) (last func() string) {
	c.Lock()
	defer c.Unlock()
	c.watch = func(_ uint64, payload any) {
		if entry, ok := payload.(*structs.PlanCommit); ok {
			for _, p := range entry.Plans {
				for _, batch := range p.Place {
					id = batch.JobID
				}
			}
		}
	}
	return func() string {
		c.Lock()
		defer c.Unlock()
		return id
	}
}
