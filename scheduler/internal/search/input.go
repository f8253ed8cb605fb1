package search

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Input is what one evaluation is decided with, beside the World.
type Input struct {
	// Job is the newest version; nil: it was purged.
	Job *structs.Job
	// Allocs are the job's, with Job attached where that version still exists.
	Allocs []*structs.Allocation
	Config structs.SchedulerConfiguration
	Now    time.Time
	// Seed settles what is arbitrary: where the search for dynamic ports starts,
	// and the policy "random".
	Seed uint64
	// NewID mints the IDs of new evaluations and batch seeds.
	NewID func() string
	// Typical is what the cluster is typically requested to place; the policy least-fragmentation
	// keeps room for it. nil, or nothing with devices in it: that policy is binpack.
	Typical *Typical
	// Prepared is what is remembered of other evaluations; nil: nothing is.
	Prepared *Prepared
	// Alike is equal for jobs of one group each that request the same and may use the same nodes: what is prepared for one of them is for all. Empty:
	// it is not known which are like this one.
	Alike string
	// Annotate fills Plan.Annotations, for `job plan`.
	Annotate bool
	// SnapshotIndex is the state that World and Input are of; the plan and a
	// blocked evaluation carry it.
	SnapshotIndex uint64
	// Past are those of the allocations' follow-up evaluations that are not to come any more: they have had their turn, and
	// what has failed and found no room then, or was looked at with a clock that was ahead, is due since.
	Past map[string]bool
	// Requests are the job's pending requests; Plan.Requests has their changes.
	Requests []*structs.PendingRequest
	// Pending returns how many instances of a project are pending, "" for those of jobs of none; nil: of all alike. The order of victims looks at it.
	Pending func(project string) int
	// UserRuns returns how long the latest completed runs of a user's instances took; nil: nothing is known of any. Workflows that lend by history look at it.
	UserRuns func(user string) []time.Duration
	// Brief: why a blocked evaluation finds no room is not counted again.
	Brief bool
	// OverLimit is what becomes of instances beyond what the job's namespace owns, one of the OverLimit constants; empty: they run
	// opportunistically. WaitsOverLimit has the job's own wish, too.
	OverLimit string
	// EntitledOnly: only instances that a claim of the job's namespace holds are placed. The others wait for the other position of
	// their request in the queue.
	EntitledOnly bool
	// Assigned are the nodes on which the instances of each group are to use the reservation of their workflow, that of the next one first; none: any.
	Assigned map[string][]string
	// LendRound is the round in which the request is tried, of those in which workflows lend by shares, from 1 on; 0: it may borrow whatever others
	// have a share of.
	LendRound int
	// CountOnly: only the number that find no room is needed, not the placements.
	CountOnly bool
}

// NodeOf returns the node that is assigned to the next instance of a group, and goes on to the one after; "": none is.
func (in *Input) NodeOf(group string) string {
	of := in.Assigned[group]
	if len(of) == 0 {
		return ""
	}
	in.Assigned[group] = of[1:]
	return of[0]
}

// PendingSince returns when a group's request began to wait, in Unix nanoseconds; begins if it has not waited yet.
func (in *Input) PendingSince(group string, begins int64) int64 {
	for _, row := range in.Requests {
		if row.Group == group && row.Missing > 0 {
			return row.Since
		}
	}
	return begins
}

// Policy is the order in which nodes are taken: the job's, else the cluster's.
func (in *Input) Policy() string {
	for _, p := range []string{in.Job.Policy, in.Config.NodeOrder()} {
		switch p {
		case PolicyBinpack, PolicySpread, PolicyFirstFit, PolicyNextFit, PolicyRandom:
			return p
		case PolicyLeastFrag:
			if in.Typical.some() {
				return p
			}
			return PolicyBinpack
		}
	}
	return PolicyBinpack
}

// WaitsOverLimit reports whether instances beyond what the job's namespace owns wait, instead of running opportunistically. A job of
// class "opportunistic" uses nothing of that, and never waits for it.
func (in *Input) WaitsOverLimit() bool {
	return (in.OverLimit == structs.OverLimitWait || in.OverLimit == structs.OverLimitConfirm) && in.Job != nil && !in.Job.PerNode() &&
		in.Job.OverLimit != structs.OverLimitOpportunistic && in.Job.Class != structs.ClassOpportunistic
}

// WaitsForClaims reports whether instances of the job wait rather than run opportunistically, all of them or those beyond what their
// namespace owns, also where that is nothing.
func (in *Input) WaitsForClaims() bool {
	return in.WaitsOverLimit() || in.Job != nil && in.Job.Class == structs.ClassGuaranteed && !in.Job.PerNode()
}
