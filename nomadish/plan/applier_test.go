package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// bed is a running applier in a bubble of virtual time.
type bed struct {
	*testing.T
	*log
	applier *Applier
	owners  *owners
	stop    func()
}

// run has f done with an applier over three nodes of 100 MHz.
func run(t *testing.T, opts Options, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.nodes(t, 3, 100)
		h := newOwners()
		b := &bed{T: t, log: l, owners: h, applier: New(opts, l.store, l, h)}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.applier.Run(ctx) })
		b.stop = func() { cancel(); wg.Wait() }
		defer b.stop()
		synctest.Wait()
		f(b)
		b.stop()
		for id, n := range h.retained {
			if n != 0 {
				t.Errorf("evaluation %s: retained %d times at the end", id, n)
			}
		}
	})
}

// answers are what came of submitted plans.
type answers struct {
	*bed
	mu  sync.Mutex
	got map[string]answer
	wg  sync.WaitGroup
}

// submit has plans submitted, one after the other, without waiting for them.
func (b *bed) submit(plans ...*structs.Plan) *answers {
	a := &answers{bed: b, got: map[string]answer{}}
	a.more(plans...)
	return a
}

func (a *answers) more(plans ...*structs.Plan) {
	for _, p := range plans {
		a.wg.Go(func() {
			r, err := a.applier.Submit(a.Context(), p)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.got[p.EvalID] = answer{r, err}
		})
		synctest.Wait()
	}
}

// want waits for a plan's answer: how many were placed and refused.
func (a *answers) want(id string, placed, refused int) *structs.PlanResult {
	a.Helper()
	a.wg.Wait()
	got := a.got[id]
	if got.err != nil {
		a.Fatalf("plan %s: %v", id, got.err)
	}
	if got.result.Placed != placed || got.result.Refused != refused {
		a.Fatalf("plan %s: placed %d and refused %d (%s), want %d and %d", id, got.result.Placed, got.result.Refused,
			got.result.RefusedReason, placed, refused)
	}
	if (got.result.RefreshIndex > 0) != (refused > 0) {
		a.Fatalf("plan %s: refresh index %d with %d refused", id, got.result.RefreshIndex, refused)
	}
	return got.result
}

func (a *answers) wantErr(id string, want error) {
	a.Helper()
	a.wg.Wait()
	if got := a.got[id]; !errors.Is(got.err, want) {
		a.Fatalf("plan %s: %+v, %v, want %v", id, got.result, got.err, want)
	}
}

func TestCommitsAtOnceWhenIdle(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		start := time.Now()
		r := b.submit(planOf("1", 60, "node-000")).want("1", 1, 0)
		if time.Since(start) != 0 {
			b.Fatalf("took %s", time.Since(start))
		}
		if r.AllocIndex != b.store.LatestIndex() || b.used("node-000") != 60 {
			b.Fatalf("result %+v at %d", r, b.store.LatestIndex())
		}
		if e := b.store.Snapshot().Eval(nil, "1"); e == nil || e.Status != structs.EvalStatusComplete {
			b.Fatalf("evaluation: %+v", e)
		}
	})
}

// gate holds commits of plans back until it is opened.
func (b *bed) gate() (open func()) {
	ch := make(chan struct{})
	b.Before = func(t structs.LogType, _ any) error {
		if t == structs.LogPlanApply {
			<-ch
		}
		return nil
	}
	return func() { close(ch) }
}

func TestManyInOneEntryWhileOneIsInFlight(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		open := b.gate()
		a := b.submit(planOf("1", 60, "node-000"))
		low, high := planOf("low", 60, "node-001"), planOf("high", 60, "node-001")
		low.Priority, high.Priority = 10, 90
		a.more(planOf("2", 60, "node-000"), low, high, planOf("3", 40, "node-000"))
		open()
		a.want("1", 1, 0)
		a.want("2", 0, 1) // it counted on what 1 took while it was in flight
		a.want("3", 1, 0)
		a.want("low", 1, 0) // it was judged before the other came
		a.want("high", 0, 1)
		got := b.commits()
		if len(got) != 2 || len(got[0].Plans) != 1 || len(got[1].Plans) != 2 {
			b.Fatalf("entries: %+v", got)
		}
		for _, id := range []string{"2", "high"} {
			if r := a.got[id].result; r.RefreshIndex != b.store.LatestIndex() {
				b.Fatalf("plan %s: refresh at %d, the latest is %d", id, r.RefreshIndex, b.store.LatestIndex())
			}
			if b.store.Snapshot().Eval(nil, id) != nil {
				b.Fatalf("evaluation %s was stored although its plan was refused", id)
			}
		}
	})
}

