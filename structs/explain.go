package structs

import "encoding/json"

// What holds an instance that waits. Kinds are words for programs; Text states the same
// for people (semantics part 6).
const (
	// Of a node: what it is. Counted over all nodes of the job's pool, each node under
	// every reason that refuses it.
	ReasonDown           = "node-down"
	ReasonDisconnected   = "node-disconnected"
	ReasonNotReady       = "node-not-ready" // it has not registered in full yet
	ReasonDraining       = "node-draining"
	ReasonIneligible     = "node-ineligible"
	ReasonDiskFull       = "node-disk-full"
	ReasonDatacenter     = "datacenter"
	ReasonDriver         = "driver"
	ReasonConstraint     = "constraint"
	ReasonVolume         = "volume"
	ReasonDeviceKind     = "device-kind" // it has no device of that kind
	ReasonCandidates     = "candidates"
	ReasonDistinctHosts  = "distinct-hosts"
	ReasonDistinctValues = "distinct-property"

	// Of a node: what it has free. Counted over the nodes that none of the above
	// refuses, each node under everything that it lacks.
	ReasonCPU         = "cpu"
	ReasonMemory      = "memory"
	ReasonDisk        = "disk"
	ReasonCores       = "cores"
	ReasonDevices     = "devices"       // too few are free
	ReasonCell        = "cell"          // enough are free, but not under one cell of the level
	ReasonShare       = "share"         // no device has such a part left
	ReasonPort        = "port"          // a static one is taken
	ReasonDynamicPort = "dynamic-port"  // none is free
	ReasonHostNetwork = "host-network"  // it has none of that name
	ReasonReserved    = "reserved"      // it would fit, but for the reservation of a request that has waited longer
	ReasonOwned       = "devices-owned" // enough are free, and guaranteed to namespaces
	ReasonOther       = "not-separable" // it lacks something only when all is requested at once

	// Of a node that would take one instance, but not the gang.
	ReasonGang     = "gang"
	ReasonTopology = "topology"

	// Of the group as a whole: nothing that a node lacks.
	ReasonPaused     = "evaluations-paused"
	ReasonNotTried   = "not-tried"
	ReasonUpdate     = "update-limit"
	ReasonRestart    = "restart-delay"
	ReasonReschedule = "reschedule-delay"
	ReasonGaveUp     = "gave-up"
	ReasonAway       = "awaits-node"
	ReasonReclaim    = "waits-for-reclaim"
	ReasonSuspended  = "suspended"
	ReasonAllAtOnce  = "all-at-once"
	ReasonPreemption = "preemption"
	ReasonStopped    = "job-stopped"
	ReasonPeriodic   = "periodic"
	ReasonParameters = "parameterized"
	// Of a group whose namespace owns cells.
	ReasonOverLimit = "over-limit"   // it would use more than its namespace owns
	ReasonDoomed    = "cells-doomed" // cells that its namespace owns cannot be had at present
	ReasonNoCell    = "no-cell"      // no cell that its namespace may use holds it
	ReasonWithheld  = "withheld"     // it might run opportunistically, and a setting says that it must not
	// Of a group that requests licenses: there are too few.
	ReasonLicense = "license"
	// Of a group whose project has slots: why it uses none of them.
	ReasonNoSlot = "no-slot"
)

// JobExplanation describes why a job is placed as it is, and what holds the rest: computed when
// requested, from one state, and never stored (semantics part 6).
type JobExplanation struct {
	Namespace string
	JobID     string
	Version   uint64
	Type      string
	Status    string
	NodePool  string
	Priority  int // declared
	// Submission is what the submission check finds of the job now, one of the Submission constants, "" if it names no project; SubmissionText the
	// same in words, with what to do about it.
	Submission     string `json:",omitempty"`
	SubmissionText string `json:",omitempty"`
	// At is the time that it is of, in Unix nanoseconds; Index the state.
	At    int64
	Index uint64
	// Queue is its place; nil: it does not wait.
	Queue  *QueuePosition `json:",omitempty"`
	Groups []*GroupExplanation
}

// Group is a group's explanation by its name; nil if there is none.
func (x *JobExplanation) Group(name string) *GroupExplanation {
	for _, g := range x.Groups {
		if g.Group == name {
			return g
		}
	}
	return nil
}

// QueuePosition is where a job's request stands in the queue of its pool (semantics part 7).
type QueuePosition struct {
	Pool     string
	Place    int   // 1 goes first; 0: it is not in the queue yet
	Waiting  int   // requests that wait in the pool, one a job
	Since    int64 // when it began to wait, in Unix nanoseconds
	EvalID   string
	Ahead    []NamespacedID // the jobs before it, first the one right before; bounded
	Priority EffectivePriority
}

