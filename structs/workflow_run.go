package structs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// States of a workflow.
const (
	WorkflowPending   = "pending" // no stage has started: its reservation is not posted yet
	WorkflowRunning   = "running"
	WorkflowPaused    = "paused" // no further stage starts; jobs that were started run on
	WorkflowFailed    = "failed"
	WorkflowCancelled = "cancelled"
	WorkflowComplete  = "complete"
)

// WorkflowStates lists the states in the order in which a workflow may have them.
func WorkflowStates() []string {
	return []string{WorkflowPending, WorkflowRunning, WorkflowPaused, WorkflowFailed, WorkflowCancelled, WorkflowComplete}
}

// States of a stage and of a job in it.
const (
	StageWaiting  = "waiting"  // stages before it are not complete
	StageStarting = "starting" // its jobs are registered, and none runs yet
	StageRunning  = "running"
	StageComplete = "complete"
	StageFailed   = "failed"
)

// WorkflowRun is a workflow with its current or last run: a row of the state.
type WorkflowRun struct {
	Namespace string
	ID        string
	Workflow  *Workflow
	// Run counts the runs, from 1.
	Run   int
	State string
	// Stage is the index of the stage that runs, or comes next.
	Stage  int
	Stages []*WorkflowRunStage

	// Parts is what is reserved for the run by node, once Posted. Missing is what keeps it from being reserved, or what of it was lost.
	Parts  []WorkflowPart `json:",omitempty" codec:",omitempty"`
	Posted bool           `json:",omitempty" codec:",omitempty"`
	// Keeps is where it keeps what comes free, in place of what was lost of Parts.
	Keeps []WorkflowPart `json:",omitempty" codec:",omitempty"`
	// Licenses is what is reserved of licenses, in the order of their names.
	Licenses []RequestedLicense `json:",omitempty" codec:",omitempty"`
	Closed   bool               `json:",omitempty" codec:",omitempty"` // nothing more of it is lent until the run moves on
	Missing  string             `json:",omitempty" codec:",omitempty"`

	// Submitter is who started the run. Each of its jobs has it.
	Submitter *Submitter `json:",omitempty" codec:",omitempty"`
	// SubmitTime is when the run was requested, StartTime when its first stage started, EndTime when it ended, in Unix nanoseconds; 0: not yet.
	SubmitTime int64
	StartTime  int64
	EndTime    int64
	// Previous are the runs before, the last one first.
	Previous []WorkflowPastRun `json:",omitempty" codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// WorkflowRunStage is how far a stage of a run is.
type WorkflowRunStage struct {
	Name  string
	State string
	// Attempt counts how often the stage was started in the run.
	Attempt    int
	Start, End int64 // Unix nanoseconds; 0: not yet
	// Reclaimed is how many borrowers were taken back for the stage, in all its attempts: for their starts, and for what was placed afterwards.
	Reclaimed int `json:",omitempty" codec:",omitempty"`
	Jobs      []WorkflowRunJob
}

// WorkflowRunJob is how far a job of a run is.
type WorkflowRunJob struct {
	Name  string
	JobID string
	// State is one of the Stage constants.
	State string
	// Attempt counts how often the job was registered in the run, Retried how often of these it was because it had failed, in this attempt of
	// its stage.
	Attempt    int
	Retried    int   `json:",omitempty" codec:",omitempty"`
	Start, End int64 // Unix nanoseconds; 0: not yet
}

// WorkflowPastRun is an earlier run of a workflow in brief.
type WorkflowPastRun struct {
	Run   int
	State string
	// Stage is the index of the stage that ran last.
	Stage      int
	SubmitTime int64
	StartTime  int64
	EndTime    int64
}

// JobWorkflow is the run of a workflow that registered a job.
type JobWorkflow struct {
	ID      string
	Run     int
	Stage   string
	Attempt int
}

// SplitWorkflowJobID returns what the ID of a job of a run is made of; false: it is none.
func SplitWorkflowJobID(id string) (workflow string, run int, job string, ok bool) {
	workflow, rest, _ := strings.Cut(id, "/")
	number, job, _ := strings.Cut(rest, "/")
	run, err := strconv.Atoi(number)
	ok = err == nil && run > 0 && ValidWorkflowName(workflow) && ValidWorkflowName(job)
	return workflow, run, job, ok
}

// WorkflowJobID returns the ID of a job of a run.
func WorkflowJobID(workflow string, run int, job string) string {
	return fmt.Sprintf("%s/%d/%s", workflow, run, job)
}

// NamespacedID names the workflow among all.
func (r *WorkflowRun) NamespacedID() NamespacedID {
	return NamespacedID{ID: r.ID, Namespace: r.Namespace}
}

// Alive reports whether the run has not ended.
func (r *WorkflowRun) Alive() bool {
	return r.State == WorkflowPending || r.State == WorkflowRunning || r.State == WorkflowPaused
}

// Active returns the stage of which jobs are registered and not all have ended; nil: there is none.
func (r *WorkflowRun) Active() *WorkflowRunStage {
	if r.Stage >= len(r.Stages) {
		return nil
	}
	if s := r.Stages[r.Stage]; s.State == StageStarting || s.State == StageRunning {
		return s
	}
	return nil
}

// Awaits reports whether jobs come next of a run that is not paused: of the stage that it has come to, as far as they were not started.
func (r *WorkflowRun) Awaits() bool {
	return r.Alive() && r.State != WorkflowPaused && r.Stage < len(r.Stages) &&
		slices.ContainsFunc(r.Stages[r.Stage].Jobs, func(j WorkflowRunJob) bool { return j.State == StageWaiting })
}

// StartRun returns a run of a canonical workflow, from the stage of an index on. The jobs of the stages before count as complete.
func StartRun(w *Workflow, run, from int) (*WorkflowRun, error) {
	levels, err := w.Levels()
	if err != nil {
		return nil, err
	}
	if from < 0 || from >= len(levels) {
		return nil, Errorf(CodeBadRequest, "workflow %q: stage %d: there are %d", clip(w.ID), from, len(levels))
	}
	r := &WorkflowRun{Namespace: w.Namespace, ID: w.ID, Workflow: w, Run: run, State: WorkflowPending, Stage: from}
	for i, l := range levels {
		s := &WorkflowRunStage{Name: l.Name, State: StageWaiting}
		if i < from {
			s.State = StageComplete
		}
		for _, j := range l.Jobs {
			s.Jobs = append(s.Jobs, WorkflowRunJob{Name: j.Name, JobID: WorkflowJobID(w.ID, run, j.Name), State: s.State})
		}
		r.Stages = append(r.Stages, s)
	}
	return r, nil
}

// StageIndex returns the index of a stage; -1 if there is none of the name.
func (r *WorkflowRun) StageIndex(name string) int {
	return slices.IndexFunc(r.Stages, func(s *WorkflowRunStage) bool { return s.Name == name })
}

// Copy returns a copy of which everything but the workflow may be changed, and of the stages those that [WorkflowRun.EditStage] returned.
func (r *WorkflowRun) Copy() *WorkflowRun {
	out := *r
	out.Stages, out.Parts, out.Previous = slices.Clone(r.Stages), slices.Clone(r.Parts), slices.Clone(r.Previous)
	out.Licenses, out.Keeps = slices.Clone(r.Licenses), slices.Clone(r.Keeps)
	return &out
}

// EditStage returns a stage that may be changed, in place of the shared one.
func (r *WorkflowRun) EditStage(index int) *WorkflowRunStage {
	s := *r.Stages[index]
	s.Jobs = slices.Clone(s.Jobs)
	r.Stages[index] = &s
	return &s
}

// InBrief returns the run as the next one remembers it.
func (r *WorkflowRun) InBrief() WorkflowPastRun {
	return WorkflowPastRun{Run: r.Run, State: r.State, Stage: min(r.Stage, len(r.Stages)-1), SubmitTime: r.SubmitTime, StartTime: r.StartTime, EndTime: r.EndTime}
}

// WithoutJobs returns the run without the specifications of its jobs, for lists and events.
func (r *WorkflowRun) WithoutJobs() *WorkflowRun {
	out := *r
	out.Workflow = r.Workflow.WithoutJobs()
	return &out
}

// JobOf returns the job of a stage as the run registers it for an attempt. spec is the job as written.
func (r *WorkflowRun) JobOf(stage *WorkflowRunStage, spec *WorkflowJob, attempt int) *Job {
	job := spec.Job.Copy()
	job.ID = WorkflowJobID(r.ID, r.Run, spec.Name)
	job.Name = job.ID
	job.Submitter = r.Submitter
	job.Workflow = &JobWorkflow{ID: r.ID, Run: r.Run, Stage: stage.Name, Attempt: attempt}
	return job
}
