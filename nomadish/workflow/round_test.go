package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// posts ends ordinary instances one after the other until a workflow has its reservation, and fails if it does not have it once as many have ended as run.
func (s *started) posts(flood string) {
	s.t.Helper()
	for range s.live(flood) {
		s.ends(s.live(flood)[0])
		s.step()
		if s.decide(flood); s.run().Posted {
			return
		}
	}
	s.t.Fatalf("workflow %s never has its reservation: %q", s.id, s.run().Missing)
}

// flooded has as many ordinary instances run as there is room, with more that wait, beside workflows that wait.
func (s *started) flooded(workflows ...*structs.Workflow) {
	s.borrow(40, 1000)
	for _, w := range workflows {
		s.runs(w)
	}
	s.step()
	s.decide("flood-1000")
}

// TestHopelessKeepsNothing: a workflow of the highest rank that can never fit keeps nothing, and blocks no other: the first that may fit keeps what comes free.
func TestHopelessKeepsNothing(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{10_000}, []int{1000})
	s.flooded(lendingWorkflow("huge", 90, []int{80_000}), lendingWorkflow("next", 60, []int{8000}))
	s.id = "next"
	s.posts("flood-1000")
	if r := s.Store.Snapshot().Workflows(nil).Get("default", "huge"); r.Posted || !strings.Contains(r.Missing, "could not hold it if they were empty") {
		t.Errorf("posted %v: %q", r.Posted, r.Missing)
	}
}

// TestHopelessDoNotCount: however many workflows of higher ranks can never fit, one that fits starts; and they are looked at again when a node comes.
func TestHopelessDoNotCount(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{10_000}, []int{1000})
	for i := range maxReserving + 1 {
		s.runs(lendingWorkflow(fmt.Sprintf("huge%d", i), 90, []int{80_000}))
	}
	s.runs(lendingWorkflow("small", 40, []int{1000}))
	s.id = "small"
	if s.step(); !s.run().Posted {
		t.Fatalf("%q", s.run().Missing)
	}
	s.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node("large", 80_000), Time: 1})
	s.id = "huge0"
	if s.step(); !s.run().Posted {
		t.Errorf("on a node that has come: %q", s.run().Missing)
	}
}

// TestPoolsKeepApart: in each node pool the first workflow that waits keeps what comes free.
func TestPoolsKeepApart(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{10_000}, []int{1000})
	n := testcluster.Node("gpu-1", 8000)
	n.NodePool = "gpu"
	n.ComputeClass()
	s.Put(t, &structs.NodeRegisterEntry{Node: n, Time: 1})
	of := func(id string, priority int) *structs.Workflow {
		w := lendingWorkflow(id, priority, []int{8000})
		w.NodePool, w.Lend = "gpu", nil
		return w
	}
	s.flooded(of("first", 99), of("second", 90), lendingWorkflow("next", 60, []int{8000}))
	if p := scheduler.PendingWorkflows(s.Store.Snapshot().World()); len(p) != 2 {
		t.Errorf("%d keep what comes free in two pools", len(p))
	}
	s.id = "next"
	s.posts("flood-1000")
}

// TestNoneIsLeftOut: however many workflows of higher ranks wait, one for which all that it needs is free has its reservation: in another node pool, and in
// theirs. Each of the others states what it waits for.
func TestNoneIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, waiting := range []int{maxReserving - 1, maxReserving, 3*maxReserving + 1} {
		s := newStarted(t, []int64{10_000, 500}, []int{1000})
		n := testcluster.Node("gpu-1", 8000)
		n.NodePool = "gpu"
		n.ComputeClass()
		s.Put(t, &structs.NodeRegisterEntry{Node: n, Time: 1})
		s.step()
		s.borrow(40, 1000)
		for i := range waiting {
			s.runs(lendingWorkflow(fmt.Sprintf("wait%02d", i), 90, []int{9000}))
		}
		other := lendingWorkflow("other", 50, []int{1000})
		other.NodePool, other.Lend = "gpu", nil
		s.runs(other)
		s.runs(lendingWorkflow("small", 40, []int{400}))
		s.step()
		for r := range s.Store.Snapshot().Workflows(nil).List("default", "", false) {
			if fits := !strings.HasPrefix(r.ID, "wait"); r.Posted != fits || !fits && r.Missing == "" {
				t.Errorf("beside %d that wait, workflow %s has its reservation: %v, is missing: %q", waiting, r.ID, r.Posted, r.Missing)
			}
		}
	}
}