func TestPriorityOfThoseThatWait(t *testing.T) {
	run(t, Options{BatchLimit: 1}, func(b *bed) {
		open := b.gate()
		a := b.submit(planOf("1", 60, "node-000"), planOf("2", 60, "node-001")) // 2 fills the open round
		low, high := planOf("low", 60, "node-002"), planOf("high", 60, "node-002")
		low.Priority, high.Priority = 10, 90
		a.more(low, high)
		open()
		a.want("high", 1, 0)
		a.want("low", 0, 1)
	})
}

func TestRefusals(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.owners.gone["stale"] = true
		broken := planOf("broken", 1, "node-000")
		broken.Place[0].Instances[0].Node = 7
		all := planOf("all", 60, "node-000", "node-001", "node-001")
		all.AllAtOnce = true
		a := b.submit(planOf("stale", 1, "node-000"), broken, planOf("part", 60, "node-000", "node-001", "node-001", "node-002"), all,
			planOf("nowhere", 1, "node-999"), nil1())
		a.wantErr("stale", structs.ErrStale)
		a.wantErr("broken", structs.ErrBadRequest)
		a.wantErr("nil", structs.ErrBadRequest)
		a.want("part", 2, 2) // a node takes all of a plan or nothing
		if seed := b.owners.seeds["part"]; seed != "seed-part" {
			t.Errorf("its holder cannot tell whether the plan came before: %q", seed)
		}
		a.want("all", 0, 3)
		a.want("nowhere", 0, 1)
		if b.used("node-001") != 0 || b.used("node-000") != 60 {
			b.Fatalf("used: %d, %d", b.used("node-000"), b.used("node-001"))
		}
		b.Put(b, &structs.NodeStatusEntry{NodeIDs: []string{"node-001"}, Status: structs.NodeStatusDown})
		b.submit(planOf("down", 1, "node-001")).want("down", 0, 1)
	})
}

// gangOf is a plan that stops allocations and places others in their stead, whole or
// not at all.
func gangOf(id string, cpu int64, old []*structs.Allocation, nodes ...string) *structs.Plan {
	p := planOf(id, cpu, nodes...)
	p.AllAtOnce = true
	b := p.Place[0]
	b.Gang = &structs.AllocGang{Size: len(nodes), Level: "rack"}
	for i := range b.Instances {
		b.Instances[i].Rank = i
		b.Gang.Hosts = append(b.Gang.Hosts, nodes[i]+":20000")
		if i < len(old) {
			b.Instances[i].PreviousAllocation = old[i].ID
		}
	}
	for _, a := range old {
		p.Stop = append(p.Stop, &structs.AllocStop{AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop})
	}
	return p
}

// TestGangIsCommittedWholeOrNotAtAll: a gang that restarts keeps running, all of it,
// when one of its new places is gone, and is in one entry when it is not, however
// large.
func TestGangIsCommittedWholeOrNotAtAll(t *testing.T) {
	run(t, Options{EntryBytes: 2048}, func(b *bed) {
		b.submit(gangOf("1", 60, nil, "node-000", "node-001")).want("1", 2, 0)
		live := func() (out []*structs.Allocation) {
			for _, n := range []string{"node-000", "node-001", "node-002"} {
				for _, a := range b.store.Snapshot().AllocsByNode(nil, n) {
					if !a.Terminal() {
						out = append(out, a)
					}
				}
			}
			return out
		}
		old := live()
		b.submit(planOf("other", 60, "node-002")).want("other", 1, 0)
		before, index := len(b.commits()), b.store.LatestIndex()
		r := b.submit(gangOf("2", 60, old, "node-000", "node-002")).want("2", 0, 2)
		if r.AllocIndex != 0 || r.RefreshIndex < index || len(b.commits()) != before || b.store.Snapshot().Eval(nil, "2") != nil {
			b.Fatalf("refused, but %+v with %d entries", r, len(b.commits()))
		}
		if got := live(); len(got) != 3 || b.used("node-000") != 60 || b.used("node-001") != 60 {
			b.Fatalf("%d run after the refusal", len(got))
		}
		// Decided again it is accepted: into the room that it leaves.
		nodes := make([]string, 40)
		for i := range nodes {
			nodes[i] = fmt.Sprintf("node-%03d", i%2)
		}
		b.submit(gangOf("3", 5, old, nodes...)).want("3", 40, 0)
		got := b.commits()
		if last := got[len(got)-1]; len(got) != before+1 || len(last.Plans) != 1 || instances(last.Plans[0].Place) != 40 || len(last.Plans[0].Stop) != 2 {
			b.Fatalf("%d entries more", len(got)-before)
		}
		if b.sizes[len(b.sizes)-1] < 2048 {
			b.Fatalf("the entry has %d bytes only", b.sizes[len(b.sizes)-1])
		}
		for _, a := range live() {
			if a.JobID == "job-3" && (a.Gang == nil || a.Gang.Size != 40 || a.Gang.Hosts[a.Gang.Rank] != a.NodeID+":20000") {
				b.Fatalf("%s on %s knows %+v", a.Name, a.NodeID, a.Gang)
			}
		}
	})
}

