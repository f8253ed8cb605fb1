package structs

import (
	"time"
)

// QueryOptions goes with every read.
type QueryOptions struct {
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

// AllNamespaces asks a list for every namespace.
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
}

// WriteMeta comes with every answer to a write.
type WriteMeta struct{ Index uint64 }

// Requests and answers of the servers' RPC methods. wire.Method* says which method
// takes and gives which.
type (
	// IDRequest reads one thing by its ID. An ID may be a unique prefix only where
	// the method says so.
	IDRequest struct {
		ID string
		QueryOptions
	}
	// ListRequest lists a table.
	ListRequest struct {
		QueryOptions
		Fields map[string]bool // extra columns: resources, task_states, os, meta
	}
	// EmptyRequest asks for something that needs no argument.
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
		Submission        *JobSubmission
		// OneRegion says that a multiregion job is the copy for the region of the request. Servers
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
		Regions         []JobRegionReply `json:",omitempty"` // of a multiregion job; ours
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
	// JobStabilityRequest says of a version that it runs well, or takes that back.
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
	// JobPlanRequest asks what a registration would do.
	JobPlanRequest struct {
		Job            *Job
		Diff           bool
		PolicyOverride bool
		WriteRequest
	}
	// JobPlanReply says what a registration would do.
	JobPlanReply struct {
		JobModifyIndex     uint64
		CreatedEvals       []*Evaluation
		Diff               *JobDiff
		Annotations        *PlanAnnotations
		FailedTGAllocs     map[string]*AllocMetric
		NextPeriodicLaunch time.Time
		Warnings           string
		Index              uint64
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
		QueryMeta
	}
	// AllocStopRequest stops an allocation and has it placed again.
	AllocStopRequest struct {
		AllocID         string
		NoShutdownDelay bool
		Reschedule      bool
		WriteRequest
	}
	// AllocSuspendRequest freezes an allocation in place, or lets it go on when there is
	// room for it.
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

	// NodeRegisterRequest registers a node.
	NodeRegisterRequest struct {
		Node *Node
		WriteRequest
	}
	// NodeHeartbeatRequest says that a node lives. Status: what it takes itself to be in.
	NodeHeartbeatRequest struct {
		NodeID   string
		SecretID string
		Status   string
		WriteRequest
	}
	// NodeUpdateReply answers registration, heartbeat and status changes.
	NodeUpdateReply struct {
		HeartbeatTTL    time.Duration // the next heartbeat is due within
		EvalIDs         []string
		EvalCreateIndex uint64
		NodeModifyIndex uint64
		Servers         []string // RPC addresses to know
		LeaderRPCAddr   string
		Registered      bool // false: the server does not know the node; register again
		// Gossip is where the gossip of the clients is; nil: there is none.
		Gossip *ClientGossip `json:",omitempty"`
		WriteMeta
	}
	// NodeDrainRequest starts (DrainSpec set) or ends a drain.
	NodeDrainRequest struct {
		NodeID       string
		DrainSpec    *DrainSpec
		MarkEligible bool
		Meta         map[string]string
		WriteRequest
	}
	// NodeEligibilityRequest makes a node (in)eligible.
	NodeEligibilityRequest struct {
		NodeID      string
		Eligibility string
		WriteRequest
	}
	// NodeRequest names a node for a write (purge, evaluate).
	NodeRequest struct {
		NodeID string
		WriteRequest
	}
	// NodeListReply lists nodes.
	NodeListReply struct {
		Nodes []*NodeListStub
		QueryMeta
	}
	// NodeReply is one node, sanitized; nil when there is none.
	NodeReply struct {
		Node *Node
		QueryMeta
	}
	// AllocsReply is whole allocations with their jobs.
	AllocsReply struct {
		Allocs []*Allocation
		QueryMeta
	}
	// ClientAllocsRequest is a node's blocking query for its allocations.
	ClientAllocsRequest struct {
		NodeID   string
		SecretID string
		QueryOptions
	}
	// ClientAllocsReply is a node's allocations by their AllocModifyIndex, and
	// whole those whose AllocModifyIndex is above the MinQueryIndex asked. Jobs
	// holds each job version once; Alloc.Job is nil.
	ClientAllocsReply struct {
		Allocs  map[string]uint64
		Changed []*Allocation
		Jobs    []*Job
		QueryMeta
	}
	// ClientUpdateRequest reports allocations' states.
	ClientUpdateRequest struct {
		NodeID   string
		SecretID string
		Updates  []*AllocClientUpdate
		WriteRequest
	}
	// NodeEventsRequest appends to a node's history.
	NodeEventsRequest struct {
		NodeID   string
		SecretID string
		Events   []*NodeEvent
		WriteRequest
	}
	// WriteReply answers a write that gives nothing back.
	WriteReply struct{ WriteMeta }

	// SchedulerConfigRequest sets the scheduler configuration.
	SchedulerConfigRequest struct {
		Config SchedulerConfiguration
		CAS    bool
		// Absent are fields of ours that the caller does not state: they stay as they are.
		Absent []string
		WriteRequest
	}
	// SchedulerConfigReply is the configuration.
	SchedulerConfigReply struct {
		SchedulerConfig *SchedulerConfiguration
		QueryMeta
	}
	// SchedulerSetReply tells whether the configuration was taken (CAS).
	SchedulerSetReply struct {
		Updated bool
		WriteMeta
	}
	// RaftConfigurationReply is the Raft cluster.
	RaftConfigurationReply struct {
		Servers []*RaftServer
		Index   uint64
	}
	// RaftServer is one server of it.
	RaftServer struct {
		ID           string
		Node         string
		Address      string
		Leader       bool
		Voter        bool
		RaftProtocol string
	}
	// ServerMember is a server as gossip knows it, in Nomad's words.
	ServerMember struct {
		Name        string // <server name>.<region>
		Addr        string // of gossip
		Port        uint16
		Tags        map[string]string
		Status      string // MemberAlive and so on
		ProtocolMin uint8
		ProtocolMax uint8
		ProtocolCur uint8
		DelegateMin uint8
		DelegateMax uint8
		DelegateCur uint8
	}
	// MembersReply lists the servers that a server knows by gossip, by name.
	MembersReply struct {
		ServerName   string // of the server that answers
		ServerRegion string
		ServerDC     string
		Members      []ServerMember
	}
	// KeyringRequest has the members of gossip pools do something with their keys.
	KeyringRequest struct {
		Op   string // KeyInstall and so on
		Key  string // in base64
		Pool string // PoolServers (empty), PoolClients
	}
	// KeyringReply is what came of it, as Nomad gives it.
	KeyringReply struct {
		Messages map[string]string // what is to be known, by member
		Keys     map[string]int    // of KeyList: how many members have a key, by the key in base64
		// PrimaryKeys is how many members encrypt with a key.
		PrimaryKeys map[string]int
		NumNodes    int // members that were asked
	}
	// RaftPeerRequest names a server.
	RaftPeerRequest struct {
		ID      string
		Address string
		WriteRequest
	}
	// GCRequest forces a collection.
	GCRequest struct{ WriteRequest }
	// ReconcileReply says what was found wrong in derived state, and put right.
	ReconcileReply struct {
		Differences []string
		WriteMeta
	}
	// EventStreamRequest opens the event stream. Topics: topic → keys ("*" all).
	EventStreamRequest struct {
		Topics    map[string][]string
		Index     uint64
		Namespace string
		Region    string
		AuthToken string
	}
	// SearchRequest finds IDs by prefix, or names by a fuzzy text.
	SearchRequest struct {
		Prefix  string // for Fuzzy: the text
		Context string // jobs, evals, allocs, nodes, … or all
		Fuzzy   bool
		QueryOptions
	}
	// SearchReply is what was found.
	SearchReply struct {
		Matches     map[string][]string     `json:",omitempty"`
		Fuzzy       map[string][]FuzzyMatch `json:",omitempty"`
		Truncations map[string]bool
		QueryMeta
	}
	// FuzzyMatch is a name that was found, and where.
	FuzzyMatch struct {
		ID    string
		Scope []string
	}
	// HistoryReply lists history records.
	HistoryReply struct {
		Records []*HistoryRecord
		QueryMeta
	}
)

