package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// twice is a state machine that applies some entries twice.
type twice struct {
	raft.FSM
	n int
}

// Apply implements raft.FSM.
func (m *twice) Apply(log *raft.Log) any {
	answer := m.FSM.Apply(log)
	if m.n++; m.n%97 == 0 {
		m.FSM.Apply(log)
	}
	return answer
}

// dropReclaim leaves out of what is proposed that something is taken back for somebody else.
func dropReclaim(payload any) any {
	commit, ok := payload.(*structs.PlanCommit)
	if !ok {
		return payload
	}
	out := &structs.PlanCommit{}
	for _, p := range commit.Plans {
		c := *p
		c.Stop = nil
		for _, s := range p.Stop {
			if s.PreemptedBy == "" {
				c.Stop = append(c.Stop, s)
			}
		}
		out.Plans = append(out.Plans, &c)
	}
	return out
}

// unjudged commits every plan as it is.
func unjudged(l *leader, p *structs.Plan, tell func(*structs.PlanResult, error)) bool {
	index, err := l.Apply(forever, structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
		EvalID: p.EvalID, Place: p.Place, Stop: p.Stop, Update: p.Update, Reserve: p.Reserve, Unreserve: p.Unreserve, Requests: p.Requests, Evals: p.Evals,
		Time: epoch.Add(l.now).UnixNano(), JudgedAt: l.r.index(),
	}}})
	l.after(0, "answer", -1, func() { tell(&structs.PlanResult{AllocIndex: index}, err) })
	return true
}

// impatient has each entry that starts a stage start the next one, too.
func impatient(l *leader, e *structs.WorkflowAdvanceEntry) (uint64, error) {
	r := l.r.store.Snapshot().Workflows(nil).Get(e.Namespace, e.ID)
	if next := e.Stage + 1; r != nil && next < len(r.Stages) && slices.ContainsFunc(e.Stages, func(m structs.WorkflowStageMove) bool { return m.Start }) {
		e.Stages = append(e.Stages, structs.WorkflowStageMove{Stage: next, State: structs.StageStarting, Start: true})
		for i := range r.Stages[next].Jobs {
			e.Jobs = append(e.Jobs, structs.WorkflowJobMove{Stage: next, Job: i, State: structs.StageStarting, Register: true})
		}
	}
	return l.Apply(forever, structs.LogWorkflowAdvance, e)
}

// again proposes each entry that moves a workflow on twice, as if the second was about the state after the first.
func again(l *leader, e *structs.WorkflowAdvanceEntry) (uint64, error) {
	index, err := l.Apply(forever, structs.LogWorkflowAdvance, e)
	if err != nil {
		return index, err
	}
	second := *e
	second.CheckIndex = index
	return l.Apply(forever, structs.LogWorkflowAdvance, &second)
}

// reserveTwice has every reservation take twice the memory that was judged.
func reserveTwice(payload any) any {
	commit, ok := payload.(*structs.PlanCommit)
	if !ok {
		return payload
	}
	out := &structs.PlanCommit{}
	for _, p := range commit.Plans {
		c := *p
		if c.Workflow != nil {
			to := *c.Workflow
			to.Parts = slices.Clone(to.Parts)
			for i := range to.Parts {
				to.Parts[i].MemoryMB *= 2
			}
			c.Workflow = &to
		}
		out.Plans = append(out.Plans, &c)
	}
	return out
}

// TestPlantedBugsOfWorkflowsAreFound breaks what workflows do. Each bug must be found within a few seeds.
func TestPlantedBugsOfWorkflowsAreFound(t *testing.T) {
	t.Parallel()
	for name, bug := range map[string]struct {
		seams
		found []string // one of these is said
	}{
		"a stage does not wait":     {seams{advance: impatient}, []string{"before it is", "is not over"}},
		"a job is registered twice": {seams{advance: again}, []string{"the one before is not over", "begins for the"}},
		"too much is reserved":      {seams{commit: reserveTwice}, []string{"are reserved for workflows", "is given to others"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range []uint64{8, 9, 16, 32, 57} {
				_, err := run(seed, bug.seams, 1500, 50)
				failure := &Failure{}
				if !errors.As(err, &failure) {
					continue
				}
				if !slices.ContainsFunc(bug.found, func(what string) bool { return strings.Contains(failure.What, what) }) {
					t.Fatalf("found otherwise than it should be: %v", err)
				}
				t.Logf("found by seed %d: %.200s", seed, failure.What)
				return
			}
			t.Fatal("not found")
		})
	}
}

