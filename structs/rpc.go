package structs

import (
	"time"
)

// QueryOptions goes with every read.
type QueryOptions struct {
	_struct sparse `entry:",omitempty"`

	Region    string
	Namespace string // AllNamespaces ("*") for all
	AuthToken string
	// MinQueryIndex makes it a blocking query: answered when what it reads has
	// moved past this index, or after MaxQueryTime.
	MinQueryIndex uint64
	MaxQueryTime  time.Duration
	AllowStale    bool // any server may answer
	Prefix        string
	Filter        string // a go-bexpr expression over the listed items
	PerPage       int
	NextToken     string
	Reverse       bool
}

// AllNamespaces requests a list of every namespace.
const AllNamespaces = "*"

// QueryMeta comes with every answer to a read.
type QueryMeta struct {
	Index       uint64
	LastContact time.Duration
	KnownLeader bool
	NextToken   string `json:",omitempty"`
}

// WriteRequest goes with every write.
type WriteRequest struct {
	Region    string
	Namespace string
	AuthToken string
	// User is who the header X-Nomadish-User states to have sent the request. No body of a request states it.
	User string `json:"-" codec:",omitempty"`
}

// Routing states which servers may answer: servers of the region, "" for whichever is called, and none but its leader.
func (w WriteRequest) Routing() (region string, stale bool) { return w.Region, false }

// WriteMeta comes with every answer to a write.
type WriteMeta struct{ Index uint64 }

// ReplyIndex returns the index of the state that a reply is of, for what treats all replies alike.
func (m *WriteMeta) ReplyIndex() uint64 { return m.Index }

// ReplyIndex returns the index of the state that a reply is of, as of a [WriteMeta].
func (m *QueryMeta) ReplyIndex() uint64 { return m.Index }

// ReplyMeta returns what every reply to a query has, for what treats all replies alike.
func (m *QueryMeta) ReplyMeta() *QueryMeta { return m }

// ReplyIndex returns the index of the state that the plan is of, as of a [WriteMeta].
func (r *JobPlanReply) ReplyIndex() uint64 { return r.Index }

