package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// jobOfPriority is a stored job, so that what is to be decided of it has a pool.
func (b *bed) jobOfPriority(id, kind string, priority int) {
	b.Helper()
	b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
		ID: id, Namespace: "default", Type: kind, Priority: priority, NodePool: structs.NodePoolDefault,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
	}})
}

// TestNobodyTakesIt: an evaluation of a type that no worker takes does not keep the
// others of its pool from their turn for ever; once one takes it, they wait for it again.
func TestNobodyTakesIt(t *testing.T) {
	run(t, func(b *bed) {
		b.jobOfPriority("orphan", structs.JobTypeBatch, 90)
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.jobOfPriority("waits", structs.JobTypeService, 20)
		b.register(node("s", "small"))
		orphan := eval("1", "orphan", 90)
		orphan.Type = structs.JobTypeBatch
		b.put(orphan, eval("2", "low", 10))
		token := b.next("2")
		verdict := func(want Verdict) {
			b.Helper()
			if a := b.Admit("2", b.store.LatestIndex(), false); a.Verdict != want {
				b.Fatalf("verdict %d, want %d", a.Verdict, want)
			}
		}
		verdict(GateBusy)
		b.put(blockedEval("3", "waits", 1))
		b.lease("") // it stands behind the first
		time.Sleep(7 * time.Second)
		b.tried("3")
		verdict(GateOpen)
		got, first, _, err := b.dequeued(b.Context(), []string{structs.JobTypeBatch}, time.Second)
		if err != nil || got == nil {
			b.Fatalf("dequeue: %v, %v", got, err)
		}
		verdict(GateWait)
		synctest.Wait()
		b.done("1", first)
		verdict(GateOpen)
		b.done("2", token)
	})
}

// TestRefusedAgainAndAgain: a request whose plans are refused is decided anew at once, but
// not without end.
func TestRefusedAgainAndAgain(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.put(blockedEval("1", "a", 1))
		for range maxRefusals + 1 {
			b.Answered(b.lease("1"), true, false)
		}
		b.lease("")
		time.Sleep(b.opts.FirstDelay)
		b.tried("1")
		b.lease("")
	})
}

// TestReadyFallsToNothing: what is counted by type is counted when there is none as well.
func TestReadyFallsToNothing(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		b.done("1", b.next("1"))
		if n, counted := b.Stats().ReadyBy[structs.JobTypeService]; n != 0 || !counted {
			b.Fatalf("%d ready, counted: %v", n, counted)
		}
	})
}

// jobInPool is jobOfPriority in a pool of its own.
func (b *bed) jobInPool(id, pool string, priority int) {
	b.Helper()
	b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
		ID: id, Namespace: "default", Type: structs.JobTypeService, Priority: priority, NodePool: pool,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
	}})
}

// deliveries counts how often an evaluation is given out in a time, where its plan would
// overtake others each time.
func (b *bed) deliveries(id string, during time.Duration) (n int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), during)
	defer cancel()
	for {
		e, token, _, err := b.dequeued(ctx, service, 0)
		if err != nil {
			return n
		}
		if e.ID != id {
			b.Fatalf("got %s, want %s", e.ID, id)
		}
		n++
		time.Sleep(500 * time.Millisecond) // its plan is parked for so long
		b.SendBack(id, token)
	}
}

