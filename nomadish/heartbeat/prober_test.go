package heartbeat

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// seen are probers that tests make up: what is not named is heard by both.
type seen struct {
	mu                sync.Mutex
	deaf, mute        map[string]bool // not reached over the session; not by gossip
	outside           map[string]bool // do not gossip
	failed            map[string]bool // as gossip says by itself
	old               bool            // some server does not know what is agreed
	checks            map[string]int
	running, together int
}

func newSeen() *seen {
	return &seen{deaf: map[string]bool{}, mute: map[string]bool{}, outside: map[string]bool{}, failed: map[string]bool{}, checks: map[string]int{}}
}

func (s *seen) set(of map[string]bool, to bool, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		of[id] = to
	}
}

func (s *seen) Gossips(id string) (member, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outside[id], s.failed[id]
}

func (s *seen) Agreed() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.old }

func (s *seen) Reach(ctx context.Context, id string) (session, gossip bool) {
	s.mu.Lock()
	s.checks[id]++
	s.running++
	s.together = max(s.together, s.running)
	s.mu.Unlock()
	look := func() (bool, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.deaf[id], !s.mute[id]
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	defer func() { s.mu.Lock(); s.running--; s.mu.Unlock() }()
	for {
		now, heard := look()
		if session, gossip = session || now, gossip || heard; session && gossip {
			return session, gossip
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return session, gossip
		}
	}
}

// witnessed is run with probers, and with nodes that beat for as long as their sessions live.
func witnessed(t *testing.T, opts Options, ids []string, f func(b *bed, s *seen)) {
	t.Helper()
	s := newSeen()
	opts.Probers = s
	run(t, opts, func(b *bed) {
		b.register(ids...)
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for _, id := range ids {
			wg.Go(func() {
				for ctx.Err() == nil {
					s.mu.Lock()
					beats := !s.deaf[id]
					s.mu.Unlock()
					if beats {
						b.Beat(id)
					}
					select {
					case <-time.After(1500 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			})
		}
		synctest.Wait()
		f(b, s)
	})
}

func (b *bed) node(id string) *structs.Node { return b.store.Snapshot().Node(nil, id) }

func (b *bed) told(id, message string) int {
	n := 0
	for _, e := range b.node(id).Events {
		if e.Message == message {
			n++
		}
	}
	return n
}

const gossipLost = "Gossip of the node is not heard any more, RPC is: is its gossip port cut off (UDP and TCP)?"

func TestBothLost(t *testing.T) {
	for first, lose := range map[string]func(b *bed, s *seen){
		"the session":   func(b *bed, _ *seen) { b.Suspect("n") },
		"the gossip":    func(b *bed, s *seen) { s.set(s.failed, true, "n"); b.Suspect("n") },
		"both, in turn": func(b *bed, _ *seen) { b.Suspect("n"); b.Suspect("n") },
	} {
		t.Run(first, func(t *testing.T) {
			witnessed(t, Options{}, []string{"n", "other"}, func(b *bed, s *seen) {
				s.set(s.deaf, true, "n")
				s.set(s.mute, true, "n")
				lose(b, s)
				time.Sleep(2*time.Second - time.Millisecond)
				b.want("n", structs.NodeStatusReady)
				time.Sleep(2 * time.Millisecond)
				b.want("n", structs.NodeStatusDown)
				b.want("other", structs.NodeStatusReady)
				if b.told("n", BothLost) != 1 {
					b.Fatalf("events: %v", b.node("n").Events)
				}
			})
		})
	}
}

// TestGossipLostMeanwhile: a node that has answered by gossip in the check that would have its work kept, and is lost there
// before that is over, or while it is committed, is down.
func TestGossipLostMeanwhile(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.deaf, true, "n")
		b.Suspect("n")
		time.Sleep(6 * time.Second) // the third check has begun
		b.want("n", structs.NodeStatusReady)
		s.set(s.mute, true, "n")
		s.set(s.failed, true, "n")
		b.Suspect("n")
		time.Sleep(4 * time.Second)
		b.want("n", structs.NodeStatusDown)
	})
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.deaf, true, "n")
		b.meanwhile = func() { s.set(s.mute, true, "n"); s.set(s.failed, true, "n"); b.Suspect("n") }
		b.Suspect("n")
		time.Sleep(12 * time.Second)
		b.want("n", structs.NodeStatusDown)
	})
}

