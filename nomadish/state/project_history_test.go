package state

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// shortWeek is the nth week of a calendar of weeks of 100 seconds.
func shortWeek(n int64) *structs.WeekSpan {
	return &structs.WeekSpan{Week: fmt.Sprintf("2026-W%02d", n+1), From: n * 100e9, To: (n + 1) * 100e9}
}

// ofProject is a batch of n instances of project chip that a test places, on slots if claim says so.
func ofProject(jobID, seed, claim string, n, cost int) *structs.PlacementBatch {
	b := onSlots(jobID, "n0", seed, n)
	terms := b.Resources.Shared.Terms
	terms.Claim = claim
	terms.Slots.Cost = cost
	if claim == structs.ClaimSlots {
		terms.Slots.Guards = 1
	}
	return b
}

// historyWorld is projectWorld in week 0 of the short calendar, in which project chip has three slots in each of the first weeks.
type historyWorld struct {
	*world
	at    int64 // the time, in Unix nanoseconds
	week  int64 // that was stated last
	seeds int
	ids   []string
}

func newHistoryWorld(t testing.TB) *historyWorld {
	h := &historyWorld{world: projectWorld(t), at: 10e9}
	h.must(&structs.NodeRegisterEntry{Node: node("n0"), Time: h.at})
	h.register(job("sim"))
	for n := range int64(3) {
		h.edit(n, 3)
	}
	h.beginWeek(0)
	return h
}

// edit gives project chip slots of a week.
func (h *historyWorld) edit(n int64, count int) {
	w := shortWeek(n)
	h.must(&structs.ProjectCalendarEntry{
		Week: &structs.ProjectWeek{Project: "chip", Week: w.Week, Rows: []structs.CalendarRow{slots(count)}, From: w.From, To: w.To}, Time: h.at,
	})
}

func (h *historyWorld) beginWeek(n int64) {
	h.week = n
	h.must(&structs.ClaimsTimeEntry{Now: h.at, EvalSeed: "t", Week: shortWeek(n)})
}

// placeOf places instances of project chip that have waited, and returns their IDs.
func (h *historyWorld) placeOf(claim string, n, cost int, waited time.Duration) []string {
	h.seeds++
	seed := fmt.Sprint("seed", h.seeds)
	h.must(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{{
		ID: "e-" + seed, Namespace: "default", JobID: "sim", Type: structs.JobTypeService, Priority: 50, Status: structs.EvalStatusPending,
		TriggeredBy: structs.EvalTriggerJobRegister, CreateTime: h.at - int64(waited),
	}}, Time: h.at})
	b := ofProject("sim", seed, claim, n, cost)
	b.CreateTime = h.at
	h.plan(&structs.JudgedPlan{EvalID: "e-" + seed, Time: h.at, Place: []*structs.PlacementBatch{b}, JudgedAt: h.index})
	var ids []string
	for i := range n {
		ids = append(ids, structs.DeriveID(seed, uint64(i))) // small
	}
	h.ids = append(h.ids, ids...)
	return ids
}

func (h *historyWorld) end(status string, ran time.Duration, ids ...string) {
	e := &structs.AllocClientEntry{Time: h.at}
	for _, id := range ids {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: id, ClientStatus: status, ModifyTime: h.at, TaskStates: map[string]*structs.TaskState{
			"t": {State: "dead", StartedAt: time.Unix(0, h.at-int64(ran)), FinishedAt: time.Unix(0, h.at)},
		}})
	}
	h.must(e)
}

func (h *historyWorld) stop(s structs.AllocStop) {
	h.plan(&structs.JudgedPlan{EvalID: "e", Time: h.at, Stop: []*structs.AllocStop{&s}})
}

func (h *historyWorld) usage(n int64) *structs.SlotUsage {
	h.t.Helper()
	for u := range h.store.Snapshot().ProjectUsage(nil).Weeks("chip") {
		if u.Week == shortWeek(n).Week {
			if t := u.Advanced(h.at).Type(structs.SlotBatch); t != nil {
				return t
			}
		}
	}
	return &structs.SlotUsage{}
}

