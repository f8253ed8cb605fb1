package preempt

import (
	"cmp"
	"math"
	"strings"
)

// Standing orders requests for preemption: band, lowest first;
// then priority, lowest first; then the latest submitted; then Name.
type Standing struct {
	Band      int
	Priority  int // declared
	Submitted uint64
	Name      string // breaks ties
}

// Compare is below zero if s is preempted before o.
func (s *Standing) Compare(o *Standing) int {
	return cmp.Or(cmp.Compare(s.Band, o.Band), cmp.Compare(s.Priority, o.Priority),
		cmp.Compare(o.Submitted, s.Submitted), strings.Compare(s.Name, o.Name))
}

// EveryBand is the Request.Below that lets any request be preempted: an entitled newcomer is not
// limited by bands (semantics part 0, rule 3).
const EveryBand = math.MaxInt

// Elsewhere is the room of a member of a gang that is in none of the rooms.
const Elsewhere = -1

// Victim is one allocated instance.
type Victim struct {
	ID   int // the caller's number of it, which is passed to Rooms
	Room int // where its resources are, or Elsewhere
	Part int // of a gang: which of its Min it counts for
}

// Allocated is the instances of one allocated request that may be reclaimed.
type Allocated struct {
	Standing
	// Victims are in the order in which they are preempted; they are returned from the
	// end. Of a gang all that run must be listed, those elsewhere too.
	Victims []Victim
	// Min makes it a gang: of each part as many must run, or none of the gang. Empty:
	// instances are preempted one by one.
	Min []int
	// Suspend: what is reclaimed is suspended where it is, if its memory can stay.
	Suspend bool
}

// Holding is what an instance holds.
type Holding uint8

// Holdings of an instance: all that was allocated to it, what it keeps while it is
// suspended, nothing.
const (
	Whole Holding = iota
	Suspended
	Nothing
)

// Rooms are the nodes (or cells) that newcomers are to have room in, with all that is
// held there. They are the caller's, so that ports, cores, devices and cells are exact.
// A call changes them at once; Plan leaves them as its Result states.
type Rooms interface {
	// Put makes an instance hold so much, in its very place. It is false, and nothing
	// has changed, if another has that place now.
	Put(victim int, h Holding) bool
	// Fits returns how many of the newcomers of a room fit there beside what is in use now, at most
	// as many as want to be there.
	Fits(room int) int
}

// Partial describes what is done if not all newcomers fit though all has been walked.
type Partial string

// Partials of semantics part 3.
const (
	PartialPreempt Partial = "preempt" // as many as fit take what they need; the default
	PartialFree    Partial = "free"    // those that fit what is free take that, and nothing is preempted
	PartialNone    Partial = "none"    // nothing is placed; the default of gangs
)

// Request is what is wanted.
type Request struct {
	Want      []int // newcomers, by room
	Below     int   // only requests of lower bands may be preempted
	KeepWhole bool
	Partial   Partial
}

// Action is how an instance releases what it uses.
type Action string

// Actions of semantics part 0.
const (
	Requeue Action = "requeue" // it is stopped and its request goes back to the queue
	Suspend Action = "suspend" // it is suspended in place
	Shrink  Action = "shrink"  // it is stopped, and its gang runs on without it
)

// Taken is an instance that is preempted.
type Taken struct {
	Allocated int // index into the requests passed to Plan
	Victim    int // index into its Victims
	How       Action
	// NoRoom: it would be suspended, but its memory cannot stay beside the newcomers.
	NoRoom bool
}

// Result is what a plan decides.
type Result struct {
	Placed []int // newcomers that have room, by room
	// Taken are the preempted instances, in the order in which they were walked.
	Taken []Taken
}

// Loss is the cost of a plan, by which rooms are compared.
type Loss struct {
	Band, Priority int // of the highest that is preempted
	Instances      int
}

// Compare is below zero if l is the lesser loss: the lower highest-priority victim, then
// fewer instances (semantics part 2, "least loss first").
func (l Loss) Compare(o Loss) int {
	if l.Instances == 0 || o.Instances == 0 {
		return cmp.Compare(l.Instances, o.Instances)
	}
	return cmp.Or(cmp.Compare(l.Band, o.Band), cmp.Compare(l.Priority, o.Priority), cmp.Compare(l.Instances, o.Instances))
}

// Loss sums up what is preempted.
func (r *Result) Loss(requests []Allocated) (l Loss) {
	for _, t := range r.Taken {
		if s := &requests[t.Allocated].Standing; l.Instances == 0 || cmp.Or(cmp.Compare(s.Band, l.Band), cmp.Compare(s.Priority, l.Priority)) > 0 {
			l.Band, l.Priority = s.Band, s.Priority
		}
		l.Instances++
	}
	return l
}
