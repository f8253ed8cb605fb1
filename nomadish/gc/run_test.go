package gc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// bed is a state, and a log that counts what it forgets in one entry.
type bed struct {
	*testing.T
	log
	store   *state.Store
	mu      sync.Mutex // one entry at a time
	largest int
	entries int
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t}
	b.store, b.writer = state.New(state.Options{})
	return b
}

func (b *bed) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := payload.(*structs.CollectEntry); ok {
		b.entries++
		b.largest = max(b.largest, len(e.Allocs), len(e.Evals), len(e.Jobs), len(e.Nodes))
	}
	return b.log.Apply(ctx, t, payload)
}

func (b *bed) must(t structs.LogType, payload any) {
	b.Helper()
	if _, err := b.Apply(context.Background(), t, payload); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) node(id string) {
	b.Helper()
	b.must(structs.LogNodeRegister, &structs.NodeRegisterEntry{Time: time.Now().UnixNano(), Node: &structs.Node{
		ID: id, Name: id, Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{},
	}})
}

func (b *bed) down(id string) {
	b.Helper()
	b.must(structs.LogNodeStatus, &structs.NodeStatusEntry{NodeIDs: []string{id}, Status: structs.NodeStatusDown, Time: time.Now().UnixNano()})
}

// batch runs a batch job of n instances on a node, to its end if ended.
func (b *bed) batch(id, node string, n int, ended bool) {
	b.Helper()
	now := time.Now().UnixNano()
	job := &structs.Job{ID: id, Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: n, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}},
	}}}
	job.Canonicalize()
	eval := &structs.Evaluation{ID: "eval-" + id, Namespace: job.Namespace, JobID: id, Type: job.Type, Status: structs.EvalStatusPending}
	b.must(structs.LogJobRegister, &structs.JobRegisterEntry{Job: job, Eval: eval, Time: now})
	done := eval.Copy()
	done.Status = structs.EvalStatusComplete
	batch := &structs.PlacementBatch{
		Namespace: job.Namespace, JobID: id, Group: "g", EvalID: eval.ID, Seed: id, Nodes: []structs.PlacedNode{{ID: node, Name: node}},
		Resources: &structs.AllocatedResources{},
	}
	ends := &structs.AllocClientEntry{Time: now}
	for i := range n {
		batch.Instances = append(batch.Instances, structs.Instance{Ordinal: uint32(i), Index: i}) //nolint:gosec // small
		ends.Updates = append(ends.Updates, &structs.AllocClientUpdate{
			ID: structs.DeriveID(id, uint64(i)), ClientStatus: structs.AllocClientComplete, ModifyTime: now, //nolint:gosec // small
		})
	}
	b.must(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{
		{EvalID: eval.ID, Time: now, Evals: []*structs.Evaluation{done}, Place: []*structs.PlacementBatch{batch}},
	}})
	if ended {
		b.must(structs.LogAllocClient, ends)
	}
}

// count counts jobs, evaluations, allocations, nodes and records.
func (b *bed) count() string {
	snap := b.store.Snapshot()
	var jobs, evals, allocs, nodes, records int
	for range snap.Jobs(nil, structs.AllNamespaces, "", false) {
		jobs++
	}
	for range snap.Evals(nil, structs.AllNamespaces, "", false) {
		evals++
	}
	for range snap.Allocs(nil, structs.AllNamespaces, "", false) {
		allocs++
	}
	for range snap.Nodes(nil, "", false) {
		nodes++
	}
	for range snap.History(nil, structs.AllNamespaces, "") {
		records++
	}
	return fmt.Sprintf("%d jobs, %d evals, %d allocs, %d nodes, %d records", jobs, evals, allocs, nodes, records)
}

func (b *bed) want(want string) {
	b.Helper()
	synctest.Wait()
	if got := b.count(); got != want {
		b.Fatalf("left are %s, want %s", got, want)
	}
}

// TestRun: by itself, at its interval, by the thresholds; history outlives what it is of.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		c := New(Options{Interval: 10 * time.Minute, Job: time.Hour, Node: 2 * time.Hour, History: 3 * time.Hour}, b.store, b)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		defer func() { cancel(); wg.Wait() }()

		b.node("up")
		b.node("lost")
		b.node("busy")
		b.batch("old", "up", 2, true)
		b.batch("long", "busy", 1, false)
		b.down("lost")
		b.down("busy")
		b.want("2 jobs, 2 evals, 3 allocs, 3 nodes, 2 records")
		time.Sleep(time.Hour - time.Millisecond)
		b.want("2 jobs, 2 evals, 3 allocs, 3 nodes, 2 records")
		time.Sleep(10 * time.Minute)
		b.want("1 jobs, 1 evals, 1 allocs, 3 nodes, 2 records")
		time.Sleep(time.Hour)
		b.want("1 jobs, 1 evals, 1 allocs, 2 nodes, 2 records") // busy holds what has not ended
		time.Sleep(time.Hour + 10*time.Minute)
		b.want("1 jobs, 1 evals, 1 allocs, 2 nodes, 0 records")
		entries := b.entries
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if b.entries != entries {
			b.Fatalf("%d entries although there was nothing to forget", b.entries-entries)
		}
	})
}

// TestForce forgets at once what is over, but no history.
func TestForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.node("up")
		b.node("lost")
		b.batch("done", "up", 2, true)
		b.batch("running", "up", 1, false)
		b.down("lost")
		if err := New(Options{}, b.store, b).Force(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.want("1 jobs, 1 evals, 1 allocs, 1 nodes, 2 records")
	})
}

// TestEntriesAreBounded: a job with more allocations than go into one entry is
// forgotten whole, even when the leader is lost between two entries.
func TestEntriesAreBounded(t *testing.T) {
	for lost := range 4 {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			b.node("up")
			b.batch("big", "up", 2*entryLimit+10, true)
			b.batch("small", "up", 1, true)
			left := lost
			c := New(Options{}, b.store, applierFunc(func(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
				if left--; left == 0 {
					return 0, structs.Errorf(structs.CodeNoLeader, "leadership lost")
				}
				return b.Apply(ctx, t, payload)
			}))
			if err := c.Force(t.Context()); (err != nil) != (lost > 0) {
				t.Fatal(err)
			}
			if err := c.Force(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.want(fmt.Sprintf("0 jobs, 0 evals, 0 allocs, 1 nodes, %d records", 2*entryLimit+11))
			if b.largest > entryLimit {
				t.Fatalf("an entry that forgets %d things", b.largest)
			}
		})
	}
}

type applierFunc func(ctx context.Context, t structs.LogType, payload any) (uint64, error)

func (f applierFunc) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	return f(ctx, t, payload)
}
