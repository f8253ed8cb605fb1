package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// leader is a leader whose answers a test decides.
type leader struct {
	evals   chan *structs.EvalDequeueReply
	submit  func(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error)
	mu      sync.Mutex
	replies []string // acks and nacks
	updated []*structs.Evaluation
}

func (l *leader) Dequeue(ctx context.Context, _ []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	select {
	case e := <-l.evals:
		return e, nil
	case <-time.After(timeout):
		return &structs.EvalDequeueReply{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *leader) reply(what, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies = append(l.replies, what+" "+id)
	return nil
}

func (l *leader) Ack(_ context.Context, id, _ string) error  { return l.reply("ack", id) }
func (l *leader) Nack(_ context.Context, id, _ string) error { return l.reply("nack", id) }

func (l *leader) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	return l.submit(ctx, p)
}

func (l *leader) Update(_ context.Context, _, _ string, evals []*structs.Evaluation) error {
	l.updated = append(l.updated, evals...)
	return nil
}

// bed is a running worker over a state, in a bubble of virtual time.
type bed struct {
	*testing.T
	*leader
	*testcluster.Log
	store *state.Store
	gang  bool // what is registered is a gang
	stop  func()
}

func newBed(t *testing.T) *bed {
	l := testcluster.New(10, state.Options{})
	return &bed{T: t, Log: l, store: l.Store, leader: &leader{evals: make(chan *structs.EvalDequeueReply, 100)}}
}

func run(t *testing.T, opts Options, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		opts.NewID = testcluster.IDs("id-%d")
		opts.Schedulers = []string{structs.JobTypeService}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		w := New(opts, b.leader, b.store)
		wg.Go(func() { w.Run(ctx) })
		b.stop = func() { cancel(); wg.Wait() }
		defer func() { b.stop() }()
		f(b)
	})
}

// node comes with room for n instances.
func (b *bed) node(id string, n int64) {
	b.Put(b, &structs.NodeRegisterEntry{Node: testcluster.Node(id, 100*n)})
}

// registerGang registers a job whose instances are a gang.
func (b *bed) registerGang(id string, count int) {
	b.gang = true
	b.register(id, structs.JobTypeService, count)
	b.gang = false
}

// register stores a job of so many instances and its evaluation, and hands that out.
func (b *bed) register(id, kind string, count int) {
	job := testcluster.Job(id, kind, count)
	if b.gang {
		job.TaskGroups[0].Gang = &structs.Gang{}
	}
	eval := testcluster.Eval("eval-"+id, job, structs.EvalStatusPending)
	b.Put(b, &structs.JobRegisterEntry{Job: job, Eval: eval})
	b.evals <- &structs.EvalDequeueReply{Eval: b.store.Snapshot().Eval(nil, eval.ID), Token: "token", WaitIndex: b.Index()}
}

// commit has a plan done as it is.
func (b *bed) commit(p *structs.Plan) *structs.PlanResult {
	b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{
		{EvalID: p.EvalID, Place: p.Place, Stop: p.Stop, Update: p.Update, Evals: p.Evals, Time: 1},
	}})
	return &structs.PlanResult{AllocIndex: b.Index(), Placed: len(p.Place)}
}

func (b *bed) want(replies ...string) {
	b.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if fmt.Sprint(b.replies) != fmt.Sprint(replies) {
		b.Fatalf("said %v, want %v", b.replies, replies)
	}
}

func places(p *structs.Plan) (nodes []string) {
	for _, batch := range p.Place {
		for _, in := range batch.Instances {
			nodes = append(nodes, batch.Nodes[in.Node].ID)
		}
	}
	return nodes
}

func TestDecidesAndAcknowledges(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.node("n1", 10)
		b.submit = func(_ context.Context, p *structs.Plan) (*structs.PlanResult, error) {
			if p.EvalToken != "token" || p.SnapshotIndex != b.Index() {
				b.Errorf("plan with token %q at %d, the state is at %d", p.EvalToken, p.SnapshotIndex, b.Index())
			}
			return b.commit(p), nil
		}
		b.register("a", structs.JobTypeService, 3)
		b.want("ack eval-a")
		if n := len(b.store.Snapshot().AllocsByNode(nil, "n1")); n != 3 {
			b.Fatalf("%d placed", n)
		}
		// What is over already needs no plan.
		b.evals <- &structs.EvalDequeueReply{Eval: b.store.Snapshot().Eval(nil, "eval-a"), Token: "token"}
		b.submit = nil
		b.want("ack eval-a", "ack eval-a")
	})
}