// TestSentBackWaitsForItsGate: what would have overtaken others is given out once, and again
// when nothing goes before it any more: at once then, and not before, however long that takes.
func TestSentBackWaitsForItsGate(t *testing.T) {
	f := func(name string, leased func(b *bed) (release func())) {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bed) {
				b.register(node("s", "small"))
				b.jobOfPriority("high", structs.JobTypeService, 90)
				b.jobOfPriority("low", structs.JobTypeService, 10)
				release := leased(b)
				b.put(eval("low", "low", 10))
				if n := b.deliveries("low", 4*time.Second); n > 1 {
					b.Fatalf("given out %d times while something goes before it", n)
				}
				if s := b.Stats(); s.Waiting != 1 {
					b.Fatalf("stats: %+v", s)
				}
				start := time.Now()
				got := make(chan *structs.Evaluation)
				go func() {
					e, token, _, _ := b.dequeued(b.Context(), service, time.Minute)
					if e != nil {
						b.evals(b, with(e, structs.EvalStatusComplete))
						if err := b.Ack(e.ID, token); err != nil {
							b.Error(err)
						}
					}
					got <- e
				}()
				synctest.Wait()
				release()
				if e := <-got; e == nil || e.ID != "low" || time.Since(start) != 0 {
					b.Fatalf("got %v after %s", e, time.Since(start))
				}
				synctest.Wait()
				if s := b.Stats(); s.Ready+s.Unacked+s.Waiting+s.Pending != 0 {
					b.Fatalf("left over: %+v", s)
				}
			})
		})
	}
	f("an ask that must be tried", func(b *bed) func() {
		b.put(blockedEval("high", "high", 1))
		lease := b.lease("high")
		return func() { b.Tried(lease, b.store.LatestIndex(), lease.Eval) }
	})
	f("the first of several that must be tried", func(b *bed) func() {
		b.jobOfPriority("lowest", structs.JobTypeService, 1)
		b.put(blockedEval("high", "high", 1), blockedEval("lowest", "lowest", 1))
		return func() { b.put(with(b.store.Snapshot().Eval(nil, "high"), structs.EvalStatusCancelled)) }
	})
	f("an evaluation that a worker has", func(b *bed) func() {
		b.put(eval("high", "high", 90))
		token := b.next("high")
		return func() { b.done("high", token) }
	})
	f("its own rank", func(b *bed) func() {
		b.put(blockedEval("high", "high", 1))
		return func() { b.jobOfPriority("low", structs.JobTypeService, 95) }
	})
}

// TestSentBackAndGone: what waits for its gate is dropped like all else: it is cancelled, or
// another of its job takes its place.
func TestSentBackAndGone(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.jobOfPriority("high", structs.JobTypeService, 90)
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.put(blockedEval("high", "high", 1), eval("1", "low", 10))
		if n := b.deliveries("1", 2*time.Second); n != 1 {
			b.Fatalf("given out %d times", n)
		}
		b.put(eval("2", "low", 10))
		b.put(with(b.store.Snapshot().Eval(nil, "1"), structs.EvalStatusCancelled))
		time.Sleep(time.Second)
		if n := b.deliveries("2", 2*time.Second); n != 1 {
			b.Fatalf("given out %d times", n)
		}
		b.stop() // and a new leader finds it
		b.start()
		b.tried("high")
		b.done("2", b.next("2"))
		if s := b.Stats(); s.Ready+s.Unacked+s.Waiting+s.Pending != 0 || len(b.gates.pools) != 1 {
			b.Fatalf("left over: %+v in %d pools", s, len(b.gates.pools))
		}
	})
}

// TestReservedForTooLong: what waits behind an evaluation that its worker does not end goes on
// when that has had its time.
func TestReservedForTooLong(t *testing.T) {
	run(t, func(b *bed) {
		b.jobOfPriority("high", structs.JobTypeService, 90)
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.put(eval("high", "high", 90))
		token := b.next("high")
		b.put(eval("low", "low", 10))
		if n := b.deliveries("low", 2*time.Second); n != 1 {
			b.Fatalf("given out %d times", n)
		}
		time.Sleep(b.opts.LeaseLimit - 2*time.Second)
		b.next("")
		time.Sleep(time.Second)
		b.done("low", b.next("low"))
		b.done("high", token)
	})
}

// TestLetOnWhileLooking: to look for the next evaluation may find that what went before others has had its time, and let them
// on: the first of all that may be taken then is taken, at once.
func TestLetOnWhileLooking(t *testing.T) {
	for range 20 { // Go walks through a map otherwise each time
		run(t, func(b *bed) {
			batch := []string{structs.JobTypeBatch}
			b.jobOfPriority("high", structs.JobTypeService, 90)
			b.jobOfPriority("low", structs.JobTypeService, 10)
			b.jobOfPriority("batch", structs.JobTypeBatch, 20)
			take := func(want string, kinds []string) (token string) {
				b.Helper()
				e, token, _, err := b.dequeued(b.Context(), kinds, time.Nanosecond)
				if err != nil || e == nil || e.ID != want {
					b.Fatalf("got %v, %v; want %s", e, err, want)
				}
				return token
			}
			b.put(eval("1", "high", 90))
			high := take("1", service)
			b.put(eval("low", "low", 10))
			b.SendBack("low", take("low", service))
			b.done("1", high)
			synctest.Wait() // low is let on
			b.put(eval("2", "high", 90))
			take("2", service)
			later := eval("batch", "batch", 20)
			later.Type = structs.JobTypeBatch
			b.put(later)
			b.SendBack("batch", take("batch", batch))
			time.Sleep(b.opts.LeaseLimit + time.Millisecond)
			if got, _, _, err := b.take([]string{structs.JobTypeService, structs.JobTypeBatch}); err != nil || got.Eval == nil || got.Eval.ID != "batch" {
				b.Fatalf("got %v, %v", got, err)
			}
		})
	}
}

