package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/structs"
)

const cycle = int64(structs.DefaultCycle)

// at commits a plan in a cycle.
func (w *world) at(cycles int64, p *structs.JudgedPlan) *Snapshot {
	w.t.Helper()
	p.Time = (cycles + 1000) * cycle
	return w.plan(p)
}

func missing20(n int, evalID string) []*structs.RequestUpdate {
	return []*structs.RequestUpdate{{Namespace: "default", JobID: "web", Group: "web", Missing: n, EvalID: evalID}}
}

func reclaimed(how, desired string, ids ...string) (out []*structs.AllocStop) {
	for _, id := range ids {
		out = append(out, &structs.AllocStop{AllocID: id, DesiredStatus: desired, Reclaim: how, PreemptedBy: "by", DesiredDescription: "preempted"})
	}
	return out
}

// The golden example of semantics part 4: a normal job of 20, two cycles 22, scheduled,
// requeued 32, one cycle 33, scheduled, requeued 43.
func TestEffectivePriorityOfARequeuedJob(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	j := job("web")
	j.Priority = 20
	w.register(j)
	priority := func(s *Snapshot, cycles int64) int64 {
		t.Helper()
		c := s.SchedulerConfig(nil)
		rank := c.Rank(s.Job(nil, "default", "web"), s.Requests().Get(nil, "default", "web", "web"), 0)
		return c.EffectivePriority(&rank, (cycles+1000)*cycle)
	}
	snap := w.at(0, &structs.JudgedPlan{Requests: missing20(1, "b")})
	check(t, "as it comes", priority(snap, 0), 20)
	check(t, "after two cycles", priority(snap, 2), 22)
	place := func(cycles int64, seed string) string {
		w.at(cycles, &structs.JudgedPlan{Place: []*structs.PlacementBatch{batch("web", 0, "n", seed, 1)}, Requests: missing20(0, "")})
		return structs.DeriveID(seed, 0)
	}
	first := place(2, "first")
	snap = w.at(500, &structs.JudgedPlan{Stop: reclaimed(structs.ReclaimRequeue, structs.AllocDesiredEvict, first)})
	check(t, "requeued", priority(snap, 500), 32)
	check(t, "after one cycle", priority(snap, 501), 33)
	second := place(501, "second")
	snap = w.at(900, &structs.JudgedPlan{Stop: reclaimed(structs.ReclaimRequeue, structs.AllocDesiredEvict, second)})
	check(t, "requeued again", priority(snap, 900), 43)
}

func TestRequestWaitsAndIsPlaced(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	snap := w.at(0, &structs.JudgedPlan{Requests: missing20(0, "")})
	check(t, "an ask placed at once has a row", snap.Requests().Get(nil, "default", "web", "web") == nil, true)
	snap = w.at(1, &structs.JudgedPlan{Requests: []*structs.RequestUpdate{{
		Namespace: "default", JobID: "web", Group: "web", Missing: 2, Since: 1000*cycle + 5, EvalID: "b1",
	}}})
	want := structs.PendingRequest{
		Namespace: "default", JobID: "web", Group: "web", Missing: 2, Since: 1000*cycle + 5, EvalID: "b1", CreateIndex: w.index, ModifyIndex: w.index,
	}
	check(t, "it waits", *snap.Requests().Get(nil, "default", "web", "web"), want)
	snap = w.at(2, &structs.JudgedPlan{Requests: []*structs.RequestUpdate{{
		Namespace: "default", JobID: "web", Group: "web", Missing: 1, Since: 1002 * cycle, EvalID: "b2",
	}}})
	want.Missing, want.EvalID, want.ModifyIndex = 1, "b2", w.index
	check(t, "a part is placed: it has waited as long", *snap.Requests().Get(nil, "default", "web", "web"), want)
	changed := snap.TableIndex(TableRequests)
	snap = w.at(3, &structs.JudgedPlan{Requests: missing20(1, "b2")})
	check(t, "the same again changes the row", *snap.Requests().Get(nil, "default", "web", "web"), want)
	check(t, "and the table", snap.TableIndex(TableRequests), changed)
	check(t, "those that wait", len(slices.Collect(snap.Requests().Waiting(nil, "*"))), 1)
	check(t, "of another namespace", len(slices.Collect(snap.Requests().Waiting(nil, "other"))), 0)
	snap = w.at(10, &structs.JudgedPlan{Requests: missing20(0, "")})
	want.Missing, want.Since, want.Aged, want.EvalID, want.ModifyIndex = 0, 0, 10, "", w.index
	check(t, "it is placed, and remembers", *snap.Requests().Get(nil, "default", "web", "web"), want)
	check(t, "those that wait", len(slices.Collect(snap.Requests().Waiting(nil, "default"))), 0)
	check(t, "all", len(slices.Collect(snap.Requests().List(nil, "default"))), 1)
	check(t, "of the job", len(snap.Requests().OfJob(nil, "default", "web")), 1)
}