// Requests that a server passes on to the client that holds the allocation.
type (
	// ClientAllocRequest names an allocation, maybe a task of it.
	ClientAllocRequest struct {
		AllocID string
		Task    string
		Signal  string
		// AllTasks: restart those too that have ended.
		AllTasks bool
		QueryOptions
	}
	// ClientStatsReply is an allocation's use of resources.
	ClientStatsReply struct {
		Stats *AllocResourceUsage
		QueryMeta
	}
	// ClientHostStatsRequest asks a node for its own use; empty: the one called.
	ClientHostStatsRequest struct {
		NodeID string
		QueryOptions
	}
	// ClientHostStatsReply is a node's use.
	ClientHostStatsReply struct {
		Stats *HostStats
		QueryMeta
	}
	// FSRequest reads an allocation's files. Path is inside the allocation's directory.
	FSRequest struct {
		AllocID string
		Path    string
		Offset  int64
		Limit   int64  // 0: all
		Origin  string // start or end
		Follow  bool
		// Logs: read the task's log instead of Path.
		Task      string
		LogType   string // stdout or stderr
		PlainText bool   // no framing (handled by the HTTP layer)
		QueryOptions
	}
	// FSListReply lists a directory.
	FSListReply struct {
		Files []*AllocFileInfo
		QueryMeta
	}
	// FSStatReply is one file's facts.
	FSStatReply struct {
		Info *AllocFileInfo
		QueryMeta
	}
	// StreamFrame is one piece of a followed file, as Nomad frames it in JSON.
	StreamFrame struct {
		Offset    int64  `json:",omitempty"`
		Data      []byte `json:",omitempty"`
		File      string `json:",omitempty"`
		FileEvent string `json:",omitempty"`
	}
	// AllocFileInfo is a file's facts.
	AllocFileInfo struct {
		Name        string
		IsDir       bool
		Size        int64
		FileMode    string
		ModTime     time.Time
		ContentType string `json:",omitempty"`
	}
	// AllocResourceUsage is an allocation's use of resources. JSON names are Nomad's.
	AllocResourceUsage struct {
		ResourceUsage *ResourceUsage
		Tasks         map[string]*TaskResourceUsage
		Timestamp     int64
	}
	// TaskResourceUsage is a task's use.
	TaskResourceUsage struct {
		ResourceUsage *ResourceUsage
		Timestamp     int64
		Pids          map[string]*ResourceUsage
	}
	// ResourceUsage is use of memory and processor.
	ResourceUsage struct {
		MemoryStats *MemoryStats
		CpuStats    *CpuStats
	}
	// MemoryStats is in bytes.
	MemoryStats struct {
		RSS, Cache, Swap, Usage, MaxUsage, KernelUsage, KernelMaxUsage uint64
		Measured                                                       []string
	}
	// CpuStats is in percent of one core and MHz (TotalTicks).
	CpuStats struct {
		SystemMode, UserMode, TotalTicks, Percent float64
		ThrottledPeriods, ThrottledTime           uint64
		Measured                                  []string
	}
	// HostStats is a node's use. JSON names are Nomad's.
	HostStats struct {
		Memory           *HostMemoryStats
		CPU              []*HostCPUStats
		DiskStats        []*HostDiskStats
		AllocDirStats    *HostDiskStats
		Uptime           uint64
		CPUTicksConsumed float64
		Timestamp        int64
	}
	// HostMemoryStats is in bytes.
	HostMemoryStats struct{ Total, Available, Used, Free uint64 }
	// HostCPUStats is in percent.
	HostCPUStats struct {
		CPU                                     string
		User, System, Idle, TotalPercent, Total float64
	}
	// HostDiskStats is in bytes.
	HostDiskStats struct {
		Device, Mountpoint             string
		Size, Used, Available          uint64
		UsedPercent, InodesUsedPercent float64
	}
)
