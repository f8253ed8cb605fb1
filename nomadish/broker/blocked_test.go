package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

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
	index := b.must(b, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: n, Time: time.Now().UnixNano()})
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
				b.next("")
				if s := b.Stats(); s.Blocked != 1 {
					b.Fatalf("stats: %+v", s)
				}
				cause(b)
				if !wakes {
					b.next("")
					b.want("1", structs.EvalStatusBlocked)
					return
				}
				b.done("1", b.next("1"))
			})
		})
	}
	f("nothing", false, func(*bed) {})
	f("a node that can help comes", true, func(b *bed) { b.register(node("n", "small")) })
	f("a node of a class not met yet comes", true, func(b *bed) { b.register(node("n", "new")) })
	f("a node that cannot help comes", false, func(b *bed) { b.register(node("n", "big")) })
	f("a node becomes eligible", true, func(b *bed) {
		b.must(b, structs.LogNodeEligibility, &structs.NodeEligibilityEntry{NodeID: "off", Eligibility: structs.NodeEligible})
	})
	f("a node goes down", false, func(b *bed) {
		b.must(b, structs.LogNodeStatus, &structs.NodeStatusEntry{NodeIDs: []string{"s"}, Status: structs.NodeStatusDown})
	})
	f("a node comes back", true, func(b *bed) {
		for _, s := range []string{structs.NodeStatusDown, structs.NodeStatusReady} {
			b.must(b, structs.LogNodeStatus, &structs.NodeStatusEntry{NodeIDs: []string{"s"}, Status: s})
		}
	})
	f("a node grows", true, func(b *bed) {
		n := node("s", "small")
		n.NodeResources.Memory.MemoryMB = 5000
		b.register(n)
	})
	f("an allocation ends", true, func(b *bed) { b.end("busy-s") })
	f("an allocation ends where it does not help", false, func(b *bed) { b.end("busy-b") })
	f("a plan stops an allocation", true, func(b *bed) {
		b.must(b, structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
			EvalID: "p", Stop: []*structs.AllocStop{{AllocID: structs.DeriveID("busy-s", 0), DesiredStatus: structs.AllocDesiredStop}},
		}}})
	})
	f("preemption is switched on", true, func(b *bed) {
		config := structs.DefaultSchedulerConfiguration()
		b.must(b, structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{Config: config})
		b.next("")
		config.PreemptionConfig.ServiceSchedulerEnabled = true
		b.must(b, structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{Config: config})
	})
	f("a new leader knows nothing of before", true, func(b *bed) {
		b.put(eval("noise", "z", 10))
		b.stop()
		b.start()
		b.done("noise", b.nextOf("1", "noise"))
	})
}

// nextOf takes the second of two that are ready and gives the first back to the queue.
func (b *bed) nextOf(first, second string) (token string) {
	b.Helper()
	t := b.next(first)
	token = b.next(second)
	if err := b.Nack(first, t); err != nil {
		b.Fatal(err)
	}
	time.Sleep(time.Second)
	return token
}

// place commits an allocation named by its batch's seed.
func (b *bed) place(nodeID, seed string) {
	b.Helper()
	b.must(b, structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
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
	b.must(b, structs.LogAllocClient, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
		{ID: structs.DeriveID(seed, 0), ClientStatus: structs.AllocClientComplete},
	}})
	synctest.Wait()
}

// TestBlockedUntil: an evaluation that is to be decided again at a time is, though
// nothing came free; one that room wakes before is decided at once, and once.
func TestBlockedUntil(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		in := func(id string, d time.Duration) *structs.Evaluation {
			e := blockedEval(id, "a", b.store.LatestIndex())
			e.WaitUntil = time.Now().Add(d)
			return e
		}
		b.put(in("1", time.Minute))
		b.next("")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		b.done("1", b.next("1"))

		b.put(in("2", time.Minute))
		b.next("")
		b.register(node("n", "small"))
		b.done("2", b.next("2"))
		time.Sleep(time.Hour)
		synctest.Wait()
		b.next("")

		b.put(in("3", -time.Minute))
		b.done("3", b.next("3"))
	})
}

