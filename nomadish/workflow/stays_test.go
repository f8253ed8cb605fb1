package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// ineligible has a node take no work any more.
func (s *started) ineligible(id string) {
	s.Put(s.t, &structs.NodeEligibilityEntry{NodeID: id, Eligibility: structs.NodeIneligible, Time: int64(s.Index())})
}

// elsewhere has a node be in another pool.
func (s *started) elsewhere(id string, mhz int64) {
	n := testcluster.Node(id, mhz)
	n.NodePool = "other"
	n.ComputeClass()
	s.Put(s.t, &structs.NodeRegisterEntry{Node: n, Time: int64(s.Index())})
}

// gangStarted returns a cluster of two nodes with a workflow whose first stage is a gang with a member on each of them.
func gangStarted(t testcluster.TB) *started {
	w := lendingWorkflow("chip", 50, []int{8000}, []int{8000})
	group := w.Stages[0].Jobs[0].Job.TaskGroups[0]
	group.Count, group.Gang = 2, &structs.Gang{Min: 2}
	s := startedWith(t, nil, w)
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.step()
	return s
}

// TestStayingPartIsNoRoom: in what idles of a part that stays on a node which takes no work nothing may start: what another node lost that the running stage needs is
// reserved anew, though it would fit there.
func TestStayingPartIsNoRoom(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000, 4000, 4000}, []int{1000}, []int{2000, 4000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.node("n-b", 4000, structs.NodeStatusReady)
	s.step()
	s.complete(0)
	s.step()
	s.borrow(7, 1000) // so that the jobs of the last stage start on both nodes
	for _, id := range s.live("flood-1000") {
		if s.Store.Snapshot().Alloc(nil, id).NodeID == "n-b" {
			s.ends(id)
		}
	}
	s.complete(1)
	s.step()
	const job = "chip/1/j2-0"
	if on := s.nodesOf(job); len(on) != 1 || on[0] != "n-b" {
		t.Fatalf("%s runs on %v", job, on)
	}
	s.ineligible("n-a")
	s.node("n-c", 4000, structs.NodeStatusReady)
	s.node("n-b", 4000, structs.NodeStatusDown)
	s.step()
	if r := s.run(); r.Missing != "" || len(r.Parts) != 2 || r.Parts[1].NodeID != "n-c" || r.Parts[1].CPU != 2000 {
		t.Errorf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	s.decide(job)
	if c := s.claimsOf(job); len(c) != 1 || c[0] != structs.ClaimWorkflow {
		t.Errorf("placed again it runs by %q", c)
	}
}

// TestPartStaysForUnclaimed: a part stays on a node that takes no work while a member of a gang runs there without a claim, as another one has lost its part: it is
// not reserved a second time for it.
func TestPartStaysForUnclaimed(t *testing.T) {
	t.Parallel()
	s := gangStarted(t)
	s.ineligible("n-b")
	s.elsewhere("n-a", 8000)
	s.step()
	s.node("n-c", 8000, structs.NodeStatusReady)
	s.step()
	r := s.run()
	if r.Missing != "" || len(r.Parts) != 2 || r.Parts[0].NodeID != "n-b" || r.Parts[1].NodeID != "n-c" {
		t.Errorf("reserved %+v, missing %q", r.Parts, r.Missing)
	}
	if u := scheduler.WorkflowUse(s.Store.Snapshot().World(), "default/chip"); u.Used.CPU != 8000 || u.Lent.CPU != 0 || u.Idle.CPU != 8000 {
		t.Errorf("used %+v, lent %+v, idle %+v", u.Used, u.Lent, u.Idle)
	}
}

// TestMissingBesideWhatStays: what is missing beside an instance that goes on on a node which takes no work is not stated as never to be had, as that node could
// not hold it.
func TestMissingBesideWhatStays(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{8000})
	job := w.Stages[0].Jobs[0].Job
	job.TaskGroups[0].Count, job.Constraints = 2, []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts, RTarget: "true"}}
	s := startedWith(t, nil, w)
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.node("n-b", 8000, structs.NodeStatusReady)
	s.step()
	s.ineligible("n-b")
	s.node("n-c", 8000, structs.NodeStatusReady)
	s.borrow(8, 1000)
	s.node("n-a", 8000, structs.NodeStatusDown)
	s.step()
	if text := s.run().Missing; !strings.Contains(text, "nowhere is so much free: 8000 MHz") {
		t.Error(text)
	}
}

// TestRaisedOnSmallerNode: what runs without a claim in its part is raised though its node has less by now than it uses.
func TestRaisedOnSmallerNode(t *testing.T) {
	t.Parallel()
	s := gangStarted(t)
	s.node("n-c", 8000, structs.NodeStatusReady)
	s.elsewhere("n-a", 8000)
	s.step()
	for _, id := range s.live("chip/1/j0-0") {
		if s.Store.Snapshot().Alloc(nil, id).NodeID == "n-a" {
			s.ends(id)
		}
	}
	s.node("n-b", 6000, structs.NodeStatusReady)
	s.step()
	if c := s.claimsOf("chip/1/j0-0"); len(c) != 1 || c[0] != structs.ClaimWorkflow {
		t.Errorf("the rest of the gang runs by %q", c)
	}
	if s.steps.v.due {
		t.Error("the reservation is looked at again at once")
	}
}

