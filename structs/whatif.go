package structs

import "time"

// Limits of a what-if.
const (
	// MaxWhatIfChanges is how many changes one may have.
	MaxWhatIfChanges = 100
	// MaxWhatIfNodes is how many nodes it may add, in all.
	MaxWhatIfNodes = 10_000
	// MaxWhatIfNodeBytes is how large all of these are together, as they are encoded: each is in the server's memory until the what-if ends.
	MaxWhatIfNodeBytes = 256 << 20
)

// Verdicts of a what-if about a group: what the changes do to the start of its instances.
const (
	WhatIfEarlier = "earlier" // the last of them starts earlier
	WhatIfLater   = "later"   // it starts later
	WhatIfNever   = "never"   // it does not start any more as far as the what-if looks
	WhatIfStarts  = "starts"  // it starts now, and did not without the changes
	WhatIfNew     = "new"     // nothing of it waits without the changes
	WhatIfGone    = "gone"    // nothing of it waits with the changes
	WhatIfSame    = "same"    // by less than a second
	WhatIfUnknown = "unknown" // a future ended before that was known
)

type (
	// WhatIfRequest requests what would become of the queue if changes were made. Nothing is changed.
	WhatIfRequest struct {
		Changes []*WhatIfChange
		// Horizon is how far both futures are looked at; 0: DefaultForecastHorizon.
		Horizon time.Duration
		// Latest: all that runs takes all the time that it may. Otherwise it runs as long as the finished runs of its job, or else of its user, did in the mean.
		Latest bool
		// Seed settles what the scheduler settles at random, in both futures alike.
		Seed uint64
		// Time is when both futures begin, in Unix nanoseconds; 0: now. The same state, changes, time and seed give the same bytes on every server.
		Time int64 `json:",omitempty" codec:",omitempty"`
		QueryOptions
	}

	// WhatIfReply is the answer to it.
	WhatIfReply struct {
		WhatIf *WhatIf
		QueryMeta
	}

	// WhatIfChange is a change as if it were applied. Exactly one of the fields after CheckIndex states what is changed.
	WhatIfChange struct {
		// Text is how the user states it; it is only shown.
		Text string `json:",omitempty"`
		// After is how long after the beginning it is made.
		After time.Duration `json:",omitempty"`
		// User is who makes it, where the servers trust such a statement.
		User string `json:"-" codec:",omitempty"`
		// Opportunistic, WhenFree and Force are those of `job run -opportunistic`, `vc apply -when-free` and `project apply -force`.
		Opportunistic bool `json:",omitempty"`
		WhenFree      bool `json:",omitempty"`
		Force         bool `json:",omitempty"`
		// CheckIndex requires that what is changed was last changed at this index, as -check-index does; 0: there is none. nil: it is not looked at.
		CheckIndex *uint64 `json:",omitempty" codec:",omitempty"`

		Job            *Job                    `json:",omitempty"` // it is registered
		VirtualCluster *VirtualCluster         `json:",omitempty"` // it is applied
		Project        *Project                `json:",omitempty"` // it is applied
		Week           *WhatIfWeek             `json:",omitempty"` // a project's slots of a week are replaced
		Flow           *Flow                   `json:",omitempty"` // it is applied
		Workflow       *Workflow               `json:",omitempty"` // it is run
		AddNodes       *WhatIfNodes            `json:",omitempty"`
		Drain          *WhatIfDrain            `json:",omitempty"`
		Lose           string                  `json:",omitempty"` // the name or ID of a node that is lost
		Scheduler      *SchedulerConfiguration `json:",omitempty"` // it replaces the scheduler's configuration
		// Absent are fields of Scheduler that the caller does not state: they stay as they are.
		Absent []string `json:"-" codec:",omitempty"`
	}

	// WhatIfWeek is all the slots of a project in a week.
	WhatIfWeek struct {
		Project string
		Week    string // as in 2026-W48
		Rows    []CalendarRow
	}

	// WhatIfNodes are nodes that are added. Either Like or Node states what they are like.
	WhatIfNodes struct {
		Count int
		Like  string `json:",omitempty"` // the name or ID of a node of the cluster
		Node  *Node  `json:",omitempty"` // its name is followed by a number
	}

	// WhatIfDrain is a node that is drained.
	WhatIfDrain struct {
		Node string // its name or ID
		DrainSpec
	}
)

// WhatIf is what would become of the queue: without changes, and with them.
type WhatIf struct {
	Index uint64 // of the state
	Time  int64  // Unix nanoseconds: when it begins
	Until int64  // Unix nanoseconds: how far both futures were run; one alone may have been run further
	// Latest: all that runs takes all the time that it may.
	Latest bool
	// NoReservations: more groups wait than get reservations in a future. Who needs much at once may start later than is stated, as others pass.
	NoReservations bool `json:",omitempty" codec:",omitempty"`
	Seed           uint64
	Changes        []WhatIfApplied
	// Groups are all of which instances wait in one of the futures, by namespace, job and name.
	Groups []*WhatIfGroup
	Before WhatIfFuture
	After  WhatIfFuture
}

