package structs

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const cycle = int64(DefaultCycle)

// A normal job: 20; two cycles 22; scheduled, requeued 32; one cycle 33; scheduled,
// requeued 43 (semantics part 4).
func TestEffectivePriorityOfTheExample(t *testing.T) {
	c := DefaultSchedulerConfiguration()
	job := &Job{ID: "j", Priority: 20}
	start := int64(1_000_000) * cycle
	f := func(request *PendingRequest, since, now, want int64) {
		t.Helper()
		r := c.Rank(job, request, since)
		if got := c.EffectivePriority(&r, now); got != want {
			t.Errorf("%+v since %d at %d: %d, want %d", request, (since-start)/cycle, (now-start)/cycle, got, want)
		}
	}
	f(nil, start, start, 20)
	f(nil, start, start+cycle-1, 20)
	f(nil, start, start+cycle, 21)
	f(nil, start, start+2*cycle, 22)
	f(&PendingRequest{Missing: 1, Since: start}, 0, start+2*cycle, 22)
	// It was placed after two cycles, and is taken back an hour later.
	taken := start + int64(time.Hour)
	once := &PendingRequest{Missing: 1, Aged: 2, Requeued: 1, Since: taken}
	f(once, 0, taken, 32)
	f(once, 0, taken+cycle, 33)
	again := taken + int64(time.Hour)
	f(&PendingRequest{Missing: 1, Aged: 3, Requeued: 2, Since: again}, 0, again, 43)
}

// The clock of the queue is configuration.
func TestCycles(t *testing.T) {
	f := func(c SchedulerConfiguration, now, want int64) {
		t.Helper()
		r := c.Rank(&Job{Priority: 50}, nil, 0)
		if got := c.EffectivePriority(&r, now); got != want {
			t.Errorf("cycle %s, aging %v: %d, want %d", c.Cycle, c.Aging, got, want)
		}
	}
	off, on := 0, 1
	f(SchedulerConfiguration{}, int64(time.Minute), 53)
	f(SchedulerConfiguration{Cycle: time.Minute}, int64(time.Minute), 51)
	f(SchedulerConfiguration{Cycle: time.Second, Aging: &on}, int64(time.Minute), 110)
	f(SchedulerConfiguration{Cycle: time.Second, Aging: &off}, int64(time.Minute), 50)
}

// Rank compares standing, claim, band, shares, requeued or not, number, submission, name: each only where
// all before it are equal.
func TestRankOrder(t *testing.T) {
	base := Rank{Standing: StandingNormal, Claim: 2, Band: 1, Share: 5, UserShare: 5, Number: 50, Submitted: 7, Job: NamespacedID{ID: "j", Namespace: "n"}}
	worse := []func(*Rank){ // each is worse than base by one thing, the earlier ones by more
		func(r *Rank) { r.Standing = StandingFailed },
		func(r *Rank) { r.Claim = 3 },
		func(r *Rank) { r.Band = 0 },
		func(r *Rank) { r.Share = 6 },
		func(r *Rank) { r.UserShare = 6 },
		func(*Rank) {}, // requeued is set below
		func(r *Rank) { r.Number = 49 },
		func(r *Rank) { r.Submitted = 8 },
		func(r *Rank) { r.Job.Namespace = "o" },
		func(r *Rank) { r.Job.ID = "k" },
	}
	better := []func(*Rank){
		func(r *Rank) { r.Standing = StandingRecognised },
		func(r *Rank) { r.Claim = 1 },
		func(r *Rank) { r.Band = 2 },
		func(r *Rank) { r.Share = 4 },
		func(r *Rank) { r.UserShare = 4 },
		func(r *Rank) { r.Requeued = true },
		func(r *Rank) { r.Number = 51 },
		func(r *Rank) { r.Submitted = 6 },
		func(r *Rank) { r.Job.Namespace = "m" },
		func(r *Rank) { r.Job.ID = "i" },
	}
	for i := range better {
		first, second := base, base
		better[i](&first)
		for _, lesser := range worse[i+1:] { // what comes after weighs nothing against it
			lesser(&first)
		}
		for _, greater := range better[i+1:] {
			greater(&second)
		}
		if first.Compare(&second) >= 0 || second.Compare(&first) <= 0 {
			t.Errorf("%d: %+v does not go before %+v", i, first, second)
		}
	}
	if same := base; base.Compare(&same) != 0 {
		t.Error("differs from itself")
	}
}

// TestRankShared: shares are those of normal standing alone, and what is entitled leaves them behind.
func TestRankShared(t *testing.T) {
	for standing := StandingEntitled; standing <= StandingFailed; standing++ {
		want := Rank{Standing: standing}
		if standing == StandingNormal {
			want.Share, want.UserShare = 3, 4
		}
		if got := (Rank{Standing: standing}).Shared(3, 4); got != want {
			t.Errorf("standing %d: %+v", standing, got)
		}
	}
	if got, want := (Rank{Standing: StandingNormal}).Shared(3, 4).Entitled(ClaimRankCells), (Rank{Standing: StandingEntitled, Claim: ClaimRankCells}); got != want {
		t.Errorf("entitled: %+v", got)
	}
}

