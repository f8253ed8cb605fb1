package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// bed is a running drainer over a state with the nodes a and b, in virtual time. The
// test plays the scheduler and the clients.
type bed struct {
	*testing.T
	*testcluster.Log
	store   *state.Store
	stop    func()
	entries []int // transitions of each entry
	evals   int   // of drains
	seeds   int
}

func (b *bed) must(payload any) {
	b.Helper()
	b.Put(b, payload)
	synctest.Wait()
}

func run(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := testcluster.New(10, state.Options{})
		b := &bed{T: t, Log: l, store: l.Store}
		l.Committed = func(e testcluster.Entry) {
			if p, ok := e.Payload.(*structs.AllocTransitionEntry); ok {
				b.entries = append(b.entries, len(p.Transitions))
				b.evals += len(p.Evals)
			}
		}
		for _, id := range []string{"a", "b"} {
			b.must(&structs.NodeRegisterEntry{Node: testcluster.Node(id, 1000)})
		}
		b.start()
		defer func() { b.stop() }()
		f(b)
	})
}

func (b *bed) start() {
	ctx, cancel := context.WithCancel(b.Context())
	d := New(b, testcluster.IDs(fmt.Sprintf("drain-%d-%%d", b.Index())), nil)
	var wg sync.WaitGroup
	wg.Go(func() { d.Run(ctx, b.store) })
	b.stop = func() { cancel(); wg.Wait() }
	synctest.Wait()
}

// job registers a job of n instances and places them on node a, running and healthy.
func (b *bed) job(id, kind string, n, parallel int) {
	b.Helper()
	job := testcluster.Job(id, kind, n)
	if parallel > 0 {
		job.TaskGroups[0].Migrate = &structs.MigrateStrategy{MaxParallel: &parallel}
		job.Canonicalize()
	}
	b.must(&structs.JobRegisterEntry{Job: job, Time: time.Now().UnixNano()})
	for range n {
		b.report(b.place(id, "a"), structs.AllocClientRunning, new(true))
	}
}

// place places an instance of a job.
func (b *bed) place(job, node string) (id string) {
	b.Helper()
	b.seeds++
	seed := fmt.Sprint("seed-", b.seeds)
	now := time.Now().UnixNano()
	batch := testcluster.Batch(job, node, seed, 1)
	batch.CreateTime = now
	b.must(testcluster.Place("e", now, batch))
	return testcluster.AllocID(seed, 0)
}

// report says what a client says of an allocation.
func (b *bed) report(id, status string, healthy *bool) {
	b.Helper()
	u := &structs.AllocClientUpdate{ID: id, ClientStatus: status}
	if healthy != nil {
		u.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: healthy}
	}
	b.must(&structs.AllocClientEntry{Time: time.Now().UnixNano(), Updates: []*structs.AllocClientUpdate{u}})
}

// schedule stops what shall move, with or without a replacement on b, and ends it.
func (b *bed) schedule(replace bool) (replaced []string) {
	b.Helper()
	for _, a := range b.store.Snapshot().AllocsByNode(nil, "a") {
		if !a.DesiredTransition.ShouldMigrate() || a.Terminal() {
			continue
		}
		b.must(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{
			EvalID: "e", Time: time.Now().UnixNano(), Stop: []*structs.AllocStop{{AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop}},
		}}})
		if replace && a.Job.Type == structs.JobTypeService {
			replaced = append(replaced, b.place(a.JobID, "b"))
		}
		b.report(a.ID, structs.AllocClientComplete, nil)
	}
	return replaced
}

func (b *bed) drain(spec structs.DrainSpec) {
	b.Helper()
	s := &structs.DrainStrategy{DrainSpec: spec, StartedAt: time.Now()}
	if spec.Deadline > 0 {
		s.ForceDeadline = time.Now().Add(spec.Deadline)
	}
	b.must(&structs.NodeDrainEntry{NodeID: "a", Strategy: s, Time: time.Now().UnixNano()})
}

