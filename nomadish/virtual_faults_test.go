package nomadish

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/structs"
)

// For a writer to wait for an answer. One that soon gives up soon finds another leader: while the others wait for one that is cut off
// nothing would be written that this one could be seen not to know.
const (
	writeLimit = 5 * time.Second
	writeSoon  = 300 * time.Millisecond
)

// writer writes to whoever thinks that it leads, or to anybody, until ctx ends.
func (c *virtualCluster) writer(ctx context.Context, d *dice, limit time.Duration) {
	for ctx.Err() == nil {
		time.Sleep(d.between(10*time.Millisecond, 190*time.Millisecond))
		to := d.n(len(c.servers))
		for _, i := range d.order(len(c.servers)) {
			c.servers[i].use(func(l *virtualLife) {
				if l.State() == raft.Leader {
					to = i
				}
			})
		}
		c.servers[to].use(func(l *virtualLife) { c.writeWithin(l, c.servers[to].cfg.Name, d, limit) })
	}
}

// write has a server commit something new and gives what came of it.
func (c *virtualCluster) write(l *virtualLife, server string, d *dice) string {
	return c.writeWithin(l, server, d, writeLimit)
}

func (c *virtualCluster) writeWithin(l *virtualLife, server string, d *dice, limit time.Duration) string {
	kind, id, entry := c.something(d)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := &deed{kind: kind, id: id, fate: fateOpen, at: server}
	index, err := l.Apply(ctx, kind, entry)
	switch {
	case err == nil:
		done.fate, done.index = fateReported, index
	case errors.Is(err, structs.ErrNothingDone):
		done.fate = fateRefused
	case structs.CodeOf(err) == structs.CodeInternal && !errors.Is(err, errOff) && !errors.Is(err, context.DeadlineExceeded):
		c.checks.fail("%s: %v", done, err)
	}
	c.checks.done(done)
	return done.fate
}

// something makes up an entry of which there was none before.
func (c *virtualCluster) something(d *dice) (structs.LogType, string, any) {
	id, now := NewID(), time.Now().UnixNano()
	eval := func(jobID string) *structs.Evaluation {
		return &structs.Evaluation{
			ID: NewID(), Namespace: structs.DefaultNamespace, JobID: jobID, Type: structs.JobTypeBatch, Priority: 50,
			Status: structs.EvalStatusPending, TriggeredBy: structs.EvalTriggerJobRegister,
		}
	}
	switch d.n(4) {
	case 0:
		n := node(1)
		n.ID, n.Name = id, "n-"+id
		return structs.LogNodeRegister, id, &structs.NodeRegisterEntry{Node: n, Time: now, EvalSeed: NewID()}
	case 1:
		e := eval("job-" + id)
		return structs.LogEvalUpsert, e.ID, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{e}, Time: now}
	default:
		job := batchJob("job-"+id, 1+d.n(3))
		return structs.LogJobRegister, job.ID, &structs.JobRegisterEntry{Job: job, Eval: eval(job.ID), Time: now}
	}
}

// run breaks the cluster in so many rounds, while it is written to and watched, then mends it and checks everything.
func (c *virtualCluster) run(rounds int) {
	if c.dice.n(2) == 0 {
		c.slow(0) // it is the one that leads at first
	}
	c.bootstrap()
	ctx, cancel := context.WithCancel(context.Background())
	var users sync.WaitGroup
	for i, limit := range []time.Duration{writeLimit, writeLimit, writeSoon} {
		users.Go(func() { c.writer(ctx, newDice(c.seed, uint64(100+i)), limit) }) // small
	}
	users.Go(func() { c.watch(ctx, newDice(c.seed, 200)) })
	for range rounds {
		c.round()
	}
	cancel()
	users.Wait()
	c.mend("at the end", true)
	c.settleAlike()
}

// round breaks something for a while, and mends it.
func (c *virtualCluster) round() {
	if c.dice.n(2) == 0 {
		c.net.roughen()
	}
	many := 1 + c.dice.n(3)
	reported := ""
	for range many {
		fault := virtualFaults[c.dice.n(len(virtualFaults))]
		c.checks.count(fault.name)
		reported += fault.name + "; "
		fault.do(c, many == 1)
		time.Sleep(c.dice.between(10*time.Millisecond, 4*time.Second))
	}
	c.mend("after: "+reported, c.dice.n(4) > 0)
}

