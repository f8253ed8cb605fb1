package queue

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// unstated has jobs a, b, … wait that are alike and of which only what is entitled was looked at, and the first be tried: it states why it waits.
func (b *bed) unstated(jobs int) {
	b.Helper()
	b.register(node("s", "small"))
	for i := range jobs {
		id := string(rune('a' + i))
		b.jobNeeding(id, 100)
		e := waits("of-"+id, id)
		e.SnapshotIndex = 0
		b.put(e)
	}
	b.explained(b.lease("of-a"))
}

// explained answers a lease: its evaluation states why it waits.
func (b *bed) explained(lease *Lease) {
	b.Helper()
	left := lease.Eval.Copy()
	left.SnapshotIndex = b.store.LatestIndex()
	b.Planned(lease, left.SnapshotIndex, left, sharesNow{})
	b.put(left)
	b.Answered(lease, false, false)
}

// explains leases one to be explained.
func (b *bed) explains(id string) *Lease {
	b.Helper()
	lease := b.lease(id)
	if !lease.Explain {
		b.Fatalf("%s is to be decided", id)
	}
	return lease
}

// TestAlikeAreExplained: what states nothing and is not tried, as another one speaks for its group, is leased to be explained, one after the other: the next
// once that can be done for one, or has no use any more.
func TestAlikeAreExplained(t *testing.T) {
	const later = 50 * time.Millisecond
	run(t, func(b *bed) {
		b.unstated(7)
		b.explained(b.explains("of-b"))
		wait := func() {
			b.Helper()
			lease := b.explains("of-c")
			b.lease("") // the others are not leased only to be put off, too
			lease.ExplainAt = time.Now().Add(later)
			b.Tried(lease, b.store.LatestIndex(), lease.Eval)
			b.lease("")
		}
		wait()
		time.Sleep(later)
		wait()
		b.put(with(b.store.Snapshot().Eval(nil, "of-c"), structs.EvalStatusComplete)) // its job is stopped
		b.put(eval("new", "d", 50))                                                   // what it is short of is being decided anew
		lease := b.explains("of-e")
		b.Tried(lease, b.store.LatestIndex(), lease.Eval) // that cannot be stated
		b.explained(b.explains("of-f"))
		b.explained(b.explains("of-g"))
		b.lease("")
		b.done("new", b.next("new"))
		b.lease("")
	})
}

// TestUnreadIsNotExplained: where nobody reads why requests wait, that is not counted of those that are not tried.
func TestUnreadIsNotExplained(t *testing.T) {
	run(t, func(b *bed) {
		b.opts.Unread = true
		b.unstated(3)
		b.lease("")
	})
}

// TestExplainedElsewhere: what comes to be like others that wait is explained though nothing is tried of these at that time.
func TestExplainedElsewhere(t *testing.T) {
	run(t, func(b *bed) {
		b.unstated(3)
		b.jobNeeding("other", 200)
		b.put(waits("of-other", "other"))
		b.tried("of-other")
		b.jobNeeding("c", 200)
		b.explained(b.explains("of-b"))
		b.explained(b.explains("of-c"))
		b.lease("")
	})
}

// TestUnstatedIsNotPassed: what states nothing, and of whose job something is being decided whose plan has been judged already, goes before others when room
// comes free, as what states why it waits does. It is explained once nothing of its job is being decided.
func TestUnstatedIsNotPassed(t *testing.T) {
	run(t, func(b *bed) {
		b.unstated(3)
		for _, id := range []string{"of-a", "of-c"} {
			b.put(with(b.store.Snapshot().Eval(nil, id), structs.EvalStatusComplete)) // of-b alone is left
		}
		b.jobOfPriority("low", structs.JobTypeService, 10)
		b.uses("s", "1", "", 100)
		b.put(eval("new", "b", 50))
		token := b.next("new")
		b.Judged("new", true, nil, nil)
		b.lease("")
		b.end("1")
		b.put(blockedEval("low", "low", 1))
		b.lease("") // who decides on its job counts for it
		b.put(with(b.store.Snapshot().Eval(nil, "new"), structs.EvalStatusCancelled))
		if err := b.Ack("new", token); err != nil {
			b.Fatal(err)
		}
		b.tried("of-b")
		b.tried("low")
		b.explained(b.explains("of-b"))
		b.lease("")
	})
}

// TestUnstatedAfterADecision: what states nothing, as of its job something was being decided when that was to be counted, is explained after that.
func TestUnstatedAfterADecision(t *testing.T) {
	run(t, func(b *bed) {
		b.unstated(2)
		b.put(eval("new", "b", 50))
		token := b.next("new")
		b.lease("")
		b.put(with(b.store.Snapshot().Eval(nil, "new"), structs.EvalStatusCancelled))
		if err := b.Ack("new", token); err != nil {
			b.Fatal(err)
		}
		b.explained(b.explains("of-b"))
		b.lease("")
	})
}
