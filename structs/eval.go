package structs

import (
	"maps"
	"time"
)

// Evaluation statuses.
const (
	EvalStatusBlocked   = "blocked"
	EvalStatusPending   = "pending"
	EvalStatusComplete  = "complete"
	EvalStatusFailed    = "failed"
	EvalStatusCancelled = "canceled" // Nomad's spelling
)

// What triggered an evaluation.
const (
	EvalTriggerJobRegister     = "job-register"
	EvalTriggerJobDeregister   = "job-deregister"
	EvalTriggerNodeUpdate      = "node-update"
	EvalTriggerNodeDrain       = "node-drain"
	EvalTriggerAllocStop       = "alloc-stop"
	EvalTriggerAllocFailure    = "alloc-failure"
	EvalTriggerAllocHealth     = "alloc-health" // a rolling update's instance became healthy
	EvalTriggerQueuedAllocs    = "queued-allocs"
	EvalTriggerScaling         = "job-scaling"
	EvalTriggerRetryFailed     = "retry-failed-alloc"
	EvalTriggerFailedFollowUp  = "failed-follow-up"
	EvalTriggerMaxPlans        = "max-plan-attempts"
	EvalTriggerMaxRunDuration  = "max-run-duration"
	EvalTriggerReconcile       = "reconcile"
	EvalTriggerForce           = "job-eval"
	EvalTriggerRollingUpdate   = "rolling-update"
	EvalTriggerPreemption      = "preemption" // instances of the job were taken back
	EvalTriggerMaxRescheduling = "alloc-reschedule"
	EvalTriggerAllocResume     = "alloc-resume"
	EvalTriggerSuspendLimit    = "suspend-limit"          // instances of the job were suspended for too long
	EvalTriggerVirtualCluster  = "virtual-cluster"        // what the namespace owns has changed
	EvalTriggerMaxDisconnect   = "max-disconnect-timeout" // a node that is disconnected is not waited for any longer
)

// Evaluation is a request to schedule a job again. JSON names are Nomad's.
type Evaluation struct {
	_struct sparse `entry:",omitempty"`

	// The API shows every field, as Nomad's does. What was never written without a value (codec) stays so: the bytes of the
	// log and the hash of a state are the same in every version.

	ID                string // MintedID, or DeriveID of an entry's seed
	Namespace         string
	Priority          int
	Type              string // the job's type
	TriggeredBy       string
	JobID             string
	JobModifyIndex    uint64
	NodeID            string `codec:",omitempty"`
	NodeModifyIndex   uint64 `codec:",omitempty"`
	DeploymentID      string `codec:",omitempty"`
	Status            string
	StatusDescription string
	// WaitUntil: not to be looked at before. Zero: at once.
	WaitUntil    time.Time
	NextEval     string
	PreviousEval string
	// BlockedEval is the blocked evaluation that this one left behind.
	BlockedEval string

	FailedTGAllocs  map[string]*AllocMetric
	PlanAnnotations *PlanAnnotations `codec:",omitempty"`
	// ClassEligibility: for a blocked evaluation, which computed classes of nodes
	// can (true) or cannot (false) take what it waits for; classes not named are unknown.
	ClassEligibility map[string]bool
	// EscapedComputedClass: its constraints look at unique attributes, so any node may do.
	EscapedComputedClass bool
	QuotaLimitReached    string
	AnnotatePlan         bool
	QueuedAllocations    map[string]int // instances by group that wait
	SnapshotIndex        uint64         // the state that a blocked evaluation was decided on

	CreateIndex uint64
	ModifyIndex uint64
	CreateTime  int64 // Unix nanoseconds
	ModifyTime  int64 // Unix nanoseconds
	// RelatedEvals is filled by a read that requests it.
	RelatedEvals []*EvaluationStub `codec:",omitempty"`
}

// EvaluationStub is an evaluation's line beside a related one.
type EvaluationStub struct {
	ID                string
	Priority          int
	Type              string
	TriggeredBy       string
	Namespace         string
	JobID             string
	NodeID            string
	DeploymentID      string
	Status            string
	StatusDescription string
	WaitUntil         time.Time
	NextEval          string
	PreviousEval      string
	BlockedEval       string
	CreateIndex       uint64
	ModifyIndex       uint64
	CreateTime        int64
	ModifyTime        int64
}

// NewEval is an evaluation that a job is to be looked at for. Who mints it passes its ID, and the time in Unix nanoseconds.
func NewEval(id string, job *Job, trigger string, now int64) *Evaluation {
	return &Evaluation{
		ID: id, Namespace: job.Namespace, Priority: job.Priority, Type: job.Type, TriggeredBy: trigger,
		JobID: job.ID, JobModifyIndex: job.JobModifyIndex, Status: EvalStatusPending, CreateTime: now, ModifyTime: now,
	}
}

// PendingSince returns since when what it is about has been pending, in Unix nanoseconds: of one that was delayed, since it was due.
func (e *Evaluation) PendingSince() int64 {
	if e.Status == EvalStatusBlocked || e.WaitUntil.IsZero() {
		return e.CreateTime
	}
	return max(e.CreateTime, e.WaitUntil.UnixNano())
}

// Terminal reports whether nothing more will be done with the evaluation.
func (e *Evaluation) Terminal() bool {
	return e.Status == EvalStatusComplete || e.Status == EvalStatusFailed || e.Status == EvalStatusCancelled
}

// Job names the evaluation's job.
func (e *Evaluation) Job() NamespacedID { return NamespacedID{ID: e.JobID, Namespace: e.Namespace} }

// Copy is deep in what a scheduler changes.
func (e *Evaluation) Copy() *Evaluation {
	if e == nil {
		return nil
	}
	c := *e
	c.FailedTGAllocs = maps.Clone(e.FailedTGAllocs)
	c.ClassEligibility = maps.Clone(e.ClassEligibility)
	c.QueuedAllocations = maps.Clone(e.QueuedAllocations)
	return &c
}

// Stub is the evaluation's short form.
func (e *Evaluation) Stub() *EvaluationStub {
	return &EvaluationStub{
		ID: e.ID, Priority: e.Priority, Type: e.Type, TriggeredBy: e.TriggeredBy, Namespace: e.Namespace,
		JobID: e.JobID, NodeID: e.NodeID, DeploymentID: e.DeploymentID, Status: e.Status,
		StatusDescription: e.StatusDescription, WaitUntil: e.WaitUntil, NextEval: e.NextEval,
		PreviousEval: e.PreviousEval, BlockedEval: e.BlockedEval, CreateIndex: e.CreateIndex,
		ModifyIndex: e.ModifyIndex, CreateTime: e.CreateTime, ModifyTime: e.ModifyTime,
	}
}
