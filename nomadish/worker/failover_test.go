package worker_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// successor is another server: its state is made by make, and it leads.
func (c *cluster) successor(t *testing.T, from func(l *testcluster.Log)) *cluster {
	t.Helper()
	next := &cluster{journal: newJournal(), next: c.next}
	from(next.Log)
	next.Skip(next.store.LatestIndex())
	next.broker = queue.New(queue.Options{NewID: next.next}, next, next.store.LatestIndex)
	next.plans = plan.New(plan.Options{Gate: next.broker}, next.store, next, next.broker)
	return next
}

// order is all that waits, as it is shown: place, job, how many and what it has waited.
func order(s *state.Snapshot) (out []string) {
	for _, l := range queueview.Order(s, time.Now().UnixNano()) {
		out = append(out, fmt.Sprint(l.Place, l.Request.JobID, l.Request.Missing, l.Request.Since, l.Request.Aged, l.Request.Requeued, l.Rank))
	}
	return out
}

// TestNewLeaderGoesOn: whoever leads next, by failover, from its own log after a restart or
// from a snapshot, has the same requests in the same order, tries all of them, places in the order
// of their ranks, and lets nobody wait for ever: not what was ready or blocked,
// nor what was freed while nobody led.
func TestNewLeaderGoesOn(t *testing.T) {
	var entries [][]byte
	for name, next := range map[string]func(t *testing.T, c *cluster) *cluster{
		"failover": func(t *testing.T, c *cluster) *cluster {
			t.Helper()
			n := &cluster{journal: c.journal, next: c.next}
			n.broker = queue.New(queue.Options{NewID: n.next}, n, n.store.LatestIndex)
			n.plans = plan.New(plan.Options{Gate: n.broker}, n.store, n, n.broker)
			return n
		},
		"restart": func(t *testing.T, c *cluster) *cluster {
			t.Helper()
			return c.successor(t, func(l *testcluster.Log) {
				for i, e := range entries {
					if err, failed := l.FSM.Apply(&raft.Log{Index: uint64(11 + i), Type: raft.LogCommand, Data: e}).(error); failed { // small
						t.Fatal(err)
					}
				}
			})
		},
		"snapshot": func(t *testing.T, c *cluster) *cluster {
			t.Helper()
			return c.successor(t, func(l *testcluster.Log) { l.Restore(t, bytes.NewReader(c.Snapshot(t))) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(true)
				entries = nil
				c.entry = func(e []byte) { entries = append(entries, e) }
				goesOn(t, c, next)
			})
		})
	}
}

func goesOn(t *testing.T, c *cluster, next func(*testing.T, *cluster) *cluster) {
	c.configure(t, func(*structs.SchedulerConfiguration) {})
	for i := range 3 {
		c.node(t, fmt.Sprint("node-", i), structs.NodePoolDefault, 1000)
	}
	stop := c.run(t.Context(), 2)
	var busy []*structs.Job
	for i := range 3 {
		busy = append(busy, job(fmt.Sprint("busy-", i), structs.NodePoolDefault, 60, 1, 1000, 1000))
		c.register(t, busy[i])
	}
	c.quiet(t)
	for i := range 6 { // they wait, with ages and places of their own
		c.register(t, job(fmt.Sprint("waits-", i), structs.NodePoolDefault, 45+5*(i%3), 1, 500, 500))
		c.quiet(t)
		time.Sleep(30 * time.Second)
	}
	c.register(t, job("takes", structs.NodePoolDefault, 90, 1, 1000, 1000)) // and one was requeued
	c.quiet(t)
	time.Sleep(time.Minute)
	leased := c.register(t, job("held", structs.NodePoolDefault, 5, 1, 2000, 2000)) // has room nowhere
	synctest.Wait()
	stop()
	// What nobody leads to see: room comes free, and somebody asks for it.
	c.register(t, job("ready", structs.NodePoolDefault, 41, 1, 100, 100))
	var running []string
	for _, j := range busy {
		for _, a := range c.store.Snapshot().AllocsByJob(nil, j.Namespace, j.ID, true) {
			if !a.Terminal() {
				running = append(running, a.ID)
			}
		}
	}
	if len(running) != 2 {
		t.Fatalf("%d of three run on, one should have been taken back", len(running))
	}
	c.Put(t, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
		{ID: running[0], ClientStatus: structs.AllocClientComplete},
	}})
	before := order(c.store.Snapshot())
	n := next(t, c)
	if got := order(n.store.Snapshot()); !slices.Equal(got, before) || len(got) < 8 {
		t.Fatalf("the next leader has\n%v\nthe last one had\n%v", got, before)
	}
	w := n.watched()
	w.history[n.Index()] = n.store.Snapshot()
	defer n.run(t.Context(), 2)()
	n.quiet(t)
	synctest.Wait()
	time.Sleep(time.Minute) // nothing comes of waiting alone
	w.settled(t)
	if len(w.broken) > 0 {
		t.Fatalf("overtaken: %v", w.broken)
	}
	for _, e := range n.store.Snapshot().EvalsByJob(nil, "default", leased.JobID) {
		if e.Status == structs.EvalStatusPending {
			t.Errorf("evaluation %s is %s", e.ID, e.Status)
		}
	}
	// Room for one after the other comes: in the order in which they wait.
	var got []string
	place := n.watch
	n.Lock()
	n.watch = func(index uint64, payload any) {
		place(index, payload)
		if entry, is := payload.(*structs.PlanCommit); is {
			for _, p := range entry.Plans {
				for _, b := range p.Place {
					got = append(got, b.JobID)
				}
			}
		}
	}
	n.Unlock()
	var want []string
	for _, l := range queueview.Order(n.store.Snapshot(), time.Now().UnixNano()) {
		if l.Request.JobID != "held" {
			want = append(want, l.Request.JobID)
		}
	}
	for i := range want {
		n.node(t, fmt.Sprint("later-", i), structs.NodePoolDefault, 1000)
		n.quiet(t)
		synctest.Wait()
	}
	if !slices.Equal(got, want) || len(want) < 4 {
		t.Fatalf("placed %v, they waited as %v", got, want)
	}
	if left := order(n.store.Snapshot()); len(left) != 1 {
		t.Fatalf("%v wait on", left)
	}
}
