package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// fate is what happens at one of the entries that move a workflow on.
type fate struct {
	name string
	// refused: the leader is lost before the entry is in the log. unanswered: it is lost when the entry is applied, and never learns that.
	refused, unanswered bool
	// action is what a user does with the run: right before the entry is applied, which was decided before; or, with a lost leader, before there is
	// another one. "": nothing.
	action string
}

// lossy is a cluster with a workflow, at one of whose entries something happens.
type lossy struct {
	*started
	fate
	at      int // which entry
	entries int // how many there were so far
	acting  bool
	lost    bool // who leads can commit nothing any more
	losses  int
	flooded bool
	failed  bool // the job that is to fail once has
}

const lossFlood = "flood-500"

var errLost = errors.New("the leader is lost")

// newLossy returns a cluster of a node that a workflow of three stages needs all of, a job of which fails once.
func newLossy(t testcluster.TB, f fate, at int) *lossy {
	w := lendingWorkflow("chip", 50, []int{2000}, []int{2000, 3000, 1000}, []int{8000})
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			j.Job.TaskGroups[0].ReschedulePolicy = &structs.ReschedulePolicy{Attempts: new(0), Unlimited: new(false), Interval: new(time.Duration(0))}
		}
	}
	w.Stages[1].Jobs[1].Retries = 1
	s := &lossy{started: startedWith(t, []int64{8000}, w), fate: f, at: at}
	s.Before = func(_ structs.LogType, payload any) error {
		switch {
		case s.acting || !moves(payload):
			return nil
		case s.lost:
			return errLost
		}
		s.entries++
		switch {
		case s.entries != s.at:
		case s.refused:
			s.lost = true
			return errLost
		case s.action != "" && !s.unanswered:
			s.acts()
		}
		return nil
	}
	s.Applied = func(e testcluster.Entry) error {
		if s.entries == s.at && s.unanswered && !s.acting && moves(e.Payload) {
			s.lost = true
			return errLost
		}
		return nil
	}
	return s
}

// moves reports whether an entry is one that the driver of workflows commits.
func moves(payload any) bool {
	switch p := payload.(type) {
	case *structs.WorkflowAdvanceEntry:
		return true
	case *structs.PlanCommit:
		return p.Plans[0].Workflow != nil
	}
	return false
}

// acts has the user do something with the run.
func (s *lossy) acts() {
	s.acting = true
	s.Put(s.t, &structs.WorkflowStateEntry{Namespace: "default", ID: s.id, Action: s.action, EvalSeed: fmt.Sprint("seed ", s.Index()), Time: int64(s.Index())})
	s.acting = false
}

// plays has everything go on until nothing does any more: the leader that drives the workflow, the workers, and the client.
func (s *lossy) plays() {
	for range 200 {
		was := s.Index()
		s.clock.now = s.clock.now.Add(time.Second)
		if s.steps.Step(context.Background()); s.lost {
			if s.action != "" && s.run().Alive() {
				s.acts()
			}
			s.lost, s.losses = false, s.losses+1
			s.leads()
			continue
		}
		s.works()
		s.reports()
		switch {
		case s.Index() != was:
		case s.run().State == structs.WorkflowPaused:
			s.action = structs.WorkflowActionResume
			s.acts()
		default:
			return
		}
	}
	s.t.Fatalf("it goes on for ever: %+v", s.run())
}

// works decides on the jobs that have evaluations, and on borrowers.
func (s *lossy) works() {
	for ev := range s.Store.Snapshot().Evals(nil, "default", "", false) {
		if ev.Status != structs.EvalStatusPending {
			continue
		}
		s.decide(ev.JobID)
		done := *ev
		done.Status = structs.EvalStatusComplete
		s.Put(s.t, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{&done}, Time: int64(s.Index())})
	}
	switch {
	case s.flooded:
		s.decide(lossFlood)
	case s.run().Posted:
		s.flooded = true
		s.borrow(16, 500)
	}
}

// reports has the client run what is to run, and end one instance of the workflow that runs: the first job of a stage is the last to end. What is to stop ends.
func (s *lossy) reports() {
	e := &structs.AllocClientEntry{Time: int64(s.Index())}
	all := slices.Collect(s.Store.Snapshot().Allocs(nil, "default", "", false))
	ends, starting := "", false
	for _, a := range all {
		switch {
		case a.JobID == lossFlood || a.Terminal():
		case a.ClientStatus == structs.AllocClientPending:
			starting = true
		default:
			ends = max(ends, a.JobID)
		}
	}
	if starting {
		ends = ""
	}
	for _, a := range all {
		u := &structs.AllocClientUpdate{ID: a.ID, ClientStatus: structs.AllocClientComplete}
		switch {
		case a.ClientTerminal(), a.ClientStatus == structs.AllocClientRunning && !a.ServerTerminal() && a.JobID != ends:
			continue
		case a.ServerTerminal():
		case a.ClientStatus == structs.AllocClientPending:
			u.ClientStatus = structs.AllocClientRunning
		case a.JobID == "chip/1/j1-1" && !s.failed:
			s.failed = true
			u.ClientStatus, u.TaskStates = structs.AllocClientFailed, map[string]*structs.TaskState{"t": {State: structs.TaskStateDead, Failed: true}}
		}
		e.Updates = append(e.Updates, u)
	}
	if len(e.Updates) > 0 {
		s.Put(s.t, e)
	}
}