// TestTryAgainInItsPool: a request whose plan was refused has those tried again that may want
// the same nodes, and no others.
func TestTryAgainInItsPool(t *testing.T) {
	f := func(pool string, failed bool, want ...string) {
		t.Helper()
		run(t, func(b *bed) {
			b.register(node("s", "small"))
			names := []string{"one", "two", structs.NodePoolAll}
			for i, p := range names {
				b.jobInPool(p, p, 50-i)
				b.put(blockedEval(p, p, 1))
			}
			b.jobInPool("higher", pool, 90)
			b.put(blockedEval("higher", "higher", 1))
			lease := b.lease("higher")
			for _, p := range names {
				b.tried(p)
			}
			b.Answered(lease, !failed, failed)
			if !failed {
				b.Tried(b.lease("higher"), b.store.LatestIndex(), b.store.Snapshot().Eval(nil, "higher"))
			}
			for _, p := range want {
				b.tried(p)
			}
			b.lease("")
		})
	}
	for _, failed := range []bool{false, true} {
		f("one", failed, "one", structs.NodePoolAll)
		f("two", failed, "two", structs.NodePoolAll)
		f("three", failed, structs.NodePoolAll)
		f(structs.NodePoolAll, failed, "one", "two", structs.NodePoolAll)
	}
}

// TestMoreIsWantedMeanwhile: a job that comes to want more, after the plan of its first
// evaluation was judged and before its worker has said so, is not overtaken.
func TestMoreIsWantedMeanwhile(t *testing.T) {
	run(t, func(b *bed) {
		b.jobOfPriority("high", structs.JobTypeService, 90)
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.put(eval("1", "high", 90), eval("low", "low", 10))
		first, low := b.next("1"), b.next("low")
		verdict := func(want Verdict) {
			b.Helper()
			if a := b.Admit("low", b.store.LatestIndex(), false); a.Verdict != want {
				b.Fatalf("verdict %d, want %d", a.Verdict, want)
			}
		}
		verdict(GateWait)
		b.Judged("1", true, nil, nil)
		verdict(GateOpen)
		b.put(eval("2", "high", 90))
		verdict(GateWait)
		b.done("1", first)
		verdict(GateBusy)
		second := b.next("2")
		b.Judged("2", true, nil, nil)
		verdict(GateOpen)
		b.done("2", second)
		b.done("low", low)
		if len(b.gates.pools) != 0 {
			b.Fatalf("%d pools are left", len(b.gates.pools))
		}
	})
}

// TestJudgedSharesDecide: a plan that was judged raises the share of its namespace, before it is committed, so that the next plan of that
// namespace waits for another one's; what the namespace's share was when all were leased does not count.
func TestJudgedSharesDecide(t *testing.T) {
	run(t, func(b *bed) {
		of := func(namespace, id string, priority int) *structs.Evaluation {
			b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
				ID: id, Namespace: namespace, Type: structs.JobTypeService, Priority: priority, NodePool: structs.NodePoolDefault,
				TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
			}})
			e := eval(id, id, priority)
			e.Namespace = namespace
			return e
		}
		for _, name := range []string{"a", "b"} {
			b.Put(b, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
		}
		b.put(of("a", "a1", 55), of("a", "a2", 54), of("b", "b1", 53))
		for _, id := range []string{"a1", "a2", "b1"} {
			b.next(id)
		}
		verdicts := func(what string, want ...Verdict) {
			b.Helper()
			for i, id := range []string{"a2", "b1"}[:len(want)] {
				if a := b.Admit(id, b.store.LatestIndex(), false); a.Verdict != want[i] {
					b.Errorf("%s: %s has verdict %d, want %d", what, id, a.Verdict, want[i])
				}
			}
		}
		verdicts("nothing is judged", GateWait, GateWait)
		b.Judged("a1", true, nil, sharesNow{"a": 10})
		verdicts("a has more than b", GateWait, GateOpen)
		b.Judged("b1", true, nil, sharesNow{"a": 10, "b": 20})
		verdicts("b has more than a", GateOpen)
	})
}

