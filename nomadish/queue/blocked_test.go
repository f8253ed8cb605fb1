package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// blockedEval waits for room: class big could not help, class small could.
func blockedEval(id, job string, decidedAt uint64) *structs.Evaluation {
	e := eval(id, job, 50)
	e.Status, e.SnapshotIndex = structs.EvalStatusBlocked, decidedAt
	e.ClassEligibility = map[string]bool{"small": true, "big": false}
	return e
}

func (b *bed) register(n *structs.Node) uint64 {
	b.Helper()
	index := b.Put(b, &structs.NodeRegisterEntry{Node: n, Time: time.Now().UnixNano()})
	synctest.Wait()
	return index
}

func TestBlockedWakes(t *testing.T) {
	f := func(name string, wakes bool, cause func(b *bed)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bed) {
				for _, n := range []*structs.Node{node("s", "small"), node("b", "big")} {
					b.register(n)
					b.place(n.ID, "busy-"+n.ID)
				}
				off := node("off", "small")
				off.SchedulingEligibility = structs.NodeIneligible
				b.register(off)
				b.put(blockedEval("1", "a", b.store.LatestIndex()))
				b.lease("")
				if s := b.Stats(); s.Blocked != 1 {
					b.Fatalf("stats: %+v", s)
				}
				cause(b)
				if !wakes {
					b.lease("")
					b.want("1", structs.EvalStatusBlocked)
					return
				}
				b.tried("1")
				b.lease("")
			})
		})
	}
	f("nothing", false, func(*bed) {})
	f("a node that can help comes", true, func(b *bed) { b.register(node("n", "small")) })
	f("a node of a class not met yet comes", true, func(b *bed) { b.register(node("n", "new")) })
	f("a node that cannot help comes", false, func(b *bed) { b.register(node("n", "big")) })
	f("a node becomes eligible", true, func(b *bed) {
		b.Put(b, &structs.NodeEligibilityEntry{NodeID: "off", Eligibility: structs.NodeEligible})
	})
	f("a node goes down", false, func(b *bed) {
		b.Put(b, &structs.NodeStatusEntry{NodeIDs: []string{"s"}, Status: structs.NodeStatusDown})
	})
	f("a node comes back", true, func(b *bed) {
		for _, s := range []string{structs.NodeStatusDown, structs.NodeStatusReady} {
			b.Put(b, &structs.NodeStatusEntry{NodeIDs: []string{"s"}, Status: s})
		}
	})
	f("a node grows", true, func(b *bed) {
		n := node("s", "small")
		n.NodeResources.Memory.MemoryMB = 5000
		b.register(n)
	})
	f("a node states other slots", true, func(b *bed) {
		n := node("s", "small")
		n.NodeResources.Slots = map[string]int{structs.SlotBatch: 1}
		b.register(n)
	})
	f("an allocation ends", true, func(b *bed) { b.end("busy-s") })
	f("an allocation ends where it does not help", false, func(b *bed) { b.end("busy-b") })
	f("a plan stops an allocation", true, func(b *bed) {
		b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
			EvalID: "p", Stop: []*structs.AllocStop{{AllocID: structs.DeriveID("busy-s", 0), DesiredStatus: structs.AllocDesiredStop}},
		}}})
	})
	f("preemption is switched on", true, func(b *bed) {
		config := structs.DefaultSchedulerConfiguration()
		b.Put(b, &structs.SchedulerConfigEntry{Config: config})
		b.lease("")
		config.PreemptionConfig.ServiceSchedulerEnabled = true
		b.Put(b, &structs.SchedulerConfigEntry{Config: config})
	})
	f("a new leader knows nothing of before", true, func(b *bed) {
		b.stop()
		b.start()
	})
}

// lease takes the blocked evaluation that must be tried first; "": none may be there.
func (b *bed) lease(want string) *Lease {
	b.Helper()
	synctest.Wait()
	t, again := b.Next(b.store.LatestIndex(), nil)
	got := ""
	if t != nil {
		got = t.Eval.ID
	}
	if got != want || again {
		b.Fatalf("leased %q (again: %v), want %q", got, again, want)
	}
	return t
}

// tried has the first be tried without success. Nothing of that is stored.
func (b *bed) tried(id string) {
	b.Helper()
	before := b.store.LatestIndex()
	b.Tried(b.lease(id), b.store.LatestIndex(), b.store.Snapshot().Eval(nil, id))
	synctest.Wait()
	if now := b.store.LatestIndex(); now != before {
		b.Fatalf("%d entries were written", now-before)
	}
}