// want: of each job so many instances on node a are asked to move and still there.
func (b *bed) want(want string) {
	b.Helper()
	synctest.Wait()
	moving := map[string]int{}
	for _, a := range b.store.Snapshot().AllocsByNode(nil, "a") {
		if a.DesiredTransition.ShouldMigrate() && !a.Terminal() {
			moving[a.JobID]++
		}
	}
	var got []string
	for job, n := range moving {
		got = append(got, fmt.Sprint(job, ":", n))
	}
	slices.Sort(got)
	if s := strings.Join(got, " "); s != want {
		b.Fatalf("moving: %q, want %q", s, want)
	}
}

func (b *bed) wantDone(done bool) {
	b.Helper()
	synctest.Wait()
	n := b.store.Snapshot().Node(nil, "a")
	if (n.DrainStrategy == nil) != done {
		b.Fatalf("drained: %v, want %v", n.DrainStrategy == nil, done)
	}
	if !done {
		return
	}
	if last := n.Events[len(n.Events)-1]; n.LastDrain.Status != "complete" || n.SchedulingEligibility != structs.NodeIneligible ||
		last.Message != "Node drain complete" {
		b.Fatalf("after the drain: %+v, %s, %+v", n.LastDrain, n.SchedulingEligibility, last)
	}
}

func TestServicesMoveInStep(t *testing.T) {
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 5, 2)
		b.job("other", structs.JobTypeService, 1, 1)
		b.want("")
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("other:1 web:2")
		if b.evals != 2 {
			b.Fatalf("%d evaluations, want one of each job", b.evals)
		}
		placed := b.schedule(true)
		b.want("") // the replacements are not healthy yet
		for _, id := range placed {
			b.report(id, structs.AllocClientRunning, nil)
		}
		b.want("")
		for _, id := range placed[:2] {
			b.report(id, structs.AllocClientRunning, new(true))
		}
		b.want("web:1") // one of the two is of the other job
		b.stop()
		b.start() // a new leader goes on
		for _, id := range placed[2:] {
			b.report(id, structs.AllocClientRunning, new(true))
		}
		b.want("web:2")
		for _, id := range b.schedule(true) {
			b.report(id, structs.AllocClientRunning, new(true))
		}
		b.want("web:1")
		b.wantDone(false)
		b.schedule(true)
		b.wantDone(true)
		if b.evals != 5 { // one each time that something of a job moves
			b.Fatalf("%d evaluations", b.evals)
		}
	})
}

func TestWithoutRoomElsewhere(t *testing.T) {
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 3, 1)
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("web:1")
		b.schedule(false)
		time.Sleep(time.Hour - time.Millisecond)
		b.want("") // one is missing already
		time.Sleep(time.Millisecond)
		b.want("web:2") // the deadline is stronger
		b.schedule(false)
		b.wantDone(true)
	})
}

func TestHealthByTime(t *testing.T) {
	run(t, func(b *bed) { // a client that does not judge health
		b.job("web", structs.JobTypeService, 2, 1)
		b.drain(structs.DrainSpec{})
		b.want("web:1")
		b.report(b.schedule(true)[0], structs.AllocClientRunning, nil)
		time.Sleep(10*time.Second - time.Millisecond) // min_healthy_time
		b.want("")
		time.Sleep(time.Millisecond)
		b.want("web:1")
	})
}

func TestUnhealthyMovesAtOnce(t *testing.T) {
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 3, 1)
		sick := b.store.Snapshot().AllocsByNode(nil, "a")[1].ID
		b.report(sick, structs.AllocClientRunning, new(false))
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("web:1")
		if a := b.store.Snapshot().Alloc(nil, sick); !a.DesiredTransition.ShouldMigrate() {
			b.Fatal("a healthy one moved first")
		}
	})
}

// TestYoungOnesWait: who has not run for long enough to be called healthy, as it came from a node that was drained just before, is not
// moved beyond the pace: it may be all that serves. Who does not run yet may go on at once.
func TestYoungOnesWait(t *testing.T) {
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 3, 1)
		for _, a := range b.store.Snapshot().AllocsByNode(nil, "a") {
			b.report(a.ID, structs.AllocClientComplete, nil)
		}
		young := []string{b.place("web", "a"), b.place("web", "a"), b.place("web", "a")}
		for _, id := range young {
			b.report(id, structs.AllocClientRunning, nil)
		}
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("")
		time.Sleep(10*time.Second - time.Millisecond) // min_healthy_time
		b.want("")
		time.Sleep(time.Millisecond)
		b.want("web:1")
	})
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 1, 1)
		pending := b.place("web", "a")
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("web:1")
		if a := b.store.Snapshot().Alloc(nil, pending); !a.DesiredTransition.ShouldMigrate() {
			b.Fatal("one that runs moved first")
		}
	})
}