// TestRoundIsBounded: a round chooses anew for the first workflows of a pool that wait, and for as many of the others. With each round it is others, also if
// all may be chosen otherwise between the rounds; and a round follows until all were looked at.
func TestRoundIsBounded(t *testing.T) {
	t.Parallel()
	const waiting = 4 * maxReserving
	s := newStarted(t, []int64{10_000}, []int{1000})
	s.step()
	s.borrow(40, 1000)
	for i := range waiting {
		s.runs(lendingWorkflow(fmt.Sprintf("wait%02d", i), 60, []int{9000}))
	}
	s.step()
	v := s.steps.v
	round := func() (chosen int) {
		was := maps.Clone(v.known)
		s.clock.now = s.clock.now.Add(time.Second)
		v.reserve(t.Context(), func() bool { return true })
		for key, c := range v.known {
			if c != was[key] {
				chosen++
			}
		}
		return chosen
	}
	looked := func(since time.Time) (n int) {
		for _, c := range v.known {
			if c.when.After(since) {
				n++
			}
		}
		return n
	}
	for i, begin := 1, s.clock.now; i <= 3; i++ {
		v.at++
		v.all = v.at
		if chosen, all := round(), looked(begin); chosen != 2*maxReserving || all != (i+1)*maxReserving || !v.due {
			t.Errorf("round %d chose for %d, %d were looked at since the first, another is due: %v", i, chosen, all, v.due)
		}
	}
	for i := 4; i <= 6; i++ { // the last round of those before has looked at half of them
		if chosen := round(); chosen != map[bool]int{true: maxReserving}[i < 6] || v.due != (i < 5) {
			t.Errorf("round %d chose for %d, another is due: %v", i, chosen, v.due)
		}
	}
}

// TestLooksBetween: what changes while it is looked at what could be reserved, as the end of a stage, is moved on before the next workflow is looked at; and
// none is chosen for anew for which nothing has changed.
func TestLooksBetween(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{10_000}, []int{1000})
	s.flooded(lendingWorkflow("a", 60, []int{8000}), lendingWorkflow("b", 50, []int{9000}))
	v, looks := s.steps.v, 0
	was := map[string]*chosen{"default/a": v.known["default/a"], "default/b": v.known["default/b"]}
	v.due = true
	v.reserve(t.Context(), func() bool { looks++; return true })
	if looks != 3 || was["default/a"] == nil || v.known["default/a"] != was["default/a"] || v.known["default/b"] != was["default/b"] {
		t.Errorf("nothing has changed, %d were looked at, %+v", looks, v.known)
	}
	s.ends(s.live("flood-1000")[0])
	if s.step(); v.known["default/a"] == was["default/a"] {
		t.Error("what has come free is not looked at")
	}
	s.clock.now = s.clock.now.Add(reserveAnyway - 1)
	if wait, again := s.steps.Again(); !again || wait > time.Minute {
		t.Errorf("those that wait are looked at anew in %s, %v", wait, again)
	}
}

// TestLicensesGone: a reservation says which of its licenses are there no more, until they are.
func TestLicensesGone(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000}, []int{1000})
	w.Stages[1].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources.Licenses = map[string]int{"vcs": 6}
	s := startedWith(t, []int64{8000}, w)
	for i, count := range []int64{10, 3, 10} {
		s.Put(t, &structs.LicenseUpsertEntry{License: &structs.License{Name: "vcs", Count: count}, Time: int64(i)})
		s.step()
		if want := map[bool]string{true: `6 of license "vcs" are reserved, and there are 3`}[count < 6]; !s.run().Posted || s.run().Missing != want {
			t.Errorf("of %d: posted %v, missing is %q, want %q", count, s.run().Posted, s.run().Missing, want)
		}
	}
	if !slices.Equal(s.run().Licenses, []structs.RequestedLicense{{Name: "vcs", Count: 6}}) {
		t.Errorf("%+v", s.run().Licenses)
	}
}

// TestStillShort: a run for which another one keeps what comes free is not packed anew while less is free in its pool than its largest stage needs; it has its
// reservation in the first round in which as much is, and what it misses is counted anew after a minute.
func TestStillShort(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{8000, 4000}, []int{1000})
	s.step()
	s.borrow(12, 1000)
	s.runs(lendingWorkflow("large", 90, []int{8000})) // keeps the larger node
	s.runs(lendingWorkflow("small", 40, []int{2000}))
	s.step()
	small := func() *chosen { return s.steps.v.known["default/small"] }
	end := func() {
		for _, a := range s.Store.Snapshot().AllocsByNode(nil, "node-001") {
			if a.JobID == "flood-1000" && !a.Terminal() {
				s.ends(a.ID)
				break
			}
		}
		s.step()
	}
	first := small()
	if first == nil || !first.kept {
		t.Fatalf("chosen for it: %+v", first)
	}
	if end(); small() != first {
		t.Error("it was packed anew with half of what it needs")
	}
	s.clock.now = s.clock.now.Add(reserveAnyway)
	if s.step(); small() == nil || small() == first {
		t.Errorf("after a minute: %+v", small())
	}
	if end(); !s.Store.Snapshot().Workflows(nil).Get("default", "small").Posted {
		t.Error("as much as it needs is free, and it waits")
	}
}
