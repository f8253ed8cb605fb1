package nomadish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// far is another server as the leader sees it: calls of its workers over a session of its own.
type far struct {
	t    *testing.T
	addr string
	pool *wire.Pool
}

func newFar(t *testing.T, s *Server) *far {
	f := &far{t, s.RPCAddr(), wire.NewPool(wire.Config{}, nil)}
	t.Cleanup(f.pool.Close)
	return f
}

// dequeue returns what there is to be decided within a time; nil: nothing.
func (f *far) dequeue(wait time.Duration) *structs.EvalDequeueReply {
	f.t.Helper()
	reply := &structs.EvalDequeueReply{}
	args := &structs.EvalDequeueRequest{Schedulers: []string{structs.JobTypeBatch, structs.JobTypeService}, Timeout: wait}
	if err := f.pool.Call(f.t.Context(), f.addr, wire.MethodEvalDequeue, args, reply); err != nil {
		f.t.Fatal(err)
	}
	return reply
}

// TestEvaluationOfALostServer: what a server's workers had when its connection ended is given out again at once, not after the
// time that a worker has.
func TestEvaluationOfALostServer(t *testing.T) {
	s := startWith(t, "", func(c *Config) { c.NumSchedulers = 0 })
	for _, id := range []string{"a", "b", "c"} {
		if _, err := register(t.Context(), s, batchJob(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
	lost, other := newFar(t, s), newFar(t, s)
	had := map[string]bool{}
	for range 2 {
		got := lost.dequeue(5 * time.Second)
		if got.Eval == nil {
			t.Fatal("nothing to take")
		}
		had[got.Eval.ID] = true
	}
	kept := other.dequeue(5 * time.Second)
	if kept.Eval == nil {
		t.Fatal("nothing to take")
	}
	lost.pool.Close() // as by kill -9
	for range 2 {
		again := other.dequeue(10 * time.Second)
		if again.Eval == nil || !had[again.Eval.ID] {
			t.Fatalf("given out after the loss of who had %v: %+v", had, again.Eval)
		}
		delete(had, again.Eval.ID)
	}
	if token, ok := s.leader.broker.Outstanding(kept.Eval.ID); !ok || token != kept.Token {
		t.Error("what another has was taken from it")
	}
}

// TestDequeueOfALostServer: a call that waits for work takes none when who made it is gone.
func TestDequeueOfALostServer(t *testing.T) {
	s := startWith(t, "", func(c *Config) { c.NumSchedulers = 0 })
	for range 20 {
		lost := newFar(t, s)
		session, err := lost.pool.Session(t.Context(), lost.addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- session.Call(ctx, wire.MethodEvalDequeue, &structs.EvalDequeueRequest{Schedulers: []string{structs.JobTypeBatch}, Timeout: time.Minute}, &structs.EvalDequeueReply{})
		}()
		within(t, time.Minute, "the call waiting for work", func(context.Context) error {
			select {
			case err := <-done:
				t.Fatalf("the call ended: %v", err)
			default:
			}
			if s.endpoints.evals.WorkersWait() == 0 {
				return errors.New("it does not wait yet")
			}
			return nil
		})
		lost.pool.Close()
		if err := <-done; err == nil {
			t.Error("it was given something")
		}
		cancel()
		within(t, time.Minute, "the end of the call there", func(context.Context) error {
			if s.endpoints.evals.WorkersWait() > 0 {
				return errors.New("it waits still")
			}
			return nil
		})
	}
	if _, err := register(t.Context(), s, batchJob("a", 1)); err != nil {
		t.Fatal(err)
	}
	if got := newFar(t, s).dequeue(10 * time.Second); got.Eval == nil {
		t.Fatal("nobody gets the evaluation")
	}
}

// TestEvaluationOfAHungServer: what the workers of a server have, of which nothing is heard any more, is given out again soon,
// though its connection stands; and what comes meanwhile is not given to it.
func TestEvaluationOfAHungServer(t *testing.T) {
	t.Parallel()
	s := startBeside(t, "", func(c *Config) { c.NumSchedulers = 0 })
	hung, other := newFar(t, s), newFar(t, s)
	line := newRelay(t, s.RPCAddr())
	hung.addr = line.addr
	if _, err := register(t.Context(), s, batchJob("a", 1)); err != nil {
		t.Fatal(err)
	}
	got := hung.dequeue(5 * time.Second)
	if got.Eval == nil {
		t.Fatal("nothing to take")
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	began := time.Now()
	again := other.dequeue(20 * time.Second) // yamux itself would take 15 to 25 s, and the broker 60
	if again.Eval == nil || again.Eval.ID != got.Eval.ID {
		t.Fatalf("given out after the loss of who had %s: %+v", got.Eval.ID, again.Eval)
	}
	t.Logf("given out again after %s", time.Since(began))
}

// TestSetSchedulers: workers come and go while the server runs.
func TestSetSchedulers(t *testing.T) {
	s := startWith(t, "", func(c *Config) { c.NumSchedulers = 0 })
	decided := func(job string) error {
		for _, e := range s.store.Snapshot().EvalsByJob(nil, structs.DefaultNamespace, job) {
			if e.Status == structs.EvalStatusPending {
				return errors.New("nobody has decided it")
			}
		}
		return nil
	}
	put := func(id string) {
		t.Helper()
		if _, err := register(t.Context(), s, batchJob(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
	soon := func(what, job string) {
		t.Helper()
		within(t, time.Minute, what, func(context.Context) error { return decided(job) })
	}
	// waits reports that the leader has nobody who takes what is there.
	waits := func(job string) {
		t.Helper()
		f := newFar(t, s)
		got := f.dequeue(10 * time.Second)
		if got.Eval == nil || got.Eval.JobID != job {
			t.Fatalf("of job %s nothing is left to be taken: %+v", job, got)
		}
		if err := f.pool.Call(t.Context(), f.addr, wire.MethodEvalNack, &structs.EvalAckRequest{EvalID: got.Eval.ID, Token: got.Token}, &structs.WriteReply{}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	waits("a")
	if err := s.SetSchedulers(2, []string{structs.JobTypeBatch}); err != nil {
		t.Fatal(err)
	}
	soon("the first job, once there are workers", "a")
	if err := s.SetSchedulers(2, []string{structs.JobTypeService}); err != nil {
		t.Fatal(err)
	}
	put("b")
	waits("b")
	if err := s.SetSchedulers(1, s.cfg.EnabledSchedulers); err != nil {
		t.Fatal(err)
	}
	soon("the second job, once its type is taken", "b")
	for _, none := range []func() error{
		func() error { return s.SetSchedulers(0, s.cfg.EnabledSchedulers) }, func() error { return s.SetSchedulers(3, nil) },
	} {
		if err := none(); err != nil {
			t.Fatal(err)
		}
	}
	put("c")
	waits("c")
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSchedulers(1, s.cfg.EnabledSchedulers); structs.CodeOf(err) != structs.CodeUnsupported {
		t.Errorf("after the end: %v", err)
	}
}
