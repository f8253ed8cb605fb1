package structs

import (
	"maps"
	"slices"
	"time"
)

// What the servers want of an allocation.
const (
	AllocDesiredRun   = "run"
	AllocDesiredStop  = "stop"
	AllocDesiredEvict = "evict" // stopped to make room for somebody else
	// AllocDesiredSuspend: suspended in place to make room for somebody else. It keeps its memory
	// and disk, and releases everything else until it is resumed.
	AllocDesiredSuspend = "suspend"
)

// What the client reports about an allocation.
const (
	AllocClientPending  = "pending"
	AllocClientRunning  = "running"
	AllocClientComplete = "complete"
	AllocClientFailed   = "failed"
	AllocClientLost     = "lost"    // its node is gone
	AllocClientUnknown  = "unknown" // its node is disconnected
	// AllocClientSuspended: its tasks are suspended. It has not ended.
	AllocClientSuspended = "suspended"
)

// DescLostClaim is the DesiredDescription of an allocation that runs on without the claim that it had.
const DescLostClaim = "lost its claim; it runs on opportunistically and may be reclaimed at any time"

// DescGaveClaim is the DesiredDescription of an allocation that runs on without its claim, which another of its namespace has now.
const DescGaveClaim = "its claim is used by allocation %s of a higher priority; it runs on opportunistically and may be reclaimed at any time"

// DescSuspended is the DesiredDescription of an allocation that somebody had suspended.
const DescSuspended = "suspended by a user; `alloc resume` lets it go on"

// DescMaxRunDuration is the ClientDescription of an allocation that was ended by
// its group's max_run_duration; its client status is complete. It had its time, so it
// is not rescheduled.
const DescMaxRunDuration = "max_run_duration exceeded"

// Allocation is one instance of a job's task group on a node. JSON names are
// Nomad's. Readers get full values: Job is attached on read, never stored.
type Allocation struct {
	ID        string // DeriveID(batch seed, ordinal)
	Namespace string
	EvalID    string
	Name      string // job.group[index]
	NodeID    string
	NodeName  string
	JobID     string
	// Job is the version that the allocation runs; attached on read.
	Job        *Job `wire:",omitempty"`
	JobVersion uint64
	TaskGroup  string

	AllocatedResources *AllocatedResources
	Metrics            *AllocMetric

	DesiredStatus      string
	DesiredDescription string `wire:",omitempty"`
	DesiredTransition  DesiredTransition
	ClientStatus       string
	ClientDescription  string `wire:",omitempty"`
	TaskStates         map[string]*TaskState

	DeploymentID     string                 `wire:",omitempty"`
	DeploymentStatus *AllocDeploymentStatus `wire:",omitempty"`
	// FollowupEvalID is the delayed evaluation that will reschedule this one.
	FollowupEvalID     string              `wire:",omitempty"`
	PreviousAllocation string              `wire:",omitempty"`
	NextAllocation     string              `wire:",omitempty"`
	RescheduleTracker  *RescheduleTracker  `wire:",omitempty"`
	NetworkStatus      *AllocNetworkStatus `wire:",omitempty"`
	// Gang is set on members of a gang.
	Gang *AllocGang `json:",omitempty" codec:",omitempty"`

	PreemptedAllocations  []string
	PreemptedByAllocation string `wire:",omitempty"`
	// Requeues is how often its instance was stopped to make room for others and went back to the queue, the end of this allocation
	// included. RequeueReason is why it was the last time.
	Requeues      int    `json:",omitempty" codec:",omitempty"`
	RequeueReason string `json:",omitempty" codec:",omitempty"`
	// SuspendedAt is when the scheduler decided to suspend it, in Unix nanoseconds; 0: it is not suspended, or a user suspended it.
	SuspendedAt int64 `json:",omitempty" codec:",omitempty"`

	CreateIndex      uint64
	ModifyIndex      uint64 // moves with every change
	AllocModifyIndex uint64 // moves when the servers change it; a client watches this one
	CreateTime       int64  // Unix nanoseconds
	ModifyTime       int64  // Unix nanoseconds
}

// Index is the instance's number within its group; -1 if its name has none.
func (a *Allocation) Index() int { return AllocIndex(a.Name) }

// ServerTerminal reports whether the servers want it stopped.
func (a *Allocation) ServerTerminal() bool {
	return a.DesiredStatus == AllocDesiredStop || a.DesiredStatus == AllocDesiredEvict
}

// ClientTerminal reports whether it has ended on its node.
func (a *Allocation) ClientTerminal() bool { return TerminalClientStatus(a.ClientStatus) }

// Suspended reports whether the servers want it suspended in place.
func (a *Allocation) Suspended() bool { return a.DesiredStatus == AllocDesiredSuspend }

