package structs

// Plan is what a scheduler decided for one evaluation: what to place, stop and
// change, and the evaluations that follow from it. Nothing of it has happened
// until the plan applier has judged it against the latest state and Raft has
// committed it.
type Plan struct {
	_struct sparse `entry:",omitempty"`

	EvalID        string
	EvalToken     string // proves that the worker still holds the evaluation
	Namespace     string
	JobID         string
	JobVersion    uint64
	Priority      int
	SnapshotIndex uint64 // the state that it was decided on
	// AllAtOnce: all placements or none (Nomad's all_at_once, and every plan that
	// places a gang).
	AllAtOnce bool

	Place  []*PlacementBatch
	Stop   []*AllocStop
	Update []*AllocInPlace
	// Reserve makes reservations, Unreserve ends those of this job on the nodes named.
	Reserve   []*Reservation `codec:",omitempty"`
	Unreserve []string       `codec:",omitempty"`
	// Workflow changes what a workflow has reserved; nil: nothing. A plan that does is of no evaluation.
	Workflow *WorkflowReservation `codec:",omitempty"`
	// Advance moves a run of a workflow on, before anything else of the plan is done, which places jobs that this registers; nil: none. The plan is
	// AllAtOnce and of no evaluation.
	Advance *WorkflowAdvanceEntry `codec:",omitempty"`
	// Beside are, gang by gang, allocations beside which the plan places more of their gang. Those hold only if one of them
	// is there still: the others would be a gang of too few.
	Beside [][]string `codec:",omitempty"`
	// Requests is what is missing of the job's groups once the plan has been committed.
	Requests []*RequestUpdate `codec:"Asks,omitempty"`

	// Evals are committed with the plan, if all of it holds: the evaluation's own
	// new status, the blocked one that it leaves, delayed follow-ups.
	Evals []*Evaluation

	// For `job plan` and for the evaluation's record; not committed by themselves.
	Annotations    *PlanAnnotations
	FailedTGAllocs map[string]*AllocMetric
}

// PlacementBatch is the placed instances of one version of a job's group. What
// they share stands once.
type PlacementBatch struct {
	_struct sparse `entry:",omitempty"`

	Namespace  string
	JobID      string
	JobVersion uint64
	Group      string
	EvalID     string
	Seed       string // allocation IDs are DeriveID(Seed, Instance.Ordinal)
	CreateTime int64  // Unix nanoseconds, minted by the worker

	// Resources is what each instance takes, without what only it has (ports,
	// cores, devices: see Instance).
	Resources *AllocatedResources
	Metrics   *AllocMetric
	Nodes     []PlacedNode // the nodes that Instance.Node counts into
	// Gang is what the gang's members know of each other; nil: they are none. Its
	// Rank is not used: Instance.Rank is.
	Gang      *AllocGang `codec:",omitempty"`
	Instances []Instance
}

// PlacedNode is a node that a batch uses.
type PlacedNode struct {
	_struct sparse `entry:",omitempty"`

	ID   string
	Name string
}

// Instance is one placed instance of a batch.
type Instance struct {
	_struct sparse `entry:",omitempty"`

	Ordinal uint32 // within the batch as decided; survives a partial commit
	// Requeues is how often the instance was requeued before, RequeueReason why it was the last time.
	Requeues int32 `codec:",omitempty"`
	Index    int   // the instance's number in its group
	Node     int   // into PlacementBatch.Nodes
	// What only this instance has; nil when the batch's Resources are all.
	Ports    []PortMapping                         `codec:",omitempty"`
	Networks []*NetworkResource                    `codec:",omitempty"`
	Cores    map[string][]uint16                   `codec:",omitempty"` // by task
	CoreMHz  map[string]int64                      `codec:",omitempty"` // MHz of those cores, by task
	Devices  map[string][]*AllocatedDeviceResource `codec:",omitempty"` // by task

	Rank               int                `codec:",omitempty"` // within its gang
	PreviousAllocation string             `codec:",omitempty"`
	RescheduleTracker  *RescheduleTracker `codec:",omitempty"`
	RequeueReason      string             `codec:",omitempty"`
}

// Allocation makes instance i of the batch a whole allocation, without its Job
// and without indexes.
func (b *PlacementBatch) Allocation(i int) *Allocation {
	in := b.Instances[i]
	res := b.Resources.Copy()
	if res == nil {
		res = &AllocatedResources{Tasks: map[string]*AllocatedTaskResources{}}
	}
	res.Shared.Ports = append(res.Shared.Ports, in.Ports...)
	res.Shared.Networks = append(res.Shared.Networks, in.Networks...)
	for task, t := range res.Tasks {
		if cores := in.Cores[task]; len(cores) > 0 {
			t.Cpu.ReservedCores = cores
			t.Cpu.CpuShares = in.CoreMHz[task]
		}
		t.Devices = append(t.Devices, in.Devices[task]...)
	}
	var gang *AllocGang
	if b.Gang != nil {
		gang = &AllocGang{Rank: in.Rank, Size: b.Gang.Size, Hosts: b.Gang.Hosts, Level: b.Gang.Level}
	}
	return &Allocation{
		ID: DeriveID(b.Seed, uint64(in.Ordinal)), Namespace: b.Namespace, EvalID: b.EvalID,
		Name: AllocName(b.JobID, b.Group, in.Index), NodeID: b.Nodes[in.Node].ID, NodeName: b.Nodes[in.Node].Name,
		JobID: b.JobID, JobVersion: b.JobVersion, TaskGroup: b.Group, AllocatedResources: res, Metrics: b.Metrics,
		DesiredStatus: AllocDesiredRun, ClientStatus: AllocClientPending,
		PreviousAllocation: in.PreviousAllocation, RescheduleTracker: in.RescheduleTracker, Gang: gang,
		Requeues: int(in.Requeues), RequeueReason: in.RequeueReason,
		CreateTime: b.CreateTime, ModifyTime: b.CreateTime,
	}
}

