package structs

import "fmt"

// LogType is the type of a Raft log entry: its first byte. Numbers are written
// to disk: append only, never reuse one.
type LogType uint8

// The log entry types, each with its payload.
const (
	LogNodeRegister         LogType = 1  // NodeRegisterEntry
	LogNodeDeregister       LogType = 2  // NodeDeregisterEntry
	LogNodeStatus           LogType = 3  // NodeStatusEntry
	LogNodeEligibility      LogType = 4  // NodeEligibilityEntry
	LogNodeDrain            LogType = 5  // NodeDrainEntry
	LogNodeEvents           LogType = 6  // NodeEventsEntry
	LogJobRegister          LogType = 7  // JobRegisterEntry
	LogJobDeregister        LogType = 8  // JobDeregisterEntry
	LogEvalUpsert           LogType = 9  // EvalUpsertEntry
	LogPlanApply            LogType = 10 // PlanCommit
	LogAllocClient          LogType = 11 // AllocClientEntry
	LogAllocTransition      LogType = 12 // AllocTransitionEntry
	LogSchedulerConfig      LogType = 13 // SchedulerConfigEntry
	LogCollect              LogType = 14 // CollectEntry
	LogJobScale             LogType = 15 // JobScaleEntry
	LogReconcile            LogType = 16 // ReconcileEntry
	LogAutopilotConfig      LogType = 17 // AutopilotConfigEntry
	LogClusterMeta          LogType = 18 // ClusterMetaEntry
	LogJobStability         LogType = 19 // JobStabilityEntry
	LogSigningKey           LogType = 20 // SigningKeyEntry
	LogNodePoolUpsert       LogType = 21 // NodePoolUpsertEntry
	LogNodePoolDelete       LogType = 22 // NodePoolDeleteEntry
	LogNamespaceUpsert      LogType = 23 // NamespaceUpsertEntry
	LogNamespaceDelete      LogType = 24 // NamespaceDeleteEntry
	LogVirtualClusterUpsert LogType = 25 // VirtualClusterUpsertEntry
	LogVirtualClusterDelete LogType = 26 // VirtualClusterDeleteEntry
	LogClaimsTime           LogType = 27 // ClaimsTimeEntry
	LogVirtualClusterShift  LogType = 28 // VirtualClusterShiftEntry
	LogVirtualClusterPoints LogType = 29 // VirtualClusterPointsEntry
	LogExchangePut          LogType = 30 // ExchangePutEntry
	LogExchangeWithdraw     LogType = 31 // ExchangeWithdrawEntry
	LogProjectUpsert        LogType = 32 // ProjectUpsertEntry
	LogProjectDelete        LogType = 33 // ProjectDeleteEntry
	LogProjectCalendar      LogType = 34 // ProjectCalendarEntry
	LogFlowUpsert           LogType = 35 // FlowUpsertEntry
	LogFlowDelete           LogType = 36 // FlowDeleteEntry
	LogWorkflowRun          LogType = 37 // WorkflowRunEntry
	LogWorkflowAdvance      LogType = 38 // WorkflowAdvanceEntry
	LogWorkflowState        LogType = 39 // WorkflowStateEntry
	LogWorkflowDelete       LogType = 40 // WorkflowDeleteEntry
	LogLicenseUpsert        LogType = 41 // LicenseUpsertEntry
	LogLicenseDelete        LogType = 42 // LicenseDeleteEntry
	LogWorkflowStart        LogType = 43 // PlanCommit of which the last plan has Advance
	LogWorkflowRenew        LogType = 44 // PlanCommit with a plan that renews a reservation, see JudgedPlan.Renews
)

// LogTypeFirst is the last type that every version which forms clusters knows. Later ones are written only while
// all servers report that they know them.
const LogTypeFirst = LogClusterMeta

// LogTypeLast is the last type that this version knows.
const LogTypeLast LogType = logTypeEnd - 1

// LogIgnorable is set in the number of an entry type that a server which does not know it
// may pass over: what such entries change must not reach any state that others look at.
const LogIgnorable = 1 << 7

// Known reports whether this version knows the type.
func (t LogType) Known() bool { return t >= LogNodeRegister && t < logTypeEnd }

// Ignorable reports whether a server that does not know the type may pass it over.
func (t LogType) Ignorable() bool { return t&LogIgnorable != 0 }

// LogTypes lists all entry types, for tests that walk them.
func LogTypes() []LogType {
	types := make([]LogType, 0, LogTypeLast)
	for t := LogNodeRegister; t < logTypeEnd; t++ {
		types = append(types, t)
	}
	return types
}

