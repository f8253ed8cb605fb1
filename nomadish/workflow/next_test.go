package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// batchJob returns a job of a workflow with one instance.
func batchJob() *structs.Job {
	task := &structs.Task{Name: "t", Driver: "mock_driver"}
	return &structs.Job{Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{task}}}}
}

// workflowOf returns a workflow with stages of jobs: "a b/c" has two, of two jobs and of one. a:2 is a job with two retries.
func workflowOf(onFailure, list string) *structs.Workflow {
	w := &structs.Workflow{ID: "chip", OnFailure: onFailure}
	for i, names := range strings.Split(list, "/") {
		s := &structs.WorkflowStage{Name: fmt.Sprintf("s%d", i)}
		for name := range strings.FieldsSeq(names) {
			name, retries, _ := strings.Cut(name, ":")
			j := &structs.WorkflowJob{Name: name, Job: batchJob()}
			_, _ = fmt.Sscan(retries, &j.Retries)
			s.Jobs = append(s.Jobs, j)
		}
		w.Stages = append(w.Stages, s)
	}
	w.Canonicalize()
	return w
}

// site is a state with one workflow whose jobs do what a test states: the entries are applied by the real state.
type site struct {
	t      interface{ Fatalf(string, ...any) }
	store  *state.Store
	writer *state.Writer
	index  uint64
	does   map[string]stages.Progress // by job ID
	// registered lists the registrations of jobs: ID and attempt.
	registered []string
}

func newSite(t interface{ Fatalf(string, ...any) }, w *structs.Workflow) *site {
	s := &site{t: t, does: map[string]stages.Progress{}}
	s.store, s.writer = state.New(state.Options{})
	s.put(structs.LogWorkflowRun, &structs.WorkflowRunEntry{Workflow: w, Time: 1})
	return s
}

func (s *site) put(kind structs.LogType, payload any) {
	s.index++
	if err := s.writer.Apply(s.index, kind, payload); err != nil {
		s.t.Fatalf("entry %d of type %d: %v", s.index, kind, err)
	}
}

func (s *site) act(action string) {
	s.put(structs.LogWorkflowState, &structs.WorkflowStateEntry{
		Namespace: "default", ID: "chip", Action: action, EvalSeed: fmt.Sprint("seed ", s.index), Time: int64(s.index),
	})
}

func (s *site) run() *structs.WorkflowRun {
	return s.store.Snapshot().Workflows(nil).Get("default", "chip")
}

// decide applies what follows from the state until nothing does.
func (s *site) decide() {
	for range 1000 {
		if !s.step() {
			return
		}
	}
	s.t.Fatalf("it goes on for ever")
}

func (s *site) step() bool {
	r := s.run()
	if r.State == structs.WorkflowPending && !r.Posted {
		s.put(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: int64(s.index), Workflow: &structs.WorkflowReservation{
			Namespace: r.Namespace, ID: r.ID, Run: r.Run, Posted: true,
		}}}})
		return true
	}
	jobs := stages.Jobs{Progress: func(id string) stages.Progress { return s.does[id] }}
	entry, _ := stages.Next(r, jobs)
	if entry == nil {
		return false
	}
	again, _ := stages.Next(r, jobs)
	if fmt.Sprint(again) != fmt.Sprint(entry) {
		s.t.Fatalf("two leaders come to %v and %v", entry, again)
	}
	entry.EvalSeed, entry.Time = fmt.Sprint("seed ", s.index), int64(s.index)
	for _, m := range entry.Jobs {
		if m.Register {
			j := r.Stages[m.Stage].Jobs[m.Job]
			s.registered = append(s.registered, fmt.Sprintf("%s#%d", j.JobID, j.Attempt+1))
			s.does[j.JobID] = stages.Pending
		}
	}
	s.put(structs.LogWorkflowAdvance, entry)
	if err := s.writer.Apply(s.index+1, structs.LogWorkflowAdvance, entry); structs.CodeOf(err) != structs.CodeConflict {
		s.t.Fatalf("the entry of a second leader: %v, want a conflict", err)
	}
	s.index++
	return true
}