// place commits an allocation named by its batch's seed.
func (b *bed) place(nodeID, seed string) {
	b.Helper()
	b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
		EvalID: "e-" + seed, Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: "busy", Group: "g", Seed: seed, EvalID: "e-" + seed,
			Nodes: []structs.PlacedNode{{ID: nodeID, Name: nodeID}}, Instances: []structs.Instance{{}},
		}},
	}}})
	synctest.Wait()
}

// end reports that it has finished.
func (b *bed) end(seed string) {
	b.Helper()
	b.Put(b, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
		{ID: structs.DeriveID(seed, 0), ClientStatus: structs.AllocClientComplete},
	}})
	synctest.Wait()
}

// TestBlockedUntil: a request that is to be decided again at a time is, though nothing came
// free; room that comes before has it tried as well.
func TestBlockedUntil(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		in := func(id string, d time.Duration) *structs.Evaluation {
			e := blockedEval(id, "a", b.store.LatestIndex())
			e.WaitUntil = time.Now().Add(d)
			return e
		}
		b.put(in("1", time.Minute))
		b.lease("")
		time.Sleep(time.Minute + time.Second)
		lease := b.lease("1")
		again := in("1", time.Minute)
		b.Tried(lease, b.store.LatestIndex(), again)
		b.lease("")
		b.register(node("n", "small"))
		b.Tried(b.lease("1"), b.store.LatestIndex(), again)
		b.lease("")
		time.Sleep(time.Minute)
		b.tried("1")
		b.put(in("3", -time.Minute))
		b.tried("3")
	})
}

// TestExplained: a request that is to be explained is leased for that when its time has come, and nothing is to be decided. When it is to be decided again
// stays as it was, and so does what it has been tried on.
func TestExplained(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		e := blockedEval("1", "a", b.store.LatestIndex())
		e.WaitUntil = time.Now().Add(time.Minute)
		b.put(e)
		b.register(node("n", "small"))
		lease := b.lease("1")
		lease.ExplainAt = time.Now().Add(5 * time.Second)
		b.Tried(lease, b.store.LatestIndex(), e)
		b.lease("")
		time.Sleep(6 * time.Second)
		lease = b.lease("1")
		if !lease.Explain {
			b.Fatal("it is to be decided, though nothing came free and its time has not come")
		}
		lease.ExplainAt = time.Now().Add(5 * time.Second)
		later := e.Copy()
		later.WaitUntil = time.Now().Add(time.Hour)
		b.Tried(lease, b.store.LatestIndex(), later)
		b.lease("")
		b.register(node("m", "small")) // what is decided is explained with it
		if lease = b.lease("1"); lease.Explain {
			b.Fatal("a node came, and it is to be explained alone")
		}
		lease.ExplainAt = time.Time{}
		b.Tried(lease, b.store.LatestIndex(), e)
		time.Sleep(30 * time.Second)
		b.lease("")
		time.Sleep(30 * time.Second)
		if lease = b.lease("1"); lease.Explain {
			b.Fatal("its time has come, and it is to be explained alone")
		}
	})
}

// TestExplainedIsNotTried: room comes free while a request is being explained on a state that has it already: the request is tried on it all the same, once
// its explanation is stored.
func TestExplainedIsNotTried(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		e := blockedEval("1", "a", b.store.LatestIndex())
		b.put(e)
		b.register(node("n", "small"))
		lease := b.lease("1")
		lease.ExplainAt = time.Now().Add(5 * time.Second)
		b.Tried(lease, b.store.LatestIndex(), e)
		time.Sleep(6 * time.Second)
		if lease = b.lease("1"); !lease.Explain {
			b.Fatal("it is to be decided, though nothing came free")
		}
		explained := blockedEval("1", "a", b.register(node("m", "small")))
		b.Planned(lease, explained.SnapshotIndex, explained, sharesNow{})
		b.put(explained)
		b.Answered(lease, false, false)
		if lease = b.lease("1"); lease.Explain {
			b.Fatal("a node came, and it is to be explained alone")
		}
	})
}

