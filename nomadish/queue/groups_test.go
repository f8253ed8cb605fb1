package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// jobNeeding is a stored job of one group that needs so much CPU.
func (b *bed) jobNeeding(id string, cpu int) {
	b.Helper()
	b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
		ID: id, Namespace: "default", Type: structs.JobTypeService, Priority: 50, NodePool: structs.NodePoolDefault,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: cpu},
		}}}},
	}})
}

// waits has a job's only group wait.
func waits(id, job string) *structs.Evaluation {
	e := blockedEval(id, job, 1)
	e.FailedTGAllocs = map[string]*structs.AllocMetric{"g": {}}
	return e
}

// groups counts the groups of all that waits.
func (b *bed) groups() int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.blocked.groups)
}

func (b *bed) transition(alloc string, suspend bool) {
	b.Helper()
	b.Put(b, &structs.AllocTransitionEntry{
		Transitions: map[string]*structs.DesiredTransition{alloc: {Suspend: &suspend}}, Time: time.Now().UnixNano(),
	})
}

// TestGroupsStayFew: however many wait, there are as many groups as request keys; also
// those that have instances already. What stands on room of its own is like no other, as
// long as it does.
func TestGroupsStayFew(t *testing.T) {
	run(t, func(b *bed) {
		const requestKeys = 20
		b.register(node("s", "small"))
		for i := range 1000 {
			id := fmt.Sprint("job-", i)
			b.jobNeeding(id, 1+i%requestKeys)
			if i%10 == 0 {
				b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
					EvalID: "e-" + id, Place: []*structs.PlacementBatch{{
						Namespace: "default", JobID: id, Group: "g", Seed: id, EvalID: "e-" + id,
						Nodes: []structs.PlacedNode{{ID: "s", Name: "s"}}, Instances: []structs.Instance{{}},
					}},
				}}})
			}
			b.evals(b, waits(fmt.Sprint("e-", i), id))
		}
		f := func(what string, want int) {
			b.Helper()
			if got := b.groups(); got != want {
				b.Fatalf("%s: %d groups, want %d", what, got, want)
			}
		}
		f("at first", requestKeys)
		suspended := structs.DeriveID("job-0", 0)
		b.transition(suspended, true)
		f("one is suspended by a user", requestKeys)
		b.transition(suspended, false)
		f("it is to go on", requestKeys+1)
		b.transition(suspended, true)
		f("it is not", requestKeys)
		b.jobNeeding("job-10", 1+10%requestKeys)
		f("one has no new version", requestKeys)
		b.jobNeeding("job-10", 5000)
		f("an older version of one runs", requestKeys+1)
	})
}

// TestCommitTakesLong: the queue pass keeps its lease on a request until it answers, however long Raft
// stands still after the plan's first commit.
func TestCommitTakesLong(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.jobNeeding("a", 100)
		b.put(waits("1", "a"))
		lease := b.lease("1")
		unretain, ok := b.Retain("1", lease.Token, "")
		if !ok {
			b.Fatal("not retained")
		}
		unretain()
		time.Sleep(time.Hour)
		b.next("") // a blocked evaluation is no worker's
		if token, ok := b.Outstanding("1"); !ok || token != lease.Token {
			b.Fatal("taken from the pass")
		}
		b.Tried(lease, b.store.LatestIndex(), b.store.Snapshot().Eval(nil, "1"))
		b.lease("")
		b.register(node("t", "small"))
		b.tried("1")
	})
}
