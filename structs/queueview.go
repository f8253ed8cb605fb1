package structs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How a request in the queue stands.
const (
	QueueNotTried  = "not-tried" // no plan has spoken of it since it came, or came back
	QueueWaiting   = "waiting"   // it was tried, and there was no room
	QueueReserved  = "reserved"  // as waiting, and room is kept for it
	QueueSuspended = "suspended" // instances of it are suspended in place until there is room again
)

// Requests and answers about the queue.
type (
	// QueueRequest requests the queue. A page has at most 1,000 entries, however many
	// are requested: QueryMeta.NextToken is the next. Prefix is that of job IDs.
	QueueRequest struct {
		// NodePool requests one pool's queue; empty: those of all pools, one after the other.
		NodePool string
		QueryOptions
	}
	// QueueReply answers it.
	QueueReply struct {
		Entries []*QueueEntry
		QueryMeta
	}
)

// QueueEntry is a group of a job that waits, in its place (semantics parts 4, 6, 7).
type QueueEntry struct {
	Namespace string
	JobID     string
	Group     string
	NodePool  string
	// Place is the job's in its pool's queue: 1 goes first. The groups of a job share it,
	// for they are tried together.
	Place    int
	Priority EffectivePriority
	// Share is the dominant share of its pool that its namespace has opportunistically, in whole percent: within a band the lowest goes
	// first. 0 of what is entitled.
	Share int
	// User is who submitted the job, "": nobody in particular; UserShare is the user's share of the pool, of all namespaces: between
	// namespaces of the same share, and within one, the lowest goes first. 0 of what is entitled, and where no job that waits has a user.
	User      string `json:",omitempty"`
	UserShare int    `json:",omitempty"`
	// Project and Step are those of its job; "": it has none.
	Project string `json:",omitempty" codec:",omitempty"`
	Step    string `json:",omitempty" codec:",omitempty"`
	// Class is what it will run as: guaranteed where its namespace's claims suffice for it, or its job wants nothing else.
	Class   string
	Missing int           // instances without a place
	Wanted  int           // instances that the group requests in all
	Since   int64         // when it began to wait this time, in Unix nanoseconds
	Waited  time.Duration // how long that is, at the time of the answer
	EvalID  string        // the evaluation that it waits in; "": none yet
	// State is one of the Queue constants.
	State string
	// ReservedNodes is how many nodes keep room for it, Suspended how many instances of it are
	// suspended.
	ReservedNodes int
	Suspended     int
	// Reason is what holds it at most nodes, ReasonNodes how many those are; "": not known.
	Reason      string
	ReasonNodes int
	// Forecast is when its group starts, as the last forecast of the server that answers has it; nil: it is not part of one yet.
	Forecast    *QueueForecast `json:",omitempty" codec:",omitempty"`
	ModifyIndex uint64
}

// QueueForecast is when all instances of a group that wait start, or the first stage of a workflow, as a forecast has it.
type QueueForecast struct {
	Index    uint64 // of the state that the forecast is of
	Time     int64  // Unix nanoseconds: when that was made
	Expected int64  // Unix nanoseconds; 0: not known
	Latest   int64  // Unix nanoseconds, if all that runs takes all the time that it may; 0: not known
	Unknown  string `json:",omitempty" codec:",omitempty"` // why Latest is not known, or Expected if Latest is
}

// StateText returns how it stands, for people.
func (e *QueueEntry) StateText() string {
	switch e.State {
	case QueueNotTried:
		return "not tried yet"
	case QueueReserved:
		if e.ReservedNodes == 1 {
			return "reserved room on 1 node"
		}
		return fmt.Sprintf("reserved room on %d nodes", e.ReservedNodes)
	case QueueSuspended:
		return fmt.Sprintf("%d suspended", e.Suspended)
	}
	return e.State
}

// ReasonText is the reason with its number of nodes, for people; empty if none is known.
func (e *QueueEntry) ReasonText() string {
	switch e.ReasonNodes {
	case 0:
		return e.Reason
	case 1:
		return e.Reason + " on 1 node"
	}
	return fmt.Sprintf("%s on %d nodes", e.Reason, e.ReasonNodes)
}