func TestBatchMayFinish(t *testing.T) {
	run(t, func(b *bed) {
		b.job("sum", structs.JobTypeBatch, 2, 0)
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("")
		b.report(b.store.Snapshot().AllocsByNode(nil, "a")[0].ID, structs.AllocClientComplete, nil)
		time.Sleep(time.Hour - time.Millisecond)
		b.want("")
		b.wantDone(false)
		time.Sleep(time.Millisecond)
		b.want("sum:1")
		b.schedule(false)
		b.wantDone(true)
	})
	run(t, func(b *bed) {
		b.job("sum", structs.JobTypeBatch, 1, 0)
		b.drain(structs.DrainSpec{}) // no deadline
		time.Sleep(1000 * time.Hour)
		b.wantDone(false)
		b.report(b.store.Snapshot().AllocsByNode(nil, "a")[0].ID, structs.AllocClientComplete, nil)
		b.wantDone(true)
	})
}

func TestSystemJobsGoLast(t *testing.T) {
	f := func(spec structs.DrainSpec, steps ...string) {
		t.Helper()
		run(t, func(b *bed) {
			b.job("logs", structs.JobTypeSystem, 1, 0)
			b.job("web", structs.JobTypeService, 1, 1)
			b.drain(spec)
			for _, want := range steps {
				b.wantDone(false)
				b.want(want)
				b.schedule(true)
			}
			b.wantDone(true)
			left := slices.ContainsFunc(b.store.Snapshot().AllocsByNode(nil, "a"), func(a *structs.Allocation) bool { return !a.Terminal() })
			if left != spec.IgnoreSystemJobs {
				b.Fatalf("something is left: %v", left)
			}
		})
	}
	f(structs.DrainSpec{Deadline: time.Hour}, "web:1", "logs:1")
	f(structs.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}, "web:1")
	f(structs.DrainSpec{Deadline: -1}, "logs:1 web:1")
	f(structs.DrainSpec{Deadline: -1, IgnoreSystemJobs: true}, "web:1")
}

func TestEmptyNode(t *testing.T) {
	run(t, func(b *bed) {
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.wantDone(true)
	})
}

func TestCancelled(t *testing.T) {
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 3, 1)
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.want("web:1")
		b.must(&structs.NodeDrainEntry{NodeID: "a", MarkEligible: true, Status: "canceled"})
		b.schedule(true)
		time.Sleep(2 * time.Hour)
		b.want("")
	})
}

func TestJobStoppedMeanwhile(t *testing.T) {
	run(t, func(b *bed) {
		b.job("web", structs.JobTypeService, 2, 1)
		b.must(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true})
		b.drain(structs.DrainSpec{Deadline: -1})
		b.wantDone(false)
		for _, a := range b.store.Snapshot().AllocsByNode(nil, "a") {
			b.report(a.ID, structs.AllocClientComplete, nil)
		}
		b.wantDone(true)
	})
}

func TestManyAndRefused(t *testing.T) {
	run(t, func(b *bed) {
		job := &structs.Job{ID: "big", Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: entryLimit + 5, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}},
		}}}
		job.Canonicalize()
		b.must(&structs.JobRegisterEntry{Job: job})
		b.must(testcluster.Place("e", 0, testcluster.Batch("big", "a", "s", entryLimit+5)))
		b.drain(structs.DrainSpec{Deadline: time.Hour})
		b.Lock()
		b.Refuse = structs.Errorf(structs.CodeNoLeader, "no quorum")
		b.Unlock()
		time.Sleep(time.Hour + time.Minute)
		b.want("")
		b.Lock()
		b.Refuse = nil
		b.Unlock()
		time.Sleep(retry)
		b.want(fmt.Sprint("big:", entryLimit+5))
		if fmt.Sprint(b.entries) != fmt.Sprint([]int{entryLimit, 5}) || b.evals != 1 {
			b.Fatalf("entries %v, %d evaluations", b.entries, b.evals)
		}
	})
}