// mend ends all faults, and waits until the cluster takes writes again.
func (c *virtualCluster) mend(what string, wait bool) {
	c.net.heal()
	for _, i := range c.dice.order(len(c.servers)) {
		if c.servers[i].use(func(*virtualLife) {}) {
			continue
		}
		c.start(i)
		time.Sleep(c.dice.between(0, 300*time.Millisecond))
	}
	if wait {
		c.lives(c.all(), what)
	}
}

// leads is the index of a server that thinks it leads; else anybody.
func (c *virtualCluster) leads() int {
	at := c.dice.n(len(c.servers))
	for i, s := range c.servers {
		s.use(func(l *virtualLife) {
			if l.State() == raft.Leader {
				at = i
			}
		})
	}
	return at
}

// part cuts some servers off from the others, or only what leads there or from there.
func (c *virtualCluster) part(some []int, there, back bool) {
	silent := c.dice.n(2) == 0
	in := map[int]bool{}
	for _, i := range some {
		in[i] = true
	}
	for _, i := range some {
		for j := range c.servers {
			if in[j] {
				continue
			}
			if there {
				c.net.cut(c.servers[i].addr, c.servers[j].addr, silent)
			}
			if back {
				c.net.cut(c.servers[j].addr, c.servers[i].addr, silent)
			}
		}
	}
}

// virtualFaults are what is drawn. Each is told whether it is the only one at its time.
var virtualFaults = []struct {
	name string
	do   func(c *virtualCluster, alone bool)
}{
	{"splits in two", func(c *virtualCluster, alone bool) {
		order := c.dice.order(len(c.servers))
		few := 1 + c.dice.n((len(order)-1)/2)
		c.part(order[:few], true, true)
		if alone { // the larger part goes on by itself
			c.lives(order[few:], "a majority is apart from the others")
		}
	}},
	{"leaders cut off", func(c *virtualCluster, alone bool) { c.part([]int{c.leads()}, true, true) }},
	{"leaders that are not heard", func(c *virtualCluster, _ bool) { c.part([]int{c.leads()}, true, false) }},
	{"leaders that hear nothing", func(c *virtualCluster, _ bool) { c.part([]int{c.leads()}, false, true) }},
	{"ways cut in one direction", func(c *virtualCluster, _ bool) {
		for range 1 + c.dice.n(len(c.servers)) {
			pair := c.dice.order(len(c.servers))
			c.net.cut(c.servers[pair[0]].addr, c.servers[pair[1]].addr, c.dice.n(2) == 0)
		}
	}},
	{"crashes", func(c *virtualCluster, _ bool) { c.restart(c.dice.n(len(c.servers)), true) }},
	{"crashes of leaders", func(c *virtualCluster, _ bool) { c.restart(c.leads(), true) }},
	{"restarts in good order", func(c *virtualCluster, _ bool) { c.restart(c.dice.n(len(c.servers)), false) }},
	{"crashes of all", func(c *virtualCluster, _ bool) {
		var wg sync.WaitGroup
		for i := range c.servers {
			wg.Go(func() { c.stop(i, true) })
		}
		wg.Wait()
		for _, i := range c.dice.order(len(c.servers)) {
			c.start(i)
		}
	}},
	{"transfers of leadership", func(c *virtualCluster, _ bool) {
		to := c.servers[c.dice.n(len(c.servers))]
		c.servers[c.leads()].use(func(l *virtualLife) {
			ctx, cancel := context.WithTimeout(context.Background(), transferWait)
			defer cancel()
			if c.dice.n(2) == 0 {
				_ = l.Transfer(ctx, "", "") // it may fail
			} else if to.id != l.ID() {
				_ = l.Transfer(ctx, raft.ServerID(to.id), to.addr) // it may fail
			}
		})
	}},
	{"snapshots by hand", func(c *virtualCluster, _ bool) {
		c.servers[c.dice.n(len(c.servers))].use(func(l *virtualLife) {
			_ = l.Snapshot().Error() // there may be nothing new
		})
	}},
	{"followers far behind", func(c *virtualCluster, _ bool) { // they need the leader's snapshot
		behind := (c.leads() + 1) % len(c.servers)
		c.part([]int{behind}, true, true)
		time.Sleep(c.dice.between(5*time.Second, 10*time.Second))
		c.net.heal()
	}},
}

// restart ends a server; it begins anew now, or when all is mended.
func (c *virtualCluster) restart(i int, sudden bool) {
	c.stop(i, sudden)
	if c.dice.n(2) == 0 {
		time.Sleep(c.dice.between(time.Millisecond, 2*time.Second))
		c.start(i)
	}
}