// Age never lifts a job over a higher band, nor over a requeued one of its own.
func TestAgeStaysWithinItsBand(t *testing.T) {
	c := DefaultSchedulerConfiguration()
	year := int64(365 * 24 * time.Hour)
	old := c.Rank(&Job{ID: "old", Priority: 40}, nil, 0)
	young := c.Rank(&Job{ID: "young", Priority: 41}, nil, year)
	back := c.Rank(&Job{ID: "back", Priority: 1}, &PendingRequest{Requeued: 1, Since: year}, 0)
	if young.Compare(&old) >= 0 || back.Compare(&old) >= 0 || young.Compare(&back) >= 0 {
		t.Errorf("the order is not young %+v, back %+v, old %+v", young, back, old)
	}
	peer := c.Rank(&Job{ID: "peer", Priority: 39}, nil, -2*cycle)
	if peer.Compare(&old) >= 0 {
		t.Error("within a band age counts")
	}
}

func drawConfig(t *rapid.T) SchedulerConfiguration {
	c := DefaultSchedulerConfiguration()
	c.Bands = drawBands(t)
	c.Cycle = time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "cycle"))
	if a := rapid.IntRange(-1, 1).Draw(t, "aging"); a >= 0 {
		c.Aging = &a
	}
	return c
}

func drawRank(t *rapid.T, c *SchedulerConfiguration, now int64) Rank {
	job := &Job{
		ID: rapid.StringMatching(`[ab]{1,2}`).Draw(t, "id"), Namespace: rapid.StringMatching(`[ab]`).Draw(t, "namespace"),
		Priority: rapid.IntRange(JobMinPriority, JobMaxPriority).Draw(t, "priority"), CreateIndex: rapid.Uint64Range(1, 3).Draw(t, "index"),
	}
	since := rapid.Int64Range(0, now).Draw(t, "since")
	if rapid.Bool().Draw(t, "new") {
		return c.Rank(job, nil, since)
	}
	return c.Rank(job, &PendingRequest{
		Aged: rapid.Int64Range(0, 50).Draw(t, "aged"), Requeued: rapid.IntRange(0, 3).Draw(t, "requeued"), Since: since,
	}, now)
}

// While time passes the order stays: two that wait keep their effective priorities' distance.
func TestRankIsStatic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		now := rapid.Int64Range(1, int64(100*365*24*time.Hour)).Draw(t, "now")
		a, b := drawRank(t, &c, now), drawRank(t, &c, now)
		for range 4 {
			// The order by what people see at this time is the order of the ranks.
			seen := cmp.Or(cmp.Compare(a.Standing, b.Standing), cmp.Compare(b.Band, a.Band), before(a.Requeued, b.Requeued),
				cmp.Compare(c.EffectivePriority(&b, now), c.EffectivePriority(&a, now)))
			if got := a.Compare(&b); seen != 0 && got != seen {
				t.Fatalf("at %d: %+v and %+v are %d by rank, %d by what is seen", now, a, b, got, seen)
			}
			now += rapid.Int64Range(0, int64(time.Hour)).Draw(t, "passes")
		}
	})
}

func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Ranks are in one order.
func TestRanksAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		now := rapid.Int64Range(1, 4*cycle).Draw(t, "now")
		ranks := make([]Rank, 6)
		for i := range ranks {
			ranks[i] = drawRank(t, &c, now)
		}
		slices.SortFunc(ranks, func(a, b Rank) int { return a.Compare(&b) })
		for i := range ranks {
			for j := range ranks {
				got := ranks[i].Compare(&ranks[j])
				if got != -ranks[j].Compare(&ranks[i]) || (i < j && got > 0) || (got == 0) != (ranks[i] == ranks[j]) {
					t.Fatalf("%d %+v and %d %+v: %d", i, ranks[i], j, ranks[j], got)
				}
			}
		}
	})
}

// The longer one has waited, the earlier it goes, all else being equal.
func TestWhoWaitsLongerGoesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		off := 1
		c.Aging = &off
		job := &Job{ID: "a", Priority: rapid.IntRange(1, 100).Draw(t, "priority")}
		since := rapid.Int64Range(0, int64(time.Hour)).Draw(t, "since")
		longer := c.Rank(job, nil, since)
		later := c.Rank(&Job{ID: "b", Priority: job.Priority}, nil, since+int64(c.CycleLength()))
		if longer.Compare(&later) >= 0 {
			t.Fatalf("%+v goes after %+v", longer, later)
		}
	})
}