// TestBlockedOneOfAJob: the newest blocked evaluation of a job stands for all.
func TestBlockedOneOfAJob(t *testing.T) {
	run(t, func(b *bed) {
		b.put(blockedEval("1", "a", b.store.LatestIndex()))
		b.put(blockedEval("2", "a", b.store.LatestIndex()))
		b.want("1", structs.EvalStatusCancelled)
		b.register(node("n", "small"))
		b.done("2", b.next("2"))
		b.next("")
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
		for id, token := range map[string]string{"1": one, "2": two} {
			if err := b.Ack(id, token); err != nil && id == "2" {
				b.Fatal(err)
			}
		}
		b.want("2", structs.EvalStatusBlocked)
		b.done("1", b.next("1"))
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
		b.done("1", b.next("1"))
	})
}

// TestWokenWhileHeld: an evaluation is stored as blocked by its worker's plan and woken
// again before the worker has acknowledged it. It must be given out once more.
func TestWokenWhileHeld(t *testing.T) {
	run(t, func(b *bed) {
		b.put(eval("1", "a", 50))
		token := b.next("1")
		b.put(blockedEval("1", "a", b.store.LatestIndex()))
		b.register(node("n", "small"))
		b.want("1", structs.EvalStatusPending)
		b.next("")
		if err := b.Ack("1", token); err != nil {
			b.Fatal(err)
		}
		b.done("1", b.next("1"))
		b.next("")
	})
}

// TestBlockedModel compares the groups with a list that is scanned.
func TestBlockedModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBlocked()
		type release struct {
			class string
			index uint64
		}
		waiting := map[string]*structs.Evaluation{}
		var releases []release
		index := uint64(100)
		classes := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			index++
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				e := &structs.Evaluation{
					ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")), EscapedComputedClass: rapid.IntRange(0, 9).Draw(t, "escaped") == 0,
					ClassEligibility: rapid.MapOfN(classes, rapid.Bool(), 0, 3).Draw(t, "eligible"),
					SnapshotIndex:    index - uint64(rapid.IntRange(1, 6).Draw(t, "age")), //nolint:gosec // small
				}
				want := false
				for _, r := range releases {
					want = want || (r.index > e.SnapshotIndex && helps(e, r.class))
				}
				if got := b.add(e); got != want {
					t.Fatalf("add %+v after %v: missed %v, want %v", e, releases, got, want)
				}
				if delete(waiting, e.ID); !want {
					waiting[e.ID] = e
				}
			case 1:
				r := release{classes.Draw(t, "class"), index}
				releases = append(releases, r)
				woken := map[string]bool{}
				for _, e := range b.free(r.class, r.index) {
					woken[e.ID] = true
				}
				for id, e := range waiting {
					if helps(e, r.class) != woken[id] {
						t.Fatalf("free %s: %s woken: %v", r.class, id, woken[id])
					}
					if woken[id] {
						delete(waiting, id)
					}
				}
			case 2:
				id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
				b.remove(id)
				delete(waiting, id)
			}
			if b.len() != len(waiting) {
				t.Fatalf("%d wait, want %d", b.len(), len(waiting))
			}
		}
	})
}

// TestForgottenReleases: when more classes than are remembered had room, nothing is missed.
func TestForgottenReleases(t *testing.T) {
	b := newBlocked()
	for i := range maxFreed + 10 {
		b.free(fmt.Sprint("class-", i), uint64(i+1)) //nolint:gosec // small
	}
	none := map[string]bool{}
	for i := range maxFreed + 10 {
		none[fmt.Sprint("class-", i)] = i == 3
	}
	if !b.add(&structs.Evaluation{ID: "1", SnapshotIndex: 2, ClassEligibility: none}) {
		t.Fatal("a release that was forgotten was missed")
	}
	if b.add(&structs.Evaluation{ID: "2", SnapshotIndex: 10, ClassEligibility: none}) {
		t.Fatal("woken by what came free before")
	}
	if n := b.freed.Len(); n != maxFreed || len(b.at) != n {
		t.Fatalf("%d releases remembered, %d named", n, len(b.at))
	}
}
