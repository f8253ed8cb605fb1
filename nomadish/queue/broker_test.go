package queue

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// bed is a running broker in a bubble of virtual time.
type bed struct {
	*testing.T
	*log
	*Broker
	stop func()
}

// run has f done with a broker that runs on an empty state.
func run(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(state.Options{})
		b := &bed{T: t, log: l, Broker: New(Options{NewID: testcluster.IDs("id-%d")}, l, l.store.LatestIndex)}
		b.start()
		defer func() { b.stop() }()
		synctest.Wait()
		f(b)
	})
}

func (b *bed) start() {
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.Broker.Run(ctx, b.store) })
	b.stop = func() { cancel(); wg.Wait() }
}

// put stores evaluations and lets the broker see them.
func (b *bed) put(evals ...*structs.Evaluation) {
	b.Helper()
	b.evals(b, evals...)
	synctest.Wait()
}

// next takes an evaluation that must be there at once; "" : none may be.
func (b *bed) next(want string) (token string) {
	b.Helper()
	synctest.Wait()
	e, token, index, err := b.dequeued(b.Context(), service, time.Nanosecond)
	if err != nil {
		b.Fatalf("dequeue: %v", err)
	}
	got := ""
	if e != nil {
		got = e.ID
		if index < e.ModifyIndex {
			b.Fatalf("dequeue %s: wait index %d, modified at %d", e.ID, index, e.ModifyIndex)
		}
	}
	if got != want {
		b.Fatalf("dequeue: got %q, want %q", got, want)
	}
	return token
}

// done ends an evaluation as a worker does: commit, then acknowledge.
func (b *bed) done(id, token string) {
	b.Helper()
	b.evals(b, with(b.store.Snapshot().Eval(nil, id), structs.EvalStatusComplete))
	if err := b.Ack(id, token); err != nil {
		b.Fatalf("ack %s: %v", id, err)
	}
	synctest.Wait()
}

func (b *bed) want(id, status string) {
	b.Helper()
	synctest.Wait()
	if got := b.status(id); got != status {
		b.Fatalf("evaluation %s: %s, want %s", id, got, status)
	}
}

func TestOrder(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("low", "a", 20))
		b.put(eval("first", "b", 50), eval("second", "c", 50))
		b.put(eval("high", "d", 80))
		other := eval("other", "e", 100)
		other.Type = structs.JobTypeBatch
		b.put(other)
		for _, id := range []string{"high", "first", "second", "low"} {
			b.done(id, b.next(id))
		}
		b.next("")
	})
}

func TestDequeueOfOneWhoIsGone(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		gone, cancel := context.WithCancel(b.Context())
		cancel()
		if e, _, _, err := b.dequeued(gone, service, time.Hour); e != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("took %v, %v", e, err)
		}
		b.next("1")
	})
}

func TestDequeueWakesAtOnce(t *testing.T) {
	run(t, func(b *bed) {
		start := time.Now()
		got := make(chan string)
		go func() {
			e, _, _, err := b.dequeued(b.Context(), service, time.Hour)
			if err != nil || e == nil {
				got <- "nothing"
				return
			}
			got <- e.ID
		}()
		time.Sleep(time.Minute)
		b.evals(b, eval("e", "a", 50))
		if id := <-got; id != "e" || time.Since(start) != time.Minute {
			b.Fatalf("got %s after %s, want e without delay", id, time.Since(start))
		}
	})
}

func TestOneOfAJobAtATime(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		token := b.next("1")
		b.put(eval("2", "a", 50), eval("3", "a", 50))
		b.put(eval("4", "a", 50), eval("x", "b", 10))
		b.done("x", b.next("x"))
		b.next("") // a's are serial
		b.want("2", structs.EvalStatusCancelled)
		b.want("3", structs.EvalStatusCancelled)
		b.want("4", structs.EvalStatusPending)
		b.done("1", token)
		b.done("4", b.next("4"))
		b.next("")
	})
}

