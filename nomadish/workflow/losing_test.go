package workflow

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestManyLoseOneNode: while many runs miss what they lost with a node, what they miss is not written, nor looked for by all, with each allocation that ends.
func TestManyLoseOneNode(t *testing.T) {
	t.Parallel()
	const runs = 20
	s := startedWith(t, nil, lendingWorkflow("chip", 50, []int{100}, []int{8000}))
	s.node("n-a", 9000*(runs+1), structs.NodeStatusReady)
	s.step()
	for i := range runs {
		w := lendingWorkflow(fmt.Sprintf("wf-%02d", i), 50, []int{100}, []int{8000})
		w.Lend = nil
		s.runs(w)
	}
	s.step()
	for i := range 3 {
		s.node(fmt.Sprintf("n-b%d", i), 8000, structs.NodeStatusReady)
	}
	s.borrow(12, 2000)
	s.node("n-a", 9000*(runs+1), structs.NodeStatusDown)
	moves := func(by time.Duration) (entries int) {
		s.clock.now = s.clock.now.Add(by)
		from := s.Index()
		s.steps.Step(context.Background())
		return int(s.Index() - from)
	}
	if n := moves(time.Second); n < runs { // each says what is missing
		t.Fatalf("%d entries as a node is lost", n)
	}
	moves(time.Second) // lost instances
	moves(time.Second)
	flood := s.live("flood-2000")
	for i := range 2 {
		s.ends(flood[i])
		if n := moves(time.Second); n > 0 {
			t.Errorf("%d entries as an allocation ends", n)
		}
	}
	texts := func() (list map[string]bool) {
		list = map[string]bool{}
		for r := range s.Store.Snapshot().Workflows(nil).Alive() {
			list[r.Missing] = true
		}
		return list
	}
	was := texts()
	if n := moves(time.Minute); n == 0 || len(texts()) == 0 || fmt.Sprint(texts()) == fmt.Sprint(was) {
		t.Errorf("%d entries a minute later, missing %v", n, texts())
	}
	s.ends(flood[2:]...)
	if moves(time.Second); len(scheduler.LostParts(s.Store.Snapshot().World(), "default/chip")) > 0 {
		t.Errorf("there is room, and chip misses %q", s.run().Missing)
	}
}

// TestLosingIsLookedAtAgain: a run that has lost something is looked at again once a minute though nothing happens.
func TestLosingIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := startedWith(t, nil, lendingWorkflow("chip", 50, []int{4000}, []int{8000}))
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	s.node("n-a", 8000, structs.NodeStatusDown)
	s.step()
	if wait, again := s.steps.Again(); s.run().Missing == "" || !again || wait > reserveAnyway {
		t.Errorf("missing %q, looked at again in %s, %v", s.run().Missing, wait, again)
	}
}
