package gc

import (
	"context"
	"fmt"
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

// bed is the cluster's log, which counts what it forgets in one entry.
type bed struct {
	*testing.T
	*testcluster.Log
	store   *state.Store
	largest int
	entries int
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t, Log: testcluster.New(0, state.Options{})}
	b.store = b.Store
	b.Committed = func(entry testcluster.Entry) {
		if e, ok := entry.Payload.(*structs.CollectEntry); ok {
			b.entries++
			b.largest = max(b.largest, len(e.Allocs), len(e.Evals), len(e.Jobs), len(e.Nodes))
		}
	}
	return b
}

func (b *bed) node(id string) {
	b.Helper()
	b.Put(b, &structs.NodeRegisterEntry{Time: time.Now().UnixNano(), Node: testcluster.Node(id, 1000)})
}

func (b *bed) down(id string) {
	b.Helper()
	b.Put(b, &structs.NodeStatusEntry{NodeIDs: []string{id}, Status: structs.NodeStatusDown, Time: time.Now().UnixNano()})
}

// batch runs a batch job of n instances on a node, to its end if ended.
func (b *bed) batch(id, node string, n int, ended bool) {
	b.Helper()
	now := time.Now().UnixNano()
	job := testcluster.Job(id, structs.JobTypeBatch, n)
	eval := testcluster.Eval("eval-"+id, job, structs.EvalStatusPending)
	b.Put(b, &structs.JobRegisterEntry{Job: job, Eval: eval, Time: now})
	done := eval.Copy()
	done.Status = structs.EvalStatusComplete
	ends := &structs.AllocClientEntry{Time: now}
	for i := range n {
		ends.Updates = append(ends.Updates, &structs.AllocClientUpdate{
			ID: testcluster.AllocID(id, i), ClientStatus: structs.AllocClientComplete, ModifyTime: now,
		})
	}
	commit := testcluster.Place(eval.ID, now, testcluster.Batch(id, node, id, n))
	commit.Plans[0].Evals = []*structs.Evaluation{done}
	b.Put(b, commit)
	if ended {
		b.Put(b, ends)
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
			b.Before = func(structs.LogType, any) error {
				if left--; left == 0 {
					return structs.Errorf(structs.CodeNoLeader, "leadership lost")
				}
				return nil
			}
			c := New(Options{}, b.store, b)
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