// NewLogPayload returns an empty payload of an entry type to decode into.
func NewLogPayload(t LogType) (any, error) {
	switch t {
	case LogNodeRegister:
		return &NodeRegisterEntry{}, nil
	case LogNodeDeregister:
		return &NodeDeregisterEntry{}, nil
	case LogNodeStatus:
		return &NodeStatusEntry{}, nil
	case LogNodeEligibility:
		return &NodeEligibilityEntry{}, nil
	case LogNodeDrain:
		return &NodeDrainEntry{}, nil
	case LogNodeEvents:
		return &NodeEventsEntry{}, nil
	case LogJobRegister:
		return &JobRegisterEntry{}, nil
	case LogJobDeregister:
		return &JobDeregisterEntry{}, nil
	case LogEvalUpsert:
		return &EvalUpsertEntry{}, nil
	case LogPlanApply:
		return &PlanCommit{}, nil
	case LogAllocClient:
		return &AllocClientEntry{}, nil
	case LogAllocTransition:
		return &AllocTransitionEntry{}, nil
	case LogSchedulerConfig:
		return &SchedulerConfigEntry{}, nil
	case LogCollect:
		return &CollectEntry{}, nil
	case LogJobScale:
		return &JobScaleEntry{}, nil
	case LogReconcile:
		return &ReconcileEntry{}, nil
	case LogAutopilotConfig:
		return &AutopilotConfigEntry{}, nil
	case LogClusterMeta:
		return &ClusterMetaEntry{}, nil
	case LogJobStability:
		return &JobStabilityEntry{}, nil
	case LogSigningKey:
		return &SigningKeyEntry{}, nil
	case LogNodePoolUpsert:
		return &NodePoolUpsertEntry{}, nil
	case LogNodePoolDelete:
		return &NodePoolDeleteEntry{}, nil
	case LogNamespaceUpsert:
		return &NamespaceUpsertEntry{}, nil
	case LogNamespaceDelete:
		return &NamespaceDeleteEntry{}, nil
	case LogVirtualClusterUpsert:
		return &VirtualClusterUpsertEntry{}, nil
	case LogVirtualClusterDelete:
		return &VirtualClusterDeleteEntry{}, nil
	case LogClaimsTime:
		return &ClaimsTimeEntry{}, nil
	case LogVirtualClusterShift:
		return &VirtualClusterShiftEntry{}, nil
	case LogVirtualClusterPoints:
		return &VirtualClusterPointsEntry{}, nil
	case LogExchangePut:
		return &ExchangePutEntry{}, nil
	case LogExchangeWithdraw:
		return &ExchangeWithdrawEntry{}, nil
	default:
		return newProjectPayload(t)
	}
}

// newProjectPayload is NewLogPayload for entries about projects, workflows and licenses.
func newProjectPayload(t LogType) (any, error) {
	switch t {
	case LogProjectUpsert:
		return &ProjectUpsertEntry{}, nil
	case LogProjectDelete:
		return &ProjectDeleteEntry{}, nil
	case LogProjectCalendar:
		return &ProjectCalendarEntry{}, nil
	case LogFlowUpsert:
		return &FlowUpsertEntry{}, nil
	case LogFlowDelete:
		return &FlowDeleteEntry{}, nil
	case LogWorkflowRun:
		return &WorkflowRunEntry{}, nil
	case LogWorkflowAdvance:
		return &WorkflowAdvanceEntry{}, nil
	case LogWorkflowState:
		return &WorkflowStateEntry{}, nil
	case LogWorkflowDelete:
		return &WorkflowDeleteEntry{}, nil
	case LogLicenseUpsert:
		return &LicenseUpsertEntry{}, nil
	case LogLicenseDelete:
		return &LicenseDeleteEntry{}, nil
	case LogWorkflowStart, LogWorkflowRenew:
		return &PlanCommit{}, nil
	default:
		return nil, fmt.Errorf("log entry type %d: unknown; it was written by a newer version, upgrade this server", t)
	}
}