// EffectivePriority is a request's priority and what it is made of (semantics part 4).
type EffectivePriority struct {
	Total        int64 // Declared + Aged + RequeueBonus + AllocatedBonus
	Declared     int
	Aged         int64 // one for each cycle that it waited, now and before
	Requeued     int   // how often instances were taken back
	RequeueBonus int64 // what that adds
	// AllocatedBonus is what it has because its project has slots for it, from its first cycle on, which Aged then leaves out.
	AllocatedBonus int64 `json:",omitempty" codec:",omitempty"`
	Band           int   // the number of its band, lowest 0: compared before Total
	BandRange      PriorityBand
	Standing       int // one of the Standing constants: compared before Band
}

// GroupExplanation describes how a group stands.
type GroupExplanation struct {
	Group     string
	Wanted    int // instances that the job requests; of a system job, nodes that could have one
	Placed    int // have a node: they run, start, or are requested to
	Running   int // of those
	Suspended int // of those: suspended to make room
	Completed int // have ended well, and are not run again
	Failed    int // have failed: are tried again later, or not at all
	Missing   int // have no place
	// PlacedNow is how many of Missing the scheduler would place on this very state: they
	// only wait for their turn.
	PlacedNow int `json:",omitempty"`

	// Waits is what holds the group as a whole, beside what nodes lack.
	Waits []Wait
	Nodes NodeCounts
	// Reasons are why nodes do not take one more instance: of what the node is first,
	// then of what it lacks, those with most nodes first.
	Reasons []NodeReason
	// Smallest are changes after which the scheduler places what is missing, smallest
	// first; those that place only a part come last.
	Smallest []Remedy
	Tries    int       `json:",omitempty"` // how many changes the scheduler has tried
	Expected *Expected `json:",omitempty"` // by what runs now alone; nil where there is a forecast
	// Forecast is when the missing instances start, as the last forecast of the server that answers has it, with the whole queue before them; nil: the
	// group is not part of one.
	Forecast *GroupForecast `json:",omitempty"`
	// NoForecast states why it is not; "": it is, or nothing is missing.
	NoForecast string `json:",omitempty"`
	// On are the nodes that have instances; a job with very many names the first.
	On      []PlacedOn
	OnNodes int // how many nodes have some
}

// GroupForecast is a group's part of a forecast.
type GroupForecast struct {
	Index uint64 // of the state that the forecast is of
	Time  int64  // Unix nanoseconds: when it was made
	RequestForecast
}

// Wait is something that holds a group as a whole.
type Wait struct {
	Kind      string
	Instances int `json:",omitempty"` // how many it holds
	Text      string
	Until     int64    `json:",omitempty"` // when it ends, in Unix nanoseconds; 0: not known
	Allocs    []string `json:",omitempty"` // that it is about, by ID; bounded
	// AllocCount is how many those are.
	AllocCount int `json:",omitempty"`
}

// NodeCounts adds up: Known = OtherPools + InPool, InPool = Refused + Holding + Lacking +
// Fitting.
type NodeCounts struct {
	Known      int
	OtherPools int
	InPool     int
	Refused    int // by what they are
	Holding    int // of a system job: have their instance
	Lacking    int // of what is free
	Fitting    int // would take one more instance now
}

// NodeReason is one reason and the nodes that it holds for.
type NodeReason struct {
	Kind    string
	Subject string `json:",omitempty"` // the constraint, driver, port, device, …
	Nodes   int
	Text    string
	// Classes divides Nodes by node class; nodes without one are left out.
	Classes map[string]int `json:",omitempty"`
	// Need is what one instance takes of what is lacking, Most the most that any of the
	// nodes which nothing refuses has free of it: MHz, MiB, cores, devices, thousandths.
	Need int64 `json:",omitempty"`
	Most int64 `json:",omitempty"`
	// Free is how many devices of the kind are free on these nodes together.
	Free int64 `json:",omitempty"`
	// Rooms are the cells of the level that the topology requires, with how many of the
	// gang each holds: those with most room first, bounded.
	Rooms []CellRoom `json:",omitempty"`
	// By is the request that holds a reservation.
	By []RequestName `json:",omitempty"`
}

// RequestName names a group of a job.
type RequestName struct{ Namespace, JobID, Group string }

// CellRoom is a cell with how many of a gang's first members it has room for, at most.
type CellRoom struct {
	Level string
	Name  string
	Room  int
	Want  int
}

// What an Edit changes.
const (
	EditJob     = "job"
	EditNode    = "node"
	EditConfig  = "config" // the scheduler's configuration
	EditAlloc   = "alloc"
	EditLicense = "license"
	EditCells   = "virtual-cluster" // the Count of the CellQuota that Value is, to be added to what the virtual cluster has
)

// What an Edit does: those of JSON Patch (RFC 6902), on the object's JSON as its API
// returns it; and three that are no change of a field: EditStop, EditEnd, EditNew.
const (
	EditAdd     = "add"
	EditReplace = "replace"
	EditRemove  = "remove"
	EditStop    = "stop" // an allocation
	EditEnd     = "end"  // an allocation, for good: its job would go first if it requested the room again
	EditNew     = "new"  // as many nodes as Value states, like node ID
)