// text describes the run: "running 1: complete[a complete, b complete] starting[c starting]".
func (s *site) text() string {
	r := s.run()
	var texts []string
	for _, stage := range r.Stages {
		var jobs []string
		for _, j := range stage.Jobs {
			jobs = append(jobs, j.Name+" "+j.State)
		}
		texts = append(texts, stage.State+"["+strings.Join(jobs, ", ")+"]")
	}
	return fmt.Sprintf("%s %d: %s", r.State, r.Stage, strings.Join(texts, " "))
}

// TestNext plays runs: each step states what jobs do now, or an action, and what the run is like then.
func TestNext(t *testing.T) {
	t.Parallel()
	f := func(name, onFailure, list string, steps ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, workflowOf(onFailure, list))
			if steps[0] != structs.WorkflowActionPause {
				s.decide()
			}
			for i := 0; i < len(steps); i += 2 {
				for what := range strings.FieldsSeq(steps[i]) {
					job, does, ok := strings.Cut(what, "=")
					if !ok {
						s.act(what)
						continue
					}
					s.does["chip/1/"+job] = map[string]stages.Progress{"runs": stages.Running, "ok": stages.Complete, "fails": stages.Failed, "stopped": stages.Stopped}[does]
				}
				s.decide()
				if got := s.text(); got != steps[i+1] {
					t.Fatalf("after %q:\n have %s\n want %s", steps[i], got, steps[i+1])
				}
			}
		})
	}
	f("two stages", "stop", "a b/c",
		"", "running 0: starting[a starting, b starting] waiting[c waiting]",
		"a=runs", "running 0: running[a running, b starting] waiting[c waiting]",
		"a=ok b=runs", "running 0: running[a complete, b running] waiting[c waiting]",
		"b=ok", "running 1: complete[a complete, b complete] starting[c starting]",
		"c=ok", "complete 2: complete[a complete, b complete] complete[c complete]")
	f("siblings run to their end", "stop", "a b/c",
		"a=fails b=runs", "running 0: running[a failed, b running] waiting[c waiting]",
		"b=ok", "failed 0: failed[a failed, b complete] waiting[c waiting]",
		"c=ok", "failed 0: failed[a failed, b complete] waiting[c waiting]")
	f("continue", "continue", "a b/c",
		"", "running 0: starting[a starting, b starting] waiting[c waiting]",
		"a=fails b=ok", "running 1: failed[a failed, b complete] starting[c starting]",
		"c=ok", "complete 2: failed[a failed, b complete] complete[c complete]")
	f("the last stage fails", "continue", "a/c",
		"a=ok", "running 1: complete[a complete] starting[c starting]",
		"c=fails", "failed 1: complete[a complete] failed[c failed]")
	f("a job is retried", "stop", "a:2",
		"a=fails", "running 0: starting[a starting]",
		"a=runs", "running 0: running[a running]",
		"a=fails", "running 0: running[a starting]",
		"a=fails", "failed 0: failed[a failed]")
	f("a stopped job is not retried", "stop", "a:2",
		"", "running 0: starting[a starting]",
		"a=stopped", "failed 0: failed[a failed]")
	f("three attempts of a stage", "retry-stage", "a b/c",
		"", "running 0: starting[a starting, b starting] waiting[c waiting]",
		"a=ok b=fails", "running 0: starting[a starting, b starting] waiting[c waiting]",
		"a=ok b=fails", "running 0: starting[a starting, b starting] waiting[c waiting]",
		"a=ok b=fails", "failed 0: failed[a complete, b failed] waiting[c waiting]")
	f("a stopped job keeps its stage from being tried again", "retry-stage", "a b/c",
		"a=stopped b=runs", "running 0: running[a failed, b running] waiting[c waiting]",
		"b=fails", "failed 0: failed[a failed, b failed] waiting[c waiting]")
	f("pause", "stop", "a/b",
		"pause", "paused 0: waiting[a waiting] waiting[b waiting]",
		"resume", "running 0: starting[a starting] waiting[b waiting]",
		"pause a=runs", "paused 0: running[a running] waiting[b waiting]",
		"a=ok", "paused 1: complete[a complete] waiting[b waiting]",
		"resume", "running 1: complete[a complete] starting[b starting]",
		"pause b=ok", "complete 2: complete[a complete] complete[b complete]")
	f("a paused stage is not tried again", "retry-stage", "a",
		"", "running 0: starting[a starting]",
		"pause a=fails", "paused 0: failed[a failed]",
		"resume", "running 0: starting[a starting]",
		"a=ok", "complete 1: complete[a complete]")
	f("a stage is tried again when none of it runs", "retry-stage", "a",
		"", "running 0: starting[a starting]",
		"pause a=fails", "paused 0: failed[a failed]",
		"resume a=runs", "running 0: failed[a failed]", // its node came back
		"a=fails", "running 0: starting[a starting]")
	f("cancel", "stop", "a b/c",
		"a=ok b=runs", "running 0: running[a complete, b running] waiting[c waiting]",
		"cancel", "cancelled 0: failed[a complete, b failed] waiting[c waiting]",
		"b=ok", "cancelled 0: failed[a complete, b failed] waiting[c waiting]")
}