// TestPlantedBugsAreFound breaks what is simulated in seven ways. Each must be found within a
// few seeds, and by a check that is there for it.
func TestPlantedBugsAreFound(t *testing.T) {
	for name, bug := range map[string]struct {
		seams
		found []string // one of these is said
	}{
		"a reclaim is dropped":    {seams{commit: dropReclaim}, []string{"given away", "is given to"}},
		"an entry applied twice":  {seams{machine: func(id int, m raft.FSM) raft.FSM { return doubled(id, m) }}, []string{"has hash", "with changes"}},
		"the fit is not checked":  {seams{submit: unjudged}, []string{"given away", "is given to", "is there twice"}},
		"the last entry is lost":  {seams{elected: func(log *agreed) { log.entries = log.entries[:max(len(log.entries), 1)-1] }}, []string{"is at index", "acknowledged", "has hash", "with changes"}},
		"gossip is not heeded":    {seams{checked: func(session, _ bool) (bool, bool) { return session, false }}, []string{"as if nobody heard it"}},
		"sessions are not heeded": {seams{checked: func(_, gossip bool) (bool, bool) { return false, gossip }}, []string{"answers by RPC"}},
		"a stale read is trusted": {seams{index: func(uint64) uint64 { return 0 }}, []string{"is there twice", "given away", "no evaluation of it is open", "no evaluation of job"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const from, tries = 3, 5 // a seed that finds nothing takes long, and 1 and 2 find little of the probers
			for seed := uint64(from); seed < from+tries; seed++ {
				result, err := run(seed, bug.seams, minEntries, minFaults)
				failure := &Failure{}
				if !errors.As(err, &failure) {
					continue
				}
				for _, what := range bug.found {
					if strings.Contains(failure.What, what) {
						t.Logf("found by seed %d after %d entries: %.200s", seed, result.Entries, failure.What)
						return
					}
				}
				t.Fatalf("found otherwise than it should be: %v", err)
			}
			t.Fatalf("not found by %d seeds", tries)
		})
	}
}

// TestPanicOfACallIsFound: the mux answers for a method that panicked, as a server must; here that is a fault of ours.
func TestPanicOfACallIsFound(t *testing.T) {
	t.Parallel()
	s := newSim(3, seams{}, minEntries, minFaults)
	defer s.end()
	for s.leader == nil && s.failed == nil {
		s.step()
	}
	const method = "Test.Panic"
	s.leader.mux.Handle(method, func(context.Context, *wire.Call) error { panic("out of hand") })
	if err := s.call(method, &structs.WriteRequest{}, &structs.WriteReply{}); err == nil {
		t.Error("it answers without an error")
	}
	if s.failed == nil || !strings.Contains(s.failed.What, method) || !strings.Contains(s.failed.What, "out of hand") {
		t.Errorf("not found: %v", s.failed)
	}
}

// doubled has one replica of all apply entries twice.
func doubled(id int, m raft.FSM) raft.FSM {
	if id != 1 {
		return m
	}
	return &twice{FSM: m}
}

// TestSameSeedSameRun: a seed does the same each time, step by step.
func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	var was *Result
	for range 2 {
		is, err := run(3, seams{}, 500, 50)
		if err != nil {
			t.Fatal(err)
		}
		if was != nil && (was.Trace != is.Trace || was.String() != is.String()) {
			t.Errorf("the same seed ran otherwise:\n%s\n%s", was, is)
		}
		was = is
	}
}
