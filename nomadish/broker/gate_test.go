package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// jobOfPriority is a stored job, so that what is to be decided of it has a pool.
func (b *bed) jobOfPriority(id, kind string, priority int) {
	b.Helper()
	b.must(b, structs.LogJobRegister, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
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
		verdict := func(want int) {
			b.Helper()
			if a := b.Admit("2", b.store.LatestIndex(), false); a.Verdict != want {
				b.Fatalf("verdict %d, want %d", a.Verdict, want)
			}
		}
		verdict(structs.GateBusy)
		b.put(blockedEval("3", "waits", 0))
		b.turn("") // it stands behind the first
		time.Sleep(7 * time.Second)
		b.tried("3")
		verdict(structs.GateOpen)
		got, first, _, err := b.Dequeue(b.Context(), []string{structs.JobTypeBatch}, time.Second)
		if err != nil || got == nil {
			b.Fatalf("dequeue: %v, %v", got, err)
		}
		verdict(structs.GateWait)
		synctest.Wait()
		b.done("1", first)
		verdict(structs.GateOpen)
		b.done("2", token)
	})
}

// TestRefusedAgainAndAgain: an ask whose plans do not hold is decided anew at once, but
// not without end.
func TestRefusedAgainAndAgain(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.put(blockedEval("1", "a", 0))
		for range maxRefusals + 1 {
			b.Answered(b.turn("1"), true, false)
		}
		b.turn("")
		time.Sleep(b.opts.FirstDelay)
		b.tried("1")
		b.turn("")
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