// nil1 is a plan with a batch that is missing.
func nil1() *structs.Plan {
	p := planOf("nil", 1, "node-000")
	p.Place = append(p.Place, nil)
	return p
}

func TestBadPlanDoesNotHurtOthers(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		open := b.gate()
		a := b.submit(planOf("1", 10, "node-000"))
		bad := planOf("bad", 10, "node-000")
		bad.Evals[0].Status = "nonsense" // the state refuses it
		a.more(planOf("2", 10, "node-000"), bad, planOf("3", 10, "node-000"))
		open()
		a.want("2", 1, 0)
		a.want("3", 1, 0)
		a.wantErr("bad", structs.ErrBadRequest)
		if b.used("node-000") != 30 {
			b.Fatalf("used %d", b.used("node-000"))
		}
		b.submit(planOf("4", 70, "node-000")).want("4", 1, 0) // what bad would have taken is free
	})
}

// TestFailedCommit: what was judged on a commit that failed is judged again.
func TestFailedCommit(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		release := make(chan struct{})
		first := true
		b.Before = func(structs.LogType, any) error {
			if first {
				first = false
				<-release
				return structs.Errorf(structs.CodeLimited, "too many entries")
			}
			return nil
		}
		a := b.submit(planOf("1", 60, "node-000"))
		a.more(planOf("2", 60, "node-000"))
		close(release)
		a.wantErr("1", structs.ErrLimited)
		a.want("2", 1, 0)
		if n := len(b.commits()); n != 1 {
			b.Fatalf("%d entries: it was certain that 1 was not committed", n)
		}
	})
}

// TestUncertainCommit: an entry may have been committed although its commit failed.
// What comes after must count on it.
func TestUncertainCommit(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		once := sync.OnceValue(func() error { return structs.Errorf(structs.CodeNoLeader, "leadership lost while committing") })
		requested := false
		b.Applied = func(testcluster.Entry) error {
			if requested {
				return nil
			}
			requested = true
			return once()
		}
		b.submit(planOf("1", 60, "node-000")).wantErr("1", structs.ErrNoLeader)
		b.submit(planOf("2", 60, "node-000")).want("2", 0, 1)
		got := b.commits()
		if len(got) != 2 || len(got[1].Plans) != 0 {
			b.Fatalf("entries: %+v, want an empty one after the uncertain one", got)
		}

		b.Before = func(structs.LogType, any) error { return structs.Errorf(structs.CodeNoLeader, "not the leader") }
		b.submit(planOf("3", 1, "node-000")).wantErr("3", structs.ErrNoLeader)
		b.submit(planOf("4", 1, "node-000")).wantErr("4", structs.ErrNoLeader)
		b.Before = nil
		b.submit(planOf("5", 1, "node-000")).want("5", 1, 0)
	})
}