// Requests and answers of the servers' RPC methods. wire.Method* states which method
// takes and returns which.
type (
	// IDRequest reads one thing by its ID. An ID may be a unique prefix only where
	// the method states it.
	IDRequest struct {
		ID string
		QueryOptions
	}
	// ListRequest lists a table.
	ListRequest struct {
		QueryOptions
		Fields map[string]bool // extra columns: resources, task_states, os, meta
	}
	// EmptyRequest is a request without arguments.
	EmptyRequest struct{ QueryOptions }
	// StringReply is one string.
	StringReply struct {
		Value string
		QueryMeta
	}
	// StringsReply is a list of strings.
	StringsReply struct {
		Values []string
		QueryMeta
	}

	// JobRegisterRequest registers a job.
	JobRegisterRequest struct {
		Job               *Job
		EnforceIndex      bool
		JobModifyIndex    uint64
		PreserveCounts    bool
		PreserveResources bool
		PolicyOverride    bool
		EvalPriority      int // 0: the job's
		// Opportunistic answers OverLimitConfirm: instances beyond what the namespace owns run as opportunistic ones.
		Opportunistic bool `json:",omitempty" codec:",omitempty"`
		Submission    *JobSubmission
		// OneRegion reports that a multiregion job is the copy for the region of the request. Servers
		// set it for each other; no caller of the HTTP API can.
		OneRegion bool `codec:"OneRegion" json:"-"`
		WriteRequest
	}
	// JobRegisterReply names the evaluation that was made.
	JobRegisterReply struct {
		EvalID          string
		EvalCreateIndex uint64
		JobModifyIndex  uint64
		Warnings        string
		// Submission is what the submission check finds, one of the Submission constants; empty: the job names no project.
		Submission string           `json:",omitempty" codec:",omitempty"`
		Regions    []JobRegionReply `json:",omitempty"` // of a multiregion job; ours
		QueryMeta
	}
	// JobDeregisterRequest stops or purges a job.
	JobDeregisterRequest struct {
		JobID           string
		Purge           bool
		Global          bool
		EvalPriority    int
		NoShutdownDelay bool
		WriteRequest
	}
	// JobEvaluateRequest evaluates a job again.
	JobEvaluateRequest struct {
		JobID           string
		ForceReschedule bool
		WriteRequest
	}
	// JobScaleRequest changes a group's count.
	JobScaleRequest struct {
		JobID          string
		Target         map[string]string // "Group" → the group's name
		Count          *int64
		Message        string
		Error          bool
		Meta           map[string]any
		EnforceIndex   bool
		JobModifyIndex uint64
		PolicyOverride bool
		WriteRequest
	}
	// JobScaleStatusReply is a job's groups with their counts and scaling events.
	JobScaleStatusReply struct {
		JobScaleStatus *JobScaleStatus
		QueryMeta
	}
	// JobScaleStatus is a job's scaling state.
	JobScaleStatus struct {
		JobID          string
		Namespace      string
		JobCreateIndex uint64
		JobModifyIndex uint64
		JobStopped     bool
		TaskGroups     map[string]TaskGroupScaleStatus
	}
	// TaskGroupScaleStatus is a group's scaling state.
	TaskGroupScaleStatus struct {
		Desired, Placed, Running, Healthy, Unhealthy int
		Events                                       []*ScalingEvent
	}
	// JobRevertRequest makes an older version the newest.
	JobRevertRequest struct {
		JobID               string
		JobVersion          uint64
		EnforcePriorVersion *uint64
		WriteRequest
	}
	// JobStabilityRequest marks a version as stable or not stable.
	JobStabilityRequest struct {
		JobID      string
		JobVersion uint64
		Stable     bool
		WriteRequest
	}
	// JobStabilityReply answers it.
	JobStabilityReply struct {
		JobModifyIndex uint64
		WriteMeta
	}
	// JobPlanRequest requests a dry run of a registration.
	JobPlanRequest struct {
		Job            *Job
		Diff           bool
		PolicyOverride bool
		Forecast       bool // requests when it would start if it were registered now, as far as that is known within 2 s
		WriteRequest
	}
	// JobPlanReply is what a registration would do.
	JobPlanReply struct {
		JobModifyIndex     uint64
		CreatedEvals       []*Evaluation
		Diff               *JobDiff
		Annotations        *PlanAnnotations
		FailedTGAllocs     map[string]*AllocMetric
		NextPeriodicLaunch time.Time
		Warnings           string
		Submission         string `json:",omitempty" codec:",omitempty"` // as of a JobRegisterReply
		// Forecast is when what would wait of it starts, if that was requested; nil: it was not, or NoForecast states why it is not known.
		Forecast   *Forecast `json:",omitempty" codec:",omitempty"`
		NoForecast string    `json:",omitempty" codec:",omitempty"`
		Index      uint64
	}
	// JobValidateReply lists what is wrong with a job.
	JobValidateReply struct {
		DriverConfigValidated bool
		ValidationErrors      []string
		Error                 string
		Warnings              string
	}
	// JobReply is one job; nil when there is none.
	JobReply struct {
		Job *Job
		QueryMeta
	}
	// JobListReply lists jobs.
	JobListReply struct {
		Jobs []*JobListStub
		QueryMeta
	}
	// JobVersionsRequest reads a job's versions.
	JobVersionsRequest struct {
		ID    string
		Diffs bool
		QueryOptions
	}
	// JobVersionsReply lists a job's versions, newest first; Diffs[i] leads from Versions[i+1] to Versions[i].
	JobVersionsReply struct {
		Versions []*Job
		Diffs    []*JobDiff
		QueryMeta
	}
	// JobSummaryReply is a job's summary.
	JobSummaryReply struct {
		JobSummary *JobSummary
		QueryMeta
	}
	// JobSubmissionRequest reads the text of a version.
	JobSubmissionRequest struct {
		ID      string
		Version uint64
		QueryOptions
	}
	// JobSubmissionReply is a version's text; nil when it was not kept.
	JobSubmissionReply struct {
		Submission *JobSubmission
		QueryMeta
	}
	// JobAllocsRequest lists a job's allocations. All: also those of an earlier
	// job of the same ID.
	JobAllocsRequest struct {
		ID  string
		All bool
		QueryOptions
	}

	// AllocListReply lists allocations.
	AllocListReply struct {
		Allocations []*AllocListStub
		QueryMeta
	}
	// AllocReply is one allocation with its job; nil when there is none.
	AllocReply struct {
		Alloc *Allocation
		// Class and Claim are those of the allocation.
		Class string      `codec:",omitempty"`
		Claim *AllocClaim `codec:",omitempty"`
		QueryMeta
	}
	// AllocStopRequest stops an allocation and has it placed again.
	AllocStopRequest struct {
		AllocID         string
		NoShutdownDelay bool
		Reschedule      bool
		WriteRequest
	}
	// AllocSuspendRequest suspends an allocation in place, or lets it go on when there is room for
	// it.
	AllocSuspendRequest struct {
		AllocID string
		Resume  bool
		WriteRequest
	}
	// AllocStopReply names the evaluation; empty: none is needed.
	AllocStopReply struct {
		EvalID string
		WriteMeta
	}

	// EvalListRequest lists evaluations.
	EvalListRequest struct {
		Job    string
		Status string
		QueryOptions
	}
	// EvalListReply lists evaluations.
	EvalListReply struct {
		Evaluations []*Evaluation
		QueryMeta
	}
	// EvalGetRequest reads one evaluation.
	EvalGetRequest struct {
		ID      string
		Related bool // with its RelatedEvals
		QueryOptions
	}
	// EvalReply is one evaluation; nil when there is none.
	EvalReply struct {
		Eval *Evaluation
		QueryMeta
	}
	// EvalDeleteRequest forgets evaluations: those that are named, or those of the namespace that match a go-bexpr expression.
	EvalDeleteRequest struct {
		EvalIDs []string
		Filter  string
		WriteRequest
	}
	// EvalDeleteReply has the number of deleted evaluations.
	EvalDeleteReply struct {
		Count int
		WriteMeta
	}
	// CountReply is a number.
	CountReply struct {
		Count int
		QueryMeta
	}
	// EvalDequeueRequest takes the next evaluation for a worker.
	EvalDequeueRequest struct {
		Schedulers []string // job types
		Timeout    time.Duration
		WriteRequest
	}
	// EvalDequeueReply is an evaluation with the token to answer it; Eval nil: none came.
	EvalDequeueReply struct {
		Eval      *Evaluation
		Token     string
		WaitIndex uint64 // decide on a state at least this new
		// EntitledOnly: it has its position by what its namespace owns, and nothing but what that holds is to be placed.
		EntitledOnly bool `json:",omitempty" codec:",omitempty"`
	}
	// EvalAckRequest answers a dequeued evaluation (ack or nack).
	EvalAckRequest struct {
		EvalID string
		Token  string
		WriteRequest
	}
	// EvalUpdateRequest stores evaluations for the holder of a token.
	EvalUpdateRequest struct {
		Evals  []*Evaluation
		EvalID string
		Token  string
		WriteRequest
	}
	// PlanRequest submits a plan.
	PlanRequest struct {
		Plan *Plan
		WriteRequest
	}
	// PlanReply answers it.
	PlanReply struct {
		Result *PlanResult
		WriteMeta
	}
)