func TestReclaimedRequestGoesBack(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	ids := w.place("web", 0, "n", "s", 6)
	request := func(s *Snapshot) structs.PendingRequest {
		t.Helper()
		a := *s.Requests().Get(nil, "default", "web", "web")
		a.CreateIndex, a.ModifyIndex = 0, 0
		return a
	}
	requeue := structs.ReclaimRequeue
	w.report(structs.AllocClientComplete, ids[5])
	kept := reclaimed(requeue, "", ids[4])
	kept[0].KeepRunning = true
	snap := w.at(0, &structs.JudgedPlan{Stop: append(reclaimed(requeue, structs.AllocDesiredEvict, ids[0], ids[1], ids[5], "unknown"), kept...)})
	want := structs.PendingRequest{Namespace: "default", JobID: "web", Group: "web", Missing: 2, Since: 1000 * cycle, Requeued: 1}
	check(t, "two taken by one plan, one had ended", request(snap), want)
	check(t, "the victim", snap.Alloc(nil, ids[0]).PreemptedByAllocation, "by")
	check(t, "its status", snap.Alloc(nil, ids[0]).DesiredStatus, structs.AllocDesiredEvict)
	snap = w.at(3, &structs.JudgedPlan{Stop: reclaimed(requeue, structs.AllocDesiredEvict, ids[0])})
	check(t, "taken once more in vain", request(snap), want)
	snap = w.at(4, &structs.JudgedPlan{Stop: reclaimed(structs.ReclaimSuspend, structs.AllocDesiredSuspend, ids[2])})
	want.Missing = 3
	check(t, "one suspended, which is not requeued", request(snap), want)
	snap = w.at(5, &structs.JudgedPlan{Stop: reclaimed(requeue, structs.AllocDesiredEvict, ids[2])})
	want.Requeued = 2
	check(t, "the suspended one requeued", request(snap), want)
	snap = w.at(6, &structs.JudgedPlan{Stop: []*structs.AllocStop{{AllocID: ids[3]}}})
	check(t, "one stopped for another reason", request(snap), want)
	both := &structs.JudgedPlan{Stop: reclaimed(requeue, structs.AllocDesiredEvict, ids[4]), Requests: missing20(1, "b")}
	snap = w.at(7, both)
	want.Requeued, want.Missing, want.EvalID = 3, 1, "b"
	check(t, "a plan that takes and says what is missing", request(snap), want)
}

func TestSuspendedAllocation(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	id := w.place("web", 0, "n", "s", 1)[0]
	w.report(structs.AllocClientRunning, id)
	snap := w.at(0, &structs.JudgedPlan{Stop: reclaimed(structs.ReclaimSuspend, structs.AllocDesiredSuspend, id)})
	a := snap.Alloc(nil, id)
	check(t, "desired", a.DesiredStatus, structs.AllocDesiredSuspend)
	check(t, "terminal", a.Terminal(), false)
	check(t, "job", snap.Job(nil, "default", "web").Status, structs.JobStatusRunning)
	check(t, "its client must look", a.AllocModifyIndex, w.index)
	snap = w.report(structs.AllocClientSuspended, id)
	check(t, "client status", snap.Alloc(nil, id).ClientStatus, structs.AllocClientSuspended)
	check(t, "summary", snap.JobSummary(nil, "default", "web").Summary["web"], structs.TaskGroupSummary{Starting: 1})
	check(t, "job", snap.Job(nil, "default", "web").Status, structs.JobStatusRunning)
	snap = w.at(1, &structs.JudgedPlan{Update: []*structs.AllocInPlace{{AllocID: id, EvalID: "e2"}}})
	check(t, "updated in place", snap.Alloc(nil, id).DesiredStatus, structs.AllocDesiredSuspend)
	whole := batch("web", 0, "n", "s", 1).Resources
	snap = w.at(2, &structs.JudgedPlan{Update: []*structs.AllocInPlace{{AllocID: id, EvalID: "e3", Resources: whole, Resume: true}}, Requests: missing20(0, "")})
	a = snap.Alloc(nil, id)
	check(t, "resumed", [3]string{a.DesiredStatus, a.DesiredDescription, a.PreemptedByAllocation}, [3]string{structs.AllocDesiredRun, "", ""})
	check(t, "what it has waited", snap.Requests().Get(nil, "default", "web", "web").Aged, 2)
	snap = w.at(3, &structs.JudgedPlan{Stop: reclaimed(structs.ReclaimSuspend, structs.AllocDesiredSuspend, id)})
	check(t, "suspended again", snap.Alloc(nil, id).DesiredStatus, structs.AllocDesiredSuspend)
	snap = w.must(&structs.NodeDeregisterEntry{NodeIDs: []string{"n"}, Time: w.now(), EvalSeed: "gone"})
	check(t, "its node is gone", snap.Alloc(nil, id).ClientStatus, structs.AllocClientLost)
}