// TestExplainedAfterAPart: what is left of a request of which a plan places a part, decided without counting why the rest waits, is explained when its time has come.
func TestExplainedAfterAPart(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.put(blockedEval("1", "a", b.store.LatestIndex()))
		b.register(node("n", "small"))
		lease := b.lease("1")
		lease.ExplainAt = time.Now().Add(5 * time.Second)
		left := blockedEval("1", "a", b.store.LatestIndex())
		b.Planned(lease, left.SnapshotIndex, left, sharesNow{})
		b.put(left)
		b.Answered(lease, false, false)
		b.lease("")
		time.Sleep(6 * time.Second)
		if lease = b.lease("1"); !lease.Explain {
			b.Fatal("its time has come, and it is to be decided, though nothing came free")
		}
		lease.ExplainAt = time.Time{}
		b.Planned(lease, left.SnapshotIndex, left, sharesNow{})
		explained := left.Copy()
		explained.ModifyTime++
		b.put(explained)
		b.Answered(lease, false, false)
		time.Sleep(time.Minute)
		b.lease("")
	})
}

// TestBlockedOneOfAJob: the newest blocked evaluation of a job stands for all.
func TestBlockedOneOfAJob(t *testing.T) {
	run(t, func(b *bed) {
		b.put(blockedEval("1", "a", b.store.LatestIndex()))
		b.put(blockedEval("2", "a", b.store.LatestIndex()))
		b.want("1", structs.EvalStatusCancelled)
		b.register(node("n", "small"))
		b.tried("2")
		b.lease("")
	})
}

// TestMissedWake: room comes free after the state that an evaluation was decided on,
// but before it is stored as blocked.
func TestMissedWake(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50), eval("2", "b", 40))
		decidedAt := b.store.LatestIndex()
		one, two := b.next("1"), b.next("2")
		b.register(node("n", "small"))
		b.put(blockedEval("1", "a", decidedAt), blockedEval("2", "b", b.store.LatestIndex()))
		b.lease("") // its worker has not answered
		for id, token := range map[string]string{"1": one, "2": two} {
			if err := b.Ack(id, token); err != nil {
				b.Fatal(err)
			}
		}
		b.tried("1")
		b.lease("")
	})
}

// TestMissedWakeAcrossLeaders: the room came free under the last leader, the evaluation
// is stored as blocked under this one.
func TestMissedWakeAcrossLeaders(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		decidedAt := b.store.LatestIndex()
		b.next("1")
		b.register(node("n", "small"))
		b.stop()
		b.start()
		synctest.Wait()
		b.put(blockedEval("1", "a", decidedAt))
		b.tried("1")
	})
}

// TestForgottenReleases: when more classes than are remembered had room, nothing is missed.
func TestForgottenReleases(t *testing.T) {
	f := newFreed()
	for i := range maxFreed + 10 {
		f.note(fmt.Sprint("class-", i), uint64(i+1)) // small
	}
	none := map[string]bool{}
	for i := range maxFreed + 10 {
		none[fmt.Sprint("class-", i)] = i == 3
	}
	if !f.missed(&structs.Evaluation{ID: "1", SnapshotIndex: 2, ClassEligibility: none}) {
		t.Fatal("a release that was forgotten was missed")
	}
	if f.missed(&structs.Evaluation{ID: "2", SnapshotIndex: 10, ClassEligibility: none}) {
		t.Fatal("woken by what came free before")
	}
	if n := f.latest.Len(); n != maxFreed || len(f.at) != n {
		t.Fatalf("%d releases remembered, %d named", n, len(f.at))
	}
}

// TestHopelessWhenDue: a request whose time has come, and which is hopeless, is not tried, and is looked at when it is due again.
func TestHopelessWhenDue(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		e := b.submitted(b, "default", "waits", "ada", 50, 100)
		b.put(e)
		left := *e
		left.WaitUntil = time.Now().Add(time.Minute)
		lease, _ := b.Next(b.store.LatestIndex(), nil)
		b.Tried(lease, b.store.LatestIndex(), &left)
		looks := 0
		next := func(none bool) *Lease {
			b.Helper()
			synctest.Wait()
			lease, again := b.Next(b.store.LatestIndex(), func(r Untried) (bool, time.Time) {
				looks++
				return none && r.Due, time.Now().Add(time.Hour)
			})
			if again {
				b.Fatal("another pass is needed")
			}
			return lease
		}
		time.Sleep(time.Minute)
		if next(true) != nil || looks != 1 {
			b.Fatalf("it was tried, or looked at %d times", looks)
		}
		time.Sleep(59 * time.Minute)
		if next(true) != nil || looks != 1 {
			b.Fatalf("it was tried, or looked at %d times before it was due again", looks)
		}
		time.Sleep(time.Minute)
		if next(false) == nil || looks != 2 {
			b.Fatalf("it was not tried when it was due again, or looked at %d times", looks)
		}
	})
}