func TestLosingLeadership(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		open := b.gate()
		a := b.submit(planOf("1", 10, "node-000"), planOf("2", 10, "node-000"))
		go b.stop()
		synctest.Wait()
		open()
		b.stop()
		a.want("1", 1, 0) // it was in flight
		a.wantErr("2", structs.ErrNoLeader)
		if _, err := b.applier.Submit(b.Context(), planOf("3", 10, "node-000")); !errors.Is(err, structs.ErrNoLeader) {
			b.Fatalf("submit without leadership: %v", err)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	run(t, Options{QueueLimit: 2, BatchLimit: 1}, func(b *bed) {
		open := b.gate()
		a := b.submit(planOf("1", 1, "node-000"), planOf("2", 1, "node-000"), planOf("3", 1, "node-000"), planOf("4", 1, "node-000"))
		_, err := b.applier.Submit(b.Context(), planOf("5", 1, "node-000"))
		if !errors.Is(err, structs.ErrLimited) {
			b.Fatalf("submit to a full queue: %v", err)
		}
		open()
		for _, id := range []string{"1", "2", "3", "4"} {
			a.want(id, 1, 0)
		}
	})
}

func TestSubmitterGoesAway(t *testing.T) {
	run(t, Options{BatchLimit: 1}, func(b *bed) {
		open := b.gate()
		a := b.submit(planOf("1", 60, "node-000"), planOf("2", 1, "node-001"))
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if _, err := b.applier.Submit(ctx, planOf("gone", 30, "node-000")); !errors.Is(err, context.DeadlineExceeded) {
			b.Fatalf("submit: %v", err)
		}
		open()
		a.want("1", 1, 0)
		b.submit(planOf("3", 40, "node-000")).want("3", 1, 0) // nobody waits for gone any more
	})
}

// TestStopsFreeRoom: a plan may count on what it stops, and later ones on it too,
// also while it is in flight.
func TestStopsFreeRoom(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.submit(planOf("old", 90, "node-000")).want("old", 1, 0)
		open := b.gate()
		swap := planOf("swap", 50, "node-000")
		swap.Stop = []*structs.AllocStop{{AllocID: structs.DeriveID("seed-old", 0), DesiredStatus: structs.AllocDesiredStop}}
		a := b.submit(swap, planOf("next", 50, "node-000"), planOf("over", 1, "node-000"))
		open()
		a.want("swap", 1, 0)
		a.want("next", 1, 0)
		a.want("over", 0, 1)
	})
}

// TestRoomThatComesFreeIsSeen: a long chain of rounds does not live on an old snapshot.
func TestRoomThatComesFreeIsSeen(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.submit(planOf("old", 90, "node-000")).want("old", 1, 0)
		b.Before = func(t structs.LogType, _ any) error {
			if t == structs.LogPlanApply {
				time.Sleep(time.Millisecond)
			}
			return nil
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 3 { // rounds follow each other without a gap
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := b.applier.Submit(b.Context(), planOf(fmt.Sprintf("busy-%d-%d", w, i), 0, "node-001")); err != nil {
						b.Errorf("submit: %v", err)
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		b.Put(b, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
			{ID: structs.DeriveID("seed-old", 0), ClientStatus: structs.AllocClientComplete},
		}})
		time.Sleep(20 * time.Millisecond)
		r, err := b.applier.Submit(b.Context(), planOf("new", 90, "node-000"))
		close(stop)
		wg.Wait()
		if err != nil || r.Placed != 1 {
			b.Fatalf("result %+v, %v", r, err)
		}
	})
}

// TestJobRegisteredAnew: what was decided for a job that was purged since is refused, also if another of its name is there.
func TestJobRegisteredAnew(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		job := func() uint64 {
			return b.Put(b, &structs.JobRegisterEntry{Job: &structs.Job{
				Namespace: "default", ID: "job-x", Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
			}})
		}
		plan := func(id string, since uint64) *structs.Plan {
			p := planOf(id, 1, "node-000", "node-001")
			p.JobID, p.Place[0].JobID = "job-x", "job-x"
			p.Place[0].Resources.Shared.Terms = &structs.AllocTerms{Submitted: since}
			return p
		}
		first := job()
		b.submit(plan("then", first)).want("then", 2, 0)
		b.Put(b, &structs.JobDeregisterEntry{Namespace: "default", JobID: "job-x", Purge: true})
		b.submit(plan("purged", first)).want("purged", 0, 2)
		second := job()
		b.submit(plan("anew", first)).want("anew", 0, 2)
		b.submit(plan("now", second)).want("now", 2, 0)
	})
}