func TestRequestsFollowTheirJob(t *testing.T) {
	two := func() *structs.Job {
		j := job("web")
		j.TaskGroups = append(j.TaskGroups, &structs.TaskGroup{Name: "db", Count: 1})
		return j
	}
	requests := func(s *Snapshot) map[string]int {
		out := map[string]int{}
		for a := range s.Requests().List(nil, "*") {
			out[a.JobID+"/"+a.Group] = a.Missing
		}
		return out
	}
	waiting := func(t *testing.T) *world {
		w := newWorld(t)
		w.register(two())
		w.register(job("web2"))
		both := append(missing20(2, "b"), &structs.RequestUpdate{Namespace: "default", JobID: "web", Group: "db", Missing: 1, Since: 1},
			&structs.RequestUpdate{Namespace: "default", JobID: "web2", Group: "web", Missing: 3},
			&structs.RequestUpdate{Namespace: "default", JobID: "nobody", Group: "web", Missing: 3},
			&structs.RequestUpdate{Namespace: "default", JobID: "web", Group: "nobody", Missing: 3})
		w.at(0, &structs.JudgedPlan{Requests: both})
		return w
	}
	f := func(name string, entry any, want map[string]int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			w := waiting(t)
			snap := w.must(entry)
			if got := requests(snap); !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			late := w.at(1, &structs.JudgedPlan{Requests: []*structs.RequestUpdate{{Namespace: "default", JobID: "web", Group: "db", Missing: 4}}})
			if _, still := want["web/db"]; requests(late)["web/db"] == 4 != (still && !late.Job(nil, "default", "web").Stop) {
				t.Errorf("a late plan left %v", requests(late))
			}
		})
	}
	now := 1001 * cycle
	f("left alone", &structs.ReconcileEntry{Time: now}, map[string]int{"web/web": 2, "web/db": 1, "web2/web": 3})
	// What waited long remembers it, what had waited less than a cycle is forgotten.
	f("stopped", &structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Time: 1000*cycle + 1}, map[string]int{"web/db": 0, "web2/web": 3})
	f("purged", &structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true, Time: now}, map[string]int{"web2/web": 3})
	f("a group is gone", &structs.JobRegisterEntry{Job: job("web"), Time: now}, map[string]int{"web/web": 2, "web2/web": 3})
	f("registered as it was", &structs.JobRegisterEntry{Job: two(), Time: now}, map[string]int{"web/web": 2, "web/db": 1, "web2/web": 3})
}

func TestRequestsOfPlansThatCannotBeStored(t *testing.T) {
	w := newWorld(t)
	w.register(job("web"))
	f := func(u *structs.RequestUpdate) {
		t.Helper()
		w.refuses(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Requests: append(missing20(1, "b"), u)}}}, structs.CodeBadRequest)
	}
	f(nil)
	f(&structs.RequestUpdate{Namespace: "default", JobID: "web", Group: "web", Missing: -1})
	f(&structs.RequestUpdate{Namespace: "default", JobID: "web", Group: "web", Missing: 1 << 40})
	f(&structs.RequestUpdate{Namespace: "default", JobID: "web", Missing: 1})
	f(&structs.RequestUpdate{Namespace: "default", Group: "web", Missing: 1})
	f(&structs.RequestUpdate{Namespace: "default", JobID: "we\x00b", Group: "web", Missing: 1})

	g := func(a *structs.PendingRequest) {
		t.Helper()
		if err := w.w.Import().Add(TableRequests, a); err == nil {
			t.Errorf("%+v was taken", a)
		}
	}
	ok := structs.PendingRequest{Namespace: "default", JobID: "web", Group: "web", Missing: 1, Since: 5}
	if err := w.w.Import().Add(TableRequests, &ok); err != nil {
		t.Fatal(err)
	}
	for i, break1 := range []func(*structs.PendingRequest){
		func(a *structs.PendingRequest) { a.Missing = 0 },
		func(a *structs.PendingRequest) { a.Since = 0 },
		func(a *structs.PendingRequest) { a.Since = -1 },
		func(a *structs.PendingRequest) { a.Aged = -1 },
		func(a *structs.PendingRequest) { a.Aged = rowcheck.MaxAged + 1 },
		func(a *structs.PendingRequest) { a.Requeued = -1 },
		func(a *structs.PendingRequest) { a.Missing, a.Since = 0, 0 },
		func(a *structs.PendingRequest) { a.Group = "" },
		func(a *structs.PendingRequest) { a.JobID = "" },
	} {
		bad := ok
		break1(&bad)
		if bad == ok {
			t.Fatalf("case %d breaks nothing", i)
		}
		g(&bad)
	}
}