// Terminal reports whether it has ended or shall end.
func (a *Allocation) Terminal() bool { return a.ServerTerminal() || a.ClientTerminal() }

// TerminalClientStatus reports whether a client status is an end.
func TerminalClientStatus(s string) bool {
	return s == AllocClientComplete || s == AllocClientFailed || s == AllocClientLost
}

// GroupNow is the group whose word on disconnected nodes holds for an allocation: that of the job as it is now, nil if that is not known,
// or of its own version where there is none of the name any more.
func (a *Allocation) GroupNow(job *Job) *TaskGroup {
	if a.Job == nil {
		return nil
	}
	if job != nil && job.CreateIndex == a.Job.CreateIndex {
		if g := job.LookupTaskGroup(a.TaskGroup); g != nil {
			return g
		}
	}
	return a.Job.LookupTaskGroup(a.TaskGroup)
}

// Copy is deep but for Job, which is never changed once it is stored.
func (a *Allocation) Copy() *Allocation {
	if a == nil {
		return nil
	}
	c := *a
	c.AllocatedResources = a.AllocatedResources.Copy()
	c.TaskStates = maps.Clone(a.TaskStates)
	for k, v := range c.TaskStates {
		c.TaskStates[k] = v.Copy()
	}
	if a.DeploymentStatus != nil {
		d := *a.DeploymentStatus
		c.DeploymentStatus = &d
	}
	if a.RescheduleTracker != nil {
		c.RescheduleTracker = &RescheduleTracker{
			Events: slices.Clone(a.RescheduleTracker.Events), LastReschedule: a.RescheduleTracker.LastReschedule,
		}
	}
	c.PreemptedAllocations = slices.Clone(a.PreemptedAllocations)
	return &c
}

// Stub is the allocation's line in a list.
func (a *Allocation) Stub(resources, taskStates bool) *AllocListStub {
	s := &AllocListStub{
		ID: a.ID, EvalID: a.EvalID, Name: a.Name, Namespace: a.Namespace, NodeID: a.NodeID, NodeName: a.NodeName,
		JobID: a.JobID, JobVersion: a.JobVersion, TaskGroup: a.TaskGroup,
		DesiredStatus: a.DesiredStatus, DesiredDescription: a.DesiredDescription,
		ClientStatus: a.ClientStatus, ClientDescription: a.ClientDescription,
		DesiredTransition: a.DesiredTransition, DeploymentStatus: a.DeploymentStatus,
		FollowupEvalID: a.FollowupEvalID, NextAllocation: a.NextAllocation, RescheduleTracker: a.RescheduleTracker,
		PreemptedAllocations: a.PreemptedAllocations, PreemptedByAllocation: a.PreemptedByAllocation,
		Requeues: a.Requeues, RequeueReason: a.RequeueReason,
		CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex, CreateTime: a.CreateTime, ModifyTime: a.ModifyTime,
	}
	s.Class, s.Claim = a.ClassAndClaim()
	if a.Job != nil {
		s.JobType = a.Job.Type
	}
	if resources {
		s.AllocatedResources = a.AllocatedResources
	}
	if taskStates {
		s.TaskStates = a.TaskStates
	}
	return s
}

// AllocClaim is the right by which an allocation uses what its namespace or its project has.
type AllocClaim struct {
	Kind  string // one of the Claim constants
	Owner string // the namespace that owns the cell, the project that has the slots, or the workflow, "NAMESPACE/ID", that has reserved the room
	// Type is the type of the slots; empty: it uses a cell of a namespace.
	Type string `json:",omitempty" codec:",omitempty"`
	// Cell is the name of the cell that it uses, of a Level: "n1/socket-0". Lists leave it out. Both are empty if it uses slots without devices.
	Cell  string `json:",omitempty" codec:",omitempty"`
	Level string
}

// ClassAndClaim returns the class of an allocation as it is shown, ClassGuaranteed or ClassOpportunistic, and what it has a claim on. The
// class is empty if servers of a version without classes have placed it.
func (a *Allocation) ClassAndClaim() (class string, claim *AllocClaim) {
	switch {
	case a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil:
		return "", nil
	case a.AllocatedResources.Shared.Terms.Claim == "":
		return ClassOpportunistic, nil
	}
	t := a.AllocatedResources.Shared.Terms
	claim = &AllocClaim{Kind: t.Claim, Owner: a.Namespace, Level: t.CellLevel}
	switch {
	case t.Claim == ClaimWorkflow:
		claim.Owner = t.WorkflowKey()
	case t.Claim == ClaimSlots && t.Slots != nil:
		claim.Owner, claim.Type = t.Slots.Project, t.Slots.Type
	}
	return ClassGuaranteed, claim
}

