package structs

import "time"

// Scheduler algorithms, as Nomad names them. `binpack` fills nodes, `spread` evens them out.
const (
	AlgorithmBinpack = "binpack"
	AlgorithmSpread  = "spread"
)

// SchedulerConfiguration is changed while the cluster runs
// (`operator scheduler set-config`). JSON names are Nomad's.
type SchedulerConfiguration struct {
	SchedulerAlgorithm            string
	PreemptionConfig              PreemptionConfig
	MemoryOversubscriptionEnabled bool
	RejectJobRegistration         bool
	PauseEvalBroker               bool
	// NodeLimitForFeasibilityChecks bounds the leaves that affinities and spreads
	// score per class and target; 0: 100.
	NodeLimitForFeasibilityChecks uint

	// What follows is ours (semantics part 1 and 2). Empty means the default, which the
	// methods give; a change that does not name one of these leaves it as it is.

	// Policy is the order in which nodes are tried, one of Job.Policy's values; "": what
	// SchedulerAlgorithm states. See NodeOrder.
	Policy string
	// Dimensions is the order in which room is compared: of "gpus", "cpu", "memory".
	Dimensions []string
	// Granularity is the step in which a dimension is compared: GPUs, MHz, MiB.
	Granularity map[string]int64
	// Levels are the topology above nodes, lowest first; nil is the default, empty none.
	Levels []TopologyLevel
	// PreferredCells are sizes in GPUs: a free cell of such a size is cut before a
	// larger one is.
	PreferredCells []int
	// ReservationAfter is how long a request waits before it reserves room (negative: never),
	// ReservationTTL how long it holds it.
	ReservationAfter time.Duration
	ReservationTTL   time.Duration
	// Bands are the ranges of priority, lowest first: a request takes from lower ones only
	// (semantics part 3). See PriorityBands.
	Bands []PriorityBand
	// KeepWhole: when room is returned, a request that gets all of its own is served before any
	// that gets a part.
	KeepWhole bool
	// Cycle is how long a request waits for one more of effective priority (0: 20 s); Aging of 0
	// turns that off (nil: on).
	Cycle time.Duration
	Aging *int
	// Calendar is when weeks of projects' calendars begin; nil: Monday 00:00 in UTC. See WeekCalendar.
	Calendar *CalendarConfiguration `json:",omitempty" codec:",omitempty"`
	// Slots are the types of slots and how projects' requests rank; nil: all at their defaults.
	Slots *SlotSettings `json:",omitempty" codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// PreemptionConfig describes which job types may preempt lower bands.
type PreemptionConfig struct {
	SystemSchedulerEnabled   bool
	SysBatchSchedulerEnabled bool
	BatchSchedulerEnabled    bool
	ServiceSchedulerEnabled  bool
}

// DefaultSchedulerConfiguration is what a new cluster starts with.
func DefaultSchedulerConfiguration() SchedulerConfiguration {
	return SchedulerConfiguration{
		SchedulerAlgorithm: AlgorithmBinpack, NodeLimitForFeasibilityChecks: 100,
		PreemptionConfig: PreemptionConfig{SystemSchedulerEnabled: true},
	}
}

// JobSummary counts a job's allocations by group and state.
type JobSummary struct {
	JobID       string
	Namespace   string
	Summary     map[string]TaskGroupSummary
	Children    *JobChildrenSummary
	CreateIndex uint64
	ModifyIndex uint64
}

// TaskGroupSummary counts a group's allocations.
type TaskGroupSummary struct {
	Queued, Complete, Failed, Running, Starting, Lost, Unknown int
}

// JobChildrenSummary counts the children of a periodic or parameterized job.
type JobChildrenSummary struct{ Pending, Running, Dead int64 }

// JobSubmission is the text that a job was registered from.
type JobSubmission struct {
	Source        string
	Format        string // hcl2 or json
	VariableFlags map[string]string
	Variables     string
}

// Size returns the bytes of the submission's texts.
func (s *JobSubmission) Size() int {
	return len(s.Source) + len(s.Format) + len(s.Variables) + bytesOf(s.VariableFlags)
}

// JobListStub is a job's line in a list.
type JobListStub struct {
	ID                string
	ParentID          string
	Name              string
	Namespace         string `json:",omitempty"`
	Datacenters       []string
	NodePool          string
	Type              string
	Priority          int
	Periodic          bool
	ParameterizedJob  bool
	Stop              bool
	Status            string
	StatusDescription string
	JobSummary        *JobSummary
	CreateIndex       uint64
	ModifyIndex       uint64
	JobModifyIndex    uint64
	SubmitTime        int64
	Submitter         string            `json:",omitempty" codec:",omitempty"` // the user who registered the newest version; "": nobody stated one
	Meta              map[string]string `json:",omitempty"`
}

// NodeListStub is a node's line in a list.
type NodeListStub struct {
	Address               string
	ID                    string
	Attributes            map[string]string `json:",omitempty"`
	Datacenter            string
	Name                  string
	NodeClass             string
	NodePool              string
	Version               string
	Drain                 bool
	SchedulingEligibility string
	Status                string
	StatusDescription     string
	Drivers               map[string]*DriverInfo
	HostVolumes           map[string]*HostVolumeInfo
	NodeResources         *NodeResources         `json:",omitempty"`
	ReservedResources     *NodeReservedResources `json:",omitempty"`
	LastDrain             *DrainMetadata
	CreateIndex           uint64
	ModifyIndex           uint64
}

// HistoryRecord is what stays of an allocation after it ended, outliving its
// garbage collection: who, what it used, how long it waited and ran, how it ended.
type HistoryRecord struct {
	AllocID      string
	Namespace    string
	JobID        string
	JobVersion   uint64
	Type         string
	Group        string
	Priority     int
	User         string // of the system, of the first task
	Submitter    string `json:",omitempty" codec:",omitempty"` // the user who submitted the job; "": nobody stated one
	NodeID       string
	NodeName     string
	CPU          int64 // MHz
	Cores        int
	MemoryMB     int64
	DiskMB       int64
	Devices      int
	Submitted    int64 // Unix nanoseconds: the job version's registration
	Placed       int64
	Started      int64 // first task's start; 0: never
	Ended        int64
	ClientStatus string
	TimedOut     bool           `json:",omitempty" codec:",omitempty"` // it was ended at its time limit, the group's max_run_duration
	ExitCodes    map[string]int // by task, of those that ended
	Reason       string         // why the servers stopped it; empty if it ended by itself
	Index        uint64
}

// Finished reports whether the instance ran to its end: it completed by itself or at its time limit, and was not stopped. Those that reach their limit
// count in how long the next takes, which has the limit, too.
func (h *HistoryRecord) Finished() bool {
	return h.ClientStatus == AllocClientComplete && h.Started > 0 && h.Reason == ""
}

// Waited is the time from submission to start (or end, if it never started).
func (h *HistoryRecord) Waited() time.Duration {
	until := h.Started
	if until == 0 {
		until = h.Ended
	}
	return time.Duration(max(0, until-h.Submitted))
}
