package heartbeat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// bed is running timers over a state, in a bubble of virtual time.
type bed struct {
	*testing.T
	*Timers
	*testcluster.Log
	store   *state.Store
	batches []int // nodes of each entry that marks some down
	stop    func()
	// meanwhile is done while the first entry is committed that disconnects nodes.
	meanwhile func()
}

func newBed(t *testing.T, opts Options, buffer int) *bed {
	l := testcluster.New(10, state.Options{EventBuffer: buffer})
	b := &bed{T: t, Log: l, store: l.Store}
	l.Committed = func(e testcluster.Entry) {
		p, _ := e.Payload.(*structs.NodeStatusEntry)
		switch {
		case p == nil:
		case p.Status == structs.NodeStatusDown:
			b.batches = append(b.batches, len(p.NodeIDs))
		case p.Status == structs.NodeStatusDisconnected && b.meanwhile != nil:
			b.meanwhile()
			b.meanwhile = nil
		}
	}
	opts.NewID = func() string { return "seed" }
	b.Timers = New(opts, b)
	return b
}

func (b *bed) must(payload any) {
	b.Helper()
	b.Put(b, payload)
	synctest.Wait()
}

func run(t *testing.T, opts Options, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, opts, 0)
		b.start()
		defer func() { b.stop() }()
		f(b)
	})
}

func (b *bed) start() {
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.Timers.Run(ctx, b.store) })
	b.stop = func() { cancel(); wg.Wait() }
	synctest.Wait()
}

func (b *bed) register(ids ...string) {
	b.Helper()
	for _, id := range ids {
		b.must(&structs.NodeRegisterEntry{Node: testcluster.Node(id, 1000)})
	}
}

// place has a node run an instance that nothing stands for when its connection is lost: for so long, or never (0).
func (b *bed) place(node string, lostAfter time.Duration) {
	b.Helper()
	group := &structs.TaskGroup{Name: "g", Count: 1, Disconnect: &structs.DisconnectStrategy{LostAfter: lostAfter}}
	job := &structs.Job{Namespace: "default", ID: "on-" + node, Type: structs.JobTypeService, TaskGroups: []*structs.TaskGroup{group}}
	b.must(&structs.JobRegisterEntry{Job: job})
	version := b.store.Snapshot().Job(nil, "default", job.ID).Version
	batch := testcluster.Batch(job.ID, node, "s-"+node, 1)
	batch.JobVersion = version
	b.must(testcluster.Place("", 0, batch))
}

func (b *bed) want(id, status string) {
	b.Helper()
	synctest.Wait()
	if got := b.store.Snapshot().Node(nil, id).Status; got != status {
		b.Fatalf("node %s is %s, want %s", id, got, status)
	}
}

func TestLostAndBack(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.register("n", "other")
		for range 20 { // both say that they live
			ttl := b.Beat("n")
			if ttl < 2*time.Second || ttl > 3*time.Second {
				b.Fatalf("ttl %s", ttl)
			}
			b.Beat("other")
			time.Sleep(ttl)
		}
		b.want("n", structs.NodeStatusReady)
		b.Beat("n")
		b.Beat("other")
		time.Sleep(5 * time.Second)
		b.Beat("other")
		time.Sleep(time.Second - time.Millisecond)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Millisecond) // 3 s and 3 s of grace
		b.want("n", structs.NodeStatusDown)
		b.want("other", structs.NodeStatusReady)
		if n := b.Active(); n != 1 {
			b.Fatalf("%d nodes are waited for", n)
		}
		events := b.store.Snapshot().Node(nil, "n").Events
		if e := events[len(events)-1]; e.Message != "Node heartbeat missed" {
			b.Fatalf("event: %+v", e)
		}

		b.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusReady})
		b.Beat("n")
		time.Sleep(5 * time.Second)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Second)
		b.want("n", structs.NodeStatusDown)
	})
}

func TestNeverHeardOf(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.register("n")
		time.Sleep(30*time.Second - time.Millisecond)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Millisecond)
		b.want("n", structs.NodeStatusDown)
		time.Sleep(time.Hour) // once is enough
		if len(b.batches) != 1 {
			b.Fatalf("marked down %d times", len(b.batches))
		}
	})
}