// AllocListStub is an allocation's line in a list.
type AllocListStub struct {
	Class                 string      `json:",omitempty" codec:",omitempty"`
	Claim                 *AllocClaim `json:",omitempty" codec:",omitempty"`
	ID                    string
	EvalID                string
	Name                  string
	Namespace             string
	NodeID                string
	NodeName              string
	JobID                 string
	JobType               string
	JobVersion            uint64
	TaskGroup             string
	AllocatedResources    *AllocatedResources `json:",omitempty"`
	DesiredStatus         string
	DesiredDescription    string
	ClientStatus          string
	ClientDescription     string
	DesiredTransition     DesiredTransition
	TaskStates            map[string]*TaskState
	DeploymentStatus      *AllocDeploymentStatus
	FollowupEvalID        string
	NextAllocation        string
	RescheduleTracker     *RescheduleTracker
	PreemptedAllocations  []string
	PreemptedByAllocation string
	Requeues              int    `json:",omitempty" codec:",omitempty"`
	RequeueReason         string `json:",omitempty" codec:",omitempty"`
	CreateIndex           uint64
	ModifyIndex           uint64
	CreateTime            int64
	ModifyTime            int64
}

// DesiredTransition is what the scheduler is requested to do with an allocation.
type DesiredTransition struct {
	Migrate                 *bool `wire:",omitempty"` // move it to another node
	Reschedule              *bool `wire:",omitempty"` // it may be rescheduled
	ForceReschedule         *bool `wire:",omitempty"` // it must be, whatever its policy states
	NoShutdownDelay         *bool `wire:",omitempty"` // stop without the configured delay
	MigrateDisablePlacement *bool `wire:",omitempty"` // stop it, without a replacement
	// Suspend: somebody wants it suspended in place (true), and lets it go on when there is room
	// for it again (false). What was suspended to make room for others goes on without a request.
	Suspend *bool `json:",omitempty" codec:",omitempty"`
}

// ShouldSuspend reports whether somebody wants the allocation suspended.
func (d DesiredTransition) ShouldSuspend() bool { return d.Suspend != nil && *d.Suspend }

// ShouldMigrate reports whether the allocation is requested to move.
func (d DesiredTransition) ShouldMigrate() bool { return d.Migrate != nil && *d.Migrate }

// ShouldForceReschedule reports whether the allocation must be rescheduled.
func (d DesiredTransition) ShouldForceReschedule() bool {
	return d.ForceReschedule != nil && *d.ForceReschedule
}

// Merge lays what is set in o over d.
func (d DesiredTransition) Merge(o DesiredTransition) DesiredTransition {
	if o.Migrate != nil {
		d.Migrate = o.Migrate
	}
	if o.Reschedule != nil {
		d.Reschedule = o.Reschedule
	}
	if o.ForceReschedule != nil {
		d.ForceReschedule = o.ForceReschedule
	}
	if o.NoShutdownDelay != nil {
		d.NoShutdownDelay = o.NoShutdownDelay
	}
	if o.MigrateDisablePlacement != nil {
		d.MigrateDisablePlacement = o.MigrateDisablePlacement
	}
	if o.Suspend != nil {
		d.Suspend = o.Suspend
	}
	return d
}

// AllocDeploymentStatus is the allocation's health, as its client judged it by
// its update block (running for min_healthy_time before healthy_deadline).
type AllocDeploymentStatus struct {
	Healthy     *bool     `wire:",omitempty"` // nil: not decided yet
	Timestamp   time.Time `wire:",omitempty"`
	Canary      bool      `wire:",omitempty"`
	ModifyIndex uint64
}

// IsHealthy reports whether the client has found the allocation healthy.
func (s *AllocDeploymentStatus) IsHealthy() bool { return s != nil && s.Healthy != nil && *s.Healthy }

// IsUnhealthy reports whether the client has found the allocation unhealthy.
func (s *AllocDeploymentStatus) IsUnhealthy() bool {
	return s != nil && s.Healthy != nil && !*s.Healthy
}

// RescheduleTracker is the history of an allocation's replacements.
type RescheduleTracker struct {
	Events         []*RescheduleEvent
	LastReschedule string
}

// RescheduleEvent is one replacement.
type RescheduleEvent struct {
	RescheduleTime int64 // Unix nanoseconds
	PrevAllocID    string
	PrevNodeID     string
	Delay          time.Duration // the delay that was waited
}

// AllocNetworkStatus is the allocation's address.
type AllocNetworkStatus struct {
	InterfaceName string
	Address       string
	AddressIPv6   string
	DNS           *DNSConfig
}

// AllocatedResources is what an allocation was given.
type AllocatedResources struct {
	Tasks  map[string]*AllocatedTaskResources
	Shared AllocatedSharedResources
}