func TestNackAndDeliveryLimit(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		for _, wait := range []time.Duration{time.Second, 20 * time.Second} {
			if err := b.Nack("1", b.next("1")); err != nil {
				b.Fatal(err)
			}
			time.Sleep(wait - time.Millisecond)
			b.next("")
			time.Sleep(time.Millisecond)
		}
		if err := b.Nack("1", b.next("1")); err != nil {
			b.Fatal(err)
		}
		b.want("1", structs.EvalStatusFailed)
		next := b.store.Snapshot().Eval(nil, "1").NextEval
		follow := b.store.Snapshot().Eval(nil, next)
		if follow == nil || follow.TriggeredBy != structs.EvalTriggerFailedFollowUp || follow.PreviousEval != "1" {
			b.Fatalf("follow-up: %+v", follow)
		}
		b.next("")
		time.Sleep(time.Minute)
		b.done(next, b.next(next))
	})
}

func TestNackTimeout(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		old := b.next("1")
		time.Sleep(40 * time.Second)
		if err := b.Renew("1", old); err != nil {
			b.Fatal(err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		if _, ok := b.Outstanding("1"); !ok {
			b.Fatal("taken away before its time")
		}
		time.Sleep(time.Second + time.Millisecond)
		token := b.next("1")
		for _, err := range []error{b.Ack("1", old), b.Nack("1", old), b.Renew("1", old), b.Ack("nobody", token), b.Ack("1", "")} {
			if !errors.Is(err, structs.ErrStale) {
				b.Fatalf("stale token: %v", err)
			}
		}
		if _, ok := b.Retain("1", old, ""); ok {
			b.Fatal("retained with a stale token")
		}
		b.done("1", token)
	})
}

// TestPlanComesTwice: a worker decides anew what of its plan was refused. The same plan once more would place that a
// second time, now that there is room.
func TestPlanComesTwice(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		token := b.next("1")
		pin := func(token, seed string, want bool) {
			b.Helper()
			unretain, ok := b.Retain("1", token, seed)
			if ok != want {
				b.Fatalf("plan %q under token %q: retained %v, want %v", seed, token, ok, want)
			}
			if ok {
				unretain()
			}
		}
		pin(token, "first", true)
		pin(token, "", true)
		pin(token, "second", true)
		pin(token, "first", false)
		pin(token, "second", false)
		pin(token, "", true) // it places nothing
		if err := b.Nack("1", token); err != nil {
			b.Fatal(err)
		}
		time.Sleep(time.Hour)
		pin(token, "third", false)
		pin(b.next("1"), "first", true) // a new deal: nothing is known of who has leased it now
		if len(b.known["1"].seeds) != 1 {
			b.Fatalf("kept of the deal before: %q", b.known["1"].seeds)
		}
	})
}

func TestPinReservationsOthersBack(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		token := b.next("1")
		b.put(eval("2", "a", 50))
		unretain, ok := b.Retain("1", token, "")
		if !ok {
			b.Fatal("not retained")
		}
		time.Sleep(time.Hour) // the worker's time is over, and Raft stands still
		b.next("")
		if got, ok := b.Outstanding("1"); !ok || got != token {
			b.Fatal("given away while its plan was being committed")
		}
		if err := b.Nack("1", token); err != nil {
			b.Fatal(err)
		}
		if _, ok := b.Retain("1", token, ""); ok {
			b.Fatal("retained after it was given back")
		}
		b.next("")
		b.evals(b, with(b.store.Snapshot().Eval(nil, "1"), structs.EvalStatusComplete))
		synctest.Wait()
		unretain()
		b.done("2", b.next("2"))
		b.next("")
	})
}

func TestDelayed(t *testing.T) {
	run(t, func(b *bed) {
		e := eval("later", "a", 50)
		e.WaitUntil = time.Now().Add(time.Hour).UTC()
		b.put(e, eval("now", "a", 50))
		b.done("now", b.next("now"))
		time.Sleep(time.Hour - time.Millisecond)
		b.next("")
		gone := eval("gone", "b", 50)
		gone.WaitUntil = time.Now().Add(time.Minute).UTC()
		b.put(gone)
		b.put(with(gone, structs.EvalStatusCancelled))
		time.Sleep(time.Millisecond)
		b.done("later", b.next("later"))
		time.Sleep(time.Hour)
		b.next("")
		if s := b.Stats(); s.Ready+s.Unacked+s.Waiting+s.Pending+s.Blocked != 0 {
			b.Fatalf("left over: %+v", s)
		}
	})
}