func TestNewLeader(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.register("n", "gone", "down")
		b.must(&structs.NodeStatusEntry{NodeIDs: []string{"down"}, Status: structs.NodeStatusDown})
		b.Beat("n")
		b.stop()
		if b.Active() != 0 {
			b.Fatal("timers run without leadership")
		}
		if ttl := b.Beat("n"); ttl < 2*time.Second {
			b.Fatalf("ttl %s", ttl)
		}
		time.Sleep(time.Hour)
		b.want("n", structs.NodeStatusReady)
		b.start()
		if n := b.Active(); n != 2 {
			b.Fatalf("%d nodes are waited for, want 2", n)
		}
		b.must(&structs.NodeDeregisterEntry{NodeIDs: []string{"gone"}})
		time.Sleep(30*time.Second - time.Millisecond)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Millisecond)
		b.want("n", structs.NodeStatusDown)
		if b.Active() != 0 {
			b.Fatal("somebody is still waited for")
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	run(t, Options{MaxPerSecond: 200}, func(b *bed) {
		for i := range downLimit + 100 {
			b.register(fmt.Sprint("n", i))
		}
		var ttl time.Duration
		for i := range downLimit + 100 {
			ttl = max(ttl, b.Beat(fmt.Sprint("n", i)))
		}
		if ttl < 4*time.Second || ttl > 7*time.Second { // 612 nodes at 200 a second, which use half of it
			b.Fatalf("ttl %s", ttl)
		}
		time.Sleep(10 * time.Second)
		b.want("n0", structs.NodeStatusDown)
		b.want(fmt.Sprint("n", downLimit+99), structs.NodeStatusDown)
		// The first may go alone; while that is committed, the others gather.
		if got := b.batches; len(got) > downLimit/4 || slices.Max(got) > downLimit {
			b.Fatalf("entries of %v nodes", got)
		}
	})
}

// However many nodes there are, so many heartbeats come; and another leader waits for each as long as the last had given it.
func TestManyNodesBeatSeldom(t *testing.T) {
	const nodes, perSecond = 2000, 50
	run(t, Options{MaxPerSecond: perSecond}, func(b *bed) {
		for i := range nodes {
			b.register(fmt.Sprint("n", i))
		}
		random := rand.New(rand.NewPCG(1, 2)) // a test's
		due := make([]time.Time, nodes)
		start, beats := time.Now(), 0
		beat := func(until time.Time) { // as clients do: see client/heartbeat.go
			for ; time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
				for i := range due {
					if !time.Now().Before(due[i]) {
						ttl := b.Beat(fmt.Sprint("n", i))
						due[i] = time.Now().Add(time.Duration((0.5 + 0.2*random.Float64()) * float64(ttl)))
						beats++
					}
				}
			}
		}
		beat(start.Add(10 * time.Minute))
		if per := float64(beats) / 600; per > 1.1*perSecond || per < perSecond/2 {
			t.Errorf("%.1f heartbeats a second, not %d", per, perSecond)
		}
		b.stop() // and another leads; those that have just been heard are in no hurry
		b.start()
		beat(time.Now().Add(5 * time.Minute))
		if len(b.batches) != 0 {
			t.Errorf("nodes that told as they should are down: %v", b.batches)
		}
		b.Beat("n0")
		time.Sleep(5 * time.Minute)
		b.want("n0", structs.NodeStatusDown)
		b.want(fmt.Sprint("n", nodes-1), structs.NodeStatusDown)
	})
}

// Nodes that are down make a new leader wait no longer for the others.
func TestDownNodesDoNotCount(t *testing.T) {
	run(t, Options{MaxPerSecond: 1}, func(b *bed) {
		for i := range 100 {
			b.register(fmt.Sprint("dead", i))
		}
		time.Sleep(10 * time.Minute)
		b.want("dead99", structs.NodeStatusDown)
		b.register("n")
		b.Beat("n")
		b.stop()
		b.start()
		time.Sleep(30*time.Second - time.Millisecond)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Millisecond)
		b.want("n", structs.NodeStatusDown)
	})
}