// TestRetryStage runs a workflow again from its second stage on: what was complete stays, and the jobs of the new run have other IDs.
func TestRetryStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, workflowOf("stop", "a/b"))
	s.decide()
	s.does["chip/1/a"] = stages.Complete
	s.decide()
	s.does["chip/1/b"] = stages.Failed
	s.decide()
	s.put(structs.LogWorkflowRun, &structs.WorkflowRunEntry{Namespace: "default", ID: "chip", From: "s1", Time: 9})
	if got, want := s.text(), "pending 1: complete[a complete] waiting[b waiting]"; got != want {
		t.Fatalf("have %s, want %s", got, want)
	}
	s.decide()
	s.does["chip/2/b"] = stages.Complete
	s.decide()
	if r := s.run(); r.State != structs.WorkflowComplete || r.Run != 2 || len(r.Previous) != 1 || r.Previous[0].State != structs.WorkflowFailed {
		t.Errorf("%s, run %d after %+v", s.text(), r.Run, r.Previous)
	}
	if want := []string{"chip/1/a#1", "chip/1/b#1", "chip/2/b#1"}; !slices.Equal(s.registered, want) {
		t.Errorf("registered %v, want %v", s.registered, want)
	}
}

// TestEveryRunEnds plays random workflows: jobs complete and fail, somebody pauses, resumes, cancels and retries, and each step is decided by
// two leaders. No job is registered twice for an attempt, no stage starts before the one before has ended, and every run ends.
func TestEveryRunEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lists := make([]string, rapid.IntRange(1, 4).Draw(t, "stages"))
		for i := range lists {
			for k := range rapid.IntRange(1, 3).Draw(t, "jobs") {
				lists[i] += fmt.Sprintf(" j%d-%d:%d", i, k, rapid.IntRange(0, 2).Draw(t, "retries"))
			}
		}
		s := newSite(t, workflowOf(rapid.SampledFrom(structs.WorkflowOnFailure()).Draw(t, "on failure"), strings.Join(lists, "/")))
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			s.chance(t)
			s.check()
		}
		if s.run().State == structs.WorkflowPaused {
			s.act(structs.WorkflowActionResume)
		}
		for range 1000 {
			s.decide()
			s.check()
			if !s.run().Alive() {
				break
			}
			for _, id := range s.open() {
				s.does[id] = rapid.SampledFrom([]stages.Progress{stages.Complete, stages.Failed}).Draw(t, "ends")
			}
		}
		if r := s.run(); r.Alive() || r.EndTime == 0 {
			t.Fatalf("it does not end: %s", s.text())
		}
		if seen := slices.Sorted(slices.Values(s.registered)); len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Fatalf("a job was registered twice: %v", s.registered)
		}
	})
}