// TestLateButThere: what answers within the time of the check is well.
func TestLateButThere(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.deaf, true, "n")
		s.set(s.mute, true, "n")
		b.Suspect("n")
		time.Sleep(1900 * time.Millisecond)
		s.set(s.deaf, false, "n")
		s.set(s.mute, false, "n")
		time.Sleep(time.Minute)
		b.want("n", structs.NodeStatusReady)
		if len(b.batches) > 0 || len(b.node("n").Events) > 0 {
			b.Fatalf("something was declared: %v", b.node("n").Events)
		}
	})
}

// TestGossipLost: a node that is not heard by gossip alone is warned of, once, and stays ready.
func TestGossipLost(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.mute, true, "n")
		for range 3 {
			b.Suspect("n")
			time.Sleep(10 * time.Second)
		}
		b.want("n", structs.NodeStatusReady)
		if b.told("n", gossipLost) != 1 {
			b.Fatalf("events: %v", b.node("n").Events)
		}
		s.set(s.mute, false, "n")
		b.Returned("n")
		b.Returned("n")
		synctest.Wait()
		if b.told("n", "Gossip of the node is heard again") != 1 {
			b.Fatalf("events: %v", b.node("n").Events)
		}
	})
}

// TestSessionLost: a node that gossip alone hears is disconnected after a while, its work kept for as long as is said; and ready
// when it is back.
func TestSessionLost(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.deaf, true, "n")
		b.Suspect("n")
		time.Sleep(3 * time.Second)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(5 * time.Second)
		b.want("n", structs.NodeStatusDisconnected)
		n := b.node("n")
		if kept := time.Unix(n.KeptUntil, 0).Sub(time.Unix(n.StatusUpdatedAt, 0)); kept != 5*time.Minute {
			b.Fatalf("kept for %s", kept)
		}
		s.set(s.deaf, false, "n")
		b.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusReady})
		time.Sleep(time.Hour)
		b.want("n", structs.NodeStatusReady)
		if b.node("n").KeptUntil != 0 {
			b.Fatal("it is kept for nothing")
		}
	})
}

// TestSessionThenGossipLost: a disconnected node that gossip loses too is down, at once.
func TestSessionThenGossipLost(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.deaf, true, "n")
		b.Suspect("n")
		time.Sleep(10 * time.Second)
		b.want("n", structs.NodeStatusDisconnected)
		s.set(s.mute, true, "n")
		s.set(s.failed, true, "n")
		b.Suspect("n")
		time.Sleep(3 * time.Second)
		b.want("n", structs.NodeStatusDown)
	})
}

// TestKeptForItsTime: work whose group says nothing is lost when the time is over for which it was kept.
func TestKeptForItsTime(t *testing.T) {
	witnessed(t, Options{Liveness: Liveness{Keep: time.Minute}}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.deaf, true, "n")
		b.Suspect("n")
		time.Sleep(10 * time.Second)
		b.want("n", structs.NodeStatusDisconnected)
		time.Sleep(2 * time.Minute)
		b.want("n", structs.NodeStatusDown)
	})
}

// TestNotAgreed: with servers that do not know what kept work is, heartbeats alone decide.
func TestNotAgreed(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.mu.Lock()
		s.old = true
		s.mu.Unlock()
		s.set(s.deaf, true, "n")
		time.Sleep(12 * time.Second)
		b.want("n", structs.NodeStatusDown)
	})
}

// TestOutside: nodes that do not gossip are judged by heartbeats alone, at their time.
func TestOutside(t *testing.T) {
	witnessed(t, Options{}, []string{"n"}, func(b *bed, s *seen) {
		s.set(s.outside, true, "n")
		s.set(s.deaf, true, "n")
		b.Beat("n")
		b.Suspect("n")
		time.Sleep(6*time.Second - time.Millisecond)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Millisecond)
		b.want("n", structs.NodeStatusDown)
		if s.checks["n"] > 0 {
			b.Fatal("it was checked")
		}
	})
}