func TestTriesAgain(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.register("dead", "late")
		b.Beat("dead")
		b.Beat("late")
		b.Lock()
		b.Refuse = structs.Errorf(structs.CodeNoLeader, "no quorum")
		b.Unlock()
		time.Sleep(8 * time.Second)
		b.Beat("late")
		b.Lock()
		b.Refuse = nil
		b.Unlock()
		time.Sleep(2 * time.Second)
		b.want("dead", structs.NodeStatusDown)
		b.want("late", structs.NodeStatusReady)
	})
}

// TestStoodStill: a leader that was suspended does not take all nodes for lost.
func TestStoodStill(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.register("n")
		b.Beat("n")
		b.mu.Lock()
		b.alive = b.alive.Add(-time.Minute) // the pulse has not come for a minute
		for id, timer := range b.timers {
			timer.Stop()
			delete(b.timers, id)
			b.expired[id] = true
		}
		b.more <- struct{}{}
		b.mu.Unlock()
		b.want("n", structs.NodeStatusReady)
		time.Sleep(6*time.Second - time.Millisecond)
		b.want("n", structs.NodeStatusReady)
		time.Sleep(time.Millisecond)
		b.want("n", structs.NodeStatusDown)
	})
}

// TestStoodStillWithMany: each has the time anew that it was granted, however few are waited for by then; one that this leader has not
// heard has the failover time.
func TestStoodStillWithMany(t *testing.T) {
	run(t, Options{MaxPerSecond: 1}, func(b *bed) {
		ids := many(40)
		b.register("unheard")
		b.register(ids...)
		for range 2 { // by then there are 41
			for _, id := range ids {
				b.Beat(id)
			}
		}
		const told = 82 * time.Second
		b.mu.Lock()
		b.alive = b.alive.Add(-10 * time.Minute)
		for id, timer := range b.timers {
			timer.Stop()
			delete(b.timers, id)
			b.expired[id] = true
		}
		b.more <- struct{}{}
		b.mu.Unlock()
		time.Sleep(30*time.Second - time.Millisecond)
		b.want("unheard", structs.NodeStatusReady)
		time.Sleep(time.Millisecond)
		b.want("unheard", structs.NodeStatusDown)
		time.Sleep(told + 3*time.Second - 30*time.Second - time.Millisecond)
		for _, id := range ids {
			b.want(id, structs.NodeStatusReady)
		}
		time.Sleep(time.Millisecond)
		for _, id := range ids {
			b.want(id, structs.NodeStatusDown)
		}
	})
}

func TestFellBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, Options{}, 3)
		b.start()
		defer func() { b.stop() }()
		b.register("n", "purged")
		b.mu.Lock() // it is kept from reading on
		for i := range 10 {
			b.Put(b, &structs.NodeRegisterEntry{Node: testcluster.Node(fmt.Sprint("x", i), 1000)})
		}
		b.Put(b, &structs.NodeDeregisterEntry{NodeIDs: []string{"purged"}})
		b.mu.Unlock()
		synctest.Wait()
		if n := b.Active(); n != 11 {
			t.Fatalf("%d nodes are waited for, want 11", n)
		}
	})
}

// A node with work that outlives a lost connection is disconnected until nothing of it is
// waited for any longer, and down then.
func TestDisconnected(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.register("n", "other")
		b.Beat("n")
		b.Beat("other")
		b.place("n", 10*time.Minute)
		time.Sleep(6 * time.Second)
		b.want("n", structs.NodeStatusDisconnected)
		b.want("other", structs.NodeStatusDown)

		b.must(&structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: structs.NodeStatusReady, Time: time.Now().UnixNano()})
		b.Beat("n")
		time.Sleep(6 * time.Second)
		b.want("n", structs.NodeStatusDisconnected)
		index := b.store.Snapshot().Index()
		time.Sleep(9 * time.Minute)
		b.want("n", structs.NodeStatusDisconnected)
		if now := b.store.Snapshot().Index(); now != index {
			b.Errorf("%d entries while it was waited for", now-index)
		}
		time.Sleep(2 * time.Minute)
		b.want("n", structs.NodeStatusDown)
	})
	run(t, Options{}, func(b *bed) { // whoever has what nothing may stand for is waited for without end
		b.register("n")
		b.Beat("n")
		b.place("n", 0)
		time.Sleep(24 * time.Hour)
		b.want("n", structs.NodeStatusDisconnected)
	})
}