// TestUsageOfAWeek follows instances through a week and over its turn.
func TestUsageOfAWeek(t *testing.T) {
	h := newHistoryWorld(t)
	on := h.placeOf(structs.ClaimSlots, 2, 1, 4*time.Second)
	lent := h.placeOf("", 1, 2, 0)
	h.placeOf("", 1, 1, 0)
	h.at = 20e9
	check(t, "levels", h.usage(0).Now, structs.SlotLevels{Given: 3, Used: 2, Borrowed: 3, Guards: 2})
	check(t, "sums", h.usage(0).Sum, structs.SlotLevels{Given: 30e3, Used: 20e3, Borrowed: 30e3, Guards: 20e3})
	check(t, "lent", h.usage(0).Lent, 10e3)

	h.end(structs.AllocClientComplete, 5*time.Second, on[0])
	h.stop(structs.AllocStop{AllocID: lent[0], DesiredStatus: structs.AllocDesiredEvict, RequeueReason: "for slots of project board"})
	h.stop(structs.AllocStop{AllocID: on[1], DesiredStatus: structs.AllocDesiredSuspend, SuspendedAt: h.at})
	h.end(structs.AllocClientComplete, 5*time.Second, lent[0])
	check(t, "levels after ends", h.usage(0).Now, structs.SlotLevels{Given: 3, Borrowed: 1})
	c := h.usage(0).Counts
	check(t, "placed, completed, requeued, suspended", [4]int{c.Placed, c.Completed, c.Requeued, c.Suspended}, [4]int{4, 1, 1, 1})
	check(t, "mean wait", c.Waits.Mean(), 2*time.Second)
	check(t, "p95", c.Waits.Quantile(0.95), 4*time.Second)
	runs := h.store.Snapshot().ProjectUsage(nil).History("chip")
	check(t, "completed runs", len(runs.Completed), 1)
	check(t, "the completed run", *runs.Completed[0], structs.ProjectRun{
		AllocID: on[0], Step: "place", User: "ada", Type: structs.SlotBatch, Cost: 1, OnSlots: true, Placed: 10e9, Started: 15e9, Ended: 20e9, End: structs.RunCompleted,
	})
	check(t, "the other run", runs.Others[0].End, structs.RunRequeued)

	h.at = 103e9
	h.beginWeek(1)
	h.at = 110e9
	check(t, "week 0", h.usage(0).Sum, structs.SlotLevels{Given: 270e3, Used: 20e3, Borrowed: 110e3, Guards: 20e3})
	check(t, "levels of week 0", h.usage(0).Now, structs.SlotLevels{})
	check(t, "week 1", h.usage(1).Sum, structs.SlotLevels{Given: 30e3, Borrowed: 10e3})

	// It outlives the job and its allocations, and a restore; a deleted project has none.
	h.must(&structs.JobDeregisterEntry{JobID: "sim", Namespace: "default", Purge: true, Time: h.at})
	h.must(&structs.CollectEntry{Allocs: []string{on[0], lent[0]}, Time: h.at})
	check(t, "runs after a purge", len(h.store.Snapshot().ProjectUsage(nil).History("chip").Completed), 1)
	h.must(&structs.ProjectDeleteEntry{Name: "chip", Time: h.at})
	for range h.store.Snapshot().ProjectUsage(nil).Weeks("chip") {
		t.Error("the project is deleted, and has usage")
	}
	check(t, "history of a deleted project", h.store.Snapshot().ProjectUsage(nil).History("chip"), nil)
}

// TestUsageIsBounded: weeks and runs are forgotten beyond their limits.
func TestUsageIsBounded(t *testing.T) {
	h := newHistoryWorld(t)
	h.placeOf("", 1, 1, 0)
	const ns = int64(7 * 24 * time.Hour)
	for n := range int64(70) {
		h.at = n*ns + 2e9
		h.must(&structs.ClaimsTimeEntry{Now: h.at, EvalSeed: "t", Week: &structs.WeekSpan{Week: fmt.Sprintf("%04d-W%02d", 2026+n/52, 1+n%52), From: n * ns, To: (n + 1) * ns}})
	}
	weeks := 0
	for range h.store.Snapshot().ProjectUsage(nil).Weeks("chip") {
		weeks++
	}
	if weeks < structs.MaxWeeksKept || weeks > structs.MaxWeeksKept+2 {
		t.Errorf("%d weeks are kept", weeks)
	}
	for range 3 {
		h.end(structs.AllocClientComplete, time.Second, h.placeOf("", 50, 1, 0)...)
		h.end(structs.AllocClientFailed, time.Second, h.placeOf("", 50, 1, 0)...)
	}
	runs := h.store.Snapshot().ProjectUsage(nil).History("chip")
	check(t, "completed", len(runs.Completed), structs.MaxProjectRuns)
	check(t, "others", len(runs.Others), structs.MaxProjectRuns)
}