// PriorityOf is what the effective priority of a request of a standing is made of at a time, in Unix nanoseconds; nil
// stands for a request that has never waited.
func (c *SchedulerConfiguration) PriorityOf(job *Job, request *PendingRequest, standing int, now int64) EffectivePriority {
	band := c.Band(job.Priority)
	p := EffectivePriority{Declared: job.Priority, Band: band, BandRange: c.PriorityBands()[band], Standing: standing}
	if request != nil {
		p.Aged, p.Requeued, p.RequeueBonus = request.Aged, request.Requeued, int64(request.Requeued)*c.BonusOfRequeue()
		if request.Since > 0 {
			p.Aged += max(0, c.CycleAt(now)-c.CycleAt(request.Since))
		}
	}
	ages := c.Aging == nil || *c.Aging != 0
	if standing == StandingRecognised && (p.Aged > 0 || !ages) { // its first cycle gives it the bonus in place of a cycle's age
		p.Aged, p.AllocatedBonus = max(0, p.Aged-1), c.SlotBonus()
	}
	p.Total = int64(p.Declared) + p.Aged + p.RequeueBonus + p.AllocatedBonus
	return p
}

// nowhere returns why no node was looked at; empty if any was.
func (m *AllocMetric) nowhere() string {
	switch {
	case m.NodesEvaluated > 0:
		return ""
	case m.NodesInPool == 0 && m.NodePool != "":
		return fmt.Sprintf("no node of node pool %q takes work", m.NodePool)
	case m.NodesInPool == 0:
		return "no node in its pool takes work"
	}
	var none []string
	for dc := range m.NodesAvailable { // sorted below
		none = append(none, fmt.Sprintf("%q", dc))
	}
	slices.Sort(none)
	where := "any of its datacenters"
	if len(none) > 0 {
		where = "datacenter " + strings.Join(none, " or ")
	}
	return fmt.Sprintf("no node that takes work is in %s", where)
}

// StatesReason reports whether a key of DimensionExhausted is no dimension, but states in full what is not to be had.
func StatesReason(dimension string) bool {
	return strings.Contains(dimension, ": ") || strings.HasPrefix(dimension, "withheld by ")
}

// MainReason is what held a placement at most nodes, in words, and how many those were.
// Of equal numbers what nodes lack goes before what they are: they may get it.
func (m *AllocMetric) MainReason() (reason string, nodes int) {
	if m == nil {
		return "", 0
	}
	type count struct {
		reason string
		nodes  int
		lacks  bool
	}
	var all []count
	for dimension, n := range m.DimensionExhausted { // order does not matter, here and below: the first is sought
		what := dimension + " exhausted"
		if StatesReason(dimension) {
			what = dimension
		}
		all = append(all, count{what, n, true})
	}
	for constraint, n := range m.ConstraintFiltered {
		all = append(all, count{constraint + " filters", n, false})
	}
	for _, quota := range m.QuotaExhausted {
		all = append(all, count{quota, 0, true})
	}
	if len(all) == 0 {
		return m.nowhere(), 0
	}
	first := slices.MinFunc(all, func(a, b count) int {
		if by := cmp.Compare(b.nodes, a.nodes); by != 0 || a.lacks == b.lacks {
			return cmp.Or(by, strings.Compare(a.reason, b.reason))
		}
		if a.lacks {
			return -1
		}
		return 1
	})
	return first.reason, first.nodes
}

// SlotsReason returns why instances use no slot of their project, in words; "": it does not say. Such a reason says more about instances that are entitled
// to a slot than what nodes lack.
func (m *AllocMetric) SlotsReason() (reason string) {
	if m == nil {
		return ""
	}
	for key := range m.DimensionExhausted { // order does not matter: the first one is sought
		if strings.HasPrefix(key, "slots: ") && (reason == "" || key < reason) {
			reason = key
		}
	}
	return reason
}