func TestNewerTakesOverFromResting(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		if err := b.Nack("1", b.next("1")); err != nil {
			b.Fatal(err)
		}
		b.put(eval("2", "a", 50)) // the operator mended the job: no need to wait
		b.want("1", structs.EvalStatusCancelled)
		b.done("2", b.next("2"))
		time.Sleep(time.Hour)
		b.next("")
	})
}

func TestAckWithoutEndIsRefused(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		if err := b.Ack("1", b.next("1")); !errors.Is(err, structs.ErrConflict) {
			b.Fatalf("ack of a pending evaluation: %v", err)
		}
		time.Sleep(time.Second)
		b.done("1", b.next("1"))
	})
}

func TestCancelledFromOutside(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("ready", "a", 50), eval("held", "b", 60))
		token := b.next("held")
		b.put(with(eval("ready", "a", 50), structs.EvalStatusCancelled), with(eval("held", "b", 60), structs.EvalStatusCancelled))
		b.next("")
		if err := b.Nack("held", token); err != nil { // no use in trying again
			b.Fatal(err)
		}
		time.Sleep(time.Hour)
		b.next("")
	})
}

func TestPause(t *testing.T) {
	run(t, func(b *bed) {
		config := structs.DefaultSchedulerConfiguration()
		config.PauseEvalBroker = true
		b.Put(b, &structs.SchedulerConfigEntry{Config: config})
		b.put(eval("1", "a", 50))
		b.next("")
		b.stop() // a new leader keeps to it
		b.start()
		b.next("")
		config.PauseEvalBroker = false
		b.Put(b, &structs.SchedulerConfigEntry{Config: config})
		b.done("1", b.next("1"))
	})
}

func TestNotLeading(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		token := b.next("1")
		waiting := make(chan error)
		go func() {
			_, _, _, err := b.dequeued(b.Context(), service, time.Hour)
			waiting <- err
		}()
		synctest.Wait()
		b.stop()
		if err := <-waiting; !errors.Is(err, structs.ErrNoLeader) {
			b.Fatalf("waiting for an evaluation: %v", err)
		}
		if err := b.Ack("1", token); !errors.Is(err, structs.ErrStale) {
			b.Fatalf("ack: %v", err)
		}
		b.start()
		b.done("1", b.next("1")) // nothing is lost
	})
}

// TestResyncKeepsReserved: a broker that fell behind starts again from the state, but does
// not give out again what workers have leased.
func TestResyncKeepsReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(state.Options{EventBuffer: 4})
		b := &bed{T: t, log: l, Broker: New(Options{NewID: testcluster.IDs("id-%d")}, l, l.store.LatestIndex)}
		b.start()
		defer func() { b.stop() }()
		b.put(eval("held", "a", 90), eval("over", "b", 80), eval("ready", "c", 30))
		token, over := b.next("held"), b.next("over")
		b.put(eval("behind", "a", 50))

		b.mu.Lock() // the broker is kept from reading on
		b.evals(b, with(b.store.Snapshot().Eval(nil, "over"), structs.EvalStatusComplete))
		for _, id := range []string{"p", "q", "r", "s", "t", "u"} {
			b.evals(b, eval(id, "job-"+id, 50))
		}
		b.mu.Unlock()
		synctest.Wait()

		for _, id := range []string{"p", "q", "r", "s", "t", "u", "ready"} {
			b.done(id, b.next(id))
		}
		b.next("")
		if err := b.Nack("over", over); err != nil {
			b.Fatal(err)
		}
		b.done("held", token)
		b.done("behind", b.next("behind"))
		time.Sleep(time.Hour)
		b.next("")
	})
}

func TestChoresSurviveRefusals(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50), eval("2", "a", 50))
		b.lose(true)
		b.put2(eval("3", "a", 50))
		b.next("1")
		time.Sleep(time.Minute / 2)
		b.want("2", structs.EvalStatusPending)
		b.lose(false)
		time.Sleep(time.Second)
		b.want("2", structs.EvalStatusCancelled)
	})
}

// lose has leadership be lost, or not any more: nothing can be committed.
func (b *bed) lose(lost bool) {
	b.Lock()
	defer b.Unlock()
	b.Refuse = nil
	if lost {
		b.Refuse = structs.Errorf(structs.CodeNoLeader, "leadership lost")
	}
}

// put2 stores past the log that is lost.
func (b *bed) put2(e *structs.Evaluation) {
	b.Replicate(b, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{e}})
	synctest.Wait()
}