// TestLeftWithoutRoom: what was judged and found no room goes before the plans of the same round that rank lower, once room came free in it: by the shares
// that there are now, whatever they were when it was judged, and at its new rank if it has got one. The next round shows it as blocked.
func TestLeftWithoutRoom(t *testing.T) {
	run(t, func(b *bed) {
		b.jobOfPriority("high", structs.JobTypeService, 90)
		b.jobOfPriority("low", structs.JobTypeService, 80)
		b.put(eval("high", "high", 90), eval("low", "low", 80))
		high, low := b.next("high"), b.next("low")
		round := b.store.LatestIndex()
		verdict := func(what string, base uint64, freed bool, want Verdict) {
			b.Helper()
			if a := b.Admit("low", base, freed); a.Verdict != want {
				b.Errorf("%s: verdict %d, want %d", what, a.Verdict, want)
			}
		}
		verdict("high is with a worker", round, false, GateWait)
		b.Judged("high", true, blockedEval("left", "high", round), sharesNow{"default": 60})
		verdict("nothing came free", round, false, GateOpen)
		verdict("room came free", round, true, GateRefresh)
		b.Judged("low", true, blockedEval("other", "low", round), sharesNow{"default": 20})
		verdict("the share fell", round, true, GateRefresh)
		b.jobOfPriority("high", structs.JobTypeService, 70)
		synctest.Wait()
		verdict("it ranks lower now", round, true, GateOpen)
		b.jobOfPriority("high", structs.JobTypeService, 90)
		synctest.Wait()
		verdict("it ranks higher again", round, true, GateRefresh)
		verdict("another round", round+1, true, GateOpen)
		b.Judged("high", true, blockedEval("left", "high", round), nil)
		verdict("judged again", round+1, true, GateRefresh)
		b.Judged("high", true, nil, nil)
		verdict("all of it has room", round+1, true, GateOpen)
		b.Judged("high", true, blockedEval("left", "high", round), nil)
		b.done("high", high)
		verdict("it has ended", round+1, true, GateOpen)
		b.done("low", low)
		if len(b.gates.pools) != 0 {
			b.Errorf("%d pools are left", len(b.gates.pools))
		}
	})
}

// TestBetterRankComesLate: a request of a better rank that comes while the plan of another is
// on its way is not tried before that plan has been judged: on the pass's World the other has
// its room already.
func TestBetterRankComesLate(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.put(blockedEval("low", "low", 1))
		low := b.lease("low")
		b.jobOfPriority("high", structs.JobTypeService, 90)
		b.put(blockedEval("high", "high", 1))
		synctest.Wait()
		if lease, again := b.Next(b.store.LatestIndex(), nil); lease != nil || !again {
			b.Fatalf("leased %+v, again: %v; want none, and again", lease, again)
		}
		if a := b.Admit("low", b.store.LatestIndex(), false); a.Verdict != GateShut {
			b.Fatalf("verdict %d, want %d: it would overtake", a.Verdict, GateShut)
		}
		b.Answered(low, true, false)
		b.tried("high")
		b.tried("low")
		b.lease("")
	})
}

// TestAnsweredBeforeItIsKnown: what a plan leaves comes into the queue by the feed, which may
// be later than the word of who decided. Until then the evaluation goes before others as it
// did; then what it left does.
func TestAnsweredBeforeItIsKnown(t *testing.T) {
	run(t, func(b *bed) {
		b.jobOfPriority("high", structs.JobTypeService, 90)
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.register(node("s", "small"))
		b.put(eval("1", "high", 90), eval("2", "low", 10))
		b.next("1")
		low := b.next("2")
		b.mu.Lock() // the feed cannot report it
		b.evals(b, with(eval("1", "high", 90), structs.EvalStatusComplete), blockedEval("3", "high", 1))
		b.handleReply(b.known["1"], replyAck)
		ahead := b.gates.ahead(b.gates.pool(structs.NodePoolDefault), b.known["2"])
		b.mu.Unlock()
		if ahead == nil {
			b.Fatal("nothing goes before, though what was decided is not known yet to wait")
		}
		synctest.Wait()
		if _, leased := b.Outstanding("1"); leased {
			b.Fatal("the feed has told of it, and it is still held")
		}
		b.lease("3") // what it left
		b.done("2", low)
	})
}

