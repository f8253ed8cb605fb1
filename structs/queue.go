package structs

import (
	"cmp"
	"strings"
	"time"
)

// PendingRequest is an unplaced group of a job: one line of the queue (semantics part 7).
// Evaluations request that a job be scheduled; what is wanted and not had is state, and lives as long as its
// job, so that what it has waited and how often it was reclaimed is not forgotten when it is
// placed.
type PendingRequest struct {
	Namespace string
	JobID     string
	Group     string
	// Missing is how many instances are not placed; 0: the request does not wait.
	Missing int
	// Since is when it began to wait this time, in Unix nanoseconds; 0: it does not.
	Since int64
	// Aged is how many cycles it waited before Since, over all times.
	Aged int64
	// Requeued counts the times that instances of it were requeued for others.
	Requeued int
	// EvalID is the blocked evaluation that it waits in; "": none yet.
	EvalID string

	CreateIndex uint64
	ModifyIndex uint64
}

// Job names the request's job.
func (a *PendingRequest) Job() NamespacedID { return NamespacedID{ID: a.JobID, Namespace: a.Namespace} }

// RequestUpdate is what a plan states about a group: how many of its instances have no place
// once the plan has been committed.
type RequestUpdate struct {
	_struct sparse `entry:",omitempty"`

	Namespace string
	JobID     string
	Group     string
	Missing   int
	// Since is when it began to wait, if it did not wait already: the creation of the
	// first evaluation that it is decided by. Unix nanoseconds.
	Since  int64
	EvalID string // the blocked evaluation; "" if Missing is 0
}

// Standings, best first (semantics parts 4 and 7).
const (
	StandingEntitled   = 0 // a claim of its owner may hold it
	StandingRecognised = 1 // its project has slots for it this week
	StandingNormal     = 2 // it is of no project
	StandingFailed     = 3 // failed the submission check
)

// What entitles a request: within StandingEntitled, claims are served in this order (semantics part 7).
const (
	ClaimRankNone     = 0 // it is not entitled
	ClaimRankCells    = 1 // cells of its namespace
	ClaimRankWorkflow = 2 // the reservation of its workflow
	ClaimRankSlots    = 3 // slots of its project
	// ClaimRankRaise is that of running allocations that are to be raised: they come after all requests that a claim may hold.
	ClaimRankRaise = 9
)

// Rank is a request's position in the queue of its pool. Between events all that wait age alike, so
// that their order is static: what all have alike is left out of Number.
type Rank struct {
	Standing int
	Claim    int // one of the ClaimRank constants: the lowest goes first
	// Band is that of the declared priority; the highest goes first.
	Band int
	// Share is the dominant share of the pool that the namespace has opportunistically, in whole percent, and UserShare that of the user
	// who submitted the job: the lowest goes first. They are those of a moment, and compared of normal standing alone; what has another
	// standing has 0.
	Share     int
	UserShare int
	Requeued  bool // goes before what never was
	// Number is priority + BonusOfRequeue for each time it was reclaimed + cycles waited
	// before, less the number of the cycle in which it began to wait: the effective
	// priority at a time is Number + the number of that time's cycle.
	Number int64
	// Submitted is the job's CreateIndex: the earlier goes first.
	Submitted uint64
	Job       NamespacedID // settles the rest
}

// Compare is below zero if r goes before o.
func (r *Rank) Compare(o *Rank) int {
	switch { // one after the other: queues compare all the time, and mostly the first few settle it
	case r.Standing != o.Standing:
		return cmp.Compare(r.Standing, o.Standing)
	case r.Claim != o.Claim:
		return cmp.Compare(r.Claim, o.Claim)
	case r.Band != o.Band:
		return cmp.Compare(o.Band, r.Band)
	case r.Share != o.Share:
		return cmp.Compare(r.Share, o.Share)
	case r.UserShare != o.UserShare:
		return cmp.Compare(r.UserShare, o.UserShare)
	case r.Requeued != o.Requeued:
		if r.Requeued {
			return -1
		}
		return 1
	case r.Number != o.Number:
		return cmp.Compare(o.Number, r.Number)
	case r.Submitted != o.Submitted:
		return cmp.Compare(r.Submitted, o.Submitted)
	case r.Job.Namespace != o.Job.Namespace:
		return strings.Compare(r.Job.Namespace, o.Job.Namespace)
	}
	return strings.Compare(r.Job.ID, o.Job.ID)
}

// Rank returns the rank of a job's request: nil stands for one that has never waited, and since is
// then when it began to. A job has one evaluation for all its groups, so its position is that of its
// best request.
func (c *SchedulerConfiguration) Rank(job *Job, request *PendingRequest, since int64) Rank {
	r := Rank{
		Standing: StandingNormal, Band: c.Band(job.Priority), Number: int64(job.Priority), Submitted: job.CreateIndex,
		Job: NamespacedID{ID: job.ID, Namespace: job.Namespace},
	}
	if request != nil {
		r.Requeued = request.Requeued > 0
		r.Number += int64(request.Requeued)*c.BonusOfRequeue() + request.Aged
		if request.Since > 0 {
			since = request.Since
		}
	}
	r.Number -= c.CycleAt(since)
	return r
}

// OfProject returns the rank of a request whose job's project gives it a standing: what is recognised has the bonus.
func (r Rank) OfProject(standing int, c *SchedulerConfiguration) Rank {
	if r.Standing = standing; standing == StandingRecognised {
		r.Number += c.SlotBonus()
	}
	return r
}

// Shared returns the rank of a request whose namespace and user have shares, in percent (semantics part 7).
func (r Rank) Shared(namespace, user int) Rank {
	if r.Standing == StandingNormal {
		r.Share, r.UserShare = namespace, user
	}
	return r
}

// Entitled returns the rank of the part of the request that a claim of its owner may hold (semantics part 0, rule 6).
func (r Rank) Entitled(claim int) Rank {
	r.Standing, r.Claim, r.Share, r.UserShare = StandingEntitled, claim, 0, 0
	return r
}

// IsEntitled reports whether the rank is that of a part that a claim may hold.
func (r *Rank) IsEntitled() bool { return r.Standing == StandingEntitled }

// EffectivePriority is what a rank's number is at a time, in Unix nanoseconds.
func (c *SchedulerConfiguration) EffectivePriority(r *Rank, now int64) int64 {
	return r.Number + c.CycleAt(now)
}

// CycleAt is the number of the cycle of a time, in Unix nanoseconds; always 0 if
// nothing ages.
func (c *SchedulerConfiguration) CycleAt(t int64) int64 {
	if c.Aging != nil && *c.Aging == 0 {
		return 0
	}
	return t / int64(c.CycleLength())
}

// CycleLength is how long a request waits for one more of effective priority.
func (c *SchedulerConfiguration) CycleLength() time.Duration {
	if c.Cycle <= 0 {
		return DefaultCycle
	}
	return c.Cycle
}