// AllocStop stops an allocation.
type AllocStop struct {
	_struct sparse `entry:",omitempty"`

	AllocID            string
	DesiredStatus      string // stop or evict
	DesiredDescription string
	ClientStatus       string // set to lost or unknown when its node is gone; else empty
	FollowupEvalID     string // the delayed evaluation that will replace it
	// PreemptedBy is the allocation that it makes room for; it holds only together with
	// that one's placement.
	PreemptedBy string
	// Reclaim: taken back for somebody else, and how, by one of the Reclaim constants: the request
	// goes back to the queue at its place. "": it is stopped for another reason.
	Reclaim string `codec:",omitempty"`
	// RequeueReason is why the instance is requeued, for its successor; "": it is not requeued.
	RequeueReason string `codec:",omitempty"`
	// SuspendedAt is when it was decided to suspend it, in Unix nanoseconds; 0: it is not suspended.
	SuspendedAt int64 `codec:",omitempty"`
	// KeepRunning: only FollowupEvalID and ClientStatus are recorded; the allocation is not stopped.
	KeepRunning bool
}

// AllocInPlace moves a running allocation to another version of its job.
type AllocInPlace struct {
	AllocID    string
	JobVersion uint64
	EvalID     string
	// Resources, when not nil, replaces what the allocation holds.
	Resources *AllocatedResources
	// Resume: it was suspended and goes on; Resources is then what it holds again.
	Resume bool `codec:",omitempty"`
	// Created is the CreateTime of an allocation that goes on, from which its new time
	// limit counts, in Unix nanoseconds.
	Created int64 `codec:",omitempty"`
	// ClassTo is the allocation for which it gives up its class: it runs on, opportunistic, with all else that it has and its version.
	// "": it keeps what Resources say.
	ClassTo string `json:",omitempty" codec:",omitempty"`
}

// PlanResult answers a submitted plan.
type PlanResult struct {
	_struct sparse `entry:",omitempty"`

	AllocIndex uint64 // the log index of the commit; 0: nothing was committed
	// RefreshIndex is set when a part was refused: retry on a state at least this new.
	RefreshIndex  uint64
	RefusedNodes  []string // the nodes whose placements were refused, for any reason
	Placed        int
	Refused       int
	RefusedReason string
	// Overtook: nothing was committed, as a request that goes before was still to be tried; the
	// evaluation is the worker's no more and is given out again in its turn.
	Overtook bool `codec:",omitempty"`
}

// PlanCommit is the log entry of one or many judged plans.
type PlanCommit struct {
	_struct sparse `entry:",omitempty"`

	Plans []*JudgedPlan
}

// JudgedPlan is the part of a plan that holds on the latest state.
type JudgedPlan struct {
	_struct sparse `entry:",omitempty"`

	EvalID string
	Place  []*PlacementBatch
	Stop   []*AllocStop
	Update []*AllocInPlace
	// Unreserve ends reservations on the nodes named, then Reserve makes new ones.
	Reserve   []*Reservation `codec:",omitempty"`
	Unreserve []string       `codec:",omitempty"`
	// Workflow changes what a workflow has reserved, after all stops.
	Workflow *WorkflowReservation `codec:",omitempty"`
	// Advance moves a run of a workflow on before all that. If the run has changed since, the entry is refused. Only entries of type
	// LogWorkflowStart have it, as earlier versions do not know it.
	Advance  *WorkflowAdvanceEntry `codec:",omitempty"`
	Requests []*RequestUpdate      `codec:"Asks,omitempty"`
	Evals    []*Evaluation
	Time     int64 // Unix nanoseconds, minted by the applier
	// JudgedAt is the index of the state that the plan was judged on.
	JudgedAt uint64 `codec:",omitempty"`
}

// PlanAnnotations describes what a plan would do, by group.
type PlanAnnotations struct {
	DesiredTGUpdates map[string]*DesiredUpdates
	PreemptedAllocs  []*AllocListStub
}

// DesiredUpdates counts what a plan does with a group's instances.
type DesiredUpdates struct {
	Ignore            uint64
	Place             uint64
	Migrate           uint64
	Stop              uint64
	InPlaceUpdate     uint64
	DestructiveUpdate uint64
	Canary            uint64
	Preemptions       uint64
	RescheduleNow     uint64
	RescheduleLater   uint64
}