// All times in entries are Unix nanoseconds minted by the server that made the
// entry; evaluations in them carry IDs minted there too. FSM answers are errors
// (an *Error for what the caller can mend) or nil.
type (
	// NodeRegisterEntry registers a node or replaces what it reports about itself.
	// Eligibility, drain and events of a known node are kept.
	NodeRegisterEntry struct {
		Node  *Node
		Time  int64
		Event *NodeEvent
		// EvalSeed derives the IDs of the evaluations that its coming creates: the
		// FSM makes one for each system job, and for each job with allocations on it
		// when its status moved.
		EvalSeed string
	}
	// NodeDeregisterEntry forgets nodes; their allocations are lost.
	NodeDeregisterEntry struct {
		NodeIDs  []string
		Time     int64
		EvalSeed string
	}
	// NodeStatusEntry moves nodes to a status. To `down` makes their
	// allocations' jobs evaluated; to `ready` wakes those that wait for room.
	NodeStatusEntry struct {
		NodeIDs  []string
		Status   string
		Time     int64
		Event    *NodeEvent
		EvalSeed string
		// KeptUntil: see Node. Servers of before the clients' gossip do not know it: it is set only when all
		// servers gossip with the clients.
		KeptUntil int64 `json:",omitempty"`
	}
	// NodeEligibilityEntry makes a node (in)eligible for new work.
	NodeEligibilityEntry struct {
		NodeID      string
		Eligibility string
		Time        int64
		Event       *NodeEvent
		EvalSeed    string
	}
	// NodeDrainEntry starts (Strategy set), changes or ends (nil) a drain.
	NodeDrainEntry struct {
		NodeID       string
		Strategy     *DrainStrategy
		MarkEligible bool   // when it ends by an operator: back to eligible
		Status       string // of LastDrain: draining, complete, canceled
		Meta         map[string]string
		Time         int64
		Event        *NodeEvent
		EvalSeed     string
	}
	// NodeEventsEntry appends to nodes' histories.
	NodeEventsEntry struct{ Events map[string][]*NodeEvent }
	// JobRegisterEntry stores a new version of a job (or refreshes it when its
	// spec did not change) and its evaluation.
	JobRegisterEntry struct {
		Job *Job
		// EnforceIndex refuses with CodeConflict unless the job's modify index is CheckIndex (0: it must not exist).
		EnforceIndex bool
		CheckIndex   uint64
		Submission   *JobSubmission
		Eval         *Evaluation // nil: none (periodic, parameterized)
		Time         int64
	}
	// JobDeregisterEntry stops a job, or purges it.
	JobDeregisterEntry struct {
		Namespace       string
		JobID           string
		Purge           bool
		NoShutdownDelay bool
		Eval            *Evaluation
		Time            int64
	}
	// JobScaleEntry changes a group's count: a new job version.
	JobScaleEntry struct {
		Namespace string
		JobID     string
		Group     string
		Count     *int64 // nil: only the event is recorded
		// EnforceIndex as in JobRegisterEntry.
		EnforceIndex bool
		CheckIndex   uint64
		Eval         *Evaluation
		Event        *ScalingEvent
		Time         int64
	}
	// EvalUpsertEntry stores evaluations.
	EvalUpsertEntry struct {
		Evals []*Evaluation
		Time  int64
	}
	// AllocClientEntry is a batch of clients' reports, with the evaluations that
	// the receiving server found necessary.
	AllocClientEntry struct {
		Updates []*AllocClientUpdate
		Evals   []*Evaluation
		Time    int64
	}
	// AllocTransitionEntry requests transitions of allocations.
	AllocTransitionEntry struct {
		Transitions map[string]*DesiredTransition // by allocation ID
		Evals       []*Evaluation
		Time        int64
	}
	// SchedulerConfigEntry sets the configuration. CAS: only if its ModifyIndex is CheckIndex.
	SchedulerConfigEntry struct {
		Config     SchedulerConfiguration
		CAS        bool
		CheckIndex uint64
		Time       int64
	}
	// AutopilotConfigEntry sets the configuration. CAS: only if its ModifyIndex is CheckIndex.
	AutopilotConfigEntry struct {
		Config     AutopilotConfiguration
		CAS        bool
		CheckIndex uint64
		Time       int64
	}
	// ClusterMetaEntry returns a new cluster its identity; a second one changes nothing.
	ClusterMetaEntry struct {
		ClusterID string
		Time      int64
	}
	// JobStabilityEntry marks a version of a job as stable, so that it may be reverted to, or as not stable.
	JobStabilityEntry struct {
		Namespace string
		JobID     string
		Version   uint64
		Stable    bool
		Time      int64
	}
	// SigningKeyEntry adds a key that the servers sign with. A key that is known already, or a first one where there
	// is one, changes nothing.
	SigningKeyEntry struct {
		Key   SigningKey
		First bool // it is for a cluster that has none
		Time  int64
	}
	// NodePoolUpsertEntry makes node pools, or replaces them unless IfAbsent is set: all of them, or none.
	NodePoolUpsertEntry struct {
		Pools []*NodePool
		// IfAbsent leaves alone what there is: nodes and jobs name these pools, and nothing more is known of them.
		IfAbsent bool
		Time     int64
	}
	// NodePoolDeleteEntry removes a node pool that no node is in and no job that is not dead names.
	NodePoolDeleteEntry struct {
		Name string
		Time int64
	}
	// CollectEntry forgets what garbage collection found. What is no longer
	// collectable when it is applied (a job that runs again) is left alone.
	CollectEntry struct {
		Evals  []string
		Allocs []string
		Jobs   []NamespacedID
		Nodes  []string
		// HistoryBefore drops history records that ended before (Unix nanoseconds; 0: none).
		HistoryBefore int64
		Time          int64
	}
	// ReconcileEntry rebuilds what is derived (summaries, World) from the tables.
	ReconcileEntry struct{ Time int64 }
)

// ScalingEvent is one line of a group's scaling history.
type ScalingEvent struct {
	Time          int64 // Unix nanoseconds
	Count         *int64
	PreviousCount int64
	Message       string
	Error         bool
	Meta          map[string]any
	EvalID        *string
	CreateIndex   uint64
}
