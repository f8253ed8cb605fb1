package nomadish

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// What TestVirtualEdits does: must show 10 of virtual clusters.
const (
	editsAcknowledged = 200
	jobsPerSecond     = 100
	jobSeconds        = 8
)

// edit is an edit of a virtual cluster that was acknowledged.
type edit struct {
	name  string
	index uint64
	cells string
}

// TestVirtualEdits: 200 edits of what four namespaces own against 100 jobs per second while the leader is killed twice. Invariant S and
// the accounts hold in every state of every server, what was acknowledged is in the log, and the end is what the log leads to.
func TestVirtualEdits(t *testing.T) {
	bubble(t, 1, 3, func(c *virtualCluster) {
		for _, s := range c.servers {
			s.cfg.Heartbeats.MinTTL = time.Hour
		}
		c.workers = 1
		w := watchClaims(c)
		c.bootstrap()
		names := []string{"a", "b", "c", "d"}
		c.addTenants(6, names...)
		var users sync.WaitGroup
		var mu sync.Mutex
		var edits []edit
		for i, name := range names {
			users.Go(func() {
				d := newDice(c.seed, uint64(300+i)) // small
				for n := 0; n < editsAcknowledged/len(names); {
					e, ok := c.editOnce(name, d)
					if ok {
						n++
						mu.Lock()
						edits = append(edits, e)
						mu.Unlock()
					}
					time.Sleep(d.between(5*time.Millisecond, 50*time.Millisecond))
				}
			})
		}
		users.Go(func() { c.runJobs(&users, names) })
		for range 2 {
			time.Sleep(1500 * time.Millisecond)
			c.kill(time.Second)
		}
		users.Wait()
		c.lives(c.all(), "after the edits")
		snap := w.sameEverywhere()
		w.acknowledged(edits)
		for _, name := range names {
			if v := snap.VirtualClusters(nil).Get(name); v == nil {
				t.Errorf("%s has nothing", name)
			}
		}
		for _, what := range c.checks.found() {
			t.Error(what)
		}
		for what, least := range map[string]int{"leaders killed": 2, "terms led": 3, "jobs registered": jobsPerSecond * jobSeconds, "edits refused": 5, "GPUs used by claims": 20, "GPUs used without": 20} { // order does not matter
			if c.checks.counts[what] < least {
				t.Errorf("only %d %s", c.checks.counts[what], what)
			}
		}
		t.Logf("%s of virtual time: %d edits; %s; at the end:\n%s", time.Since(c.began).Round(time.Millisecond), len(edits), c.checks.happened(), ownedNow(snap))
	})
}

// editOnce has a namespace own something else, and reports whether that was admitted.
func (c *virtualCluster) editOnce(name string, d *dice) (edit, bool) {
	v := &structs.VirtualCluster{Name: name}
	for _, level := range []string{structs.LevelGPU, structs.LevelPCIe, structs.LevelNode} {
		if n := d.n(4); n > 0 {
			v.Cells = append(v.Cells, &structs.CellQuota{Level: level, Count: n})
		}
	}
	reply := &structs.WriteReply{}
	open, err := c.callLeader(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: v, WhenFree: d.n(8) == 0}, reply)
	c.checks.count("edits left open", open)
	if err != nil {
		c.checks.count("edits refused")
		return edit{}, false
	}
	return edit{name, reply.Index, cellsText(v.Cells)}, true
}

func cellsText(list []*structs.CellQuota) (out string) {
	for _, q := range list {
		out += fmt.Sprintf("%d %s;", q.Count, q.Level)
	}
	return out
}

// runJobs registers so many jobs a second, of all namespaces in turn, and stops each after a while. All are acknowledged in the end.
func (c *virtualCluster) runJobs(users *sync.WaitGroup, names []string) {
	d := newDice(c.seed, 400)
	for i := range jobsPerSecond * jobSeconds {
		time.Sleep(time.Second / jobsPerSecond)
		job := gpuJob(names[i%len(names)], fmt.Sprint("job-", i), 1, d.n(4))
		lives := d.between(200*time.Millisecond, 3*time.Second)
		users.Go(func() {
			if _, err := c.callLeader(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: job}, &structs.JobRegisterReply{}); err != nil {
				c.checks.fail("register a job: %v", err)
				return
			}
			c.checks.count("jobs registered")
			time.Sleep(lives)
			if _, err := c.callLeader(wire.MethodJobDeregister, &structs.JobDeregisterRequest{
				JobID: job.ID, WriteRequest: structs.WriteRequest{Namespace: job.Namespace},
			}, &structs.JobRegisterReply{}); err != nil {
				c.checks.fail("stop a job: %v", err)
			}
		})
	}
}