// WhatIfApplied is a change that was made.
type WhatIfApplied struct {
	Text     string
	Time     int64  // Unix nanoseconds
	Warnings string `json:",omitempty"`
	// NotMade: the future with the changes ended before Time.
	NotMade bool `json:",omitempty" codec:",omitempty"`
}

// WhatIfGroup is a group with when its instances start in both futures.
type WhatIfGroup struct {
	Namespace string
	JobID     string
	Group     string
	Project   string `json:",omitempty"`
	Verdict   string // one of the WhatIf constants
	// Shift is by how much later the last of its instances starts; 0 where it starts in one of the futures only, or the verdict is the same.
	Shift time.Duration
	// AtLeast: it starts in one future alone, and earlier than the other one ended: Shift is at least that much.
	AtLeast bool         `json:",omitempty" codec:",omitempty"`
	Before  *WhatIfStart `json:",omitempty"` // nil: nothing of it waits
	After   *WhatIfStart `json:",omitempty"`
}

// WhatIfStart is when the instances of a group start that wait.
type WhatIfStart struct {
	Waits int   // instances
	Since int64 // Unix nanoseconds: when they begin to wait, not before the what-if begins
	First int64 // Unix nanoseconds; 0: none starts
	All   int64 // Unix nanoseconds; 0: not all start
	// Why states why not all start, if that is known: that none can on the nodes that there are, or who may hold the room.
	Why string `json:",omitempty" codec:",omitempty"`
}

// WhatIfFuture is what becomes of the cluster in one of the futures.
type WhatIfFuture struct {
	// Ended is why it could not be run as far as was requested; empty: it could. EndedAt is when it ended, in Unix nanoseconds: what it does not
	// state had not happened by then, and whether and when it does is not known.
	Ended   string `json:",omitempty"`
	EndedAt int64  `json:",omitempty" codec:",omitempty"`
	// Usage are means over equal stretches of time, and Mean the mean over all.
	Usage      []WhatIfUsage
	Mean       WhatIfUsage
	Namespaces []WhatIfWaits // by name
	Projects   []WhatIfWaits // by name; of jobs that name one
	// Taken are the instances that are taken from nodes for others, by time and name; TakenMore is how many more there are.
	Taken     []WhatIfTaken
	TakenMore int `json:",omitempty"`
	// Displaced are those that leave their nodes as these are lost or drained, and DisplacedMore how many more there are.
	Displaced     []WhatIfTaken
	DisplacedMore int `json:",omitempty"`
	Shortfalls    []WhatIfShortfall
	Workflows     []WhatIfWorkflow // by namespace and ID: those that run
}

// WhatIfUsage is what is used in a stretch of time, in parts of all that the ready nodes have, in the mean.
type WhatIfUsage struct {
	From   int64 // Unix nanoseconds
	GPU    float64
	CPU    float64
	Memory float64
	// Waiting is how many instances wait.
	Waiting float64
	// Fragmented is the part of all GPUs that is idle on nodes of which others are used: whoever needs a whole node cannot have it.
	Fragmented float64
}

// WhatIfWaits is how long the instances of a namespace or a project wait that wait when the what-if begins or are submitted later.
type WhatIfWaits struct {
	Of      string
	Waits   int // instances that wait
	Started int
	// Mean, P95 and Max are of those that start.
	Mean time.Duration
	P95  time.Duration
	Max  time.Duration
}

// WhatIfTaken is an instance that is taken from its node for somebody else, or that leaves it as the node is lost or drained.
type WhatIfTaken struct {
	Time      int64 // Unix nanoseconds
	Namespace string
	JobID     string
	Name      string // job.group[index]
	NodeName  string
	Suspended bool   // else it is evicted
	For       string // for what; of one that is displaced: why
	Back      int64  // Unix nanoseconds: when it runs again; 0: it does not
}

// WhatIfShortfall is what an owner of claims lacks at worst.
type WhatIfShortfall struct {
	Owner string // a namespace, "project NAME" or "workflow NAME"
	Kind  string // of devices; empty: of slots and cells together
	Level string // of cells
	// Cells are the cells that the hardware cannot hold, Waiting those that are due and cannot be given yet, as others have what they need.
	Cells   int
	Waiting int
	// Instances are those that wait although what is owned would hold them.
	Instances int
	Time      int64 // Unix nanoseconds: when it is worst first
}

// WhatIfWorkflow is a workflow that runs in a future.
type WhatIfWorkflow struct {
	Namespace string
	ID        string
	Run       int
	State     string // at the end of the future
	Start     int64  // Unix nanoseconds; 0: its first stage does not start
	End       int64  // Unix nanoseconds; 0: it does not end
	Stages    []WhatIfStage
}

// Ended reports whether it had ended when the future did.
func (w *WhatIfWorkflow) Ended() bool {
	return w.State == WorkflowComplete || w.State == WorkflowFailed || w.State == WorkflowCancelled
}

// WhatIfStage is a stage of it.
type WhatIfStage struct {
	Name  string
	State string
	Start int64 // Unix nanoseconds; 0: it does not
	End   int64 // Unix nanoseconds; 0: it does not
}