// TestRaisedWhileAnotherPartIsMissing: what runs without a claim in a part that stays is raised though another part is lost, and cannot be reserved anew; once.
func TestRaisedWhileAnotherPartIsMissing(t *testing.T) {
	t.Parallel()
	s := gangStarted(t)
	s.node("n-c", 8000, structs.NodeStatusReady)
	s.elsewhere("n-a", 8000)
	s.step()
	s.node("n-c", 8000, structs.NodeStatusDown)
	s.step()
	if c := s.claimsOf("chip/1/j0-0"); len(c) != 2 || c[0] != "" || c[1] != "" || s.run().Missing == "" {
		t.Fatalf("the gang runs by %q, missing %q", c, s.run().Missing)
	}
	for _, id := range s.live("chip/1/j0-0") {
		if s.Store.Snapshot().Alloc(nil, id).NodeID == "n-a" {
			s.ends(id)
		}
	}
	s.step()
	if c := s.claimsOf("chip/1/j0-0"); len(c) != 1 || c[0] != structs.ClaimWorkflow || s.run().Missing == "" {
		t.Errorf("the rest of the gang runs by %q, missing %q", c, s.run().Missing)
	}
	at := s.Index()
	s.steps.v.due = true
	if s.step(); s.Index() != at || s.steps.v.due {
		t.Error("it is committed again")
	}
}

// refusing refuses what has instances use a reservation.
type refusing struct {
	*judged
	refused int
	err     error
}

// Submit implements Planner.
func (r *refusing) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	if len(p.Update) == 0 {
		return r.judged.Submit(ctx, p)
	}
	r.refused++
	return &structs.PlanResult{}, r.err
}

// TestRefusedIsNotRetried: what was refused twice while nothing has changed is not submitted again until something changes, or a minute has passed. What could not be
// committed is.
func TestRefusedIsNotRetried(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("it was not committed")} {
		s := newStarted(t, nil, []int{4000}, []int{8000})
		s.node("n-a", 8000, structs.NodeStatusReady)
		s.step()
		s.node("n-a", 8000, structs.NodeStatusDown)
		s.node("n-b", 8000, structs.NodeStatusReady)
		s.decide("chip/1/j0-0")
		p := &refusing{judged: s.judged, err: err}
		s.steps = New(Options{NewID: s.newID, Clock: s.clock}, s.Store, s.Log, p).Start()
		rounds := func() (n int) {
			was := p.refused
			for range 8 {
				s.clock.now = s.clock.now.Add(time.Second)
				s.steps.Step(context.Background())
			}
			return p.refused - was
		}
		first := rounds()
		s.clock.now = s.clock.now.Add(reserveAnyway)
		later := rounds()
		if want := 2; err == nil && (first != want || later != want) || err != nil && (first < 8 || later < 8) {
			t.Errorf("%v: refused %d times in 8 rounds, and %d a minute later", err, first, later)
		}
	}
}

// TestNothingToRaiseIsRemembered: a run of which instances run without a claim where there is room that may not use it is not chosen for anew in each round.
func TestNothingToRaiseIsRemembered(t *testing.T) {
	t.Parallel()
	s := gangStarted(t)
	s.node("n-c", 8000, structs.NodeStatusReady)
	s.elsewhere("n-a", 8000)
	s.step()
	const key = "default/chip"
	was := s.steps.v.known[key]
	if !scheduler.RaisesForWorkflow(s.Store.Snapshot().World(), key) || was == nil {
		t.Fatalf("remembered: %v", was)
	}
	s.runs(lendingWorkflow("large", 40, []int{80_000})) // another round
	s.clock.now = s.clock.now.Add(time.Second)
	s.steps.Step(context.Background())
	if is := s.steps.v.known[key]; is != was || s.steps.v.known["default/large"] == nil {
		t.Error("it was chosen for anew")
	}
	s.clock.now = s.clock.now.Add(reserveAnyway)
	s.steps.Step(context.Background())
	if is := s.steps.v.known[key]; is == was {
		t.Error("it was not chosen for anew a minute later")
	}
}

// TestPlacedAfterPartHasGone: a placement that was judged before the part of the reservation went which it was to use has no claim, as it has nothing reserved.
func TestPlacedAfterPartHasGone(t *testing.T) {
	t.Parallel()
	s := newStarted(t, nil, []int{4000}, []int{8000})
	s.node("n-a", 8000, structs.NodeStatusReady)
	s.step()
	const id = "chip/1/j0-0"
	s.Put(t, &structs.AllocClientEntry{Time: int64(s.Index()), Updates: []*structs.AllocClientUpdate{{ID: s.live(id)[0], ClientStatus: structs.AllocClientLost}}})
	snap := s.Store.Snapshot()
	job := snap.Job(nil, "default", id)
	ev := &structs.Evaluation{ID: "e", Namespace: "default", JobID: id, Priority: 50, Type: job.Type, Status: structs.EvalStatusPending}
	plan, err := scheduler.Schedule(snap.World(), ev, snap.Input(job, snap.AllocsToDecide("default", id), &state.InputOptions{
		Now: s.clock.Now(), Seed: 1, NewID: testcluster.IDs(fmt.Sprint(s.Index()) + "-%d"),
	}))
	if err != nil || len(plan.Place) != 1 || plan.Place[0].Resources.Shared.Terms.Claim != structs.ClaimWorkflow {
		t.Fatalf("placed %+v, %v", plan.Place, err)
	}
	s.Put(t, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, EvalSeed: "e", Time: 5})
	s.Put(t, testcluster.Commit(&structs.JudgedPlan{EvalID: ev.ID, Place: plan.Place, Stop: plan.Stop, Time: int64(s.Index())}))
	if c := s.claimsOf(id); len(c) != 1 || c[0] != "" {
		t.Errorf("it runs by %q", c)
	}
}