// AllocatedTaskResources is what one task was given.
type AllocatedTaskResources struct {
	_struct sparse `entry:",omitempty"`

	Cpu      AllocatedCpuResources
	Memory   AllocatedMemoryResources
	Networks []*NetworkResource
	Devices  []*AllocatedDeviceResource
}

// AllocatedCpuResources is a share in MHz, or whole cores with their MHz.
type AllocatedCpuResources struct {
	_struct sparse `entry:",omitempty"`

	CpuShares     int64
	ReservedCores []uint16
}

// AllocatedMemoryResources is memory in MiB; MemoryMaxMB is the limit with
// oversubscription, 0 without.
type AllocatedMemoryResources struct {
	_struct sparse `entry:",omitempty"`

	MemoryMB    int64
	MemoryMaxMB int64
}

// AllocatedDeviceResource names the devices that a task was given.
type AllocatedDeviceResource struct {
	_struct sparse `entry:",omitempty"`

	Vendor    string
	Type      string
	Name      string
	DeviceIDs []string
	// Share is thousandths of the one device that is shared; 0: whole devices.
	Share int `json:",omitempty" codec:",omitempty"`
	// Level is the lowest level of the topology under which all of them are.
	Level string `json:",omitempty" codec:",omitempty"`
}

// AllocatedSharedResources is what a group's tasks share.
type AllocatedSharedResources struct {
	_struct sparse `entry:",omitempty"`

	DiskMB   int64
	Networks []*NetworkResource
	Ports    []PortMapping
	// TimeLimit is the group's max_run_duration as it was placed; 0: none.
	TimeLimit time.Duration `json:",omitempty" codec:",omitempty"`
	// Terms are by what right it is held; nil: placed by a version that knew none.
	Terms *AllocTerms `json:",omitempty" codec:",omitempty"`
}

// PortMapping is one port that was given, by its label.
type PortMapping struct {
	Label  string
	Value  int
	To     int
	HostIP string
}

// Copy is deep.
func (r *AllocatedResources) Copy() *AllocatedResources {
	if r == nil {
		return nil
	}
	c := &AllocatedResources{Tasks: make(map[string]*AllocatedTaskResources, len(r.Tasks)), Shared: r.Shared}
	for name, t := range r.Tasks {
		ct := *t
		ct.Cpu.ReservedCores = slices.Clone(t.Cpu.ReservedCores)
		ct.Networks = slices.Clone(t.Networks)
		ct.Devices = slices.Clone(t.Devices)
		c.Tasks[name] = &ct
	}
	c.Shared.Networks = slices.Clone(r.Shared.Networks)
	c.Shared.Ports = slices.Clone(r.Shared.Ports)
	return c
}

// Total is what the allocation takes from its node: CPU in MHz, memory and disk
// in MiB, and how many whole cores.
func (r *AllocatedResources) Total() (cpu, memory, disk int64, cores int) {
	if r == nil {
		return 0, 0, 0, 0
	}
	for _, t := range r.Tasks {
		cpu += t.Cpu.CpuShares
		memory += t.Memory.MemoryMB
		cores += len(t.Cpu.ReservedCores)
	}
	return cpu, memory, r.Shared.DiskMB, cores
}

// AllocMetric describes how a placement was found, or why none was. JSON names are Nomad's.
type AllocMetric struct {
	_struct sparse `entry:",omitempty"`

	NodesEvaluated     int            `wire:",omitempty"`
	NodesFiltered      int            `wire:",omitempty"`
	NodesInPool        int            `wire:",omitempty"`
	NodePool           string         `wire:",omitempty"`
	NodesAvailable     map[string]int // by datacenter
	ClassFiltered      map[string]int
	ConstraintFiltered map[string]int // reason → how many nodes it filtered
	NodesExhausted     int            `wire:",omitempty"`
	ClassExhausted     map[string]int
	DimensionExhausted map[string]int // resource → how many nodes lack it
	QuotaExhausted     []string
	AllocationTime     time.Duration `wire:",omitempty"`
	CoalescedFailures  int           `wire:",omitempty"` // further instances that failed alike
	ScoreMetaData      []*NodeScoreMeta
}

// NodeScoreMeta is the score of a node that was looked at.
type NodeScoreMeta struct {
	_struct sparse `entry:",omitempty"`

	NodeID    string
	Scores    map[string]float64
	NormScore float64
}

// AllocClientUpdate is what a client reports of an allocation.
type AllocClientUpdate struct {
	ID                string
	NodeID            string
	ClientStatus      string
	ClientDescription string `wire:",omitempty"`
	TaskStates        map[string]*TaskState
	DeploymentStatus  *AllocDeploymentStatus `wire:",omitempty"`
	NetworkStatus     *AllocNetworkStatus    `wire:",omitempty"`
	ModifyTime        int64                  `wire:",omitempty"` // Unix nanoseconds, of the server that took the report
}