// chance has something happen.
func (s *site) chance(t *rapid.T) {
	open := s.open()
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what == 0 && s.run().Alive():
		s.act(rapid.SampledFrom([]string{structs.WorkflowActionPause, structs.WorkflowActionResume}).Draw(t, "action"))
	case what == 1 && s.run().Alive() && rapid.IntRange(0, 5).Draw(t, "cancel") == 0:
		s.act(structs.WorkflowActionCancel)
	case what == 2 && !s.run().Alive():
		from := rapid.SampledFrom(s.run().Stages).Draw(t, "from").Name
		s.put(structs.LogWorkflowRun, &structs.WorkflowRunEntry{Namespace: "default", ID: "chip", From: from, Time: int64(s.index)})
	case what < 6 && len(open) > 0:
		id := rapid.SampledFrom(open).Draw(t, "job")
		s.does[id] = rapid.SampledFrom([]stages.Progress{stages.Running, stages.Complete, stages.Complete, stages.Failed, stages.Stopped}).Draw(t, "does")
	default:
		s.step()
	}
}

// open returns the jobs of the active stage that have not ended.
func (s *site) open() (ids []string) {
	if active := s.run().Active(); active != nil {
		for _, j := range active.Jobs {
			if !s.does[j.JobID].Ended() {
				ids = append(ids, j.JobID)
			}
		}
	}
	return ids
}

// check fails if a stage has started before one before it has ended, or a job has not the one registration that the run states.
func (s *site) check() {
	r := s.run()
	for i, stage := range r.Stages {
		begun := stage.State != structs.StageWaiting
		for _, before := range r.Stages[:i] {
			if begun && before.State != structs.StageComplete && before.State != structs.StageFailed {
				s.t.Fatalf("stage %s has started: %s", stage.Name, s.text())
			}
		}
		for _, j := range stage.Jobs {
			job := s.store.Snapshot().Job(nil, "default", j.JobID)
			switch {
			case j.Attempt == 0 && job != nil, j.Attempt > 0 && (job == nil || job.Workflow == nil || job.Workflow.Attempt != j.Attempt):
				s.t.Fatalf("job %s: attempt %d of the run, registered is %+v", j.JobID, j.Attempt, job)
			case r.State == structs.WorkflowCancelled && job != nil && !job.Stop && job.Status != structs.JobStatusDead:
				s.t.Fatalf("job %s of a cancelled run was not stopped", j.JobID)
			}
		}
	}
}

// TestTimeLimitFails: a job of which an instance was ended at its time limit has failed, whatever its status is, and is retried.
func TestTimeLimitFails(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000}, []int{1000})
	w.Stages[0].Jobs[0].Retries = 1
	s := startedWith(t, []int64{8000}, w)
	end := func(description string) {
		id := s.run().Stages[0].Jobs[0].JobID
		e := &structs.AllocClientEntry{Time: int64(s.Index())}
		for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", id, true) {
			if !a.Terminal() {
				e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: a.ID, ClientStatus: structs.AllocClientComplete, ClientDescription: description})
			}
		}
		s.Put(t, e)
		s.step()
	}
	s.step()
	end(structs.DescMaxRunDuration)
	if j := s.run().Stages[0].Jobs[0]; s.run().Stage != 0 || j.Attempt != 2 || j.State != structs.StageStarting && j.State != structs.StageRunning {
		t.Fatalf("after its time limit: stage %d, job %+v", s.run().Stage, j)
	}
	s.decide(s.run().Stages[0].Jobs[0].JobID)
	end("")
	if run := s.run(); run.Stage != 1 || run.Stages[0].State != structs.StageComplete {
		t.Errorf("after it was through: stage %d, %+v", run.Stage, run.Stages[0])
	}
}