// check fails unless the run has ended in a state and nothing of it is left, no job has run twice for an attempt, and none before the stage
// before its own was complete.
func (s *lossy) check(want string) {
	s.t.Helper()
	r, snap := s.run(), s.Store.Snapshot()
	key := structs.WorkflowKey(r.Namespace, r.ID)
	switch {
	case r.State != want:
		s.t.Fatalf("the run is %s, at stage %d: %q; want %s", r.State, r.Stage, r.Missing, want)
	case r.Posted || len(r.Parts) > 0 || snap.World().Workflow(key) != nil || len(scheduler.PendingWorkflows(snap.World())) > 0 || scheduler.WorkflowUse(snap.World(), key) != nil:
		s.t.Fatalf("a reservation is left: posted %v, %+v", r.Posted, r.Parts)
	}
	over := uint64(0) // when the stages before were
	for _, stage := range r.Stages {
		last := over
		if want == structs.WorkflowComplete && stage.Attempt != 1 {
			s.t.Fatalf("stage %s has begun %d times", stage.Name, stage.Attempt)
		}
		for _, j := range stage.Jobs {
			allocs := snap.AllocsByJob(nil, r.Namespace, j.JobID, true)
			job := snap.Job(nil, r.Namespace, j.JobID)
			if job != nil && (job.Status != structs.JobStatusDead || job.CreateIndex <= over) {
				s.t.Fatalf("job %s is %s, registered at %d, and the stage before ended at %d", j.JobID, job.Status, job.CreateIndex, over)
			}
			if n := len(allocs); n > j.Attempt || want == structs.WorkflowComplete && n != j.Attempt {
				s.t.Fatalf("job %s has %d allocations for %d attempts", j.JobID, n, j.Attempt)
			}
			for i, a := range allocs {
				if !a.Terminal() || !a.ClientTerminal() || a.CreateIndex <= over || i > 0 && a.JobVersion == allocs[i-1].JobVersion {
					s.t.Fatalf("allocation %d of job %s is %s, %s, version %d; placed at %d, and the stage before ended at %d", i, j.JobID, a.DesiredStatus, a.ClientStatus,
						a.JobVersion, a.CreateIndex, over)
				}
				last = max(last, a.ModifyIndex)
			}
		}
		over = last
	}
	if n := len(s.live(lossFlood)); s.flooded && n != 16 {
		s.t.Fatalf("%d of 16 borrowers run again", n)
	}
}

// TestLeaderLostAtEveryEntry loses the leader, and has users pause and cancel the run, at each of the entries that move a workflow on. Whoever leads then goes
// on from the state alone: nothing starts twice or too early, and a run that was cancelled leaves nothing behind.
func TestLeaderLostAtEveryEntry(t *testing.T) {
	t.Parallel()
	undisturbed := newLossy(t, fate{}, 0)
	undisturbed.plays()
	undisturbed.check(structs.WorkflowComplete)
	const least = 9 // it is reserved; three stages start, are running, and are over; a job is registered once more
	if undisturbed.entries < least {
		t.Fatalf("%d entries, want at least %d", undisturbed.entries, least)
	}
	var at []int
	for _, f := range []fate{
		{name: "lost before it", refused: true},
		{name: "lost after it", unanswered: true},
		{name: "paused before it", action: structs.WorkflowActionPause},
		{name: "cancelled before it", action: structs.WorkflowActionCancel},
		{name: "lost before it, and cancelled", refused: true, action: structs.WorkflowActionCancel},
		{name: "lost after it, and cancelled", unanswered: true, action: structs.WorkflowActionCancel},
	} {
		for n := 1; n <= undisturbed.entries; n++ {
			where := fmt.Sprintf("at entry %d, %s", n, f.name)
			s := newLossy(named{t, where}, f, n)
			s.plays()
			want := structs.WorkflowComplete
			if last := s.run().State == structs.WorkflowComplete && n == undisturbed.entries; f.action == structs.WorkflowActionCancel && (!last || !f.unanswered) {
				want = structs.WorkflowCancelled
			}
			s.check(want)
			if lost := f.refused || f.unanswered; s.entries < n || lost != (s.losses == 1) {
				t.Errorf("%s: %d entries, %d leaders lost", where, s.entries, s.losses)
			}
			at = append(at, n)
		}
	}
	if !slices.Contains(at, least) {
		t.Error("nothing happened")
	}
}

// named is a test that says where it was.
type named struct {
	testcluster.TB
	where string
}

// Fatalf implements testcluster.TB.
func (n named) Fatalf(format string, args ...any) {
	n.Helper()
	n.TB.Fatalf(n.where+": "+format, args...)
}