// TestSharesMoveWhoIsFirst: shares that a judged plan raises make another blocked request the first one, and when that leaves, who was first before is again:
// what was sent back, and goes between the two, is let on then.
func TestSharesMoveWhoIsFirst(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		of := func(namespace, id string, priority int) {
			b.Put(b, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: namespace}})
			b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
				ID: id, Namespace: namespace, Type: structs.JobTypeService, Priority: priority, NodePool: structs.NodePoolDefault,
				TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
			}})
		}
		put := func(e *structs.Evaluation, namespace string) {
			e.Namespace = namespace
			b.put(e)
		}
		of("a", "a0", 55)
		of("a", "a1", 55)
		of("b", "b1", 54)
		of("c", "c1", 53)
		put(eval("a0", "a0", 55), "a")
		put(eval("c1", "c1", 53), "c")
		b.next("a0")
		token := b.next("c1")
		put(blockedEval("a1", "a1", 0), "a")
		put(blockedEval("b1", "b1", 0), "b")
		b.SendBack("c1", token)
		b.Judged("a0", true, nil, sharesNow{"a": 10})
		b.next("") // b1 goes before it
		put(with(b.store.Snapshot().Eval(nil, "b1"), structs.EvalStatusCancelled), "b")
		b.next("c1")
	})
}

// TestRankOfWhatComesAfterAnEnd: the plan of a request is judged and committed, and before the pass has reported that, another evaluation of its job comes. What
// has ended counts in the gate for that one, at the rank that the job has now, and not at that of the request that has its room.
func TestRankOfWhatComesAfterAnEnd(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.jobOfPriority("waits", structs.JobTypeService, 50)
		b.jobOfPriority("other", structs.JobTypeService, 53)
		now := time.Now().UnixNano()
		other := eval("other", "other", 53)
		other.CreateTime = now
		b.put(other)
		b.next("other")
		b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "0", Place: []*structs.PlacementBatch{{ // one runs already, so the job's own row stays as it is
			Namespace: "default", JobID: "waits", Group: "g", Seed: "0", EvalID: "0", Nodes: []structs.PlacedNode{{ID: "s", Name: "s"}}, Instances: []structs.Instance{{}},
		}}}}})
		began := time.Now().Add(-1000 * time.Hour).UnixNano()
		request := func(missing int, e *structs.Evaluation) {
			b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: e.ID, Evals: []*structs.Evaluation{e}, Requests: []*structs.RequestUpdate{
				{Namespace: "default", JobID: "waits", Group: "g", Missing: missing, Since: began, EvalID: e.ID},
			}}}})
			synctest.Wait()
		}
		verdict := func(what string, want Verdict) {
			b.Helper()
			if a := b.Admit("other", b.store.LatestIndex(), false); a.Verdict != want {
				b.Errorf("%s: verdict %d, want %d", what, a.Verdict, want)
			}
		}
		first := blockedEval("1", "waits", 0)
		first.CreateTime = now
		request(1, first)
		b.lease("1")
		verdict("it has waited for long", GateWait)
		b.Judged("1", true, nil, nil)
		request(0, with(b.store.Snapshot().Eval(nil, "1"), structs.EvalStatusComplete))
		verdict("it has its room", GateOpen)
		second := eval("2", "waits", 50)
		second.CreateTime = now
		b.put(second)
		verdict("another comes, which has not waited", GateOpen)
	})
}

// TestMovedWhileItIsTried: a request that is alone in its pool, and whose rank changes while its plan is on its way, goes before what comes behind it then.
func TestMovedWhileItIsTried(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.put(b.submitted(b, "default", "first", "ada", 50, 100))
		synctest.Wait()
		lease, _ := b.Next(b.store.LatestIndex(), nil)
		b.Planned(lease, b.store.LatestIndex(), nil, sharesNow{})
		b.submitted(b, "default", "first", "ada", 45, 100)
		before := b.submitted(b, "default", "before", "ada", 48, 100)
		b.put(before)
		b.put(b.submitted(b, "default", "behind", "ada", 40, 100))
		synctest.Wait()
		if lease, again := b.Next(b.store.LatestIndex(), nil); lease != nil || !again {
			b.Fatalf("%+v is leased (again: %v) that goes before one whose plan is on its way", lease, again)
		}
		b.put(with(before, structs.EvalStatusComplete))
		synctest.Wait()
		if lease, _ := b.Next(b.store.LatestIndex(), nil); lease == nil || lease.Eval.ID != "behind" {
			b.Fatalf("%+v is leased, not what is behind", lease)
		}
	})
}
