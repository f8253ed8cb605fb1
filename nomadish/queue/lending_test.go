package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lending stores a workflow of a namespace that lends to two users by shares, with its reservation, on nodes, posted.
func (b *bed) lending(nodes ...string) {
	b.Helper()
	b.Put(b, &structs.WorkflowRunEntry{Time: time.Now().UnixNano(), Workflow: &structs.Workflow{
		Namespace: "default", ID: "wf", NodePool: structs.NodePoolDefault, Priority: 50, OnFailure: "stop", Reserve: structs.WorkflowReserve{Rule: structs.ReserveMax},
		Lend:   []*structs.WorkflowLend{{To: "user:ann", Share: 1}, {To: "user:bob", Share: 1}},
		Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "j", Job: jobOfUser("j", "", 4000)}}}},
	}})
	parts := make([]structs.WorkflowPart, len(nodes))
	for i, id := range nodes {
		parts[i] = structs.WorkflowPart{NodeID: id, CPU: 500}
	}
	b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: time.Now().UnixNano(), Workflow: &structs.WorkflowReservation{
		Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: parts,
	}}}})
	// Nothing is lent until the first stage has started, unless it does not start.
	b.Put(b, &structs.WorkflowStateEntry{Namespace: "default", ID: "wf", Action: "pause", EvalSeed: "seed", Time: time.Now().UnixNano()})
}

func jobOfUser(id, user string, cpu int) *structs.Job {
	return &structs.Job{
		ID: id, Name: id, Region: "global", Datacenters: []string{"*"}, Namespace: "default", Type: structs.JobTypeBatch, Priority: 50, NodePool: structs.NodePoolDefault, Submitter: &structs.Submitter{User: user},
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: cpu}}}}},
	}
}

// TestLendRounds: what workflows lend to by shares is tried in a second round, once all that was registered before has been tried in the first one.
func TestLendRounds(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("n", "c"))
		for _, user := range []string{"ann", "bob"} {
			b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: jobOfUser(user, user, 100)})
			b.put(waits("waits-"+user, user))
		}
		if n := b.groups(); n != 1 {
			b.Fatalf("%d groups of two that nobody lends to, want 1", n)
		}
		b.lending()
		if n := b.groups(); n != 2 { // else who borrows no more speaks for the other
			b.Fatalf("%d groups of two to whom a workflow lends by different blocks, want 2", n)
		}
		b.jobNeeding("ready", 100)
		b.put(eval("ready", "ready", 20))
		tried := func(round int, users ...string) {
			b.Helper()
			for _, user := range users {
				l, _ := b.Next(b.Index(), nil)
				if l == nil || l.Eval.JobID != user || l.LendRound != round {
					b.Fatalf("next is %+v, want %s in round %d", l, user, round)
				}
				b.Tried(l, b.Index(), waits(l.Eval.ID, user))
			}
		}
		tried(1, "ann", "bob")
		if l, _ := b.Next(b.Index(), nil); l != nil {
			b.Fatalf("%s is tried in round %d while what was registered before has not been tried", l.Eval.JobID, l.LendRound)
		}
		b.done("ready", b.next("ready"))
		tried(2, "ann", "bob")
		if l, _ := b.Next(b.Index(), nil); l != nil {
			b.Fatalf("%s is tried in round %d, want no other round", l.Eval.JobID, l.LendRound)
		}
	})
}

// TestBorrowersAreRaised: what a project runs on room lent by a workflow, beside its slots, may be raised when room comes free on its node, when the reservation there
// ends, or when licenses come free, though nothing of the project's own comes free then.
func TestBorrowersAreRaised(t *testing.T) {
	run(t, func(b *bed) {
		for _, id := range []string{"n", "far"} {
			n := node(id, "small")
			n.NodeResources.Slots = map[string]int{structs.SlotBatch: 2}
			b.register(n)
		}
		begin := time.Now().Truncate(time.Hour)
		b.project("chip", begin)
		b.Put(b, &structs.ClaimsTimeEntry{Now: begin.UnixNano(), EvalSeed: "s"})
		b.Put(b, &structs.LicenseUpsertEntry{License: &structs.License{Name: "sim", Count: 1}, Time: begin.UnixNano()})
		for _, id := range []string{"chip", "beside", "far"} {
			j := jobOfUser(id, "ada", 100)
			if id == "chip" {
				j.Project = "chip"
			}
			b.Put(b, &structs.JobRegisterEntry{Time: begin.UnixNano(), Job: j})
		}
		b.lending("n")
		place := func(job, on, seed string, terms structs.AllocTerms) {
			batch := testcluster.Batch(job, on, seed, 1)
			terms.Priority = 50
			batch.Resources.Shared.Terms = &terms
			b.Put(b, testcluster.Place(seed, time.Now().UnixNano(), batch))
		}
		place("chip", "n", "s1", structs.AllocTerms{
			Workflow: &structs.WorkflowTerms{Key: "default/wf", LentTo: "user:ada"}, Slots: &structs.SlotTerms{Project: "chip", User: "ada", Type: structs.SlotBatch, Cost: 1},
		})
		place("beside", "n", "s2", structs.AllocTerms{})
		place("far", "far", "s3", structs.AllocTerms{})
		synctest.Wait()
		due := func(want bool, when string) {
			b.Helper()
			synctest.Wait()
			names, _ := b.DueRaises(b.store.Snapshot().Index())
			if slices.Contains(names, scheduler.ProjectOwner("chip")) != want {
				b.Errorf("%s: of %v something is due", when, names)
			}
		}
		b.DueRaises(b.store.Snapshot().Index()) // what was placed may be looked at once
		due(false, "looked at")
		b.end("s3")
		due(false, "room came free on a node on which nothing borrows")
		b.end("s2")
		due(true, "room came free beside it")
		b.Put(b, &structs.LicenseUpsertEntry{License: &structs.License{Name: "sim", Count: 2}, Time: begin.UnixNano()})
		due(true, "there are more licenses")
		b.Put(b, &structs.WorkflowStateEntry{Namespace: "default", ID: "wf", Action: "cancel", EvalSeed: "seed", Time: time.Now().UnixNano()})
		due(true, "the reservation has ended")
	})
}