// TestAnswersWithoutHeartbeats: who answers pings and sends no heartbeats is waited for, but not for ever.
func TestAnswersWithoutHeartbeats(t *testing.T) {
	s := newSeen()
	run(t, Options{Probers: s}, func(b *bed) {
		b.register("n")
		b.Beat("n")
		time.Sleep(20 * time.Second)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(30 * time.Second)
		b.want("n", structs.NodeStatusDown)
	})
	run(t, Options{Probers: s}, func(b *bed) { // nor by a leader that it has never sent one
		b.register("n")
		time.Sleep(50 * time.Second)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(30 * time.Second)
		b.want("n", structs.NodeStatusDown)
		b.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusReady})
		b.Beat("n") // it is well again: what was reported of it before is forgotten
		s.set(s.deaf, true, "n")
		time.Sleep(15 * time.Second)
		b.want("n", structs.NodeStatusDisconnected)
	})
}

// TestLeaderFindsFailed: a new leader looks for those that gossip has lost before it led.
func TestLeaderFindsFailed(t *testing.T) {
	s := newSeen()
	run(t, Options{Probers: s}, func(b *bed) {
		b.register("n")
		b.stop()
		s.set(s.failed, true, "n")
		s.set(s.deaf, true, "n")
		s.set(s.mute, true, "n")
		b.start()
		time.Sleep(3 * time.Second)
		b.want("n", structs.NodeStatusDown)
	})
}

// TestKeptThenDead: a node that is kept as gossip hears it, and that gossip loses when nobody can note it, is down as soon as one can:
// its work is not kept for its time, which may be long.
func TestKeptThenDead(t *testing.T) {
	f := func(name string, unnoticed func(b *bed, die func())) {
		t.Run(name, func(t *testing.T) {
			witnessed(t, Options{}, []string{"n", "other"}, func(b *bed, s *seen) {
				s.set(s.deaf, true, "n")
				b.Suspect("n")
				time.Sleep(10 * time.Second)
				b.want("n", structs.NodeStatusDisconnected)
				unnoticed(b, func() {
					s.set(s.mute, true, "n")
					s.set(s.failed, true, "n")
					b.Suspect("n")
				})
				time.Sleep(40 * time.Second) // no longer than the failover time, and a check
				b.want("n", structs.NodeStatusDown)
				if b.told("n", BothLost) != 1 {
					b.Fatalf("events: %v", b.node("n").Events)
				}
			})
		})
	}
	f("nobody leads", func(b *bed, die func()) {
		b.stop()
		die()
		b.start()
	})
	f("the leader stands still", func(b *bed, die func()) {
		die()
		b.mu.Lock()
		b.alive = b.alive.Add(-time.Minute) // before the check is over
		b.mu.Unlock()
	})
}

// TestWaitedForAfterACheck: a node whose heartbeat was missed, and whose check comes to nothing, is waited for still.
func TestWaitedForAfterACheck(t *testing.T) {
	f := func(name string, meanwhile func(b *bed, s *seen)) {
		t.Run(name, func(t *testing.T) {
			s := newSeen()
			run(t, Options{Probers: s}, func(b *bed) {
				b.register("n")
				b.Beat("n")
				s.set(s.deaf, true, "n")
				time.Sleep(7 * time.Second) // its time of 6 s is over, and it is being checked for 2 s
				s.mu.Lock()
				checks := s.checks["n"]
				s.mu.Unlock()
				if checks != 1 {
					b.Fatalf("%d checks", checks)
				}
				b.want("n", structs.NodeStatusReady)
				meanwhile(b, s)
				time.Sleep(30 * time.Second)
				b.want("n", structs.NodeStatusDown)
			})
		})
	}
	f("it leaves the gossip in good order", func(_ *bed, s *seen) { s.set(s.outside, true, "n") })
	f("the leader stands still", func(b *bed, s *seen) {
		s.set(s.mute, true, "n")
		b.mu.Lock()
		defer b.mu.Unlock()
		b.alive = b.alive.Add(-time.Minute)
	})
}