// Remedy is something that, if it were otherwise, would have instances placed. It was
// made on a copy of the state, and the scheduler placed them there.
type Remedy struct {
	Kind string // of alteration, one of the Remedy constants
	Text string // what to change, in words
	// Places is how many of the missing instances it places; All: every one.
	Places int
	All    bool
	// Size compares changes: the smaller, the less is given up. See docs/guides/explain.md.
	Size  float64
	Edits []Edit
	// Entitled is how many of the allocations that it ends are guaranteed to others than the owners of the job. Such remedies come last.
	Entitled int `json:",omitempty"`
}

// Kinds of remedies.
const (
	RemedyCount      = "fewer-instances"
	RemedyResources  = "less-room"
	RemedyFilter     = "drop-filter"
	RemedyTopology   = "topology"
	RemedyPort       = "other-port"
	RemedyEnd        = "end-allocations"
	RemedyNode       = "more-nodes"
	RemedyPreemption = "preemption"
	RemedyPriority   = "priority"
	RemedyNodeState  = "node-state"
	RemedyUnpause    = "unpause"
	RemedyGangMin    = "smaller-gang"
	RemedyClass      = "class"      // another class of service
	RemedyCells      = "more-cells" // of its virtual cluster
	RemedyLicense    = "more-licenses"
)

// Edit is one step of a change, for programs.
type Edit struct {
	On string // one of the Edit constants for what is changed
	// ID is the job, node, allocation or license; of EditNew the node that the new ones are like,
	// "" if none is: Value is then such a node.
	ID   string `json:",omitempty"`
	Op   string
	Path string `json:",omitempty"` // JSON Pointer (RFC 6901)
	// Value is what is put there, Was what stands there before; both as JSON.
	Value json.RawMessage `json:",omitempty"`
	Was   json.RawMessage `json:",omitempty"`
}

// Expected is when the missing instances will have room.
type Expected struct {
	// Known: all that hold what is needed have time limits.
	Known bool
	// First is when the first has room, All when all have; Unix nanoseconds, 0: not known.
	First   int64  `json:",omitempty"`
	All     int64  `json:",omitempty"`
	Because string // in words
}

// PlacedOn is a node with how many instances it has.
type PlacedOn struct {
	NodeID    string
	NodeName  string
	Instances int
}

// AllocExplanation describes why an allocation is where it is, and what it may lose that to
// (semantics part 6).
type AllocExplanation struct {
	AllocID  string
	NodeID   string
	NodeName string
	// Policy is the order in which nodes were tried, Scores what made the node the best
	// of those looked at.
	Policy     string
	Candidates int               // nodes that it could have been placed on, when it was
	Looked     int               // nodes that were looked at
	Score      *NodeScoreMeta    `json:",omitempty"`
	Devices    []ExplainedDevice `json:",omitempty"`
	// Class is by what right it is held: "opportunistic" or "guaranteed".
	Class string
	Band  int
	// MayLoseTo is what may take its place.
	MayLoseTo []Threat `json:",omitempty"`
	// Lost is what has taken it; nil: nothing.
	Lost *LostTo `json:",omitempty"`
	// WaitsFor are allocations on its node that were requested to stop and hold it up.
	WaitsFor []string `json:",omitempty"`
	Text     []string // all of it, in sentences
}

// ExplainedDevice is devices with the cell that they are.
type ExplainedDevice struct {
	Task      string
	Device    string // vendor/type/name
	IDs       []string
	Share     int    `json:",omitempty"`
	Level     string // the lowest level that holds all
	Preferred string `json:",omitempty"` // the level that was requested
	Required  bool   `json:",omitempty"`
}

// Threat is what may take an allocation's place.
type Threat struct {
	Kind string // "preemption", "claim", "time-limit", "drain"
	// Types are the job types that may preempt it, LowestPriority the least declared
	// priority that can.
	Types          []string `json:",omitempty"`
	LowestPriority int      `json:",omitempty"`
	At             int64    `json:",omitempty"` // Unix nanoseconds
	How            string   `json:",omitempty"` // requeue or suspend
	Text           string
}

// LostTo names who took an allocation's place.
type LostTo struct {
	How       string // requeue or suspend
	AllocID   string
	Namespace string
	JobID     string
	Priority  int
}

// Requests for explanations.
type (
	// JobExplainRequest requests why a job is placed as it is. Group requests one group only,
	// NoRemedies leaves out the search for the smallest change.
	JobExplainRequest struct {
		ID         string
		Group      string
		NoRemedies bool
		QueryOptions
	}
	// JobExplainReply answers; Explanation is nil when there is no such job. Near are
	// IDs of jobs that it may have meant.
	JobExplainReply struct {
		Explanation *JobExplanation
		Near        []string
		QueryMeta
	}
	// AllocExplainReply answers; Explanation is nil when there is no such allocation.
	AllocExplainReply struct {
		Explanation *AllocExplanation
		QueryMeta
	}
)