func TestWaitsForItsIndex(t *testing.T) {
	run(t, Options{Catchup: time.Minute}, func(b *bed) {
		b.node("n1", 10)
		b.submit = func(_ context.Context, p *structs.Plan) (*structs.PlanResult, error) { return b.commit(p), nil }
		eval := &structs.Evaluation{ID: "early", Namespace: "default", JobID: "a", Type: "service", Status: structs.EvalStatusPending}
		b.evals <- &structs.EvalDequeueReply{Eval: eval, Token: "token", WaitIndex: b.Index() + 1}
		b.want()
		b.Put(b, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval}})
		b.want("ack early")
		b.evals <- &structs.EvalDequeueReply{Eval: eval, Token: "token", WaitIndex: b.Index() + 1}
		time.Sleep(2 * time.Minute) // this server does not catch up
		b.want("ack early", "nack early")
	})
}

func TestRefused(t *testing.T) {
	f := func(name, kind string, progress int, plans int, gaveUp bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			run(t, Options{Retry: 7 * time.Second}, func(b *bed) {
				b.node("n1", 10)
				n := 0
				b.submit = func(_ context.Context, p *structs.Plan) (*structs.PlanResult, error) {
					n++
					if n > 1 && p.SnapshotIndex < b.Index() {
						b.Errorf("decided again at %d, want at least %d", p.SnapshotIndex, b.Index())
					}
					if !gaveUp && n == plans {
						return b.commit(p), nil
					}
					b.Put(b, &structs.PlanCommit{}) // others were quicker
					placed := 0
					if n <= progress {
						placed = 1
					}
					return &structs.PlanResult{RefreshIndex: b.Index(), Refused: 1, Placed: placed}, nil
				}
				b.register("a", kind, 1)
				b.want("ack eval-a")
				if n != plans {
					b.Fatalf("%d plans, want %d", n, plans)
				}
				if !gaveUp {
					if len(b.updated) != 0 {
						b.Fatalf("updated: %+v", b.updated)
					}
					return
				}
				if len(b.updated) != 2 {
					b.Fatalf("updated: %+v", b.updated)
				}
				done, next := b.updated[0], b.updated[1]
				if done.ID != "eval-a" || done.Status != structs.EvalStatusFailed || done.NextEval != next.ID {
					b.Fatalf("ended: %+v", done)
				}
				if next.PreviousEval != done.ID || next.TriggeredBy != structs.EvalTriggerMaxPlans || next.JobID != "a" || next.Type != kind ||
					time.Until(next.WaitUntil) != 7*time.Second || next.Status != structs.EvalStatusPending {
					b.Fatalf("follows: %+v", next)
				}
			})
		})
	}
	f("once", structs.JobTypeService, 0, 2, false)
	f("service at the limit", structs.JobTypeService, 0, 5, false)
	f("service gives up", structs.JobTypeService, 0, 5, true)
	f("batch gives up", structs.JobTypeBatch, 0, 2, true)
	f("progress counts", structs.JobTypeService, 3, 8, true)
	f("not for ever", structs.JobTypeService, 1000, rounds+1, true)
}

func TestFailures(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.node("n1", 10)
		for i, err := range []error{
			structs.Errorf(structs.CodeInternal, "disk full"), structs.Errorf(structs.CodeNoLeader, "no leader"), structs.ErrStale,
		} {
			b.submit = func(context.Context, *structs.Plan) (*structs.PlanResult, error) { return nil, err }
			b.register(fmt.Sprint(i), structs.JobTypeService, 1)
			synctest.Wait()
		}
		b.submit = func(context.Context, *structs.Plan) (*structs.PlanResult, error) { return nil, nil }
		b.register("nil", structs.JobTypeService, 1)
		b.want("nack eval-0", "nack eval-1", "nack eval-2", "nack eval-nil")
	})
}