// TestNewLeaderProbesBoth: a new leader probes a node that it has never heard, and that gossips, by both ways before it says that it is
// lost, as one does that has heard it.
func TestNewLeaderProbesBoth(t *testing.T) {
	f := func(name string, lose func(s *seen), status, event string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			s := newSeen()
			run(t, Options{Probers: s}, func(b *bed) {
				b.register("n")
				b.Beat("n")
				b.stop() // and with it the server that its session is with
				lose(s)
				b.start()
				time.Sleep(30*time.Second - time.Millisecond) // the failover time
				b.want("n", structs.NodeStatusReady)
				time.Sleep(8 * time.Second) // 5 s of silence, in checks of 2 s
				b.want("n", status)
				if event != "" && b.told("n", event) != 1 {
					b.Fatalf("events: %v", b.node("n").Events)
				}
			})
		})
	}
	f("deaf for RPC, heard by gossip", func(s *seen) { s.set(s.deaf, true, "n") }, structs.NodeStatusDisconnected, rpcLost)
	f("heard by neither", func(s *seen) { s.set(s.deaf, true, "n"); s.set(s.mute, true, "n") }, structs.NodeStatusDown, BothLost)
	f("it does not gossip", func(s *seen) { s.set(s.outside, true, "n") }, structs.NodeStatusDown, Missed)
	f("it answers", func(*seen) {}, structs.NodeStatusReady, "")
}

// TestPoolShrinks: nodes that were granted long times between heartbeats, as they were many, are not silent because the others have gone
// in good order since: one that is lost then is declared as ever.
func TestPoolShrinks(t *testing.T) {
	const left, perSecond = 40, 1
	ids := many(2*left + 1)
	s := newSeen()
	run(t, Options{Probers: s, MaxPerSecond: perSecond, Failover: 10 * time.Minute}, func(b *bed) {
		b.register(ids...)
		random := rand.New(rand.NewPCG(1, 2)) // a test's
		due := make([]time.Time, len(ids))
		beat := func(some []int, until time.Time) { // as clients do: see client/heartbeat.go
			for ; time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
				for _, i := range some {
					if !time.Now().Before(due[i]) {
						due[i] = time.Now().Add(time.Duration((0.5 + 0.2*random.Float64()) * float64(b.Beat(ids[i]))))
					}
				}
			}
		}
		all := make([]int, len(ids))
		for i := range all {
			all[i] = i
		}
		beat(all, time.Now().Add(10*time.Minute))
		s.set(s.outside, true, ids[:left]...)
		b.must(&structs.NodeStatusEntry{NodeIDs: ids[:left], Status: structs.NodeStatusDown})
		lost := ids[2*left]
		s.set(s.deaf, true, lost)
		s.set(s.mute, true, lost)
		b.Suspect(lost)
		beat(all[left:2*left], time.Now().Add(3*time.Second))
		b.want(lost, structs.NodeStatusDown)
		if !b.MassFailure().IsZero() {
			b.Fatal("those that are left count as silent")
		}
		beat(all[left:2*left], time.Now().Add(10*time.Minute))
		for _, i := range all[left : 2*left] {
			b.want(ids[i], structs.NodeStatusReady)
		}
	})
}

// TestWaitedForIsNoSuspect: nodes that were declared lost, and are waited for by their groups' word, are suspect no more: one that is
// lost much later is declared as ever.
func TestWaitedForIsNoSuspect(t *testing.T) {
	ids := many(20)
	witnessed(t, Options{}, ids, func(b *bed, s *seen) {
		for _, id := range ids[:8] {
			b.place(id, time.Hour)
			s.set(s.deaf, true, id)
			s.set(s.mute, true, id)
			s.set(s.failed, true, id)
			b.Suspect(id)
			time.Sleep(time.Minute)
			b.want(id, structs.NodeStatusDisconnected)
			if b.told(id, BothAwaited) != 1 || b.told(id, BothLost) != 0 {
				b.Fatalf("events: %v", b.node(id).Events)
			}
		}
		s.set(s.deaf, true, ids[8])
		s.set(s.mute, true, ids[8])
		b.Suspect(ids[8])
		time.Sleep(3 * time.Second)
		b.want(ids[8], structs.NodeStatusDown)
	})
}
