package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestBeginWithKeys: a broker that begins with what is known of a state has everything where one has it that finds all by itself.
func TestBeginWithKeys(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		now := time.Now()
		for i := range 20 {
			id := fmt.Sprintf("job-%02d", i)
			e := b.submitted(b, "default", id, []string{"", "ada", "bob"}[i%3], 40+i, 100*(1+i%4))
			e.CreateTime = now.Add(time.Duration(i) * time.Hour).UnixNano()
			b.put(e)
		}
		b.put(waits("gone", "gone")) // its job is not there
		b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "job-03", Reserve: []*structs.Reservation{
			{NodeID: "s", Namespace: "default", JobID: "job-03"},
		}}}})
		begin := func(keys *RequestKeys) (*Broker, func()) {
			other := New(Options{NewID: testcluster.IDs("id-%d"), Keys: keys}, b, b.store.LatestIndex)
			steps := other.Start(b.store)
			return other, steps.Stop
		}
		for _, beside := range []bool{true, false} {
			keys := RequestKeysOf(b.store.Snapshot(), beside)
			alone, stop := begin(nil)
			with, stopToo := begin(keys)
			if len(keys.known) != len(b.store.Snapshot().PendingEvals()) || len(with.blocked.of) != len(alone.blocked.of) {
				b.Fatalf("%d keys, %d requests, want %d", len(keys.known), len(with.blocked.of), len(alone.blocked.of))
			}
			for key, want := range alone.blocked.of {
				if got := with.blocked.of[key]; got == nil || got.position != want.position || got.group.key != want.group.key {
					b.Errorf("%s: %+v, want %+v", key.eval, got, want)
				}
			}
			if with.gates.users != alone.gates.users || !with.gates.users {
				b.Errorf("has users: %t, want %t", with.gates.users, alone.gates.users)
			}
			stop()
			stopToo()
		}
	})
}