func TestGivesBackAtTheEnd(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.node("n1", 10)
		b.submit = func(ctx context.Context, _ *structs.Plan) (*structs.PlanResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		b.register("a", structs.JobTypeService, 1)
		synctest.Wait()
		b.stop()
		b.want("nack eval-a")
	})
}

// TestDecidesWhilePlansAreInFlight: a worker does not wait for its commits, up to a limit, and
// assumes what they place; but what finds no room beside that is decided on what is
// (the applier judges it; this test's does not).
func TestDecidesWhilePlansAreInFlight(t *testing.T) {
	run(t, Options{InFlight: 4}, func(b *bed) {
		for i := range 3 {
			b.node(fmt.Sprint("n", i), 1)
		}
		release := make(chan struct{})
		var mu sync.Mutex
		taken := map[string]int{}
		plans := 0
		b.submit = func(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
			mu.Lock()
			for _, n := range places(p) {
				taken[n]++
			}
			plans++
			mu.Unlock()
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			return b.commit(p), nil
		}
		for i := range 6 {
			b.register(fmt.Sprint(i), structs.JobTypeService, 1)
		}
		synctest.Wait()
		if plans != 4 {
			b.Fatalf("%d plans are in flight, want 4", plans)
		}
		for _, n := range []string{"n0", "n1", "n2"} {
			if taken[n] == 0 {
				b.Fatalf("nobody took %s: %v", n, taken)
			}
		}
		if total := taken["n0"] + taken["n1"] + taken["n2"]; total != 4 {
			b.Fatalf("the fourth said that there is no room, but nothing is placed yet: %v", taken)
		}
		close(release)
		synctest.Wait()
		if plans != 6 || len(b.replies) != 6 {
			b.Fatalf("%d plans, said %v", plans, b.replies)
		}
	})
}

// TestRefusedGangGivesBackWhatWasForeseen: while a gang's plan is in flight, others keep clear
// of all its places; when it was refused, all of them are free again, and the gang is
// decided anew as a whole on what is.
func TestRefusedGangGivesBackWhatWasForeseen(t *testing.T) {
	run(t, Options{InFlight: 4}, func(b *bed) {
		for i := range 4 {
			b.node(fmt.Sprint("n", i), 1)
		}
		refuse := make(chan struct{})
		var mu sync.Mutex
		plans := map[string][]*structs.Plan{}
		b.submit = func(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
			mu.Lock()
			plans[p.JobID] = append(plans[p.JobID], p)
			first := p.JobID == "gang" && len(plans["gang"]) == 1
			mu.Unlock()
			if first {
				select {
				case <-refuse:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				b.Put(b, &structs.PlanCommit{})
				return &structs.PlanResult{RefreshIndex: b.Index(), Refused: 3}, nil
			}
			mu.Lock()
			defer mu.Unlock()
			return b.commit(p), nil
		}
		b.registerGang("gang", 3)
		synctest.Wait()
		b.register("beside", structs.JobTypeService, 1)
		b.want("ack eval-beside")
		inFlight := plans["gang"][0]
		if at := places(plans["beside"][0]); !inFlight.AllAtOnce || len(places(inFlight)) != 3 || slices.Contains(places(inFlight), at[0]) {
			b.Fatalf("the gang goes to %v (at once: %v), the other went to %v", places(inFlight), inFlight.AllAtOnce, at)
		}
		close(refuse)
		b.want("ack eval-beside", "ack eval-gang")
		if again := plans["gang"][1]; len(plans["gang"]) != 2 || !again.AllAtOnce || len(places(again)) != 3 {
			b.Fatalf("%d plans of the gang, the last to %v", len(plans["gang"]), places(again))
		}
		live := 0
		for i := range 4 {
			live += len(b.store.Snapshot().AllocsByNode(nil, fmt.Sprint("n", i)))
		}
		if live != 4 {
			b.Fatalf("%d run", live)
		}
	})
}