// Who waits for the queue is woken when a request begins or ends to wait, and for a job's
// asks when one of them changes.
func TestWatchedRequests(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	w.register(job("web2"))
	other := func(n int) []*structs.RequestUpdate {
		return []*structs.RequestUpdate{{Namespace: "default", JobID: "web2", Group: "web", Missing: n}}
	}
	w.plan(&structs.JudgedPlan{Requests: append(other(3), missing20(1, "b")...)})
	f := func(what string, p *structs.JudgedPlan, queue, ofJob bool) {
		t.Helper()
		all, one := NewWatchSet(), NewWatchSet()
		snap := w.store.Snapshot()
		snap.Requests().Waiting(all, "*")
		snap.Requests().OfJob(one, "default", "web")
		w.plan(p)
		check(t, what+": the queue's watcher wakes", wakes(all), queue)
		check(t, what+": the job's watcher wakes", wakes(one), ofJob)
	}
	f("nothing of asks", &structs.JudgedPlan{Place: []*structs.PlacementBatch{batch("web", 0, "n", "s", 1)}}, false, false)
	f("it waits for more", &structs.JudgedPlan{Requests: missing20(2, "b")}, true, true)
	f("as before", &structs.JudgedPlan{Requests: missing20(2, "b")}, false, false)
	f("another job's", &structs.JudgedPlan{Requests: other(4)}, true, false)
	f("it is placed", &structs.JudgedPlan{Requests: missing20(0, "")}, true, true)
}

func TestFeedTellsOfRequests(t *testing.T) {
	w := newWorld(t)
	w.node("n")
	w.register(job("web"))
	id := w.place("web", 0, "n", "s", 1)[0]
	f := func(want string, entry any) {
		t.Helper()
		feed := w.store.Feed(w.index)
		w.must(entry)
		got := ""
		for changes, found, err := feed.Poll(); found; changes, found, err = feed.Poll() {
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes.Items {
				if c.Kind == KindRequest {
					got += fmt.Sprintf("%s %s %v %v;", c.Type, c.Key, c.Old != nil, c.New != nil)
				}
			}
		}
		check(t, "told", got, want)
	}
	plan := func(cycles int64, p *structs.JudgedPlan) *structs.PlanCommit {
		p.Time = (1000 + cycles) * cycle
		return &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}}
	}
	f("RequestWaiting default/web/web false true;", plan(0, &structs.JudgedPlan{Requests: missing20(1, "b")}))
	f("", plan(0, &structs.JudgedPlan{Requests: missing20(1, "b")}))
	f("RequestPlaced default/web/web true false;", plan(0, &structs.JudgedPlan{Requests: missing20(0, "")}))
	f("RequestReclaimed default/web/web false true;", plan(1, &structs.JudgedPlan{Stop: reclaimed(structs.ReclaimRequeue, "evict", id)}))
	f("RequestPlaced default/web/web true true;", plan(2, &structs.JudgedPlan{Requests: missing20(0, "")}))
	f("RequestWaiting default/web/web true true;", plan(3, &structs.JudgedPlan{Requests: missing20(1, "b")}))
	f("RequestWithdrawn default/web/web true true;", &structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Time: 1004 * cycle})
	f("RequestWithdrawn default/web/web true false;", &structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true, Time: 1004 * cycle})
}

// wakes reports whether something that the set watches has changed.
func wakes(ws *WatchSet) bool {
	for ch := range ws.channels {
		select {
		case <-ch:
			return true
		default:
		}
	}
	return false
}