// TestMeanRun: the World knows the mean run time of a project whose objective depends on it, once there are ten runs, and also after a restore.
func TestMeanRun(t *testing.T) {
	h := newHistoryWorld(t)
	mean := func() time.Duration { return h.store.Snapshot().World().Slots().Spec("chip").MeanRun }
	runs := func(n int, ran time.Duration) { h.end(structs.AllocClientComplete, ran, h.placeOf("", n, 1, 0)...) }
	runs(10, 4*time.Second)
	check(t, "mean with objective velocity", mean(), 0)
	h.must(&structs.ProjectUpsertEntry{Project: &structs.Project{
		Name: "chip", Users: []string{"ada"}, Flow: "asic", Objective: structs.ObjectiveThroughput, Throughput: &structs.Throughput{Jobs: 30, Per: time.Hour},
	}})
	check(t, "mean", mean(), 4*time.Second)
	runs(10, 8*time.Second)
	check(t, "mean of more", mean(), 6*time.Second)
	check(t, "jobs", h.store.Snapshot().World().Slots().Spec("chip").Jobs, 30)
	again := restored(t, h.store.Snapshot())
	check(t, "mean after a restore", again.World().Slots().Spec("chip").MeanRun, 6*time.Second)
	check(t, "hash after a restore", again.Hash(), h.store.Snapshot().Hash())
}

// restored is a snapshot of a store that was made of the rows of another.
func restored(t testing.TB, s *Snapshot) *Snapshot {
	t.Helper()
	store, w := New(Options{})
	in := w.Import()
	if err := s.Export(func(table string, row any) error { return in.Add(table, row) }); err != nil {
		t.Fatal(err)
	}
	w.Commit(in, s.Index())
	return store.Snapshot()
}

// TestUsageAfterAnEarlierVersion: a snapshot without usage, as earlier versions wrote it, is restored, and what runs counts from the next change on.
func TestUsageAfterAnEarlierVersion(t *testing.T) {
	h := newHistoryWorld(t)
	h.placeOf(structs.ClaimSlots, 2, 1, 0)
	snap := h.store.Snapshot()
	in := h.w.Import()
	if err := snap.Export(func(table string, row any) error {
		if table == TableProjectUsage || table == TableProjectHistory {
			return nil
		}
		return in.Add(table, row)
	}); err != nil {
		t.Fatal(err)
	}
	h.w.Commit(in, snap.Index())
	h.at = 20e9
	h.must(&structs.ReconcileEntry{Time: h.at})
	h.at = 30e9
	check(t, "levels", h.usage(0).Now, structs.SlotLevels{Given: 3, Used: 2, Guards: 2})
	check(t, "sums", h.usage(0).Sum, structs.SlotLevels{Given: 30e3, Used: 20e3, Guards: 20e3})
}

// TestUsageOfAnIdleBeginning: of a week that began with nothing given or used, what comes later counts from then on.
func TestUsageOfAnIdleBeginning(t *testing.T) {
	h := newHistoryWorld(t)
	h.edit(1, 0)
	h.at = 105e9
	h.beginWeek(1)
	h.at = 120e9
	h.placeOf("", 1, 1, 0)
	h.at = 130e9
	check(t, "sums", h.usage(1).Sum, structs.SlotLevels{Borrowed: 10e3})
}

// interval is levels that lasted for a time.
type interval struct {
	from   int64
	levels structs.SlotLevels
}

// levelsNow adds up what the allocations of project chip amount to, without any index.
func (h *historyWorld) levelsNow() (l structs.SlotLevels) {
	snap := h.store.Snapshot()
	for r := range snap.v.allocs.All {
		a := r.Whole()
		terms := a.AllocatedResources.Shared.Terms
		if a.ServerTerminal() || a.ClientTerminal() || a.DesiredStatus == structs.AllocDesiredSuspend {
			continue
		}
		cost := int64(terms.Slots.Cost)
		switch terms.Claim {
		case structs.ClaimSlots:
			l.Used += cost
			l.Guards += int64(terms.Slots.Guards)
		case structs.ClaimCells:
			l.Beside += cost
		default:
			l.Borrowed += cost
		}
	}
	if account := snap.World().Slots().Account("chip"); account != nil {
		l.Given = int64(account.Given(structs.SlotBatch))
	}
	return l
}