// acknowledged requires that each edit is the entry of the log that its writer was told, and that what a namespace has at the end is not
// older than its last.
func (w *claimsLog) acknowledged(edits []edit) {
	for _, e := range edits {
		l := w.logs[e.index]
		if l == nil || l.Type != raft.LogCommand {
			w.c.checks.fail("an edit was acknowledged at an index where there is none: %s at %d", e.name, e.index)
			continue
		}
		_, payload, err := fsm.Decode(l.Data)
		p, ok := payload.(*structs.VirtualClusterUpsertEntry)
		if err != nil || !ok || p.VirtualCluster.Name != e.name || cellsText(p.VirtualCluster.Cells) != e.cells {
			w.c.checks.fail("another entry is at the index of an edit that was acknowledged: %s at %d: %T %v", e.name, e.index, payload, err)
		}
	}
	for _, s := range w.c.servers {
		s.use(func(l *virtualLife) {
			snap := l.store.Snapshot()
			for _, e := range edits {
				if v := snap.VirtualClusters(nil).Get(e.name); v == nil || v.ModifyIndex < e.index {
					w.c.checks.fail("an edit that was acknowledged is lost: %s at %d, on %s", e.name, e.index, s.cfg.Name)
				}
			}
		})
	}
}

// TestVirtualExchange: must show 11 of virtual clusters. A cell is sold for a time. Wherever the leader is killed around the
// beginning or the end of that time, everything comes out as if it had not been.
func TestVirtualExchange(t *testing.T) {
	for _, k := range []struct {
		name string
		end  bool          // around the end, not the beginning
		at   time.Duration // after it
	}{
		{"no leader is killed", false, time.Hour},
		{"just before the beginning", false, -5 * time.Millisecond},
		{"at the beginning", false, time.Millisecond},
		{"just after the beginning", false, 12 * time.Millisecond},
		{"before the end", true, -time.Second},
		{"at the end", true, time.Millisecond},
	} {
		t.Run(k.name, func(t *testing.T) {
			bubble(t, 1, 3, func(c *virtualCluster) {
				got := c.sell(k.end, k.at)
				for _, what := range c.checks.found() {
					t.Error(what)
				}
				if got != soldForATime {
					t.Errorf("it came to:\n%s\nnot to:\n%s", got, soldForATime)
				}
				t.Log(c.checks.happened())
			})
		})
	}
}

// soldForATime is what everybody has while the node that c sold is b's, and afterwards. b's job needs two nodes.
const soldForATime = `while it lasts:
a: 10 points, GPUs 0 guaranteed, 0 not; node 1 given 0 won 0 offered 0 bound; 0 changes
b: 7 points, GPUs 8 guaranteed, 0 not; node 1 given 1 won 0 offered 2 bound; 1 changes
c: 13 points, GPUs 0 guaranteed, 0 not; 1 changes
0 offers and bids
afterwards:
a: 10 points, GPUs 0 guaranteed, 0 not; node 1 given 0 won 0 offered 0 bound; 0 changes
b: 7 points, GPUs 4 guaranteed, 4 not; node 1 given 0 won 0 offered 1 bound; 0 changes
c: 13 points, GPUs 0 guaranteed, 0 not; node 1 given 0 won 0 offered 0 bound; 0 changes
0 offers and bids
`

// sell has c sell b a node for a time, kills the leader at a time of it, and returns what everybody has while it lasts and afterwards.
func (c *virtualCluster) sell(atEnd bool, at time.Duration) string {
	for _, s := range c.servers {
		s.cfg.Heartbeats.MinTTL = time.Hour
	}
	c.workers = 1
	w := watchClaims(c)
	c.bootstrap()
	names := []string{"a", "b", "c"}
	c.addTenants(3, names...)
	call := func(method string, args, reply any) {
		_, err := c.callLeader(method, args, reply)
		c.must(err)
	}
	for _, name := range names {
		call(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: &structs.VirtualCluster{
			Name: name, Points: 10, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}},
		}}, &structs.WriteReply{})
	}
	call(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: gpuJob("b", "large", 2, 4)}, &structs.JobRegisterReply{})
	from := time.Now().Add(5 * time.Second).Truncate(time.Second)
	until := from.Add(10 * time.Second)
	exchange := func(owner string, points int64) {
		call(wire.MethodExchangePut, &structs.ExchangePutRequest{Exchange: structs.Exchange{
			Owner: owner, Bid: points > 0, Points: points, Cells: structs.CellQuota{Level: structs.LevelNode, Count: 1}, From: from, Until: until,
		}}, &structs.ExchangePutReply{})
	}
	exchange("c", 0)
	exchange("a", 2)
	exchange("b", 3)
	wait := func(to time.Time) { time.Sleep(time.Until(to)) }
	var killer sync.WaitGroup
	if at < time.Hour {
		killer.Go(func() {
			edge := from
			if atEnd {
				edge = until
			}
			wait(edge.Add(at))
			c.kill(500 * time.Millisecond)
		})
	}
	wait(until.Add(-2 * time.Second))
	during := ownedNow(w.now())
	wait(until.Add(8 * time.Second))
	killer.Wait()
	c.lives(c.all(), "at the end")
	return "while it lasts:\n" + during + "afterwards:\n" + ownedNow(w.sameEverywhere())
}

// now returns the state of the server that leads.
func (w *claimsLog) now() (snap *state.Snapshot) {
	w.c.servers[w.c.leads()].use(func(l *virtualLife) { snap = l.store.Snapshot() })
	return snap
}
