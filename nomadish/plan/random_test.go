package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// bubble hides the test's deadline, which a bubble of virtual time may not have.
type bubble struct{ rapid.TB }

// TestNeverTooMuch submits random plans from many sides while commits are slow and
// fail, allocations end and nodes go and come. After every entry: no node is used for more
// than it has; and at the end every answer is true.
func TestNeverTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubble{t}, func(r *rapid.T) {
			l := newLog()
			const capacity = 10
			nodes := l.nodes(r, rapid.IntRange(1, 4).Draw(r, "nodes"), capacity)
			h := newOwners()
			a := New(Options{
				BatchLimit: rapid.IntRange(1, 5).Draw(r, "batch"), ChainLimit: rapid.IntRange(1, 4).Draw(r, "chain"),
				EntryBytes: rapid.SampledFrom([]int{4 << 10, 512 << 10}).Draw(r, "entry"),
			}, l.store, l, h)
			chaos := &chaos{log: l, nodes: nodes, fates: rapid.SliceOfN(rapid.IntRange(0, 9), 30, 30).Draw(r, "fates")}
			l.Before, l.Applied = chaos.before, chaos.after

			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { a.Run(ctx) })
			synctest.Wait()
			var plans []*structs.Plan
			var sides sync.WaitGroup
			answers := make([]answer, rapid.IntRange(1, 40).Draw(r, "plans"))
			for i := range answers {
				p := planOf(fmt.Sprint("p", i), int64(rapid.IntRange(1, 6).Draw(r, "cpu")),
					rapid.SliceOfN(rapid.SampledFrom(nodes), 1, 6).Draw(r, "on")...)
				p.Priority, p.AllAtOnce = rapid.IntRange(1, 3).Draw(r, "priority"), rapid.IntRange(0, 3).Draw(r, "gang") == 0
				plans = append(plans, p)
				wait := time.Duration(rapid.IntRange(0, 30).Draw(r, "at")) * time.Millisecond
				sides.Go(func() {
					time.Sleep(wait)
					res, err := a.Submit(ctx, p)
					answers[i] = answer{res, err}
				})
			}
			sides.Wait()
			cancel()
			wg.Wait()
			if chaos.found != "" {
				r.Fatalf("%s", chaos.found)
			}
			for i, p := range plans {
				check1(r, l, p, answers[i], h)
			}
		})
	})
}

// check1 compares an answer with the state.
func check1(r *rapid.T, l *log, p *structs.Plan, got answer, h *owners) {
	if n := h.retained[p.EvalID]; n != 0 {
		r.Fatalf("plan %s: retained %d times at the end", p.EvalID, n)
	}
	have := len(l.store.Snapshot().AllocsByEval(nil, p.EvalID))
	want := instances(p.Place)
	switch {
	case p.AllAtOnce && have != 0 && have != want:
		r.Fatalf("plan %s: %d of %d placed, all at once", p.EvalID, have, want)
	case got.err != nil:
		if !errors.Is(got.err, structs.ErrLimited) && !errors.Is(got.err, structs.ErrNoLeader) {
			r.Fatalf("plan %s: %v", p.EvalID, got.err)
		}
	case got.result.Placed != have || got.result.Placed+got.result.Refused != want:
		r.Fatalf("plan %s: %+v, but %d of %d are in the state", p.EvalID, got.result, have, want)
	case (got.result.Refused == 0) != (l.store.Snapshot().Eval(nil, p.EvalID) != nil):
		r.Fatalf("plan %s: %+v, but its evaluation: %+v", p.EvalID, got.result, l.store.Snapshot().Eval(nil, p.EvalID))
	}
}

// chaos decides what becomes of commits, and looks at the state after each.
type chaos struct {
	*log
	nodes []string
	fates []int
	n     int
	lose  bool
	found string
}

func (c *chaos) before(t structs.LogType, _ any) error {
	if t != structs.LogPlanApply {
		return nil
	}
	c.n++
	switch c.fates[c.n%len(c.fates)] {
	case 0:
		return structs.Errorf(structs.CodeLimited, "too much at once")
	case 1:
		return structs.Errorf(structs.CodeNoLeader, "not the leader")
	case 2:
		c.lose = true // committed, but nobody is notified
	case 3, 4, 5:
		time.Sleep(time.Duration(c.n%7) * time.Millisecond)
	case 6:
		c.endOne()
	case 7:
		for _, s := range []string{structs.NodeStatusDown, structs.NodeStatusReady} {
			if _, err := c.Apply(context.Background(), structs.LogNodeStatus, &structs.NodeStatusEntry{NodeIDs: c.nodes[:1], Status: s}); err != nil {
				c.found = err.Error()
			}
		}
	}
	return nil
}

// endOne has some allocation finish.
func (c *chaos) endOne() {
	for _, a := range c.store.Snapshot().AllocsByNode(nil, c.nodes[c.n%len(c.nodes)]) {
		if a.Terminal() {
			continue
		}
		_, err := c.Apply(context.Background(), structs.LogAllocClient, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
			{ID: a.ID, ClientStatus: structs.AllocClientComplete},
		}})
		if err != nil {
			c.found = err.Error()
		}
		return
	}
}

func (c *chaos) after(e testcluster.Entry) error {
	for _, id := range c.nodes {
		if used := c.used(id); used > 10 && c.found == "" {
			c.found = fmt.Sprintf("node %s holds %d of 10 after entry %d", id, used, e.Index)
		}
	}
	if c.lose {
		c.lose = false
		return structs.Errorf(structs.CodeNoLeader, "leadership lost while committing")
	}
	return nil
}