// TestUsageAgainstIntervals: what is kept of a week equals the sum of all intervals in it, whatever happens and whenever the turn of a week is
// stated; and a restored state goes on in the same way.
func TestUsageAgainstIntervals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistoryWorld(t)
		past := []interval{{h.at, h.levelsNow()}}
		note := func() {
			past = append(past, interval{min(h.at, shortWeek(h.week).To), h.levelsNow()})
		}
		var placed, completed int
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			h.at += rapid.Int64Range(0, 40_000).Draw(rt, "pass") * 1e6
			if now := h.at / 100e9; now > h.week && rapid.Bool().Draw(rt, "turn") {
				past = append(past, interval{shortWeek(h.week).To, past[len(past)-1].levels})
				h.beginWeek(h.week + 1)
				past = append(past, interval{shortWeek(h.week).From, h.levelsNow()})
			}
			switch rapid.IntRange(0, 5).Draw(rt, "do") {
			case 0:
				claim := rapid.SampledFrom([]string{"", structs.ClaimSlots}).Draw(rt, "claim")
				n := rapid.IntRange(1, 3).Draw(rt, "n")
				h.placeOf(claim, n, rapid.IntRange(1, 2).Draw(rt, "cost"), time.Second)
				placed += n
			case 1:
				if len(h.ids) > 0 {
					id := rapid.SampledFrom(h.ids).Draw(rt, "end")
					if a := h.store.Snapshot().Alloc(nil, id); !a.Terminal() {
						completed++
					}
					h.end(structs.AllocClientComplete, time.Second, id)
				}
			case 2:
				if len(h.ids) > 0 {
					h.stop(structs.AllocStop{AllocID: rapid.SampledFrom(h.ids).Draw(rt, "stop"), DesiredStatus: rapid.SampledFrom([]string{
						structs.AllocDesiredEvict, structs.AllocDesiredSuspend, structs.AllocDesiredRun,
					}).Draw(rt, "to"), RequeueReason: rapid.SampledFrom([]string{"", "for slots"}).Draw(rt, "why")})
				}
			case 3:
				if w := h.at / 100e9; w < 3 {
					h.edit(max(w, h.week), rapid.IntRange(0, 4).Draw(rt, "given"))
				}
			case 4:
				e := structs.AllocTransitionEntry{Time: h.at}
				h.must(&e)
			case 5:
				h.must(&structs.ReconcileEntry{Time: h.at})
			}
			note()
		}
		h.compare(rt, past, placed, completed)
		again := restored(t, h.store.Snapshot())
		if !again.v.live.Equal(&h.store.Snapshot().v.live) || again.Hash() != h.store.Snapshot().Hash() {
			rt.Fatal("a restored state differs")
		}
	})
}

// compare compares what is kept with the intervals, up to now.
func (h *historyWorld) compare(rt *rapid.T, past []interval, placed, completed int) {
	past = append(past, interval{min(h.at, shortWeek(h.week).To), structs.SlotLevels{}})
	for n := range h.week + 1 {
		w := shortWeek(n)
		var sum structs.SlotLevels
		var lent int64
		for i := range past[1:] {
			from, to := max(past[i].from, w.From), min(past[i+1].from, w.To)
			if to > from {
				ms := to/1e6 - from/1e6
				sum, lent = sum.Add(past[i].levels.Times(ms)), lent+past[i].levels.Lent()*ms
			}
		}
		if got := h.usage(n); got.Sum != sum || got.Lent != lent {
			rt.Fatalf("week %d: have %+v and %d lent, want %+v and %d, of %v", n, got.Sum, got.Lent, sum, lent, past)
		}
		placed -= h.usage(n).Counts.Placed
		completed -= h.usage(n).Counts.Completed
	}
	if placed != 0 || completed != 0 {
		rt.Fatalf("%d placements and %d completions are not counted", placed, completed)
	}
	if now, want := h.usage(h.week).Now, past[len(past)-2].levels; !reflect.DeepEqual(now, want) {
		rt.Fatalf("levels now: %+v, want %+v", now, want)
	}
}
